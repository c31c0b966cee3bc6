/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "budget-rig.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check-cond.h"
#include "scratch.h"

#define CGROUPS "/sys/fs/cgroup"

void budget_rig_new(struct budget_rig *ret, const char *dir)
{
	memset(ret, 0, sizeof(*ret));
	ret->connection = -1;
	ret->answer.version = BUDGET_VERSION;
	snprintf(ret->path, sizeof(ret->path), "%s/budget.socket", dir);
	ret->listening = scratch_bind(ret->path, SOCK_SEQPACKET);
	CHECK(chmod(ret->path, 0666) == 0 && listen(ret->listening, 4) == 0);
}

void budget_rig_done(struct budget_rig *rig)
{
	budget_rig_hang_up(rig);
	close(rig->listening);
	unlink(rig->path);
}

unsigned budget_rig_receive(struct budget_rig *rig)
{
	ssize_t n;

	budget_rig_hang_up(rig);
	rig->connection = accept4(rig->listening, NULL, NULL, SOCK_CLOEXEC);
	CHECK(rig->connection >= 0);
	n = recv(rig->connection, &rig->request, sizeof(rig->request), MSG_TRUNC);
	CHECK(n >= (ssize_t)budget_request_size(0) && rig->request.version == BUDGET_VERSION);
	CHECK((size_t)n == budget_request_size(rig->request.n));
	return rig->request.n;
}

void budget_rig_answer(struct budget_rig *rig)
{
	rig->answer.n = rig->answer.r < 0 ? 0 : rig->request.n;
	/* The daemon may have ended. */
	(void)send(rig->connection, &rig->answer, budget_answer_size(rig->answer.n), MSG_NOSIGNAL);
	budget_rig_hang_up(rig);
}

void budget_rig_hang_up(struct budget_rig *rig)
{
	if (rig->connection >= 0)
		close(rig->connection);
	rig->connection = -1;
}

/* ---- a unit -------------------------------------------------------------------------------- */

static bool is_unified(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* Mounts the hierarchy at its usual place for this process and its children where that is needed. */
static bool have_cgroups(void)
{
	if (is_unified(CGROUPS))
		return access(CGROUPS, W_OK) == 0;
	return is_unified(CGROUPS "/unified") && unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount(CGROUPS "/unified", CGROUPS, NULL, MS_BIND, NULL) == 0;
}

bool unit_rig_new(struct unit_rig *ret, const char *name)
{
	struct stat st;

	snprintf(ret->cgroup, sizeof(ret->cgroup), CGROUPS "/%s-%d.scope", name, getpid());
	if (!have_cgroups() || mkdir(ret->cgroup, 0755) < 0)
		return false;
	CHECK(stat(ret->cgroup, &st) == 0);
	ret->id = st.st_ino;
	return true;
}

void unit_rig_add(const struct unit_rig *unit, pid_t pid)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.procs", unit->cgroup);
	file = fopen(path, "we");
	CHECK(file && fprintf(file, "%d\n", pid) > 0 && fclose(file) == 0);
}

void unit_rig_done(const struct unit_rig *unit)
{
	CHECK(rmdir(unit->cgroup) == 0);
}

/* ---- a container --------------------------------------------------------------------------- */

static void idle(void)
{
	for (;;)
		pause();
}

pid_t container_rig_start(uid_t uid)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);

	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setuid(uid) == 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* after setuid(), which clears it */
		idle();
	}
	return pid;
}

pid_t container_rig_add(pid_t first, uid_t uid)
{
	pid_t engine, pid = 0;
	int fds[2];

	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	engine = fork();
	CHECK(engine >= 0);
	if (engine == 0) {
		CHECK(setns((int)syscall(SYS_pidfd_open, first, 0), CLONE_NEWPID) == 0);
		pid = fork();
		if (pid == 0 && setuid(uid) == 0)
			idle();
		CHECK(write(fds[1], &pid, sizeof(pid)) == sizeof(pid));
		_exit(0);
	}
	CHECK(read(fds[0], &pid, sizeof(pid)) == sizeof(pid) && pid > 0);
	CHECK(waitpid(engine, NULL, 0) == engine);
	close(fds[0]);
	close(fds[1]);
	return pid;
}
