/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The observation and the findings of verify; lent and borrowed CUs. */

#include "client/output/findings.h"

#include "check.h"
#include "client/output/lease-text.h"
#include "fake-sysfs.h"
#include "lack.h"
#include "scratch.h"

#define GPU "0000:03:00.0"
#define GPU_ID 4711U

/* Lease 5 of pid 50, realtime, 30 CUs, 2 queues; lease 6 of pid 60, 15 CUs. */
struct stage {
	struct scratch scratch;
	uint32_t masks[2];
	struct gpuarb_partition partitions[2];
	struct gpuarb_lease_info leases[2];
	struct gpuarb_gpu gpu;
	struct gpuarb_process unmanaged_processes[1];
	struct observed observed;
	struct verify verify;
};

static void stage_new(struct stage *stage)
{
	*stage = (struct stage){
		.scratch = scratch_new(),
		.masks = { 0x3fffffff, 0x7fff },
		.gpu = { .name = GPU },
		.unmanaged_processes = { { .pid = 90, .command = "python3", .queues = 5 } },
	};
	for (size_t i = 0; i < 2; i++) {
		stage->partitions[i] = (struct gpuarb_partition){
			.gpu = GPU,
			.kfd_gpu_id = GPU_ID,
			.cu_mask = &stage->masks[i],
			.cu_mask_words = 1,
			.cus = i == 0 ? 30 : 15,
			.queues = 2,
			.processes = 1,
			.sdma_queues = i == 0 ? 1 : 0,
			.tier = "cooperative",
		};
		stage->leases[i] = (struct gpuarb_lease_info){
			.id = 5 + i,
			.lease_class = i == 0 ? "realtime" : "besteffort",
			.state = "granted",
			.reason = "",
			.owner_pid = 50 + 10 * (uint32_t)i,
			.deadline = GPUARB_FOREVER,
			.partitions = &stage->partitions[i],
			.n_partitions = 1,
		};
	}
	stage->verify = (struct verify){ .gpus = &stage->gpu,
					 .leases = stage->leases,
					 .n_gpus = 1,
					 .n_leases = 2,
					 .observed = &stage->observed,
					 .now_usec = 1000 };
}

static void stage_done(struct stage *stage)
{
	verify_done(&stage->verify);
	observed_done(&stage->observed);
	scratch_done(&stage->scratch);
}

static void add_process(const struct stage *stage, pid_t pid, pid_t parent)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
	CHECK(fake_sysfs_print(stage->scratch.path, path, "%d (a) b) S %d 1 1 0", (int)pid,
			       (int)parent) == 0);
}

static void add_queues(const struct stage *stage, pid_t pid, unsigned compute, unsigned sdma)
{
	CHECK(fake_sysfs_process(stage->scratch.path, pid) == 0);
	for (unsigned q = 0; q < compute + sdma; q++)
		CHECK(fake_sysfs_queue(stage->scratch.path, pid, q, GPU_ID, q >= compute) == 0);
}

static void scan(struct stage *stage)
{
	char proc[128];

	snprintf(proc, sizeof(proc), "%s/proc", stage->scratch.path);
	observed_done(&stage->observed);
	CHECK(observed_read(stage->scratch.path, proc, &stage->observed) == 0);
}

static bool uses(const struct stage *stage, size_t lease, struct observed_use wanted)
{
	struct observed_use use;

	return observed_use(&stage->observed, stage->leases, 2, lease, 0, &use) &&
	       use.queues == wanted.queues && use.sdma_queues == wanted.sdma_queues &&
	       use.sdma_xgmi_queues == wanted.sdma_xgmi_queues &&
	       use.processes == wanted.processes && use.vram == wanted.vram;
}

/* ---- observing --------------------------------------------------------------------------- */

FIXTURE(struct stage, stage, stage_new(stage), stage_done(stage));

TEST_WITH(descendants_of_the_owner_belong_to_the_lease, struct stage *stage)
{
	add_process(stage, 50, 7);
	add_process(stage, 51, 50);
	add_process(stage, 52, 51);
	add_process(stage, 60, 51); /* asked for a lease of its own */
	add_process(stage, 61, 60);
	add_process(stage, 90, 7);
	add_queues(stage, 50, 1, 1);
	add_queues(stage, 52, 2, 0);
	add_queues(stage, 61, 4, 1);
	add_queues(stage, 90, 5, 0);
	CHECK(fake_sysfs_vram(stage->scratch.path, 52, GPU_ID, 4096) == 0);
	scan(stage);
	CHECK(uses(stage, 0, (struct observed_use){ 3, 1, 0, 2, 4096 }));
	CHECK(uses(stage, 1, (struct observed_use){ 4, 1, 0, 1, 0 }));
}

TEST_WITH(a_process_without_queues_uses_nothing, struct stage *stage)
{
	add_process(stage, 50, 7);
	scan(stage);
	CHECK(uses(stage, 0, (struct observed_use){ 0 }));
}

TEST_WITH(unknown_use_is_not_guessed, struct stage *stage)
{
	struct observed_use use;

	scan(stage);
	CHECK(!observed_use(&stage->observed, stage->leases, 2, 0, 0,
			    &use)); /* the owner is gone */
	add_process(stage, 50, 7);
	CHECK(observed_use(&stage->observed, stage->leases, 2, 0, 0, &use));
	stage->leases[1].owner_pid = 50;
	CHECK(!observed_use(&stage->observed, stage->leases, 2, 0, 0,
			    &use)); /* which of its two? */
	stage->partitions[1].gpu = "0000:04:00.0";
	CHECK(observed_use(&stage->observed, stage->leases, 2, 0, 0, &use));
	stage->partitions[0].kfd_gpu_id = 0;
	CHECK(!observed_use(&stage->observed, stage->leases, 2, 0, 0, &use));
	stage->partitions[0].kfd_gpu_id = GPU_ID;
	stage->leases[0].owner_pid = 0;
	CHECK(!observed_use(&stage->observed, stage->leases, 2, 0, 0, &use));
}

TEST(without_a_driver_no_use_is_observed)
{
	_cleanup_(observed_done) struct observed observed = { 0 };

	CHECK(observed_read("/nonexistent", "/nonexistent", &observed) == 0 && observed.n == 0);
}

static const char *scarce; /* a scratch folder with one process, observed without memory */

static int observe_without_memory(long allocations)
{
	_cleanup_(observed_done) struct observed observed = { 0 };
	int r;

	lack_left = allocations;
	r = observed_read(scarce, "/nonexistent", &observed);
	CHECK(r < 0 || (observed.n == 1 && observed.uses[0].queues == 2));
	return r;
}

TEST_WITH(use_is_observed_whole_or_not, struct stage *stage)
{
	add_queues(stage, 50, 2, 0);
	scarce = stage->scratch.path;
	CHECK(lack_each("observed_read", observe_without_memory) >= 3);
}

/* ---- judging ----------------------------------------------------------------------------- */

/* The only finding of this check with this text; it must have this result. */
static const struct verify_finding *only(const struct stage *stage, enum verify_result result,
					 const char *check, const char *part)
{
	const struct verify_finding *found = NULL;

	for (size_t i = 0; i < stage->verify.n_findings; i++) {
		const struct verify_finding *finding = &stage->verify.findings[i];

		if (strcmp(finding->check, check) != 0 || !strstr(finding->found, part))
			continue;
		CHECK(!found && finding->result == result);
		found = finding;
	}
	CHECK(found);
	return found;
}

/* Checks lease 5. */
static void judge(struct stage *stage)
{
	verify_done(&stage->verify);
	stage->verify.n_findings = 0;
	verify_lease(&stage->verify, 0);
}

TEST_WITH(a_lease_within_its_budget_does_not_drift, struct stage *stage)
{
	add_process(stage, 50, 7);
	add_queues(stage, 50, 2, 1);
	scan(stage);
	judge(stage);
	CHECK(only(stage, VERIFY_OK, "queues", "2 granted, 2 observed")->lease == 5);
	only(stage, VERIFY_OK, "processes", "1 granted, 1 observed");
	only(stage, VERIFY_OK, "sdma-queues", "1 granted, 1 observed");
	only(stage, VERIFY_NOTE, "mask", "not verified");
	CHECK(!verify_drifts(&stage->verify) && stage->verify.n_findings == 4);
}

TEST_WITH(use_above_the_grant_is_drift, struct stage *stage)
{
	add_process(stage, 50, 7);
	add_process(stage, 51, 50);
	add_queues(stage, 50, 2, 1);
	add_queues(stage, 51, 1, 1);
	scan(stage);
	judge(stage);
	only(stage, VERIFY_DRIFT, "queues", "2 granted, 3 observed");
	only(stage, VERIFY_DRIFT, "processes", "1 granted, 2 observed");
	only(stage, VERIFY_DRIFT, "sdma-queues", "1 granted, 2 observed");
	CHECK(verify_drifts(&stage->verify));
}

TEST_WITH(queues_for_xgmi_are_compared_with_their_own_grant, struct stage *stage)
{
	stage->partitions[0].sdma_xgmi_queues = 1;
	add_process(stage, 50, 7);
	add_queues(stage, 50, 2, 1);
	for (unsigned q = 3; q < 5; q++)
		CHECK(fake_sysfs_queue(stage->scratch.path, 50, q, GPU_ID, 4) == 0);
	scan(stage);
	judge(stage);
	only(stage, VERIFY_OK, "sdma-queues", "1 granted, 1 observed");
	only(stage, VERIFY_DRIFT, "sdma-xgmi-queues", "1 granted, 2 observed");
}

TEST_WITH(the_tier_decides_the_finding_about_the_mask, struct stage *stage)
{
	scan(stage);
	stage->partitions[0].tier = "verified";
	judge(stage);
	only(stage, VERIFY_OK, "mask", "no queue has more than 30 CUs");
	only(stage, VERIFY_NOTE, "queues", "gpuarbctl cannot tell which");
	stage->partitions[0].tier = "capped";
	judge(stage);
	only(stage, VERIFY_NOTE, "mask", "about queues");
	stage->partitions[0].tier = "hardware";
	judge(stage);
	only(stage, VERIFY_OK, "mask", "tier hardware");
}

/* The finding for a state, a reason and a deadline; now is 1000. */
static void state_is(const char *state, const char *reason, uint64_t deadline,
		     enum verify_result result, const char *part)
{
	struct stage stage;

	stage_new(&stage);
	stage.leases[0].state = state;
	stage.leases[0].reason = reason;
	stage.leases[0].deadline = deadline;
	judge(&stage);
	only(&stage, result, "state", part);
	stage_done(&stage);
}

TEST_WITH(a_priority_above_the_grant_is_drift, struct stage *stage)
{
	static const uint32_t observed[] = { 7, 15 };

	scan(stage);
	stage->partitions[0].priority = 11;
	stage->partitions[0].priorities_seen = observed;
	stage->partitions[0].n_priorities_seen = 1;
	verify_lease(&stage->verify, 0);
	CHECK(only(stage, VERIFY_NOTE, "priority", "normal (asked high)")->lease == 5);
	CHECK(!verify_drifts(&stage->verify));
	stage->partitions[0].priority = 7;
	stage->partitions[0].n_priorities_seen = 2;
	verify_lease(&stage->verify, 0);
	CHECK(only(stage, VERIFY_DRIFT, "priority", "15 (asked normal)")->lease == 5);
	CHECK(verify_drifts(&stage->verify));
}

TEST(state_reason_and_deadline_of_a_lease_are_checked)
{
	state_is("granted", "has 5 queues", GPUARB_FOREVER, VERIFY_DRIFT, "granted: has 5 queues");
	state_is("granted", "", 1001, VERIFY_NOTE, "granted, with CUs to return");
	state_is("granted", "", 1000, VERIFY_DRIFT, "granted; the deadline has passed");
	state_is("granted", "lies", 1001, VERIFY_DRIFT, "granted: lies");
	state_is("activating", "waits", 1001, VERIFY_NOTE, "activating: waits");
	state_is("activating", "waits", 999, VERIFY_DRIFT, "the deadline has passed");
	state_is("inactive", "", GPUARB_FOREVER, VERIFY_NOTE, "inactive");
	state_is("revoking", "x", 2000, VERIFY_NOTE, "revoking: x");
	state_is("revoking", "x", 500, VERIFY_DRIFT, "the deadline has passed");
	state_is("ending", "x", 500, VERIFY_NOTE, "ending: x");
}

TEST_WITH(a_paused_lease_is_a_note_unless_it_is_late, struct stage *stage)
{
	stage->partitions[0].paused = true;
	stage->leases[0].reason = "paused by lease 1";
	judge(stage);
	only(stage, VERIFY_NOTE, "state", "granted: paused by lease 1");
	stage->leases[0].deadline = 2000;
	judge(stage);
	only(stage, VERIFY_DRIFT, "state", "granted: paused by lease 1");
}

TEST_WITH(a_waiting_lease_has_no_findings, struct stage *stage)
{
	stage->leases[0].state = "waiting";
	stage->leases[0].reason = "waits for cus";
	judge(stage);
	CHECK(stage->verify.n_findings == 0);
}

TEST_WITH(an_oversubscribed_gpu_is_drift_and_unmanaged_processes_are_notes, struct stage *stage)
{
	verify_gpu(&stage->verify, &stage->gpu);
	only(stage, VERIFY_OK, "slots", "not oversubscribed");
	CHECK(!verify_drifts(&stage->verify) && stage->verify.n_findings == 1);
	stage->gpu.oversubscribed = true;
	stage->gpu.unmanaged = stage->unmanaged_processes;
	stage->gpu.n_unmanaged = 1;
	verify_gpu(&stage->verify, &stage->gpu);
	CHECK(only(stage, VERIFY_DRIFT, "slots", "oversubscribed: ")->lease == 0);
	only(stage, VERIFY_NOTE, "unmanaged", "pid 90 (python3) has 5 queues and no lease");
	CHECK(verify_drifts(&stage->verify));
}

/* ---- lending ----------------------------------------------------------------------------- */

static bool lends(const struct stage *stage, size_t lease, const char *wanted)
{
	const struct lent all = { stage->leases, 2 };
	char text[64];

	lent_text(&all, &stage->leases[lease], text, sizeof(text));
	if (strcmp(text, wanted) == 0)
		return true;
	fprintf(stderr, "\"%s\" is not \"%s\"\n", text, wanted);
	return false;
}

TEST_WITH(cus_in_masks_of_an_inactive_and_another_lease_are_lent, struct stage *stage)
{
	CHECK(lends(stage, 0, "") && lends(stage, 1, ""));
	stage->leases[0].state = "inactive";
	CHECK(lends(stage, 0, "lends 15 of 30 CUs") && lends(stage, 1, "borrows 15 of 15 CUs"));
	stage->partitions[1].gpu = "0000:04:00.0";
	CHECK(lends(stage, 0, "lends 0 of 30 CUs") && lends(stage, 1, ""));
	stage->partitions[1].gpu = GPU;
	stage->partitions[1].cu_mask_words = 0;
	CHECK(lends(stage, 0, "lends 0 of 30 CUs") && lends(stage, 1, ""));
	stage->leases[0].n_partitions = 0;
	CHECK(lends(stage, 0, "lends 0 of 0 CUs"));
}
