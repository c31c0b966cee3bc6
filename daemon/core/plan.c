/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* arbiter_plan() and arbiter_plan_resize(): proposals. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arbiter.h"
#include "core/gang.h"
#include "core/ledger.h"
#include "core/tenant.h"

static int no_memory(struct verdict *verdict)
{
	return verdict_set(verdict, VERDICT_NO_MEMORY, "out of memory");
}

/* A request that policy refuses, whatever the GPUs: one row for each that it names. */
static int not_permitted(struct verdict *verdict, const struct want *want, const char *hint)
{
	struct refusal refusal = { .reason = REASON_POLICY };

	memcpy(refusal.gpu, want->gpu, sizeof(refusal.gpu));
	strncpy(refusal.hint, hint, sizeof(refusal.hint) - 1);
	if (verdict_refuse(verdict, &refusal) < 0)
		return no_memory(verdict);
	return verdict_set(verdict, VERDICT_NOT_PERMITTED, "%s", hint);
}

static int check_policy(const struct tenant *tenant, const struct request *request,
			enum lease_class lease_class, struct verdict *verdict)
{
	unsigned most = max_u(tenant->priority, PRIORITY_NORMAL); /* the default is for all */
	char hint[192];

	if (lease_class > tenant->class) {
		snprintf(hint, sizeof(hint), "class %s: tenant %s may ask for %s at most; a tenant "
			 "in gpuarbd.conf(5) can allow more", class_name(lease_class), tenant->name,
			 class_name(tenant->class));
		return not_permitted(verdict, &request->wants[0], hint);
	}
	for (size_t i = 0; i < request->n_wants; i++) {
		if (request->wants[i].priority <= most)
			continue;
		snprintf(hint, sizeof(hint), "want %zu: priority %u: tenant %s may ask for %u at most",
			 i + 1, request->wants[i].priority, tenant->name, most);
		return not_permitted(verdict, &request->wants[i], hint);
	}
	return 0;
}

static int check_counts(const struct arbiter *arbiter, const struct tenant *tenant, uid_t uid,
			struct verdict *verdict)
{
	const struct settings *settings = arbiter->settings;
	uint64_t max = limit_of(&tenant->max_leases, 100);
	size_t of_user = 0;

	if (arbiter->n_leases == arbiter->room)
		return no_memory(verdict);
	if (arbiter->n_leases >= settings->max_leases)
		return verdict_set(verdict, VERDICT_TOO_MANY_LEASES,
				   "%zu leases, and max-leases is %u", arbiter->n_leases,
				   settings->max_leases);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		of_user += arbiter->leases[i]->owner == uid;
	if (of_user >= settings->max_leases_per_user)
		return verdict_set(verdict, VERDICT_TOO_MANY_LEASES,
				   "uid %u has %zu leases, and max-leases-per-user is %u", uid,
				   of_user, settings->max_leases_per_user);
	if (max != UINT64_MAX && tenant_holding(arbiter, tenant, uid, 0).n_leases >= max)
		return verdict_set(verdict, VERDICT_QUOTA_EXCEEDED,
				   "uid %u has %llu leases, and max-leases of tenant %s is that", uid,
				   (unsigned long long)max, tenant->name);
	return 0;
}

static int make_proposal(const struct arbiter *arbiter, const struct caller *caller,
			 const struct request *asked, const struct application *application,
			 struct lease **ret)
{
	_cleanup_(lease_freep) struct lease *lease = NULL;
	int r;

	r = lease_new(asked->n_wants, &lease);
	if (r < 0)
		return r;
	if (asked->token[0]) {
		lease->request = malloc(sizeof(*lease->request));
		if (!lease->request)
			return -ENOMEM;
		*lease->request = *asked;
	}
	lease->id = arbiter->next_id;
	lease->state = STATE_GRANTED;
	lease->class = application->class;
	memcpy(lease->name, asked->name, sizeof(lease->name));
	memcpy(lease->token, asked->token, sizeof(lease->token));
	memcpy(lease->unit, caller->unit, sizeof(lease->unit));
	strncpy(lease->tenant, application->tenant->name, sizeof(lease->tenant) - 1);
	lease->owner = caller->uid;
	lease->pid = caller->pid;
	*ret = TAKE_PTR(lease);
	return 0;
}

int arbiter_plan(const struct arbiter *arbiter, const struct caller *caller,
		 const struct request *request, struct lease **ret, struct verdict *verdict)
{
	_cleanup_(lease_freep) struct lease *lease = NULL;
	struct application application = { .arbiter = arbiter, .uid = caller->uid };
	struct request complete = *request;
	int r;

	r = tenant_find(arbiter->settings, caller, request->tenant, &application.tenant, verdict);
	if (r < 0)
		return r;
	application.class = request->class < 0 ? application.tenant->class :
						 (enum lease_class)request->class;
	application.alone = application.class == CLASS_REALTIME && application.tenant->alone;
	r = request_complete(&complete, application.class, verdict);
	if (r < 0)
		return r;
	r = check_policy(application.tenant, &complete, application.class, verdict);
	if (r < 0)
		return r;
	r = check_counts(arbiter, application.tenant, caller->uid, verdict);
	if (r < 0)
		return r;
	r = make_proposal(arbiter, caller, request, &application, &lease);
	if (r < 0)
		return no_memory(verdict);
	r = gang_assign(&application, &complete, lease->partitions, verdict);
	if (r < 0)
		return r;

	*ret = TAKE_PTR(lease);
	return 0;
}

/* ---- resize ---------------------------------------------------------------------- */

/* Wants of a resize are for the partitions in their order: "any" is the GPU that it has. */
static int fit_wants(const struct arbiter *arbiter, const struct lease *lease,
		     struct request *request, struct verdict *verdict)
{
	if (request->n_wants != lease->n_partitions)
		return verdict_set(verdict, VERDICT_INVALID_REQUEST,
				   "%zu wants for the %zu partitions of lease %llu: give one for each",
				   request->n_wants, lease->n_partitions,
				   (unsigned long long)lease->id);
	for (size_t i = 0; i < request->n_wants; i++) {
		const char *has = arbiter->gpus[lease->partitions[i].gpu].info.name;
		enum isolation *isolation = &request->wants[i].isolation;
		char *gpu = request->wants[i].gpu;

		if (strcmp(gpu, "any") != 0 &&
		    arbiter_gpu(arbiter, gpu) != (int)lease->partitions[i].gpu)
			return verdict_set(verdict, VERDICT_INVALID_REQUEST,
					   "want %zu: gpu %s, but the lease has %s: a lease stays on "
					   "its GPUs", i + 1, gpu, has);
		memcpy(gpu, has, GPU_NAME_MAX);
		/* What it gives up stays charged for a while, and charged as what it was. */
		if (*isolation != ISOLATION_DEFAULT && *isolation != lease->partitions[i].isolation)
			return verdict_set(verdict, VERDICT_INVALID_REQUEST,
					   "want %zu: isolation %s: a lease keeps its own, %s", i + 1,
					   isolation_name(*isolation),
					   isolation_name(lease->partitions[i].isolation));
		*isolation = lease->partitions[i].isolation;
	}
	return 0;
}

/* A picture of the ledger without one lease. */
static int ledger_without(const struct arbiter *arbiter, const struct lease *lease,
			  struct arbiter *ret)
{
	struct arbiter without = *arbiter;
	size_t kept = 0;

	without.gpus = calloc(arbiter->n_gpus, sizeof(*without.gpus));
	without.leases = calloc(arbiter->n_leases, sizeof(struct lease *));
	if (!without.gpus || !without.leases) {
		free(without.gpus);
		free(without.leases);
		return -ENOMEM;
	}
	memcpy(without.gpus, arbiter->gpus, arbiter->n_gpus * sizeof(*without.gpus));
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (arbiter->leases[i] != lease)
			without.leases[kept++] = arbiter->leases[i];
	without.n_leases = kept;
	ledger_discharge(&without, lease);
	ledger_recount_shared(&without, lease);
	*ret = without;
	return 0;
}

/* What the holder has in its queues until it says otherwise stays charged. */
static void keep_charged(struct partition *next, const struct partition *now)
{
	cuset_add(&next->occupied, &now->occupied);
	next->charged.queues = max_u(next->charged.queues, now->charged.queues);
	next->charged.processes = max_u(next->charged.processes, now->charged.processes);
	next->charged.sdma_queues = max_u(next->charged.sdma_queues, now->charged.sdma_queues);
	next->charged.cooperative = max_u(next->charged.cooperative, now->charged.cooperative);
	if (next->charged.vram < now->charged.vram)
		next->charged.vram = now->charged.vram;
	next->used = now->used;
}

static int make_next(const struct lease *lease, struct lease **ret)
{
	_cleanup_(lease_freep) struct lease *next = NULL;
	struct partition *partitions;
	int r;

	r = lease_new(lease->n_partitions, &next);
	if (r < 0)
		return r;
	partitions = next->partitions;
	*next = *lease;
	next->partitions = partitions;
	next->request = NULL;
	next->touched = 0;
	next->touched_next = NULL;
	next->generation++;
	*ret = TAKE_PTR(next);
	return 0;
}

static int assign_next(const struct arbiter *arbiter, const struct lease *lease,
		       const struct tenant *tenant, const struct request *request,
		       struct lease *next, struct verdict *verdict)
{
	struct arbiter without;
	struct application application = { .arbiter = &without, .tenant = tenant,
					   .class = lease->class, .uid = lease->owner,
					   .alone = lease->partitions[0].alone,
					   .previous = lease };
	int r;

	if (ledger_without(arbiter, lease, &without) < 0)
		return no_memory(verdict);
	r = gang_assign(&application, request, next->partitions, verdict);
	free(without.gpus);
	free(without.leases);
	if (r < 0)
		return r;
	for (size_t i = 0; i < next->n_partitions; i++)
		keep_charged(&next->partitions[i], &lease->partitions[i]);
	return 0;
}

static const struct tenant *tenant_of(const struct settings *settings, const struct lease *lease)
{
	for (size_t i = 0; i < settings->n_tenants; i++)
		if (strcmp(settings->tenants[i].name, lease->tenant) == 0)
			return &settings->tenants[i];
	return NULL;
}

int arbiter_plan_resize(const struct arbiter *arbiter, const struct caller *caller, uint64_t id,
			const struct request *request, struct lease **ret, struct verdict *verdict)
{
	_cleanup_(lease_freep) struct lease *next = NULL;
	struct request complete = *request;
	const struct tenant *tenant;
	struct lease *lease;
	int r;

	r = arbiter_own(arbiter, caller, id, &lease, verdict);
	if (r < 0)
		return r;
	if (lease->state != STATE_GRANTED)
		return verdict_set(verdict, VERDICT_INVALID_STATE, "lease %llu is %s",
				   (unsigned long long)id, state_name(lease->state));
	tenant = tenant_of(arbiter->settings, lease);
	if (!tenant)
		return verdict_set(verdict, VERDICT_NO_SUCH_TENANT,
				   "lease %llu is of tenant %s, which policy has no more",
				   (unsigned long long)id, lease->tenant);
	r = fit_wants(arbiter, lease, &complete, verdict);
	if (r < 0)
		return r;
	r = request_complete(&complete, lease->class, verdict);
	if (r < 0)
		return r;
	r = check_policy(tenant, &complete, lease->class, verdict);
	if (r < 0)
		return r;
	if (make_next(lease, &next) < 0)
		return no_memory(verdict);
	r = assign_next(arbiter, lease, tenant, &complete, next, verdict);
	if (r < 0)
		return r;

	*ret = TAKE_PTR(next);
	return 0;
}
