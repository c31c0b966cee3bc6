/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What is done to a lease that does not give back, as core/change/enforcement.c decides it: its unit is
 * frozen, if nobody else is in it; its processes are killed, those that the kernel vouches for.
 * gpuarb-enforce does it for us, who are not root.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon.h"
#include "sys/cgroup.h"
#include "util/fd.h"
#include "util/log.h"
#include "sys/process.h"

#define PATIENCE_USEC UINT64_C(15000000)

static void on_done(void *userdata, uint64_t tag, int r, const char *sentence)
{
	(void)userdata;
	if (r < 0 && r != -ESRCH)
		log_warning("lease %" PRIu64 ": gpuarb-enforce: %s (%s)", tag, sentence,
			    strerror(-r));
}

int overdue_start(struct daemon *daemon)
{
	return enforce_new(daemon->event, daemon->options->enforce, PATIENCE_USEC, on_done, daemon,
			   &daemon->enforce);
}

/* ---- killing --------------------------------------------------------------------------- */

static bool kill_fd(struct daemon *daemon, const struct lease *lease, int pidfd)
{
	char why[256];

	if (enforce_kill(daemon->enforce, pidfd, lease->id, why, sizeof(why)) >= 0)
		return true;
	log_warning("lease %" PRIu64 ": a process cannot be killed: %s", lease->id, why);
	return false;
}

/* A pid is worth nothing until the pidfd made of it is known to be that process's. */
static bool kill_process(struct daemon *daemon, const struct lease *lease,
			 const struct lease_process *process)
{
	_cleanup_fd_ int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	struct observed row = { .pid = process->pid };

	if (fd < 0)
		return false;
	process_describe(&row);
	return row.start_time == process->start_time && kill_fd(daemon, lease, fd);
}

static unsigned kill_all(struct daemon *daemon, const struct lease *lease)
{
	_cleanup_(freep) struct lease_process *processes = calloc(LEASE_PROCESSES_MAX,
								  sizeof(*processes));
	unsigned killed = 0;
	size_t n;

	if (!processes)
		return 0;
	n = arbiter_own_processes(daemon->arbiter, lease->id, processes, LEASE_PROCESSES_MAX);
	for (size_t i = 0; i < n && i < LEASE_PROCESSES_MAX; i++)
		killed += !lease_is_bound(lease, processes[i].pid) &&
			  kill_process(daemon, lease, &processes[i]);
	for (size_t i = 0; i < lease->n_bound; i++) {
		int fd = holders_process(daemon->liveness.holders, lease->id, lease->bound[i]);

		killed += fd >= 0 && kill_fd(daemon, lease, fd);
	}
	return killed;
}

/* ---- freezing -------------------------------------------------------------------------- */

static bool is_of(const struct lease *lease, pid_t pid)
{
	struct observed row = { .pid = pid };

	if (lease_is_bound(lease, pid))
		return true;
	process_describe(&row);
	for (size_t i = 0; i < row.n_ancestors; i++)
		if (lease_is_bound(lease, row.ancestors[i]))
			return true;
	return false;
}

/* The unit of the lease, where there is nobody in it who is not the lease's. Not where an agent
 * follows for it: systemd 252 thaws no unit whose main process was killed, and the agent would
 * be frozen until the unit's stop times out. */
static bool find_unit(const struct lease *lease, struct unit_place *place, char *why, size_t size)
{
	_cleanup_(freep) pid_t *pids = NULL;
	size_t n;
	int r;

	if (lease->n_bound == 0) {
		snprintf(why, size, "no process is bound to it");
		return false;
	}
	r = unit_of_process(lease->bound[0], place);
	if (r >= 0)
		r = unit_processes(CGROUP_ROOT, place->cgroup, &pids, &n);
	if (r < 0) {
		snprintf(why, size, "its unit cannot be found: %s", strerror(-r));
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		if (is_of(lease, pids[i]))
			continue;
		snprintf(why, size, "pid %d is in %s too, and not of the lease", pids[i],
			 place->unit);
		return false;
	}
	return true;
}

static void freeze(struct daemon *daemon, struct lease *lease)
{
	struct unit_place place;
	char why[512], what[600];

	if (!find_unit(lease, &place, why, sizeof(why)) ||
	    enforce_freeze(daemon->enforce, place.unit, lease->id, why, sizeof(why)) < 0) {
		snprintf(what, sizeof(what), "it is not frozen: %s", why);
		journal_events_forced(daemon, lease, what);
		return;
	}
	lease->frozen = true;
	snprintf(what, sizeof(what), "%s is frozen; what its queues have runs on", place.unit);
	journal_events_forced(daemon, lease, what);
}

void overdue_thaw(struct daemon *daemon, const struct lease *lease)
{
	struct unit_place place;
	char why[512];

	if (lease->n_bound == 0 || unit_of_process(lease->bound[0], &place) < 0)
		return; /* with nobody left in it there is nothing to thaw */
	if (enforce_thaw(daemon->enforce, place.unit, lease->id, why, sizeof(why)) < 0)
		log_warning("lease %" PRIu64 ": %s cannot be thawed: %s", lease->id, place.unit,
			    why);
	else
		journal_events_forced(daemon, lease, "it is thawed");
}

/* ---- what is due ------------------------------------------------------------------------- */

static void apply(struct daemon *daemon, struct lease *lease, enum enforce_step enforce_step)
{
	char what[128];

	if (enforce_step == ENFORCE_STEP_REPORT) {
		journal_events_forced(daemon, lease,
				      lease->state == STATE_ENDING
					      ? "its time is over, and it has not acknowledged that"
					      : "others wait for CUs that it has not given back");
	} else if (enforce_step == ENFORCE_STEP_FREEZE) {
		freeze(daemon, lease);
	} else {
		snprintf(what, sizeof(what), "%u of its processes are killed",
			 kill_all(daemon, lease));
		journal_events_forced(daemon, lease, what);
	}
}

void overdue_enforce(struct daemon *daemon)
{
	struct lease *lease;
	enum enforce_step enforce_step;

	while ((enforce_step = arbiter_next_enforce_step(daemon->arbiter, daemon_now_usec(),
							 &lease))) {
		apply(daemon, lease, enforce_step);
	}
	while ((lease = arbiter_next_thaw(daemon->arbiter))) {
		overdue_thaw(daemon, lease);
	}
}
