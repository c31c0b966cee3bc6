/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The timing model where memory runs out: told, and nothing is half done. */

#include <errno.h>
#include <stdbool.h>

#include "util/base.h"
#include "kfdsim/timing/timing-compare.h"
#include "kfdsim/test/timing-rig.h"
#include "check.h"
#include "scratch.h"

#ifdef __SANITIZE_ADDRESS__

TEST(every_allocation_can_fail)
{
	SKIP("the sanitizer has its own malloc");
}

#else

#include "lack.h"

TEST(every_allocation_can_fail)
{
	const struct timing_gpu gpu = rig_gpu(2, 4, 15);
	const struct timing_kernel kernel = { .blocks = 1000, .threads = 64 };
	struct words all = rig_all();
	_cleanup_(timing_freep) struct timing *timing = NULL;
	uint64_t now = 0;

	for (long n = 0; !timing; n++) {
		lack_left = n;
		CHECK(timing_new(&gpu, &timing) == (n < 2 ? -ENOMEM : 0));
	}
	lack_left = 0;
	CHECK(timing_queue_set(timing, 1, 1, all.of, 7, 0) == -ENOMEM);
	lack_left = -1;
	CHECK(timing_dispatch(timing, 1, &kernel, 0) == -ENOENT);
	rig_queue(timing, 1, 1, all, 0);
	lack_left = 0;
	CHECK(timing_dispatch(timing, 1, &kernel, 0) == -ENOMEM);
	CHECK(timing_next(timing) == UINT64_MAX);
	lack_left = -1;
	CHECK(timing_dispatch(timing, 1, &kernel, 0) == 0);
	CHECK(rig_wait(timing, &now) == 1);
}

#define TABLE "mask_hex\tmed\tactive_cus\tse0\tse1\tse2\tse3\n0xf\t1\t4\t1\t1\t1\t1\n"

TEST(comparison_returns_enomem)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	bool denied_one = true;
	unsigned failed = 0;

	scratch_write(&scratch, "cu_mask_distributed.tsv", TABLE);
	for (long n = 0; denied_one; n++) {
		struct comparisons c = { 0 };
		int r;

		lack_left = n;
		r = compare_masks(scratch.path, &c);
		denied_one = lack_left < 0;
		lack_left = -1;
		/* The C library reads files without a buffer as well. */
		CHECK(r == -ENOMEM || (r == 0 && c.n == 1));
		failed += r != 0;
		comparisons_clear(&c);
	}
	CHECK(failed >= 20);
}

#endif
