/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/class.h"

#include <errno.h>
#include <stddef.h>

#include "util/number.h"
#include "util/text.h"

const char *const class_names[] = {
	[CLASS_BESTEFFORT] = "besteffort",
	[CLASS_GUARANTEED] = "guaranteed",
	[CLASS_REALTIME] = "realtime",
	NULL,
};

const char *const isolation_names[] = {
	[ISOLATION_DEFAULT] = "default",
	[ISOLATION_SHADER_ENGINE] = "shader-engine",
	[ISOLATION_CU] = "cu",
	[ISOLATION_SHARED] = "shared",
	NULL,
};

const char *const state_names[] = {
	[STATE_WAITING] = "waiting",
	[STATE_GRANTED] = "granted",
	[STATE_INACTIVE] = "inactive",
	[STATE_ACTIVATING] = "activating",
	[STATE_REVOKING] = "revoking",
	[STATE_ENDING] = "ending",
	NULL,
};

const char *const enforce_step_names[] = {
	[ENFORCE_STEP_NONE] = "none",
	[ENFORCE_STEP_REPORT] = "report",
	[ENFORCE_STEP_FREEZE] = "freeze",
	[ENFORCE_STEP_KILL] = "kill",
	NULL,
};

const char *const exclusive_names[] = { "no", "ask", "active", NULL };

const char *const drift_names[] = {
	[DRIFT_MASK] = "mask",
	[DRIFT_QUEUES] = "queues",
	[DRIFT_PROCESSES] = "processes",
	[DRIFT_SDMA_QUEUES] = "sdma-queues",
	[DRIFT_SDMA_XGMI_QUEUES] = "sdma-xgmi-queues",
	[DRIFT_VRAM] = "vram",
	[DRIFT_PRIORITY] = "priority",
	NULL,
};

const char *const on_drift_names[] = { "protect", "report", "revoke", "kill", NULL };

const char *const priority_names[] = { "low", "normal", "high", NULL };

unsigned priority_class(unsigned priority)
{
	return priority >= PRIORITY_HIGH ? 2 : priority >= PRIORITY_NORMAL;
}

int class_from_name(const char *name)
{
	return text_index(class_names, name);
}

int isolation_from_name(const char *name)
{
	int r = text_index(isolation_names, name);

	return r == ISOLATION_DEFAULT ? -EINVAL : r;
}

int priority_from_name(const char *name)
{
	static const int values[] = { PRIORITY_LOW, PRIORITY_NORMAL, PRIORITY_HIGH };
	int word = text_index(priority_names, name);
	uint64_t value;

	if (word >= 0)
		return values[word];
	return number_parse(name, 0, PRIORITY_MAX, &value) < 0 ? -EINVAL : (int)value;
}
