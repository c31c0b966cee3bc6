/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus/bus-private.h"

#include "core/ledger/cover.h"
#include "util/text.h"

#define BUS_COVERS_MAX 1024U /* processes listed for one GPU */

int bus_open_entry(sd_bus_message *m, const char *key, const char *type)
{
	int r;

	r = sd_bus_message_open_container(m, 'e', "sv");
	if (r >= 0)
		r = sd_bus_message_append_basic(m, 's', key);
	return r < 0 ? r : sd_bus_message_open_container(m, 'v', type);
}

int bus_close_entry(sd_bus_message *m, int r)
{
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_numbers(sd_bus_message *m, const char *key, const char *type, const void *numbers,
		       size_t size)
{
	const char array[] = { 'a', type[0], '\0' };
	int r;

	r = bus_open_entry(m, key, array);
	if (r >= 0)
		r = sd_bus_message_append_array(m, type[0], numbers, size);
	return bus_close_entry(m, r);
}

static int append_mask(sd_bus_message *m, const char *key, const struct gpu *gpu,
		       const struct cuset *cus)
{
	uint32_t words[CODEC_WORDS] = { 0 };

	codec_encode(&gpu->codec, cus, words);
	return bus_append_numbers(m, key, "u", words, codec_words(&gpu->codec) * sizeof(*words));
}

static int append_engines(sd_bus_message *m, const struct partition *partition)
{
	uint32_t engines[CUSET_ENGINES], used = cuset_engines(&partition->cus);
	size_t n = 0;

	for (uint32_t engine = 0; engine < CUSET_ENGINES; engine++)
		if (used & UINT32_C(1) << engine)
			engines[n++] = engine;
	return bus_append_numbers(m, "shader-engines", "u", engines, n * sizeof(*engines));
}

/* A partition whose descriptors were not read has no keys of priorities. */
static int append_priorities(sd_bus_message *m, const struct partition *partition)
{
	uint32_t seen[PRIORITY_MAX + 1];
	size_t n = 0;

	for (uint32_t priority = 0; priority <= PRIORITY_MAX; priority++)
		if (partition->queues.priorities & 1U << priority)
			seen[n++] = priority;
	return n == 0 ? 0 : bus_append_numbers(m, "priorities-seen", "u", seen, n * sizeof(*seen));
}

static int append_gaps(sd_bus_message *m, const struct gpu *gpu)
{
	const char *gaps[GPU_GAPS];
	size_t n = gpu_gaps(gpu, gaps);
	int r;

	r = bus_open_entry(m, "gaps", "as");
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "s");
	for (size_t i = 0; i < n && r >= 0; i++)
		r = sd_bus_message_append_basic(m, 's', gaps[i]);
	return r < 0 ? r : bus_close_entry(m, sd_bus_message_close_container(m));
}

/* What a plan takes from other leases, in the first dictionary of its answer. */
static int append_effects(sd_bus_message *m, const struct effects *effects)
{
	int r;

	if (effects->n_shrinks + effects->n_pauses + effects->n_moves + effects->revoked.n == 0)
		return 0;
	r = bus_open_entry(m, "shrinks", "aa{sv}");
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "a{sv}");
	for (size_t i = 0; i < effects->n_shrinks && r >= 0; i++)
		r = sd_bus_message_append(m, "a{sv}", 4, "lease", "t", effects->shrinks[i].lease,
					  "gpu", "s", effects->shrinks[i].gpu, "from", "u",
					  effects->shrinks[i].from, "to", "u",
					  effects->shrinks[i].to);
	if (r >= 0)
		r = bus_close_entry(m, sd_bus_message_close_container(m));
	if (r >= 0)
		r = bus_append_numbers(m, "revokes", "t", effects->revoked.ids,
				       effects->revoked.n * sizeof(*effects->revoked.ids));
	if (r >= 0)
		r = bus_append_numbers(m, "pauses", "t", effects->pauses,
				       effects->n_pauses * sizeof(*effects->pauses));
	if (r >= 0)
		r = bus_append_numbers(m, "moves", "t", effects->moves,
				       effects->n_moves * sizeof(*effects->moves));
	return r < 0 ? r
		     : sd_bus_message_append(m, "{sv}", "within-usec", "t", effects->within_usec);
}

bool bus_asks_for_cap(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);

	return tenant && tenant->cap == CAP_YES;
}

static int append_amount(sd_bus_message *m, enum resource resource, uint64_t amount)
{
	if (resource == RESOURCE_VRAM)
		return sd_bus_message_append(m, "{sv}", resource_name(resource), "t", amount);
	return sd_bus_message_append(m, "{sv}", resource_name(resource), "u", (uint32_t)amount);
}

static int append_partition(sd_bus_message *m, const struct arbiter *arbiter,
			    const struct lease *lease, const struct partition *partition)
{
	const struct gpu *gpu = &arbiter->gpus[partition->gpu];
	int r;

	r = sd_bus_message_append(m, "{sv}{sv}", "gpu", "s", gpu->info.name, "kfd-gpu-id", "u",
				  gpu->info.kfd_gpu_id);
	if (r >= 0)
		r = append_mask(m, "cu-mask", gpu, &partition->cus);
	if (r >= 0)
		r = sd_bus_message_append(
			m, "{sv}{sv}{sv}", "cus", "u", partition->count, "cus-asked", "u",
			partition->asked, "effective-cus", "u",
			gpu_info_promised(&gpu->info, partition->count, partition->effective));
	if (r >= 0)
		r = append_engines(m, partition);
	if (r >= 0)
		r = sd_bus_message_append(m, "{sv}{sv}{sv}", "streams", "u", partition->streams,
					  "priority", "u", partition->priority, "tier", "s",
					  partition_tier(partition));
	for (unsigned i = RESOURCE_QUEUES; i <= RESOURCE_VRAM && r >= 0; i++)
		r = append_amount(m, i, partition->granted.of[i]);
	if (r >= 0)
		r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}", "exclusive", "b",
					  partition->exclusive, "paused", "b", partition->paused,
					  "cap", "b", bus_asks_for_cap(arbiter, lease),
					  "duration-usec", "t", lease->duration_usec);
	if (r >= 0)
		r = append_priorities(m, partition);
	if (r >= 0)
		r = append_gaps(m, gpu);
	return r;
}

int bus_append_partitions(sd_bus_message *m, const struct arbiter *arbiter,
			  const struct lease *lease, const struct effects *effects)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "a{sv}");
	for (size_t i = 0; lease && i < lease->n_partitions && r >= 0; i++) {
		r = sd_bus_message_open_container(m, 'a', "{sv}");
		if (r >= 0)
			r = append_partition(m, arbiter, lease, &lease->partitions[i]);
		if (r >= 0 && effects && i == 0)
			r = append_effects(m, effects);
		if (r >= 0)
			r = sd_bus_message_close_container(m);
	}
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_advice(sd_bus_message *m, const struct advice *advice)
{
	int r = 0;

	if (advice->cut)
		r = sd_bus_message_append(m, "{sv}", "end-cut", "b", true);
	if (r < 0 || advice->n == 0)
		return r;
	r = bus_append_numbers(m, "end", "t", advice->ids, advice->n * sizeof(*advice->ids));
	return r < 0 ? r : sd_bus_message_append(m, "{sv}", "end-exact", "b", advice->exact);
}

static int append_process(sd_bus_message *m, pid_t pid, uid_t uid, const char *command,
			  unsigned queues)
{
	char clean[16];

	return sd_bus_message_append(
		m, "a{sv}", 4, "pid", "u", (uint32_t)pid, "uid", "u", (uint32_t)uid, "command", "s",
		text_clean(clean, sizeof(clean), command), "queues", "u", queues);
}

static int append_processes(sd_bus_message *m, const struct refusal *refusal)
{
	int r;

	r = bus_open_entry(m, "processes", "aa{sv}");
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "a{sv}");
	for (size_t i = 0; i < refusal->n_processes && i < REFUSAL_PROCESSES && r >= 0; i++)
		r = append_process(m, refusal->processes[i].pid, refusal->processes[i].uid,
				   refusal->processes[i].command, refusal->processes[i].queues);
	if (r >= 0)
		r = bus_close_entry(m, sd_bus_message_close_container(m));
	return r < 0 ? r
		     : sd_bus_message_append(m, "{sv}", "process-count", "u",
					     (uint32_t)refusal->n_processes);
}

/* A bound: of the tenant, or (without one) of the request. */
static int append_bound(sd_bus_message *m, const struct refusal *refusal)
{
	char tenant[sizeof(refusal->tenant)];
	int r;

	r = sd_bus_message_append(m, "{sv}{sv}{sv}", "key", "s", refusal->key, "limit", "t",
				  refusal->limit, "held", "t", refusal->held);
	if (r >= 0 && refusal->resource == RESOURCE_CLASS)
		r = sd_bus_message_append(m, "{sv}{sv}", "asked-class", "s",
					  class_names[refusal->asked], "limit-class", "s",
					  class_names[refusal->limit]);
	if (r >= 0 && (refusal->reason == REASON_QUOTA || refusal->reason == REASON_POLICY))
		r = sd_bus_message_append(m, "{sv}{sv}", "tenant", "s",
					  text_clean(tenant, sizeof(tenant), refusal->tenant),
					  "uid", "u", (uint32_t)refusal->uid);
	if (r >= 0 && refusal->reason == REASON_FLOOR)
		r = sd_bus_message_append(m, "{sv}", "tenant", "s",
					  text_clean(tenant, sizeof(tenant), refusal->tenant));
	return r;
}

/* The facts that this refusal has. */
static int append_facts(sd_bus_message *m, const struct refusal *refusal)
{
	size_t n_leases = refusal->n_leases < REFUSAL_LEASES ? refusal->n_leases : REFUSAL_LEASES;
	char tenant[sizeof(refusal->preempt)];
	int r = 0;

	if (refusal->resource != RESOURCE_NONE)
		r = sd_bus_message_append(m, "{sv}{sv}", "resource", "s",
					  resource_name(refusal->resource), "total", "t",
					  refusal->total);
	if (r >= 0 && refusal->reserved > 0)
		r = sd_bus_message_append(m, "{sv}", "reserved", "t", refusal->reserved);
	if (r >= 0 && refusal->key)
		r = append_bound(m, refusal);
	else if (r >= 0 && refusal->held > 0)
		r = sd_bus_message_append(m, "{sv}", "held", "t", refusal->held);
	if (r >= 0 && refusal->n_fits > 0)
		r = bus_append_numbers(m, "fits", "t", refusal->fits,
				       refusal->n_fits * sizeof(*refusal->fits));
	if (r >= 0 && refusal->n_fits > 0)
		r = sd_bus_message_append(m, "{sv}", "fits-resource", "s",
					  resource_name(refusal->fit_resource));
	if (r >= 0 && n_leases > 0)
		r = bus_append_numbers(m, "leases", "t", refusal->leases,
				       n_leases * sizeof(*refusal->leases));
	if (r >= 0 && n_leases > 0)
		r = sd_bus_message_append(m, "{sv}", "lease-count", "u",
					  (uint32_t)refusal->n_leases);
	if (r >= 0 && refusal->n_processes > 0)
		r = append_processes(m, refusal);
	if (r >= 0 && refusal->preempt[0])
		r = sd_bus_message_append(m, "{sv}", "preempt-tenant", "s",
					  text_clean(tenant, sizeof(tenant), refusal->preempt));
	if (r >= 0 && refusal->behind)
		r = sd_bus_message_append(m, "{sv}", "behind", "t", refusal->behind);
	return r;
}

static int append_refusal(sd_bus_message *m, const struct refusal *refusal,
			  const struct advice *advice, const struct effects *effects)
{
	char gpu[sizeof(refusal->gpu)], hint[REFUSAL_TEXT], clean[REFUSAL_TEXT];
	int r;

	refusal_hint(refusal, hint);
	r = sd_bus_message_open_container(m, 'a', "{sv}");
	if (r >= 0)
		r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}{sv}", "gpu", "s",
					  text_clean(gpu, sizeof(gpu), refusal->gpu), "reason", "s",
					  reason_names[refusal->reason], "asked", "t",
					  refusal->asked, "free", "t", refusal->free, "hint", "s",
					  text_clean(clean, sizeof(clean), hint), "retry", "b",
					  refusal->retry);
	if (r >= 0)
		r = append_facts(m, refusal);
	if (r >= 0 && advice)
		r = append_advice(m, advice);
	if (r >= 0 && effects)
		r = append_effects(m, effects);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_refusals(sd_bus_message *m, const struct refusal *refusals, size_t n,
			const struct advice *advice, const struct effects *effects)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "a{sv}");
	for (size_t i = 0; i < n && r >= 0; i++)
		r = append_refusal(m, &refusals[i], i == 0 ? advice : NULL,
				   i == 0 ? effects : NULL);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_unmanaged(sd_bus_message *m, const struct gpu *gpu)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "a{sv}");
	for (size_t i = 0; i < gpu->observed.n_processes + gpu->observed.n_idle && r >= 0; i++) {
		const struct unmanaged_process *process = &gpu->observed.processes[i];

		r = append_process(m, process->pid, process->uid, process->command,
				   process->queues);
	}
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_client(sd_bus_message *m, const struct gpu_client *client)
{
	char clean[sizeof(client->command)];

	return sd_bus_message_append(
		m, "a{sv}", 13, "pid", "u", (uint32_t)client->pid, "uid", "u",
		(uint32_t)client->uid, "command", "s",
		text_clean(clean, sizeof(clean), client->command), "lease", "t", client->lease,
		"draws", "b", client->draws, "gfx-share", "d", client->shares.gfx, "compute-share",
		"d", client->shares.compute, "dma-share", "d", client->shares.dma, "gfx-nsec", "t",
		client->busy.gfx, "compute-nsec", "t", client->busy.compute, "dma-nsec", "t",
		client->busy.dma, "vram", "t", client->vram, "gtt", "t", client->gtt);
}

int bus_append_clients(sd_bus_message *m, const struct gpu *gpu)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "a{sv}");
	for (size_t i = 0; i < gpu->graphics.n_clients && r >= 0; i++)
		r = append_client(m, &gpu->graphics.clients[i]);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_cover(sd_bus_message *m, const struct gpu *gpu, const struct cover *cover)
{
	char command[sizeof(cover->command)];
	int r;

	r = sd_bus_message_open_container(m, 'a', "{sv}");
	if (r >= 0)
		r = sd_bus_message_append(
			m, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "pid", "u", (uint32_t)cover->pid, "uid",
			"u", (uint32_t)cover->uid, "command", "s",
			text_clean(command, sizeof(command), cover->command), "lease", "t",
			cover->lease, "queues", "u", cover->queues, "cus", "u",
			cuset_count(&cover->cus), "outside-cus", "u", cuset_count(&cover->outside));
	if (r >= 0)
		r = append_mask(m, "cu-mask", gpu, &cover->cus);
	if (r >= 0)
		r = append_mask(m, "outside-mask", gpu, &cover->outside);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_covers(sd_bus_message *m, const struct arbiter *arbiter, const struct gpu *gpu)
{
	size_t n = 0;
	int r;

	r = sd_bus_message_open_container(m, 'a', "a{sv}");
	for (size_t i = 0; i < arbiter->n_covers && n < BUS_COVERS_MAX && r >= 0; i++) {
		if (&arbiter->gpus[arbiter->covers[i].gpu] != gpu)
			continue;
		r = append_cover(m, gpu, &arbiter->covers[i]);
		n++;
	}
	return r < 0 ? r : sd_bus_message_close_container(m);
}

/* One kind of drift of a partition. */
static int append_one_drift(sd_bus_message *m, const struct gpu *gpu, enum drift_kind kind,
			    const struct drift *drift)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "{sv}");
	if (r >= 0)
		r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}", "kind", "s", drift_names[kind],
					  "gpu", "s", gpu->info.name, "granted", "t",
					  drift->granted, "observed", "t", drift->observed, "since",
					  "t", drift->since_usec);
	if (r >= 0 && drift->pid > 0)
		r = sd_bus_message_append(m, "{sv}", "pid", "u", (uint32_t)drift->pid);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_drift(sd_bus_message *m, const struct arbiter *arbiter, const struct lease *lease)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "a{sv}");
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];

		for (unsigned kind = 0; kind < DRIFT_KINDS && r >= 0; kind++)
			if (p->drift[kind].lasts)
				r = append_one_drift(m, &arbiter->gpus[p->gpu], kind,
						     &p->drift[kind]);
	}
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_intruder(sd_bus_message *m, const struct gpu *gpu,
			   const struct intruder *intruder)
{
	char command[sizeof(intruder->command)];
	int r;

	r = sd_bus_message_open_container(m, 'a', "{sv}");
	if (r >= 0)
		r = sd_bus_message_append(
			m, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "gpu", "s", gpu->info.name, "pid",
			"u", (uint32_t)intruder->pid, "uid", "u", (uint32_t)intruder->uid,
			"command", "s", text_clean(command, sizeof(command), intruder->command),
			"lease", "t", intruder->lease, "cus", "u", intruder->cus, "since", "t",
			intruder->since_usec, "draws", "b", intruder->draws);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_intruders(sd_bus_message *m, const struct arbiter *arbiter,
			 const struct lease *lease)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "a{sv}");
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];

		for (unsigned k = 0; k < min_u(p->intruders.n, INTRUDERS) && r >= 0; k++)
			r = append_intruder(m, &arbiter->gpus[p->gpu], &p->intruders.list[k]);
	}
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_engine_cus(sd_bus_message *m, const struct geometry *geometry)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "au");
	for (unsigned xcc = 0; xcc < geometry->xccs && r >= 0; xcc++) {
		uint32_t cus[CUSET_ENGINES];

		for (unsigned engine = 0; engine < geometry->engines; engine++)
			cus[engine] = geometry_engine_cus(geometry, xcc, engine);
		r = sd_bus_message_append_array(m, 'u', cus, geometry->engines * sizeof(*cus));
	}
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_xcc_arrays(sd_bus_message *m, const struct geometry *geometry, unsigned xcc)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "au");
	for (unsigned engine = 0; engine < geometry->engines && r >= 0; engine++) {
		uint32_t cus[CUSET_ARRAYS];

		for (unsigned array = 0; array < geometry->arrays; array++)
			cus[array] = geometry->active[xcc][engine][array];
		r = sd_bus_message_append_array(m, 'u', cus, geometry->arrays * sizeof(*cus));
	}
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_array_cus(sd_bus_message *m, const struct geometry *geometry)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "aau");
	for (unsigned xcc = 0; xcc < geometry->xccs && r >= 0; xcc++)
		r = append_xcc_arrays(m, geometry, xcc);
	return r < 0 ? r : sd_bus_message_close_container(m);
}
