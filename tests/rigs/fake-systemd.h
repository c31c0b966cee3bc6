/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What stands for org.freedesktop.systemd1 on a private bus. What it does with a unit is in the
 * unit's name: "ok…" is frozen and thawed, "silent…" gets no answer, "NAME.service" of an error
 * in its table that error; all others are not loaded.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fake_systemd {
	pid_t pid;
	int calls; /* reads "FreezeUnit NAME\n" for each call, in their order */
};

/* Returns when it has its name on the bus of GPUARB_BUS_ADDRESS. */
bool fake_systemd_start(struct fake_systemd *ret);
void fake_systemd_stop(struct fake_systemd *fake);

/* Waits for the next call, without its newline. */
void fake_systemd_next(struct fake_systemd *fake, char *line, size_t size);

/* Waits for the next call; whether it is this one. */
bool fake_systemd_was_asked(struct fake_systemd *fake, const char *call);
