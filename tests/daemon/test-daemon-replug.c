/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* GPUs that are removed, added and replaced: the signals on the bus, and the state after a restart. */

#include "check.h"
#include "book.h"
#include "machine.h"

NEEDS(daemon_missing);

#define GPU "0000:04:00.0"

static sd_bus_message *ask_on(sd_bus *bus, unsigned cus, int process)
{
	sd_bus_message *m = call_arbiter(bus, "Reserve");

	if (process < 0)
		return with_request(m, "gpu=%s cus=%u", GPU, cus);
	return with_request(m, "gpu=%s cus=%u; process=%d", GPU, cus, process);
}

/* Two GPUs, and a lease of a process that uses the second. */
static struct live_lease boot(struct machine *machine, pid_t *ret_pid, int *ret_fd)
{
	struct live_lease lease;

	memset(machine, 0, sizeof(*machine));
	machine_build(machine, 2);
	rig_start_managed(&machine->rig, machine->option, "--store-max=64");
	machine_connect(machine);
	*ret_pid = idler(0, ret_fd);
	lease = granted(call(ask_on(machine->bus, 15, *ret_fd)));
	machine_use(machine, *ret_pid, 1, 3);
	AWAIT(machine->bus, machine->told.lease > 0); /* one more than granted: they are seen */
	return lease;
}

static void replug(struct machine *machine)
{
	machine_replug(machine, 1);
	AWAIT(machine->bus, machine->told.removed == 1);
	machine_replug(machine, 2);
	AWAIT(machine->bus, machine->told.added == 2); /* a lease, and now the GPU */
}

/* Another lease gets all of the new GPU, and still has it after a crash. The old lease is ending until
 * its processes have left the hardware. */
static void grant_and_crash(struct machine *machine, const struct live_lease *old, pid_t pid)
{
	static struct book before, after;
	struct live_lease lease = granted(call(ask_on(machine->bus, 60, -1)));

	book_read(machine->bus, &before);
	rig_crash(&machine->rig);
	book_read(machine->bus, &after);
	CHECK(before.n_leases == 2 && after.n_leases == 2);
	CHECK(book_find(&after, lease.id) &&
	      book_same_parts(book_find(&before, lease.id), book_find(&after, lease.id)->parts, 1));
	CHECK(lease_says(machine->bus, lease.path, "State", "granted"));
	CHECK(lease_says(machine->bus, old->path, "State", "ending"));

	CHECK(fake_sysfs_process_gone(machine->sys, pid) == 0);
	AWAIT(machine->bus, !lease_exists(machine->bus, old->path));
	CHECK(lease_says(machine->bus, lease.path, "State", "granted"));
}

TEST(a_lease_that_ended_with_its_gpu_blocks_no_grant_after_replug)
{
	static struct machine machine;
	struct live_lease old;
	pid_t pid;
	int fd;

	old = boot(&machine, &pid, &fd);
	replug(&machine);
	CHECK(lease_says(machine.bus, old.path, "Reason", "gone"));
	grant_and_crash(&machine, &old, pid);
	end_process(pid);
	close(fd);
	machine_halt(&machine);
}

TEST(a_replaced_unused_gpu_is_signalled_as_removed_and_added)
{
	static struct machine machine;

	memset(&machine, 0, sizeof(machine));
	machine_build(&machine, 2);
	machine_boot(&machine);
	machine.gpus[1].kfd_gpu_id = machine_gpu_id(&machine, 1) + 1;
	machine_replug(&machine, 2);
	while (machine.told.added == 0) /* a look comes with each question */
		CHECK(gpu_number(machine.bus, "Cus") == 60);
	CHECK(machine.told.removed == 1 && machine.told.added == 1);
	CHECK(strcmp(machine.told.last_removed, GPUARB_PATH_GPU "/1") == 0);
	CHECK(strcmp(machine.told.last_added, GPUARB_PATH_GPU "/1") == 0);
	CHECK(number_of(machine.bus, GPUARB_PATH_GPU "/1", GPUARB_INTERFACE_GPU, "KfdGpuId") ==
	      machine.gpus[1].kfd_gpu_id);
	machine_halt(&machine);
}
