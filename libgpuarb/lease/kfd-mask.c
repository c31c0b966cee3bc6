/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The one thing that is asked of the driver: a mask for a queue. There is no way to read it. */

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "libgpuarb/lease/apply.h"

/* As in <linux/kfd_ioctl.h>, which wants headers of libdrm. */
struct set_cu_mask {
	uint32_t queue_id;
	uint32_t num_cu_mask; /* bits, a multiple of 32 */
	uint64_t cu_mask_ptr;
};

#define SET_CU_MASK _IOW('K', 0x1A, struct set_cu_mask)

/* A process has one set of queues, however often it opens the device (kfd_create_process());
 * an fd that it inherited acts for nobody, so what others opened is no use. */
static int open_device(void *userdata)
{
	int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	(void)userdata;
	return fd < 0 ? -errno : fd;
}

static int set_mask(void *userdata, int fd, uint32_t queue, const struct mask *mask)
{
	struct set_cu_mask args = {
		.queue_id = queue,
		.num_cu_mask = (uint32_t)(mask->words * 32),
		.cu_mask_ptr = (uintptr_t)mask->word,
	};

	(void)userdata;
	while (ioctl(fd, SET_CU_MASK, &args) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

const struct driver kfd_driver = { .open = open_device, .set_mask = set_mask };
