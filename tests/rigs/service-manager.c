/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Stands in for the part of systemd that a daemon with Type=notify, Restart=on-failure and
 * FileDescriptorStoreMax= sees:
 *
 *	service-manager [OPTIONS] -- PROGRAM ARGUMENTS…
 *
 *	--store-max=N           FileDescriptorStoreMax=N; 0 is the default
 *	--runtime=DIR           makes the directory, and says so in RUNTIME_DIRECTORY
 *	--no-fdstore-variable   as systemd before 254, which does not set FDSTORE
 *	--no-restart            as Restart=no
 *
 * PROGRAM is told of a socket in NOTIFY_SOCKET, on which only it is heard. On stdin commands
 * are taken, a line each:
 *
 *	stop       SIGTERM; then the store is emptied, and this program ends; so does SIGTERM
 *	restart    SIGTERM, and starts it anew with what is stored
 *	kill       SIGKILL, which is followed by a restart as after any crash
 *	hold, go   hold: what ends from now on is not started before go
 *	stored     answers with holds N
 *	arm N      SIGKILL just before the N-th system call that others can see the effect of
 *	           (manager-trace.h), counted from now, or where PROGRAM does not run from its
 *	           start; 0 only counts; answers with armed, and why not if it cannot be done
 *	disarm     no kill any more; answers with count N, N being such calls so far
 *	count      answers with count N
 *
 * On stdout it tells what happens, a line each: started PID, ready PID, reloading PID,
 * stopping PID, died SIGNAL-or-STATUS, stored N, killed-at N CALL, failed. Who does not
 * listen is not told of each change of what is stored. It ends with 0 after a PROGRAM that
 * exited with 0.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check-cond.h"
#include "service-manager.h"

#define STARTS_MAX 5 /* in vain, one after the other: StartLimitBurst= */

/* What does not fit now goes out when there is room: who does not listen stops nothing. */
void tell(struct manager *manager, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(manager->out + manager->out_size, sizeof(manager->out) - manager->out_size,
		      format, args);
	va_end(args);
	CHECK(n >= 0 && manager->out_size + (size_t)n + 1 < sizeof(manager->out));
	manager->out_size += (size_t)n;
	manager->out[manager->out_size++] = '\n';
}

/* A pipe with room takes PIPE_BUF bytes without waiting. */
static void flush_out(struct manager *manager)
{
	struct pollfd room = { .fd = STDOUT_FILENO, .events = POLLOUT };

	while (manager->out_size > 0 && poll(&room, 1, 0) == 1) {
		size_t size = manager->out_size < PIPE_BUF ? manager->out_size : PIPE_BUF;
		ssize_t n = write(STDOUT_FILENO, manager->out, size);

		if (n < 0)
			break;
		manager->out_size -= (size_t)n;
		memmove(manager->out, manager->out + n, manager->out_size);
	}
}

/* How much is stored, once it has been told how much was. */
static void tell_stored(struct manager *manager)
{
	if (manager->store.n == manager->told_stored || manager->out_size > 0)
		return;
	manager->told_stored = manager->store.n;
	tell(manager, "stored %zu", manager->store.n);
}

/* ---- the program ----------------------------------------------------------------------- */

static void set_number(const char *name, size_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%zu", number);
	CHECK(setenv(name, text, 1) == 0);
}

static _Noreturn void execute(const struct manager *manager, pid_t parent, int go)
{
	sigset_t none;
	char byte;

	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent);
	CHECK(read(go, &byte, 1) == 1);
	sigemptyset(&none);
	CHECK(sigprocmask(SIG_SETMASK, &none, NULL) == 0);
	CHECK(setenv("NOTIFY_SOCKET", manager->address, 1) == 0);
	if (manager->fdstore_variable && manager->store.max > 0)
		set_number("FDSTORE", manager->store.max);
	if (manager_store_pass(&manager->store, manager->files.rlim_cur) < 0)
		_exit(202); /* systemd's EXIT_FDS */
	CHECK(setrlimit(RLIMIT_NOFILE, &manager->files) == 0);
	execvp(manager->argv[0], manager->argv);
	perror(manager->argv[0]);
	_exit(203); /* EXIT_EXEC */
}

int manager_arm(struct manager *manager)
{
	if (manager->child == 0 || !manager->arm)
		return 0;
	manager->arm = false;
	return manager_trace_start(&manager->trace, manager->child, manager->arm_at);
}

void manager_start(struct manager *manager)
{
	pid_t parent = getpid();
	int go[2];

	CHECK(pipe2(go, O_CLOEXEC) == 0);
	manager->child = fork();
	CHECK(manager->child >= 0);
	if (manager->child == 0)
		execute(manager, parent, go[0]);
	manager->vain++;
	tell(manager, "started %d", manager->child);
	if (manager_arm(manager) < 0)
		fprintf(stderr, "service-manager: %d cannot be traced\n", manager->child);
	CHECK(write(go[1], "", 1) == 1);
	close(go[0]);
	close(go[1]);
}

_Noreturn void manager_finish(struct manager *manager, int status)
{
	flush_out(manager);
	manager_store_clear(&manager->store);
	exit(status);
}

/* What comes after a death. */
static void go_on(struct manager *manager, bool fine)
{
	if (manager->stopping || (fine && !manager->restarting))
		manager_finish(manager, fine ? 0 : 1);
	if (!manager->restarts && !manager->restarting)
		manager_finish(manager, 1);
	if (manager->hold)
		return;
	if (manager->vain >= STARTS_MAX) {
		tell(manager, "failed");
		manager_finish(manager, 1);
	}
	manager->restarting = false;
	manager_start(manager);
}

static void bury(struct manager *manager, int status)
{
	manager->child = 0;
	manager->trace.pid = 0;
	if (manager->trace.killed_before)
		tell(manager, "killed-at %u %s", manager->trace.kill_at,
		     manager->trace.killed_before);
	manager->trace.killed_before = NULL;
	if (WIFSIGNALED(status))
		tell(manager, "died SIG%s", sigabbrev_np(WTERMSIG(status)));
	else
		tell(manager, "died %d", WEXITSTATUS(status));
	go_on(manager, WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- what it notifies us of ------------------------------------------------------------- */

static bool name_is_valid(const char *name)
{
	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == ':')
			return false;
	return true;
}

/* What is not for the store is closed: a barrier is just that. */
static void take_fds(struct manager *manager, const struct notification *notification)
{
	char name[sizeof(((struct stored *)NULL)->name)];
	bool named = notification_value(notification, "FDNAME=", name, sizeof(name)) &&
		     name_is_valid(name);
	bool store = notification_has(notification, "FDSTORE=1");

	if (named && notification_has(notification, "FDSTOREREMOVE=1"))
		manager_store_remove(&manager->store, name);
	for (size_t i = 0; i < notification->n_fds; i++)
		if (store)
			manager_store_add(&manager->store, named ? name : "stored",
					  notification->fds[i],
					  !notification_has(notification, "FDPOLL=0"));
		else
			close(notification->fds[i]);
}

static void take_message(struct manager *manager, const struct notification *notification)
{
	if (manager->child == 0 || notification->sender != manager->child) {
		for (size_t i = 0; i < notification->n_fds; i++)
			close(notification->fds[i]);
		return;
	}
	take_fds(manager, notification);
	if (notification_has(notification, "RELOADING=1"))
		tell(manager, "reloading %d", manager->child);
	if (notification_has(notification, "STOPPING=1"))
		tell(manager, "stopping %d", manager->child);
	if (notification_has(notification, "READY=1")) {
		manager->vain = 0;
		tell(manager, "ready %d", manager->child);
	}
}

static void take_messages(struct manager *manager)
{
	struct notification notification;

	while (notify_take(manager->notify, &notification))
		take_message(manager, &notification);
}

/* ---- the loop ----------------------------------------------------------------------------- */

/* What it sent before it died counts. */
void manager_take_child(struct manager *manager)
{
	int status;

	while (manager->child > 0 && waitpid(manager->child, &status, WNOHANG) > 0) {
		if (WIFSTOPPED(status)) {
			manager_trace_take(&manager->trace, status);
			continue;
		}
		take_messages(manager);
		bury(manager, status);
	}
}

static void take_signals(struct manager *manager)
{
	struct signalfd_siginfo info;

	while (read(manager->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD && !manager->stopping)
			manager_stop(manager);
	manager_take_child(manager);
}

/* In systemd's order: what is notified, deaths, the store. */
static _Noreturn void run(struct manager *manager)
{
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = manager->notify, .events = POLLIN },
			{ .fd = manager->signals, .events = POLLIN },
			{ .fd = manager->store.watch, .events = POLLIN },
			{ .fd = manager->deaf ? -1 : STDIN_FILENO, .events = POLLIN },
			{ .fd = manager->out_size > 0 ? STDOUT_FILENO : -1, .events = POLLOUT },
		};

		CHECK(poll(fds, 5, -1) > 0 || errno == EINTR);
		take_messages(manager);
		if (fds[1].revents)
			take_signals(manager);
		manager_store_poll(&manager->store);
		if (fds[3].revents)
			manager_take_commands(manager);
		flush_out(manager);
		tell_stored(manager);
		flush_out(manager);
	}
}

static void set_up(struct manager *manager)
{
	struct rlimit all;
	sigset_t set;

	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	manager->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	CHECK(manager->signals >= 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &manager->files) == 0);
	all = manager->files;
	all.rlim_cur = all.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &all) == 0);
	manager->notify = notify_open(manager->address);
}

static int usage(void)
{
	fprintf(stderr, "usage: service-manager [--store-max=N] [--runtime=DIR] [--no-restart] "
			"[--no-fdstore-variable] -- PROGRAM ARGUMENTS…\n");
	return 2;
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "store-max", required_argument, NULL, 'm' },
		{ "runtime", required_argument, NULL, 'r' },
		{ "no-restart", no_argument, NULL, 'n' },
		{ "no-fdstore-variable", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	static struct manager manager = { .restarts = true,
					  .fdstore_variable = true,
					  .store.watch = -1 };
	int option;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (option == 'm')
			manager.store.max = strtoul(optarg, NULL, 10);
		else if (option == 'r')
			CHECK((mkdir(optarg, 0755) == 0 || errno == EEXIST) &&
			      setenv("RUNTIME_DIRECTORY", optarg, 1) == 0);
		else if (option == 'n')
			manager.restarts = false;
		else if (option == 'v')
			manager.fdstore_variable = false;
		else
			return usage();
	}
	if (optind == argc)
		return usage();
	manager.argv = argv + optind;
	set_up(&manager);
	manager_start(&manager);
	run(&manager);
}
