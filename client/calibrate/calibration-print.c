/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/calibrate/calibration-print.h"

#include <math.h>
#include <stdlib.h>

#include "client/output/json.h"
#include "client/output/mask-text.h"
#include "client/output/print.h"

static void print_point(const struct calibration_point *point, FILE *out)
{
	print_line(out, "%-30s %4u CUs  E %4u  %4u occupied%s  %10.0f us  +-%.0f %%", point->name,
		   point->cus, point->effective, point->occupied, point->honoured ? " " : "!",
		   point->usec, point->spread / 2);
}

void calibration_print_text(const struct command *command, const struct gpuarb_gpu *gpu,
			    const struct calibration *c, FILE *out)
{
	if (!command->no_legend)
		print_line(out, "%s (%s), %s: %u work-groups with each mask%s", gpu->name,
			   gpu->device, gpu->gfx_target, c->groups,
			   c->emulated ? "; EMULATED, not measured" : "");
	for (size_t i = 0; i < c->n; i++)
		print_point(&c->point[i], out);
	print_line(out, "masks honoured: %zu of %zu", c->honoured, c->n);
	if (isnan(c->law.a_usec))
		print_line(out, "no law fits: more CUs did not make the kernel faster");
	else
		print_line(
			out,
			"t = %.0f us / E + %.0f us: median error %.1f %%, worst %.1f %%; %.0f %% of the "
			"time on the whole GPU do not depend on the mask",
			c->law.a_usec, c->law.b_usec, c->law.median_error, c->law.worst_error,
			c->law.constant);
	if (c->cliff > 0)
		print_line(out, "one unit more in another shader engine: %.1f times as long",
			   c->cliff);
}

static void json_point(struct json_object *list, const struct model *model,
		       const struct calibration_point *point)
{
	struct json_object *map = json_map(list, NULL);
	uint32_t mask[CODEC_WORDS] = { 0 };
	char *hex;

	codec_encode(&model->codec, &point->set, mask);
	hex = mask_hex(mask, codec_words(&model->codec));
	json_text(map, "name", point->name);
	json_text(map, "use", point->use == CALIBRATION_LAW ? "law" : "cliff");
	json_text(map, "cu_mask", hex);
	free(hex);
	json_number(map, "cus", point->cus);
	json_number(map, "effective_cus", point->effective);
	json_number(map, "occupied_cus", point->occupied);
	json_flag(map, "mask_honoured", point->honoured);
	json_number(map, "repeats", point->repeats);
	json_real(map, "usec", point->usec);
	json_real(map, "spread_percent", point->spread);
}

static void json_law(struct json_object *map, const struct calibration *c)
{
	json_flag(map, "emulated", c->emulated);
	json_text(map, "kernel", "compute");
	json_real(map, "a_usec", c->law.a_usec);
	json_real(map, "b_usec", c->law.b_usec);
	json_real(map, "constant_percent", c->law.constant);
	json_real(map, "median_error_percent", c->law.median_error);
	json_real(map, "worst_error_percent", c->law.worst_error);
}

void calibration_print_json(const struct gpuarb_gpu *gpu, const struct model *model,
			    const struct calibration *c, FILE *out)
{
	struct json_object *map = json_map(NULL, NULL), *list;

	json_text(map, "schema", CALIBRATION_SCHEMA);
	json_number(map, "version", CALIBRATION_VERSION);
	json_text(map, "date", c->date);
	json_flag(map, "emulated", c->emulated);
	json_text(map, "gpu", gpu->name);
	json_text(map, "device", gpu->device);
	json_text(map, "gfx_target", gpu->gfx_target);
	json_number(map, "cus", gpu->cus);
	json_number(map, "work_groups", c->groups);
	list = json_list(map, "points");
	for (size_t i = 0; i < c->n; i++)
		json_point(list, model, &c->point[i]);
	json_number(map, "masks_honoured", c->honoured);
	json_law(json_map(map, "law"), c);
	json_real(map, "cliff", c->cliff > 0 ? c->cliff : NAN);
	json_print(out, map);
}
