/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The configuration, read as gpuarbd does, and who this user is in it. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/doctor/doctor.h"
#include "client/output/print.h"
#include "client/doctor/service-user.h"
#include "core/policy/class.h"
#include "core/policy/tenant.h"

static void tell_complaints(struct doctor *doctor, const struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < diagnostics->n; i++) {
		const struct diagnostic *diagnostic = &diagnostics->list[i];

		say(doctor, diagnostic->error ? MARK_PROBLEM : MARK_NOTE, "%s", diagnostic->text);
		if (diagnostic->error)
			means(doctor, "gpuarbd refuses the configuration: it does not start with "
				      "it, and goes on with the one before at a reload.");
		else
			means(doctor, "gpuarbd takes it like that.");
		advise(doctor, "%s; `gpuarbctl config check`, then `gpuarbctl reload`.",
		       diagnostic->error ? "Correct it" : "If that is not meant, correct it");
	}
}

static void who_am_i(struct caller *ret)
{
	int n = getgroups(0, NULL);
	_cleanup_(freep) gid_t *groups = calloc(n > 0 ? (size_t)n : 1, sizeof(*groups));

	*ret = (struct caller){ .uid = geteuid() };
	ret->groups[ret->n_groups++] = getegid();
	n = groups && n > 0 ? getgroups(n, groups) : 0;
	for (int i = 0; i < n && ret->n_groups < CALLER_GROUPS; i++)
		ret->groups[ret->n_groups++] = groups[i];
}

/* By user and groups alone: a unit, slice or executable may make it another. */
static void find_tenant(struct doctor *doctor)
{
	const struct tenant *tenant;
	struct result result = { 0 };
	struct caller caller;
	char user[PRINT_USER];

	who_am_i(&caller);
	print_user(caller.uid, user);
	/* The last one, "*", is everybody's. */
	if (tenant_find(doctor->settings, &caller, "", &tenant, &result) < 0)
		return;
	say(doctor, MARK_OK, "%zu tenant%s; %s is tenant %s, of class %s",
	    doctor->settings->n_tenants, print_s(doctor->settings->n_tenants), user, tenant->name,
	    class_name(tenant->class));
	means(doctor, "That is by user and groups: a tenant that names a unit, slice or program "
		      "may come first.");
}

void check_policy(struct doctor *doctor)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };

	if (service_load_config(&doctor->config, &doctor->settings, &diagnostics) > 0) {
		say(doctor, MARK_OK, CONFIG_NONE);
		means(doctor, "That is fine, and no policy.");
	}
	tell_complaints(doctor, &diagnostics);
	if (doctor->settings)
		find_tenant(doctor);
}
