/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "budget-rig.h"
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

FIXTURE(struct rig, rig, holder_rig_init(rig), holder_rig_done(rig));

TEST_WITH(closed_holder_is_reported_once, struct rig *rig)
{
	int fd;

	fd = add(rig, 17);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 0 && holders_count(rig->holders) == 1);
	close(fd);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 1 && rig->lease == 17 && holders_count(rig->holders) == 0);
}

TEST_WITH(shut_down_holder_is_reported_like_a_closed_one, struct rig *rig)
{
	static const int ways[] = { SHUT_RDWR, SHUT_RD };
	int fd;

	for (unsigned i = 0; i < 2; i++) {
		fd = add(rig, 17);
		CHECK(shutdown(fd, ways[i]) == 0);
		holder_rig_settle(rig);
		CHECK(rig->holders_gone == i + 1 && holders_count(rig->holders) == 0);
		close(fd);
	}
}

TEST_WITH(client_cannot_send_on_its_holder, struct rig *rig)
{
	int fd;

	fd = add(rig, 17);
	CHECK(send(fd, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
	CHECK(shutdown(fd, SHUT_WR) == 0); /* which it is already */
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 0);
	close(fd);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 1);
}

TEST_WITH(holder_sent_over_itself_does_not_keep_the_lease, struct rig *rig)
{
	int fd;

	fd = add(rig, 17);
	CHECK(send_fd(fd, fd) == -EPIPE);
	close(fd);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 1 && holders_count(rig->holders) == 0);
}

TEST_WITH(holder_lives_until_its_last_copy_is_closed, struct rig *rig)
{
	int fd, copy;

	fd = add(rig, 17);
	copy = dup(fd);
	CHECK(copy >= 0);
	close(fd);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 0);
	close(copy);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 1);
}

TEST_WITH(holder_passed_to_another_process_lives_with_it, struct rig *rig)
{
	int fd, post[2];
	pid_t heir;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, post) == 0);
	heir = start_sleeper(); /* has the socket open and receives the holder */
	fd = add(rig, 17);
	CHECK(send_fd(post[0], fd) == 0);
	close(fd);
	close(post[0]);
	close(post[1]);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 0);
	kill_and_reap(heir);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 1);
}

TEST_WITH(death_of_a_bound_process_is_reported, struct rig *rig)
{
	pid_t pid = start_sleeper();
	int pidfd = open_pidfd(pid);

	CHECK(pidfd >= 0 && holders_bind(rig->holders, 17, pidfd, pid, false) == 0);
	close(pidfd); /* the copy of the caller */
	holder_rig_settle(rig);
	CHECK(rig->bound_gone == 0 && holders_count(rig->holders) == 1);
	kill_and_reap(pid);
	holder_rig_settle(rig);
	CHECK(rig->bound_gone == 1 && rig->lease == 17 && rig->pid == pid);
	CHECK(holders_count(rig->holders) == 0);
}

TEST_WITH(binding_a_dead_process_reports_its_death, struct rig *rig)
{
	pid_t pid = start_sleeper();
	int pidfd = open_pidfd(pid);

	kill_and_reap(pid);
	CHECK(holders_bind(rig->holders, 17, pidfd, pid, false) == 0);
	close(pidfd);
	holder_rig_settle(rig);
	CHECK(rig->bound_gone == 1);
	CHECK(holders_bind(rig->holders, 17, -1, pid, false) == -EBADF);
}

TEST_WITH(callback_may_drop_its_lease, struct rig *rig)
{
	pid_t pid = start_sleeper();
	int pidfd = open_pidfd(pid), fds[3], other;

	rig->drop = true;
	for (size_t i = 0; i < 3; i++)
		fds[i] = add(rig, 17);
	other = add(rig, 18);
	CHECK(holders_bind(rig->holders, 17, pidfd, pid, false) == 0);
	close(pidfd);
	kill_and_reap(pid);
	for (size_t i = 0; i < 3; i++)
		close(fds[i]); /* all are pending: the first callback drops the others */
	holder_rig_settle(rig);
	CHECK(rig->holders_gone + rig->bound_gone == 1 && holders_count(rig->holders) == 1);
	close(other);
	holder_rig_settle(rig);
	CHECK(rig->lease == 18 && holders_count(rig->holders) == 0);
}

TEST_WITH(adding_a_holder_without_descriptors_fails_without_rest, struct rig *rig)
{
	struct rlimit limit, none;

	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = limit.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	CHECK(holders_add(rig->holders, 17) == -EMFILE);
	CHECK(holders_bind(rig->holders, 17, 0, 1, false) < 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(holders_count(rig->holders) == 0);
}

TEST_WITH(object_that_is_no_pidfd_is_not_bound, struct rig *rig)
{
	int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

	CHECK(file >= 0 && holders_bind(rig->holders, 17, file, 1, false) == -EPERM);
	close(file);
}

/* ---- containers ------------------------------------------------------------------------ */

static void bind_first(struct rig *rig, uint64_t lease, pid_t pid)
{
	int fd = open_pidfd(pid);

	CHECK(holders_bind(rig->holders, lease, fd, pid, false) == 0);
	close(fd);
}

TEST_WITH(process_that_is_added_to_a_container_is_found_by_its_cgroup, struct rig *rig)
{
	struct unit_rig unit, elsewhere;
	pid_t init, other, inside, outside;

	if (!unit_rig_new(&unit, "container"))
		SKIP("there is no cgroup of version 2 that could be made");
	CHECK(unit_rig_new(&elsewhere, "elsewhere"));
	init = container_rig_start(0);
	other = container_rig_start(0);
	inside = container_rig_add(init, 0);
	outside = start_sleeper();
	unit_rig_add(&unit, init);
	unit_rig_add(&elsewhere, other);
	bind_first(rig, 7, init);
	CHECK(holders_container(rig->holders, inside) == 0);
	unit_rig_add(&unit, inside);
	unit_rig_add(&unit, outside);
	CHECK(holders_container(rig->holders, inside) == init);
	CHECK(holders_container(rig->holders, init) == init);
	CHECK(holders_container(rig->holders, outside) == 0); /* a monitor */
	CHECK(holders_container(rig->holders, other) == 0);
	bind_first(rig, 8, init);
	bind_first(rig, 9, outside);
	CHECK(holders_container(rig->holders, inside) == init);
	unit_rig_add(&unit, other);
	bind_first(rig, 9, other); /* two containers in one cgroup */
	CHECK(holders_container(rig->holders, inside) == 0);
	bind_first(rig, 10, init);
	CHECK(holders_container(rig->holders, inside) == 0);
	holders_drop(rig->holders, 9);
	CHECK(holders_container(rig->holders, inside) == init);
	kill_and_reap(outside);
	kill_and_reap(other);
	kill_and_reap(init); /* which ends all in its namespace */
	holder_rig_settle(rig);
	CHECK(rig->bound_gone == 3 && holders_container(rig->holders, getpid()) == 0);
	unit_rig_done(&unit);
	unit_rig_done(&elsewhere);
}

/* ---- records ------------------------------------------------------------- */

TEST_WITH(record_goes_to_every_holder_of_the_lease_only, struct rig *rig)
{
	int first, second, other;
	char buf[16];

	first = add(rig, 17);
	second = add(rig, 17);
	other = add(rig, 17 + 4096);
	holders_tell(rig->holders, 17, "news", 4);
	CHECK(recv(first, buf, sizeof(buf), 0) == 4 && memcmp(buf, "news", 4) == 0);
	CHECK(recv(second, buf, sizeof(buf), 0) == 4);
	CHECK(recv(other, buf, sizeof(buf), 0) < 0 && errno == EAGAIN);
	CHECK(recv(first, buf, sizeof(buf), 0) < 0 && errno == EAGAIN);
	close(first);
	close(second);
	close(other);
}

TEST_WITH(unread_holder_keeps_only_the_latest_record, struct rig *rig)
{
	enum { TOLD = 10000 };
	unsigned record[64], got = 0, last = 0, in_queue;
	int fd;

	fd = add(rig, 17);
	for (unsigned i = 1; i <= TOLD; i++) {
		record[0] = i;
		holders_tell(rig->holders, 17, record, sizeof(record));
		holder_rig_settle(rig);
	}
	while (recv(fd, record, sizeof(record), 0) == sizeof(record)) {
		CHECK(record[0] == last + 1);
		last = record[0];
		got++;
	}
	CHECK(errno == EAGAIN && got > 0 && got < TOLD / 2);
	in_queue = got;

	holder_rig_settle(rig); /* there is room again */
	CHECK(recv(fd, record, sizeof(record), 0) == sizeof(record) && record[0] == TOLD);
	CHECK(recv(fd, record, sizeof(record), 0) < 0 && errno == EAGAIN);
	CHECK(in_queue * sizeof(record) < 65536); /* kernel memory per holder */

	record[0] = TOLD + 1;
	holders_tell(rig->holders, 17, record, sizeof(record));
	CHECK(recv(fd, record, sizeof(record), 0) == sizeof(record) && record[0] == TOLD + 1);
	close(fd);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 1);
}

TEST_WITH(holder_with_unread_records_is_reported_when_closed, struct rig *rig)
{
	char record[4096] = "";
	int fd;

	fd = add(rig, 17);
	for (unsigned i = 0; i < 100; i++)
		holders_tell(rig->holders, 17, record, sizeof(record));
	close(fd);
	holders_tell(rig->holders, 17, record, sizeof(record)); /* before the event is handled */
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 1 && holders_count(rig->holders) == 0);
}

TEST_WITH(sent_records_can_be_read_after_the_lease_is_dropped, struct rig *rig)
{
	char buf[16];
	int fd;

	fd = add(rig, 17);
	holders_tell(rig->holders, 17, "end", 3);
	holders_drop(rig->holders, 17);
	CHECK(holders_count(rig->holders) == 0);
	CHECK(recv(fd, buf, sizeof(buf), 0) == 3);
	CHECK(recv(fd, buf, sizeof(buf), 0) == 0);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 0); /* no callback after holders_drop() */
	close(fd);
}
