/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-kfd.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include <linux/kfd_ioctl.h>

__attribute__((visibility("default"))) struct fake_kfd fake_kfd;

static int fail_with(int error)
{
	errno = error;
	return -1;
}

static struct fake_kfd_queue *find(uint32_t id)
{
	return id < FAKE_KFD_QUEUES && fake_kfd.queues[id].exists ? &fake_kfd.queues[id] : NULL;
}

static int create(struct kfd_ioctl_create_queue_args *args)
{
	args->queue_id = 0;
	while (find(args->queue_id))
		args->queue_id++;
	fake_kfd.queues[args->queue_id] = (struct fake_kfd_queue){
		.exists = true,
		.ring = args->ring_base_address,
		.percentage = args->queue_percentage,
		.priority = args->queue_priority,
	};
	return 0;
}

static int change(struct fake_kfd_queue *queue)
{
	int error = fake_kfd.error;

	fake_kfd.error = 0;
	return error ? fail_with(error) : !queue ? fail_with(EFAULT) : 0;
}

static int update(const struct kfd_ioctl_update_queue_args *args)
{
	struct fake_kfd_queue *queue = args ? find(args->queue_id) : NULL;

	if (change(queue) < 0)
		return -1;
	if (args->queue_percentage > 100 || args->queue_priority > KFD_MAX_QUEUE_PRIORITY ||
	    args->ring_base_address != queue->ring)
		return fail_with(EINVAL);
	queue->percentage = args->queue_percentage;
	queue->priority = args->queue_priority;
	return 0;
}

static int set_mask(const struct kfd_ioctl_set_cu_mask_args *args)
{
	struct fake_kfd_queue *queue = find(args->queue_id);

	if (change(queue) < 0)
		return -1;
	memcpy(&queue->mask, (const void *)(uintptr_t)args->cu_mask_ptr, sizeof(queue->mask));
	return 0;
}

static int destroy(const struct kfd_ioctl_destroy_queue_args *args)
{
	struct fake_kfd_queue *queue = find(args->queue_id);

	if (!queue)
		return fail_with(EINVAL);
	queue->exists = false;
	return 0;
}

static void note(char letter)
{
	fake_kfd.order[fake_kfd.calls++ % (sizeof(fake_kfd.order) - 1)] = letter;
}

__attribute__((visibility("default"))) int ioctl(int, unsigned long request, ...)
{
	void *argument;
	va_list args;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);
	switch (request) {
	case AMDKFD_IOC_CREATE_QUEUE: return note('c'), create(argument);
	case AMDKFD_IOC_DESTROY_QUEUE: return note('d'), destroy(argument);
	case AMDKFD_IOC_UPDATE_QUEUE: return note('u'), update(argument);
	case AMDKFD_IOC_SET_CU_MASK: return note('m'), set_mask(argument);
	}
	return fail_with(ENOTTY);
}
