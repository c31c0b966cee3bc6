/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/findings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/print.h"
#include "client/output/lease-text.h"
#include "util/grow.h"

static void add_finding(struct verify *verify, struct verify_finding finding, const char *format,
			...) PRINTF_LIKE(3, 4);

static void add_finding(struct verify *verify, struct verify_finding finding, const char *format,
			...)
{
	struct verify_finding *added =
		have(grow(&verify->findings, &verify->n_findings, sizeof(*added)));
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&finding.found, format, args);
	va_end(args);
	if (n < 0)
		no_memory();
	*added = finding;
}

static bool is(const struct gpuarb_lease_info *lease, const char *state)
{
	return strcmp(lease->state, state) == 0;
}

/* The number of this GPU; n_gpus: it is gone. */
static size_t find_gpu(const struct verify *verify, const char *gpu)
{
	size_t i = 0;

	while (i < verify->n_gpus && strcmp(verify->gpus[i].name, gpu) != 0)
		i++;
	return i;
}

/* Why gpuarbd cannot read the masks of queues on this GPU; "": it can, or does not tell. */
static const char *why_unseen(const struct verify *verify, const char *gpu)
{
	return gpuarb_view_unseen(verify->view, find_gpu(verify, gpu));
}

/* The drift of this kind that gpuarbd has observed; NULL. */
static const struct gpuarb_drift *find_drift(const struct verify *verify, size_t l, const char *gpu,
					     const char *kind)
{
	const struct gpuarb_drift *drift;

	for (size_t k = 0; (drift = gpuarb_view_drift(verify->view, l, k)); k++)
		if (strcmp(drift->kind, kind) == 0 && strcmp(drift->gpu, gpu) == 0)
			return drift;
	return NULL;
}

static void judge_mask(struct verify *verify, size_t l, const struct gpuarb_partition *partition)
{
	const struct gpuarb_lease_info *lease = &verify->leases[l];
	struct verify_finding finding = { lease->id, partition->gpu, "mask", VERIFY_OK, NULL };
	const struct gpuarb_drift *drift = find_drift(verify, l, partition->gpu, "mask");
	const char *why = why_unseen(verify, partition->gpu);

	if (drift) {
		finding.result = VERIFY_DRIFT;
		add_finding(
			verify, finding,
			"%u CUs granted, and gpuarbd has observed a queue of pid %u with %" PRIu64
			" CUs outside the mask",
			partition->cus, drift->pid, drift->observed);
		return;
	}
	if (strcmp(partition->tier, "verified") == 0 || gpuarb_view_verified(verify->view, l)) {
		add_finding(verify, finding,
			    "gpuarbd read it from the hardware: no queue has more than %u CU%s",
			    partition->cus, print_s(partition->cus));
		return;
	}
	finding.result = VERIFY_NOTE;
	if (strcmp(partition->tier, "capped") == 0) {
		add_finding(
			verify, finding,
			"not verified: the tier capped is about queues and not about their masks");
		return;
	}
	if (strcmp(partition->tier, "cooperative") != 0) {
		finding.result = VERIFY_OK;
		add_finding(verify, finding,
			    "enforced beyond the cooperation of the holder (tier %s)",
			    partition->tier);
		return;
	}
	add_finding(verify, finding,
		    "not verified: the holder applies it, and gpuarbd has not read it from the "
		    "hardware%s%s",
		    *why ? ": " : " (gpuarb-mqds.socket)", why);
}

static unsigned count_shared(const struct gpuarb_cover *cover,
			     const struct gpuarb_partition *partition)
{
	size_t words = cover->cu_mask_words < partition->cu_mask_words ? cover->cu_mask_words
								       : partition->cu_mask_words;
	unsigned n = 0;

	for (size_t i = 0; i < words; i++)
		n += (unsigned)__builtin_popcount(cover->cu_mask[i] & partition->cu_mask[i]);
	return n;
}

/* The CUs of a guaranteed or realtime partition are promised to it alone: queues of processes without a
 * lease on them are drift, although not of this lease. */
static void judge_intruders(struct verify *verify, const struct gpuarb_lease_info *lease,
			    const struct gpuarb_partition *partition)
{
	struct verify_finding finding = { lease->id, partition->gpu, "unmanaged", VERIFY_DRIFT,
					  NULL };
	size_t gpu = find_gpu(verify, partition->gpu);
	const struct gpuarb_cover *cover;

	if (strcmp(lease->lease_class, "besteffort") == 0 || is(lease, "inactive"))
		return;
	for (size_t i = 0; (cover = gpuarb_view_cover(verify->view, gpu, i)); i++) {
		unsigned shared = cover->lease == 0 ? count_shared(cover, partition) : 0;

		if (shared > 0)
			add_finding(verify, finding,
				    "pid %u (%s) has %u queue%s on %u of its CUs, and no lease",
				    cover->pid, cover->command, cover->queues,
				    print_s(cover->queues), shared);
	}
}

static void judge_count(struct verify *verify, struct verify_finding finding, const char *check,
			unsigned granted, unsigned observed)
{
	finding.check = check;
	if (observed > granted)
		finding.result = VERIFY_DRIFT;
	add_finding(verify, finding, "%u granted, %u observed", granted, observed);
}

/* ROCr creates SDMA queues by itself, so they are compared only if the lease has a number. */
static void judge_use(struct verify *verify, size_t l, size_t i)
{
	const struct gpuarb_lease_info *lease = &verify->leases[l];
	const struct gpuarb_partition *partition = &lease->partitions[i];
	struct verify_finding finding = { lease->id, partition->gpu, "queues", VERIFY_OK, NULL };
	struct observed_use use;

	if (!observed_use(verify->observed, verify->leases, verify->n_leases, l, i, &use)) {
		finding.result = VERIFY_NOTE;
		add_finding(verify, finding,
			    "%u granted; gpuarbctl cannot tell which processes belong to the lease",
			    partition->queues);
		return;
	}
	judge_count(verify, finding, "queues", partition->queues, use.queues);
	judge_count(verify, finding, "processes", partition->processes, use.processes);
	if (partition->sdma_queues > 0)
		judge_count(verify, finding, "sdma-queues", partition->sdma_queues,
			    use.sdma_queues);
	if (partition->sdma_xgmi_queues > 0)
		judge_count(verify, finding, "sdma-xgmi-queues", partition->sdma_xgmi_queues,
			    use.sdma_xgmi_queues);
}

/* KFD lets each program set any priority for its queues. */
static void judge_priority(struct verify *verify, const struct gpuarb_lease_info *lease,
			   const struct gpuarb_partition *partition)
{
	static const enum verify_result results[] = {
		[PRIORITY_AS_ASKED] = VERIFY_OK,
		[PRIORITY_LESS] = VERIFY_NOTE,
		[PRIORITY_MORE] = VERIFY_DRIFT,
	};
	struct verify_finding finding = { lease->id, partition->gpu, "priority", VERIFY_OK, NULL };
	char text[48];

	if (partition->n_priorities_seen == 0)
		return;
	finding.result = results[priority_text(partition, text, sizeof(text))];
	add_finding(verify, finding, "%s", text);
}

/* Paused, and gpuarbd waits for nothing more. */
static bool is_paused(const struct gpuarb_lease_info *lease)
{
	if (lease->deadline != GPUARB_FOREVER)
		return false;
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (lease->partitions[i].paused)
			return true;
	return false;
}

/* The state and reason by gpuarbd. The reason of a granted lease is a deviation, but not that it is
 * paused, nor who disturbs it: judge_intruders(). */
static void judge_state(struct verify *verify, size_t i)
{
	const struct gpuarb_lease_info *lease = &verify->leases[i];
	bool disturbed = gpuarb_view_intruder(verify->view, i, 0) != NULL;
	struct verify_finding finding = { lease->id, "", "state", VERIFY_NOTE, NULL };
	bool granted = is(lease, "granted");
	bool overdue = lease->deadline <= verify->now_usec && !is(lease, "ending");

	if (granted && (!*lease->reason || disturbed) && lease->deadline == GPUARB_FOREVER)
		return;
	if (overdue || (granted && *lease->reason && !disturbed && !is_paused(lease)))
		finding.result = VERIFY_DRIFT;
	add_finding(verify, finding, "%s%s%s%s", lease->state, *lease->reason ? ": " : "",
		    lease->reason,
		    overdue ? "; the deadline has passed"
		    : finding.result == VERIFY_NOTE && granted && !*lease->reason
			    ? ", with CUs to return"
			    : "");
}

void verify_lease(struct verify *verify, size_t i)
{
	const struct gpuarb_lease_info *lease = &verify->leases[i];

	if (is(lease, "waiting"))
		return;
	judge_state(verify, i);
	for (size_t k = 0; k < lease->n_partitions; k++) {
		judge_mask(verify, i, &lease->partitions[k]);
		judge_priority(verify, lease, &lease->partitions[k]);
		judge_use(verify, i, k);
		judge_intruders(verify, lease, &lease->partitions[k]);
	}
}

static void judge_unmanaged(struct verify *verify, const struct gpuarb_gpu *gpu)
{
	struct verify_finding finding = { 0, gpu->name, "unmanaged", VERIFY_NOTE, NULL };

	for (size_t i = 0; i < gpu->n_unmanaged; i++) {
		const struct gpuarb_process *process = &gpu->unmanaged[i];

		add_finding(verify, finding, "pid %u (%s) has %u queue%s and no lease",
			    process->pid, process->command, process->queues,
			    print_s(process->queues));
	}
}

void verify_gpu(struct verify *verify, const struct gpuarb_gpu *gpu)
{
	struct verify_finding finding = { 0, gpu->name, "slots", VERIFY_OK, NULL };

	if (gpu->oversubscribed) {
		finding.result = VERIFY_DRIFT;
		add_finding(verify, finding, "oversubscribed: programs use more than the GPU has");
	} else {
		add_finding(verify, finding, "not oversubscribed");
	}
	judge_unmanaged(verify, gpu);
}

bool verify_drifts(const struct verify *verify)
{
	for (size_t i = 0; i < verify->n_findings; i++)
		if (verify->findings[i].result == VERIFY_DRIFT)
			return true;
	return false;
}

void verify_done(struct verify *verify)
{
	for (size_t i = 0; i < verify->n_findings; i++)
		free(verify->findings[i].found);
	free(verify->findings);
	verify->findings = NULL;
}
