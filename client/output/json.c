/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/json.h"

#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/output/lease-text.h"
#include "client/output/mask-text.h"
#include "client/output/print.h"
#include "dbus/partition.h"

/* value NULL: JSON's null. */
void json_value(struct json_object *in, const char *key, struct json_object *value)
{
	int r = key ? json_object_object_add(in, key, value) : json_object_array_add(in, value);

	if (r < 0)
		no_memory();
}

struct json_object *json_map(struct json_object *in, const char *key)
{
	struct json_object *map = have(json_object_new_object());

	if (in)
		json_value(in, key, map);
	return map;
}

struct json_object *json_list(struct json_object *in, const char *key)
{
	struct json_object *list = have(json_object_new_array());

	if (in)
		json_value(in, key, list);
	return list;
}

void json_text(struct json_object *in, const char *key, const char *value)
{
	json_value(in, key, value ? have(json_object_new_string(value)) : NULL);
}

void json_text_or(struct json_object *in, const char *key, const char *value, const char *unknown)
{
	json_text(in, key, value && strcmp(value, unknown) != 0 ? value : NULL);
}

void json_text_known(struct json_object *in, const char *key, const char *value)
{
	json_text_or(in, key, value, "");
}

void json_number(struct json_object *in, const char *key, uint64_t value)
{
	json_value(in, key, have(json_object_new_uint64(value)));
}

void json_known(struct json_object *in, const char *key, uint64_t value, uint64_t unknown)
{
	json_value(in, key, value == unknown ? NULL : have(json_object_new_uint64(value)));
}

void json_signed(struct json_object *in, const char *key, int64_t value)
{
	json_value(in, key, have(json_object_new_int64(value)));
}

void json_real(struct json_object *in, const char *key, double value)
{
	json_value(in, key, isnan(value) ? NULL : have(json_object_new_double(value)));
}

void json_flag(struct json_object *in, const char *key, bool value)
{
	json_value(in, key, have(json_object_new_boolean(value)));
}

void json_null(struct json_object *in, const char *key)
{
	json_value(in, key, NULL);
}

void json_numbers(struct json_object *in, const char *key, const uint32_t *values, size_t n)
{
	struct json_object *list = json_list(in, key);

	for (size_t i = 0; i < n; i++)
		json_number(list, NULL, values[i]);
}

void json_words(struct json_object *in, const char *key, const char *const *words, size_t n)
{
	struct json_object *list = json_list(in, key);

	for (size_t i = 0; i < n; i++)
		json_text(list, NULL, words[i]);
}

void json_mask(struct json_object *in, const char *key, const uint32_t *mask, size_t words)
{
	char *hex = mask_hex(mask, words);

	json_text(in, key, hex);
	free(hex);
}

static const char *serialize(struct json_object *value, int flags)
{
	/* With 15 digits 2.2 is 2.2, with 17 another number to jq 1.7. */
	int r = json_c_set_serialization_double_format("%.15g", JSON_C_OPTION_GLOBAL);
	const char *text = json_object_to_json_string_ext(value,
							  JSON_C_TO_STRING_NOSLASHESCAPE | flags);

	if (r < 0 || !text)
		no_memory();
	return text;
}

const char *json_line(struct json_object *value)
{
	return serialize(value, 0);
}

static void print(FILE *out, struct json_object *value, int flags)
{
	fprintf(out, "%s\n", serialize(value, flags));
	fflush(out);
	json_object_put(value);
}

void json_print(FILE *out, struct json_object *value)
{
	print(out, value, isatty(fileno(out)) ? JSON_C_TO_STRING_PRETTY : 0);
}

void json_print_line(FILE *out, struct json_object *value)
{
	print(out, value, 0);
}

void json_free(struct json_object *value)
{
	json_object_put(value);
}

/* ---- objects of the bus --------------------------------------------------------------------- */

static void json_processes(struct json_object *in, const char *key,
			   const struct gpuarb_process *processes, size_t n)
{
	JSON_ROWS(in, key, p, at < n ? &processes[at] : NULL, ("pid", p->pid),
		  ("uid", p->uid, UINT32_MAX), ("command", p->command, ""), ("queues", p->queues));
}

static void json_slots(struct json_object *map, const struct gpuarb_gpu *gpu,
		       const char *pipes_source)
{
	JSON_MEMBERS(map, gpu, queue_slots, queue_slots_free, process_slots, process_slots_free,
		     pipes, queues_per_pipe);
	json_text_known(map, "pipes_source", pipes_source);
	JSON_MEMBERS(map, gpu, sdma_queues, sdma_xgmi_queues, vram_bytes, vram_free);
}

static void json_clients(struct json_object *map, const struct gpuarb_view *view, size_t i)
{
	json_text_known(map, "graphics", gpuarb_view_graphics(view, i));
	JSON_ROWS(map, "clients", row, gpuarb_view_client(view, i, at), ("pid", row->pid),
		  ("uid", row->uid, UINT32_MAX), ("command", row->command, ""),
		  ("lease", row->lease, 0), ("draws", row->draws), ("gfx_share", row->gfx_share),
		  ("compute_share", row->compute_share), ("dma_share", row->dma_share),
		  ("gfx_nsec", row->gfx_nsec), ("compute_nsec", row->compute_nsec),
		  ("dma_nsec", row->dma_nsec), ("vram", row->vram), ("gtt", row->gtt));
}

/* The processes of which queues were observed on GPU i, and when; null: masks cannot be observed. */
static void json_covers(struct json_object *map, const struct gpuarb_view *view, size_t i)
{
	JSON_ROWS(map, "observed", row, gpuarb_view_cover(view, i, at), ("pid", row->pid),
		  ("uid", row->uid, UINT32_MAX), ("command", row->command, ""),
		  ("lease", row->lease, 0), ("queues", row->queues), ("cus", row->cus),
		  ("outside_cus", row->outside_cus), ("cu_mask", row->cu_mask, row->cu_mask_words),
		  ("outside_mask", row->outside_mask, row->outside_mask_words));
	JSON_FIELDS(map, ("masks_observed", gpuarb_view_masks_observed(view, i), 0),
		    ("unseen", gpuarb_view_unseen(view, i), ""));
}

static void json_driver_events(struct json_object *map, const struct gpuarb_view *view, size_t i)
{
	const struct gpuarb_driver_events *events;
	size_t n = gpuarb_view_driver_events(view, i, &events);

	for (size_t e = 0; e < n; e++)
		json_number(map, events[e].kind, events[e].count);
}

/* NULL: the daemon does not tell. */
static void json_calibration(struct json_object *map, const struct gpuarb_calibration *calibration)
{
	const struct gpuarb_slowdown *rows;

	if (!calibration)
		return;
	rows = calibration->slowdowns;
	JSON_FIELDS(map, ("calibrated", calibration->date, ""),
		    ("calibration_problem", calibration->problem, ""),
		    ("preemption_usec", calibration->preemption_usec, 0));
	JSON_ROWS(map, "slowdowns", row, at < calibration->n_slowdowns ? &rows[at] : NULL,
		  ("kind", row->kind, ""), ("neighbours", row->neighbours),
		  ("slowdown_percent", row->slowdown));
}

struct json_object *json_gpu(struct json_object *list, const struct gpuarb_view *view, size_t i)
{
	struct json_object *map = json_map(list, NULL), *xccs;
	const struct gpuarb_gpu *gpu;

	gpuarb_view_gpus(view, &gpu);
	gpu += i;

	json_text(map, "name", gpu->name);
	JSON_MEMBERS(map, gpu, device, gfx_target, xccs, shader_engines, cus);
	xccs = json_list(map, "cus_per_shader_engine");
	for (uint32_t x = 0; x < gpu->xccs; x++)
		json_numbers(xccs, NULL, gpu->cus_per_shader_engine + x * gpu->shader_engines,
			     gpu->shader_engines);
	JSON_FIELDS(map, ("cus_free", gpu->cus_free),
		    ("floor_excess", gpuarb_view_floor_excess(view, i), ""),
		    ("fairness", gpuarb_view_fairness(view, i)));
	JSON_MEMBERS(map, gpu, wgp_mode, harvest_known, law);
	JSON_FIELDS(map, ("law_source", gpuarb_view_law_source(view, i), ""),
		    ("law_constant", gpuarb_view_law_constant(view, i), 0));
	json_calibration(map, gpuarb_view_calibration(view, i));
	json_slots(map, gpu, gpuarb_view_pipes_source(view, i));
	JSON_FIELDS(map, ("memory", gpuarb_view_memory(view, i), ""),
		    ("scheduler", gpu->scheduler, ""));
	json_processes(map, "unmanaged", gpu->unmanaged, gpu->n_unmanaged);
	json_clients(map, view, i);
	json_covers(map, view, i);
	json_flag(map, "oversubscribed", gpu->oversubscribed);
	json_flag(map, "draining", gpu->draining);
	JSON_FIELDS(map, ("named_only", gpuarb_view_named_only(view, i)),
		    ("system_memory", gpuarb_view_system_memory(view, i)),
		    ("vram_pressure", gpuarb_view_vram_pressure(view, i)),
		    ("barred_for", gpuarb_view_barred_for(view, i), 0));
	json_driver_events(json_map(map, "driver_events"), view, i);
	return map;
}

/* For dbus/partition.h. */
#define PUT_VALUE(name, value) JSON_MEMBERS(map, partition, name);
#define PUT_MASK(name, value) json_mask(map, #name, partition->name, partition->name##_words);
#define PUT_BITS(name, value) json_numbers(map, #name, partition->name, partition->n_##name);
#define PUT_SEEN(name, value)                                                                      \
	(partition->n_##name > 0) ? json_numbers(map, #name, partition->name, partition->n_##name) \
				  : (void)0;
#define PUT_WORDS(name, value) json_words(map, #name, partition->name, partition->n_##name);

void json_partition(struct json_object *list, const struct gpuarb_partition *partition)
{
	struct json_object *map = json_map(list, NULL);

	GPUARB_PARTITION(PUT_VALUE, PUT_VALUE, PUT_VALUE, PUT_MASK, PUT_BITS, PUT_SEEN, PUT_WORDS)
}

static void json_lease_into(struct json_object *map, const struct gpuarb_lease_info *lease)
{
	struct json_object *owner, *partitions;

	JSON_FIELDS(map, ("id", lease->id), ("name", lease->name), ("state", lease->state));
	json_flag(map, "paused", strcmp(lease_text_state(lease), "paused") == 0);
	JSON_FIELDS(map, ("class", lease->lease_class), ("tenant", lease->tenant));
	owner = json_map(map, "owner");
	JSON_FIELDS(owner, ("uid", lease->owner_uid, UINT32_MAX), ("pid", lease->owner_pid, 0),
		    ("unit", lease->owner_unit, ""));
	JSON_MEMBERS(map, lease, adaptable, generation, tier);
	partitions = json_list(map, "partitions");
	for (size_t i = 0; i < lease->n_partitions; i++)
		json_partition(partitions, &lease->partitions[i]);
	JSON_FIELDS(map, ("position", lease->position), ("reason", lease->reason),
		    ("deadline", lease->deadline, GPUARB_FOREVER),
		    ("disturbances", lease->disturbances));
}

static void json_ids(struct json_object *in, const char *key, const uint64_t *ids, size_t n)
{
	struct json_object *list = json_list(in, key);

	for (size_t i = 0; i < n; i++)
		json_number(list, NULL, ids[i]);
}

static void json_bound(struct json_object *map, const struct gpuarb_refusal_facts *facts)
{
	json_text(map, "key", facts->key);
	JSON_MEMBERS(map, facts, limit, tenant, uid);
	if (*facts->asked_class)
		json_text(map, "asked_class", facts->asked_class);
	if (*facts->limit_class)
		json_text(map, "limit_class", facts->limit_class);
}

/* The keys of the facts that this refusal has. */
static void json_facts(struct json_object *map, const struct gpuarb_refusal_facts *facts)
{
	if (*facts->resource)
		JSON_FIELDS(map, ("resource", facts->resource), ("total", facts->total));
	if (facts->reserved > 0)
		json_number(map, "reserved", facts->reserved);
	if (*facts->key)
		json_bound(map, facts);
	if (*facts->key || facts->held > 0)
		json_number(map, "held", facts->held);
	if (facts->n_fits > 0) {
		json_ids(map, "fits", facts->fits, facts->n_fits);
		json_text(map, "fits_resource", facts->fits_resource);
	}
	if (facts->n_leases > 0) {
		json_ids(map, "leases", facts->leases, facts->n_leases);
		json_number(map, "lease_count", facts->lease_count);
	}
	if (facts->n_processes > 0) {
		json_processes(map, "processes", facts->processes, facts->n_processes);
		json_number(map, "process_count", facts->process_count);
	}
	if (facts->behind > 0)
		json_number(map, "behind", facts->behind);
	if (*facts->preempt_tenant)
		json_text(map, "preempt_tenant", facts->preempt_tenant);
	if (facts->end_cut)
		json_flag(map, "end_cut", true);
}

static void json_refusal(struct json_object *map, const struct gpuarb_refusal *refusal,
			 const struct gpuarb_refusal_facts *facts)
{
	JSON_FIELDS(map, ("gpu", refusal->gpu), ("reason", refusal->reason),
		    ("asked", refusal->asked), ("free", refusal->free), ("hint", refusal->hint));
	json_flag(map, "retry", refusal->retry);
	json_facts(map, facts);
	if (refusal->n_end > 0) {
		json_ids(map, "end", refusal->end, refusal->n_end);
		json_flag(map, "end_exact", refusal->end_exact);
	}
}

void json_refusals(struct json_object *map, const struct gpuarb *gpuarb)
{
	struct json_object *list = json_list(map, "refusals");
	const struct gpuarb_refusal *refusals;
	size_t n;

	refusals = gpuarb_last_refusals(gpuarb, &n);
	for (size_t i = 0; i < n; i++)
		json_refusal(json_map(list, NULL), &refusals[i],
			     gpuarb_last_refusal_facts(gpuarb, i));
}

void json_effects(struct json_object *map, const struct gpuarb *gpuarb)
{
	const struct gpuarb_effects *effects = gpuarb_last_plan_effects(gpuarb);

	if (!effects)
		return;
	map = json_map(map, "effects");
	JSON_ROWS(map, "shrinks", row, at < effects->n_shrinks ? &effects->shrinks[at] : NULL,
		  ("lease", row->lease), ("gpu", row->gpu), ("from_cus", row->from_cus),
		  ("to_cus", row->to_cus));
	json_ids(map, "revokes", effects->revokes, effects->n_revokes);
	json_ids(map, "pauses", effects->pauses, effects->n_pauses);
	json_ids(map, "moves", effects->moves, effects->n_moves);
	if (effects->within_usec != GPUARB_FOREVER)
		json_number(map, "within_usec", effects->within_usec);
}

static void json_drift(struct json_object *map, const struct gpuarb_view *view, size_t i)
{
	JSON_ROWS(map, "drift", row, gpuarb_view_drift(view, i, at), ("kind", row->kind),
		  ("gpu", row->gpu), ("granted", row->granted), ("observed", row->observed),
		  ("since", row->since), ("pid", row->pid, 0));
}

static void json_intruders(struct json_object *map, const struct gpuarb_view *view, size_t i)
{
	JSON_ROWS(map, "intruders", row, gpuarb_view_intruder(view, i, at), ("gpu", row->gpu),
		  ("pid", row->pid), ("uid", row->uid, UINT32_MAX), ("command", row->command),
		  ("lease", row->lease, 0), ("cus", row->cus), ("since", row->since),
		  ("draws", row->draws));
}

/* Nothing if there were none. */
static void json_times(struct json_object *in, const char *key, const struct gpuarb_pause *times)
{
	struct json_object *map;

	if (!times || times->count == 0)
		return;
	map = json_map(in, key);
	JSON_FIELDS(map, ("count", times->count), ("usec", times->usec),
		    ("since", times->since, 0));
}

/* Adds the base to each partition of an adaptable lease. */
static void json_cus_min(struct json_object *map, const struct gpuarb_view *view, size_t i)
{
	struct json_object *partitions = json_object_object_get(map, "partitions");

	for (size_t k = 0; k < json_object_array_length(partitions); k++)
		if (gpuarb_view_cus_min(view, i, k) > 0)
			json_number(json_object_array_get_idx(partitions, k), "cus_min",
				    gpuarb_view_cus_min(view, i, k));
}

static void json_lease_facts(struct json_object *map, const struct gpuarb_view *view, size_t i)
{
	const struct gpuarb_refusal_facts *facts;
	const struct gpuarb_refusal *refusal = gpuarb_view_waits_for(view, i, &facts);

	json_cus_min(map, view, i);
	JSON_FIELDS(map, ("since", gpuarb_view_since(view, i), 0),
		    ("duration_usec", gpuarb_view_duration(view, i), 0));
	json_drift(map, view, i);
	JSON_FIELDS(map, ("verified", gpuarb_view_verified(view, i)),
		    ("capped", gpuarb_view_capped(view, i)),
		    ("uncapped", gpuarb_view_uncapped(view, i), ""),
		    ("alone", gpuarb_view_alone(view, i)));
	json_intruders(map, view, i);
	if (refusal)
		json_refusal(json_map(map, "waits_for"), refusal, facts);
	if (gpuarb_view_queue_refusals(view, i) > 0)
		json_number(map, "queue_refusals", gpuarb_view_queue_refusals(view, i));
	if (gpuarb_view_moves(view, i) > 0)
		json_number(map, "moves", gpuarb_view_moves(view, i));
	if (gpuarb_view_resets(view, i) > 0)
		json_number(map, "resets", gpuarb_view_resets(view, i));
	json_times(map, "pauses", gpuarb_view_pause(view, i));
	json_times(map, "evictions", gpuarb_view_evictions(view, i));
}

void json_print_lease(FILE *out, const struct gpuarb_lease_info *lease)
{
	struct json_object *map = json_map(NULL, NULL);

	json_lease_into(map, lease);
	json_print(out, map);
}

struct json_object *json_lease(struct json_object *list, const struct gpuarb_view *view, size_t i)
{
	struct json_object *map = json_map(list, NULL);
	const struct gpuarb_lease_info *leases;

	gpuarb_view_leases(view, &leases);
	json_lease_into(map, &leases[i]);
	json_lease_facts(map, view, i);
	return map;
}
