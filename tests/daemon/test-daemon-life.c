/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What keeps leases of the shipped daemon alive, and what ends them. */

#include "check.h"
#include "core/ledger/lease.h"
#include "live.h"

NEEDS(daemon_missing);

static void arrive(struct live *s)
{
	rig_new(&s->rig);
	rig_write(&s->rig, "gpuarbd.conf", CROWD);
	rig_start(&s->rig, "--simulate=radeon-vii");
	live_connect(s);
}

/* ---- holders ----------------------------------------------------------------------- */

FIXTURE(struct live, s, arrive(s), rig_done(&s->rig));

TEST_WITH(a_lease_lives_while_a_bound_process_lives, struct live *s)
{
	struct live_lease a, b;
	pid_t pids[2];
	int fds[2];

	for (unsigned i = 0; i < 2; i++)
		pids[i] = idler(0, &fds[i]);
	a = granted(call(ask_bound(s->bus, 15, fds[0])));
	b = reserve(s->bus, 15);
	bind_process(s->bus, &b, fds[0]);
	bind_process(s->bus, &b, fds[1]);
	close(a.holder);
	settle(s->bus);
	CHECK(lease_exists(s->bus, a.path));

	end_process(pids[0]); /* a's last, one of b's */
	AWAIT(s->bus, s->told.removed == 1);
	CHECK(strcmp(s->told.last_removed, a.path) == 0 && lease_exists(s->bus, b.path));
	close(b.holder);
	settle(s->bus);
	CHECK(lease_exists(s->bus, b.path));
	end_process(pids[1]);
	AWAIT(s->bus, s->told.removed == 2);
}

TEST_WITH(a_caller_that_disconnects_before_the_answer_leaves_nothing, struct live *s)
{
	for (unsigned i = 0; i < 20; i++) {
		sd_bus *client = rig_connect(&s->rig, STRANGER);
		sd_bus_message *m;

		/* The daemon knows the caller, so the next call is granted at once. */
		sd_bus_message_unref(call(ask(client, "Plan", 15)));
		m = ask(client, "Reserve", 15);
		CHECK(sd_bus_send(client, m, NULL) >= 0);
		sd_bus_message_unref(m);
		leave(client);
		AWAIT(s->bus, s->told.added == i + 1 && s->told.removed == i + 1);
	}
	CHECK(gpu_number(s->bus, "CusFree") == 60);
}

TEST_WITH(a_lease_is_bound_to_a_bounded_number_of_processes, struct live *s)
{
	pid_t pids[LEASE_BOUND_MAX + 1];
	struct live_lease lease;

	lease = reserve(s->bus, 15);
	for (unsigned i = 0; i <= LEASE_BOUND_MAX; i++) {
		sd_bus_message *answer;
		int fd;

		pids[i] = idler(0, &fd);
		answer = call(with(call_lease(s->bus, lease.path, "Bind"), "h", fd));
		CHECK(i < LEASE_BOUND_MAX
			      ? is_fine(answer)
			      : is_error(answer, GPUARB_ERROR_TOO_MANY_LEASES, lease.path + 28));
		close(fd);
	}
	for (unsigned i = 0; i <= LEASE_BOUND_MAX; i++)
		end_process(pids[i]);
	CHECK(lease_exists(s->bus, lease.path)); /* by its holder */
}

TEST_WITH(a_lease_has_a_bounded_number_of_holders, struct live *s)
{
	int holders[LEASE_BOUND_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(holders); i++)
		holders[i] = granted(call(ask_token(s->bus, 15, "t"))).holder;
	CHECK(is_error(call(ask_token(s->bus, 15, "t")), GPUARB_ERROR_TOO_MANY_LEASES, "64"));
	for (size_t i = 0; i < ARRAY_SIZE(holders); i++)
		close(holders[i]);
	AWAIT(s->bus, s->told.removed == 1);
}

TEST_WITH(a_holder_receives_changes_and_the_end, struct live *s)
{
	struct live_record record;
	struct live_lease lease;

	lease = reserve(s->bus, 15);
	CHECK(is_fine(call(resize(s->bus, lease.path, 30))));
	CHECK(next_record(lease.holder, &record) && record.record.generation == 2);
	CHECK(record.record.lease == lease.id && record.record.state == GPUARB_RECORD_GRANTED);
	CHECK(record.partitions[0].cus == 30);
	CHECK(__builtin_popcount(record.partitions[0].cu_mask[0]) +
		      __builtin_popcount(record.partitions[0].cu_mask[1]) ==
	      30);

	CHECK(is_fine(call(release(s->bus, lease.path))));
	CHECK(next_record(lease.holder, &record) && record.record.state == GPUARB_RECORD_ENDING);
	CHECK(strcmp(record.record.reason, "released") == 0);
	CHECK(!next_record(lease.holder, &record));
}

/* ---- signals ------------------------------------------------------------------------- */

#define MANY 200U

struct burst {
	int holders[MANY];
	unsigned n;
};

static int on_reserved(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct burst *burst = userdata;

	burst->holders[burst->n++] = granted(sd_bus_message_ref(m)).holder;
	return 0;
}

TEST_WITH(each_of_many_new_leases_is_signalled_once, struct live *s)
{
	struct burst burst = { .n = 0 };

	for (unsigned i = 0; i < MANY; i++) {
		sd_bus_message *request = ask_shared(s->bus);

		CHECK(sd_bus_call_async(s->bus, NULL, request, on_reserved, &burst, UINT64_MAX) >=
		      0);
		sd_bus_message_unref(request);
	}
	AWAIT(s->bus, burst.n == MANY && s->told.added == MANY);
	settle(s->bus);
	for (unsigned i = 0; i < MANY; i++)
		close(burst.holders[i]);
	AWAIT(s->bus, s->told.removed == MANY);
	CHECK(s->told.added == MANY && s->told.lease == 0);
}

/* ---- bound processes --------------------------------------------------------------- */

TEST_WITH(only_a_live_process_of_the_same_user_can_be_bound, struct live *s)
{
	struct live_lease lease;
	int fd, dead, pipes[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid_t pid;

	s->user = rig_connect(&s->rig, STRANGER);
	CHECK(pipe2(pipes, O_CLOEXEC) == 0);
	pid = idler(0, &fd);
	CHECK(is_error(call(ask_bound(s->user, 15, fd)), GPUARB_ERROR_NOT_PERMITTED, "uid 0"));
	CHECK(is_error(call(ask_bound(s->user, 15, pipes[0])), GPUARB_ERROR_INVALID_REQUEST,
		       "process"));
	CHECK(is_error(call(ask_bound(s->user, 15, null)), GPUARB_ERROR_INVALID_REQUEST,
		       "process"));
	end_process(idler(0, &dead));
	CHECK(is_error(call(ask_bound(s->bus, 15, dead)), GPUARB_ERROR_INVALID_REQUEST, ""));
	CHECK(s->told.added == 0 && gpu_number(s->bus, "CusFree") == 60);

	lease = reserve(s->user, 15);
	CHECK(is_error(call(with(call_lease(s->user, lease.path, "Bind"), "h", null)),
		       GPUARB_ERROR_INVALID_REQUEST, "process"));
	CHECK(is_error(call(with(call_lease(s->user, lease.path, "Bind"), "h", fd)),
		       GPUARB_ERROR_NOT_PERMITTED, "uid 0"));
	CHECK(lease_exists(s->user, lease.path));
	end_process(pid);
}
