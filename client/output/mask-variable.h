/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The masks that AMD's runtimes make of the variables HSA_CU_MASK (ROCr: Flag::parse_masks() in
 * core/util/flag.cpp) and ROC_GLOBAL_CU_MASK (HIP: Device::getGlobalCUMask() in rocdevice.cpp). What they do not
 * understand they ignore without a message. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/mask/codec.h"

#define VARIABLE_GPUS 64U

struct variable_masks {
	bool set[VARIABLE_GPUS];
	uint32_t word[VARIABLE_GPUS][CODEC_WORDS];
	bool dropped;      /* some numbers of GPUs or CUs are beyond the last one */
	char problem[200]; /* what is ignored, and why; "": all was understood */
};

/* gpus, cus: of the GPUs that ROCr finds. Of GPUs that are not set no queue has a mask. -ENOMEM. */
int variable_parse_hsa(const char *value, unsigned gpus, unsigned cus, struct variable_masks *ret);

/* The mask of every queue of HIP, as that of GPU 0. A bit is `step` CUs. Not set: HIP ignores the value. */
void variable_parse_global(const char *value, unsigned cus, unsigned step,
			   struct variable_masks *ret);
