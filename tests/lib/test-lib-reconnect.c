/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The library during restarts of the daemon and of the bus. */

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "dbus/names.h"
#include "lib-rig.h"
#include "libgpuarb/lease/lease-handle.h"
#include "rig.h"

NEEDS(rig_bus_missing);

/* Shared by all restarts of the fake daemon. */
struct fate {
	struct rig bus;
	struct gpuarb *gpuarb;
	struct fake_arbiter fake;
	unsigned calls;     /* received */
	unsigned deaths;    /* the daemon dies at that many first calls */
	bool with_bus;      /* the bus dies instead, and the daemon with it */
	const char *refuse; /* the error of further calls */
};

static int answer(sd_bus_message *call, void *userdata)
{
	struct fate *fate = userdata;

	if (fate->calls++ < fate->deaths) {
		if (fate->with_bus)
			return kill(fate->bus.bus, SIGKILL);
		_exit(0);
	}
	if (fate->refuse)
		return sd_bus_reply_method_errorf(call, fate->refuse, "no, not that");
	return sd_bus_reply_method_return(call, NULL);
}

static void bus_again(void *userdata)
{
	struct fate *fate = userdata;

	rig_kill_bus(&fate->bus);
	rig_start_bus(&fate->bus);
}

/* Starts the bus and opens the handle. */
static struct fate *begin_fate(void)
{
	struct fate *fate = mmap(NULL, sizeof(*fate), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(fate != MAP_FAILED);
	rig_new(&fate->bus);
	fate->gpuarb = lib_rig_open();
	return fate;
}

static void end_fate(struct fate **fate)
{
	if ((*fate)->fake.pid > 0)
		fake_arbiter_stop(&(*fate)->fake);
	gpuarb_close((*fate)->gpuarb);
	rig_done(&(*fate)->bus);
	munmap(*fate, sizeof(**fate));
}

/* Runs a daemon that answers once and ends. */
static void come_and_go(struct fate *fate)
{
	struct fake_arbiter fake;

	fake_arbiter_start(fate->bus.address, answer, fate, &fake);
	gpuarb_reload(fate->gpuarb);
	CHECK(fate->calls == 1);
	fake_arbiter_stop(&fake);
}

/* ---- daemon and bus return ------------------------------------------------------------ */

FIXTURE(struct fate, fate, fate = begin_fate(), end_fate(&fate));

TEST_WITH(a_call_is_sent_again_when_the_daemon_dies_during_it, struct fate *fate)
{
	fate->deaths = 1;
	fake_arbiter_keep(fate->bus.address, answer, NULL, fate, &fate->fake);
	CHECK(gpuarb_reload(fate->gpuarb) == 0);
	CHECK(strcmp(gpuarb_last_error(fate->gpuarb), "") == 0 && fate->calls == 2);
	CHECK(strcmp(gpuarb_last_error_name(fate->gpuarb), "") == 0);
	fake_arbiter_saw(&fate->fake, "Reload");
	fake_arbiter_saw(&fate->fake, "Reload");
}

TEST_WITH(a_call_waits_for_a_daemon_that_was_reached_before, struct fate *fate)
{
	come_and_go(fate);
	/* After the call has failed once. */
	fake_arbiter_start_late(fate->bus.address, answer, fate, &fate->fake);
	CHECK(gpuarb_drain(fate->gpuarb, "0", true) == 0);
	fake_arbiter_saw(&fate->fake, "Drain");
}

TEST_WITH(a_call_is_sent_again_when_the_bus_dies_during_it, struct fate *fate)
{
	fate->deaths = 1;
	fate->with_bus = true;
	fake_arbiter_keep(fate->bus.address, answer, bus_again, fate, &fate->fake);
	CHECK(gpuarb_reload(fate->gpuarb) == 0 && fate->calls == 2);
	CHECK(strcmp(gpuarb_last_error(fate->gpuarb), "") == 0);
}

TEST_WITH(a_call_is_sent_again_when_the_bus_dies_after_the_daemon, struct fate *fate)
{
	fate->deaths = 1;
	fake_arbiter_keep(fate->bus.address, answer, bus_again, fate, &fate->fake);
	CHECK(gpuarb_reload(fate->gpuarb) == 0 && fate->calls == 2);
}

TEST_WITH(a_process_is_bound_by_the_restarted_daemon, struct fate *fate)
{
	struct gpuarb_lease lease = { .fd = -1 };

	fate->deaths = 1;
	lease.gpuarb = fate->gpuarb;
	fake_arbiter_keep(fate->bus.address, answer, NULL, fate, &fate->fake);
	CHECK(gpuarb_lease_bind(&lease, STDIN_FILENO) == 0 && fate->calls == 2);
}

/* ---- daemon and bus do not return ----------------------------------------------------- */

TEST_WITH(call_fails_with_its_first_error_if_no_daemon_returns, struct fate *fate)
{
	come_and_go(fate);
	fate->gpuarb->reconnect_usec = LIB_RIG_SOON;
	CHECK(gpuarb_reload(fate->gpuarb) == -ECONNREFUSED);
	CHECK(strstr(gpuarb_last_error(fate->gpuarb), "; waited "));
	CHECK(strstr(gpuarb_last_error_name(fate->gpuarb), "ServiceUnknown"));

	rig_kill_bus(&fate->bus);
	CHECK(gpuarb_reload(fate->gpuarb) == -ECONNREFUSED);
	CHECK(strstr(gpuarb_last_error(fate->gpuarb), fate->bus.address));
	CHECK(strcmp(gpuarb_last_error_name(fate->gpuarb), "") == 0);
}

TEST_WITH(a_call_is_sent_three_times_at_most, struct fate *fate)
{
	fate->deaths = 1000;
	fake_arbiter_keep(fate->bus.address, answer, NULL, fate, &fate->fake);
	CHECK(gpuarb_reload(fate->gpuarb) == -ECONNRESET && fate->calls == 3);
	CHECK(strstr(gpuarb_last_error_name(fate->gpuarb), "NoReply"));
}

TEST_WITH(a_connection_lost_in_a_repetition_is_a_reset, struct fate *fate)
{
	come_and_go(fate);
	fate->deaths = 2;
	fate->gpuarb->reconnect_usec = LIB_RIG_LATE;
	fake_arbiter_start_late(fate->bus.address, answer, fate, &fate->fake);
	CHECK(gpuarb_reload(fate->gpuarb) == -ECONNRESET && fate->calls == 2);
}

TEST_WITH(a_signal_ends_the_wait_for_daemon_or_bus, struct fate *fate)
{
	come_and_go(fate);
	lib_rig_signals(20000);
	CHECK(gpuarb_reload(fate->gpuarb) == -EINTR);
	CHECK(*gpuarb_last_error(fate->gpuarb));
	rig_kill_bus(&fate->bus);
	CHECK(gpuarb_reload(fate->gpuarb) == -EINTR);
	CHECK(*gpuarb_last_error(fate->gpuarb));
	lib_rig_signals(0);
}

/* ---- repetitions ---------------------------------------------------------------------- */

TEST_WITH(a_repeated_release_that_was_carried_out_succeeds, struct fate *fate)
{
	fate->deaths = 1;
	fate->refuse = GPUARB_ERROR_NO_SUCH_LEASE;
	fake_arbiter_keep(fate->bus.address, answer, NULL, fate, &fate->fake);
	CHECK(gpuarb_release(fate->gpuarb, 17) == 0 && fate->calls == 2);
	CHECK(strcmp(gpuarb_last_error(fate->gpuarb), "") == 0);
	CHECK(strcmp(gpuarb_last_error_name(fate->gpuarb), "") == 0);
	CHECK(gpuarb_release(fate->gpuarb, 17) == -ENOENT && fate->calls == 3);
	CHECK(strcmp(gpuarb_last_error(fate->gpuarb), "no, not that") == 0);
}

TEST_WITH(a_release_that_waited_for_the_daemon_fails_for_an_unknown_lease, struct fate *fate)
{
	come_and_go(fate);
	fate->refuse = GPUARB_ERROR_NO_SUCH_LEASE;
	fake_arbiter_start_late(fate->bus.address, answer, fate, &fate->fake);
	CHECK(gpuarb_release(fate->gpuarb, 17) == -ENOENT);
}

TEST_WITH(other_errors_of_a_repetition_are_returned, struct fate *fate)
{
	fate->deaths = 1;
	fate->refuse = GPUARB_ERROR_NOT_PERMITTED;
	fake_arbiter_keep(fate->bus.address, answer, NULL, fate, &fate->fake);
	CHECK(gpuarb_release(fate->gpuarb, 17) == -EACCES && fate->calls == 2);
	CHECK(strcmp(gpuarb_last_error(fate->gpuarb), "no, not that") == 0);
}
