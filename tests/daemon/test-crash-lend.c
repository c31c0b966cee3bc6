/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Kills the shipped daemon at the n-th visible step of an operation of lending, for every n, and
 * starts it again: what it has published is true, and no CU is granted that a borrower still has.
 */

#include "check.h"
#include "crash-rig.h"
#include "lend-live.h"

NEEDS(daemon_missing);

struct cutting;

struct cut {
	struct stage stage;
	const struct cutting *cutting;
	sd_bus *crowd;
	struct live_lease rt, borrower;
	bool told; /* the operation was answered */
};

struct cutting {
	void (*before)(struct cut *cut);
	sd_bus_message *(*make)(const struct cut *cut); /* the call that is cut off */
	void (*check)(struct cut *cut);                 /* with the next daemon */
};

static void arrive(struct cut *cut, const char *settings)
{
	struct stage *s = &cut->stage;

	memset(cut, 0, sizeof(*cut));
	rig_new(&s->rig);
	lend_configure(&s->rig, settings, "report");
	rig_start_managed(&s->rig, LEND_GPU, "--store-max=64");
	crash_connect(s);
	cut->crowd = rig_connect(&s->rig, STRANGER);
}

/* Closes all holders: nothing is left. */
static void give_up_all(struct cut *cut)
{
	struct stage *s = &cut->stage;

	close(cut->rt.holder);
	close(cut->borrower.holder);
	do
		book_read(s->bus, &s->book);
	while (!book_is_empty(&s->book));
	CHECK(no_file_is_left(s));
	rig_await_stored(&s->rig, 0);
}

/* Returns whether the daemon was killed at that step. */
static bool try_at(void *data, unsigned at)
{
	struct cut *cut = data;
	const struct cutting *cutting = cut->cutting;
	struct stage *s = &cut->stage;
	bool killed;

	cut->rt = keep_inactive(s->bus, 15);
	cut->borrower = borrow(cut->crowd);
	if (cutting->before)
		cutting->before(cut);
	ping(s);
	if (!crash_arm(s, at))
		return false;
	cut->told = crash_done(cutting->make(cut));
	ping(s);
	killed = crash_disarm(s, at);
	if (killed)
		crash_start_next(s, 0);
	else
		rig_say(&s->rig, "go");
	cutting->check(cut);
	give_up_all(cut);
	return killed;
}

static void cut_everywhere(const char *settings, const struct cutting *cutting)
{
	static struct cut cut;
	unsigned points;

	arrive(&cut, settings);
	cut.cutting = cutting;
	points = crash_at_each(&cut.stage, try_at, &cut);
	rig_done(&cut.stage.rig);
	if (cut.stage.untraceable)
		SKIP("processes cannot be traced here");
	printf("killed at %u points\n", points);
	CHECK(points > 0);
}

static bool is(const struct cut *cut, const struct live_lease *lease, const char *state)
{
	return is_in_state(cut->stage.bus, lease, state);
}

static bool are_apart(const struct cut *cut)
{
	struct book_part a = part_of(cut->stage.bus, &cut->rt);
	struct book_part b = part_of(cut->stage.bus, &cut->borrower);

	return apart(&a, &b);
}

/* ---- operations -------------------------------------------------------------------------- */

static void activate_it(struct cut *cut)
{
	CHECK(is_fine(activate(cut->stage.bus, &cut->rt)));
}

static void activate_all_of_it(struct cut *cut)
{
	activate_it(cut);
	CHECK(is_fine(acknowledge(cut->crowd, &cut->borrower, 2)));
	CHECK(is(cut, &cut->rt, "granted"));
}

static sd_bus_message *make_activate(const struct cut *cut)
{
	return call_lease(cut->stage.bus, cut->rt.path, "Activate");
}

static sd_bus_message *make_deactivate(const struct cut *cut)
{
	return call_lease(cut->stage.bus, cut->rt.path, "Deactivate");
}

static sd_bus_message *make_acknowledge(const struct cut *cut)
{
	return with(call_lease(cut->crowd, cut->borrower.path, "Acknowledge"), "t", UINT64_C(2));
}

static sd_bus_message *make_revoke(const struct cut *cut)
{
	return with(call_lease(cut->stage.bus, cut->borrower.path, "Revoke"), "ts", HOUR_USEC, "x");
}

/* ---- after the restart -------------------------------------------------------------- */

/* From any state: the lease is granted when the borrower acknowledges its present mask. */
static void finish(struct cut *cut)
{
	if (is(cut, &cut->rt, "inactive"))
		activate_it(cut);
	if (!is(cut, &cut->rt, "granted")) {
		CHECK(is(cut, &cut->rt, "activating"));
		CHECK(is_fine(
			acknowledge(cut->crowd, &cut->borrower,
				    lease_number(cut->stage.bus, &cut->borrower, "Generation"))));
	}
	CHECK(is(cut, &cut->rt, "granted") && are_apart(cut));
	CHECK(lease_number(cut->stage.bus, &cut->borrower, "Generation") == 2);
	CHECK(lease_number(cut->stage.bus, &cut->borrower, "Deadline") == UINT64_MAX);
}

static void check_activated(struct cut *cut)
{
	CHECK(is(cut, &cut->rt, "activating") || (!cut->told && is(cut, &cut->rt, "inactive")));
	finish(cut);
}

static void check_acknowledged(struct cut *cut)
{
	char bytes[8192];
	ssize_t n;
	bool was_granted = false;

	/* A lease whose holder got a record with the state granted is granted. */
	while ((n = recv(cut->rt.holder, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		struct gpuarb_record record;

		memcpy(&record, bytes, sizeof(record));
		was_granted |= record.state == GPUARB_RECORD_GRANTED;
	}
	CHECK(is(cut, &cut->rt, "granted") || (!cut->told && !was_granted));
	finish(cut);
}

static void check_deactivated(struct cut *cut)
{
	CHECK(is(cut, &cut->rt, "inactive") || (!cut->told && is(cut, &cut->rt, "granted")));
	finish(cut); /* nobody grew meanwhile: nobody has to answer */
}

static void check_revoked(struct cut *cut)
{
	uint64_t generation = lease_number(cut->stage.bus, &cut->borrower, "Generation");

	if (is(cut, &cut->borrower, "granted")) {
		CHECK(!cut->told && generation == 1);
		return;
	}
	CHECK(is(cut, &cut->borrower, "revoking") && generation == 2);
	CHECK(lease_says(cut->stage.bus, cut->borrower.path, "Reason", "x"));
	CHECK(lease_number(cut->stage.bus, &cut->borrower, "Deadline") > boottime_usec());
}

/* ---- the tests --------------------------------------------------------------------------- */

#define SETTINGS "activate-grace = 1h\n" GROW_NEVER

TEST_CASE(a_crash_during_activate_is_recovered,
	  cut_everywhere(SETTINGS, &(const struct cutting){ .make = make_activate,
							    .check = check_activated }));
TEST_CASE(a_crash_during_the_acknowledgement_of_a_borrower_is_recovered,
	  cut_everywhere(SETTINGS, &(const struct cutting){ .before = activate_it,
							    .make = make_acknowledge,
							    .check = check_acknowledged }));
TEST_CASE(a_crash_during_deactivate_is_recovered,
	  cut_everywhere(SETTINGS, &(const struct cutting){ .before = activate_all_of_it,
							    .make = make_deactivate,
							    .check = check_deactivated }));
TEST_CASE(a_crash_during_revoke_is_recovered,
	  cut_everywhere(SETTINGS,
			 &(const struct cutting){ .make = make_revoke, .check = check_revoked }));
