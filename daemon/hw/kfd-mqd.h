/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Parses the text of debugfs kfd/mqds, which has the descriptor of every queue as the hardware gets
 * it, as pqm_debugfs_mqds() in drivers/gpu/drm/amd/amdkfd/kfd_process_queue_manager.c prints it
 * (Linux 6.1 to 6.12), and of kfd/rls behind it, which has the run list of every GPU, as
 * pm_debugfs_runlist() in kfd_packet_manager.c prints it. helpers/debugfs-reader.c reads the text.
 *
 *	Process 4711 PASID 0x8001:
 *	  Compute queue on device 3a7c
 *	    00000000: c0310800 00000000 …   8 words per line, one descriptor per XCC
 *	Node 0, gpu_id 3a7c:
 *	  00000000: c00ea100 14008001 …     packets for the scheduler; "No active runlist" with MES
 */

#include <stddef.h>

#include "util/base.h"
#include "core/mask/gpu-info.h"
#include "core/mask/codec.h"

struct mqd_parser;

/* gpus[] must live as long as the parser. sdma: also of queues of SDMA engines. NULL: out of memory. */
struct mqd_parser *mqd_parser_new(const struct gpu_info *gpus, size_t n_gpus, bool sdma);

/* Takes NULL. */
struct mqd_parser *mqd_parser_free(struct mqd_parser *parser);
DEFINE_CLEANUP(struct mqd_parser *, mqd_parser_free)

/*
 * Parses the next piece of the text, which ends with a line, and the end of the text. The end returns every
 * compute queue on one of these GPUs, in the order of the text: within a process the newest first. *ret is
 * for free(), NULL if there is none. The descriptors of SDMA queues have no masks; the kernel prints them
 * once for each XCC of the compute queue before them, because it does not reset its count.
 *
 * Ignored are: debug queues; GPUs that
 * are not in gpus[], because GPUs come and go; GPUs of gfx7 and from gfx12.1 on, whose descriptors differ;
 * processes without a queue.
 *
 * -EBADMSG with the line and the reason in why if the text is not what the kernel prints, or not
 * all of it; -ENOMEM. After an error the parser is only for mqd_parser_free(). Without run lists no queue
 * is active. A text that ends between two queues seems complete, and a text without a process may be of a
 * reader without access: a queue that is absent here may still exist.
 */
int mqd_parser_feed(struct mqd_parser *parser, const char *text, size_t size, char *why,
		    size_t why_size);
int mqd_parser_end(struct mqd_parser *parser, struct observed_mask **ret, size_t *ret_n, char *why,
		   size_t why_size);
