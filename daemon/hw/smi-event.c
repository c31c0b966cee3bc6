/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/smi-event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 128U /* the kernel prints 96 at most: KFD_SMI_EVENT_MSG_SIZE */

/* Copies the line with blanks for what is not printable: a kernel prints a NUL where it means no flag. */
static bool copy_line(const char *line, size_t size, char copy[static LINE_MAX_BYTES])
{
	if (size >= LINE_MAX_BYTES)
		return false;
	for (size_t i = 0; i < size; i++)
		copy[i] = line[i] > ' ' && line[i] <= '~' ? line[i] : ' ';
	while (size > 0 && copy[size - 1] == ' ')
		size--;
	copy[size] = '\0';
	return true;
}

/* Moves *at behind a number of this base, and behind the character after it; '\0': the end. */
static bool take(char **at, int base, char after, uint64_t *ret)
{
	char *end;

	if (**at < '0' || (**at > '9' && (base == 10 || **at < 'a' || **at > 'f')))
		return false; /* strtoull() takes blanks and signs */
	errno = 0;
	*ret = strtoull(*at, &end, base);
	if (errno != 0 || *end != after)
		return false;
	*at = after ? end + 1 : end;
	return true;
}

static void set_text(struct driver_event *event, const char *text)
{
	snprintf(event->text, sizeof(event->text), "%s", text);
}

/* "SEQUENCE" or "SEQUENCE CAUSE" */
static bool take_reset(char *at, struct driver_event *event)
{
	if (!take(&at, 16, strchr(at, ' ') ? ' ' : '\0', &event->number))
		return false;
	set_text(event, at);
	return true;
}

/* "THREAD:COMMAND" */
static bool take_fault(char *at, struct driver_event *event)
{
	uint64_t pid;

	if (!take(&at, 16, ':', &pid) || pid == 0 || pid > INT32_MAX)
		return false;
	event->pid = (pid_t)pid;
	set_text(event, at);
	return true;
}

/* "REASONS:COUNT" */
static bool take_throttling(char *at, struct driver_event *event)
{
	uint64_t count;

	return take(&at, 16, ':', &event->number) && take(&at, 16, '\0', &count);
}

/* "NS -PID " */
static bool take_process(char **at, struct driver_event *event)
{
	uint64_t ns, pid;

	if (!take(at, 10, ' ', &ns) || *(*at)++ != '-' || !take(at, 10, ' ', &pid) || pid == 0 ||
	    pid > INT32_MAX)
		return false;
	event->usec = ns / 1000;
	event->pid = (pid_t)pid;
	return true;
}

/* "NS -PID GPU REASON" */
static bool take_eviction(char *at, uint32_t kfd_gpu_id, struct driver_event *event)
{
	uint64_t gpu;

	return take_process(&at, event) && take(&at, 16, ' ', &gpu) && gpu == kfd_gpu_id &&
	       take(&at, 10, '\0', &event->number);
}

/* "NS -PID GPU", and a flag: R, or 0 or none. */
static bool take_restore(char *at, uint32_t kfd_gpu_id, struct driver_event *event)
{
	bool flag = take_process(&at, event) && strchr(at, ' ');
	uint64_t gpu;

	if (event->pid == 0 || !take(&at, 16, flag ? ' ' : '\0', &gpu) || gpu != kfd_gpu_id)
		return false;
	event->number = strcmp(at, "R") == 0;
	return !flag || strcmp(at, "R") == 0 || strcmp(at, "0") == 0;
}

static bool take_event(char *at, uint32_t kfd_gpu_id, struct driver_event *event)
{
	switch (event->kind) {
	case DRIVER_VM_FAULT: return take_fault(at, event);
	case DRIVER_THROTTLED: return take_throttling(at, event);
	case DRIVER_RESET_BEGINS:
	case DRIVER_RESET_ENDED: return take_reset(at, event);
	case DRIVER_EVICTED: return take_eviction(at, kfd_gpu_id, event);
	case DRIVER_RESTORED: return take_restore(at, kfd_gpu_id, event);
	default: return take_process(&at, event); /* counted, and no more */
	}
}

int smi_event_parse(const char *line, size_t size, uint32_t kfd_gpu_id, struct driver_event *ret)
{
	struct driver_event event = { .kind = DRIVER_UNKNOWN };
	char copy[LINE_MAX_BYTES], *at = copy;
	uint64_t kind;

	*ret = event;
	if (!copy_line(line, size, copy) || !take(&at, 16, ' ', &kind) || kind == 0 ||
	    kind >= DRIVER_EVENT_KINDS)
		return -EBADMSG;
	event.kind = (enum driver_event_kind)kind;
	if (!take_event(at, kfd_gpu_id, &event))
		return -EBADMSG;
	*ret = event;
	return 0;
}
