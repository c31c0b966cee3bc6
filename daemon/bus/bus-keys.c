/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus/bus-keys.h"

#include <errno.h>
#include <string.h>

#include "util/base.h"

#define COUNT_MAX 65535U             /* more than any GPU has of anything; sums of it fit */
#define VRAM_MAX (UINT64_C(1) << 50) /* likewise, in bytes */

static int set_shape(const char *word, void *field)
{
	bool any = strcmp(word, "any") == 0;

	if (!any && strcmp(word, "rectangle") != 0)
		return -EINVAL;
	*(bool *)field = any;
	return 0;
}

static int set_priority(const char *word, void *field)
{
	int priority = priority_from_name(word);

	if (priority < 0)
		return priority;
	*(unsigned *)field = (unsigned)priority;
	return 0;
}

static int set_isolation(const char *word, void *field)
{
	int isolation = isolation_from_name(word);

	if (isolation < 0)
		return isolation;
	*(enum isolation *)field = (enum isolation)isolation;
	return 0;
}

static int set_class(const char *word, void *field)
{
	int lease_class = class_from_name(word);

	if (lease_class < 0)
		return lease_class;
	*(int *)field = lease_class;
	return 0;
}

#define PRIORITY_WORKS "low, normal or high (s), or a number (u) from 0 to 15"
/* clang-format off */
#define WANT(n, t, field, ...)                                                             \
	{ .name = n, .type = t, .offset = offsetof(struct want, field), __VA_ARGS__ }
/* clang-format on */

const struct key want_keys[] = {
	WANT("gpu", 's', gpu, .min = 1, .max = GPU_NAME_MAX - 1),
	WANT("cus", 'u', cus, .min = 1, .max = COUNT_MAX),
	WANT("shader-engines", 'u', shader_engines, .min = 1, .max = COUNT_MAX),
	WANT("cus-min", 'u', cus_min, .min = 1, .max = COUNT_MAX),
	WANT("cus-max", 'u', cus_max, .min = 1, .max = COUNT_MAX),
	WANT("exact", 'b', exact),
	WANT("shape", 's', any_shape, .word = set_shape, .works = "rectangle or any (s)"),
	WANT("queues", 'u', queues, .min = 1, .max = COUNT_MAX),
	WANT("streams", 'u', streams, .max = COUNT_MAX),
	WANT("processes", 'u', processes, .min = 1, .max = COUNT_MAX),
	WANT("sdma-queues", 'u', sdma_queues, .max = COUNT_MAX),
	WANT("vram", 't', vram, .max = VRAM_MAX),
	WANT("cooperative", 'b', cooperative),
	WANT("priority", 's', priority, .word = set_priority, .works = PRIORITY_WORKS),
	WANT("priority", 'u', priority, .max = PRIORITY_MAX, .works = PRIORITY_WORKS),
	WANT("isolation", 's', isolation, .word = set_isolation,
	     .works = "shader-engine, cu or shared (s)"),
};

/* clang-format off */
#define OPTION(n, t, field, ...)                                                           \
	{ .name = n, .type = t, .offset = offsetof(struct reading, field), __VA_ARGS__ }
/* clang-format on */

const struct key option_keys[] = {
	OPTION("class", 's', request.class, .word = set_class,
	       .works = "realtime, guaranteed or besteffort (s)"),
	OPTION("name", 's', request.name, .max = REQUEST_TEXT - 1),
	OPTION("tenant", 's', request.tenant, .min = 1, .max = REQUEST_TEXT - 1),
	OPTION("token", 's', request.token, .min = 1, .max = REQUEST_TEXT - 1),
	OPTION("wait-usec", 't', request.wait_usec, .max = UINT64_MAX),
	OPTION("start-inactive", 'b', request.start_inactive),
	OPTION("adaptable", 'b', request.adaptable),
	OPTION("process", 'h', process_fd, .works = "a pidfd (h)"),
};

const size_t n_want_keys = ARRAY_SIZE(want_keys), n_option_keys = ARRAY_SIZE(option_keys);
