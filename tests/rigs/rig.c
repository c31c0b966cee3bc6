/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "check-cond.h"
#include "rig-internal.h"
#include "scratch.h"

static const char bus_config[] = "<busconfig>\n"
				 "  <type>system</type>\n"
				 "  <listen>unix:path=%s/bus</listen>\n"
				 "  <auth>EXTERNAL</auth>\n"
				 "  <policy context=\"default\">\n"
				 "    <allow user=\"*\"/>\n"
				 "    <allow own=\"*\"/>\n"
				 "    <allow send_destination=\"*\"/>\n"
				 "    <allow receive_sender=\"*\"/>\n"
				 "  </policy>\n"
				 "  <limit name=\"max_completed_connections\">10000</limit>\n"
				 "  <limit name=\"max_connections_per_user\">10000</limit>\n"
				 "  <limit name=\"max_match_rules_per_connection\">10000</limit>\n"
				 "  <limit name=\"max_replies_per_connection\">100000</limit>\n"
				 "  <include ignore_missing=\"yes\">%s/extra.conf</include>\n"
				 "</busconfig>\n";

const char *rig_bus_missing(void)
{
	if (!getenv("GPUARB_BUS"))
		return access("/usr/bin/dbus-daemon", X_OK) < 0 ? "there is no dbus-daemon" : NULL;
	if (geteuid() != 0 && access("/run/systemd/journal/socket", W_OK) < 0)
		return "dbus-broker needs systemd-journald, or the test needs root";
	return access("/usr/bin/dbus-broker-launch", X_OK) < 0 ? "there is no dbus-broker" : NULL;
}

const char *rig_missing(void)
{
	if (!getenv("GPUARBD") || !getenv("GPUARB_ROOT"))
		return "GPUARBD and GPUARB_ROOT say which gpuarbd and whose conf/gpus to use";
	return rig_bus_missing();
}

void rig_write(const struct rig *rig, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
	file = fopen(path, "we");
	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
	CHECK(chmod(path, 0644) == 0);
}

static void make_directory(const struct rig *rig, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", rig->dir, name);
	CHECK((mkdir(path, 0755) == 0 || errno == EEXIST) && chmod(path, 0755) == 0);
}

static void set_environment(const struct rig *rig, const char *name, const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", rig->dir, file);
	CHECK(setenv(name, path, 1) == 0);
}

void rig_die_with_parent(pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	CHECK(sigprocmask(SIG_SETMASK, &none, NULL) == 0);
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent);
}

void rig_become_user(const struct rig *rig)
{
	if (rig->user > 0)
		CHECK(setgroups(0, NULL) == 0 && setgid(rig->user) == 0 && setuid(rig->user) == 0);
}

void rig_start_bus(struct rig *rig)
{
	char text[sizeof(bus_config) + 128], config[128], print[32], log[128], address[128];
	pid_t parent = getpid(), pid;
	ssize_t size;
	int fds[2];

	snprintf(text, sizeof(text), bus_config, rig->dir, rig->dir);
	rig_write(rig, "bus.conf", text);
	snprintf(config, sizeof(config), "--config-file=%s/bus.conf", rig->dir);
	CHECK(pipe(fds) == 0);
	snprintf(print, sizeof(print), "--print-address=%d", fds[1]);

	pid = fork(); /* the child does not write to rig, which can be shared memory */
	CHECK(pid >= 0);
	if (pid == 0) {
		rig_die_with_parent(parent);
		snprintf(log, sizeof(log), "%s/bus.log", rig->dir);
		CHECK(freopen(log, "w", stderr));
		execlp("dbus-daemon", "dbus-daemon", config, "--nofork", "--nopidfile",
		       "--nosyslog", print, NULL);
		abort();
	}
	rig->bus = pid;
	close(fds[1]);
	size = read(fds[0], address, sizeof(address)); /* when it listens */
	close(fds[0]);
	/* rigs/broker needs a mount namespace of its own. */
	if (size == 0 && getenv("GPUARB_BUS")) {
		puts("skipped: dbus-broker cannot be started here without a mount namespace");
		fflush(stdout);
		_exit(77);
	}
	CHECK(size > 0);
	snprintf(rig->address, sizeof(rig->address), "unix:path=%s/bus", rig->dir);
	CHECK(setenv("GPUARB_BUS_ADDRESS", rig->address, 1) == 0); /* of programs of the test */
}

static void open_notify(struct rig *rig)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", rig->dir);
	rig->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(rig->notify >= 0);
	CHECK(bind(rig->notify, (struct sockaddr *)&address, sizeof(address)) == 0);
}

void rig_new(struct rig *ret)
{
	*ret = (struct rig){ .dir = "" };
	scratch_directory(ret->dir, sizeof(ret->dir));
	make_directory(ret, "");
	make_directory(ret, "/tenants.d");
	make_directory(ret, "/run");
	rig_write(ret, "gpuarbd.conf", "");
	rig_start_bus(ret);
	open_notify(ret);
}

int rig_await_end(pid_t pid)
{
	int status;

	AWAIT_END(pid);
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

void rig_pause(pid_t pid)
{
	CHECK(kill(pid, SIGSTOP) == 0 && waitpid(pid, NULL, WUNTRACED) == pid);
}

void rig_go_on(pid_t pid)
{
	CHECK(kill(pid, SIGCONT) == 0);
}

/* dbus-broker is a child of its launcher. */
void rig_signal_bus(const struct rig *rig, int signal)
{
	char path[64];
	FILE *children;
	pid_t child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", rig->bus, rig->bus);
	children = fopen(path, "re");
	while (children && fscanf(children, "%d", &child) == 1)
		CHECK(kill(child, signal) == 0 || errno == ESRCH);
	CHECK(!children || fclose(children) == 0); /* none: a kernel without this file */
	CHECK(kill(rig->bus, signal) == 0 || errno == ESRCH);
}

/* The bus may be a child of another process of the test. */
static void end_bus(struct rig *rig, int signal)
{
	if (rig->bus == 0)
		return;
	rig_signal_bus(rig, signal);
	AWAIT_END(rig->bus);
	waitpid(rig->bus, NULL, 0);
	rig->bus = 0;
}

void rig_kill_bus(struct rig *rig)
{
	end_bus(rig, SIGKILL);
}

/* The connections of this process. */
static struct client {
	char dir[sizeof(((struct rig *)0)->dir)];
	sd_bus *bus;
} * clients;
static size_t n_clients;

static void close_clients(const struct rig *rig)
{
	size_t n = 0;

	for (size_t i = 0; i < n_clients; i++)
		if (strcmp(clients[i].dir, rig->dir) == 0)
			sd_bus_flush_close_unref(clients[i].bus);
		else
			clients[n++] = clients[i];
	n_clients = n;
	if (n > 0)
		return;
	free(clients);
	clients = NULL;
}

void leave(sd_bus *bus)
{
	for (size_t i = 0; i < n_clients; i++)
		if (clients[i].bus == bus)
			clients[i] = clients[--n_clients];
	sd_bus_flush_close_unref(bus);
}

void rig_done(struct rig *rig)
{
	close_clients(rig);
	if (rig->daemon > 0 || rig->manager > 0)
		rig_stop(rig);
	end_bus(rig, SIGTERM);
	close(rig->notify);
	CHECK(scratch_remove(rig->dir) == 0);
}

_Noreturn void rig_execute(const struct rig *rig, const char *hardware, const char *const program[])
{
	char config[128], tenants[128], profiles[256];
	const char *argv[32];
	char *more = strdup(hardware), *rest = more;
	size_t n = 0;

	CHECK(more);
	snprintf(config, sizeof(config), "--config=%s/gpuarbd.conf", rig->dir);
	snprintf(tenants, sizeof(tenants), "--tenants=%s/tenants.d", rig->dir);
	snprintf(profiles, sizeof(profiles), "--profiles=%s/conf/gpus",
		 rig->user > 0 ? rig->dir : getenv("GPUARB_ROOT"));
	set_environment(rig, "RUNTIME_DIRECTORY", "run");
	CHECK(setenv("GPUARB_BUS_ADDRESS", rig->address, 1) == 0);
	for (; program[n]; n++) {
		CHECK(n < 24);
		argv[n] = program[n];
	}
	argv[n++] = config;
	argv[n++] = tenants;
	argv[n++] = profiles;
	for (char *option; n < 31 && (option = strtok_r(rest, " ", &rest));)
		argv[n++] = option;
	argv[n] = NULL;
	execv(argv[0], (char *const *)(uintptr_t)argv);
	abort();
}

static void copy(const struct rig *rig, const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	char path[256];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", rig->dir, to);
	out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	CHECK(in >= 0 && out >= 0);
	while ((n = sendfile(out, in, NULL, 1 << 30)) > 0)
		continue;
	CHECK(n == 0 && fchmod(out, 0755) == 0);
	close(in);
	close(out);
}

void rig_run_as(struct rig *rig, uid_t uid)
{
	char profile[256];

	snprintf(profile, sizeof(profile), "%s/conf/gpus/radeon-vii.conf", getenv("GPUARB_ROOT"));
	make_directory(rig, "/conf");
	make_directory(rig, "/conf/gpus");
	copy(rig, profile, "conf/gpus/radeon-vii.conf");
	copy(rig, getenv("GPUARBD"), "gpuarbd");
	copy(rig, getenv("SERVICE_MANAGER"), "service-manager");
	CHECK(chown(rig->dir, uid, 0) == 0 && chown(rig_path(rig, "run"), uid, 0) == 0);
	CHECK(chmod(rig_path(rig, "notify"), 0666) == 0);
	rig->user = uid;
}

const char *rig_daemon(const struct rig *rig)
{
	return rig->user > 0 ? rig_path(rig, "gpuarbd") : getenv("GPUARBD");
}

static void spawn(struct rig *rig, const char *hardware)
{
	pid_t parent = getpid();

	CHECK(rig->daemon == 0);
	rig->daemon = fork();
	CHECK(rig->daemon >= 0);
	if (rig->daemon == 0) {
		rig_become_user(rig);
		rig_die_with_parent(parent);
		set_environment(rig, "NOTIFY_SOCKET", "notify");
		rig_execute(rig, hardware, (const char *const[]){ rig_daemon(rig), NULL });
	}
}

/* Whether one of the notification's lines is this one. */
static bool has_line(const char *text, const char *line)
{
	size_t length = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at += length)
		if ((at == text || at[-1] == '\n') && (at[length] == '\0' || at[length] == '\n'))
			return true;
	return false;
}

/* false: the daemon ended before it said so. */
static bool await(const struct rig *rig, const char *line)
{
	struct pollfd fds[2] = { { .fd = rig->notify, .events = POLLIN }, { .events = POLLIN } };
	const struct await turn = AWAIT_BEGIN(line);
	char text[4096] = "";

	fds[1].fd = pidfd_open(rig->daemon, 0);
	CHECK(fds[1].fd >= 0);
	while (!has_line(text, line)) {
		ssize_t n;

		await_fds(&turn, fds, 2);
		if (!(fds[0].revents & POLLIN))
			break;
		n = recv(rig->notify, text, sizeof(text) - 1, 0);
		CHECK(n >= 0);
		text[n] = '\0';
	}
	close(fds[1].fd);
	return has_line(text, line);
}

void rig_await(const struct rig *rig, const char *line)
{
	CHECK(await(rig, line));
}

void rig_start(struct rig *rig, const char *hardware)
{
	spawn(rig, hardware);
	rig_await(rig, "READY=1");
}

/* The exit status, or 128 and a signal, and forgets what it said to its manager. */
static int end_of_daemon(struct rig *rig)
{
	int status = rig_await_end(rig->daemon);
	char byte;

	while (recv(rig->notify, &byte, sizeof(byte), MSG_DONTWAIT) >= 0)
		continue;
	rig->daemon = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int rig_try_start(struct rig *rig, const char *hardware)
{
	spawn(rig, hardware);
	if (await(rig, "READY=1"))
		return RIG_READY;
	return end_of_daemon(rig);
}

int rig_start_fails(struct rig *rig, const char *hardware)
{
	int status = rig_try_start(rig, hardware);

	CHECK(status >= 0 && status < 128);
	return status;
}

int rig_try_stop(struct rig *rig)
{
	CHECK(kill(rig->daemon, SIGTERM) == 0);
	return end_of_daemon(rig);
}

void rig_stop(struct rig *rig)
{
	if (rig->manager > 0)
		rig_stop_manager(rig);
	else
		CHECK(rig_try_stop(rig) == 0);
}

void rig_kill(struct rig *rig)
{
	CHECK(kill(rig->daemon, SIGKILL) == 0);
	rig_await_end(rig->daemon);
	rig->daemon = 0;
}

/* ---- clients --------------------------------------------------------------------------- */

/* The kernel notes who connects at connect(): SO_PEERCRED is the effective user then. */
int pass(int socket, int fd)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = space,
			    .msg_controllen = sizeof(space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	if (fd < 0) {
		CHECK(recvmsg(socket, &m, MSG_CMSG_CLOEXEC) == 1);
		c = CMSG_FIRSTHDR(&m);
		CHECK(c && c->cmsg_type == SCM_RIGHTS);
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		return fd;
	}
	*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS,
			       .cmsg_len = CMSG_LEN(sizeof(fd)) };
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	CHECK(sendmsg(socket, &m, MSG_NOSIGNAL) == 1);
	return fd;
}

/* A process that connects as another user, and keeps no connection nor anything else that the test had
 * open: struct ucred of a socket is that of the process that called connect(). */
struct connector {
	uid_t uid; /* 0: none */
	int socket;
};

static _Noreturn void run_connector(const struct passwd *user, int pair, pid_t parent)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	/* A holder that stays open keeps its lease alive. */
	CHECK(dup2(pair, STDIN_FILENO) == STDIN_FILENO &&
	      close_range(STDERR_FILENO + 1, UINT32_MAX, 0) == 0);
	CHECK((user->pw_name ? initgroups(user->pw_name, user->pw_gid) : setgroups(0, NULL)) == 0 &&
	      setresgid(user->pw_gid, user->pw_gid, user->pw_gid) == 0 &&
	      setresuid(user->pw_uid, user->pw_uid, user->pw_uid) == 0);
	rig_die_with_parent(parent);
	while (recv(STDIN_FILENO, address.sun_path, sizeof(address.sun_path), 0) > 0) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
		pass(STDIN_FILENO, fd);
		close(fd);
	}
	_exit(0);
}

static int connector_of(const struct passwd *user)
{
	static struct connector connectors[8];
	pid_t parent = getpid(), pid;
	int pair[2];
	size_t i = 0;

	while (connectors[i].uid != 0 && connectors[i].uid != user->pw_uid)
		CHECK(++i < sizeof(connectors) / sizeof(connectors[0]));
	if (connectors[i].uid != 0)
		return connectors[i].socket;
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		run_connector(user, pair[1], parent);
	close(pair[1]);
	connectors[i] = (struct connector){ user->pw_uid, pair[0] };
	return pair[0];
}

sd_bus *rig_connect(const struct rig *rig, uid_t uid)
{
	const struct passwd unnamed = { .pw_uid = uid, .pw_gid = uid }, *user = getpwuid(uid);
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)] = "";
	const char *name;
	sd_bus *bus;
	int fd;

	user = user ?: &unnamed;
	CHECK(sd_bus_new(&bus) >= 0);
	if (uid == geteuid()) {
		CHECK(sd_bus_set_address(bus, rig->address) >= 0);
	} else {
		snprintf(path, sizeof(path), "%s", rig->address + strlen("unix:path="));
		fd = connector_of(user);
		CHECK(send(fd, path, sizeof(path), MSG_NOSIGNAL) == sizeof(path));
		fd = pass(fd, -1);
		CHECK(sd_bus_set_fd(bus, fd, fd) >= 0);
	}
	CHECK(sd_bus_set_bus_client(bus, true) >= 0);
	CHECK(sd_bus_set_method_call_timeout(bus, await_limit_usec()) >= 0);
	CHECK(sd_bus_start(bus) >= 0);
	/* dbus-daemon closes a connection that takes 30 s for this, and not all are used at once. */
	CHECK(sd_bus_get_unique_name(bus, &name) >= 0);
	clients = reallocarray(clients, n_clients + 1, sizeof(*clients));
	CHECK(clients);
	clients[n_clients].bus = bus;
	snprintf(clients[n_clients++].dir, sizeof(clients->dir), "%s", rig->dir);
	return bus;
}

const char *rig_path(const struct rig *rig, const char *name)
{
	static char paths[4][128];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, 128, "%s/%s", rig->dir, name);
	return path;
}

unsigned long rig_resident_kib(pid_t pid)
{
	unsigned long pages;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	file = fopen(path, "re");
	CHECK(file && fscanf(file, "%*u %lu", &pages) == 1);
	fclose(file);
	return pages * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
}
