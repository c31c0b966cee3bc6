/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The kernels of a game, and the report that they write. */

#include <stddef.h>
#include <stdint.h>

#include "core/mask/cuset.h"

#define KERNEL_NAME "gpuarb_play"
#define KERNEL_CLEAR "gpuarb_clear"
#define KERNEL_CLOCK "gpuarb_clock"
#define KERNEL_SPIN "gpuarb_spin"
#define KERNEL_READ "gpuarb_read"
#define KERNEL_GAP "gpuarb_gap"
#define KERNEL_MULTIPLY "gpuarb_multiply"

/* In the time that KERNEL_CLOCK writes: a model of a GPU has written it. No clock runs so long. */
#define KERNEL_CLOCK_MODEL (UINT64_C(1) << 63)

extern const char kernel_source[];

/* Compiles the kernels with hiprtc for a target ("gfx906:sramecc+:xnack-"), without a GPU. -ENOMEM;
 * -EIO with a message in buf. The caller frees *ret_code. */
int kernel_compile(const char *target, char **ret_code, size_t *ret_size, char *buf, size_t size);

#define GAME_ROUNDS 9U                 /* counted rounds, after one for warming up */
#define GAME_TRIPS 256U                /* round trips in each round */
#define GAME_SPINS (UINT32_C(1) << 22) /* of waiting, some seconds; then a player gives up */

enum game_rules {                     /* bits */
		  GAME_SAME_LINE = 1, /* both flags are in one cache line */
		  GAME_SWAP = 2,      /* flags are read and written by compare-and-swap */
};

enum report_state {
	REPORT_NONE = 0,
	REPORT_CAME = 1,  /* but did not report its end */
	REPORT_ALONE = 2, /* the other player did not come */
	REPORT_LEFT = 3,  /* the other player came and stopped answering */
	REPORT_ENDED = 4,
};

/* The report of a player. The host clears it before a game: a field that is 0 afterwards was not
 * written. */
struct report {
	uint32_t state;         /* enum report_state */
	uint32_t hw_id, xcc_id; /* values of the registers */
	uint32_t rounds;
	uint64_t ticks[GAME_ROUNDS]; /* of the first player only */
};

/* One game: a workgroup of each player on every XCC. */
struct outcome {
	struct report report[2][CUSET_XCCS];
	double tick_ns;
};

#define SPIN_THREADS 1024U  /* of a work-group: two fit a CU */
#define MULTIPLY_SIZE 1024U /* rows and columns of a matrix: that of the published measurements */

enum wave_state {
	WAVE_NONE = 0,
	WAVE_ENDED = 1,
};

/* The report of a work-group of KERNEL_SPIN, KERNEL_READ and KERNEL_MULTIPLY, cleared as above. */
struct wave {
	uint32_t state; /* enum wave_state */
	uint32_t hw_id, xcc_id, unused;
	uint64_t start, end; /* ticks of the constant clock */
};
