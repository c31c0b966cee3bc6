/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a player writes: kernel.h has the same struct for the GPU. The host clears it before
 * a game; what is still 0 afterwards was not written by a kernel.
 */

#include <stdint.h>

#include "core/mask/cuset.h"

#define GAME_ROUNDS 9U                 /* that count; one before them warms up */
#define GAME_TRIPS 256U                /* there and back, in each round */
#define GAME_SPINS (UINT32_C(1) << 22) /* of waiting: seconds, then a player gives up */

enum report_state {
	REPORT_NONE = 0,
	REPORT_CAME = 1,  /* and was never seen to end */
	REPORT_ALONE = 2, /* the other did not come */
	REPORT_LEFT = 3,  /* the other came, and stopped answering */
	REPORT_ENDED = 4,
};

struct report {
	uint32_t state;         /* enum report_state */
	uint32_t hw_id, xcc_id; /* registers as they were read */
	uint32_t rounds;
	uint64_t ticks[GAME_ROUNDS]; /* of the first player only */
};

/* One game: a workgroup of each player on every XCC. */
struct outcome {
	struct report report[2][CUSET_XCCS];
	double tick_ns;
};
