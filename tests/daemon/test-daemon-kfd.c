/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped daemon on a KFD tree: which lease the processes on the hardware belong to. */

#include "check.h"
#include "machine.h"

NEEDS(daemon_missing);

FIXTURE(struct machine, machine, machine_build(machine, 1), machine_halt(machine));

TEST_WITH(a_bound_process_is_managed_and_compared_with_its_budget, struct machine *machine)
{
	struct live_lease lease;
	struct row rows[ROWS_MAX];
	unsigned slots;
	pid_t pid;
	int fd;

	machine_boot(machine);
	slots = gpu_number(machine->bus, "QueueSlotsFree");
	pid = idler(0, &fd);
	lease = granted(call(ask_bound(machine->bus, 15, fd)));
	close(lease.holder);
	machine_use(machine, pid, 0, 2);
	CHECK(unmanaged_processes(machine, rows) == 0);
	AWAIT(machine->bus, machine->told.slots_free == slots - 2);
	CHECK(lease_says(machine->bus, lease.path, "Reason", ""));

	machine_use(machine, pid, 0, 5);
	AWAIT(machine->bus, machine->told.slots_free == slots - 5);
	AWAIT(machine->bus, lease_says(machine->bus, lease.path, "Reason", "5 queues"));
	CHECK(lease_says(machine->bus, lease.path, "Reason", "granted: 2"));
	CHECK(unmanaged_processes(machine, rows) == 0);
	CHECK(fake_sysfs_process_gone(machine->sys, pid) == 0);
	end_process(pid);
	AWAIT(machine->bus, machine->told.removed == 1);
}

/* A process that is no child of this one: it belongs to a lease only if it is bound. */
static pid_t orphan(int *ret_pidfd)
{
	pid_t parent, pid;
	int fds[2];

	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	parent = fork();
	CHECK(parent >= 0);
	if (parent == 0) {
		pid = fork(); /* not idler(), which ends with its parent */
		CHECK(pid >= 0);
		while (pid == 0)
			pause();
		CHECK(write(fds[1], &pid, sizeof(pid)) == sizeof(pid));
		_exit(0);
	}
	CHECK(waitpid(parent, NULL, 0) == parent);
	CHECK(read(fds[0], &pid, sizeof(pid)) == sizeof(pid));
	close(fds[0]);
	close(fds[1]);
	*ret_pidfd = pidfd_open(pid, 0);
	CHECK(*ret_pidfd >= 0);
	return pid;
}

/* The process ends, and its queues stay. */
static void linger(bool seen_before)
{
	static struct machine machine;
	struct live_lease lease;
	struct row rows[ROWS_MAX];
	unsigned slots;
	pid_t pid;
	int fd;

	memset(&machine, 0, sizeof(machine));
	machine_build(&machine, 1);
	if (!seen_before)
		rig_write(&machine.rig, "gpuarbd.conf", "[daemon]\naudit-interval = 1h\n");
	machine_boot(&machine);
	slots = gpu_number(machine.bus, "QueueSlotsFree");
	pid = orphan(&fd);
	lease = granted(call(ask_bound(machine.bus, 15, fd)));
	close(lease.holder);
	settle(machine.bus);
	AWAIT(machine.bus, machine.told.cus_free == 45);
	machine_use(&machine, pid, 0, 3); /* one more than granted, which is told when it is seen */
	AWAIT(machine.bus, !seen_before || machine.told.lease > 0);
	machine.told.lease = 0;
	CHECK(kill(pid, SIGKILL) == 0);

	AWAIT(machine.bus, machine.told.lease > 0);
	CHECK(machine.told.removed == 0);
	CHECK(lease_says(machine.bus, lease.path, "State", "ending"));
	CHECK(is_error(call(with(call_lease(machine.bus, lease.path, "Bind"), "h", fd)),
		       GPUARB_ERROR_INVALID_STATE, ""));
	CHECK(gpu_number(machine.bus, "CusFree") == 45);
	CHECK(gpu_number(machine.bus, "QueueSlotsFree") == slots - 3);
	CHECK(unmanaged_processes(&machine, rows) == 0);
	CHECK(fake_sysfs_process_gone(machine.sys, pid) == 0);
	AWAIT(machine.bus, machine.told.removed == 1 && machine.told.cus_free == 60);
	CHECK(machine.told.slots_free == slots);
	machine_halt(&machine);
}

TEST_CASE(a_lease_is_ending_while_its_processes_use_the_gpu, linger(true));
TEST_CASE(queues_of_a_bound_process_that_died_unobserved_belong_to_its_lease, linger(false));

/* Counts the lines that contain the text. */
static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what)))
		n++, text++;
	return n;
}

TEST_WITH(while_sysfs_cannot_be_read_ending_leases_keep_what_they_have, struct machine *machine)
{
	struct live_lease lease;
	const char *said;

	log_begin(&machine->rig);
	machine_boot(machine);
	lease = reserve(machine->bus, 15);
	CHECK(fake_sysfs_remove(machine->sys, FAKE_PROC) == 0);
	CHECK(fake_sysfs_write(machine->sys, FAKE_PROC, "", 0) == 0);
	CHECK(is_fine(call(release(machine->bus, lease.path))));
	CHECK(lease_says(machine->bus, lease.path, "State", "ending"));
	CHECK(gpu_number(machine->bus, "CusFree") == 45 && machine->told.removed == 0);
	CHECK(fake_sysfs_remove(machine->sys, FAKE_PROC) == 0);
	CHECK(fake_sysfs_mkdir(machine->sys, FAKE_PROC) == 0);
	AWAIT(machine->bus, machine->told.removed == 1 && machine->told.cus_free == 60);
	said = log_end(&machine->rig);
	CHECK(count(said, "cannot read which") == 1);
	CHECK(count(said, "can be read again") == 1);
}

TEST(without_a_gpu_no_request_fits)
{
	static struct machine machine;

	machine_build(&machine, 0);
	machine_boot(&machine);
	CHECK(is_error(call(ask_for(machine.bus, "cus=1")), GPUARB_ERROR_NEVER_FITS, ""));
	CHECK(is_error(call(ask(machine.bus, "Reserve", 1)), GPUARB_ERROR_NO_SUCH_GPU, "0"));
	machine_halt(&machine);
}
