/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "holder-rig.h"

static void holder_gone(void *userdata, uint64_t lease)
{
	struct rig *rig = userdata;

	rig->holders_gone++;
	rig->lease = lease;
	if (rig->drop)
		holders_drop(rig->holders, lease);
}

static void bound_gone(void *userdata, uint64_t lease, pid_t pid)
{
	struct rig *rig = userdata;

	rig->bound_gone++;
	rig->lease = lease;
	rig->pid = pid;
	if (rig->drop)
		holders_drop(rig->holders, lease);
}

void rig_holders(struct rig *rig)
{
	static const struct holders_callbacks callbacks = { holder_gone, bound_gone };

	CHECK(holders_new(rig->event, rig->store, &callbacks, rig, &rig->holders) == 0);
}

void holder_rig_init(struct rig *rig)
{
	struct diagnostics diagnostics = { 0 };

	*rig = (struct rig){ 0 };
	CHECK(unsetenv("NOTIFY_SOCKET") == 0);
	CHECK(sd_event_new(&rig->event) >= 0);
	CHECK(store_new(rig->event, STORE_PATIENCE_MSEC, &rig->store, &diagnostics) == 0);
	diagnostics_done(&diagnostics);
	rig_holders(rig);
}

void holder_rig_done(struct rig *rig)
{
	holders_free(rig->holders);
	store_free(rig->store);
	sd_event_unref(rig->event);
}

void holder_rig_settle(struct rig *rig)
{
	int r;

	do {
		r = sd_event_run(rig->event, 0);
		CHECK(r >= 0);
	} while (r > 0);
}

int add(struct rig *rig, uint64_t lease)
{
	int fd = holders_add(rig->holders, lease);

	CHECK(fd >= 0);
	return fd;
}

int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

pid_t start_sleeper(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

void kill_and_reap(pid_t pid)
{
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
}
