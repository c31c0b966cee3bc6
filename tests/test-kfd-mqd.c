/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd-mqd.h"

#include <errno.h>
#include <stdarg.h>

#include "check.h"
#include "core/base.h"

#define ROWS 64U /* of a whole descriptor */

/* A text that is written by hand, and what was read in it. */
struct page {
	char *text;
	size_t size;
	FILE *out;

	struct mask_seen *seen;
	size_t n;
	char why[200];
};

static const struct gpu_info gpus[] = {
	{ .name = "0000:03:00.0", .gfx_target = 90006, .kfd_gpu_id = 0x3a7c,
	  .geometry = { .xccs = 1, .engines = 4, .arrays = 1, .array_cus = 16,
			.active = { { { 15 }, { 15 }, { 15 }, { 15 } } } } },
	{ .name = "0000:04:00.0", .gfx_target = 90402, .kfd_gpu_id = 0x51,
	  .geometry = { .xccs = 2, .engines = 2, .arrays = 1, .array_cus = 4,
			.active = { { { 4 }, { 3 } }, { { 3 }, { 4 } } } } },
	{ .name = "0000:05:00.0", .gfx_target = 90010, .kfd_gpu_id = 0x90a,
	  .geometry = { .xccs = 1, .engines = 8, .arrays = 1, .array_cus = 14,
			.active = { { { 13 }, { 13 }, { 13 }, { 13 }, { 13 }, { 13 }, { 13 },
				      { 13 } } } } },
	{ .name = "0000:06:00.0", .gfx_target = 110000, .kfd_gpu_id = 0xb00,
	  .geometry = { .xccs = 1, .engines = 6, .arrays = 2, .array_cus = 8, .wgp = true,
			.active = { { { 8, 8 }, { 8, 8 }, { 8, 8 }, { 8, 8 }, { 8, 8 },
				      { 8, 8 } } } } },
	{ .name = "simulated", .gfx_target = 90006, .kfd_gpu_id = 0 },
};

static struct page page_new(void)
{
	return (struct page){0};
}

PRINTF_LIKE(2, 3)
static void say(struct page *page, const char *format, ...)
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
static void dump(struct page *page, unsigned rows, uint32_t (*word)(unsigned i))
{
	for (unsigned row = 0; row < rows; row++) {
		say(page, "    %08x:", row * 32);
		for (unsigned i = 0; i < 8; i++)
			say(page, " %08x", word(row * 8 + i));
		say(page, "\n");
	}
}

static uint32_t ones(unsigned i)
{
	(void)i;
	return UINT32_MAX;
}

/* cp_hqd_queue_priority is at 0x218. */
static uint32_t priority_of_15(unsigned i)
{
	return i == 0x218 / 4 ? 15 : i > 0x200 / 4 ? 0 : UINT32_MAX;
}

static uint32_t number(unsigned i)
{
	return i;
}

static int parse(struct page *page)
{
	if (page->out)
		CHECK(fclose(page->out) == 0);
	page->out = NULL;
	return kfd_mqds_parse(page->text ? page->text : "", page->size, gpus, ARRAY_SIZE(gpus),
			      &page->seen, &page->n, page->why, sizeof(page->why));
}

static void page_done(struct page *page)
{
	free(page->text);
	free(page->seen);
}

/* Whether it is refused with these words, and leaves what it returns alone. */
static bool refused(struct page *page, const char *words)
{
	bool so = parse(page) == -EBADMSG && strstr(page->why, words) && !page->seen &&
		  page->n == 0;

	if (!so)
		fprintf(stderr, "it says: %s\n", page->why);
	page_done(page);
	return so;
}

TEST(a_machine_that_nobody_uses_has_an_empty_text)
{
	struct page page = page_new();

	CHECK(parse(&page) == 0 && page.n == 0 && !page.seen);
}

TEST(each_compute_queue_of_each_process_is_a_row)
{
	struct page page = page_new();

	say(&page, "Process 4711 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	dump(&page, ROWS, ones);
	say(&page, "  Compute queue on device 3a7c\n");
	dump(&page, ROWS, number);
	say(&page, "Process 4712 PASID 0x8002:\nProcess 4713:\n  Compute queue on device 3a7c\n");
	dump(&page, ROWS, ones);
	CHECK(parse(&page) == 0 && page.n == 3);
	CHECK(page.seen[0].pid == 4711 && page.seen[0].unrestricted);
	CHECK(page.seen[0].kfd_gpu_id == 0x3a7c && cuset_count(&page.seen[0].cus) == 60);
	CHECK(page.seen[1].pid == 4711 && !page.seen[1].unrestricted);
	CHECK(page.seen[2].pid == 4713 && page.seen[2].unrestricted);
	page_done(&page);
}

/* Words 23, 24, 26, 27; 25 is another register. */
/* gfx9.4.3 has a descriptor for each XCC, all alike. */
TEST(a_queue_has_its_priority_whatever_the_gpu)
{
	for (unsigned i = 0; i < 4; i++) {
		struct page page = page_new();

		say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device %x\n",
		    gpus[i].kfd_gpu_id);
		for (unsigned xcc = 0; xcc < gpus[i].geometry.xccs; xcc++)
			dump(&page, ROWS, priority_of_15);
		say(&page, "  Compute queue on device %x\n", gpus[i].kfd_gpu_id);
		for (unsigned xcc = 0; xcc < gpus[i].geometry.xccs; xcc++)
			dump(&page, ROWS, ones);
		CHECK(parse(&page) == 0 && page.n == 2);
		CHECK(page.seen[0].priority == 15 && page.seen[0].unrestricted);
		CHECK(page.seen[1].priority == 15); /* no more than there are */
		page_done(&page);
	}
}

TEST(the_first_four_engines_are_around_the_ring_of_scratch)
{
	struct page page = page_new();
	const uint32_t *pair;

	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	dump(&page, ROWS, number);
	CHECK(parse(&page) == 0 && page.n == 1);
	pair = page.seen[0].cus.pair;
	CHECK(pair[0] == 23 && pair[1] == 24 && pair[2] == 26 && pair[3] == 27 && pair[4] == 0);
	page_done(&page);
}

TEST(the_other_four_engines_are_where_their_generation_has_them)
{
	struct page page = page_new();
	const uint32_t *pair;

	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 90a\n");
	dump(&page, ROWS, number);
	say(&page, "  Compute queue on device b00\n");
	dump(&page, ROWS, number);
	CHECK(parse(&page) == 0 && page.n == 2);
	pair = page.seen[0].cus.pair;
	CHECK(pair[3] == 27 && pair[4] == 39 && pair[5] == 40 && pair[6] == 41 && pair[7] == 42);
	pair = page.seen[1].cus.pair;
	CHECK(pair[3] == 27 && pair[4] == 44 && pair[5] == 45 && pair[6] == 0);
	page_done(&page);
}

TEST(a_queue_on_several_xccs_has_a_descriptor_for_each)
{
	struct page page = page_new();

	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 51\n");
	dump(&page, ROWS, number);
	dump(&page, ROWS, ones);
	CHECK(parse(&page) == 0 && page.n == 1 && !page.seen[0].unrestricted);
	CHECK(page.seen[0].cus.pair[cuset_pair(0, 0)] == (23 & 0xf));
	CHECK(page.seen[0].cus.pair[cuset_pair(0, 1)] == (24 & 0x7));
	CHECK(page.seen[0].cus.pair[cuset_pair(1, 0)] == 0x7);
	CHECK(page.seen[0].cus.pair[cuset_pair(1, 1)] == 0xf);
	page_done(&page);
}

TEST(an_sdma_queue_is_passed_over_however_often_it_is_printed)
{
	struct page page = page_new();

	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 51\n");
	dump(&page, ROWS, ones);
	dump(&page, ROWS, ones);
	say(&page, "  SDMA queue on device 51\n");
	dump(&page, 16, number);
	dump(&page, 16, number);
	say(&page, "  SDMA queue on device 51\n");
	say(&page, "  Compute queue on device 3a7c\n");
	dump(&page, ROWS, ones);
	CHECK(parse(&page) == 0 && page.n == 2);
	CHECK(page.seen[0].kfd_gpu_id == 0x51 && page.seen[1].kfd_gpu_id == 0x3a7c);
	page_done(&page);
}

TEST(queues_of_gpus_that_nobody_knows_are_passed_over)
{
	struct page page = page_new();

	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device dead\n");
	dump(&page, ROWS, ones);
	dump(&page, 3, ones);
	say(&page, "  Compute queue on device 0\n");
	dump(&page, 1, ones);
	CHECK(parse(&page) == 0 && page.n == 0);
	page_done(&page);
}

TEST(what_else_the_kernel_says_of_queues_is_passed_over)
{
	struct page page = page_new();

	say(&page, "Process 1 PASID 0x8001:\n  DIQ on device 3a7c\n");
	dump(&page, ROWS, ones);
	say(&page, "  Bad user queue type 9 on device 3a7c\n"
		   "  Bad kernel queue type 9 on device 3a7c\n"
		   "  Weird: Queue node with neither kernel nor user queue\n");
	CHECK(parse(&page) == 0 && page.n == 0);
	page_done(&page);
}

TEST(a_descriptor_that_is_longer_than_this_kernels_is_taken)
{
	struct page page = page_new();

	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 51\n");
	dump(&page, ROWS + 4, ones);
	dump(&page, ROWS + 4, ones);
	CHECK(parse(&page) == 0 && page.n == 1);
	page_done(&page);
}

TEST(a_descriptor_that_breaks_off_is_refused_with_its_line)
{
	struct page page = page_new();

	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	dump(&page, ROWS - 1, ones);
	CHECK(refused(&page, "line 65: the queue before has 0 whole descriptors"));

	page = page_new();
	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 51\n");
	dump(&page, ROWS, ones);
	CHECK(refused(&page, "1 whole descriptors, and 0000:04:00.0 2 XCCs"));

	page = page_new();
	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 51\n");
	dump(&page, 10, ones);
	dump(&page, ROWS, ones);
	CHECK(refused(&page, "line 13: a descriptor ends after 320 of 2048 bytes"));

	page = page_new();
	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	CHECK(refused(&page, "0 whole descriptors"));

	page = page_new();
	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\nProcess 2:\n");
	CHECK(refused(&page, "line 3: the queue before has 0 whole descriptors"));
}

TEST(more_descriptors_than_xccs_are_refused)
{
	struct page page = page_new();

	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	dump(&page, ROWS, ones);
	dump(&page, ROWS, ones);
	CHECK(refused(&page, "line 67: more descriptors than the 1 XCCs of 0000:03:00.0"));
}

TEST(a_text_that_ends_within_a_line_is_refused)
{
	struct page page = page_new();

	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n    00000000: 0000");
	CHECK(refused(&page, "line 3: the text ends within a line: \"    00000000: 0000\""));

	page = page_new();
	say(&page, "Process");
	CHECK(refused(&page, "line 1: the text ends within a line"));
}

TEST(a_row_that_is_out_of_place_is_refused)
{
	struct page page = page_new();

	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	dump(&page, 2, ones);
	say(&page, "    00000060: 0 0\n");
	CHECK(refused(&page, "line 5: no row of a descriptor"));

	page = page_new();
	say(&page, "Process 1 PASID 0x8001:\n  SDMA queue on device 3a7c\n");
	dump(&page, 2, ones);
	say(&page, "    00000060: 00000000\n");
	CHECK(refused(&page, "line 5: a row at 0x60 where 0x40 comes next"));

	page = page_new();
	say(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n"
		   "    00000000: 00000000 00000000\n");
	CHECK(refused(&page, "line 3: 2 words where a descriptor has 8"));

	page = page_new();
	dump(&page, 1, ones);
	CHECK(refused(&page, "line 1: words that belong to no queue"));

	page = page_new();
	say(&page, "Process 1 PASID 0x8001:\n");
	dump(&page, 1, ones);
	CHECK(refused(&page, "line 2: words that belong to no queue"));
}

/* One line behind a good beginning. */
static bool line_refused(const char *line, const char *words)
{
	struct page page = page_new();

	say(&page, "Process 1 PASID 0x8001:\n  SDMA queue on device 3a7c\n%s\n", line);
	return refused(&page, words);
}

TEST(lines_that_the_kernel_does_not_print_are_refused_and_quoted)
{
	CHECK(line_refused("", "neither a process, a queue nor a row of one: \"\""));
	CHECK(line_refused("\x01\xff stuff", "one: \"?? stuff\""));
	CHECK(line_refused("Process x PASID 1:", "no number of a process"));
	CHECK(line_refused("Process 0 PASID 0x1:", "no number of a process"));
	CHECK(line_refused("Process 99999999999 PASID 0x1:", "no number of a process"));
	CHECK(line_refused("Process 12x PASID 0x1:", "no number of a process"));
	CHECK(line_refused("Process 12 PASID 0x1", "no number of a process"));
	CHECK(line_refused("Process 12", "no number of a process"));
	CHECK(line_refused("Process -1:", "no number of a process"));
	CHECK(line_refused("  Compute queue on device ", "no id of a GPU"));
	CHECK(line_refused("  Compute queue on device 3A7C", "no id of a GPU"));
	CHECK(line_refused("  Compute queue on device 03a7c", "no id of a GPU"));
	CHECK(line_refused("  Compute queue on device 123456789", "no id of a GPU"));
	CHECK(line_refused("  SDMA queue on device 3a7c!", "no id of a GPU"));
	CHECK(line_refused("    00000000", "no row of a descriptor"));
	CHECK(line_refused("    0000000g: 00000000", "no row of a descriptor"));
	CHECK(line_refused("    00000000: 0000000", "no row of a descriptor"));
	CHECK(line_refused("    00000000: 00000000 ", "no row of a descriptor"));
	CHECK(line_refused("    00000000:-00000001", "no row of a descriptor"));
	CHECK(line_refused("    00000000: 00000000 00000000 00000000 00000000 00000000 00000000 "
			   "00000000 00000000 00000000", "no row of a descriptor"));
}

TEST(a_queue_before_any_process_is_refused)
{
	struct page page = page_new();

	say(&page, "  Compute queue on device 3a7c\n");
	CHECK(refused(&page, "line 1: no process to begin with"));
}

TEST(bytes_that_are_no_text_are_refused)
{
	static const char zeros[4096], newlines[] = "\n\n\n\n";
	struct mask_seen *seen = NULL;
	char why[200];
	size_t n = 0;

	CHECK(kfd_mqds_parse(zeros, sizeof(zeros), gpus, 1, &seen, &n, why, sizeof(why)) ==
	      -EBADMSG);
	CHECK(strstr(why, "line 1: the text ends within a line: \"????"));
	CHECK(kfd_mqds_parse(newlines, 4, gpus, 1, &seen, &n, why, sizeof(why)) == -EBADMSG);
	CHECK(!seen && n == 0);
}

/* Nothing is said of lengths in the text: a line of a million bytes is one line. */
TEST(a_line_that_does_not_end_costs_no_more_than_its_bytes)
{
	struct page page = page_new();

	say(&page, "Process 1 %01000000d:\n", 0);
	say(&page, "%01000000d\n", 0);
	CHECK(refused(&page, "line 2: neither a process, a queue nor a row of one: \"0000"));
}

TEST(a_short_buffer_for_the_sentence_is_respected)
{
	struct mask_seen *seen = NULL;
	char why[8] = "1234567";
	size_t n = 0;

	CHECK(kfd_mqds_parse("x\n", 2, gpus, 1, &seen, &n, why, 4) == -EBADMSG);
	CHECK(memcmp(why, "kfd\000567", 8) == 0);
	CHECK(kfd_mqds_parse("x\n", 2, gpus, 1, &seen, &n, NULL, 0) == -EBADMSG);
}

/* One in ten is a compute queue: as many as fit into what is read at the most. */
TEST(a_hundred_thousand_queues_are_all_gone_through)
{
	const unsigned queues = 100000;
	struct page page = page_new(), descriptor = page_new();

	say(&descriptor, "  Compute queue on device 3a7c\n");
	dump(&descriptor, ROWS, ones);
	CHECK(fclose(descriptor.out) == 0);
	for (unsigned i = 0; i < queues; i++) {
		if (i % 100 == 0)
			say(&page, "Process %u PASID 0x8001:\n", i + 1);
		if (i % 10 == 0)
			say(&page, "%s", descriptor.text);
		else
			say(&page, "  SDMA queue on device 3a7c\n    00000000: 00000001\n");
	}
	CHECK(parse(&page) == 0 && page.n == queues / 10);
	for (unsigned i = 0; i < page.n; i++)
		CHECK(page.seen[i].pid == (pid_t)(i / 10 * 100 + 1) && page.seen[i].unrestricted);
	free(descriptor.text);
	page_done(&page);
}
