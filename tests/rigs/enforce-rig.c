/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "enforce-rig.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "check-cond.h"
#include "scratch.h"
#include "sys/process.h"
#include "core/observe/attribution.h"

/* What amdkfd shows of the processes that use it, without one. */
static void make_tree(const char *sysfs)
{
	static const char *const below[] = { "", "/class", "/class/kfd", "/class/kfd/kfd",
					     "/class/kfd/kfd/proc" };
	char path[160];

	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", sysfs, below[i]);
		CHECK(mkdir(path, 0755) == 0);
	}
}

void helper_uses_kfd(const struct helper *helper, pid_t pid, bool uses)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/class/kfd/kfd/proc/%d", helper->sysfs, (int)pid);
	CHECK((uses ? mkdir(path, 0755) : rmdir(path)) == 0);
}

void helper_froze(const struct helper *helper, const char *units)
{
	char list[512], path[512], *rest = list;

	snprintf(list, sizeof(list), "%s", units);
	for (const char *unit; (unit = strsep(&rest, " "));) {
		int fd;

		snprintf(path, sizeof(path), "%s/%s", helper->records, unit);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		CHECK(fd >= 0 && close(fd) == 0);
	}
}

void helper_prepare(struct helper *ret)
{
	*ret = (struct helper){ .listening = -1 };
	scratch_directory(ret->dir, sizeof(ret->dir));
	snprintf(ret->path, sizeof(ret->path), "%s/socket", ret->dir);
	snprintf(ret->sysfs, sizeof(ret->sysfs), "%s/sys", ret->dir);
	make_tree(ret->sysfs);
	snprintf(ret->records, sizeof(ret->records), "%s/records", ret->dir);
	CHECK(mkdir(ret->records, 0755) == 0);
}

void helper_listen(struct helper *ret)
{
	helper_prepare(ret);
	ret->listening = scratch_bind(ret->path, SOCK_SEQPACKET);
	CHECK(listen(ret->listening, 16) == 0);
}

static void run(const struct helper *helper, const char *idle, const char *timeout, int log)
{
	char pid[16], idle_option[64], timeout_option[64], sysfs_option[128];
	const char *program = getenv("GPUARB_ENFORCE"), *argv[5] = { program, sysfs_option };
	unsigned n = 2;

	if (helper->uid != 0 && setresuid(helper->uid, helper->uid, helper->uid) < 0)
		_exit(126);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (log >= 0)
		dup2(log, STDERR_FILENO);
	dup2(helper->listening, 3);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	setenv("RUNTIME_DIRECTORY", helper->records, 1);
	snprintf(sysfs_option, sizeof(sysfs_option), "--sysfs=%s", helper->sysfs);
	snprintf(idle_option, sizeof(idle_option), "--exit-idle-time=%s", idle ? idle : "");
	snprintf(timeout_option, sizeof(timeout_option), "--timeout=%s", timeout ? timeout : "");
	if (idle)
		argv[n++] = idle_option;
	if (timeout)
		argv[n++] = timeout_option;
	argv[n] = NULL;
	execv(program, (char *const *)(uintptr_t)argv);
	_exit(127);
}

void helper_start(struct helper *helper, const char *idle, const char *timeout, int log)
{
	CHECK(getenv("GPUARB_ENFORCE"));
	/* Our own end stays off the number that it has there. */
	if (helper->listening == 3) {
		helper->listening = fcntl(3, F_DUPFD_CLOEXEC, 10);
		CHECK(helper->listening >= 10);
		close(3);
	}
	helper->pid = fork();
	CHECK(helper->pid >= 0);
	if (helper->pid == 0)
		run(helper, idle, timeout, log);
}

struct helper helper_new(void)
{
	struct helper helper;

	helper_listen(&helper);
	helper_start(&helper, NULL, NULL, -1);
	return helper;
}

int helper_wait(struct helper *helper)
{
	int status;

	CHECK(waitpid(helper->pid, &status, 0) == helper->pid);
	helper->pid = 0;
	return status;
}

void helper_stop(struct helper *helper)
{
	if (helper->pid > 0) {
		CHECK(kill(helper->pid, SIGTERM) == 0);
		CHECK(helper_wait(helper) == 0);
	}
	if (helper->listening >= 0)
		close(helper->listening);
	CHECK(scratch_remove(helper->dir) == 0);
}

/* ---- a client ---------------------------------------------------------------------------- */

int client_connect(const struct helper *helper)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = (time_t)(await_limit_usec() / 1000000) };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", helper->path);
	CHECK(connect(fd, (const struct sockaddr *)&un, sizeof(un)) == 0);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
	return fd;
}

static bool request_of_text(const void *text, size_t length, struct enforce_request *ret)
{
	char copy[ENFORCE_TEXT_MAX] = "";
	int unit = 0, end = 0;

	*ret = (struct enforce_request){ 0 };
	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	if (sscanf(copy, "kill %" SCNu64 "%n", &ret->start_time, &end) == 1 && end == (int)length)
		ret->verb = ENFORCE_KILL;
	else if (sscanf(copy, "freeze %" SCNu64 " %n", &ret->start_time, &unit) == 1 && unit > 0)
		ret->verb = ENFORCE_FREEZE;
	else if (sscanf(copy, "thaw %n", &unit) == 0 && unit > 0)
		ret->verb = ENFORCE_THAW;
	if (unit > 0)
		memcpy(ret->text, copy + unit, strnlen(copy + unit, sizeof(ret->text)));
	return ret->verb != 0;
}

bool client_send(int client, const void *text, size_t length, const int *fds, unsigned n_fds)
{
	union {
		char bytes[CMSG_SPACE(16 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct enforce_request request;
	bool is_request = request_of_text(text, length, &request);
	struct iovec io = { .iov_base = is_request ? &request : (void *)(uintptr_t)text,
			    .iov_len = is_request ? sizeof(request) : length };
	struct msghdr message = { .msg_iov = &io, .msg_iovlen = 1 };

	if (n_fds > 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(header), fds, n_fds * sizeof(int));
	}
	if (sendmsg(client, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	CHECK(errno == EAGAIN);
	return false;
}

static void write_text(char buf[ENFORCE_TEXT_MAX], const struct enforce_request *request)
{
	if (request->verb == ENFORCE_KILL)
		snprintf(buf, ENFORCE_TEXT_MAX, "kill %" PRIu64, request->start_time);
	else if (request->verb == ENFORCE_FREEZE)
		snprintf(buf, ENFORCE_TEXT_MAX, "freeze %" PRIu64 " %s", request->start_time,
			 request->text);
	else
		snprintf(buf, ENFORCE_TEXT_MAX, "thaw %s", request->text);
}

size_t client_receive(int client, char buf[ENFORCE_TEXT_MAX])
{
	union {
		struct enforce_request request;
		struct enforce_answer answer;
	} packet;
	ssize_t n = recv(client, &packet, sizeof(packet), 0);

	/* A helper that ends with something unread resets the connection. */
	CHECK(n >= 0 || errno == ECONNRESET);
	buf[0] = '\0';
	if (n == (ssize_t)sizeof(packet.request))
		write_text(buf, &packet.request);
	else if (n == (ssize_t)sizeof(packet.answer) && packet.answer.r == 0)
		strcpy(buf, "ok");
	else if (n == (ssize_t)sizeof(packet.answer))
		snprintf(buf, ENFORCE_TEXT_MAX, "error %d %s", -packet.answer.r,
			 packet.answer.sentence);
	else
		CHECK(n <= 0);
	return n > 0 ? (size_t)n : 0;
}

bool client_hears(int client, const char *answer)
{
	char buf[ENFORCE_TEXT_MAX];

	client_receive(client, buf);
	if (strncmp(buf, answer, strlen(answer)) == 0 && (buf[0] != '\0' || answer[0] == '\0'))
		return true;
	fprintf(stderr, "it answers: %s\n", buf);
	return false;
}

bool client_asks(int client, const char *text, int fd, const char *answer)
{
	CHECK(client_send(client, text, strlen(text), &fd, fd >= 0));
	return client_hears(client, answer);
}

uint64_t start_time_of(pid_t pid)
{
	struct observed row = { .pid = pid };

	process_describe(&row);
	return row.start_time;
}

static void send_request(int client, enum enforce_verb verb, int pidfd, uid_t uid, const char *unit)
{
	struct enforce_request request = { .verb = verb, .uid = uid };
	pid_t pid;

	if (process_pid_of_pidfd(pidfd, &pid) == 0)
		request.start_time = start_time_of(pid);
	snprintf(request.text, sizeof(request.text), "%s", unit);
	CHECK(client_send(client, &request, sizeof(request), &pidfd, pidfd >= 0));
}

void client_sends_kill(int client, int pidfd)
{
	send_request(client, ENFORCE_KILL, pidfd, 0, "");
}

bool client_kills(int client, int pidfd, const char *answer)
{
	client_sends_kill(client, pidfd);
	return client_hears(client, answer);
}

bool client_kills_for(int client, int pidfd, uid_t uid, const char *answer)
{
	send_request(client, ENFORCE_KILL, pidfd, uid, "");
	return client_hears(client, answer);
}

bool client_orders(int client, enum enforce_verb verb, int pidfd, uid_t uid, const char *text,
		   const char *answer)
{
	send_request(client, verb, pidfd, uid, text);
	return client_hears(client, answer);
}

bool client_freezes(int client, const char *unit, int pidfd, const char *answer)
{
	send_request(client, ENFORCE_FREEZE, pidfd, 0, unit);
	return client_hears(client, answer);
}

/* ---- processes ---------------------------------------------------------------------------- */

pid_t victim_new(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(3, UINT32_MAX, 0); /* connections of ours, that would stay open */
		for (;;)
			pause();
	}
	return pid;
}

int victim_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	CHECK(fd >= 0);
	return fd;
}

bool sees_kthreadd(void)
{
	char name[16] = "";
	FILE *file = fopen("/proc/2/comm", "re");

	if (file && !fgets(name, sizeof(name), file))
		name[0] = '\0';
	if (file)
		fclose(file);
	return strcmp(name, "kthreadd\n") == 0;
}

bool victim_was_killed(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}
