/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The watch of a plan without memory. The tests of gpuarbctl rt watch compare plans with snapshots. */

#include "client/rt/watch.h"

#include "check.h"
#include "lack.h"
#include "rt-rig.h"

static const struct rt_plan *plan; /* what is watched without memory */

/* Two snapshots of a daemon without GPUs. */
static int watch_plan(long allocations)
{
	_cleanup_(rt_watch_freep) struct rt_watch *watch = NULL;
	struct rt_violation violation;
	int r;

	lack_left = allocations;
	r = rt_watch_new(plan, &watch);
	CHECK((r == 0) == (watch != NULL));
	for (uint64_t now = 1; now <= 2 && r >= 0; now++)
		r = rt_watch_compare(watch, NULL, now, now, &violation);
	CHECK(!watch || (!rt_watch_had_lease(watch, 0) && !rt_watch_moved(watch)));
	return r;
}

TEST(a_plan_is_watched_whole_or_not)
{
	struct gpu_info gpu = radeon_vii("g");
	struct rt_rig rig = RT_RIG_INIT(rig);

	rt_rig_needs(&rig, 10);
	_cleanup_(rt_plan_freep) struct rt_plan *made = rt_rig_plan_on(&rig, &gpu);
	plan = made;
	CHECK(lack_each("rt_watch", watch_plan) == 5);
}
