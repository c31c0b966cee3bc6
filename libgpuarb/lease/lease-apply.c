/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Masks for this very process's queues. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "libgpuarb/agent/agent.h"

/* KFD names processes by the numbers of the first PID namespace. In another one the own number
 * is another process's there. */
static int check_namespace(struct gpuarb *gpuarb)
{
	if (queues_visible())
		return 0;
	return fail(gpuarb, -EOPNOTSUPP,
		    "this process is in a PID namespace of its own, or has no /proc: its queues "
		    "cannot be told from others' there. Start it with the variables of "
		    "gpuarb_lease_environment(), or in the host's PID namespace");
}

static const char *own_environment(void *userdata, const char *name)
{
	(void)userdata;
	return getenv(name);
}

static const struct apply own_seat = {
	.sys = "/sys",
	.dev = "/dev",
	.driver = &kfd_driver,
	.get = own_environment,
};

/* What an agent knows is newer than what the program has taken in, and its own until the end. */
static int begin_apply(struct gpuarb_lease *lease, struct apply *ret)
{
	begin(lease->gpuarb);
	if (lease->agent) {
		agent_enter(lease->agent, lease->gpuarb, ret);
		return 0;
	}
	*ret = own_seat;
	ret->pid = getpid();
	ret->gpuarb = lease->gpuarb;
	ret->lease = lease->info.id;
	ret->state = lease->info.state;
	ret->partitions = lease->info.partitions;
	ret->n = lease->info.n_partitions;
	ret->mask_cache = &lease->mask_cache;
	return check_namespace(lease->gpuarb);
}

static int end_apply(struct gpuarb_lease *lease, int r)
{
	if (lease->agent)
		agent_leave(lease->agent);
	return done(lease->gpuarb, r);
}

GPUARB_EXPORT int gpuarb_lease_apply(struct gpuarb_lease *lease)
{
	struct apply apply;
	int r;

	if (!lease)
		return -EINVAL;

	r = begin_apply(lease, &apply);
	if (r >= 0)
		r = apply_all(&apply);
	if (r >= 0 && lease->agent)
		agent_applied(lease->agent);
	return end_apply(lease, r);
}

GPUARB_EXPORT int gpuarb_lease_queue_ids(struct gpuarb_lease *lease, size_t i, uint32_t *ids,
					 size_t max)
{
	struct apply apply;
	int r;

	if (!lease || (!ids && max > 0))
		return -EINVAL;

	r = begin_apply(lease, &apply);
	return end_apply(lease, r < 0 ? r : apply_queue_ids(&apply, i, ids, max));
}

GPUARB_EXPORT int gpuarb_lease_mask_queue(struct gpuarb_lease *lease, size_t i, uint32_t queue,
					  const uint32_t *mask, size_t words)
{
	struct apply apply;
	int r;

	if (!lease)
		return -EINVAL;

	r = begin_apply(lease, &apply);
	return end_apply(lease, r < 0 ? r : apply_own(&apply, i, queue, mask, words));
}

/* ---- the agent --------------------------------------------------------------------------- */

GPUARB_EXPORT int gpuarb_lease_start_agent(struct gpuarb_lease *lease)
{
	struct apply seat = own_seat;
	int r;

	if (!lease)
		return -EINVAL;

	begin(lease->gpuarb);
	seat.pid = getpid();
	r = check_namespace(lease->gpuarb);
	return done(lease->gpuarb, r < 0 ? r : agent_start(lease, &seat));
}

GPUARB_EXPORT int gpuarb_lease_agent_error(struct gpuarb_lease *lease)
{
	if (!lease)
		return -EINVAL;

	begin(lease->gpuarb);
	return done(lease->gpuarb,
		    lease->agent ? agent_error(lease->agent, lease->gpuarb)
				 : fail(lease->gpuarb, -EBADFD, "lease %" PRIu64 " has no agent",
					lease->info.id));
}

/* ---- what goes with a lease -------------------------------------------------------------- */

GPUARB_EXPORT void gpuarb_lease_attach(struct gpuarb_lease *lease, void *data,
				       void (*done_with)(void *data))
{
	void *before;
	void (*before_done)(void *data);

	if (!lease)
		return;

	before = lease->attached;
	before_done = lease->attached_done;
	lease->attached = data;
	lease->attached_done = done_with;
	if (before && before != data && before_done)
		before_done(before);
}

GPUARB_EXPORT void *gpuarb_lease_attached(const struct gpuarb_lease *lease)
{
	return lease ? lease->attached : NULL;
}
