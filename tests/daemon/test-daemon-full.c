/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped daemon with a full runtime directory: nothing is granted that is not saved, and no granted
 * lease is lost. */

#include <sys/resource.h>

#include "check.h"
#include "lend-live.h"
#include "small-fs.h"

NEEDS(daemon_missing);

static void start_without_room(void)
{
	const char *said;
	_cleanup_(small_fs_done) struct rig rig;

	small_fs_mount(&rig, "nr_inodes=1,mode=755");
	log_begin(&rig);
	CHECK(rig_start_fails(&rig, "--simulate=radeon-vii") == 1);
	said = log_end(&rig);
	CHECK(strstr(said, "/run/leases") && strstr(said, strerror(ENOSPC)));
}

TEST_CASE(a_full_file_system_fails_the_start, SMALL_FS(start_without_room));

static void restart_without_room(void)
{
	struct live_lease lease;
	_cleanup_(small_fs_done) struct rig rig;
	sd_bus *bus;

	small_fs_mount(&rig, "size=64k,mode=755");
	rig_start_managed(&rig, "--simulate=radeon-vii", "--store-max=64");
	bus = rig_connect(&rig, STRANGER);
	lease = reserve(bus, 15);
	small_fs_fill(&rig, 0);
	CHECK(is_error(call(ask(bus, "Reserve", 15)), GPUARB_ERROR_NOT_SAVED, strerror(ENOSPC)));
	CHECK(is_error(call(resize(bus, lease.path, 30)), GPUARB_ERROR_NOT_SAVED,
		       strerror(ENOSPC)));
	rig_crash(&rig);
	CHECK(lease_exists(bus, lease.path) && gpu_number(bus, "CusFree") == 45);
	CHECK(is_error(call(ask(bus, "Reserve", 15)), GPUARB_ERROR_NOT_SAVED, strerror(ENOSPC)));
	CHECK(is_fine(call(release(bus, lease.path)))); /* which takes no room */
	small_fs_empty(&rig);
	CHECK(reserve(bus, 15).id > lease.id);
}

TEST_CASE(leases_outlive_a_restart_on_a_full_file_system, SMALL_FS(restart_without_room));

/* Each call fails and leaves the lease, or the GPU, unchanged. */
static void change_without_room(void)
{
	struct live_lease rt;
	_cleanup_(small_fs_done) struct rig rig;
	sd_bus *bus;

	small_fs_mount(&rig, "size=64k,mode=755");
	lend_configure(&rig, "", "report");
	rig_start(&rig, LEND_GPU);
	bus = rig_connect(&rig, 0);
	rt = keep_inactive(bus, 15);
	small_fs_fill(&rig, 0);
	CHECK(is_error(activate(bus, &rt), GPUARB_ERROR_NOT_SAVED, strerror(ENOSPC)));
	CHECK(is_in_state(bus, &rt, "inactive"));
	CHECK(is_error(call(drain(bus, "0")), GPUARB_ERROR_NOT_SAVED, strerror(ENOSPC)));
	CHECK(gpu_number(bus, "Draining") == 0);
	small_fs_empty(&rig);
	CHECK(is_fine(activate(bus, &rt)) && is_in_state(bus, &rt, "granted"));
	CHECK(is_fine(call(drain(bus, "0"))) && gpu_number(bus, "Draining") == 1);
	small_fs_fill(&rig, 0);
	CHECK(is_error(deactivate(bus, &rt), GPUARB_ERROR_NOT_SAVED, strerror(ENOSPC)));
	CHECK(is_in_state(bus, &rt, "granted"));
}

TEST_CASE(activate_deactivate_and_drain_change_nothing_on_a_full_file_system,
	  SMALL_FS(change_without_room));

/* A Reserve that waits for a borrower, and binds a process, fails: the process keeps no lease. */
static void reserve_without_room(void)
{
	struct live_lease borrower;
	_cleanup_(small_fs_done) struct rig rig;
	sd_bus *bus, *crowd;
	struct answer answer;
	struct told told;
	pid_t pid;
	int fd;

	small_fs_mount(&rig, "size=64k,mode=755");
	lend_configure(&rig, "activate-grace = 1h\n", "report");
	rig_start(&rig, LEND_GPU);
	bus = rig_connect(&rig, 0);
	crowd = rig_connect(&rig, STRANGER);
	listen_in(bus, &told);
	borrower = borrow(crowd);
	pid = idler(0, &fd);
	call_send(ask_for(bus, "cus=30 queues=2; class=guaranteed process=%d", fd), &answer);
	AWAIT(bus, told.added == 2);
	small_fs_fill(&rig, 0);
	CHECK(is_error(acknowledge(crowd, &borrower, 2), GPUARB_ERROR_NOT_SAVED, strerror(ENOSPC)));
	AWAIT(bus, answer.came);
	CHECK(is_error(answer.m, GPUARB_ERROR_NOT_SAVED, ""));
	small_fs_empty(&rig);
	AWAIT(bus, told.removed == 1);
	end_process(pid);
}

TEST_CASE(reserve_that_fails_on_a_full_file_system_leaves_no_lease_to_its_process,
	  SMALL_FS(reserve_without_room));

/* ---- facts that cannot be saved -------------------------------------------------------------- */

#define GPUS 8U

/* The file of a lease on eight GPUs has several pages. */
static struct live_lease borrow_everywhere(sd_bus *bus)
{
	sd_bus_message *m = call_arbiter(bus, "Reserve");

	CHECK(sd_bus_message_open_container(m, 'a', "a{sv}") >= 0);
	for (unsigned i = 0; i < GPUS; i++) {
		const char gpu[] = { (char)('0' + i), '\0' };

		CHECK(sd_bus_message_append(m, "a{sv}", 4, "gpu", "s", gpu, "cus", "u", 60,
					    "cus-min", "u", 4, "queues", "u", 1) >= 0);
	}
	CHECK(sd_bus_message_close_container(m) >= 0);
	return granted(call(with(m, "a{sv}", 1, "adaptable", "b", 1)));
}

struct pair {
	struct rig rig;
	sd_bus *root, *crowd;
	struct live_lease borrower, rt;
};

static void pair_done(struct pair *pair)
{
	small_fs_done(&pair->rig);
}

/* The realtime lease, on the first GPU, is inactive; all its CUs are borrowed. */
static void pair_start(struct pair *pair)
{
	static const char vii[] = ",radeon-vii";
	char hardware[256] = "--simulate=radeon-vii";

	for (unsigned i = 1; i < GPUS; i++)
		strcat(hardware, vii);
	small_fs_mount(&pair->rig, "size=256k,mode=755");
	lend_configure(&pair->rig, "activate-grace = 1h\n" GROW_NEVER, "kill");
	rig_start_managed(&pair->rig, hardware, "--store-max=64");
	pair->root = rig_connect(&pair->rig, 0);
	pair->crowd = rig_connect(&pair->rig, STRANGER);
	pair->rt = reserved(call(ask_for(pair->root, "gpu=0 cus=15 queues=1; start-inactive=1")),
			    "inactive");
	pair->borrower = borrow_everywhere(pair->crowd);
}

/* Every record so far was of the first generation. */
static void check_heard(int holder)
{
	struct live_record record;
	struct pollfd ready = { .fd = holder, .events = POLLIN };

	while (poll(&ready, 1, 0) > 0)
		CHECK(next_record(holder, &record) && record.record.generation == 1);
}

static void check_unchanged(const struct pair *pair)
{
	CHECK(lease_number(pair->crowd, &pair->borrower, "Generation") == 1);
	CHECK(lease_number(pair->crowd, &pair->borrower, "Deadline") == UINT64_MAX);
	CHECK(is_in_state(pair->root, &pair->rt, "activating"));
	check_heard(pair->borrower.holder);
}

/* Nothing that the borrower does counts, and the next daemon tells nothing else. */
static void acknowledge_without_room(void)
{
	_cleanup_(pair_done) struct pair pair;

	pair_start(&pair);
	small_fs_fill(&pair.rig, 1);
	CHECK(is_fine(activate(pair.root, &pair.rt))); /* which fits into the page */
	check_unchanged(&pair);
	CHECK(is_error(acknowledge(pair.crowd, &pair.borrower, 2), GPUARB_ERROR_INVALID_REQUEST,
		       ""));
	CHECK(is_error(acknowledge(pair.crowd, &pair.borrower, 1), GPUARB_ERROR_NOT_SAVED,
		       strerror(ENOSPC)));
	check_unchanged(&pair);
	rig_crash(&pair.rig);
	check_unchanged(&pair);
	small_fs_empty(&pair.rig);
	CHECK(await_generation(pair.borrower.holder, 2).partitions[0].cus == 45);
	CHECK(is_fine(acknowledge(pair.crowd, &pair.borrower, 2)));
	CHECK(is_in_state(pair.root, &pair.rt, "granted"));
	CHECK(is_in_state(pair.crowd, &pair.borrower, "granted"));
}

TEST_CASE(nothing_counts_or_is_published_while_a_save_fails, SMALL_FS(acknowledge_without_room));

/* ---- file descriptors ------------------------------------------------------------------------ */

/* The daemon may have no fd beyond the first number that is free. */
static void take_all_fds(const struct rig *rig, struct rlimit *ret_before)
{
	struct rlimit none;
	char path[64];

	CHECK(prlimit(rig->daemon, RLIMIT_NOFILE, NULL, ret_before) == 0);
	none = *ret_before;
	none.rlim_cur = 0;
	do
		snprintf(path, sizeof(path), "/proc/%d/fd/%u", rig->daemon,
			 (unsigned)none.rlim_cur++);
	while (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	none.rlim_cur--;
	CHECK(prlimit(rig->daemon, RLIMIT_NOFILE, &none, NULL) == 0);
}

TEST(changes_of_leases_are_saved_without_a_free_file_descriptor)
{
	struct live_lease rt, borrower;
	_cleanup_(rig_done) struct rig rig;
	struct rlimit before;
	sd_bus *bus, *crowd;

	rig_new(&rig);
	lend_configure(&rig, "activate-grace = 1h\n" GROW_NEVER, "report");
	rig_start(&rig, LEND_GPU);
	bus = rig_connect(&rig, 0);
	crowd = rig_connect(&rig, STRANGER);
	rt = keep_inactive(bus, 15);
	borrower = borrow(crowd);
	take_all_fds(&rig, &before);
	CHECK(is_fine(activate(bus, &rt)));
	await_generation(borrower.holder, 2);
	CHECK(is_fine(acknowledge(crowd, &borrower, 2)) && is_in_state(bus, &rt, "granted"));
	CHECK(is_fine(call(drain(bus, "0"))));
	CHECK(is_fine(call(release(bus, rt.path))) && is_fine(call(release(crowd, borrower.path))));
	CHECK(prlimit(rig.daemon, RLIMIT_NOFILE, &before, NULL) == 0);
}
