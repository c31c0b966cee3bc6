/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/visible.h"

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
