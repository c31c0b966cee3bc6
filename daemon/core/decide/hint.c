/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/hint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append(struct refusal *refusal, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static void append(struct refusal *refusal, const char *format, va_list args)
{
	size_t used = strlen(refusal->hint);

	vsnprintf(refusal->hint + used, sizeof(refusal->hint) - used, format, args);
}

static void hint_more(struct refusal *refusal, const char *format, ...) PRINTF_LIKE(2, 3);

static void hint_more(struct refusal *refusal, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	append(refusal, format, args);
	va_end(args);
}

void hint_format(struct refusal *refusal, const char *format, ...)
{
	va_list args;

	refusal->hint[0] = '\0';
	va_start(args, format);
	append(refusal, format, args);
	va_end(args);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

const char *hint_amount(enum reason reason, uint64_t n, char buf[static HINT_AMOUNT])
{
	static const char units[] = "KMGTPE";
	uint64_t tenths = n;
	size_t i = 0;

	if (reason != REASON_VRAM || n < 1024) {
		snprintf(buf, HINT_AMOUNT, "%llu", (unsigned long long)n);
		return buf;
	}
	for (; tenths >> 10 >= 1024; tenths >>= 10)
		i++;
	/* Cut, not rounded: what is free must not look like more. */
	tenths = (tenths >> 10) * 10 + (tenths & 1023) * 10 / 1024;
	snprintf(buf, HINT_AMOUNT, "%llu.%llu%c", (unsigned long long)tenths / 10,
		 (unsigned long long)tenths % 10, units[i]);
	return buf;
}

/* The strangers with the most queues, by name: as many as there is room for. */
static void hint_unmanaged_processes(struct refusal *refusal, const struct gpu *gpu)
{
	for (size_t i = 0; i < gpu->observed.n_processes && i < 3; i++) {
		const struct unmanaged_process *s = &gpu->observed.processes[i];

		hint_more(refusal, "%s pid %d (%s) has %u queue%s", i == 0 ? ";" : ",", s->pid,
			  s->command, s->queues, plural(s->queues));
	}
	if (gpu->observed.n_processes > 3)
		hint_more(refusal, " and %zu more", gpu->observed.n_processes - 3);
}

void hint_countable(struct refusal *refusal, const struct gpu *gpu, enum reason reason,
		    uint64_t free)
{
	static const char *const units[REASONS] = {
		[REASON_QUEUES] = "queue slot",
		[REASON_PROCESSES] = "process slot",
		[REASON_SDMA] = "SDMA queue",
		[REASON_COOPERATIVE] = "cooperative (GWS) queue",
	};
	char amount[HINT_AMOUNT];

	hint_amount(reason, free, amount);
	if (reason == REASON_VRAM)
		hint_format(refusal, "%s of VRAM is free", amount);
	else
		hint_format(refusal, "%s %s%s %s free", amount, units[reason], plural(free),
			    free == 1 ? "is" : "are");
	if (reason == REASON_QUEUES && gpu->reserve_queues > 0)
		hint_more(refusal, ", %u in reserve", gpu->reserve_queues);
	if (reason == REASON_QUEUES || reason == REASON_PROCESSES)
		hint_unmanaged_processes(refusal, gpu);
}

void hint_oversubscribed(struct refusal *refusal, const struct gpu *gpu)
{
	const struct gpu_info *info = &gpu->info;

	hint_format(refusal, "%u queue%s of %u process%s on %u slot%s and %u VMID%s",
		    gpu->observed.used.queues, plural(gpu->observed.used.queues),
		    gpu->observed.used.processes, gpu->observed.used.processes == 1 ? "" : "es",
		    info->queue_slots, plural(info->queue_slots), info->process_slots,
		    plural(info->process_slots));
	hint_unmanaged_processes(refusal, gpu);
}

void hint_cus(struct refusal *refusal, unsigned free, const struct place_miss *miss,
	      const char *where)
{
	const char *are = free == 1 ? " is" : "s are";

	if (miss->below > 0 && miss->above > 0)
		hint_format(refusal, "%u or %u CUs would fit %s", miss->below, miss->above, where);
	else if (miss->above > 0)
		hint_format(refusal, "%u CU%s would fit %s, fewer would not", miss->above,
			    plural(miss->above), where);
	else if (miss->below > 0 && miss->below == free)
		hint_format(refusal, "%u CU%s free for it, and would fit %s", free, are, where);
	else if (miss->below > 0)
		hint_format(refusal, "%u CU%s free for it; %u would fit %s", free, are, miss->below,
			    where);
	else if (free == 0)
		hint_format(refusal, "nothing would fit %s", where);
	else
		hint_format(refusal, "%u CU%s free for it; nothing would fit %s", free, are, where);
}

static const struct refusal *deciding(const struct result *result)
{
	bool quota = result->kind == RESULT_QUOTA_EXCEEDED;

	for (size_t i = 0; i < result->n_refusals; i++) {
		const struct refusal *refusal = &result->refusals[i];

		if (quota ? refusal->reason == REASON_QUOTA : refusal->retry)
			return refusal;
	}
	return &result->refusals[0];
}

void hint_waits_for(const struct result *result, char ret[static REQUEST_TEXT])
{
	const struct refusal *refusal = deciding(result);
	const char *more = result->n_refusals > 1 ? "; other GPUs refuse too" : "";
	char asked[HINT_AMOUNT];

	memset(ret, 0, REQUEST_TEXT);
	if (refusal->behind > 0) {
		snprintf(ret, REQUEST_TEXT, "waits for its turn on %s, behind lease %llu%s",
			 refusal->gpu, (unsigned long long)refusal->behind, more);
		return;
	}
	switch (refusal->reason) {
	case REASON_DRAIN:
		snprintf(ret, REQUEST_TEXT, "waits for %s, which is being drained%s", refusal->gpu,
			 more);
		break;
	case REASON_OVERSUBSCRIBED:
		snprintf(ret, REQUEST_TEXT, "waits for %s, which is oversubscribed%s", refusal->gpu,
			 more);
		break;
	case REASON_UNMANAGED:
		snprintf(ret, REQUEST_TEXT, "waits for what processes without a lease use of %s%s",
			 refusal->gpu, more);
		break;
	case REASON_QUOTA:
		snprintf(ret, REQUEST_TEXT, "waits for the user's own quota on %s", refusal->gpu);
		break;
	default:
		snprintf(ret, REQUEST_TEXT, "waits for %s on %s, %s asked%s",
			 reason_name(refusal->reason), refusal->gpu,
			 hint_amount(refusal->reason, refusal->asked, asked), more);
	}
}
