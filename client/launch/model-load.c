/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>

#include "client/output/fail.h"
#include "client/launch/model-load.h"
#include "util/base.h"
#include "util/text.h"

/* What the daemon knows of the law on this GPU of the snapshot. */
static void read_law(const struct command *command, const struct gpuarb_gpu *gpu, struct law *ret)
{
	size_t i = (size_t)(gpu - command->gpus);
	int basis = text_index(law_names, gpu->law);

	if (basis >= 0)
		ret->basis = (enum law_basis)basis;
	ret->constant = min_u(gpuarb_view_law_constant(command->view, i), 100);
	snprintf(ret->source, sizeof(ret->source), "%s", gpuarb_view_law_source(command->view, i));
}

int model_find_gpu(struct command *command, const struct gpuarb_gpu **ret_gpu, struct model *ret)
{
	char problem[256];
	int r;

	r = session_snapshot(command);
	if (r == EXIT_OK)
		r = session_gpu(command, command->gpu, ret_gpu);
	if (r != EXIT_OK)
		return r;

	if (model_of_gpu(*ret_gpu, ret, problem, sizeof(problem)) < 0)
		return fail(command, EXIT_FAILED, "%s: %s", (*ret_gpu)->name, problem);
	read_law(command, *ret_gpu, &ret->law);
	return EXIT_OK;
}

int model_load_profile(const struct command *command, struct profile *ret)
{
	const char *dir = command->profiles ? command->profiles : GPUARB_PROFILE_DIR;
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	int r;

	r = profile_load(dir, command->profile, ret, &diagnostics);
	if (r >= 0)
		return EXIT_OK;

	return fail_diagnostics(command, r == -ENOENT ? EXIT_USAGE : EXIT_CONFIGURATION,
				&diagnostics, r);
}

int model_names_gpu(const struct command *command)
{
	if (!command->gpu == !command->profile)
		return fail(
			command, EXIT_USAGE,
			"exactly one of --gpu=GPU (a GPU of this machine) and --profile=PROFILE (a "
			"model) is needed");
	return EXIT_OK;
}

int model_load(struct command *command, struct model *ret)
{
	const struct gpuarb_gpu *gpu;
	struct profile profile;
	int r = model_names_gpu(command);

	if (r != EXIT_OK)
		return r;
	if (command->gpu)
		return model_find_gpu(command, &gpu, ret);
	r = model_load_profile(command, &profile);
	if (r != EXIT_OK)
		return r;
	model_init(ret, &profile.info.geometry);
	ret->law = profile.info.law;
	return EXIT_OK;
}
