/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd-queues-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"
#include "core/policy/class.h"
#include "util/grow.h"

/*
 * struct vi_mqd, v9_mqd, v10_mqd, v11_mqd, v12_mqd in drivers/gpu/drm/amd/include have 2048 bytes,
 * with compute_static_thread_mgmt_se0 and following at these words (compute_tmpring_size is between
 * se1 and se2). The place of the upper four engines depends on the generation; gfx8, gfx10 and
 * gfx9.4.3 have none, and no mask for them.
 */
#define MQD_BYTES 2048U
#define ROW_WORDS 8U
#define ROW_BYTES (ROW_WORDS * 4U)

enum { SE0 = 23, SE2 = 26, SE4_GFX9 = 39, SE4_GFX11 = 44 };

/* cp_hqd_queue_priority, at the same place in all generations: 0 to 15 as in KFD. */
#define QUEUE_PRIORITY 134U

/* cp_hqd_pq_doorbell_control, likewise, and the third word of a MAP_QUEUES packet of the run list have the
 * offset of the queue's doorbell in these bits. */
#define DOORBELL_CONTROL 143U
#define DOORBELL_OFFSET 0x0ffffffcU
#define MAP_QUEUES 0xa2U

/* ---- headings ------------------------------------------------------------------------ */

/* "Process NUMBER …:". The text between the number and the colon differs between kernels. */
static int take_process(struct mqd_parser *parser)
{
	const struct lines *lines = &parser->lines;
	const char *at = lines->line + strlen("Process "), *end = lines->line + lines->length;
	uint32_t pid;

	if (!lines_decimal(lines, &at, &pid) || pid == 0 || at == end ||
	    (*at != ' ' && *at != ':') || end[-1] != ':')
		return lines_refuse_line(&parser->lines, "invalid number of a process");
	parser->pid = (pid_t)pid;
	parser->kind = NO_QUEUE;
	return 0;
}

#define COMPUTE_HEADING "  Compute queue on device "
#define SDMA_HEADING "  SDMA queue on device "

/* Behind the heading is a hexadecimal number without leading zeros. */
static int take_queue(struct mqd_parser *parser, const char *heading, bool sdma)
{
	const char *number = parser->lines.line + strlen(heading);
	size_t n = parser->lines.length - strlen(heading);
	uint32_t id;

	if (n == 0 || (n > 1 && number[0] == '0') || !lines_hex(number, n, &id))
		return lines_refuse_line(&parser->lines, "invalid id of a GPU");
	parser->gpu = lines_gpu(&parser->lines, id);
	parser->kind = IGNORED;
	if (parser->gpu && codec_knows_descriptor(parser->gpu->gfx_target) &&
	    (!sdma || parser->sdma))
		parser->kind = sdma ? SDMA : COMPUTE;
	parser->xcc = 0;
	parser->offset = 0;
	parser->doorbell = 0;
	/* Without a register there is no restriction. */
	memset(parser->words, 0xff, sizeof(parser->words));
	return 0;
}

/* ---- rows of words ------------------------------------------------------------------- */

/* The engine whose mask register is at this word of a descriptor; -1: none. */
static int engine_of(unsigned target, uint32_t word)
{
	unsigned upper = 0;

	if (target >= 110000)
		upper = SE4_GFX11;
	else if (target >= 90000 && target < 90400)
		upper = SE4_GFX9;

	if (word >= SE0 && word < SE0 + 2)
		return (int)(word - SE0);
	if (word >= SE2 && word < SE2 + 2)
		return (int)(word - SE2 + 2);
	if (upper != 0 && word >= upper && word < upper + 4)
		return (int)(word - upper + 4);
	return -1;
}

static int take_words(struct mqd_parser *parser, const uint32_t words[ROW_WORDS], unsigned n)
{
	int engine;

	if (n != ROW_WORDS)
		return lines_refuse(&parser->lines, "a row of %u words instead of %u", n,
				    ROW_WORDS);
	for (unsigned i = 0; i < n; i++) {
		if (parser->offset / 4 + i == QUEUE_PRIORITY)
			parser->priority = min_u(words[i], PRIORITY_MAX);
		if (parser->offset / 4 + i == DOORBELL_CONTROL)
			parser->doorbell = words[i] & DOORBELL_OFFSET;
		engine = engine_of(parser->gpu->gfx_target, parser->offset / 4 + i);
		if (engine >= 0)
			parser->words[cuset_pair(parser->xcc, (unsigned)engine)] = words[i];
	}
	return 0;
}

static void take_ring(struct mqd_parser *parser, const uint32_t words[ROW_WORDS], unsigned n)
{
	const struct sdma_doorbell doorbell = sdma_doorbell_of(parser->gpu->gfx_target);
	unsigned first = parser->offset / 4;

	if (doorbell.word >= first && doorbell.word - first < n)
		parser->doorbell = words[doorbell.word - first] & doorbell.bits;
}

/* Starts the descriptor of the next XCC of the queue. */
static int next_descriptor(struct mqd_parser *parser)
{
	if (parser->offset == 0)
		return 0;
	if (parser->kind == COMPUTE) {
		if (parser->offset < MQD_BYTES)
			return lines_refuse(&parser->lines,
					    "a descriptor ends after %u of %u bytes",
					    parser->offset, MQD_BYTES);
		parser->xcc++;
		if (parser->xcc >= parser->gpu->geometry.xccs)
			return lines_refuse(&parser->lines,
					    "more descriptors than the %u XCCs of %s",
					    parser->gpu->geometry.xccs, parser->gpu->name);
	}
	parser->offset = 0;
	return 0;
}

/* Parses the offset and the words of a row that is indented by so much. */
static int read_row(const struct mqd_parser *parser, size_t indent, uint32_t *ret_offset,
		    uint32_t words[static ROW_WORDS], unsigned *ret_n)
{
	const char *at = parser->lines.line + indent,
		   *end = parser->lines.line + parser->lines.length;

	if (end - at < 9 || !lines_hex(at, 8, ret_offset) || at[8] != ':' ||
	    !lines_words(&parser->lines, at + 9, words, ROW_WORDS, ret_n))
		return lines_refuse_line(&parser->lines, "invalid row of a descriptor");
	return 0;
}

static int take_row(struct mqd_parser *parser)
{
	uint32_t offset, words[ROW_WORDS];
	unsigned n;
	int r;

	if (parser->kind != COMPUTE && parser->kind != SDMA && parser->kind != IGNORED)
		return lines_refuse_line(&parser->lines, "data without a queue");
	r = read_row(parser, 4, &offset, words, &n);
	if (r < 0)
		return r;
	r = offset == 0 ? next_descriptor(parser) : 0;
	if (r < 0)
		return r;
	if (offset != parser->offset)
		return lines_refuse(&parser->lines, "a row at 0x%x instead of 0x%x", offset,
				    parser->offset);
	r = parser->kind == COMPUTE ? take_words(parser, words, n) : 0;
	if (r < 0)
		return r;
	if (parser->kind == SDMA)
		take_ring(parser, words, n);
	parser->offset += ROW_BYTES;
	return 0;
}

/* ---- queues -------------------------------------------------------------------------- */

/* NULL: out of memory. */
static void *add_to(struct mqd_parser *parser, void *list, size_t *n, size_t size)
{
	void *element = grow(list, n, size);

	if (!element)
		snprintf(parser->lines.why, parser->lines.why_size, "out of memory for %zu queues",
			 *n + 1);
	return element;
}

static int add_queue(struct mqd_parser *parser, const struct observed_mask *queue)
{
	struct observed_mask *seen = add_to(parser, &parser->seen, &parser->n, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	*seen = *queue;
	parser->kind = NO_QUEUE;
	return 0;
}

/* Ends the present queue: it must be complete. */
static int end_queue(struct mqd_parser *parser)
{
	struct observed_mask queue = { .pid = parser->pid };

	if (parser->kind != COMPUTE && parser->kind != SDMA)
		return 0;
	queue.kfd_gpu_id = parser->gpu->kfd_gpu_id;
	queue.sdma = parser->kind == SDMA;
	queue.doorbell = parser->doorbell;
	if (queue.sdma)
		return add_queue(parser, &queue);
	if (parser->offset < MQD_BYTES || parser->xcc + 1 != parser->gpu->geometry.xccs)
		return lines_refuse(
			&parser->lines,
			"the queue above has %u complete descriptors, but %s has %u XCCs",
			parser->xcc + (parser->offset >= MQD_BYTES), parser->gpu->name,
			parser->gpu->geometry.xccs);
	queue.priority = parser->priority;
	observed_mask_from_words(&parser->gpu->geometry, parser->words, &queue.cus);
	return add_queue(parser, &queue);
}

/* ---- run lists ----------------------------------------------------------------------- */

/* "Node N, gpu_id ID:" */
static int take_node(struct mqd_parser *parser)
{
	uint32_t id;

	if (!lines_node(&parser->lines, &id))
		return lines_refuse_line(&parser->lines, "invalid id of a GPU");
	parser->gpu = lines_gpu(&parser->lines, id);
	parser->kind = RUN_LIST;
	parser->left = 0;
	return 0;
}

static uint64_t key_of(uint32_t kfd_gpu_id, uint32_t doorbell)
{
	return (uint64_t)kfd_gpu_id << 32 | (doorbell & DOORBELL_OFFSET);
}

static int add_active(struct mqd_parser *parser, uint32_t doorbell)
{
	uint64_t *active;

	if (!parser->gpu)
		return 0;
	active = add_to(parser, &parser->active, &parser->n_active, sizeof(*active));
	if (!active)
		return -ENOMEM;
	*active = key_of(parser->gpu->kfd_gpu_id, doorbell);
	return 0;
}

/* The words are packets of type 3: a header with the number of words and the opcode, then the words. The
 * kernel fills the rest of the buffer with zeros. */
static int take_packet(struct mqd_parser *parser, uint32_t word)
{
	if (parser->left == 0 && word >> 30 != 3)
		return 0;
	if (parser->left == 0) {
		parser->opcode = word >> 8 & 0xff;
		parser->left = (word >> 16 & 0x3fff) + 1;
		parser->index = 0;
		return 0;
	}
	parser->left--;
	return ++parser->index == 2 && parser->opcode == MAP_QUEUES ? add_active(parser, word) : 0;
}

DEFINE_ORDER(compare_keys, uint64_t, )

static void set_active(struct mqd_parser *parser)
{
	if (parser->n_active == 0)
		return;
	qsort(parser->active, parser->n_active, sizeof(*parser->active), compare_keys);
	for (size_t i = 0; i < parser->n; i++) {
		uint64_t key = key_of(parser->seen[i].kfd_gpu_id, parser->seen[i].doorbell);

		parser->seen[i].active = !parser->seen[i].sdma &&
					 bsearch(&key, parser->active, parser->n_active,
						 sizeof(key), compare_keys) != NULL;
	}
}

static int take_list(struct mqd_parser *parser)
{
	uint32_t offset, words[ROW_WORDS];
	unsigned n;
	int r;

	if (lines_start_with(&parser->lines, "  No active runlist"))
		return 0;
	r = read_row(parser, 2, &offset, words, &n);
	for (unsigned i = 0; r >= 0 && i < n; i++)
		r = take_packet(parser, words[i]);
	return r;
}

static int take_heading(struct mqd_parser *parser)
{
	static const char *const others[] = { "  DIQ on device ", "  Bad user queue ",
					      "  Bad kernel queue ", "  Weird: " };
	int r;

	r = end_queue(parser);
	if (r < 0)
		return r;
	if (lines_start_with(&parser->lines, "Process "))
		return take_process(parser);
	if (lines_start_with(&parser->lines, "Node "))
		return take_node(parser);
	if (parser->kind == NO_PROCESS)
		return lines_refuse_line(&parser->lines, "expected a process first");
	if (lines_start_with(&parser->lines, COMPUTE_HEADING))
		return take_queue(parser, COMPUTE_HEADING, false);
	if (lines_start_with(&parser->lines, SDMA_HEADING))
		return take_queue(parser, SDMA_HEADING, true);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (lines_start_with(&parser->lines, others[i])) {
			parser->kind = IGNORED;
			parser->offset = 0;
			return 0;
		}
	return lines_refuse_line(&parser->lines,
				 "expected a process, a queue or a row of a descriptor");
}

int mqd_line(struct mqd_parser *parser)
{
	if (parser->kind == RUN_LIST && lines_start_with(&parser->lines, "  "))
		return take_list(parser);
	return lines_start_with(&parser->lines, "    ") ? take_row(parser) : take_heading(parser);
}

int mqd_end(struct mqd_parser *parser)
{
	int r = end_queue(parser);

	if (r >= 0)
		set_active(parser);
	return r;
}
