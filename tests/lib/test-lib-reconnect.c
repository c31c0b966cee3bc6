/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The library with a daemon that restarts, and with a bus that does. */

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "dbus/names.h"
#include "lib-rig.h"
#include "libgpuarb/connection/open.h"
#include "libgpuarb/lease/lease-handle.h"
#include "private-bus.h"

/* What every life of the fake daemon knows. */
struct fate {
	struct private_bus bus;
	unsigned calls;     /* so many came */
	unsigned deaths;    /* at the first so many it dies */
	bool with_bus;      /* or the bus does, and it with that */
	const char *refuse; /* the error that a call gets */
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
	struct private_bus bus = fate->bus; /* starting one writes to it on both sides of a fork */

	private_bus_kill(&bus);
	if (!private_bus_again(&bus))
		_exit(1);
	fate->bus = bus;
}

/* Before any other life: the bus, and the handle on it. NULL without a dbus-daemon. */
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

/* A daemon that answers once and goes. */
static void come_and_go(struct fate *fate, struct gpuarb *gpuarb)
{
	struct fake_arbiter fake;

	fake_arbiter_start(fate->bus.address, answer, fate, &fake);
	gpuarb_reload(gpuarb);
	CHECK(fate->calls == 1);
	fake_arbiter_stop(&fake);
}

/* ---- they come back ------------------------------------------------------------------- */

TEST(a_call_survives_a_daemon_that_dies_in_the_middle)
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

TEST(a_call_waits_for_a_daemon_that_was_there)
{
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	struct fate *fate;

	BEGIN(fate, gpuarb);
	come_and_go(fate, gpuarb);
	fake_arbiter_start_late(fate->bus.address, answer, fate, &fake); /* when it is missed */
	CHECK(gpuarb_drain(gpuarb, "0", true) == 0);
	fake_arbiter_saw(&fake, "Drain");
	fake_arbiter_stop(&fake);
	end_fate(fate, gpuarb);
}

TEST(a_call_survives_a_bus_that_dies_in_the_middle)
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

TEST(a_call_survives_a_bus_that_goes_after_the_daemon)
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

TEST(a_process_is_bound_by_the_daemon_that_came_after)
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

/* ---- they do not ---------------------------------------------------------------------- */

TEST(what_stays_away_is_given_up_as_what_it_was)
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

TEST(a_daemon_that_dies_of_a_call_does_not_get_it_for_ever)
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

TEST(a_call_that_was_cut_off_later_may_have_been_carried_out)
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

TEST(a_signal_ends_the_waiting_for_either)
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

TEST(a_release_that_was_done_before_the_answer_was_lost_is_done)
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

TEST(a_release_that_only_waited_for_the_daemon_was_not_done)
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

TEST(any_other_answer_to_a_repetition_is_the_answer)
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
