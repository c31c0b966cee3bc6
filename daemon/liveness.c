/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What keeps leases alive: room for it, and making it. */

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "util/log.h"
#include "sys/process.h"

/* Bus, event loop, files being written, and above all calls under way: each can bring 16 fds
 * (max_message_unix_fds of a bus), and a call that finds no room for them ends our
 * connection. dbus-daemon has up to 64 on their way to us at a time. */
#define FDS_OF_OUR_OWN 256U

unsigned daemon_limit_holders(const struct daemon *daemon, const struct settings *settings)
{
	unsigned wanted = settings->max_holders;
	unsigned room = daemon->nofile > FDS_OF_OUR_OWN ? daemon->nofile - FDS_OF_OUR_OWN : 0;
	unsigned most = daemon->stored ? holders_most(daemon->arbiter->next_id) : UINT_MAX;

	if (wanted > room)
		log_warning("max-holders %u needs LimitNOFILE=%u: with what there is, %u can be "
			    "had",
			    wanted, wanted + FDS_OF_OUR_OWN + STORE_QUEUE_MAX, room);
	if (wanted > daemon->store_max)
		log_warning("max-holders %u needs FileDescriptorStoreMax=%u: with what there is, "
			    "%u can be had",
			    wanted, wanted, daemon->store_max);
	if (wanted > most)
		log_warning("max-holders %u: the service manager can give no more than %u to the "
			    "next gpuarbd",
			    wanted, most);
	return min_u(min_u(wanted, most), min_u(room, daemon->store_max));
}

int keep_check_process(const struct caller *caller, int fd, pid_t *ret, struct result *result)
{
	uid_t uid;
	int r;

	r = process_of_pidfd(fd, ret, &uid);
	if (r == -EBADF)
		return result_set(result, RESULT_INVALID_REQUEST, "process: this is no pidfd");
	if (r < 0)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "process: it is gone, or in a place where gpuarbd cannot see it");
	if (uid != caller->uid && !caller->administrator)
		return result_set(result, RESULT_NOT_PERMITTED,
				  "process: pid %d belongs to uid %u, not to uid %u", *ret, uid,
				  caller->uid);
	return 0;
}

/* Each holder and each bound process takes an fd for as long as a client likes: no user may
 * have more than half of them, so that others always get some. */
static int check_room(const struct daemon *daemon, uid_t owner, unsigned more,
		      struct result *result)
{
	const struct arbiter *arbiter = daemon->arbiter;
	size_t all = holders_count(daemon->holders), of_user = 0;

	if (all + more > daemon->max_holders)
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "%zu holders and bound processes, and max-holders is %u", all,
				  daemon->max_holders);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->owner == owner)
			of_user += arbiter->leases[i]->n_holders + arbiter->leases[i]->n_bound;
	if (of_user + more > (daemon->max_holders + 1) / 2)
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "uid %u has %zu holders and bound processes, and one user can "
				  "have half of max-holders, which is %u",
				  owner, of_user, daemon->max_holders);
	return 0;
}

static int too_many_fds(struct result *result, int r)
{
	return result_set(result, RESULT_TOO_MANY_LEASES, "no room for one more holder: %s",
			  strerror(-r));
}

static int bind_process(struct daemon *daemon, struct kept *kept, int process_fd, pid_t pid,
			struct result *result)
{
	int r = holders_bind(daemon->holders, kept->lease, process_fd, pid);

	if (r == -EEXIST)
		return 0;
	if (r < 0)
		return too_many_fds(result, r);
	kept->pid = pid;
	return 0;
}

int keep_process(struct daemon *daemon, uint64_t lease, uid_t owner, int process_fd, pid_t pid,
		 struct kept *ret, struct result *result)
{
	int r;

	*ret = (struct kept){ .lease = lease, .holder = -1 };
	r = check_room(daemon, owner, 1, result);
	return r < 0 ? r : bind_process(daemon, ret, process_fd, pid, result);
}

int keep_holder(struct daemon *daemon, uint64_t lease, uid_t owner, int process_fd, pid_t pid,
		struct kept *ret, struct result *result)
{
	int r;

	*ret = (struct kept){ .lease = lease, .holder = -1 };
	r = check_room(daemon, owner, process_fd >= 0 ? 2 : 1, result);
	if (r >= 0 && process_fd >= 0)
		r = bind_process(daemon, ret, process_fd, pid, result);
	if (r < 0)
		return r;
	ret->holder = holders_add(daemon->holders, lease);
	if (ret->holder >= 0)
		return 0;
	if (ret->pid)
		holders_unbind(daemon->holders, lease, ret->pid);
	return too_many_fds(result, ret->holder);
}

void keep_count(struct daemon *daemon, const struct kept *kept)
{
	if (kept->holder >= 0)
		arbiter_add_holder(daemon->arbiter, kept->lease);
	if (kept->pid)
		arbiter_bind(daemon->arbiter, kept->lease, kept->pid);
}
