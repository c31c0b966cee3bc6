/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Parses the text of debugfs kfd/hqds, which has the registers of every hardware queue slot, as
 * dqm_debugfs_hqds() in drivers/gpu/drm/amd/amdkfd/kfd_device_queue_manager.c prints it (Linux 6.1 to
 * 6.12). helpers/debugfs-reader.c reads the text.
 *
 *	Node 1, gpu_id 3a7c:
 *	   Inst 0, HIQ on MEC 2 Pipe 0 Queue 0     the scheduler's own queue
 *	    0000c914: 00000000 …                   address and up to 8 registers in a line
 *	 Inst 0,  CP Pipe 0, Queue 2               a slot of KFD; Linux 6.1 prints no Inst
 *	    0000c914: f0000000 …
 *	  SDMA Engine 0, RLC 0                      a slot of KFD in an SDMA engine
 *	    00004d80: 00000000 …
 */

#include <stddef.h>

#include "util/base.h"
#include "core/mask/gpu-info.h"
#include "core/mask/queue-slot.h"

/* Where the descriptor of an SDMA queue, and the registers of its slot, have its doorbell. */
struct sdma_doorbell {
	unsigned word; /* of the descriptor; the n-th register that the kernel prints has word n */
	uint32_t bits; /* of the word */
	unsigned enable; /* the word with the bit that enables the doorbell */
};
struct sdma_doorbell sdma_doorbell_of(unsigned gfx_target);

struct hqd_parser;

/* gpus[] must live as long as the parser. NULL: out of memory. */
struct hqd_parser *hqd_parser_new(const struct gpu_info *gpus, size_t n_gpus);

/* Takes NULL. */
struct hqd_parser *hqd_parser_free(struct hqd_parser *parser);
DEFINE_CLEANUP(struct hqd_parser *, hqd_parser_free)

/*
 * Parses the next piece of the text, which ends with a line, and the end of the text. The end returns the
 * slots of these GPUs in the order of the text, without their processes. *ret is for free(), NULL if there
 * is none. XCCs are numbered from 0 for each GPU.
 *
 * Ignored are: the scheduler's queue, which is in no slot of KFD; slots of SDMA engines with fewer registers
 * than are known; GPUs that are not in gpus[]; GPUs from gfx12.1 on, whose registers are not known. A GPU that is suspended has no slots.
 *
 * -EBADMSG with the line and the reason in why if the text is not what the kernel prints, or not all of
 * it; -ENOMEM. After an error the parser is only for hqd_parser_free().
 */
int hqd_parser_feed(struct hqd_parser *parser, const char *text, size_t size, char *why,
		    size_t why_size);
int hqd_parser_end(struct hqd_parser *parser, struct queue_slot **ret, size_t *ret_n, char *why,
		   size_t why_size);
