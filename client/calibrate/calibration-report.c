/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/calibrate/calibration-report.h"

#include <math.h>
#include <stdlib.h>

#include "client/output/json.h"
#include "client/output/mask-text.h"
#include "util/base.h"

static const char *const uses[] = {
	[CALIBRATION_LAW] = "law",
	[CALIBRATION_CLIFF] = "cliff",
	[CALIBRATION_ANY] = "random",
	[CALIBRATION_BAD] = "bad",
};

static void json_point(struct json_object *list, const struct model *model,
		       const struct calibration_point *point, bool emulated)
{
	struct json_object *map = json_map(list, NULL);
	_cleanup_(freep) char *mask = mask_hex_of(model, &point->set);

	JSON_FIELDS(map, ("emulated", emulated), ("name", point->name), ("use", uses[point->use]),
		    ("cu_mask", mask), ("cus", point->cus), ("effective_cus", point->effective),
		    ("expected_cus", cuset_count(&point->expected)),
		    ("occupied_cus", point->occupied, 0));
	if (point->occupied > 0)
		json_flag(map, "mask_honoured", point->honoured);
	else
		json_real(map, "mask_honoured", NAN);
	JSON_FIELDS(map, ("repeats", point->repeats), ("usec", point->usec),
		    ("spread_percent", point->spread),
		    ("memory_usec", point->memory_usec > 0 ? point->memory_usec : NAN));
	json_flag(map, "throttled", point->throttled);
}

static void json_law(struct json_object *map, const char *kernel, const struct law_fit *law,
		     bool emulated)
{
	JSON_FIELDS(map, ("emulated", emulated), ("kernel", kernel), ("a_usec", law->a_usec),
		    ("b_usec", law->b_usec), ("constant_percent", law->constant),
		    ("median_error_percent", law->median_error),
		    ("worst_error_percent", law->worst_error));
}

static void json_beside(struct json_object *list, const struct calibration_beside *beside,
			bool emulated)
{
	struct json_object *map = json_map(list, NULL), *rounds;

	JSON_FIELDS(map, ("emulated", emulated), ("kind", neighbours_names[beside->kind]),
		    ("neighbours", beside->neighbours));
	/* Two kernels that fill each other's gaps can be faster together: that is no slowdown. */
	json_number(map, "slowdown_percent", (uint64_t)ceil(fmax(beside->worst, 1) * 100));
	json_flag(map, "bistable", beside->bistable);
	json_flag(map, "throttled", beside->throttled);
	rounds = json_list(map, "rounds");
	for (unsigned i = 0; i < beside->rounds; i++)
		json_real(rounds, NULL, beside->slowdown[i]);
}

static void json_costs(struct json_object *map, const struct costs *costs, bool emulated)
{
	bool known = costs->create > 0;

	JSON_FIELDS(map, ("emulated", emulated), ("stream_usec", known ? costs->create : NAN),
		    ("change_usec", known ? costs->change : NAN),
		    ("preemption_usec", known ? costs->preemption : NAN),
		    ("pause_usec", known ? costs->pause : NAN),
		    ("resume_usec", known ? costs->resume : NAN),
		    ("paused_usec", known ? costs->paused : NAN));
}

void calibration_report_missing(struct json_object *map, const struct calibration *c)
{
	JSON_ROWS(map, "missing", row, at < c->n_missing ? &c->missing[at] : NULL,
		  ("step", row->step), ("why", row->why));
}

struct json_object *calibration_report(const struct gpuarb_gpu *gpu, const struct model *model,
				       const struct calibration *c)
{
	struct json_object *map = json_map(NULL, NULL), *list;

	json_text(map, "schema", CALIBRATION_SCHEMA);
	json_number(map, "version", CALIBRATION_VERSION);
	json_text(map, "date", c->date);
	json_flag(map, "emulated", c->emulated);
	JSON_FIELDS(map, ("gpu", gpu->name), ("device", gpu->device),
		    ("gfx_target", gpu->gfx_target), ("cus", gpu->cus), ("work_groups", c->groups));
	list = json_list(map, "points");
	for (size_t i = 0; i < c->n; i++)
		json_point(list, model, &c->point[i], c->emulated);
	json_number(map, "masks_honoured", c->honoured);
	json_law(json_map(map, "law"), "compute", &c->law, c->emulated);
	json_law(json_map(map, "memory_law"), "memory", &c->memory_law, c->emulated);
	json_real(map, "cliff", c->cliff > 0 ? c->cliff : NAN);
	list = json_list(map, "interference");
	for (size_t i = 0; i < c->n_beside; i++)
		json_beside(list, &c->beside[i], c->emulated);
	json_costs(json_map(map, "costs"), &c->costs, c->emulated);
	JSON_ROWS(map, "ladder", row, at < c->n_steps ? &c->step[at] : NULL,
		  ("emulated", c->emulated), ("queues", row->queues), ("processes", row->processes),
		  ("oversubscribed", row->oversubscribed), ("usec", row->usec));
	JSON_MEMBERS(map, c, shared, clock_jumps, pauses);
	JSON_ROWS(map, "events", row, at < c->n_events ? &c->event[at] : NULL,
		  ("emulated", c->emulated), ("seconds", row->seconds),
		  ("kind", calibration_troubles[row->kind]), ("during", row->during),
		  ("slower_percent", row->slower), ("repeated", row->repeated));
	calibration_report_missing(map, c);
	return map;
}
