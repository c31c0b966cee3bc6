/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The text of kfd/hqds, of every generation, and as the kernel never prints it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "debugfs-text.h"
#include "lack.h"
#include "seed.h"
#include "util/base.h"

#define ID 0x3a7cU
#define REGISTERS 56U /* of a slot */

struct layout {
	unsigned target, xccs, pipes, first, end; /* of each pipe, slots first to end - 1 */
	uint32_t address;                         /* of CP_MQD_BASE_ADDR */
	bool inst;                                /* Linux 6.12 */
};

/* The addresses are those of the register headers of each generation. */
static const struct layout layouts[] = {
	{ 80003, 1, 4, 2, 8, 0xc914, false }, { 90006, 1, 4, 2, 8, 0xc914, false },
	{ 90010, 1, 4, 0, 8, 0xc914, true },  { 90402, 2, 4, 2, 8, 0xc914, true },
	{ 100300, 1, 4, 2, 4, 0xc824, true }, { 110000, 1, 4, 2, 4, 0xc824, true },
	{ 120001, 1, 2, 2, 4, 0xc824, true },
};

struct page {
	char *text;
	size_t size;
	FILE *out;
	struct gpu_info gpu;
	struct queue_slot *slots;
	size_t n;
	char why[200];
};

static struct page page_new(unsigned target, unsigned xccs)
{
	return (struct page){ .gpu = { .name = "0000:03:00.0",
				       .gfx_target = target,
				       .kfd_gpu_id = ID,
				       .geometry = { .xccs = xccs } } };
}

static void page_open(struct page *page)
{
	page->out = open_memstream(&page->text, &page->size);
	CHECK(page->out);
}

static void page_done(struct page *page)
{
	free(page->text);
	free(page->slots);
}

static int parse(struct page *page)
{
	if (page->out)
		CHECK(fclose(page->out) == 0);
	page->out = NULL;
	return kfd_hqds_parse(page->text, page->size, &page->gpu, 1, &page->slots, &page->n,
			      page->why, sizeof(page->why));
}

static void print_row(FILE *out, uint32_t address, const uint32_t *words, unsigned n)
{
	fprintf(out, "    %08x:", address);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, " %08x", words[i]);
	fputc('\n', out);
}

/* A slot with a queue in every second one. */
static void print_slot(FILE *out, const struct layout *layout, unsigned xcc, unsigned pipe,
		       unsigned queue)
{
	static const uint32_t masks[4] = { 0x1, 0x1, 0, 0 };
	uint32_t words[REGISTERS] = { 0 };

	if (queue % 2 == 0) {
		words[2] = 1;
		words[3] = 0x100 | (8 + pipe);
		words[6] = queue;
		words[15] = 0x40000003 | (0x1000 * (pipe + 1) + 8 * queue);
	}
	fprintf(out, layout->inst ? " Inst %u,  CP Pipe %u, Queue %u\n" : "", xcc, pipe, queue);
	if (!layout->inst)
		fprintf(out, "  CP Pipe %u, Queue %u\n", pipe, queue);
	if (layout->target < 90000) {
		print_row(out, 0xb858, masks, 2);
		print_row(out, 0xb864, masks + 2, 2);
	}
	for (unsigned i = 0; i < REGISTERS; i += 8)
		print_row(out, layout->address + 4 * i, words + i, 8);
}

#define RINGS 4U /* slots of the SDMA engines, two each */

/* A queue in every second slot; the first slot had one. The doorbell is at another place in each
 * generation. */
static void print_rings(FILE *out, const struct layout *layout)
{
	unsigned doorbell = layout->target < 90000    ? 18
			    : layout->target < 110000 ? 22
			    : layout->target < 120000 ? 19
						      : 17;
	unsigned enable = layout->target < 110000 ? 18 : doorbell - 2;

	for (unsigned i = 0; i < RINGS; i++) {
		uint32_t words[24] = { 0 };

		if (i == 0 || i % 2 == 1) {
			words[0] = 9U << 24 | 1;
			words[doorbell] = 0x100 + 4 * i;
		}
		if (i % 2 == 1)
			words[enable] |= 1U << 28;
		fprintf(out, "  SDMA Engine %u, RLC %u\n", i / 2, i % 2);
		print_row(out, 0x4d80, words, 8);
		print_row(out, 0x4e00, words + 8, 8);
		print_row(out, 0x4ea0, words + 16, 8);
	}
}

/* The node as dqm_debugfs_hqds() prints it, with the scheduler's queue and SDMA engines. inst: the number
 * of its first XCC. */
static void print_node(FILE *out, const struct layout *layout, unsigned inst)
{
	const uint32_t words[8] = { 0 };

	fprintf(out, "Node 1, gpu_id %x:\n", ID);
	for (unsigned xcc = inst; xcc < inst + layout->xccs; xcc++) {
		if (layout->inst)
			fprintf(out, "   Inst %u, HIQ on MEC 2 Pipe 0 Queue 0\n", xcc);
		else
			fprintf(out, "  HIQ on MEC 2 Pipe 0 Queue 0\n");
		print_row(out, layout->address, words, 8);
		for (unsigned pipe = 0; pipe < layout->pipes; pipe++)
			for (unsigned queue = layout->first; queue < layout->end; queue++)
				print_slot(out, layout, xcc, pipe, queue);
	}
	print_rings(out, layout);
}

TEST(every_generation_shows_its_slots)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		const struct layout *layout = &layouts[i];
		struct page page = page_new(layout->target, layout->xccs);
		unsigned k = 0, pipes, queues;

		page_open(&page);
		print_node(page.out, layout, 0);
		CHECK(parse(&page) == 0);
		for (unsigned xcc = 0; xcc < layout->xccs; xcc++)
			for (unsigned pipe = 0; pipe < layout->pipes; pipe++)
				for (unsigned q = layout->first; q < layout->end; q++, k++) {
					const struct queue_slot *slot = &page.slots[k];

					CHECK(slot->kfd_gpu_id == ID && slot->xcc == xcc);
					CHECK(slot->pipe == pipe && slot->queue == q);
					CHECK(slot->active == (q % 2 == 0));
					CHECK(slot->vmid == (q % 2 == 0 ? 8 + pipe : 0));
					CHECK(slot->priority == (q % 2 == 0 ? q : 0));
					CHECK(slot->doorbell ==
					      (q % 2 == 0 ? 0x1000 * (pipe + 1) + 8 * q : 0));
				}
		CHECK(page.n == k + RINGS);
		for (unsigned n = 0; n < RINGS; n++, k++) {
			const struct queue_slot *slot = &page.slots[k];

			CHECK(slot->sdma && slot->pipe == n / 2 && slot->queue == n % 2);
			CHECK(slot->active == (n % 2 == 1) && slot->vmid == (n % 2 == 1 ? 9 : 0));
			CHECK(slot->doorbell == (n % 2 == 1 ? 0x100 + 4 * n : 0));
		}
		CHECK(queue_slots_shape(page.slots, page.n, ID, &pipes, &queues));
		CHECK(pipes == layout->pipes && queues == layout->end);
		CHECK(!queue_slots_shape(page.slots, page.n, ID + 1, &pipes, &queues));
		page_done(&page);
	}
}

/* A partition of a card in CPX mode has one XCC of any number. */
TEST(the_first_xcc_of_a_partition_is_xcc_0)
{
	struct layout layout = layouts[3];
	_cleanup_(page_done) struct page page = page_new(90402, 1);

	layout.xccs = 1;
	page_open(&page);
	print_node(page.out, &layout, 5);
	CHECK(parse(&page) == 0 && page.n == 24 + RINGS && page.slots[23].xcc == 0);
}

TEST(other_gpus_stopped_gpus_and_unknown_layouts_have_no_slots)
{
	static const struct layout newest = { 120500, 1, 2, 2, 4, 0xc824, true };
	struct page page = page_new(newest.target, 1);

	page_open(&page);
	print_node(page.out, &newest, 0);
	CHECK(parse(&page) == 0 && page.n == 0 && !page.slots);
	page_done(&page);

	page = page_new(90006, 1);
	page_open(&page);
	fprintf(page.out,
		"Node 2, gpu_id 51:\n Inst 0,  CP Pipe 0, Queue 2\n    0000c914: 00000001\n"
		"Node 3, gpu_id %x:\n Device is stopped\n",
		ID);
	CHECK(parse(&page) == 0 && page.n == 0);
	page_done(&page);
}

TEST(slots_of_sdma_engines_with_unknown_registers_are_ignored)
{
	_cleanup_(page_done) struct page page = page_new(90006, 1);

	page_open(&page);
	fprintf(page.out, "Node 3, gpu_id %x:\n", ID);
	print_slot(page.out, &layouts[1], 0, 0, 2);
	fprintf(page.out, "  SDMA Engine 0, RLC 0\n    00004d80: 00000001\n");
	fprintf(page.out, "  SDMA Engine 0, RLC 1\n    00004d80: 00000001\n");
	CHECK(parse(&page) == 0 && page.n == 1 && !page.slots[0].sdma);
}

TEST(an_empty_text_has_no_slots)
{
	_cleanup_(page_done) struct page page = page_new(90006, 1);

	page_open(&page);
	CHECK(parse(&page) == 0 && page.n == 0 && !page.slots);
}

/* ---- what the kernel never prints -------------------------------------------------------- */

#define NODE "Node 1, gpu_id 3a7c:\n"
#define SLOT NODE " Inst 0,  CP Pipe 0, Queue 2\n"
#define ROW \
	"    0000c914: 00000000 00000000 00000001 00000008 00000000 00000000 00000007 00000000\n"
#define ROW2 \
	"    0000c934: 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000010\n"

static bool refused(const char *text, const char *words)
{
	struct page page = page_new(90006, 1);
	bool so;

	page_open(&page);
	fputs(text, page.out);
	so = parse(&page) == -EBADMSG && strstr(page.why, words) && !page.slots && page.n == 0;
	if (!so)
		fprintf(stderr, "it says: %s\n", page.why);
	page_done(&page);
	return so;
}

TEST(invalid_texts_are_refused_with_their_line)
{
	CHECK(refused("stuff\n", "line 1: "));
	CHECK(refused(ROW, "line 1: "));
	CHECK(refused("Node 1, gpu_id 3a7c\n", "line 1: "));
	CHECK(refused("Node 1, gpu_id :\n", "line 1: "));
	CHECK(refused("Node 1, gpu_id 123456789:\n", "line 1: "));
	CHECK(refused(NODE "Node 2, gpu_id 3a7c:\n", "line 2: "));
	CHECK(refused(NODE ROW, "line 2: "));
	CHECK(refused(NODE "stuff\n", "line 2: "));
	CHECK(refused(NODE " Inst 0,  CP Pipe 0, Queue\n", "line 2: "));
	CHECK(refused(NODE " Inst x,  CP Pipe 0, Queue 2\n", "line 2: "));
	CHECK(refused(NODE " Inst 0,  CP Pipe 0, Queue 2 \n", "line 2: "));
	CHECK(refused(NODE " Inst 0,  CP Pipe 99999999999, Queue 2\n", "line 2: "));
	CHECK(refused(NODE "  CP Pipe 16, Queue 2\n", "15"));
	CHECK(refused(NODE "  CP Pipe 1, Queue 16\n", "15"));
	CHECK(refused(SLOT, "line 2: "));
	CHECK(refused(SLOT ROW, "line 3: "));
	CHECK(refused(SLOT ROW "Node 2, gpu_id 51:\n", "line 4: "));
	CHECK(refused(SLOT ROW "    0000c938: 00000000\n", "0xc934"));
	CHECK(refused(SLOT ROW ROW2 " Inst 0,  CP Pipe 0, Queue 2\n", "line 5: "));
	CHECK(refused(SLOT ROW ROW2 " Inst 1,  CP Pipe 0, Queue 2\n", "0000:03:00.0"));
	CHECK(refused(NODE "  SDMA Engine 0\n", "line 2: "));
	CHECK(refused(NODE "  SDMA Engine 0, RLC x\n", "line 2: "));
	CHECK(refused(NODE "  SDMA Engine 64, RLC 0\n", "63"));
	CHECK(refused(NODE "  SDMA Engine 0, RLC 16\n", "15"));
	CHECK(refused(NODE "  SDMA Engine 0, RLC 0\n" ROW ROW2 ROW " Inst 0,  CP Pipe 0, Queue 2\n",
		      "order"));
	CHECK(refused(NODE "  SDMA Engine 0, RLC 0\n" ROW ROW2 ROW "  SDMA Engine 0, RLC 0\n",
		      "order"));
	CHECK(refused(SLOT "    0000c914:\n", "line 3: "));
	CHECK(refused(SLOT "    0000c914: 0000000\n", "line 3: "));
	CHECK(refused(SLOT "    0000c91g: 00000000\n", "line 3: "));
	CHECK(refused(SLOT ROW "    0000c934: 00000000 0", "line 4: "));
	/* The descriptors follow in the same piece. */
	CHECK(refused("Process 1 PASID 0x8001:\n  Compute queue on device 3a7c",
		      "kfd/mqds, line 2: "));
}

/* ---- any bytes --------------------------------------------------------------------------- */

/* Changes, removes or repeats some bytes of the text. */
static void mangle(struct page *page, unsigned *seed)
{
	for (unsigned i = 0, n = 1 + (unsigned)rand_r(seed) % 4; i < n && page->size > 0; i++) {
		size_t at = (size_t)rand_r(seed) % page->size;
		size_t end = at + (size_t)rand_r(seed) % (page->size - at) % 100;

		switch (rand_r(seed) % 3) {
		case 0: page->text[at] = (char)(rand_r(seed) % 256); break;
		case 1:
			memmove(page->text + at, page->text + end, page->size - end);
			page->size -= end - at;
			break;
		default: memmove(page->text + at, page->text, page->size - at); break;
		}
	}
}

TEST(no_text_makes_an_invalid_slot)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0);

	for (unsigned round = 0; round < check_rounds(1000, 3000); round++) {
		const struct layout *layout = &layouts[round % ARRAY_SIZE(layouts)];
		struct page page = page_new(layout->target, layout->xccs);
		int r;

		page_open(&page);
		print_node(page.out, layout, 0);
		CHECK(fclose(page.out) == 0);
		page.out = NULL;
		mangle(&page, &seed);
		r = parse(&page);
		CHECK(r == 0 || (r == -EBADMSG && *page.why && !page.slots));
		for (size_t i = 0; i < page.n; i++)
			CHECK(page.slots[i].pipe < (page.slots[i].sdma ? 64 : 16) &&
			      page.slots[i].queue < 16 && page.slots[i].xcc < layout->xccs &&
			      page.slots[i].vmid < 16 && page.slots[i].priority < 16);
		page_done(&page);
	}
}

static struct page *dense;

static int parse_dense(long allocations)
{
	int r;

	lack_left = allocations;
	r = parse(dense);
	CHECK(r == 0 ? dense->n > 0 : !dense->slots);
	free(dense->slots);
	dense->slots = NULL;
	dense->n = 0;
	return r;
}

TEST(slots_are_read_whole_or_not)
{
	struct page page = page_new(layouts[1].target, layouts[1].xccs);

	page_open(&page);
	print_node(page.out, &layouts[1], 0);
	CHECK(fclose(page.out) == 0);
	page.out = NULL;
	dense = &page;
	CHECK(lack_each("kfd_hqds_parse", parse_dense) >= 1);
	page_done(&page);
}
