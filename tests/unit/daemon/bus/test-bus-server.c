/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Answers that wait until the holder is stored; the loss of the connection; the size of the store as
 * systemd tells it. */

#include <poll.h>
#include <sys/prctl.h>

#include "check.h"
#include "core/ledger/lease.h"
#include "core/ledger/ledger.h"
#include "live.h"

NEEDS(bus_missing);

static int holder_of(sd_bus_message *m)
{
	const char *path, *state;
	int holder;

	CHECK(sd_bus_message_read(m, "ohs", &path, &holder, &state) >= 0);
	return holder;
}

/* A call whose answer the host holds back. */
static void send_held(struct adapter *a, sd_bus_message *m, struct answer *answer)
{
	a->call = NULL;
	call_send(m, answer);
	AWAIT_LOOP(a->event, a->call);
}

TEST(an_answer_is_sent_when_the_holder_is_stored)
{
	struct answer answer;
	_cleanup_(adapter_done) struct adapter a;
	sd_bus *bus = adapter_begin(&a, 0);

	a.hold = true;
	send_held(&a, ask(bus, "Reserve", 15), &answer);
	CHECK(is_fine(
		call_run(&a, get(bus, GPUARB_PATH_LEASE "/1", GPUARB_INTERFACE_LEASE, "Id"))));
	CHECK(!answer.came); /* what was asked later has been answered */
	a.settled(a.call, 0);
	adapter_run(&a, &answer.came);
	CHECK(holder_of(answer.m) >= 0);
	sd_bus_message_unref(answer.m);

	send_held(&a, with(call_lease(bus, GPUARB_PATH_LEASE "/1", "Bind"), "h", STDIN_FILENO),
		  &answer);
	a.settled(a.call, 0);
	adapter_run(&a, &answer.came);
	CHECK(is_fine(answer.m));
}

TEST(a_stopping_daemon_answers_waiting_calls_with_shutdown)
{
	struct answer answer;
	_cleanup_(adapter_done) struct adapter a;
	sd_bus *bus = adapter_begin(&a, 0);

	a.hold = true;
	send_held(&a, ask(bus, "Reserve", 15), &answer);
	a.settled(a.call, -ECANCELED);
	adapter_run(&a, &answer.came);
	CHECK(is_error(answer.m, GPUARB_ERROR_SHUTDOWN, ""));

	send_held(&a, ask(bus, "Reserve", 15), &answer);
	a.settled(a.call, -ECONNREFUSED); /* nobody keeps anything: a lease like any other */
	adapter_run(&a, &answer.came);
	CHECK(is_fine(answer.m));
	CHECK(a.abandoned == 0);
	a.settle_fails = -ENOMEM;
	CHECK(!is_fine(call_run(&a, ask(bus, "Reserve", 15))));
	CHECK(a.abandoned == 3);
	CHECK(!is_fine(call_run(
		&a, with(call_lease(bus, GPUARB_PATH_LEASE "/1", "Bind"), "h", STDIN_FILENO))));
	CHECK(a.abandoned == 3);
}

/* A Reserve that waits for borrowers, until the test grants its lease. */
static struct lease *reserve_later(struct adapter *a, sd_bus *bus, struct answer *answer)
{
	size_t n = a->arbiter->n_leases;

	a->defer = true;
	call_send(ask(bus, "Reserve", 4), answer);
	AWAIT_LOOP(a->event, a->arbiter->n_leases > n);
	CHECK(!answer->came);
	return a->arbiter->leases[n];
}

static void grant(struct adapter *a, struct lease *lease, const struct answer *answer)
{
	lease->state = STATE_GRANTED;
	bus_tell_lease(a->bus, lease, TOUCH_CHANGED);
	adapter_run(a, &answer->came);
}

TEST(lease_whose_late_answer_cannot_be_made_is_abandoned)
{
	_cleanup_(adapter_done) struct adapter a;
	sd_bus *bus = adapter_begin(&a, 0);
	struct answer answer;
	struct lease *lease;

	lease = reserve_later(&a, bus, &answer);
	grant(&a, lease, &answer);
	CHECK(is_fine(answer.m) && a.abandoned == 0);
	lease = reserve_later(&a, bus, &answer);
	a.settle_fails = -ENOMEM;
	grant(&a, lease, &answer);
	CHECK(is_error(answer.m, SD_BUS_ERROR_NO_MEMORY, "") && a.abandoned == lease->id);
	lease = reserve_later(&a, bus, &answer);
	bus_refuse_deferred(a.bus, RESULT_NOT_SAVED, "the disk is full");
	adapter_run(&a, &answer.came);
	CHECK(is_error(answer.m, GPUARB_ERROR_NOT_SAVED, "") && a.abandoned == lease->id);
}

TEST(connection_stays_when_the_loop_begins_late)
{
	_cleanup_(adapter_done) struct adapter a;
	uint64_t begin = boottime_usec();
	sd_bus *bus;

	/* sd-bus gives up answers after 25 s otherwise. */
	CHECK(setenv("SYSTEMD_BUS_TIMEOUT", "1s", 1) == 0);
	adapter_new(&a);
	AWAIT_STATE(boottime_usec() - begin >= 2000000); /* the time is the subject */
	CHECK(unsetenv("SYSTEMD_BUS_TIMEOUT") == 0);
	bus = adapter_connect(&a, 0);
	CHECK(is_fine(call_run(&a, get(bus, GPUARB_PATH, GPUARB_INTERFACE, "Version"))));
	CHECK(!a.disconnected);
}

TEST(an_answer_without_a_connection_closes_its_holder)
{
	struct answer answer;
	_cleanup_(adapter_done) struct adapter a;
	sd_bus *bus = adapter_begin(&a, 0);

	a.hold = true;
	send_held(&a, ask(bus, "Reserve", 15), &answer);
	rig_signal_bus(&a.rig, SIGKILL);
	AWAIT_LOOP(a.event, a.disconnected);
	a.bus = bus_free(a.bus);
	a.settled(a.call, 0); /* nobody hears it, and nothing is kept: sanitizers look */
	leave(bus);
	sd_bus_message_unref(answer.m);
}

static int store_max_property(sd_bus *, const char *, const char *, const char *,
			      sd_bus_message *reply, void *, sd_bus_error *)
{
	return sd_bus_message_append(reply, "u", UINT32_C(4200));
}

static const sd_bus_vtable scope[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_VTABLE_END,
};
static const sd_bus_vtable service[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("FileDescriptorStoreMax", "u", store_max_property, 0, 0),
	SD_BUS_VTABLE_END,
};

/* Runs systemd in a child process, which serves while the parent waits for its answers. interface: of
 * the unit of the parent. */
static pid_t serve_systemd(const struct rig *rig, const char *interface,
			   const sd_bus_vtable *vtable)
{
	int ready[2];
	char byte;
	pid_t pid;

	CHECK(pipe(ready) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		sd_bus *bus = rig_connect(rig, 0);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CHECK(sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/systemd1/unit/self",
					       interface, vtable, NULL) >= 0);
		CHECK(sd_bus_request_name(bus, "org.freedesktop.systemd1", 0) >= 0);
		CHECK(write(ready[1], "", 1) == 1);
		for (;;)
			if (sd_bus_process(bus, NULL) == 0)
				sd_bus_wait(bus, UINT64_MAX);
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

TEST(the_size_of_the_store_is_read_from_systemd)
{
	_cleanup_(adapter_done) struct adapter a;
	unsigned max = 0;
	pid_t systemd;

	adapter_new(&a);
	CHECK(bus_store_max(a.bus, &max) < 0 && max == 0); /* there is none */

	systemd = serve_systemd(&a.rig, "org.freedesktop.systemd1.Scope", scope);
	CHECK(bus_store_max(a.bus, &max) < 0 && max == 0);
	end_process(systemd);

	systemd = serve_systemd(&a.rig, "org.freedesktop.systemd1.Service", service);
	CHECK(bus_store_max(a.bus, &max) == 0 && max == 4200);
	end_process(systemd);
}
