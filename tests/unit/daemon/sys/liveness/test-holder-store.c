/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Holders and the store over a restart. The manager gets messages when the test lets it read
 * them. */

#include <fcntl.h>

#include "check.h"
#include "holder-rig.h"
#include "store-rig.h"

struct kept {
	struct rig rig;
	struct manager manager;
	unsigned fds; /* before */
};

static void kept_init(struct kept *kept, size_t max)
{
	struct diagnostics diagnostics = { 0 };

	*kept = (struct kept){ .fds = count_fds() };
	manager_start(&kept->manager, max);
	CHECK(sd_event_new(&kept->rig.event) >= 0);
	kept->rig.store = manager_store_new(&kept->manager, kept->rig.event, &diagnostics);
	CHECK(store_works(kept->rig.store));
	rig_holders(&kept->rig);
}

static void kept_done(struct kept *kept)
{
	holder_rig_done(&kept->rig);
	manager_stop(&kept->manager);
	CHECK(count_fds() == kept->fds);
}

static void go_on(struct kept *kept)
{
	manager_settle(&kept->manager, kept->rig.event);
}

static void bind_process(struct rig *rig, uint64_t lease, pid_t pid)
{
	int pidfd = open_pidfd(pid);

	CHECK(pidfd >= 0 && holders_bind(rig->holders, lease, pidfd, pid, false) == 0);
	close(pidfd);
}

static int adopt(struct kept *kept, uint64_t lease, pid_t pid, int fd)
{
	const struct stored_name name = { lease, pid ? STORED_BOUND : STORED_END, (uint64_t)pid };

	return holders_adopt(kept->rig.holders, &name, fd, NULL);
}

/* The next daemon, which gets the stored descriptors. */
static void restart(struct kept *kept)
{
	struct rig *rig = &kept->rig;
	const struct manager_store *store = &kept->manager.store;
	struct stored_name name;
	int fd;

	go_on(kept);
	holders_free(rig->holders);
	rig_holders(rig);
	for (size_t i = 0; i < store->n; i++) {
		CHECK(stored_name_parse(store->list[i].name, &name));
		fd = fcntl(store->list[i].fd, F_DUPFD_CLOEXEC, 3);
		CHECK(holders_adopt(rig->holders, &name, fd, NULL) == 0);
	}
}

TEST(names_in_the_store_are_parsed_strictly)
{
	static const char *const bad[] = {
		"",
		"lease",
		"lease-",
		"lease-1",
		"lease-1-",
		"lease-1-pid",
		"lease-1-pid-",
		"lease-1-pid-0",
		"lease-1-pid--2",
		"lease-1-pid-+2",
		"lease-1-pid-02",
		"lease-01-pid-2",
		"lease-0-pid-2",
		"lease-0-root-2",
		"lease-0-cap-2",
		"lease-1-cap-0",
		"lease-1-cap-2147483648",
		"lease-1-caps-2",
		"lease-0-44242",
		"lease--1-pid-2",
		"lease- 1-pid-2",
		"lease-1-pid-2x",
		"lease-1-pid-99999999999",
		"lease-1-0",
		"lease-1-2 ",
		"lease-99999999999999999999-pid-2",
		"Lease-1-pid-2",
		"probe",
		"stored",
	};
	static const struct stored_name good[] = {
		{ 17, STORED_BOUND, 4711 },
		{ 17, STORED_DELEGATED, 4711 },
		{ 1, STORED_CAP, INT32_MAX },
		{ UINT64_MAX, STORED_END, UINT64_MAX },
	};
	char name[STORE_NAME_MAX];
	struct stored_name again;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		stored_name_write(&good[i], name);
		CHECK(stored_name_parse(name, &again) && again.lease == good[i].lease &&
		      again.kind == good[i].kind && again.number == good[i].number);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(!stored_name_parse(bad[i], &again));
}

TEST(names_of_the_most_entries_fit_into_one_variable)
{
	static const uint64_t ids[] = { 1, 99999999999, 100000000000, UINT64_MAX };
	char name[STORE_NAME_MAX + 1];

	CHECK(holders_most(1) > 4096); /* the default of max-holders */
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		int pid = snprintf(name, sizeof(name), "lease-%" PRIu64 "-pid-4194304:", ids[i]);
		int end = snprintf(name, sizeof(name), "lease-%" PRIu64 "-4294967295:", ids[i]);

		CHECK(holders_most(ids[i]) * (unsigned)(pid > end ? pid : end) < 128 * 1024 - 64);
	}
}

TEST(every_entry_is_stored_until_it_ends)
{
	_cleanup_(kept_done) struct kept kept;
	pid_t one = start_sleeper(), two = start_sleeper();
	int first, second;

	kept_init(&kept, 8);
	first = add(&kept.rig, 17);
	second = add(&kept.rig, 17);
	bind_process(&kept.rig, 17, one);
	bind_process(&kept.rig, 17, two);
	go_on(&kept);
	CHECK(kept.manager.store.n == 4);
	close(first);
	go_on(&kept);
	CHECK(kept.manager.store.n == 3 && holders_count(kept.rig.holders) == 3);
	kill_and_reap(one);
	go_on(&kept);
	CHECK(kept.manager.store.n == 2 && holders_count(kept.rig.holders) == 2);
	holders_unbind(kept.rig.holders, 17, two);
	holders_unbind(kept.rig.holders, 17, two); /* does nothing */
	go_on(&kept);
	CHECK(kept.manager.store.n == 1 && holders_count(kept.rig.holders) == 1);
	holders_drop(kept.rig.holders, 17);
	go_on(&kept);
	CHECK(kept.manager.store.n == 0 && holders_count(kept.rig.holders) == 0);
	CHECK(kept.rig.holders_gone == 1 && kept.rig.bound_gone == 1);
	kill_and_reap(two);
	close(second);
}

/* The manager drops ends that hang up, but may read a later message first. */
TEST(ended_entry_is_forgotten_before_another_is_kept)
{
	_cleanup_(kept_done) struct kept kept;
	int first, second;

	kept_init(&kept, 1);
	first = add(&kept.rig, 17);
	CHECK(manager_read(&kept.manager) && kept.manager.store.n == 1);
	close(first);
	holder_rig_settle(&kept.rig);
	second = add(&kept.rig, 17);
	CHECK(manager_read(&kept.manager) && manager_read(&kept.manager));
	CHECK(kept.manager.store.n == 1);
	holder_rig_settle(&kept.rig);
	CHECK(kept.rig.holders_gone == 1);
	close(second);
}

TEST(one_pidfd_for_two_leases_is_stored_twice)
{
	struct kept kept;
	pid_t pid = start_sleeper();
	int pidfd = open_pidfd(pid);

	kept_init(&kept, 8);
	CHECK(holders_bind(kept.rig.holders, 17, pidfd, pid, false) == 0);
	CHECK(holders_bind(kept.rig.holders, 18, pidfd, pid, false) == 0);
	CHECK(holders_bind(kept.rig.holders, 18, pidfd, pid, false) == -EEXIST);
	go_on(&kept);
	CHECK(kept.manager.store.n == 2);
	holders_unbind(kept.rig.holders, 18, pid);
	CHECK(holders_bind(kept.rig.holders, 18, pidfd, pid, false) == 0);
	restart(&kept);
	CHECK(holders_count(kept.rig.holders) == 2);
	kill_and_reap(pid);
	go_on(&kept);
	CHECK(kept.rig.bound_gone == 2 && kept.manager.store.n == 0);
	kept_done(&kept);
	close(pidfd);
}

TEST(restart_adopts_the_stored_entries)
{
	_cleanup_(kept_done) struct kept kept;
	pid_t pid = start_sleeper();
	char buf[8];
	int first, second;

	kept_init(&kept, 8);
	first = add(&kept.rig, 17);
	second = add(&kept.rig, 18);
	bind_process(&kept.rig, 18, pid);
	restart(&kept);
	CHECK(holders_count(kept.rig.holders) == 3 && kept.manager.store.n == 3);
	go_on(&kept);
	CHECK(kept.rig.holders_gone == 0 && kept.rig.bound_gone == 0);
	holders_tell(kept.rig.holders, 18, "news", 4);
	CHECK(recv(second, buf, sizeof(buf), 0) == 4);
	close(first);
	go_on(&kept);
	CHECK(kept.rig.holders_gone == 1 && kept.rig.lease == 17 && kept.manager.store.n == 2);
	kill_and_reap(pid);
	go_on(&kept);
	CHECK(kept.rig.bound_gone == 1 && kept.rig.pid == pid && kept.manager.store.n == 1);
	holders_drop(kept.rig.holders, 18);
	go_on(&kept);
	CHECK(kept.manager.store.n == 0);
	close(second);
}

TEST(entry_that_ended_during_a_restart_is_reported)
{
	_cleanup_(kept_done) struct kept kept;
	pid_t dead = start_sleeper(), reaped = start_sleeper();
	int holder, holder_copy, first, second;

	kept_init(&kept, 8);
	holder = add(&kept.rig, 17);
	go_on(&kept);
	holder_copy = fcntl(kept.manager.store.list[0].fd, F_DUPFD_CLOEXEC, 3);
	first = open_pidfd(dead);
	second = open_pidfd(reaped);
	holders_free(kept.rig.holders);
	close(holder);
	CHECK(kill(dead, SIGKILL) == 0);
	CHECK(waitid(P_PID, (id_t)dead, NULL, WEXITED | WNOWAIT) == 0); /* a zombie */
	kill_and_reap(reaped);

	rig_holders(&kept.rig);
	CHECK(adopt(&kept, 17, 0, holder_copy) == 0);
	CHECK(adopt(&kept, 18, dead, first) == 0);
	CHECK(adopt(&kept, 18, reaped, second) == 0);
	CHECK(kept.rig.holders_gone == 0 && kept.rig.bound_gone == 0);
	go_on(&kept);
	CHECK(kept.rig.holders_gone == 1 && kept.rig.bound_gone == 2);
	CHECK(holders_count(kept.rig.holders) == 0 && kept.manager.store.n == 0);
	CHECK(waitpid(dead, NULL, 0) == dead);
}

TEST(descriptor_that_contradicts_its_name_is_not_adopted)
{
	pid_t pid = start_sleeper(), other = start_sleeper();
	int stream[2], packets[2], holder, fd;
	unsigned fds = count_fds();
	struct kept kept;

	kept_init(&kept, 8);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, packets) == 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd < 0 || adopt(&kept, 17, 0, fd) == -EINVAL);
	CHECK(adopt(&kept, 17, 0, stream[0]) == -EINVAL);
	CHECK(adopt(&kept, 17, 0, open_pidfd(pid)) == -EINVAL);
	CHECK(adopt(&kept, 17, pid, stream[1]) == -EINVAL);
	CHECK(adopt(&kept, 17, pid, packets[1]) == -EINVAL);
	CHECK(adopt(&kept, 17, pid, open_pidfd(other)) == -EINVAL);
	CHECK(adopt(&kept, 17, pid, open_pidfd(pid)) == 0);
	CHECK(adopt(&kept, 17, pid, open_pidfd(pid)) == -EEXIST);
	CHECK(holders_count(kept.rig.holders) == 1);
	close(packets[0]);
	holder = add(&kept.rig, 17);
	kill_and_reap(pid);
	kill_and_reap(other);
	close(holder);
	kept_done(&kept);
	CHECK(count_fds() == fds);
}

TEST(entry_that_cannot_be_stored_is_not_added)
{
	pid_t pid = start_sleeper();
	int pidfd = open_pidfd(pid), holder;
	struct kept kept;
	unsigned fds;

	kept_init(&kept, 8);
	manager_stop(&kept.manager);
	fds = count_fds();
	CHECK(holders_add(kept.rig.holders, 17) == -ECONNREFUSED);
	CHECK(holders_count(kept.rig.holders) == 0 && count_fds() == fds - 1);
	holder = add(&kept.rig, 17); /* the store has ended */
	close(holder);
	holder_rig_settle(&kept.rig);
	CHECK(kept.rig.holders_gone == 1);
	kept_done(&kept);

	kept_init(&kept, 8);
	manager_stop(&kept.manager);
	CHECK(holders_bind(kept.rig.holders, 17, pidfd, pid, false) == -ECONNREFUSED);
	CHECK(holders_count(kept.rig.holders) == 0);
	kill_and_reap(pid);
	holder_rig_settle(&kept.rig);
	CHECK(kept.rig.bound_gone == 0);
	kept_done(&kept);
	close(pidfd);
}

TEST(failure_without_descriptors_leaves_no_rest)
{
	pid_t pid = start_sleeper();
	int pidfd = open_pidfd(pid);
	struct rlimit limit;
	struct kept kept;

	kept_init(&kept, 8);
	for (unsigned n = 0; n < 2; n++) {
		limit = leave_fds(n);
		CHECK(holders_add(kept.rig.holders, 17) == -EMFILE);
		CHECK(holders_bind(kept.rig.holders, 17, pidfd, pid, false) == -EMFILE);
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	}
	CHECK(holders_count(kept.rig.holders) == 0);
	go_on(&kept);
	CHECK(kept.manager.store.n == 0);
	kill_and_reap(pid);
	kept_done(&kept);
	close(pidfd);
}

TEST(thousand_holders_are_adopted)
{
	const unsigned many = check_size(1000, 1000);
	int fds[1000];
	_cleanup_(kept_done) struct kept kept;

	kept_init(&kept, many);
	for (unsigned i = 0; i < many; i++)
		fds[i] = add(&kept.rig,
			     1 + i / 2); /* most messages wait, because the manager does not read */
	restart(&kept);
	CHECK(kept.manager.store.n == many && holders_count(kept.rig.holders) == many);
	for (unsigned i = 0; i < many; i++)
		close(fds[i]);
	go_on(&kept);
	CHECK(kept.rig.holders_gone == many && holders_count(kept.rig.holders) == 0);
	CHECK(kept.manager.store.n == 0);
}
