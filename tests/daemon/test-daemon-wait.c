/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Waiting leases of the shipped daemon: their order, and the end of a wait. */

#include <sched.h>
#include <sys/prctl.h>

#include "check.h"
#include "book.h"

NEEDS(daemon_missing);

#define SIMULATED "--simulate=radeon-vii"
#define TWO_GPUS "--simulate=radeon-vii,radeon-vii"

static void arrive(struct live *s, const char *hardware)
{
	rig_new(&s->rig);
	rig_write(&s->rig, "tenants.d/10-urgent.conf",
		  "[tenant urgent]\nmatch-user = root\nclass = realtime\n");
	rig_start(&s->rig, hardware);
	live_connect(s);
}

static sd_bus_message *ask_to_wait(sd_bus *bus, const char *class, unsigned cus, uint64_t usec)
{
	return ask_for(bus, "cus=%u; wait-usec=%" PRIu64 " class=%s", cus, usec, class);
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

FIXTURE(struct live, s, , rig_done(&s->rig));

TEST_WITH(a_waiting_lease_has_position_reason_and_deadline, struct live *s)
{
	struct live_lease all, first, second;
	static struct book book;
	uint64_t before, after;
	struct live_record record;

	arrive(s, SIMULATED);
	all = reserve(s->bus, 60);
	before = boottime_usec();
	first = waiting(call(ask_to_wait(s->bus, "besteffort", 30, UINT64_C(3600000000))));
	after = boottime_usec();
	second = await_turn(s->bus, 15);
	book_read(s->bus, &book);
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
	book_read(s->bus, &book);
	book_check(&book, true);
	CHECK(memcmp(book_find(&book, first.id)->parts[0].mask, record.partitions[0].cu_mask,
		     sizeof(uint32_t) * record.partitions[0].n_words) == 0);
	CHECK(position(s->bus, &first) == 0 && lease_says(s->bus, first.path, "State", "granted"));
}

/* ---- the end of a wait --------------------------------------------------------------------- */

TEST_WITH(a_client_that_is_killed_while_it_waits_leaves_nothing, struct live *s)
{
	struct live_lease all;
	int pipes[2];
	pid_t pid;
	char byte;

	arrive(s, SIMULATED);
	CHECK(pipe2(pipes, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		sd_bus *client = rig_connect(&s->rig, STRANGER);

		granted(call(ask(client, "Reserve", 60)));
		for (unsigned i = 0; i < 20; i++)
			await_turn(client, 60);
		CHECK(write(pipes[1], "", 1) == 1);
		for (;;)
			pause();
	}
	CHECK(read(pipes[0], &byte, 1) == 1);
	all = await_turn(s->bus, 60);
	CHECK(position(s->bus, &all) == 2); /* users take turns */
	end_process(pid);
	await_record(all.holder, GPUARB_RECORD_GRANTED);
	AWAIT(s->bus, s->told.removed == 21);
	close(pipes[0]);
	close(pipes[1]);
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

TEST_WITH(a_holder_works_in_every_namespace, struct live *s)
{
	struct live_lease all, lease;
	int sockets[2];
	pid_t pid;
	char byte;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
	pid = start_keeper(sockets[1]);
	close(sockets[1]);
	arrive(s, SIMULATED);
	all = reserve(s->bus, 60);
	lease = await_turn(s->bus, 15);
	pass(sockets[0], lease.holder);
	if (read(sockets[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		SKIP("there are no PID namespaces here");
	}
	close(lease.holder);
	settle(s->bus);
	CHECK(lease_says(s->bus, lease.path, "State", "waiting"));
	close(all.holder);
	AWAIT(s->bus, s->told.removed == 1);
	CHECK(lease_says(s->bus, lease.path, "State", "granted"));

	CHECK(write(sockets[0], "", 1) == 1 && read(sockets[0], &byte, 1) == 1);
	AWAIT(s->bus, s->told.removed == 2);
	CHECK(strcmp(s->told.last_removed, lease.path) == 0);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	close(sockets[0]);
}
