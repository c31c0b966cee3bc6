/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A socket that a test answers in place of gpuarb-budget, and a cgroup like that of a scope. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "helpers/budget-protocol.h"

struct budget_rig {
	char path[108]; /* of the socket, as long as sun_path */
	int listening;
	int connection;                /* of the last request; -1: it was answered */
	struct budget_request request; /* the last one */
	struct budget_answer
		answer; /* what the next one gets: all is well, unless a test changes it */
};

/* The socket is in the directory. */
void budget_rig_new(struct budget_rig *ret, const char *dir);
void budget_rig_done(struct budget_rig *rig);

/* Waits for the next request and returns how many rows it has. */
unsigned budget_rig_receive(struct budget_rig *rig);

/* Answers it with the answer of the rig, with as many rows as the request has. */
void budget_rig_answer(struct budget_rig *rig);

/* Hangs up instead. */
void budget_rig_hang_up(struct budget_rig *rig);

/* ---- a unit -------------------------------------------------------------------------------- */

struct unit_rig {
	char cgroup[64];
	uint64_t id;
};

/* false: no cgroup can be made here. */
bool unit_rig_new(struct unit_rig *ret, const char *name);
void unit_rig_add(const struct unit_rig *unit, pid_t pid);
void unit_rig_done(const struct unit_rig *unit); /* its processes have ended */

/* ---- a container --------------------------------------------------------------------------- */

/* The first process of a pid namespace, which ends with this process. */
pid_t container_rig_start(uid_t uid);

/* A process in the same namespace that does not descend from the first one, as `podman exec` starts it. */
pid_t container_rig_add(pid_t first, uid_t uid);
