/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Texts that the kernel never prints. */

#include "check.h"
#include "kfd-mqd-rig.h"

TEST(truncated_descriptor_is_refused_with_its_line)
{
	struct page page = page_new();

	page_add(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	dump(&page, ROWS - 1, ones);
	CHECK(page_refused(&page, "line 65"));

	page = page_new();
	page_add(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 51\n");
	dump(&page, ROWS, ones);
	CHECK(page_refused(&page, "0000:04:00.0 has 2 XCCs"));

	page = page_new();
	page_add(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 51\n");
	dump(&page, 10, ones);
	dump(&page, ROWS, ones);
	CHECK(page_refused(&page, "320 of 2048 bytes"));

	page = page_new();
	page_add(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	CHECK(page_refused(&page, "0 complete"));

	page = page_new();
	page_add(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\nProcess 2:\n");
	CHECK(page_refused(&page, "line 3"));
}

TEST(more_descriptors_than_xccs_are_refused)
{
	struct page page = page_new();

	page_add(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	dump(&page, ROWS, ones);
	dump(&page, ROWS, ones);
	CHECK(page_refused(&page, "1 XCCs of 0000:03:00.0"));
}

TEST(text_that_ends_within_a_line_is_refused)
{
	struct page page = page_new();

	page_add(&page,
		 "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n    00000000: 0000");
	CHECK(page_refused(&page, "\"    00000000: 0000\""));

	page = page_new();
	page_add(&page, "Process");
	CHECK(page_refused(&page, "line 1"));
}

TEST(row_at_a_wrong_place_is_refused)
{
	struct page page = page_new();

	page_add(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n");
	dump(&page, 2, ones);
	page_add(&page, "    00000060: 0 0\n");
	CHECK(page_refused(&page, "line 5"));

	page = page_new();
	page_add(&page, "Process 1 PASID 0x8001:\n  SDMA queue on device 3a7c\n");
	dump(&page, 2, ones);
	page_add(&page, "    00000060: 00000000\n");
	CHECK(page_refused(&page, "0x60"));

	page = page_new();
	page_add(&page, "Process 1 PASID 0x8001:\n  Compute queue on device 3a7c\n"
			"    00000000: 00000000 00000000\n");
	CHECK(page_refused(&page, "line 3"));

	page = page_new();
	dump(&page, 1, ones);
	CHECK(page_refused(&page, "line 1: data"));

	page = page_new();
	page_add(&page, "Process 1 PASID 0x8001:\n");
	dump(&page, 1, ones);
	CHECK(page_refused(&page, "line 2: data"));
}

/* A valid text and one more line. */
static bool line_refused(const char *line, const char *words)
{
	struct page page = page_new();

	page_add(&page, "Process 1 PASID 0x8001:\n  SDMA queue on device 3a7c\n%s\n", line);
	return page_refused(&page, words);
}

TEST(invalid_lines_are_refused_and_quoted)
{
	CHECK(line_refused("", "\"\""));
	CHECK(line_refused("\x01\xff stuff", "descriptor: \"?? stuff\""));
	CHECK(line_refused("Process x PASID 1:", "number"));
	CHECK(line_refused("Process 0 PASID 0x1:", "number"));
	CHECK(line_refused("Process 99999999999 PASID 0x1:", "number"));
	CHECK(line_refused("Process 12x PASID 0x1:", "number"));
	CHECK(line_refused("Process 12 PASID 0x1", "number"));
	CHECK(line_refused("Process 12", "number"));
	CHECK(line_refused("Process -1:", "number"));
	CHECK(line_refused("  Compute queue on device ", "GPU"));
	CHECK(line_refused("  Compute queue on device 3A7C", "GPU"));
	CHECK(line_refused("  Compute queue on device 03a7c", "GPU"));
	CHECK(line_refused("  Compute queue on device 123456789", "GPU"));
	CHECK(line_refused("  SDMA queue on device 3a7c!", "GPU"));
	CHECK(line_refused("    00000000", "row"));
	CHECK(line_refused("    0000000g: 00000000", "row"));
	CHECK(line_refused("    00000000: 0000000", "row"));
	CHECK(line_refused("    00000000: 00000000 ", "row"));
	CHECK(line_refused("    00000000:-00000001", "row"));
	CHECK(line_refused("    00000000: 00000000 00000000 00000000 00000000 00000000 00000000 "
			   "00000000 00000000 00000000",
			   "row"));
}

TEST(queue_before_any_process_is_refused)
{
	struct page page = page_new();

	page_add(&page, "  Compute queue on device 3a7c\n");
	CHECK(page_refused(&page, "line 1"));
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

/* One in ten is a compute queue, as many as fit into the largest text that is read. */
TEST(hundred_thousand_queues_are_parsed)
{
	const unsigned queues = 100000;
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
