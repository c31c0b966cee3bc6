/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/fuse.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/base.h"

#define EVENTS 64

static sigset_t watched_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	return set;
}

/* A group of its own, so that it can be ended whole; with the terminal, if there is one. */
static void lead_group(void)
{
	sigset_t stop, old;

	setpgid(0, 0);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTTOU);
	sigprocmask(SIG_BLOCK, &stop, &old);
	if (isatty(STDIN_FILENO))
		tcsetpgrp(STDIN_FILENO, getpid());
	sigprocmask(SIG_SETMASK, &old, NULL);
}

__attribute__((noreturn)) static void run_command(struct front *front, char *const command[],
						  int (*enter)(struct front *front))
{
	sigset_t set = watched_signals();
	int error;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	lead_group();
	if (enter(front) < 0)
		_exit(125);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	execvp(command[0], command);
	error = errno;
	fprintf(stderr, "kfdsim: %s: %s\n", command[0], strerror(error));
	_exit(error == ENOENT ? 127 : 126);
}

static int watch_fd(struct front *front, int fd, void *key)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = key };

	return epoll_ctl(front->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int front_spawn(struct front *front, char *const command[], int (*enter)(struct front *front))
{
	sigset_t set = watched_signals();

	sigprocmask(SIG_BLOCK, &set, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	front->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	front->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (front->signal_fd < 0 || front->epoll_fd < 0)
		return -errno;
	fflush(NULL);
	front->child = fork();
	if (front->child < 0)
		return -errno;
	if (front->child == 0)
		run_command(front, command, enter);
	setpgid(front->child, front->child);
	return watch_fd(front, front->signal_fd, &front->signal_fd);
}

/* Whoever has lost its parent is a child of this process: PR_SET_CHILD_SUBREAPER. */
static void kill_children(void)
{
	_cleanup_(freep) char *text = NULL;
	size_t size = 0;
	FILE *stream = fopen("/proc/thread-self/children", "re");

	if (!stream)
		return;
	while (getdelim(&text, &size, ' ', stream) > 0) {
		pid_t pid = (pid_t)strtol(text, NULL, 10);

		if (pid > 0)
			kill(pid, SIGKILL);
	}
	fclose(stream);
}

/* True once nobody is left. */
static bool reap(struct front *front)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != front->child)
			continue;
		front->child_ended = true;
		front->child_status = status;
	}
	if (!front->child_ended)
		return false;
	kill_children();
	front_kill_clients(front);
	return pid < 0 && errno == ECHILD && !front->clients;
}

/* The first asks, the next one does not. */
static void forward(struct front *front, int signal)
{
	front->signals++;
	if (!front->child_ended)
		kill(-front->child, front->signals > 1 ? SIGKILL : signal);
}

static void take_signals(struct front *front)
{
	struct signalfd_siginfo info;

	while (read(front->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			forward(front, (int)info.ssi_signo);
}

static int wait_events(struct front *front, struct epoll_event *events)
{
	uint64_t ns = sim_work(front->sim, front_now());
	struct timespec timeout = {
		.tv_sec = (time_t)(ns / 1000000000U),
		.tv_nsec = (long)(ns % 1000000000U),
	};
	int n;

	n = epoll_pwait2(front->epoll_fd, events, EVENTS, ns == UINT64_MAX ? NULL : &timeout, NULL);
	return n < 0 && errno != EINTR ? -errno : n < 0 ? 0 : n;
}

int front_loop(struct front *front, int fd, int (*ready)(struct front *front))
{
	struct epoll_event events[EVENTS];
	bool deaths;
	int n, r;

	r = watch_fd(front, fd, front);
	while (r >= 0 && !reap(front)) {
		r = n = wait_events(front, events);
		deaths = false;
		for (int i = 0; i < n && r >= 0; i++) {
			if (events[i].data.ptr == front)
				r = ready(front);
			else if (events[i].data.ptr == &front->signal_fd)
				take_signals(front);
			else
				deaths = true;
		}
		if (deaths)
			front_bury(front);
	}
	return r < 0 ? r : 0;
}

void front_done(struct front *front)
{
	if (front->fuse)
		fuse_free(front->fuse);
	front->tree = tree_free(front->tree);
	front->sim = sim_free(front->sim);
	front_arena_free(front);
	if (isatty(STDIN_FILENO))
		tcsetpgrp(STDIN_FILENO, getpgrp());
}
