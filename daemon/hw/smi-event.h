/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Parses the events that amdkfd prints on the file descriptor of AMDKFD_IOC_SMI_EVENTS, as
 * drivers/gpu/drm/amd/amdkfd/kfd_smi_events.c prints them (Linux 6.1 to 6.12). A line is the number of the
 * event in hexadecimal and what belongs to it:
 *
 *	3 1                              GPU reset begins: number of the reset; since 6.11 also the cause
 *	4 1                              GPU reset has ended
 *	1 12ab:python3                   VM fault: thread, command
 *	2 20:1                           throttled because of heat: reasons, how often
 *	9 81234567890 -4711 3a7c 2       queues evicted: ns of CLOCK_BOOTTIME, process, GPU id, reason
 *	a 81234567990 -4711 3a7c         queues restored; with " R" behind it, it failed and is tried again
 *	5 81234567890 -4711 @… …         a migration of pages begins
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/mask/driver-event.h"

/*
 * Parses one line, without its newline. Bytes that are not printable count as blanks. kfd_gpu_id: of the
 * GPU whose descriptor it is. -EBADMSG: no event that the kernel prints for this GPU; event->kind is
 * then DRIVER_UNKNOWN.
 */
int smi_event_parse(const char *line, size_t size, uint32_t kfd_gpu_id, struct driver_event *ret);
