/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "check.h"
#include "holder-rig.h"

static int send_fd(int socket, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec io = { .iov_base = (char[]){ "x" }, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

TEST(closing_the_holder_is_told_once)
{
	struct rig rig;
	int fd;

	holder_rig_init(&rig);
	fd = add(&rig, 17);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	holder_rig_settle(&rig);
	CHECK(rig.holders_gone == 0 && holders_count(rig.holders) == 1);
	close(fd);
	holder_rig_settle(&rig);
	CHECK(rig.holders_gone == 1 && rig.lease == 17 && holders_count(rig.holders) == 0);
	holder_rig_done(&rig);
}

TEST(shutting_the_holder_down_counts_as_closing)
{
	static const int ways[] = { SHUT_RDWR, SHUT_RD };
	struct rig rig;
	int fd;

	holder_rig_init(&rig);
	for (unsigned i = 0; i < 2; i++) {
		fd = add(&rig, 17);
		CHECK(shutdown(fd, ways[i]) == 0);
		holder_rig_settle(&rig);
		CHECK(rig.holders_gone == i + 1 && holders_count(rig.holders) == 0);
		close(fd);
	}
	holder_rig_done(&rig);
}

TEST(nothing_can_be_sent_to_the_daemon)
{
	struct rig rig;
	int fd;

	holder_rig_init(&rig);
	fd = add(&rig, 17);
	CHECK(send(fd, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
	CHECK(shutdown(fd, SHUT_WR) == 0); /* which it is already */
	holder_rig_settle(&rig);
	CHECK(rig.holders_gone == 0);
	close(fd);
	holder_rig_settle(&rig);
	CHECK(rig.holders_gone == 1);
	holder_rig_done(&rig);
}

TEST(a_holder_sent_over_itself_does_not_keep_itself_alive)
{
	struct rig rig;
	int fd;

	holder_rig_init(&rig);
	fd = add(&rig, 17);
	CHECK(send_fd(fd, fd) == -EPIPE);
	close(fd);
	holder_rig_settle(&rig);
	CHECK(rig.holders_gone == 1 && holders_count(rig.holders) == 0);
	holder_rig_done(&rig);
}

TEST(copies_keep_a_holder_until_the_last_is_closed)
{
	struct rig rig;
	int fd, copy;

	holder_rig_init(&rig);
	fd = add(&rig, 17);
	copy = dup(fd);
	CHECK(copy >= 0);
	close(fd);
	holder_rig_settle(&rig);
	CHECK(rig.holders_gone == 0);
	close(copy);
	holder_rig_settle(&rig);
	CHECK(rig.holders_gone == 1);
	holder_rig_done(&rig);
}

TEST(a_holder_passed_to_another_process_lives_with_that)
{
	struct rig rig;
	int fd, post[2];
	pid_t heir;

	holder_rig_init(&rig);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, post) == 0);
	heir = start_sleeper(); /* has the post open, and takes what comes into its queue */
	fd = add(&rig, 17);
	CHECK(send_fd(post[0], fd) == 0);
	close(fd);
	close(post[0]);
	close(post[1]);
	holder_rig_settle(&rig);
	CHECK(rig.holders_gone == 0);
	kill_and_reap(heir);
	holder_rig_settle(&rig);
	CHECK(rig.holders_gone == 1);
	holder_rig_done(&rig);
}

TEST(a_bound_process_that_dies_is_told)
{
	struct rig rig;
	pid_t pid = start_sleeper();
	int pidfd = open_pidfd(pid);

	holder_rig_init(&rig);
	CHECK(pidfd >= 0 && holders_bind(rig.holders, 17, pidfd, pid) == 0);
	close(pidfd); /* the caller's own */
	holder_rig_settle(&rig);
	CHECK(rig.bound_gone == 0 && holders_count(rig.holders) == 1);
	kill_and_reap(pid);
	holder_rig_settle(&rig);
	CHECK(rig.bound_gone == 1 && rig.lease == 17 && rig.pid == pid);
	CHECK(holders_count(rig.holders) == 0);
	holder_rig_done(&rig);
}

TEST(binding_a_process_that_died_already_is_told_too)
{
	struct rig rig;
	pid_t pid = start_sleeper();
	int pidfd = open_pidfd(pid);

	holder_rig_init(&rig);
	kill_and_reap(pid);
	CHECK(holders_bind(rig.holders, 17, pidfd, pid) == 0);
	close(pidfd);
	holder_rig_settle(&rig);
	CHECK(rig.bound_gone == 1);
	CHECK(holders_bind(rig.holders, 17, -1, pid) == -EBADF);
	holder_rig_done(&rig);
}

TEST(a_callback_may_drop_the_lease_it_is_told_of)
{
	struct rig rig;
	pid_t pid = start_sleeper();
	int pidfd = open_pidfd(pid), fds[3], other;

	holder_rig_init(&rig);
	rig.drop = true;
	for (size_t i = 0; i < 3; i++)
		fds[i] = add(&rig, 17);
	other = add(&rig, 18);
	CHECK(holders_bind(rig.holders, 17, pidfd, pid) == 0);
	close(pidfd);
	kill_and_reap(pid);
	for (size_t i = 0; i < 3; i++)
		close(fds[i]); /* all pending at once: the first drops the others */
	holder_rig_settle(&rig);
	CHECK(rig.holders_gone + rig.bound_gone == 1 && holders_count(rig.holders) == 1);
	close(other);
	holder_rig_settle(&rig);
	CHECK(rig.lease == 18 && holders_count(rig.holders) == 0);
	holder_rig_done(&rig);
}

TEST(running_out_of_descriptors_is_an_error_and_leaves_nothing)
{
	struct rlimit limit, none;
	struct rig rig;

	holder_rig_init(&rig);
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = limit.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	CHECK(holders_add(rig.holders, 17) == -EMFILE);
	CHECK(holders_bind(rig.holders, 17, 0, 1) < 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(holders_count(rig.holders) == 0);
	holder_rig_done(&rig);
}

TEST(what_cannot_be_watched_is_refused)
{
	int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	struct rig rig;

	holder_rig_init(&rig);
	CHECK(file >= 0 && holders_bind(rig.holders, 17, file, 1) == -EPERM);
	close(file);
	holder_rig_done(&rig);
}
