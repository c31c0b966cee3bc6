/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of kfd-queues.h share: the parsers of its two texts. */

#include "core/mask/codec.h"
#include "core/mask/gpu-info.h"
#include "core/mask/queue-slot.h"
#include "hw/debugfs-lines.h"

/* Where the descriptor of an SDMA queue, and the registers of its slot, have its doorbell. */
struct sdma_doorbell {
	unsigned word; /* of the descriptor; the n-th register that the kernel prints has word n */
	uint32_t bits; /* of the word */
	unsigned enable; /* the word with the bit that enables the doorbell */
};
struct sdma_doorbell sdma_doorbell_of(unsigned gfx_target);

#define RING_NEEDED_MAX 23U

struct hqd_parser {
	struct lines lines;
	uint64_t listed; /* bit i: gpus[i] was listed */

	enum { NO_NODE, NO_SLOT, SLOT, IGNORED_SLOT } kind;
	const struct gpu_info *gpu; /* of the node; NULL: ignored */
	uint32_t inst;              /* as printed, of the last slot */
	struct queue_slot slot;     /* the present one, or the last one of the node */
	bool any;                   /* the node has had a slot */

	unsigned skip;   /* registers before CP_MQD_BASE_ADDR */
	unsigned needed; /* behind these */
	unsigned n_registers;
	uint32_t address, registers[RING_NEEDED_MAX];

	struct queue_slot *slots;
	size_t n;
};

struct mqd_parser {
	struct lines lines;

	bool sdma; /* wanted */

	enum {
		NO_PROCESS, /* the next line must be a process */
		NO_QUEUE,
		COMPUTE,
		SDMA,
		IGNORED,
		RUN_LIST,
	} kind;
	pid_t pid;
	const struct gpu_info *gpu; /* of a COMPUTE or SDMA queue */
	unsigned xcc;
	uint32_t offset; /* of the next row */
	uint32_t words[CUSET_PAIRS];
	unsigned priority;
	uint32_t doorbell;

	uint32_t opcode;      /* of the packet of a run list */
	unsigned index, left; /* words of it that were read, and that follow */
	uint64_t *active;     /* queues on run lists: GPU id and doorbell */
	size_t n_active;

	struct observed_mask *seen;
	size_t n;
};

/* Take the present line. -EBADMSG with a sentence, -ENOMEM. */
int hqd_line(struct hqd_parser *parser);
int mqd_line(struct mqd_parser *parser);

/* The text has ended. What was begun must be complete. */
int hqd_end_slot(struct hqd_parser *parser);
int mqd_end(struct mqd_parser *parser);
