/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* GPUs that are removed, added and replaced under the shipped daemon. */

#include <sys/inotify.h>

#include "check.h"
#include "book.h"
#include "machine.h"

NEEDS(daemon_missing);

#define SECOND "0000:04:00.0"

static sd_bus_message *ask_on(sd_bus *bus, const char *gpu, unsigned cus)
{
	return ask_for(bus, "gpu=%s cus=%u", gpu, cus);
}

static sd_bus_message *ask_gang(sd_bus *bus)
{
	return ask_for(bus, "cus=15 | cus=15");
}

struct leases {
	struct live_lease first, second, gang; /* on GPU 0, on GPU 1, on both */
	struct book before, after;
};

static void fill(struct machine *machine, struct leases *leases)
{
	memset(machine, 0, sizeof(*machine));
	machine_build(machine, 2);
	machine_boot(machine);
	leases->first = granted(call(ask_on(machine->bus, "0", 15)));
	leases->second = granted(call(ask_on(machine->bus, "1", 15)));
	leases->gang = granted(call(ask_gang(machine->bus)));
	book_read(machine->bus, &leases->before);
	CHECK(leases->before.n_leases == 3 && leases->before.n_gpus == 2);
}

static void await_gone(const struct live_lease *lease)
{
	struct live_record record = await_record(lease->holder, GPUARB_RECORD_ENDING);

	CHECK(record.record.cause == GPUARB_RECORD_NO_SUCH_GPU);
	CHECK(strstr(record.record.reason, SECOND));
}

FIXTURE(struct machine, machine, , machine_halt(machine));

/* Every lease with a part on the second GPU ends as a whole; the others are unchanged. */
TEST_WITH(a_removed_gpu_ends_its_leases_and_no_other, struct machine *machine)
{
	const struct book_lease *first;
	static struct leases leases;

	fill(machine, &leases);
	machine_replug(machine, 1);
	await_gone(&leases.second);
	await_gone(&leases.gang);
	AWAIT(machine->bus, !lease_exists(machine->bus, leases.second.path) &&
				    !lease_exists(machine->bus, leases.gang.path));
	book_read(machine->bus, &leases.after);
	first = book_find(&leases.after, leases.first.id);
	CHECK(leases.after.n_leases == 1 && first && strcmp(first->state, "granted") == 0);
	CHECK(book_same_parts(first, book_find(&leases.before, leases.first.id)->parts, 1));
	book_check(&leases.after, true);
	CHECK(leases.after.n_gpus == 1 && strcmp(leases.after.gpus[0].name, "0000:03:00.0") == 0);
	CHECK(leases.after.gpus[0].cus_free == 45);
	CHECK(is_error(call(ask_on(machine->bus, "1", 15)), GPUARB_ERROR_NO_SUCH_GPU, "gone"));
	CHECK(is_error(call(ask_gang(machine->bus)), GPUARB_ERROR_NEVER_FITS, ""));
}

/* Removes a node or puts it back without a change of the generation, as the driver does with all nodes
 * when one is removed. */
static void move_node(const struct machine *machine, const char *from, const char *to)
{
	char source[160], target[160];

	snprintf(source, sizeof(source), "%s/%s", machine->sys, from);
	snprintf(target, sizeof(target), "%s/%s", machine->sys, to);
	CHECK(rename(source, target) == 0);
}

/* Waits until the daemon opens the directory to list the nodes. */
static void await_listing(int watch)
{
	char events[4096];

	CHECK(read(watch, events, sizeof(events)) > 0);
}

static int watch_nodes(const struct machine *machine)
{
	int watch = inotify_init1(IN_CLOEXEC);
	char nodes[160];

	snprintf(nodes, sizeof(nodes), "%s/" FAKE_NODES, machine->sys);
	CHECK(watch >= 0 && inotify_add_watch(watch, nodes, IN_OPEN) >= 0);
	return watch;
}

/* False: this process was delayed so long that the daemon may take the GPU for removed. */
static bool missing_for_a_moment(struct machine *machine)
{
	uint64_t began = boottime_usec();
	int watch = watch_nodes(machine);

	move_node(machine, FAKE_NODES "/2", "away");
	CHECK(fake_sysfs_print(machine->sys, FAKE_TOPOLOGY "/generation_id", "99\n") == 0);
	await_listing(watch);
	move_node(machine, "away", FAKE_NODES "/2");
	close(watch);
	return boottime_usec() < began + 200000; /* SCAN_SETTLE_USEC */
}

TEST_WITH(a_gpu_missing_while_the_driver_rebuilds_its_tree_is_kept, struct machine *machine)
{
	static struct leases leases;
	struct told *told = &machine->told;

	fill(machine, &leases);
	while (!missing_for_a_moment(machine)) {
		machine_halt(machine);
		fill(machine, &leases);
	}

	/* A later change is seen later. */
	machine_replug(machine, 3);
	AWAIT(machine->bus, told->added > 0 && strstr(told->last_added, GPUARB_PATH_GPU "/"));
	book_read(machine->bus, &leases.after);
	CHECK(leases.after.n_leases == 3 && leases.after.n_gpus == 3);
	CHECK(lease_says(machine->bus, leases.second.path, "State", "granted"));
	CHECK(lease_says(machine->bus, leases.gang.path, "State", "granted"));
}

/* ---- replaced ------------------------------------------------------------------------------------ */

/* Another lease gets all of the new GPU, and still has it after a crash. The old lease is ending until its process has
 * left the hardware. */
TEST_WITH(a_lease_that_ended_with_its_gpu_blocks_no_grant_after_replug, struct machine *machine)
{
	static struct book before, after;
	struct live_lease old, lease;
	pid_t pid;
	int fd;

	machine_build(machine, 2);
	rig_start_managed(&machine->rig, machine->option, "--store-max=64");
	machine_connect(machine);
	pid = idler(0, &fd);
	old = granted(call(ask_for(machine->bus, "gpu=" SECOND " cus=15; process=%d", fd)));
	machine_use(machine, pid, 1, 3);
	AWAIT(machine->bus, machine->told.lease > 0); /* one more than granted: they are seen */
	machine_replug(machine, 1);
	AWAIT(machine->bus, machine->told.removed == 1);
	machine_replug(machine, 2);
	AWAIT(machine->bus, machine->told.added == 2); /* a lease, and now the GPU */
	CHECK(lease_says(machine->bus, old.path, "Reason", "gone"));

	lease = granted(call(ask_on(machine->bus, SECOND, 60)));
	book_read(machine->bus, &before);
	rig_crash(&machine->rig);
	book_read(machine->bus, &after);
	CHECK(before.n_leases == 2 && after.n_leases == 2);
	CHECK(book_find(&after, lease.id) &&
	      book_same_parts(book_find(&before, lease.id), book_find(&after, lease.id)->parts, 1));
	CHECK(lease_says(machine->bus, lease.path, "State", "granted"));
	CHECK(lease_says(machine->bus, old.path, "State", "ending"));
	CHECK(fake_sysfs_process_gone(machine->sys, pid) == 0);
	AWAIT(machine->bus, !lease_exists(machine->bus, old.path));
	CHECK(lease_says(machine->bus, lease.path, "State", "granted"));
	end_process(pid);
	close(fd);
}

TEST_WITH(a_replaced_unused_gpu_is_signalled_as_removed_and_added, struct machine *machine)
{
	const struct told *told = &machine->told;

	machine_build(machine, 2);
	machine_boot(machine);
	machine->gpus[1].kfd_gpu_id = machine_gpu_id(machine, 1) + 1;
	machine_replug(machine, 2);
	while (told->added == 0) /* a look comes with each question */
		CHECK(gpu_number(machine->bus, "Cus") == 60);
	CHECK(told->removed == 1 && told->added == 1);
	CHECK(strcmp(told->last_removed, GPUARB_PATH_GPU "/1") == 0);
	CHECK(strcmp(told->last_added, GPUARB_PATH_GPU "/1") == 0);
	CHECK(number_of(machine->bus, GPUARB_PATH_GPU "/1", GPUARB_INTERFACE_GPU, "KfdGpuId") ==
	      machine->gpus[1].kfd_gpu_id);
}
