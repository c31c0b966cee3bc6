/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What comes by a holder, and waiting for it. */

#include <errno.h>
#include <sys/socket.h>

#include "check.h"
#include "fake-lease.h"
#include "lib-rig.h"
#include "libgpuarb/internal.h"

static void count(struct gpuarb_lease *lease, void *userdata)
{
	CHECK(gpuarb_lease_id(lease) == 17);
	(*(int *)userdata)++;
}

/* ---- what comes by the holder --------------------------------------------------------- */

TEST(changes_come_by_the_holder)
{
	struct gpuarb_lease *lease;
	struct stage stage;
	int changes = 0;

	if (!stage_set(&stage, "granted", NULL))
		SKIP("no dbus-daemon");
	lease = stage_reserve(&stage, 0);
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == 0 && changes == 0);

	stage_tell(&stage, 2, GPUARB_RECORD_GRANTED, 20);
	stage_tell(&stage, 2, GPUARB_RECORD_GRANTED, 20); /* nothing new */
	stage_tell(&stage, 2, GPUARB_RECORD_REVOKING, 20);
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == 2 && changes == 2);
	CHECK(gpuarb_lease_generation(lease) == 2 && gpuarb_lease_cus(lease, 0) == 20);
	CHECK(strcmp(gpuarb_lease_state(lease), "revoking") == 0);
	CHECK(strcmp(gpuarb_lease_reason(lease), "so it is") == 0);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 0);
	gpuarb_lease_close(lease);
	stage_strike(&stage);
}

TEST(records_of_another_version_are_skipped_and_nonsense_is_told)
{
	static const uint32_t other[64] = { GPUARB_RECORD_VERSION + 1 };
	static char large[RECORD_MAX + 1];
	struct gpuarb_lease *lease;
	struct stage stage;
	int size = 1 << 20;

	if (!stage_set(&stage, "granted", NULL))
		SKIP("no dbus-daemon");
	lease = stage_reserve(&stage, 0);
	CHECK(send(stage.daemon_end, other, sizeof(other), 0) > 0);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 0);
	CHECK(send(stage.daemon_end, "x", 1, 0) == 1);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == -EPROTO);
	CHECK(strstr(gpuarb_last_error(stage.gpuarb), "no record"));

	large[0] = GPUARB_RECORD_VERSION;
	setsockopt(stage.daemon_end, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	CHECK(send(stage.daemon_end, large, sizeof(large), 0) > 0);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == -EPROTO);

	stage_tell(&stage, 2, GPUARB_RECORD_GRANTED, 20);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == 1);
	gpuarb_lease_close(lease);
	stage_strike(&stage);
}

TEST(the_end_is_told_first_and_stays)
{
	struct gpuarb_lease *lease;
	struct stage stage;
	int changes = 0;

	if (!stage_set(&stage, "granted", NULL))
		SKIP("no dbus-daemon");
	lease = stage_reserve(&stage, 0);
	stage_tell(&stage, 2, GPUARB_RECORD_ENDING, 0);
	shutdown(stage.daemon_end, SHUT_RDWR);
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == -ENOENT && changes == 1);
	CHECK(strcmp(gpuarb_lease_state(lease), "ending") == 0);
	CHECK(strstr(gpuarb_last_error(stage.gpuarb), "lease 17 has ended: so it is"));
	CHECK(gpuarb_lease_dispatch(lease, count, &changes) == -ENOENT && changes == 1);
	CHECK(gpuarb_lease_wait(lease, 0) == -ENOENT);
	gpuarb_lease_close(lease);
	stage_strike(&stage);
}

TEST(an_end_without_a_word_is_a_reset)
{
	struct gpuarb_lease *lease;
	struct stage stage;

	if (!stage_set(&stage, "granted", NULL))
		SKIP("no dbus-daemon");
	lease = stage_reserve(&stage, 0);
	shutdown(stage.daemon_end, SHUT_RDWR);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == -ECONNRESET);
	CHECK(strstr(gpuarb_last_error(stage.gpuarb), "closed the holder of lease 17"));
	gpuarb_lease_close(lease);
	stage_strike(&stage);
}

/* ---- waiting -------------------------------------------------------------------------- */

TEST(reserve_waits_until_it_is_granted)
{
	struct gpuarb_lease *lease;
	struct stage stage;

	if (!stage_set(&stage, "waiting", NULL))
		SKIP("no dbus-daemon");
	stage_tell(&stage, 0, GPUARB_RECORD_WAITING, 0); /* they lie in the socket until it looks */
	stage_tell(&stage, 3, GPUARB_RECORD_GRANTED, 20);
	lease = stage_reserve(&stage, GPUARB_FOREVER);
	CHECK(strcmp(gpuarb_lease_state(lease), "granted") == 0);
	CHECK(gpuarb_lease_cus(lease, 0) == 20 && gpuarb_lease_generation(lease) == 3);
	CHECK(gpuarb_lease_partition(lease, 0)->n_shader_engines == 2); /* read as a whole */
	fake_arbiter_saw(&stage.fake, "Reserve");
	fake_arbiter_saw(&stage.fake, "GetAll");
	CHECK(gpuarb_lease_wait(lease, 0) == 0);
	gpuarb_lease_close(lease);
	stage_strike(&stage);
}

/* The holder of a request that came to nothing is closed. */
static void come_to_nothing(uint64_t wait_usec, int state, int error)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	struct stage stage;

	if (!stage_set(&stage, "waiting", NULL))
		SKIP("no dbus-daemon");
	if (state >= 0)
		stage_tell(&stage, 0, (uint32_t)state, 0);
	options.wait_usec = wait_usec;
	CHECK(gpuarb_reserve(stage.gpuarb, &want, 1, &options, &lease) == error && !lease);
	CHECK(strstr(gpuarb_last_error(stage.gpuarb), error == -EINTR ? "signal" : "lease 17"));
	CHECK(stage_holder_gone(&stage));
	stage_strike(&stage);
}

TEST(what_was_not_granted_in_time_is_given_up)
{
	come_to_nothing(20000, -1, -ETIMEDOUT);
	come_to_nothing(0, GPUARB_RECORD_ENDING, -ETIMEDOUT); /* the daemon was faster */
}

TEST(a_request_that_the_daemon_ends_is_no_lease)
{
	come_to_nothing(GPUARB_FOREVER, GPUARB_RECORD_ENDING, -ENOENT);
}

TEST(a_signal_ends_the_wait_and_leaves_nothing)
{
	lib_rig_signals(50000);
	come_to_nothing(GPUARB_FOREVER, -1, -EINTR);
	lib_rig_signals(0);
}
