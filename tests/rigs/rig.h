/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The shipped gpuarbd on a bus of its own, told apart only by what a service manager sets:
 *
 *	GPUARBD          the daemon's binary
 *	GPUARB_ROOT      the source tree, for conf/gpus
 *	SERVICE_MANAGER  tests/rigs/service-manager.c, for rig_start_managed()
 *
 * Whatever goes wrong aborts the test with a line that says what. Processes die with the
 * test.
 */

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

struct rig {
	char dir[64];      /* bus, gpuarbd.conf, tenants.d/, run/; extra.conf is the bus's */
	char address[128]; /* of the bus */
	pid_t bus, daemon; /* 0: does not run */
	int notify;        /* NOTIFY_SOCKET of a daemon without a manager */
	uid_t user;        /* whom daemons run as; 0: whom the test does */

	pid_t manager;   /* 0: none */
	pid_t ready;     /* the last daemon that said so to it */
	bool may_fail;   /* a daemon may end with a status before one is ready */
	int say, hear;   /* its stdin and stdout */
	char heard[512]; /* of which this has not been taken yet */
	size_t heard_size;
};

/* NULL if there is all it needs; else why not, for SKIP(). The bus alone needs less. */
const char *rig_missing(void);
const char *rig_bus_missing(void);

/* Makes the directory, see scratch_root(), with an empty gpuarbd.conf and no tenants, and starts the bus. */
void rig_new(struct rig *ret);

/* Closes connections, stops what still runs, the daemon by rig_stop(), and removes the directory. */
void rig_done(struct rig *rig);

/* Writes a file below the directory: "gpuarbd.conf", "tenants.d/10-test.conf". */
void rig_write(const struct rig *rig, const char *name, const char *text);

/* From now on daemons, and their manager, run as this user, whom the directory belongs to then;
 * out of copies of their own, for others need not reach where the test's programs are. */
void rig_run_as(struct rig *rig, uid_t uid);

/* Starts the daemon and waits until it is ready. hardware: "--simulate=radeon-vii", and other
 * options behind spaces. Its service manager keeps nothing for it. */
void rig_start(struct rig *rig, const char *hardware);

/* The same where it may not come up, or must not: its exit status, or 128 and a signal. */
#define RIG_READY (-1)
int rig_try_start(struct rig *rig, const char *hardware);
int rig_start_fails(struct rig *rig, const char *hardware);

/* SIGTERM; it must exit with 0, and forget what its manager stored. */
void rig_stop(struct rig *rig);

/* SIGTERM to one without a manager: its exit status, or 128 and a signal. */
int rig_try_stop(struct rig *rig);

/* SIGKILL. */
void rig_kill(struct rig *rig);

/* ---- under a service manager ------------------------------------------------------- */

/* Starts it so that it is started again, with what it stored, whenever it ends. options: of
 * service-manager.c, separated by spaces. */
void rig_start_managed(struct rig *rig, const char *hardware, const char *options);

/* A command to the manager, without its newline. */
void rig_say(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Waits until the manager tells this, passing over all else but a daemon that failed. What
 * follows the word, until the next call: "ready" in "ready 17" gives "17". */
const char *rig_hear(struct rig *rig, const char *word);

/* Waits until the daemon that was started last is ready. Beside rig_hear("ready"), where the one
 * that was ready may have ended since. */
void rig_await_ready(struct rig *rig);

/* The daemon or the bus, a child of the test, stands still: it finds all that arrives in between together. */
void rig_pause(pid_t pid);
void rig_go_on(pid_t pid);

void rig_crash(struct rig *rig);   /* SIGKILL, and the next one is ready */
void rig_restart(struct rig *rig); /* systemctl restart */
void rig_down(struct rig *rig);    /* SIGKILL, and nothing runs until rig_up() */
void rig_up(struct rig *rig);

/* Until so much is stored: what the daemon says to its manager takes its time. */
void rig_await_stored(struct rig *rig, unsigned n);

/* ---- more --------------------------------------------------------------------------- */

/* SIGKILL to the bus; a new one with the same address. */
void rig_signal_bus(const struct rig *rig, int signal);
void rig_kill_bus(struct rig *rig);
void rig_start_bus(struct rig *rig);

/* Waits for a notification with this line: "READY=1" after a SIGHUP. Unread ones fill the
 * socket: await them. */
void rig_await(const struct rig *rig, const char *line);

/* A file below the directory, until the fourth call after this one. */
const char *rig_path(const struct rig *rig, const char *name);

/* What a process has in memory. */
unsigned long rig_resident_kib(pid_t pid);

/* Sends fd over a socket; with fd -1 receives one. Returns the fd. */
int pass(int socket, int fd);

/* A connection as this user, whom dbus-daemon must know; the caller must be root, or be that user. Connections of
 * another user belong to a process of that user, one for each user, which does nothing else. rig_done() closes
 * it, or leave() before. */
sd_bus *rig_connect(const struct rig *rig, uid_t uid);
void leave(sd_bus *bus);
