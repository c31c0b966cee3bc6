/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "libgpuarb/lease/environment.h"

/* The GPUs of a simulation: no process sees any, so the lease's own are all there are. */
static int simulated_topology(size_t n, struct topology *ret)
{
	ret->gpus = calloc(n, sizeof(*ret->gpus));
	if (!ret->gpus)
		return -ENOMEM;
	ret->n = n;
	return 0;
}

static const char *own_environment(void *userdata, const char *name)
{
	(void)userdata;
	return getenv(name);
}

static int make(struct gpuarb_lease *lease, char ***ret)
{
	const struct gpuarb_lease_info *info = &lease->info;
	struct topology topology = { NULL, 0 };
	struct environment environment = {
		.lease = info->id,
		.partitions = info->partitions,
		.n = info->n_partitions,
		.topology = &topology,
		.get = own_environment,
	};
	int r;

	r = info->n_partitions > 0 && info->partitions[0].kfd_gpu_id == 0
		    ? simulated_topology(info->n_partitions, &topology)
		    : topology_read("/sys", "/dev", &topology);
	if (r == -ENODEV)
		return fail(lease->gpuarb, r,
			    "this process sees no AMD GPU: there is no "
			    "/sys/class/kfd/kfd/topology/nodes");
	if (r < 0)
		return r;

	r = environment_make(lease->gpuarb, &environment, ret);
	free(topology.gpus);
	return r;
}

GPUARB_EXPORT int gpuarb_lease_environment(struct gpuarb_lease *lease, char ***ret)
{
	int r;

	if (!lease || !ret)
		return -EINVAL;

	begin(lease->gpuarb);
	if (lease_is(lease, "waiting") || lease_is(lease, "ending"))
		r = fail(lease->gpuarb, -EBADFD, "lease %" PRIu64 " is %s, not granted",
			 lease->info.id, lease->info.state);
	else
		r = make(lease, ret);
	return done(lease->gpuarb, r);
}
