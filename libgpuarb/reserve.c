/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/call.h"

static int lease_new(struct gpuarb *gpuarb, struct gpuarb_lease **ret)
{
	struct gpuarb_lease *lease = calloc(1, sizeof(*lease));

	if (!lease)
		return -ENOMEM;

	lease->gpuarb = gpuarb_reference(gpuarb);
	lease->fd = -1;
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
	info.state = pool_string(&lease->whole_pool, state);
	if (!info.state)
		return -ENOMEM;

	r = read_partitions(&iter, &lease->whole_pool, &info.partitions, &info.n_partitions,
			    &key);
	if (r < 0)
		return r == -EPROTO ? misunderstood(gpuarb, "Reserve", key) : r;
	lease->whole = lease->info = info;
	return 0;
}

/* The lease, granted or not yet. */
static int reserve(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
		   const struct gpuarb_options *options, struct gpuarb_lease **ret)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	_cleanup_(free_message) DBusMessage *call = NULL, *reply = NULL;
	int r;

	r = request_new(gpuarb, GPUARB_PATH, GPUARB_INTERFACE, "Reserve", wants, n, options,
			&call);
	if (r >= 0)
		r = need_fds(gpuarb); /* the holder is one */
	if (r >= 0)
		r = lease_new(gpuarb, &lease);
	if (r >= 0)
		r = call_send(gpuarb, call, "ohsaa{sv}", &reply);
	if (r >= 0)
		r = read_reserved(gpuarb, reply, lease);

	/* A token may have found a lease that is not as it was at first. */
	if (r >= 0 && options && options->token)
		r = lease_refresh(lease);
	if (r >= 0)
		*ret = TAKE_PTR(lease);
	return r;
}

GPUARB_EXPORT int gpuarb_reserve(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
				 const struct gpuarb_options *options, struct gpuarb_lease **ret)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	uint64_t deadline;
	int r;

	if (!gpuarb || !ret)
		return -EINVAL;

	begin(gpuarb);
	r = reserve(gpuarb, wants, n, options, &lease);
	if (r < 0)
		return done(gpuarb, r);

	deadline = deadline_after(options ? options->wait_usec : 0);
	r = lease_wait_until(lease, deadline);
	if (r == -ENOENT && now_usec() >= deadline)
		r = -ETIMEDOUT; /* the daemon's clock was faster */
	if (r < 0)
		return done(gpuarb, r);

	*ret = TAKE_PTR(lease);
	return 0;
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
	verdict = pool_string(&gpuarb->answer, text);
	if (!verdict)
		return -ENOMEM;

	dbus_message_iter_next(&iter);
	r = read_partitions(&iter, &gpuarb->answer, &gpuarb->plan, &gpuarb->n_plan, &key);
	if (r >= 0) {
		dbus_message_iter_next(&iter);
		r = read_refusals(&iter, &gpuarb->answer, &gpuarb->refusals,
				  &gpuarb->n_refusals, &key);
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
