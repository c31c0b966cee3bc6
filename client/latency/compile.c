/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/compile.h"

#include <errno.h>
#include <hip/hiprtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/latency/kernel.h"
#include "client/latency/report.h"
#include "util/base.h"

static void program_done(hiprtcProgram *program)
{
	if (*program)
		(void)hiprtcDestroyProgram(program);
}

/* The first line of the compiler log with an error, else hiprtc's name of the error. */
static int failed(hiprtcProgram program, hiprtcResult result, const char *target, char *buf,
		  size_t size)
{
	_cleanup_(freep) char *log = NULL;
	const char *line = NULL;
	size_t n = 0;

	if (hiprtcGetProgramLogSize(program, &n) == HIPRTC_SUCCESS && n > 0)
		log = calloc(n + 1, 1);
	if (log && hiprtcGetProgramLog(program, log) == HIPRTC_SUCCESS)
		line = strstr(log, "error");
	if (!line)
		line = hiprtcGetErrorString(result);
	snprintf(buf, size, "the kernel was not compiled for %s: %.*s", target,
		 (int)strcspn(line, "\n"), line);
	return -EIO;
}

static int get_code(hiprtcProgram program, const char *target, char **ret_code, size_t *ret_size,
		    char *buf, size_t size)
{
	hiprtcResult result = hiprtcGetCodeSize(program, ret_size);
	char *code;

	if (result != HIPRTC_SUCCESS)
		return failed(program, result, target, buf, size);
	code = malloc(*ret_size);
	if (!code)
		return -ENOMEM;
	result = hiprtcGetCode(program, code);
	if (result != HIPRTC_SUCCESS) {
		free(code);
		return failed(program, result, target, buf, size);
	}
	*ret_code = code;
	return 0;
}

int kernel_compile(const char *target, char **ret_code, size_t *ret_size, char *buf, size_t size)
{
	_cleanup_(program_done) hiprtcProgram program = NULL;
	char arch[96], rounds[32], trips[32], spins[32];
	const char *options[] = { arch, rounds, trips, spins, "-O3" };
	hiprtcResult result;

	snprintf(arch, sizeof(arch), "--offload-arch=%s", target);
	snprintf(rounds, sizeof(rounds), "-DROUNDS=%d", (int)GAME_ROUNDS);
	snprintf(trips, sizeof(trips), "-DTRIPS=%u", GAME_TRIPS);
	snprintf(spins, sizeof(spins), "-DSPINS=%uu", GAME_SPINS);

	result = hiprtcCreateProgram(&program, kernel_source, "latency.hip", 0, NULL, NULL);
	if (result == HIPRTC_SUCCESS)
		result = hiprtcCompileProgram(program, ARRAY_SIZE(options), options);
	if (result != HIPRTC_SUCCESS)
		return failed(program, result, target, buf, size);
	return get_code(program, target, ret_code, ret_size, buf, size);
}
