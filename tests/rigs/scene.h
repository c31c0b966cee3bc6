/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Some Radeon VIIs and four users: one realtime, one guaranteed, two of everybody else. */

#include "ledger-rig.h"
#include "refusal-check.h"

#define VR 1    /* a realtime user */
#define LAB 2   /* a guaranteed user */
#define ANY 3   /* everybody else */
#define OTHER 4 /* another one of them */

struct scene {
	struct arbiter *arbiter;
	struct result result;
};

struct scene scene_of(size_t n_gpus);

void scene_done(struct scene *scene);

struct lease *grant(struct scene *scene, uid_t uid, unsigned cus);

bool refused(const struct scene *scene, enum result_kind kind, enum reason reason);
