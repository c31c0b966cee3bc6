/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The configuration, read as gpuarbd does, and who this user is in it. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/doctor.h"
#include "client/print.h"
#include "core/class.h"
#include "core/tenant.h"

static void tell_complaints(struct doctor *doctor, const struct notes *notes)
{
	for (size_t i = 0; i < notes->n; i++) {
		const struct note *note = &notes->list[i];

		say(doctor, note->error ? MARK_PROBLEM : MARK_NOTE, "%s", note->text);
		if (note->error)
			means(doctor, "gpuarbd refuses the configuration: it does not start with "
				      "it, and goes on with the one before at a reload.");
		else
			means(doctor, "gpuarbd takes it like that.");
		advise(doctor, "Correct it; `gpuarbctl config check`, then `gpuarbctl reload`.");
	}
}

/* Who can put a file into it makes policy. */
static void judge_directory(struct doctor *doctor, const char *path)
{
	char full[DOCTOR_PATH], user[PRINT_USER];
	struct stat st;

	if (stat(doctor_path(doctor, full, "%s", path), &st) < 0)
		return;
	if ((st.st_mode & 022) == 0 && (st.st_uid == 0 || st.st_uid == geteuid()))
		return;

	print_user(st.st_uid, user);
	say(doctor, MARK_PROBLEM, "%s is %s's, with mode %03o", path, user,
	    (unsigned)st.st_mode & 07777);
	means(doctor, "Others than root can put files into it, take some out and so make policy.");
	advise(doctor, "chown root: %s; chmod 0755 %s", path, path);
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
	struct verdict verdict = {0};
	struct caller caller;
	char user[PRINT_USER];

	who_am_i(&caller);
	print_user(caller.uid, user);
	/* The last one, "*", is everybody's. */
	if (tenant_find(doctor->settings, &caller, "", &tenant, &verdict) < 0)
		return;
	say(doctor, MARK_OK, "%zu tenant%s; %s is tenant %s, of class %s",
	    doctor->settings->n_tenants, print_s(doctor->settings->n_tenants), user, tenant->name,
	    class_name(tenant->class));
	means(doctor, "That is by user and groups: a tenant that names a unit, slice or program "
		      "may come first.");
}

void check_policy(struct doctor *doctor)
{
	_cleanup_(notes_done) struct notes notes = {0};

	(void)config_load(&doctor->config, &doctor->settings, &notes);
	tell_complaints(doctor, &notes);
	judge_directory(doctor, "/etc/gpuarb");
	judge_directory(doctor, "/etc/gpuarb/tenants.d");
	if (doctor->settings)
		find_tenant(doctor);
}
