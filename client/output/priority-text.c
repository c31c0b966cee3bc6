/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/priority-text.h"

#include <stdbool.h>
#include <stdio.h>

#include "core/policy/class.h"

const char *priority_name(uint32_t priority, char buf[static PRIORITY_NAME])
{
	static const struct {
		uint32_t priority;
		const char *word;
	} words[] = {
		{ PRIORITY_LOW, "low" },
		{ PRIORITY_NORMAL, "normal" },
		{ PRIORITY_HIGH, "high" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i].priority == priority)
			return words[i].word;
	snprintf(buf, PRIORITY_NAME, "%u", priority);
	return buf;
}

/* What the hardware tells apart: core/policy/class.h has where. */
static int class_of(uint32_t priority)
{
	return (priority >= PRIORITY_NORMAL) + (priority >= PRIORITY_HIGH);
}

/* A runtime has queues of normal priority beside those that it was asked for. */
static enum priority_seen compare(const struct gpuarb_partition *partition)
{
	int asked = class_of(partition->priority), most = 0;
	bool so = false;

	for (size_t i = 0; i < partition->n_priorities_seen; i++) {
		int seen = class_of(partition->priorities_seen[i]);

		so |= seen == asked;
		most = seen > most ? seen : most;
	}
	if (most > asked && most > class_of(PRIORITY_NORMAL))
		return PRIORITY_MORE;
	return so ? PRIORITY_AS_ASKED : PRIORITY_LESS;
}

enum priority_seen priority_text(const struct gpuarb_partition *partition, char *buf, size_t size)
{
	char asked[PRIORITY_NAME], seen[PRIORITY_NAME];
	const char *word = priority_name(partition->priority, asked);
	size_t n = partition->n_priorities_seen;
	enum priority_seen r;

	if (n == 0) {
		snprintf(buf, size, "%s%s", word,
			 partition->priority == PRIORITY_NORMAL
				 ? ""
				 : " (asked; not seen in the hardware)");
		return PRIORITY_AS_ASKED;
	}
	r = compare(partition);
	if (r == PRIORITY_AS_ASKED)
		snprintf(buf, size, "%s", word);
	else
		snprintf(buf, size, "%s (asked %s)",
			 priority_name(partition->priorities_seen[n - 1], seen), word);
	return r;
}
