/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What makes and changes leases: decide, save, put into force, tell. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "util/log.h"

static int save(struct daemon *daemon, const struct lease *lease, struct result *result)
{
	int r;

	r = state_ids_until(daemon->state, lease->id);
	if (r >= 0)
		r = daemon_save(daemon, lease);
	if (r >= 0)
		return 0;
	log_error("cannot save lease %" PRIu64 " in %s: %s", lease->id,
		  daemon->options->runtime_directory, strerror(-r));
	return result_set(result, RESULT_NOT_SAVED,
			  "the lease could not be saved in %s (%s), "
			  "so nothing was granted",
			  daemon->options->runtime_directory, strerror(-r));
}

/* The same request under the same token: one more holder of the lease that it has. */
static int reserve_again(struct daemon *daemon, struct lease *lease, const struct request *request,
			 int process_fd, pid_t pid, struct kept *kept, struct result *result)
{
	if (!lease->request || !request_equal(lease->request, request))
		return result_set(result, RESULT_TOKEN_CONFLICT,
				  "lease %" PRIu64 " has this token and was asked for otherwise",
				  lease->id);
	if (lease_is_bound(lease, pid))
		process_fd = -1; /* that much is done */
	if (lease->n_holders >= LEASE_HOLDERS_MAX ||
	    (process_fd >= 0 && lease->n_bound >= LEASE_BOUND_MAX))
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "lease %" PRIu64
				  " has %u holders and %zu bound processes: %u and "
				  "%u are the most",
				  lease->id, lease->n_holders, lease->n_bound, LEASE_HOLDERS_MAX,
				  LEASE_BOUND_MAX);
	return keep_holder(daemon, lease->id, lease->owner, process_fd, pid, kept, result);
}

static uint64_t deadline_of(uint64_t wait_usec)
{
	uint64_t now = daemon_now_usec();

	return wait_usec > UINT64_MAX - now ? UINT64_MAX : now + wait_usec;
}

/* Borrowers have their time to give way, and policy its own to see to it. */
static uint64_t give_up_at(const struct settings *settings, const struct request *request)
{
	uint64_t least = settings->activate_grace_usec + 2 * settings->enforce_delay_usec;

	return deadline_of(request->wait_usec > least ? request->wait_usec : least);
}

/* What keeps it alive is made before it is in force, so that a failure leaves nothing. */
static int reserve_new(struct daemon *daemon, const struct caller *caller,
		       const struct request *request, int process_fd, pid_t pid, struct lease **ret,
		       struct kept *kept, struct result *result)
{
	_cleanup_(lease_freep) struct lease *proposal = NULL;
	int r;

	r = arbiter_plan(daemon->arbiter, caller, request, &proposal, result);
	if (r < 0)
		return r;
	result_done(result); /* what it waits for is no reason for what fails below */
	if (proposal->state == STATE_WAITING)
		proposal->deadline_usec = deadline_of(request->wait_usec);
	if (proposal->state == STATE_ACTIVATING)
		proposal->give_up_usec = give_up_at(daemon->arbiter->settings, request);
	r = keep_holder(daemon, proposal->id, proposal->owner, process_fd, pid, kept, result);
	if (r < 0)
		return r;
	r = save(daemon, proposal, result);
	if (r < 0) {
		holders_drop(daemon->holders, proposal->id);
		close(kept->holder);
		return r;
	}
	*ret = arbiter_commit(daemon->arbiter, TAKE_PTR(proposal));
	if ((*ret)->state == STATE_WAITING)
		journal_events_waits(daemon, *ret);
	else if ((*ret)->state != STATE_ACTIVATING)
		journal_events_granted(daemon, *ret, "");
	return 0;
}

static int reserve(struct daemon *daemon, const struct caller *caller,
		   const struct request *request, int process_fd, struct kept *kept,
		   struct result *result)
{
	struct lease *lease = ledger_find_token(daemon->arbiter, caller->uid, request->token);
	pid_t pid = 0;
	int r = 0;

	if (process_fd >= 0)
		r = keep_check_process(caller, process_fd, &pid, result);
	if (r < 0)
		return r;
	if (lease)
		return reserve_again(daemon, lease, request, process_fd, pid, kept, result);
	return reserve_new(daemon, caller, request, process_fd, pid, &lease, kept, result);
}

int host_reserve(void *userdata, const struct caller *caller, const struct request *asked,
		 int process_fd, const struct lease **ret, int *ret_holder, struct result *result)
{
	struct daemon *daemon = userdata;
	struct request request = *asked;
	struct kept kept;
	int r;

	ledger_name_gpus(daemon->arbiter, &request);
	r = reserve(daemon, caller, &request, process_fd, &kept, result);
	if (r < 0) {
		journal_events_refused(daemon, caller, &request, result);
		return r;
	}
	keep_count(daemon, &kept);
	daemon_carry_out(daemon);
	*ret = ledger_find(daemon->arbiter, kept.lease);
	if (!*ret) { /* a look at the hardware came between */
		close(kept.holder);
		return result_set(result, RESULT_NO_CAPACITY,
				  "a GPU of the lease went away in this moment");
	}
	*ret_holder = kept.holder;
	return 0;
}

int host_bind(void *userdata, const struct caller *caller, uint64_t id, int process_fd,
	      struct result *result)
{
	struct daemon *daemon = userdata;
	struct lease *lease;
	struct kept kept;
	pid_t pid;
	int r;

	r = ledger_find_owned(daemon->arbiter, caller, id, &lease, result);
	if (r < 0)
		return r;
	if (lease->state == STATE_ENDING)
		return result_set(result, RESULT_INVALID_STATE, "lease %" PRIu64 " is ending", id);
	r = keep_check_process(caller, process_fd, &pid, result);
	if (r < 0)
		return r;
	if (lease_is_bound(lease, pid))
		return 0; /* who got no answer asks again, and needs no room for that */
	if (lease->n_bound >= LEASE_BOUND_MAX)
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "lease %" PRIu64 " is bound to %zu processes, which is the most",
				  id, lease->n_bound);
	r = keep_process(daemon, id, lease->owner, process_fd, pid, &kept, result);
	if (r < 0)
		return r;
	keep_count(daemon, &kept);
	return 0;
}

int host_resize(void *userdata, const struct caller *caller, uint64_t id,
		const struct request *request, struct result *result)
{
	_cleanup_(lease_freep) struct lease *proposal = NULL;
	struct daemon *daemon = userdata;
	int r;

	r = arbiter_plan_resize(daemon->arbiter, caller, id, request, &proposal, result);
	if (r >= 0)
		r = save(daemon, proposal, result);
	if (r < 0) {
		journal_events_resize_refused(daemon, caller, id, result);
		return r;
	}
	daemon->saved = id;
	journal_events_resized(daemon, arbiter_commit(daemon->arbiter, TAKE_PTR(proposal)));
	daemon_carry_out(daemon);
	return 0;
}
