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

/* Whether a call that was repeated failed because its first attempt, whose answer was lost, was
 * carried out: then forgets the failure. */
static bool done_before(struct gpuarb *gpuarb, int r, int sign)
{
	if (r != sign || !gpuarb->repeated)
		return false;
	handle_begin(gpuarb);
	return true;
}

int lease_call_release(struct gpuarb *gpuarb, uint64_t id)
{
	int r = call_simple(gpuarb, lease_path(id).text, GPUARB_INTERFACE_LEASE, "Release",
			    DBUS_TYPE_INVALID, NULL);

	return done_before(gpuarb, r, -ENOENT) ? 0 : r;
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

/* After an attempt whose answer was lost the daemon refuses the next one with -EBADFD, because the
 * lease is in the new state already. */
static int send_change(struct gpuarb *gpuarb, uint64_t id, const struct change *change,
		       DBusMessage *call)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	int r = call_send(gpuarb, call, NULL, NULL);
	const char *state;

	if (!done_before(gpuarb, r, -EBADFD))
		return r;
	r = call_property(gpuarb, lease_path(id).text, GPUARB_INTERFACE_LEASE, "State",
			  DBUS_TYPE_STRING, &reply, &state);
	if (r < 0 || leads_to(change, state))
		return r;
	return fail_as(gpuarb, GPUARB_ERROR_INVALID_STATE,
		       "lease %" PRIu64 " is %s: it cannot be changed by %s", id, state,
		       change->member);
}

int lease_call_set_active(struct gpuarb *gpuarb, uint64_t id, bool active)
{
	const struct change *change = active ? &activate : &deactivate;
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r = call_new(lease_path(id).text, GPUARB_INTERFACE_LEASE, change->member, &call,
			 DBUS_TYPE_INVALID);

	return r < 0 ? r : send_change(gpuarb, id, change, call);
}

GPUARB_EXPORT int gpuarb_activate(struct gpuarb *gpuarb, uint64_t id)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb, lease_call_set_active(gpuarb, id, true));
}

GPUARB_EXPORT int gpuarb_deactivate(struct gpuarb *gpuarb, uint64_t id)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb, lease_call_set_active(gpuarb, id, false));
}

static int call_revoke(struct gpuarb *gpuarb, uint64_t id, dbus_uint64_t grace_usec,
		       const char *reason)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r = check_string(gpuarb, "reason", reason);

	if (r >= 0)
		r = call_new(lease_path(id).text, GPUARB_INTERFACE_LEASE, revoke.member, &call,
			     DBUS_TYPE_UINT64, &grace_usec, DBUS_TYPE_STRING, &reason,
			     DBUS_TYPE_INVALID);
	if (r >= 0)
		r = send_change(gpuarb, id, &revoke, call);
	return done_before(gpuarb, r, -ENOENT) ? 0 : r; /* the lease has ended since */
}

GPUARB_EXPORT int gpuarb_revoke(struct gpuarb *gpuarb, uint64_t id, uint64_t grace_usec,
				const char *reason)
{
	HANDLE_BEGIN(gpuarb, gpuarb);
	return handle_end(gpuarb, call_revoke(gpuarb, id, grace_usec, reason ? reason : ""));
}

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
