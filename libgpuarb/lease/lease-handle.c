/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A lease that this program holds, and what becomes of it: told by the holder. */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "dbus/names.h"
#include "dbus/record.h"
#include "libgpuarb/agent/agent.h"

/* Why it ended, as the bus says it. */
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
	if (!lease)
		return;

	agent_stop(lease->agent);
	gpuarb_lease_attach(lease, NULL, NULL); /* done with while the lease is still there */
	close_fd(&lease->fd);
	close_fd(&lease->process_fd);
	arena_clear(&lease->arena);
	mask_cache_clear(&lease->mask_cache);
	free(lease->record);
	gpuarb_unreference(lease->gpuarb);
	free(lease);
}

/* What was read into *from takes the place of what *pool has. */
static void arena_take(struct arena *arena, struct arena *from)
{
	arena_clear(arena);
	*arena = *from;
	*from = (struct arena){ NULL };
}

int lease_refresh(struct gpuarb_lease *lease)
{
	struct lease_path path = lease_path(lease->info.id);
	_cleanup_(free_message) DBusMessage *reply = NULL;
	_cleanup_(arena_clear) struct arena arena = { NULL };
	struct gpuarb_lease_info info;
	const char *key = NULL;
	DBusMessageIter iter;
	int r;

	r = call_properties(lease->gpuarb, path.text, GPUARB_INTERFACE_LEASE, &reply);
	if (r < 0)
		return r;

	dbus_message_iter_init(reply, &iter);
	r = read_lease(&iter, &arena, &info, &key);
	if (r < 0)
		return r == -EPROTO ? misunderstood(lease->gpuarb, "GetAll", key) : r;

	info.id = lease->info.id;
	lease->info = info;
	arena_take(&lease->arena, &arena);
	return 0;
}

int lease_update(struct gpuarb_lease *lease)
{
	int r = lease_refresh(lease), end;

	if (r != -ENOENT)
		return r;

	end = lease_dispatch(lease, NULL, NULL); /* it has ended meanwhile: the holder says why */
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

static int lease_gone(struct gpuarb_lease *lease)
{
	uint32_t cause = lease->cause < ARRAY_SIZE(causes) ? lease->cause : GPUARB_RECORD_ENDED;
	const char *reason = lease->info.reason;

	if (lease_is(lease, "ending"))
		return fail_as(lease->gpuarb, causes[cause], "lease %" PRIu64 " has ended%s%s",
			       lease->info.id, *reason ? ": " : "", reason);
	return fail(lease->gpuarb, -ECONNRESET, "gpuarbd closed the holder of lease %" PRIu64,
		    lease->info.id);
}

/* Takes a record over; says whether anything is new in it. One that the daemon sent before it
 * was asked for all of the lease is old by now. */
static bool lease_follow(struct gpuarb_lease *lease, const struct gpuarb_lease_info *info,
			 uint32_t cause, struct arena *arena)
{
	const struct gpuarb_lease_info *old = &lease->info;
	bool end = strcmp(info->state, "ending") == 0;
	bool news = info->generation != old->generation || info->deadline != old->deadline ||
		    strcmp(info->state, old->state) != 0 || strcmp(info->reason, old->reason) != 0;

	if (!end && (info->generation < old->generation || lease_is(lease, "ending")))
		return false;

	lease->info = *info;
	lease->cause = cause;
	arena_take(&lease->arena, arena);
	return news;
}

/* Takes the next record: 1 if it brought news, 0 if not, -EAGAIN when there is none now. */
static int lease_receive(struct gpuarb_lease *lease)
{
	_cleanup_(arena_clear) struct arena arena = { NULL };
	struct gpuarb_lease_info info;
	uint32_t cause;
	ssize_t size;
	int r;

	size = recv(lease->fd, lease->record, RECORD_MAX, MSG_DONTWAIT | MSG_TRUNC);
	if (size < 0 && (errno == EAGAIN || errno == EINTR) && !lease_is(lease, "ending"))
		return -EAGAIN;
	if (size <= 0)
		return lease_gone(lease);

	r = (size_t)size > RECORD_MAX
		    ? -EPROTO
		    : record_read(lease->record, (size_t)size, &arena, &info, &cause);
	if (r == -EPROTO)
		return fail(lease->gpuarb, r,
			    "what came by the holder of lease %" PRIu64 " is no record",
			    lease->info.id);
	if (r <= 0)
		return r;
	return lease_follow(lease, &info, cause, &arena);
}

int lease_dispatch(struct gpuarb_lease *lease, gpuarb_lease_changed_t callback, void *userdata)
{
	int r, n = 0;

	for (;;) {
		r = lease_receive(lease);
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
	if (!lease)
		return -EINVAL;

	begin(lease->gpuarb);
	return done(lease->gpuarb, lease_dispatch(lease, callback, userdata));
}

int lease_wait_until(struct gpuarb_lease *lease, uint64_t deadline)
{
	struct pollfd fd = { .fd = lease->fd, .events = POLLIN };
	int r;

	while (lease_pending(lease)) {
		r = poll_until(&fd, 1, deadline);
		if (r == -ETIMEDOUT)
			return fail(lease->gpuarb, r, "lease %" PRIu64 " is still %s",
				    lease->info.id, lease->info.state);
		if (r == -EINTR)
			return interrupted(lease->gpuarb);
		if (r >= 0)
			r = lease_dispatch(lease, NULL, NULL);
		if (r < 0)
			return r;
	}

	if (lease_is(lease, "revoking"))
		return fail_as(lease->gpuarb, GPUARB_ERROR_INVALID_STATE,
			       "lease %" PRIu64 " is being revoked%s%s", lease->info.id,
			       *lease->info.reason ? ": " : "", lease->info.reason);
	/* The last record says why, where it was the bus that told it. */
	return lease_is(lease, "ending") ? lease_dispatch(lease, NULL, NULL) : 0;
}

GPUARB_EXPORT int gpuarb_lease_wait(struct gpuarb_lease *lease, uint64_t usec)
{
	int r;

	if (!lease)
		return -EINVAL;

	begin(lease->gpuarb);
	r = lease_wait_until(lease, deadline_after(usec));
	return done(lease->gpuarb, r < 0 ? r : lease_bind_process(lease));
}
