/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Waiting leases of the shipped daemon: their order, and the end of a wait. */

#include <sched.h>
#include <sys/prctl.h>

#include "check.h"
#include "book.h"

NEEDS(daemon_missing);

#define SIMULATED "--simulate=radeon-vii"
#define TWO_GPUS "--simulate=radeon-vii,radeon-vii"

static void arrive(struct rig *rig, const char *hardware, sd_bus **ret, struct told *told)
{
	rig_new(rig);
	rig_write(rig, "tenants.d/10-urgent.conf",
		  "[tenant urgent]\nmatch-user = root\nclass = realtime\n");
	rig_start(rig, hardware);
	*ret = rig_connect(rig, 0);
	listen_in(*ret, told);
}

static void depart(struct rig *rig, sd_bus *bus)
{
	leave(bus);
	rig_done(rig);
}

static sd_bus_message *ask_to_wait(sd_bus *bus, const char *class, unsigned cus, uint64_t usec)
{
	return with(call_arbiter(bus, "Reserve"), "aa{sv}a{sv}", 1, 1, "cus", "u", cus, 2,
		    "wait-usec", "t", usec, "class", "s", class);
}

static struct live_lease await_turn(sd_bus *bus, unsigned cus)
{
	return waiting(call(ask_to_wait(bus, "besteffort", cus, UINT64_MAX)));
}

static unsigned position(sd_bus *bus, const struct live_lease *lease)
{
	return (unsigned)number_of(bus, lease->path, GPUARB_INTERFACE_LEASE, "Position");
}

/* ---- properties and records -------------------------------------------------------------------------- */

TEST(a_waiting_lease_has_position_reason_and_deadline)
{
	struct live_lease all, first, second;
	static struct book book;
	uint64_t before, after;
	struct live_record record;
	struct told told;
	struct rig rig;
	sd_bus *bus;

	arrive(&rig, SIMULATED, &bus, &told);
	all = reserve(bus, 60);
	before = boottime_usec();
	first = waiting(call(ask_to_wait(bus, "besteffort", 30, UINT64_C(3600000000))));
	after = boottime_usec();
	second = await_turn(bus, 15);
	book_read(bus, &book);
	CHECK(book.n_leases == 3);
	for (unsigned i = 0; i < 2; i++) {
		const struct book_lease *lease = book_find(&book, i == 0 ? first.id : second.id);

		CHECK(strcmp(lease->state, "waiting") == 0 && lease->n_parts == 0);
		CHECK(lease->position == i + 1 && lease->generation == 1);
		CHECK(strstr(lease->reason, "0000:03:00.0"));
	}
	CHECK(book_find(&book, first.id)->deadline >= before + UINT64_C(3600000000));
	CHECK(book_find(&book, first.id)->deadline <= after + UINT64_C(3600000000));
	CHECK(book_find(&book, second.id)->deadline == UINT64_MAX);

	close(all.holder);
	record = await_record(first.holder, GPUARB_RECORD_GRANTED);
	CHECK(record.record.n_partitions == 1 && record.partitions[0].cus == 30);
	CHECK(record.record.deadline_usec == UINT64_MAX);
	await_record(second.holder, GPUARB_RECORD_GRANTED);
	book_read(bus, &book);
	book_check(&book, true);
	CHECK(memcmp(book_find(&book, first.id)->parts[0].mask, record.partitions[0].cu_mask,
		     sizeof(uint32_t) * record.partitions[0].n_words) == 0);
	CHECK(position(bus, &first) == 0 && lease_says(bus, first.path, "State", "granted"));
	depart(&rig, bus);
}

TEST(plan_reports_that_a_request_would_wait)
{
	struct live_lease all;
	sd_bus_message *m;
	struct told told;
	const char *result;
	struct rig rig;
	sd_bus *bus;

	arrive(&rig, SIMULATED, &bus, &told);
	all = reserve(bus, 60);
	m = call(with(call_arbiter(bus, "Plan"), "aa{sv}a{sv}", 1, 1, "cus", "u", 15, 1,
		      "wait-usec", "t", UINT64_C(1000)));
	CHECK(sd_bus_message_read(m, "s", &result) >= 0 && strcmp(result, "waiting") == 0);
	sd_bus_message_unref(m);
	CHECK(told.added == 1);
	/* A request that can never fit does not wait. */
	CHECK(is_error(call(ask_to_wait(bus, "besteffort", 100, 1000)), GPUARB_ERROR_NEVER_FITS,
		       ""));
	close(all.holder);
	depart(&rig, bus);
}

/* ---- order --------------------------------------------------------------------------------- */

TEST(waiting_leases_are_granted_by_class_then_by_age)
{
	static const char *const classes[] = { "besteffort", "guaranteed", "realtime",
					       "besteffort" };
	static const unsigned order[] = { 2, 1, 0, 3 };
	struct live_lease all, leases[4];
	struct told told;
	struct rig rig;
	sd_bus *bus;

	arrive(&rig, SIMULATED, &bus, &told);
	all = reserve(bus, 60);
	for (unsigned i = 0; i < 4; i++)
		leases[i] = waiting(call(ask_to_wait(bus, classes[i], 60, UINT64_MAX)));
	for (unsigned i = 0; i < 4; i++)
		CHECK(position(bus, &leases[order[i]]) == i + 1);
	for (unsigned i = 0; i < 4; i++) {
		close(i == 0 ? all.holder : leases[order[i - 1]].holder);
		await_record(leases[order[i]].holder, GPUARB_RECORD_GRANTED);
		for (unsigned j = i + 1; j < 4; j++)
			CHECK(position(bus, &leases[order[j]]) == j - i);
	}
	depart(&rig, bus);
}

/* LEASE_PASSES_MAX */
TEST(small_requests_pass_a_waiting_lease_16_times)
{
	struct live_lease some, large, small;
	struct told told;
	unsigned passed = 0;
	sd_bus_message *m;
	struct rig rig;
	sd_bus *bus, *user;

	arrive(&rig, SIMULATED, &bus, &told);
	user = rig_connect(&rig, STRANGER);
	some = reserve(bus, 15);
	large = await_turn(user, 60);
	for (;; passed++) {
		m = call(ask_to_wait(bus, "besteffort", 15, 0));
		if (sd_bus_message_is_method_error(m, GPUARB_ERROR_NO_CAPACITY))
			break;
		small = granted(m);
		close(small.holder);
		AWAIT(bus, told.removed == passed + 1);
	}
	sd_bus_message_unref(m);
	CHECK(passed == LEASE_PASSES_MAX);
	small = await_turn(bus, 15);
	CHECK(position(bus, &large) == 1 && position(bus, &small) == 2);
	close(some.holder);
	await_record(large.holder, GPUARB_RECORD_GRANTED);
	CHECK(lease_says(bus, small.path, "State", "waiting"));
	close(large.holder);
	await_record(small.holder, GPUARB_RECORD_GRANTED);
	leave(user);
	depart(&rig, bus);
}

/* A user who waits for what its own lease takes must not close the GPU to others. */
TEST(a_user_cannot_close_a_gpu_to_others_by_waiting_for_it)
{
	struct live_lease some, all, small;
	struct told told;
	struct rig rig;
	sd_bus *bus, *other;

	arrive(&rig, SIMULATED, &other, &told);
	bus = rig_connect(&rig, STRANGER);
	some = reserve(bus, 15);
	all = await_turn(bus, 60);
	for (unsigned i = 0; i < 20; i++) {
		small = reserve(bus, 4);
		close(small.holder);
		AWAIT(other, told.removed == i + 1);
	}
	for (unsigned i = 0; i < 40; i++) {
		small = reserve(other, 15);
		close(small.holder);
		AWAIT(other, told.removed == i + 21);
	}
	CHECK(lease_says(other, all.path, "State", "waiting"));
	close(some.holder);
	await_record(all.holder, GPUARB_RECORD_GRANTED);
	leave(bus);
	depart(&rig, other);
}

static sd_bus_message *ask_gang(sd_bus *bus, const char *first, const char *second)
{
	return with(call_arbiter(bus, "Reserve"), "aa{sv}a{sv}", 2, 2, "gpu", "s", first, "cus",
		    "u", 60, 2, "gpu", "s", second, "cus", "u", 60, 1, "wait-usec", "t",
		    UINT64_MAX);
}

TEST(requests_for_two_gpus_in_opposite_order_do_not_deadlock)
{
	struct live_lease one, other;
	struct live_record record;
	struct told told;
	struct rig rig;
	sd_bus *bus;

	arrive(&rig, TWO_GPUS, &bus, &told);
	one = granted(call(ask_gang(bus, "0", "1")));
	for (unsigned i = 0; i < 10; i++) {
		other = waiting(call(i % 2 ? ask_gang(bus, "0", "1") : ask_gang(bus, "1", "0")));
		close(one.holder);
		record = await_record(other.holder, GPUARB_RECORD_GRANTED);
		CHECK(record.record.n_partitions == 2);
		one = other;
	}
	depart(&rig, bus);
}

/* ---- the end of a wait --------------------------------------------------------------------- */

TEST(a_waiting_lease_ends_at_its_deadline)
{
	struct live_lease all, late;
	struct live_record record;
	struct told told;
	struct rig rig;
	sd_bus *bus;
	uint64_t start;

	arrive(&rig, SIMULATED, &bus, &told);
	all = reserve(bus, 60);
	start = boottime_usec();
	late = waiting(call(ask_to_wait(bus, "besteffort", 15, 100000)));
	record = await_record(late.holder, GPUARB_RECORD_ENDING);
	CHECK(boottime_usec() >= start + 100000);
	CHECK(record.record.cause == GPUARB_RECORD_TIMED_OUT && record.record.n_partitions == 0);
	CHECK(strstr(record.record.reason, "deadline"));
	CHECK(!next_record(late.holder, &record));
	AWAIT(bus, told.removed == 1);
	CHECK(!lease_exists(bus, late.path) && lease_exists(bus, all.path));
	depart(&rig, bus);
}

TEST(closing_the_holder_or_release_leaves_the_queue)
{
	struct live_lease all, leases[3];
	struct live_record record;
	struct told told;
	struct rig rig;
	sd_bus *bus;

	arrive(&rig, SIMULATED, &bus, &told);
	all = reserve(bus, 60);
	for (unsigned i = 0; i < 3; i++)
		leases[i] = await_turn(bus, 60);
	close(leases[0].holder);
	AWAIT(bus, told.removed == 1);
	CHECK(position(bus, &leases[1]) == 1 && position(bus, &leases[2]) == 2);
	CHECK(is_fine(call(release(bus, leases[1].path))));
	CHECK(!lease_exists(bus, leases[1].path) && position(bus, &leases[2]) == 1);
	record = await_record(leases[1].holder, GPUARB_RECORD_ENDING);
	CHECK(strcmp(record.record.reason, "released") == 0);
	close(all.holder);
	await_record(leases[2].holder, GPUARB_RECORD_GRANTED);
	depart(&rig, bus);
}

TEST(a_client_that_is_killed_while_it_waits_leaves_nothing)
{
	struct live_lease all;
	struct told told;
	struct rig rig;
	sd_bus *bus;
	int pipes[2];
	pid_t pid;
	char byte;

	arrive(&rig, SIMULATED, &bus, &told);
	CHECK(pipe2(pipes, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		sd_bus *client = rig_connect(&rig, STRANGER);

		granted(call(ask(client, "Reserve", 60)));
		for (unsigned i = 0; i < 20; i++)
			await_turn(client, 60);
		CHECK(write(pipes[1], "", 1) == 1);
		for (;;)
			pause();
	}
	CHECK(read(pipes[0], &byte, 1) == 1);
	all = await_turn(bus, 60);
	CHECK(position(bus, &all) == 2); /* users take turns */
	end_process(pid);
	await_record(all.holder, GPUARB_RECORD_GRANTED);
	AWAIT(bus, told.removed == 21);
	close(pipes[0]);
	close(pipes[1]);
	depart(&rig, bus);
}

TEST(a_token_finds_a_waiting_lease)
{
	struct live_lease all, first, again;
	struct told told;
	struct rig rig;
	sd_bus *bus;

	arrive(&rig, SIMULATED, &bus, &told);
	all = reserve(bus, 60);
	for (unsigned i = 0; i < 2; i++) {
		struct live_lease *lease = i == 0 ? &first : &again;

		*lease = waiting(
			call(with(call_arbiter(bus, "Reserve"), "aa{sv}a{sv}", 1, 1, "cus", "u", 15,
				  2, "token", "s", "t", "wait-usec", "t", UINT64_MAX)));
	}
	CHECK(first.id == again.id && told.added == 2);
	close(first.holder);
	settle(bus);
	CHECK(lease_exists(bus, again.path));
	close(all.holder);
	await_record(again.holder, GPUARB_RECORD_GRANTED);
	depart(&rig, bus);
}

TEST(a_waiting_lease_cannot_be_resized)
{
	struct live_lease all, lease;
	struct told told;
	struct rig rig;
	sd_bus *bus;

	arrive(&rig, SIMULATED, &bus, &told);
	all = reserve(bus, 60);
	lease = await_turn(bus, 15);
	CHECK(is_error(call(resize(bus, lease.path, 30)), GPUARB_ERROR_INVALID_STATE, "waiting"));
	close(all.holder);
	await_record(lease.holder, GPUARB_RECORD_GRANTED);
	depart(&rig, bus);
}

/* ---- another namespace ------------------------------------------------------------------------ */

/* Starts a process in its own PID namespace that receives an fd, confirms that, and keeps it until it
 * is told to end. Returns the pid of its parent, which waits for that. */
static pid_t start_keeper(int socket)
{
	pid_t pid = fork();
	int fd;

	CHECK(pid >= 0);
	if (pid > 0)
		return pid;
	if (unshare(CLONE_NEWPID) < 0)
		_exit(1);
	pid = fork();
	CHECK(pid >= 0);
	if (pid > 0) {
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	CHECK(getpid() == 1 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	fd = pass(socket, -1);
	CHECK(write(socket, "", 1) == 1);
	CHECK(read(socket, &(char){ 0 }, 1) == 1); /* until it is told */
	close(fd);
	CHECK(write(socket, "", 1) == 1);
	_exit(0);
}

TEST(a_holder_works_in_every_namespace)
{
	struct live_lease all, lease;
	struct told told;
	int sockets[2];
	struct rig rig;
	sd_bus *bus;
	pid_t pid;
	char byte;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
	pid = start_keeper(sockets[1]);
	close(sockets[1]);
	arrive(&rig, SIMULATED, &bus, &told);
	all = reserve(bus, 60);
	lease = await_turn(bus, 15);
	pass(sockets[0], lease.holder);
	if (read(sockets[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		depart(&rig, bus);
		SKIP("there are no PID namespaces here");
	}
	close(lease.holder);
	settle(bus);
	CHECK(lease_says(bus, lease.path, "State", "waiting"));
	close(all.holder);
	AWAIT(bus, told.removed == 1);
	CHECK(lease_says(bus, lease.path, "State", "granted"));

	CHECK(write(sockets[0], "", 1) == 1 && read(sockets[0], &byte, 1) == 1);
	AWAIT(bus, told.removed == 2);
	CHECK(strcmp(told.last_removed, lease.path) == 0);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	close(sockets[0]);
	depart(&rig, bus);
}
