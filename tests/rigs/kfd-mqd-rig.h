/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Texts of kfd/mqds that tests write. */

#include <string.h>
#include <stdbool.h>
#include <errno.h>
#include <stdarg.h>

#include "check-cond.h"
#include "util/base.h"
#include "debugfs-text.h"

#define ROWS 64U /* of a complete descriptor */

/* A text and the queues that were parsed from it. */
struct page {
	char *text;
	size_t size;
	FILE *out;

	struct observed_mask *seen;
	size_t n;
	char why[200];
};

static const struct gpu_info gpus[] = {
	{ .name = "0000:03:00.0",
	  .gfx_target = 90006,
	  .kfd_gpu_id = 0x3a7c,
	  .geometry = { .xccs = 1,
			.engines = 4,
			.arrays = 1,
			.array_cus = 16,
			.active = { { { 15 }, { 15 }, { 15 }, { 15 } } } } },
	{ .name = "0000:04:00.0",
	  .gfx_target = 90402,
	  .kfd_gpu_id = 0x51,
	  .geometry = { .xccs = 2,
			.engines = 2,
			.arrays = 1,
			.array_cus = 4,
			.active = { { { 4 }, { 3 } }, { { 3 }, { 4 } } } } },
	{ .name = "0000:05:00.0",
	  .gfx_target = 90010,
	  .kfd_gpu_id = 0x90a,
	  .geometry = { .xccs = 1,
			.engines = 8,
			.arrays = 1,
			.array_cus = 14,
			.active = { { { 13 },
				      { 13 },
				      { 13 },
				      { 13 },
				      { 13 },
				      { 13 },
				      { 13 },
				      { 13 } } } } },
	{ .name = "0000:06:00.0",
	  .gfx_target = 110000,
	  .kfd_gpu_id = 0xb00,
	  .geometry = { .xccs = 1,
			.engines = 6,
			.arrays = 2,
			.array_cus = 8,
			.wgp = true,
			.active = { { { 8, 8 },
				      { 8, 8 },
				      { 8, 8 },
				      { 8, 8 },
				      { 8, 8 },
				      { 8, 8 } } } } },
	{ .name = "simulated", .gfx_target = 90006, .kfd_gpu_id = 0 },
};

struct page page_new(void);

PRINTF_LIKE(2, 3)
void page_add(struct page *page, const char *format, ...);

/* Adds rows of a descriptor, whose word i is word(i). */
void dump(struct page *page, unsigned rows, uint32_t (*word)(unsigned i));

uint32_t ones(unsigned i);

/* cp_hqd_queue_priority is at 0x218. */
uint32_t priority_of_15(unsigned i);

uint32_t number(unsigned i);

int parse(struct page *page);

void page_done(struct page *page);

/* Whether the text is refused with these words, and the results are unchanged. */
bool page_refused(struct page *page, const char *words);
