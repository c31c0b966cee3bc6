/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Leases whose queues the kernel refuses beyond the grant. The calls of the process under the filter go to /dev/null,
 * which refuses them with ENOTTY when gpuarbd has allowed them; its queues are those of a fake sysfs.
 */

#include <linux/seccomp.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"
#include "machine.h"
#include "filtered.h"
#include "seed.h"

NEEDS(daemon_missing);

/* ---- its lease -------------------------------------------------------------------------------- */

static struct live_lease reserve_cus(sd_bus *bus, const struct filtered *process, unsigned cus,
				     unsigned queues)
{
	return granted(
		call(ask_for(bus, "cus=%u queues=%u; process=%d", cus, queues, process->pidfd)));
}

static struct live_lease reserve_for(sd_bus *bus, const struct filtered *process, unsigned queues)
{
	return reserve_cus(bus, process, 15, queues);
}

static sd_bus_message *cap(sd_bus *bus, const char *path, int listener)
{
	return with(call_lease(bus, path, "Cap"), "h", listener);
}

/* The daemon alone has the listener afterwards. */
static void hand_over(sd_bus *bus, const struct live_lease *lease, struct filtered *process)
{
	CHECK(is_fine(call(cap(bus, lease->path, process->listener))));
	close(process->listener);
	process->listener = -1;
}

static void await_tier(sd_bus *bus, const struct live_lease *lease, const char *tier)
{
	AWAIT(bus, lease_says(bus, lease->path, "Tier", tier));
}

static uint64_t refusals(sd_bus *bus, const struct live_lease *lease)
{
	return number_of(bus, lease->path, GPUARB_INTERFACE_LEASE, "QueueRefusals");
}

struct scene {
	struct machine machine;
	struct filtered process;
	struct live_lease lease;
};

/* A lease with this many queues, capped. */
static void arrive(struct scene *scene, unsigned queues)
{
	sd_bus *bus;

	machine_build(&scene->machine, 2);
	machine_boot(&scene->machine);
	bus = scene->machine.bus;
	scene->process = filtered_start();
	scene->lease = reserve_for(bus, &scene->process, queues);
	hand_over(bus, &scene->lease, &scene->process);
	CHECK(lease_says(bus, scene->lease.path, "Tier", "cooperative"));
	CHECK(number_of(bus, scene->lease.path, GPUARB_INTERFACE_LEASE, "Capped") == 0);
	CHECK(filtered_after(&scene->process, FILTERED_PROVE) == EBADF);
	CHECK(lease_says(bus, scene->lease.path, "Tier", "capped"));
	CHECK(number_of(bus, scene->lease.path, GPUARB_INTERFACE_LEASE, "Capped") == 1);
}

static void depart(struct scene *scene)
{
	filtered_end(&scene->process);
	machine_halt(&scene->machine);
}

/* ---- tests ------------------------------------------------------------------------------------ */

FIXTURE(struct scene, s, arrive(s, 3), depart(s));

TEST_WITH(calls_beyond_the_queues_of_the_grant_fail_with_enomem, struct scene *s)
{
	CHECK(filtered_after(&s->process, FILTERED_CREATE) == ENOTTY);
	machine_use(&s->machine, s->process.pid, 0, 2);
	CHECK(filtered_after(&s->process, FILTERED_CREATE) == ENOTTY &&
	      refusals(s->machine.bus, &s->lease) == 0);
	machine_use(&s->machine, s->process.pid, 0, 3);
	CHECK(filtered_after(&s->process, FILTERED_CREATE) == ENOMEM &&
	      filtered_after(&s->process, FILTERED_CREATE) == ENOMEM);
	CHECK(refusals(s->machine.bus, &s->lease) == 2);
	CHECK(filtered_after(&s->process, FILTERED_PROVE) == EBADF); /* no call of a queue */
	CHECK(fake_sysfs_queue_gone(s->machine.sys, s->process.pid, 0) == 0);
	CHECK(filtered_after(&s->process, FILTERED_CREATE) == ENOTTY);
}

TEST(a_failed_call_gives_its_queue_back_when_its_process_has_ended)
{
	_cleanup_(depart) struct scene s;

	arrive(&s, 1);
	CHECK(filtered_after(&s.process, FILTERED_FORK) == ENOTTY);
	CHECK(filtered_after(&s.process, FILTERED_FORK) == ENOTTY);
	CHECK(filtered_after(&s.process, FILTERED_CREATE) == ENOTTY);
	/* The thread of this call lives on and makes no other: its outcome stays unknown. */
	CHECK(filtered_after(&s.process, FILTERED_FORK) == ENOMEM);
	CHECK(filtered_after(&s.process, FILTERED_CREATE) == ENOTTY);
}

TEST_WITH(processes_of_a_capped_lease_share_its_queues, struct scene *s)
{
	CHECK(filtered_after(&s->process, FILTERED_CREATE) == ENOTTY);
	machine_use(&s->machine, s->process.pid, 0, 3);
	CHECK(filtered_after(&s->process, FILTERED_FORK) == ENOMEM);
}

TEST_WITH(a_lease_is_capped_while_all_bound_processes_are, struct scene *s)
{
	pid_t other;
	int fd;

	other = idler(0, &fd);
	bind_process(s->machine.bus, &s->lease, fd);
	await_tier(s->machine.bus, &s->lease, "cooperative");
	machine_use(&s->machine, s->process.pid, 0, 3);
	CHECK(filtered_after(&s->process, FILTERED_CREATE) == ENOMEM); /* its own cap stays */
	end_process(other);
	await_tier(s->machine.bus, &s->lease, "capped");
}

/* A child with this pid, not under the filter; -1: this process may not choose a pid. */
static pid_t child_with_pid(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = (uintptr_t)&pid,
				   .set_tid_size = 1 };
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return child;
}

TEST(the_cap_of_a_process_that_has_ended_is_not_that_of_another_with_its_pid)
{
	struct scene s;
	pid_t child;
	int fd;

	arrive(&s, 3);
	CHECK(filtered_after(&s.process, FILTERED_LEAVE) == 0); /* it keeps the listener */
	end_process(s.process.pid);
	await_tier(s.machine.bus, &s.lease, "cooperative"); /* no process is bound */
	child = child_with_pid(s.process.pid);
	if (child < 0)
		SKIP("this process may not choose a pid");
	CHECK(child == s.process.pid);
	fd = pidfd_open(child, 0);
	bind_process(s.machine.bus, &s.lease, fd);
	CHECK(lease_says(s.machine.bus, s.lease.path, "Tier", "cooperative"));
	CHECK(number_of(s.machine.bus, s.lease.path, GPUARB_INTERFACE_LEASE, "Capped") == 0);
	depart(&s); /* ends the child with this pid */
}

TEST(what_is_no_listener_is_refused)
{
	_cleanup_(machine_halt) struct machine machine;
	struct filtered process;
	struct live_lease lease, wait;
	sd_bus *other_user;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	machine_build(&machine, 1);
	machine_boot(&machine);
	process = filtered_start();
	lease = reserve_for(machine.bus, &process, 3);
	CHECK(is_error(call(cap(machine.bus, lease.path, null)), GPUARB_ERROR_INVALID_REQUEST,
		       "listener"));
	wait = waiting(call(ask_for(machine.bus, "cus=60; wait-usec=forever")));
	CHECK(is_error(call(cap(machine.bus, wait.path, process.listener)),
		       GPUARB_ERROR_INVALID_STATE, "granted"));
	other_user = rig_connect(&machine.rig, STRANGER);
	CHECK(is_error(call(cap(other_user, lease.path, process.listener)),
		       GPUARB_ERROR_NOT_PERMITTED, ""));
	leave(other_user);
	CHECK(lease_says(machine.bus, lease.path, "Tier", "cooperative"));
	filtered_end(&process);
	close(null);
}

TEST(a_process_that_is_not_bound_proves_nothing)
{
	struct filtered process, other;
	struct live_lease lease;
	_cleanup_(machine_halt) struct machine machine;

	machine_build(&machine, 1);
	machine_boot(&machine);
	process = filtered_start();
	other = filtered_start();
	lease = reserve_for(machine.bus, &process, 3);
	hand_over(machine.bus, &lease, &other);
	CHECK(filtered_after(&other, FILTERED_PROVE) == EPERM &&
	      filtered_after(&other, FILTERED_CREATE) == EPERM);
	CHECK(lease_says(machine.bus, lease.path, "Tier", "cooperative"));
	filtered_end(&other);
	filtered_end(&process);
}

/* ---- abuse ------------------------------------------------------------------------------------ */

/* Takes reports of the listener, as the daemon does, and fails their calls. */
static void *steal(void *listener)
{
	union {
		struct seccomp_notif report;
		char room[512];
	} u;

	for (;;) {
		struct seccomp_notif_resp response = { .error = -EAGAIN };

		memset(&u, 0, sizeof(u));
		if (ioctl(*(int *)listener, SECCOMP_IOCTL_NOTIF_RECV, &u) < 0)
			return NULL;
		response.id = u.report.id;
		(void)ioctl(*(int *)listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
	}
}

TEST(a_client_that_reads_its_own_listener_does_not_stop_the_daemon)
{
	struct scene s;
	pthread_t thief;
	int copy;

	machine_build(&s.machine, 1);
	machine_boot(&s.machine);
	s.process = filtered_start();
	copy = dup(s.process.listener);
	s.lease = reserve_for(s.machine.bus, &s.process, 3);
	hand_over(s.machine.bus, &s.lease, &s.process);
	CHECK(filtered_after(&s.process, FILTERED_PROVE) == EBADF);
	await_tier(s.machine.bus, &s.lease, "capped");

	/* Each report can be gone when the daemon reads it. */
	CHECK(pthread_create(&thief, NULL, steal, &copy) == 0);
	filtered_say(&s.process, FILTERED_FLOOD);
	while (s.process.shared->calls < 1000)
		CHECK(is_fine(
			call(get(s.machine.bus, s.lease.path, GPUARB_INTERFACE_LEASE, "Tier"))));
	filtered_end(&s.process);
	CHECK(pthread_join(thief, NULL) == 0);
	close(copy);
	machine_halt(&s.machine);
}

#define FLOODING 8U

/* User and system time of a process, in clock ticks. */
static unsigned long ticks_of(pid_t pid)
{
	unsigned long user, system;
	char path[64], text[1024];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	CHECK(file && fgets(text, sizeof(text), file));
	fclose(file);
	CHECK(sscanf(strrchr(text, ')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
		     &user, &system) == 2);
	return user + system;
}

/* They get a fifth of its time, however many they are. Where the machine is busy, gpuarbd gets less. */
TEST(all_listeners_of_a_user_share_the_time_that_one_may_take)
{
	struct filtered processes[FLOODING];
	struct live_lease leases[FLOODING];
	struct machine machine;
	unsigned long ticks;
	uint64_t began;

	machine_build(&machine, 2);
	machine_boot(&machine);
	for (unsigned i = 0; i < FLOODING; i++) {
		processes[i] = filtered_start();
		leases[i] = reserve_for(machine.bus, &processes[i], 1);
		hand_over(machine.bus, &leases[i], &processes[i]);
		CHECK(filtered_after(&processes[i], FILTERED_PROVE) == EBADF);
	}
	ticks = ticks_of(machine.rig.daemon);
	began = boottime_usec();
	for (unsigned i = 0; i < FLOODING; i++)
		filtered_say(&processes[i], FILTERED_FLOOD);
	for (unsigned i = 0; i < FLOODING; i++)
		AWAIT_STATE(processes[i].shared->calls >= 1000);
	ticks = ticks_of(machine.rig.daemon) - ticks;
	began = boottime_usec() - began;
	printf("%lu ms of %" PRIu64 " ms\n", ticks * 1000 / (unsigned long)sysconf(_SC_CLK_TCK),
	       began / 1000);
	CHECK(ticks * 1000000 / (unsigned long)sysconf(_SC_CLK_TCK) < began / 2);
	for (unsigned i = 0; i < FLOODING; i++)
		filtered_end(&processes[i]);
	machine_halt(&machine);
}

/* Its other processes have more queues than can be counted for each call. */
TEST_WITH(queues_without_number_of_a_lease_do_not_keep_others_from_the_daemon, struct scene *s)
{
	pid_t other;
	int fd;

	other = idler(0, &fd);
	bind_process(s->machine.bus, &s->lease, fd);
	machine_use(&s->machine, other, 0, 4096);
	AWAIT_STATE(gpu_number(s->machine.bus, "QueueSlotsFree") == 0);
	CHECK(filtered_after(&s->process, FILTERED_CREATE) == ENOMEM);
	filtered_say(&s->process, FILTERED_FLOOD);
	AWAIT_STATE(s->process.shared->calls >= 20);
	CHECK(gpu_number(s->machine.bus, "QueueSlotsFree") == 0);
	AWAIT_STATE(s->process.shared->calls >= 40);
	end_process(other);
}

/* ---- processes that end while their calls wait ------------------------------------------------- */

#define DYING 6U
#define LONG_USEC UINT64_C(600000000)

/* Ends one process in the middle of its calls, before its lease or after it. The processes that were started since
 * have copies of the holder. */
static void end_one(struct machine *machine, struct filtered *process,
		    const struct live_lease *lease)
{
	bool first = rand() % 2;

	if (first)
		filtered_end(process);
	CHECK(is_fine(call(release(machine->bus, lease->path))) || first);
	if (!first)
		filtered_end(process);
	close(lease->holder);
	process->pid = 0;
}

static void replace_one(struct machine *machine, struct filtered *process, struct live_lease *lease)
{
	if (process->pid > 0)
		end_one(machine, process, lease);
	*process = filtered_start();
	AWAIT_STATE(gpu_number(machine->bus, "ProcessSlotsFree") > 0); /* others are ending */
	*lease = reserve_cus(machine->bus, process, 4, 1);
	hand_over(machine->bus, lease, process);
	if (rand() % 4 > 0)
		CHECK(filtered_after(process, FILTERED_PROVE) == EBADF);
	filtered_say(process, FILTERED_FLOOD);
}

TEST(processes_that_end_while_their_calls_wait_leave_nothing)
{
	unsigned seed = SEED_OF_RUN("CAP_SEED"), rounds = 0;
	static struct filtered processes[DYING];
	static struct live_lease leases[DYING];
	uint64_t begin = boottime_usec();
	static struct machine machine;
	unsigned cus;

	machine_build(&machine, 2);
	machine_boot(&machine);
	cus = gpu_number(machine.bus, "CusFree");
	seed_rand(seed);
	while (rounds < 3 * DYING ||
	       (getenv("GPUARB_LONG") && boottime_usec() - begin < LONG_USEC)) {
		unsigned i = (unsigned)rand() % DYING;

		rounds++;
		replace_one(&machine, &processes[i], &leases[i]);
	}
	printf("%u processes\n", rounds);
	for (unsigned i = 0; i < DYING; i++)
		if (processes[i].pid > 0)
			end_one(&machine, &processes[i], &leases[i]);
	AWAIT_STATE(gpu_number(machine.bus, "CusFree") == cus);
	machine_halt(&machine);
}

TEST_WITH(a_flood_of_calls_does_not_keep_others_from_the_daemon, struct scene *s)
{
	struct live_lease lease;

	machine_use(&s->machine, s->process.pid, 0, 3);
	filtered_say(&s->process, FILTERED_FLOOD);
	while (s->process.shared->calls < 100)
		sched_yield();
	for (unsigned i = 0; i < 50; i++) {
		lease = reserve(s->machine.bus, 15);
		CHECK(is_fine(call(release(s->machine.bus, lease.path))));
		close(lease.holder);
	}
	CHECK(refusals(s->machine.bus, &s->lease) >= 100);
}

TEST(listeners_count_as_what_keeps_a_lease)
{
	_cleanup_(machine_halt) struct machine machine;
	struct filtered process;
	struct live_lease lease;
	unsigned n = 0;

	machine_build(&machine, 1);
	rig_write(&machine.rig, "gpuarbd.conf", "[daemon]\nmax-holders = 20\n");
	machine_boot(&machine);
	process = filtered_start();
	lease = reserve_for(machine.bus, &process, 3); /* a holder, and a bound process */
	while (is_fine(call(cap(machine.bus, lease.path, process.listener))))
		n++;
	CHECK(n == 8);
	CHECK(is_error(call(cap(machine.bus, lease.path, process.listener)),
		       GPUARB_ERROR_TOO_MANY_LEASES, "max-holders"));
	filtered_end(&process);
}

/* ---- ends and restarts -------------------------------------------------------------------------- */

/* user: of the daemon; the process under the filter is root's. */
static void answer_by_next_daemon(uid_t user)
{
	struct filtered process;
	struct live_lease lease;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;

	rig_new(&rig);
	if (user)
		rig_run_as(&rig, user);
	rig_start_managed(&rig, "--simulate=radeon-vii", "--store-max=64");
	bus = rig_connect(&rig, 0);
	process = filtered_start();
	lease = reserve_for(bus, &process, 3);
	hand_over(bus, &lease, &process);
	CHECK(filtered_after(&process, FILTERED_PROVE) == EBADF);
	rig_down(&rig);
	filtered_say(&process, FILTERED_CREATE);
	rig_up(&rig);
	rig_await_ready(&rig);
	CHECK(filtered_hear(&process) == ENOTTY);
	await_tier(bus, &lease, "capped");
	filtered_end(&process);
}

TEST_CASE(the_next_daemon_answers_a_call_that_waits, answer_by_next_daemon(0));
TEST_CASE(a_daemon_without_privileges_caps_processes_of_other_users,
	  answer_by_next_daemon(STRANGER));

TEST(a_listener_is_forgotten_when_the_last_process_under_it_ends)
{
	struct filtered process;
	struct live_lease lease;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;

	rig_new(&rig);
	rig_start_managed(&rig, "--simulate=radeon-vii", "--store-max=64");
	bus = rig_connect(&rig, 0);
	process = filtered_start();
	lease = reserve_for(bus, &process, 3);
	hand_over(bus, &lease, &process);
	CHECK(filtered_after(&process, FILTERED_PROVE) == EBADF);
	rig_await_stored(&rig, 3);
	filtered_end(&process);
	rig_await_stored(&rig, 1); /* the holder */
	CHECK(lease_says(bus, lease.path, "Tier", "cooperative"));
}
