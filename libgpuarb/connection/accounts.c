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

static const struct field usage_row_fields[] = {
	FIELD('s', "tenant", gpuarb_usage_row, tenant),
	FIELD('u', "uid", gpuarb_usage_row, uid),
	FIELD('s', "class", gpuarb_usage_row, lease_class),
	FIELD('t', "leases", gpuarb_usage_row, leases),
	FIELD('t', "held-usec", gpuarb_usage_row, held_usec),
	FIELD('t', "cu-usec", gpuarb_usage_row, cu_usec),
	FIELD('t', "queue-usec", gpuarb_usage_row, queue_usec),
	FIELD('t', "waits", gpuarb_usage_row, waits),
	FIELD('t', "waited-usec", gpuarb_usage_row, waited_usec),
	FIELD('t', "refusals", gpuarb_usage_row, refusals),
};

static const struct dictionary usage_row_dictionary = DICTIONARY(usage_row_fields,
								 gpuarb_usage_row);

static const struct field usage_fields[] = {
	FIELD('t', "from", gpuarb_usage, from),
};

static const struct dictionary usage_dictionary = DICTIONARY(usage_fields, gpuarb_usage);

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
