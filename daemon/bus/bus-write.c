/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bus/bus-write.h"
#include "core/change/arbiter.h"
#include "core/ledger/cover.h"
#include "core/policy/request.h"
#include "dbus/partition.h"
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
	char name[64];

	snprintf(name, sizeof(name), "%s", key);
	for (char *p = name; (p = strchr(p, '_'));)
		*p = '-';
	sd_bus_message_open_container(m, 'e', "sv");
	sd_bus_message_append_basic(m, 's', name);
	sd_bus_message_open_container(m, 'v', type);
}

int bus_close_entry(sd_bus_message *m)
{
	sd_bus_message_close_container(m);
	return bus_close(m);
}

void bus_append_value(sd_bus_message *m, const char *key, const char *type, ...)
{
	va_list args;

	bus_open_entry(m, key, type);
	va_start(args, type);
	if (*type == 's')
		bus_append_text(m, va_arg(args, const char *));
	else
		sd_bus_message_appendv(m, type, args);
	va_end(args);
	bus_close_entry(m);
}

void bus_append_numbers(sd_bus_message *m, const char *key, const char *type, const void *numbers,
			size_t size)
{
	const char array[] = { 'a', type[0], '\0' };

	bus_open_entry(m, key, array);
	sd_bus_message_append_array(m, type[0], numbers, size);
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

static void append_gaps(sd_bus_message *m, const char *key, const struct gpu *gpu)
{
	const char *gaps[GPU_GAPS];
	size_t n = gpu_gaps(gpu, gaps);

	bus_open_entry(m, key, "as");
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
		BUS_ROW(m, &effects->shrinks[i], lease, gpu, from, to);
	bus_close(m);
	bus_close_entry(m);
	bus_append_numbers(m, "revokes", "t", effects->revoked.ids,
			   effects->revoked.n * sizeof(*effects->revoked.ids));
	bus_append_numbers(m, "pauses", "t", effects->pauses,
			   effects->n_pauses * sizeof(*effects->pauses));
	bus_append_numbers(m, "moves", "t", effects->moves,
			   effects->n_moves * sizeof(*effects->moves));
	BUS_MEMBERS(m, effects, within_usec);
}

bool bus_asks_for_cap(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);

	return tenant && tenant->cap == CAP_YES;
}

/* For dbus/partition.h. */
#define PUT_VALUE(name, value) BUS_VALUE(m, #name, value);
#define PUT_MASK(name, value) append_mask(m, #name, gpu, &(value));
#define PUT_BITS(name, value) append_bits(m, #name, value);
#define PUT_SEEN(name, value) (value) ? append_bits(m, #name, value) : (void)0;
#define PUT_WORDS(name, value) append_gaps(m, #name, value);

static void append_partition(sd_bus_message *m, const struct arbiter *arbiter,
			     const struct lease *lease, const struct partition *p)
{
	const struct gpu *gpu = &arbiter->gpus[p->gpu];

	GPUARB_PARTITION(PUT_VALUE, PUT_VALUE, PUT_VALUE, PUT_MASK, PUT_BITS, PUT_SEEN, PUT_WORDS)
	BUS_VALUE(m, "cap", bus_asks_for_cap(arbiter, lease));
	BUS_MEMBERS(m, lease, duration_usec);
}

static bool has_asked(const struct request *request, const char *gpu)
{
	for (size_t i = 0; i < request->n_wants; i++)
		if (strcmp(request->wants[i].gpu, gpu) == 0)
			return true;
	return false;
}

int bus_append_partitions(sd_bus_message *m, const struct arbiter *arbiter,
			  const struct lease *lease, const struct request *request,
			  const struct effects *effects)
{
	bool part = request && lease && request->n_wants < lease->n_partitions;

	bus_open(m, "a{sv}");
	for (size_t i = 0; lease && i < lease->n_partitions; i++) {
		if (part && !has_asked(request, arbiter->gpus[lease->partitions[i].gpu].info.name))
			continue;
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
		BUS_VALUE(m, "end-cut", advice->cut);
	if (advice->n == 0)
		return;
	bus_append_numbers(m, "end", "t", advice->ids, advice->n * sizeof(*advice->ids));
	BUS_VALUE(m, "end-exact", advice->exact);
}

static void append_processes(sd_bus_message *m, const struct refusal *refusal)
{
	bus_open_entry(m, "processes", "aa{sv}");
	bus_open(m, "a{sv}");
	for (size_t i = 0; i < refusal->n_processes && i < REFUSAL_PROCESSES; i++)
		BUS_ROW(m, &refusal->processes[i], pid, uid, command, queues);
	bus_close(m);
	bus_close_entry(m);
	BUS_VALUE(m, "process-count", (uint32_t)refusal->n_processes);
}

/* A bound: of the tenant, or (without one) of the request. */
static void append_bound(sd_bus_message *m, const struct refusal *refusal)
{
	bool user = refusal->reason == REASON_QUOTA || refusal->reason == REASON_POLICY;

	BUS_MEMBERS(m, refusal, key, limit, held);
	if (refusal->resource == RESOURCE_CLASS) {
		BUS_VALUE(m, "asked-class", class_names[refusal->asked]);
		BUS_VALUE(m, "limit-class", class_names[refusal->limit]);
	}
	if (user || refusal->reason == REASON_FLOOR)
		BUS_MEMBERS(m, refusal, tenant);
	if (user)
		BUS_MEMBERS(m, refusal, uid);
}

/* The facts that this refusal has. */
static void append_facts(sd_bus_message *m, const struct refusal *refusal)
{
	size_t n_leases = refusal->n_leases < REFUSAL_LEASES ? refusal->n_leases : REFUSAL_LEASES;

	if (refusal->resource != RESOURCE_NONE) {
		BUS_VALUE(m, "resource", resource_name(refusal->resource));
		BUS_MEMBERS(m, refusal, total);
	}
	if (refusal->reserved > 0)
		BUS_MEMBERS(m, refusal, reserved);
	if (refusal->key)
		append_bound(m, refusal);
	else if (refusal->held > 0)
		BUS_MEMBERS(m, refusal, held);
	if (refusal->n_fits > 0) {
		bus_append_numbers(m, "fits", "t", refusal->fits,
				   refusal->n_fits * sizeof(*refusal->fits));
		BUS_VALUE(m, "fits-resource", resource_name(refusal->fit_resource));
	}
	if (n_leases > 0) {
		bus_append_numbers(m, "leases", "t", refusal->leases,
				   n_leases * sizeof(*refusal->leases));
		BUS_VALUE(m, "lease-count", (uint32_t)refusal->n_leases);
	}
	if (refusal->n_processes > 0)
		append_processes(m, refusal);
	if (refusal->preempt[0])
		BUS_VALUE(m, "preempt-tenant", refusal->preempt);
	if (refusal->behind)
		BUS_MEMBERS(m, refusal, behind);
}

static void append_refusal(sd_bus_message *m, const struct refusal *refusal)
{
	char hint[REFUSAL_TEXT];

	refusal_hint(refusal, hint);
	BUS_MEMBERS(m, refusal, gpu);
	BUS_VALUE(m, "reason", reason_names[refusal->reason]);
	BUS_MEMBERS(m, refusal, asked, free);
	BUS_VALUE(m, "hint", hint);
	BUS_MEMBERS(m, refusal, retry);
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
	for (size_t i = 0; i < gpu->observed.n_processes + gpu->observed.n_idle; i++)
		BUS_ROW(m, &gpu->observed.processes[i], pid, uid, command, queues);
	return bus_close(m);
}

static void append_client(sd_bus_message *m, const struct gpu_client *client)
{
	bus_open(m, "{sv}");
	BUS_MEMBERS(m, client, pid, uid, command, lease, draws, vram, gtt);
	BUS_VALUE(m, "gfx-share", client->shares.gfx);
	BUS_VALUE(m, "compute-share", client->shares.compute);
	BUS_VALUE(m, "dma-share", client->shares.dma);
	BUS_VALUE(m, "gfx-nsec", client->busy.gfx);
	BUS_VALUE(m, "compute-nsec", client->busy.compute);
	BUS_VALUE(m, "dma-nsec", client->busy.dma);
	bus_close(m);
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
	BUS_MEMBERS(m, cover, pid, uid, command, lease, queues);
	BUS_VALUE(m, "cus", cuset_count(&cover->cus));
	BUS_VALUE(m, "outside-cus", cuset_count(&cover->outside));
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
	BUS_VALUE(m, "kind", drift_names[kind]);
	BUS_VALUE(m, "gpu", gpu->info.name);
	BUS_MEMBERS(m, drift, granted, observed);
	BUS_VALUE(m, "since", drift->since_usec);
	if (drift->pid > 0)
		BUS_MEMBERS(m, drift, pid);
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
	bus_open(m, "{sv}");
	BUS_VALUE(m, "gpu", gpu->info.name);
	BUS_MEMBERS(m, intruder, pid, uid, command, lease, cus, draws);
	BUS_VALUE(m, "since", intruder->since_usec);
	bus_close(m);
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
