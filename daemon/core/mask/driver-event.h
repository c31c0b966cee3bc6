/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An event of a GPU that its driver reports. A plain value. */

#include <stdint.h>
#include <sys/types.h>

/* Numbered as enum kfd_smi_event of <linux/kfd_ioctl.h>. */
enum driver_event_kind {
	DRIVER_UNKNOWN,
	DRIVER_VM_FAULT,
	DRIVER_THROTTLED,
	DRIVER_RESET_BEGINS,
	DRIVER_RESET_ENDED,
	DRIVER_MIGRATION_BEGINS,
	DRIVER_MIGRATION_ENDED,
	DRIVER_PAGE_FAULT_BEGINS,
	DRIVER_PAGE_FAULT_ENDED,
	DRIVER_EVICTED,
	DRIVER_RESTORED,
	DRIVER_UNMAPPED,
	DRIVER_EVENT_KINDS,
};

struct driver_event {
	enum driver_event_kind kind;
	pid_t pid;     /* evicted, restored: the process; VM fault: a thread of it; 0: none */
	uint64_t usec; /* evicted, restored: CLOCK_BOOTTIME */
	uint64_t
		number; /* of the reset; reasons of throttling, as bits; restored: 1 if the queues are still
			  * evicted, and restoring them is tried again */
	char text[32]; /* VM fault: the command; reset: the cause; "": not told */
};

/* "unknown", "vm-fault", …: the keys of the property DriverEvents. */
extern const char *const driver_event_names[DRIVER_EVENT_KINDS];
