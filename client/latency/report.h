/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The report of a player; kernel.h has the same struct for the GPU. The host clears it before a
 * game: a field that is 0 afterwards was not written.
 */

#include <stdint.h>

#include "core/mask/cuset.h"

#define GAME_ROUNDS 9U                 /* counted rounds, after one for warming up */
#define GAME_TRIPS 256U                /* round trips in each round */
#define GAME_SPINS (UINT32_C(1) << 22) /* of waiting, some seconds; then a player gives up */

enum report_state {
	REPORT_NONE = 0,
	REPORT_CAME = 1,  /* but did not report its end */
	REPORT_ALONE = 2, /* the other player did not come */
	REPORT_LEFT = 3,  /* the other player came and stopped answering */
	REPORT_ENDED = 4,
};

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
