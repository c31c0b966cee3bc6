/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/launch/model-load.h"
#include "client/output/explain.h"
#include "client/output/fail.h"
#include "client/output/mask-text.h"
#include "client/verbs/verb.h"

static void free_mask(uint32_t **mask)
{
	free(*mask);
}

/* Explains the mask of the command line. */
static int read_mask(const struct command *command, const struct model *model,
		     struct explanation *ret)
{
	_cleanup_(free_mask) uint32_t *mask = NULL;
	const char *text = command->rest[1];
	size_t words;
	int r = mask_parse(text, &mask, &words);

	if (r == -ERANGE)
		return fail(command, EXIT_USAGE, "invalid mask '%.80s': bits go up to 65535", text);
	if (r < 0)
		return fail(command, EXIT_USAGE,
			    "invalid mask '%.80s': use hexadecimal digits (0x3fffffff) or "
			    "bits (0-15,32-47)",
			    text);
	explain(model, mask, words, ret);
	return EXIT_OK;
}

static int explain_mask(const struct command *command, const struct model *model)
{
	struct explanation explanation;
	int r = read_mask(command, model, &explanation);

	if (r == EXIT_OK)
		mask_print_explanation(command, model, &explanation);
	return r;
}

static int decode_mask(const struct command *command, const struct model *model)
{
	struct explanation explanation;
	int r = read_mask(command, model, &explanation);

	if (r == EXIT_OK)
		mask_print_places(command, model, &explanation);
	return r;
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
	mask_print_encoded(command, &set, mask, words, &explanation);
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
	const char *name = command->rest[0];
	struct model model;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (strcmp(name, actions[i].name) != 0)
			continue;
		r = model_load(command, &model);
		return r == EXIT_OK ? actions[i].run(command, &model) : r;
	}
	return fail(command, EXIT_USAGE, "unknown action '%.80s': use explain, encode or decode",
		    name);
}
