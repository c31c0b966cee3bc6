/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Run by kfdsim: what a front end owes to a program that opens /dev/kfd, without any library
 * of AMD's in between. */

#include <errno.h>
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "check.h"

#define PROC "/sys/class/kfd/kfd/proc"

/* The mode is for O_CREAT, which some have among the flags. */
static int open_kfd(int flags)
{
	int fd = open("/dev/kfd", O_RDWR | flags, 0600);

	CHECK(fd >= 0);
	return fd;
}

static int version(int fd)
{
	struct kfd_ioctl_get_version_args args = { 0 };

	if (ioctl(fd, AMDKFD_IOC_GET_VERSION, &args) < 0)
		return -errno;
	CHECK(args.major_version == 1 && args.minor_version > 0);
	return 0;
}

static bool shown(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), PROC "/%d", pid);
	return access(path, F_OK) == 0;
}

/* Waits for an event that nobody sets. */
static int wait_for_ever(int fd)
{
	struct kfd_ioctl_create_event_args event = { .event_type = KFD_IOC_EVENT_SIGNAL };
	struct kfd_event_data data = { 0 };
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)&data,
		.num_events = 1,
		.timeout = UINT32_MAX,
	};

	CHECK(ioctl(fd, AMDKFD_IOC_CREATE_EVENT, &event) == 0);
	data.event_id = event.event_id;
	return ioctl(fd, AMDKFD_IOC_WAIT_EVENTS, &args) < 0 ? -errno : 0;
}

static int status_of(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

TEST(a_process_is_shown_from_its_first_open_to_its_end)
{
	pid_t pid;

	CHECK(!shown(getpid()));
	pid = fork();
	if (pid == 0) {
		open_kfd(O_CLOEXEC);
		_exit(shown(getpid()) ? 3 : 1);
	}
	CHECK(WEXITSTATUS(status_of(pid)) == 3);
	CHECK(!shown(pid));
}

static void *ask_version(void *fd)
{
	CHECK(version(*(int *)fd) == 0);
	return NULL;
}

TEST(every_thread_can_use_the_file)
{
	int fd = open_kfd(O_CLOEXEC);
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, ask_version, &fd) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	close(fd);
}

TEST(inherited_file_returns_ebadf_and_a_new_one_works)
{
	int fd = open_kfd(O_CLOEXEC);
	pid_t pid = fork();

	if (pid == 0) {
		CHECK(version(fd) == -EBADF);
		CHECK(version(open_kfd(O_CLOEXEC)) == 0);
		_exit(0);
	}
	CHECK(status_of(pid) == 0);
	CHECK(version(fd) == 0);
	close(fd);
}

TEST(exec_ends_the_process_in_the_driver)
{
	pid_t pid = fork();

	if (pid == 0) {
		open_kfd(O_CLOEXEC);
		CHECK(shown(getpid()));
		execl("/bin/sh", "sh", "-c", "test ! -e " PROC "/$$", NULL);
		_exit(1);
	}
	CHECK(status_of(pid) == 0);
}

/* Called again by itself, below: the file is of another memory. */
TEST(a_file_that_was_kept_over_exec_is_bad)
{
	const char *kept = getenv("KEPT_FD");
	char text[16];
	pid_t pid;

	if (kept) {
		CHECK(version(atoi(kept)) == -EBADF);
		CHECK(version(open_kfd(O_CLOEXEC)) == 0);
		return;
	}
	pid = fork();
	if (pid == 0) {
		snprintf(text, sizeof(text), "%d", open_kfd(0));
		setenv("KEPT_FD", text, 1);
		execl("/proc/self/exe", "test-kfd", "a_file_that_was_kept_over_exec_is_bad", NULL);
		_exit(1);
	}
	CHECK(status_of(pid) == 0);
}

static void hear(int signal)
{
	(void)signal;
}

TEST(a_signal_ends_a_wait)
{
	struct sigaction action = { .sa_handler = hear }, old;
	int fd = open_kfd(O_CLOEXEC);

	CHECK(sigaction(SIGALRM, &action, &old) == 0);
	ualarm(20000, 20000);
	CHECK(wait_for_ever(fd) == -EINTR);
	ualarm(0, 0);
	CHECK(sigaction(SIGALRM, &old, NULL) == 0);
	CHECK(version(fd) == 0);
	close(fd);
}

/* Once the event is there the child is about to wait, or does. */
TEST(waiting_process_can_be_killed)
{
	int pipes[2];
	char byte;
	pid_t pid;

	CHECK(pipe(pipes) == 0);
	pid = fork();
	if (pid == 0) {
		int fd = open_kfd(O_CLOEXEC);

		CHECK(write(pipes[1], "x", 1) == 1);
		wait_for_ever(fd);
		_exit(1);
	}
	CHECK(read(pipes[0], &byte, 1) == 1);
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
	CHECK(!shown(pid));
	close(pipes[0]);
	close(pipes[1]);
}

/* Whose memory is everybody's, so that nobody may take it away. */
TEST(opening_with_truncation_does_not_clear_the_device)
{
	int fd = open_kfd(O_CLOEXEC), render, again, copy;
	uint32_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 1L << 41);

	CHECK(word != MAP_FAILED);
	*word = 0x12345678;
	again = open_kfd(O_CLOEXEC | O_TRUNC | O_CREAT);
	CHECK(fcntl(again, F_GETFD) == FD_CLOEXEC && version(again) == 0);
	render = open("/dev/dri/renderD128", O_WRONLY | O_TRUNC);
	CHECK(render >= 0 && fcntl(render, F_GETFD) == 0);
	copy = openat(AT_FDCWD, "/dev/../dev/kfd", O_RDWR | O_TRUNC | O_CREAT | O_EXCL, 0600);
	CHECK(copy < 0 && errno == EEXIST);
	CHECK(ftruncate(fd, 0) < 0 && errno == EINVAL);
	CHECK(ftruncate(render, 1) < 0 && errno == EINVAL);
	(void)truncate("/dev/kfd", 0); /* FUSE cannot tell it from O_TRUNC: 0 */
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1L << 42) < 0);
	CHECK(*word == 0x12345678);
	*word = 0;
	munmap(word, 4096);
	close(again);
	close(render);
	close(fd);
}

static unsigned gpu_id(void)
{
	FILE *stream = fopen("/sys/class/kfd/kfd/topology/nodes/1/gpu_id", "re");
	unsigned id = 0;

	CHECK(stream && fscanf(stream, "%u", &id) == 1);
	fclose(stream);
	return id;
}

static void control(const char *fault)
{
	int fd = open("/sys/kernel/debug/kfdsim/control", O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0 && write(fd, fault, strlen(fault)) == (ssize_t)strlen(fault));
	close(fd);
}

TEST(smi_events_come_by_a_descriptor)
{
	struct kfd_ioctl_smi_events_args args = { .gpuid = gpu_id() };
	uint64_t mask = KFD_SMI_EVENT_MASK_FROM_INDEX(KFD_SMI_EVENT_THERMAL_THROTTLE);
	int fd = open_kfd(O_CLOEXEC), wait;
	char text[64] = "";

	CHECK(ioctl(fd, AMDKFD_IOC_SMI_EVENTS, &args) == 0);
	wait = (int)args.anon_fd;
	CHECK(read(wait, text, sizeof(text)) < 0 && errno == EAGAIN);
	CHECK(write(wait, &mask, sizeof(mask)) == sizeof(mask));
	control("smi:0000:03:00.0:2 1:7f\n");
	AWAIT_FD(wait, POLLIN);
	CHECK(read(wait, text, sizeof(text)) == 7 && strcmp(text, "2 1:7f\n") == 0);
	CHECK(read(wait, text, sizeof(text)) < 0 && errno == EAGAIN);
	args.gpuid++;
	CHECK(ioctl(fd, AMDKFD_IOC_SMI_EVENTS, &args) < 0 && errno == EINVAL);
	close(fd);
	close(wait);
}
