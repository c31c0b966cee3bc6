/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "bus/bus-private.h"
#include "core/change/arbiter.h"
#include "core/ledger/cover.h"
#include "util/text.h"

#define BUS_COVERS_MAX 1024U /* processes listed for one GPU */

int bus_append_text(sd_bus_message *m, const char *text)
{
	char clean[512];

	return sd_bus_message_append_basic(m, 's', text_clean(clean, sizeof(clean), text));
}

void bus_open(sd_bus_message *m, const char *type)
{
	sd_bus_message_open_container(m, 'a', type);
}

int bus_close(sd_bus_message *m)
{
	return sd_bus_message_close_container(m) < 0 ? -ENOMEM : 0;
}

void bus_open_entry(sd_bus_message *m, const char *key, const char *type)
{
	sd_bus_message_open_container(m, 'e', "sv");
	sd_bus_message_append_basic(m, 's', key);
	sd_bus_message_open_container(m, 'v', type);
}

int bus_close_entry(sd_bus_message *m)
{
	sd_bus_message_close_container(m);
	return bus_close(m);
}

void bus_append_numbers(sd_bus_message *m, const char *key, const char *type, const void *numbers,
			size_t size)
{
	const char array[] = { 'a', type[0], '\0' };

	bus_open_entry(m, key, array);
	sd_bus_message_append_array(m, type[0], numbers, size);
	bus_close_entry(m);
}

static void append_clean(sd_bus_message *m, const char *key, const char *text)
{
	bus_open_entry(m, key, "s");
	bus_append_text(m, text);
	bus_close_entry(m);
}

static void append_mask(sd_bus_message *m, const char *key, const struct gpu *gpu,
			const struct cuset *cus)
{
	uint32_t words[CODEC_WORDS] = { 0 };

	codec_encode(&gpu->codec, cus, words);
	bus_append_numbers(m, key, "u", words, codec_words(&gpu->codec) * sizeof(*words));
}

/* The numbers of the bits that are set. */
static void append_bits(sd_bus_message *m, const char *key, uint32_t bits)
{
	uint32_t list[32];
	size_t n = 0;

	for (uint32_t bit = 0; bit < 32; bit++)
		if (bits & UINT32_C(1) << bit)
			list[n++] = bit;
	bus_append_numbers(m, key, "u", list, n * sizeof(*list));
}

static void append_gaps(sd_bus_message *m, const struct gpu *gpu)
{
	const char *gaps[GPU_GAPS];
	size_t n = gpu_gaps(gpu, gaps);

	bus_open_entry(m, "gaps", "as");
	bus_open(m, "s");
	for (size_t i = 0; i < n; i++)
		sd_bus_message_append_basic(m, 's', gaps[i]);
	bus_close(m);
	bus_close_entry(m);
}

/* What a plan takes from other leases, in the first dictionary of its answer. */
static void append_effects(sd_bus_message *m, const struct effects *effects)
{
	if (effects->n_shrinks + effects->n_pauses + effects->n_moves + effects->revoked.n == 0)
		return;
	bus_open_entry(m, "shrinks", "aa{sv}");
	bus_open(m, "a{sv}");
	for (size_t i = 0; i < effects->n_shrinks; i++)
		sd_bus_message_append(m, "a{sv}", 4, "lease", "t", effects->shrinks[i].lease, "gpu",
				      "s", effects->shrinks[i].gpu, "from", "u",
				      effects->shrinks[i].from, "to", "u", effects->shrinks[i].to);
	bus_close(m);
	bus_close_entry(m);
	bus_append_numbers(m, "revokes", "t", effects->revoked.ids,
			   effects->revoked.n * sizeof(*effects->revoked.ids));
	bus_append_numbers(m, "pauses", "t", effects->pauses,
			   effects->n_pauses * sizeof(*effects->pauses));
	bus_append_numbers(m, "moves", "t", effects->moves,
			   effects->n_moves * sizeof(*effects->moves));
	sd_bus_message_append(m, "{sv}", "within-usec", "t", effects->within_usec);
}

bool bus_asks_for_cap(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);

	return tenant && tenant->cap == CAP_YES;
}

static void append_partition(sd_bus_message *m, const struct arbiter *arbiter,
			     const struct lease *lease, const struct partition *partition)
{
	const struct gpu *gpu = &arbiter->gpus[partition->gpu];

	sd_bus_message_append(
		m, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "gpu", "s", gpu->info.name,
		"kfd-gpu-id", "u", gpu->info.kfd_gpu_id, "cus", "u", partition->count, "cus-asked",
		"u", partition->asked, "effective-cus", "u",
		gpu_info_promised(&gpu->info, partition->count, partition->effective), "streams",
		"u", partition->streams, "priority", "u", partition->priority, "tier", "s",
		partition_tier(partition), "exclusive", "b", partition->exclusive, "paused", "b",
		partition->paused, "cap", "b", bus_asks_for_cap(arbiter, lease), "duration-usec",
		"t", lease->duration_usec);
	for (unsigned i = RESOURCE_QUEUES; i < RESOURCE_VRAM; i++)
		sd_bus_message_append(m, "{sv}", resource_name(i), "u",
				      (uint32_t)partition->granted.of[i]);
	sd_bus_message_append(m, "{sv}", resource_name(RESOURCE_VRAM), "t",
			      partition->granted.of[RESOURCE_VRAM]);
	append_mask(m, "cu-mask", gpu, &partition->cus);
	append_bits(m, "shader-engines", cuset_engines(&partition->cus));
	if (partition->queues.priorities != 0) /* its descriptors were read */
		append_bits(m, "priorities-seen", partition->queues.priorities);
	append_gaps(m, gpu);
}

int bus_append_partitions(sd_bus_message *m, const struct arbiter *arbiter,
			  const struct lease *lease, const struct effects *effects)
{
	bus_open(m, "a{sv}");
	for (size_t i = 0; lease && i < lease->n_partitions; i++) {
		bus_open(m, "{sv}");
		append_partition(m, arbiter, lease, &lease->partitions[i]);
		if (effects && i == 0)
			append_effects(m, effects);
		bus_close(m);
	}
	return bus_close(m);
}

static void append_advice(sd_bus_message *m, const struct advice *advice)
{
	if (advice->cut)
		sd_bus_message_append(m, "{sv}", "end-cut", "b", true);
	if (advice->n == 0)
		return;
	bus_append_numbers(m, "end", "t", advice->ids, advice->n * sizeof(*advice->ids));
	sd_bus_message_append(m, "{sv}", "end-exact", "b", advice->exact);
}

static void append_process(sd_bus_message *m, pid_t pid, uid_t uid, const char *command,
			   unsigned queues)
{
	char clean[16];

	sd_bus_message_append(m, "a{sv}", 4, "pid", "u", (uint32_t)pid, "uid", "u", (uint32_t)uid,
			      "command", "s", text_clean(clean, sizeof(clean), command), "queues",
			      "u", queues);
}

static void append_processes(sd_bus_message *m, const struct refusal *refusal)
{
	bus_open_entry(m, "processes", "aa{sv}");
	bus_open(m, "a{sv}");
	for (size_t i = 0; i < refusal->n_processes && i < REFUSAL_PROCESSES; i++)
		append_process(m, refusal->processes[i].pid, refusal->processes[i].uid,
			       refusal->processes[i].command, refusal->processes[i].queues);
	bus_close(m);
	bus_close_entry(m);
	sd_bus_message_append(m, "{sv}", "process-count", "u", (uint32_t)refusal->n_processes);
}

/* A bound: of the tenant, or (without one) of the request. */
static void append_bound(sd_bus_message *m, const struct refusal *refusal)
{
	bool user = refusal->reason == REASON_QUOTA || refusal->reason == REASON_POLICY;

	sd_bus_message_append(m, "{sv}{sv}{sv}", "key", "s", refusal->key, "limit", "t",
			      refusal->limit, "held", "t", refusal->held);
	if (refusal->resource == RESOURCE_CLASS)
		sd_bus_message_append(m, "{sv}{sv}", "asked-class", "s",
				      class_names[refusal->asked], "limit-class", "s",
				      class_names[refusal->limit]);
	if (user || refusal->reason == REASON_FLOOR)
		append_clean(m, "tenant", refusal->tenant);
	if (user)
		sd_bus_message_append(m, "{sv}", "uid", "u", (uint32_t)refusal->uid);
}

/* The facts that this refusal has. */
static void append_facts(sd_bus_message *m, const struct refusal *refusal)
{
	size_t n_leases = refusal->n_leases < REFUSAL_LEASES ? refusal->n_leases : REFUSAL_LEASES;

	if (refusal->resource != RESOURCE_NONE)
		sd_bus_message_append(m, "{sv}{sv}", "resource", "s",
				      resource_name(refusal->resource), "total", "t",
				      refusal->total);
	if (refusal->reserved > 0)
		sd_bus_message_append(m, "{sv}", "reserved", "t", refusal->reserved);
	if (refusal->key)
		append_bound(m, refusal);
	else if (refusal->held > 0)
		sd_bus_message_append(m, "{sv}", "held", "t", refusal->held);
	if (refusal->n_fits > 0) {
		bus_append_numbers(m, "fits", "t", refusal->fits,
				   refusal->n_fits * sizeof(*refusal->fits));
		sd_bus_message_append(m, "{sv}", "fits-resource", "s",
				      resource_name(refusal->fit_resource));
	}
	if (n_leases > 0) {
		bus_append_numbers(m, "leases", "t", refusal->leases,
				   n_leases * sizeof(*refusal->leases));
		sd_bus_message_append(m, "{sv}", "lease-count", "u", (uint32_t)refusal->n_leases);
	}
	if (refusal->n_processes > 0)
		append_processes(m, refusal);
	if (refusal->preempt[0])
		append_clean(m, "preempt-tenant", refusal->preempt);
	if (refusal->behind)
		sd_bus_message_append(m, "{sv}", "behind", "t", refusal->behind);
}

static void append_refusal(sd_bus_message *m, const struct refusal *refusal)
{
	char gpu[sizeof(refusal->gpu)], hint[REFUSAL_TEXT], clean[REFUSAL_TEXT];

	refusal_hint(refusal, hint);
	sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}{sv}", "gpu", "s",
			      text_clean(gpu, sizeof(gpu), refusal->gpu), "reason", "s",
			      reason_names[refusal->reason], "asked", "t", refusal->asked, "free",
			      "t", refusal->free, "hint", "s",
			      text_clean(clean, sizeof(clean), hint), "retry", "b", refusal->retry);
	append_facts(m, refusal);
}

int bus_append_refusals(sd_bus_message *m, const struct refusal *refusals, size_t n,
			const struct advice *advice, const struct effects *effects)
{
	bus_open(m, "a{sv}");
	for (size_t i = 0; i < n; i++) {
		bus_open(m, "{sv}");
		append_refusal(m, &refusals[i]);
		if (advice && i == 0)
			append_advice(m, advice);
		if (effects && i == 0)
			append_effects(m, effects);
		bus_close(m);
	}
	return bus_close(m);
}

int bus_append_unmanaged(sd_bus_message *m, const struct gpu *gpu)
{
	bus_open(m, "a{sv}");
	for (size_t i = 0; i < gpu->observed.n_processes + gpu->observed.n_idle; i++) {
		const struct unmanaged_process *process = &gpu->observed.processes[i];

		append_process(m, process->pid, process->uid, process->command, process->queues);
	}
	return bus_close(m);
}

static void append_client(sd_bus_message *m, const struct gpu_client *client)
{
	char clean[sizeof(client->command)];

	sd_bus_message_append(
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
	bus_open(m, "a{sv}");
	for (size_t i = 0; i < gpu->graphics.n_clients; i++)
		append_client(m, &gpu->graphics.clients[i]);
	return bus_close(m);
}

static void append_cover(sd_bus_message *m, const struct gpu *gpu, const struct cover *cover)
{
	bus_open(m, "{sv}");
	append_clean(m, "command", cover->command);
	sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}{sv}", "pid", "u", (uint32_t)cover->pid,
			      "uid", "u", (uint32_t)cover->uid, "lease", "t", cover->lease,
			      "queues", "u", cover->queues, "cus", "u", cuset_count(&cover->cus),
			      "outside-cus", "u", cuset_count(&cover->outside));
	append_mask(m, "cu-mask", gpu, &cover->cus);
	append_mask(m, "outside-mask", gpu, &cover->outside);
	bus_close(m);
}

int bus_append_covers(sd_bus_message *m, const struct arbiter *arbiter, const struct gpu *gpu)
{
	size_t n = 0;

	bus_open(m, "a{sv}");
	for (size_t i = 0; i < arbiter->n_covers && n < BUS_COVERS_MAX; i++) {
		if (&arbiter->gpus[arbiter->covers[i].gpu] != gpu)
			continue;
		append_cover(m, gpu, &arbiter->covers[i]);
		n++;
	}
	return bus_close(m);
}

/* One kind of drift of a partition. */
static void append_one_drift(sd_bus_message *m, const struct gpu *gpu, enum drift_kind kind,
			     const struct drift *drift)
{
	bus_open(m, "{sv}");
	sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}", "kind", "s", drift_names[kind], "gpu", "s",
			      gpu->info.name, "granted", "t", drift->granted, "observed", "t",
			      drift->observed, "since", "t", drift->since_usec);
	if (drift->pid > 0)
		sd_bus_message_append(m, "{sv}", "pid", "u", (uint32_t)drift->pid);
	bus_close(m);
}

int bus_append_drift(sd_bus_message *m, const struct arbiter *arbiter, const struct lease *lease)
{
	bus_open(m, "a{sv}");
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];

		for (unsigned kind = 0; kind < DRIFT_KINDS; kind++)
			if (p->drift[kind].lasts)
				append_one_drift(m, &arbiter->gpus[p->gpu], kind, &p->drift[kind]);
	}
	return bus_close(m);
}

static void append_intruder(sd_bus_message *m, const struct gpu *gpu,
			    const struct intruder *intruder)
{
	char command[sizeof(intruder->command)];

	sd_bus_message_append(m, "a{sv}", 8, "gpu", "s", gpu->info.name, "pid", "u",
			      (uint32_t)intruder->pid, "uid", "u", (uint32_t)intruder->uid,
			      "command", "s",
			      text_clean(command, sizeof(command), intruder->command), "lease", "t",
			      intruder->lease, "cus", "u", intruder->cus, "since", "t",
			      intruder->since_usec, "draws", "b", intruder->draws);
}

int bus_append_intruders(sd_bus_message *m, const struct arbiter *arbiter,
			 const struct lease *lease)
{
	bus_open(m, "a{sv}");
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];

		for (unsigned k = 0; k < min_u(p->intruders.n, INTRUDERS); k++)
			append_intruder(m, &arbiter->gpus[p->gpu], &p->intruders.list[k]);
	}
	return bus_close(m);
}

int bus_append_engine_cus(sd_bus_message *m, const struct geometry *geometry)
{
	bus_open(m, "au");
	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++) {
		uint32_t cus[CUSET_ENGINES];

		for (unsigned engine = 0; engine < geometry->engines; engine++)
			cus[engine] = geometry_engine_cus(geometry, xcc, engine);
		sd_bus_message_append_array(m, 'u', cus, geometry->engines * sizeof(*cus));
	}
	return bus_close(m);
}

static void append_xcc_arrays(sd_bus_message *m, const struct geometry *geometry, unsigned xcc)
{
	bus_open(m, "au");
	for (unsigned engine = 0; engine < geometry->engines; engine++) {
		uint32_t cus[CUSET_ARRAYS];

		for (unsigned array = 0; array < geometry->arrays; array++)
			cus[array] = geometry->active[xcc][engine][array];
		sd_bus_message_append_array(m, 'u', cus, geometry->arrays * sizeof(*cus));
	}
	bus_close(m);
}

int bus_append_array_cus(sd_bus_message *m, const struct geometry *geometry)
{
	bus_open(m, "aau");
	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		append_xcc_arrays(m, geometry, xcc);
	return bus_close(m);
}
