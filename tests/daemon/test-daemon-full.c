/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped daemon with a full runtime directory: nothing is granted that is not saved, and no granted
 * lease is lost. */

#include <sched.h>
#include <sys/mount.h>

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
