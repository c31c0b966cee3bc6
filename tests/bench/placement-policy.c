/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The policies: gpuarb, with more or fewer adaptable leases, and the upper line. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/placement.h"
#include "ledger-check.h"
#include "ledger-rig.h"

#define HOUR_USEC 3600e6

/* ---- gpuarb ----------------------------------------------------------------------------- */

/* The holders have changed their masks. */
static void acknowledge(struct machine *m)
{
	for (size_t i = 0; i < m->arbiter->n_leases; i++) {
		const struct lease *lease = m->arbiter->leases[i];

		if (arbiter_acknowledge(m->arbiter, lease->id, lease->generation) < 0)
			abort();
	}
	arbiter_lend(m->arbiter, m->now_usec);
}

static bool move_for(struct machine *m, const struct caller *caller, const struct request *request)
{
	struct move_set set;

	if (arbiter_plan_moves(m->arbiter, caller, request, m->now_usec, MOVE_STEPS, &set) <= 0)
		return false;
	for (size_t i = 0; i < set.n_first; i++)
		arbiter_commit(m->arbiter, TAKE_PTR(set.next[i]));
	m->moves += (unsigned)set.n_first;
	move_set_done(&set);
	acknowledge(m);
	return true;
}

static bool ask(struct machine *m, const struct request *request, struct grant *ret)
{
	const struct caller caller = caller_of(1);
	struct result result = { 0 };
	struct lease *lease = NULL;

	while (arbiter_plan(m->arbiter, &caller, request, &lease, &result) < 0) {
		result_done(&result);
		if (!move_for(m, &caller, request))
			return false;
	}
	lease = arbiter_commit(m->arbiter, lease);
	arbiter_add_holder(m->arbiter, lease->id);
	acknowledge(m);
	if (lease->state != STATE_GRANTED)
		abort();
	ret->id = lease->id;
	machine_refresh(m, ret);
	return true;
}

static struct request request_of(const struct job *job, bool adaptable)
{
	struct request request = request_for(job->cus);

	request.class = job->realtime ? CLASS_REALTIME : CLASS_GUARANTEED;
	request.wants[0].queues = 1;
	if (adaptable && !job->realtime) {
		request.class = CLASS_BESTEFFORT;
		request.adaptable = true;
	}
	return request;
}

static bool take_gpuarb(struct machine *m, const struct job *job, struct grant *ret)
{
	struct request request = request_of(job, false);

	return ask(m, &request, ret);
}

static bool take_half_adaptable(struct machine *m, const struct job *job, struct grant *ret)
{
	struct request request = request_of(job, job->second);

	return ask(m, &request, ret);
}

static bool take_adaptable(struct machine *m, const struct job *job, struct grant *ret)
{
	struct request request = request_of(job, true);

	return ask(m, &request, ret);
}

/* ---- fluid repacking --------------------------------------------------------------------- */

/* Everything moves about freely and has no shape; realtime leases still take whole engines
 * from one another, since that is what they were promised. */
static bool take_fluid(struct machine *m, const struct job *job, struct grant *ret)
{
	const struct geometry *g = &m->info.geometry;
	unsigned engine = 0;

	for (unsigned e = 0; e < g->engines; e++) {
		unsigned n = 0;

		for (unsigned x = 0; x < g->xccs; x++)
			n += geometry_engine_cus(g, x, e);
		engine = max_u(engine, n);
	}
	ret->whole_engines = job->realtime ? (job->cus + engine - 1) / engine : 0;
	if (m->used + job->cus > m->cus || m->used_engines + ret->whole_engines > g->engines)
		return false;
	ret->effective = job->cus;
	m->used += ret->effective;
	m->used_engines += ret->whole_engines;
	return true;
}

const struct policy policies[POLICIES] = {
	{ "gpuarb", true, take_gpuarb },
	{ "half", true, take_half_adaptable },
	{ "adaptable", true, take_adaptable },
	{ "fluid", false, take_fluid },
};

/* ---- a machine ---------------------------------------------------------------------------- */

struct machine *machine_new(const struct gpu_info *info, const struct policy *policy)
{
	struct machine *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->info = *info;
	/* It is about CUs: nothing else shall be short. */
	m->info.queue_slots = m->info.process_slots = 4096;
	m->info.reserve_queues = 0;
	m->cus = geometry_cus(&info->geometry);
	if (policy->arbiter) {
		m->arbiter = arbiter_of(&m->info, 1);
		add_tenant(m->arbiter, "bench", 1, CLASS_REALTIME);
	}
	return m;
}

struct machine *machine_free(struct machine *m)
{
	if (!m)
		return NULL;
	arbiter_free(m->arbiter);
	free(m);
	return NULL;
}

void machine_refresh(const struct machine *m, struct grant *grant)
{
	grant->effective = ledger_find(m->arbiter, grant->id)->partitions[0].effective;
}

double machine_fairness(const struct machine *m)
{
	unsigned n = 0;

	for (size_t i = 0; m->arbiter && i < m->arbiter->n_leases; i++)
		n += m->arbiter->leases[i]->adaptable;
	return n > 1 ? lend_fairness(m->arbiter, 0) : NAN;
}

bool machine_take(struct machine *m, const struct policy *policy, const struct job *job,
		  struct grant *ret)
{
	memset(ret, 0, sizeof(*ret));
	m->now_usec = (uint64_t)(job->at * HOUR_USEC);
	if (!policy->take(m, job, ret))
		return false;
	if (policy->arbiter)
		check_promises(m->arbiter);
	return true;
}

void machine_drop(struct machine *m, const struct policy *policy, const struct grant *grant)
{
	if (policy->arbiter) {
		release(m->arbiter, grant->id);
		return;
	}
	m->used -= grant->effective;
	m->used_engines -= grant->whole_engines;
}
