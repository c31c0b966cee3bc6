/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The members of a lease, their generations, and processes that do not follow it. */

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "fake-sysfs.h"
#include "lack.h"
#include "scratch.h"
#include "libgpuarb/agent/members.h"

static struct agent_grant grant_of(uint64_t generation)
{
	return (struct agent_grant){ .version = AGENT_VERSION,
				     .n_partitions = 1,
				     .lease = 12,
				     .generation = generation,
				     .partitions = { { .kfd_gpu_id = 1001,
						       .xccs = 1,
						       .n_words = 1,
						       .cu_mask = { 0xff } } } };
}

/* Adds a member. Returns the process's end of the connection; *ret is the agent's end. */
static int join(struct members *members, pid_t pid, int *ret)
{
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(members_add(members, pair[0], pid) == 0 && members_has(members, pid));
	*ret = pair[0];
	return pair[1];
}

/* The generation of the next grant that was sent; 0: none. */
static uint64_t told(int fd)
{
	struct agent_grant grant;
	ssize_t size = recv(fd, &grant, sizeof(grant), MSG_DONTWAIT);

	if (size < 0 && errno == EAGAIN)
		return 0;
	CHECK(agent_grant_valid(&grant, (size_t)size));
	return grant.generation;
}

static void answer(int fd, uint64_t generation, int error)
{
	struct agent_answer answer = { .version = AGENT_VERSION,
				       .error = error,
				       .generation = generation };

	CHECK(send(fd, &answer, sizeof(answer), 0) == (ssize_t)sizeof(answer));
}

TEST(a_generation_is_followed_when_all_members_have_answered)
{
	struct agent_grant first = grant_of(1), second = grant_of(2);
	_cleanup_(members_clear) struct members members = { 0 };
	int a, b, fd_a, fd_b;

	CHECK(members_follow(&members, 1));
	a = join(&members, 100, &fd_a);
	b = join(&members, 101, &fd_b);
	members_send(&members, &first);
	CHECK(told(a) == 1 && told(b) == 1 && !members_follow(&members, 1));
	answer(a, 1, 0);
	CHECK(members_receive(&members, fd_a) == 0 && !members_follow(&members, 1));
	answer(b, 1, 0);
	CHECK(members_receive(&members, fd_b) == 0 && members_follow(&members, 1));

	members_send(&members, &first);
	CHECK(told(a) == 0);
	members_send(&members, &second);
	answer(a, 2, 0);
	CHECK(members_receive(&members, fd_a) == 0 && !members_follow(&members, 2));
	members_remove(&members, fd_b); /* it died */
	CHECK(members_follow(&members, 2) && !members_has(&members, 101) &&
	      members_had(&members, 101));
	close(a);
	close(b);
}

TEST(a_member_gets_the_newest_grant_after_its_answer)
{
	_cleanup_(members_clear) struct members members = { 0 };
	int a, fd;

	a = join(&members, 100, &fd);
	for (uint64_t generation = 1; generation < 5000; generation++) {
		struct agent_grant grant = grant_of(generation);

		members_send(&members, &grant);
	}
	CHECK(told(a) == 1 && told(a) == 0);
	answer(a, 1, 0);
	CHECK(members_receive(&members, fd) == 0);
	members_send(&members,
		     &(struct agent_grant){ .version = AGENT_VERSION, .generation = 5000 });
	CHECK(told(a) == 5000);
	close(a);
}

TEST(a_member_with_an_error_does_not_follow)
{
	struct agent_grant first = grant_of(1), second = grant_of(2);
	_cleanup_(members_clear) struct members members = { 0 };
	int a, fd;

	a = join(&members, 100, &fd);
	members_send(&members, &first);
	answer(a, 1, -EBUSY);
	CHECK(members_receive(&members, fd) == 0 && !members_follow(&members, 1));
	answer(a, 1, 0);
	CHECK(members_receive(&members, fd) == 0 && members_follow(&members, 1));
	members_send(&members, &second);
	answer(a, 1, 0); /* of an older grant */
	CHECK(members_receive(&members, fd) == 0 && !members_follow(&members, 2));
	close(a);
}

TEST(an_invalid_answer_ends_the_connection)
{
	static const char noise[7] = "noise";
	struct agent_grant first = grant_of(1);
	_cleanup_(members_clear) struct members members = { 0 };
	int a, fd;

	a = join(&members, 100, &fd);
	CHECK(members_receive(&members, fd) == 0 && members_receive(&members, 4711) == 0);
	members_send(&members, &first);
	answer(a, 2, 0); /* which was never sent */
	CHECK(members_receive(&members, fd) == -ECONNRESET);
	CHECK(send(a, noise, sizeof(noise), 0) == sizeof(noise));
	CHECK(members_receive(&members, fd) == -ECONNRESET);
	close(a);
	CHECK(members_receive(&members, fd) == -ECONNRESET);
	members_remove(&members, fd);
	members_remove(&members, fd);
	CHECK(members.n == 0);
}

TEST(a_process_that_connects_again_replaces_its_member)
{
	struct agent_grant first = grant_of(1);
	_cleanup_(members_clear) struct members members = { 0 };
	int a, b, fd_a, fd_b;
	char c;

	a = join(&members, 100, &fd_a);
	b = join(&members, 100, &fd_b);
	CHECK(members.n == 1 && recv(a, &c, 1, 0) == 0);
	members_send(&members, &first);
	answer(b, 1, 0);
	CHECK(members_receive(&members, fd_b) == 0 && members_follow(&members, 1));
	close(a);
	close(b);
}

/* ---- unfollowed processes ---------------------------------------------------------------- */

/* A directory in place of sysfs, with /proc below it. */
struct stage {
	char dir[64], proc[80];
	struct members members;
	struct agent_grant grant;
	struct unfollowed_search search;
};

static void stage_set(struct stage *stage)
{
	*stage = (struct stage){ .grant = grant_of(1) };
	scratch_directory(stage->dir, sizeof(stage->dir));
	snprintf(stage->proc, sizeof(stage->proc), "%s/proc", stage->dir);
	stage->search = (struct unfollowed_search){ .sys = stage->dir,
						    .proc = stage->proc,
						    .root = 100,
						    .members = &stage->members,
						    .grant = &stage->grant };
}

static void stage_strike(struct stage *stage)
{
	members_clear(&stage->members);
	CHECK(fake_sysfs_remove("/", stage->dir + 1) == 0);
}

static void live(const struct stage *stage, pid_t pid, pid_t parent, const char *lease)
{
	char file[64], environment[128];
	int n;

	snprintf(file, sizeof(file), "proc/%d/stat", pid);
	CHECK(fake_sysfs_print(stage->dir, file, "%d (a) b) S %d 1 1 0", pid, parent) == 0);
	snprintf(file, sizeof(file), "proc/%d/environ", pid);
	n = snprintf(environment, sizeof(environment), "PATH=/bin%cGPUARB_LEASE=%s%cHOME=/", '\0',
		     lease, '\0');
	CHECK(fake_sysfs_write(stage->dir, file, environment, (size_t)n) == 0);
}

static void die(const struct stage *stage, pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "proc/%d", pid);
	CHECK(fake_sysfs_remove(stage->dir, path) == 0);
}

TEST(a_process_of_the_lease_with_queues_and_without_agent_is_found)
{
	_cleanup_(stage_strike) struct stage stage;
	int fd, own;

	stage_set(&stage);
	CHECK(members_find_unfollowed(&stage.search) == 0); /* no KFD */
	live(&stage, 100, 1, "");
	live(&stage, 101, 100, "");
	live(&stage, 102, 101, "");
	live(&stage, 103, 1, "12");  /* its parents have ended */
	live(&stage, 104, 1, "121"); /* of another lease */
	CHECK(fake_sysfs_queue(stage.dir, 104, 0, 1001, 0) == 0);
	CHECK(fake_sysfs_queue(stage.dir, 102, 0, 1001, 1) == 0); /* SDMA */
	CHECK(fake_sysfs_queue(stage.dir, 102, 1, 1002, 0) == 0); /* a GPU outside of the lease */
	CHECK(members_find_unfollowed(&stage.search) == 0);

	CHECK(fake_sysfs_queue(stage.dir, 102, 2, 1001, 0) == 0);
	CHECK(members_find_unfollowed(&stage.search) == 102);
	own = join(&stage.members, 102, &fd);
	CHECK(members_find_unfollowed(&stage.search) == 0);
	CHECK(fake_sysfs_queue(stage.dir, 103, 0, 1001, 0) == 0);
	CHECK(members_find_unfollowed(&stage.search) == 103);
	CHECK(fake_sysfs_process_gone(stage.dir, 103) == 0 &&
	      members_find_unfollowed(&stage.search) == 0);

	CHECK(fake_sysfs_queue(stage.dir, 100, 0, 1001, 0) == 0);
	CHECK(members_find_unfollowed(&stage.search) == 100);
	CHECK(fake_sysfs_print(stage.dir, FAKE_PROC "/100/queues/0/gpuid", "none") == 0);
	CHECK(members_find_unfollowed(&stage.search) == -EIO);
	close(own);
}

TEST(a_dead_member_counts_until_its_queues_are_gone)
{
	_cleanup_(stage_strike) struct stage stage;
	int fd, own;

	stage_set(&stage);
	live(&stage, 102, 1, "");
	CHECK(fake_sysfs_queue(stage.dir, 102, 0, 1001, 0) == 0);
	own = join(&stage.members, 102, &fd);
	members_remove(&stage.members, fd);
	/* Another process with the same number. */
	CHECK(members_find_unfollowed(&stage.search) == 0);
	die(&stage, 102);
	CHECK(members_find_unfollowed(&stage.search) == 102);
	CHECK(fake_sysfs_process_gone(stage.dir, 102) == 0);
	CHECK(members_find_unfollowed(&stage.search) == 0);
	close(own);
}

TEST(the_last_members_that_left_are_remembered)
{
	static struct members members;
	int fd;

	for (pid_t pid = 1; pid <= 3 * (pid_t)MEMBERS_GONE; pid++) {
		close(join(&members, pid, &fd));
		members_remove(&members, fd);
	}
	CHECK(members_had(&members, 3 * (pid_t)MEMBERS_GONE) &&
	      members_had(&members, 2 * MEMBERS_GONE + 1));
	CHECK(!members_had(&members, 2 * MEMBERS_GONE) && !members_had(&members, 1));
	members_clear(&members);
}

static int add_member(long allocations)
{
	struct members members = { 0 };
	char byte;
	int pair[2], r;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	lack_left = allocations;
	r = members_add(&members, pair[0], 100);
	CHECK(members_has(&members, 100) == (r == 0));
	CHECK(r == 0 || recv(pair[1], &byte, 1, MSG_DONTWAIT) == 0); /* its connection is closed */
	members_clear(&members);
	close(pair[1]);
	return r;
}

TEST(a_member_that_cannot_be_remembered_is_disconnected)
{
	CHECK(lack_each("members_add", add_member) == 1);
}
