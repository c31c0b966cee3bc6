/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What is said between gpuarb-agent, which follows the lease of a `gpuarbctl run --adaptable`, and
 * libgpuarb-agent.so in each of its processes that has queues. A datagram each, host byte order,
 * on an abstract socket whose name is in AGENT_VARIABLE. Who connects is sent the grant at once,
 * and the newest one whenever there is another and the last was answered.
 */

#include <stdint.h>

#include "libgpuarb/lease/mask.h"

#define AGENT_VARIABLE "GPUARB_AGENT"
#define AGENT_DEBUG "GPUARB_AGENT_DEBUG"
#define AGENT_VERSION 1U
#define AGENT_PARTS 64U

struct agent_part {
	uint32_t kfd_gpu_id;
	uint32_t xccs;    /* each of which needs a bit */
	uint32_t n_words; /* of cu_mask */
	uint32_t n_environment;
	uint32_t cu_mask[MASK_WORDS];
	uint32_t environment
		[MASK_WORDS]; /* what HSA_CU_MASK says, which is no wish of the program */
};

/* Only n_parts of them are sent. */
struct agent_grant {
	uint32_t version, n_parts;
	uint64_t lease, generation; /* from 1 */
	struct agent_part parts[AGENT_PARTS];
};

/* Every queue has that generation; or a negative errno: it could not be. */
struct agent_answer {
	uint32_t version;
	int32_t error;
	uint64_t generation;
};

static inline size_t agent_grant_size(const struct agent_grant *grant)
{
	return offsetof(struct agent_grant, parts) + grant->n_parts * sizeof(grant->parts[0]);
}

/* Whether that many bytes are a grant as this version has it. */
bool agent_grant_valid(const struct agent_grant *grant, size_t size);
