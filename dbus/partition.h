/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * All members of a partition, in the order of gpuarbctl's JSON: for each, GPUARB_PARTITION() is the argument of its
 * kind with (name, value). Its key is the name with '-' on the bus (org.gpuarb.Arbiter1.xml), and the name in JSON, in
 * struct gpuarb_partition and in records (record.h), which have no member of the kinds VALUE and SEEN. Only gpuarbd
 * uses the value: of the partition `p` on `gpu`. Its type is that on the bus.
 *
 *	TEXT
 *	NUMBER  of 32 or 64 bits
 *	VALUE   a text, a number or a boolean
 *	MASK    of CUs: an array of words on the bus, hexadecimal in JSON
 *	BITS    an array of the numbers of the bits that are set
 *	SEEN    the same, and absent without one
 *	WORDS   an array of texts: gpu_gaps()
 */
/* clang-format off */
#define GPUARB_PARTITION(TEXT, NUMBER, VALUE, MASK, BITS, SEEN, WORDS)                          \
	TEXT(gpu, gpu->info.name)                                                              \
	NUMBER(kfd_gpu_id, gpu->info.kfd_gpu_id)                                               \
	MASK(cu_mask, p->cus)                                                                  \
	NUMBER(cus, p->count)                                                                  \
	NUMBER(cus_asked, p->asked)                                                            \
	NUMBER(effective_cus, gpu_info_promised(&gpu->info, p->count, p->effective))           \
	BITS(shader_engines, cuset_engines(&p->cus))                                           \
	NUMBER(queues, (uint32_t)p->granted.queues)                                            \
	NUMBER(streams, p->streams)                                                            \
	NUMBER(processes, (uint32_t)p->granted.processes)                                      \
	NUMBER(sdma_queues, (uint32_t)p->granted.sdma_queues)                                  \
	NUMBER(sdma_xgmi_queues, (uint32_t)p->granted.sdma_xgmi_queues)                        \
	NUMBER(vram, p->granted.vram)                                                          \
	NUMBER(priority, p->priority)                                                          \
	VALUE(paused, p->paused)                                                               \
	VALUE(exclusive, p->exclusive)                                                         \
	SEEN(priorities_seen, p->queues.priorities)                                            \
	TEXT(tier, partition_tier(p))                                                          \
	WORDS(gaps, gpu)
/* clang-format on */
