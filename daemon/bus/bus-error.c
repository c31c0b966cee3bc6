/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus/bus-error.h"

#include "bus/bus-write.h"
#include "util/base.h"
#include "util/text.h"
#include "dbus/names.h"

static const char *const names[RESULT_KINDS] = {
	[RESULT_INVALID_REQUEST] = GPUARB_ERROR_INVALID_REQUEST,
	[RESULT_INVALID_STATE] = GPUARB_ERROR_INVALID_STATE,
	[RESULT_TOKEN_CONFLICT] = GPUARB_ERROR_TOKEN_CONFLICT,
	[RESULT_NOT_PERMITTED] = GPUARB_ERROR_NOT_PERMITTED,
	[RESULT_QUOTA_EXCEEDED] = GPUARB_ERROR_QUOTA_EXCEEDED,
	[RESULT_NO_CAPACITY] = GPUARB_ERROR_NO_CAPACITY,
	[RESULT_NEVER_FITS] = GPUARB_ERROR_NEVER_FITS,
	[RESULT_NO_SUCH_GPU] = GPUARB_ERROR_NO_SUCH_GPU,
	[RESULT_NO_SUCH_LEASE] = GPUARB_ERROR_NO_SUCH_LEASE,
	[RESULT_NO_SUCH_TENANT] = GPUARB_ERROR_NO_SUCH_TENANT,
	[RESULT_NOT_SUPPORTED] = GPUARB_ERROR_NOT_SUPPORTED,
	[RESULT_NOT_SAVED] = GPUARB_ERROR_NOT_SAVED,
	[RESULT_TOO_MANY_LEASES] = GPUARB_ERROR_TOO_MANY_LEASES,
	[RESULT_TIMED_OUT] = GPUARB_ERROR_TIMED_OUT,
	[RESULT_SHUTDOWN] = GPUARB_ERROR_SHUTDOWN,
	[RESULT_NO_MEMORY] = SD_BUS_ERROR_NO_MEMORY,
};

const char *bus_error_name(enum result_kind kind)
{
	return names[kind];
}

/* A sentence may have lines, one for each mistake of a configuration. What is cleaned keeps
 * its bytes where they were. */
static const char *clean_lines(char *buf, size_t size, const char *text)
{
	text_clean(buf, size, text);
	for (size_t i = 0; buf[i]; i++)
		if (text[i] == '\n')
			buf[i] = '\n';
	return buf;
}

int bus_refuse(sd_bus_message *call, int r, const struct result *result)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	char sentence[sizeof(result->sentence)];
	sd_bus_error error = {
		.name = bus_error_name(result->kind),
		.message = clean_lines(sentence, sizeof(sentence), result->sentence),
	};

	if (result->kind == RESULT_OK)
		return sd_bus_reply_method_errno(call, r, NULL);

	r = sd_bus_message_new_method_error(call, &reply, &error);
	if (r < 0)
		return r;
	if (result->n_refusals > 0) {
		r = bus_append_refusals(reply, result->refusals, result->n_refusals, NULL);
		if (r < 0)
			return r;
	}
	r = sd_bus_send(NULL, reply, NULL);
	return r < 0 ? r : 1;
}
