/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Records that come through a holder, and waiting for them. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "dbus/names.h"
#include "fake-lease.h"
#include "lib-rig.h"
#include "libgpuarb/lease/lease-handle.h"
#include "rig.h"

NEEDS(rig_bus_missing);

static void count(struct gpuarb_lease *lease, void *userdata)
{
	CHECK(gpuarb_lease_id(lease) == 17);
	(*(int *)userdata)++;
}

/* ---- records -------------------------------------------------------------------------- */

FIXTURE(struct stage, stage, , stage_strike(stage));

TEST_WITH(the_holder_reports_changes, struct stage *stage)
{
	const struct gpuarb_partition *partition;
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "granted",
										NULL);
	int changes = 0;

	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == 0 && changes == 0);

	stage_tell(stage, 2, GPUARB_RECORD_GRANTED, 20);
	stage_tell(stage, 2, GPUARB_RECORD_GRANTED, 20); /* repeats the last record */
	stage_tell(stage, 2, GPUARB_RECORD_REVOKING, 20);
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == 2 && changes == 2);
	CHECK(gpuarb_lease_generation(lease) == 2 && gpuarb_lease_cus(lease, 0) == 20);
	CHECK(strcmp(gpuarb_lease_state(lease), "revoking") == 0);
	CHECK(strcmp(gpuarb_lease_reason(lease), "so it is") == 0);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 0);

	/* The record has all values; the daemon is not called. */
	partition = gpuarb_lease_partition(lease, 0);
	CHECK(partition->cus_asked == 21 && partition->n_shader_engines == 2);
	CHECK(partition->shader_engines[1] == 3 && partition->sdma_queues == 3);
	CHECK(partition->vram == 1 << 20 && partition->n_gaps == 2);
	CHECK(strcmp(partition->gaps[1], "reset") == 0 && *partition->tier);
	CHECK(gpuarb_reload(stage->gpuarb) == 0);
	fake_arbiter_saw(&stage->fake, "Reserve");
	fake_arbiter_saw(&stage->fake, "Reload");
}

TEST_WITH(a_record_older_than_the_answer_is_no_change, struct stage *stage)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "granted",
										NULL);
	int changes = 0;

	stage_tell(stage, 2, GPUARB_RECORD_GRANTED, 9);
	CHECK(gpuarb_lease_resize(lease, &want, 1) == 0 && gpuarb_lease_cus(lease, 0) == 20);
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == 0 && changes == 0);
	CHECK(gpuarb_lease_generation(lease) == 3 && gpuarb_lease_cus(lease, 0) == 20);
}

TEST_WITH(a_holder_outlives_the_daemon, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "granted",
										NULL);
	int changes = 0;

	/* The fake daemon has closed its copy of the other end by now. */
	CHECK(gpuarb_reload(stage->gpuarb) == 0);
	CHECK(kill(stage->fake.pid, SIGKILL) == 0);
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == 0 && changes == 0);
	stage_tell(stage, 2, GPUARB_RECORD_GRANTED, 20);
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == 1 && changes == 1);
}

TEST_WITH(records_of_unknown_versions_are_skipped_and_invalid_ones_rejected, struct stage *stage)
{
	static const uint32_t other[64] = { GPUARB_RECORD_VERSION + 1 };
	static char large[RECORD_MAX + 1];
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "granted",
										NULL);
	int size = 1 << 20;

	CHECK(send(stage->daemon_end, other, sizeof(other), 0) > 0);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 0);
	CHECK(send(stage->daemon_end, "x", 1, 0) == 1);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == -EPROTO);
	CHECK(strstr(gpuarb_last_error(stage->gpuarb), "lease 17"));

	large[0] = GPUARB_RECORD_VERSION;
	setsockopt(stage->daemon_end, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	CHECK(send(stage->daemon_end, large, sizeof(large), 0) > 0);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == -EPROTO);

	stage_tell(stage, 2, GPUARB_RECORD_GRANTED, 20);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 1);
}

TEST_WITH(the_end_is_reported_once_and_remains, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "granted",
										NULL);
	int changes = 0;

	stage_end(stage, GPUARB_RECORD_ENDED);
	stage_tell(stage, 9, GPUARB_RECORD_GRANTED, 20); /* ignored after the end */
	shutdown(stage->daemon_end, SHUT_RDWR);
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == -ENOENT && changes == 1);
	CHECK(strcmp(gpuarb_lease_state(lease), "ending") == 0);
	CHECK(strstr(gpuarb_last_error(stage->gpuarb), ": so it is"));
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == -ENOENT && changes == 1);
	CHECK(gpuarb_lease_wait(lease, 0) == -ENOENT);
}

TEST_WITH(a_holder_closed_without_a_record_is_a_reset, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = stage_begin(stage, "granted",
										NULL);

	shutdown(stage->daemon_end, SHUT_RDWR);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == -ECONNRESET);
	CHECK(strstr(gpuarb_last_error(stage->gpuarb), "lease 17"));
}

/* ---- waiting -------------------------------------------------------------------------- */

/* The fake daemon does not answer the first call for the lease. */
static struct gpuarb_lease *start(struct stage *stage, int process_fd)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;

	options.wait_usec = GPUARB_FOREVER;
	options.process_fd = process_fd;
	stage_set(stage, "waiting", "");
	CHECK(gpuarb_reserve_start(stage->gpuarb, &want, 1, &options, &lease) == 0);
	return lease;
}

TEST_WITH(a_waiting_lease_has_a_position_and_no_partitions, struct stage *stage)
{
	struct gpuarb_lease *lease;
	char **environment = NULL;
	unsigned position = 0;
	size_t words;

	lease = start(stage, -1);
	CHECK(strcmp(gpuarb_lease_state(lease), "waiting") == 0 && gpuarb_lease_id(lease) == 17);
	CHECK(strcmp(gpuarb_lease_reason(lease), "one is before it") == 0);
	CHECK(gpuarb_lease_deadline(lease) == 4711 && gpuarb_lease_generation(lease) == 0);
	CHECK(gpuarb_lease_position(lease, &position) == 0 && position == 2);
	CHECK(gpuarb_lease_partitions(lease) == 0 && !gpuarb_lease_gpu(lease, 0));
	CHECK(!gpuarb_lease_cu_mask(lease, 0, &words) && gpuarb_lease_cus(lease, 0) == 0);
	CHECK(gpuarb_lease_environment(lease, &environment) == -EBADFD && !environment);
	CHECK(strstr(gpuarb_last_error(stage->gpuarb), "lease 17"));

	CHECK(gpuarb_lease_wait(lease, 0) == -ETIMEDOUT);
	CHECK(strstr(gpuarb_last_error(stage->gpuarb), "waiting"));
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 0);
	gpuarb_lease_close(lease);
	CHECK(stage_holder_gone(stage));
}

TEST_WITH(waiting_can_continue_after_a_signal, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;

	lease = start(stage, -1);
	lib_rig_signals(5000);
	CHECK(gpuarb_lease_wait(lease, GPUARB_FOREVER) == -EINTR);
	lib_rig_signals(0);
	stage_tell(stage, 1, GPUARB_RECORD_GRANTED, 20);
	CHECK(gpuarb_lease_wait(lease, GPUARB_FOREVER) == 0);
	CHECK(strcmp(gpuarb_lease_state(lease), "granted") == 0);
	CHECK(gpuarb_lease_cus(lease, 0) == 20 && gpuarb_lease_generation(lease) == 1);
	CHECK(gpuarb_lease_deadline(lease) == GPUARB_FOREVER);
}

TEST_WITH(a_process_is_bound_when_the_lease_is_granted, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	lease = start(stage, fd);
	close(fd);
	stage_tell(stage, 1, GPUARB_RECORD_GRANTED, 20);
	fake_arbiter_saw(&stage->fake, "Reserve");
	fake_arbiter_saw(&stage->fake, "GetAll");
	lib_rig_signals(5000);
	/* The first call is not answered. */
	CHECK(gpuarb_lease_wait(lease, GPUARB_FOREVER) == -EINTR);
	lib_rig_signals(0);
	fake_arbiter_saw(&stage->fake, "Bind");
	CHECK(gpuarb_lease_wait(lease, GPUARB_FOREVER) == 0);
	fake_arbiter_saw(&stage->fake, "Bind");
	CHECK(gpuarb_lease_wait(lease, GPUARB_FOREVER) == 0 && gpuarb_reload(stage->gpuarb) == 0);
	fake_arbiter_saw(&stage->fake, "Reload");
}

TEST_WITH(reserve_waits_until_it_is_granted, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;

	stage_set(stage, "waiting", NULL);
	/* The records stay in the socket until they are read. */
	stage_tell(stage, 0, GPUARB_RECORD_WAITING, 0);
	stage_tell(stage, 3, GPUARB_RECORD_GRANTED, 20);
	lease = stage_reserve(stage, GPUARB_FOREVER);
	CHECK(strcmp(gpuarb_lease_state(lease), "granted") == 0);
	CHECK(gpuarb_lease_cus(lease, 0) == 20 && gpuarb_lease_generation(lease) == 3);
	CHECK(gpuarb_lease_partition(lease, 0)->n_shader_engines == 2);
	CHECK(gpuarb_lease_wait(lease, 0) == 0);
}

/* A failed request must close its holder. */
static void come_to_nothing(uint64_t wait_usec, int cause, int error, const char *name)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	_cleanup_(stage_strike) struct stage stage;

	stage_set(&stage, "waiting", NULL);
	if (cause >= 0)
		stage_end(&stage, (uint32_t)cause);
	if (cause < 0 && wait_usec != GPUARB_FOREVER)
		stage.gpuarb->answer_usec = LIB_RIG_LATE; /* waited in addition to the deadline */
	options.wait_usec = wait_usec;
	CHECK(gpuarb_reserve(stage.gpuarb, &want, 1, &options, &lease) == error && !lease);
	CHECK(strstr(gpuarb_last_error(stage.gpuarb), error == -EINTR ? "" : "lease 17"));
	CHECK(cause < 0 || strstr(gpuarb_last_error(stage.gpuarb), "so it is"));
	CHECK(strcmp(gpuarb_last_error_name(stage.gpuarb), name) == 0);
	CHECK(stage_holder_gone(&stage));
}

TEST(a_failed_wait_has_the_error_of_the_daemon)
{
	static const struct {
		int cause, error;
		const char *name;
	} ends[] = {
		{ GPUARB_RECORD_ENDED, -ENOENT, GPUARB_ERROR_NO_SUCH_LEASE },
		{ GPUARB_RECORD_TIMED_OUT, -ETIMEDOUT, GPUARB_ERROR_TIMED_OUT },
		{ GPUARB_RECORD_NEVER_FITS, -ENOSPC, GPUARB_ERROR_NEVER_FITS },
		{ GPUARB_RECORD_NOT_PERMITTED, -EACCES, GPUARB_ERROR_NOT_PERMITTED },
		{ GPUARB_RECORD_NO_SUCH_GPU, -ENODEV, GPUARB_ERROR_NO_SUCH_GPU },
		{ GPUARB_RECORD_SHUTDOWN, -ESHUTDOWN, GPUARB_ERROR_SHUTDOWN },
		{ GPUARB_RECORD_SHUTDOWN + 1, -ENOENT, GPUARB_ERROR_NO_SUCH_LEASE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		come_to_nothing(20000, ends[i].cause, ends[i].error, ends[i].name);
}

TEST_WITH(dispatch_returns_the_same_error_as_waiting, struct stage *stage)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;

	lease = start(stage, -1);
	stage_end(stage, GPUARB_RECORD_TIMED_OUT);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == -ETIMEDOUT);
	CHECK(strstr(gpuarb_last_error(stage->gpuarb), ": so it is"));
	CHECK(gpuarb_lease_wait(lease, 0) == -ETIMEDOUT);
	CHECK(strcmp(gpuarb_last_error_name(stage->gpuarb), GPUARB_ERROR_TIMED_OUT) == 0);
}

TEST(waiting_ends_when_the_daemon_forgets_the_deadline)
{
	come_to_nothing(20000, -1, -ETIMEDOUT, "");
}

TEST(reserve_does_not_wait_without_wait_usec)
{
	come_to_nothing(0, -1, -EBUSY, "");
	come_to_nothing(0, GPUARB_RECORD_NEVER_FITS, -ENOSPC, GPUARB_ERROR_NEVER_FITS);
}

TEST(a_signal_ends_the_wait_and_leaves_nothing_behind)
{
	lib_rig_signals(50000);
	come_to_nothing(GPUARB_FOREVER, -1, -EINTR, "");
	lib_rig_signals(0);
}

/* The lease ends before its properties are read. */
static void end_early(bool told, int error, const char *sentence)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	_cleanup_(stage_strike) struct stage stage;

	stage_set(&stage, "gone", NULL);
	if (told)
		stage_end(&stage, GPUARB_RECORD_NEVER_FITS);
	CHECK(gpuarb_reserve_start(stage.gpuarb, &want, 1, NULL, &lease) == error && !lease);
	CHECK(strstr(gpuarb_last_error(stage.gpuarb), sentence));
	CHECK(stage_holder_gone(&stage));
}

TEST(a_lease_that_has_ended_meanwhile_has_its_reason)
{
	end_early(true, -ENOSPC, "so it is");
	end_early(false, -ENOENT, "it is gone");
}
