/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Capped leases under a filter: the listeners, and the answers to calls that create queues.
 *
 * A listener counts once a process that is bound to the lease has made a call under its filter,
 * and the service manager has a copy: then that call is answered, and the launcher starts the
 * program. While a daemon restarts, calls wait for the next one. Where no process has the listener
 * any more, the kernel fails them with ENOSYS.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <unistd.h>

#include "cap/cap.h"
#include "protocol/protocol.h"
#include "sys/listener.h"
#include "sys/process.h"
#include "util/grow.h"

#define BUCKETS 1024U /* lease ids follow each other: id % BUCKETS spreads them evenly */

/* A call that depends on calls in flight is decided again after this time, and so often. Linux
 * creates a queue in less than a millisecond. */
#define RETRY_USEC 1000U
#define RETRIES 100U

/* How many calls of one listener can be in flight. */
#define FLIGHTS 64U

/* The listeners of one user take at most BUSY_USEC of each WINDOW_USEC, however many calls they report. */
#define WINDOW_USEC 50000U
#define BUSY_USEC 10000U

/* So many files are read for one call, in about ten milliseconds. A lease whose processes have more than that
 * gets no further queue. */
#define STEPS_OF_CALL 1024U

/* A call that was allowed. It has ended when its thread makes the next one, or has ended, or when
 * its process has one more queue. */
struct flight {
	pid_t thread, process;
};

/* A process that has made a call. */
struct caller_process {
	pid_t pid;
	uint64_t start_time;
	unsigned queues; /* of all kinds, when it was last counted */
};

struct cap {
	LIST_ENTRY(cap) link;
	struct daemon *daemon;
	uint64_t lease;
	pid_t bound; /* the bound process that has proved the filter; 0: none yet */
	bool ended;  /* that process has ended: another one can have its pid */
	bool active; /* and the service manager has the listener */
	int fd;
	sd_event_source *source, *timer;

	struct notified_call call; /* that waits for an answer */
	unsigned retries;          /* of its decision; 0: none waits */

	struct flight flights[FLIGHTS];
	size_t n_flights;
	struct caller_process *processes;
	size_t n_processes;

	struct cap_user *user;
};

struct cap_user {
	LIST_ENTRY(cap_user) link;
	uid_t uid;
	size_t n;             /* listeners of its leases */
	uint64_t window_usec; /* its begin */
	uint64_t busy_usec;   /* spent in it */
};

struct caps {
	LIST_HEAD(, cap_user) users;
	LIST_HEAD(, cap) buckets[BUCKETS];
	size_t n;
};

static struct cap *first_in_bucket(const struct daemon *daemon, uint64_t lease)
{
	return LIST_FIRST(&daemon->caps->buckets[lease % BUCKETS]);
}

static struct cap *cap_next(struct cap *cap, uint64_t lease)
{
	while (cap && cap->lease != lease)
		cap = LIST_NEXT(cap, link);
	return cap;
}

#define FOR_EACH_CAP(i, daemon, id)                                        \
	for (struct cap *i = cap_next(first_in_bucket(daemon, id), id); i; \
	     i = cap_next(LIST_NEXT(i, link), id))

static struct cap *find_bound(const struct daemon *daemon, uint64_t lease, pid_t pid)
{
	FOR_EACH_CAP(cap, daemon, lease)
	if (cap->bound == pid)
		return cap;
	return NULL;
}

/* ---- what the lease has --------------------------------------------------------------------- */

static void end_flight(struct cap *cap, size_t i)
{
	cap->flights[i] = cap->flights[--cap->n_flights];
}

static void end_flights_of_thread(struct cap *cap, pid_t thread)
{
	for (size_t i = cap->n_flights; i-- > 0;)
		if (cap->flights[i].thread == thread)
			end_flight(cap, i);
}

/* n of its calls have created their queue. */
static void end_flights_of_process(struct cap *cap, pid_t process, unsigned n)
{
	for (size_t i = cap->n_flights; i-- > 0 && n > 0;)
		if (cap->flights[i].process == process) {
			end_flight(cap, i);
			n--;
		}
}

static void end_flights_of_dead(struct cap *cap)
{
	for (size_t i = cap->n_flights; i-- > 0;)
		if (!process_runs(cap->flights[i].process, cap->flights[i].thread))
			end_flight(cap, i);
}

/* Adds what the process has now. *left: of the steps of the call. -errno: it cannot be read. Returns its number
 * of queues. */
static int count_process(const struct daemon *daemon, pid_t pid, struct cap_use *use,
			 unsigned *left)
{
	struct hw_process *process = NULL;
	unsigned queues = 0, steps = *left;
	const struct hw_use *rows;
	int n;

	n = hw_read(daemon->hw, pid, &process, &steps, &rows);
	*left -= min_u(steps, *left);
	for (int i = 0; i < n; i++) {
		const struct budget used = { .queues = rows[i].queues,
					     .sdma_queues = rows[i].sdma_queues,
					     .sdma_xgmi_queues = rows[i].sdma_xgmi_queues };

		cap_add(daemon->arbiter, use, rows[i].kfd_gpu_id, &used);
		queues += (unsigned)budget_queues(&used);
	}
	hw_forget(process);
	return n < 0 ? n : (int)queues;
}

static bool calls_from(const struct daemon *daemon, uint64_t lease, pid_t pid)
{
	FOR_EACH_CAP(cap, daemon, lease)
	for (size_t i = 0; i < cap->n_processes; i++)
		if (cap->processes[i].pid == pid)
			return true;
	return false;
}

/* start_time: of the process that is meant; 0: unknown. now: of the one that has its pid; 0: none. */
static bool is_reused(uint64_t start_time, uint64_t now)
{
	return now != 0 && start_time != 0 && now != start_time;
}

/* The processes that have made calls. Forgets those that have ended and have no queue any more. */
static int count_callers(const struct daemon *daemon, struct cap *cap, struct cap_use *use,
			 unsigned *left)
{
	for (size_t i = cap->n_processes; i-- > 0;) {
		struct caller_process *process = &cap->processes[i];
		uint64_t now = process_start_time(process->pid);
		int n = 0;

		if (!is_reused(process->start_time, now))
			n = count_process(daemon, process->pid, use, left);
		if (n < 0)
			return n;
		if ((unsigned)n > process->queues)
			end_flights_of_process(cap, process->pid, (unsigned)n - process->queues);
		process->queues = (unsigned)n;
		if (n == 0 && (process->start_time == 0 || now != process->start_time))
			cap->processes[i] = cap->processes[--cap->n_processes];
	}
	return 0;
}

/* The processes that the last scan knew, of an earlier daemon or without a filter. */
static int count_known(const struct daemon *daemon, struct cap_use *use, unsigned *left)
{
	const struct arbiter *arbiter = daemon->arbiter;

	for (size_t i = 0; i < arbiter->n_known; i++) {
		const struct known_process *known = &arbiter->known[i];
		bool again = i > 0 && known[-1].pid == known->pid; /* a row for each GPU */
		int n;

		if (again || known->lease != use->lease->id ||
		    calls_from(daemon, known->lease, known->pid) ||
		    is_reused(known->start_time, process_start_time(known->pid)))
			continue;
		n = count_process(daemon, known->pid, use, left);
		if (n < 0)
			return n;
	}
	return 0;
}

static int count(const struct daemon *daemon, const struct lease *lease, struct cap_use *ret)
{
	unsigned left = STEPS_OF_CALL;
	int r = 0;

	*ret = (struct cap_use){ .lease = lease };
	FOR_EACH_CAP(cap, daemon, lease->id)
	{
		r = r < 0 ? r : count_callers(daemon, cap, ret, &left);
		ret->in_flight += (unsigned)cap->n_flights;
	}
	return r < 0 ? r : count_known(daemon, ret, &left);
}

/* ---- answers ---------------------------------------------------------------------------------- */

static void refuse(struct cap *cap, struct lease *lease)
{
	listener_refuse(cap->fd, cap->call.id, ENOMEM);
	if (!lease)
		return;
	if (lease->cap.refusals++ == 0)
		log_notice("lease %" PRIu64 ": process %d has all queues that were granted: the "
			   "kernel refuses further ones",
			   lease->id, (int)cap->call.process);
}

static bool watch_process(struct cap *cap)
{
	struct caller_process *added;

	for (size_t i = 0; i < cap->n_processes; i++)
		if (cap->processes[i].pid == cap->call.process)
			return true;
	if (cap->n_processes == LEASE_PROCESSES_MAX)
		return false;
	added = grow(&cap->processes, &cap->n_processes, sizeof(*added));
	if (!added)
		return false;
	*added = (struct caller_process){
		.pid = cap->call.process,
		.start_time = process_start_time(cap->call.process),
	};
	return true;
}

static void allow(struct cap *cap)
{
	cap->flights[cap->n_flights++] = (struct flight){ cap->call.thread, cap->call.process };
	listener_allow(cap->fd, cap->call.id);
}

/* Returns false if the call has to be decided again later. */
static bool decide(struct cap *cap)
{
	struct lease *lease = ledger_find(cap->daemon->arbiter, cap->lease);
	enum cap_decision decision = CAP_REFUSE;
	struct cap_use use;

	if (lease && watch_process(cap) && count(cap->daemon, lease, &use) >= 0)
		decision = cap_decide(&use);
	if (decision == CAP_ALLOW && cap->n_flights == FLIGHTS)
		decision = CAP_LATER;
	if (decision == CAP_LATER && cap->retries < RETRIES) {
		FOR_EACH_CAP(other, cap->daemon, cap->lease)
		end_flights_of_dead(other);
		return false;
	}
	if (decision == CAP_ALLOW)
		allow(cap);
	else
		refuse(cap, lease);
	return true;
}

/* ---- the proof ------------------------------------------------------------------------------- */

static void write_name(char name[static STORE_NAME_MAX], uint64_t lease, pid_t pid)
{
	stored_name_write(&(struct stored_name){ lease, STORED_CAP, (uint64_t)pid }, name);
}

/* A child of a process that has ended keeps the filter and the listener: another process that has the pid
 * now, and is bound, is not under the filter. */
static bool is_capped(const struct daemon *daemon, uint64_t lease, pid_t pid)
{
	const struct cap *cap = find_bound(daemon, lease, pid);

	return cap && cap->active && !cap->ended;
}

void caps_review(struct daemon *daemon, uint64_t id)
{
	struct lease *lease = ledger_find(daemon->arbiter, id);
	bool filtered;

	if (!lease)
		return;
	unit_caps_review(daemon, lease, caps_of(daemon, id) > 0);
	filtered = lease->n_bound > 0;
	for (size_t i = 0; filtered && i < lease->n_bound; i++)
		filtered = is_capped(daemon, id, lease->bound[i]);
	if (filtered == lease->cap.filtered)
		return;
	arbiter_set_filtered(daemon->arbiter, lease, filtered);
	schedule_update(daemon);
}

void caps_process_ended(struct daemon *daemon, uint64_t lease, pid_t pid)
{
	struct cap *cap = find_bound(daemon, lease, pid);

	if (cap)
		cap->ended = true;
	caps_review(daemon, lease);
}

/* The call that proves the filter, until the service manager has the listener. */
struct proof {
	struct daemon *daemon;
	uint64_t lease, call;
	pid_t pid;
};

static void on_settled(void *userdata, int r)
{
	_cleanup_(freep) struct proof *proof = userdata;
	struct cap *cap = find_bound(proof->daemon, proof->lease, proof->pid);

	if (r == -ECANCELED || !cap)
		return; /* closing the listener fails the call with ENOSYS */
	cap->active = true;
	caps_review(proof->daemon, proof->lease);
	listener_refuse(cap->fd, proof->call, EBADF);
}

/* The launcher's call, on no file: it does not reach the kernel. */
static void prove(struct cap *cap)
{
	const struct lease *lease = ledger_find(cap->daemon->arbiter, cap->lease);
	struct proof *proof = calloc(1, sizeof(*proof));
	char name[STORE_NAME_MAX];
	int r = -EPERM;

	if (proof && lease && lease_is_bound(lease, cap->call.process) &&
	    !find_bound(cap->daemon, cap->lease, cap->call.process)) {
		*proof = (struct proof){ cap->daemon, cap->lease, cap->call.id, cap->call.process };
		cap->bound = cap->call.process;
		write_name(name, cap->lease, cap->bound);
		r = store_keep(cap->daemon->store, name, cap->fd);
		if (r >= 0)
			r = store_settle(cap->daemon->store, on_settled, proof);
	}
	if (r >= 0)
		return; /* on_settled() frees it */
	free(proof);
	if (cap->bound)
		store_forget(cap->daemon->store, name);
	cap->bound = 0;
	listener_refuse(cap->fd, cap->call.id, EPERM);
}

/* ---- events ------------------------------------------------------------------------------------ */

static void cap_free(struct cap *cap)
{
	LIST_REMOVE(cap, link);
	cap->daemon->caps->n--;
	if (--cap->user->n == 0) {
		LIST_REMOVE(cap->user, link);
		free(cap->user);
	}
	sd_event_source_disable_unref(cap->source);
	sd_event_source_disable_unref(cap->timer);
	close(cap->fd);
	free(cap->processes);
	free(cap);
}

static void cap_end(struct cap *cap)
{
	struct daemon *daemon = cap->daemon;
	uint64_t lease = cap->lease;
	char name[STORE_NAME_MAX];

	if (cap->bound) {
		write_name(name, lease, cap->bound);
		store_forget(daemon->store, name);
	}
	cap_free(cap);
	caps_review(daemon, lease);
}

static void sleep_until(struct cap *cap, uint64_t usec)
{
	sd_event_source_set_enabled(cap->source, SD_EVENT_OFF);
	sd_event_source_set_time(cap->timer, usec);
	sd_event_source_set_enabled(cap->timer, SD_EVENT_ONESHOT);
}

/* Continues to read calls, now or when the user was not busy enough. */
static void proceed_later(struct cap *cap, uint64_t began_usec)
{
	struct cap_user *user = cap->user;

	user->busy_usec += daemon_now_usec() - began_usec;
	if (user->busy_usec >= BUSY_USEC)
		sleep_until(cap, user->window_usec + WINDOW_USEC);
	else
		sd_event_source_set_enabled(cap->source, SD_EVENT_ON);
}

/* Decides the call that waits, and continues to read calls, now or when it was busy enough. */
static void proceed(struct cap *cap, uint64_t began_usec)
{
	bool answered = decide(cap);

	cap->retries = answered ? 0 : cap->retries + 1;
	proceed_later(cap, began_usec);
	if (!answered)
		sleep_until(cap, daemon_now_usec() + RETRY_USEC);
}

static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
	struct cap *cap = userdata;

	if (cap->retries > 0)
		proceed(cap, daemon_now_usec());
	else
		sd_event_source_set_enabled(cap->source, SD_EVENT_ON);
	return 0;
}

/* One call in each turn of the loop: other events come between. */
static int on_listener(sd_event_source *, int fd, uint32_t events, void *userdata)
{
	uint64_t now = daemon_now_usec();
	struct cap *cap = userdata;
	int r = 0;

	if (events & (EPOLLHUP | EPOLLERR)) { /* no process is under the filter any more */
		cap_end(cap);
		return 0;
	}
	if (now - cap->user->window_usec >= WINDOW_USEC) {
		cap->user->window_usec = now;
		cap->user->busy_usec = 0;
	}
	if (cap->user->busy_usec >= BUSY_USEC) {
		sleep_until(cap, cap->user->window_usec + WINDOW_USEC);
		return 0;
	}
	r = listener_receive(fd, cap->call.process, &cap->call);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		log_warning("lease %" PRIu64 ": its queues are not capped any more: %s", cap->lease,
			    r == -EBUSY ? "another process reads from its listener" : strerror(-r));
		cap_end(cap);
		return 0;
	}
	end_flights_of_thread(cap, cap->call.thread);
	if (cap->call.fd >= 0 && cap->bound) {
		proceed(cap, now);
		return 0;
	}
	if (cap->bound)
		listener_refuse(fd, cap->call.id, EBADF);
	else
		prove(cap);
	proceed_later(cap, now);
	return 0;
}

/* ---- creation and end -------------------------------------------------------------------------- */

int caps_start(struct daemon *daemon)
{
	daemon->caps = calloc(1, sizeof(*daemon->caps));
	return daemon->caps ? listener_start() : -ENOMEM;
}

/* NULL: no memory. */
static struct cap_user *user_of(struct caps *caps, uid_t uid)
{
	struct cap_user *user;

	LIST_FOREACH(user, &caps->users, link)
	if (user->uid == uid)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	LIST_INSERT_HEAD(&caps->users, user, link);
	return user;
}

/* Takes the fd, also on failure. */
static int cap_new(struct daemon *daemon, uint64_t lease, int fd, struct cap **ret)
{
	const struct lease *owned = ledger_find(daemon->arbiter, lease);
	struct cap *cap = calloc(1, sizeof(*cap));
	struct cap_user *user = cap && owned ? user_of(daemon->caps, owned->owner) : NULL;
	int r;

	if (!user) {
		free(cap);
		close(fd);
		return -ENOMEM;
	}
	user->n++;
	*cap = (struct cap){ .daemon = daemon, .lease = lease, .fd = fd, .user = user };
	LIST_INSERT_HEAD(&daemon->caps->buckets[lease % BUCKETS], cap, link);
	daemon->caps->n++;
	r = sd_event_add_time(daemon->event, &cap->timer, CLOCK_BOOTTIME, UINT64_MAX, 1, on_timer,
			      cap);
	if (r >= 0)
		r = sd_event_source_set_enabled(cap->timer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_io(daemon->event, &cap->source, fd, EPOLLIN, on_listener, cap);
	if (r < 0) {
		cap_free(cap);
		return r;
	}
	*ret = cap;
	return 0;
}

int caps_add(struct daemon *daemon, const struct lease *lease, int listener)
{
	int fd = fcntl(listener, F_DUPFD_CLOEXEC, 3);
	struct cap *cap;

	return fd < 0 ? -errno : cap_new(daemon, lease->id, fd, &cap);
}

int caps_adopt(struct daemon *daemon, uint64_t lease, pid_t pid, int fd)
{
	struct cap *cap;
	int r = listener_check(fd);

	if (r < 0)
		close(fd);
	else
		r = cap_new(daemon, lease, fd, &cap);
	if (r < 0)
		return r;
	cap->bound = pid;
	cap->active = true;
	return 0;
}

size_t caps_of(const struct daemon *daemon, uint64_t lease)
{
	size_t n = 0;

	FOR_EACH_CAP(cap, daemon, lease)
	n++;
	return n;
}

size_t caps_count(const struct daemon *daemon)
{
	return daemon->caps->n;
}

void caps_drop(struct daemon *daemon, uint64_t lease)
{
	struct cap *cap;

	while ((cap = cap_next(first_in_bucket(daemon, lease), lease)))
		cap_end(cap);
}

void caps_free(struct daemon *daemon)
{
	struct cap *cap;

	for (size_t i = 0; daemon->caps && i < BUCKETS; i++)
		while ((cap = LIST_FIRST(&daemon->caps->buckets[i])))
			cap_free(cap);
	free(daemon->caps);
	daemon->caps = NULL;
}
