/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/fail.h"
#include "client/print.h"
#include "client/rt/show.h"
#include "client/verb.h"

/* A line for each thing that is wrong; with --json the lines of one object. */
static int fail_notes(const struct command *command, const struct notes *notes)
{
	_cleanup_(freep) char *text = NULL;
	size_t size, last = notes->n - 1;
	FILE *out = command->json ? open_memstream(&text, &size) : NULL;

	for (size_t i = 0; i < last; i++) {
		if (out)
			fprintf(out, "%s\n", notes->list[i].text);
		else
			print_line(stderr, "gpuarbctl %s: %s", command->verb, notes->list[i].text);
	}
	if (out && fclose(out) != 0)
		return fail(command, EXIT_FAILED, "no memory");
	return fail(command, EXIT_CONFIGURATION, "%s%s", text ? text : "", notes->list[last].text);
}

static int load_set(const struct command *command, struct rt_set **ret)
{
	_cleanup_(notes_done) struct notes notes = {0};
	int r;

	r = rt_set_load(command->rest[1], ret, &notes);
	if (r >= 0)
		return EXIT_OK;
	if (notes.n == 0)
		return fail(command, EXIT_FAILED, "%s: %s", command->rest[1], strerror(-r));
	return fail_notes(command, &notes);
}

int run_rt(struct command *command)
{
	_cleanup_(rt_plan_freep) struct rt_plan *plan = NULL;
	_cleanup_(rt_set_freep) struct rt_set *set = NULL;
	struct rt_gpu gpu;
	char problem[512];
	int r;

	if (strcmp(command->rest[0], "plan") != 0)
		return fail(command, EXIT_USAGE, "rt %.80s: plan is what there is",
			    command->rest[0]);
	r = rt_gpu_load(command, &gpu);
	if (r == EXIT_OK)
		r = load_set(command, &set);
	if (r != EXIT_OK)
		return r;
	if (command->margin_given)
		set->margin_percent = command->margin_percent;

	r = rt_plan_make(set, &gpu.info, &plan, problem, sizeof(problem));
	if (r == -EINVAL)
		return fail(command, EXIT_CONFIGURATION, "%s: %s", command->rest[1], problem);
	if (r < 0)
		return fail(command, EXIT_FAILED, "%s", strerror(-r));
	if (command->json)
		rt_show_json(&gpu, plan);
	else
		rt_show_text(command, &gpu, plan);
	return plan->verdict == RT_REJECTED ? EXIT_REFUSED : EXIT_OK;
}
