/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-procfs.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check-cond.h"
#include "scratch.h"

static void path_of(const struct fake_procfs *procfs, pid_t pid, const char *name, char ret[256])
{
	CHECK(snprintf(ret, 256, "%s/%d%s%s", procfs->dir, (int)pid, *name ? "/" : "", name) < 256);
}

static void put(const char *path, const char *text, size_t size)
{
	char next[272];
	FILE *out;

	snprintf(next, sizeof(next), "%s.next", path);
	out = fopen(next, "we");
	CHECK(out && fwrite(text, 1, size, out) == size && fclose(out) == 0);
	CHECK(rename(next, path) == 0);
}

void procfs_new(const char *dir, struct fake_procfs *ret)
{
	*ret = (struct fake_procfs){ 0 };
	CHECK(snprintf(ret->dir, sizeof(ret->dir), "%s/proc", dir) < (int)sizeof(ret->dir));
	CHECK(snprintf(ret->socket, sizeof(ret->socket), "%s/fdinfo.socket", dir) <
	      (int)sizeof(ret->socket));
	CHECK(mkdir(ret->dir, 0755) == 0);
}

void procfs_process(const struct fake_procfs *procfs, pid_t pid, uint64_t start_time)
{
	char path[256], text[4096];
	size_t n;
	FILE *in;

	path_of(procfs, pid, "", path);
	CHECK(mkdir(path, 0755) == 0);
	path_of(procfs, pid, "fdinfo", path);
	CHECK(mkdir(path, 0755) == 0);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	in = start_time > 0 ? NULL : fopen(path, "re");
	if (in) {
		n = fread(text, 1, sizeof(text), in);
		fclose(in);
	} else {
		CHECK(start_time > 0);
		n = (size_t)snprintf(text, sizeof(text),
				     "%d (a ) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %" PRIu64
				     " 0 0\n",
				     (int)pid, start_time);
	}
	path_of(procfs, pid, "stat", path);
	put(path, text, n);
}

void procfs_process_gone(const struct fake_procfs *procfs, pid_t pid)
{
	char path[256], gone[256];

	path_of(procfs, pid, "", path);
	CHECK(snprintf(gone, sizeof(gone), "%s/gone-%d", procfs->dir, (int)pid) <
	      (int)sizeof(gone));
	CHECK(rename(path, gone) == 0);
}

void procfs_text(const struct fake_procfs *procfs, pid_t pid, unsigned fd, const char *text)
{
	char path[256], name[32];

	snprintf(name, sizeof(name), "fdinfo/%u", fd);
	path_of(procfs, pid, name, path);
	put(path, text, strlen(text));
}

void procfs_client(const struct fake_procfs *procfs, pid_t pid, unsigned fd,
		   const struct procfs_client *client)
{
	char text[1024];

	CHECK(snprintf(text, sizeof(text),
		       "pos:\t0\nflags:\t02100002\nmnt_id:\t25\nino:\t534\n"
		       "drm-driver:\tamdgpu\ndrm-client-id:\t%u\ndrm-pdev:\t%s\npasid:\t32771\n"
		       "drm-memory-vram:\t%" PRIu64 " KiB\ndrm-memory-gtt: \t64 KiB\n"
		       "drm-memory-cpu: \t0 KiB\namd-evicted-vram:\t0 KiB\n"
		       "drm-engine-gfx:\t%" PRIu64 " ns\ndrm-engine-compute:\t%" PRIu64 " ns\n"
		       "drm-engine-dec:\t77 ns\n",
		       client->id, client->device ? client->device : PROCFS_ADDRESS, client->vram,
		       client->gfx_nsec, client->compute_nsec) < (int)sizeof(text));
	procfs_text(procfs, pid, fd, text);
}

/* ---- the helper -------------------------------------------------------------------------- */

static _Noreturn void run_helper(const struct fake_procfs *procfs, int connection,
				 const char *program, const char *idle)
{
	char procfs_option[128], idle_option[64];

	snprintf(procfs_option, sizeof(procfs_option), "--procfs=%s", procfs->dir);
	snprintf(idle_option, sizeof(idle_option), "--exit-idle-time=%s", idle ? idle : "30");
	CHECK(dup2(connection, STDIN_FILENO) >= 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl(program, program, procfs_option, idle_option, NULL);
	abort();
}

static _Noreturn void serve(const struct fake_procfs *procfs, int listening, const char *program,
			    const char *idle)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int connection = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

		CHECK(connection >= 0);
		if (fork() == 0)
			run_helper(procfs, connection, program, idle);
		close(connection);
	}
}

void procfs_serve(struct fake_procfs *procfs, const char *program, const char *idle)
{
	int listening = scratch_bind(procfs->socket, SOCK_SEQPACKET);

	program = program ? program : getenv("GPUARB_FDINFO");
	CHECK(program && procfs->listener == 0);
	CHECK(chmod(procfs->socket, 0666) == 0 && listen(listening, 4) == 0);
	procfs->listener = fork();
	CHECK(procfs->listener >= 0);
	if (procfs->listener == 0)
		serve(procfs, listening, program, idle);
	close(listening);
}

void procfs_done(struct fake_procfs *procfs)
{
	if (procfs->listener == 0)
		return;
	CHECK(kill(procfs->listener, SIGKILL) == 0);
	CHECK(waitpid(procfs->listener, NULL, 0) == procfs->listener);
	CHECK(unlink(procfs->socket) == 0);
	procfs->listener = 0;
}
