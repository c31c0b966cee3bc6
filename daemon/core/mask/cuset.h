/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sets of compute units of one GPU, in the layout of its registers.
 *
 * One 32-bit word for each (XCC, shader engine) pair, at xcc * CUSET_ENGINES + engine;
 * bits 0..15 are the CUs of shader array 0, bits 16..31 those of array 1, each counted
 * among the CUs that work (harvested ones take no bit). That is the layout of
 * COMPUTE_STATIC_THREAD_MGMT_SEn (Linux, kfd_mqd_manager.c). The mask that SET_CU_MASK
 * takes has another order: codec.h.
 *
 * A cuset is a plain value: copy it with =, free nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#define CUSET_XCCS 8U
#define CUSET_ENGINES 8U    /* KFD_MAX_NUM_SE */
#define CUSET_ARRAYS 2U     /* KFD_MAX_NUM_SH_PER_SE */
#define CUSET_ARRAY_CUS 16U /* what one half of a word holds */
#define CUSET_PAIRS (CUSET_XCCS * CUSET_ENGINES)

struct cuset {
	uint32_t pair[CUSET_PAIRS];
};

static inline unsigned cuset_pair(unsigned xcc, unsigned engine)
{
	return xcc * CUSET_ENGINES + engine;
}

/* CUs in one word. Counts in parallel within it: the baseline of x86-64 has no popcount,
 * and without a multiply a loop over words fits vector registers. */
static inline unsigned cuset_count_word(uint32_t word)
{
	word -= (word >> 1) & UINT32_C(0x55555555);
	word = (word & UINT32_C(0x33333333)) + ((word >> 2) & UINT32_C(0x33333333));
	word = (word + (word >> 4)) & UINT32_C(0x0f0f0f0f);
	word += word >> 8;
	word += word >> 16;
	return word & 0x3f;
}

unsigned cuset_count(const struct cuset *set);
bool cuset_empty(const struct cuset *set);
bool cuset_equal(const struct cuset *a, const struct cuset *b);
bool cuset_overlap(const struct cuset *a, const struct cuset *b);
bool cuset_within(const struct cuset *inner, const struct cuset *outer);

/* set |= other, set &= ~other, set &= other. */
void cuset_add(struct cuset *set, const struct cuset *other);
void cuset_remove(struct cuset *set, const struct cuset *other);
void cuset_keep(struct cuset *set, const struct cuset *other);

/* The shader engines that have a CU in the set on any XCC, as bits. */
uint32_t cuset_engines(const struct cuset *set);

/* Removes the CUs of all other shader engines. */
void cuset_keep_engines(struct cuset *set, uint32_t engines);
