/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/visible.h"

#include <stdlib.h>
#include <string.h>

#include "client/output/fail.h"

/* Once. command->visible stays NULL if no variable is set: the request then needs no snapshot. */
static int find_visible(struct command *command)
{
	int r = session_open(command);

	if (r != EXIT_OK || command->visible ||
	    gpuarb_visible_gpus(command->gpuarb, NULL, 0, NULL) == 0)
		return r;
	if (!command->view)
		r = session_snapshot(command);
	if (r != EXIT_OK || command->n_gpus == 0)
		return r;
	command->visible = calloc(command->n_gpus, sizeof(*command->visible));
	if (!command->visible)
		return fail(command, EXIT_FAILED, "out of memory");
	r = gpuarb_visible_gpus(command->gpuarb, command->gpus, command->n_gpus, command->visible);
	return r < 0 ? fail_asked(command, r) : EXIT_OK;
}

/* That with the most free CUs; NULL: all GPUs are visible. */
static const char *choose(const struct command *command)
{
	const struct gpuarb_gpu *best = NULL;
	bool all = true;

	for (size_t i = 0; i < command->n_gpus; i++) {
		const struct gpuarb_gpu *gpu = &command->gpus[i];

		all &= command->visible[i];
		if (command->visible[i] && (!best || gpu->cus_free > best->cus_free))
			best = gpu;
	}
	return all ? NULL : best->name;
}

int visible_choose(struct command *command, const char *gpu, const char **ret)
{
	int r;

	*ret = gpu;
	if (gpu && strcmp(gpu, "any") != 0)
		return EXIT_OK;
	r = find_visible(command);
	if (r == EXIT_OK && command->visible)
		*ret = choose(command);
	return r;
}
