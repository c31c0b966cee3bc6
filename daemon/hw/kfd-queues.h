/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Parses texts of debugfs about queues (Linux 6.1 to 6.12); helpers/debugfs-reader.c reads them.
 *
 * kfd/mqds has the descriptor of every queue as the hardware gets it, as pqm_debugfs_mqds() in
 * drivers/gpu/drm/amd/amdkfd/kfd_process_queue_manager.c prints it, and kfd/rls behind it the run list
 * of every GPU, as pm_debugfs_runlist() in kfd_packet_manager.c prints it.
 *
 *	Process 4711 PASID 0x8001:
 *	  Compute queue on device 3a7c
 *	    00000000: c0310800 00000000 …   8 words per line, one descriptor per XCC
 *	Node 0, gpu_id 3a7c:
 *	  00000000: c00ea100 14008001 …     packets for the scheduler; "No active runlist" with MES
 *
 * kfd/hqds has the registers of every hardware queue slot, as dqm_debugfs_hqds() in
 * kfd_device_queue_manager.c prints it. kfd/mqds follows it.
 *
 *	Node 1, gpu_id 3a7c:
 *	   Inst 0, HIQ on MEC 2 Pipe 0 Queue 0     the scheduler's own queue
 *	    0000c914: 00000000 …                   address and up to 8 registers in a line
 *	 Inst 0,  CP Pipe 0, Queue 2               a slot of KFD; Linux 6.1 prints no Inst
 *	    0000c914: f0000000 …
 *	  SDMA Engine 0, RLC 0                      a slot of KFD in an SDMA engine
 *	    00004d80: 00000000 …
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/mask/codec.h"
#include "core/mask/gpu-info.h"
#include "core/mask/queue-slot.h"
#include "util/base.h"

struct queue_parser;

/* Keeps a copy of gpus[]. slots: the text begins with kfd/hqds, and queues of SDMA engines
 * count, too. NULL: out of memory. */
struct queue_parser *queue_parser_new(const struct gpu_info *gpus, size_t n_gpus, bool slots);

/* Takes NULL. */
struct queue_parser *queue_parser_free(struct queue_parser *parser);
DEFINE_CLEANUP(struct queue_parser *, queue_parser_free)

/* What a text has. Both lists are for free(), NULL if there is none. */
struct queue_text {
	struct observed_mask *queues;
	struct queue_slot *slots;
	size_t n_queues, n_slots;
};

/*
 * Parses the next piece of the text, which ends with a line, and the end of the text. The end returns every
 * compute queue on one of these GPUs, in the order of the text: within a process the newest first. The
 * descriptors of SDMA queues have no masks; the kernel prints them once for each XCC of the compute queue
 * before them, because it does not reset its count. It also returns the slots of these GPUs in the order of
 * the text, without their processes; XCCs are numbered from 0 for each GPU.
 *
 * Ignored are: debug queues; the scheduler's queue, which is in no slot of KFD; slots of SDMA engines with
 * fewer registers than are known; GPUs that are not in gpus[], because GPUs come and go; GPUs of gfx7 and
 * from gfx12.1 on, whose descriptors and registers differ; processes without a queue. A GPU that is
 * suspended has no slots.
 *
 * -EBADMSG with the line and the reason in why if the text is not what the kernel prints, or not
 * all of it; -ENOMEM. After an error the parser is only for queue_parser_free(). Without run lists no queue
 * is active. A text that ends between two queues seems complete, and a text without a process may be of a
 * reader without access: a queue that is absent here may still exist.
 */
int queue_parser_feed(struct queue_parser *parser, const char *text, size_t size, char *why,
		      size_t why_size);
int queue_parser_end(struct queue_parser *parser, struct queue_text *ret, char *why,
		     size_t why_size);
