/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls for a lease, with a fake daemon that gives the answers that the test chooses. */

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "dbus/names.h"
#include "fake-lease.h"
#include "lib-rig.h"
#include "libgpuarb/lease/lease-handle.h"
#include "libgpuarb/connection/connection.h"
#include "rig.h"

NEEDS(rig_bus_missing);

/* ---- granted -------------------------------------------------------------------------- */

FIXTURE(struct stage, stage, , stage_strike(stage));

TEST_WITH(a_lease_has_all_granted_values, struct stage *stage)
{
	const struct gpuarb_partition *partition;
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "granted",
										NULL);
	size_t words;

	CHECK(gpuarb_lease_id(lease) == 17 && gpuarb_lease_generation(lease) == 1);
	CHECK(strcmp(gpuarb_lease_state(lease), "granted") == 0);
	CHECK(strcmp(gpuarb_lease_reason(lease), "") == 0);
	CHECK(gpuarb_lease_deadline(lease) == GPUARB_FOREVER);
	CHECK(gpuarb_lease_partitions(lease) == 1 && !gpuarb_lease_partition(lease, 1));
	CHECK(strcmp(gpuarb_lease_gpu(lease, 0), "0000:03:00.0") == 0);
	CHECK(gpuarb_lease_cu_mask(lease, 0, &words)[0] == 0x3fffffff && words == 2);
	CHECK(gpuarb_lease_cus(lease, 0) == 30 && gpuarb_lease_effective_cus(lease, 0) == 30);
	CHECK(gpuarb_lease_queues(lease, 0) == 5 && gpuarb_lease_streams(lease, 0) == 1);
	CHECK(gpuarb_lease_processes(lease, 0) == 1 && gpuarb_lease_priority(lease, 0) == 7);
	CHECK(gpuarb_lease_cus(lease, 1) == 0 && !gpuarb_lease_cu_mask(lease, 1, &words));

	partition = gpuarb_lease_partition(lease, 0);
	CHECK(partition->cus_asked == 31 && partition->n_shader_engines == 2);
	CHECK(partition->shader_engines[1] == 1 && partition->sdma_queues == 2);
	CHECK(partition->vram == 1 << 30 && partition->n_gaps == 1);
	CHECK(strcmp(partition->tier, "cooperative") == 0);
	CHECK(strcmp(partition->gaps[0], "power") == 0);
}

TEST_WITH(a_library_on_top_can_set_the_last_error, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "granted",
										NULL);

	CHECK(gpuarb_lease_fail(lease, -EIO, "100% of it failed: %s") == -EIO);
	CHECK(strcmp(gpuarb_last_error(stage->gpuarb), "100% of it failed: %s") == 0);
	CHECK(strcmp(gpuarb_last_error_name(stage->gpuarb), "") == 0);
	CHECK(gpuarb_lease_fail(lease, -EIO, NULL) == -EINVAL);
}

TEST_WITH(the_holder_is_close_on_exec_and_the_daemon_sees_its_end, struct stage *stage)
{
	struct gpuarb_lease *lease = stage_begin(stage, "granted", NULL);

	CHECK(fcntl(gpuarb_lease_fd(lease), F_GETFD) == FD_CLOEXEC);
	gpuarb_lease_close(lease);
	CHECK(stage_holder_gone(stage));
	fake_arbiter_saw(&stage->fake, "Reserve"); /* the only call */
}

TEST_WITH(a_token_returns_the_present_state_of_the_lease, struct stage *stage)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;

	stage_set(stage, "granted", NULL);
	options.token = "again";
	CHECK(gpuarb_reserve(stage->gpuarb, &want, 1, &options, &lease) == 0);
	CHECK(gpuarb_lease_generation(lease) == 3 && gpuarb_lease_cus(lease, 0) == 20);
}

TEST_WITH(a_lease_outlives_its_handle, struct stage *stage)
{
	struct gpuarb_lease *lease = stage_begin(stage, "granted", NULL);

	gpuarb_close(stage->gpuarb);
	stage->gpuarb = NULL;
	CHECK(gpuarb_lease_acknowledge(lease) == 0); /* on a new connection */
	CHECK(gpuarb_lease_release(lease) == 0);
	fake_arbiter_saw(&stage->fake, "Reserve");
	fake_arbiter_saw(&stage->fake, "Acknowledge");
	fake_arbiter_saw(&stage->fake, "Release");
	CHECK(stage_holder_gone(stage));
}

/* A gpuarbd that was killed had not saved generation 3. The next one may grant another mask with that number. */
TEST_WITH(generation_that_goes_back_is_followed_and_acknowledged, struct stage *stage)
{
	struct gpuarb_lease *lease = stage_begin(stage, "granted", NULL);

	fake_arbiter_saw(&stage->fake, "Reserve");
	stage_tell(stage, 3, GPUARB_RECORD_GRANTED, 20);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 1);
	CHECK(gpuarb_lease_acknowledge(lease) == 0);
	fake_arbiter_saw(&stage->fake, "Acknowledge");
	stage_tell(stage, 2, GPUARB_RECORD_GRANTED, 10);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 1);
	CHECK(gpuarb_lease_generation(lease) == 2 && gpuarb_lease_cus(lease, 0) == 10);
	CHECK(gpuarb_lease_acknowledge(lease) == 0);
	fake_arbiter_saw(&stage->fake, "Acknowledge");
	stage_tell(stage, 3, GPUARB_RECORD_GRANTED, 20); /* not followed yet */
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 1);
	CHECK(gpuarb_lease_release(lease) == 0);
	fake_arbiter_saw(&stage->fake, "Release");
}

/* A gpuarbd that was started since sends the last record again: it may not know of the acknowledgement. */
TEST_WITH(an_acknowledgement_is_repeated_when_its_record_comes_again, struct stage *stage)
{
	struct gpuarb_lease *lease = stage_begin(stage, "granted", NULL);

	fake_arbiter_saw(&stage->fake, "Reserve");
	stage_tell(stage, 3, GPUARB_RECORD_GRANTED, 20);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 1);
	CHECK(gpuarb_lease_acknowledge(lease) == 0);
	fake_arbiter_saw(&stage->fake, "Acknowledge");
	stage_tell(stage, 3, GPUARB_RECORD_GRANTED, 20);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 0);
	fake_arbiter_saw(&stage->fake, "Acknowledge");
	stage_tell(stage, 4, GPUARB_RECORD_GRANTED,
		   10); /* which the program has not followed yet */
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 1);
	CHECK(gpuarb_lease_release(lease) == 0);
	fake_arbiter_saw(&stage->fake, "Release");
}

/* ---- calls ---------------------------------------------------------------------------- */

TEST_WITH(a_resized_lease_has_its_new_partitions, struct stage *stage)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "granted",
										NULL);

	CHECK(gpuarb_lease_resize(lease, &want, 1) == 0);
	CHECK(gpuarb_lease_cus(lease, 0) == 20 && gpuarb_lease_generation(lease) == 3);
	fake_arbiter_saw(&stage->fake, "Reserve");
	fake_arbiter_saw(&stage->fake, "Resize");
	fake_arbiter_saw(&stage->fake, "GetAll");
	CHECK(gpuarb_lease_resize(lease, &want, 0) == -EINVAL);
}

TEST_WITH(a_process_is_bound_by_an_open_pidfd, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "granted",
										NULL);
	int fd;

	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(gpuarb_lease_bind(lease, fd) == 0);
	close(fd);
	CHECK(gpuarb_lease_bind(lease, fd) == -EINVAL && gpuarb_lease_bind(lease, -1) == -EINVAL);
}

TEST_WITH(lease_of_another_program_is_joined_without_its_holder, struct stage *stage)
{
	struct gpuarb_lease *lease, *joined;
	uint64_t id;

	stage_set(stage, "granted", NULL);
	lease = stage_reserve(stage, 0);
	id = gpuarb_lease_id(lease);
	CHECK(gpuarb_lease_join(stage->gpuarb, id, &joined) == 0);
	CHECK(gpuarb_lease_id(joined) == id && gpuarb_lease_fd(joined) == -1);
	CHECK(gpuarb_lease_cus(joined, 0) > 0 && gpuarb_lease_dispatch(joined, NULL, NULL) == 0);
	fake_arbiter_saw(&stage->fake, "Reserve");
	fake_arbiter_saw(&stage->fake, "Bind");
	fake_arbiter_saw(&stage->fake, "GetAll");
	gpuarb_lease_close(joined);
	gpuarb_lease_close(lease);
}

static struct gpuarb_options with_process(void)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;

	options.process_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(options.process_fd >= 0);
	return options;
}

TEST_WITH(a_process_is_bound_by_a_separate_call, struct stage *stage)
{
	struct gpuarb_options options = with_process();
	struct gpuarb_want want = GPUARB_WANT_INIT;
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;

	stage_set(stage, "granted", NULL);
	CHECK(gpuarb_reserve(stage->gpuarb, &want, 1, &options, &lease) == 0);
	close(options.process_fd);
	fake_arbiter_saw(&stage->fake, "Reserve");
	fake_arbiter_saw(&stage->fake, "Bind");
}

TEST_WITH(a_process_is_bound_at_once_without_a_separate_call, struct stage *stage)
{
	struct gpuarb_options options = with_process();
	struct gpuarb_want want = GPUARB_WANT_INIT;
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;

	stage_set(stage, "granted", NULL);
	options.bind_at_once = true;
	CHECK(gpuarb_reserve(stage->gpuarb, &want, 1, &options, &lease) == 0);
	close(options.process_fd);
	CHECK(gpuarb_reload(stage->gpuarb) == 0);
	fake_arbiter_saw(&stage->fake, "Reserve");
	fake_arbiter_saw(&stage->fake, "Reload");
}

/* When binding fails the daemon is asked to end the lease, because the process may be bound. */
static void fail_to_bind(int (*reserve)(struct gpuarb *, const struct gpuarb_want *, size_t,
					const struct gpuarb_options *, struct gpuarb_lease **),
			 const char *refuse, int error)
{
	struct gpuarb_options options = with_process();
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	struct stage stage;

	stage_set(&stage, "granted", refuse);
	stage.gpuarb->answer_usec = *refuse ? ANSWER_USEC : LIB_RIG_LATE;
	CHECK(reserve(stage.gpuarb, &want, 1, &options, &lease) == error && !lease);
	CHECK(strstr(gpuarb_last_error(stage.gpuarb), *refuse ? "it is so" : stage.bus.address));
	CHECK(strcmp(gpuarb_last_error_name(stage.gpuarb), refuse) == 0);
	fake_arbiter_saw(&stage.fake, "Reserve");
	fake_arbiter_saw(&stage.fake, "Bind");
	fake_arbiter_saw(&stage.fake, "Release");
	CHECK(stage_holder_gone(&stage));
	close(options.process_fd);
	stage_strike(&stage);
}

TEST(a_lease_ends_when_its_process_cannot_be_bound)
{
	fail_to_bind(gpuarb_reserve, GPUARB_ERROR_NOT_PERMITTED, -EACCES);
	fail_to_bind(gpuarb_reserve_start, GPUARB_ERROR_NOT_PERMITTED, -EACCES);
}

TEST(a_lease_ends_when_the_answer_to_bind_is_lost)
{
	fail_to_bind(gpuarb_reserve, "", -ETIMEDOUT);
}

TEST_WITH(nothing_is_reserved_without_a_free_fd_for_the_process, struct stage *stage)
{
	struct gpuarb_options options = with_process();
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	struct rlimit before, none;

	stage_set(stage, "granted", NULL);
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	CHECK(gpuarb_reserve(stage->gpuarb, &want, 1, &options, &lease) == -EMFILE && !lease);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(gpuarb_reload(stage->gpuarb) == 0);
	fake_arbiter_saw(&stage->fake, "Reload");
	close(options.process_fd);
}

TEST_WITH(a_refusal_has_the_sentence_of_the_daemon, struct stage *stage)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = stage_begin(stage, "granted", GPUARB_ERROR_INVALID_STATE);

	CHECK(gpuarb_lease_acknowledge(lease) == -EBADFD);
	CHECK(strcmp(gpuarb_last_error(stage->gpuarb), "it is so") == 0);
	CHECK(strcmp(gpuarb_last_error_name(stage->gpuarb), GPUARB_ERROR_INVALID_STATE) == 0);
	CHECK(gpuarb_lease_resize(lease, &want, 1) == -EBADFD);
	CHECK(gpuarb_lease_cus(lease, 0) == 30);
	CHECK(gpuarb_reload(stage->gpuarb) == -EBADFD);
	CHECK(gpuarb_lease_release(lease) == -EBADFD); /* frees the lease in any case */
	CHECK(stage_holder_gone(stage));
}

/* An older daemon lacks methods, a newer one has other errors. */
TEST(errors_of_a_daemon_of_another_version_keep_their_sentence)
{
	static const struct {
		const char *name;
		int error;
	} errors[] = {
		{ SD_BUS_ERROR_UNKNOWN_METHOD, -EOPNOTSUPP },
		{ GPUARB_ERROR "Overheated", -EPROTO },
	};
	struct gpuarb_want want = GPUARB_WANT_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct stage stage;
		struct gpuarb_lease *lease = stage_begin(&stage, "granted", errors[i].name);

		CHECK(gpuarb_lease_acknowledge(lease) == errors[i].error);
		CHECK(strcmp(gpuarb_last_error(stage.gpuarb), "it is so") == 0);
		CHECK(gpuarb_lease_resize(lease, &want, 1) == errors[i].error);
		CHECK(gpuarb_lease_cus(lease, 0) == 30);             /* unchanged */
		CHECK(i > 0 || gpuarb_lease_cap(lease, false) == 0); /* it has no such policy */
		gpuarb_lease_close(lease);
		stage_strike(&stage);
	}
}

TEST_WITH(the_environment_has_the_mask_of_the_lease, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	char **environment = NULL;

	stage_set(stage, "granted", NULL);
	unsetenv("HSA_CU_MASK");
	unsetenv("ROC_GLOBAL_CU_MASK");
	unsetenv("ROCR_VISIBLE_DEVICES");
	lease = stage_reserve(stage, 0);
	CHECK(gpuarb_lease_environment(lease, &environment) == 0);
	CHECK(strcmp(environment[0], "ROCR_VISIBLE_DEVICES=0") == 0);
	CHECK(strcmp(environment[1], "HSA_CU_MASK=0:0x3fffffff") == 0);
	CHECK(strcmp(environment[2], "GPU_MAX_HW_QUEUES=3") == 0);
	CHECK(strcmp(environment[3], "GPUARB_LEASE=17") == 0);
	CHECK(strcmp(environment[4], "GPUARB_EFFECTIVE_CUS=30") == 0);
	free(environment);

	stage_tell(stage, 3, GPUARB_RECORD_GRANTED, 7);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 1);
	CHECK(gpuarb_lease_environment(lease, &environment) == 0);
	CHECK(strcmp(environment[1], "HSA_CU_MASK=0:0x7f") == 0);
	free(environment);

	setenv("HSA_CU_MASK", "0:0-3", 1);
	CHECK(gpuarb_lease_environment(lease, &environment) == -EEXIST);
	unsetenv("HSA_CU_MASK");
}
