/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * libgpuarb-hip with AMD's HIP, under the shipped daemon, on the emulated driver: whose record
 * says what came of it. test-hip.sh makes the machine, of a Radeon VII and a V620, and runs
 * each test in a process of its own, as HIP and ROCr read the environment once.
 */

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <semaphore.h>

#include "libgpuarb/rt/gpuarb-rt.h"
#include "kfdsim/test/hip-rig.h"

#define RADEON_VII "0"
#define V620 "1"
/* Between these versions the queue of a masked stream lives until the process ends. */
#define KEEPS_SINCE 50300000
#define KEEPS_UNTIL 60400000
#define COPIED (1U << 20) /* by SDMA: HIP 6 copies less than 16 KiB with a kernel */

static bool hip_keeps_masked_queues(void)
{
	int version = 0;

	CHECK(hipRuntimeGetVersion(&version) == hipSuccess);
	return version >= KEEPS_SINCE && version < KEEPS_UNTIL;
}

FIXTURE(struct stage, stage, , end(stage));

TEST_WITH(driver_receives_the_masks_of_the_lease, struct stage *stage)
{
	struct gpuarb_want want = want_of(RADEON_VII, 30, 4);
	hipStream_t first, second;
	static const char value[COPIED] = { 42, [COPIED - 1] = 43 };
	static char back[COPIED];
	void *memory = NULL;

	start(stage, &want, 1);
	first = create(stage, 0);
	check_masks(stage, 0, 2); /* ROCr's own, too */
	second = create(stage, 0);
	check_masks(stage, 0, 3);

	CHECK(hipMalloc(&memory, sizeof(value)) == hipSuccess);
	CHECK(hipMemcpyAsync(memory, value, sizeof(value), hipMemcpyHostToDevice, first) ==
	      hipSuccess);
	CHECK(hipStreamSynchronize(first) == hipSuccess);
	CHECK(hipMemcpyAsync(back, memory, sizeof(back), hipMemcpyDeviceToHost, second) ==
	      hipSuccess);
	CHECK(hipStreamSynchronize(second) == hipSuccess);
	CHECK(memcmp(back, value, sizeof(value)) == 0);

	CHECK(gpuarb_hip_stream_destroy(stage->lease, first) == 0);
	CHECK(gpuarb_hip_stream_destroy(stage->lease, second) == 0);
	check_masks(stage, 0, hip_keeps_masked_queues() ? 3 : 1);
}

/* The null stream has a queue when it first has work. */
TEST_WITH(the_null_stream_is_masked_by_apply, struct stage *stage)
{
	struct gpuarb_want want = want_of(RADEON_VII, 30, 4);
	hipEvent_t event;

	start(stage, &want, 1);
	create(stage, 0);
	CHECK(hipEventCreate(&event) == hipSuccess && hipEventRecord(event, NULL) == hipSuccess);
	CHECK(hipStreamSynchronize(NULL) == hipSuccess && hipEventDestroy(event) == hipSuccess);
	CHECK(count_queues(stage, 0) == 3);
	CHECK(strcmp(text(queue(stage, 0, 2), "mask"), "") == 0);
	CHECK(gpuarb_lease_apply(stage->lease) == 3);
	check_masks(stage, 0, 3);
}

TEST_WITH(streams_use_at_most_the_granted_queues, struct stage *stage)
{
	struct gpuarb_want want = want_of(RADEON_VII, 15, 4);
	hipStream_t streams[3];
	unsigned left = 42;

	start(stage, &want, 1);
	for (int i = 0; i < 3; i++) {
		CHECK(gpuarb_hip_streams(stage->lease, 0, &left) == 0 && left == 3U - (unsigned)i);
		streams[i] = create(stage, 0);
	}
	refused(stage, -EDQUOT, "ask for 5 queues");
	check_masks(stage, 0, 4);
	CHECK(json_object_get_int(member(own_record(stage), "peak")) == 4);

	/* One that goes makes room for one. */
	CHECK(gpuarb_hip_stream_destroy(stage->lease, streams[1]) == 0);
	streams[1] = create(stage, 0);
	check_masks(stage, 0, 4);
}

/* HIP 5.7 keeps the queues of destroyed streams. */
static void create_and_destroy(uint32_t level)
{
	struct gpuarb_want want = want_of(RADEON_VII, 15, 3);
	uint32_t first[2] = { 0 };
	hipStream_t stream, other;
	const uint32_t *mask;
	_cleanup_(end) struct stage stage;
	size_t words;
	unsigned left;

	want.priority = level;
	want.streams = 2;
	start(&stage, &want, 1);
	mask = gpuarb_lease_cu_mask(stage.lease, 0, &words);
	first[0] = mask[0] & -mask[0];
	for (int i = 0; i < 8; i++) {
		stream = create(&stage, 0);
		CHECK(gpuarb_hip_stream_create_within(stage.lease, 0, first, 2, &other) == 0);
		CHECK(other != stream);
		refused(&stage, -EDQUOT, " 3 streams");
		CHECK(gpuarb_hip_stream_destroy(stage.lease, i % 2 ? stream : other) == 0);
		CHECK(gpuarb_hip_stream_destroy(stage.lease, i % 2 ? other : stream) == 0);
		CHECK(gpuarb_hip_stream_destroy(stage.lease, stream) == -EINVAL);
		CHECK(gpuarb_hip_streams(stage.lease, 0, &left) == 0 && left == 2);
	}
	create(&stage, 0);
	create(&stage, 0);
	check_masks(&stage, 0, 3);
	CHECK(json_object_get_int(member(own_record(&stage), "peak")) == 3);
}

TEST(a_program_can_use_lease_after_lease)
{
	struct gpuarb_want want = want_of(RADEON_VII, 15, 3);
	hipStream_t streams[2];
	struct stage stage;

	for (int i = 0; i < 4; i++) {
		start(&stage, &want, 1);
		for (int k = 0; k < 2; k++)
			streams[k] = create(&stage, 0);
		/* ROCr's had the mask of the lease before. */
		CHECK(gpuarb_lease_apply(stage.lease) == 3);
		check_masks(&stage, 0, 3);
		for (int k = 0; k < 2; k++)
			CHECK(gpuarb_hip_stream_destroy(stage.lease, streams[k]) == 0);
		end(&stage);
	}
}

TEST_CASE(streams_can_be_made_and_destroyed_without_end, create_and_destroy(7));
TEST_CASE(streams_of_high_priority_can_be_made_and_destroyed_without_end, create_and_destroy(11));

static void check_priority(uint32_t asked, int least, int most)
{
	struct gpuarb_want want = want_of(RADEON_VII, 15, 4);
	_cleanup_(end) struct stage stage;
	int priority;

	want.priority = asked;
	start(&stage, &want, 1);
	CHECK(gpuarb_lease_priority(stage.lease, 0) == asked);
	create(&stage, 0);
	check_masks(&stage, 0, 2);
	priority = json_object_get_int(member(queue(&stage, 0, 1), "priority"));
	CHECK(priority >= least && priority <= most);
}

TEST_CASE(a_lease_of_high_priority_has_streams_of_high_priority_with_its_mask,
	  check_priority(13, 11, 15));
TEST_CASE(a_lease_of_low_priority_has_streams_of_low_priority_with_its_mask,
	  check_priority(3, 0, 6));

TEST_WITH(a_high_stream_on_a_shared_queue_is_masked_like_all_others, struct stage *stage)
{
	struct gpuarb_want want = want_of(RADEON_VII, 15, 6);
	hipStream_t plain;

	setenv("GPU_MAX_HW_QUEUES", "1", 1);
	want.priority = 11;
	start(stage, &want, 1);
	CHECK(hipSetDevice(0) == hipSuccess && hipStreamCreate(&plain) == hipSuccess);
	create(stage, 0);
	CHECK(strcmp(text(queue(stage, 0, 1), "mask"), "") == 0); /* the program's own */
	create(stage, 0);
	check_masks(stage, 0, 3);
}

TEST_WITH(stream_mask_is_intersected_with_the_lease, struct stage *stage)
{
	struct gpuarb_want want = want_of(RADEON_VII, 30, 4);
	const uint32_t *mask, beyond[2] = { 0xffff, 0 };
	uint32_t inside[2] = { 0 };
	hipStream_t stream = NULL;
	size_t words;

	start(stage, &want, 1);
	CHECK(gpuarb_hip_stream_create_within(stage->lease, 0, beyond, 2, &stream) == 0);
	mask = gpuarb_lease_cu_mask(stage->lease, 0, &words);
	inside[0] = mask[0] & 0xffff;
	CHECK(has_mask(queue(stage, 0, 1), inside, 2));
	CHECK(has_mask(queue(stage, 0, 0), mask, words));
	create(stage, 0);

	want.cus = 8;
	CHECK(gpuarb_lease_resize(stage->lease, &want, 1) == 0);
	CHECK(gpuarb_lease_apply(stage->lease) == 3);
	mask = gpuarb_lease_cu_mask(stage->lease, 0, &words);
	inside[0] = mask[0] & 0xffff;
	CHECK(has_mask(queue(stage, 0, 1), inside, 2));
	CHECK(has_mask(queue(stage, 0, 2), mask, words));
}

TEST_WITH(each_gpu_of_a_lease_has_its_own_mask, struct stage *stage)
{
	const struct gpuarb_want wants[] = { want_of(V620, 16, 3), want_of(RADEON_VII, 24, 4) };
	int device, current;

	start(stage, wants, 2);
	CHECK(gpuarb_hip_device(stage->lease, 0, &device) == 0 && device == 1);
	CHECK(gpuarb_hip_device(stage->lease, 1, &device) == 0 && device == 0);
	create(stage, 0);
	create(stage, 1);
	create(stage, 1);
	CHECK(hipGetDevice(&current) == hipSuccess && current == 0);
	check_masks(stage, 0, 2);
	check_masks(stage, 1, 3);
}

TEST_WITH(gpu_is_found_in_any_hip_device_order, struct stage *stage)
{
	struct gpuarb_want want = want_of(V620, 16, 3);
	int device;

	setenv("ROCR_VISIBLE_DEVICES", "1", 1);
	start(stage, &want, 1);
	CHECK(gpuarb_hip_device(stage->lease, 0, &device) == 0 && device == 0);
	create(stage, 0);
	check_masks(stage, 0, 2);
}

/* HIP 5.2 counts WGPs as its processors and has CUs as the bits of its masks. */
TEST_WITH(wgps_get_the_mask_that_the_lease_has, struct stage *stage)
{
	struct gpuarb_want want = want_of(V620, 20, 4);
	struct json_object *found;
	hipStream_t stream;
	size_t words;

	start(stage, &want, 1);
	create(stage, 0);
	check_masks(stage, 0, 2);

	/* HIP itself had set it right at once. */
	found = queue(stage, 0, 1);
	CHECK(strcmp(json_object_get_string(json_object_array_get_idx(member(found, "masks"), 0)),
		     text(found, "mask")) == 0);
	CHECK(gpuarb_hip_stream_create_within(stage->lease, 0, (const uint32_t[]){ 1 }, 1,
					      &stream) == -EINVAL ||
	      !(gpuarb_lease_cu_mask(stage->lease, 0, &words)[0] & 1));
}

TEST_WITH(a_mask_outside_of_hsa_cu_mask_is_explained, struct stage *stage)
{
	struct gpuarb_want want = want_of(RADEON_VII, 15, 4);

	setenv("HSA_CU_MASK", "0:0-1", 1);
	start(stage, &want, 1);
	refused(stage, -EEXIST, "HSA_CU_MASK=0:0-1");
}

TEST_WITH(a_mask_inside_of_hsa_cu_mask_works, struct stage *stage)
{
	struct gpuarb_want want = want_of(RADEON_VII, 15, 4);
	const uint32_t *mask;
	size_t words;

	setenv("HSA_CU_MASK", "0:0-59", 1);
	start(stage, &want, 1);
	create(stage, 0);
	mask = gpuarb_lease_cu_mask(stage->lease, 0, &words);
	CHECK(has_mask(queue(stage, 0, 1), mask, words));
}

/* As under gpuarbctl run. */
TEST_WITH(lease_environment_does_not_change_stream_masks, struct stage *stage)
{
	struct gpuarb_want want = want_of(RADEON_VII, 30, 4);
	hipStream_t stream = NULL;
	char **environment;

	want.streams = 2;
	start(stage, &want, 1);
	CHECK(gpuarb_lease_environment(stage->lease, &environment) == 0);
	for (size_t i = 0; environment[i]; i++)
		if (strchr(environment[i], '='))
			CHECK(putenv(environment[i]) == 0);
	create(stage, 0);
	CHECK(gpuarb_hip_stream_create_within(stage->lease, 0, (const uint32_t[]){ 0xff }, 1,
					      &stream) == 0);
	CHECK(count_queues(stage, 0) == 3);
}

static void command(const char *text)
{
	FILE *file = fopen("/sys/kernel/debug/kfdsim/control", "w");

	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void refused_without_mask(struct stage *stage, const char *fault, int error)
{
	command(fault);
	refused(stage, error, "GPU 0000:");
}

TEST_WITH(stream_creation_fails_when_the_driver_refuses_the_mask, struct stage *stage)
{
	struct gpuarb_want want = want_of(RADEON_VII, 15, 4);

	start(stage, &want, 1);
	create(stage, 0);
	refused_without_mask(stage, "set-cu-mask:1:ENOMEM", -EBUSY); /* HIP's */
	check_masks(stage, 0, 2);
	refused_without_mask(stage, "set-cu-mask:2:EIO", -EIO); /* and ours */
	CHECK(count_queues(stage, 0) == (hip_keeps_masked_queues() ? 3 : 2));
	create(stage, 0);
	check_masks(stage, 0, 3);
}

TEST_WITH(high_priority_stream_creation_fails_when_the_driver_refuses_the_mask, struct stage *stage)
{
	struct gpuarb_want want = want_of(RADEON_VII, 15, 4);

	want.priority = 15;
	start(stage, &want, 1);
	create(stage, 0);
	refused_without_mask(stage, "update-queue:1:EIO", -EBUSY);
	check_masks(stage, 0, 2);
	command("set-cu-mask:1:EIO");
	refused(stage, -EIO, "GPU 0000:");
	/* HIP 6 keeps that queue, and the next stream has it. */
	create(stage, 0);
	check_masks(stage, 0, count_queues(stage, 0));
}

/* As in most containers: sysfs has this process by another number. */
static void run_inside(int told)
{
	struct gpuarb_want want = want_of(RADEON_VII, 30, 4), high = want_of(V620, 16, 3);
	const uint32_t *mask;
	struct stage stage;
	size_t words;
	pid_t pid;

	CHECK(read(told, &pid, sizeof(pid)) == sizeof(pid));
	start(&stage, &want, 1);
	stage.pid = pid;
	create(&stage, 0);
	mask = gpuarb_lease_cu_mask(stage.lease, 0, &words);
	CHECK(has_mask(queue(&stage, 0, 1), mask, words));
	create(&stage, 0);
	create(&stage, 0);
	refused(&stage, -EDQUOT, "4 queues");
	end(&stage);

	start(&stage, &high, 1);
	refused(&stage, -EOPNOTSUPP, "PID namespace");
	end(&stage);
}

/* ---- jobs with deadlines --------------------------------------------------------------------- */

struct copy {
	struct order *order;
	char letter;
	char *from;
	void *to;
};

struct order {
	sem_t held;
	char letters[8];
	size_t n;
};

static int hold(hipStream_t stream, void *userdata)
{
	struct order *order = userdata;

	(void)stream;
	CHECK(sem_wait(&order->held) == 0);
	return 0;
}

static int launch_copy(hipStream_t stream, void *userdata)
{
	struct copy *copy = userdata;

	copy->order->letters[copy->order->n++] = copy->letter;
	CHECK(hipMemcpyAsync(copy->to, copy->from, COPIED, hipMemcpyHostToDevice, stream) ==
	      hipSuccess);
	return 0;
}

static struct gpuarb_rt_task *add_task(struct gpuarb_rt *rt, uint64_t deadline)
{
	struct gpuarb_rt_task_options options = GPUARB_RT_TASK_OPTIONS_INIT;
	struct gpuarb_rt_task *task = NULL;

	options.period_usec = options.deadline_usec = deadline;
	CHECK(gpuarb_rt_add_task(rt, &options, &task) == 0);
	return task;
}

/* Jobs with deadlines in 30, 10 and 20 minutes wait for one that runs. */
static void run_jobs(struct stage *stage, uint32_t policy, const char *wanted)
{
	static char bytes[3][COPIED], back[COPIED];
	struct gpuarb_rt_options options = GPUARB_RT_OPTIONS_INIT;
	static const unsigned minutes[] = { 30, 10, 20 };
	struct gpuarb_rt_task *tasks[3];
	struct gpuarb_rt_statistics statistics;
	struct order order = { .n = 0 };
	struct gpuarb_rt *rt = NULL;
	struct copy copies[3];
	hipStream_t stream = create(stage, 0);

	options.policy = policy;
	CHECK(gpuarb_hip_device(stage->lease, 0, &options.device) == 0);
	CHECK(gpuarb_rt_new(stream, &options, &rt) == 0 && sem_init(&order.held, 0, 0) == 0);
	for (size_t i = 0; i < 3; i++)
		tasks[i] = add_task(rt, minutes[i] * UINT64_C(60) * 1000000);
	CHECK(gpuarb_rt_submit(tasks[0], 0, hold, &order) == 0);
	for (size_t i = 0; i < 3; i++) {
		memset(bytes[i], (int)('a' + i), COPIED);
		copies[i] = (struct copy){ &order, (char)('a' + i), bytes[i], NULL };
		CHECK(hipMalloc(&copies[i].to, COPIED) == hipSuccess);
		CHECK(gpuarb_rt_submit(tasks[i], 0, launch_copy, &copies[i]) == 0);
	}
	CHECK(sem_post(&order.held) == 0);
	for (size_t i = 0; i < 3; i++) {
		CHECK(gpuarb_rt_wait(tasks[i]) == 0);
		CHECK(gpuarb_rt_read(tasks[i], &statistics, sizeof(statistics)) == 0);
		CHECK(statistics.jobs == 1 + (i == 0) && statistics.misses == 0);
		CHECK(statistics.longest_execution_usec > 0);
		CHECK(hipMemcpy(back, copies[i].to, COPIED, hipMemcpyDeviceToHost) == hipSuccess);
		CHECK(memcmp(back, bytes[i], COPIED) == 0);
		CHECK(hipFree(copies[i].to) == hipSuccess);
	}
	CHECK(strcmp(order.letters, wanted) == 0);
	gpuarb_rt_free(rt);
	CHECK(gpuarb_hip_stream_destroy(stage->lease, stream) == 0);
	sem_destroy(&order.held);
}

TEST_WITH(jobs_run_on_a_masked_stream_in_the_order_of_their_policy, struct stage *stage)
{
	struct gpuarb_want want = want_of(RADEON_VII, 30, 4);

	start(stage, &want, 1);
	run_jobs(stage, GPUARB_RT_FIFO, "abc");
	run_jobs(stage, GPUARB_RT_NP_EDF, "bca");
	run_jobs(stage, GPUARB_RT_NP_DM, "bca");
}

TEST(pid_namespace_allows_only_streams_that_hip_masks)
{
	int told[2], status;
	pid_t pid;

	CHECK(pipe(told) == 0);
	CHECK(unshare(CLONE_NEWPID | CLONE_NEWNS) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
		CHECK(mount("proc", "/proc", "proc", 0, NULL) == 0); /* HIP crashes without */
		run_inside(told[0]);
		exit(EXIT_SUCCESS);
	}
	CHECK(write(told[1], &pid, sizeof(pid)) == sizeof(pid));
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
