/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What clients ask, carried out: decide, save, put into force, tell. */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "sys/log.h"
#include "sys/process.h"

/* Requests in a burst are judged by one look. */
#define FRESH_USEC UINT64_C(20000)

static void host_refresh(void *userdata)
{
	daemon_look(userdata, FRESH_USEC);
}

static void host_describe(void *userdata, pid_t pid, struct caller *caller)
{
	(void)userdata;
	process_place(pid, caller);
}

/* ---- what keeps a lease alive -------------------------------------------------------- */

/* A pidfd is worth what the kernel says of it: alive, and of the sender's user. */
static int check_process(const struct caller *caller, int fd, pid_t *ret,
			 struct verdict *verdict)
{
	uid_t uid;
	int r;

	r = process_of_pidfd(fd, ret, &uid);
	if (r == -EBADF)
		return verdict_set(verdict, VERDICT_INVALID_REQUEST, "process: this is no pidfd");
	if (r < 0)
		return verdict_set(verdict, VERDICT_INVALID_REQUEST,
				   "process: it is gone, or in a place where gpuarbd cannot see it");
	if (uid != caller->uid && !caller->administrator)
		return verdict_set(verdict, VERDICT_NOT_PERMITTED,
				   "process: pid %d belongs to uid %u, not to uid %u", *ret, uid,
				   caller->uid);
	return 0;
}

/* Each holder and each bound process takes an fd for as long as a client likes: no user may
 * have more than half of them, so that others always get some. */
static int check_room(const struct daemon *daemon, uid_t owner, unsigned more,
		      struct verdict *verdict)
{
	const struct arbiter *arbiter = daemon->arbiter;
	size_t all = holders_count(daemon->holders), of_user = 0;

	if (all + more > daemon->max_holders)
		return verdict_set(verdict, VERDICT_TOO_MANY_LEASES,
				   "%zu holders and bound processes, and max-holders is %u", all,
				   daemon->max_holders);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->owner == owner)
			of_user += arbiter->leases[i]->n_holders + arbiter->leases[i]->n_bound;
	if (of_user + more > (daemon->max_holders + 1) / 2)
		return verdict_set(verdict, VERDICT_TOO_MANY_LEASES,
				   "uid %u has %zu holders and bound processes, and one user can "
				   "have half of max-holders, which is %u", owner, of_user,
				   daemon->max_holders);
	return 0;
}

static int too_many_fds(struct verdict *verdict, int r)
{
	return verdict_set(verdict, VERDICT_TOO_MANY_LEASES, "no room for one more holder: %s",
			   strerror(-r));
}

/* Makes a holder, and watches the process if there is one; before the lease is in force,
 * so that a failure leaves nothing. The process goes first: an end of a holder that is not
 * counted yet would be one holder less when it closes. */
static int make_holder(struct daemon *daemon, uint64_t id, uid_t owner, int process_fd, pid_t pid,
		       int *ret_holder, struct verdict *verdict)
{
	int holder, r;

	r = check_room(daemon, owner, process_fd >= 0 ? 2 : 1, verdict);
	if (r < 0)
		return r;
	if (process_fd >= 0) {
		r = holders_bind(daemon->holders, id, process_fd, pid);
		if (r < 0)
			return too_many_fds(verdict, r);
	}
	holder = holders_add(daemon->holders, id);
	if (holder < 0)
		return too_many_fds(verdict, holder);
	*ret_holder = holder;
	return 0;
}

static void count_holder(struct daemon *daemon, uint64_t id, int process_fd, pid_t pid)
{
	arbiter_add_holder(daemon->arbiter, id);
	if (process_fd >= 0)
		arbiter_bind(daemon->arbiter, id, pid);
}

/* ---- reserve ------------------------------------------------------------------------- */

static int save(struct daemon *daemon, const struct lease *lease, struct verdict *verdict)
{
	int r;

	r = state_ids_until(daemon->state, lease->id);
	if (r >= 0)
		r = state_save(daemon->state, daemon->arbiter, lease);
	if (r >= 0)
		return 0;
	log_error("cannot save lease %llu in %s: %s", (unsigned long long)lease->id,
		  daemon->options->runtime_directory, strerror(-r));
	return verdict_set(verdict, VERDICT_NOT_SAVED, "the lease could not be saved in %s (%s), "
			   "so nothing was granted", daemon->options->runtime_directory,
			   strerror(-r));
}

/* The same request under the same token: one more holder of the lease that it has. */
static int reserve_again(struct daemon *daemon, struct lease *lease,
			 const struct request *request, int process_fd, pid_t pid,
			 int *ret_holder, struct verdict *verdict)
{
	int r;

	if (!lease->request || !request_equal(lease->request, request))
		return verdict_set(verdict, VERDICT_TOKEN_CONFLICT,
				   "lease %llu has this token and was asked for otherwise",
				   (unsigned long long)lease->id);
	if (lease->n_holders >= LEASE_HOLDERS_MAX ||
	    (process_fd >= 0 && lease->n_bound >= LEASE_BOUND_MAX))
		return verdict_set(verdict, VERDICT_TOO_MANY_LEASES,
				   "lease %llu has %u holders and %zu bound processes: %u and %u are "
				   "the most", (unsigned long long)lease->id, lease->n_holders,
				   lease->n_bound, LEASE_HOLDERS_MAX, LEASE_BOUND_MAX);
	r = make_holder(daemon, lease->id, lease->owner, process_fd, pid, ret_holder, verdict);
	if (r < 0)
		return r;
	count_holder(daemon, lease->id, process_fd, pid);
	return 0;
}

static int reserve_new(struct daemon *daemon, const struct caller *caller,
		       const struct request *request, int process_fd, pid_t pid,
		       const struct lease **ret, int *ret_holder, struct verdict *verdict)
{
	_cleanup_(lease_freep) struct lease *proposal = NULL;
	const struct lease *lease;
	int holder = -1, r;

	r = arbiter_plan(daemon->arbiter, caller, request, &proposal, verdict);
	if (r < 0)
		return r;
	r = make_holder(daemon, proposal->id, proposal->owner, process_fd, pid, &holder,
			verdict);
	if (r >= 0)
		r = save(daemon, proposal, verdict);
	if (r < 0) {
		holders_drop(daemon->holders, proposal->id);
		if (holder >= 0)
			close(holder);
		return r;
	}
	lease = arbiter_commit(daemon->arbiter, TAKE_PTR(proposal));
	count_holder(daemon, lease->id, process_fd, pid);
	log_info("lease %llu: %s to uid %u, tenant %s: %u CUs and %u queues on %s%s",
		 (unsigned long long)lease->id, class_name(lease->class), lease->owner,
		 lease->tenant, lease->partitions[0].count, lease->partitions[0].granted.queues,
		 daemon->arbiter->gpus[lease->partitions[0].gpu].info.name,
		 lease->n_partitions > 1 ? " and more GPUs" : "");
	*ret = lease;
	*ret_holder = holder;
	return 0;
}

static int host_reserve(void *userdata, const struct caller *caller,
			const struct request *request, int process_fd,
			const struct lease **ret, int *ret_holder, struct verdict *verdict)
{
	struct daemon *daemon = userdata;
	struct lease *lease = arbiter_find_token(daemon->arbiter, caller->uid, request->token);
	pid_t pid = 0;
	int r;

	if (process_fd >= 0) {
		r = check_process(caller, process_fd, &pid, verdict);
		if (r < 0)
			return r;
	}
	if (lease) {
		r = reserve_again(daemon, lease, request, process_fd, pid, ret_holder, verdict);
		if (r >= 0)
			*ret = lease;
	} else {
		r = reserve_new(daemon, caller, request, process_fd, pid, ret, ret_holder, verdict);
	}
	daemon_carry_out(daemon);
	return r;
}

/* ---- what is done to leases ---------------------------------------------------------- */

static int host_resize(void *userdata, const struct caller *caller, uint64_t id,
		       const struct request *request, struct verdict *verdict)
{
	_cleanup_(lease_freep) struct lease *proposal = NULL;
	struct daemon *daemon = userdata;
	int r;

	r = arbiter_plan_resize(daemon->arbiter, caller, id, request, &proposal, verdict);
	if (r < 0)
		return r;
	r = save(daemon, proposal, verdict);
	if (r < 0)
		return r;
	arbiter_commit(daemon->arbiter, TAKE_PTR(proposal));
	daemon_carry_out(daemon);
	return 0;
}

static int host_release(void *userdata, const struct caller *caller, uint64_t id,
			struct verdict *verdict)
{
	struct daemon *daemon = userdata;
	struct lease *lease;
	int r;

	r = arbiter_own(daemon->arbiter, caller, id, &lease, verdict);
	if (r < 0)
		return r;
	arbiter_end(daemon->arbiter, id,
		    caller->uid == lease->owner ? "released" : "released by an administrator");
	daemon_carry_out(daemon);
	return 0;
}

static int host_bind(void *userdata, const struct caller *caller, uint64_t id, int process_fd,
		     struct verdict *verdict)
{
	struct daemon *daemon = userdata;
	struct lease *lease;
	pid_t pid;
	int r;

	r = arbiter_own(daemon->arbiter, caller, id, &lease, verdict);
	if (r < 0)
		return r;
	if (lease->state == STATE_ENDING)
		return verdict_set(verdict, VERDICT_INVALID_STATE, "lease %llu is ending",
				   (unsigned long long)id);
	r = check_process(caller, process_fd, &pid, verdict);
	if (r < 0)
		return r;
	if (lease->n_bound >= LEASE_BOUND_MAX)
		return verdict_set(verdict, VERDICT_TOO_MANY_LEASES,
				   "lease %llu is bound to %zu processes, which is the most",
				   (unsigned long long)id, lease->n_bound);
	r = check_room(daemon, lease->owner, 1, verdict);
	if (r < 0)
		return r;
	r = holders_bind(daemon->holders, id, process_fd, pid);
	if (r < 0)
		return too_many_fds(verdict, r);
	arbiter_bind(daemon->arbiter, id, pid);
	return 0;
}

static int host_acknowledge(void *userdata, const struct caller *caller, uint64_t id,
			    uint64_t generation, struct verdict *verdict)
{
	struct daemon *daemon = userdata;
	struct lease *lease;
	int r;

	r = arbiter_own(daemon->arbiter, caller, id, &lease, verdict);
	if (r < 0)
		return r;
	if (arbiter_acknowledge(daemon->arbiter, id, generation) < 0)
		return verdict_set(verdict, VERDICT_INVALID_REQUEST,
				   "generation %llu: lease %llu is at %llu",
				   (unsigned long long)generation, (unsigned long long)id,
				   (unsigned long long)lease->generation);
	daemon_carry_out(daemon);
	return 0;
}

/* ---- administering ------------------------------------------------------------------- */

static int host_drain(void *userdata, const char *gpu, bool drain, struct verdict *verdict)
{
	struct daemon *daemon = userdata;

	if (arbiter_drain(daemon->arbiter, gpu, drain) < 0)
		return verdict_set(verdict, VERDICT_NO_SUCH_GPU, "there is no GPU %s", gpu);
	log_notice("%s is %s", daemon->arbiter->gpus[arbiter_gpu(daemon->arbiter, gpu)].info.name,
		   drain ? "drained" : "no longer drained");
	daemon_carry_out(daemon);
	return 0;
}

static int host_reload(void *userdata, struct verdict *verdict)
{
	_cleanup_(notes_done) struct notes notes = {0};
	struct daemon *daemon = userdata;
	const char *why;
	int r;

	r = daemon_reload(daemon, &notes);
	log_notes(&notes);
	if (r >= 0)
		return 0;
	why = strerror(-r);
	for (size_t i = notes.n; i-- > 0;)
		if (notes.list[i].error)
			why = notes.list[i].text;
	return verdict_set(verdict, VERDICT_INVALID_REQUEST, "%s; what was in force stays", why);
}

const struct bus_host daemon_host = {
	.version = GPUARB_VERSION,
	.refresh = host_refresh,
	.describe = host_describe,
	.reserve = host_reserve,
	.resize = host_resize,
	.release = host_release,
	.bind = host_bind,
	.acknowledge = host_acknowledge,
	.drain = host_drain,
	.reload = host_reload,
};
