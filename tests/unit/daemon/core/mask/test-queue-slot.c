/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "check.h"
#include "core/mask/queue-slot.h"
#include "util/base.h"

static struct queue_slot slot(uint32_t gpu, unsigned xcc, uint32_t doorbell)
{
	return (struct queue_slot){
		.kfd_gpu_id = gpu, .xcc = xcc, .active = doorbell != 0, .doorbell = doorbell
	};
}

static struct observed_mask queue(pid_t pid, uint32_t gpu, uint32_t doorbell)
{
	return (struct observed_mask){ .pid = pid, .kfd_gpu_id = gpu, .doorbell = doorbell };
}

TEST(a_slot_belongs_to_the_queue_with_its_doorbell_on_its_gpu)
{
	struct queue_slot slots[] = { slot(1, 0, 0x1008), slot(1, 0, 0), slot(2, 0, 0x1008),
				      slot(2, 1, 0x1008), slot(2, 0, 0x2000) };
	struct observed_mask queues[] = { queue(30, 2, 0x1008), queue(20, 1, 0x1010),
					  queue(10, 1, 0x1008) };
	unsigned n, without;

	queue_slots_join(slots, ARRAY_SIZE(slots), queues, ARRAY_SIZE(queues));
	CHECK(slots[0].pid == 10 && slots[1].pid == 0 && slots[2].pid == 30 && slots[3].pid == 30);
	CHECK(slots[4].pid == 0); /* the queue was destroyed since */
	queue_slots_count(slots, ARRAY_SIZE(slots), queues, ARRAY_SIZE(queues), 1, &n, &without);
	CHECK(n == 2 && without == 1);
	queue_slots_count(slots, ARRAY_SIZE(slots), queues, ARRAY_SIZE(queues), 2, &n, &without);
	CHECK(n == 1 && without == 0); /* it is in a slot of both XCCs */
}

TEST(a_slot_of_an_sdma_engine_belongs_to_an_sdma_queue)
{
	struct queue_slot slots[] = { slot(1, 0, 0x1008), slot(1, 0, 0x1008) };
	struct observed_mask queues[] = { queue(20, 1, 0x1008), queue(10, 1, 0x1008) };
	unsigned n, without, pipes, rows;

	slots[1].sdma = queues[0].sdma = true;
	slots[1].pipe = 7;
	queue_slots_join(slots, ARRAY_SIZE(slots), queues, ARRAY_SIZE(queues));
	CHECK(slots[0].pid == 10 && slots[1].pid == 20);
	queue_slots_count(slots, ARRAY_SIZE(slots), queues, ARRAY_SIZE(queues), 1, &n, &without);
	CHECK(n == 1 && without == 0);
	CHECK(queue_slots_shape(slots, ARRAY_SIZE(slots), 1, &pipes, &rows) && pipes == 1);
}

TEST(a_free_slot_belongs_to_no_queue_without_a_doorbell)
{
	struct queue_slot slots[] = { slot(1, 0, 0) };
	struct observed_mask queues[] = { queue(10, 1, 0) };
	unsigned n, without;

	queue_slots_join(slots, 1, queues, 1);
	CHECK(slots[0].pid == 0);
	queue_slots_join(slots, 1, NULL, 0);
	queue_slots_count(slots, 1, queues, 1, 1, &n, &without);
	CHECK(n == 1 && without == 1);
}
