/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-login.h>
#include <unistd.h>

#include "util/base.h"
#include "util/fd.h"
#include "core/observe/attribution.h"
#include "core/policy/caller.h"

/* The used fields of /proc/PID/stat (proc(5)). */
struct stat_line {
	char command[16];
	pid_t parent;
	int terminal;
	unsigned flags;
	uint64_t start_time;
};

#define PF_KTHREAD 0x00200000U /* Linux, include/linux/sched.h */

static int open_process(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A process chooses its own command, so replace all but printable ASCII. */
static void copy_command(char buf[16], const char *command, size_t length)
{
	size_t n = length < 15 ? length : 15;

	for (size_t i = 0; i < n; i++)
		buf[i] = command[i] >= ' ' && command[i] <= '~' ? command[i] : '?';
	buf[n] = '\0';
}

/* "PID (COMMAND) STATE PPID … FLAGS … STARTTIME …", where COMMAND may contain any bytes, also ") ". */
static int read_stat(int dir, struct stat_line *ret)
{
	struct stat_line line = { 0 };
	char text[1024] = "", *open_paren, *close_paren;
	unsigned long long start;
	int r = read_text_at(dir, "stat", text, sizeof(text));

	open_paren = strchr(text, '(');
	close_paren = strrchr(text, ')');
	if (!open_paren || !close_paren || close_paren < open_paren ||
	    sscanf(close_paren + 1,
		   " %*c %d %*d %*d %d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d "
		   "%*d %*d %*d %*d %llu",
		   &line.parent, &line.terminal, &line.flags, &start) != 4)
		return r < 0 ? r : -EBADMSG;

	copy_command(line.command, open_paren + 1, (size_t)(close_paren - open_paren - 1));
	line.start_time = start;
	*ret = line;
	return 0;
}

/* The real, effective and saved uid. (The owner of /proc/PID is root for an undumpable process.) */
static int read_uids(int dir, uid_t ret[static 3])
{
	char text[4096] = "";
	const char *line;
	int r = read_text_at(dir, "status", text, sizeof(text));

	line = strstr(text, "\nUid:");
	if (!line || sscanf(line, "\nUid: %u %u %u", &ret[0], &ret[1], &ret[2]) != 3)
		return r < 0 ? r : -EBADMSG;
	return 0;
}

int process_uids(pid_t pid, uid_t ret[static 3])
{
	_cleanup_fd_ int dir = open_process(pid);

	return dir < 0 ? dir : read_uids(dir, ret);
}

/* The effective uid, as on the bus, and whether the real and saved uids differ from it. */
static int read_uid(int dir, uid_t *ret, bool *ret_mixed)
{
	uid_t uids[3];
	int r = read_uids(dir, uids);

	if (r < 0)
		return r;
	*ret = uids[1];
	*ret_mixed = uids[0] != uids[1] || uids[2] != uids[1];
	return 0;
}

bool process_runs(pid_t pid, pid_t thread)
{
	char path[64], text[512] = "", state = 'X';
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)thread);
	if (read_text_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %c", &state) == 1 && state != 'Z' && state != 'X';
}

/* ret_owner: of /proc/PID. NULL: not needed. */
static int read_process(pid_t pid, struct stat_line *ret, uid_t *ret_owner)
{
	_cleanup_fd_ int dir = open_process(pid);
	struct stat st;

	if (dir < 0)
		return dir;
	if (ret_owner && fstat(dir, &st) < 0)
		return -errno;
	if (ret_owner)
		*ret_owner = st.st_uid;
	return read_stat(dir, ret);
}

dev_t process_terminal(pid_t pid)
{
	struct stat_line line;

	return read_process(pid, &line, NULL) < 0 ? 0 : (dev_t)(unsigned)line.terminal;
}

uint64_t process_start_time(pid_t pid)
{
	struct stat_line line;

	return read_process(pid, &line, NULL) < 0 ? 0 : line.start_time;
}

bool process_is_kernel_thread(pid_t pid)
{
	struct stat_line line;

	return read_process(pid, &line, NULL) < 0 ? getsid(pid) == 0 : line.flags & PF_KTHREAD;
}

/* Up to and without init, which is the parent of all orphans. A parent that is younger than its
 * child is another process, which reuses the pid. */
static void find_ancestors(struct observed *row, const struct stat_line *self)
{
	struct stat_line child = *self, parent;

	row->n_ancestors = 0;
	while (row->n_ancestors < OBSERVED_ANCESTORS && child.parent > 1) {
		if (read_process(child.parent, &parent, &row->ancestor_uids[row->n_ancestors]) <
			    0 ||
		    parent.start_time > child.start_time)
			return;
		row->ancestors[row->n_ancestors++] = child.parent;
		child = parent;
	}
}

void process_add_ancestor(struct observed *row, pid_t pid)
{
	struct stat_line line;

	if (row->n_ancestors == OBSERVED_ANCESTORS ||
	    read_process(pid, &line, &row->ancestor_uids[row->n_ancestors]) < 0 ||
	    line.start_time > row->start_time)
		return;
	row->ancestors[row->n_ancestors++] = pid;
}

void process_describe(struct observed *row)
{
	_cleanup_fd_ int dir = row->pid > 0 ? open_process(row->pid) : -1;
	struct stat_line self;
	uid_t uid;

	row->start_time = 0;
	row->uid = (uid_t)-1;
	row->mixed = false;
	row->command[0] = '\0';
	row->n_ancestors = 0;
	if (dir < 0 || read_uid(dir, &uid, &row->mixed) < 0 || read_stat(dir, &self) < 0)
		return;

	row->start_time = self.start_time;
	row->uid = uid;
	memcpy(row->command, self.command, sizeof(row->command));
	find_ancestors(row, &self);
}

/* A text that does not fit stays unknown: its beginning could match where the whole does not. */
static void keep(char *buf, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length < size)
		memcpy(buf, text, length + 1);
}

static void find_executable(pid_t pid, char *buf, size_t size)
{
	char path[32], target[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return;
	target[n] = '\0';
	keep(buf, size, target);
}

/* Reading /proc/PID/exe needs the right to trace the process (proc(5)). */
bool process_sees_executables(void)
{
	unsigned long long effective = 0;
	char text[4096] = "";
	const char *line;

	(void)read_text_at(AT_FDCWD, "/proc/self/status", text, sizeof(text));
	line = strstr(text, "\nCapEff:");
	return line && sscanf(line, "\nCapEff: %llx", &effective) == 1 &&
	       effective & UINT64_C(1) << CAP_SYS_PTRACE;
}

void process_place(pid_t pid, struct caller *caller)
{
	_cleanup_(freep) char *unit = NULL, *slice = NULL;

	caller->unit[0] = caller->slice[0] = caller->executable[0] = '\0';
	caller->start_time = pid > 0 ? process_start_time(pid) : 0;
	if (pid <= 0) /* sd-login takes 0 for the calling process */
		return;

	find_executable(pid, caller->executable, sizeof(caller->executable));
	if (sd_pid_get_unit(pid, &unit) < 0)
		return; /* not in a unit, where the slice would always be "-.slice" */
	keep(caller->unit, sizeof(caller->unit), unit);
	if (sd_pid_get_slice(pid, &slice) >= 0)
		keep(caller->slice, sizeof(caller->slice), slice);
}

/* The link of a pidfd in /proc/self/fd: since Linux 6.9, "pidfd:[INODE]". Another file with that name has
 * a path, or "anon_inode:" in front. */
static bool is_pidfd(int fd)
{
	char path[48], link[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, link, sizeof(link) - 1) >= 0 &&
	       (strcmp(link, "anon_inode:[pidfd]") == 0 || strncmp(link, "pidfd:[", 7) == 0);
}

/* "Pid:" is -1 after the process was reaped, 0 outside of this pid namespace. The line alone proves
 * nothing: the name of a DMA buffer, which its user chooses, may have it. */
int process_pid_of_pidfd(int fd, pid_t *ret)
{
	char path[48], text[4096];
	const char *line;
	int pid, r;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (!is_pidfd(fd))
		return -EBADF;
	r = read_text_at(AT_FDCWD, path, text, sizeof(text));
	if (r < 0)
		return r;
	if (!(line = strstr(text, "\nPid:")) || sscanf(line, "\nPid: %d", &pid) != 1)
		return -EBADF;
	if (pid <= 0)
		return -ESRCH;
	*ret = pid;
	return 0;
}

/* Twice, so that init reaps it. */
int process_fork(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			return 0;
		_exit(pid < 0);
	}
	if (pid < 0)
		return -errno;
	waitpid(pid, &status, 0);
	return status == 0 ? 1 : -EAGAIN;
}

bool process_is_alive(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	return poll(&end, 1, 0) == 0;
}

int process_open(pid_t pid, uint64_t start_time, uid_t *ret_uid)
{
	_cleanup_fd_ int fd = -1;
	pid_t of_pid;
	uid_t uid;
	int r;

	if (pid <= 0 || start_time == 0)
		return -ESRCH;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	r = process_of_pidfd(fd, &of_pid, &uid);
	if (r < 0)
		return r;
	/* The process of fd was alive after its start time was read. */
	if (process_start_time(pid) != start_time || !process_is_alive(fd))
		return -ESRCH;
	*ret_uid = uid;
	return take_fd(&fd);
}

/* Not the first thread of its process: PIDFD_THREAD (Linux 6.9) makes pidfds of such. */
static bool is_further_thread(int dir, pid_t pid)
{
	char text[4096] = "";
	const char *line;
	int process;

	if (read_text_at(dir, "status", text, sizeof(text)) < 0)
		return false;
	line = strstr(text, "\nTgid:");
	return line && sscanf(line, "\nTgid: %d", &process) == 1 && process != pid;
}

int process_of_pidfd(int fd, pid_t *ret_pid, uid_t *ret_uid)
{
	_cleanup_fd_ int dir = -1;
	struct stat_line line;
	bool mixed;
	pid_t pid;
	uid_t uid = 0;
	int r;

	r = process_pid_of_pidfd(fd, &pid);
	if (r < 0)
		return r;
	r = dir = open_process(pid);
	if (r >= 0)
		r = read_uid(dir, &uid, &mixed);
	if (r >= 0)
		r = read_stat(dir, &line);
	if (r == -ENFILE || r == -EMFILE)
		return r;
	if (r < 0 || !process_is_alive(fd))
		return -ESRCH;
	if (line.flags & PF_KTHREAD)
		return -EPERM;
	if (is_further_thread(dir, pid))
		return -EINVAL;
	*ret_pid = pid;
	*ret_uid = uid;
	return 0;
}
