/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gpuarb_reserve(), gpuarb_reserve_start() and gpuarb_plan(). */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"
#include "libgpuarb/lease/lease-calls.h"
#include "libgpuarb/lease/lease-handle.h"

/* How much longer than wait_usec gpuarb_reserve() waits: the daemon ends the lease at its deadline,
 * and its record has the reason. */
#define GRACE_USEC (5U * UINT64_C(1000000))

static int lease_new(struct gpuarb *gpuarb, struct gpuarb_lease **ret)
{
	struct gpuarb_lease *lease = calloc(1, sizeof(*lease));

	if (!lease)
		return -ENOMEM;

	lease->gpuarb = gpuarb_reference(gpuarb);
	lease->fd = lease->process_fd = -1;
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

	dbus_message_iter_init(reply, &iter);
	dbus_message_iter_get_basic(&iter, &path);
	dbus_message_iter_next(&iter);
	dbus_message_iter_get_basic(&iter, &lease->fd);
	if (lease->fd < 0)
		return fail(
			gpuarb, -EMFILE,
			"cannot receive the holder of the lease: this process has too many open "
			"files");
	fcntl(lease->fd, F_SETFD, FD_CLOEXEC);
	dbus_message_iter_next(&iter);
	dbus_message_iter_get_basic(&iter, &state);
	dbus_message_iter_next(&iter);

	if (path_number(path, GPUARB_PATH_LEASE, &info.id) < 0)
		return fail_answer(gpuarb, "Reserve", "lease");
	info.state = arena_string(&lease->arena, state);
	if (!info.state)
		return -ENOMEM;

	r = read_partitions(&iter, &lease->arena, &info.partitions, &info.n_partitions, &key);
	if (r >= 0)
		r = read_terms(&iter, &lease->arena, &lease->terms, &key);
	lease->terms_known = r > 0;
	if (r < 0)
		return r == -EPROTO ? fail_answer(gpuarb, "Reserve", key) : r;
	lease->info = info;
	return 0;
}

/* A program that was compiled with an older header has a shorter structure. */
static bool binds_at_once(const struct gpuarb_options *options)
{
	return options->size > offsetof(struct gpuarb_options, bind_at_once) &&
	       options->bind_at_once;
}

/* Copies the pidfd. The process is bound by a separate call when the lease is granted: otherwise an
 * interrupted Reserve could leave a lease that the process keeps alive. */
static int keep_process(struct gpuarb *gpuarb, const struct gpuarb_options *options,
			struct gpuarb_lease *lease)
{
	if (!options || options->process_fd == -1 || binds_at_once(options))
		return 0;

	lease->process_fd = fcntl(options->process_fd, F_DUPFD_CLOEXEC, 0);
	return lease->process_fd < 0
		       ? fail(gpuarb, -EMFILE,
			      "cannot copy process_fd: this process has too many open files")
		       : 0;
}

/* The partitions of the lease that were told. */
static uint64_t find_asked(const struct gpuarb_lease_info *lease,
			   const struct gpuarb_lease_info *told)
{
	uint64_t asked = 0;

	for (size_t i = 0; i < lease->n_partitions && i < LEASE_PARTITIONS; i++)
		for (size_t k = 0; k < told->n_partitions; k++)
			if (strcmp(lease->partitions[i].gpu, told->partitions[k].gpu) == 0)
				asked |= UINT64_C(1) << i;
	return asked;
}

/* The answer to Reserve lacks the position and the deadline of a waiting lease. Of an existing lease that the token found it
 * lacks the generation, and the partitions that this request did not ask for. */
static int complete(struct gpuarb_lease *lease, const struct gpuarb_options *options)
{
	const struct gpuarb_lease_info told = lease->info;
	_cleanup_(arena_clear) struct arena arena = { NULL };
	int r;

	if (!lease_pending(lease) && (!options || !options->token))
		return 0;
	arena_take(&arena, &lease->arena);
	r = lease_update(lease);
	if (r >= 0)
		lease->asked = find_asked(&lease->info, &told);
	return r;
}

/* Reserves, without waiting for the grant and without binding the process. */
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

GPUARB_EXPORT int gpuarb_lease_join(struct gpuarb *gpuarb, uint64_t id, struct gpuarb_lease **ret)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	int r;

	HANDLE_BEGIN(gpuarb && ret, gpuarb);
	r = lease_new(gpuarb, &lease);
	if (r < 0)
		return handle_end(gpuarb, r);
	lease->info = (struct gpuarb_lease_info){ .id = id, .state = "", .reason = "" };
	/* glibc has no pidfd_open() before 2.36. */
	lease->process_fd = (int)syscall(SYS_pidfd_open, getpid(), 0U);
	if (lease->process_fd < 0)
		r = fail(gpuarb, -errno, "pidfd_open: %s", strerror(errno));
	if (r >= 0)
		r = lease_bind_process(lease);
	if (r >= 0)
		r = lease_refresh(lease);
	if (r >= 0)
		*ret = TAKE_PTR(lease);
	return handle_end(gpuarb, r);
}

/* Without wait_usec a token may still find a lease that waits. */
static int refuse_to_wait(struct gpuarb_lease *lease)
{
	const char *reason;
	int r;

	if (!lease_pending(lease))
		return 0;
	r = lease_dispatch(lease, NULL, NULL); /* the grant may have arrived meanwhile */
	if (r < 0 || !lease_pending(lease))
		return r;

	reason = lease->info.reason;
	return fail(lease->gpuarb, -EBUSY,
		    "the token belongs to lease %" PRIu64 ", which is %s%s%s", lease->info.id,
		    lease->info.state, *reason ? ": " : "", reason);
}

static int wait_for(struct gpuarb_lease *lease, uint64_t usec)
{
	uint64_t most = lease->gpuarb->answer_usec;
	uint64_t grace = most < GRACE_USEC ? most : GRACE_USEC;
	int r = usec == 0 ? refuse_to_wait(lease) : 0;

	if (__builtin_add_overflow(usec, grace, &usec))
		usec = GPUARB_FOREVER;
	return r < 0 ? r : lease_wait_until(lease, deadline_after(usec));
}

/* Asks the daemon to end the lease for all holders, and does not wait for the answer. */
static void abandon(struct gpuarb_lease *lease)
{
	struct connection *connection = lease->gpuarb->connection;
	_cleanup_(free_message) DBusMessage *call = NULL;

	if (!connection || call_new(lease_path(lease->info.id).text, GPUARB_INTERFACE_LEASE,
				    "Release", &call, DBUS_TYPE_INVALID) < 0)
		return;
	dbus_message_set_no_reply(call, TRUE);
	dbus_message_set_auto_start(call, FALSE);
	/* libdbus writes at once as much as the socket takes. */
	dbus_connection_send(connection->dbus, call, NULL);
}

/* Reserves, waits for the grant if that is asked for, and binds the process or gives up the lease
 * when it is granted. */
static int reserve_and_bind(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
			    const struct gpuarb_options *options, bool wait,
			    struct gpuarb_lease **ret)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	int r = reserve(gpuarb, wants, n, options, &lease);

	if (r >= 0 && wait)
		r = wait_for(lease, options ? options->wait_usec : 0);
	if (r >= 0 && lease_usable(lease)) {
		r = lease_bind_process(lease);
		if (r < 0)
			abandon(lease);
	}
	if (r >= 0)
		*ret = TAKE_PTR(lease);
	return handle_end(gpuarb, r);
}

GPUARB_EXPORT int gpuarb_reserve_start(struct gpuarb *gpuarb, const struct gpuarb_want *wants,
				       size_t n, const struct gpuarb_options *options,
				       struct gpuarb_lease **ret)
{
	HANDLE_BEGIN(gpuarb && ret, gpuarb);
	return reserve_and_bind(gpuarb, wants, n, options, false, ret);
}

GPUARB_EXPORT int gpuarb_reserve(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
				 const struct gpuarb_options *options, struct gpuarb_lease **ret)
{
	HANDLE_BEGIN(gpuarb && ret, gpuarb);
	return reserve_and_bind(gpuarb, wants, n, options, true, ret);
}

/* Reads (s result, aa{sv} partitions, aa{sv} refusals). */
static int read_plan(struct gpuarb *gpuarb, DBusMessage *reply, const char **ret_result)
{
	const char *text, *result, *key = NULL;
	DBusMessageIter iter;
	int r;

	dbus_message_iter_init(reply, &iter);
	dbus_message_iter_get_basic(&iter, &text);
	result = arena_string(&gpuarb->answer, text);
	if (!result)
		return -ENOMEM;

	dbus_message_iter_next(&iter);
	r = read_partitions(&iter, &gpuarb->answer, &gpuarb->plan, &gpuarb->n_plan, &key);
	if (r >= 0)
		r = read_terms(&iter, &gpuarb->answer, &gpuarb->plan_terms, &key);
	if (r >= 0)
		r = read_effects(&iter, &gpuarb->answer, &gpuarb->effects);
	if (r >= 0) {
		dbus_message_iter_next(&iter);
		r = read_refusals(&iter, &gpuarb->answer, &gpuarb->refusals, &key);
	}
	if (r >= 0)
		r = read_effects(&iter, &gpuarb->answer, &gpuarb->effects);
	if (r == -EPROTO)
		return fail_answer(gpuarb, "Plan", key);
	if (r >= 0)
		*ret_result = result;
	return r;
}

/* user: NULL: the caller. */
static int plan(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
		const struct gpuarb_options *options, const uint32_t *user, const uint32_t *groups,
		size_t n_groups, const char **ret_result)
{
	_cleanup_(free_message) DBusMessage *call = NULL, *reply = NULL;
	int r = request_new(gpuarb, GPUARB_PATH, GPUARB_INTERFACE, user ? "PlanAs" : "Plan", wants,
			    n, options, &call);

	if (r >= 0 && user &&
	    !dbus_message_append_args(call, DBUS_TYPE_UINT32, user, DBUS_TYPE_ARRAY,
				      DBUS_TYPE_UINT32, &groups, (int)n_groups, DBUS_TYPE_INVALID))
		r = -ENOMEM;
	if (r >= 0)
		r = call_send(gpuarb, call, "saa{sv}aa{sv}", &reply);
	return r < 0 ? r : read_plan(gpuarb, reply, ret_result);
}

GPUARB_EXPORT int gpuarb_plan(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
			      const struct gpuarb_options *options, const char **ret_result)
{
	HANDLE_BEGIN(gpuarb && ret_result, gpuarb);
	return handle_end(gpuarb, plan(gpuarb, wants, n, options, NULL, NULL, 0, ret_result));
}

GPUARB_EXPORT int gpuarb_plan_as(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
				 const struct gpuarb_options *options, uint32_t uid,
				 const uint32_t *groups, size_t n_groups, const char **ret_result)
{
	HANDLE_BEGIN(gpuarb && ret_result && (groups || n_groups == 0) && n_groups <= 65536,
		     gpuarb);
	return handle_end(gpuarb,
			  plan(gpuarb, wants, n, options, &uid, groups, n_groups, ret_result));
}

GPUARB_EXPORT const struct gpuarb_effects *gpuarb_last_plan_effects(const struct gpuarb *gpuarb)
{
	return gpuarb ? gpuarb->effects : NULL;
}

GPUARB_EXPORT uint64_t gpuarb_last_plan_duration(const struct gpuarb *gpuarb)
{
	return gpuarb ? gpuarb->plan_terms.duration : 0;
}

GPUARB_EXPORT const struct gpuarb_partition *gpuarb_last_plan(const struct gpuarb *gpuarb,
							      size_t *ret_n)
{
	if (ret_n)
		*ret_n = gpuarb ? gpuarb->n_plan : 0;
	return gpuarb ? gpuarb->plan : NULL;
}
