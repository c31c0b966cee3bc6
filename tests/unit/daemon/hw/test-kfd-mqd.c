/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Texts as the kernel prints them, and others. */

#include "check.h"
#include "kfd-mqd-rig.h"
#include "lack.h"

TEST(empty_text_has_no_queue)
{
	struct page page = page_new();

	CHECK(parse(&page) == 0 && page.n == 0 && !page.seen);
}

FIXTURE(struct page, page, *page = page_new(), page_done(page));

TEST_WITH(every_compute_queue_of_every_process_is_a_row, struct page *page)
{
	page_add(page, "Process 4711 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	dump(page, ROWS, ones);
	page_add(page, "  Compute queue on device 3a7c\n");
	dump(page, ROWS, number);
	page_add(page,
		 "Process 4712 PASID 0x8002:\nProcess 4713:\n  Compute queue on device 3a7c\n");
	dump(page, ROWS, ones);
	CHECK(parse(page) == 0 && page->n == 3);
	CHECK(page->seen[0].pid == 4711);
	CHECK(page->seen[0].kfd_gpu_id == 0x3a7c && cuset_count(&page->seen[0].cus) == 60);
	CHECK(page->seen[1].pid == 4711 && cuset_count(&page->seen[1].cus) < 60);
	CHECK(page->seen[2].pid == 4713 && cuset_count(&page->seen[2].cus) == 60);
}

/* Words 23, 24, 26, 27; 25 is another register. */
/* gfx9.4.3 prints the same descriptor for each XCC. */
TEST(priority_is_read_on_every_generation)
{
	for (unsigned i = 0; i < 4; i++) {
		struct page page = page_new();

		page_add(&page, "Process 1 PASID 0x8001:\n  Compute queue on device %x\n",
			 gpus[i].kfd_gpu_id);
		for (unsigned xcc = 0; xcc < gpus[i].geometry.xccs; xcc++)
			dump(&page, ROWS, priority_of_15);
		page_add(&page, "  Compute queue on device %x\n", gpus[i].kfd_gpu_id);
		for (unsigned xcc = 0; xcc < gpus[i].geometry.xccs; xcc++)
			dump(&page, ROWS, ones);
		CHECK(parse(&page) == 0 && page.n == 2);
		CHECK(page.seen[0].priority == 15);
		CHECK(page.seen[1].priority == 15); /* the highest priority */
		page_done(&page);
	}
}

TEST_WITH(masks_of_the_first_four_engines_are_around_tmpring_size, struct page *page)
{
	const uint32_t *pair;

	page_add(page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	dump(page, ROWS, number);
	CHECK(parse(page) == 0 && page->n == 1);
	pair = page->seen[0].cus.pair;
	CHECK(pair[0] == 23 && pair[1] == 24 && pair[2] == 26 && pair[3] == 27 && pair[4] == 0);
}

TEST_WITH(masks_of_the_upper_engines_depend_on_the_generation, struct page *page)
{
	const uint32_t *pair;

	page_add(page, "Process 1 PASID 0x8001:\n  Compute queue on device 90a\n");
	dump(page, ROWS, number);
	page_add(page, "  Compute queue on device b00\n");
	dump(page, ROWS, number);
	CHECK(parse(page) == 0 && page->n == 2);
	pair = page->seen[0].cus.pair;
	CHECK(pair[3] == 27 && pair[4] == 39 && pair[5] == 40 && pair[6] == 41 && pair[7] == 42);
	pair = page->seen[1].cus.pair;
	CHECK(pair[3] == 27 && pair[4] == 44 && pair[5] == 45 && pair[6] == 0);
}

TEST_WITH(queue_on_several_xccs_has_a_descriptor_per_xcc, struct page *page)
{
	page_add(page, "Process 1 PASID 0x8001:\n  Compute queue on device 51\n");
	dump(page, ROWS, number);
	dump(page, ROWS, ones);
	CHECK(parse(page) == 0 && page->n == 1);
	CHECK(page->seen[0].cus.pair[cuset_pair(0, 0)] == (23 & 0xf));
	CHECK(page->seen[0].cus.pair[cuset_pair(0, 1)] == (24 & 0x7));
	CHECK(page->seen[0].cus.pair[cuset_pair(1, 0)] == 0x7);
	CHECK(page->seen[0].cus.pair[cuset_pair(1, 1)] == 0xf);
}

TEST_WITH(sdma_queues_are_ignored_unless_they_are_wanted, struct page *page)
{
	struct queue_text read = { 0 };
	struct queue_parser *parser;

	page_add(page, "Process 1 PASID 0x8001:\n  Compute queue on device 51\n");
	dump(page, ROWS, ones);
	dump(page, ROWS, ones);
	page_add(page, "  SDMA queue on device 51\n");
	dump(page, 16, number);
	dump(page, 16, number);
	page_add(page, "  SDMA queue on device 51\n");
	page_add(page, "  Compute queue on device 3a7c\n");
	dump(page, ROWS, ones);
	CHECK(parse(page) == 0 && page->n == 2);
	CHECK(page->seen[0].kfd_gpu_id == 0x51 && page->seen[1].kfd_gpu_id == 0x3a7c);
	free(page->seen);
	page->seen = NULL;

	parser = queue_parser_new(gpus, ARRAY_SIZE(gpus), true);
	CHECK(queue_parser_feed(parser, page->text, page->size, page->why, sizeof(page->why)) == 0);
	CHECK(queue_parser_end(parser, &read, page->why, sizeof(page->why)) == 0);
	queue_parser_free(parser);
	CHECK(!read.slots);
	page->seen = read.queues;
	page->n = read.n_queues;
	CHECK(page->n == 4 && !page->seen[0].sdma && !page->seen[3].sdma);
	CHECK(page->seen[1].sdma && page->seen[1].pid == 1 && page->seen[1].kfd_gpu_id == 0x51);
	CHECK(page->seen[1].doorbell == (22 & ~3U)); /* word 22 */
	CHECK(page->seen[2].sdma && page->seen[2].doorbell == 0);
}

TEST_WITH(queues_of_unknown_gpus_are_ignored, struct page *page)
{
	page_add(page, "Process 1 PASID 0x8001:\n  Compute queue on device dead\n");
	dump(page, ROWS, ones);
	dump(page, 3, ones);
	page_add(page, "  Compute queue on device 0\n");
	dump(page, 1, ones);
	CHECK(parse(page) == 0 && page->n == 0);
}

TEST(descriptors_of_another_layout_are_ignored)
{
	static const unsigned targets[] = { 120500, 130000 };
	struct gpu_info other = gpus[0];

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		struct page page = page_new();

		other.gfx_target = targets[i];
		page_add(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
		dump(&page, ROWS, ones);
		CHECK(fflush(page.out) == 0);
		CHECK(kfd_mqds_parse(page.text, page.size, &other, 1, &page.seen, &page.n, page.why,
				     sizeof(page.why)) == 0);
		CHECK(page.n == 0);
		CHECK(parse(&page) == 0 && page.n == 1);
		page_done(&page);
	}
}

TEST_WITH(short_descriptor_of_gfx7_hides_no_queue_of_other_gpus, struct page *page)
{
	struct gpu_info two[] = { gpus[0], gpus[2] };

	two[0].gfx_target = 70001;
	page_add(page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	dump(page, ROWS / 2, ones);
	page_add(page, "  Compute queue on device 90a\n");
	dump(page, ROWS, ones);
	CHECK(fclose(page->out) == 0);
	CHECK(kfd_mqds_parse(page->text, page->size, two, 2, &page->seen, &page->n, page->why,
			     sizeof(page->why)) == 0);
	CHECK(page->n == 1 && page->seen[0].kfd_gpu_id == 0x90a);
}

TEST_WITH(other_queues_are_ignored, struct page *page)
{
	page_add(page, "Process 1 PASID 0x8001:\n  DIQ on device 3a7c\n");
	dump(page, ROWS, ones);
	page_add(page, "  Bad user queue type 9 on device 3a7c\n"
		       "  Bad kernel queue type 9 on device 3a7c\n"
		       "  Weird: Queue node with neither kernel nor user queue\n");
	CHECK(parse(page) == 0 && page->n == 0);
}

TEST_WITH(longer_descriptor_is_accepted, struct page *page)
{
	page_add(page, "Process 1 PASID 0x8001:\n  Compute queue on device 51\n");
	dump(page, ROWS + 4, ones);
	dump(page, ROWS + 4, ones);
	CHECK(parse(page) == 0 && page->n == 1);
}

/* ---- run lists --------------------------------------------------------------------------- */

static uint32_t doorbell_of_7(unsigned i)
{
	return i == 0x23c / 4 ? 7 << 2 | 1U << 30 : 0;
}

static uint32_t doorbell_of_8(unsigned i)
{
	return i == 0x23c / 4 ? 8 << 2 : 0;
}

static void add_two_queues(struct page *page)
{
	page_add(page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	dump(page, ROWS, doorbell_of_7);
	page_add(page, "  Compute queue on device 3a7c\n");
	dump(page, ROWS, doorbell_of_8);
}

TEST_WITH(a_queue_is_active_that_is_on_the_run_list_of_its_gpu, struct page *page)
{
	add_two_queues(page);
	page_add(
		page,
		"Node 1, gpu_id 3a7c:\n"
		"  00000000: c001a100 00008001 00000000 c005a200 20000010 00000020 00001000 00000000\n"
		"  00000020: 00000000 00000000 00000000 00000000\n"
		"Node 2, gpu_id 1234:\n"
		"  00000000: c005a200 20000010 0000001c 00001000 00000000 00000000 00000000\n"
		"Node 3, gpu_id 5:\n  No active runlist\n");
	CHECK(parse(page) == 0 && page->n == 2);
	CHECK(!page->seen[0].active && page->seen[1].active);
}

TEST_WITH(a_packet_of_a_run_list_goes_on_in_the_next_row, struct page *page)
{
	add_two_queues(page);
	page_add(
		page,
		"Node 1, gpu_id 3a7c:\n"
		"  00000000: c004a100 0000a2c0 c005a200 0000001c 00000020 00000000 c005a200 20000010\n"
		"  00000020: 0000001c 00001000 00000000 00000000 00000000\n");
	CHECK(parse(page) == 0 && page->n == 2);
	CHECK(page->seen[0].active && !page->seen[1].active);
}

TEST_WITH(run_lists_without_processes_have_no_queue, struct page *page)
{
	page_add(page, "Node 1, gpu_id 3a7c:\n  No active runlist\n");
	CHECK(parse(page) == 0 && page->n == 0);
}

TEST(invalid_run_lists_are_refused)
{
	static const char *const lines[] = {
		"Node 1:\n",
		"Node 1, gpu_id :\n",
		"Node 1, gpu_id 3g:\n",
		"Node 1, gpu_id 3a7c\n",
		"Node 1, gpu_id 3a7c:\n  00000000: c005a20\n",
		"Node 1, gpu_id 3a7c:\n  nothing\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct page page = page_new();

		page_add(&page, "%s", lines[i]);
		CHECK(page_refused(&page, "line"));
	}
}

/* ---- texts that the kernel never prints ---------------------------------------------------- */

#define PROCESS "Process 1 PASID 0x8001:\n"
#define COMPUTE PROCESS "  Compute queue on device 3a7c\n"
#define SDMA PROCESS "  SDMA queue on device 3a7c\n"
#define ON_TWO_XCCS PROCESS "  Compute queue on device 51\n"

TEST(broken_text_is_refused_with_its_line)
{
	static const struct {
		const char *text;
		unsigned rows[2]; /* of the descriptors that follow; 0: none */
		const char *more, *words;
	} broken[] = {
		{ COMPUTE, { ROWS - 1 }, "", "line 65" },
		{ ON_TWO_XCCS, { ROWS }, "", "0000:04:00.0 has 2 XCCs" },
		{ ON_TWO_XCCS, { 10, ROWS }, "", "320 of 2048 bytes" },
		{ COMPUTE, { 0 }, "", "0 complete" },
		{ COMPUTE, { 0 }, "Process 2:\n", "line 3" },
		{ COMPUTE, { ROWS, ROWS }, "", "1 XCCs of 0000:03:00.0" },
		/* A line without its end. */
		{ COMPUTE, { 0 }, "    00000000: 0000", "\"    00000000: 0000\"" },
		{ "Process", { 0 }, "", "line 1" },
		/* A row at a wrong place. */
		{ COMPUTE, { 2 }, "    00000060: 0 0\n", "line 5" },
		{ SDMA, { 2 }, "    00000060: 00000000\n", "0x60" },
		{ COMPUTE, { 0 }, "    00000000: 00000000 00000000\n", "line 3" },
		{ "", { 1 }, "", "line 1: data" },
		{ PROCESS, { 1 }, "", "line 2: data" },
		{ "", { 0 }, "  Compute queue on device 3a7c\n", "line 1" },
		/* Invalid lines. */
		{ SDMA, { 0 }, "\n", "\"\"" },
		{ SDMA, { 0 }, "\x01\xff stuff\n", "descriptor: \"?? stuff\"" },
		{ SDMA, { 0 }, "Process x PASID 1:\n", "number" },
		{ SDMA, { 0 }, "Process 0 PASID 0x1:\n", "number" },
		{ SDMA, { 0 }, "Process 99999999999 PASID 0x1:\n", "number" },
		{ SDMA, { 0 }, "Process 12x PASID 0x1:\n", "number" },
		{ SDMA, { 0 }, "Process 12 PASID 0x1\n", "number" },
		{ SDMA, { 0 }, "Process 12\n", "number" },
		{ SDMA, { 0 }, "Process -1:\n", "number" },
		{ SDMA, { 0 }, "  Compute queue on device \n", "GPU" },
		{ SDMA, { 0 }, "  Compute queue on device 3A7C\n", "GPU" },
		{ SDMA, { 0 }, "  Compute queue on device 03a7c\n", "GPU" },
		{ SDMA, { 0 }, "  Compute queue on device 123456789\n", "GPU" },
		{ SDMA, { 0 }, "  SDMA queue on device 3a7c!\n", "GPU" },
		{ SDMA, { 0 }, "    00000000\n", "row" },
		{ SDMA, { 0 }, "    0000000g: 00000000\n", "row" },
		{ SDMA, { 0 }, "    00000000: 0000000\n", "row" },
		{ SDMA, { 0 }, "    00000000: 00000000 \n", "row" },
		{ SDMA, { 0 }, "    00000000:-00000001\n", "row" },
		{ SDMA,
		  { 0 },
		  "    00000000: 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
		  "00000000 00000000\n",
		  "row" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		struct page page = page_new();

		page_add(&page, "%s", broken[i].text);
		for (size_t d = 0; d < ARRAY_SIZE(broken[i].rows) && broken[i].rows[d]; d++)
			dump(&page, broken[i].rows[d], ones);
		page_add(&page, "%s", broken[i].more);
		CHECK(page_refused(&page, broken[i].words));
	}
}

TEST(binary_text_is_refused)
{
	static const char zeros[4096], newlines[] = "\n\n\n\n";
	struct observed_mask *seen = NULL;
	char why[200];
	size_t n = 0;

	CHECK(kfd_mqds_parse(zeros, sizeof(zeros), gpus, 1, &seen, &n, why, sizeof(why)) ==
	      -EBADMSG);
	CHECK(strstr(why, "\"????"));
	CHECK(kfd_mqds_parse(newlines, 4, gpus, 1, &seen, &n, why, sizeof(why)) == -EBADMSG);
	CHECK(!seen && n == 0);
}

/* The parser has no limit for lines: a line of a million bytes is one line. */
TEST(very_long_line_is_read_in_linear_time)
{
	struct page page = page_new();

	page_add(&page, "Process 1 %01000000d:\n", 0);
	page_add(&page, "%01000000d\n", 0);
	CHECK(page_refused(&page, "\"0000"));
}

TEST(reason_is_truncated_to_its_buffer)
{
	struct observed_mask *seen = NULL;
	char why[8] = "1234567";
	size_t n = 0;

	CHECK(kfd_mqds_parse("x\n", 2, gpus, 1, &seen, &n, why, 4) == -EBADMSG);
	CHECK(memcmp(why, "kfd\000567", 8) == 0);
	CHECK(kfd_mqds_parse("x\n", 2, gpus, 1, &seen, &n, NULL, 0) == -EBADMSG);
}

/* One in ten is a compute queue; usually as many as fit into the largest text that is read. */
TEST(hundred_thousand_queues_are_parsed)
{
	const unsigned queues = check_size(100000, 100000);
	struct page page = page_new(), descriptor = page_new();

	page_add(&descriptor, "  Compute queue on device 3a7c\n");
	dump(&descriptor, ROWS, ones);
	CHECK(fclose(descriptor.out) == 0);
	for (unsigned i = 0; i < queues; i++) {
		if (i % 100 == 0)
			page_add(&page, "Process %u PASID 0x8001:\n", i + 1);
		if (i % 10 == 0)
			page_add(&page, "%s", descriptor.text);
		else
			page_add(&page, "  SDMA queue on device 3a7c\n    00000000: 00000001\n");
	}
	CHECK(parse(&page) == 0 && page.n == queues / 10);
	for (unsigned i = 0; i < page.n; i++)
		CHECK(page.seen[i].pid == (pid_t)(i / 10 * 100 + 1));
	free(descriptor.text);
	page_done(&page);
}

static struct page *whole;

static int parse_whole(long allocations)
{
	int r;

	lack_left = allocations;
	r = parse(whole);
	CHECK(r == 0 ? whole->n == 2 && whole->seen[1].active : !whole->seen);
	free(whole->seen);
	whole->seen = NULL;
	whole->n = 0;
	return r;
}

TEST_WITH(queues_and_run_lists_are_read_whole_or_not, struct page *page)
{
	add_two_queues(page);
	page_add(page,
		 "Node 1, gpu_id 3a7c:\n"
		 "  00000000: c005a200 20000010 00000020 00001000 00000000 00000000 00000000\n");
	CHECK(fclose(page->out) == 0);
	page->out = NULL;
	whole = page;
	CHECK(lack_each("kfd_mqds_parse", parse_whole) >= 2);
}
