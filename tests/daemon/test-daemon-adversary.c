/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Several users reserve, resize, end, die and lie at random while leases move, shrink and are revoked for
 * others, and the daemon is killed once. The promises are checked over the bus all the time, and at the
 * end no lease is stuck.
 *
 *	ADVERSARY_SEED=N …	the same choices again
 */

#include "check.h"
#include "lend-live.h"
#include "seed.h"

NEEDS(daemon_missing);

#define HELD_MAX 16U
#define IDLERS 40U
#define BUDGET_QUEUES 24U /* of a Radeon VII */

/* A lease of one of the users, or a call for one that is not answered yet. */
struct held {
	bool asked;
	struct answer answer;
	sd_bus *bus;
	struct live_lease lease;
	pid_t pid; /* bound to it; 0: none */
};

struct stage {
	struct rig rig;
	sd_bus *users[2]; /* realtime, and besteffort, whose leases may be revoked */
	struct held held[HELD_MAX];
	unsigned seed, granted, refused, killed, moved, revoked;
	struct book book;
	/* Processes to bind, all started before the first lease: they inherit no holder. */
	struct {
		pid_t pid;
		int pidfd;
	} idlers[IDLERS];
	unsigned n_idlers;
};

static unsigned below(struct stage *s, unsigned n)
{
	return (unsigned)rand_r(&s->seed) % n;
}

static void arrive(struct stage *s)
{
	memset(s, 0, sizeof(*s));
	s->seed = seed_nth(SEED_OF_RUN("ADVERSARY_SEED"), 0);
	for (; s->n_idlers < IDLERS; s->n_idlers++)
		s->idlers[s->n_idlers].pid = idler(STRANGER, &s->idlers[s->n_idlers].pidfd);
	rig_new(&s->rig);
	lend_configure(&s->rig, "activate-grace = 50ms\nenforce-delay = 10ms\n" GROW_SOON,
		       "report");
	rig_write(&s->rig, "tenants.d/20-crowd.conf",
		  "[tenant crowd]\nmatch-user = daemon\npreempt = revoke\n");
	rig_start_managed(&s->rig, LEND_GPU, "--store-max=256");
	s->users[0] = rig_connect(&s->rig, 0);
	s->users[1] = rig_connect(&s->rig, STRANGER);
}

/* ---- what users do ------------------------------------------------------------------------- */

/* The user lets go of everything, as the kernel does for a process that is killed. */
static void drop(struct stage *s, struct held *held)
{
	if (held->pid) {
		end_process(held->pid);
		s->killed++;
	}
	close(held->lease.holder);
	*held = (struct held){ 0 };
}

static void request(struct stage *s, struct held *held)
{
	unsigned cus = 1 + below(s, 20), kind = below(s, 6);
	uint64_t wait = below(s, 2) ? HOUR_USEC : 0;
	sd_bus *bus = s->users[kind < 2 ? 0 : 1];

	*held = (struct held){ .asked = true, .bus = bus };
	if (kind == 0)
		call_send(ask_for(bus, "cus=%u exact=1; wait-usec=%" PRIu64, cus, wait),
			  &held->answer);
	else if (kind == 1)
		call_send(ask_for(bus, "cus=%u; class=guaranteed", cus), &held->answer);
	else if (kind < 5 || s->n_idlers == 0)
		call_send(ask_to_borrow(bus, cus, cus + below(s, 30), wait), &held->answer);
	else {
		held->pid = s->idlers[--s->n_idlers].pid;
		call_send(ask_bound(bus, cus, s->idlers[s->n_idlers].pidfd), &held->answer);
		close(s->idlers[s->n_idlers].pidfd);
	}
}

/* Takes the answer to a Reserve, whatever it is. */
static void take_answer(struct stage *s, struct held *held)
{
	const char *path, *state;
	int holder;

	held->asked = false;
	if (sd_bus_message_is_method_error(held->answer.m, NULL)) {
		sd_bus_message_unref(held->answer.m);
		held->lease.holder = -1;
		s->refused++;
		drop(s, held);
		return;
	}
	CHECK(sd_bus_message_read(held->answer.m, "ohs", &path, &holder, &state) >= 0);
	snprintf(held->lease.path, sizeof(held->lease.path), "%s", path);
	CHECK(sscanf(path, GPUARB_PATH_LEASE "/%" SCNu64, &held->lease.id) == 1);
	held->lease.holder = fcntl(holder, F_DUPFD_CLOEXEC, 3);
	sd_bus_message_unref(held->answer.m);
	s->granted++;
}

/* Resizes, acknowledges what was never sent, or revokes; the lease may have ended meanwhile. */
static void disturb(struct stage *s, struct held *held)
{
	unsigned kind = below(s, 4);

	if (kind < 2)
		sd_bus_message_unref(call(resize(held->bus, held->lease.path, 1 + below(s, 20))));
	else if (kind == 2)
		CHECK(!is_fine(acknowledge(held->bus, &held->lease, 1000000)));
	else
		sd_bus_message_unref(take_away(s->users[0], &held->lease, 10000, "disturbed"));
}

static void act(struct stage *s)
{
	struct held *held = &s->held[below(s, HELD_MAX)];

	if (held->asked)
		return;
	if (!held->bus)
		request(s, held);
	else if (below(s, 3) == 0)
		drop(s, held);
	else
		disturb(s, held);
}

/* Some holders use the masks that they were sent; all: every one does. */
static void follow(struct stage *s, bool all)
{
	for (unsigned i = 0; i < ARRAY_SIZE(s->users); i++)
		while (sd_bus_process(s->users[i], NULL) > 0)
			;
	for (unsigned i = 0; i < HELD_MAX; i++) {
		struct held *held = &s->held[i];
		const struct book_lease *lease;

		if (held->asked && held->answer.came)
			take_answer(s, held);
		lease = held->bus && !held->asked ? book_find(&s->book, held->lease.id) : NULL;
		if (lease && lease->n_parts > 0 && (all || below(s, 2)))
			sd_bus_message_unref(
				acknowledge(held->bus, &held->lease, lease->generation));
	}
}

/* ---- what must be true ----------------------------------------------------------------------- */

static bool is_active(const struct book_lease *lease)
{
	return strcmp(lease->state, "granted") == 0 || strcmp(lease->state, "revoking") == 0 ||
	       strcmp(lease->state, "ending") == 0;
}

/* No CU is in the masks of two leases that use theirs, and no budget is granted twice. */
static void check_promises(struct stage *s)
{
	unsigned queues = 0;

	book_read(s->users[0], &s->book);
	for (unsigned i = 0; i < s->book.n_leases; i++) {
		const struct book_lease *a = &s->book.leases[i];

		queues += a->n_parts > 0 ? a->parts[0].queues : 0;
		for (unsigned j = 0; j < i; j++) {
			const struct book_lease *b = &s->book.leases[j];

			if (a->n_parts == 0 || b->n_parts == 0 || !is_active(a) || !is_active(b))
				continue;
			CHECK(apart(&a->parts[0], &b->parts[0]));
		}
	}
	CHECK(queues + s->book.gpus[0].slots_free <= BUDGET_QUEUES);
}

static bool is_stuck(const struct stage *s)
{
	for (unsigned i = 0; i < s->book.n_leases; i++) {
		const struct book_lease *lease = &s->book.leases[i];

		if (strcmp(lease->state, "granted") != 0 && strcmp(lease->state, "waiting") != 0)
			return true;
	}
	for (unsigned i = 0; i < HELD_MAX; i++)
		if (s->held[i].asked)
			return true;
	return false;
}

/* 0 if it has ended meanwhile. */
static uint64_t moves(const struct held *held)
{
	sd_bus_message *m = call(with(
		call_new(held->bus, held->lease.path, "org.freedesktop.DBus.Properties", "Get"),
		"ss", GPUARB_INTERFACE_LEASE, "Moves"));
	uint64_t n = 0;

	if (!sd_bus_message_is_method_error(m, NULL))
		CHECK(sd_bus_message_read(m, "v", "t", &n) >= 0);
	sd_bus_message_unref(m);
	return n;
}

static void count(struct stage *s)
{
	for (unsigned i = 0; i < HELD_MAX; i++)
		if (s->held[i].bus && !s->held[i].asked)
			s->moved += moves(&s->held[i]) > 0;
	for (unsigned i = 0; i < s->book.n_leases; i++)
		s->revoked += strcmp(s->book.leases[i].state, "revoking") == 0;
}

TEST(promises_hold_whatever_users_do)
{
	unsigned rounds = check_rounds(300, 20000);
	static struct stage s;

	arrive(&s);
	for (unsigned i = 0; i < rounds; i++) {
		act(&s);
		check_promises(&s);
		follow(&s, false);
		if (i % 20 == 0)
			count(&s);
		if (i == rounds / 2)
			rig_crash(&s.rig);
	}
	/* Every holder follows now: no lease shrinks, moves, activates or is revoked for ever. */
	do {
		check_promises(&s);
		follow(&s, true);
	} while (is_stuck(&s));
	printf("%u granted, %u refused, %u killed; %u had moved, %u were revoked when counted\n",
	       s.granted, s.refused, s.killed, s.moved, s.revoked);
	CHECK_REACHED(s.granted > 20 && s.refused > 0 && s.killed > 0);
	for (unsigned i = 0; i < HELD_MAX; i++)
		if (s.held[i].bus)
			drop(&s, &s.held[i]);
	do
		book_read(s.users[0], &s.book);
	while (!book_is_empty(&s.book));
	while (s.n_idlers > 0) {
		end_process(s.idlers[--s.n_idlers].pid);
		close(s.idlers[s.n_idlers].pidfd);
	}
	rig_done(&s.rig);
}
