/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Holders and bound processes, which keep leases alive: how many there can be, adding them, and
 * their ends. */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon.h"
#include "cap/cap.h"
#include "core/policy/request.h"
#include "protocol/protocol.h"
#include "sys/liveness/shelf.h"
#include "sys/process.h"
#include "util/fd.h"

/* fds for the bus, the event loop, files being written, and above all for calls under way: each
 * call can bring 16 fds (max_message_unix_fds of a bus), and dbus-daemon has up to 64 of them on
 * their way to a client. A call that finds no room for its fds ends the connection. */
#define OWN_FDS 256U

struct liveness_room {
	unsigned nofile;    /* fds that this process, or the next one, can have */
	unsigned store_max; /* fds that the service manager keeps; UINT_MAX: unknown */
	unsigned max;       /* holders and bound processes at most */
	bool stored;        /* leases outlive this process; false was logged */
};

/* ---- ends ---------------------------------------------------------------------------------- */

static void on_holder_gone(void *userdata, uint64_t lease)
{
	struct daemon *daemon = userdata;

	arbiter_holder_gone(daemon->arbiter, lease);
	schedule_update(daemon);
}

static void on_bound_gone(void *userdata, uint64_t lease, pid_t pid)
{
	struct daemon *daemon = userdata;

	arbiter_bound_gone(daemon->arbiter, lease, pid);
	caps_process_ended(daemon, lease, pid);
	schedule_update(daemon);
}

/* ---- room ---------------------------------------------------------------------------------- */

/* Raises the soft limit and returns it. With a store it is no more than the service manager can
 * pass to the next process, whose soft limit is the one that this process was started with;
 * STORE_QUEUE_MAX copies can be on their way to a slow service manager. */
static unsigned count_fds(bool store)
{
	struct rlimit limit, more;
	rlim_t own, next, copies;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	more = (struct rlimit){ limit.rlim_max, limit.rlim_max };
	own = setrlimit(RLIMIT_NOFILE, &more) < 0 ? limit.rlim_cur : limit.rlim_max;
	copies = own / 4 < STORE_QUEUE_MAX ? own / 4 : STORE_QUEUE_MAX;
	next = limit.rlim_cur;
	if (store)
		next = next < own - copies ? next : own - copies;
	if (!store)
		next = own;
	return next < UINT_MAX ? (unsigned)next : UINT_MAX;
}

int liveness_start(struct daemon *daemon)
{
	static const struct holders_callbacks callbacks = { on_holder_gone, on_bound_gone };
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	int r;

	daemon->liveness = calloc(1, sizeof(*daemon->liveness));
	if (!daemon->liveness)
		return -ENOMEM;
	r = store_new(daemon->event, STORE_PATIENCE_MSEC, &daemon->store, &diagnostics);
	log_diagnostics(&diagnostics);
	if (r < 0)
		return r;
	daemon->liveness->stored = store_works(daemon->store);
	daemon->liveness->nofile = count_fds(daemon->liveness->stored);
	daemon->liveness->store_max = store_works(daemon->store) ? store_max(daemon->store)
								 : UINT_MAX;
	return holders_new(daemon->event, daemon->store, &callbacks, daemon, &daemon->holders);
}

bool liveness_lost_store(struct daemon *daemon)
{
	bool lost = daemon->liveness->stored && !store_works(daemon->store);

	if (lost)
		daemon->liveness->stored = false;
	return lost;
}

/* Beyond its maximum the service manager drops fds without telling. */
void liveness_ask_store(struct daemon *daemon)
{
	int r;

	if (!store_works(daemon->store) || daemon->liveness->store_max != UINT_MAX)
		return;
	r = bus_store_max(daemon->bus, &daemon->liveness->store_max);
	if (r < 0)
		log_notice("cannot read how many file descriptors the service manager keeps: %s: "
			   "FileDescriptorStoreMax= must be at least max-holders",
			   strerror(-r));
}

void liveness_limit(struct daemon *daemon)
{
	unsigned wanted = daemon->arbiter->settings->max_holders;
	unsigned nofile = daemon->liveness->nofile, kept = daemon->liveness->store_max;
	unsigned room = nofile > OWN_FDS ? nofile - OWN_FDS : 0;
	unsigned most = daemon->liveness->stored ? holders_most(daemon->arbiter->next_id)
						 : UINT_MAX;
	/* A shelf that the service manager has no room for would be lost, with all that is on it. */
	bool shelves = kept >= HOLDERS_SHELVE_AT && kept != UINT_MAX;
	unsigned needed = wanted < HOLDERS_SHELVE_AT ? wanted
						     : wanted + wanted / (SHELF_MAX - 1) + 1;

	kept -= shelves ? kept / SHELF_MAX + 1 : 0;
	if (wanted > room)
		log_warning("max-holders = %u: reduced to %u: set LimitNOFILE=%u", wanted, room,
			    wanted + OWN_FDS + STORE_QUEUE_MAX);
	if (wanted > kept)
		log_warning("max-holders = %u: reduced to %u: set FileDescriptorStoreMax=%u",
			    wanted, kept, needed);
	if (wanted > most)
		log_warning("max-holders = %u: reduced to %u: the service manager cannot pass more "
			    "to the next gpuarbd",
			    wanted, most);
	daemon->liveness->max = min_u(min_u(wanted, most), min_u(room, kept));
	holders_shelve_at(daemon->holders, shelves ? HOLDERS_SHELVE_AT : UINT_MAX);
}

/* Clients keep each holder and bound process, an fd of this process each, for as long as they
 * like: one user can have at most half of them, so that other users always get some. */
int liveness_check_room(const struct daemon *daemon, uid_t owner, unsigned more,
			struct result *result)
{
	const struct arbiter *arbiter = daemon->arbiter;
	size_t all = holders_count(daemon->holders) + caps_count(daemon), of_user = 0;
	unsigned max = daemon->liveness->max;

	if (all + more > max)
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "max-holders = %u: there are %zu holders and bound processes",
				  max, all);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->owner == owner)
			of_user += arbiter->leases[i]->n_holders + arbiter->leases[i]->n_bound +
				   caps_of(daemon, arbiter->leases[i]->id);
	if (of_user + more > (max + 1) / 2)
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "uid %u has %zu holders and bound processes: one user can have "
				  "half of max-holders = %u",
				  owner, of_user, max);
	return 0;
}

void liveness_describe(const struct daemon *daemon, struct observed *row)
{
	pid_t container;

	process_describe(row);
	container = row->start_time > 0 ? holders_container(daemon->holders, row->pid) : 0;
	if (container > 0 && container != row->pid)
		process_add_ancestor(row, container);
}

/* ---- adding -------------------------------------------------------------------------------- */

int liveness_check_process(const struct daemon *daemon, const struct caller *caller, int fd,
			   pid_t *ret, struct result *result)
{
	uid_t uid;
	int r;

	r = process_of_pidfd(fd, ret, &uid);
	if (r == -EBADF)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "process: the file descriptor is no pidfd");
	if (r == -EPERM)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "process: it is a kernel thread, which never ends, nor would the "
				  "lease: bind the process that uses the GPU");
	if (r == -EINVAL)
		return result_set(
			result, RESULT_INVALID_REQUEST,
			"process: it is a thread: bind its process, with a pidfd that was "
			"opened without PIDFD_THREAD");
	if (r < 0 && r != -ESRCH)
		return result_set(result, RESULT_NO_MEMORY, "process: it cannot be examined: %s",
				  strerror(-r));
	if (r < 0)
		return result_set(
			result, RESULT_INVALID_REQUEST,
			"process: it has ended, or is in a PID namespace that gpuarbd cannot see");
	if (!settings_same_user(daemon->arbiter->settings, uid, caller->uid) &&
	    !caller->administrator)
		return result_set(result, RESULT_NOT_PERMITTED,
				  "process: pid %d belongs to uid %u, not to uid %u", *ret, uid,
				  caller->uid);
	return 0;
}

int liveness_open_asker(const struct daemon *daemon, const struct caller *caller,
			const struct request *request)
{
	_cleanup_fd_ int fd = -1;
	uid_t uid;

	if (!request->adaptable)
		return -1;
	fd = process_open(caller->pid, caller->start_time, &uid);
	return fd >= 0 && settings_same_user(daemon->arbiter->settings, uid, caller->uid)
		       ? take_fd(&fd)
		       : -1;
}

static int too_many_fds(struct result *result, int r)
{
	return result_set(result, RESULT_TOO_MANY_LEASES, "cannot add a holder: %s", strerror(-r));
}

static int bind_process(struct daemon *daemon, struct lease *lease, struct liveness *liveness,
			int process_fd, pid_t pid, bool root, struct result *result)
{
	int r = holders_bind(daemon->holders, lease->id, process_fd, pid, root);

	if (r == -EEXIST)
		return 0;
	if (r < 0)
		return too_many_fds(result, r);
	liveness->pid = pid;
	liveness->delegated = root;
	return 0;
}

/* The queues of a process on one GPU cannot follow two leases. */
static int check_rival(const struct daemon *daemon, const struct lease *lease, pid_t pid,
		       struct result *result)
{
	const struct lease *rival = ledger_find_rival(daemon->arbiter, lease, pid);

	if (!rival)
		return 0;
	return result_set(result, RESULT_INVALID_STATE,
			  "process %d is bound to lease %llu on the same GPU, and %s is adaptable: "
			  "all its queues there follow one lease. Release lease %llu, or make both "
			  "fixed",
			  pid, (unsigned long long)rival->id,
			  rival->adaptable ? "that lease" : "this one",
			  (unsigned long long)rival->id);
}

int liveness_add(struct daemon *daemon, const struct caller *caller, struct lease *lease,
		 bool holder, int process_fd, pid_t pid, struct liveness *ret,
		 struct result *result)
{
	int r;

	*ret = (struct liveness){ .lease = lease->id, .holder = -1 };
	r = process_fd >= 0 && !(lease->asker_bound && pid == lease->pid)
		    ? check_rival(daemon, lease, pid, result)
		    : 0;
	if (r >= 0)
		r = liveness_check_room(daemon, lease->owner, holder && process_fd >= 0 ? 2 : 1,
					result);
	if (r >= 0 && process_fd >= 0)
		r = bind_process(daemon, lease, ret, process_fd, pid, caller->uid == 0, result);
	if (r < 0 || !holder)
		return r;
	ret->holder = holders_add(daemon->holders, lease->id);
	if (ret->holder >= 0)
		return 0;
	if (ret->pid)
		holders_unbind(daemon->holders, lease->id, ret->pid);
	return too_many_fds(result, ret->holder);
}

void liveness_chosen(struct daemon *daemon, struct lease *lease, pid_t pid)
{
	if (!lease->asker_bound)
		return;
	if (pid != lease->pid) {
		holders_unbind(daemon->holders, lease->id, lease->pid);
		arbiter_unbind(daemon->arbiter, lease, lease->pid);
	}
	lease->asker_bound = false;
	ledger_touch(daemon->arbiter, lease, TOUCH_SAVE);
}

void liveness_count(struct daemon *daemon, const struct liveness *liveness)
{
	struct lease *lease = ledger_find(daemon->arbiter, liveness->lease);

	if (liveness->holder >= 0)
		arbiter_add_holder(daemon->arbiter, liveness->lease);
	if (liveness->pid)
		arbiter_bind(daemon->arbiter, liveness->lease, liveness->pid, liveness->delegated);
	if (liveness->pid && liveness->pid != lease->pid)
		liveness_chosen(daemon, lease, liveness->pid);
	caps_review(daemon, liveness->lease);
}
