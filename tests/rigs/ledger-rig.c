/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ledger-rig.h"

#include "ledger-check.h"

struct arbiter *arbiter_of(const struct gpu_info *gpus, size_t n)
{
	struct settings *settings = NULL;
	struct arbiter *arbiter = NULL;

	CHECK(settings_new(&settings) == 0);
	CHECK(arbiter_new(settings, gpus, n, 1, &arbiter) == 0);
	return arbiter;
}

struct tenant *add_tenant(struct arbiter *arbiter, const char *name, uid_t uid,
			  enum lease_class lease_class)
{
	struct settings *s = arbiter->settings;
	struct tenant *tenants = calloc(s->n_tenants + 1, sizeof(*tenants));

	memcpy(&tenants[1], s->tenants, s->n_tenants * sizeof(*tenants));
	free(s->tenants);
	s->tenants = tenants;
	s->n_tenants++;
	tenants[0].name = strdup(name);
	tenants[0].users.ids = malloc(sizeof(uid_t));
	tenants[0].users.ids[0] = uid;
	tenants[0].users.n = 1;
	tenants[0].class = lease_class;
	tenants[0].priority = PRIORITY_NORMAL;
	tenants[0].enforce = ENFORCE_STEP_REPORT;
	return &tenants[0];
}

struct request request_for(unsigned cus)
{
	struct request request;

	memset(&request, 0, sizeof(request));
	request.n_wants = 1;
	request.class = -1;
	want_init(&request.wants[0]);
	request.wants[0].cus = cus;
	return request;
}

struct caller caller_of(uid_t uid)
{
	return (struct caller){ .uid = uid, .pid = 1000 + (pid_t)uid };
}

struct lease *reserve(struct arbiter *arbiter, uid_t uid, const struct request *request,
		      struct result *result)
{
	struct caller caller = caller_of(uid);
	struct lease *lease = NULL;

	result_done(result);
	if (arbiter_plan(arbiter, &caller, request, &lease, result) < 0) {
		CHECK(result->kind != RESULT_OK && result->sentence[0]);
		return NULL;
	}
	lease = arbiter_commit(arbiter, lease);
	arbiter_add_holder(arbiter, lease->id);
	check_promises(arbiter);
	return lease;
}

void release(struct arbiter *arbiter, uint64_t id)
{
	struct lease *lease;
	unsigned touched;

	arbiter_holder_gone(arbiter, id);
	CHECK(arbiter_observe(arbiter, NULL, 0) == 0);
	while ((lease = ledger_take_touched(arbiter, &touched)))
		if (touched & TOUCH_REMOVED)
			lease_free(lease);
}

int set_active(struct arbiter *arbiter, const struct caller *caller, uint64_t id, bool active,
	       struct result *result)
{
	struct lease *proposal;
	int r = arbiter_plan_activate(arbiter, caller, id, active, &proposal, result);

	if (r >= 0)
		arbiter_commit(arbiter, proposal);
	return r;
}

const char *reason_of(const struct arbiter *arbiter, const struct lease *lease)
{
	static char reason[REQUEST_TEXT];

	return arbiter_reason(arbiter, lease, reason);
}
