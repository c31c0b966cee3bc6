/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/admit.h"
#include "core/decide/borrow.h"
#include "core/decide/disturbance.h"
#include "core/decide/exclusive.h"
#include "core/decide/divide.h"
#include "core/ledger/waiting-queue.h"
#include "core/policy/request.h"

static int no_memory(struct result *result)
{
	return result_set(result, RESULT_NO_MEMORY, "out of memory");
}

/* A request that policy refuses on every GPU. */
static int not_permitted(struct result *result, const struct tenant *tenant,
			 const struct want *want, enum resource resource, uint64_t asked,
			 uint64_t allowed)
{
	struct refusal refusal = { .reason = REASON_POLICY, .resource = resource, .asked = asked };

	snprintf(refusal.gpu, sizeof(refusal.gpu), "%.*s", (int)sizeof(refusal.gpu) - 1,
		 strchr(want->gpu, ',') ? "any" : want->gpu);
	refusal_set_bound(&refusal, resource_name(resource), allowed, tenant->name);
	return result_refuse_all(result, RESULT_NOT_PERMITTED, &refusal);
}

static int check_policy(const struct tenant *tenant, const struct request *request,
			enum lease_class lease_class, struct result *result)
{
	unsigned most = max_u(tenant->priority, PRIORITY_NORMAL); /* the default is for all */

	if (lease_class > tenant->class)
		return not_permitted(result, tenant, &request->wants[0], RESOURCE_CLASS,
				     lease_class, tenant->class);
	for (size_t i = 0; i < request->n_wants; i++)
		if (request->wants[i].priority > most)
			return not_permitted(result, tenant, &request->wants[i], RESOURCE_PRIORITY,
					     request->wants[i].priority, most);
	if (tenant->max_duration_usec > 0 && request->duration_usec > tenant->max_duration_usec)
		return not_permitted(result, tenant, &request->wants[0], RESOURCE_DURATION,
				     request->duration_usec / 1000000,
				     tenant->max_duration_usec / 1000000);
	if (request->exclusive && tenant->exclusive == EXCLUSIVE_NO)
		return not_permitted(result, tenant, &request->wants[0], RESOURCE_EXCLUSIVE,
				     EXCLUSIVE_ACTIVE, EXCLUSIVE_NO);
	return 0;
}

/* Fills in the defaults of a request and checks it against the policy; examines no GPU. had: the lease that it resizes,
 * which default-vram gives no more than it was promised; NULL. */
static int complete_request(const struct tenant *tenant, enum lease_class lease_class,
			    const struct lease *had, struct request *request, struct result *result)
{
	int r;

	r = request_complete(request, lease_class, result);
	if (r < 0)
		return r;
	for (size_t i = 0; i < request->n_wants; i++) {
		struct want *want = &request->wants[i];

		want->default_vram = want->vram == 0;
		if (want->default_vram)
			want->vram = min_u64(tenant->default_vram,
					     had ? had->partitions[i].granted.vram : UINT64_MAX);
		if (want->priority == PRIORITY_BY_CLASS)
			want->priority = lease_class == CLASS_REALTIME
						 ? max_u(tenant->priority, PRIORITY_NORMAL)
						 : PRIORITY_NORMAL;
	}
	return check_policy(tenant, request, lease_class, result);
}

static int too_many_leases(const struct tenant *tenant, uid_t uid, const char *key, uint64_t held,
			   uint64_t max, struct result *result)
{
	struct refusal refusal = { .reason = REASON_QUOTA,
				   .resource = RESOURCE_LEASES,
				   .asked = 1,
				   .held = held,
				   .uid = uid };

	refusal_set_bound(&refusal, key, max, tenant->name);
	return result_refuse_all(result, RESULT_QUOTA_EXCEEDED, &refusal);
}

/* May there be one more lease, this one? */
static int check_counts(const struct arbiter *arbiter, const struct lease *lease,
			struct result *result)
{
	const struct settings *settings = arbiter->settings;
	const struct tenant *tenant = tenant_named(settings, lease->tenant);
	uint64_t max = limit_of(&tenant->max_leases, 100), of_tenant = 0;
	size_t of_user = 0;

	if (arbiter->n_leases == arbiter->room)
		return no_memory(result);
	if (arbiter->n_leases >= settings->max_leases)
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "%zu leases, and max-leases is %u", arbiter->n_leases,
				  settings->max_leases);
	FOR_EACH_LEASE(other, arbiter) {
		of_user += other->owner == lease->owner;
		of_tenant += lease_same_account(other, lease);
	}
	if (of_user >= settings->max_leases_per_user)
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "uid %u has %zu leases, and max-leases-per-user is %u",
				  lease->owner, of_user, settings->max_leases_per_user);
	return of_tenant < max ? 0
			       : too_many_leases(tenant, lease->owner, "max-leases", of_tenant, max,
						 result);
}

/* A request that waits only until leases are revoked for it does not count. */
static int check_waiting(const struct arbiter *arbiter, const struct lease *lease,
			 struct result *result)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);
	uint64_t max = limit_of(&tenant->max_waiting, 100), n = 0;

	for (size_t i = 0; i < arbiter->n_waiting; i++)
		n += lease_same_account(arbiter->waiting[i], lease);
	if (lease->request->wait_usec == 0 || n < max)
		return 0;
	result_done(result);
	return too_many_leases(tenant, lease->owner, "max-waiting", n, max, result);
}

/* ---- a lease that waits, or would ------------------------------------------------------- */

int plan_lease(const struct arbiter *arbiter, const struct caller *caller,
	       const struct request *request, struct lease **ret, struct result *result)
{
	_cleanup_(lease_freep) struct lease *lease = NULL;
	const struct tenant *tenant;
	int r;

	r = tenant_find(arbiter->settings, caller, request->tenant, &tenant, result);
	if (r < 0)
		return r;
	if (lease_new(&lease) < 0)
		return no_memory(result);
	lease->request = request_keep(request);
	if (!lease->request)
		return no_memory(result);
	lease->id = arbiter->next_id;
	lease->state = STATE_WAITING;
	lease->class = request->class < 0 ? tenant->class : (enum lease_class)request->class;
	lease->adaptable = request->adaptable;
	lease->wait.turn = queue_next_turn(arbiter, lease->class, caller->uid);
	memcpy(lease->name, request->name, sizeof(lease->name));
	memcpy(lease->token, request->token, sizeof(lease->token));
	memcpy(lease->unit, caller->unit, sizeof(lease->unit));
	snprintf(lease->tenant, sizeof(lease->tenant), "%s", tenant->name);
	lease->owner = caller->uid;
	lease->pid = caller->pid;
	lease->lend.unbound = caller->unbound;
	lease->duration_usec = tenant_duration_usec(tenant, request->duration_usec);
	*ret = TAKE_PTR(lease);
	return 0;
}

/* Is it of plan_lease(), and not in the ledger? */
static bool is_new(const struct arbiter *arbiter, const struct lease *lease)
{
	return lease->id >= arbiter->next_id;
}

/* A policy that was reloaded since may end a lease that waits. */
static int find_tenant(const struct arbiter *arbiter, const struct lease *lease,
		       const struct tenant **ret, struct result *result)
{
	int r = 0;

	if (is_new(arbiter, lease))
		*ret = tenant_named(arbiter->settings, lease->tenant);
	else
		r = tenant_of_lease(arbiter->settings, lease->tenant, lease->owner, ret, result);
	if (r < 0)
		result->kind = RESULT_NOT_PERMITTED;
	return r;
}

int plan_waiting(const struct arbiter *arbiter, const struct lease *lease, uid_t holder,
		 const struct request *request, struct partition *partitions,
		 uint64_t *ret_candidates, struct result *result)
{
	struct admit_context admit_context = { .arbiter = arbiter, .uid = holder, .self = lease };
	struct request complete;
	int r;

	request_recall(request, &complete);
	complete.adaptable = lease->adaptable;
	*ret_candidates = 0;
	r = find_tenant(arbiter, lease, &admit_context.tenant, result);
	if (r >= 0)
		r = complete_request(admit_context.tenant, lease->class, NULL, &complete, result);
	if (r < 0)
		return r;
	return gang_assign(&admit_context, &complete, partitions, ret_candidates, result);
}

bool plan_may_wait(const struct arbiter *arbiter, const struct lease *lease,
		   const struct result *refused)
{
	_cleanup_(result_done) struct result result = { 0 };
	struct partition partitions[REQUEST_WANTS];
	uint64_t unused;

	if (refused->kind != RESULT_QUOTA_EXCEEDED)
		return refused->kind == RESULT_NO_CAPACITY;
	plan_waiting(arbiter, lease, PLAN_HOLDS_NOTHING, lease->request, partitions, &unused,
		     &result);
	return result.kind != RESULT_QUOTA_EXCEEDED && result.kind != RESULT_NEVER_FITS;
}

int plan_grant(const struct arbiter *arbiter, struct lease *lease,
	       const struct partition *partitions)
{
	int r = lease_make_partitions(lease, lease->request->n_wants);

	if (r < 0)
		return r;
	lease_set_partitions(lease, partitions);
	divide_start(arbiter, lease, lease->request->start_inactive);
	lease_drop_request(lease);
	return 0;
}

int plan_new(const struct arbiter *arbiter, const struct caller *caller,
	     const struct request *request, bool may_wait, struct lease **ret,
	     struct result *result)
{
	_cleanup_(lease_freep) struct lease *lease = NULL;
	struct partition partitions[REQUEST_WANTS];
	uint64_t candidates;
	int r;

	r = plan_lease(arbiter, caller, request, &lease, result);
	if (r >= 0)
		r = check_counts(arbiter, lease, result);
	if (r < 0)
		return r;
	r = plan_waiting(arbiter, lease, lease->owner, request, partitions, &candidates, result);
	if (r >= 0) {
		r = plan_grant(arbiter, lease, partitions) < 0 ? no_memory(result) : 0;
	} else if (may_wait && plan_may_wait(arbiter, lease, result)) {
		lease->wait.candidates = candidates;
		lease->wait.over_quota = result->kind == RESULT_QUOTA_EXCEEDED;
		lease_set_refusal(lease, &result->refusals[result->deciding]);
		r = check_waiting(arbiter, lease, result);
	}
	if (r >= 0)
		*ret = TAKE_PTR(lease);
	return r;
}

int arbiter_plan(const struct arbiter *arbiter, const struct caller *caller,
		 const struct request *request, struct lease **ret, struct result *result)
{
	return plan_new(arbiter, caller, request, request->wait_usec > 0, ret, result);
}

/* ---- any request ------------------------------------------------------------------- */

static int plan_resize(const struct arbiter *arbiter, const struct lease *lease,
		       const struct request *request, struct lease **ret, struct result *result);

int plan_asked(const struct arbiter *arbiter, const struct asker *asker,
	       struct partition partitions[static REQUEST_WANTS], struct result *result)
{
	_cleanup_(lease_freep) struct lease *next = NULL;
	bool new = is_new(arbiter, asker->lease);
	uint64_t unused;
	int r = new ? check_counts(arbiter, asker->lease, result) : 0;

	if (r < 0)
		return r;
	if (new || asker->lease->state == STATE_WAITING)
		r = plan_waiting(arbiter, asker->lease, asker->lease->owner, asker->request,
				 partitions, &unused, result);
	else
		r = plan_resize(arbiter, asker->lease, asker->request, &next, result);
	if (r < 0)
		return r;
	for (size_t i = 0; next && i < next->n_partitions; i++) {
		partitions[i] = next->partitions[i];
		partitions[i].adaptation = NULL; /* its base is all that was placed */
	}
	return (int)asker->request->n_wants;
}

/* ---- resize ------------------------------------------------------------------------ */

/* What a want does not tell about the CUs of an adaptable partition stays: its base and its limit. With a limit below
 * the base, the partition gets what that of a new lease would. */
static int keep_bounds(const struct partition *p, struct want *want, struct result *result)
{
	bool awaits = !cuset_empty(&p->resize);
	unsigned base = max_u(cuset_count(awaits ? &p->resize : &p->adaptation->base),
			      want->cus_min);

	if (want->cus == 0) {
		want->cus_max = want->cus_max ? want->cus_max : p->asked;
		want->cus = min_u(base, want->cus_max);
	}
	if (want->cus_min > want->cus_max && want->cus_max > 0)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "cus-min %u is above cus-max %u, which the lease keeps unless "
				  "the request names another one",
				  want->cus_min, want->cus_max);
	if (want->cus_min == 0 && base <= want->cus)
		want->cus_min = base;
	return 0;
}

/* Shares become numbers: the GPU is known. One of less than a CU stays: admit() refuses it. */
static void resolve_percent(unsigned cus, struct want *want)
{
	struct want whole;

	want_resolve_percent(want, cus, &whole);
	if (want->cus_percent == 0 || whole.cus > 0)
		*want = whole;
}

/* The wants of a resize belong to the partitions in their order; gpu "any" is the partition's GPU. */
static int fit_wants(const struct arbiter *arbiter, const struct lease *lease,
		     struct request *request, struct result *result)
{
	if (request->n_wants != lease->n_partitions)
		return result_set(
			result, RESULT_INVALID_REQUEST,
			"%zu wants for the %zu partitions of lease %llu: give one for each",
			request->n_wants, lease->n_partitions, (unsigned long long)lease->id);
	for (size_t i = 0; i < request->n_wants; i++) {
		const char *has = arbiter->gpus[lease->partitions[i].gpu].info.name;
		enum isolation *isolation = &request->wants[i].isolation;
		char *gpu = request->wants[i].gpu, missing[GPU_NAME_MAX];
		uint64_t wanted = UINT64_MAX;

		if (strcmp(gpu, "any") != 0 && (ledger_wanted(arbiter, gpu, &wanted, missing) < 0 ||
						!(wanted >> lease->partitions[i].gpu & 1)))
			return result_set(
				result, RESULT_INVALID_REQUEST,
				"want %zu: gpu %s, but the lease has %s: a lease stays on "
				"its GPUs",
				i + 1, gpu, has);
		memcpy(gpu, has, GPU_NAME_MAX);
		resolve_percent(arbiter->gpus[lease->partitions[i].gpu].cus, &request->wants[i]);
		/* CUs that it gives up stay charged for a while, with the isolation they had. */
		if (*isolation != ISOLATION_DEFAULT && *isolation != lease->partitions[i].isolation)
			return result_set(result, RESULT_INVALID_REQUEST,
					  "want %zu: isolation %s: a lease keeps its own, %s",
					  i + 1, isolation_names[*isolation],
					  isolation_names[lease->partitions[i].isolation]);
		*isolation = lease->partitions[i].isolation;
		if (lease->adaptable && !want_has_percent(&request->wants[i]) &&
		    keep_bounds(&lease->partitions[i], &request->wants[i], result) < 0)
			return -EINVAL;
	}
	request->adaptable = lease->adaptable;
	return 0;
}

/* CUs and budgets that the lease gives up stay charged until the holder acknowledges. */
static void keep_charged(struct partition *next, const struct partition *now)
{
	cuset_add(&next->occupied, &now->occupied);
	for (unsigned r = 0; r < BUDGETS; r++)
		next->charged.of[r] = max_u64(next->charged.of[r], now->charged.of[r]);
	next->used = now->used;
	next->paused = now->paused;
	next->stopped = now->stopped;
	memcpy(next->drift, now->drift, sizeof(next->drift));
}

/* CUs of borrowers are reclaimed as for a new lease. Until then it keeps its masks, and an adaptable lease its bases. */
static void defer_resize(const struct lease *lease, struct lease *next)
{
	for (size_t i = 0; i < next->n_partitions; i++) {
		struct partition *p = &next->partitions[i];
		const struct partition *now = &lease->partitions[i];

		p->resize = p->cus;
		p->cus = now->cus;
		p->occupied = now->occupied;
		p->count = now->count;
		p->effective = now->effective;
		p->any_shape |= now->any_shape;
		if (p->adaptation)
			*p->adaptation =
				(struct adaptation){ .base = now->adaptation->base,
						     .before = now->adaptation->before,
						     .moved_from = now->adaptation->moved_from };
	}
}

static int assign_next(const struct arbiter *arbiter, const struct lease *lease,
		       const struct tenant *tenant, const struct request *request,
		       struct lease *next, struct result *result)
{
	struct arbiter without;
	struct admit_context admit_context = { .arbiter = &without,
					       .tenant = tenant,
					       .uid = lease->owner,
					       .previous = lease,
					       .self = lease };
	struct partition partitions[REQUEST_WANTS];
	uint64_t unused;
	bool defers;
	int r;

	if (ledger_copy(arbiter, &without) < 0)
		return no_memory(result);
	ledger_leave_out(&without, lease);
	borrow_sum_up(&without); /* CUs that the lease claims and a borrower still has count, too */
	r = gang_assign(&admit_context, request, partitions, &unused, result);
	ledger_copy_done(&without);
	if (r < 0)
		return r;
	lease_set_partitions(next, partitions);
	defers = borrow_contested(arbiter, next);
	for (size_t i = 0; i < next->n_partitions; i++) {
		if (lease->adaptable && !defers)
			borrow_free(arbiter, next, &next->partitions[i], &lease->partitions[i]);
		keep_charged(&next->partitions[i], &lease->partitions[i]);
	}
	if (defers)
		defer_resize(lease, next);
	return 0;
}

static int plan_resize(const struct arbiter *arbiter, const struct lease *lease,
		       const struct request *request, struct lease **ret, struct result *result)
{
	_cleanup_(lease_freep) struct lease *next = NULL;
	const struct tenant *tenant;
	struct request complete;
	int r;

	request_recall(request, &complete);
	if (lease->state != STATE_GRANTED)
		return result_set(result, RESULT_INVALID_STATE, "lease %llu is %s",
				  (unsigned long long)lease->id, state_names[lease->state]);
	r = tenant_of_lease(arbiter->settings, lease->tenant, lease->owner, &tenant, result);
	if (r >= 0)
		r = fit_wants(arbiter, lease, &complete, result);
	if (r >= 0)
		r = complete_request(tenant, lease->class, lease, &complete, result);
	if (r < 0)
		return r;
	if (lease_next_version(lease, lease->n_partitions, &next) < 0)
		return no_memory(result);
	if (lease_deadline_awaits(lease))
		next->deadline_usec = UINT64_MAX;
	next->generation++;
	next->resized = true;
	r = assign_next(arbiter, lease, tenant, &complete, next, result);
	if (r < 0)
		return r;

	*ret = TAKE_PTR(next);
	return 0;
}

int arbiter_plan_resize(const struct arbiter *arbiter, const struct caller *caller, uint64_t id,
			const struct request *request, struct lease **ret, struct result *result)
{
	struct lease *lease;
	int r = ledger_find_owned(arbiter, caller, id, &lease, result);

	return r < 0 ? r : plan_resize(arbiter, lease, request, ret, result);
}

/* ---- activate and deactivate ------------------------------------------------------- */

static int check_lender(const struct lease *lease, bool active, struct result *result)
{
	if (lease->class != CLASS_REALTIME)
		return result_set(result, RESULT_INVALID_STATE,
				  "lease %llu is of class %s: only realtime leases lend and are "
				  "activated",
				  (unsigned long long)lease->id, class_names[lease->class]);
	if (active && lease->state != STATE_INACTIVE)
		return lease_wrong_state(lease, result, "only an inactive lease can be activated");
	if (!active && lease->state != STATE_GRANTED && lease->state != STATE_ACTIVATING)
		return lease_wrong_state(lease, result, "only an active lease can be deactivated");
	return 0;
}

/* What came to its GPU while the lease was inactive, or an exclusive lease. */
static bool is_refused_on(const struct arbiter *arbiter, const struct lease *lease,
			  const struct partition *p, struct refusal *refusal)
{
	if (disturbance_refuses(arbiter, lease, p, refusal))
		return true;
	refusal->reason = REASON_EXCLUSIVE;
	return exclusive_refuses(arbiter, p->gpu, lease, p->exclusive, refusal);
}

static int check_gpus(const struct arbiter *arbiter, const struct lease *lease,
		      struct result *result)
{
	int r = 0;

	for (size_t i = 0; i < lease->n_partitions && r != -ENOMEM; i++) {
		struct refusal refusal;

		if (is_refused_on(arbiter, lease, &lease->partitions[i], &refusal))
			r = result_refuse_all(result, RESULT_NO_CAPACITY, &refusal);
	}
	return r;
}

int arbiter_plan_activate(const struct arbiter *arbiter, const struct caller *caller, uint64_t id,
			  bool active, struct lease **ret, struct result *result)
{
	struct lease *lease, *next;
	int r;

	r = ledger_find_owned(arbiter, caller, id, &lease, result);
	if (r >= 0)
		r = check_lender(lease, active, result);
	if (r >= 0 && active)
		r = check_gpus(arbiter, lease, result);
	if (r < 0)
		return r;
	if (lease_next_version(lease, lease->n_partitions, &next) < 0)
		return no_memory(result);
	next->state = active ? STATE_ACTIVATING : STATE_INACTIVE;
	next->deadline_usec = UINT64_MAX; /* arbiter_lend() sets it if a borrower has to shrink */
	if (!active) {
		if (lease_awaits_resize(lease)) /* no queue runs any more */
			borrow_finish_resize(arbiter, next);
		next->lend.never_granted = false;
		next->lend.give_up_usec = UINT64_MAX;
	}
	*ret = next;
	return 0;
}

/* ---- drain ------------------------------------------------------------------------- */

int arbiter_plan_drain(const struct arbiter *arbiter, const char *gpu, bool drain, uint64_t *ret)
{
	int index = ledger_find_gpu(arbiter, gpu);
	uint64_t drained = 0;

	if (index < 0)
		return index;
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		const struct gpu *other = &arbiter->gpus[i];
		/* Also an absent GPU of this name, for when it comes back. */
		bool meant = strcmp(other->info.name, arbiter->gpus[index].info.name) == 0;

		if (meant ? drain : other->draining)
			drained |= UINT64_C(1) << i;
	}
	*ret = drained;
	return 0;
}
