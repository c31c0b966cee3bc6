/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/calibrate/calibration-print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "client/output/json.h"
#include "client/output/mask-text.h"
#include "client/output/print.h"

static void print_point(const struct calibration_point *point, FILE *out)
{
	char occupied[16] = "   ?";

	if (point->occupied > 0)
		snprintf(occupied, sizeof(occupied), "%4u", point->occupied);
	print_line(out, "%-30s %4u CUs  E %4u  %s occupied%s  %10.0f us  %.1f %%", point->name,
		   point->cus, point->effective, occupied, point->honoured ? " " : "!", point->usec,
		   point->spread);
}

static void print_law(const char *kernel, const struct law_fit *law, FILE *out)
{
	if (isnan(law->a_usec))
		print_line(out, "no law fits: more CUs did not make the %s kernel faster", kernel);
	else
		print_line(out,
			   "%s: t = %.0f us / E + %.0f us: median error %.1f %%, worst %.1f %%; "
			   "%.0f %% of the time on the whole GPU do not depend on the mask",
			   kernel, law->a_usec, law->b_usec, law->median_error, law->worst_error,
			   law->constant);
}

/* ", and other queues stand still for up to 41 us", where that is known. */
static void print_gap(const char *before, double usec, FILE *out)
{
	if (!isnan(usec))
		fprintf(out, "%s up to %.0f us", before, usec);
	fputc('\n', out);
}

static void print_costs(const struct costs *costs, FILE *out)
{
	if (!(costs->create > 0))
		return;
	fprintf(out, "a stream with a mask: %.0f us; a change of a mask: %.0f us", costs->create,
		costs->change);
	print_gap(", and other queues stand still for", costs->preemption, out);
	if (isnan(costs->pause)) {
		print_line(out, "queues cannot be paused: libgpuarb did not see how HIP created "
				"them");
		return;
	}
	fprintf(out, "pausing a queue: %.0f us; resuming it: %.0f us", costs->pause, costs->resume);
	print_gap("; its kernel stands still for", costs->paused, out);
}

static void print_event(const struct calibration_event *event, FILE *out)
{
	const char *repeated = event->repeated ? "measured again" : "NOT measured again";

	if (event->kind == CALIBRATION_CLOCK)
		print_line(out, "after %.0f s, %s: the clock of the GPU jumped: %s", event->seconds,
			   event->during, repeated);
	else
		print_line(out,
			   "after %.0f s, %s: the GPU was %.0f %% slower (hot, or another program "
			   "uses it): %s",
			   event->seconds, event->during, event->slower, repeated);
}

static void print_step(const struct calibration_step *step, const struct calibration_step *first,
		       FILE *out)
{
	char times[64] = "did not end: reset the GPU";

	if (!isnan(step->usec))
		snprintf(times, sizeof(times), "%.2f times as long as one",
			 step->usec / first->usec);
	print_line(out, "%2u queue%s of %u process%s: %s%s", step->queues,
		   step->queues == 1 ? "" : "s", step->processes, step->processes == 1 ? "" : "es",
		   times, step->oversubscribed ? " (oversubscribed)" : "");
}

void calibration_print_text(const struct command *command, const struct gpuarb_gpu *gpu,
			    const struct calibration *c, FILE *out)
{
	if (!command->no_legend) {
		print_line(out, "%s (%s), %s: %u work-groups with each mask%s", gpu->name,
			   gpu->device, gpu->gfx_target, c->groups,
			   c->emulated ? "; EMULATED, not measured" : "");
		print_line(out,
			   "mask (shader engines x CUs), its CUs, effective CUs (E), CUs that ran "
			   "work-groups (!: not those expected), time, spread");
	}
	for (size_t i = 0; i < c->n; i++)
		print_point(&c->point[i], out);
	print_line(out, "masks honoured: %zu of %zu", c->honoured, c->n);
	print_law("compute", &c->law, out);
	print_law("memory", &c->memory_law, out);
	if (c->cliff > 0)
		print_line(out, "one unit more in another shader engine: %.1f times as long",
			   c->cliff);
	for (size_t i = 0; i < c->n_beside; i++)
		print_line(out, "beside %u that use %s: %.2f times as long%s",
			   c->beside[i].neighbours, neighbours_names[c->beside[i].kind],
			   c->beside[i].worst,
			   c->beside[i].bistable ? "; bistable: it differs from process to process"
						 : "");
	print_costs(&c->costs, out);
	for (size_t i = 0; i < c->n_steps; i++)
		print_step(&c->step[i], &c->step[0], out);
	for (size_t i = 0; i < c->n_events; i++)
		print_event(&c->event[i], out);
	for (size_t i = 0; i < c->n_missing; i++)
		print_line(out, "missing: %s: %s", c->missing[i].step, c->missing[i].why);
}

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

void calibration_print_missing(struct json_object *map, const struct calibration *c)
{
	JSON_ROWS(map, "missing", row, at < c->n_missing ? &c->missing[at] : NULL,
		  ("step", row->step), ("why", row->why));
}

void calibration_print_json(const struct gpuarb_gpu *gpu, const struct model *model,
			    const struct calibration *c, FILE *out)
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
	calibration_print_missing(map, c);
	json_print(out, map);
}

int calibration_print_submission(const struct gpuarb_gpu *gpu, const struct model *model,
				 const struct calibration *c, FILE *out)
{
	const struct command plain = { 0 };
	struct utsname system;

	if (uname(&system) < 0)
		system = (struct utsname){ 0 };
	fprintf(out, "Calibration of %s (%s), Linux %s\n\n```\n", gpu->device, gpu->gfx_target,
		system.release);
	calibration_print_text(&plain, gpu, c, out);
	fputs("```\n\n```json\n", out);
	calibration_print_json(gpu, model, c, out);
	fputs("```\n", out);
	return 0;
}
