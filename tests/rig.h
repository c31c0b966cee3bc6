/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The shipped gpuarbd on a bus of its own, told apart only by what a service manager sets:
 *
 *	GPUARBD      the daemon's binary
 *	GPUARB_ROOT  the source tree, for conf/gpus
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
	int notify;        /* NOTIFY_SOCKET */
};

/* NULL if there is all it needs; else why not, for SKIP(). The bus alone needs less. */
const char *rig_missing(void);
const char *rig_bus_missing(void);

/* Makes the directory, with an empty gpuarbd.conf and no tenants, and starts the bus. */
void rig_new(struct rig *ret);

/* Stops what still runs, the daemon by rig_stop(), and removes the directory. */
void rig_done(struct rig *rig);

/* Writes a file below the directory: "gpuarbd.conf", "tenants.d/10-test.conf". */
void rig_write(const struct rig *rig, const char *name, const char *text);

/* Starts the daemon and waits until it is ready. hardware: "--simulate=radeon-vii". */
void rig_start(struct rig *rig, const char *hardware);

/* The same where it must not come up: its exit status. */
int rig_start_fails(struct rig *rig, const char *hardware);

/* SIGTERM; it must exit with 0. */
void rig_stop(struct rig *rig);

/* SIGKILL. */
void rig_kill(struct rig *rig);

/* Waits for a notification with this line: "READY=1" after a SIGHUP. Unread ones fill the
 * socket: await them. */
void rig_await(const struct rig *rig, const char *line);

/* A connection as this user, who must exist; the caller must be root, or be that user. */
sd_bus *rig_connect(const struct rig *rig, uid_t uid);
