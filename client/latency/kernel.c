/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/kernel.h"

#include <errno.h>
#include <hip/hiprtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"

/*
 * ROUNDS, TRIPS, SPINS and THREADS are options of the compiler; struct report is that of the header.
 *
 * gpuarb_play: one workgroup of one thread on each XCC. Each lane plays with the lane of the same
 * number of the other kernel. The player waits for its flag `mine` and writes the other player's
 * flag `theirs`. Turns are numbers that only grow, so no flag is cleared during a game. Each wait
 * is limited: the other player may never come. By GAME_SWAP each access is a compare-and-swap: a turn is
 * one more than the last one of its flag.
 */
/*
 * gpuarb_spin: each work-group multiplies for a while, and reports where and when it ran. The test of the
 * product keeps the compiler from leaving it out; it is never true. gpuarb_read: the same with reading
 * memory that is all zeroes. gpuarb_multiply: a product of two matrices, with a thread for each element, as in
 * «worst practices» (RTNS 2021). gpuarb_gap: reads the clock for a while, and its first thread reports that it
 * began, and the longest time between two readings.
 */
/* clang-format off */
const char kernel_source[] =
"struct report {\n"
"	unsigned state, hw_id, xcc_id, rounds;\n"
"	unsigned long long ticks[ROUNDS];\n"
"};\n"
"\n"
"#if defined(__GFX8__) || defined(__GFX9__)\n"
"#define PLACE_REGISTER 4\n"
"#else\n"
"#define PLACE_REGISTER 23\n"
"#endif\n"
"#define XCC_REGISTER 20\n"
"#define WHOLE_REGISTER(id) (31 << 11 | (id))\n"
"#define SCOPE __HIP_MEMORY_SCOPE_AGENT\n"
"\n"
"static __device__ unsigned long long now()\n"
"{\n"
"#if defined(__GFX8__) || defined(__GFX9__) || defined(__GFX10__)\n"
"	return __builtin_amdgcn_s_memrealtime();\n"
"#else\n"
"	return __builtin_amdgcn_s_sendmsg_rtnl(0x83);\n"
"#endif\n"
"}\n"
"\n"
"static __device__ unsigned xcc_id()\n"
"{\n"
"#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__)\n"
"	return __builtin_amdgcn_s_getreg(WHOLE_REGISTER(XCC_REGISTER));\n"
"#else\n"
"	return 0;\n"
"#endif\n"
"}\n"
"\n"
"static __device__ bool swap_to(unsigned *flag, unsigned old, unsigned turn)\n"
"{\n"
"	return __hip_atomic_compare_exchange_strong(flag, &old, turn, __ATOMIC_RELAXED,\n"
"						    __ATOMIC_RELAXED, SCOPE);\n"
"}\n"
"\n"
"static __device__ void pass(unsigned *flag, unsigned turn, bool swap)\n"
"{\n"
"	if (swap)\n"
"		swap_to(flag, turn - 1, turn);\n"
"	else\n"
"		__hip_atomic_store(flag, turn, __ATOMIC_RELAXED, SCOPE);\n"
"}\n"
"\n"
"static __device__ bool await(unsigned *flag, unsigned turn, bool swap)\n"
"{\n"
"	for (unsigned i = 0; i < SPINS; i++)\n"
"		if (swap ? swap_to(flag, turn, turn)\n"
"			 : __hip_atomic_load(flag, __ATOMIC_RELAXED, SCOPE) == turn)\n"
"			return true;\n"
"	return false;\n"
"}\n"
"\n"
"static __device__ bool serve(unsigned *mine, unsigned *theirs, unsigned turn, bool first,\n"
"		bool swap)\n"
"{\n"
"	if (first) {\n"
"		pass(theirs, turn, swap);\n"
"		return await(mine, turn, swap);\n"
"	}\n"
"	if (!await(mine, turn, swap))\n"
"		return false;\n"
"	pass(theirs, turn, swap);\n"
"	return true;\n"
"}\n"
"\n"
"extern \"C\" __global__ void gpuarb_play(unsigned *mine, unsigned *theirs, unsigned stride,\n"
"		unsigned first, unsigned rules, struct report *reports)\n"
"{\n"
"	unsigned lane = __builtin_amdgcn_workgroup_id_x();\n"
"	struct report *report = reports + lane;\n"
"	unsigned turn = 1;\n"
"	bool swap = rules & 2;\n"
"\n"
"	mine += lane * stride;\n"
"	theirs += lane * stride;\n"
"	report->hw_id = __builtin_amdgcn_s_getreg(WHOLE_REGISTER(PLACE_REGISTER));\n"
"	report->xcc_id = xcc_id();\n"
"	report->state = 1;\n"
"\n"
"	if (!serve(mine, theirs, turn++, first, swap)) {\n"
"		report->state = 2;\n"
"		return;\n"
"	}\n"
"	for (int round = -1; round < ROUNDS; round++) {\n"
"		unsigned long long start = now();\n"
"\n"
"		for (unsigned trip = 0; trip < TRIPS; trip++) {\n"
"			if (!serve(mine, theirs, turn++, first, swap)) {\n"
"				report->state = 3;\n"
"				return;\n"
"			}\n"
"		}\n"
"		if (round >= 0 && first)\n"
"			report->ticks[round] = now() - start;\n"
"	}\n"
"	report->rounds = ROUNDS;\n"
"	report->state = 4;\n"
"}\n"
"\n"
"extern \"C\" __global__ void gpuarb_clear(unsigned *flags, unsigned n)\n"
"{\n"
"	for (unsigned i = 0; i < n; i++)\n"
"		pass(flags + i, 0, false);\n"
"}\n"
"\n"
"struct wave {\n"
"	unsigned state, hw_id, xcc_id, unused;\n"
"	unsigned long long start, end;\n"
"};\n"
"\n"
"static __device__ void end(struct wave *waves, unsigned long long start, unsigned state)\n"
"{\n"
"	struct wave *wave = waves + __builtin_amdgcn_workgroup_id_x();\n"
"\n"
"	if (__builtin_amdgcn_workitem_id_x() != 0)\n"
"		return;\n"
"	wave->hw_id = __builtin_amdgcn_s_getreg(WHOLE_REGISTER(PLACE_REGISTER));\n"
"	wave->xcc_id = xcc_id();\n"
"	wave->start = start;\n"
"	wave->end = now();\n"
"	wave->state = state;\n"
"}\n"
"\n"
"extern \"C\" __global__ void gpuarb_spin(struct wave *waves, unsigned spins)\n"
"{\n"
"	unsigned long long start = now();\n"
"	float product = 1.0f + __builtin_amdgcn_workitem_id_x();\n"
"\n"
"	for (unsigned i = 0; i < spins; i++)\n"
"		product = __builtin_fmaf(product, 0.5f, 1.0f);\n"
"	end(waves, start, product > 0 ? 1 : 0);\n"
"}\n"
"\n"
"extern \"C\" __global__ void gpuarb_read(struct wave *waves, unsigned spins, const uint4 *memory,\n"
"		unsigned mask, unsigned groups)\n"
"{\n"
"	unsigned long long start = now();\n"
"	unsigned at = __builtin_amdgcn_workgroup_id_x() * THREADS + __builtin_amdgcn_workitem_id_x();\n"
"	unsigned sum = 0;\n"
"\n"
"	for (unsigned i = 0; i < spins; i++, at += groups * THREADS)\n"
"		sum |= memory[at & mask].x;\n"
"	end(waves, start, sum == 0 ? 1 : 2);\n"
"}\n"
"\n"
"extern \"C\" __global__ void gpuarb_multiply(struct wave *waves, unsigned size, const float *a,\n"
"		const float *b, float *product)\n"
"{\n"
"	unsigned long long start = now();\n"
"	unsigned at = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +\n"
"		__builtin_amdgcn_workitem_id_x();\n"
"	float sum = 0;\n"
"\n"
"	for (unsigned i = 0; i < size && at < size * size; i++)\n"
"		sum += a[at / size * size + i] * b[i * size + at % size];\n"
"	if (at < size * size)\n"
"		product[at] = sum;\n"
"	end(waves, start, 1);\n"
"}\n"
"\n"
"extern \"C\" __global__ void gpuarb_gap(unsigned long long *report, unsigned long long ticks)\n"
"{\n"
"	bool tells = __builtin_amdgcn_workgroup_id_x() + __builtin_amdgcn_workitem_id_x() == 0;\n"
"	unsigned long long start = now(), last = start, longest = 0;\n"
"\n"
"	if (tells)\n"
"		report[0] = 1;\n"
"	__threadfence_system();\n"
"	while (last - start < ticks) {\n"
"		unsigned long long time = now();\n"
"\n"
"		longest = time - last > longest ? time - last : longest;\n"
"		last = time;\n"
"	}\n"
"	if (!tells)\n"
"		return;\n"
"	report[1] = longest;\n"
"	report[0] = 2;\n"
"}\n"
"\n"
"extern \"C\" __global__ void gpuarb_clock(unsigned long long *time)\n"
"{\n"
"	*time = now();\n"
"}\n";
/* clang-format on */

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
	char arch[96], rounds[32], trips[32], spins[32], threads[32];
	const char *options[] = { arch, rounds, trips, spins, threads, "-O3" };
	hiprtcResult result;

	snprintf(arch, sizeof(arch), "--offload-arch=%s", target);
	snprintf(rounds, sizeof(rounds), "-DROUNDS=%d", (int)GAME_ROUNDS);
	snprintf(trips, sizeof(trips), "-DTRIPS=%u", GAME_TRIPS);
	snprintf(spins, sizeof(spins), "-DSPINS=%uu", GAME_SPINS);
	snprintf(threads, sizeof(threads), "-DTHREADS=%uu", SPIN_THREADS);

	result = hiprtcCreateProgram(&program, kernel_source, "latency.hip", 0, NULL, NULL);
	if (result == HIPRTC_SUCCESS)
		result = hiprtcCompileProgram(program, ARRAY_SIZE(options), options);
	if (result != HIPRTC_SUCCESS)
		return failed(program, result, target, buf, size);
	return get_code(program, target, ret_code, ret_size, buf, size);
}
