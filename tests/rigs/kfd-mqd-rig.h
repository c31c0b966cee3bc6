/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Texts of kfd/mqds, written by hand. */

#include <errno.h>
#include <stdarg.h>

#include "check.h"
#include "util/base.h"
#include "hw/kfd-mqd.h"

#define ROWS 64U /* of a whole descriptor */

/* A text that is written by hand, and what was read in it. */
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

static inline struct page page_new(void)
{
	return (struct page){ 0 };
}

PRINTF_LIKE(2, 3)
static inline void say(struct page *page, const char *format, ...)
{
	va_list ap;

	if (!page->out) {
		page->out = open_memstream(&page->text, &page->size);
		CHECK(page->out);
	}
	va_start(ap, format);
	CHECK(vfprintf(page->out, format, ap) >= 0);
	va_end(ap);
}

/* Rows of a descriptor whose word i is word(i). */
static inline void dump(struct page *page, unsigned rows, uint32_t (*word)(unsigned i))
{
	for (unsigned row = 0; row < rows; row++) {
		say(page, "    %08x:", row * 32);
		for (unsigned i = 0; i < 8; i++)
			say(page, " %08x", word(row * 8 + i));
		say(page, "\n");
	}
}

static inline uint32_t ones(unsigned i)
{
	(void)i;
	return UINT32_MAX;
}

/* cp_hqd_queue_priority is at 0x218. */
static inline uint32_t priority_of_15(unsigned i)
{
	return i == 0x218 / 4 ? 15 : i > 0x200 / 4 ? 0 : UINT32_MAX;
}

static inline uint32_t number(unsigned i)
{
	return i;
}

static inline int parse(struct page *page)
{
	if (page->out)
		CHECK(fclose(page->out) == 0);
	page->out = NULL;
	return kfd_mqds_parse(page->text ? page->text : "", page->size, gpus, ARRAY_SIZE(gpus),
			      &page->seen, &page->n, page->why, sizeof(page->why));
}

static inline void page_done(struct page *page)
{
	free(page->text);
	free(page->seen);
}

/* Whether it is refused with these words, and leaves what it returns alone. */
static inline bool refused(struct page *page, const char *words)
{
	bool so = parse(page) == -EBADMSG && strstr(page->why, words) && !page->seen &&
		  page->n == 0;

	if (!so)
		fprintf(stderr, "it says: %s\n", page->why);
	page_done(page);
	return so;
}
