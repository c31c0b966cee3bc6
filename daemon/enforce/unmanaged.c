/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Processes that use a GPU without a lease, where policy refuses that: they are warned on their
 * terminals, and killed after unmanaged-grace. gpuarb-enforce does both, and judges user and use again.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "enforce/enforce.h"
#include "protocol/protocol.h"
#include "sys/process.h"
#include "util/fd.h"
#include "util/grow.h"

/* A process that cannot be ended yet is not tried again sooner. */
#define AGAIN_USEC UINT64_C(5000000)

struct unleased_list {
	struct unleased *list;
	size_t n;
};

int unmanaged_start(struct daemon *daemon)
{
	daemon->unmanaged = calloc(1, sizeof(*daemon->unmanaged));
	return daemon->unmanaged ? 0 : -ENOMEM;
}

void unmanaged_stop(struct daemon *daemon)
{
	if (daemon->unmanaged)
		free(daemon->unmanaged->list);
	free(daemon->unmanaged);
}

static struct unleased *find(struct daemon *daemon, pid_t pid, uint64_t start_time)
{
	for (size_t i = 0; i < daemon->unmanaged->n; i++)
		if (daemon->unmanaged->list[i].pid == pid &&
		    (start_time == 0 || daemon->unmanaged->list[i].start_time == start_time))
			return &daemon->unmanaged->list[i];
	return NULL;
}

/* A pidfd, unless the process has ended, or one of its uids is root's or exempt. */
static int open_process(const struct daemon *daemon, const struct unleased *process)
{
	uid_t uid, uids[3];
	_cleanup_fd_ int fd = process_open(process->pid, process->start_time, &uid);

	if (fd < 0 || uid != process->uid || process_uids(process->pid, uids) < 0 ||
	    !process_is_alive(fd))
		return -ESRCH;
	for (size_t i = 0; i < ARRAY_SIZE(uids); i++)
		if (settings_is_exempt(daemon->arbiter->settings, uids[i]))
			return -EPERM;
	return take_fd(&fd);
}

static void ask(struct daemon *daemon, struct unleased *process, enum enforce_verb verb)
{
	_cleanup_fd_ int fd = open_process(daemon, process);
	char why[256];
	int r;

	if (fd < 0)
		return;
	r = enforce_ask(
		daemon->enforce, verb, fd, process->start_time, process->uid,
		verb == ENFORCE_WARN
			? "uses a GPU without a lease, and will be killed: start it with gpuarbctl run"
			: "killed, because it used a GPU without a lease: start it with gpuarbctl run",
		(uint64_t)process->pid, why, sizeof(why));
	process->asked += r >= 0;
	if (r < 0 && verb == ENFORCE_END)
		journal_events_expelled(daemon, process, why);
}

void unmanaged_answer(struct daemon *daemon, pid_t pid, bool ended, int r, const char *sentence)
{
	struct unleased *process = find(daemon, pid, 0);

	if (process && process->asked > 0)
		process->asked--;
	if (process && ended && r != -ESRCH)
		journal_events_expelled(daemon, process, r < 0 ? sentence : "");
}

/* The process is warned when it is new. NULL: no memory. */
static struct unleased *enter(struct daemon *daemon, const struct known_process *known,
			      unsigned gpu)
{
	struct unleased *process = find(daemon, known->pid, known->start_time);

	if (!process) {
		process = grow(&daemon->unmanaged->list, &daemon->unmanaged->n, sizeof(*process));
		if (!process)
			return NULL;
		*process = (struct unleased){
			.pid = known->pid,
			.start_time = known->start_time,
			.uid = known->uid,
			.due_usec = daemon_now_usec() +
				    daemon->arbiter->settings->unmanaged_grace_usec,
		};
		memcpy(process->command, known->command, sizeof(process->command));
		ask(daemon, process, ENFORCE_WARN);
	}
	process->gpu = gpu;
	process->present = true;
	return process;
}

static void expel(struct daemon *daemon, struct unleased *process)
{
	process->due_usec = daemon_now_usec() + AGAIN_USEC;
	ask(daemon, process, ENFORCE_END);
}

/* By now another process may have the pid: one of another user, or one with a lease. */
void unmanaged_kill_intruder(struct daemon *daemon, pid_t pid, uid_t uid, unsigned gpu)
{
	const struct known_process *known = known_find(daemon->arbiter, pid, 0);
	struct unleased *process = NULL;

	if (known && known->uid == uid && known_lease(daemon->arbiter, pid) == 0)
		process = enter(daemon, known, gpu);
	if (process)
		expel(daemon, process);
}

static void take(struct daemon *daemon, const struct known_process *known, unsigned gpu)
{
	struct unleased *process = enter(daemon, known, gpu);

	if (process && daemon_now_usec() >= process->due_usec)
		expel(daemon, process);
}

/* Of a process with a lease elsewhere, queues count: AMD's runtime has some memory on each GPU that the
 * process can open. */
static void review_gpu(struct daemon *daemon, unsigned g)
{
	const struct gpu_observed *observed = &daemon->arbiter->gpus[g].observed;

	for (size_t i = 0; i < observed->n_processes; i++) {
		const struct known_process *known = known_find(daemon->arbiter,
							       observed->processes[i].pid, 0);

		if (known && known->start_time != 0 && known->start_time != KNOWN_UNSEEN &&
		    (!known->lease || observed->processes[i].queues > 0) &&
		    !settings_is_exempt(daemon->arbiter->settings, known->uid))
			take(daemon, known, g);
	}
}

void unmanaged_review(struct daemon *daemon)
{
	const struct settings *settings = daemon->arbiter->settings;
	size_t left = 0;

	for (size_t i = 0; i < daemon->unmanaged->n; i++)
		daemon->unmanaged->list[i].present = false;
	for (unsigned g = 0; g < daemon->arbiter->n_gpus; g++)
		if (settings->unmanaged == UNMANAGED_REFUSE && !settings->exempt.unresolved)
			review_gpu(daemon, g);
	/* One that has ended is kept until it is known who ended it. */
	for (size_t i = 0; i < daemon->unmanaged->n; i++)
		if (daemon->unmanaged->list[i].present || daemon->unmanaged->list[i].asked > 0)
			daemon->unmanaged->list[left++] = daemon->unmanaged->list[i];
	daemon->unmanaged->n = left;
}
