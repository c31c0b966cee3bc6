/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/wants.h"

#include <inttypes.h>
#include <string.h>

#include "client/launch/visible.h"
#include "client/output/fail.h"
#include "client/output/print.h"
#include "util/base.h"

#define QUEUES_GOOD 5U  /* of an unmodified HIP process: a pool of 4, and one of its own */
#define QUEUES_LEAST 2U /* one for the program, one that ROCr creates for itself */

/* The GPUs on which a want can be granted. */
struct candidates {
	const struct gpuarb_gpu *gpus;
	size_t n;
};

static bool has_cus(const struct typed_want *typed)
{
	return typed->want.cus > 0 || typed->share.cus > 0 || typed->want.shader_engines > 0;
}

static bool has_share(const struct typed_want *typed)
{
	return typed->share.cus > 0 || typed->share.cus_min > 0 || typed->share.cus_max > 0;
}

static int find_candidates(struct command *command, const char *gpu, struct candidates *ret)
{
	int r;

	if (!command->view) {
		r = session_snapshot(command);
		if (r != EXIT_OK)
			return r;
	}
	if (gpu && strcmp(gpu, "any") != 0) {
		ret->n = 1;
		return session_gpu(command, gpu, &ret->gpus);
	}
	*ret = (struct candidates){ command->gpus, command->n_gpus };
	if (ret->n == 0)
		return fail(command, EXIT_REFUSED, "no GPU: gpuarbd found none on this machine");
	return EXIT_OK;
}

/* The number of CUs that a share is of: all candidates must have the same. */
static int share_base(const struct command *command, const struct candidates *candidates,
		      unsigned *ret)
{
	for (size_t i = 1; i < candidates->n; i++) {
		if (candidates->gpus[i].cus != candidates->gpus[0].cus)
			return fail(
				command, EXIT_USAGE,
				"a share needs one size of GPU: %s has %u CUs, %s has %u; name a "
				"GPU with --gpu",
				candidates->gpus[0].name, candidates->gpus[0].cus,
				candidates->gpus[i].name, candidates->gpus[i].cus);
	}
	*ret = candidates->gpus[0].cus;
	return EXIT_OK;
}

static int resolve_share(const struct command *command, const char *option, unsigned percent,
			 unsigned cus, uint32_t *value)
{
	if (percent == 0)
		return EXIT_OK;
	if (cus * percent < 100)
		return fail(command, EXIT_USAGE, "--%s=%u%%: less than one CU of the GPU's %u",
			    option, percent, cus);

	*value = cus * percent / 100;
	if (cus * percent % 100 != 0 && !command->quiet)
		print_line(stderr, "gpuarbctl %s: --%s=%u%% of %u CUs: rounded down to %u",
			   command->verb, option, percent, cus, *value);
	return EXIT_OK;
}

static int resolve_shares(struct command *command, const struct typed_want *typed, const char *gpu,
			  struct gpuarb_want *want)
{
	struct candidates candidates = { 0 };
	unsigned cus = 0;
	int r;

	if (!has_share(typed))
		return EXIT_OK;

	r = find_candidates(command, gpu, &candidates);
	if (r == EXIT_OK)
		r = share_base(command, &candidates, &cus);
	if (r == EXIT_OK)
		r = resolve_share(command, "cus", typed->share.cus, cus, &want->cus);
	if (r == EXIT_OK)
		r = resolve_share(command, "cus-min", typed->share.cus_min, cus, &want->cus_min);
	if (r == EXIT_OK)
		r = resolve_share(command, "cus-max", typed->share.cus_max, cus, &want->cus_max);
	return r;
}

/* Half of the free queue slots on the GPU with most of them. */
static unsigned fair_queues(const struct candidates *candidates)
{
	unsigned most = 0;

	for (size_t i = 0; i < candidates->n; i++)
		most = max_u(most, candidates->gpus[i].queue_slots_free);
	return most / 2;
}

static int ask_for_all(struct command *command, struct gpuarb_want *want)
{
	unsigned processes = max_u(want->processes, 1), fair, most = 0;
	struct candidates candidates = { 0 };
	int r;

	r = find_candidates(command, want->gpu, &candidates);
	if (r != EXIT_OK)
		return r;

	for (size_t i = 0; i < candidates.n; i++)
		most = max_u(most, candidates.gpus[i].cus);
	if (want->cus_min == 0)
		want->cus_min = 1;
	if (want->cus_max == 0)
		want->cus_max = max_u(most, want->cus_min);
	want->cus = want->cus_min;

	if (want->queues == 0) {
		fair = min_u(QUEUES_GOOD + want->streams, fair_queues(&candidates) / processes);
		want->queues = processes * max_u(fair, QUEUES_LEAST + want->streams);
	}
	return EXIT_OK;
}

/* Either every want has a number of CUs, or none has. */
static int check_wants(struct command *command, bool *ret_all)
{
	const char *lease_class = command->options.lease_class;
	size_t with_cus = 0;

	for (size_t i = 0; i < command->n_wants; i++)
		with_cus += has_cus(&command->wants[i]);
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
	r = check_wants(command, &all);
	for (size_t i = 0; r == EXIT_OK && i < command->n_wants; i++) {
		const struct typed_want *typed = &command->wants[i];

		ret[i] = typed->want;
		r = visible_choose(command, typed->want.gpu, &ret[i].gpu);
		if (r == EXIT_OK)
			r = resolve_shares(command, typed, ret[i].gpu, &ret[i]);
		if (r == EXIT_OK && all)
			r = ask_for_all(command, &ret[i]);
	}
	return r == EXIT_OK ? session_open(command) : r;
}

static bool refused_for_queues(const struct gpuarb *gpuarb)
{
	const struct gpuarb_refusal *refusals;
	size_t n;

	refusals = gpuarb_last_refusals(gpuarb, &n);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(refusals[i].reason, "queues") == 0 ||
		    strcmp(refusals[i].reason, "unmanaged") == 0 ||
		    strcmp(refusals[i].reason, "quota") == 0)
			return true;
	}
	return false;
}

bool want_ask_less(const struct command *command, struct gpuarb_want wants[static REQUEST_WANTS])
{
	bool less = false;

	if (!refused_for_queues(command->gpuarb))
		return false;

	for (size_t i = 0; i < command->n_wants; i++) {
		const struct gpuarb_want *typed = &command->wants[i].want;
		uint32_t processes = max_u(wants[i].processes, 1);

		if (typed->queues > 0 || typed->streams > 0 ||
		    wants[i].queues <= processes * QUEUES_LEAST)
			continue;
		wants[i].queues -= processes;
		less = true;
	}
	return less;
}

/* The daemon keeps the CUs of an adaptable lease between its bounds. */
static void keep_others(const struct typed_want *typed, const struct gpuarb_partition *partition,
			bool adaptable, struct gpuarb_want *want)
{
	if (want->cus == 0 && want->shader_engines == 0 && !adaptable)
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
	int r = EXIT_OK;

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

	for (size_t i = 0; r == EXIT_OK && i < command->n_wants; i++) {
		const struct typed_want *typed = &command->wants[i];
		const struct gpuarb_partition *partition = &lease->partitions[i];

		ret[i] = typed->want;
		r = resolve_shares(command, typed, partition->gpu, &ret[i]);
		if (r == EXIT_OK)
			keep_others(typed, partition, lease->adaptable, &ret[i]);
	}
	return r;
}
