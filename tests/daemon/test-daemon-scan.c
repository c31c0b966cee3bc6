/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped daemon beside a user with more processes and queues than one scan reads. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "check.h"
#include "book.h"
#include "machine.h"
#include "seed.h"
#include "util/clock.h"

#define VICTIM 2           /* "bin", on every Debian and Fedora */
#define SUBORDINATE 70000U /* the first subordinate uid of STRANGER */
#define NO_PID 4194305U    /* above the largest that Linux gives */
#define PROCESSES 50U
#define QUEUES_OF_EACH 85U
#define FEW 4U /* whose queues are more than are read at once */

NEEDS(daemon_missing);

/* Directories of n processes that have ended without a trace in /proc: their user is unknown. */
static void make_dead(const struct machine *machine, unsigned n)
{
	char path[192];

	CHECK(fake_sysfs_mkdir(machine->sys, FAKE_PROC) == 0);
	for (unsigned i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/" FAKE_PROC "/%u", machine->sys, NO_PID + i);
		CHECK(mkdir(path, 0755) == 0);
		snprintf(path, sizeof(path), "%s/" FAKE_PROC "/%u/queues", machine->sys,
			 NO_PID + i);
		CHECK(mkdir(path, 0755) == 0);
	}
}

/* Processes with many queues on the second GPU, of uids that differ by step. */
static void make_strangers(const struct machine *machine, pid_t *pids, unsigned n, uid_t first,
			   unsigned step)
{
	for (unsigned i = 0; i < n; i++) {
		int fd;

		pids[i] = idler(first + i * step, &fd);
		close(fd);
		machine_use(machine, pids[i], 1, QUEUES_OF_EACH);
	}
}

static void end_strangers(const struct machine *machine, const pid_t *pids, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		CHECK(fake_sysfs_process_gone(machine->sys, pids[i]) == 0);
		end_process(pids[i]);
	}
}

/* A lease of VICTIM with a process that has queues lasts as long as these, and no longer. */
static void check_lease(const struct machine *machine, sd_bus *victim)
{
	struct live_lease lease;
	pid_t pid;
	int fd;

	pid = idler(VICTIM, &fd);
	lease = granted(call(ask_bound(victim, 15, fd)));
	machine_use(machine, pid, 0, 5);
	AWAIT_STATE(lease_says(machine->bus, lease.path, "Reason", "5 queues"));
	end_process(pid);
	close(fd);
	close(lease.holder);
	AWAIT_STATE(lease_says(machine->bus, lease.path, "State", "ending"));
	for (unsigned i = 0; i < 20; i++) { /* a scan or more each */
		struct live_lease other = reserve(victim, 4);

		CHECK(is_fine(call(release(victim, other.path))));
		close(other.holder);
	}
	CHECK(lease_exists(machine->bus, lease.path));
	CHECK(fake_sysfs_process_gone(machine->sys, pid) == 0);
	AWAIT_STATE(!lease_exists(machine->bus, lease.path));
}

/* The entry of the property LateProcesses. */
static unsigned late_processes(const struct machine *machine, uint32_t wanted)
{
	sd_bus_message *m = call(get(machine->bus, GPUARB_PATH, GPUARB_INTERFACE, "LateProcesses"));
	uint32_t uid, n, found = 0;

	CHECK(sd_bus_message_enter_container(m, 'v', "a{uu}") >= 0);
	CHECK(sd_bus_message_enter_container(m, 'a', "{uu}") >= 0);
	while (sd_bus_message_read(m, "{uu}", &uid, &n) > 0)
		found = uid == wanted ? n : found;
	sd_bus_message_unref(m);
	return found;
}

FIXTURE(struct machine, machine, , machine_halt(machine));

TEST_WITH(leases_end_and_unmanaged_use_is_seen_beside_4097_processes, struct machine *machine)
{
	const char *said;
	sd_bus *victim;
	unsigned slots;
	pid_t pid;

	machine_build(machine, 1);
	make_dead(machine, 4097);
	log_begin(&machine->rig);
	machine_boot(machine);
	victim = rig_connect(&machine->rig, VICTIM);
	slots = gpu_number(machine->bus, "QueueSlotsFree");
	AWAIT_STATE(late_processes(machine, UINT32_MAX) > 0);
	check_lease(machine, victim);
	pid = idler(STRANGER, NULL);
	machine_use(machine, pid, 0, 1);
	AWAIT_STATE(gpu_number(machine->bus, "QueueSlotsFree") == slots - 1);
	end_process(pid);
	said = log_end(&machine->rig);
	CHECK(strstr(said, "unknown") && !strstr(said, "the GPUs: "));
}

TEST_WITH(leases_end_and_unmanaged_use_is_seen_beside_a_process_with_4097_queues,
	  struct machine *machine)
{
	sd_bus *victim;
	unsigned slots;
	pid_t pid;

	machine_build(machine, 2);
	pid = idler(STRANGER, NULL);
	machine_use(machine, pid, 1, 4097);
	machine_boot(machine);
	victim = rig_connect(&machine->rig, VICTIM);
	AWAIT_STATE(number_of(machine->bus, GPUARB_PATH_GPU "/1", GPUARB_INTERFACE_GPU,
			      "QueueSlotsFree") == 0);
	slots = gpu_number(machine->bus, "QueueSlotsFree");
	check_lease(machine, victim);
	CHECK(fake_sysfs_queue(machine->sys, pid, 5000, machine_gpu_id(machine, 0), 0) == 0);
	AWAIT_STATE(gpu_number(machine->bus, "QueueSlotsFree") == slots - 1);
	end_process(pid);
}

TEST_WITH(user_whose_processes_are_read_late_is_named_until_they_have_ended,
	  struct machine *machine)
{
	pid_t pids[PROCESSES], pid;
	sd_bus *victim;
	unsigned slots;

	machine_build(machine, 2);
	make_strangers(machine, pids, PROCESSES, STRANGER, 0);
	log_begin(&machine->rig);
	machine_boot(machine);
	victim = rig_connect(&machine->rig, VICTIM);
	slots = gpu_number(machine->bus, "QueueSlotsFree");
	check_lease(machine, victim);
	pid = idler(STRANGER, NULL); /* new: read before the facts take effect */
	machine_use(machine, pid, 0, 1);
	AWAIT_STATE(gpu_number(machine->bus, "QueueSlotsFree") == slots - 1);
	end_process(pid);
	AWAIT_STATE(log_says(&machine->rig, "processes of uid 1 "));
	end_strangers(machine, pids, PROCESSES);
	AWAIT_STATE(log_says(&machine->rig, "all processes of uid 1 "));
	CHECK(late_processes(machine, STRANGER) == 0);
	CHECK(!strstr(log_end(&machine->rig), "uid 2 that "));
}

TEST_WITH(subordinate_uids_have_the_share_of_their_owner, struct machine *machine)
{
	pid_t pids[PROCESSES];

	machine_build(machine, 2);
	rig_write(&machine->rig, "subuid", "daemon:70000:100\n");
	make_strangers(machine, pids, PROCESSES, SUBORDINATE, 1);
	CHECK(setenv("GPUARB_SUBUID", rig_path(&machine->rig, "subuid"), 1) == 0);
	machine_boot(machine);
	CHECK(unsetenv("GPUARB_SUBUID") == 0);
	AWAIT_STATE(late_processes(machine, STRANGER) > 0);
	end_strangers(machine, pids, PROCESSES);
	AWAIT_STATE(late_processes(machine, STRANGER) == 0);
}

/* Adds and removes directories of processes until it is killed. */
static pid_t begin_churn(const struct machine *machine)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; pid == 0; i++) {
		char path[160];

		snprintf(path, sizeof(path), "%s/" FAKE_PROC "/%u", machine->sys,
			 NO_PID + 10000 + i % 64);
		(void)(mkdir(path, 0755) < 0 && rmdir(path) < 0);
		usleep(500);
	}
	return pid;
}

/* The directory of processes, and another one in its place. */
static void exchange_processes(const struct machine *machine)
{
	char path[128], other[128];

	snprintf(path, sizeof(path), "%s/" FAKE_PROC, machine->sys);
	snprintf(other, sizeof(other), "%s/others", machine->sys);
	CHECK(mkdir(other, 0755) == 0 || errno == EEXIST);
	CHECK(renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE) == 0);
}

/* A daemon that has not seen a GPU in use, beside many queues of STRANGER and 5 of root that are all new. */
struct unused {
	struct machine machine;
	pid_t strangers[FEW], pid;
	sd_bus *victim;
	unsigned slots;
};

static void unused_arrive(struct unused *u)
{
	uint64_t until;

	machine_build(&u->machine, 2);
	make_strangers(&u->machine, u->strangers, FEW, STRANGER, 0);
	u->pid = idler(0, NULL);
	machine_use(&u->machine, u->pid, 0, 5);
	exchange_processes(&u->machine);
	machine_boot(&u->machine);
	u->victim = rig_connect(&u->machine.rig, VICTIM);
	/* No event tells that the list of GPUs has settled, after 0.2 s: there is a scan. */
	for (until = clock_usec(CLOCK_BOOTTIME) + 400000; clock_usec(CLOCK_BOOTTIME) < until;)
		u->slots = gpu_number(u->machine.bus, "QueueSlotsFree");
	exchange_processes(&u->machine);
	usleep(30000); /* a scan serves the calls of 20 ms */
}

static void unused_depart(struct unused *u)
{
	end_strangers(&u->machine, u->strangers, FEW);
	CHECK(fake_sysfs_process_gone(u->machine.sys, u->pid) == 0);
	end_process(u->pid);
	machine_halt(&u->machine);
}

TEST(first_read_after_a_time_without_use_does_not_wait_for_new_queues)
{
	static struct unused u;

	unused_arrive(&u);
	CHECK(gpu_number(u.victim, "QueueSlotsFree") == u.slots); /* as the last scan found it */
	AWAIT_STATE(gpu_number(u.machine.bus, "QueueSlotsFree") == u.slots - 5);
	unused_depart(&u);
}

TEST(first_decision_after_a_time_without_use_knows_new_queues)
{
	static struct unused u;

	unused_arrive(&u);
	CHECK(is_error(call(ask_for(u.victim, "cus=1 queues=%u", u.slots)),
		       GPUARB_ERROR_NO_CAPACITY, "5 queues"));
	unused_depart(&u);
}

TEST_WITH(leases_end_while_processes_come_and_go_all_the_time, struct machine *machine)
{
	sd_bus *victim;
	pid_t churn;

	machine_build(machine, 1);
	make_dead(machine, 1000);
	machine_boot(machine);
	churn = begin_churn(machine);
	victim = rig_connect(&machine->rig, VICTIM);
	check_lease(machine, victim);
	end_process(churn);
}

static void plan(const struct await *await, sd_bus *bus)
{
	await_moment(await);
	sd_bus_message_unref(call(ask(bus, "Plan", 4)));
}

/* Listing so many processes takes longer than the 20 ms after which a call begins the next scan. */
TEST_WITH(lease_ends_although_scans_begin_before_the_last_one_has_listed_all,
	  struct machine *machine)
{
	struct live_lease lease;
	sd_bus *victim;

	machine_build(machine, 1);
	make_dead(machine, 30000);
	machine_boot(machine);
	victim = rig_connect(&machine->rig, VICTIM);
	lease = reserve(victim, 15);
	CHECK(is_fine(call(release(victim, lease.path))));
	close(lease.holder);
	AWAIT_WITH(plan(await, machine->bus), "the end", !lease_exists(machine->bus, lease.path));
}

TEST_WITH(scan_that_fails_between_its_turns_ends_no_lease, struct machine *machine)
{
	struct live_lease lease;
	char tree[160], away[160];
	sd_bus *victim;
	pid_t pid;
	int fd;

	machine_build(machine, 1);
	make_dead(machine, 1000);
	log_begin(&machine->rig);
	machine_boot(machine);
	victim = rig_connect(&machine->rig, VICTIM);
	pid = idler(VICTIM, &fd);
	lease = granted(call(ask_bound(victim, 15, fd)));
	machine_use(machine, pid, 0, 5);
	AWAIT_STATE(lease_says(machine->bus, lease.path, "Reason", "5 queues"));
	snprintf(tree, sizeof(tree), "%s/" FAKE_PROC, machine->sys);
	snprintf(away, sizeof(away), "%s/away", machine->sys);
	CHECK(rename(tree, away) == 0);
	CHECK(fake_sysfs_print(machine->sys, FAKE_PROC, "no directory") == 0);
	end_process(pid);
	close(fd);
	close(lease.holder);
	AWAIT_STATE(log_says(&machine->rig, "cannot read which processes use the GPUs"));
	CHECK(lease_says(machine->bus, lease.path, "State", "ending"));
	CHECK(unlink(tree) == 0 && rename(away, tree) == 0);
	AWAIT_STATE(log_says(&machine->rig, "can be read again"));
	CHECK(lease_exists(machine->bus, lease.path));
	CHECK(fake_sysfs_process_gone(machine->sys, pid) == 0);
	AWAIT_STATE(!lease_exists(machine->bus, lease.path));
	log_end(&machine->rig);
}

/* ---- file descriptors ------------------------------------------------------------------------ */

#define LONG_USEC UINT64_C(600000000)

/* The daemon may open so many more. */
static void leave_descriptors(pid_t pid, unsigned n, struct rlimit *limit)
{
	char path[64];

	limit->rlim_cur = 0;
	do {
		snprintf(path, sizeof(path), "/proc/%d/fd/%u", pid, (unsigned)limit->rlim_cur++);
		n -= faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && n > 0;
	} while (n > 0 || faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	CHECK(prlimit(pid, RLIMIT_NOFILE, limit, NULL) == 0);
}

/* Whatever comes of it, all of it or nothing. */
static void make_call(const struct machine *machine, sd_bus *user, int process,
		      const struct rlimit *before)
{
	struct live_lease lease;
	sd_bus_message *m;

	switch (rand() % 4) {
	case 0: sd_bus_message_unref(call(call_arbiter(machine->bus, "ObserveClients"))); return;
	case 1:
		sd_bus_message_unref(call(with(call_arbiter(machine->bus, "ReadSlots"), "s", "0")));
		return;
	case 2:
		sd_bus_message_unref(call(get(user, GPUARB_PATH, GPUARB_INTERFACE, "Version")));
		return;
	default: break;
	}
	m = call(rand() % 2 ? ask(user, "Reserve", 4) : ask_bound(user, 4, process));
	if (sd_bus_message_is_method_error(m, NULL)) {
		sd_bus_message_unref(m);
		return;
	}
	lease = granted(m);
	if (rand() % 2)
		sd_bus_message_unref(
			call(with(call_lease(user, lease.path, "Bind"), "h", process)));
	m = call(release(user, lease.path));
	if (sd_bus_message_is_method_error(m, NULL)) { /* its process would keep it */
		CHECK(prlimit(machine->rig.daemon, RLIMIT_NOFILE, before, NULL) == 0);
		CHECK(is_fine(call(release(user, lease.path))));
	}
	sd_bus_message_unref(m);
	close(lease.holder);
}

TEST_WITH(without_file_descriptors_calls_fail_as_a_whole_and_leases_stay, struct machine *machine)
{
	unsigned seed = SEED_OF_RUN("DESCRIPTORS_SEED"), calls = 0;
	uint64_t begin = boottime_usec();
	static struct book book;
	struct live_lease lease;
	struct rlimit before, limit;
	sd_bus *victim;
	pid_t pid;
	int fd;

	machine_build(machine, 2);
	machine_boot(machine);
	victim = rig_connect(&machine->rig, VICTIM);
	pid = idler(VICTIM, &fd);
	lease = granted(call(ask_bound(victim, 15, fd)));
	machine_use(machine, pid, 0, 2);
	CHECK(prlimit(machine->rig.daemon, RLIMIT_NOFILE, NULL, &before) == 0);
	limit = before;
	seed_rand(seed);
	while (calls < 120 || (getenv("GPUARB_LONG") && boottime_usec() - begin < LONG_USEC)) {
		if (calls++ % 4 == 0)
			leave_descriptors(machine->rig.daemon, (unsigned)rand() % 8, &limit);
		make_call(machine, victim, fd, &before);
	}
	printf("%u calls\n", calls);
	CHECK(prlimit(machine->rig.daemon, RLIMIT_NOFILE, &before, NULL) == 0);
	AWAIT_STATE(gpu_number(machine->bus, "CusFree") == 45);
	book_read(machine->bus, &book);
	book_check(&book, false);
	CHECK(lease_says(machine->bus, lease.path, "State", "granted"));
	end_process(pid);
}
