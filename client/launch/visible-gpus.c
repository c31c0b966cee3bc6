/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/visible-gpus.h"

#include <stdlib.h>
#include <string.h>

#include "client/output/fail.h"
#include "util/base.h"

/* A list of these GPUs, as a want has it; NULL: no memory. */
static char *list_gpus(const struct command *command, const bool *visible)
{
	char *list = calloc(command->n_gpus + 1, GPU_NAME_MAX);

	for (size_t i = 0; list && i < command->n_gpus; i++) {
		if (!visible[i])
			continue;
		if (*list)
			strcat(list, ",");
		strcat(list, command->gpus[i].name);
	}
	return list;
}

/* command->visible stays NULL if no variable is set, when the request needs no snapshot, and if all GPUs are
 * visible. */
static int find_visible(struct command *command)
{
	_cleanup_(freep) bool *visible = NULL;
	bool all = true;
	int r = session_open(command);

	if (r != EXIT_OK || command->visible ||
	    gpuarb_visible_gpus(command->gpuarb, NULL, 0, NULL) == 0)
		return r;
	if (!command->view)
		r = session_snapshot(command);
	if (r != EXIT_OK || command->n_gpus == 0)
		return r;
	visible = calloc(command->n_gpus, sizeof(*visible));
	if (!visible)
		return fail(command, EXIT_FAILED, "out of memory");
	r = gpuarb_visible_gpus(command->gpuarb, command->gpus, command->n_gpus, visible);
	if (r < 0)
		return fail_asked(command, r);
	for (size_t i = 0; i < command->n_gpus; i++)
		all &= visible[i];
	if (all)
		return EXIT_OK;
	command->visible = list_gpus(command, visible);
	return command->visible ? EXIT_OK : fail(command, EXIT_FAILED, "out of memory");
}

int visible_choose(struct command *command, const char *gpu, const char **ret)
{
	int r;

	*ret = gpu;
	if (gpu && strcmp(gpu, "any") != 0)
		return EXIT_OK;
	r = find_visible(command);
	if (r == EXIT_OK && command->visible)
		*ret = command->visible;
	return r;
}

static bool is_shown(const struct command *command, size_t i)
{
	const char *list = command->visible;
	char name[GPU_NAME_MAX];

	if (!list)
		return !gpuarb_view_named_only(command->view, i);
	while (want_next_gpu(&list, name))
		if (strcmp(name, command->gpus[i].name) == 0)
			return true;
	return false;
}

static bool is_all(const struct typed_want *typed)
{
	return typed->want.gpu && strcmp(typed->want.gpu, "all") == 0;
}

static int check_alone(const struct command *command)
{
	for (size_t i = 0; i < command->n_wants; i++)
		if (is_all(&command->wants[i]))
			return fail(command, EXIT_USAGE,
				    "--gpu=all and another --gpu exclude each other");
	return EXIT_OK;
}

int visible_expand(struct command *command)
{
	const struct typed_want typed = command->wants[0];
	size_t n = 0;
	int r;

	if (command->n_wants > 1 || !is_all(&typed))
		return check_alone(command);
	r = find_visible(command);
	if (r == EXIT_OK && !command->view)
		r = session_snapshot(command);
	for (size_t i = 0; r == EXIT_OK && i < command->n_gpus && n < REQUEST_WANTS; i++) {
		struct typed_want *want = &command->wants[n];

		if (!is_shown(command, i))
			continue;
		*want = typed;
		snprintf(want->gpu, sizeof(want->gpu), "%s", command->gpus[i].name);
		want->want.gpu = want->gpu;
		n++;
	}
	if (r == EXIT_OK && n == 0)
		return fail(command, EXIT_REFUSED, "--gpu=all: there is no GPU that can be chosen");
	if (r == EXIT_OK)
		command->n_wants = n;
	return r;
}
