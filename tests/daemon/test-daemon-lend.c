/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Realtime leases of the shipped daemon that lend and reclaim their CUs. */

#include "check.h"
#include "lend-live.h"

NEEDS(daemon_missing);

#define PATIENT "activate-grace = 1h\n"
#define MANY 500U
#define MANY_ALLOWED "oversubscribe = besteffort\nmax-leases-per-user = 1000\n"

struct stage {
	struct rig rig;
	sd_bus *bus, *crowd;
	struct told told;
};

static void arrive(struct stage *stage, const char *settings)
{
	memset(stage, 0, sizeof(*stage));
	rig_new(&stage->rig);
	lend_configure(&stage->rig, settings, "kill");
	rig_start(&stage->rig, LEND_GPU);
	stage->bus = rig_connect(&stage->rig, 0);
	stage->crowd = rig_connect(&stage->rig, STRANGER);
	listen_in(stage->bus, &stage->told);
}

static void depart(struct stage *stage)
{
	leave(stage->bus);
	leave(stage->crowd);
	rig_done(&stage->rig);
}

/* ---- borrowers that shrink ---------------------------------------------------------------------------- */

TEST(an_activation_is_granted_when_borrowers_have_acknowledged)
{
	struct live_lease rt, borrower;
	struct book_part part, mine;
	struct live_record record;
	static struct book book;
	static struct stage s;
	uint64_t before;
	char name[32];

	arrive(&s, PATIENT GROW_NEVER);
	rt = keep_inactive(s.bus, 15);
	borrower = borrow(s.crowd);
	CHECK(part_of(s.bus, &borrower).cus == LEND_CUS);

	before = boottime_usec();
	s.told.lease = 0;
	CHECK(is_fine(activate(s.bus, &rt)));
	CHECK(is_in_state(s.bus, &rt, "activating") && s.told.lease > 0);
	snprintf(name, sizeof(name), "lease %" PRIu64, borrower.id);
	CHECK(lease_says(s.bus, rt.path, "Reason", "15 CUs of 0000:03:00.0"));
	CHECK(lease_says(s.bus, rt.path, "Reason", name));
	CHECK(await_record(rt.holder, GPUARB_RECORD_ACTIVATING).record.deadline_usec ==
	      lease_number(s.bus, &rt, "Deadline"));

	record = await_generation(borrower.holder, 2);
	CHECK(record.record.state == GPUARB_RECORD_GRANTED && record.partitions[0].cus == 45);
	CHECK(record.record.deadline_usec >= before + HOUR_USEC);
	CHECK(record.record.deadline_usec == lease_number(s.bus, &borrower, "Deadline"));
	CHECK(is_fine(acknowledge(s.crowd, &borrower, 1))); /* that is not it */
	CHECK(is_in_state(s.bus, &rt, "activating"));

	s.told.lease = 0;
	CHECK(is_fine(acknowledge(s.crowd, &borrower, 2)));
	record = await_record(rt.holder, GPUARB_RECORD_GRANTED);
	CHECK(record.record.deadline_usec == UINT64_MAX && !record.record.reason[0]);
	AWAIT(s.bus, s.told.lease > 0);
	book_read(s.bus, &book);
	book_check(&book, true);
	part = part_of(s.bus, &borrower);
	mine = part_of(s.bus, &rt);
	CHECK(apart(&part, &mine) && mine.cus == 15 && part.cus == 45);
	CHECK(lease_number(s.bus, &borrower, "Deadline") == UINT64_MAX);
	CHECK(lease_number(s.bus, &rt, "Generation") == 1); /* its mask is what it was */
	depart(&s);
}

TEST(an_activation_waits_for_the_last_of_its_borrowers)
{
	struct live_lease rt, first, second;
	static struct stage s;

	for (unsigned gone = 0; gone < 2; gone++) {
		arrive(&s, PATIENT GROW_NEVER);
		rt = keep_inactive(s.bus, 30);
		first = granted(call(ask_to_borrow(s.crowd, LEND_LEAST, 40, 0)));
		second = granted(call(ask_to_borrow(s.crowd, LEND_LEAST, 20, 0)));
		CHECK(is_fine(activate(s.bus, &rt)));
		await_generation(first.holder, 2);
		await_generation(second.holder, 2);
		CHECK(is_fine(acknowledge(s.crowd, &first, 2)));
		CHECK(is_in_state(s.bus, &rt, "activating"));
		if (gone)
			close(second.holder);
		else
			CHECK(is_fine(acknowledge(s.crowd, &second, 2)));
		await_record(rt.holder, GPUARB_RECORD_GRANTED);
		CHECK(lease_exists(s.bus, second.path) == !gone);
		depart(&s);
	}
}

TEST(a_lease_without_borrowers_is_active_at_once)
{
	static struct stage s;
	struct live_lease rt;

	arrive(&s, PATIENT GROW_SOON);
	rt = keep_inactive(s.bus, 15);
	for (unsigned i = 0; i < 3; i++) {
		CHECK(is_fine(activate(s.bus, &rt)) && is_in_state(s.bus, &rt, "granted"));
		await_record(rt.holder, GPUARB_RECORD_GRANTED);
		CHECK(is_fine(deactivate(s.bus, &rt)) && is_in_state(s.bus, &rt, "inactive"));
		CHECK(await_record(rt.holder, GPUARB_RECORD_INACTIVE).partitions[0].cus == 15);
	}
	depart(&s);
}

/* ---- borrowers that grow ------------------------------------------------------------------------ */

static void deactivate_it(struct stage *s, const struct live_lease *rt)
{
	CHECK(is_fine(deactivate(s->bus, rt)));
}

static void release_it(struct stage *s, const struct live_lease *rt)
{
	CHECK(is_fine(call(release(s->bus, rt->path))));
}

static void close_it(struct stage *s, const struct live_lease *rt)
{
	(void)s;
	close(rt->holder);
}

static void take_it(struct stage *s, const struct live_lease *rt)
{
	CHECK(is_fine(take_away(s->bus, rt, 0, "")));
}

TEST(borrowers_receive_their_previous_mask_after_an_activation)
{
	void (*const ends[])(struct stage *, const struct live_lease *) = {
		deactivate_it,
		release_it,
		close_it,
		take_it,
	};
	static struct stage s;

	for (unsigned early = 0; early < 2; early++) {
		for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
			struct book_part before, after;
			struct live_lease rt, borrower;

			arrive(&s, PATIENT GROW_SOON);
			rt = keep_inactive(s.bus, 15);
			borrower = borrow(s.crowd);
			before = part_of(s.bus, &borrower);
			CHECK(is_fine(activate(s.bus, &rt)));
			if (!early) {
				follow_until(s.crowd, &borrower, 45);
				await_record(rt.holder, GPUARB_RECORD_GRANTED);
			}
			ends[i](&s, &rt);
			follow_until(s.crowd, &borrower, LEND_CUS);
			after = part_of(s.bus, &borrower);
			CHECK(same_part(&before, &after));
			depart(&s);
		}
	}
}

/* The next scan, an hour later, would let it grow, too. */
TEST(a_borrower_grows_back_when_a_lease_is_released)
{
	struct live_lease rt, borrower;
	struct live_record record;
	struct answer answer;
	static struct stage s;

	arrive(&s, PATIENT GROW_SOON "audit-interval = 1h\n");
	borrower = borrow(s.crowd);
	for (uint64_t generation = 2; generation < 8; generation += 2) {
		call_send(with(call_arbiter(s.bus, "Reserve"), "aa{sv}a{sv}", 1, 1, "cus", "u", 15,
			       0),
			  &answer);
		CHECK(sd_bus_flush(s.bus) >= 0);
		await_generation(borrower.holder, generation);
		CHECK(is_fine(acknowledge(s.crowd, &borrower, generation)));
		AWAIT(s.bus, answer.came);
		rt = granted(answer.m);
		await_time(boottime_usec() + 20000); /* the grant was an occasion to grow, too */
		CHECK(is_fine(call(release(s.bus, rt.path))));
		record = await_generation(borrower.holder, generation + 1);
		CHECK(record.partitions[0].cus == LEND_CUS);
		CHECK(is_fine(acknowledge(s.crowd, &borrower, generation + 1)));
		close(rt.holder);
	}
	depart(&s);
}

TEST(borrowers_get_their_cus_back_when_a_request_is_cancelled)
{
	struct live_lease borrower;
	struct live_record record;
	struct answer answer;
	static struct stage s;
	static struct book book;
	sd_bus *caller;

	arrive(&s, PATIENT GROW_SOON "audit-interval = 1h\n");
	borrower = borrow(s.crowd);
	caller = rig_connect(&s.rig, 0);
	call_send(with(call_arbiter(caller, "Reserve"), "aa{sv}a{sv}", 1, 1, "cus", "u", 15, 0),
		  &answer);
	CHECK(sd_bus_flush(caller) >= 0);
	await_generation(borrower.holder, 2);
	leave(caller);
	CHECK(!answer.came);
	AWAIT(s.bus, s.told.removed == 1);
	CHECK(is_fine(acknowledge(s.crowd, &borrower, 2)));
	record = await_generation(borrower.holder, 3);
	CHECK(record.partitions[0].cus == LEND_CUS && record.record.deadline_usec == UINT64_MAX);
	CHECK(is_fine(acknowledge(s.crowd, &borrower, 3)));
	book_read(s.bus, &book);
	CHECK(book.n_leases == 1);
	depart(&s);
}

TEST(a_borrower_that_dies_while_it_shrinks_returns_its_cus)
{
	struct live_lease dying, other, rt;
	struct live_record record;
	struct answer answer;
	static struct stage s;

	arrive(&s, PATIENT GROW_SOON "audit-interval = 1h\n");
	dying = granted(call(ask_to_borrow(s.crowd, LEND_LEAST, LEND_CUS, 0)));
	call_send(ask_to_borrow(s.crowd, LEND_LEAST, LEND_CUS, 0), &answer);
	CHECK(sd_bus_flush(s.crowd) >= 0);
	record = await_generation(dying.holder, 2);
	CHECK(record.partitions[0].cus < LEND_CUS);
	CHECK(is_fine(acknowledge(s.crowd, &dying, 2)));
	AWAIT(s.crowd, answer.came);
	other = granted(answer.m);

	/* The bases of both borrowers leave 11 CUs of each engine. */
	call_send(with(call_arbiter(s.bus, "Reserve"), "aa{sv}a{sv}", 1, 1, "cus", "u", 44, 0),
		  &answer);
	CHECK(sd_bus_flush(s.bus) >= 0);
	await_generation(dying.holder, 3);
	close(dying.holder);
	follow_until(s.crowd, &other, 16);
	AWAIT(s.bus, answer.came);
	rt = granted(answer.m);
	CHECK(part_of(s.bus, &rt).cus == 44 && !lease_exists(s.bus, dying.path));
	close(rt.holder);
	follow_until(s.crowd, &other, LEND_CUS);
	depart(&s);
}

static unsigned with_one_cu(const struct live_record *last, size_t n)
{
	unsigned count = 0;

	for (size_t i = 0; i < n; i++)
		count += last[i].record.state == GPUARB_RECORD_GRANTED &&
			 last[i].partitions[0].cus == 1;
	return count;
}

/* Acknowledges what arrives until each CU has a lease of its own. */
static void follow_all(sd_bus *bus, const struct live_lease *leases, struct live_record *last,
		       size_t n)
{
	const struct await await = AWAIT_BEGIN("as many leases with a CU as there are CUs");
	static struct pollfd fds[MANY];

	for (size_t i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = leases[i].holder, .events = POLLIN };
	while (with_one_cu(last, n) < LEND_CUS) {
		await_fds(&await, fds, n);
		for (size_t i = 0; i < n; i++) {
			if (!fds[i].revents)
				continue;
			CHECK(next_record(leases[i].holder, &last[i]));
			if (last[i].record.state == GPUARB_RECORD_GRANTED)
				CHECK(is_fine(
					acknowledge(bus, &leases[i], last[i].record.generation)));
		}
	}
}

/* As many as there are CUs get one each; the others wait for the first to end. */
TEST(hundreds_of_adaptable_leases_share_a_gpu)
{
	static struct live_lease leases[MANY];
	static struct live_record last[MANY];
	static struct stage s;
	const char *path, *state;
	uint32_t taken[2] = { 0 };
	unsigned granted = 0;
	sd_bus_message *m;

	arrive(&s, PATIENT GROW_SOON MANY_ALLOWED);
	for (size_t i = 0; i < MANY; i++) {
		m = call(ask_to_borrow(s.crowd, 1, LEND_CUS, HOUR_USEC));
		CHECK(sd_bus_message_read(m, "ohs", &path, &leases[i].holder, &state) >= 0);
		snprintf(leases[i].path, sizeof(leases[i].path), "%s", path);
		leases[i].holder = fcntl(leases[i].holder, F_DUPFD_CLOEXEC, 3);
		CHECK(leases[i].holder >= 0);
		sd_bus_message_unref(m);
	}
	follow_all(s.crowd, leases, last, MANY);
	for (size_t i = 0; i < MANY; i++) {
		if (last[i].record.state != GPUARB_RECORD_GRANTED)
			continue;
		granted++;
		CHECK(last[i].partitions[0].cus == 1);
		for (unsigned w = 0; w < 2; w++) {
			CHECK(!(taken[w] & last[i].partitions[0].cu_mask[w]));
			taken[w] |= last[i].partitions[0].cu_mask[w];
		}
	}
	CHECK(granted == LEND_CUS);
	CHECK(is_error(
		call(with(call_arbiter(s.bus, "Reserve"), "aa{sv}a{sv}", 1, 1, "cus", "u", 15, 0)),
		GPUARB_ERROR_NO_CAPACITY, "0000:03:00.0"));
	for (size_t i = 0; i < MANY; i++)
		close(leases[i].holder);
	AWAIT(s.bus, s.told.removed == MANY && s.told.cus_free == LEND_CUS);
	depart(&s);
}

TEST(a_killed_holder_frees_the_cus_that_it_activated)
{
	struct book_part before, after;
	struct live_lease borrower;
	static struct stage s;
	int ends[2];
	pid_t pid;
	char byte;

	arrive(&s, PATIENT GROW_SOON);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		sd_bus *bus = rig_connect(&s.rig, 0);
		struct live_lease rt = keep_inactive(bus, 15);

		CHECK(write(ends[1], "", 1) == 1 && read(ends[1], &byte, 1) == 1);
		CHECK(is_fine(activate(bus, &rt)));
		await_record(rt.holder, GPUARB_RECORD_GRANTED);
		for (;;)
			pause();
	}
	CHECK(read(ends[0], &byte, 1) == 1);
	borrower = borrow(s.crowd);
	before = part_of(s.bus, &borrower);
	CHECK(write(ends[0], "", 1) == 1);
	follow_until(s.crowd, &borrower, 45);
	end_process(pid);
	follow_until(s.crowd, &borrower, LEND_CUS);
	after = part_of(s.bus, &borrower);
	CHECK(same_part(&before, &after));
	close(ends[0]);
	close(ends[1]);
	depart(&s);
}

/* ---- disturbances ----------------------------------------------------------------------- */

TEST(an_active_realtime_lease_counts_disturbances)
{
	struct live_lease rt, other, borrower;
	static struct stage s;

	arrive(&s, PATIENT GROW_NEVER);
	rt = keep_inactive(s.bus, 15);
	other = keep_inactive(s.bus, 15);
	borrower = borrow(s.crowd);
	CHECK(is_fine(activate(s.bus, &rt)));
	CHECK(is_fine(acknowledge(s.crowd, &borrower, 2)));
	CHECK(lease_number(s.bus, &rt, "Disturbances") == 0); /* it did not run yet */
	s.told.lease = 0;
	CHECK(is_fine(activate(s.bus, &other)));
	CHECK(lease_number(s.bus, &rt, "Disturbances") == 1);
	CHECK(s.told.lease >= 3); /* of all three */
	CHECK(is_fine(acknowledge(s.crowd, &borrower, 3)));
	CHECK(lease_number(s.bus, &other, "Disturbances") == 0);
	depart(&s);
}

/* ---- refusals ----------------------------------------------------------------------- */

TEST(only_the_owner_activates_an_inactive_lease)
{
	struct live_lease rt, borrower, waiter, plain;
	static struct stage s;

	arrive(&s, PATIENT GROW_NEVER);
	rt = keep_inactive(s.bus, 15);
	CHECK(is_error(activate(s.crowd, &rt), GPUARB_ERROR_NOT_PERMITTED, "uid 0"));
	CHECK(is_error(deactivate(s.crowd, &rt), GPUARB_ERROR_NOT_PERMITTED, ""));
	CHECK(is_error(deactivate(s.bus, &rt), GPUARB_ERROR_INVALID_STATE, "inactive"));
	plain = granted(call(with(call_arbiter(s.bus, "Reserve"), "aa{sv}a{sv}", 1, 2, "cus", "u",
				  4, "queues", "u", 2, 1, "class", "s", "guaranteed")));
	CHECK(is_error(activate(s.bus, &plain), GPUARB_ERROR_INVALID_STATE, "guaranteed"));
	borrower = borrow(s.crowd);
	CHECK(is_error(activate(s.crowd, &borrower), GPUARB_ERROR_INVALID_STATE, "besteffort"));

	CHECK(is_fine(activate(s.bus, &rt)));
	CHECK(is_error(activate(s.bus, &rt), GPUARB_ERROR_INVALID_STATE, "activating"));
	CHECK(is_fine(acknowledge(s.crowd, &borrower, 2)));
	CHECK(is_error(activate(s.bus, &rt), GPUARB_ERROR_INVALID_STATE, "granted"));

	waiter = waiting(call(with(call_arbiter(s.bus, "Reserve"), "aa{sv}a{sv}", 1, 1, "cus", "u",
				   60, 2, "start-inactive", "b", 1, "wait-usec", "t", HOUR_USEC)));
	CHECK(is_error(activate(s.bus, &waiter), GPUARB_ERROR_INVALID_STATE, "waiting"));
	CHECK(is_error(deactivate(s.bus, &waiter), GPUARB_ERROR_INVALID_STATE, "waiting"));
	CHECK(is_fine(call(release(s.bus, waiter.path))));
	CHECK(is_error(activate(s.bus, &waiter), GPUARB_ERROR_NO_SUCH_LEASE, ""));
	depart(&s);
}

TEST(only_the_owner_acknowledges_an_existing_generation)
{
	static const uint64_t none[] = { 0, 3, UINT64_MAX };
	struct live_lease rt, borrower;
	static struct stage s;

	arrive(&s, PATIENT GROW_NEVER);
	rt = keep_inactive(s.bus, 15);
	borrower = borrow(s.crowd);
	CHECK(is_fine(activate(s.bus, &rt)));
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		CHECK(is_error(acknowledge(s.crowd, &borrower, none[i]),
			       GPUARB_ERROR_INVALID_REQUEST, ""));
	CHECK(is_error(acknowledge(s.crowd, &rt, 1), GPUARB_ERROR_NOT_PERMITTED, ""));
	CHECK(is_in_state(s.bus, &rt, "activating"));
	for (unsigned i = 0; i < 3; i++)
		CHECK(is_fine(acknowledge(s.crowd, &borrower, 2))); /* and again */
	CHECK(is_in_state(s.bus, &rt, "granted"));
	depart(&s);
}

/* ---- two leases of one process ------------------------------------------------------------------------- */

TEST(process_is_bound_to_one_lease_on_a_gpu_if_one_is_adaptable)
{
	struct live_lease first, second, waits;
	static struct stage s;
	char name[32];
	pid_t pid;
	int fd;

	arrive(&s, PATIENT GROW_NEVER);
	pid = idler(0, &fd);
	first = granted(call(ask_to_borrow(s.bus, 4, 20, 0)));
	snprintf(name, sizeof(name), "lease %" PRIu64, first.id);
	CHECK(is_fine(call(with(call_lease(s.bus, first.path, "Bind"), "h", fd))));
	CHECK(is_fine(call(with(call_lease(s.bus, first.path, "Bind"), "h", fd))));

	CHECK(is_error(call(ask_bound(s.bus, 15, fd)), GPUARB_ERROR_INVALID_STATE, name));
	second = reserve(s.bus, 15);
	CHECK(is_error(call(with(call_lease(s.bus, second.path, "Bind"), "h", fd)),
		       GPUARB_ERROR_INVALID_STATE, name));
	waits = waiting(call(ask_to_borrow(s.bus, 50, 60, HOUR_USEC)));
	CHECK(is_error(call(with(call_lease(s.bus, waits.path, "Bind"), "h", fd)),
		       GPUARB_ERROR_INVALID_STATE, name));

	CHECK(is_fine(call(release(s.bus, first.path))));
	CHECK(is_fine(call(with(call_lease(s.bus, second.path, "Bind"), "h", fd))));
	CHECK(is_fine(call(release(s.bus, waits.path))));
	CHECK(is_fine(call(ask_bound(s.bus, 5, fd)))); /* both are fixed */
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	close(fd);
	depart(&s);
}
