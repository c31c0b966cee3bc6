/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Task sets of `gpuarbctl rt plan`, and the analysis of those that are valid. */

#include <errno.h>

#include "client/rt/task-plan.h"
#include "core/policy/settings.h"
#include "fuzz.h"
#include "made-gpus.h"
#include "util/text.h"

static void plan(const struct rt_set *set, const struct rt_gpu *gpu)
{
	_cleanup_(rt_plan_freep) struct rt_plan *plan = NULL;
	char problem[512] = "";
	int r = rt_plan_make(set, gpu, 1, &plan, problem, sizeof(problem));

	CHECK(r == 0 || r == -EINVAL);
	CHECK((r < 0) == (problem[0] != '\0'));
	if (r < 0)
		return;
	/* An accepted set has no task that can be late. */
	for (size_t i = 0; i < set->n_tasks && plan->result != RT_REJECTED; i++) {
		CHECK(plan->tasks[i].meets && plan->tasks[i].slack >= 0);
		CHECK(plan->tasks[i].bound <= set->tasks[i].deadline);
	}
}

FUZZ(tasks)
{
	const struct rt_gpu gpu = { .name = "g", .info = radeon_vii("0000:03:00.0") };
	_cleanup_(settings_freep) struct settings *settings = NULL;
	_cleanup_(rt_set_freep) struct rt_set *set = NULL;
	struct diagnostics diagnostics = { 0 };
	int r;

	CHECK(settings_new(&settings) == 0);
	r = rt_set_load(fuzz_file(data, size), settings, &set, &diagnostics);
	CHECK(r == 0 || r == -EINVAL);
	CHECK((r < 0) == diagnostics_have_errors(&diagnostics));
	for (size_t i = 0; i < diagnostics.n; i++)
		CHECK(text_printable(diagnostics.list[i].text));
	diagnostics_done(&diagnostics);
	if (r == 0)
		plan(set, &gpu);
}
