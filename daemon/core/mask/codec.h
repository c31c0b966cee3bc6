/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How the kernel deals the bits of a CU mask over a GPU: mqd_symmetrically_map_cu_mask()
 * in drivers/gpu/drm/amd/amdkfd/kfd_mqd_manager.c (Linux 6.12; since 5.15 for one XCC).
 *
 * Bits go to the XCCs in turn, within one to the shader engines in turn, then to the
 * other shader array, then to the next CU; with WGPs two bits at a time. Where an engine
 * has run out of CUs it is skipped and takes no bit, so bit % engines is wrong in the
 * tail of an uneven harvest. A mask in this order is 32-bit words, bit i % 32 of word
 * i / 32: what SET_CU_MASK, HSA_CU_MASK and "au" on the bus carry.
 */

#include <stdint.h>
#include <stddef.h>

#include "core/mask/cuset.h"
#include "core/mask/geometry.h"

#define CODEC_BITS 1024U /* the ioctl clips longer masks */
#define CODEC_WORDS (CODEC_BITS / 32U)
#define CODEC_NONE UINT8_MAX

struct codec {
	unsigned n_bits; /* the GPU's CUs: the kernel ignores what follows */
	unsigned step;   /* bits that go together: 2 with WGPs */
	struct {
		uint8_t pair; /* DEAL_NONE: this bit reaches no CU */
		uint8_t cu;   /* bit in the pair's word */
	} at[CODEC_BITS];
};

void codec_init(struct codec *codec, const struct geometry *geometry);

/* Words that a full mask of this GPU takes. */
size_t codec_words(const struct codec *codec);

/* What the hardware gets of a mask, as the kernel computes it: a bit that is missing is
 * a CU that is off, bits past the GPU's last CU mean nothing, either bit of a WGP's pair
 * turns both on. */
void codec_decode(const struct codec *codec, const uint32_t *mask, size_t n_words,
		  struct cuset *ret);

/* The mask for a set; writes deal_words() words. CUs that no bit reaches are left out. */
void codec_encode(const struct codec *codec, const struct cuset *set, uint32_t *ret_mask);

/* Returns 0 if the kernel takes the mask and every XCC gets a CU; else -EINVAL and in
 * buf why not: no bit set (hangs the queue), half a WGP (the kernel refuses it), an XCC
 * without a CU (its share of a grid would never end), bits past the last CU. */
int codec_check(const struct codec *codec, const struct geometry *geometry, const uint32_t *mask,
		size_t n_words, char *buf, size_t size);
