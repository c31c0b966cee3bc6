/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where a wave says that it runs: the registers HW_ID (gfx8, gfx9), HW_ID1 (gfx10 and
 * later) and XCC_ID (gfx94x, 0 elsewhere). Pure. The layout of HW_ID is that of HIP's
 * amd_device_functions.h (CU at 8, engine at 13); that of HW_ID1, and the third bit of the engine
 * on parts with eight, are general knowledge, not verified.
 *
 * Engine, array and XCC are numbered as in a mask. CUs are not: a CU that was fused off
 * keeps its number here and has none in a mask.
 */

#include <stdint.h>

#include "client/latency/unit.h"

/* target: "gfx90a". With WGPs the place is that of the WGP's first CU. */
void hw_id_place(const char *target, uint32_t hw_id, uint32_t xcc_id, struct place *ret);
