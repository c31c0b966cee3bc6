/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/budget/budgets.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "helpers/budget/existing.h"
#include "helpers/budget/programs.h"
#include "helpers/budget/queues.h"
#include "util/text.h"

#define QUIET_TRIES 8 /* to count queues while none is created or destroyed */

static int use_of(const struct programs *programs, uint64_t cgroup, struct queue_use *ret)
{
	return bpf_map_lookup_elem(programs->uses, &cgroup, ret) < 0 ? -errno : 0;
}

/* ---- queues that are older than the budget -------------------------------------------------- */

/* Forgets what the programs have counted for a budget that ends. */
static void forget_spaces(const struct programs *programs, uint64_t cgroup)
{
	struct queue_space space;
	uint64_t key, next;
	bool more;

	more = bpf_map_get_next_key(programs->spaces, NULL, &next) == 0;
	while (more) {
		key = next;
		more = bpf_map_get_next_key(programs->spaces, &key, &next) == 0;
		if (bpf_map_lookup_elem(programs->spaces, &key, &space) == 0 &&
		    space.cgroup == cgroup)
			(void)bpf_map_delete_elem(programs->spaces, &key);
	}
}

/* Returns how many of the queues that exist the programs have not counted. -EAGAIN: queues are created
 * and destroyed all the time. */
static int count_before(const struct programs *programs, const char *sysfs, uint64_t cgroup)
{
	struct queue_use use, again;
	int n, r;

	for (int i = 0; i < QUIET_TRIES; i++) {
		r = use_of(programs, cgroup, &use);
		n = r < 0 ? r : existing_queues(sysfs, cgroup);
		r = n < 0 ? n : use_of(programs, cgroup, &again);
		if (r < 0)
			return r;
		if (use.in_flight == 0 && again.in_flight == 0 && use.changes == again.changes)
			return n > use.queues ? n - use.queues : 0;
	}
	return -EAGAIN;
}

/* The next request counts again. */
static int update_before(const struct programs *programs, const char *sysfs, uint64_t cgroup,
			 struct queue_budget *budget)
{
	int n = count_before(programs, sysfs, cgroup);

	if (n < 0)
		return n == -EAGAIN ? 0 : n;
	budget->before = n;
	return bpf_map_update_elem(programs->budgets, &cgroup, budget, BPF_ANY) < 0 ? -errno : 0;
}

/* ---- one budget ----------------------------------------------------------------------------- */

static int add(const struct programs *programs, uint64_t cgroup, const struct queue_budget *budget)
{
	const struct queue_use none = { 0 };

	if (bpf_map_update_elem(programs->uses, &cgroup, &none, BPF_ANY) < 0 ||
	    bpf_map_update_elem(programs->budgets, &cgroup, budget, BPF_NOEXIST) < 0)
		return -errno;
	return 0;
}

static void drop(const struct programs *programs, uint64_t cgroup)
{
	(void)bpf_map_delete_elem(programs->budgets, &cgroup);
	(void)bpf_map_delete_elem(programs->uses, &cgroup);
	forget_spaces(programs, cgroup);
}

static int apply_row(const struct programs *programs, const char *sysfs,
		     const struct budget_row *row)
{
	struct queue_budget budget, old = { 0 };
	bool present = bpf_map_lookup_elem(programs->budgets, &row->cgroup, &old) == 0;
	int r = 0;

	if (present && old.lease != row->lease) {
		drop(programs, row->cgroup);
		present = false;
	}
	budget = (struct queue_budget){ .lease = row->lease,
					.limit = (int32_t)row->limit,
					.before = present ? old.before : 0 };
	if (!present)
		r = add(programs, row->cgroup, &budget);
	else if (budget.limit != old.limit &&
		 bpf_map_update_elem(programs->budgets, &row->cgroup, &budget, BPF_EXIST) < 0)
		r = -errno;
	if (r >= 0 && (!present || budget.before > 0))
		r = update_before(programs, sysfs, row->cgroup, &budget);
	return r;
}

static struct budget_state state_of(const struct programs *programs, const struct budget_row *row,
				    int r)
{
	struct queue_budget budget = { 0 };
	struct queue_use use = { 0 };

	if (r >= 0)
		r = use_of(programs, row->cgroup, &use);
	if (r >= 0 && bpf_map_lookup_elem(programs->budgets, &row->cgroup, &budget) < 0)
		r = -errno;
	return (struct budget_state){ .refused = use.refused,
				      .queues = use.queues + budget.before,
				      .r = r };
}

/* ---- all budgets ---------------------------------------------------------------------------- */

static bool is_named(const struct budget_request *request, uint64_t cgroup)
{
	for (uint32_t i = 0; i < request->n; i++)
		if (request->rows[i].cgroup == cgroup)
			return true;
	return false;
}

static void drop_others(const struct programs *programs, const struct budget_request *request)
{
	uint64_t cgroup, next;
	bool more;

	more = bpf_map_get_next_key(programs->budgets, NULL, &next) == 0;
	while (more) {
		cgroup = next;
		more = bpf_map_get_next_key(programs->budgets, &cgroup, &next) == 0;
		if (!is_named(request, cgroup))
			drop(programs, cgroup);
	}
}

static int apply_rows(const char *sysfs, const struct budget_request *request,
		      struct budget_answer *ret)
{
	struct programs programs;
	int r;

	r = programs_open(sysfs, &programs);
	if (r < 0)
		r = programs_load(sysfs, &programs, ret->sentence, sizeof(ret->sentence));
	if (r < 0)
		return r;
	drop_others(&programs, request);
	for (uint32_t i = 0; i < request->n; i++) {
		const struct budget_row *row = &request->rows[i];

		r = apply_row(&programs, sysfs, row);
		ret->rows[i] = state_of(&programs, row, r);
	}
	ret->n = request->n;
	programs_close(&programs);
	return 0;
}

/* Programs without a budget would delay every ioctl of the system. */
static int apply_none(const char *sysfs, bool try, struct budget_answer *ret)
{
	struct programs programs = PROGRAMS_NONE;
	int r = 0;

	if (try && programs_open(sysfs, &programs) < 0)
		r = programs_load(sysfs, &programs, ret->sentence, sizeof(ret->sentence));
	if (r < 0)
		return r;
	programs_close(&programs);
	r = programs_remove();
	return r < 0 ? refuse(ret->sentence, sizeof(ret->sentence), r,
			      "cannot remove the programs: %s", strerror(-r))
		     : 0;
}

void budgets_apply(const char *sysfs, const struct budget_request *request,
		   struct budget_answer *ret)
{
	ret->version = BUDGET_VERSION;
	ret->n = 0;
	memset(ret->sentence, 0, sizeof(ret->sentence));
	ret->r = request->n > 0 ? apply_rows(sysfs, request, ret)
				: apply_none(sysfs, request->try != 0, ret);
}
