/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The methods of a lease. */

#include "check.h"
#include "adapter.h"
#include "core/change/arbiter.h"

NEEDS(bus_missing);

#define LEASE_METHODS 7U

static sd_bus_message *method_of_lease(sd_bus *bus, const char *path, unsigned i)
{
	switch (i) {
	case 0: return call_lease(bus, path, "Release");
	case 1: return with_request(call_lease(bus, path, "Resize"), "cus=30");
	case 2: return with(call_lease(bus, path, "Acknowledge"), "t", UINT64_C(1));
	case 3: return with(call_lease(bus, path, "Bind"), "h", STDIN_FILENO);
	case 4: return call_lease(bus, path, "Activate");
	case 5: return call_lease(bus, path, "Deactivate");
	default: return with(call_lease(bus, path, "Revoke"), "ts", UINT64_C(0), "");
	}
}

TEST(a_waiting_call_for_a_lease_that_ended_gets_no_such_lease)
{
	_cleanup_(adapter_done) struct adapter a;
	sd_bus *owner = adapter_begin(&a, 0);

	for (unsigned i = 0; i < LEASE_METHODS; i++) {
		sd_bus *bus = adapter_connect(&a, 0); /* not known yet: its call waits */
		struct answer answer;
		char path[64];

		CHECK(is_fine(call_run(&a, ask(owner, "Reserve", 15))));
		snprintf(path, sizeof(path), GPUARB_PATH_LEASE "/%u", i + 1);
		call_send(method_of_lease(bus, path, i), &answer);
		settle(bus);
		adapter_take_calls(&a);
		arbiter_end(a.arbiter, ledger_find(a.arbiter, i + 1), RESULT_OK, "over");
		CHECK(arbiter_observe(a.arbiter, NULL, 0) == 0);
		adapter_carry_out(&a);
		adapter_run(&a, &answer.came);
		CHECK(is_error(answer.m, GPUARB_ERROR_NO_SUCH_LEASE, ""));
		leave(bus);
	}
}

TEST(only_the_owner_calls_the_methods_of_a_lease)
{
	_cleanup_(adapter_done) struct adapter a;
	sd_bus *owner = adapter_begin(&a, 0);
	sd_bus *user;

	user = adapter_connect(&a, STRANGER);
	CHECK(is_fine(call_run(&a, ask(owner, "Reserve", 15))));
	for (unsigned i = 0; i < LEASE_METHODS; i++)
		CHECK(is_error(call_run(&a, method_of_lease(user, GPUARB_PATH_LEASE "/1", i)),
			       GPUARB_ERROR_NOT_PERMITTED, ""));
}

TEST(the_owner_resizes_acknowledges_and_binds)
{
	static const char path[] = GPUARB_PATH_LEASE "/1";
	_cleanup_(adapter_done) struct adapter a;
	sd_bus *bus = adapter_begin(&a, STRANGER);

	CHECK(is_fine(call_run(&a, ask(bus, "Reserve", 15))));
	CHECK(is_fine(call_run(&a, with_request(call_lease(bus, path, "Resize"), "gpu=0 cus=30"))));
	CHECK(ledger_find(a.arbiter, 1)->generation == 2);
	CHECK(is_error(
		call_run(&a, with_request(call_lease(bus, path, "Resize"), "cus=30; name=x")),
		GPUARB_ERROR_INVALID_REQUEST, "\"name\""));
	CHECK(is_fine(call_run(&a, with(call_lease(bus, path, "Acknowledge"), "t", UINT64_C(2)))));
	CHECK(ledger_find(a.arbiter, 1)->acknowledged == 2);
	CHECK(is_fine(call_run(&a, with(call_lease(bus, path, "Bind"), "h", STDIN_FILENO))));
}

TEST(only_a_realtime_lease_is_activated_or_deactivated)
{
	static const char path[] = GPUARB_PATH_LEASE "/1";
	_cleanup_(adapter_done) struct adapter a;
	sd_bus *bus = adapter_begin(&a, 0);

	CHECK(is_fine(call_run(&a, ask(bus, "Reserve", 15))));
	CHECK(is_error(call_run(&a, call_lease(bus, path, "Activate")), GPUARB_ERROR_INVALID_STATE,
		       "besteffort"));
	CHECK(is_error(call_run(&a, call_lease(bus, path, "Deactivate")),
		       GPUARB_ERROR_INVALID_STATE, "besteffort"));
}

TEST(only_an_administrator_revokes_a_lease)
{
	static const char path[] = GPUARB_PATH_LEASE "/1";
	sd_bus *administrator;
	_cleanup_(adapter_done) struct adapter a;
	sd_bus *owner = adapter_begin(&a, STRANGER);

	administrator = adapter_connect(&a, 0);
	CHECK(is_fine(call_run(&a, ask(owner, "Reserve", 15))));
	CHECK(is_error(call_run(&a, method_of_lease(owner, path, 6)), GPUARB_ERROR_NOT_PERMITTED,
		       "org.gpuarb.Arbiter1.manage"));
	CHECK(ledger_find(a.arbiter, 1)->state == STATE_GRANTED);
	CHECK(is_fine(call_run(&a, with(call_lease(administrator, path, "Revoke"), "ts",
					UINT64_C(1000000), "a fan\nis\x01 broken"))));
	CHECK(ledger_find(a.arbiter, 1)->state == STATE_REVOKING);
	CHECK(ledger_find(a.arbiter, 1)->deadline_usec == 1000000);
	/* One line without control characters, whatever the administrator wrote. */
	CHECK(strstr(ledger_find(a.arbiter, 1)->reason, "a fan?is? broken"));
}
