/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The reason of a lease: a sentence about its state, composed from facts whenever it is asked for. lease->reason keeps
 * what a restart must not lose: why a lease ends, and what the last decision about a waiting lease, or one that awaits
 * CUs, found in its way.
 */

#include "core/change/arbiter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/decide/borrow.h"
#include "core/decide/exclusive.h"
#include "util/text.h"

#define NAMED 3U /* leases in a reason */
#define TEXT 512U

/* Each writes its sentence about the lease; without one it leaves ret empty. */
typedef void (*sentence_t)(const struct arbiter *arbiter, const struct lease *lease, char *ret,
			   size_t size);

static void put_kept(const struct arbiter *, const struct lease *lease, char *ret, size_t size)
{
	if (lease->state == STATE_WAITING || lease->state == STATE_REVOKING ||
	    lease->state == STATE_ENDING || lease->state == STATE_ACTIVATING)
		snprintf(ret, size, "%s", lease->reason);
}

/* What the lease has not returned to others is said before what it awaits itself. */
static void put_awaits(const struct arbiter *, const struct lease *lease, char *ret, size_t size)
{
	if (lease_awaits_resize(lease))
		snprintf(ret, size, "%s", lease->reason);
}

/* ---- waiting ------------------------------------------------------------------------------- */

/* "waits for leases 3, 4, 7 and 2 more, which are revoked for it" */
static void put_revoked(const struct arbiter *arbiter, const struct lease *lease, char *ret,
			size_t size)
{
	char ids[TEXT / 2] = "", more[32] = "";
	size_t n = 0, length = 0;

	for (size_t i = 0; lease->wait.preempts && i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->revoked_for == lease->id && n++ < NAMED)
			length += (size_t)snprintf(ids + length, sizeof(ids) - length,
						   "%s %" PRIu64, length > 0 ? "," : "",
						   arbiter->leases[i]->id);
	if (n == 0)
		return;
	if (n > NAMED)
		snprintf(more, sizeof(more), " and %zu more", n - NAMED);
	snprintf(ret, size, "waits for lease%s%s%s, which %s revoked for it", n == 1 ? "" : "s",
		 ids, more, n == 1 ? "is" : "are");
}

static void put_waiting(const struct arbiter *arbiter, const struct lease *lease, char *ret,
			size_t size)
{
	if (lease->state != STATE_WAITING)
		return;
	put_revoked(arbiter, lease, ret, size);
	if (!ret[0] && lease->wait.moves_usec)
		snprintf(ret, size, "waits for leases that move to make room for it");
}

/* ---- CUs that are reclaimed ---------------------------------------------------------------- */

void reason_awaits(struct arbiter *arbiter, struct lease *lease, const struct lease *by,
		   const struct refusal *disturbed)
{
	char wait[REFUSAL_TEXT], who[64] = "", text[TEXT], now[REQUEST_TEXT];
	unsigned gpu = 0, cus = by ? borrow_overlap(arbiter, lease, by, &gpu) : 0;
	const char *name = arbiter->gpus[gpu].info.name;

	if (by && pause_is_due(by)) {
		snprintf(text, TEXT, "waits until lease %" PRIu64 " has paused on %s", by->id,
			 name);
	} else if (by) {
		snprintf(text, TEXT, "waits for %u CU%s of %s, which lease %" PRIu64 " gives back",
			 cus, cus == 1 ? "" : "s", name, by->id);
	} else {
		refusal_wait(disturbed, wait);
		if (disturbed->n_processes > 0)
			snprintf(who, sizeof(who), ": pid %d (%s)", disturbed->processes[0].pid,
				 disturbed->processes[0].command);
		snprintf(text, TEXT, "waits for %s%s", wait, who);
	}
	if (strcmp(lease->reason, text_clean(now, sizeof(now), text)) == 0)
		return;
	memcpy(lease->reason, now, sizeof(now));
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

/* ---- what the holder has not done ---------------------------------------------------------- */

static void put_overdue(const struct arbiter *, const struct lease *lease, char *ret, size_t size)
{
	if (lease->state == STATE_GRANTED && lease->enforce.step != ENFORCE_STEP_NONE)
		snprintf(ret, size, "has not %s, and its deadline has passed",
			 pause_is_due(lease) ? "paused" : "given back CUs that others need");
}

static void put_false_ack(const struct arbiter *arbiter, const struct lease *lease, char *ret,
			  size_t size)
{
	const struct partition *p = lease->verify.false_ack ? verify_find(lease) : NULL;
	pid_t active = p ? p->queues.active_pid : 0;

	if (p)
		snprintf(ret, size,
			 "acknowledged generation %" PRIu64 ", but a queue of pid %d still %s %s%s",
			 lease->generation, active ? active : p->queues.wide_pid,
			 active ? "runs on" : "has CUs of", arbiter->gpus[p->gpu].info.name,
			 active ? ", where it is paused" : " outside its mask");
}

static void put_paused(const struct arbiter *arbiter, const struct lease *lease, char *ret,
		       size_t size)
{
	const struct tenant *tenant;
	const struct lease *by = NULL;
	char longer[64] = "";
	unsigned gpu = 0;

	for (size_t i = 0; lease->pause.since_usec > 0 && i < lease->n_partitions && !by; i++) {
		gpu = lease->partitions[i].gpu;
		by = exclusive_on(arbiter, gpu, lease);
	}
	if (!by)
		return;
	tenant = tenant_named(arbiter->settings, lease->tenant);
	if (lease->pause.long_reported && tenant && tenant->max_pause_usec > 0)
		snprintf(longer, sizeof(longer), " for more than %" PRIu64 " ms, its max-pause,",
			 tenant->max_pause_usec / 1000);
	snprintf(ret, size, "paused%s by exclusive lease %" PRIu64 " on %s", longer, by->id,
		 arbiter->gpus[gpu].info.name);
}

/* What the lease gave up stays taken as long as its queues may use it. Without a holder no program
 * receives the new masks. */
static void put_resized(const struct arbiter *arbiter, const struct lease *lease, char *ret,
			size_t size)
{
	pid_t pid = lease->n_bound > 0 ? lease->bound[0] : lease->pid;
	char until[64] = " or the lease ends";
	unsigned left = 0;

	if (!lease->resized || lease->state != STATE_GRANTED ||
	    lease->generation == lease->acknowledged || lease->deadline_usec != UINT64_MAX)
		return;
	FOR_EACH_PARTITION(p, lease)
		left += cuset_count(&p->occupied) - cuset_count(&p->cus);
	if (lease->adaptable)
		snprintf(until, sizeof(until), ", or %" PRIu64 " ms after they are needed",
			 arbiter->settings->activate_grace_usec / 1000);
	if (lease->n_holders == 0)
		snprintf(
			ret, size,
			"pid %d does not follow the resize: its queues keep CUs and priority until it ends; start it again",
			pid);
	else if (left == 0)
		snprintf(
			ret, size,
			"pid %d has not acknowledged the resize: its queues may still have the former CUs and priority",
			pid);
	else
		snprintf(ret, size,
			 "pid %d has not acknowledged the resize: %u CU%s taken until it has%s",
			 pid, left, left == 1 ? " stays" : "s stay", until);
}

/* ---- what happens to it -------------------------------------------------------------------- */

static void put_reset(const struct arbiter *arbiter, const struct lease *lease, char *ret,
		      size_t size)
{
	size_t at = lease->reset.partition;

	if (lease->reset.pending && at < lease->n_partitions)
		snprintf(ret, size, "%s was reset: its queues there are lost: restart its program",
			 arbiter->gpus[lease->partitions[at].gpu].info.name);
}

/* The first that has a sentence. */
static const sentence_t sentences[] = {
	put_waiting, put_kept,           put_false_ack, put_overdue, put_paused,
	put_awaits,  arbiter_drift_text, put_resized,   put_reset,   intruders_text,
};

const char *arbiter_reason(const struct arbiter *arbiter, const struct lease *lease,
			   char buf[static REQUEST_TEXT])
{
	char text[TEXT] = "";

	for (size_t i = 0; i < ARRAY_SIZE(sentences) && !text[0]; i++)
		sentences[i](arbiter, lease, text, sizeof(text));
	return text_clean(buf, REQUEST_TEXT, text);
}
