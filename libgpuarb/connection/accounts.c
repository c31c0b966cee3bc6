/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What users held, waited for and were refused, from ReadUsage. */

#include <errno.h>

#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"

struct gpuarb_usage {
	struct arena arena;
	uint64_t from;
	const struct gpuarb_usage_row *rows;
	size_t n;
};

static const struct dictionary usage_row_dictionary =
	DICTIONARY(gpuarb_usage_row,
		   MEMBERS(gpuarb_usage_row, tenant, uid, leases, held_usec, cu_usec, queue_usec,
			   waits, waited_usec, refusals),
		   FIELD('s', "class", gpuarb_usage_row, lease_class));

static const struct dictionary usage_dictionary = DICTIONARY(gpuarb_usage,
							     MEMBERS(gpuarb_usage, from));

static const struct argument arguments[] = {
	ARGUMENT_ROWS(&usage_row_dictionary, gpuarb_usage, rows, n),
	{ .dictionary = &usage_dictionary },
};

GPUARB_EXPORT int gpuarb_read_usage(struct gpuarb *gpuarb, uint64_t since,
				    struct gpuarb_usage **ret)
{
	void *usage;
	int r;

	HANDLE_BEGIN(gpuarb && ret, gpuarb);
	r = call_read(gpuarb, "ReadUsage", DBUS_TYPE_UINT64, &since, arguments,
		      ARRAY_SIZE(arguments), sizeof(**ret), &usage);
	if (r >= 0)
		*ret = usage;
	return handle_end(gpuarb, r);
}

GPUARB_EXPORT void gpuarb_usage_free(struct gpuarb_usage *usage)
{
	arena_object_free(usage);
}

GPUARB_EXPORT const struct gpuarb_usage_row *gpuarb_usage_get(const struct gpuarb_usage *usage,
							      size_t i)
{
	return usage && i < usage->n ? &usage->rows[i] : NULL;
}

GPUARB_EXPORT uint64_t gpuarb_usage_from(const struct gpuarb_usage *usage)
{
	return usage ? usage->from : 0;
}
