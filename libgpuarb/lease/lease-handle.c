/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A lease that this program holds. The daemon reports its changes through the holder. */

#include "libgpuarb/lease/lease-handle.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "dbus/names.h"
#include "dbus/partition.h"
#include "dbus/record.h"
#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"
#include "libgpuarb/lease/lease-calls.h"

/* The D-Bus error names for the reasons of an end. */
static const char *const causes[] = {
	[GPUARB_RECORD_ENDED] = GPUARB_ERROR_NO_SUCH_LEASE,
	[GPUARB_RECORD_TIMED_OUT] = GPUARB_ERROR_TIMED_OUT,
	[GPUARB_RECORD_NEVER_FITS] = GPUARB_ERROR_NEVER_FITS,
	[GPUARB_RECORD_NOT_PERMITTED] = GPUARB_ERROR_NOT_PERMITTED,
	[GPUARB_RECORD_NO_SUCH_GPU] = GPUARB_ERROR_NO_SUCH_GPU,
	[GPUARB_RECORD_SHUTDOWN] = GPUARB_ERROR_SHUTDOWN,
};

GPUARB_EXPORT void gpuarb_lease_close(struct gpuarb_lease *lease)
{
	struct kfd_held held;

	if (!lease)
		return;

	if (lease->agent)
		lease->agent_calls->stop(lease->agent);
	kfd_lock(&held);
	mask_cache_resume(&lease->mask_cache, &kfd_driver);
	kfd_unlock(&held);
	gpuarb_lease_attach(lease, NULL, NULL); /* its done() may still use the lease */
	close_fd(&lease->fd);
	close_fd(&lease->process_fd);
	arena_clear(&lease->arena);
	mask_cache_clear(&lease->mask_cache);
	gpuarb_unreference(lease->gpuarb);
	free(lease);
}

int lease_refresh(struct gpuarb_lease *lease)
{
	struct lease_path path = lease_path(lease->info.id);
	_cleanup_(free_message) DBusMessage *reply = NULL;
	_cleanup_(arena_clear) struct arena arena = { NULL };
	struct gpuarb_lease_info info;
	struct lease_facts facts;
	const char *key = NULL;
	DBusMessageIter iter;
	int r;

	r = call_properties(lease->gpuarb, path.text, GPUARB_INTERFACE_LEASE, &reply);
	if (r < 0)
		return r;

	dbus_message_iter_init(reply, &iter);
	r = read_lease(&iter, &arena, &info, &facts, &key);
	if (r < 0)
		return r == -EPROTO ? fail_answer(lease->gpuarb, "GetAll", key) : r;

	info.id = lease->info.id;
	lease->info = info;
	lease->terms.duration = facts.duration;
	arena_take(&lease->arena, &arena);
	return 0;
}

int lease_update(struct gpuarb_lease *lease)
{
	int r = lease_refresh(lease), end;

	if (r != -ENOENT)
		return r;

	end = lease_dispatch(lease, NULL, NULL); /* the last record has the reason */
	return end < 0 ? end : r;
}

bool lease_is(const struct gpuarb_lease *lease, const char *state)
{
	return strcmp(lease->info.state, state) == 0;
}

bool lease_pending(const struct gpuarb_lease *lease)
{
	return lease_is(lease, "waiting") || lease_is(lease, "activating");
}

bool lease_usable(const struct gpuarb_lease *lease)
{
	return lease_is(lease, "granted") || lease_is(lease, "inactive");
}

/* ---- records that the daemon sends through the holder (dbus/record.h) -------------------- */

static const char *const states[] = {
	[GPUARB_RECORD_WAITING] = "waiting",   [GPUARB_RECORD_GRANTED] = "granted",
	[GPUARB_RECORD_INACTIVE] = "inactive", [GPUARB_RECORD_ACTIVATING] = "activating",
	[GPUARB_RECORD_REVOKING] = "revoking", [GPUARB_RECORD_ENDING] = "ending",
};

static bool is_terminated(const char *text, size_t room)
{
	return memchr(text, '\0', room);
}

/* Whether the datagram is as long as its header says, and the header is well-formed. */
static bool record_valid(const struct gpuarb_record *record, size_t size)
{
	size_t rest;

	if (record->header_size < sizeof(*record) || record->header_size > size ||
	    record->partition_size < GPUARB_RECORD_PARTITION_0_1)
		return false;

	rest = size - record->header_size;
	return record->n_partitions <= rest / record->partition_size &&
	       record->state < ARRAY_SIZE(states) &&
	       is_terminated(record->reason, sizeof(record->reason));
}

static bool partition_valid(const struct gpuarb_record_partition *from)
{
	return from->n_words <= GPUARB_RECORD_WORDS &&
	       is_terminated(from->gpu, sizeof(from->gpu)) &&
	       is_terminated(from->tier, sizeof(from->tier)) &&
	       is_terminated(from->gaps, sizeof(from->gaps));
}

static int read_engines(uint32_t engines, struct arena *arena, struct gpuarb_partition *partition)
{
	uint32_t *list = arena_alloc(arena, 32, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;

	for (uint32_t engine = 0; engine < 32; engine++)
		if (engines & UINT32_C(1) << engine)
			list[n++] = engine;
	partition->shader_engines = list;
	partition->n_shader_engines = n;
	return 0;
}

/* Names separated by blanks. */
static int read_gaps(const char *text, struct arena *arena, struct gpuarb_partition *partition)
{
	char *copy = arena_string(arena, text), *rest = NULL;
	const char **list = arena_alloc(arena, strlen(text) / 2 + 1, sizeof(*list));
	size_t n = 0;

	if (!copy || !list)
		return -ENOMEM;

	for (char *p = strtok_r(copy, " ", &rest); p; p = strtok_r(NULL, " ", &rest))
		list[n++] = p;
	partition->gaps = list;
	partition->n_gaps = n;
	return 0;
}

/* For dbus/partition.h. */
#define COPY_TEXT(name, value) .name = arena_string(arena, from->name),
#define COPY_NUMBER(name, value) .name = from->name,
#define COPY_MASK(name, value) \
	.name = arena_copy(arena, from->name, from->n_words, sizeof(uint32_t)),
#define COPY_LATER(name, value)

static int read_partition(const struct gpuarb_record_partition *from, struct arena *arena,
			  struct gpuarb_partition *ret)
{
	int r;

	*ret = (struct gpuarb_partition){
		.cu_mask_words = from->n_words,
		GPUARB_PARTITION(COPY_TEXT, COPY_NUMBER, COPY_LATER, COPY_MASK, COPY_LATER,
				 COPY_LATER, COPY_LATER)
			.paused = (from->flags & GPUARB_RECORD_PAUSED) != 0,
	};
	if (!ret->gpu || !ret->cu_mask || !ret->tier)
		return -ENOMEM;

	r = read_engines(from->shader_engines, arena, ret);
	return r < 0 ? r : read_gaps(from->gaps, arena, ret);
}

static int read_all(const unsigned char *data, const struct gpuarb_record *record,
		    struct arena *arena, struct gpuarb_lease_info *info,
		    struct record_facts *ret_facts)
{
	struct gpuarb_partition *partitions = arena_alloc(arena, record->n_partitions,
							  sizeof(*partitions));

	if (!partitions)
		return -ENOMEM;

	ret_facts->alone = record->n_partitions > 0;
	for (size_t i = 0; i < record->n_partitions; i++) {
		struct gpuarb_record_partition from = { .sdma_xgmi_queues = 0 };
		int r;

		memcpy(&from, data + record->header_size + i * record->partition_size,
		       record->partition_size < sizeof(from) ? record->partition_size
							     : sizeof(from));
		if (!partition_valid(&from))
			return -EPROTO;
		r = read_partition(&from, arena, &partitions[i]);
		if (r < 0)
			return r;
		ret_facts->alone = ret_facts->alone && (from.flags & GPUARB_RECORD_ALONE);
		ret_facts->resetting |= from.flags & GPUARB_RECORD_RESETTING;
		if (from.resets > ret_facts->resets)
			ret_facts->resets = from.resets;
		if (i < LEASE_PARTITIONS)
			ret_facts->disturbed_cus[i] = from.disturbed_cus;
	}
	info->partitions = partitions;
	info->n_partitions = record->n_partitions;
	return 0;
}

int record_read(const void *data, size_t size, struct arena *arena, struct gpuarb_lease_info *ret,
		struct record_facts *ret_facts)
{
	struct gpuarb_lease_info info = { .id = 0 };
	struct record_facts facts = { 0 };
	struct gpuarb_record record;
	int r;

	if (size < sizeof(record.version))
		return -EPROTO;
	memcpy(&record.version, data, sizeof(record.version));
	if (record.version != GPUARB_RECORD_VERSION)
		return 0;

	if (size < sizeof(record))
		return -EPROTO;
	memcpy(&record, data, sizeof(record));
	if (!record_valid(&record, size))
		return -EPROTO;

	r = read_all(data, &record, arena, &info, &facts);
	if (r < 0)
		return r;

	info.id = record.lease;
	info.generation = record.generation;
	info.deadline = record.deadline_usec;
	info.state = states[record.state];
	info.reason = arena_string(arena, record.reason);
	if (!info.reason)
		return -ENOMEM;
	*ret = info;
	facts.cause = record.cause;
	*ret_facts = facts;
	return 1;
}

static int fail_ended(struct gpuarb_lease *lease)
{
	uint32_t cause = lease->facts.cause < ARRAY_SIZE(causes) ? lease->facts.cause
								 : GPUARB_RECORD_ENDED;
	const char *reason = lease->info.reason;

	if (lease_is(lease, "ending"))
		return fail_as(lease->gpuarb, causes[cause], "lease %" PRIu64 " has ended%s%s",
			       lease->info.id, *reason ? ": " : "", reason);
	return fail(lease->gpuarb, -ECONNRESET, "gpuarbd closed the holder of lease %" PRIu64,
		    lease->info.id);
}

/* Takes over a record, and returns whether it changes anything. The record may be older than the
 * properties that lease_refresh() read. One that is older than the last record is of another gpuarbd, and the
 * lease is as it was then. */
static bool take_record(struct gpuarb_lease *lease, const struct gpuarb_lease_info *info,
			const struct record_facts *facts, struct arena *arena)
{
	const struct gpuarb_lease_info *old = &lease->info;
	bool end = strcmp(info->state, "ending") == 0, back = info->generation < lease->heard;
	bool changed = info->generation != old->generation || info->deadline != old->deadline ||
		       strcmp(info->state, old->state) != 0 ||
		       strcmp(info->reason, old->reason) != 0 ||
		       facts->alone != lease->facts.alone ||
		       facts->resetting != lease->facts.resetting ||
		       facts->resets != lease->facts.resets ||
		       memcmp(facts->disturbed_cus, lease->facts.disturbed_cus,
			      sizeof(facts->disturbed_cus)) != 0;

	lease->heard = info->generation;
	if (back)
		lease->acknowledged = 0;
	if (!end && (lease_is(lease, "ending") || (!back && info->generation < old->generation)))
		return false;

	lease->info = *info;
	lease->facts = *facts;
	arena_take(&lease->arena, arena);
	return changed;
}

static int lease_call(struct gpuarb_lease *lease, const char *member, int type, const void *value)
{
	return call_simple(lease->gpuarb, lease_path(lease->info.id).text, GPUARB_INTERFACE_LEASE,
			   member, type, value);
}

/* A record that comes again is of another gpuarbd, and one with a deadline asks for an acknowledgement: gpuarbd
 * does not know of the one before, if it was killed at that moment. */
static void acknowledge_again(struct gpuarb_lease *lease, bool changed)
{
	dbus_uint64_t generation = lease->acknowledged;

	if (generation != lease->info.generation || !lease_usable(lease) ||
	    (changed && lease->info.deadline == UINT64_MAX))
		return;
	if (lease_call(lease, "Acknowledge", DBUS_TYPE_UINT64, &generation) < 0)
		handle_begin(lease->gpuarb); /* the next record repeats it */
}

/* Receives the next record. 1: something changed. 0: nothing changed. -EAGAIN: no record. */
static int receive_record(struct gpuarb_lease *lease)
{
	_cleanup_(arena_clear) struct arena arena = { NULL };
	struct gpuarb_lease_info info;
	struct record_facts facts;
	ssize_t size;
	int r;

	if (lease->fd < 0) /* gpuarb_lease_join() */
		return -EAGAIN;
	size = recv(lease->fd, lease->record, RECORD_MAX, MSG_DONTWAIT | MSG_TRUNC);
	if (size < 0 && (errno == EAGAIN || errno == EINTR) && !lease_is(lease, "ending"))
		return -EAGAIN;
	if (size <= 0)
		return fail_ended(lease);

	r = (size_t)size > RECORD_MAX
		    ? -EPROTO
		    : record_read(lease->record, (size_t)size, &arena, &info, &facts);
	if (r == -EPROTO)
		return fail(lease->gpuarb, r,
			    "invalid record in the holder of lease %" PRIu64
			    ": use a gpuarbd and a "
			    "libgpuarb of the same version",
			    lease->info.id);
	if (r <= 0)
		return r;
	r = take_record(lease, &info, &facts, &arena);
	acknowledge_again(lease, r > 0);
	return r;
}

int lease_dispatch(struct gpuarb_lease *lease, gpuarb_lease_changed_t callback, void *userdata)
{
	int r, n = 0;

	for (;;) {
		r = receive_record(lease);
		if (r == -EAGAIN)
			return n;
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		n++;
		if (callback)
			callback(lease, userdata);
	}
}

GPUARB_EXPORT int gpuarb_lease_dispatch(struct gpuarb_lease *lease, gpuarb_lease_changed_t callback,
					void *userdata)
{
	HANDLE_BEGIN(lease, lease->gpuarb);
	return handle_end(lease->gpuarb, lease_dispatch(lease, callback, userdata));
}

int lease_wait_until(struct gpuarb_lease *lease, uint64_t deadline)
{
	struct pollfd fd = { .fd = lease->fd, .events = POLLIN };
	int r;

	while (lease_pending(lease)) {
		r = poll_until(&fd, 1, deadline);
		if (r == -ETIMEDOUT)
			return fail(lease->gpuarb, r,
				    "the time is over and lease %" PRIu64 " is still %s",
				    lease->info.id, lease->info.state);
		if (r == -EINTR)
			return fail_interrupted(lease->gpuarb);
		if (r >= 0)
			r = lease_dispatch(lease, NULL, NULL);
		if (r < 0)
			return r;
	}

	if (lease_is(lease, "revoking"))
		return fail_as(lease->gpuarb, GPUARB_ERROR_INVALID_STATE,
			       "lease %" PRIu64 " is being revoked%s%s", lease->info.id,
			       *lease->info.reason ? ": " : "", lease->info.reason);
	/* When the bus reported the end, the last record still has the reason. */
	return lease_is(lease, "ending") ? lease_dispatch(lease, NULL, NULL) : 0;
}

GPUARB_EXPORT int gpuarb_lease_wait(struct gpuarb_lease *lease, uint64_t usec)
{
	int r;

	HANDLE_BEGIN(lease, lease->gpuarb);
	r = lease_wait_until(lease, deadline_after(usec));
	return handle_end(lease->gpuarb, r < 0 ? r : lease_bind_process(lease));
}

GPUARB_EXPORT int gpuarb_lease_release(struct gpuarb_lease *lease)
{
	int r;

	HANDLE_BEGIN(lease, lease->gpuarb);
	r = handle_end(lease->gpuarb, lease_call_release(lease->gpuarb, lease->info.id));
	gpuarb_lease_close(lease);
	return r;
}

GPUARB_EXPORT int gpuarb_lease_resize(struct gpuarb_lease *lease, const struct gpuarb_want *wants,
				      size_t n)
{
	int r;

	if (!lease)
		return -EINVAL;

	r = gpuarb_resize(lease->gpuarb, lease->info.id, wants, n);
	return r < 0 ? r : handle_end(lease->gpuarb, lease_refresh(lease));
}

GPUARB_EXPORT int gpuarb_lease_acknowledge(struct gpuarb_lease *lease)
{
	dbus_uint64_t generation;

	HANDLE_BEGIN(lease, lease->gpuarb);
	generation = lease->info.generation;
	/* To acknowledge a revocation ends the lease, so its queues do not matter. */
	if (lease->agent && !lease_is(lease, "revoking") &&
	    !lease->agent_calls->has_applied(lease->agent, generation))
		return handle_end(lease->gpuarb,
				  fail(lease->gpuarb, -EBUSY,
				       "the agent of lease %" PRIu64
				       " has not applied generation %" PRIu64 " yet: "
				       "gpuarb_lease_agent_error() has the reason",
				       lease->info.id, lease->info.generation));
	lease->acknowledged = generation;
	return handle_end(lease->gpuarb,
			  lease_call(lease, "Acknowledge", DBUS_TYPE_UINT64, &generation));
}

int lease_bind_process(struct gpuarb_lease *lease)
{
	int r;

	if (lease->process_fd < 0)
		return 0;

	r = lease_call(lease, "Bind", DBUS_TYPE_UNIX_FD, &lease->process_fd);
	if (r >= 0)
		close_fd(&lease->process_fd);
	return r;
}

GPUARB_EXPORT int gpuarb_lease_bind(struct gpuarb_lease *lease, int process_fd)
{
	int r;

	HANDLE_BEGIN(lease, lease->gpuarb);
	r = check_fd(lease->gpuarb, "process_fd", process_fd);
	if (r >= 0)
		r = lease_call(lease, "Bind", DBUS_TYPE_UNIX_FD, &process_fd);
	return handle_end(lease->gpuarb, r);
}

/* Afterwards the records that came before are outdated, so they are read without a callback. */
static int change_state(struct gpuarb_lease *lease, bool active)
{
	int r;

	HANDLE_BEGIN(lease, lease->gpuarb);
	r = lease_call_set_active(lease->gpuarb, lease->info.id, active);
	if (r >= 0)
		r = lease_update(lease);
	if (r >= 0)
		r = lease_dispatch(lease, NULL, NULL);
	return handle_end(lease->gpuarb, r < 0 ? r : 0);
}

GPUARB_EXPORT int gpuarb_lease_activate(struct gpuarb_lease *lease)
{
	return change_state(lease, true);
}

GPUARB_EXPORT int gpuarb_lease_deactivate(struct gpuarb_lease *lease)
{
	return change_state(lease, false);
}

GPUARB_EXPORT int gpuarb_lease_position(struct gpuarb_lease *lease, unsigned *ret)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	int r;

	HANDLE_BEGIN(lease && ret, lease->gpuarb);
	r = call_property(lease->gpuarb, lease_path(lease->info.id).text, GPUARB_INTERFACE_LEASE,
			  "Position", DBUS_TYPE_UINT32, &reply, ret);
	return handle_end(lease->gpuarb, r);
}

GPUARB_EXPORT int gpuarb_lease_fail(struct gpuarb_lease *lease, int error, const char *sentence)
{
	HANDLE_BEGIN(lease && sentence, lease->gpuarb);
	return handle_end(lease->gpuarb, fail(lease->gpuarb, error, "%s", sentence));
}

GPUARB_EXPORT void gpuarb_lease_attach(struct gpuarb_lease *lease, void *data,
				       void (*done_with)(void *data))
{
	void *before;
	void (*before_done)(void *data);

	if (!lease)
		return;

	before = lease->attached;
	before_done = lease->attached_done;
	lease->attached = data;
	lease->attached_done = done_with;
	if (before && before != data && before_done)
		before_done(before);
}

/* Defines the function that returns this member, or the value for a lease that is NULL. */
#define LEASE_MEMBER(type, function, member, null)                    \
	GPUARB_EXPORT type function(const struct gpuarb_lease *lease) \
	{                                                             \
		return lease ? lease->member : (null);                \
	}

LEASE_MEMBER(uint64_t, gpuarb_lease_id, info.id, 0)
LEASE_MEMBER(uint64_t, gpuarb_lease_generation, info.generation, 0)
LEASE_MEMBER(uint64_t, gpuarb_lease_deadline, info.deadline, 0)
LEASE_MEMBER(uint64_t, gpuarb_lease_duration, terms.duration, 0)
LEASE_MEMBER(const char *, gpuarb_lease_state, info.state, "")
LEASE_MEMBER(const char *, gpuarb_lease_reason, info.reason, "")
LEASE_MEMBER(size_t, gpuarb_lease_partitions, info.n_partitions, 0)
LEASE_MEMBER(bool, gpuarb_lease_alone, facts.alone, false)
LEASE_MEMBER(bool, gpuarb_lease_resetting, facts.resetting, false)
LEASE_MEMBER(uint64_t, gpuarb_lease_resets, facts.resets, 0)
LEASE_MEMBER(int, gpuarb_lease_fd, fd, -EINVAL)
LEASE_MEMBER(void *, gpuarb_lease_attached, attached, NULL)

GPUARB_EXPORT const struct gpuarb_partition *
gpuarb_lease_partition(const struct gpuarb_lease *lease, size_t i)
{
	return i < gpuarb_lease_partitions(lease) ? &lease->info.partitions[i] : NULL;
}

GPUARB_EXPORT unsigned gpuarb_lease_disturbed_cus(const struct gpuarb_lease *lease, size_t i)
{
	return i < gpuarb_lease_partitions(lease) && i < LEASE_PARTITIONS
		       ? lease->facts.disturbed_cus[i]
		       : 0;
}

GPUARB_EXPORT const uint32_t *gpuarb_lease_cu_mask(const struct gpuarb_lease *lease, size_t i,
						   size_t *ret_words)
{
	const struct gpuarb_partition *partition = gpuarb_lease_partition(lease, i);

	if (ret_words)
		*ret_words = partition ? partition->cu_mask_words : 0;
	return partition ? partition->cu_mask : NULL;
}

/* The same for a member of partition i; 0 or NULL: no such partition. */
#define PARTITION_MEMBER(type, function, member)                                             \
	GPUARB_EXPORT type function(const struct gpuarb_lease *lease, size_t i)              \
	{                                                                                    \
		const struct gpuarb_partition *partition = gpuarb_lease_partition(lease, i); \
                                                                                             \
		return partition ? partition->member : 0;                                    \
	}

PARTITION_MEMBER(const char *, gpuarb_lease_gpu, gpu)
PARTITION_MEMBER(unsigned, gpuarb_lease_cus, cus)
PARTITION_MEMBER(unsigned, gpuarb_lease_effective_cus, effective_cus)
PARTITION_MEMBER(unsigned, gpuarb_lease_queues, queues)
PARTITION_MEMBER(unsigned, gpuarb_lease_streams, streams)
PARTITION_MEMBER(unsigned, gpuarb_lease_processes, processes)
PARTITION_MEMBER(unsigned, gpuarb_lease_priority, priority)
