/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Capped leases of units: the kernel refuses queues beyond the grant, for all processes in the cgroup of
 * a service or scope that belongs to the lease alone. gpuarb-budget tells the kernel, which enforces
 * the budgets also while there is no gpuarbd.
 *
 * gpuarbd sends all budgets with each request, and repeats it: gpuarb-budget says how many calls were
 * refused, and counts queues again that are older than their budget.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cap/cap.h"
#include "protocol/protocol.h"
#include "sys/cgroup.h"

#define ANSWER_USEC UINT64_C(15000000) /* gpuarb-budget may have to load its programs */
#define REPEAT_USEC UINT64_C(10000000) /* also after a failure */

struct unit_caps {
	struct asker *asker;            /* NULL: the GPUs are simulated */
	struct budget_request *request; /* the last one */
	bool pending;                   /* it has no answer yet */
	bool outdated;                  /* the next one differs, or may */
	bool fails;                     /* the last one failed */
	bool beyond;                    /* it has no room for some units */
	bool loaded;   /* the kernel enforces budgets, or may, of an earlier request */
	bool repeated; /* the request is sent again at one of the next scans */
	uint64_t usec; /* of the last one */
	char state[BUDGET_SENTENCE_MAX]; /* the property QueueBudgets */
};

/* ---- the cgroup of a lease ------------------------------------------------------------------- */

/* The id of the cgroup of a unit; 0: it has been removed. */
static uint64_t id_of(const struct unit_place *place)
{
	char path[sizeof(CGROUP_ROOT) + sizeof(place->cgroup)];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s", CGROUP_ROOT, place->cgroup);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

/* Whether all bound processes that have not ended are in this cgroup. */
static bool has_all_bound(const struct lease *lease, uint64_t cgroup)
{
	struct unit_place place;

	for (size_t i = 0; i < lease->n_bound; i++) {
		int r = unit_of_process(lease->bound[i], &place);

		if (r != -ESRCH && (r < 0 || id_of(&place) != cgroup))
			return false;
	}
	return true;
}

/* The id of the cgroup that has all bound processes of the lease, and none that does not belong to it; 0:
 * there is none. */
static uint64_t find_cgroup(const struct daemon *daemon, const struct lease *lease)
{
	struct unit_place place;
	uint64_t cgroup;
	pid_t other;

	if (unit_of_process(lease->bound[0], &place) < 0)
		return 0;
	cgroup = id_of(&place);
	if (!has_all_bound(lease, cgroup) ||
	    unit_find_other(daemon, lease, place.cgroup, &other) != 0)
		return 0;
	return cgroup;
}

/* Does policy want leases of this class to be capped? */
static bool tenant_caps(const struct tenant *tenant, enum lease_class class)
{
	return tenant->cap == CAP_YES || (tenant->cap == CAP_AUTO && class != CLASS_BESTEFFORT);
}

static bool wants_cap(const struct daemon *daemon, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(daemon->arbiter->settings, lease->tenant);

	return tenant && tenant_caps(tenant, lease->class);
}

/* The kernel cannot tell types of queues: SDMA queues that the runtime creates unasked take the place of
 * compute queues. So only policy caps a lease that did not ask for them. */
static bool may_cap(const struct daemon *daemon, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(daemon->arbiter->settings, lease->tenant);
	bool counted = true;

	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];
		const struct gpu_info *info = &daemon->arbiter->gpus[p->gpu].info;

		counted &= info->sdma_queues == 0 || p->granted.sdma_queues > 0;
		counted &= lease->n_partitions == 1 || info->sdma_xgmi_queues == 0 ||
			   p->granted.sdma_xgmi_queues > 0;
	}
	return counted || (tenant && tenant->cap == CAP_YES);
}

static bool has_chosen_process(const struct lease *lease)
{
	return lease->n_bound > lease->asker_bound;
}

/* NULL: the lease is capped, or need not be. */
static const char *find_why_not(const struct daemon *daemon, const struct lease *lease,
				bool filtered)
{
	if (!wants_cap(daemon, lease) || lease->n_partitions == 0 || lease->state == STATE_ENDING)
		return NULL;
	if (filtered)
		return "filter";
	if (!has_chosen_process(lease))
		return "process";
	if (!may_cap(daemon, lease))
		return "sdma-queues";
	if (lease->cap.cgroup == 0 || !has_all_bound(lease, lease->cap.cgroup))
		return "unit";
	return strcmp(daemon->unit_caps->state, UNIT_CAPS_ENFORCED) == 0 ||
			       strcmp(daemon->unit_caps->state, UNIT_CAPS_UNUSED) == 0
		       ? "pending"
		       : "kernel";
}

/* An ending lease gets no further queue. */
static uint64_t sum_of_grants(const struct lease *lease)
{
	uint64_t limit = 0;

	for (size_t i = 0; i < lease->n_partitions && lease->state != STATE_ENDING; i++)
		limit += budget_queues(&lease->partitions[i].granted);
	return limit < BUDGET_LIMIT_MAX ? limit : BUDGET_LIMIT_MAX;
}

/* A lease keeps the cgroup until it is removed, or until a filter caps its processes. */
static uint64_t choose_cgroup(const struct daemon *daemon, const struct lease *lease, bool filtered)
{
	if (filtered || !wants_cap(daemon, lease) || !may_cap(daemon, lease))
		return 0;
	if (lease->cap.cgroup != 0 || !has_chosen_process(lease) || lease->n_partitions == 0)
		return lease->cap.cgroup;
	return find_cgroup(daemon, lease);
}

void unit_caps_review(struct daemon *daemon, struct lease *lease, bool filtered)
{
	uint64_t cgroup, limit;

	if (!daemon->unit_caps->asker)
		return;
	cgroup = choose_cgroup(daemon, lease, filtered);
	limit = cgroup != 0 ? sum_of_grants(lease) : 0;
	if (cgroup != lease->cap.cgroup)
		lease->cap.counted = false;
	if (cgroup != lease->cap.cgroup || (cgroup != 0 && !has_all_bound(lease, cgroup)))
		arbiter_set_enforced(daemon->arbiter, lease, false);
	if (cgroup != lease->cap.cgroup || limit != lease->cap.limit)
		daemon->unit_caps->outdated = true;
	lease->cap.cgroup = cgroup;
	lease->cap.limit = limit;
	lease->cap.why_not = find_why_not(daemon, lease, filtered);
}

void unit_caps_drop(struct daemon *daemon, const struct lease *lease)
{
	if (lease->cap.cgroup != 0)
		daemon->unit_caps->outdated = true;
}

/* ---- requests ---------------------------------------------------------------------------------- */

static bool any_tenant_caps(const struct settings *settings)
{
	for (size_t i = 0; i < settings->n_tenants; i++)
		if (tenant_caps(&settings->tenants[i], settings->tenants[i].class))
			return true;
	return false;
}

/* The kernel has no room for the newest cgroups: their leases do not have the tier "capped". */
static void tell_beyond(struct daemon *daemon, size_t beyond)
{
	if (beyond > 0 && !daemon->unit_caps->beyond)
		log_warning("%zu units are not capped: the kernel has budgets for %u", beyond,
			    BUDGET_ROWS_MAX);
	daemon->unit_caps->beyond = beyond > 0;
}

static int write_request(struct daemon *daemon)
{
	const struct arbiter *arbiter = daemon->arbiter;
	_cleanup_(freep) struct budget_row *rows = calloc(arbiter->n_leases + 1, sizeof(*rows));
	struct budget_request *request = daemon->unit_caps->request;
	size_t n = 0;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];

		if (lease->cap.cgroup != 0)
			rows[n++] = (struct budget_row){ lease->id, lease->cap.cgroup,
							 lease->cap.limit };
	}
	request->version = BUDGET_VERSION;
	request->try = any_tenant_caps(arbiter->settings);
	tell_beyond(daemon, budget_request_fill(request, rows, n));
	return 0;
}

static void set_state(struct daemon *daemon, const char *state)
{
	if (strcmp(daemon->unit_caps->state, state) == 0)
		return;
	snprintf(daemon->unit_caps->state, sizeof(daemon->unit_caps->state), "%s", state);
	for (size_t i = 0; i < daemon->arbiter->n_leases; i++) {
		struct lease *lease = daemon->arbiter->leases[i];

		if (lease->cap.cgroup != 0) /* then no filter caps it */
			lease->cap.why_not = find_why_not(daemon, lease, false);
	}
	if (daemon->bus)
		bus_tell_queue_budgets(daemon->bus);
}

/* What the kernel enforces stays in force while no helper answers. */
static void fail(struct daemon *daemon, int r, const char *why)
{
	const struct budget_request *request = daemon->unit_caps->request;

	if (request->try && strcmp(daemon->unit_caps->state, why) != 0)
		log_warning("queues of units are not capped: %s", why);
	set_state(daemon, request->try ? why : UNIT_CAPS_UNUSED);
	daemon->unit_caps->fails = true;
	if (r == -EOPNOTSUPP) /* there was no helper before, or the kernel cannot */
		daemon->unit_caps->loaded = false;
}

static void set_repeated(struct daemon *daemon)
{
	daemon->unit_caps->repeated = daemon->unit_caps->loaded ||
				      daemon->unit_caps->request->n > 0;
}

static bool is_due(const struct daemon *daemon)
{
	bool late = daemon_now_usec() - daemon->unit_caps->usec >= REPEAT_USEC;

	if (daemon->unit_caps->pending)
		return false;
	if (daemon->unit_caps->outdated && !daemon->unit_caps->fails)
		return true;
	return late && (daemon->unit_caps->outdated || daemon->unit_caps->repeated);
}

void unit_caps_refresh(struct daemon *daemon)
{
	char why[256];
	int r;

	if (!daemon->unit_caps->asker || !is_due(daemon))
		return;
	daemon->unit_caps->outdated = false;
	daemon->unit_caps->usec = daemon_now_usec();
	r = write_request(daemon);
	if (r < 0)
		snprintf(why, sizeof(why), "%s", strerror(-r));
	else
		r = asker_ask(daemon->unit_caps->asker, daemon->unit_caps->request,
			      budget_request_size(daemon->unit_caps->request->n), -1, 0, why,
			      sizeof(why));
	daemon->unit_caps->pending = r >= 0;
	if (r < 0)
		fail(daemon, r, why);
	set_repeated(daemon);
}

/* ---- answers ----------------------------------------------------------------------------------- */

/* The first number after a start is from an earlier gpuarbd, or 0. */
static void count_refused(struct lease *lease, uint64_t refused)
{
	uint64_t more = refused > lease->cap.refused ? refused - lease->cap.refused : 0;

	if (lease->cap.counted && more > 0) {
		if (lease->cap.refusals == 0)
			log_notice("lease %" PRIu64 ": its unit has all queues that were granted: "
				   "the kernel refuses further ones",
				   lease->id);
		lease->cap.refusals += more;
	}
	lease->cap.counted = true;
	lease->cap.refused = refused;
}

static void take(struct daemon *daemon, const struct budget_answer *answer)
{
	const struct arbiter *arbiter = daemon->arbiter;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];
		const struct budget_state *state = budget_state_of(daemon->unit_caps->request,
								   answer, lease->cap.cgroup);

		if (lease->cap.cgroup == 0)
			continue;
		if (state && state->r == 0)
			count_refused(lease, state->refused);
		arbiter_set_enforced(daemon->arbiter, lease,
				     state && state->r == 0 &&
					     has_all_bound(lease, lease->cap.cgroup));
	}
}

static void on_done(void *userdata, const struct asker_request *, int r, const void *packet,
		    const char *why)
{
	const struct budget_answer *answer = packet;
	struct daemon *daemon = userdata;
	const struct budget_request *request = daemon->unit_caps->request;

	daemon->unit_caps->pending = false;
	if (answer) {
		take(daemon, answer);
		r = answer->r;
		why = answer->sentence;
	}
	if (r < 0) {
		fail(daemon, r, why);
	} else {
		daemon->unit_caps->fails = false;
		daemon->unit_caps->loaded = request->n > 0;
		set_state(daemon, request->try ? UNIT_CAPS_ENFORCED : UNIT_CAPS_UNUSED);
	}
	set_repeated(daemon);
	schedule_update(daemon);
}

/* ---- start and end ----------------------------------------------------------------------------- */

int unit_caps_start(struct daemon *daemon)
{
	daemon->unit_caps = calloc(1, sizeof(*daemon->unit_caps));
	if (!daemon->unit_caps)
		return -ENOMEM;
	set_state(daemon, UNIT_CAPS_UNUSED);
	if (hw_is_simulated(daemon->hw))
		return 0; /* nothing creates queues on simulated GPUs */
	daemon->unit_caps->request = calloc(1, sizeof(*daemon->unit_caps->request));
	if (!daemon->unit_caps->request)
		return -ENOMEM;
	/* An earlier gpuarbd may have left budgets. */
	daemon->unit_caps->loaded = daemon->unit_caps->outdated = true;
	return asker_new(daemon->event, &budget_helper, daemon->options->budget, ANSWER_USEC,
			 on_done, NULL, daemon, &daemon->unit_caps->asker);
}

bool unit_caps_repeats(const struct daemon *daemon)
{
	return daemon->unit_caps->repeated;
}

void unit_caps_reload(struct daemon *daemon)
{
	daemon->unit_caps->outdated = true;
}

const char *unit_caps_state(void *userdata)
{
	const struct daemon *daemon = userdata;

	return daemon->unit_caps->state;
}

void unit_caps_remove(struct daemon *daemon)
{
	const struct budget_request none = { .version = BUDGET_VERSION };
	char why[256];

	if (!daemon->unit_caps || !daemon->unit_caps->asker || !daemon->unit_caps->loaded)
		return;
	if (asker_tell(daemon->unit_caps->asker, &none, budget_request_size(0), why, sizeof(why)) <
	    0)
		log_warning("queue budgets of units stay until the next gpuarbd starts: %s", why);
}

void unit_caps_stop(struct daemon *daemon)
{
	if (!daemon->unit_caps)
		return;
	asker_free(daemon->unit_caps->asker);
	free(daemon->unit_caps->request);
	free(daemon->unit_caps);
	daemon->unit_caps = NULL;
}
