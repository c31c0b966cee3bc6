/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/lease-text.h"
#include "core/policy/settings.h"

#define SNAPSHOTS 64U

const char *const rt_assumption_names[RT_ASSUMPTIONS] = { "disturbances",    "activations",
							  "queue-changes",   "effective-cus",
							  "pipe-neighbours", "neighbours" };

/* What has happened to the lease of a partition since the first snapshot. */
struct sums {
	uint64_t lease; /* 0: none */
	uint64_t events[RT_CUS];
};

struct snapshot {
	uint64_t begin, end;
	uint64_t queues_read[RT_GPUS_MAX];
	struct sums partitions[RT_PARTITIONS_MAX];
};

struct seen_lease {
	uint64_t id;
	bool granted;
};

struct seen_program {
	size_t gpu;
	uint32_t pid, queues;
	uint64_t lease;
};

struct rt_watch {
	const struct rt_plan *plan;
	struct snapshot snapshots[SNAPSHOTS];
	size_t n_snapshots;                     /* so far */
	uint64_t leases_had[RT_PARTITIONS_MAX]; /* the last of each partition; 0: none yet */

	/* In the last snapshot. */
	struct seen_lease *leases;
	size_t n_leases;
	struct seen_program *programs;
	size_t n_programs;
	bool moved; /* they are not those of the snapshot before */
};

int rt_watch_new(const struct rt_plan *plan, struct rt_watch **ret)
{
	struct rt_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return -ENOMEM;
	watch->plan = plan;
	*ret = watch;
	return 0;
}

struct rt_watch *rt_watch_free(struct rt_watch *watch)
{
	if (watch) {
		free(watch->leases);
		free(watch->programs);
	}
	free(watch);
	return NULL;
}

void rt_watch_forget(struct rt_watch *watch)
{
	watch->n_snapshots = 0;
}

bool rt_watch_had_lease(const struct rt_watch *watch, size_t partition)
{
	return watch->leases_had[partition] > 0;
}

bool rt_watch_moved(const struct rt_watch *watch)
{
	return watch->moved;
}

/* ---- what the plan allows ------------------------------------------------------------------ */

/* The time for which the set counts a number: a response, or with a policy the longest deadline. */
static uint64_t span_of(const struct rt_plan *plan, size_t partition)
{
	if (plan->set->partitions[partition].policy == RT_FIFO)
		return plan->partitions[partition].response;
	return rt_set_longest_deadline(plan->set, partition);
}

static uint64_t allowed_often(const struct rt_often *often, uint64_t span, uint64_t within)
{
	if (!rt_often_is_stated(often))
		return 0;
	if (often->rates.n == 0)
		return bound_add(0, bound_divide_up(within, span), often->number);
	return bound_rates_within(&often->rates, within);
}

/* The most in so long a time. For disturbances: changes of masks, of which a late one may be that of an
 * earlier activation. */
static uint64_t allowed(const struct rt_plan *plan, size_t partition, enum rt_assumption assumption,
			uint64_t within)
{
	const struct rt_gpu_plan *gpu = rt_plan_gpu(plan, partition);
	struct rt_often often = assumption == RT_QUEUE_CHANGES
					? plan->set->queue_changes
					: rt_plan_activations(plan, partition);
	uint64_t n = allowed_often(&often, span_of(plan, partition), within);

	if (!gpu->preempts)
		return UINT64_MAX;
	if (assumption == RT_QUEUE_CHANGES)
		return n;
	if (!rt_plan_masks_change(plan, partition)) /* the bound has no activations */
		return assumption == RT_ACTIVATIONS ? UINT64_MAX : 0;
	if (assumption == RT_ACTIVATIONS)
		return n;
	n += (n > 0) + bound_divide_up(within, plan->set->daemon.activate_min_interval) + 1;
	return bound_add(0, n, gpu->changed_queues);
}

/* ---- what has happened ---------------------------------------------------------------------- */

static const char *gpu_of(const struct rt_watch *watch, size_t partition)
{
	return rt_plan_gpu(watch->plan, partition)->gpu.info.name;
}

/* The lease of a partition has its tenant, which the plan names like the partition. */
static const struct gpuarb_lease_info *lease_of_tenant(const struct gpuarb_view *view,
						       const char *tenant, const char *gpu)
{
	const struct gpuarb_lease_info *leases;
	size_t n = gpuarb_view_leases(view, &leases);

	for (size_t i = 0; i < n; i++)
		if (strcmp(leases[i].tenant, tenant) == 0 && partition_on_gpu(&leases[i], gpu))
			return &leases[i];
	return NULL;
}

static const struct gpuarb_lease_info *lease_of(const struct rt_watch *watch,
						const struct gpuarb_view *view, size_t partition)
{
	return lease_of_tenant(view, watch->plan->set->partitions[partition].name,
			       gpu_of(watch, partition));
}

/* Adds events to each partition on the GPU but that of the lease. */
static void add_to_others(const struct rt_watch *watch, struct snapshot *snapshot, const char *gpu,
			  uint64_t lease, enum rt_assumption assumption, uint64_t n)
{
	for (size_t i = 0; i < watch->plan->set->n_partitions; i++)
		if (snapshot->partitions[i].lease != lease && strcmp(gpu_of(watch, i), gpu) == 0)
			snapshot->partitions[i].events[assumption] += n;
}

static bool was_granted(const struct rt_watch *watch, uint64_t lease)
{
	for (size_t i = 0; i < watch->n_leases; i++)
		if (watch->leases[i].id == lease)
			return watch->leases[i].granted;
	return false;
}

static int count_activations(struct rt_watch *watch, const struct gpuarb_view *view,
			     struct snapshot *snapshot)
{
	const struct gpuarb_lease_info *leases;
	size_t n = gpuarb_view_leases(view, &leases);
	struct seen_lease *seen = calloc(n + 1, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		seen[i].id = leases[i].id;
		seen[i].granted = strcmp(leases[i].state, "granted") == 0;
		if (!seen[i].granted || was_granted(watch, seen[i].id))
			continue;
		for (size_t k = 0; k < leases[i].n_partitions; k++)
			add_to_others(watch, snapshot, leases[i].partitions[k].gpu, seen[i].id,
				      RT_ACTIVATIONS, 1);
	}
	free(watch->leases);
	watch->leases = seen;
	watch->n_leases = n;
	return 0;
}

/* Takes the queues of the program out of the list. */
static uint32_t take_queues(struct rt_watch *watch, size_t gpu, uint32_t pid)
{
	struct seen_program *programs = watch->programs;

	for (size_t i = 0; i < watch->n_programs; i++)
		if (programs[i].gpu == gpu && programs[i].pid == pid) {
			uint32_t queues = programs[i].queues;

			programs[i].queues = 0;
			return queues;
		}
	return 0;
}

/* Its index in the snapshot, or one past the last. */
static size_t find_gpu(const struct gpuarb_view *view, const char *name)
{
	const struct gpuarb_gpu *gpus;
	size_t n = gpuarb_view_gpus(view, &gpus), i = 0;

	while (i < n && strcmp(gpus[i].name, name) != 0)
		i++;
	return i;
}

/* The programs with queues on GPUs of the plan; room is for as many as there are. */
static size_t list_programs(const struct rt_watch *watch, const struct gpuarb_view *view,
			    struct seen_program *ret, struct snapshot *snapshot)
{
	const struct gpuarb_cover *cover;
	size_t n = 0;

	for (size_t g = 0; g < watch->plan->n_gpus; g++) {
		size_t gpu = find_gpu(view, watch->plan->gpus[g].gpu.info.name);

		snapshot->queues_read[g] = gpuarb_view_masks_observed(view, gpu);
		for (size_t i = 0; (cover = gpuarb_view_cover(view, gpu, i)); i++, n++)
			if (ret)
				ret[n] = (struct seen_program){ g, cover->pid, cover->queues,
								cover->lease };
	}
	return n;
}

/* The difference of the numbers of queues, of each program. */
static int count_queue_changes(struct rt_watch *watch, const struct gpuarb_view *view,
			       struct snapshot *snapshot)
{
	const struct rt_gpu_plan *gpus = watch->plan->gpus;
	size_t n = list_programs(watch, view, NULL, snapshot);
	struct seen_program *seen = calloc(n + 1, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	list_programs(watch, view, seen, snapshot);
	watch->moved = n != watch->n_programs ||
		       (n > 0 && memcmp(seen, watch->programs, n * sizeof(*seen)) != 0);
	for (size_t i = 0; i < n; i++) {
		uint32_t before = take_queues(watch, seen[i].gpu, seen[i].pid);

		add_to_others(watch, snapshot, gpus[seen[i].gpu].gpu.info.name, seen[i].lease,
			      RT_QUEUE_CHANGES,
			      max_u(seen[i].queues, before) - min_u(seen[i].queues, before));
	}
	for (size_t i = 0; i < watch->n_programs; i++)
		add_to_others(watch, snapshot, gpus[watch->programs[i].gpu].gpu.info.name,
			      watch->programs[i].lease, RT_QUEUE_CHANGES,
			      watch->programs[i].queues);
	free(watch->programs);
	watch->programs = seen;
	watch->n_programs = n;
	return 0;
}

/* ---- pipes ---------------------------------------------------------------------------------- */

/* Whether the lease has a queue on the pipe of this slot. */
static bool is_on_pipe(const struct gpuarb_slots *slots, const struct gpuarb_queue_slot *of,
		       uint64_t lease)
{
	const struct gpuarb_queue_slot *slot;

	for (size_t i = 0; (slot = gpuarb_slots_get(slots, i)); i++)
		if (slot->active && slot->lease == lease && slot->pipe == of->pipe &&
		    slot->xcc == of->xcc)
			return true;
	return false;
}

uint64_t rt_pipe_neighbours(const struct gpuarb_view *view, const struct gpuarb_slots *slots,
			    const char *tenant, const char *gpu)
{
	const struct gpuarb_lease_info *lease = lease_of_tenant(view, tenant, gpu);
	const struct gpuarb_queue_slot *slot;
	bool has_queue = false;
	uint64_t n = 0;

	if (!lease)
		return RT_UNSET;
	for (size_t i = 0; (slot = gpuarb_slots_get(slots, i)); i++)
		if (slot->active && slot->lease == lease->id)
			has_queue = true;
		else
			n += slot->active && is_on_pipe(slots, slot, lease->id);
	return has_queue ? n : RT_UNSET;
}

bool rt_watch_pipes(const struct rt_watch *watch, const struct gpuarb_view *view,
		    const struct gpuarb_slots *slots, size_t gpu, struct rt_violation *ret)
{
	const struct rt_plan *plan = watch->plan;

	for (size_t i = 0; i < plan->set->n_partitions; i++) {
		const char *tenant = plan->set->partitions[i].name;
		uint64_t n = rt_pipe_neighbours(view, slots, tenant, gpu_of(watch, i));

		if (plan->partitions[i].gpu != gpu || n == RT_UNSET || n == 0)
			continue;
		*ret = (struct rt_violation){ .assumption = RT_PIPES,
					      .partition = tenant,
					      .gpu = gpu_of(watch, i),
					      .lease = watch->leases_had[i],
					      .observed = n };
		return true;
	}
	return false;
}

/* ---- comparison ----------------------------------------------------------------------------- */

/* None, if the lease has gone. */
static bool fewer_cus(const struct rt_watch *watch, const struct gpuarb_view *view, size_t i,
		      struct rt_violation *ret)
{
	const struct gpuarb_lease_info *lease = lease_of(watch, view, i);
	const struct rt_partition_plan *plan = &watch->plan->partitions[i];

	if (lease ? strcmp(lease->state, "granted") != 0 : !rt_watch_had_lease(watch, i))
		return false;
	ret->assumption = RT_CUS;
	ret->bound = plan->effective;
	ret->observed = lease ? partition_on_gpu(lease, gpu_of(watch, i))->effective_cus : 0;
	return ret->observed < ret->bound;
}

/* Of the GPU and of those that share its memory. */
static bool is_beside(const struct rt_watch *watch, const struct gpuarb_view *view, size_t gpu,
		      size_t partition)
{
	const struct gpuarb_gpu *gpus;
	size_t n = gpuarb_view_gpus(view, &gpus), own = find_gpu(view, gpu_of(watch, partition));
	const char *memory = gpuarb_view_memory(view, own);

	return gpu == own ||
	       (gpu < n && *memory && strcmp(memory, gpuarb_view_memory(view, gpu)) == 0);
}

static bool runs_beside(const struct rt_watch *watch, const struct gpuarb_view *view,
			const struct gpuarb_lease_info *lease, size_t partition)
{
	for (size_t k = 0; strcmp(lease->state, "granted") == 0 && k < lease->n_partitions; k++)
		if (!lease->partitions[k].paused &&
		    is_beside(watch, view, find_gpu(view, lease->partitions[k].gpu), partition))
			return true;
	return false;
}

/* Without a lease only programs with queues count. */
static uint64_t count_neighbours(const struct rt_watch *watch, const struct gpuarb_view *view,
				 size_t partition)
{
	const struct gpuarb_lease_info *leases;
	const struct gpuarb_gpu *gpus;
	size_t n_leases = gpuarb_view_leases(view, &leases), n_gpus = gpuarb_view_gpus(view, &gpus);
	uint64_t n = 0;

	for (size_t i = 0; i < n_leases; i++)
		n += leases[i].id != watch->leases_had[partition] &&
		     runs_beside(watch, view, &leases[i], partition);
	for (size_t i = 0; i < n_gpus; i++)
		for (size_t k = 0; is_beside(watch, view, i, partition) && k < gpus[i].n_unmanaged;
		     k++)
			n += gpus[i].unmanaged[k].queues > 0;
	return n;
}

/* The margin of the plan is for so many, unless the file has another one. */
static bool more_neighbours(const struct rt_watch *watch, const struct gpuarb_view *view, size_t i,
			    struct rt_violation *ret)
{
	if (!lease_of(watch, view, i) || watch->plan->set->margin_percent != MARGIN_MEASURED)
		return false;
	ret->assumption = RT_NEIGHBOURS;
	ret->within_usec = 0;
	ret->bound = rt_plan_gpu(watch->plan, i)->neighbours;
	ret->observed = count_neighbours(watch, view, i);
	return ret->observed > ret->bound;
}

/* Between an earlier snapshot and this one. */
static bool too_many(const struct rt_watch *watch, const struct snapshot *from,
		     const struct snapshot *to, size_t i, struct rt_violation *ret)
{
	const struct sums *before = &from->partitions[i], *after = &to->partitions[i];

	if (after->lease == 0 || before->lease != after->lease)
		return false;
	for (enum rt_assumption a = RT_DISTURBANCES; a < RT_CUS; a++) {
		uint64_t begin = a == RT_QUEUE_CHANGES
					 ? from->queues_read[watch->plan->partitions[i].gpu]
					 : from->begin;

		ret->assumption = a;
		ret->within_usec = max_u64(to->end - begin, 1);
		ret->observed = after->events[a] - before->events[a];
		ret->bound = allowed(watch->plan, i, a, ret->within_usec);
		if (ret->observed > ret->bound && begin > 0)
			return true;
	}
	return false;
}

static bool compare(const struct rt_watch *watch, const struct snapshot *snapshot,
		    const struct gpuarb_view *view, struct rt_violation *ret)
{
	size_t n = watch->n_snapshots < SNAPSHOTS ? watch->n_snapshots : SNAPSHOTS;

	for (size_t i = 0; i < watch->plan->set->n_partitions; i++) {
		*ret = (struct rt_violation){
			.partition = watch->plan->set->partitions[i].name,
			.gpu = gpu_of(watch, i),
			.lease = watch->leases_had[i],
		};
		if (fewer_cus(watch, view, i, ret))
			return true;
		/* The latest first: the shortest time. */
		for (size_t k = 1; k <= n; k++)
			if (too_many(watch, &watch->snapshots[(watch->n_snapshots - k) % SNAPSHOTS],
				     snapshot, i, ret))
				return true;
		if (more_neighbours(watch, view, i, ret))
			return true;
	}
	return false;
}

int rt_watch_compare(struct rt_watch *watch, const struct gpuarb_view *view, uint64_t begin,
		     uint64_t end, struct rt_violation *ret)
{
	struct snapshot snapshot = { 0 };
	bool violated;
	int r;

	if (watch->n_snapshots > 0)
		snapshot = watch->snapshots[(watch->n_snapshots - 1) % SNAPSHOTS];
	snapshot.begin = begin;
	snapshot.end = end;
	for (size_t i = 0; i < watch->plan->set->n_partitions; i++) {
		const struct gpuarb_lease_info *lease = lease_of(watch, view, i);

		snapshot.partitions[i].lease = lease ? lease->id : 0;
		if (lease)
			watch->leases_had[i] = lease->id;
		snapshot.partitions[i].events[RT_DISTURBANCES] = lease ? lease->disturbances : 0;
	}
	r = count_activations(watch, view, &snapshot);
	if (r >= 0)
		r = count_queue_changes(watch, view, &snapshot);
	if (r < 0)
		return r;
	violated = compare(watch, &snapshot, view, ret);
	watch->snapshots[watch->n_snapshots++ % SNAPSHOTS] = snapshot;
	return violated;
}
