/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Masks for this very process's queues. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libgpuarb/apply.h"

/* The inode of the first PID namespace, in every kernel (PROC_PID_INIT_INO in proc_ns.h). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCU

/* KFD names processes by the numbers of the first PID namespace. In another one the own number
 * is another process's there. */
static int check_namespace(struct gpuarb *gpuarb)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST_PID_NAMESPACE)
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

static int begin_apply(struct gpuarb_lease *lease, struct apply *ret)
{
	begin(lease->gpuarb);
	*ret = (struct apply){
		.gpuarb = lease->gpuarb,
		.lease = lease->info.id,
		.state = lease->info.state,
		.partitions = lease->info.partitions,
		.n = lease->info.n_partitions,
		.book = &lease->book,
		.sys = "/sys",
		.dev = "/dev",
		.pid = getpid(),
		.driver = &kfd_driver,
		.get = own_environment,
	};
	return check_namespace(lease->gpuarb);
}

GPUARB_EXPORT int gpuarb_lease_apply(struct gpuarb_lease *lease)
{
	struct apply apply;
	int r;

	if (!lease)
		return -EINVAL;

	r = begin_apply(lease, &apply);
	return done(lease->gpuarb, r < 0 ? r : apply_all(&apply));
}

GPUARB_EXPORT int gpuarb_lease_queue_ids(struct gpuarb_lease *lease, size_t i, uint32_t *ids,
					 size_t max)
{
	struct apply apply;
	int r;

	if (!lease || (!ids && max > 0))
		return -EINVAL;

	r = begin_apply(lease, &apply);
	return done(lease->gpuarb, r < 0 ? r : apply_queue_ids(&apply, i, ids, max));
}

GPUARB_EXPORT int gpuarb_lease_mask_queue(struct gpuarb_lease *lease, size_t i, uint32_t queue,
					  const uint32_t *mask, size_t words)
{
	struct apply apply;
	int r;

	if (!lease)
		return -EINVAL;

	r = begin_apply(lease, &apply);
	return done(lease->gpuarb, r < 0 ? r : apply_own(&apply, i, queue, mask, words));
}

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
