/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What clients ask on the bus. Requests that grant follow the protocol of commit.c; release,
 * acknowledge and revoke are its exceptions.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/policy/request.h"
#include "protocol/protocol.h"
#include "cap/cap.h"
#include "observe/observe.h"
#include "sys/listener.h"
#include "sys/process.h"
#include "util/fd.h"

/* One scan serves all requests of a burst. */
#define SCAN_MAX_AGE_USEC UINT64_C(20000)

/* Where scans take long, a caller that only reads gets what the last scan found. After a time without use, a
 * decision first reads the processes that are new since: of each user as many as one scan reads. */
static void refresh(void *userdata, bool decides)
{
	struct daemon *daemon = userdata;
	bool timed = update_scans(daemon), changed;

	if (timed && !decides && process_scan_is_slow(daemon))
		return;
	changed = scan_hardware(daemon, SCAN_MAX_AGE_USEC);
	if (!timed && decides)
		changed |= scan_finish(daemon, false);
	if (changed)
		update_now(daemon);
}

static bool awaits_masks(void *userdata)
{
	return descriptors_awaited(userdata);
}

static int settle(void *userdata, void (*settled)(void *call, int r), void *call)
{
	struct daemon *daemon = userdata;

	return store_settle(daemon->store, settled, call);
}

static void describe(void *, pid_t pid, struct caller *caller)
{
	process_place(pid, caller);
}

/* outcome: the state after the failure, and what to do. */
static int not_saved(const struct daemon *daemon, uint64_t id, int r, const char *outcome,
		     struct result *result)
{
	if (commit_error(daemon) == 0) /* otherwise it was logged when that began */
		log_error("lease %" PRIu64 ": cannot save it in %s: %s", id,
			  daemon->options->runtime_directory, strerror(-r));
	return result_set(result, RESULT_NOT_SAVED,
			  "lease %" PRIu64 ": cannot save it in %s: %s: %s", id,
			  daemon->options->runtime_directory, strerror(-r), outcome);
}

/* ---- Plan and Reserve ---------------------------------------------------------------------- */

static bool can_bind(const struct daemon *daemon, const struct caller *caller,
		     const struct request *request)
{
	_cleanup_fd_ int fd = liveness_open_asker(daemon, caller, request);

	return fd >= 0;
}

/* Plans without reserving: also what would fit after moves. */
static int plan(void *userdata, const struct caller *caller, struct request *request,
		struct lease **ret, struct effects *effects, struct result *result)
{
	const struct daemon *daemon = userdata;
	struct caller asker = *caller;

	asker.unbound = request->adaptable && !can_bind(daemon, caller, request);
	ledger_name_gpus(daemon->arbiter, request);
	return arbiter_plan_effects(daemon->arbiter, &asker, request, daemon_now_usec(), ret,
				    effects, result);
}

/* Plans a request, for which adaptable leases move if that helps. */
static int plan_with_moves(struct daemon *daemon, const struct caller *caller,
			   const struct request *request, struct lease **ret, struct result *result)
{
	struct move_set set;
	int r = preempt_plan(daemon->arbiter, caller, request, ret, result);

	if (!arbiter_moves_help(daemon->arbiter, caller, request, r >= 0 ? *ret : NULL, result,
				daemon_now_usec(), &set))
		return r;
	commit_step(daemon, STEP_MOVE, &set); /* perhaps not all: the plan tells */
	if (r >= 0)
		lease_free(*ret);
	result_done(result);
	return arbiter_plan_moved(daemon->arbiter, caller, request, daemon_now_usec(), ret, result);
}

/* outcome: the state of the lease if the proposal cannot be saved. */
static int save_and_commit(struct daemon *daemon, struct lease *proposal, const char *outcome,
			   struct lease **ret, struct result *result)
{
	uint64_t id = proposal->id;
	int r = commit_proposal(daemon, proposal, ret);

	return r < 0 ? not_saved(daemon, id, r, outcome, result) : 0;
}

/* A process that is to be bound to a lease. */
struct candidate {
	int fd; /* -1: none */
	pid_t pid;
	bool asked; /* it is bound by default, as it asked for the lease */
};

/* Which process is to be bound to a lease that exists: none where the process that asked again would be
 * bound beside others. */
static struct candidate choose_again(struct daemon *daemon, struct lease *lease,
				     const struct candidate *candidate)
{
	const struct candidate none = { .fd = -1 };

	if (candidate->asked && lease->n_bound > 0)
		return none;
	if (candidate->asked) {
		lease->pid = candidate->pid;
		lease->asker_bound = true;
	}
	if (!lease_is_bound(lease, candidate->pid))
		return *candidate;
	liveness_chosen(daemon, lease, candidate->pid);
	return none;
}

/* Whether the request is answered with this lease, which has its token. The holder of an adaptable lease acknowledges its
 * changes on all GPUs. */
static bool is_request_of(const struct lease *lease, const struct request *request)
{
	return lease->request && (request_equal(lease->request, request) ||
				  (lease->state == STATE_GRANTED && !request->adaptable &&
				   request_is_part(request, lease->request)));
}

/* The same request under the same token, or that for some of its GPUs: one more holder of the lease that it was answered
 * with. */
static int reserve_again(struct daemon *daemon, const struct caller *caller, struct lease *lease,
			 const struct request *request, const struct candidate *candidate,
			 struct liveness *liveness, struct result *result)
{
	struct candidate chosen;

	if (!is_request_of(lease, request))
		return result_set(result, RESULT_TOKEN_CONFLICT,
				  "lease %" PRIu64 " has this token, and was requested with other "
				  "wants or options",
				  lease->id);
	chosen = choose_again(daemon, lease, candidate);
	if (lease->n_holders >= LEASE_BOUND_MAX ||
	    (chosen.fd >= 0 && lease->n_bound >= LEASE_BOUND_MAX))
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "lease %" PRIu64
				  " has %u holders and %u bound processes: at most %u of each are "
				  "possible",
				  lease->id, lease->n_holders, lease->n_bound, LEASE_BOUND_MAX);
	return liveness_add(daemon, caller, lease, true, chosen.fd, chosen.pid, liveness, result);
}

static void set_deadline(const struct daemon *daemon, const struct request *request,
			 struct lease *proposal)
{
	const struct settings *settings = daemon->arbiter->settings;
	uint64_t least = settings->activate_grace_usec + 2 * settings->enforce_delay_usec;
	uint64_t now = daemon_now_usec();

	/* A request that may not wait does so only for leases that are revoked for it or move, and
	 * for borrowers that shrink after that. */
	if (proposal->state == STATE_WAITING)
		proposal->deadline_usec = sum_u64(now, request->wait_usec > 0
							       ? request->wait_usec
							       : 2 * (least + ENFORCE_LET_GO_USEC));
	/* Borrowers have their grace to shrink, and enforcement its delay after that. */
	if (proposal->state == STATE_ACTIVATING)
		proposal->lend.give_up_usec = sum_u64(now, max_u64(request->wait_usec, least));
}

/* The holder is made before the lease is in force, so that a failure leaves nothing. */
static int reserve_new(struct daemon *daemon, const struct caller *caller, struct request *request,
		       const struct candidate *candidate, struct liveness *liveness,
		       struct result *result)
{
	struct lease *proposal, *lease;
	struct caller asker = *caller;
	int r;

	asker.unbound = request->adaptable && candidate->fd < 0;
	r = plan_with_moves(daemon, &asker, request, &proposal, result);
	if (r < 0)
		return r;
	result_done(result); /* why the lease waits is not why a later step fails */
	set_deadline(daemon, request, proposal);
	proposal->asker_bound = candidate->asked;
	r = liveness_add(daemon, caller, proposal, true, candidate->fd, candidate->pid, liveness,
			 result);
	if (r < 0) {
		lease_free(proposal);
		return r;
	}
	r = save_and_commit(daemon, proposal, "nothing was granted", &lease, result);
	if (r < 0) {
		holders_drop(daemon->holders, liveness->lease);
		close(liveness->holder);
		return r;
	}
	if (lease->state == STATE_WAITING && request->wait_usec > 0)
		journal_events_waits(daemon, lease);
	else if (lease->n_partitions > 0 && lease->state != STATE_ACTIVATING)
		journal_events_granted(daemon, lease, "");
	return 0;
}

static int try_reserve(struct daemon *daemon, const struct caller *caller, struct request *request,
		       int process_fd, struct liveness *liveness, struct result *result)
{
	struct candidate candidate = { .fd = process_fd };
	_cleanup_fd_ int asker = -1;
	struct lease *lease;
	int r = 0;

	if (process_fd >= 0)
		r = liveness_check_process(daemon, caller, process_fd, &candidate.pid, result);
	else
		asker = liveness_open_asker(daemon, caller, request);
	if (r < 0)
		return r;
	if (asker >= 0)
		candidate = (struct candidate){ asker, caller->pid, true };
	ledger_name_gpus(daemon->arbiter, request);
	lease = ledger_find_token(daemon->arbiter, caller->uid, request->token);
	if (!lease)
		lease = ledger_find_unanswered(daemon->arbiter, caller, request);
	if (lease) {
		r = reserve_again(daemon, caller, lease, request, &candidate, liveness, result);
		lease->claim_usec = r < 0 ? lease->claim_usec : 0;
		return r;
	}
	return reserve_new(daemon, caller, request, &candidate, liveness, result);
}

static int reserve(void *userdata, const struct caller *caller, struct request *request,
		   int process_fd, const struct lease **ret, int *ret_holder, struct result *result)
{
	struct daemon *daemon = userdata;
	uint64_t begun_usec = daemon_now_usec();
	struct liveness liveness;
	int r;

	r = try_reserve(daemon, caller, request, process_fd, &liveness, result);
	accounting_decided(daemon, daemon_now_usec() - begun_usec);
	if (r < 0) {
		accounting_refused(daemon, caller, request, result);
		/* The caller corrects an invalid request, and no one else could do anything about it. */
		if (result->kind != RESULT_INVALID_REQUEST)
			journal_events_refused(daemon, caller, request, result);
		return r;
	}
	liveness_count(daemon, &liveness);
	update_now(daemon);
	*ret = ledger_find(daemon->arbiter, liveness.lease);
	if (!*ret) { /* the update scanned the hardware, and a GPU of the lease was gone */
		close(liveness.holder);
		return result_set(result, RESULT_NO_CAPACITY,
				  "a GPU of the lease was removed in this moment: try again");
	}
	*ret = lease_shown(*ret);
	*ret_holder = liveness.holder;
	return 0;
}

/* ---- what a holder does -------------------------------------------------------------------- */

/* Publishes that a lease is being ended. again: what to do if that cannot be saved. */
static int publish_end(struct daemon *daemon, uint64_t id, const char *again, struct result *result)
{
	int r;

	update_now(daemon);
	r = commit_error(daemon);
	return r < 0 ? not_saved(daemon, id, r, again, result) : 0;
}

static int release(void *userdata, const struct caller *caller, uint64_t id, struct result *result)
{
	struct daemon *daemon = userdata;
	struct lease *lease;
	int r;

	r = ledger_find_owned(daemon->arbiter, caller, id, &lease, result);
	if (r < 0)
		return r;
	lease->revoked |= caller->uid != lease->owner;
	arbiter_end(daemon->arbiter, lease, RESULT_OK,
		    caller->uid == lease->owner ? "released" : "released by an administrator");
	return publish_end(daemon, id,
			   "it is ending; release it again if gpuarbd is restarted before it has "
			   "ended",
			   result);
}

/* The caller of this function may be about to publish the lease: so the lease ends in another turn of the loop. */
static void abandon(void *userdata, uint64_t id)
{
	struct daemon *daemon = userdata;
	struct lease *lease = ledger_find(daemon->arbiter, id);

	if (lease)
		lease->abandoned = !lease->token[0];
	schedule_update(daemon);
}

static int bind_process(void *userdata, const struct caller *caller, uint64_t id, int process_fd,
			struct result *result)
{
	struct daemon *daemon = userdata;
	struct liveness liveness;
	struct lease *lease;
	pid_t pid;
	int r;

	r = ledger_find_owned(daemon->arbiter, caller, id, &lease, result);
	if (r < 0)
		return r;
	if (lease->state == STATE_ENDING)
		return result_set(result, RESULT_INVALID_STATE, "lease %" PRIu64 " is ending", id);
	r = liveness_check_process(daemon, caller, process_fd, &pid, result);
	if (r < 0)
		return r;
	if (lease_is_bound(lease,
			   pid)) { /* repeated after an answer that was lost: it needs no room */
		liveness_chosen(daemon, lease, pid);
		update_now(daemon);
		return 0;
	}
	if (lease->n_bound >= LEASE_BOUND_MAX)
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "lease %" PRIu64 " is bound to %u processes, the maximum", id,
				  lease->n_bound);
	r = liveness_add(daemon, caller, lease, false, process_fd, pid, &liveness, result);
	if (r < 0)
		return r;
	liveness_count(daemon, &liveness);
	update_now(daemon);
	return 0;
}

static int cap(void *userdata, const struct caller *caller, uint64_t id, int listener,
	       struct result *result)
{
	struct daemon *daemon = userdata;
	struct lease *lease;
	int r;

	r = ledger_find_owned(daemon->arbiter, caller, id, &lease, result);
	if (r < 0)
		return r;
	if (lease->n_partitions == 0 || lease->state == STATE_ENDING)
		return lease_wrong_state(lease, result,
					 "its queues can be capped when it is granted");
	if (listener_check(listener) < 0)
		return result_set(
			result, RESULT_INVALID_REQUEST,
			"listener: the file descriptor is no listener of a seccomp filter");
	if (caps_of(daemon, id) >= LEASE_BOUND_MAX)
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "lease %" PRIu64 " has %u listeners, the maximum", id,
				  LEASE_BOUND_MAX);
	r = liveness_check_room(daemon, lease->owner, 1, result);
	if (r < 0)
		return r;
	r = caps_add(daemon, lease, listener);
	return r < 0 ? result_set(result, RESULT_NO_MEMORY, "cannot watch the listener: %s",
				  strerror(-r))
		     : 0;
}

/* Plans a resize, for which adaptable leases move if that helps. */
static int plan_resize(struct daemon *daemon, const struct caller *caller, uint64_t id,
		       const struct request *request, struct lease **ret, struct result *result)
{
	struct move_set set;
	int r = arbiter_plan_resize(daemon->arbiter, caller, id, request, ret, result);

	if (r >= 0 || result->kind != RESULT_NO_CAPACITY ||
	    arbiter_plan_resize_moves(daemon->arbiter, id, request, daemon_now_usec(), &set) == 0)
		return r;
	commit_step(daemon, STEP_MOVE, &set); /* perhaps not all: the plan tells */
	result_done(result);
	return arbiter_plan_resize(daemon->arbiter, caller, id, request, ret, result);
}

static int resize(void *userdata, const struct caller *caller, uint64_t id,
		  const struct request *request, struct result *result)
{
	struct lease *proposal, *lease;
	struct daemon *daemon = userdata;
	int r;

	r = plan_resize(daemon, caller, id, request, &proposal, result);
	if (r >= 0)
		r = save_and_commit(daemon, proposal, "it keeps its size", &lease, result);
	if (r < 0) {
		if (result->kind != RESULT_INVALID_REQUEST)
			journal_events_resize_refused(daemon, caller, id, result);
		return r;
	}
	journal_events_changed(daemon, EVENT_RESIZED, lease);
	update_now(daemon);
	return 0;
}

/* What cannot be saved counts for no other lease before it is, and the next daemon has to be told again. */
static int acknowledge(void *userdata, const struct caller *caller, uint64_t id,
		       uint64_t generation, struct result *result)
{
	struct daemon *daemon = userdata;
	struct lease *lease;
	uint64_t latest;
	int r;

	r = ledger_find_owned(daemon->arbiter, caller, id, &lease, result);
	if (r < 0)
		return r;
	latest = lease_shown(lease)->generation;
	if (generation > latest || arbiter_acknowledge(daemon->arbiter, id, generation) < 0)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "lease %" PRIu64 ": unknown generation %" PRIu64
				  ": the latest is %" PRIu64,
				  id, generation, latest);
	descriptors_outdate(daemon);
	update_now(daemon);
	r = commit_error(daemon);
	return r < 0 ? not_saved(daemon, id, r,
				 "acknowledge the generation again, until that succeeds", result)
		     : 0;
}

static int activate(void *userdata, const struct caller *caller, uint64_t id, bool active,
		    struct result *result)
{
	struct lease *proposal, *lease;
	struct daemon *daemon = userdata;
	int r;

	r = arbiter_plan_activate(daemon->arbiter, caller, id, active, &proposal, result);
	if (r < 0)
		return r;
	r = save_and_commit(daemon, proposal, active ? "it stays inactive" : "it stays active",
			    &lease, result);
	if (r < 0)
		return r;
	if (!active)
		journal_events_changed(daemon, EVENT_DEACTIVATED, lease);
	update_now(daemon);
	return 0;
}

/* ---- what an administrator does ------------------------------------------------------------ */

static int revoke_lease(void *userdata, uint64_t id, uint64_t grace_usec, const char *reason,
			bool kill, struct result *result)
{
	struct daemon *daemon = userdata;
	int r;

	r = arbiter_revoke(daemon->arbiter, id, daemon_now_usec(), grace_usec, reason, result);
	if (r < 0)
		return r;
	if (kill)
		arbiter_kill_overdue(daemon->arbiter, id);
	if (ledger_find(daemon->arbiter, id))
		journal_events_revoking(daemon, ledger_find(daemon->arbiter, id), grace_usec);
	return publish_end(daemon, id,
			   "it is being revoked; revoke it again if gpuarbd is restarted before "
			   "its deadline",
			   result);
}

static int drain(void *userdata, const char *gpu, bool on, struct result *result)
{
	struct daemon *daemon = userdata;
	struct arbiter *arbiter = daemon->arbiter;
	uint64_t drained;
	int r;

	if (arbiter_plan_drain(arbiter, gpu, on, &drained) < 0)
		return result_set(result, RESULT_NO_SUCH_GPU, "%s: no such GPU", gpu);
	r = state_save_drained(daemon->state, arbiter, drained);
	if (r < 0)
		return result_set(result, RESULT_NOT_SAVED,
				  "%s: cannot save which GPUs are drained: %s",
				  daemon->options->runtime_directory, strerror(-r));
	arbiter_commit_drain(arbiter, drained);
	log_notice("GPU %s is %s", arbiter->gpus[ledger_find_gpu(arbiter, gpu)].info.name,
		   on ? "drained" : "no longer drained");
	update_now(daemon);
	return 0;
}

#define ROOM 80U /* for the number of errors */

/* The first bytes of an error that is too long; whole characters. */
static size_t add_error(const char *text, char *buf, size_t size)
{
	size_t n = strlen(text);

	if (n + sizeof("...\n") > size)
		for (n = size - sizeof("...\n"); (text[n] & 0xc0) == 0x80;)
			n--;
	return (size_t)snprintf(buf, size, "%.*s%s\n", (int)n, text, text[n] ? "..." : "");
}

/* As many errors as there is room for, one on each line, and their number. */
static void join_errors(const struct diagnostics *diagnostics, int r, char *buf, size_t size)
{
	size_t n = 0, errors = 0, left_out = 0;

	snprintf(buf, size, "%s", strerror(-r));
	for (size_t i = 0; i < diagnostics->n; i++) {
		if (!diagnostics->list[i].error)
			continue;
		errors++;
		if (n > 0 && n + strlen(diagnostics->list[i].text) + ROOM > size)
			left_out++;
		else
			n += add_error(diagnostics->list[i].text, buf + n, size - n - ROOM);
	}
	if (left_out > 0)
		snprintf(buf + n, size - n, "%zu problems, gpuarbctl config check prints them all",
			 errors);
	else if (errors > 0)
		snprintf(buf + n, size - n, "%zu problem%s", errors, errors == 1 ? "" : "s");
}

static int reload(void *userdata, struct result *result)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	char errors[460];
	int r;

	r = resolve_reload(userdata, &diagnostics);
	log_diagnostics(&diagnostics);
	if (r >= 0)
		return 0;
	join_errors(&diagnostics, r, errors, sizeof(errors));
	return result_set(result, RESULT_INVALID_REQUEST, "%s; the configuration in force stays",
			  errors);
}

const struct bus_host requests_host = {
	.version = GPUARB_VERSION,
	.queue_budgets = unit_caps_state,
	.late_user = process_scan_late_user,
	.refresh = refresh,
	.observe_clients = graphics_observe,
	.awaits_masks = awaits_masks,
	.describe = describe,
	.settle = settle,
	.plan = plan,
	.reserve = reserve,
	.resize = resize,
	.release = release,
	.abandon = abandon,
	.bind = bind_process,
	.cap = cap,
	.acknowledge = acknowledge,
	.read_slots = slots_read,
	.read_usage = accounting_read,
	.counters = accounting_counters,
	.activate = activate,
	.drain = drain,
	.resolve = resolve_names,
	.reload = reload,
	.revoke = revoke_lease,
};
