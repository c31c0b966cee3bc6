/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped daemon with a full runtime directory: nothing is granted that is not saved, and no granted
 * lease is lost. */

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "check.h"
#include "lend-live.h"

NEEDS(daemon_missing);

static char junk[4096] = { 1 };

/* In a mount namespace of its own, which the daemon inherits. */
static void mount_small(struct rig *rig, const char *size)
{
	/* Fails in a chroot, where "/" is no mount point. */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		_exit(77);
	rig_new(rig);
	CHECK(mount("none", rig_path(rig, "run"), "tmpfs", 0, size) == 0);
}

static void fill(const struct rig *rig)
{
	int fd = open(rig_path(rig, "run/junk"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	while (write(fd, junk, sizeof(junk)) > 0)
		continue;
	while (write(fd, junk, 1) > 0)
		continue;
	close(fd);
}

/* Leaves one page, enough for the file of a lease on one GPU. */
static void fill_but_one_page(const struct rig *rig)
{
	struct statfs fs;
	struct stat st;

	fill(rig);
	CHECK(stat(rig_path(rig, "run/junk"), &st) == 0);
	CHECK(truncate(rig_path(rig, "run/junk"), (st.st_size - 1) / 4096 * 4096) == 0);
	CHECK(statfs(rig_path(rig, "run"), &fs) == 0 && fs.f_bfree == 1);
}

static void empty(const struct rig *rig)
{
	CHECK(unlink(rig_path(rig, "run/junk")) == 0);
}

static void done(struct rig *rig)
{
	if (rig->daemon > 0 || rig->manager > 0)
		rig_stop(rig);
	CHECK(umount2(rig_path(rig, "run"), MNT_DETACH) == 0);
	rig_done(rig);
	_exit(0);
}

/* Runs it in a child process, for the namespace. */
static int run(void (*play)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		play();
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define PLAY(play)                                                       \
	do {                                                             \
		int status_;                                             \
                                                                         \
		status_ = run(play);                                     \
		if (status_ == 77)                                       \
			SKIP("mount namespaces are not to be had here"); \
		CHECK(status_ == 0);                                     \
	} while (0)

static void start_without_room(void)
{
	const char *said;
	_cleanup_(done) struct rig rig;
	int log;

	mount_small(&rig, "nr_inodes=1,mode=755");
	log = log_begin(&rig);
	CHECK(rig_start_fails(&rig, "--simulate=radeon-vii") == 1);
	said = log_end(&rig, log);
	CHECK(strstr(said, "/run/leases") && strstr(said, strerror(ENOSPC)));
}

TEST(a_full_file_system_fails_the_start)
{
	PLAY(start_without_room);
}

static void restart_without_room(void)
{
	struct live_lease lease;
	_cleanup_(done) struct rig rig;
	sd_bus *bus;

	mount_small(&rig, "size=64k,mode=755");
	rig_start_managed(&rig, "--simulate=radeon-vii", "--store-max=64");
	bus = rig_connect(&rig, STRANGER);
	lease = reserve(bus, 15);
	fill(&rig);
	CHECK(is_error(call(ask(bus, "Reserve", 15)), GPUARB_ERROR_NOT_SAVED, strerror(ENOSPC)));
	CHECK(is_error(call(resize(bus, lease.path, 30)), GPUARB_ERROR_NOT_SAVED,
		       strerror(ENOSPC)));
	rig_crash(&rig);
	CHECK(lease_exists(bus, lease.path) && gpu_number(bus, "CusFree") == 45);
	CHECK(is_error(call(ask(bus, "Reserve", 15)), GPUARB_ERROR_NOT_SAVED, strerror(ENOSPC)));
	CHECK(is_fine(call(release(bus, lease.path)))); /* which takes no room */
	CHECK(unlink(rig_path(&rig, "run/junk")) == 0);
	CHECK(reserve(bus, 15).id > lease.id);
	leave(bus);
}

TEST(leases_outlive_a_restart_on_a_full_file_system)
{
	PLAY(restart_without_room);
}

/* Each call fails and leaves the lease, or the GPU, unchanged. */
static void change_without_room(void)
{
	struct live_lease rt;
	_cleanup_(done) struct rig rig;
	sd_bus *bus;

	mount_small(&rig, "size=64k,mode=755");
	lend_configure(&rig, "", "report");
	rig_start(&rig, LEND_GPU);
	bus = rig_connect(&rig, 0);
	rt = keep_inactive(bus, 15);
	fill(&rig);
	CHECK(is_error(activate(bus, &rt), GPUARB_ERROR_NOT_SAVED, strerror(ENOSPC)));
	CHECK(is_in_state(bus, &rt, "inactive"));
	CHECK(is_error(call(drain(bus, "0")), GPUARB_ERROR_NOT_SAVED, strerror(ENOSPC)));
	CHECK(gpu_number(bus, "Draining") == 0);
	CHECK(unlink(rig_path(&rig, "run/junk")) == 0);
	CHECK(is_fine(activate(bus, &rt)) && is_in_state(bus, &rt, "granted"));
	CHECK(is_fine(call(drain(bus, "0"))) && gpu_number(bus, "Draining") == 1);
	fill(&rig);
	CHECK(is_error(deactivate(bus, &rt), GPUARB_ERROR_NOT_SAVED, strerror(ENOSPC)));
	CHECK(is_in_state(bus, &rt, "granted"));
	leave(bus);
}

TEST(activate_deactivate_and_drain_change_nothing_on_a_full_file_system)
{
	PLAY(change_without_room);
}

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
	leave(pair->root);
	leave(pair->crowd);
	done(&pair->rig);
}

/* The realtime lease, on the first GPU, is inactive; all its CUs are borrowed. */
static void pair_start(struct pair *pair)
{
	static const char vii[] = ",radeon-vii";
	char hardware[256] = "--simulate=radeon-vii";

	for (unsigned i = 1; i < GPUS; i++)
		strcat(hardware, vii);
	mount_small(&pair->rig, "size=256k,mode=755");
	lend_configure(&pair->rig, "activate-grace = 100ms\nenforce-delay = 100ms\n" GROW_NEVER,
		       "kill");
	rig_start_managed(&pair->rig, hardware, "--store-max=64");
	pair->root = rig_connect(&pair->rig, 0);
	pair->crowd = rig_connect(&pair->rig, STRANGER);
	pair->rt = reserved(
		call(with(call_arbiter(pair->root, "Reserve"), "aa{sv}a{sv}", 1, 3, "gpu", "s", "0",
			  "cus", "u", 15, "queues", "u", 1, 1, "start-inactive", "b", 1)),
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

/* Nothing that the borrower does counts, it is not blamed, and the next daemon is told nothing else. */
static void acknowledge_without_room(void)
{
	_cleanup_(pair_done) struct pair pair;

	pair_start(&pair);
	fill_but_one_page(&pair.rig);
	CHECK(is_fine(activate(pair.root, &pair.rt))); /* which fits into the page */
	check_unchanged(&pair);
	CHECK(is_error(acknowledge(pair.crowd, &pair.borrower, 2), GPUARB_ERROR_INVALID_REQUEST,
		       "the latest is 1"));
	CHECK(is_error(acknowledge(pair.crowd, &pair.borrower, 1), GPUARB_ERROR_NOT_SAVED,
		       strerror(ENOSPC)));
	check_unchanged(&pair);
	rig_crash(&pair.rig);
	check_unchanged(&pair);
	empty(&pair.rig);
	CHECK(await_generation(pair.borrower.holder, 2).partitions[0].cus == 45);
	CHECK(is_fine(acknowledge(pair.crowd, &pair.borrower, 2)));
	CHECK(is_in_state(pair.root, &pair.rt, "granted"));
	CHECK(is_in_state(pair.crowd, &pair.borrower, "granted"));
}

TEST(nothing_counts_or_is_published_while_a_save_fails)
{
	PLAY(acknowledge_without_room);
}
