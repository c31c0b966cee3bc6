/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor/doctor.h"
#include "client/doctor/service-user.h"
#include "client/output/print.h"
#include "core/policy/class.h"
#include "core/policy/tenant.h"

/* Checks of the bus, the daemon and its configuration. */

void check_bus(struct doctor *doctor)
{
	const char *address = getenv("GPUARB_BUS_ADDRESS");
	int r = gpuarb_open(&doctor->gpuarb);

	if (r < 0) {
		report(doctor, MARK_PROBLEM, "%s", gpuarb_last_error(NULL));
		means(doctor, "No program can reach gpuarbd.");
		advise(doctor,
		       address ? "Correct GPUARB_BUS_ADDRESS, or unset it to use the system bus."
			       : "Run systemctl start dbus. In a container, mount "
				 "/run/dbus/system_bus_socket.");
		return;
	}
	if (!address) {
		report(doctor, MARK_OK, "the system bus answers");
		means(doctor, "Programs can reach gpuarbd.");
		return;
	}
	report(doctor, MARK_NOTE, "GPUARB_BUS_ADDRESS is set: the bus at %s answers", address);
	means(doctor, "gpuarbctl uses this bus instead of the system bus, and does not show leases "
		      "of a gpuarbd on the system bus.");
	advise(doctor, "Unless you need it: unset GPUARB_BUS_ADDRESS");
}

void judge_silence(struct doctor *doctor, int error, const char *sentence)
{
	report(doctor, MARK_PROBLEM, "%s", *sentence ? sentence : strerror(-error));
	switch (-error) {
	case ECONNREFUSED:
	case ECONNRESET:
	case ETIMEDOUT:
		means(doctor, "gpuarbd does not run and the bus cannot start it, or gpuarbd hangs: "
			      "no lease can be reserved.");
		advise(doctor,
		       "Run systemctl start gpuarbd. If that fails, read journalctl -u gpuarbd.");
		break;
	case EACCES:
		means(doctor, "The policy of the bus does not allow this user to talk to gpuarbd.");
		advise(doctor, "Install org.gpuarb.Arbiter1.conf where the bus finds it: see the "
			       "check \"installed\".");
		break;
	default:
		means(doctor,
		      "The answer is invalid for gpuarbctl %s: gpuarbd may have another version.",
		      doctor->version);
		advise(doctor, "Install gpuarbctl, libgpuarb and gpuarbd of one version; then run "
			       "systemctl restart gpuarbd. Leases stay.");
	}
}

static void judge_version(struct doctor *doctor, const char *version)
{
	if (strcmp(version, doctor->version) == 0) {
		report(doctor, MARK_OK, "gpuarbd %s answers", version);
		means(doctor, "gpuarbctl has the same version.");
		return;
	}
	report(doctor, MARK_NOTE, "gpuarbd %s answers, gpuarbctl is %s",
	       *version ? version : "of unknown version", doctor->version);
	means(doctor,
	      "The versions are compatible. The older one refuses or does not show what only "
	      "the newer one supports.");
	advise(doctor,
	       "After an upgrade, run systemctl restart gpuarbd. Leases stay. Running programs "
	       "keep the libgpuarb with which they were started.");
}

/* gpuarbd has more GPUs than the driver if it simulates GPUs. */
static void judge_gpus(struct doctor *doctor, size_t n)
{
	if (n >= doctor->n_gpus)
		return;
	report(doctor, MARK_PROBLEM, "gpuarbd has %zu GPU%s, but KFD has %zu", n, print_s(n),
	       doctor->n_gpus);
	means(doctor, "The missing GPUs cannot be leased.");
	advise(doctor, "Read journalctl -u gpuarbd. A device policy in its unit can hide GPUs; "
		       "gpuarbd may have been started with --simulate.");
}

void judge_daemon(struct doctor *doctor, const char *version, size_t n_gpus)
{
	judge_version(doctor, version);
	judge_gpus(doctor, n_gpus);
}

/* The call makes the bus start gpuarbd, if it can. */
void check_daemon(struct doctor *doctor)
{
	const struct gpuarb_gpu *gpus;
	int r;

	if (!doctor->gpuarb) {
		report(doctor, MARK_PROBLEM, "cannot reach gpuarbd without a bus");
		means(doctor, "No lease can be reserved.");
		advise(doctor, "See the check \"bus\".");
		return;
	}
	r = gpuarb_look(doctor->gpuarb, &doctor->view);
	if (r < 0)
		judge_silence(doctor, r, gpuarb_last_error(doctor->gpuarb));
	else
		judge_daemon(doctor, gpuarb_view_version(doctor->view),
			     gpuarb_view_gpus(doctor->view, &gpus));
}

static void report_diagnostics(struct doctor *doctor, const struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < diagnostics->n; i++) {
		const struct diagnostic *diagnostic = &diagnostics->list[i];

		report(doctor, diagnostic->error ? MARK_PROBLEM : MARK_NOTE, "%s",
		       diagnostic->text);
		if (diagnostic->error)
			means(doctor,
			      "gpuarbd rejects the configuration: it does not start with it, and "
			      "a reload keeps the previous one.");
		else
			means(doctor, "gpuarbd accepts it.");
		advise(doctor, "%s; then run gpuarbctl config check and gpuarbctl reload.",
		       diagnostic->error ? "Correct it" : "If it is not intended, correct it");
	}
}

static void find_caller(struct caller *ret)
{
	int n = getgroups(0, NULL);
	_cleanup_(freep) gid_t *groups = calloc(n > 0 ? (size_t)n : 1, sizeof(*groups));

	*ret = (struct caller){ .uid = geteuid() };
	ret->groups[ret->n_groups++] = getegid();
	n = groups && n > 0 ? getgroups(n, groups) : 0;
	for (int i = 0; i < n && ret->n_groups < CALLER_GROUPS; i++)
		ret->groups[ret->n_groups++] = groups[i];
}

/* Matches user and groups only: the unit, slice or executable of a program is not known here. */
static void find_tenant(struct doctor *doctor)
{
	const struct tenant *tenant;
	struct result result = { 0 };
	struct caller caller;
	char user[PRINT_USER];

	find_caller(&caller);
	print_user(caller.uid, user);
	/* The last tenant, "*", matches every caller. */
	if (tenant_find(doctor->settings, &caller, "", &tenant, &result) < 0)
		return;
	report(doctor, MARK_OK, "%zu tenant%s; user %s is tenant %s with class %s",
	       doctor->settings->n_tenants, print_s(doctor->settings->n_tenants), user,
	       tenant->name, class_name(tenant->class));
	means(doctor, "This is by user and groups. A tenant that matches a unit, slice or program "
		      "can come first.");
}

void check_policy(struct doctor *doctor)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };

	if (service_load_config(&doctor->config, &doctor->settings, &diagnostics) > 0) {
		report(doctor, MARK_OK, CONFIG_NONE);
		means(doctor, "The defaults apply: every user may reserve best effort leases.");
	}
	report_diagnostics(doctor, &diagnostics);
	if (doctor->settings)
		find_tenant(doctor);
}
