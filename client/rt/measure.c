/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* rt measure: this program becomes gpuarb-rt-measure, with what it has to know of the GPU. */

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/launch/agent-start.h"
#include "client/launch/child.h"
#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/rt/measure.h"
#include "util/base.h"

#define RUNS 3U /* without --runs */
#define LIBRARY "libgpuarb-kernel-times.so"
#define NUMBERS 5U

static int find_library(const struct command *command, char *ret, size_t size)
{
	snprintf(ret, size, "%s/" LIBRARY, agent_dir(GPUARB_AGENT_LIBRARY_DIR));
	if (*ret == '/' && !strpbrk(ret, " :") && access(ret, R_OK) == 0)
		return EXIT_OK;
	return fail(
		command, EXIT_FAILED,
		"%s: kernels have no times without %s, which is built with HIP; on Debian it is in "
		"the package gpuarb-latency",
		strerror(EOPNOTSUPP), ret);
}

static int choose_gpu(struct command *command, const struct gpuarb_gpu **ret)
{
	int r = session_snapshot(command);

	if (r != EXIT_OK)
		return r;
	if (command->gpu)
		return session_gpu(command, command->gpu, ret);
	if (command->n_gpus != 1)
		return fail(command, EXIT_USAGE, "there are %zu GPUs: name one with --gpu=GPU",
			    command->n_gpus);
	*ret = command->gpus;
	return EXIT_OK;
}

/* The CUs of its smallest shader engine. */
static unsigned height_of(const struct gpuarb_gpu *gpu)
{
	unsigned engines = gpu->xccs * gpu->shader_engines, height = gpu->cus;

	for (unsigned e = 0; e < engines; e++)
		height = min_u(height, gpu->cus_per_shader_engine ? gpu->cus_per_shader_engine[e]
								  : gpu->cus / engines);
	return height;
}

/* The words of gpuarb-rt-measure before the command; NULL: out of memory. */
static const char **words_of(const struct command *command, const struct gpuarb_gpu *gpu,
			     const char *library, const char *ctl, char (*numbers)[16])
{
	const struct gpuarb_calibration *calibration =
		gpuarb_view_calibration(command->view, (size_t)(gpu - command->gpus));
	const unsigned values[NUMBERS] = {
		gpu->xccs * gpu->shader_engines,
		height_of(gpu),
		gpu->wgp_mode ? 2 : 1,
		command->runs > 0 ? command->runs : RUNS,
		calibration ? calibration->preemption_usec : 0,
	};
	const char *const words[] = {
		"gpuarb-rt-measure",
		"--gpu",
		gpu->name,
		"--library",
		library,
		"--ctl",
		ctl,
		"--engines",
		numbers[0],
		"--height",
		numbers[1],
		"--unit",
		numbers[2],
		"--runs",
		numbers[3],
		"--preemption",
		numbers[4],
		"--on",
		command->beside_on ?: "engines",
		command->json ? "--json" : "--no-json",
		"--",
		command->sizes ?: "",
		command->beside ?: "",
	};
	const char **all = calloc(ARRAY_SIZE(words) + command->n_rest, sizeof(*all));

	for (size_t i = 0; i < NUMBERS; i++)
		snprintf(numbers[i], sizeof(numbers[i]), "%u", values[i]);
	if (!all)
		return NULL;
	memcpy(all, words, sizeof(words));
	for (size_t i = 1; i < command->n_rest; i++)
		all[ARRAY_SIZE(words) + i - 1] = command->rest[i];
	return all;
}

int rt_measure_command(struct command *command)
{
	char library[PATH_MAX], found[PATH_MAX], ctl[PATH_MAX], numbers[NUMBERS][16];
	const char *program = sibling_find("gpuarb-rt-measure", GPUARB_RT_MEASURE, found);
	_cleanup_(freep) const char **words = NULL;
	const struct gpuarb_gpu *gpu;
	int r = find_library(command, library, sizeof(library));

	if (r == EXIT_OK)
		r = choose_gpu(command, &gpu);
	if (r != EXIT_OK)
		return r;
	words = words_of(command, gpu, library, sibling_find("gpuarbctl", GPUARB_CTL, ctl),
			 numbers);
	if (!words)
		return fail(command, EXIT_FAILED, "out of memory");
	execv(program, (char *const *)(uintptr_t)words); /* which does not write to them */
	return fail(command, EXIT_FAILED, "cannot start %s: %s", program, strerror(errno));
}
