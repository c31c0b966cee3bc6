/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* With many leases, the shipped daemon stores their holders as few descriptors: sys/liveness/shelf.h. */

#include <sys/resource.h>

#include "check.h"
#include "crash-rig.h"
#include "seed.h"
#include "sys/liveness/holder.h"
#include "sys/liveness/shelf.h"

NEEDS(daemon_missing);

#define MANY (HOLDERS_SHELVE_AT + 88U)

struct shelves {
	struct stage stage;
	struct live_lease leases[MANY];
	unsigned n;
};

static void arrive(struct shelves *s)
{
	struct rlimit files;

	memset(s, 0, sizeof(*s));
	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = files.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	rig_new(&s->stage.rig);
	rig_write(&s->stage.rig, "gpuarbd.conf", CROWD "audit-interval = 1h\n");
	rig_start_managed(&s->stage.rig, "--simulate=radeon-vii", "--store-max=4608");
	crash_connect(&s->stage);
}

static void reserve_until(struct shelves *s, unsigned n)
{
	while (s->n < n)
		s->leases[s->n++] = granted(call(ask_shared(s->stage.bus)));
}

static void await_shelf_end(struct shelves *s, unsigned i)
{
	while (lease_exists(s->stage.bus, s->leases[i].path))
		continue;
}

/* Nothing is left when all holders are closed. */
static void depart(struct shelves *s)
{
	for (unsigned i = 0; i < s->n; i++)
		close(s->leases[i].holder);
	for (unsigned i = 0; i < s->n; i++)
		await_shelf_end(s, i);
	CHECK(no_file_is_left(&s->stage));
	rig_await_stored(&s->stage.rig, 0);
	rig_done(&s->stage.rig);
}

static bool all_exist(struct shelves *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (!lease_exists(s->stage.bus, s->leases[i].path))
			return false;
	return true;
}

TEST(holders_of_many_leases_are_stored_as_one)
{
	static struct shelves s;
	struct live_record record;

	arrive(&s);
	reserve_until(&s, MANY);
	rig_await_stored(&s.stage.rig, MANY - SHELF_MAX + 1);
	for (unsigned i = 0; i < 2; i++) {
		rig_crash(&s.stage.rig);
		settle(s.stage.bus);
		CHECK(all_exist(&s));
		rig_await_stored(&s.stage.rig, MANY - SHELF_MAX + 1);
	}
	close(s.leases[0].holder);
	await_shelf_end(&s, 0);
	CHECK(is_fine(call(release(s.stage.bus, s.leases[1].path))));
	while (next_record(s.leases[1].holder, &record))
		CHECK(record.record.lease == s.leases[1].id); /* until the end of the stream */
	/* Few are left on the shelf: they are stored one by one again. */
	for (unsigned i = 2; i <= SHELF_MAX / 2; i++)
		close(s.leases[i].holder);
	rig_await_stored(&s.stage.rig, MANY - SHELF_MAX / 2 - 1);
	rig_crash(&s.stage.rig);
	settle(s.stage.bus);
	for (unsigned i = 0; i < s.n; i++)
		CHECK(lease_exists(s.stage.bus, s.leases[i].path) == (i > SHELF_MAX / 2));
	close(s.leases[1].holder);
	for (unsigned i = 0; i <= SHELF_MAX / 2; i++)
		s.leases[i].holder = -1;
	depart(&s);
}

/* Returns whether the daemon was killed. */
static bool try_at(struct shelves *s, unsigned at)
{
	sd_bus_message *answer;
	bool killed;

	arrive(s);
	reserve_until(s, HOLDERS_SHELVE_AT - 1);
	if (!crash_arm(&s->stage, at))
		return false;
	answer = crash_try(ask_shared(s->stage.bus));
	if (answer)
		s->leases[s->n++] = granted(answer);
	ping(&s->stage);
	ping(&s->stage);
	killed = crash_disarm(&s->stage, at);
	if (killed)
		crash_start_next(&s->stage, 0);
	else
		rig_say(&s->stage.rig, "go");
	CHECK(all_exist(s));
	depart(s);
	return killed;
}

TEST(a_crash_while_holders_are_shelved_loses_no_lease)
{
	static const unsigned points[] = { 4, 6, 8, 10, 30, 200 };
	static struct shelves s;
	unsigned killed = 0;

	for (unsigned step = min_u(check_one_in(3, 1), ARRAY_SIZE(points)),
		      i = SEED_OF_RUN("SEED") % step;
	     i < ARRAY_SIZE(points) && !s.stage.untraceable; i += step)
		killed += try_at(&s, points[i]);
	if (s.stage.untraceable) {
		leave(s.stage.bus);
		rig_done(&s.stage.rig);
		SKIP("processes cannot be traced here");
	}
	printf("killed at %u points\n", killed);
	CHECK(killed > 0);
}
