/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How ROCr reads HSA_CU_MASK, written anew from its rules (Flag::parse_masks() in
 * core/util/flag.cpp of ROCR-Runtime): what it ignores, it ignores silently, and the queue
 * then has every CU.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCR_GPUS 64U
#define ROCR_WORDS 64U

struct rocr_masks {
	bool set[ROCR_GPUS];
	uint32_t word[ROCR_GPUS][ROCR_WORDS];
	bool ignored; /* a part of the value was not understood: it and all after it */
};

/* n_gpus and max_cus are those of the GPUs that ROCr shows: ids above are dropped. */
void rocr_parse_masks(const char *value, unsigned n_gpus, unsigned max_cus, struct rocr_masks *ret);
