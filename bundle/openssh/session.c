/* The program that every session of our sshd starts with: the job's environment, then the shell.
 *
 * sshd gives a session a few variables of its own and reads others from files with limits. Here
 * they come from PAIRUN_SSH_SESSION, a file that holds the shell's path (empty where the image has
 * none) and then NAME=value entries, each ended by a zero byte. They count more than sshd's own,
 * but for what describes the connection.
 *
 * The shell is no login shell: /etc/profile of most images sets a PATH of its own, and a session is
 * to see what the job's command sees. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BARRIER "exec sh \"$PAIRUN_SSH_DIR/probe\""

static int die(const char *what)
{
    fprintf(stderr, "pairun: %s: %s\n", what, strerror(errno));
    return 254;
}

static int of_connection(const char *entry)
{
    return strncmp(entry, "SSH_", 4) == 0 || strncmp(entry, "TERM=", 5) == 0 ||
           strncmp(entry, "DISPLAY=", 8) == 0;
}

/* A zero-ended copy of a whole file, or NULL. */
static char *contents(const char *path, size_t *size)
{
    struct stat found;
    char *data = NULL;
    size_t had = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &found) == 0 && (data = malloc(found.st_size + 1)) != NULL) {
        ssize_t count;
        while (had < (size_t)found.st_size &&
               (count = read(fd, data + had, found.st_size - had)) > 0)
            had += count;
        data[had] = '\0';
    }
    close(fd);
    *size = had;
    return data;
}

/* Without a shell: the words of a command as they stand, if a shell would do nothing with them. */
static int run_words(char *command)
{
    char **words = calloc(strlen(command) / 2 + 2, sizeof *words), *word;
    size_t count = 0;
    if (words == NULL)
        return die("no memory");
    if (strpbrk(command, "|&;<>()$`\\\"'*?[]#~\n{}") != NULL) {
        fprintf(stderr, "pairun: this image has no shell: a session runs plain words only\n");
        return 127;
    }
    for (word = strtok(command, " \t"); word; word = strtok(NULL, " \t"))
        words[count++] = word;
    if (count == 0)
        return 0;
    execvp(words[0], words);
    die(words[0]);
    return errno == ENOENT ? 127 : 126;
}

/* The barrier's own question is answered without the user's shell: what that reads as it starts may
 * take long, and print. */
static int run_barrier(void)
{
    const char *folder = getenv("PAIRUN_SSH_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/probe", folder ? folder : "");
    execlp("sh", "sh", path, (char *)NULL);
    return die("sh");
}

int main(int argc, char **argv)
{
    const char *path = getenv("PAIRUN_SSH_SESSION");
    size_t size = 0;
    char *data = path ? contents(path, &size) : NULL, *at, *shell, *base;
    if (data == NULL)
        return die(path ? path : "PAIRUN_SSH_SESSION");
    shell = data;
    for (at = data + strlen(data) + 1; at < data + size; at += strlen(at) + 1)
        if (!of_connection(at) && putenv(at) != 0)
            return die("the environment");
    unsetenv("PAIRUN_SSH_SESSION");
    if (*shell == '\0') {
        unsetenv("SHELL");
        if (argc > 2)
            return run_words(argv[2]);
        fprintf(stderr, "pairun: this image has no shell\n");
        return 127;
    }
    setenv("SHELL", shell, 1);
    if (argc > 2 && strcmp(argv[2], BARRIER) == 0)
        return run_barrier();
    base = strrchr(shell, '/');
    argv[0] = base ? base + 1 : shell;
    execv(shell, argv);
    return die(shell);
}
