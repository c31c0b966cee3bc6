/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/lease-text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t seconds_until(uint64_t deadline)
{
	struct timespec now;
	uint64_t usec;

	clock_gettime(CLOCK_BOOTTIME, &now);
	usec = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	return deadline > usec ? (deadline - usec + 999999) / 1000000 : 0;
}

/* What the deadline is to a lease in that state. */
static const char *what_comes(const char *state)
{
	if (strcmp(state, "waiting") == 0)
		return "gives up";
	if (strcmp(state, "activating") == 0)
		return "active";
	return strcmp(state, "granted") == 0 ? "to give CUs back" : "ends";
}

void lease_text_deadline(const char *state, uint64_t deadline, char *buf, size_t size)
{
	static const struct {
		uint64_t most, seconds;
		const char *name;
	} units[] = {
		{ 120, 1, "s" },
		{ 120 * 60, 60, "min" },
		{ 48 * 3600, 3600, "h" },
		{ UINT64_MAX, 24 * 3600, "days" },
	};
	uint64_t left;
	size_t i = 0;

	buf[0] = '\0';
	if (deadline == GPUARB_FOREVER || strcmp(state, "ending") == 0)
		return;

	left = seconds_until(deadline);
	if (left == 0 && (strcmp(state, "activating") == 0 || strcmp(state, "granted") == 0)) {
		snprintf(buf, size, "overdue"); /* others do not give way, or it does not */
		return;
	}
	while (left > units[i].most)
		i++;
	snprintf(buf, size, "%s in %" PRIu64 " %s", what_comes(state), left / units[i].seconds,
		 units[i].name);
}

void lease_text_why(const char *state, unsigned position, const char *reason, uint64_t deadline,
		    char *buf, size_t size)
{
	char place[32] = "", when[48];

	if (position > 0)
		snprintf(place, sizeof(place), "position %u", position);
	lease_text_deadline(state, deadline, when, sizeof(when));
	snprintf(buf, size, "%s%s%s%s%s", reason, *reason && *place ? "; " : "", place,
		 *when && (*reason || *place) ? "; " : "", when);
}
