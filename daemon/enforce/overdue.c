/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Carries out the enforcement steps that core/change/enforce/enforcement.c decides for an overdue lease: it
 * freezes the unit of the lease (frozen.c) and kills the processes of the lease. gpuarb-enforce does
 * both, because gpuarbd is not root.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "enforce/enforce.h"
#include "protocol/protocol.h"
#include "util/fd.h"
#include "sys/process.h"

#define ANSWER_USEC UINT64_C(15000000) /* gpuarb-enforce gives the service manager 10 s */

/* Logs the first failure for a lease. again: gpuarb-enforce has not judged the request, so it is asked again later. */
static void kill_failed(struct daemon *daemon, uint64_t id, bool again, const char *why, int r)
{
	const struct lease *lease = ledger_find(daemon->arbiter, id);

	if (!lease || !lease->enforce.repeats)
		log_warning("lease %" PRIu64 ": cannot kill a process: %s (%s)%s", id, why,
			    strerror(-r), again ? "; it is tried again until it can" : "");
	if (again)
		arbiter_kill_again(daemon->arbiter, id, daemon_now_usec());
}

static void on_done(void *userdata, const struct asker_request *asked, int r, const void *packet,
		    const char *sentence)
{
	const struct enforce_request *request = asked->body;
	const struct enforce_answer *answer = packet;

	if (answer) {
		r = answer->r;
		sentence = answer->sentence;
	}
	if (request->verb == ENFORCE_FREEZE)
		frozen_answer_freeze(userdata, asked->tag, request->text, r, sentence);
	else if (request->verb == ENFORCE_THAW)
		frozen_answer_thaw(userdata, request->text, r, sentence);
	else if (request->verb != ENFORCE_KILL)
		unmanaged_answer(userdata, (pid_t)asked->tag, request->verb == ENFORCE_END, r,
				 sentence);
	else if (r < 0 && r != -ESRCH)
		kill_failed(userdata, asked->tag, !answer, sentence, r);
}

static void on_lost(void *userdata)
{
	frozen_helper_lost(userdata);
}

int overdue_start(struct daemon *daemon)
{
	return asker_new(daemon->event, &enforce_helper, daemon->options->enforce, ANSWER_USEC,
			 on_done, on_lost, daemon, &daemon->enforce);
}

/* An empty packet is the end of the connection. */
void overdue_wake(struct daemon *daemon)
{
	char why[256];
	int r = asker_tell(daemon->enforce, "", 0, why, sizeof(why));

	if (r < 0 && r != -EOPNOTSUPP)
		log_warning("units that an earlier gpuarb-enforce froze are not thawed: %s", why);
}

/* In whose name gpuarb-enforce acts: root's where root bound the process. */
static uid_t user_of(const struct lease *lease, bool delegated)
{
	return delegated ? 0 : lease->owner;
}

/* ---- processes that are named to gpuarb-enforce -------------------------------------------- */

static uint64_t start_time_of(pid_t pid)
{
	struct observed row = { .pid = pid };

	process_describe(&row);
	return row.start_time;
}

/* The pidfd of a process that was observed on a GPU; -1. Its pid may be another process's by now:
 * start_time tells. */
static int open_observed(const struct lease_process *process)
{
	int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);

	if (fd < 0 || start_time_of(process->pid) == process->start_time)
		return fd;
	close(fd);
	return -1;
}

/* ---- killing --------------------------------------------------------------------------- */

static bool kill_process(struct daemon *daemon, const struct lease *lease, int pidfd,
			 uint64_t start_time, bool delegated)
{
	char why[256], told[ENFORCE_UNIT_MAX], reason[REQUEST_TEXT];
	int r;

	if (pidfd < 0)
		return false;
	snprintf(told, sizeof(told), "killed, because lease %" PRIu64 " %s", lease->id,
		 arbiter_reason(daemon->arbiter, lease, reason));
	r = enforce_ask(daemon->enforce, ENFORCE_KILL, pidfd, start_time, user_of(lease, delegated),
			told, lease->id, why, sizeof(why));
	if (r < 0)
		kill_failed(daemon, lease->id, true, why, r);
	return r >= 0;
}

static bool kill_observed(struct daemon *daemon, const struct lease *lease,
			  const struct lease_process *process)
{
	_cleanup_fd_ int fd = open_observed(process);

	return kill_process(daemon, lease, fd, process->start_time, process->delegated);
}

static bool kill_bound(struct daemon *daemon, const struct lease *lease, pid_t pid)
{
	int fd = holders_process(daemon->holders, lease->id, pid);

	return kill_process(daemon, lease, fd, start_time_of(pid), lease_is_delegated(lease, pid));
}

/* Returns how many processes gpuarb-enforce was asked to kill. */
static unsigned kill_all(struct daemon *daemon, const struct lease *lease)
{
	_cleanup_(freep) struct lease_process *processes = calloc(LEASE_PROCESSES_MAX,
								  sizeof(*processes));
	unsigned asked = 0;
	size_t n;

	if (!processes)
		return 0;
	n = known_processes(daemon->arbiter, lease->id, true, processes, LEASE_PROCESSES_MAX);
	for (size_t i = 0; i < n && i < LEASE_PROCESSES_MAX; i++)
		asked += !lease_is_bound(lease, processes[i].pid) &&
			 kill_observed(daemon, lease, &processes[i]);
	for (size_t i = 0; i < lease->n_bound; i++)
		asked += kill_bound(daemon, lease, lease->bound[i]);
	return asked;
}

/* ---- freezing -------------------------------------------------------------------------- */

/* Names a process of the unit that was observed on a GPU, or the first bound one. */
static int freeze_unit(struct daemon *daemon, const struct lease *lease, char *why, size_t size)
{
	struct lease_process process = { 0 };
	_cleanup_fd_ int observed = -1;
	bool delegated;
	int fd;

	if (known_processes(daemon->arbiter, lease->id, true, &process, 1) > 0)
		observed = open_observed(&process);
	fd = observed;
	delegated = process.delegated;
	if (observed < 0 && lease->n_bound > 0) {
		fd = holders_process(daemon->holders, lease->id, lease->bound[0]);
		process.start_time = start_time_of(lease->bound[0]);
		delegated = lease_is_delegated(lease, lease->bound[0]);
	}
	return frozen_freeze(daemon, lease, fd, process.start_time, user_of(lease, delegated), why,
			     size);
}

static void freeze(struct daemon *daemon, struct lease *lease)
{
	char why[512];

	lease->enforce.frozen = freeze_unit(daemon, lease, why, sizeof(why)) >= 0;
	if (!lease->enforce.frozen)
		journal_events_lease(daemon, EVENT_OVERDUE, lease, ": its unit is not frozen: %s",
				     why);
}

void overdue_resume(struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->arbiter->n_leases; i++) {
		struct lease *lease = daemon->arbiter->leases[i];

		if (!lease->enforce.frozen)
			continue;
		ledger_touch(daemon->arbiter, lease, TOUCH_SAVE);
		freeze(daemon, lease);
	}
}

/* ---- steps that are due ------------------------------------------------------------------------- */

static void apply_kill(struct daemon *daemon, const struct lease *lease)
{
	bool repeats = lease->enforce.repeats;
	unsigned asked = kill_all(daemon, lease);

	if (!repeats)
		journal_events_lease(daemon, EVENT_OVERDUE, lease,
				     ": gpuarb-enforce is asked to kill %u of its processes",
				     asked);
}

static void apply(struct daemon *daemon, struct lease *lease, enum enforce_step enforce_step)
{
	if (enforce_step == ENFORCE_STEP_REPORT)
		journal_events_lease(daemon, EVENT_OVERDUE, lease, ": its deadline has passed%s",
				     lease->state == STATE_ENDING
					     ? " without an acknowledgement"
					     : ", and it still has CUs that another lease needs");
	else if (enforce_step == ENFORCE_STEP_FREEZE)
		freeze(daemon, lease);
	else
		apply_kill(daemon, lease);
}

void overdue_enforce(struct daemon *daemon)
{
	struct lease *lease;
	enum enforce_step enforce_step;

	while ((enforce_step = arbiter_next_enforce_step(daemon->arbiter, daemon_now_usec(),
							 &lease))) {
		apply(daemon, lease, enforce_step);
	}
	arbiter_forget_frozen(daemon->arbiter);
}
