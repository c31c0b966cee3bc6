/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A C library whose ioctl() is KFD: it records what the queues of this process are told. Creating a
 * queue gives it the lowest free id. */

#include <stdbool.h>
#include <stdint.h>

#define FAKE_KFD_QUEUES 8U

struct fake_kfd {
	struct fake_kfd_queue {
		bool exists;
		uint64_t ring;
		uint32_t percentage, priority;
		uint32_t mask; /* its first word */
	} queues[FAKE_KFD_QUEUES];
	unsigned calls; /* of any kind */
	char order[64]; /* a letter for each call: c create, d destroy, u update, m mask */
	int error;      /* of the next update or mask; 0: none */
};
extern struct fake_kfd fake_kfd;
