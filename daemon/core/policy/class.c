/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/class.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "util/base.h"

static const char *const class_names[] = {
	[CLASS_BESTEFFORT] = "besteffort",
	[CLASS_GUARANTEED] = "guaranteed",
	[CLASS_REALTIME] = "realtime",
};

static const char *const isolation_names[] = {
	[ISOLATION_DEFAULT] = "default",
	[ISOLATION_SHADER_ENGINE] = "shader-engine",
	[ISOLATION_CU] = "cu",
	[ISOLATION_SHARED] = "shared",
};

static const char *const state_names[] = {
	[STATE_WAITING] = "waiting",   [STATE_GRANTED] = "granted",
	[STATE_INACTIVE] = "inactive", [STATE_ACTIVATING] = "activating",
	[STATE_REVOKING] = "revoking", [STATE_ENDING] = "ending",
};

static const char *const enforce_step_names[] = {
	[ENFORCE_STEP_NONE] = "none",
	[ENFORCE_STEP_REPORT] = "report",
	[ENFORCE_STEP_FREEZE] = "freeze",
	[ENFORCE_STEP_KILL] = "kill",
};

const char *class_name(enum lease_class lease_class)
{
	return class_names[lease_class];
}

const char *isolation_name(enum isolation isolation)
{
	return isolation_names[isolation];
}

const char *state_name(enum lease_state state)
{
	return state_names[state];
}

const char *enforce_step_name(enum enforce_step enforce_step)
{
	return enforce_step_names[enforce_step];
}

static int find(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -EINVAL;
}

int class_from_name(const char *name)
{
	return find(class_names, ARRAY_SIZE(class_names), name);
}

int isolation_from_name(const char *name)
{
	int r = find(isolation_names, ARRAY_SIZE(isolation_names), name);

	return r == ISOLATION_DEFAULT ? -EINVAL : r;
}

int enforce_step_from_name(const char *name)
{
	int r = find(enforce_step_names, ARRAY_SIZE(enforce_step_names), name);

	return r == ENFORCE_STEP_NONE ? -EINVAL : r;
}

static int priority_from_digits(const char *digits)
{
	unsigned value = 0;

	if (digits[0] == '\0')
		return -EINVAL;
	for (; *digits; digits++) {
		if (*digits < '0' || *digits > '9')
			return -EINVAL;
		value = value * 10 + (unsigned)(*digits - '0');
		if (value > PRIORITY_MAX)
			return -EINVAL;
	}
	return (int)value;
}

int priority_from_name(const char *name)
{
	static const struct {
		const char *name;
		unsigned priority;
	} words[] = {
		{ "low", PRIORITY_LOW },
		{ "normal", PRIORITY_NORMAL },
		{ "high", PRIORITY_HIGH },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(words[i].name, name) == 0)
			return (int)words[i].priority;
	return priority_from_digits(name);
}
