/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/driver-event.h"

const char *const driver_event_names[DRIVER_EVENT_KINDS] = {
	[DRIVER_UNKNOWN] = "unknown",
	[DRIVER_VM_FAULT] = "vm-fault",
	[DRIVER_THROTTLED] = "throttled",
	[DRIVER_RESET_BEGINS] = "reset",
	[DRIVER_RESET_ENDED] = "reset-ended",
	[DRIVER_MIGRATION_BEGINS] = "migration",
	[DRIVER_MIGRATION_ENDED] = "migration-ended",
	[DRIVER_PAGE_FAULT_BEGINS] = "page-fault",
	[DRIVER_PAGE_FAULT_ENDED] = "page-fault-ended",
	[DRIVER_EVICTED] = "evicted",
	[DRIVER_RESTORED] = "restored",
	[DRIVER_UNMAPPED] = "unmapped",
};
