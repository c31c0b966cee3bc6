/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A scratch runtime directory, an arbiter with one GPU, and a lease on it. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "check-cond.h"
#include "scratch.h"
#include "sys/state/state.h"
#include "core/change/arbiter.h"
#include "core/policy/request.h"

struct rig {
	struct scratch scratch;
	struct diagnostics diagnostics;
	struct gpu gpu;
	struct arbiter arbiter;
	struct partition partition;
	struct request request;
	struct lease lease;
};

struct rig *state_rig_new(void);

void state_rig_free(struct rig *rig);

struct state *open_state(struct rig *rig);

/* Opens the directory as the next daemon and drops the diagnostics of its start. */
struct state *open_again(struct rig *rig);

void save(struct rig *rig, struct state *state, uint64_t id);

bool state_says(const struct rig *rig, const char *part);

bool there(const struct rig *rig, const char *name);

/* Whether the saved members of both are equal. E, use, holders, bound processes and candidates are
 * computed again after a restart. */
bool same_lease(const struct lease *a, const struct lease *b);
