/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Kills the shipped daemon at the n-th visible step of an operation of lending, for every n, and
 * starts it again: what it has published is true, and no CU is granted that a borrower still has.
 */

#include "check.h"
#include "crash-rig.h"
#include "lend-live.h"

NEEDS(daemon_missing);

static sd_bus *crowd;
static bool told; /* the operation was answered */

static void configure(const struct rig *rig)
{
	lend_configure(rig, "activate-grace = 1h\n" GROW_NEVER, "report");
	crowd = NULL;
}

static struct live_lease *rt(struct stage *s)
{
	return &s->known[0].lease;
}

static struct live_lease *borrower(struct stage *s)
{
	return &s->known[1].lease;
}

static bool is(struct stage *s, const struct live_lease *lease, const char *state)
{
	return is_in_state(s->bus, lease, state);
}

static bool are_apart(struct stage *s)
{
	struct book_part a = part_of(s->bus, rt(s)), b = part_of(s->bus, borrower(s));

	return apart(&a, &b);
}

/* ---- operations -------------------------------------------------------------------------- */

static void take_leases(struct stage *s)
{
	if (!crowd)
		crowd = rig_connect(&s->rig, STRANGER);
	*rt(s) = keep_inactive(s->bus, 15);
	*borrower(s) = borrow(crowd);
}

static void take_and_activate(struct stage *s)
{
	take_leases(s);
	CHECK(is_fine(activate(s->bus, rt(s))));
}

static void take_and_finish(struct stage *s)
{
	take_and_activate(s);
	CHECK(is_fine(acknowledge(crowd, borrower(s), 2)));
	CHECK(is(s, rt(s), "granted"));
}

static void activate_it(struct stage *s)
{
	told = crash_done(call_lease(s->bus, rt(s)->path, "Activate"));
}

static void deactivate_it(struct stage *s)
{
	told = crash_done(call_lease(s->bus, rt(s)->path, "Deactivate"));
}

static void acknowledge_it(struct stage *s)
{
	told = crash_done(
		with(call_lease(crowd, borrower(s)->path, "Acknowledge"), "t", UINT64_C(2)));
}

static void revoke_it(struct stage *s)
{
	told = crash_done(
		with(call_lease(s->bus, borrower(s)->path, "Revoke"), "ts", HOUR_USEC, "x"));
}

/* ---- after the restart -------------------------------------------------------------- */

/* From any state: the lease is granted when the borrower acknowledges its present mask. */
static void finish(struct stage *s)
{
	if (is(s, rt(s), "inactive"))
		CHECK(is_fine(activate(s->bus, rt(s))));
	if (!is(s, rt(s), "granted")) {
		CHECK(is(s, rt(s), "activating"));
		CHECK(is_fine(acknowledge(crowd, borrower(s),
					  lease_number(s->bus, borrower(s), "Generation"))));
	}
	CHECK(is(s, rt(s), "granted") && are_apart(s));
	CHECK(lease_number(s->bus, borrower(s), "Generation") == 2);
	CHECK(lease_number(s->bus, borrower(s), "Deadline") == UINT64_MAX);
}

static void check_activated(struct stage *s)
{
	CHECK(is(s, rt(s), "activating") || (!told && is(s, rt(s), "inactive")));
	finish(s);
}

/* A lease whose holder got a record with the state granted is granted. */
static void check_acknowledged(struct stage *s)
{
	struct pollfd ready = { .fd = rt(s)->holder, .events = POLLIN };
	struct live_record record;
	bool was_granted = false;

	while (poll(&ready, 1, 0) > 0 && next_record(rt(s)->holder, &record))
		was_granted |= record.record.state == GPUARB_RECORD_GRANTED;
	CHECK(is(s, rt(s), "granted") || (!told && !was_granted));
	finish(s);
}

static void check_deactivated(struct stage *s)
{
	CHECK(is(s, rt(s), "inactive") || (!told && is(s, rt(s), "granted")));
	finish(s); /* nobody grew meanwhile: nobody has to answer */
}

static void check_revoked(struct stage *s)
{
	uint64_t generation = lease_number(s->bus, borrower(s), "Generation");

	if (is(s, borrower(s), "granted")) {
		CHECK(!told && generation == 1);
		return;
	}
	CHECK(is(s, borrower(s), "revoking") && generation == 2);
	CHECK(lease_says(s->bus, borrower(s)->path, "Reason", "x"));
	CHECK(lease_number(s->bus, borrower(s), "Deadline") > boottime_usec());
}

/* ---- the tests --------------------------------------------------------------------------- */

#define CUT(...)                                                                         \
	CRASH_EVERYWHERE(.hardware = LEND_GPU, .configure = configure, .compares = true, \
			 __VA_ARGS__)

TEST_CASE(a_crash_during_activate_is_recovered,
	  CUT(.before = take_leases, .run = activate_it, .after = check_activated));
TEST_CASE(a_crash_during_the_acknowledgement_of_a_borrower_is_recovered,
	  CUT(.before = take_and_activate, .run = acknowledge_it, .after = check_acknowledged));
TEST_CASE(a_crash_during_deactivate_is_recovered,
	  CUT(.before = take_and_finish, .run = deactivate_it, .after = check_deactivated));
TEST_CASE(a_crash_during_revoke_is_recovered,
	  CUT(.before = take_leases, .run = revoke_it, .after = check_revoked));
