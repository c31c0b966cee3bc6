/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/lease-text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/policy/class.h"
#include "util/base.h"
#include "util/clock.h"

/* ---- state and deadline --------------------------------------------------------------------- */

uint64_t lease_clock_usec(void)
{
	return clock_usec(CLOCK_BOOTTIME);
}

static const struct unit {
	uint64_t most, seconds; /* up to `most` seconds */
	const char *name;
} units[] = {
	{ 120, 1, "s" },
	{ UINT64_C(120) * 60, 60, "min" },
	{ UINT64_C(48) * 3600, 3600, "h" },
	{ UINT64_MAX, UINT64_C(24) * 3600, "d" },
};

static const struct unit *unit_of(uint64_t seconds)
{
	size_t i = 0;

	while (seconds > units[i].most)
		i++;
	return &units[i];
}

void lease_text_span(uint64_t seconds, char buf[static LEASE_TEXT_AGE])
{
	const struct unit *unit = unit_of(seconds);

	snprintf(buf, LEASE_TEXT_AGE, "%" PRIu64 "%s", seconds / unit->seconds, unit->name);
}

void lease_text_age(uint64_t since, char buf[static LEASE_TEXT_AGE])
{
	uint64_t now = lease_clock_usec();

	buf[0] = '\0';
	if (since > 0)
		lease_text_span(now > since ? (now - since) / 1000000 : 0, buf);
}

/* What happens at the deadline of a lease in this state. */
static const char *event_of(const char *state)
{
	if (strcmp(state, "waiting") == 0)
		return "gives up";
	if (strcmp(state, "activating") == 0)
		return "active";
	return strcmp(state, "granted") == 0 ? "must return CUs" : "ends";
}

void lease_text_deadline(const char *state, uint64_t deadline, char *buf, size_t size)
{
	uint64_t now = lease_clock_usec(), left;
	const struct unit *unit;

	buf[0] = '\0';
	if (deadline == GPUARB_FOREVER || strcmp(state, "ending") == 0)
		return;

	left = deadline > now ? (deadline - now + 999999) / 1000000 : 0;
	if (left == 0 && (strcmp(state, "activating") == 0 || strcmp(state, "granted") == 0)) {
		snprintf(buf, size, "overdue"); /* a borrower has not acknowledged */
		return;
	}
	unit = unit_of(left);
	snprintf(buf, size, "%s in %" PRIu64 " %s", event_of(state), left / unit->seconds,
		 unit->name);
}

const char *lease_text_state(const struct gpuarb_lease_info *lease)
{
	for (size_t i = 0; strcmp(lease->state, "granted") == 0 && i < lease->n_partitions; i++)
		if (lease->partitions[i].paused)
			return "paused";
	return lease->state;
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

const struct gpuarb_partition *partition_on_gpu(const struct gpuarb_lease_info *lease,
						const char *gpu)
{
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (strcmp(lease->partitions[i].gpu, gpu) == 0)
			return &lease->partitions[i];
	return NULL;
}

/* ---- lent and borrowed CUs ------------------------------------------------------------------ */

bool lent_by(const struct gpuarb_lease_info *lease)
{
	return strcmp(lease->state, "inactive") == 0;
}

/* The bits of word w of the partition's mask that are also in the mask of another lease that lends,
 * or does not. */
static uint32_t common(const struct lent *all, const struct gpuarb_lease_info *lease,
		       const struct gpuarb_partition *partition, size_t w, bool lends)
{
	uint32_t others = 0;

	for (size_t l = 0; l < all->n; l++) {
		const struct gpuarb_lease_info *other = &all->leases[l];
		const struct gpuarb_partition *shared = partition_on_gpu(other, partition->gpu);

		if (other->id != lease->id && lent_by(other) == lends && shared &&
		    w < shared->cu_mask_words)
			others |= shared->cu_mask[w];
	}
	return partition->cu_mask[w] & others;
}

static unsigned count(const struct lent *all, const struct gpuarb_lease_info *lease, size_t i,
		      bool lends)
{
	const struct gpuarb_partition *partition = &lease->partitions[i];
	unsigned n = 0;

	for (size_t w = 0; w < partition->cu_mask_words; w++)
		n += (unsigned)__builtin_popcount(common(all, lease, partition, w, lends));
	return n;
}

unsigned lent_out(const struct lent *all, const struct gpuarb_lease_info *lease, size_t i)
{
	return lent_by(lease) ? count(all, lease, i, false) : 0;
}

unsigned lent_in(const struct lent *all, const struct gpuarb_lease_info *lease, size_t i)
{
	return lent_by(lease) ? 0 : count(all, lease, i, true);
}

void lent_text(const struct lent *all, const struct gpuarb_lease_info *lease, char *buf,
	       size_t size)
{
	unsigned cus = 0, out = 0, in = 0;

	for (size_t i = 0; i < lease->n_partitions; i++) {
		cus += lease->partitions[i].cus;
		out += lent_out(all, lease, i);
		in += lent_in(all, lease, i);
	}
	buf[0] = '\0';
	if (lent_by(lease))
		snprintf(buf, size, "lends %u of %u CUs", out, cus);
	else if (in > 0)
		snprintf(buf, size, "borrows %u of %u CUs", in, cus);
}

/* ---- priority ------------------------------------------------------------------------------- */

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

/* A runtime creates queues of normal priority besides those with the requested one. */
static enum priority_match compare(const struct gpuarb_partition *partition)
{
	unsigned asked = priority_class(partition->priority), most = 0;
	bool same = false;

	for (size_t i = 0; i < partition->n_priorities_seen; i++) {
		unsigned observed = priority_class(partition->priorities_seen[i]);

		same |= observed == asked;
		most = observed > most ? observed : most;
	}
	if (most > asked && most > priority_class(PRIORITY_NORMAL))
		return PRIORITY_MORE;
	return same ? PRIORITY_AS_ASKED : PRIORITY_LESS;
}

enum priority_match priority_text(const struct gpuarb_partition *partition, char *buf, size_t size)
{
	char asked[PRIORITY_NAME], observed[PRIORITY_NAME];
	const char *word = priority_name(partition->priority, asked);
	size_t n = partition->n_priorities_seen;
	enum priority_match r;

	if (n == 0) {
		snprintf(buf, size, "%s%s", word,
			 partition->priority == PRIORITY_NORMAL
				 ? ""
				 : " (asked; not observed in the hardware)");
		return PRIORITY_AS_ASKED;
	}
	r = compare(partition);
	if (r == PRIORITY_AS_ASKED)
		snprintf(buf, size, "%s", word);
	else
		snprintf(buf, size, "%s (asked %s)",
			 priority_name(partition->priorities_seen[n - 1], observed), word);
	return r;
}

const char *uncapped_text(const char *uncapped)
{
	static const char *const texts[][2] = {
		{ "process", "no process is bound to it: start it with gpuarbctl run in a unit of "
			     "its own" },
		{ "filter", "a process of it is not under the filter of gpuarbctl run --cap" },
		{ "sdma-queues", "it has no SDMA queues, which the kernel would count as well: ask "
				 "for them with --sdma-queues, or use gpuarbctl run --cap" },
		{ "unit", "its processes share their unit with others: start it as a service, with "
			  "systemd-run --scope, or with gpuarbctl run --cap" },
		{ "kernel", "the kernel does not limit the queues of units: mend what gpuarbctl "
			    "status names, or use gpuarbctl run --cap" },
		{ "pending", "the kernel has not taken its budget yet" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (strcmp(texts[i][0], uncapped) == 0)
			return texts[i][1];
	return uncapped; /* of a later gpuarbd */
}
