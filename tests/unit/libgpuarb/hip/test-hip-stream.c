/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Streams of libgpuarb-hip with a fake HIP (fake-hip.h). No stream may be returned without its
 * mask. */

#include <errno.h>

#include "check.h"
#include "fake-hip.h"
#include "libgpuarb/hip/gpuarb-hip.h"

static hipStream_t create(void)
{
	hipStream_t stream = NULL;

	CHECK(gpuarb_hip_stream_create(fake_lease(), 0, &stream) == 0 && stream);
	return stream;
}

/* The call fails with the error and a sentence that has the value, and makes no stream. */
static void refused_within(int error, const char *value, const uint32_t *mask, size_t words)
{
	hipStream_t stream = NULL;
	unsigned streams = fake.streams;
	int r;

	fake.sentence[0] = '\0';
	r = mask ? gpuarb_hip_stream_create_within(fake_lease(), 0, mask, words, &stream)
		 : gpuarb_hip_stream_create(fake_lease(), 0, &stream);
	if (r != error || !strstr(fake.sentence, value))
		printf("%d: %s\n", r, fake.sentence);
	CHECK(r == error && strstr(fake.sentence, value));
	CHECK(!stream && fake.streams == streams && fake.current == 0);
}

static void refused(int error, const char *value)
{
	refused_within(error, value, NULL, 0);
}

TEST(every_function_accepts_null)
{
	const uint32_t mask = 1;
	hipStream_t stream = NULL;
	unsigned n;
	int i;

	fake_start();
	CHECK(gpuarb_hip_device(NULL, 0, &i) == -EINVAL);
	CHECK(gpuarb_hip_device(fake_lease(), 0, NULL) == -EINVAL);
	CHECK(gpuarb_hip_streams(NULL, 0, &n) == -EINVAL);
	CHECK(gpuarb_hip_streams(fake_lease(), 0, NULL) == -EINVAL);
	CHECK(gpuarb_hip_stream_create(NULL, 0, &stream) == -EINVAL);
	CHECK(gpuarb_hip_stream_create(fake_lease(), 0, NULL) == -EINVAL);
	CHECK(gpuarb_hip_stream_create_within(NULL, 0, &mask, 1, &stream) == -EINVAL);
	CHECK(gpuarb_hip_stream_create_within(fake_lease(), 0, NULL, 1, &stream) == -EINVAL);
	CHECK(gpuarb_hip_stream_create_within(fake_lease(), 0, &mask, 1, NULL) == -EINVAL);
	CHECK(gpuarb_hip_stream_destroy(NULL, stream) == -EINVAL);
	CHECK(fake.creations == 0);
}

TEST(a_stream_and_the_runtime_queue_have_the_mask)
{
	hipStream_t stream;
	unsigned left = 0;

	fake_start();
	fake.mask[0] = 0xff00;
	fake.mask[1] = 0;
	CHECK(gpuarb_hip_streams(fake_lease(), 0, &left) == 0 && left == 3);
	stream = create();
	CHECK(fake.queues[0].mask[0] == 0xff00 && fake.queues[1].mask[0] == 0xff00);
	CHECK(fake.forgotten == 2); /* their queues have no mask of their own */
	CHECK(gpuarb_hip_streams(fake_lease(), 0, &left) == 0 && left == 2);
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), stream) == 0 && fake.streams == 0);
	CHECK(gpuarb_hip_streams(fake_lease(), 0, &left) == 0 && left == 3);
}

TEST(the_current_device_does_not_change)
{
	int device = 42;

	fake_start();
	fake.devices = 2;
	fake.addresses[0] = "0000:43:00.0";
	fake.addresses[1] = "0000:03:00.0";
	fake.lease_device = 1;
	CHECK(gpuarb_hip_device(fake_lease(), 0, &device) == 0 && device == 1);
	create();
	CHECK(fake.queues[1].there && fake.queues[1].device == 1 && fake.current == 0);
}

TEST(an_own_mask_is_limited_to_the_lease)
{
	const uint32_t own[] = { 0xf0, 0xffffffff, 7 }, half = 1, beside = 0xf0000;

	fake_start();
	fake.mask[0] = 0xffff;
	fake.mask[1] = 0;
	refused_within(-ERANGE, "0000:03:00.0", &beside, 1);
	for (int major = 9; major < 11; major++) {
		hipStream_t stream = NULL;

		fake.major = major;
		CHECK(gpuarb_hip_stream_create_within(fake_lease(), 0, own, 3, &stream) == 0);
		CHECK(fake_masked(0xf0));
		CHECK(gpuarb_hip_stream_destroy(fake_lease(), stream) == 0);
	}
	refused_within(-EINVAL, "0000:03:00.0", &half, 1);
}

TEST(masks_are_converted_to_wgps_for_hip)
{
	static const int versions[] = { 50221153, 50731921 };

	for (int bits = 0; bits < 2; bits++)
		for (int i = 0; i < 2; i++) {
			fake_start();
			fake.major = 10;
			fake.version = versions[i];
			fake.wgp_bits = bits;
			fake.mask[0] = 0x0f0f00f0;
			fake.mask[1] = 0;
			fake.partition.cu_mask_words = 2;
			create();
			CHECK(fake.queues[1].mask[0] == 0x0f0f00f0 && fake.queues[1].masked == 1);
		}
}

TEST(the_other_form_of_a_mask_is_tried_after_a_wrong_guess)
{
	fake_start();
	fake.major = 10;
	fake.wgp_bits = true; /* although its version is 5.2 */
	fake.mask[0] = 0;
	fake.mask[1] = 0xff00;
	create();
	CHECK(fake.creations == 2 && fake.queues[1].mask[1] == 0xff00);
}

TEST(a_stream_beyond_the_budget_is_refused)
{
	fake_start();
	for (int i = 0; i < 3; i++)
		create();
	fake.creations = 0;
	refused(-EDQUOT, "4 queues on GPU 0000:03:00.0");
	CHECK(strstr(fake.sentence, " 5 queues") && fake.creations == 0);

	fake_start();
	fake.partition.processes = 4;
	refused(-EDQUOT, "0000:03:00.0");
	CHECK(strstr(fake.sentence, " 8 queues"));

	fake_start();
	fake.partition.streams = 1;
	create();
	refused(-EDQUOT, " 2 streams");
}

TEST(a_stream_with_priority_has_the_mask)
{
	static const struct {
		uint32_t kfd;
		int hip;
	} priorities[] = { { 0, 1 }, { 6, 1 }, { 11, -1 }, { 15, -1 } };

	for (int i = 0; i < 4; i++) {
		fake_start();
		fake.partition.priority = priorities[i].kfd;
		fake.mask[0] = 0xff;
		create();
		CHECK(fake.queues[1].priority == priorities[i].hip && fake.queues[1].pooled);
		CHECK(fake.queues[0].mask[0] == 0xff && fake.queues[1].mask[0] == 0xff);
		CHECK(fake.applied == 0);
	}
}

TEST(a_shared_queue_is_masked_or_no_stream_is_created)
{
	const uint32_t own = 0xf;
	hipStream_t stream = NULL;

	fake_start();
	fake.partition.priority = 11;
	fake.partition.queues = 8;
	fake.arena = 1;
	create();
	create();
	CHECK(fake.applied == 1 && fake.streams == 2);
	refused_within(-EBUSY, "GPU_MAX_HW_QUEUES", &own, 1);
	fake.apply_fails = -EACCES;
	refused(-EACCES, "cannot apply");

	/* The shared queue may be the one that has a mask of its own. */
	fake_start();
	fake.partition.priority = 11;
	fake.partition.queues = 8;
	fake.arena = 1;
	CHECK(gpuarb_hip_stream_create_within(fake_lease(), 0, &own, 1, &stream) == 0);
	refused(-EBUSY, "GPU_MAX_HW_QUEUES");

	/* HIP keeps the queue; the next stream on it has all CUs of the lease. */
	fake.forgotten = 0;
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), stream) == 0 && fake.forgotten == 1);
	create();
	CHECK(fake.applied == 1 && !fake_masked(0xf));
}

TEST(a_stream_on_another_gpu_is_refused)
{
	for (uint32_t priority = 7; priority < 16; priority += 8) {
		fake_start();
		fake.lands_on = 1;
		fake.partition.priority = priority;
		refused(-ENODEV, "0000:03:00.0");
	}
	fake.partition.priority = 7;
	fake.queues[FAKE_QUEUES - 2].there = true; /* a queue of another stream */
	refused(-ENODEV, "0000:03:00.0");

	/* With priority a shared queue could be on another partition. */
	fake_start();
	fake.partition.gpu = "0000:03:00.0/1";
	fake.partition.priority = 15;
	fake.queues[0] = (struct fake_queue){ .there = true };
	fake.lands_on = 1;
	refused(-EBUSY, "GPU_MAX_HW_QUEUES");
}

TEST(a_stream_that_cannot_be_masked_is_destroyed)
{
	fake_start();
	fake.mask_fails = -EIO;
	refused(-EIO, "");
	fake.mask_fails =
		/* HSA_CU_MASK is wider: the mask that HIP sets is sufficient where it is exact. */
		-EEXIST;
	fake.partition.queues = 8;
	CHECK(create() && fake.creations == 2);
	fake.major = 10;
	refused(-EEXIST, "");
	fake.mask_fails = 0;
	fake.look_fails_after = 1;
	fake.looks = 0;
	refused(-EIO, "cannot read");
	fake.looks = 1;
	refused(-EIO, "cannot read");
}

TEST(an_own_mask_fails_when_other_queues_appear_at_the_same_time)
{
	const uint32_t own = 0xf;

	fake_start();
	fake.partition.queues = 32;
	fake.unmanaged_processes = 1;
	refused_within(-EAGAIN, "0000:03:00.0", &own, 1);
	fake.unmanaged_processes = 1;
	/* All new queues get the mask of the lease, so it need not be known which is whose. */
	create();
	for (int i = 0; i < FAKE_QUEUES; i++)
		CHECK(!fake.queues[i].there || fake.queues[i].device != 0 ||
		      fake.queues[i].mask[0] != 0xf);
}

TEST(without_visible_queues_only_masks_set_by_hip_are_accepted)
{
	unsigned left = 0;

	fake_start();
	fake.blind = true;
	CHECK(gpuarb_hip_streams(fake_lease(), 0, &left) == 0 && left == 3);
	fake.mask[0] = 0xff;
	create();
	CHECK(fake_masked(0xff));
	create();
	create();
	CHECK(gpuarb_hip_streams(fake_lease(), 0, &left) == 0 && left == 0);
	refused(-EDQUOT, "4 queues");

	for (int i = 0; i < 4; i++) {
		fake_start();
		fake.blind = true;
		fake.partition.priority = i == 0 ? 15 : 7;
		fake.major = i == 1 ? 11 : 9;
		fake.partition.gpu = i == 2 ? "0000:03:00.0/0" : "0000:03:00.0";
		if (i == 3)
			setenv("ROC_GLOBAL_CU_MASK", "0xf", 1);
		refused(-EOPNOTSUPP, "PID namespace");
		CHECK(fake.creations == 0);
	}
}

TEST(failures_of_hip_have_a_sentence)
{
	static const struct {
		const char *call;
		hipError_t error;
		int r;
	} cases[] = {
		{ "hipGetDeviceCount", hipErrorNoDevice, -ENODEV },
		{ "hipDeviceGetPCIBusId", hipErrorInvalidDevice, -ENODEV },
		{ "hipDeviceGetAttribute", hipErrorUnknown, -EIO },
		{ "hipSetDevice", hipErrorOutOfMemory, -EBUSY },
		{ "hipExtStreamCreateWithCUMask", hipErrorUnknown, -EIO },
	};

	fake_start();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake.fails = cases[i].call;
		fake.error = cases[i].error;
		refused(cases[i].r, cases[i].call);
	}
	fake.fails = "hipStreamCreateWithPriority";
	fake.partition.priority = 0;
	fake.error = hipErrorOutOfMemory;
	refused(-EBUSY, "0000:03:00.0");
	setenv("HSA_CU_MASK", "0:0-15", 1);
	refused(-EEXIST, "HSA_CU_MASK=0:0-15");
}

TEST(a_device_that_cannot_be_found_is_named)
{
	fake_start();
	fake.addresses[0] = "0000:04:00.0";
	refused(-ENODEV, "GPU 0000:03:00.0");
	setenv("HIP_VISIBLE_DEVICES", "1", 1);
	setenv("ROCR_VISIBLE_DEVICES", "0,1", 1);
	refused(-ENODEV, "(ROCR_VISIBLE_DEVICES=0,1 HIP_VISIBLE_DEVICES=1)");

	fake_start();
	fake.addresses[0] = "what";
	refused(-EOPNOTSUPP, "'what'");
	fake_start();
	fake.partition.gpu = "gpu0";
	refused(-EOPNOTSUPP, "gpu0");
	fake_start();
	fake.devices = 2;
	fake.addresses[1] = fake.addresses[0];
	fake.partition.gpu = "0000:03:00.0/2";
	refused(-EOPNOTSUPP, "0000:03:00.0");
	setenv("HIP_VISIBLE_DEVICES", "1", 1);
	refused(-EOPNOTSUPP, "HIP_VISIBLE_DEVICES=1");
}

TEST(a_lease_that_is_not_granted_allows_no_streams)
{
	unsigned left;
	int device;

	fake_start();
	fake.gone = -ENOENT;
	refused(-ENOENT, "has ended");
	CHECK(gpuarb_hip_streams(fake_lease(), 0, &left) == -ENOENT);
	CHECK(gpuarb_hip_device(fake_lease(), 0, &device) == -ENOENT);
	fake_start();
	CHECK(gpuarb_hip_device(fake_lease(), 1, &device) == -EINVAL);
	fake.state = "waiting";
	fake.partitions = 0;
	refused(-EBADFD, "waiting");
	fake_start();
	fake.partition.kfd_gpu_id = 0;
	refused(-EOPNOTSUPP, "GPU ");
	fake_start();
	memset(fake.mask, 0, sizeof(fake.mask));
	refused(-EBADFD, "0000:03:00.0");
	fake_start();
	fake.look_fails_after = 1;
	fake.looks = 1;
	CHECK(gpuarb_hip_streams(fake_lease(), 0, &left) == -EIO);
	CHECK(fake.creations == 0);
}

TEST(streams_outlive_the_lease_and_are_destroyed_once)
{
	hipStream_t stream, other;

	fake_start();
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), NULL) == -EINVAL);
	stream = create();
	other = create();
	fake.gone = -ENOENT;
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), stream) == 0 && fake.streams == 1);
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), stream) == -EINVAL && fake.streams == 1);
	CHECK(strstr(fake.sentence, "lease 7"));
	fake.fails = "hipStreamDestroy";
	fake.error = hipErrorUnknown;
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), other) == -EIO);
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), other) == -EINVAL);
	fake_end();
}

static void start_with_hip_5_7(void)
{
	fake_start();
	fake.version = 50731921;
	fake.keeps = true;
}

TEST(a_stream_whose_queue_hip_keeps_is_used_again)
{
	const uint32_t own = 0xf;
	hipStream_t streams[3], stream = NULL;
	unsigned left = 42;

	start_with_hip_5_7();
	for (int i = 0; i < 3; i++)
		streams[i] = create();
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), streams[1]) == 0 && fake.streams == 3);
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), streams[1]) == -EINVAL);
	CHECK(gpuarb_hip_streams(fake_lease(), 0, &left) == 0 && left == 1);
	CHECK(gpuarb_hip_stream_create_within(fake_lease(), 0, &own, 1, &stream) == 0);
	CHECK(stream == streams[1] && fake.creations == 3 && fake_masked(0xf));
	refused(-EDQUOT, " 5 queues");
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), stream) == 0);
	CHECK(create() == streams[1] && !fake_masked(0xf));
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), streams[0]) == 0);
	fake_end();
	CHECK(fake.streams == 3);
}

TEST(the_next_lease_on_the_gpu_uses_streams_that_a_closed_lease_left)
{
	hipStream_t streams[3];
	unsigned left = 42;

	start_with_hip_5_7();
	for (int i = 0; i < 3; i++)
		streams[i] = create();
	for (int i = 0; i < 3; i++)
		CHECK(gpuarb_hip_stream_destroy(fake_lease(), streams[i]) == 0);
	fake_end();
	CHECK(fake.streams == 3);

	/* Another GPU has queues of its own. */
	fake.partition.kfd_gpu_id += 1000;
	CHECK(gpuarb_hip_streams(fake_lease(), 0, &left) == 0 && left == 0);
	fake_end();
	fake.partition.kfd_gpu_id -= 1000;

	fake.mask[0] = 0xff;
	fake.mask[1] = 0;
	CHECK(gpuarb_hip_streams(fake_lease(), 0, &left) == 0 && left == 3);
	for (int i = 0; i < 3; i++)
		create();
	CHECK(fake.creations == 3 && fake.queues[3].mask[0] == 0xff);
	refused(-EDQUOT, " 5 queues");
}

TEST(a_stream_that_is_used_again_without_its_mask_is_not_returned)
{
	hipStream_t stream = NULL;

	start_with_hip_5_7();
	fake.partition.queues = 2;
	fake.mask_fails = -EIO;
	CHECK(gpuarb_hip_stream_create(fake_lease(), 0, &stream) == -EIO && !stream);
	CHECK(fake.streams == 1); /* kept, as its queue is */
	refused(-EIO, "");
	fake.mask_fails = 0;
	stream = create();
	CHECK(fake.creations == 1 && fake.queues[1].masked == 1);

	/* The mask of its creation is right where HSA_CU_MASK forbids another one. */
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), stream) == 0);
	fake.mask_fails = -EEXIST;
	CHECK(create() == stream);
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), stream) == 0);
	fake.mask[0] = 0xff;
	refused(-EEXIST, "");
}

TEST(a_stream_with_unfinished_work_that_fails_is_destroyed)
{
	hipStream_t stream;

	start_with_hip_5_7();
	stream = create();
	fake.fails = "hipStreamSynchronize";
	fake.error = hipErrorNoDevice;
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), stream) == 0 && fake.streams == 0);
}

TEST(without_visible_queues_a_stream_is_used_again_for_the_same_mask)
{
	const uint32_t own = 0xf;
	hipStream_t stream, other = NULL;

	start_with_hip_5_7();
	fake.blind = 1;
	fake.partition.queues = 3;
	stream = create();
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), stream) == 0);
	CHECK(create() == stream && fake.creations == 1);
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), stream) == 0);
	CHECK(gpuarb_hip_stream_create_within(fake_lease(), 0, &own, 1, &other) == 0);
	CHECK(other != stream && fake.creations == 2);
	CHECK(gpuarb_hip_stream_destroy(fake_lease(), other) == 0);
	CHECK(create() == stream);
	CHECK(gpuarb_hip_stream_create_within(fake_lease(), 0, &own, 1, &other) == 0);
	CHECK(fake.creations == 2);
}
