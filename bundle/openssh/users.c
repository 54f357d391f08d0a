/* Users for an image that knows none, and logins without waits: linked before libc's own functions.
 *
 * A container may run as a number without a name, or have no passwd file at all. sshd then needs
 * somebody to log in, and ssh a home directory. What passwd says goes first.
 *
 * PAIRUN_SSH_SHELL marks our sshd: it names the program that every session starts with. */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pairun.h"

struct passwd *__real_getpwnam(const char *name);
struct passwd *__real_getpwuid(uid_t uid);
int __real_initgroups(const char *name, gid_t group);
int __real_setgroups(size_t count, const gid_t *groups);

static const gid_t nobody = 65534;

static int is_dir(const char *path)
{
    struct stat found;
    return path && *path && stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

/* A user that passwd does not know; one at a time, as with the real functions. */
static struct passwd *made(const char *name, uid_t uid, gid_t gid, const char *home)
{
    static struct passwd entry;
    static char kept[64];
    snprintf(kept, sizeof kept, "%s", name);
    entry = (struct passwd){
        .pw_name = kept, .pw_passwd = "x", .pw_uid = uid, .pw_gid = gid, .pw_gecos = "",
        .pw_dir = (char *)home, .pw_shell = "/bin/sh",
    };
    return &entry;
}

static struct passwd *ourselves(void)
{
    const char *home = getenv("HOME");
    return made(getuid() == 0 ? "root" : "pairun", getuid(), getgid(), is_dir(home) ? home : "/");
}

/* What our sshd makes of an entry: our shell, and a home that there is. */
static struct passwd *seen_by_sshd(struct passwd *entry)
{
    char *shell = getenv("PAIRUN_SSH_SHELL");
    if (entry && shell) {
        entry->pw_shell = shell;
        if (!is_dir(entry->pw_dir))
            entry->pw_dir = "/";
    }
    return entry;
}

struct passwd *__wrap_getpwuid(uid_t uid)
{
    struct passwd *entry = __real_getpwuid(uid);
    return seen_by_sshd(!entry && uid == getuid() ? ourselves() : entry);
}

struct passwd *__wrap_getpwnam(const char *name)
{
    struct passwd *entry;
    /* An sshd that is not root's can let in nobody but itself, whatever name is asked for: the
     * others of a job need not know as whom this container runs. */
    if (getenv("PAIRUN_SSH_SHELL") && getuid() != 0)
        return __wrap_getpwuid(getuid());
    entry = __real_getpwnam(name);
    if (!entry && strcmp(name, "sshd") == 0)
        return made(name, nobody, nobody, "/"); /* who sshd is for strangers */
    if (!entry && strcmp(name, "root") == 0 && getuid() == 0)
        entry = ourselves();
    return seen_by_sshd(entry);
}

static int may(int capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0)
        return 1;
    return (data[0].effective >> capability) & 1;
}

int pairun_may_drop(void)
{
    return may(CAP_SETUID) && may(CAP_SETGID) && may(CAP_SYS_CHROOT);
}

/* Root without CAP_SETGID keeps the groups that it has: it cannot become anybody else either. */
static int kept_groups(int status)
{
    return status != 0 && errno == EPERM && !may(CAP_SETGID) ? 0 : status;
}

int __wrap_initgroups(const char *name, gid_t group)
{
    return kept_groups(__real_initgroups(name, group));
}

int __wrap_setgroups(size_t count, const gid_t *groups)
{
    return kept_groups(__real_setgroups(count, groups));
}

/* A login is a row of small packets. Without this, twice in each one of them waits 40 ms for an
 * acknowledgement that the other side holds back (RFC 896, RFC 1122 4.2.3.2). */
static void at_once(int fd)
{
    int yes = 1, saved = errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    errno = saved;
}

int __real_connect(int fd, const struct sockaddr *address, socklen_t size);
int __real_accept(int fd, struct sockaddr *address, socklen_t *size);

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
    if (address->sa_family == AF_INET || address->sa_family == AF_INET6)
        at_once(fd);
    return __real_connect(fd, address, size);
}

int __wrap_accept(int fd, struct sockaddr *address, socklen_t *size)
{
    int made = __real_accept(fd, address, size);
    if (made >= 0)
        at_once(made);
    return made;
}

const char *pairun_empty_dir(void)
{
    const char *path = getenv("PAIRUN_SSH_EMPTY");
    return path ? path : "/var/empty";
}

const char *pairun_ssh_config(void)
{
    static char path[4096];
    char *end;
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 32);
    path[size < 0 ? 0 : size] = '\0';
    /* PAI/tools/ssh/ssh */
    for (int up = 0; up < 3; up++)
        if ((end = strrchr(path, '/')) != NULL)
            *end = '\0';
    if (size <= 0)
        strcpy(path, "/usr/local/pai");
    strcat(path, "/run/ssh/config");
    return path;
}
