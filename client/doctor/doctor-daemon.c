/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor/doctor.h"
#include "client/doctor/service-user.h"
#include "client/output/print.h"
#include "core/policy/class.h"
#include "core/policy/tenant.h"

/* The bus, and who answers there. */

void check_bus(struct doctor *doctor)
{
	const char *address = getenv("GPUARB_BUS_ADDRESS");
	int r = gpuarb_open(&doctor->gpuarb);

	if (r < 0) {
		say(doctor, MARK_PROBLEM, "%s", gpuarb_last_error(NULL));
		means(doctor, "Nobody can ask gpuarbd for anything.");
		advise(doctor, address ? "Correct GPUARB_BUS_ADDRESS, or unset it for the system "
					 "bus."
				       : "systemctl start dbus. In a container: mount "
					 "/run/dbus/system_bus_socket.");
		return;
	}
	if (!address) {
		say(doctor, MARK_OK, "the system bus is there");
		means(doctor, "gpuarbd can be reached.");
		return;
	}
	say(doctor, MARK_NOTE, "GPUARB_BUS_ADDRESS: the bus at %s is there", address);
	means(doctor, "It is used instead of the system bus, and leases of the gpuarbd there are "
		      "not known here.");
	advise(doctor, "Unless that is wanted: unset GPUARB_BUS_ADDRESS");
}

void judge_silence(struct doctor *doctor, int error, const char *sentence)
{
	say(doctor, MARK_PROBLEM, "%s", *sentence ? sentence : strerror(-error));
	switch (-error) {
	case ECONNREFUSED:
	case ECONNRESET:
	case ETIMEDOUT:
		means(doctor, "gpuarbd does not run and the bus cannot start it, or it hangs: "
			      "there are no leases to be had.");
		advise(doctor, "systemctl start gpuarbd; why it does not: journalctl -u gpuarbd");
		break;
	case EACCES:
		means(doctor, "The policy of the bus does not let this user talk to gpuarbd.");
		advise(doctor, "Install org.gpuarb.Arbiter1.conf where the bus finds it, see "
			       "installed.");
		break;
	default:
		means(doctor,
		      "Something answers that this program does not understand: a gpuarbd "
		      "of another version, this is %s.",
		      doctor->version);
		advise(doctor, "Install gpuarbctl, libgpuarb and gpuarbd of one version; then "
			       "systemctl restart gpuarbd. Leases stay.");
	}
}

static void judge_version(struct doctor *doctor, const char *version)
{
	if (strcmp(version, doctor->version) == 0) {
		say(doctor, MARK_OK, "gpuarbd %s answers", version);
		means(doctor, "It is of the same version as this program.");
		return;
	}
	say(doctor, MARK_NOTE, "gpuarbd %s answers, and this is gpuarbctl %s",
	    *version ? version : "of an unknown version", doctor->version);
	means(doctor, "They understand each other. What only the newer one knows is refused by the "
		      "older, with a sentence, or not shown.");
	advise(doctor, "After an upgrade: systemctl restart gpuarbd. Leases stay. Programs have "
		       "the libgpuarb they were started with.");
}

/* Simulated GPUs are more than the driver's, without anything being wrong. */
static void judge_gpus(struct doctor *doctor, size_t n)
{
	if (n >= doctor->n_gpus)
		return;
	say(doctor, MARK_PROBLEM, "gpuarbd has %zu GPU%s, and KFD shows %zu", n, print_s(n),
	    doctor->n_gpus);
	means(doctor, "There are no leases on the others.");
	advise(doctor, "See why: journalctl -u gpuarbd. A device policy in its unit hides GPUs "
		       "from it, too; it may have been started with --simulate.");
}

void judge_daemon(struct doctor *doctor, const char *version, size_t n_gpus)
{
	judge_version(doctor, version);
	judge_gpus(doctor, n_gpus);
}

/* Asking starts it where the bus can. */
void check_daemon(struct doctor *doctor)
{
	const struct gpuarb_gpu *gpus;
	int r;

	if (!doctor->gpuarb) {
		say(doctor, MARK_PROBLEM, "gpuarbd cannot be asked without a bus");
		means(doctor, "There are no leases.");
		advise(doctor, "See bus.");
		return;
	}
	r = gpuarb_look(doctor->gpuarb, &doctor->view);
	if (r < 0)
		judge_silence(doctor, r, gpuarb_last_error(doctor->gpuarb));
	else
		judge_daemon(doctor, gpuarb_view_version(doctor->view),
			     gpuarb_view_gpus(doctor->view, &gpus));
}

/* The configuration, read as gpuarbd does, and who this user is in it. */

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
