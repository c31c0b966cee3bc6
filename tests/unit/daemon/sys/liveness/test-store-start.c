/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>

#include "check.h"
#include "scratch.h"
#include "store-rig.h"

/* Expects no store, and one diagnostic. */
static void check_absent(const char *address, int patience_msec, const char *sentence)
{
	struct diagnostics diagnostics = { 0 };
	unsigned fds = count_fds();
	struct store *store;
	sd_event *event;
	char name[STORE_NAME_MAX];
	int fd;

	CHECK(address ? setenv("NOTIFY_SOCKET", address, 1) == 0 : unsetenv("NOTIFY_SOCKET") == 0);
	CHECK(sd_event_new(&event) >= 0);
	CHECK(store_new(event, patience_msec, &store, &diagnostics) == 0);
	CHECK(!store_works(store) && store_max(store) == UINT_MAX);
	CHECK(diagnostics.n == 1 && !diagnostics.list[0].error &&
	      strstr(diagnostics.list[0].text, sentence));
	CHECK(strstr(diagnostics.list[0].text, "restarts"));
	CHECK(store_keep(store, "lease-1", 0) == 0);
	CHECK(store_take(store, name, &fd) == 0);
	diagnostics_done(&diagnostics);
	store_free(store);
	sd_event_unref(event);
	CHECK(count_fds() == fds);
}

TEST(missing_manager_is_reported_with_the_effect_of_a_restart)
{
	char long_address[200] = "/";

	memset(long_address + 1, 'x', sizeof(long_address) - 2);
	long_address[sizeof(long_address) - 1] = '\0';
	check_absent(NULL, 1000, "there is no service manager");
	check_absent("", 1000, "NOTIFY_SOCKET=: ");
	check_absent("vsock:2:1", 1000, "vsock:2:1: ");
	check_absent(long_address, 1000, "File name too long");
	check_absent("/nowhere/at/all", 1000, "No such file");
	check_absent("@gpuarb-test-nobody", 1000, "Connection refused");
}

FIXTURE(struct manager, manager, manager_start(manager, 8), manager_stop(manager));

TEST_WITH(manager_that_does_not_answer_is_given_up, struct manager *manager)
{
	check_absent(manager->address, 1, "does not answer");
	check_absent(manager->address, 1, "does not answer");
	check_absent(manager->address, 1, "does not answer");
	check_absent(manager->address, 1, "does not answer");
	check_absent(manager->address, 1, "does not answer");
	check_absent(manager->address, 1, "does not answer"); /* now its queue is full */
}

TEST_WITH(store_without_free_descriptors_is_reported, struct manager *manager)
{
	struct diagnostics diagnostics = { 0 };
	struct rlimit limit;
	struct store *store;
	sd_event *event;

	CHECK(sd_event_new(&event) >= 0);
	CHECK(setenv("NOTIFY_SOCKET", manager->address, 1) == 0);
	for (unsigned n = 0; n < 4; n++) { /* the socket, the pair, the barrier */
		limit = leave_fds(n);
		CHECK(store_new(event, STORE_PATIENCE_MSEC, &store, &diagnostics) == 0);
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		CHECK(!store_works(store) && diagnostics.n == n + 1);
		CHECK(strstr(diagnostics.list[n].text, strerror(EMFILE)));
		store_free(store);
	}
	diagnostics_done(&diagnostics);
	sd_event_unref(event);
}

static bool works(struct manager *manager, const char *sentence)
{
	struct diagnostics diagnostics = { 0 };
	struct store *store;
	sd_event *event;
	bool does;

	CHECK(sd_event_new(&event) >= 0);
	store = manager_store_new(manager, event, &diagnostics);
	does = store_works(store);
	CHECK(diagnostics.n == (does ? 0 : 1));
	CHECK(does || strstr(diagnostics.list[0].text, sentence));
	CHECK(manager->late < 0);
	diagnostics_done(&diagnostics);
	store_free(store);
	sd_event_unref(event);
	return does;
}

TEST(manager_without_a_store_is_detected)
{
	struct manager manager;
	unsigned fds = count_fds();

	manager_start(&manager, 0);
	CHECK(!works(&manager, "FileDescriptorStoreMax="));
	manager.tardy = true;
	CHECK(!works(&manager, "FileDescriptorStoreMax="));
	manager.store.max = 1;
	CHECK(works(&manager, NULL) && manager.store.n == 0 && manager.forgotten == 1);
	manager_stop(&manager);
	CHECK(count_fds() == fds);
}

TEST_WITH(socket_of_the_manager_may_be_a_path, struct manager *manager)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();

	close(manager->socket);
	snprintf(manager->address, sizeof(manager->address), "%.40s/notify", scratch.path);
	manager_bind(manager);
	CHECK(works(manager, NULL));
}

TEST_WITH(size_of_the_store_is_read_from_the_environment, struct manager *manager)
{
	static const struct {
		const char *text;
		unsigned max;
	} rows[] = {
		{ "16384", 16384 },         { "0", 0 },
		{ "4294967295", UINT_MAX }, { "99999999999999999999999", UINT_MAX },
		{ "", UINT_MAX },           { "-1", UINT_MAX },
		{ "12x", UINT_MAX },        { NULL, UINT_MAX },
	};
	struct diagnostics diagnostics = { 0 };
	struct store *store;
	sd_event *event;

	CHECK(sd_event_new(&event) >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CHECK(rows[i].text ? setenv("FDSTORE", rows[i].text, 1) == 0
				   : unsetenv("FDSTORE") == 0);
		store = manager_store_new(manager, event, &diagnostics);
		CHECK(store_max(store) == rows[i].max && diagnostics.n == 0);
		store_free(store);
	}
	sd_event_unref(event);
}

/* ---- descriptors of an earlier process------------------------------------------------- */

/* Runs a test with the stored descriptors at 3, 4, … as in a started service. */
static void as_service(struct manager *manager, void (*run)(struct manager *, sd_event *))
{
	pid_t pid = fork();
	sd_event *event;
	int status;

	CHECK(pid >= 0);
	if (pid > 0) {
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
		return;
	}
	manager->socket = fcntl(manager->socket, F_DUPFD_CLOEXEC, 100);
	for (size_t i = 0; i < manager->store.n; i++)
		manager->store.list[i].fd = fcntl(manager->store.list[i].fd, F_DUPFD_CLOEXEC, 100);
	manager->store.watch = -1;
	CHECK(manager_store_pass(&manager->store, RLIM_INFINITY) == 0);
	CHECK(sd_event_new(&event) >= 0);
	run(manager, event);
	_exit(0);
}

static void left(struct manager *manager, const char *name)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	manager_store_add(&manager->store, name, fd, true);
}

/* Takes all descriptors: "NAME " for each. */
static void check_left(struct manager *manager, sd_event *event, const char *names)
{
	struct diagnostics diagnostics = { 0 };
	_cleanup_(store_freep) struct store *store = manager_store_new(manager, event,
								       &diagnostics);
	char all[256] = "", name[STORE_NAME_MAX];
	int fd;

	CHECK(store_works(store) && diagnostics.n == 0 && !getenv("LISTEN_FDS"));
	while (store_take(store, name, &fd) > 0) {
		CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		CHECK(strlen(all) + strlen(name) + 2 < sizeof(all));
		strcat(all, name);
		strcat(all, " ");
		close(fd);
	}
	CHECK(strcmp(all, names) == 0);
	CHECK(store_take(store, name, &fd) == 0);
}

static void take_three(struct manager *manager, sd_event *event)
{
	check_left(manager, event, "lease-9-pid-4 lease-7 lease-7 ");
}

static void take_without_probe(struct manager *manager, sd_event *event)
{
	check_left(manager, event, "lease-7 ");
	CHECK(manager->store.n == 1); /* it is not stored either */
}

static void take_from_full(struct manager *manager, sd_event *event)
{
	manager->store.max = manager->store.n;
	check_left(manager, event, "lease-7 ");
}

static void take_for_another(struct manager *manager, sd_event *event)
{
	CHECK(setenv("LISTEN_PID", "1", 1) == 0);
	check_left(manager, event, "");
}

static void take_more_names(struct manager *manager, sd_event *event)
{
	CHECK(setenv("LISTEN_FDNAMES", "a:b:c:d", 1) == 0);
	check_left(manager, event, "a ");
}

static void take_fewer_names(struct manager *manager, sd_event *event)
{
	CHECK(setenv("LISTEN_FDNAMES", "a", 1) == 0);
	check_left(manager, event, "a  ");
}

static void take_without_names(struct manager *manager, sd_event *event)
{
	CHECK(unsetenv("LISTEN_FDNAMES") == 0);
	check_left(manager, event, " ");
}

static void take_nonsense(struct manager *manager, sd_event *event)
{
	struct diagnostics diagnostics = { 0 };
	char name[STORE_NAME_MAX];
	struct store *store;
	int fd;

	CHECK(setenv("LISTEN_FDS", "some", 1) == 0);
	store = manager_store_new(manager, event, &diagnostics);
	CHECK(store_works(store) && diagnostics.n == 1 &&
	      strstr(diagnostics.list[0].text, "LISTEN_FDS"));
	CHECK(store_take(store, name, &fd) == 0);
	diagnostics_done(&diagnostics);
	store_free(store);
}

static void take_nothing(struct manager *manager, sd_event *event)
{
	struct diagnostics diagnostics = { 0 };
	struct store *store = manager_store_new(manager, event, &diagnostics);

	CHECK(fcntl(3, F_GETFD) >= 0 && fcntl(4, F_GETFD) >= 0);
	store_free(store);
	CHECK(fcntl(3, F_GETFD) < 0 && fcntl(4, F_GETFD) < 0);
}

TEST_WITH(descriptors_of_an_earlier_process_are_returned_with_their_names, struct manager *manager)
{
	left(manager, "lease-7");
	as_service(manager, take_for_another);
	as_service(manager, take_more_names);
	as_service(manager, take_without_names);
	as_service(manager, take_from_full);
	as_service(manager, take_nonsense);
	left(manager, "lease-7");
	as_service(manager, take_fewer_names);
	as_service(manager, take_nothing);
	left(manager, "lease-9-pid-4");
	as_service(manager, take_three);
}

TEST_WITH(probe_left_by_an_earlier_process_is_dropped, struct manager *manager)
{
	left(manager, "probe");
	left(manager, "lease-7");
	as_service(manager, take_without_probe);
}

TEST(descriptors_of_an_invalid_environment_are_not_taken)
{
	struct diagnostics diagnostics = { 0 };
	struct store *store;
	sd_event *event;
	char name[STORE_NAME_MAX];
	int fd;

	CHECK(unsetenv("NOTIFY_SOCKET") == 0 && sd_event_new(&event) >= 0);
	CHECK(setenv("LISTEN_PID", "x", 1) == 0 && setenv("LISTEN_FDS", "1", 1) == 0);
	CHECK(store_new(event, 1000, &store, &diagnostics) == 0);
	CHECK(diagnostics.n == 2 && !diagnostics.list[0].error);
	CHECK(store_take(store, name, &fd) == 0 && !getenv("LISTEN_FDS"));
	diagnostics_done(&diagnostics);
	store_free(store);
	sd_event_unref(event);
}
