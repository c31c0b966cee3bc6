/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Masks all queues of a process, and restores them when the driver refuses one. */

#include <errno.h>

#include "apply-rig.h"
#include "check.h"
#include "fake-sysfs.h"

FIXTURE(struct apply_rig, rig, , apply_rig_done(rig));

TEST_WITH(compute_queues_on_the_gpus_of_the_lease_are_masked, struct apply_rig *rig)
{
	apply_rig_new(rig, 2);
	apply_rig_queue(rig, 0, 0, 0);
	apply_rig_queue(rig, 1, 0, 1); /* SDMA */
	apply_rig_queue(rig, 10, 1, 0);
	apply_rig_queue(rig, 9, 0, 0);
	apply_rig_queue(rig, 3, 2, 0); /* a GPU outside of the lease */
	CHECK(fake_sysfs_queue(rig->sys, APPLY_PID + 1, 20, rig->gpu_ids[0], 0) == 0);
	apply_rig_mask(rig, 0, 0x3fff, 0x3);
	apply_rig_mask(rig, 1, 0xff00ff, 0);

	CHECK(apply_rig_apply(rig) == 3 && rig->calls == 3 && rig->opened == 1);
	CHECK(apply_rig_has(rig, 0, 0x3fff, 0x3) && apply_rig_has(rig, 9, 0x3fff, 0x3));
	CHECK(apply_rig_has(rig, 10, 0xff00ff, 0) && rig->has[10].words == 10);
	CHECK(rig->has[1].words == 0 && rig->has[3].words == 0 && rig->has[20].words == 0);
}

TEST_WITH(the_device_is_not_opened_without_queues, struct apply_rig *rig)
{
	apply_rig_new(rig, 1);
	CHECK(apply_rig_apply(rig) == 0 && rig->opened == 0);
	CHECK(fake_sysfs_process(rig->sys, APPLY_PID) == 0);
	CHECK(apply_rig_apply(rig) == 0 && rig->opened == 0);
	apply_rig_queue(rig, 0, 1, 0);
	apply_rig_queue(rig, 1, 0, 4);
	CHECK(apply_rig_apply(rig) == 0 && rig->opened == 0);
	CHECK(!*gpuarb_last_error(&rig->gpuarb));
}

TEST_WITH(a_queue_destroyed_meanwhile_is_not_counted, struct apply_rig *rig)
{
	apply_rig_new(rig, 2);
	for (unsigned id = 0; id < 4; id++)
		apply_rig_queue(rig, id, id % 2, 0);
	rig->vanish_at = 2;
	CHECK(apply_rig_apply(rig) == 3 && rig->calls == 4);
	for (unsigned id = 0; id < 4; id++)
		CHECK(id == 1 || apply_rig_has(rig, id, 0xffff, 0));
}

/* ---- all or none -------------------------------------------------------------------------- */

static const struct {
	int error;
	bool writes_anyway;
} refusals[] = {
	{ -EACCES, false }, { -EBUSY, false },  { -EINVAL, false },
	{ -EFAULT, false }, { -EIO, false },    { -EIO, true },
	{ -ETIME, true },   { -ENOMEM, false }, { -ENODEV, false },
};

#define QUEUES 5U

/* Lets each queue fail once. */
static void refuse_at_each(struct apply_rig *rig, size_t which)
{
	for (unsigned at = 1; at <= QUEUES; at++) {
		struct mask before[APPLY_QUEUES];
		char queue[16];
		int r;

		memcpy(before, rig->has, sizeof(before));
		rig->fail_at = at;
		rig->fail_with = refusals[which].error;
		rig->writes_anyway = refusals[which].writes_anyway;
		r = apply_rig_apply(rig);
		CHECK(r == refusals[which].error);
		snprintf(queue, sizeof(queue), "queue %u ", at - 1);
		CHECK(apply_rig_said(rig, queue));
		CHECK(apply_rig_said(rig, (at - 1) % 2 ? "0000:04:00.0" : "0000:03:00.0"));
		for (unsigned id = 0; id < QUEUES; id++)
			CHECK(before[id].words == 0 ? apply_rig_free(rig, id)
						    : memcmp(&before[id], &rig->has[id],
							     sizeof(before[id])) == 0);
	}
	rig->fail_at = 0;
}

TEST(all_queues_keep_their_masks_when_one_is_refused)
{
	for (size_t which = 0; which < sizeof(refusals) / sizeof(refusals[0]); which++) {
		struct apply_rig rig;

		apply_rig_new(&rig, 2);
		for (unsigned id = 0; id < QUEUES; id++)
			apply_rig_queue(&rig, id, id % 2, 0);
		refuse_at_each(&rig, which); /* without masks before */

		CHECK(apply_rig_apply(&rig) == (int)QUEUES);
		apply_rig_mask(&rig, 0, 0xff, 0);
		apply_rig_mask(&rig, 1, 0xff00, 0xff);
		refuse_at_each(&rig, which); /* the masks from before the resize are restored */
		CHECK(apply_rig_has(&rig, 0, 0xffff, 0));

		CHECK(apply_rig_apply(&rig) == (int)QUEUES);
		CHECK(apply_rig_has(&rig, 4, 0xff, 0) && apply_rig_has(&rig, 3, 0xff00, 0xff));
		apply_rig_done(&rig);
	}
}

TEST_WITH(queues_are_paused_and_get_the_priority_of_the_lease, struct apply_rig *rig)
{
	apply_rig_new(rig, 2);
	rig->partitions[0].paused = 1;
	rig->partitions[1].priority = 13;
	apply_rig_queue(rig, 1, 0, 0);
	apply_rig_queue(rig, 2, 1, 0);
	CHECK(apply_rig_apply(rig) == 2 && rig->turns == 2);
	CHECK(rig->paused[1] && !rig->paused[2] && rig->priority[1] == 7 && rig->priority[2] == 13);

	/* Only what changes is set again. */
	rig->partitions[0].paused = 0;
	rig->calls = rig->turns = 0;
	CHECK(apply_missing(&rig->apply) == 1 && rig->turns == 1 && rig->calls == 0);
	CHECK(!rig->paused[1] && apply_missing(&rig->apply) == 0 && rig->turns == 1);
	apply_rig_mask(rig, 1, 0xff, 0);
	CHECK(apply_missing(&rig->apply) == 1 && rig->calls == 1 && rig->turns == 1);
	CHECK(apply_rig_has(rig, 2, 0xff, 0) && apply_rig_has(rig, 1, 0xffff, 0));

	/* A new queue alone. */
	apply_rig_queue(rig, 3, 0, 0);
	apply_rig_mask(rig, 1, 0xf, 0);
	CHECK(apply_queue(&rig->apply, 3) == 1 && apply_rig_has(rig, 3, 0xffff, 0));
	CHECK(apply_rig_has(rig, 2, 0xff, 0));
}

TEST_WITH(a_queue_that_cannot_be_paused_is_an_error, struct apply_rig *rig)
{
	apply_rig_new(rig, 1);
	rig->partitions[0].paused = 1;
	apply_rig_queue(rig, 1, 0, 0);
	rig->turn_error = -EOPNOTSUPP;
	CHECK(apply_rig_apply(rig) == -EOPNOTSUPP && rig->calls == 0);
	rig->turn_error = -EBUSY;
	CHECK(apply_rig_apply(rig) == -EBUSY && rig->calls == 0);
	rig->turn_error = 0;
	CHECK(apply_rig_apply(rig) == 1 && rig->paused[1]);
}

TEST_WITH(one_queue_is_paused_and_resumed, struct apply_rig *rig)
{
	apply_rig_new(rig, 1);
	rig->partitions[0].priority = 9;
	apply_rig_queue(rig, 1, 0, 0);
	apply_rig_queue(rig, 2, 0, 0);
	CHECK(apply_pause(&rig->apply, 0, 1, true) == 0 && rig->paused[1] && !rig->paused[2]);
	CHECK(rig->priority[1] == 9 && rig->calls == 0);
	CHECK(apply_pause(&rig->apply, 0, 1, true) == 0 && rig->turns == 1);
	CHECK(apply_pause(&rig->apply, 0, 1, false) == 0 && !rig->paused[1] && rig->turns == 2);

	/* A mask that is set later lets it run; a paused lease does not. */
	CHECK(apply_pause(&rig->apply, 0, 2, true) == 0 && rig->paused[2]);
	CHECK(apply_rig_apply(rig) == 2 && !rig->paused[2]);
	rig->partitions[0].paused = 1;
	CHECK(apply_rig_apply(rig) == 2 && rig->paused[1]);
	CHECK(apply_pause(&rig->apply, 0, 1, false) == 0 && rig->paused[1]);
}

TEST_WITH(queue_that_is_unknown_or_not_of_the_lease_is_not_paused, struct apply_rig *rig)
{
	apply_rig_new(rig, 1);
	apply_rig_queue(rig, 1, 0, 0);
	apply_rig_queue(rig, 2, 1, 0);
	CHECK(apply_pause(&rig->apply, 0, 2, true) == -ENOENT);
	CHECK(apply_pause(&rig->apply, 0, 3, true) == -ENOENT);
	CHECK(apply_pause(&rig->apply, 1, 2, true) == -EINVAL);
	rig->turn_error = -EOPNOTSUPP;
	CHECK(apply_pause(&rig->apply, 0, 1, true) == -EOPNOTSUPP && !rig->paused[1]);
	rig->open_error = -EMFILE;
	CHECK(apply_pause(&rig->apply, 0, 1, true) == -EMFILE);
	rig->info.state = "waiting";
	CHECK(apply_pause(&rig->apply, 0, 1, true) == -EBADFD);
}

TEST_WITH(a_priority_that_cannot_be_set_is_reported_after_the_masks_are, struct apply_rig *rig)
{
	apply_rig_new(rig, 1);
	rig->partitions[0].priority = 11;
	apply_rig_queue(rig, 1, 0, 0);
	apply_rig_queue(rig, 2, 0, 0);
	rig->turn_error = -ENODATA;
	CHECK(apply_rig_apply(rig) == -EOPNOTSUPP);
	CHECK(apply_rig_has(rig, 1, 0xffff, 0) && apply_rig_has(rig, 2, 0xffff, 0));
	rig->apply.ignore_priority = true;
	apply_rig_mask(rig, 0, 0xff, 0);
	CHECK(apply_rig_apply(rig) == 2 && apply_rig_has(rig, 2, 0xff, 0));
}

TEST_WITH(a_new_queue_gets_all_cus_again_when_another_is_refused, struct apply_rig *rig)
{
	apply_rig_new(rig, 1);
	apply_rig_queue(rig, 1, 0, 0);
	apply_rig_queue(rig, 2, 0, 0);
	CHECK(apply_rig_apply(rig) == 2);
	apply_rig_queue(rig, 0, 0, 0);
	apply_rig_mask(rig, 0, 0xf, 0);
	rig->fail_at = 3;
	rig->fail_with = -EBUSY;
	CHECK(apply_rig_apply(rig) == -EBUSY);
	CHECK(apply_rig_free(rig, 0) && rig->has[0].words == MASK_WORDS);
	CHECK(apply_rig_has(rig, 1, 0xffff, 0) && apply_rig_has(rig, 2, 0xffff, 0));
}

TEST_WITH(no_queue_is_masked_when_the_device_cannot_be_opened, struct apply_rig *rig)
{
	apply_rig_new(rig, 1);
	apply_rig_queue(rig, 0, 0, 0);
	rig->open_error = -EACCES;
	CHECK(apply_rig_apply(rig) == -EACCES && rig->calls == 0);
	CHECK(apply_rig_said(rig, "/dev/kfd"));
}

/* ---- failures before the driver is called -------------------------------------------------- */

TEST_WITH(no_queue_is_masked_for_a_lease_without_cus, struct apply_rig *rig)
{
	static const char *const states[] = { "waiting", "ending" };

	apply_rig_new(rig, 2);
	apply_rig_queue(rig, 0, 0, 0);
	for (size_t i = 0; i < 2; i++) {
		rig->info.state = states[i];
		CHECK(apply_rig_apply(rig) == -EBADFD && apply_rig_said(rig, states[i]));
	}
	rig->info.state = "granted";
	rig->info.n_partitions = 0;
	CHECK(apply_rig_apply(rig) == -EBADFD);
	rig->info.n_partitions = 2;
	apply_rig_mask(rig, 1, 0, 0);
	CHECK(apply_rig_apply(rig) == -EBADFD && apply_rig_said(rig, "0000:04:00.0"));
	rig->partitions[1].cu_mask_words = MASK_WORDS + 1;
	CHECK(apply_rig_apply(rig) == -EOPNOTSUPP && apply_rig_said(rig, "1024"));
	rig->partitions[0].kfd_gpu_id = 0;
	CHECK(apply_rig_apply(rig) == -EOPNOTSUPP);
	CHECK(rig->opened == 0 && rig->has[0].words == 0);
}

#define QUEUE_3 FAKE_PROC "/4711/queues/3"

TEST_WITH(malformed_files_of_kfd_are_reported, struct apply_rig *rig)
{
	static const char *const wrong[] = { "",           "x",   "-1",
					     "4294967296", "1 2", "99999999999999999999" };

	apply_rig_new(rig, 1);
	apply_rig_queue(rig, 0, 0, 0);
	apply_rig_queue(rig, 3, 0, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK(fake_sysfs_print(rig->sys, QUEUE_3 "/gpuid", "%s", wrong[i]) == 0);
		CHECK(apply_rig_apply(rig) == -EIO && apply_rig_said(rig, "/proc/4711"));
	}
	CHECK(fake_sysfs_print(rig->sys, QUEUE_3 "/gpuid", "%u\n", rig->gpu_ids[0]) == 0);
	CHECK(apply_rig_apply(rig) == 2); /* a newline is allowed */
	CHECK(fake_sysfs_remove(rig->sys, QUEUE_3 "/gpuid") == 0);
	CHECK(fake_sysfs_mkdir(rig->sys, QUEUE_3 "/gpuid") == 0);
	CHECK(apply_rig_apply(rig) == -EISDIR && apply_rig_said(rig, "/proc/4711"));
}

TEST_WITH(a_queue_destroyed_while_it_is_read_is_skipped, struct apply_rig *rig)
{
	apply_rig_new(rig, 1);
	apply_rig_queue(rig, 0, 0, 0);
	apply_rig_queue(rig, 3, 0, 0);
	CHECK(fake_sysfs_remove(rig->sys, QUEUE_3 "/gpuid") == 0);
	CHECK(fake_sysfs_mkdir(rig->sys, FAKE_PROC "/4711/queues/none") == 0);
	CHECK(apply_rig_apply(rig) == 1);
	CHECK(fake_sysfs_remove(rig->sys, QUEUE_3) == 0);
	CHECK(fake_sysfs_remove(rig->sys, FAKE_PROC "/4711/queues") == 0);
	CHECK(fake_sysfs_write(rig->sys, FAKE_PROC "/4711/queues", "", 0) == 0);
	CHECK(apply_rig_apply(rig) == -ENOTDIR);
}

/* ---- masks of the environment --------------------------------------------------------------- */

TEST_WITH(a_mask_set_by_the_environment_of_others_is_not_replaced, struct apply_rig *rig)
{
	static const char *const foreign[] = {
		"0:0-15",     "0:0xf", "x",          "0:0xf;1:",
		"0:0xf;1:0x", "0:0xg", "0:0xf1:0xf", "1:0xf;0:0xf x"
	};

	apply_rig_new(rig, 2);
	apply_rig_queue(rig, 0, 0, 0);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		rig->hsa_mask = foreign[i];
		rig->lease = "12";
		CHECK(apply_rig_apply(rig) == -EEXIST && apply_rig_said(rig, "HSA_CU_MASK"));
	}
	rig->hsa_mask = "0:0xf;1:0xf";
	rig->lease = "13";
	CHECK(apply_rig_apply(rig) == -EEXIST && apply_rig_said(rig, "HSA_CU_MASK"));
	rig->lease = NULL;
	CHECK(apply_rig_apply(rig) == -EEXIST);
	CHECK(apply_rig_own(rig, 0, 0, NULL, 0) == -EEXIST);
	rig->hsa_mask = "";
	rig->global_mask = "0xffff";
	CHECK(apply_rig_apply(rig) == -EEXIST && apply_rig_said(rig, "ROC_GLOBAL_CU_MASK"));
	CHECK(rig->opened == 0);
	rig->global_mask = "";
	CHECK(apply_rig_apply(rig) == 1);
}

TEST_WITH(queues_get_the_mask_of_the_environment_back_after_a_refusal, struct apply_rig *rig)
{
	apply_rig_new(rig, 2);
	apply_rig_queue(rig, 0, 0, 0);
	apply_rig_queue(rig, 1, 1, 0);
	apply_rig_queue(rig, 2, 1, 0);
	rig->lease = "12";
	rig->hsa_mask = "0:0x3fFffffff;1:0xab000000000000000c";
	rig->fail_at = 3;
	rig->fail_with = -EBUSY;
	CHECK(apply_rig_apply(rig) == -EBUSY);
	CHECK(apply_rig_has(rig, 0, 0xffffffff, 0x3));
	CHECK(rig->has[1].words == 3 && rig->has[1].word[0] == 0xc && rig->has[1].word[1] == 0 &&
	      rig->has[1].word[2] == 0xab);
	rig->fail_at = 0;
	CHECK(apply_rig_apply(rig) == 3 && apply_rig_has(rig, 2, 0xffff, 0));
}
