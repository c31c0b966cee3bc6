/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A state directory of its own, an arbiter of one small GPU, and a lease on it. */

#include <stdlib.h>

#include "check.h"
#include "scratch.h"
#include "sys/state/state.h"

struct rig {
	struct scratch scratch;
	struct diagnostics diagnostics;
	struct gpu gpu;
	struct arbiter arbiter;
	struct partition partition;
	struct request request;
	struct lease lease;
};

static inline struct rig *rig_new(void)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct gpu_info info = {
		.name = "0000:03:00.0",
		.geometry = { .xccs = 1, .engines = 4, .arrays = 1, .array_cus = 16 },
	};

	CHECK(rig);
	rig->scratch = scratch_new();
	CHECK(geometry_spread(&info.geometry, 60) == 0);
	rig->gpu.info = info;
	codec_init(&rig->gpu.codec, &info.geometry);
	rig->arbiter.gpus = &rig->gpu;
	rig->arbiter.n_gpus = 1;

	rig->partition = (struct partition){
		.cus.pair = { 0x3, 0x3 },
		.occupied.pair = { 0x7, 0x3 },
		.count = 4,
		.asked = 4,
		.effective = 4,
		.granted = { .queues = 2, .processes = 1, .vram = 1 << 20 },
		.charged = { .queues = 4, .processes = 1 },
		.priority = 7,
		.isolation = ISOLATION_CU,
		.alone = true,
	};
	rig->request = (struct request){
		.wants[0] = { .gpu = "any", .cus = 4, .priority = 7 },
		.n_wants = 1,
		.class = -1,
		.token = "again",
		.wait_usec = UINT64_MAX,
	};
	rig->lease = (struct lease){
		.id = 17,
		.generation = 3,
		.acknowledged = 2,
		.state = STATE_GRANTED,
		.class = CLASS_GUARANTEED,
		.name = "trainer \"\xc3\xa9\"",
		.tenant = "students",
		.token = "again",
		.unit = "x.service",
		.owner = 1000,
		.pid = 4242,
		.deadline_usec = UINT64_MAX,
		.partitions = &rig->partition,
		.n_partitions = 1,
		.request = &rig->request,
		.bound = { 4242, 4243 },
		.n_bound = 2,
	};
	return rig;
}

static inline void rig_free(struct rig *rig)
{
	diagnostics_done(&rig->diagnostics);
	scratch_done(&rig->scratch);
	free(rig);
}

static inline struct state *open_state(struct rig *rig)
{
	struct state *state = NULL;

	CHECK(state_open(rig->scratch.path, &state, &rig->diagnostics) == 0);
	return state;
}

/* Another daemon's, with the notes of its start put away. */
static inline struct state *open_again(struct rig *rig)
{
	struct state *state = open_state(rig);

	diagnostics_done(&rig->diagnostics);
	return state;
}

static inline void save(struct rig *rig, struct state *state, uint64_t id)
{
	rig->lease.id = id;
	CHECK(state_save(state, &rig->arbiter, &rig->lease) == 0);
}

static inline bool says(const struct rig *rig, const char *part)
{
	for (size_t i = 0; i < rig->diagnostics.n; i++)
		if (strstr(rig->diagnostics.list[i].text, part))
			return true;
	return false;
}

static inline bool there(const struct rig *rig, const char *name)
{
	struct stat st;

	return lstat(scratch_at(&rig->scratch, name), &st) == 0;
}
