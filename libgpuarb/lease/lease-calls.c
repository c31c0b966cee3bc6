/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/lease-calls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"
#include "libgpuarb/lease/want.h"

struct lease_path lease_path(uint64_t id)
{
	struct lease_path path;

	snprintf(path.text, sizeof(path.text), GPUARB_PATH_LEASE "/%" PRIu64, id);
	return path;
}

int lease_call_release(struct gpuarb *gpuarb, uint64_t id)
{
	int r = call_simple(gpuarb, lease_path(id).text, GPUARB_INTERFACE_LEASE, "Release",
			    DBUS_TYPE_INVALID, NULL);

	if (r != -ENOENT || !gpuarb->repeated)
		return r;

	handle_begin(gpuarb); /* the first attempt released the lease, and its answer was lost */
	return 0;
}

GPUARB_EXPORT int gpuarb_release(struct gpuarb *gpuarb, uint64_t id)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb, lease_call_release(gpuarb, id));
}

GPUARB_EXPORT int gpuarb_resize(struct gpuarb *gpuarb, uint64_t id, const struct gpuarb_want *wants,
				size_t n)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r;

	HANDLE_BEGIN(gpuarb, gpuarb);
	r = request_new(gpuarb, lease_path(id).text, GPUARB_INTERFACE_LEASE, "Resize", wants, n,
			NULL, &call);
	if (r >= 0)
		r = call_send(gpuarb, call, NULL, NULL);
	return handle_end(gpuarb, r);
}

/* ---- changes of the state ---------------------------------------------------------------- */

/* A method of the lease and the states that it leads to. */
struct change {
	const char *member;
	const char *states[2];
};

static const struct change activate = { "Activate", { "activating", "granted" } };
static const struct change deactivate = { "Deactivate", { "inactive" } };
static const struct change revoke = { "Revoke", { "revoking", "ending" } };

static bool leads_to(const struct change *change, const char *state)
{
	for (size_t i = 0; i < ARRAY_SIZE(change->states); i++)
		if (change->states[i] && strcmp(change->states[i], state) == 0)
			return true;
	return false;
}

/* Reads (v), the state of the lease. 0: the change led to it. */
static int check_state(struct gpuarb *gpuarb, uint64_t id, const struct change *change,
		       DBusMessage *reply)
{
	DBusMessageIter iter, value;
	const char *state;

	dbus_message_iter_init(reply, &iter);
	dbus_message_iter_recurse(&iter, &value);
	if (dbus_message_iter_get_arg_type(&value) != DBUS_TYPE_STRING)
		return fail_answer(gpuarb, "Get", "State");
	dbus_message_iter_get_basic(&value, &state);
	if (leads_to(change, state))
		return 0;
	return fail_as(gpuarb, GPUARB_ERROR_INVALID_STATE,
		       "lease %" PRIu64 " is %s: it cannot be changed by %s", id, state,
		       change->member);
}

/* The daemon may carry out an attempt whose answer is lost. It then refuses the next attempt with
 * -EBADFD, because the lease is in the new state already. */
static int send_change(struct gpuarb *gpuarb, uint64_t id, const struct change *change,
		       DBusMessage *call)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	int r = call_send(gpuarb, call, NULL, NULL);

	if (r != -EBADFD || !gpuarb->repeated)
		return r;

	handle_begin(gpuarb);
	r = call_property(gpuarb, lease_path(id).text, GPUARB_INTERFACE_LEASE, "State", &reply);
	return r < 0 ? r : check_state(gpuarb, id, change, reply);
}

static int call_change(struct gpuarb *gpuarb, uint64_t id, const struct change *change)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r = call_new(lease_path(id).text, GPUARB_INTERFACE_LEASE, change->member, &call);

	return r < 0 ? r : send_change(gpuarb, id, change, call);
}

int lease_call_activate(struct gpuarb *gpuarb, uint64_t id)
{
	return call_change(gpuarb, id, &activate);
}

int lease_call_deactivate(struct gpuarb *gpuarb, uint64_t id)
{
	return call_change(gpuarb, id, &deactivate);
}

static int change_by_id(struct gpuarb *gpuarb, uint64_t id, const struct change *change)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb, call_change(gpuarb, id, change));
}

GPUARB_EXPORT int gpuarb_activate(struct gpuarb *gpuarb, uint64_t id)
{
	return change_by_id(gpuarb, id, &activate);
}

GPUARB_EXPORT int gpuarb_deactivate(struct gpuarb *gpuarb, uint64_t id)
{
	return change_by_id(gpuarb, id, &deactivate);
}

static int call_revoke(struct gpuarb *gpuarb, uint64_t id, dbus_uint64_t grace_usec,
		       const char *reason)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r = check_string(gpuarb, "reason", reason);

	if (r >= 0)
		r = call_new(lease_path(id).text, GPUARB_INTERFACE_LEASE, revoke.member, &call);
	if (r < 0)
		return r;
	if (!dbus_message_append_args(call, DBUS_TYPE_UINT64, &grace_usec, DBUS_TYPE_STRING,
				      &reason, DBUS_TYPE_INVALID))
		return -ENOMEM;

	r = send_change(gpuarb, id, &revoke, call);
	if (r != -ENOENT || !gpuarb->repeated)
		return r;
	handle_begin(gpuarb); /* the first attempt was carried out, and the lease has ended since */
	return 0;
}

GPUARB_EXPORT int gpuarb_revoke(struct gpuarb *gpuarb, uint64_t id, uint64_t grace_usec,
				const char *reason)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb, call_revoke(gpuarb, id, grace_usec, reason ? reason : ""));
}

/* ---- GPUs and the daemon ----------------------------------------------------------------- */

GPUARB_EXPORT int gpuarb_drain(struct gpuarb *gpuarb, const char *gpu, bool drain)
{
	int r;

	HANDLE_BEGIN(gpuarb && gpu, gpuarb);
	r = check_string(gpuarb, "gpu", gpu);
	if (r >= 0)
		r = call_simple(gpuarb, GPUARB_PATH, GPUARB_INTERFACE, drain ? "Drain" : "Undrain",
				DBUS_TYPE_STRING, &gpu);
	return handle_end(gpuarb, r);
}

GPUARB_EXPORT int gpuarb_reload(struct gpuarb *gpuarb)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb, call_simple(gpuarb, GPUARB_PATH, GPUARB_INTERFACE, "Reload",
					      DBUS_TYPE_INVALID, NULL));
}
