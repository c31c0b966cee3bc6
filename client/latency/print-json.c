/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/latency-print.h"

#include <math.h>
#include <stdlib.h>

#include "client/output/json.h"
#include "client/output/mask-text.h"

const char *const pair_class_keys[PAIR_CLASSES] = {
	[PAIR_SAME_UNIT] = "same_unit",
	[PAIR_SAME_ENGINE] = "same_shader_engine",
	[PAIR_ACROSS] = "across",
};

/* Whole nanoseconds: the clock is not as fine as its average. */
static void json_ns(struct json_object *in, const char *key, double ns)
{
	if (isnan(ns))
		json_null(in, key);
	else
		json_number(in, key, (uint64_t)llround(ns));
}

static void json_places(struct json_object *map, const char *key, const struct place *places,
			unsigned n)
{
	struct json_object *list = json_list(map, key);

	for (unsigned i = 0; i < n; i++) {
		struct json_object *place = json_map(list, NULL);

		json_number(place, "xcc", places[i].xcc);
		json_number(place, "shader_engine", places[i].engine);
		json_number(place, "shader_array", places[i].array);
		json_number(place, "cu", places[i].cu);
	}
}

static void json_unit(struct json_object *list, const struct findings *findings, size_t i)
{
	const struct units *units = findings->units;
	const struct unit *unit = &units->list[i];
	const struct ran *ran = &findings->matrix->ran[i];
	struct json_object *map = json_map(list, NULL);
	char *mask = mask_hex(unit->mask, units->words), name[UNIT_NAME];

	unit_name(findings->model, units, i, name);
	json_text(map, "name", name);
	json_text(map, "cu_mask", mask);
	free(mask);
	if (unit->engine == UNIT_MIXED)
		json_null(map, "shader_engine");
	else
		json_number(map, "shader_engine", unit->engine);
	json_places(map, "xccs", unit->lane, units->lanes);
	if (ran->known)
		json_places(map, "ran_on", ran->lane, units->lanes);
	else
		json_null(map, "ran_on");
	if (!ran->known || (ran->elsewhere && !ran->moved && !findings->harvest_known))
		json_null(map, "mask_honoured");
	else
		json_flag(map, "mask_honoured", !ran->elsewhere);
}

static void json_matrix(struct json_object *map, const struct findings *findings)
{
	struct json_object *rows = json_list(map, "matrix");

	for (size_t a = 0; a < findings->units->n; a++) {
		struct json_object *row = json_list(rows, NULL);

		for (size_t b = 0; b < findings->units->n; b++)
			json_ns(row, NULL, matrix_get(findings->matrix, a, b));
	}
}

static void json_summary(struct json_object *map, const struct findings *findings)
{
	struct json_object *classes = json_map(map, "summary");

	for (unsigned class = 0; class < PAIR_CLASSES; class ++) {
		const struct spread *pairs = &findings->summary->pairs[class];
		struct json_object *one = json_map(classes, pair_class_keys[class]);

		json_number(one, "pairs", pairs->n);
		json_ns(one, "median", pairs->median);
		json_ns(one, "least", pairs->least);
		json_ns(one, "most", pairs->most);
	}
}

static void json_outliers(struct json_object *map, const struct findings *findings)
{
	const struct summary *summary = findings->summary;
	struct json_object *outliers = json_map(map, "outliers"), *list;

	list = json_list(outliers, "units");
	for (size_t a = 0; a < findings->units->n; a++) {
		struct json_object *one;

		if (!summary->slow[a])
			continue;
		one = json_map(list, NULL);
		json_number(one, "unit", a);
		json_real(one, "ratio", summary->ratio[a]);
	}
	list = json_list(outliers, "pairs");
	for (size_t a = 0; a < findings->units->n; a++) {
		for (size_t b = a; b < findings->units->n; b++) {
			const uint32_t pair[] = { (uint32_t)a, (uint32_t)b };
			struct json_object *one;

			if (!summary_slow_pair(summary, findings->matrix, findings->units, a, b))
				continue;
			one = json_map(list, NULL);
			json_numbers(one, "units", pair, 2);
			json_ns(one, "ns", matrix_get(findings->matrix, a, b));
		}
	}
}

void print_json(const struct findings *findings, FILE *out)
{
	_cleanup_(json_freep) struct json_object *map = json_map(NULL, NULL);
	struct json_object *list;

	json_text(map, "gpu", findings->gpu);
	json_text(map, "unit", findings->units->step > 1 ? "wgp" : "cu");
	json_flag(map, "same_line", findings->same_line);
	json_number(map, "rounds", GAME_ROUNDS);
	json_flag(map, "harvest_known", findings->harvest_known);
	list = json_list(map, "units");
	for (size_t i = 0; i < findings->units->n; i++)
		json_unit(list, findings, i);
	json_matrix(map, findings);
	json_summary(map, findings);
	json_outliers(map, findings);
	json_number(map, "unmet", findings->matrix->unmet);
	json_print(out, map);
}
