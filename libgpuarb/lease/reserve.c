/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"

static int lease_new(struct gpuarb *gpuarb, struct gpuarb_lease **ret)
{
	struct gpuarb_lease *lease = calloc(1, sizeof(*lease));

	if (!lease)
		return -ENOMEM;

	lease->gpuarb = gpuarb_reference(gpuarb);
	lease->fd = lease->process_fd = -1;
	lease->record = malloc(RECORD_MAX);
	if (!lease->record) {
		gpuarb_lease_close(lease);
		return -ENOMEM;
	}
	*ret = lease;
	return 0;
}

/* Reads (o lease, h holder, s state, aa{sv} partitions). */
static int read_reserved(struct gpuarb *gpuarb, DBusMessage *reply, struct gpuarb_lease *lease)
{
	struct gpuarb_lease_info info = { .reason = "", .generation = 1, .deadline = UINT64_MAX };
	const char *path, *state, *key = NULL;
	DBusMessageIter iter;
	int r;

	if (!dbus_message_iter_init(reply, &iter))
		return -EPROTO;

	dbus_message_iter_get_basic(&iter, &path);
	dbus_message_iter_next(&iter);
	dbus_message_iter_get_basic(&iter, &lease->fd);
	if (lease->fd < 0)
		return fail(gpuarb, -EMFILE, "no room for the lease's file descriptor");
	fcntl(lease->fd, F_SETFD, FD_CLOEXEC);
	dbus_message_iter_next(&iter);
	dbus_message_iter_get_basic(&iter, &state);
	dbus_message_iter_next(&iter);

	if (path_number(path, GPUARB_PATH_LEASE, &info.id) < 0)
		return misunderstood(gpuarb, "Reserve", "lease");
	info.state = arena_string(&lease->arena, state);
	if (!info.state)
		return -ENOMEM;

	r = read_partitions(&iter, &lease->arena, &info.partitions, &info.n_partitions, &key);
	if (r < 0)
		return r == -EPROTO ? misunderstood(gpuarb, "Reserve", key) : r;
	lease->info = info;
	return 0;
}

/* Keeps the process until it can be bound: by a call of its own, as a Reserve that is
 * interrupted must not leave a lease that lives by it. */
static int keep_process(struct gpuarb *gpuarb, const struct gpuarb_options *options,
			struct gpuarb_lease *lease)
{
	if (!options || options->process_fd == -1)
		return 0;

	lease->process_fd = fcntl(options->process_fd, F_DUPFD_CLOEXEC, 0);
	return lease->process_fd < 0
		       ? fail(gpuarb, -EMFILE, "no room for the process's file descriptor")
		       : 0;
}

/* A lease that waits has more to say than the answer to Reserve, and a token may have found
 * one that is not as it was at first. */
static int complete(struct gpuarb_lease *lease, const struct gpuarb_options *options)
{
	if (!lease_pending(lease) && (!options || !options->token))
		return 0;
	return lease_update(lease);
}

/* The lease, granted or not yet, and not bound yet. */
static int reserve(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
		   const struct gpuarb_options *options, struct gpuarb_lease **ret)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	_cleanup_(free_message) DBusMessage *call = NULL, *reply = NULL;
	int r;

	r = request_new(gpuarb, GPUARB_PATH, GPUARB_INTERFACE, "Reserve", wants, n, options, &call);
	if (r >= 0)
		r = lease_new(gpuarb, &lease);
	if (r >= 0)
		r = keep_process(gpuarb, options, lease);
	if (r >= 0)
		r = call_send(gpuarb, call, "ohsaa{sv}", &reply);
	if (r >= 0)
		r = read_reserved(gpuarb, reply, lease);
	if (r >= 0)
		r = complete(lease, options);
	if (r >= 0)
		*ret = TAKE_PTR(lease);
	return r;
}

/* It is bound, or nothing of it is left. */
static int bind_or_abandon(struct gpuarb_lease *lease)
{
	int r = lease_bind_process(lease);

	if (r < 0)
		lease_abandon(lease);
	return r;
}

GPUARB_EXPORT int gpuarb_reserve_start(struct gpuarb *gpuarb, const struct gpuarb_want *wants,
				       size_t n, const struct gpuarb_options *options,
				       struct gpuarb_lease **ret)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	int r;

	if (!gpuarb || !ret)
		return -EINVAL;

	begin(gpuarb);
	r = reserve(gpuarb, wants, n, options, &lease);
	if (r >= 0 && lease_usable(lease))
		r = bind_or_abandon(lease);
	if (r >= 0)
		*ret = TAKE_PTR(lease);
	return done(gpuarb, r);
}

/* A token can find a lease that waits, though nobody wants to wait here. */
static int refuse_to_wait(struct gpuarb_lease *lease)
{
	const char *reason;
	int r;

	if (!lease_pending(lease))
		return 0;
	r = lease_dispatch(lease, NULL, NULL); /* it may have been granted just now */
	if (r < 0 || !lease_pending(lease))
		return r;

	reason = lease->info.reason;
	return fail(lease->gpuarb, -EBUSY, "lease %" PRIu64 " is there, but %s%s%s", lease->info.id,
		    lease->info.state, *reason ? ": " : "", reason);
}

static int wait_for(struct gpuarb_lease *lease, uint64_t usec)
{
	uint64_t most = lease->gpuarb->answer_usec;
	uint64_t grace = most < GRACE_USEC ? most : GRACE_USEC;
	int r = usec == 0 ? refuse_to_wait(lease) : 0;

	/* Until the daemon has said its word. */
	if (__builtin_add_overflow(usec, grace, &usec))
		usec = GPUARB_FOREVER;
	return r < 0 ? r : lease_wait_until(lease, deadline_after(usec));
}

GPUARB_EXPORT int gpuarb_reserve(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
				 const struct gpuarb_options *options, struct gpuarb_lease **ret)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	int r;

	if (!gpuarb || !ret)
		return -EINVAL;

	begin(gpuarb);
	r = reserve(gpuarb, wants, n, options, &lease);
	if (r >= 0)
		r = wait_for(lease, options ? options->wait_usec : 0);
	if (r >= 0)
		r = bind_or_abandon(lease);
	if (r >= 0)
		*ret = TAKE_PTR(lease);
	return done(gpuarb, r);
}

/* Reads (s verdict, aa{sv} partitions, aa{sv} refusals). */
static int read_plan(struct gpuarb *gpuarb, DBusMessage *reply, const char **ret_verdict)
{
	const char *text, *verdict, *key = NULL;
	DBusMessageIter iter;
	int r;

	if (!dbus_message_iter_init(reply, &iter))
		return -EPROTO;

	dbus_message_iter_get_basic(&iter, &text);
	verdict = arena_string(&gpuarb->answer, text);
	if (!verdict)
		return -ENOMEM;

	dbus_message_iter_next(&iter);
	r = read_partitions(&iter, &gpuarb->answer, &gpuarb->plan, &gpuarb->n_plan, &key);
	if (r >= 0) {
		dbus_message_iter_next(&iter);
		r = read_refusals(&iter, &gpuarb->answer, &gpuarb->refusals, &gpuarb->n_refusals,
				  &key);
	}
	if (r == -EPROTO)
		return misunderstood(gpuarb, "Plan", key);
	if (r >= 0)
		*ret_verdict = verdict;
	return r;
}

GPUARB_EXPORT int gpuarb_plan(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
			      const struct gpuarb_options *options, const char **ret_verdict)
{
	_cleanup_(free_message) DBusMessage *call = NULL, *reply = NULL;
	int r;

	if (!gpuarb || !ret_verdict)
		return -EINVAL;

	begin(gpuarb);
	r = request_new(gpuarb, GPUARB_PATH, GPUARB_INTERFACE, "Plan", wants, n, options, &call);
	if (r >= 0)
		r = call_send(gpuarb, call, "saa{sv}aa{sv}", &reply);
	if (r >= 0)
		r = read_plan(gpuarb, reply, ret_verdict);
	return done(gpuarb, r);
}

GPUARB_EXPORT const struct gpuarb_partition *gpuarb_last_plan(const struct gpuarb *gpuarb,
							      size_t *ret_n)
{
	if (ret_n)
		*ret_n = gpuarb ? gpuarb->n_plan : 0;
	return gpuarb ? gpuarb->plan : NULL;
}
