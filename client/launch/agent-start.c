/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/agent-start.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/fd.h"

const char *agent_dir(const char *installed)
{
	const char *dir = getenv("GPUARB_AGENT_DIR");

	return dir && *dir ? dir : installed;
}

/* ---- the sockets ------------------------------------------------------------------------- */

#define FILES "gpuarb-agent-"
#define LEFT_SEC 60

static socklen_t write_address(const char *name, bool file, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret->sun_path + !file, name, strlen(name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

int agent_socket_listen(const char *name, bool file)
{
	struct sockaddr_un address;
	socklen_t length = write_address(name, file, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, SOMAXCONN) < 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

/* Whether a killed agent of this user has left the file. The file of one that does not listen yet is young. */
static bool is_left(const char *path)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;
	socklen_t length = write_address(path, true, &address);
	struct stat st;

	return fd >= 0 && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid() &&
	       st.st_mtime < time(NULL) - LEFT_SEC &&
	       connect(fd, (struct sockaddr *)&address, length) < 0 && errno == ECONNREFUSED;
}

static void delete_left(const char *dir)
{
	DIR *entries = opendir(dir);
	const struct dirent *entry;
	char path[AGENT_SOCKET];

	while (entries && (entry = readdir(entries)))
		if (strncmp(entry->d_name, FILES, strlen(FILES)) == 0 &&
		    snprintf(path, AGENT_SOCKET, "%s/%s", dir, entry->d_name) < AGENT_SOCKET - 1 &&
		    is_left(path))
			(void)unlink(path);
	if (entries)
		closedir(entries);
}

int agent_socket_make(const char *dir, uint64_t lease, char ret[static AGENT_SOCKET])
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	if (dir[0] != '/' || snprintf(ret, AGENT_SOCKET, "%s/" FILES "%" PRIu64 "-%016" PRIx64, dir,
				      lease, random) >= AGENT_SOCKET - 1)
		return -ENOENT;
	delete_left(dir);
	return agent_socket_listen(ret, true);
}

/* ---- the process ------------------------------------------------------------------------- */

#define STACK (1 << 15) /* of each process below */

struct agent {
	char *const *arguments;
	const int *fds;
	bool quiet;
	int r; /* of its start */
	_Alignas(16) char stacks[2][STACK];
};

#define FDS 3 /* two listening sockets and the process become the fds from 3 on */

/* All other are closed: whoever waits for the end of an inherited pipe would wait for the agent. Standard error stays, for
 * a failure of the agent; where the caller has closed it, no other descriptor of the agent may take its place. */
static int become_agent(void *userdata)
{
	struct agent *agent = userdata;
	int null = open("/dev/null", O_RDWR); /* above 5 it is closed, too */
	bool good = null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
		    ((!agent->quiet && fcntl(STDERR_FILENO, F_GETFD) == 0) ||
		     dup2(null, STDERR_FILENO) >= 0);

	for (int i = 0; good && i < FDS; i++)
		good = dup2(agent->fds[i], 3 + i) >= 0;
	if (good && close_range(3 + FDS, UINT_MAX, 0) == 0)
		execve(agent->arguments[0], agent->arguments, environ);
	agent->r = -errno;
	return EXIT_FAILURE;
}

/* Starts a process in the memory of this one, which waits until it ends or executes a program.
 * posix_spawn() would reset the action of each signal, of which the callers handle none. */
static int start_process(int (*run)(void *), struct agent *agent, unsigned level, int end_signal)
{
	pid_t pid = clone(run, agent->stacks[level] + STACK, CLONE_VM | CLONE_VFORK | end_signal,
			  agent);

	return pid < 0 ? -errno : pid;
}

/* The agent is a grandchild, so that the command has no unknown child, in a session of its own, so that
 * Ctrl-C on the terminal does not end it. */
static int become_parent(void *userdata)
{
	struct agent *agent = userdata;
	int r = setsid() < 0 ? -errno : start_process(become_agent, agent, 1, 0);

	if (r < 0)
		agent->r = r;
	return EXIT_SUCCESS;
}

static int start(struct agent *agent)
{
	int r = start_process(become_parent, agent, 0, SIGCHLD);

	if (r < 0)
		return r;
	(void)waitpid(r, NULL, 0); /* fails where the caller ignores SIGCHLD */
	return agent->r;
}

int agent_start(const char *program, uint64_t lease, pid_t root, const int listening[static 2],
		int process, bool quiet)
{
	_cleanup_(freep) char *path = strdup(program);
	char id[24], number[16];
	char *const arguments[] = {
		path, id, number, (char[]){ "3" }, (char[]){ "4" }, (char[]){ "5" }, NULL
	};
	/* None is an fd that another one becomes. */
	_cleanup_fd_ int first = fcntl(listening[0], F_DUPFD_CLOEXEC, 3 + FDS);
	_cleanup_fd_ int second = fcntl(listening[1], F_DUPFD_CLOEXEC, 3 + FDS);
	_cleanup_fd_ int third = fcntl(process, F_DUPFD_CLOEXEC, 3 + FDS);
	struct agent agent;

	if (!path || first < 0 || second < 0 || third < 0)
		return -errno;
	snprintf(id, sizeof(id), "%" PRIu64, lease);
	snprintf(number, sizeof(number), "%d", (int)root);
	agent.arguments = arguments;
	agent.fds = (const int[FDS]){ first, second, third };
	agent.quiet = quiet;
	agent.r = 0;
	return start(&agent);
}
