/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/launch/model-load.h"
#include "client/output/explain.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/mask-text.h"
#include "client/output/mask-variable.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"

#define HSA "HSA_CU_MASK"
#define GLOBAL "ROC_GLOBAL_CU_MASK"

/* ---- output ------------------------------------------------------------------------------ */

static void json_explanation(struct json_object *map, const struct explanation *e)
{
	json_number(map, "cus", e->cus);
	json_flag(map, "valid", e->valid);
	json_text(map, "problem", e->valid ? NULL : e->problem);
}

static void json_law(struct json_object *map, const struct model *model,
		     const struct explanation *e)
{
	const struct explained_range found = explain_range(e, model->law.constant);
	double time = explain_relative_time(e, model->law.constant);
	struct json_object *range;

	JSON_FIELDS(map, ("effective_cus", e->effective),
		    ("efficiency", e->effective > 0 ? (double)e->effective / e->occupied : NAN),
		    ("relative_time", time > 0 ? time : NAN));
	range = json_map(map, "relative_time_range");
	JSON_FIELDS(range, ("least", found.least > 0 ? found.least : NAN),
		    ("most", found.most > 0 ? found.most : NAN));
	JSON_FIELDS(map, ("law", law_names[model->law.basis]),
		    ("law_source", model->law.source, ""),
		    ("law_constant", model->law.constant, 0));
}

/* list: the members go to a new map in it; NULL: to one of its own. */
static struct json_object *json_explained(struct json_object *list, const struct model *model,
					  const struct explanation *e)
{
	struct json_object *map = json_map(list, NULL);
	struct json_object *xccs;

	json_explanation(map, e);
	json_numbers(map, "shader_engines", e->engine, model->geometry.engines);
	xccs = json_list(map, "per_xcc");
	for (unsigned x = 0; x < model->geometry.xccs; x++)
		json_numbers(xccs, NULL, e->pair[x], model->geometry.engines);
	JSON_FIELDS(map, ("shader_engines_used", e->engines_used), ("occupied_cus", e->occupied));
	json_numbers(map, "unmasked_xccs", e->unmasked, e->n_unmasked);
	json_law(map, model, e);
	return map;
}

static void print_counts(const struct model *model, const struct explanation *e)
{
	for (unsigned x = 0; x < model->geometry.xccs; x++) {
		if (model->geometry.xccs > 1)
			printf("XCC %u   ", x);
		printf("CUs by shader engine:");
		for (unsigned s = 0; s < model->geometry.engines; s++)
			printf(" %u", e->pair[x][s]);
		putchar('\n');
	}
}

/* The shader engines with fewer CUs than the best subset uses. */
static void print_thin(const struct model *model, const struct explanation *e)
{
	for (unsigned x = 0; x < model->geometry.xccs; x++) {
		for (unsigned s = 0; s < model->geometry.engines; s++) {
			if (e->pair[x][s] == 0 || e->pair[x][s] >= e->each[x])
				continue;
			if (model->geometry.xccs > 1)
				printf("XCC %u ", x);
			printf("SE %u has only %u %s\n", s, e->pair[x][s],
			       e->pair[x][s] == 1 ? "CU" : "CUs");
		}
	}
}

/* The hardware gives each shader engine in use the same share of a grid, so the engine with the
 * fewest CUs sets the time. */
static void print_advice(const struct model *model, const struct explanation *e)
{
	if (e->effective == e->cus)
		return;
	if (e->best <= e->effective) {
		printf("uneven: E %u of %u; the mask is as fast with %u CU%s less\n", e->effective,
		       e->cus, e->cus - e->effective, print_s(e->cus - e->effective));
		return;
	}
	printf("cliff: E %u of %u. Each shader engine in use gets the same share of the work, and\n"
	       "the one with the fewest CUs sets the time. Without these engines: E %u of %u.\n",
	       e->effective, e->cus, e->best, e->best);
	print_thin(model, e);
}

static void print_unmasked(const struct explanation *e)
{
	printf("isolation broken: %u of %u CUs occupied. ", e->occupied, e->all_cus);
	fputs(e->lost ? "Such a mask is lost: the queue runs unmasked"
		      : "The hardware runs an XCC without a bit unmasked: XCC",
	      stdout);
	for (unsigned i = 0; i < e->n_unmasked && !e->lost; i++)
		printf("%s%u", i == 0 ? " " : ", ", e->unmasked[i]);
	putchar('\n');
}

static void print_time(const struct law *law, const struct explanation *e)
{
	const struct explained_range range = explain_range(e, law->constant);

	fputs("a large kernel takes ", stdout);
	if (range.most - range.least >= 0.005)
		printf("%.2f to ", range.least);
	print_line(stdout, "%.2f times as long as on the whole GPU (law %s%s%s)", range.most,
		   law_names[law->basis], *law->source ? ": " : "", law->source);
}

static void print_explanation(const struct command *command, const struct model *model,
			      const struct explanation *e)
{
	if (command->json) {
		json_print(stdout, json_explained(NULL, model, e));
		return;
	}
	print_line(stdout, "%u of %u CUs, %s%s", e->cus, e->all_cus,
		   e->valid ? "valid" : "not valid: ", e->problem);
	print_counts(model, e);
	if (e->n_unmasked > 0)
		print_unmasked(e);
	if (e->effective == 0)
		return;
	printf("effective CUs: %u (efficiency %.2f)\n", e->effective,
	       (double)e->effective / e->occupied);
	if (e->valid)
		print_time(&model->law, e);
	if (e->n_unmasked == 0)
		print_advice(model, e);
}

/* The CUs of one array as numbers. */
static size_t array_cus(uint32_t pair, unsigned array, uint32_t ret[static CUSET_ARRAY_CUS])
{
	size_t n = 0;

	for (unsigned cu = 0; cu < CUSET_ARRAY_CUS; cu++) {
		if (pair >> (cu + array * CUSET_ARRAY_CUS) & 1)
			ret[n++] = cu;
	}
	return n;
}

static void json_array(struct json_object *list, unsigned xcc, unsigned engine, unsigned array,
		       const uint32_t *cus, size_t n)
{
	struct json_object *map = json_map(list, NULL);

	JSON_FIELDS(map, ("xcc", xcc), ("shader_engine", engine), ("shader_array", array));
	json_numbers(map, "cus", cus, n);
}

static void json_places(const struct model *model, const struct explanation *e, const char *places)
{
	struct json_object *map = json_map(NULL, NULL);
	struct json_object *list;
	uint32_t cus[CUSET_ARRAY_CUS];

	json_explanation(map, e);
	json_text(map, "places", places);
	list = json_list(map, "shader_arrays");
	for (unsigned x = 0; x < model->geometry.xccs; x++)
		for (unsigned s = 0; s < model->geometry.engines; s++)
			for (unsigned a = 0; a < model->geometry.arrays; a++)
				json_array(list, x, s, a, cus,
					   array_cus(e->set.pair[cuset_pair(x, s)], a, cus));
	json_print(stdout, map);
}

static void print_places(const struct command *command, const struct model *model,
			 const struct explanation *e)
{
	char *places = places_format(model, &e->set), *place, *rest;

	if (command->json) {
		json_places(model, e, places);
		free(places);
		return;
	}
	if (!e->valid)
		print_line(stdout, "not valid: %s", e->problem);
	for (rest = places; (place = strsep(&rest, ",")) != NULL;) {
		if (*place)
			puts(place);
	}
	free(places);
}

static void print_encoded(const struct command *command, const struct cuset *wanted,
			  const uint32_t *mask, size_t words, const struct explanation *e)
{
	struct json_object *map = NULL;
	char *hex = mask_hex(mask, words), *list = mask_list(mask, words);
	unsigned beyond = cuset_count(wanted) - e->cus;

	if (beyond > 0)
		print_line(stderr, "gpuarbctl mask: left out %u CU%s that no bit of a mask reaches",
			   beyond, print_s(beyond));
	if (command->json) {
		map = json_map(NULL, NULL);
		JSON_FIELDS(map, ("cu_mask", hex), ("list", list));
		json_explanation(map, e);
		json_number(map, "effective_cus", e->effective);
		json_print(stdout, map);
	} else {
		print_line(stdout, "%s", hex ? hex : "");
		print_line(stdout, "%s", list ? list : "");
	}
	free(hex);
	free(list);
}

/* ---- the actions ------------------------------------------------------------------------- */

/* Prints what is found out about the mask of the command line. */
static int show_mask(const struct command *command, const struct model *model,
		     void (*print)(const struct command *command, const struct model *model,
				   const struct explanation *explanation))
{
	_cleanup_(freep) uint32_t *mask = NULL;
	const char *text = command->rest[1];
	struct explanation explanation;
	size_t words;
	int r = mask_parse(text, &mask, &words);

	if (r == -ENOMEM)
		return fail(command, EXIT_FAILED, "out of memory");
	if (r == -ERANGE)
		return fail(command, EXIT_USAGE, "invalid mask '%.80s': bits go up to 65535", text);
	if (r < 0)
		return fail(command, EXIT_USAGE,
			    "invalid mask '%.80s': use hexadecimal digits (0x3fffffff) or "
			    "bits (0-15,32-47)%s",
			    text,
			    strcmp(command->rest[0], "explain") == 0 ? ", or a value of " HSA
								       " (0:0-15) or " GLOBAL
								     : "");
	explain(model, mask, words, &explanation);
	print(command, model, &explanation);
	return EXIT_OK;
}

/* ---- variables ---------------------------------------------------------------------------- */

/* The value of a variable, with its name before it or not. NULL: the text is a mask. A colon is only in
 * HSA_CU_MASK, and hexadecimal digits without 0x only in ROC_GLOBAL_CU_MASK. */
static const char *find_variable(const char *text, const char **ret_name)
{
	size_t digits = strspn(text, "0123456789abcdefABCDEF");

	*ret_name = HSA;
	if (strncmp(text, HSA "=", strlen(HSA "=")) == 0)
		return text + strlen(HSA "=");
	if (strchr(text, ':'))
		return text;
	*ret_name = GLOBAL;
	if (strncmp(text, GLOBAL "=", strlen(GLOBAL "=")) == 0)
		return text + strlen(GLOBAL "=");
	return digits > strspn(text, "0123456789") && !text[digits] ? text : NULL;
}

/* Which GPU of the value the user asks about: of several sets, that with the number of --gpu. -1: each. */
static int find_number(const struct command *command, const struct variable_masks *masks)
{
	const struct gpuarb_gpu *gpu;
	unsigned sets = 0;

	for (unsigned i = 0; i < VARIABLE_GPUS; i++)
		sets += masks->set[i];
	if (!command->gpu || sets < 2 || session_gpu(command, command->gpu, &gpu) != EXIT_OK)
		return -1;
	return (int)(gpu - command->gpus);
}

static void show_set(const struct command *command, const struct model *model, const char *name,
		     int gpu, const uint32_t *mask, struct json_object *list)
{
	struct explanation explanation;

	explain(model, mask, CODEC_WORDS, &explanation);
	if (list) {
		json_known(json_explained(list, model, &explanation), "gpu", (uint64_t)gpu,
			   strcmp(name, GLOBAL) == 0 ? 0 : UINT64_MAX);
		return;
	}
	if (strcmp(name, GLOBAL) == 0)
		puts("every GPU that HIP uses:");
	else
		printf("GPU %d:\n", gpu);
	print_explanation(command, model, &explanation);
}

/* What the runtime does without a message. */
static void print_ignored(const char *name, const struct variable_masks *masks)
{
	const char *runtime = strcmp(name, HSA) == 0 ? "ROCr" : "HIP";

	if (masks->dropped)
		printf("%s drops numbers and digits beyond the last %s without a message\n",
		       runtime, strcmp(name, HSA) == 0 ? "GPU or CU" : "CU");
	if (*masks->problem)
		print_line(stdout, "without a message, %s ignores %s", runtime, masks->problem);
	puts(strcmp(name, HSA) == 0 ? "no other GPU has a mask: its queues use all CUs"
				    : "only HIP reads this variable: other queues have no mask");
}

static int show_variable(const struct command *command, const struct model *model, const char *name,
			 const char *value)
{
	unsigned cus = cuset_count(&model->all);
	struct json_object *map = NULL, *list = NULL;
	struct variable_masks masks;
	int number;

	if (strcmp(name, GLOBAL) == 0)
		variable_parse_global(value, cus, geometry_step(&model->geometry), &masks);
	else if (variable_parse_hsa(value, command->gpu ? (unsigned)command->n_gpus : VARIABLE_GPUS,
				    cus, &masks) < 0)
		return fail(command, EXIT_FAILED, "out of memory");
	number = find_number(command, &masks);
	if (command->json) {
		map = json_map(NULL, NULL);
		JSON_FIELDS(map, ("variable", name), ("ignored", masks.problem, ""),
			    ("dropped", masks.dropped));
		list = json_list(map, "gpus");
	}
	for (int i = 0; i < (int)VARIABLE_GPUS; i++)
		if (masks.set[i] && (number < 0 || number == i))
			show_set(command, model, name, i, masks.word[i], list);
	if (command->json)
		json_print(stdout, map);
	else
		print_ignored(name, &masks);
	return EXIT_OK;
}

static int explain_mask(const struct command *command, const struct model *model)
{
	const char *name, *value = find_variable(command->rest[1], &name);

	return value ? show_variable(command, model, name, value)
		     : show_mask(command, model, print_explanation);
}

static int decode_mask(const struct command *command, const struct model *model)
{
	return show_mask(command, model, print_places);
}

static int encode_mask(const struct command *command, const struct model *model)
{
	size_t words = codec_words(&model->codec);
	struct explanation explanation;
	uint32_t mask[CODEC_WORDS] = { 0 };
	struct cuset set;
	char problem[256];

	if (places_parse(model, command->rest[1], &set, problem, sizeof(problem)) < 0)
		return fail(command, EXIT_USAGE, "%s", problem);

	codec_encode(&model->codec, &set, mask);
	explain(model, mask, words, &explanation);
	print_encoded(command, &set, mask, words, &explanation);
	if (explanation.valid)
		return EXIT_OK;

	/* The mask is as requested, but a program must not go on with it unnoticed. */
	return fail(command, EXIT_FAILED, "not a valid mask: %s", explanation.problem);
}

static const struct {
	const char *name;
	int (*run)(const struct command *command, const struct model *model);
} actions[] = {
	{ "explain", explain_mask },
	{ "encode", encode_mask },
	{ "decode", decode_mask },
};

int run_mask(struct command *command)
{
	struct model model;
	size_t i = 0;
	int r;

	while (strcmp(command->rest[0], actions[i].name) != 0) /* main.c has refused others */
		i++;
	r = model_load(command, &model);
	return r == EXIT_OK ? actions[i].run(command, &model) : r;
}
