/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/store.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"
#include "store-rig.h"

struct rig {
	struct manager manager;
	sd_event *event;
	struct store *store;
	unsigned fds;  /* before */
	char log[256]; /* "NAME R " for each callback */
	int again;     /* calls of store_settle() that callbacks have to make */
};

struct call {
	struct rig *rig;
	const char *name;
};

static void rig_init(struct rig *rig, size_t max)
{
	struct diagnostics diagnostics = { 0 };

	*rig = (struct rig){ .fds = count_fds() };
	manager_start(&rig->manager, max);
	CHECK(sd_event_new(&rig->event) >= 0);
	rig->store = manager_store_new(&rig->manager, rig->event, &diagnostics);
	CHECK(store_works(rig->store) && diagnostics.n == 0 && rig->manager.store.n == 0);
	rig->manager.kept = rig->manager.forgotten = rig->manager.barriers = 0;
}

static void rig_done(struct rig *rig)
{
	store_free(rig->store);
	sd_event_unref(rig->event);
	manager_stop(&rig->manager);
	CHECK(count_fds() == rig->fds);
}

static void keep(struct rig *rig, const char *name)
{
	int fd = memfd_create("kept", MFD_CLOEXEC);

	CHECK(fd >= 0 && store_keep(rig->store, name, fd) == 0);
	close(fd);
}

static void on_settled(void *userdata, int r)
{
	struct call *call = userdata;
	struct rig *rig = call->rig;
	size_t n = strlen(rig->log);

	snprintf(rig->log + n, sizeof(rig->log) - n, "%s %s ", call->name,
		 r == 0 ? "ok" : strerrorname_np(-r));
	if (rig->again > 0) {
		rig->again--;
		keep(rig, "again");
		CHECK(store_settle(rig->store, on_settled, call) == 0);
	}
}

static void turn(struct rig *rig)
{
	CHECK(sd_event_run(rig->event, 0) >= 0);
}

/* Fills the manager's queue until messages have to wait in the store. */
static unsigned fill(struct rig *rig, unsigned more)
{
	unsigned sent = 0;
	char name[32];
	unsigned fds;

	do {
		fds = count_fds();
		snprintf(name, sizeof(name), "fill-%u", sent++);
		keep(rig, name);
	} while (count_fds() == fds);
	while (--more > 0) {
		snprintf(name, sizeof(name), "fill-%u", sent++);
		keep(rig, name);
	}
	return sent;
}

TEST(descriptor_is_stored_until_it_is_forgotten)
{
	_cleanup_(rig_done) struct rig rig;

	rig_init(&rig, 8);
	keep(&rig, "lease-1");
	keep(&rig, "lease-2");
	manager_settle(&rig.manager, rig.event);
	CHECK(rig.manager.store.n == 2 && manager_has(&rig.manager, "lease-1"));
	store_forget(rig.store, "lease-1");
	manager_settle(&rig.manager, rig.event);
	CHECK(rig.manager.store.n == 1 && manager_has(&rig.manager, "lease-2"));
}

TEST(invalid_name_or_descriptor_is_refused)
{
	char longest[STORE_NAME_MAX + 1];
	_cleanup_(rig_done) struct rig rig;

	rig_init(&rig, 8);
	memset(longest, 'a', sizeof(longest));
	longest[STORE_NAME_MAX] = '\0';
	CHECK(store_keep(rig.store, longest, 0) == -EINVAL);
	CHECK(store_keep(rig.store, "", 0) == -EINVAL);
	CHECK(store_keep(rig.store, "a:b", 0) == -EINVAL);
	CHECK(store_keep(rig.store, "a\nFDPOLL=0", 0) == -EINVAL);
	CHECK(store_keep(rig.store, "a", -1) == -EBADF);
	CHECK(store_keep(rig.store, "a", 9999) == -EBADF);
	longest[STORE_NAME_MAX - 1] = '\0';
	keep(&rig, longest);
	manager_settle(&rig.manager, rig.event);
	CHECK(rig.manager.kept == 1);
}

FIXTURE(struct rig, rig, , rig_done(rig));

TEST_WITH(settle_calls_back_in_order_when_the_manager_has_read, struct rig *rig)
{
	struct call a = { rig, "a" }, b = { rig, "b" }, c = { rig, "c" };

	rig_init(rig, 8);
	keep(rig, "one");
	CHECK(store_settle(rig->store, on_settled, &a) == 0);
	keep(rig, "two");
	CHECK(store_settle(rig->store, on_settled, &b) == 0);
	CHECK(store_settle(rig->store, on_settled, &c) == 0);
	turn(rig);
	CHECK(rig->log[0] == '\0');
	/* The descriptor, then the barrier. */
	CHECK(manager_read(&rig->manager) && manager_read(&rig->manager));
	turn(rig);
	CHECK(strcmp(rig->log, "a ok ") == 0);
	manager_settle(&rig->manager, rig->event);
	CHECK(strcmp(rig->log, "a ok b ok c ok ") == 0);
	CHECK(rig->manager.store.n == 2 && rig->manager.barriers == 2);
}

TEST_WITH(callback_may_keep_and_settle_again, struct rig *rig)
{
	struct call a = { rig, "a" }, b = { rig, "b" };

	rig_init(rig, 8);
	rig->again = 3;
	CHECK(store_settle(rig->store, on_settled, &a) == 0);
	CHECK(store_settle(rig->store, on_settled, &b) == 0);
	manager_settle(&rig->manager, rig->event);
	CHECK(strcmp(rig->log, "a ok b ok a ok b ok a ok ") == 0);
	CHECK(rig->manager.kept == 3);
}

TEST_WITH(messages_wait_in_order_while_the_manager_does_not_read, struct rig *rig)
{
	struct call a = { rig, "a" };
	unsigned sent;
	char last[32];

	rig_init(rig, 2000);
	sent = fill(rig, 500);
	snprintf(last, sizeof(last), "fill-%u", sent - 1);
	CHECK(manager_read(&rig->manager)); /* room, but new messages must not overtake */
	store_forget(rig->store, last);
	store_forget(rig->store, "fill-0");
	store_forget(rig->store, "fill-1");
	keep(rig, "fill-0");
	CHECK(store_settle(rig->store, on_settled, &a) == 0);
	turn(rig);
	CHECK(rig->log[0] == '\0');
	manager_settle(&rig->manager, rig->event);
	CHECK(strcmp(rig->log, "a ok ") == 0);
	CHECK(rig->manager.kept == sent + 1 && rig->manager.store.n == sent - 2);
	CHECK(manager_has(&rig->manager, "fill-0") && !manager_has(&rig->manager, "fill-1"));
	CHECK(!manager_has(&rig->manager, last));
}

TEST(at_most_1024_descriptors_wait)
{
	_cleanup_(rig_done) struct rig rig;

	rig_init(&rig, 2000);
	fill(&rig, STORE_QUEUE_MAX);
	CHECK(store_keep(rig.store, "more", 0) == -EAGAIN);
	store_forget(rig.store, "fill-0"); /* needs no descriptor */
	manager_settle(&rig.manager, rig.event);
	CHECK(rig.manager.forgotten == 1 && !manager_has(&rig.manager, "more"));
	keep(&rig, "more");
	manager_settle(&rig.manager, rig.event);
	CHECK(manager_has(&rig.manager, "more"));
}

TEST_WITH(message_that_cannot_be_queued_fails_without_descriptors, struct rig *rig)
{
	struct rlimit limit;
	struct call a = { rig, "a" }, b = { rig, "b" };

	rig_init(rig, 2000);
	limit = leave_fds(1);
	CHECK(store_settle(rig->store, on_settled, &a) == -EMFILE);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	fill(rig, 1);
	limit = leave_fds(0);
	CHECK(store_keep(rig->store, "more", 0) == -EMFILE);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit = leave_fds(2); /* a pipe, but no copy of its end */
	CHECK(store_settle(rig->store, on_settled, &a) == -EMFILE);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	manager_settle(&rig->manager, rig->event);

	/* The next barrier, after the present one has passed. */
	CHECK(store_settle(rig->store, on_settled, &a) == 0);
	CHECK(store_settle(rig->store, on_settled, &b) == 0);
	CHECK(manager_read(&rig->manager));
	limit = leave_fds(0);
	turn(rig);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(strcmp(rig->log, "a ok b EMFILE ") == 0);
}

TEST_WITH(ended_manager_is_reported_and_ends_the_store, struct rig *rig)
{
	struct call a = { rig, "a" }, b = { rig, "b" };

	rig_init(rig, 8);
	CHECK(store_settle(rig->store, on_settled, &a) == 0);
	CHECK(store_settle(rig->store, on_settled, &b) == 0);
	CHECK(manager_read(&rig->manager)); /* passed, but not reported yet */
	manager_stop(&rig->manager);
	CHECK(store_keep(rig->store, "one", 0) == -ECONNREFUSED);
	CHECK(!store_works(rig->store) && rig->log[0] == '\0');
	CHECK(store_keep(rig->store, "one", 0) == 0);
	store_forget(rig->store, "one");
	manager_settle(&rig->manager, rig->event);
	CHECK(strcmp(rig->log, "a ECONNREFUSED b ECONNREFUSED ") == 0);
	CHECK(store_settle(rig->store, on_settled, &a) == 0);
	CHECK(strcmp(rig->log, "a ECONNREFUSED b ECONNREFUSED a ok ") == 0);
}

TEST_WITH(barrier_that_ends_with_the_manager_has_not_passed, struct rig *rig)
{
	struct call a = { rig, "a" }, b = { rig, "b" };

	rig_init(rig, 8);
	keep(rig, "one");
	CHECK(store_settle(rig->store, on_settled, &a) == 0);
	CHECK(store_settle(rig->store, on_settled, &b) == 0);
	manager_stop(&rig->manager);
	turn(rig);
	CHECK(strcmp(rig->log, "a ECONNREFUSED b ECONNREFUSED ") == 0);
	CHECK(!store_works(rig->store));
}

TEST_WITH(waiting_messages_are_dropped_when_the_manager_ends, struct rig *rig)
{
	struct call a = { rig, "a" };

	rig_init(rig, 100);
	fill(rig, 10);
	CHECK(store_settle(rig->store, on_settled, &a) == 0);
	manager_stop(&rig->manager);
	manager_settle(&rig->manager, rig->event);
	CHECK(strcmp(rig->log, "a ECONNREFUSED ") == 0 && !store_works(rig->store));
}

TEST_WITH(settle_and_forget_detect_an_ended_manager, struct rig *rig)
{
	struct call a = { rig, "a" };

	rig_init(rig, 8);
	manager_stop(&rig->manager);
	CHECK(store_settle(rig->store, on_settled, &a) == 0);
	CHECK(!store_works(rig->store) && strcmp(rig->log, "a ECONNREFUSED ") == 0);
	rig_done(rig);

	rig_init(rig, 8);
	manager_stop(&rig->manager);
	store_forget(rig->store, "one");
	CHECK(!store_works(rig->store));
}

TEST(freeing_the_store_cancels_waiters)
{
	struct rig rig;
	struct call a = { &rig, "a" }, b = { &rig, "b" };

	rig_init(&rig, 100);
	fill(&rig, 10);
	CHECK(store_settle(rig.store, on_settled, &a) == 0);
	CHECK(store_settle(rig.store, on_settled, &b) == 0);
	rig.again = 1; /* answered at once, without a store */
	rig.store = store_free(rig.store);
	CHECK(strcmp(rig.log, "a ECANCELED a ok b ECANCELED ") == 0);
	rig_done(&rig);
	CHECK(store_free(NULL) == NULL);
}

/* The kernel limits how many descriptors an ordinary user can have in flight. */
static void lose_one_on_its_way(void)
{
	struct rig rig;
	struct rlimit limit;
	struct call a = { &rig, "a" }, b = { &rig, "b" };

	CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
	rig_init(&rig, 100);
	fill(&rig, 3);
	CHECK(store_settle(rig.store, on_settled, &a) == 0);
	CHECK(store_settle(rig.store, on_settled, &b) == 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (unsigned i = 0; i < 5; i++)
		CHECK(manager_read(&rig.manager));
	CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 2, limit.rlim_max }) == 0);
	turn(&rig);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	manager_settle(&rig.manager, rig.event);
	CHECK(strcmp(rig.log, "a ETOOMANYREFS b ok ") == 0 && store_works(rig.store));
	rig_done(&rig);
}

TEST(waiter_receives_the_error_of_a_lost_message)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		lose_one_on_its_way();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}
