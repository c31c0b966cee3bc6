/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The shipped gpuarb-enforce on a socket of a test's own, as systemd would start it, and a client
 * that says what it likes. Everything waits for as long as only a failure takes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "helpers/enforce-protocol.h"

/* A packet as text: "kill START", "freeze START UNIT", "thaw UNIT", "ok" or "error ERRNO SENTENCE". */
#define ENFORCE_TEXT_MAX 544U

struct helper {
	char dir[64];
	char path[96];    /* of the socket, in it */
	char sysfs[96];   /* the directory that it reads instead of /sys */
	char records[96]; /* its runtime directory */
	int listening;
	uid_t uid; /* whom it runs as; 0: as the test does */
	pid_t pid; /* 0: not started, or ended */
};

/* The directory with the tree of sysfs, without a socket. */
void helper_prepare(struct helper *ret);

/* A socket that listens, without a helper. */
void helper_listen(struct helper *ret);

/* idle, timeout: seconds, NULL for the program's own. Its standard error goes to log, or nowhere
 * else than ours where that is -1. */
void helper_start(struct helper *helper, const char *idle, const char *timeout, int log);

/* Both of them, as the program is shipped. */
struct helper helper_new(void);

/* Waits until it has ended by itself; its status as waitpid() has it. */
int helper_wait(struct helper *helper);

/* Ends it, which it must do with 0, and removes everything. */
void helper_stop(struct helper *helper);

/* Before its start: a helper before this one froze these units, and was killed. Names are separated by
 * spaces. */
void helper_froze(const struct helper *helper, const char *units);

/* Makes the process one that uses a KFD device, or no longer one, as far as the helper can see. */
void helper_uses_kfd(const struct helper *helper, pid_t pid, bool uses);

/* ---- a client ---------------------------------------------------------------------------- */

int client_connect(const struct helper *helper);

/* One packet with these fds: a request where the text is one, else the bytes of the text. Returns
 * whether there was room for it. */
bool client_send(int client, const void *text, size_t length, const int *fds, unsigned n_fds);

/* Waits for the next packet and writes it as text. Returns its length, 0 at the end of the connection. */
size_t client_receive(int client, char buf[ENFORCE_TEXT_MAX]);

/* Sends, receives, and says whether the answer begins so; prints it if not. */
bool client_asks(int client, const char *text, int fd, const char *answer);
bool client_hears(int client, const char *answer);

/* Asks to kill the process of the pidfd, or to freeze its unit, with its own start time. */
bool client_kills(int client, int pidfd, const char *answer);
void client_sends_kill(int client, int pidfd); /* without waiting for the answer */
bool client_freezes(int client, const char *unit, int pidfd, const char *answer);

/* The same for a user other than root. */
bool client_kills_for(int client, int pidfd, uid_t uid, const char *answer);
bool client_orders(int client, enum enforce_verb verb, int pidfd, uid_t uid, const char *text,
		   const char *answer);
uint64_t start_time_of(pid_t pid); /* 0: unknown */

/* ---- processes ---------------------------------------------------------------------------- */

pid_t victim_new(void); /* waits to be killed */
int victim_pidfd(pid_t pid);

/* Whether process 2 is the kernel's: a container does not see it. */
bool sees_kthreadd(void);
bool victim_was_killed(pid_t pid); /* waits for its end */
