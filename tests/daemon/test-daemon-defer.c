/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reserve of CUs that are borrowed: without wait-usec the shipped daemon answers when the borrowers have
 * given them back, or have not. */

#include "check.h"
#include "lend-live.h"

NEEDS(daemon_missing);

#define PATIENT "activate-grace = 1h\n" GROW_NEVER

static void arrive(struct lend *s, const char *settings)
{
	lend_start(s, settings, "report");
	s->borrower = borrow(s->crowd);
}

/* Waits until the daemon has the lease of a call that was sent on this connection. */
static void await_added(struct lend *s, unsigned n)
{
	AWAIT(s->bus, s->told.added == n);
}

static bool added_is(const struct lend *s, const char *name, const char *text)
{
	return lease_says(s->bus, s->told.last_added, name, text);
}

/* ---- granted ----------------------------------------------------------------------------- */

FIXTURE(struct lend, s, arrive(s, PATIENT), rig_done(&s->rig));

TEST_WITH(reserve_without_wait_is_answered_when_borrowers_have_given_back, struct lend *s)
{
	struct answer answer;
	struct live_lease lease;
	static struct book book;

	call_send(ask_for(s->bus, "cus=30 queues=2; class=guaranteed"), &answer);
	await_added(s, 2);
	CHECK(added_is(s, "State", "activating") && added_is(s, "Reason", "30 CUs of"));
	CHECK(gpu_number(s->bus, "CusFree") == 0 && !answer.came); /* others are answered */
	CHECK(is_fine(acknowledge(s->crowd, &s->borrower, 2)));
	AWAIT(s->bus, answer.came);
	lease = granted(answer.m);
	CHECK(is_in_state(s->bus, &lease, "granted"));
	book_read(s->bus, &book);
	book_check(&book, true);
	close(lease.holder);
	AWAIT(s->bus, s->told.removed == 1); /* there is no other holder of it */
}

TEST_WITH(a_repeated_token_gets_the_same_answer, struct lend *s)
{
	struct live_lease first, second;
	struct answer answers[2];

	for (unsigned i = 0; i < 2; i++)
		call_send(ask_token(s->bus, 30, "again"), &answers[i]);
	await_added(s, 2);
	CHECK(is_fine(acknowledge(s->crowd, &s->borrower, 2)));
	AWAIT(s->bus, answers[0].came && answers[1].came);
	first = granted(answers[0].m);
	second = granted(answers[1].m);
	CHECK(first.id == second.id);
	close(first.holder);
	settle(s->bus);
	CHECK(is_in_state(s->bus, &second, "granted"));
}

/* ---- not granted ------------------------------------------------------------------------- */

TEST(a_borrower_without_answer_is_no_capacity)
{
	static struct lend s;

	arrive(&s, "activate-grace = 50ms\nenforce-delay = 50ms\n" GROW_NEVER);
	CHECK(is_error(call(ask_for(s.bus, "cus=30 queues=2; class=guaranteed")),
		       GPUARB_ERROR_NO_CAPACITY, "CUs of"));
	AWAIT(s.bus, s.told.removed == 1);
	CHECK(lease_number(s.bus, &s.borrower, "Deadline") == UINT64_MAX);
	rig_done(&s.rig);
}

TEST_WITH(a_lease_that_ends_before_the_answer_is_refused, struct lend *s)
{
	struct answer answer;

	call_send(ask_for(s->bus, "cus=30 queues=2; class=guaranteed"), &answer);
	await_added(s, 2);
	CHECK(is_fine(call(release(s->bus, s->told.last_added))));
	AWAIT(s->bus, answer.came);
	CHECK(is_error(answer.m, GPUARB_ERROR_NO_CAPACITY, "released"));
	AWAIT(s->bus, s->told.removed == 1);
}

TEST_WITH(a_lease_that_is_revoked_before_the_answer_is_not_permitted, struct lend *s)
{
	struct answer answer;
	struct live_lease lease;

	call_send(ask_for(s->bus, "cus=30 queues=2; class=guaranteed"), &answer);
	await_added(s, 2);
	snprintf(lease.path, sizeof(lease.path), "%s", s->told.last_added);
	CHECK(is_fine(take_away(s->bus, &lease, HOUR_USEC, "not now")));
	AWAIT(s->bus, answer.came);
	CHECK(is_error(answer.m, GPUARB_ERROR_NOT_PERMITTED, "not now"));
	CHECK(!lease_exists(s->bus, lease.path));
	CHECK(lease_number(s->bus, &s->borrower, "Deadline") == UINT64_MAX);
}

TEST_WITH(a_stopping_daemon_answers_deferred_calls, struct lend *s)
{
	struct answer answer;

	call_send(ask_for(s->bus, "cus=30 queues=2; class=guaranteed"), &answer);
	await_added(s, 2);
	rig_stop(&s->rig);
	AWAIT(s->bus, answer.came);
	CHECK(is_error(answer.m, GPUARB_ERROR_SHUTDOWN, ""));
}

/* ---- closed connections ------------------------------------------------------------------------ */

/* The process would keep a lease alive that nobody knows. */
TEST_WITH(a_client_that_disconnects_before_its_answer_leaves_no_lease_of_another_process,
	  struct lend *s)
{
	struct answer answer;
	sd_bus *client;
	int pidfd;
	pid_t pid = idler(0, &pidfd);

	client = rig_connect(&s->rig, 0);
	call_send(ask_for(client, "cus=30 queues=2; process=%d class=guaranteed", pidfd), &answer);
	CHECK(sd_bus_flush(client) >= 0);
	await_added(s, 2);
	leave(client);
	AWAIT(s->bus, s->told.removed == 1);
	end_process(pid);
}

/* ---- many -------------------------------------------------------------------------------- */

#define MANY 300U
#define LOST 50U

/* isolation=shared: the GPU has slots for a few leases only. */
static void send_many(sd_bus *bus, struct answer *answers, unsigned n)
{
	CHECK(sd_bus_set_method_call_timeout(bus, 10 * 60 * UINT64_C(1000000)) >= 0);
	for (unsigned i = 0; i < n; i++)
		call_send(ask_for(bus, "cus=30 isolation=shared queues=1; class=besteffort"),
			  &answers[i]);
}

TEST(hundreds_of_answers_wait_for_one_borrower)
{
	static struct answer answers[MANY], lost[LOST];
	static struct lend s;
	struct answer followed;
	sd_bus *client;

	arrive(&s, PATIENT "oversubscribe = besteffort\nmax-leases-per-user = 4096\n");
	client = rig_connect(&s.rig, 0);
	send_many(client, lost, LOST);
	CHECK(sd_bus_flush(client) >= 0);
	send_many(s.bus, answers, MANY);
	await_added(&s, 1 + MANY + LOST);
	leave(client);
	AWAIT(s.bus, s.told.removed == LOST);
	CHECK(lease_number(s.bus, &s.borrower, "Generation") == 2);
	/* The bus delivers no message behind so many fds that are not received. */
	call_send(with(call_lease(s.crowd, s.borrower.path, "Acknowledge"), "t", UINT64_C(2)),
		  &followed);
	CHECK(sd_bus_flush(s.crowd) >= 0);
	for (unsigned i = 0; i < MANY; i++) {
		struct live_lease lease;

		AWAIT(s.bus, answers[i].came);
		lease = granted(answers[i].m);
		close(lease.holder);
	}
	AWAIT(s.bus, s.told.removed == MANY + LOST);
	AWAIT(s.crowd, followed.came);
	CHECK(is_fine(followed.m));
	rig_done(&s.rig);
}
