/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The last failure and answer of a handle. */

#include "libgpuarb/connection/handle.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/names.h"

#define DBUS "org.freedesktop.DBus.Error."
#define SPAWN DBUS "Spawn."

static const struct {
	const char *name;
	int error;
} errors[] = {
	{ GPUARB_ERROR_INVALID_REQUEST, -EINVAL },
	{ GPUARB_ERROR_INVALID_STATE, -EBADFD },
	{ GPUARB_ERROR_TOKEN_CONFLICT, -EEXIST },
	{ GPUARB_ERROR_NOT_PERMITTED, -EACCES },
	{ GPUARB_ERROR_QUOTA_EXCEEDED, -EDQUOT },
	{ GPUARB_ERROR_NO_CAPACITY, -EBUSY },
	{ GPUARB_ERROR_NEVER_FITS, -ENOSPC },
	{ GPUARB_ERROR_NO_SUCH_GPU, -ENODEV },
	{ GPUARB_ERROR_NO_SUCH_LEASE, -ENOENT },
	{ GPUARB_ERROR_NO_SUCH_TENANT, -ESRCH },
	{ GPUARB_ERROR_NOT_SUPPORTED, -EOPNOTSUPP },
	{ GPUARB_ERROR_NOT_SAVED, -EIO },
	{ GPUARB_ERROR_TOO_MANY_LEASES, -EUSERS },
	{ GPUARB_ERROR_TIMED_OUT, -ETIMEDOUT },
	{ GPUARB_ERROR_SHUTDOWN, -ESHUTDOWN },

	/* Errors of the bus, of libdbus, and of daemons of other versions. */
	{ DBUS "NoMemory", -ENOMEM },
	{ DBUS "AccessDenied", -EACCES },
	{ DBUS "InteractiveAuthorizationRequired", -EACCES },
	{ DBUS "InvalidArgs", -EINVAL },
	{ DBUS "LimitsExceeded", -EUSERS },
	{ DBUS "NotSupported", -EOPNOTSUPP },
	{ DBUS "UnknownMethod", -EOPNOTSUPP },
	{ DBUS "UnknownProperty", -EOPNOTSUPP },
	{ DBUS "UnknownInterface", -EOPNOTSUPP },
	{ DBUS "UnknownObject", -ENOENT },
	{ DBUS "ServiceUnknown", -ECONNREFUSED },
	{ DBUS "NameHasNoOwner", -ECONNREFUSED },
	{ DBUS "NoReply", -ECONNRESET },
	{ DBUS "Disconnected", -ECONNRESET },
	{ DBUS "Timeout", -ETIMEDOUT },
	{ DBUS "TimedOut", -ETIMEDOUT },
};

int error_from_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (strcmp(errors[i].name, name) == 0)
			return errors[i].error;

	/* The bus could not start the daemon. */
	if (strncmp(name, SPAWN, strlen(SPAWN)) == 0 ||
	    strncmp(name, "org.freedesktop.systemd1.", 25) == 0)
		return -ECONNREFUSED;
	return -EPROTO;
}

void handle_begin(struct gpuarb *gpuarb)
{
	free(gpuarb->sentence);
	free(gpuarb->error_name);
	gpuarb->sentence = gpuarb->error_name = NULL;
	gpuarb->no_memory = false;
	arena_clear(&gpuarb->answer);
	gpuarb->refusals = (struct refusals){ 0 };
	gpuarb->plan = NULL;
	gpuarb->n_plan = 0;
	gpuarb->plan_terms = (struct terms){ 0 };
	gpuarb->effects = NULL;
}

int handle_end(struct gpuarb *gpuarb, int r)
{
	gpuarb->no_memory = r == -ENOMEM;
	return r;
}

PRINTF_LIKE(2, 0)
static bool set_sentence(struct gpuarb *gpuarb, const char *format, va_list args)
{
	free(gpuarb->sentence);
	if (vasprintf(&gpuarb->sentence, format, args) < 0)
		gpuarb->sentence = NULL;
	return gpuarb->sentence;
}

int fail(struct gpuarb *gpuarb, int error, const char *format, ...)
{
	va_list args;
	bool noted;

	va_start(args, format);
	noted = set_sentence(gpuarb, format, args);
	va_end(args);
	return noted ? error : -ENOMEM;
}

int fail_as(struct gpuarb *gpuarb, const char *name, const char *format, ...)
{
	va_list args;
	bool noted;

	free(gpuarb->error_name);
	gpuarb->error_name = strdup(name);
	va_start(args, format);
	noted = set_sentence(gpuarb, format, args);
	va_end(args);
	return noted && gpuarb->error_name ? error_from_name(name) : -ENOMEM;
}

int fail_interrupted(struct gpuarb *gpuarb)
{
	return fail(gpuarb, -EINTR, "interrupted by a signal");
}

int fail_answer(struct gpuarb *gpuarb, const char *method, const char *key)
{
	return fail(gpuarb, -EPROTO,
		    "invalid answer of gpuarbd to %s%s%s%s: use a gpuarbd and a libgpuarb of the "
		    "same version",
		    method, key ? ": '" : "", key ? key : "", key ? "' has the wrong type" : "");
}

GPUARB_EXPORT const char *gpuarb_last_error_name(const struct gpuarb *gpuarb)
{
	return gpuarb && gpuarb->error_name ? gpuarb->error_name : "";
}

GPUARB_EXPORT const struct gpuarb_refusal *gpuarb_last_refusals(const struct gpuarb *gpuarb,
								size_t *ret_n)
{
	if (ret_n)
		*ret_n = gpuarb ? gpuarb->refusals.n : 0;
	return gpuarb ? gpuarb->refusals.rows : NULL;
}

GPUARB_EXPORT const struct gpuarb_refusal_facts *
gpuarb_last_refusal_facts(const struct gpuarb *gpuarb, size_t i)
{
	return gpuarb && i < gpuarb->refusals.n ? &gpuarb->refusals.facts[i] : NULL;
}
