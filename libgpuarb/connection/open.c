/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opening and closing a handle. Leases share it, so it counts references. */

#include "libgpuarb/connection/open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuarb/connection/connection.h"

/* The default address of the system bus in the D-Bus specification. */
#define SYSTEM_BUS "unix:path=/var/run/dbus/system_bus_socket"

/* For gpuarb_last_error(NULL): when gpuarb_open() fails there is no handle for the sentence. */
static _Thread_local char open_sentence[512];

static char *bus_address(void)
{
	const char *address = secure_getenv("GPUARB_BUS_ADDRESS");

	if (!address || !*address)
		address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
	return strdup(address && *address ? address : SYSTEM_BUS);
}

int gpuarb_new(const char *address, struct gpuarb **ret)
{
	_cleanup_(gpuarb_closep) struct gpuarb *gpuarb = calloc(1, sizeof(*gpuarb));

	if (!gpuarb)
		return -ENOMEM;

	gpuarb->references = 1;
	gpuarb->answer_usec = ANSWER_USEC;
	gpuarb->reconnect_usec = RECONNECT_USEC;
	gpuarb->address = address ? strdup(address) : bus_address();
	if (!gpuarb->address)
		return -ENOMEM;
	*ret = TAKE_PTR(gpuarb);
	return 0;
}

static const char *last_sentence(const struct gpuarb *gpuarb)
{
	if (gpuarb->no_memory)
		return "out of memory";
	return gpuarb->sentence ? gpuarb->sentence : "";
}

GPUARB_EXPORT int gpuarb_open(struct gpuarb **ret)
{
	_cleanup_(gpuarb_closep) struct gpuarb *gpuarb = NULL;
	int r;

	if (!ret)
		return -EINVAL;

	*ret = NULL;
	snprintf(open_sentence, sizeof(open_sentence), "out of memory");
	r = gpuarb_new(NULL, &gpuarb);
	if (r < 0)
		return r;

	r = handle_end(gpuarb, connection_ensure(gpuarb));
	if (r < 0) {
		snprintf(open_sentence, sizeof(open_sentence), "%s", last_sentence(gpuarb));
		return r;
	}
	open_sentence[0] = '\0';
	*ret = TAKE_PTR(gpuarb);
	return 0;
}

struct gpuarb *gpuarb_reference(struct gpuarb *gpuarb)
{
	gpuarb->references++;
	return gpuarb;
}

void gpuarb_unreference(struct gpuarb *gpuarb)
{
	if (--gpuarb->references > 0)
		return;

	handle_begin(gpuarb);
	connection_free(gpuarb->connection);
	free(gpuarb->address);
	free(gpuarb);
}

GPUARB_EXPORT void gpuarb_set_interactive(struct gpuarb *gpuarb, bool interactive)
{
	if (gpuarb)
		gpuarb->interactive = interactive;
}

GPUARB_EXPORT void gpuarb_close(struct gpuarb *gpuarb)
{
	if (!gpuarb)
		return;

	/* The leases that remain connect again when they have to call the daemon. */
	connection_free(TAKE_PTR(gpuarb->connection));
	gpuarb_unreference(gpuarb);
}

GPUARB_EXPORT const char *gpuarb_last_error(const struct gpuarb *gpuarb)
{
	return gpuarb ? last_sentence(gpuarb) : open_sentence;
}
