/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lets each allocation of libgpuarb-hip fail: the call reports it and leaves no stream behind. */

#include <errno.h>

#include "check.h"
#include "fake-hip.h"
#include "libgpuarb/hip/gpuarb-hip.h"

#define FEW 32 /* more allocations than a call makes */

#if defined(__SANITIZE_ADDRESS__)

TEST(every_allocation_may_fail)
{
	SKIP("the sanitizer has its own malloc");
}

#else

#include "lack.h"

/* Creates a stream while allocation k fails. */
static int create(long k, hipStream_t *ret)
{
	int r;

	fake.sentence[0] = '\0';
	lack_left = k;
	r = gpuarb_hip_stream_create(fake_lease(), 0, ret);
	lack_left = -1;
	return r;
}

TEST(every_allocation_of_a_stream_may_fail)
{
	hipStream_t stream = NULL;
	int r = -ENOMEM;
	long k;

	for (k = 0; k < FEW; k++) {
		fake_start();
		r = create(k, &stream);
		if (r == 0)
			break;
		CHECK(r == -ENOMEM && strstr(fake.sentence, "memory"));
		CHECK(!stream && fake.streams == 0);
	}
	CHECK(r == 0 && stream && k == 4);
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), stream) == 0);
	fake_end();
}

/* HIP 5.7 keeps the queue of a stream, so that gpuarb keeps the stream. */
TEST(the_idle_stream_of_a_lease_that_is_closed_without_memory_is_used_again)
{
	hipStream_t first = NULL, second = NULL;

	fake_start();
	fake.version = 50731921;
	fake.keeps = true;
	CHECK(create(-1, &first) == 0);
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), first) == 0);
	lack_left = 0;
	fake_end();
	lack_left = -1;
	CHECK(create(-1, &second) == 0 && second == first && fake.creations == 1);
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), second) == 0);
	fake_end();
}

TEST(every_allocation_of_an_error_may_fail)
{
	hipStream_t stream = NULL;
	unsigned unsaid = 0;

	for (long k = 0; k < FEW; k++) {
		int r;

		fake_start();
		fake.partition.queues = 1;
		r = create(k, &stream);
		CHECK((r == -EDQUOT || r == -ENOMEM) && *fake.sentence);
		CHECK(!stream && fake.streams == 0);
		unsaid += r == -ENOMEM;
	}
	CHECK(unsaid > 4 && unsaid < FEW);
	fake_end();
}

#endif
