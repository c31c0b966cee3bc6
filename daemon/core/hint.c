/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/hint.h"

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

/* The strangers with the most queues, by name: as many as there is room for. */
static void hint_strangers(struct refusal *refusal, const struct gpu *gpu)
{
	for (size_t i = 0; i < gpu->n_strangers && i < 3; i++) {
		const struct stranger *s = &gpu->strangers[i];

		hint_more(refusal, "%s pid %d (%s) has %u queues", i == 0 ? ";" : ",", s->pid,
			  s->command, s->queues);
	}
	if (gpu->n_strangers > 3)
		hint_more(refusal, " and %zu more", gpu->n_strangers - 3);
}

void hint_countable(struct refusal *refusal, const struct gpu *gpu, enum reason reason,
		    uint64_t free)
{
	static const struct {
		enum reason reason;
		const char *unit;
	} units[] = {
		{ REASON_QUEUES, "queue slots" },
		{ REASON_PROCESSES, "process slots" },
		{ REASON_SDMA, "SDMA queues" },
		{ REASON_VRAM, "bytes of VRAM" },
		{ REASON_COOPERATIVE, "cooperative (GWS) queues" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (units[i].reason == reason)
			hint_format(refusal, "%llu %s are free", (unsigned long long)free,
				    units[i].unit);
	if (reason == REASON_QUEUES && gpu->reserve_queues > 0)
		hint_more(refusal, ", %u in reserve", gpu->reserve_queues);
	if (reason == REASON_QUEUES || reason == REASON_PROCESSES)
		hint_strangers(refusal, gpu);
}

void hint_oversubscribed(struct refusal *refusal, const struct gpu *gpu)
{
	hint_format(refusal, "%u queues of %u processes on %u slots and %u VMIDs", gpu->seen.queues,
		    gpu->seen.processes, gpu->info.queue_slots, gpu->info.process_slots);
	hint_strangers(refusal, gpu);
}

void hint_cus(struct refusal *refusal, unsigned free, const struct place_miss *miss,
	      const char *where)
{
	if (miss->below > 0 && miss->above > 0)
		hint_format(refusal, "%u or %u CUs would fit %s", miss->below, miss->above, where);
	else if (miss->above > 0)
		hint_format(refusal, "%u CUs would fit %s, fewer would not", miss->above, where);
	else if (miss->below > 0)
		hint_format(refusal, "%u CUs are free for it; %u would fit %s", free, miss->below,
			    where);
	else
		hint_format(refusal, "%u CUs are free for it; nothing would fit %s", free, where);
}
