/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The last step of the protocol in commit.c: tells holders, the journal and clients on the bus what
 * has changed.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "protocol/protocol.h"
#include "cap/cap.h"
#include "dbus/partition.h"
#include "dbus/record.h"

struct publish {
	uint64_t gpu_usec[REQUEST_WANTS]; /* when each GPU was signalled last */
	uint64_t gpus;                    /* to be signalled, as bits */
	uint64_t second_usec;             /* the start of a second */
	unsigned n_leases;                /* new ones since then */
	bool leases;                      /* some are unsignalled */
	sd_event_source *timer;           /* signals what was put off */
	uint64_t oversubscribed;          /* GPUs whose oversubscription was logged, as bits */
	uint64_t drawn; /* GPUs on which it was logged that a process draws, as bits */
};

/* ---- holders: records after dbus/record.h ------------------------------------------------ */

_Static_assert(GPUARB_RECORD_WORDS == CODEC_WORDS, "a record takes any mask");
_Static_assert((int)GPUARB_RECORD_ENDING == (int)STATE_ENDING, "same order of states");

/* What an end is to a program that waited; all else is an end like any other. */
static const uint32_t causes[RESULT_KINDS] = {
	[RESULT_TIMED_OUT] = GPUARB_RECORD_TIMED_OUT,
	[RESULT_NEVER_FITS] = GPUARB_RECORD_NEVER_FITS,
	[RESULT_NOT_PERMITTED] = GPUARB_RECORD_NOT_PERMITTED,
	[RESULT_QUOTA_EXCEEDED] = GPUARB_RECORD_NOT_PERMITTED,
	[RESULT_NO_SUCH_TENANT] = GPUARB_RECORD_NOT_PERMITTED,
	[RESULT_NO_SUCH_GPU] = GPUARB_RECORD_NO_SUCH_GPU,
	[RESULT_SHUTDOWN] = GPUARB_RECORD_SHUTDOWN,
};

/* Joins the words with blanks, as many as there is room for. */
static void fill_gaps(const struct gpu *gpu, char *ret, size_t size)
{
	const char *gaps[GPU_GAPS];
	size_t n = gpu_gaps(gpu, gaps), length = 0;

	for (size_t i = 0; i < n && length + 1 + strlen(gaps[i]) < size; i++)
		length += (size_t)snprintf(ret + length, size - length, "%s%s", i > 0 ? " " : "",
					   gaps[i]);
}

/* For dbus/partition.h. */
#define FILL_TEXT(name, value) snprintf(ret->name, sizeof(ret->name), "%s", value);
#define FILL_NUMBER(name, value) ret->name = value;
#define FILL_MASK(name, value) codec_encode(&gpu->codec, &(value), ret->name);
#define FILL_WORDS(name, value) fill_gaps(value, ret->name, sizeof(ret->name));
#define NO_MEMBER(name, value)

static void fill_partition(const struct arbiter *arbiter, const struct lease *lease,
			   const struct partition *p, struct gpuarb_record_partition *ret)
{
	const struct gpu *gpu = &arbiter->gpus[p->gpu];

	GPUARB_PARTITION(FILL_TEXT, FILL_NUMBER, NO_MEMBER, FILL_MASK, FILL_NUMBER, NO_MEMBER,
			 FILL_WORDS)
	ret->n_words = (uint32_t)codec_words(&gpu->codec);
	ret->flags = (p->paused ? GPUARB_RECORD_PAUSED : 0) |
		     (p->intruders.alone ? GPUARB_RECORD_ALONE : 0) |
		     (gpu->reset_until_usec > 0 || lease->reset.pending ? GPUARB_RECORD_RESETTING
									: 0);
	ret->resets = (uint32_t)lease->reset.count;
	ret->disturbed_cus = p->intruders.cus;
}

static void fill_header(const struct arbiter *arbiter, const struct lease *lease,
			struct gpuarb_record *ret)
{
	char reason[REQUEST_TEXT];

	ret->version = GPUARB_RECORD_VERSION;
	ret->header_size = sizeof(*ret);
	ret->partition_size = sizeof(struct gpuarb_record_partition);
	ret->n_partitions = (uint32_t)lease->n_partitions;
	ret->lease = lease->id;
	ret->generation = lease->generation;
	ret->deadline_usec = lease->deadline_usec;
	ret->state = (uint32_t)lease->state;
	ret->cause = lease->state == STATE_ENDING ? causes[lease->cause] : 0;
	snprintf(ret->reason, sizeof(ret->reason), "%s", arbiter_reason(arbiter, lease, reason));
}

/* *ret is for free(). */
static int make_record(const struct arbiter *arbiter, const struct lease *lease, void **ret,
		       size_t *ret_size)
{
	size_t size = sizeof(struct gpuarb_record) +
		      lease->n_partitions * sizeof(struct gpuarb_record_partition);
	struct gpuarb_record *record = calloc(1, size);
	struct gpuarb_record_partition *partitions;

	if (!record)
		return -ENOMEM;

	fill_header(arbiter, lease, record);
	partitions = (struct gpuarb_record_partition *)(record + 1);
	for (size_t i = 0; i < lease->n_partitions; i++)
		fill_partition(arbiter, lease, &lease->partitions[i], &partitions[i]);
	*ret = record;
	*ret_size = size;
	return 0;
}

void publish_to_holders(struct daemon *daemon, const struct lease *lease)
{
	_cleanup_(freep) void *record = NULL;
	size_t size = 0;

	if (make_record(daemon->arbiter, lease, &record, &size) >= 0)
		holders_tell(daemon->holders, lease->id, record, size);
}

void publish_to_holder(struct daemon *daemon, const struct lease *lease, int holder)
{
	_cleanup_(freep) void *record = NULL;
	size_t size = 0;

	if (make_record(daemon->arbiter, lease, &record, &size) >= 0)
		send(holder, record, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- signals ----------------------------------------------------------------------------- */

/* A client that watches needs the present state, not each one before it: a signal has all properties,
 * and the bus wakes for it whether anybody listens or not. */
#define SIGNAL_USEC UINT64_C(20000)

/* So many new leases of a second are signalled at once, later ones together after SIGNAL_USEC. */
#define SIGNALS_AT_ONCE 128U
#define SECOND_USEC UINT64_C(1000000)

static void signal_later(struct daemon *daemon, uint64_t told_usec)
{
	if (daemon->publish->gpus || daemon->publish->leases)
		return; /* the timer runs */
	sd_event_source_set_time(daemon->publish->timer, told_usec + SIGNAL_USEC);
	sd_event_source_set_enabled(daemon->publish->timer, SD_EVENT_ONESHOT);
}

static bool are_many(struct daemon *daemon, uint64_t now)
{
	if (now - daemon->publish->second_usec >= SECOND_USEC) {
		daemon->publish->second_usec = now;
		daemon->publish->n_leases = 0;
	}
	return ++daemon->publish->n_leases > SIGNALS_AT_ONCE;
}

/* A lease that ends before it is signalled as added is signalled as removed only. */
static void signal_lease(struct daemon *daemon, struct lease *lease, unsigned touched)
{
	uint64_t now = daemon_now_usec();

	if (!daemon->bus)
		return;
	if (touched & TOUCH_ADDED && are_many(daemon, now)) {
		signal_later(daemon, now);
		daemon->publish->leases = lease->unsignalled = true;
	}
	bus_tell_lease(daemon->bus, lease, touched);
}

static void signal_new_leases(struct daemon *daemon)
{
	struct arbiter *arbiter = daemon->arbiter;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

		if (!lease->unsignalled)
			continue;
		lease->unsignalled = false;
		bus_tell_lease(daemon->bus, lease, TOUCH_ADDED);
	}
}

/* ---- leases ------------------------------------------------------------------------------ */

static void tell_journal(struct daemon *daemon, const struct lease *lease, unsigned touched)
{
	if (touched & TOUCH_FALSE_ACK)
		journal_events_reason(daemon, lease, false);
	if (touched & TOUCH_DRIFT)
		journal_events_drift(daemon, lease);
	if (touched & TOUCH_ENDING)
		journal_events_ended(daemon, lease);
	else if (touched & TOUCH_PREEMPT)
		journal_events_preempt(daemon, lease);
	else if (touched & TOUCH_PAUSED)
		journal_events_reason(daemon, lease, true);
	else if (touched & TOUCH_ACTIVE)
		journal_events_changed(daemon, EVENT_ACTIVATED, lease);
}

/*
 * The file of a waiting lease is deleted after its holder was told: if the daemon crashes between
 * the two, the next start tells it again. In any case the file goes before the stored holders: the
 * next start drops a stored holder that has no file.
 */
static void publish_lease(struct daemon *daemon, struct lease *lease, unsigned touched)
{
	bool removed = touched & TOUCH_REMOVED;

	accounting_lease(daemon, lease, touched);
	if (removed)
		unit_caps_drop(daemon, lease);
	else if (touched & (TOUCH_ADDED | TOUCH_COMMITTED | TOUCH_ENDING))
		caps_review(daemon, lease->id);
	if (touched & (TOUCH_CHANGED | TOUCH_COMMITTED | TOUCH_ENDING | TOUCH_INTRUDERS))
		publish_to_holders(daemon, lease);
	tell_journal(daemon, lease, touched);
	signal_lease(daemon, lease, touched);
	if (!removed)
		return;
	if (lease->n_partitions == 0)
		commit_forget(daemon, lease);
	holders_drop(daemon->holders, lease->id);
	caps_drop(daemon, lease->id);
	lease_free(lease);
}

void publish_leases(struct daemon *daemon)
{
	struct lease *lease;
	unsigned touched;

	while ((lease = ledger_take_touched(daemon->arbiter, &touched)))
		publish_lease(daemon, lease, touched);
}

/* ---- GPUs -------------------------------------------------------------------------------- */

static void signal_gpu(struct daemon *daemon, unsigned index)
{
	uint64_t now = daemon_now_usec(), *told = &daemon->publish->gpu_usec[index];
	uint64_t bit = UINT64_C(1) << index;

	if (now - *told < SIGNAL_USEC) {
		signal_later(daemon, *told);
		daemon->publish->gpus |= bit;
		return;
	}
	*told = now;
	daemon->publish->gpus &= ~bit; /* it has all that the timer would signal */
	bus_tell_gpu(daemon->bus, index, CHANGE_PROPERTIES);
}

static int on_signals(sd_event_source *, uint64_t, void *userdata)
{
	struct daemon *daemon = userdata;
	uint64_t gpus = daemon->publish->gpus;
	bool leases = daemon->publish->leases;

	daemon->publish->gpus = 0;
	daemon->publish->leases = false;
	if (!daemon->bus)
		return 0;
	for (; gpus; gpus &= gpus - 1) {
		unsigned index = (unsigned)__builtin_ctzll(gpus);

		if (daemon->arbiter->gpus[index].shown)
			signal_gpu(daemon, index);
	}
	if (leases)
		signal_new_leases(daemon);
	return 0;
}

int publish_start(struct daemon *daemon)
{
	daemon->publish = calloc(1, sizeof(*daemon->publish));
	if (!daemon->publish)
		return -ENOMEM;
	return schedule_add(daemon, 1000, on_signals, &daemon->publish->timer);
}

void publish_stop(struct daemon *daemon)
{
	if (daemon->publish)
		sd_event_source_disable_unref(daemon->publish->timer);
	free(daemon->publish);
}

static void tell_bus(struct daemon *daemon, unsigned index, struct gpu *gpu)
{
	bool gone = gpu->shown && (gpu->absent || gpu->replaced);
	bool came = !gpu->absent && (!gpu->shown || gpu->replaced);

	gpu->shown = !gpu->absent;
	gpu->replaced = false;
	if (gone || came)
		log_notice("GPU %s was %s", gpu->info.name,
			   gone && came ? "replaced"
			   : came       ? "added"
					: "removed");
	if (!daemon->bus)
		return;
	if (gone)
		bus_tell_gpu(daemon->bus, index, CHANGE_REMOVED);
	if (came)
		bus_tell_gpu(daemon->bus, index, CHANGE_ADDED);
	else if (gpu->shown)
		signal_gpu(daemon, index);
}

/* Once until no process draws any more. */
static void tell_graphics(struct daemon *daemon, const struct gpu *gpu, uint64_t bit)
{
	if (gpu->graphics.state != GRAPHICS_DRAWN) {
		daemon->publish->drawn &= ~bit;
		return;
	}
	if ((daemon->publish->drawn & bit) || gpu->n_partitions == 0 ||
	    daemon->arbiter->settings->graphics == GRAPHICS_IGNORE)
		return;
	daemon->publish->drawn |= bit;
	journal_events_graphics(daemon, gpu);
}

void publish_gpus(struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->arbiter->n_gpus; i++) {
		struct gpu *gpu = &daemon->arbiter->gpus[i];
		uint64_t bit = UINT64_C(1) << i;

		if (!gpu->changed)
			continue;
		gpu->changed = false;
		journal_events_gpu(daemon, gpu, daemon->publish->oversubscribed & bit);
		daemon->publish->oversubscribed &= ~bit;
		daemon->publish->oversubscribed |= gpu->observed.oversubscribed ? bit : 0;
		tell_graphics(daemon, gpu, bit);
		tell_bus(daemon, i, gpu);
	}
}
