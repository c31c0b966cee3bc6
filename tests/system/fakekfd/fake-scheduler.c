// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The scheduler firmware of the GPU that is not there, for sched_policy=0: a thread reads the
 * packets of the queue that amdkfd made for it (HIQ). It writes the fence that the driver waits for
 * after it took queues off, and nothing else: to run a list there is nothing to do.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>

#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "fake.h"
#include "kfd_pm4_headers_ai.h"
#include "kfd_pm4_opcodes.h"
#include "v9_structs.h"

#define COUNT_ZERO 0x3fff /* a packet of one word */

/* Addresses of the GPU are addresses of the kernel. */
#define AT(hi, lo) ((void *)((uint64_t)(hi) << 32 | (lo)))

static void read_packet(const uint32_t *packet)
{
	const struct pm4_mes_query_status *query = (const void *)packet;
	uint64_t *fence = AT(query->addr_hi, query->addr_lo);

	if (query->header.opcode == IT_QUERY_STATUS)
		WRITE_ONCE(*fence, (uint64_t)query->data_hi << 32 | query->data_lo);
}

static int schedule_queues(void *argument)
{
	const struct fake_scheduler *hiq = argument;
	union PM4_MES_TYPE_3_HEADER header;
	uint64_t read = 0;

	while (!kthread_should_stop()) {
		while (read < smp_load_acquire(hiq->written)) {
			header.u32All = hiq->ring[read % hiq->words];
			read_packet(&hiq->ring[read % hiq->words]);
			read += header.count == COUNT_ZERO ? 1 : header.count + 2;
			WRITE_ONCE(*hiq->read, read % hiq->words);
		}
		usleep_range(50, 200);
	}
	return 0;
}

int fake_load_hiq(struct amdgpu_device *adev, void *mqd, uint32_t pipe, uint32_t queue,
		  uint32_t doorbell OF_XCC)
{
	struct fake_scheduler *hiq = &fake_card_of(adev)->scheduler;
	const struct v9_mqd *m = mqd;

	/* The first XCC schedules for all: their rings are one. */
	if (hiq->ring)
		return 0;
	hiq->ring = (void *)((uint64_t)AT(m->cp_hqd_pq_base_hi, m->cp_hqd_pq_base_lo) << 8);
	hiq->words = 2U << (m->cp_hqd_pq_control & 0x3f);
	hiq->written = AT(m->cp_hqd_pq_wptr_poll_addr_hi, m->cp_hqd_pq_wptr_poll_addr_lo);
	hiq->read = AT(m->cp_hqd_pq_rptr_report_addr_hi, m->cp_hqd_pq_rptr_report_addr_lo);
	return PTR_ERR_OR_ZERO(kthread_run(schedule_queues, hiq, "fake-scheduler"));
}

/* Nothing looks into it. */
int amdgpu_amdkfd_alloc_gws(struct amdgpu_device *adev, size_t size, void **ret)
{
	*ret = fake_card_of(adev);
	return 0;
}
