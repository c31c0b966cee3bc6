/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The library during restarts of the daemon and of the bus. */

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "dbus/names.h"
#include "lib-rig.h"
#include "libgpuarb/connection/connection.h"
#include "libgpuarb/lease/lease-handle.h"
#include "private-bus.h"

/* Shared by all restarts of the fake daemon. */
struct fate {
	struct private_bus bus;
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
			return kill(fate->bus.pid, SIGKILL);
		_exit(0);
	}
	if (fate->refuse)
		return sd_bus_reply_method_errorf(call, fate->refuse, "no, not that");
	return sd_bus_reply_method_return(call, NULL);
}

static void bus_again(void *userdata)
{
	struct fate *fate = userdata;
	/* A copy: starting a bus writes to it in both processes. */
	struct private_bus bus = fate->bus;

	private_bus_kill(&bus);
	if (!private_bus_again(&bus))
		_exit(1);
	fate->bus = bus;
}

/* Starts the bus and opens the handle. NULL without a dbus-daemon. */
static struct fate *begin_fate(struct gpuarb **ret)
{
	struct fate *fate = mmap(NULL, sizeof(*fate), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	struct private_bus bus;

	CHECK(fate != MAP_FAILED);
	if (!private_bus_start(&bus)) {
		munmap(fate, sizeof(*fate));
		return NULL;
	}
	fate->bus = bus;
	*ret = lib_rig_open();
	return fate;
}

#define BEGIN(fate, gpuarb)                     \
	do {                                    \
		fate = begin_fate(&gpuarb);     \
		if (!fate)                      \
			SKIP("no dbus-daemon"); \
	} while (0)

static void end_fate(struct fate *fate, struct gpuarb *gpuarb)
{
	gpuarb_close(gpuarb);
	private_bus_stop(&fate->bus);
	munmap(fate, sizeof(*fate));
}

/* Runs a daemon that answers once and ends. */
static void come_and_go(struct fate *fate, struct gpuarb *gpuarb)
{
	struct fake_arbiter fake;

	fake_arbiter_start(fate->bus.address, answer, fate, &fake);
	gpuarb_reload(gpuarb);
	CHECK(fate->calls == 1);
	fake_arbiter_stop(&fake);
}

/* ---- daemon and bus return ------------------------------------------------------------ */

TEST(a_call_is_sent_again_when_the_daemon_dies_during_it)
{
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	struct fate *fate;

	BEGIN(fate, gpuarb);
	fate->deaths = 1;
	fake_arbiter_keep(fate->bus.address, answer, NULL, fate, &fake);
	CHECK(gpuarb_reload(gpuarb) == 0);
	CHECK(strcmp(gpuarb_last_error(gpuarb), "") == 0 && fate->calls == 2);
	CHECK(strcmp(gpuarb_last_error_name(gpuarb), "") == 0);
	fake_arbiter_saw(&fake, "Reload");
	fake_arbiter_saw(&fake, "Reload");
	fake_arbiter_stop(&fake);
	end_fate(fate, gpuarb);
}

TEST(a_call_waits_for_a_daemon_that_was_reached_before)
{
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	struct fate *fate;

	BEGIN(fate, gpuarb);
	come_and_go(fate, gpuarb);
	/* After the call has failed once. */
	fake_arbiter_start_late(fate->bus.address, answer, fate, &fake);
	CHECK(gpuarb_drain(gpuarb, "0", true) == 0);
	fake_arbiter_saw(&fake, "Drain");
	fake_arbiter_stop(&fake);
	end_fate(fate, gpuarb);
}

TEST(a_call_is_sent_again_when_the_bus_dies_during_it)
{
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	struct fate *fate;

	BEGIN(fate, gpuarb);
	fate->deaths = 1;
	fate->with_bus = true;
	fake_arbiter_keep(fate->bus.address, answer, bus_again, fate, &fake);
	CHECK(gpuarb_reload(gpuarb) == 0 && fate->calls == 2);
	CHECK(strcmp(gpuarb_last_error(gpuarb), "") == 0);
	fake_arbiter_stop(&fake);
	end_fate(fate, gpuarb);
}

TEST(a_call_is_sent_again_when_the_bus_dies_after_the_daemon)
{
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	struct fate *fate;

	BEGIN(fate, gpuarb);
	fate->deaths = 1;
	fake_arbiter_keep(fate->bus.address, answer, bus_again, fate, &fake);
	CHECK(gpuarb_reload(gpuarb) == 0 && fate->calls == 2);
	fake_arbiter_stop(&fake);
	end_fate(fate, gpuarb);
}

TEST(a_process_is_bound_by_the_restarted_daemon)
{
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	struct gpuarb_lease lease = { .fd = -1 };
	struct fate *fate;

	BEGIN(fate, gpuarb);
	fate->deaths = 1;
	lease.gpuarb = gpuarb;
	fake_arbiter_keep(fate->bus.address, answer, NULL, fate, &fake);
	CHECK(gpuarb_lease_bind(&lease, STDIN_FILENO) == 0 && fate->calls == 2);
	fake_arbiter_stop(&fake);
	end_fate(fate, gpuarb);
}

/* ---- daemon and bus do not return ----------------------------------------------------- */

TEST(call_fails_with_its_first_error_if_no_daemon_returns)
{
	struct gpuarb *gpuarb;
	struct fate *fate;

	BEGIN(fate, gpuarb);
	come_and_go(fate, gpuarb);
	gpuarb->reconnect_usec = LIB_RIG_SOON;
	CHECK(gpuarb_reload(gpuarb) == -ECONNREFUSED);
	CHECK(strstr(gpuarb_last_error(gpuarb), "; waited "));
	CHECK(strstr(gpuarb_last_error_name(gpuarb), "ServiceUnknown"));

	private_bus_kill(&fate->bus);
	CHECK(gpuarb_reload(gpuarb) == -ECONNREFUSED);
	CHECK(strstr(gpuarb_last_error(gpuarb), fate->bus.address));
	CHECK(strcmp(gpuarb_last_error_name(gpuarb), "") == 0);
	end_fate(fate, gpuarb);
}

TEST(a_call_is_sent_three_times_at_most)
{
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	struct fate *fate;

	BEGIN(fate, gpuarb);
	fate->deaths = 1000;
	fake_arbiter_keep(fate->bus.address, answer, NULL, fate, &fake);
	CHECK(gpuarb_reload(gpuarb) == -ECONNRESET && fate->calls == 3);
	CHECK(strstr(gpuarb_last_error_name(gpuarb), "NoReply"));
	fake_arbiter_stop(&fake);
	end_fate(fate, gpuarb);
}

TEST(a_connection_lost_in_a_repetition_is_a_reset)
{
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	struct fate *fate;

	BEGIN(fate, gpuarb);
	come_and_go(fate, gpuarb);
	fate->deaths = 2;
	gpuarb->reconnect_usec = LIB_RIG_LATE;
	fake_arbiter_start_late(fate->bus.address, answer, fate, &fake);
	CHECK(gpuarb_reload(gpuarb) == -ECONNRESET && fate->calls == 2);
	fake_arbiter_stop(&fake);
	end_fate(fate, gpuarb);
}

TEST(a_signal_ends_the_wait_for_daemon_or_bus)
{
	struct gpuarb *gpuarb;
	struct fate *fate;

	BEGIN(fate, gpuarb);
	come_and_go(fate, gpuarb);
	lib_rig_signals(20000);
	CHECK(gpuarb_reload(gpuarb) == -EINTR);
	CHECK(*gpuarb_last_error(gpuarb));
	private_bus_kill(&fate->bus);
	CHECK(gpuarb_reload(gpuarb) == -EINTR);
	CHECK(*gpuarb_last_error(gpuarb));
	lib_rig_signals(0);
	end_fate(fate, gpuarb);
}

/* ---- repetitions ---------------------------------------------------------------------- */

TEST(a_repeated_release_that_was_carried_out_succeeds)
{
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	struct fate *fate;

	BEGIN(fate, gpuarb);
	fate->deaths = 1;
	fate->refuse = GPUARB_ERROR_NO_SUCH_LEASE;
	fake_arbiter_keep(fate->bus.address, answer, NULL, fate, &fake);
	CHECK(gpuarb_release(gpuarb, 17) == 0 && fate->calls == 2);
	CHECK(strcmp(gpuarb_last_error(gpuarb), "") == 0);
	CHECK(strcmp(gpuarb_last_error_name(gpuarb), "") == 0);
	CHECK(gpuarb_release(gpuarb, 17) == -ENOENT && fate->calls == 3);
	CHECK(strcmp(gpuarb_last_error(gpuarb), "no, not that") == 0);
	fake_arbiter_stop(&fake);
	end_fate(fate, gpuarb);
}

TEST(a_release_that_waited_for_the_daemon_fails_for_an_unknown_lease)
{
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	struct fate *fate;

	BEGIN(fate, gpuarb);
	come_and_go(fate, gpuarb);
	fate->refuse = GPUARB_ERROR_NO_SUCH_LEASE;
	fake_arbiter_start_late(fate->bus.address, answer, fate, &fake);
	CHECK(gpuarb_release(gpuarb, 17) == -ENOENT);
	fake_arbiter_stop(&fake);
	end_fate(fate, gpuarb);
}

TEST(other_errors_of_a_repetition_are_returned)
{
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	struct fate *fate;

	BEGIN(fate, gpuarb);
	fate->deaths = 1;
	fate->refuse = GPUARB_ERROR_NOT_PERMITTED;
	fake_arbiter_keep(fate->bus.address, answer, NULL, fate, &fake);
	CHECK(gpuarb_release(gpuarb, 17) == -EACCES && fate->calls == 2);
	CHECK(strcmp(gpuarb_last_error(gpuarb), "no, not that") == 0);
	fake_arbiter_stop(&fake);
	end_fate(fate, gpuarb);
}
