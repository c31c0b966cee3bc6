/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What keeps leases of the shipped daemon alive, and what ends them. */

#include "check.h"
#include "core/ledger/lease.h"
#include "live.h"

NEEDS(daemon_missing);

static void arrive(struct rig *rig, const char *hardware, sd_bus **ret, struct told *told)
{
	rig_new(rig);
	rig_write(rig, "gpuarbd.conf", CROWD);
	rig_start(rig, hardware);
	*ret = rig_connect(rig, 0);
	listen_in(*ret, told);
}

#define SIMULATED "--simulate=radeon-vii"

/* ---- holders ----------------------------------------------------------------------- */

TEST(a_lease_lives_while_a_bound_process_lives)
{
	struct live_lease a, b;
	struct told told;
	pid_t pids[2];
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;
	int fds[2];

	arrive(&rig, SIMULATED, &bus, &told);
	for (unsigned i = 0; i < 2; i++)
		pids[i] = idler(0, &fds[i]);
	a = granted(call(ask_bound(bus, 15, fds[0])));
	b = reserve(bus, 15);
	CHECK(is_fine(call(with(call_lease(bus, b.path, "Bind"), "h", fds[0]))));
	CHECK(is_fine(call(with(call_lease(bus, b.path, "Bind"), "h", fds[1]))));
	close(a.holder);
	settle(bus);
	CHECK(lease_exists(bus, a.path));

	end_process(pids[0]); /* a's last, one of b's */
	AWAIT(bus, told.removed == 1);
	CHECK(strcmp(told.last_removed, a.path) == 0 && lease_exists(bus, b.path));
	close(b.holder);
	settle(bus);
	CHECK(lease_exists(bus, b.path));
	end_process(pids[1]);
	AWAIT(bus, told.removed == 2);
}

TEST(a_caller_that_disconnects_before_the_answer_leaves_nothing)
{
	struct told told;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;

	arrive(&rig, SIMULATED, &bus, &told);
	for (unsigned i = 0; i < 20; i++) {
		sd_bus *client = rig_connect(&rig, STRANGER);
		sd_bus_message *m;

		/* The daemon knows the caller, so the next call is granted at once. */
		sd_bus_message_unref(call(ask(client, "Plan", 15)));
		m = ask(client, "Reserve", 15);
		CHECK(sd_bus_send(client, m, NULL) >= 0);
		sd_bus_message_unref(m);
		leave(client);
		AWAIT(bus, told.added == i + 1 && told.removed == i + 1);
	}
	CHECK(gpu_number(bus, "CusFree") == 60);
}

TEST(a_lease_is_bound_to_a_bounded_number_of_processes)
{
	pid_t pids[LEASE_BOUND_MAX + 1];
	struct live_lease lease;
	struct told told;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;

	arrive(&rig, SIMULATED, &bus, &told);
	lease = reserve(bus, 15);
	for (unsigned i = 0; i <= LEASE_BOUND_MAX; i++) {
		sd_bus_message *answer;
		int fd;

		pids[i] = idler(0, &fd);
		answer = call(with(call_lease(bus, lease.path, "Bind"), "h", fd));
		CHECK(i < LEASE_BOUND_MAX
			      ? is_fine(answer)
			      : is_error(answer, GPUARB_ERROR_TOO_MANY_LEASES, lease.path + 28));
		close(fd);
	}
	for (unsigned i = 0; i <= LEASE_BOUND_MAX; i++)
		end_process(pids[i]);
	CHECK(lease_exists(bus, lease.path)); /* by its holder */
	close(lease.holder);
}

struct news {
	struct gpuarb_record record;
	struct gpuarb_record_partition partition;
};

/* The next record; false at the end. */
static bool next(int holder, struct news *ret)
{
	ssize_t n;

	AWAIT_FD(holder, POLLIN);
	n = recv(holder, ret, sizeof(*ret), MSG_DONTWAIT);
	CHECK(n == 0 || n == (ssize_t)(sizeof(ret->record) + sizeof(ret->partition)));
	CHECK(n == 0 || (ret->record.version == GPUARB_RECORD_VERSION &&
			 ret->record.partition_size == sizeof(ret->partition)));
	return n > 0;
}

TEST(a_holder_receives_changes_and_the_end)
{
	struct live_lease lease;
	struct news news;
	struct told told;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;

	arrive(&rig, SIMULATED, &bus, &told);
	lease = reserve(bus, 15);
	CHECK(is_fine(call(resize(bus, lease.path, 30))));
	CHECK(next(lease.holder, &news) && news.record.generation == 2);
	CHECK(news.record.lease == lease.id && news.record.state == GPUARB_RECORD_GRANTED);
	CHECK(news.partition.cus == 30);
	CHECK(__builtin_popcount(news.partition.cu_mask[0]) +
		      __builtin_popcount(news.partition.cu_mask[1]) ==
	      30);

	CHECK(is_fine(call(release(bus, lease.path))));
	CHECK(next(lease.holder, &news) && news.record.state == GPUARB_RECORD_ENDING);
	CHECK(strcmp(news.record.reason, "released") == 0);
	CHECK(!next(lease.holder, &news));
}

TEST(a_stopping_daemon_tells_its_holders)
{
	struct live_lease lease;
	struct news news;
	struct told told;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;

	arrive(&rig, SIMULATED, &bus, &told);
	lease = reserve(bus, 15);
	rig_stop(&rig);
	CHECK(next(lease.holder, &news) && news.record.state == GPUARB_RECORD_ENDING);
	CHECK(strcmp(news.record.reason, "gpuarbd stopped") == 0 && !next(lease.holder, &news));
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

TEST(each_of_many_new_leases_is_signalled_once)
{
	struct burst burst = { .n = 0 };
	struct told told;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;

	arrive(&rig, SIMULATED, &bus, &told);
	for (unsigned i = 0; i < MANY; i++) {
		sd_bus_message *request = ask_shared(bus);

		CHECK(sd_bus_call_async(bus, NULL, request, on_reserved, &burst, UINT64_MAX) >= 0);
		sd_bus_message_unref(request);
	}
	AWAIT(bus, burst.n == MANY && told.added == MANY);
	settle(bus);
	for (unsigned i = 0; i < MANY; i++)
		close(burst.holders[i]);
	AWAIT(bus, told.removed == MANY);
	CHECK(told.added == MANY && told.lease == 0);
}

/* ---- bound processes --------------------------------------------------------------- */

TEST(only_a_live_process_of_the_same_user_can_be_bound)
{
	struct live_lease lease;
	struct told told;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus, *user;
	int fd, dead, pipes[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid_t pid;

	arrive(&rig, SIMULATED, &bus, &told);
	user = rig_connect(&rig, STRANGER);
	CHECK(pipe2(pipes, O_CLOEXEC) == 0);
	pid = idler(0, &fd);
	CHECK(is_error(call(ask_bound(user, 15, fd)), GPUARB_ERROR_NOT_PERMITTED, "uid 0"));
	CHECK(is_error(call(ask_bound(user, 15, pipes[0])), GPUARB_ERROR_INVALID_REQUEST,
		       "process"));
	CHECK(is_error(call(ask_bound(user, 15, null)), GPUARB_ERROR_INVALID_REQUEST, "process"));
	end_process(idler(0, &dead));
	CHECK(is_error(call(ask_bound(bus, 15, dead)), GPUARB_ERROR_INVALID_REQUEST, ""));
	CHECK(told.added == 0 && gpu_number(bus, "CusFree") == 60);

	lease = reserve(user, 15);
	CHECK(is_error(call(with(call_lease(user, lease.path, "Bind"), "h", null)),
		       GPUARB_ERROR_INVALID_REQUEST, "process"));
	CHECK(is_error(call(with(call_lease(user, lease.path, "Bind"), "h", fd)),
		       GPUARB_ERROR_NOT_PERMITTED, "uid 0"));
	CHECK(lease_exists(user, lease.path));
	end_process(pid);
}
