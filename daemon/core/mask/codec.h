/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Encodes a set of CUs to a CU mask in KFD order, and decodes it. The order is that of
 * mqd_symmetrically_map_cu_mask() in drivers/gpu/drm/amd/amdkfd/kfd_mqd_manager.c (Linux 6.12;
 * since 5.15 for one XCC).
 *
 * The kernel gives bits to the XCCs in turn. Within an XCC it gives them to the shader engines in
 * turn, then to the other shader array, then to the next CU; with WGPs two bits at a time. It skips
 * an engine that has no further CU, so bit % engines is wrong for the last bits of an uneven
 * harvest. A CU mask is a list of 32-bit words: bit i is bit i % 32 of word i / 32. SET_CU_MASK,
 * HSA_CU_MASK and "au" on the bus have this order.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/mask/cuset.h"
#include "core/mask/geometry.h"

#define CODEC_BITS 1024U /* the ioctl clips longer masks */
#define CODEC_WORDS (CODEC_BITS / 32U)
#define CODEC_NONE UINT8_MAX

struct codec {
	unsigned n_bits; /* the GPU's CUs: the kernel ignores what follows */
	unsigned step;   /* bits that go together: 2 with WGPs */
	struct {
		uint8_t pair; /* CODEC_NONE: this bit stands for no CU */
		uint8_t cu;   /* bit in the pair's word */
	} at[CODEC_BITS];
};

/* Whether the kernel gives bits in this order on GPUs of this gfx target: 90006 for gfx906. On gfx12.1
 * it does so by a function of its own, mqd_symmetrically_map_cu_mask_v12_1() in
 * kfd_mqd_manager_v12_1.c, where each bit is a WGP. */
bool codec_knows(unsigned gfx_target);

/* Whether kfd/mqds and kfd/hqds show the registers of its queues as hw/kfd-mqd.c reads them. Those of gfx7
 * (struct cik_mqd) and gfx12.1 (struct v12_1_compute_mqd, two bits for a CU) differ. */
bool codec_knows_descriptor(unsigned gfx_target);

void codec_init(struct codec *codec, const struct geometry *geometry);

/* The number of words of a mask of this GPU. */
size_t codec_words(const struct codec *codec);

/* The CUs that the hardware uses with this mask. A word that is missing counts as 0, bits above
 * the last CU of the GPU are ignored, and either bit of a WGP selects both of its CUs. */
void codec_decode(const struct codec *codec, const uint32_t *mask, size_t n_words,
		  struct cuset *ret);

/* Writes the mask of a set, codec_words() words. CUs that no bit stands for are left out. */
void codec_encode(const struct codec *codec, const struct cuset *set, uint32_t *ret_mask);

/* Returns 0 if the kernel takes the mask and the hardware keeps to it; else -EINVAL and in buf why
 * not: no bit set, half a WGP (the kernel refuses it, and ROCr goes on without a mask), an XCC
 * without a CU (it runs unmasked), bits past the last CU. */
int codec_check(const struct codec *codec, const struct geometry *geometry, const uint32_t *mask,
		size_t n_words, char *buf, size_t size);

/* The CUs and the priority of one compute queue, read from its hardware queue descriptor. A process
 * has a row for each of its queues. */
struct observed_mask {
	pid_t pid; /* in the namespace that the kernel reports: the initial one */
	uint32_t kfd_gpu_id;
	struct cuset cus;  /* CUs that work: those fused off are left out */
	unsigned priority; /* 0 to 15 */
	uint32_t doorbell; /* identifies the queue on its GPU */
	bool active;       /* on the run list; false where the kernel shows none */
	bool sdma;         /* a queue of an SDMA engine: of the rest only the doorbell is set */
};

/*
 * The registers COMPUTE_STATIC_THREAD_MGMT_SEn of one queue, at cuset_pair(xcc, engine), as CUs
 * of the GPU. Bits of CUs, arrays, engines and XCCs that the GPU does not have are ignored, and an XCC
 * without a bit counts as what it is: unmasked (geometry_occupied());
 * codec_encode() makes a mask of the set.
 */
void observed_mask_from_words(const struct geometry *geometry, const uint32_t words[CUSET_PAIRS],
			      struct cuset *ret);
