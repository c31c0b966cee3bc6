/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lending CUs and having them back, and taking leases away. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"

/* What to ask of a lease, and the states that come of it. */
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

/* Reads (v), the lease's state: is it what the change leads to? */
static int judge(struct gpuarb *gpuarb, uint64_t id, const struct change *change,
		 DBusMessage *reply)
{
	DBusMessageIter iter, value;
	const char *state;

	dbus_message_iter_init(reply, &iter);
	dbus_message_iter_recurse(&iter, &value);
	if (dbus_message_iter_get_arg_type(&value) != DBUS_TYPE_STRING)
		return misunderstood(gpuarb, "Get", "State");
	dbus_message_iter_get_basic(&value, &state);
	if (leads_to(change, state))
		return 0;
	return fail_as(gpuarb, GPUARB_ERROR_INVALID_STATE, "lease %" PRIu64 " is %s", id, state);
}

/* A call that was cut off may have been carried out; then the next finds the lease where it
 * leads to, and is refused for that. */
static int send_change(struct gpuarb *gpuarb, uint64_t id, const struct change *change,
		       DBusMessage *call)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	int r = call_send(gpuarb, call, NULL, NULL);

	if (r != -EBADFD || !gpuarb->repeated)
		return r;

	begin(gpuarb);
	r = call_property(gpuarb, lease_path(id).text, GPUARB_INTERFACE_LEASE, "State", &reply);
	return r < 0 ? r : judge(gpuarb, id, change, reply);
}

static int call_change(struct gpuarb *gpuarb, uint64_t id, const struct change *change)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r = call_new(lease_path(id).text, GPUARB_INTERFACE_LEASE, change->member, &call);

	return r < 0 ? r : send_change(gpuarb, id, change, call);
}

static int change_by_id(struct gpuarb *gpuarb, uint64_t id, const struct change *change)
{
	if (!gpuarb)
		return -EINVAL;

	begin(gpuarb);
	return done(gpuarb, call_change(gpuarb, id, change));
}

/* What the holder told before is old by then, and no change to the caller any more. */
static int change_held(struct gpuarb_lease *lease, const struct change *change)
{
	int r;

	if (!lease)
		return -EINVAL;

	begin(lease->gpuarb);
	r = call_change(lease->gpuarb, lease->info.id, change);
	if (r >= 0)
		r = lease_update(lease);
	if (r >= 0)
		r = lease_dispatch(lease, NULL, NULL);
	return done(lease->gpuarb, r < 0 ? r : 0);
}

GPUARB_EXPORT int gpuarb_activate(struct gpuarb *gpuarb, uint64_t id)
{
	return change_by_id(gpuarb, id, &activate);
}

GPUARB_EXPORT int gpuarb_deactivate(struct gpuarb *gpuarb, uint64_t id)
{
	return change_by_id(gpuarb, id, &deactivate);
}

GPUARB_EXPORT int gpuarb_lease_activate(struct gpuarb_lease *lease)
{
	return change_held(lease, &activate);
}

GPUARB_EXPORT int gpuarb_lease_deactivate(struct gpuarb_lease *lease)
{
	return change_held(lease, &deactivate);
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
	begin(gpuarb); /* it was carried out, and the lease is gone by now */
	return 0;
}

GPUARB_EXPORT int gpuarb_revoke(struct gpuarb *gpuarb, uint64_t id, uint64_t grace_usec,
				const char *reason)
{
	if (!gpuarb)
		return -EINVAL;

	begin(gpuarb);
	return done(gpuarb, call_revoke(gpuarb, id, grace_usec, reason ? reason : ""));
}
