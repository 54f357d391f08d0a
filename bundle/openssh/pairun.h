/* Read before every file of OpenSSH: what replaces paths and users that an image may not have. */
#ifndef PAIRUN_H
#define PAIRUN_H

/* An empty directory of root's, from PAIRUN_SSH_EMPTY; where sshd answers strangers. */
const char *pairun_empty_dir(void);
/* The configuration for every ssh of this container: run/ssh/config beside the tool folder. */
const char *pairun_ssh_config(void);
/* Whether this process may become another user in another root directory. */
int pairun_may_drop(void);

#endif
