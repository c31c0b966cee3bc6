/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/wants.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/fail.h"
#include "client/output/print.h"
#include "core/policy/request.h"
#include "util/base.h"
#include "util/number.h"

/* ---- GPUs of variables ----------------------------------------------------------------------- */

/* A list of these GPUs, as a want has it; NULL: no memory. */
static char *list_gpus(const struct command *command, const bool *visible)
{
	char *list = calloc(command->n_gpus + 1, GPU_NAME_MAX);

	for (size_t i = 0; list && i < command->n_gpus; i++) {
		if (!visible[i])
			continue;
		if (*list)
			strcat(list, ",");
		strcat(list, command->gpus[i].name);
	}
	return list;
}

/* command->visible stays NULL if no variable is set, when the request needs no snapshot, and if all GPUs are
 * visible. */
static int find_visible(struct command *command)
{
	_cleanup_(freep) bool *visible = NULL;
	bool all = true;
	int r = session_open(command);

	if (r != EXIT_OK || command->visible ||
	    gpuarb_visible_gpus(command->gpuarb, NULL, 0, NULL) == 0)
		return r;
	if (!command->view)
		r = session_snapshot(command);
	if (r != EXIT_OK || command->n_gpus == 0)
		return r;
	visible = calloc(command->n_gpus, sizeof(*visible));
	if (!visible)
		return fail(command, EXIT_FAILED, "out of memory");
	r = gpuarb_visible_gpus(command->gpuarb, command->gpus, command->n_gpus, visible);
	if (r < 0)
		return fail_asked(command, r);
	for (size_t i = 0; i < command->n_gpus; i++)
		all &= visible[i];
	if (all)
		return EXIT_OK;
	command->visible = list_gpus(command, visible);
	return command->visible ? EXIT_OK : fail(command, EXIT_FAILED, "out of memory");
}

/* The GPUs that the variables of Slurm, CI, containers and users leave for a want that names none. *ret: the GPUs for
 * it; as it is typed, if no variable restricts it. Prints errors and returns the exit code. */
static int visible_choose(struct command *command, const char *gpu, const char **ret)
{
	int r;

	*ret = gpu;
	if (gpu && strcmp(gpu, "any") != 0)
		return EXIT_OK;
	r = find_visible(command);
	if (r == EXIT_OK && command->visible)
		*ret = command->visible;
	return r;
}

static bool is_shown(const struct command *command, size_t i)
{
	const char *list = command->visible;
	char name[GPU_NAME_MAX];

	if (!list)
		return !gpuarb_view_named_only(command->view, i);
	while (want_next_gpu(&list, name))
		if (strcmp(name, command->gpus[i].name) == 0)
			return true;
	return false;
}

static bool is_all(const struct typed_want *typed)
{
	return typed->want.gpu && strcmp(typed->want.gpu, "all") == 0;
}

static int check_alone(const struct command *command)
{
	for (size_t i = 0; i < command->n_wants; i++)
		if (is_all(&command->wants[i]))
			return fail(command, EXIT_USAGE,
				    "--gpu=all and another --gpu exclude each other");
	return EXIT_OK;
}

/* Replaces the only want, if it has --gpu=all, by one for each GPU that the variables leave. Prints errors and returns
 * the exit code. */
static int visible_expand(struct command *command)
{
	const struct typed_want typed = command->wants[0];
	size_t n = 0;
	int r;

	if (command->n_wants > 1 || !is_all(&typed))
		return check_alone(command);
	r = find_visible(command);
	if (r == EXIT_OK && !command->view)
		r = session_snapshot(command);
	for (size_t i = 0; r == EXIT_OK && i < command->n_gpus && n < REQUEST_WANTS; i++) {
		struct typed_want *want = &command->wants[n];

		if (!is_shown(command, i))
			continue;
		*want = typed;
		snprintf(want->gpu, sizeof(want->gpu), "%s", command->gpus[i].name);
		want->want.gpu = want->gpu;
		n++;
	}
	if (r == EXIT_OK && n == 0)
		return fail(command, EXIT_REFUSED,
			    "--gpu=all: there is no GPU that can be chosen%s",
			    command->n_gpus > 0 && !command->visible
				    ? ": all have any = no, and only --gpu=NAME gets them"
				    : "");
	if (r == EXIT_OK) {
		command->n_wants = n;
		command->every_gpu = true;
	}
	return r;
}

/* ---- wants ----------------------------------------------------------------------------------- */

#define QUEUES_HIP 4U   /* of an unmodified HIP process, beside one that ROCr creates for itself */
#define PROGRAMS 4U     /* that a GPU has room for at least */
#define QUEUES_LEAST 2U /* one for the program, one that ROCr creates for itself */

static bool is_any(const char *gpu)
{
	return !gpu || strcmp(gpu, "any") == 0;
}

bool want_has_cus(const struct typed_want *typed)
{
	return typed->want.cus > 0 || typed->share.cus > 0 || typed->want.shader_engines > 0;
}

/* What the daemon takes of each GPU that it examines. */
static void ask_for_shares(const struct typed_want *typed, struct gpuarb_want *want)
{
	want->cus_percent = typed->share.cus;
	want->cus_min_percent = typed->share.cus_min;
	want->cus_max_percent = typed->share.cus_max;
}

static int check_named(struct command *command, const char *gpus)
{
	const struct gpuarb_gpu *unused;
	char name[GPU_NAME_MAX];
	int r = EXIT_OK;

	while (r == EXIT_OK && want_next_gpu(&gpus, name))
		r = session_gpu(command, name, &unused);
	return r;
}

/* Can the want be granted there? */
static bool is_candidate(const struct command *command, const char *gpus,
			 const struct gpuarb_gpu *gpu)
{
	const struct gpuarb_gpu *named;
	char name[GPU_NAME_MAX];

	if (is_any(gpus))
		return !gpuarb_view_named_only(command->view, (size_t)(gpu - command->gpus));
	while (want_next_gpu(&gpus, name))
		if (session_gpu(command, name, &named) == EXIT_OK && named == gpu)
			return true;
	return false;
}

/* GPU_MAX_HW_QUEUES is a limit of the user. */
static unsigned hip_queues(void)
{
	const char *text = getenv("GPU_MAX_HW_QUEUES");
	uint64_t limit;

	return text && number_parse(text, 1, QUEUES_HIP, &limit) >= 0 ? (unsigned)limit
								      : QUEUES_HIP;
}

/* Of one process on this GPU: room for three more, or half of what is free. */
static unsigned fair_queues(const struct gpuarb_gpu *gpu, unsigned processes)
{
	return min_u(gpu->queue_slots / PROGRAMS, gpu->queue_slots_free / 2) / processes;
}

/* Of all processes of the want. fair: what one of them can have so that others have room; 0: the fewest. */
static unsigned choose_queues(const struct gpuarb_want *want, unsigned fair)
{
	unsigned least = QUEUES_LEAST + want->streams;
	unsigned good = want->streams + hip_queues() + 1;

	return max_u(want->processes, 1) * max_u(min_u(good, fair), least);
}

static int ask_for_all(struct command *command, struct gpuarb_want *want)
{
	unsigned processes = max_u(want->processes, 1), fair = 0, most = 0, roomy = 0, size;
	int r;

	r = command->view ? EXIT_OK : session_snapshot(command);
	if (r == EXIT_OK && command->n_gpus == 0)
		r = fail(command, EXIT_REFUSED, "no GPU: gpuarbd found none on this machine");
	if (r == EXIT_OK && !is_any(want->gpu))
		r = check_named(command, want->gpu);
	if (r != EXIT_OK)
		return r;

	for (size_t i = 0; i < command->n_gpus; i++) {
		const struct gpuarb_gpu *gpu = &command->gpus[i];

		if (!is_candidate(command, want->gpu, gpu))
			continue;
		most = max_u(most, gpu->cus);
		size = gpu->draining || gpu->oversubscribed ? 0 : gpu->cus;
		if (gpu->queue_slots_free < processes * QUEUES_LEAST || size < roomy)
			continue;
		/* A smaller GPU has no say: its free slots would keep the program from this one. Nor has one that
		 * grants nothing now, unless all are such. */
		fair = max_u(size > roomy ? 0 : fair, fair_queues(gpu, processes));
		roomy = size;
	}
	if (want->cus_min == 0 && want->cus_min_percent == 0)
		want->cus_min = 1;
	if (want->cus_max == 0 && want->cus_max_percent == 0)
		want->cus_max = max_u(most, want->cus_min);
	want->cus = want->cus_min;
	want->cus_percent = want->cus_min_percent;
	command->hip_queues = hip_queues();
	if (want->queues == 0)
		want->queues = choose_queues(want, fair);
	return EXIT_OK;
}

static bool chooses_queues(const struct command *command, size_t i)
{
	return command->wants[i].want.queues == 0 && !want_has_cus(&command->wants[i]);
}

bool want_ask_queues(struct command *command, const struct gpuarb_partition *planned,
		     struct gpuarb_want wants[static REQUEST_WANTS])
{
	bool more = false;

	for (size_t i = 0; i < command->n_wants; i++) {
		const struct gpuarb_gpu *gpu;
		unsigned fair = 0, before = wants[i].queues;

		if (!chooses_queues(command, i))
			continue;
		if (planned && session_gpu(command, planned[i].gpu, &gpu) == EXIT_OK)
			fair = fair_queues(gpu, max_u(wants[i].processes, 1));
		wants[i].queues = choose_queues(&wants[i], fair);
		more |= wants[i].queues > before;
	}
	return more;
}

unsigned want_lacks_queues(const struct command *command, size_t i,
			   const struct gpuarb_partition *partition)
{
	const struct gpuarb_want *typed = &command->wants[i].want;
	unsigned of_process = partition->queues / max_u(partition->processes, 1);
	unsigned hip = of_process - min_u(of_process, 1 + partition->streams);

	if (typed->queues > 0 || hip >= command->hip_queues)
		return 0;
	return max_u(hip, 1);
}

/* Either every want has a number of CUs, or none has. */
static int check_wants(struct command *command, bool *ret_all)
{
	const char *lease_class = command->options.lease_class;
	size_t with_cus = 0;

	for (size_t i = 0; i < command->n_wants; i++)
		with_cus += want_has_cus(&command->wants[i]);
	if (with_cus > 0 && with_cus < command->n_wants)
		return fail(
			command, EXIT_USAGE,
			"only %zu of the %zu wants %s a number of CUs: each --gpu needs --cus or "
			"--shader-engines after it",
			with_cus, command->n_wants, with_cus == 1 ? "has" : "have");

	*ret_all = with_cus == 0;
	if (with_cus > 0)
		return EXIT_OK;
	if (lease_class && strcmp(lease_class, "besteffort") != 0)
		return fail(command, EXIT_USAGE,
			    "--class=%s needs --cus or --shader-engines: only best effort leases "
			    "can take any number of CUs",
			    lease_class);
	command->options.lease_class = "besteffort";
	return EXIT_OK;
}

int want_resolve(struct command *command, struct gpuarb_want ret[static REQUEST_WANTS])
{
	bool all = false;
	int r;

	/* Only best effort leases can be adaptable, whatever the tenant's class is. */
	if (command->options.adaptable && !command->options.lease_class)
		command->options.lease_class = "besteffort";
	r = visible_expand(command);
	if (r == EXIT_OK)
		r = check_wants(command, &all);
	for (size_t i = 0; r == EXIT_OK && i < command->n_wants; i++) {
		const struct typed_want *typed = &command->wants[i];

		ret[i] = typed->want;
		r = visible_choose(command, typed->want.gpu, &ret[i].gpu);
		ask_for_shares(typed, &ret[i]);
		if (r == EXIT_OK && all)
			r = ask_for_all(command, &ret[i]);
	}
	return r == EXIT_OK ? session_open(command) : r;
}

bool want_ask_less(const struct command *command, struct gpuarb_want wants[static REQUEST_WANTS])
{
	bool less = false;

	for (size_t i = 0; i < command->n_wants; i++) {
		if (!chooses_queues(command, i) || wants[i].queues <= choose_queues(&wants[i], 0))
			continue;
		wants[i].queues -= max_u(wants[i].processes, 1);
		less = true;
	}
	return less;
}

/* The daemon keeps the CUs of an adaptable lease between its bounds. */
static void keep_others(const struct typed_want *typed, const struct gpuarb_partition *partition,
			bool adaptable, struct gpuarb_want *want)
{
	if (want->cus == 0 && want->cus_percent == 0 && want->shader_engines == 0 && !adaptable)
		want->cus = partition->cus;
	if (want->processes == 0)
		want->processes = partition->processes;
	if (want->queues == 0)
		want->queues = partition->queues;
	if (!option_given(typed, "streams"))
		want->streams = partition->streams;
	if (!option_given(typed, "sdma-queues"))
		want->sdma_queues = partition->sdma_queues;
	if (!option_given(typed, "sdma-xgmi-queues"))
		want->sdma_xgmi_queues = partition->sdma_xgmi_queues;
	if (!option_given(typed, "vram"))
		want->vram = partition->vram;
	if (!option_given(typed, "priority"))
		want->priority = partition->priority;
}

int want_resolve_resize(struct command *command, const struct gpuarb_lease_info *lease,
			struct gpuarb_want ret[static REQUEST_WANTS])
{
	if (lease->n_partitions == 0)
		return fail(command, EXIT_FAILED,
			    "lease %" PRIu64 " is %s: it has no partition to resize", lease->id,
			    lease->state);
	if (command->n_wants != lease->n_partitions)
		return fail(
			command, EXIT_USAGE,
			"the lease has %zu partition%s, and %zu want%s typed; start each want but "
			"the first with --gpu",
			lease->n_partitions, print_s(lease->n_partitions), command->n_wants,
			command->n_wants == 1 ? " was" : "s were");

	for (size_t i = 0; i < command->n_wants; i++) {
		const struct typed_want *typed = &command->wants[i];

		ret[i] = typed->want;
		ask_for_shares(typed, &ret[i]);
		keep_others(typed, &lease->partitions[i], lease->adaptable, &ret[i]);
	}
	return EXIT_OK;
}
