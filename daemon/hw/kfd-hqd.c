/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd-queues-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/grow.h"

/*
 * Registers behind CP_MQD_BASE_ADDR. hqd_dump() in amdgpu_amdkfd_gfx_v8.c to _v12.c prints them from
 * there on without a gap, and the word 128 + k of a descriptor has the value of register k. gfx8 prints
 * the four registers COMPUTE_STATIC_THREAD_MGMT_SE0 to SE3 first.
 */
enum { ACTIVE = 2, VMID = 3, QUEUE_PRIORITY = 6, DOORBELL_CONTROL = 15, NEEDED };

/* Registers of a slot in an SDMA engine, hqd_sdma_dump() of the same files: SDMA0_RLC0_RB_CNTL is the
 * first. */
#define RING_ENABLED 1U
#define RING_VMID(control) ((control) >> 24 & 0xf)
#define DOORBELL_ENABLED (1U << 28)

#define ENGINE_REGISTERS_GFX8 4U
#define DOORBELL_OFFSET 0x0ffffffcU
#define ROW_WORDS 8U
#define NUMBER_MAX 16U /* pipes of a GPU, slots of a pipe or of an SDMA engine: more than any has */
#define ENGINES_MAX 64U

static int add_slot(struct hqd_parser *parser)
{
	struct queue_slot *slot = grow(&parser->slots, &parser->n, sizeof(*slot));

	if (!slot) {
		snprintf(parser->lines.why, parser->lines.why_size,
			 "out of memory for %zu queue slots", parser->n + 1);
		return -ENOMEM;
	}
	*slot = parser->slot;
	return 0;
}

struct sdma_doorbell sdma_doorbell_of(unsigned gfx_target)
{
	if (gfx_target < 90000)
		return (struct sdma_doorbell){ 18, 0x1fffff, 18 };
	if (gfx_target < 110000)
		return (struct sdma_doorbell){ 22, DOORBELL_OFFSET, 18 };
	if (gfx_target < 120000)
		return (struct sdma_doorbell){ 19, DOORBELL_OFFSET, 17 };
	return (struct sdma_doorbell){ 17, DOORBELL_OFFSET, 15 };
}

/* hqd_sdma_destroy() disables the doorbell and leaves the ring enabled. */
static void set_ring(struct hqd_parser *parser)
{
	const struct sdma_doorbell doorbell = sdma_doorbell_of(parser->gpu->gfx_target);
	uint32_t control = parser->registers[0];

	parser->slot.active = control & RING_ENABLED &&
			      parser->registers[doorbell.enable] & DOORBELL_ENABLED;
	if (!parser->slot.active)
		return;
	parser->slot.vmid = RING_VMID(control);
	parser->slot.doorbell = parser->registers[doorbell.word] & doorbell.bits;
}

int hqd_end_slot(struct hqd_parser *parser)
{
	const uint32_t *registers = parser->registers;

	if (parser->kind != SLOT)
		return 0;
	if (parser->slot.sdma && parser->n_registers < parser->needed) {
		parser->kind = NO_SLOT;
		return 0; /* of a layout that is not known */
	}
	if (parser->n_registers < parser->skip + parser->needed)
		return lines_refuse(&parser->lines,
				    "the slot above has %u registers instead of %u or more",
				    parser->n_registers, parser->skip + parser->needed);
	parser->kind = NO_SLOT;
	parser->slot.vmid = parser->slot.priority = parser->slot.doorbell = 0;
	if (parser->slot.sdma) {
		set_ring(parser);
		return add_slot(parser);
	}
	parser->slot.active = registers[ACTIVE] & 1;
	parser->slot.vmid = parser->slot.active ? registers[VMID] & 0xf : 0;
	parser->slot.priority = parser->slot.active ? registers[QUEUE_PRIORITY] & 0xf : 0;
	parser->slot.doorbell = parser->slot.active ? registers[DOORBELL_CONTROL] & DOORBELL_OFFSET
						    : 0;
	return add_slot(parser);
}

/* ---- headings ------------------------------------------------------------------------ */

/* "Node N, gpu_id ID:" */
static int take_node(struct hqd_parser *parser)
{
	const struct gpu_info *gpu;
	uint32_t id;

	if (!lines_node(&parser->lines, &id))
		return lines_refuse_line(&parser->lines, "invalid id of a GPU");
	gpu = lines_gpu(&parser->lines, id);
	if (gpu && gpu - parser->lines.gpus < 64) {
		uint64_t bit = bit_u64((size_t)(gpu - parser->lines.gpus));

		if (parser->listed & bit)
			return lines_refuse_line(&parser->lines, "a GPU is listed twice");
		parser->listed |= bit;
	}
	parser->gpu = gpu && codec_knows_descriptor(gpu->gfx_target) ? gpu : NULL;
	parser->kind = parser->gpu ? NO_SLOT : IGNORED_SLOT;
	parser->any = false;
	parser->slot = (struct queue_slot){ .kfd_gpu_id = id };
	return 0;
}

/* Moves *at behind the word and the number behind that. */
static bool take_number(const struct hqd_parser *parser, const char **at, const char *word,
			uint32_t *ret)
{
	size_t n = strlen(word);

	if ((size_t)(parser->lines.line + parser->lines.length - *at) < n ||
	    memcmp(*at, word, n) != 0)
		return false;
	*at += n;
	return lines_decimal(&parser->lines, at, ret);
}

static int check_order(struct hqd_parser *parser, const struct queue_slot *before)
{
	const struct queue_slot *slot = &parser->slot;

	if (!parser->any || slot->sdma > before->sdma || slot->xcc != before->xcc)
		return 0;
	if (slot->sdma < before->sdma ||
	    slot->pipe * NUMBER_MAX + slot->queue <= before->pipe * NUMBER_MAX + before->queue)
		return lines_refuse_line(&parser->lines, "a slot out of order");
	return 0;
}

/* Sets the place of the slot; it must be behind the place of the one before. */
static int set_place(struct hqd_parser *parser, uint32_t inst, uint32_t pipe, uint32_t queue)
{
	const struct queue_slot before = parser->slot;
	struct queue_slot *slot = &parser->slot;
	int r;

	if (pipe >= NUMBER_MAX || queue >= NUMBER_MAX)
		return lines_refuse_line(&parser->lines, "a pipe or a queue of a number above 15");
	slot->sdma = false;
	slot->xcc = parser->any ? before.xcc + (inst != parser->inst) : 0;
	slot->pipe = pipe;
	slot->queue = queue;
	if (slot->xcc >= parser->gpu->geometry.xccs)
		return lines_refuse(&parser->lines, "more instances than the %u XCCs of %s",
				    parser->gpu->geometry.xccs, parser->gpu->name);
	parser->inst = inst;
	r = check_order(parser, &before);
	parser->any = true;
	return r;
}

static void begin_slot(struct hqd_parser *parser, unsigned skip, unsigned needed)
{
	parser->kind = SLOT;
	parser->skip = skip;
	parser->needed = needed;
	parser->n_registers = 0;
}

/* "  SDMA Engine E, RLC R", behind the pipes of the node */
static int take_ring(struct hqd_parser *parser)
{
	const char *at = parser->lines.line, *end = at + parser->lines.length;
	const struct queue_slot before = parser->slot;
	uint32_t engine, ring;
	int r;

	if (!take_number(parser, &at, "  SDMA Engine ", &engine) ||
	    !take_number(parser, &at, ", RLC ", &ring) || at != end)
		return lines_refuse_line(&parser->lines, "invalid heading of a slot");
	if (engine >= ENGINES_MAX || ring >= NUMBER_MAX)
		return lines_refuse_line(&parser->lines,
					 "an SDMA engine above 63, or a slot above 15");
	if (!parser->gpu) {
		parser->kind = IGNORED_SLOT;
		return 0;
	}
	parser->slot = (struct queue_slot){
		.kfd_gpu_id = before.kfd_gpu_id, .sdma = true, .pipe = engine, .queue = ring
	};
	r = check_order(parser, &before);
	if (r < 0)
		return r;
	parser->any = true;
	begin_slot(parser, 0, sdma_doorbell_of(parser->gpu->gfx_target).word + 1);
	return 0;
}

/* " Inst X,  CP Pipe P, Queue Q" or "  CP Pipe P, Queue Q" */
static int take_slot(struct hqd_parser *parser)
{
	const char *at = parser->lines.line, *end = at + parser->lines.length;
	uint32_t inst = 0, pipe, queue;
	int r;

	if (lines_start_with(&parser->lines, " Inst ")) {
		if (!take_number(parser, &at, " Inst ", &inst) || at == end || *at != ',')
			return lines_refuse_line(&parser->lines, "invalid heading of a slot");
		at++;
	}
	if (!take_number(parser, &at, "  CP Pipe ", &pipe) ||
	    !take_number(parser, &at, ", Queue ", &queue) || at != end)
		return lines_refuse_line(&parser->lines, "invalid heading of a slot");
	if (!parser->gpu)
		return 0;
	r = set_place(parser, inst, pipe, queue);
	if (r < 0)
		return r;
	begin_slot(parser, parser->gpu->gfx_target < 90000 ? ENGINE_REGISTERS_GFX8 : 0, NEEDED);
	return 0;
}

static int take_heading(struct hqd_parser *parser)
{
	static const char *const others[] = { "   Inst ", "  HIQ on MEC ", " Inst ",
					      " Device is stopped" };
	int r;

	r = hqd_end_slot(parser);
	if (r < 0)
		return r;
	if (lines_start_with(&parser->lines, "Node "))
		return take_node(parser);
	if (parser->kind == NO_NODE)
		return lines_refuse_line(&parser->lines, "expected a node first");
	if (lines_start_with(&parser->lines, " Inst ") ||
	    lines_start_with(&parser->lines, "  CP Pipe "))
		return take_slot(parser);
	if (lines_start_with(&parser->lines, "  SDMA Engine "))
		return take_ring(parser);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (lines_start_with(&parser->lines, others[i])) {
			parser->kind = IGNORED_SLOT;
			return 0;
		}
	return lines_refuse_line(&parser->lines, "expected a node, a slot or registers");
}

/* ---- registers ----------------------------------------------------------------------- */

static int take_register(struct hqd_parser *parser, uint32_t address, uint32_t value)
{
	unsigned k = parser->n_registers++;

	/* Those of an SDMA engine have gaps. */
	if (!parser->slot.sdma && k > parser->skip && k - parser->skip < parser->needed &&
	    address != parser->address + 4)
		return lines_refuse(&parser->lines,
				    "register 0x%x instead of 0x%x: the layout is not known",
				    address, parser->address + 4);
	if (k >= parser->skip && k - parser->skip < parser->needed)
		parser->registers[k - parser->skip] = value;
	parser->address = address;
	return 0;
}

static int take_row(struct hqd_parser *parser)
{
	const char *at = parser->lines.line + 4, *end = parser->lines.line + parser->lines.length;
	uint32_t address, words[ROW_WORDS];
	unsigned n;
	int r = 0;

	if (parser->kind != SLOT && parser->kind != IGNORED_SLOT)
		return lines_refuse_line(&parser->lines, "registers without a slot");
	if (end - at < 9 || !lines_hex(at, 8, &address) || at[8] != ':' ||
	    !lines_words(&parser->lines, at + 9, words, ROW_WORDS, &n) || n == 0)
		return lines_refuse_line(&parser->lines, "invalid row of registers");
	for (unsigned i = 0; i < n && r >= 0 && parser->kind == SLOT; i++)
		r = take_register(parser, address + 4 * i, words[i]);
	return r;
}

int hqd_line(struct hqd_parser *parser)
{
	return lines_start_with(&parser->lines, "    ") ? take_row(parser) : take_heading(parser);
}
