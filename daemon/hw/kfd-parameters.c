/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define PARAMETERS "module/amdgpu/parameters"

static void guess(const struct kfd_dir *sys, const char *name, int error, const char *instead,
		  struct diagnostics *diagnostics)
{
	diagnostics_add(diagnostics, false, "%s/" PARAMETERS "/%s: %s; %s", sys->path, name,
			kfd_trouble(error), instead);
}

static enum scheduler read_scheduler(const struct kfd_dir *sys, struct diagnostics *diagnostics)
{
	static const enum scheduler policies[] = {
		SCHEDULER_HWS,
		SCHEDULER_HWS_STRICT,
		SCHEDULER_NONE,
	};
	uint64_t policy;
	int r;

	r = kfd_read_number(sys, PARAMETERS "/sched_policy", ARRAY_SIZE(policies) - 1, &policy);
	if (r < 0) {
		guess(sys, "sched_policy", r, "the scheduler is unknown", diagnostics);
		return SCHEDULER_UNKNOWN;
	}
	return policies[policy];
}

/* -1, the default, is no limit; 0 is one process at a time (pm_calc_rlib_size() in
 * kfd_packet_manager.c). */
static unsigned read_max_processes(const struct kfd_dir *sys, struct diagnostics *diagnostics)
{
	char text[64];
	uint64_t limit;
	int r;

	r = kfd_read(sys, PARAMETERS "/hws_max_conc_proc", text, sizeof(text));
	if (r == 0) {
		text[strcspn(text, "\n")] = '\0';
		if (text[0] == '-')
			return UINT_MAX;
		r = kfd_number(text, strlen(text), INT_MAX, &limit);
	}
	if (r < 0) {
		guess(sys, "hws_max_conc_proc", r, "taken as no limit", diagnostics);
		return UINT_MAX;
	}
	return max_u((unsigned)limit, 1);
}

/* Nothing that is granted depends on it. */
static unsigned read_preemption(const struct kfd_dir *sys, struct diagnostics *diagnostics)
{
	uint64_t msec;
	int r;

	r = kfd_read_number(sys, PARAMETERS "/queue_preemption_timeout_ms", INT_MAX, &msec);
	if (r < 0 && r != -ENOENT)
		guess(sys, "queue_preemption_timeout_ms", r, "taken as its default", diagnostics);
	return r < 0 ? 0 : (unsigned)msec;
}

void kfd_parameters_read(const struct kfd_dir *sys, struct kfd_parameters *ret,
			 struct diagnostics *diagnostics)
{
	*ret = (struct kfd_parameters){
		.scheduler = read_scheduler(sys, diagnostics),
		.max_processes = read_max_processes(sys, diagnostics),
		.preemption_msec = read_preemption(sys, diagnostics),
	};
}
