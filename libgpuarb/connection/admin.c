/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Leases by number, and administering. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"

struct lease_path lease_path(uint64_t id)
{
	struct lease_path path;

	snprintf(path.text, sizeof(path.text), GPUARB_PATH_LEASE "/%" PRIu64, id);
	return path;
}

int call_release(struct gpuarb *gpuarb, uint64_t id)
{
	int r = call_simple(gpuarb, lease_path(id).text, GPUARB_INTERFACE_LEASE, "Release",
			    DBUS_TYPE_INVALID, NULL);

	if (r != -ENOENT || !gpuarb->repeated)
		return r;

	begin(gpuarb); /* the call before did it, and its answer was lost */
	return 0;
}

GPUARB_EXPORT int gpuarb_release(struct gpuarb *gpuarb, uint64_t id)
{
	if (!gpuarb)
		return -EINVAL;

	begin(gpuarb);
	return done(gpuarb, call_release(gpuarb, id));
}

GPUARB_EXPORT int gpuarb_resize(struct gpuarb *gpuarb, uint64_t id, const struct gpuarb_want *wants,
				size_t n)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r;

	if (!gpuarb)
		return -EINVAL;

	begin(gpuarb);
	r = request_new(gpuarb, lease_path(id).text, GPUARB_INTERFACE_LEASE, "Resize", wants, n,
			NULL, &call);
	if (r >= 0)
		r = call_send(gpuarb, call, NULL, NULL);
	return done(gpuarb, r);
}

GPUARB_EXPORT int gpuarb_drain(struct gpuarb *gpuarb, const char *gpu, bool drain)
{
	int r;

	if (!gpuarb || !gpu)
		return -EINVAL;

	begin(gpuarb);
	r = check_string(gpuarb, "gpu", gpu);
	if (r >= 0)
		r = call_simple(gpuarb, GPUARB_PATH, GPUARB_INTERFACE, drain ? "Drain" : "Undrain",
				DBUS_TYPE_STRING, &gpu);
	return done(gpuarb, r);
}

GPUARB_EXPORT int gpuarb_reload(struct gpuarb *gpuarb)
{
	if (!gpuarb)
		return -EINVAL;

	begin(gpuarb);
	return done(gpuarb, call_simple(gpuarb, GPUARB_PATH, GPUARB_INTERFACE, "Reload",
					DBUS_TYPE_INVALID, NULL));
}
