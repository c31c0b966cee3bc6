/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks of the bus, the daemon and its configuration, of the systemd unit, of which systemd or else
 * its file tells the settings, and of the files for the bus and for polkit. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor/doctor.h"
#include "client/doctor/service.h"
#include "client/options/options.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "core/policy/caller.h"
#include "core/policy/settings.h"

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

/* A daemon that is too old to say does not limit units. */
static void judge_queue_budgets(struct doctor *doctor, const char *state)
{
	if (!*state || strcmp(state, "unused") == 0)
		return;
	if (strcmp(state, "enforced") == 0) {
		report(doctor, MARK_OK, "the kernel limits the queues of units");
		means(doctor,
		      "A unit whose processes all belong to one realtime or guaranteed lease gets "
		      "no queue beyond the grant.");
		return;
	}
	report(doctor, MARK_NOTE, "the kernel does not limit the queues of units: %s", state);
	means(doctor,
	      "A tenant has realtime or guaranteed leases, or cap = yes: their programs can "
	      "have more queues than they were granted.");
	advise(doctor,
	       "Mend what the sentence names, start these programs with gpuarbctl run --cap, or set "
	       "cap = no for the tenant.");
}

static void judge_uncapped(struct doctor *doctor)
{
	const struct gpuarb_lease_info *leases;
	size_t n = gpuarb_view_leases(doctor->view, &leases);

	for (size_t i = 0; i < n; i++) {
		const char *uncapped = gpuarb_view_uncapped(doctor->view, i);

		if (!*uncapped)
			continue;
		report(doctor, MARK_NOTE, "lease %" PRIu64 " (%s) is not capped: %s", leases[i].id,
		       leases[i].name, uncapped);
		means(doctor, "Its programs can have more queues than they were granted.");
		advise(doctor, "Because %s.", uncapped_text(uncapped));
	}
}

#define START_USEC UINT64_C(5000000)

/* What was measured on the GPUs of this machine. */
static void judge_calibrations(struct doctor *doctor)
{
	const struct gpuarb_gpu *gpus;
	size_t n = gpuarb_view_gpus(doctor->view, &gpus);

	for (size_t i = 0; i < n; i++) {
		const struct gpuarb_calibration *c = gpuarb_view_calibration(doctor->view, i);

		if (c && *c->problem) {
			report(doctor, MARK_NOTE, "%s: its calibration is not used: %s",
			       gpus[i].name, c->problem);
			means(doctor, "gpuarbd takes law and margins from a table of targets. If "
				      "the report says that masks were not honoured, leases on "
				      "this GPU are not isolated.");
			advise(doctor, "Run gpuarbctl calibrate again, and install its report: see "
				       "gpuarbctl-calibrate(1).");
		} else if (c && *c->date) {
			report(doctor, MARK_OK, "%s: law = %s (calibrated %s)", gpus[i].name,
			       gpus[i].law, c->date);
			means(doctor, c->n_slowdowns > 0
					      ? "Law and margins are those of this card."
					      : "The law is that of this card, margins are not: no "
						"neighbours were measured.");
		}
	}
}

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
	r = gpuarb_start(doctor->gpuarb, START_USEC);
	if (r != -ETIMEDOUT)
		r = gpuarb_look(doctor->gpuarb, &doctor->view);
	if (r < 0)
		judge_silence(doctor, r, gpuarb_last_error(doctor->gpuarb));
	else
		judge_daemon(doctor, gpuarb_view_version(doctor->view),
			     gpuarb_view_gpus(doctor->view, &gpus));
	judge_queue_budgets(doctor, gpuarb_view_queue_budgets(doctor->view));
	judge_uncapped(doctor);
	judge_calibrations(doctor);
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
	       tenant->name, class_names[tenant->class]);
	means(doctor, "This is by user and groups. A tenant that matches a unit, slice or program "
		      "can come first.");
}

void check_policy(struct doctor *doctor)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	const char *address = getenv("GPUARB_BUS_ADDRESS");

	if (address) {
		report(doctor, MARK_NOTE,
		       "these are the files of this machine, not of the gpuarbd at %s", address);
		means(doctor, "Another policy can be in force there.");
		advise(doctor, "Run gpuarbctl config check DIRECTORY with the directory of its "
			       "--tenants.");
	}
	if (service_load_config(&doctor->config, &doctor->settings, &diagnostics) > 0) {
		report(doctor, MARK_OK, CONFIG_NONE);
		means(doctor, "The defaults apply: every user may reserve best effort leases.");
	}
	report_diagnostics(doctor, &diagnostics);
	if (doctor->settings)
		find_tenant(doctor);
}

/* ---- the systemd unit -------------------------------------------------------------------- */

#define UNIT "gpuarbd.service"
#define USER "gpuarb"

/* Descriptors that gpuarbd needs besides those in the store: its own, and those on the way to the
 * store. tests/lint/check-limits.sh compares the number with the daemon's. */
#define FDS_BESIDE_STORE 1280U

static int read_file(const struct doctor *doctor, char ret[static DOCTOR_PATH],
		     struct service_unit *unit)
{
	FILE *file = doctor_find_unit(doctor, UNIT, ret) ? fopen(ret, "re") : NULL;

	if (!file)
		return -ENOENT;
	service_read_unit(file, unit);
	fclose(file);
	return 0;
}

static void not_installed(struct doctor *doctor)
{
	report(doctor, MARK_NOTE, "the unit " UNIT " is not installed");
	means(doctor,
	      "No service manager starts gpuarbd or keeps the descriptors of leases across a "
	      "restart: leases end with gpuarbd.");
	advise(doctor, "Install gpuarb as a package or with meson install.");
}

static void judge_state(struct doctor *doctor, const struct service_unit *unit)
{
	if (strcmp(unit->active, "active") == 0 || strcmp(unit->active, "reloading") == 0) {
		report(doctor, MARK_OK, UNIT " is %s", unit->active);
		means(doctor, "Leases survive a restart of gpuarbd.");
	} else if (strcmp(unit->sub, "auto-restart") == 0) {
		report(doctor, MARK_PROBLEM, UNIT " does not start: it fails again and again");
		means(doctor, "No lease can be reserved.");
		advise(doctor,
		       "Correct what gpuarbctl config check or journalctl -u gpuarbd shows; "
		       "systemd then starts it.");
	} else if (strcmp(unit->active, "failed") == 0) {
		report(doctor, MARK_PROBLEM, UNIT " has failed");
		means(doctor, "systemd does not start gpuarbd again.");
		advise(doctor, "Read journalctl -u gpuarbd; then run systemctl restart gpuarbd.");
	} else {
		report(doctor, MARK_NOTE, UNIT " is %s", unit->active);
		means(doctor,
		      "The bus starts it with the first request. If a gpuarbd answers already, "
		      "systemd has not started it.");
		advise(doctor, "To start it at boot, run systemctl enable --now gpuarbd.");
	}
}

/* A unit of an older version, or of an administrator, can have another user. */
static void judge_user(struct doctor *doctor, const struct service_unit *unit)
{
	if (!unit->has_user || strcmp(unit->user, USER) == 0)
		return;
	report(doctor, MARK_PROBLEM, UNIT " runs as %s, not as " USER,
	       unit->user[0] ? unit->user : "root");
	means(doctor, "The bus allows only user " USER " to own the name of gpuarbd, so it cannot "
		      "start.");
	advise(doctor,
	       "systemctl cat gpuarbd shows the file with the user. Run systemctl edit gpuarbd "
	       "and set User=" USER "; then run systemctl restart gpuarbd.");
}

static void too_small(struct doctor *doctor, const char *limit, uint64_t value, uint64_t least,
		      const char *meaning)
{
	report(doctor, MARK_PROBLEM, "%s=%" PRIu64 " of " UNIT " is less than %" PRIu64, limit,
	       value, least);
	means(doctor, "%s", meaning);
	advise(doctor,
	       "Run systemctl edit gpuarbd and set %s=%" PRIu64 "; then run systemctl "
	       "daemon-reload and systemctl restart gpuarbd. See RESTART in gpuarbd(8).",
	       limit, least);
}

static void judge_limits(struct doctor *doctor, const struct service_unit *unit)
{
	uint64_t least = doctor->settings ? doctor->settings->max_holders : 1;

	if (!unit->has_store || unit->store < least)
		too_small(doctor, "FileDescriptorStoreMax", unit->has_store ? unit->store : 0,
			  least,
			  "gpuarbd refuses holders and bound processes beyond it, although "
			  "max-holders allows them. Without a store leases end with gpuarbd.");
	if (unit->has_store && unit->has_files && unit->store < UINT64_MAX - FDS_BESIDE_STORE &&
	    unit->files < unit->store + FDS_BESIDE_STORE)
		too_small(doctor, "LimitNOFILE", unit->files, unit->store + FDS_BESIDE_STORE,
			  "With a full store the next gpuarbd exceeds the limit and cannot start.");
}

void check_unit(struct doctor *doctor)
{
	bool booted = doctor_find(doctor, "/run/systemd/system") == 0;
	char path[DOCTOR_PATH];
	struct service_unit unit = { 0 };

	if (booted && service_ask_systemd(&unit) && unit.load[0]) {
		if (strcmp(unit.load, "not-found") == 0) {
			not_installed(doctor);
			return;
		}
		if (strcmp(unit.load, "loaded") != 0) {
			report(doctor, MARK_PROBLEM, "systemd reports that " UNIT " is %s",
			       unit.load);
			means(doctor, "systemd cannot start it.");
			advise(doctor,
			       "Run systemctl status gpuarbd; if the unit is masked, run systemctl "
			       "unmask gpuarbd.");
			return;
		}
		judge_state(doctor, &unit);
		judge_user(doctor, &unit);
		judge_limits(doctor, &unit);
		return;
	}

	unit = (struct service_unit){ 0 };
	if (read_file(doctor, path, &unit) < 0) {
		not_installed(doctor);
		return;
	}
	report(doctor, MARK_NOTE, "%s exists, but systemd does not answer", path);
	means(doctor,
	      "gpuarbctl cannot tell whether it runs, and checks the limits of the file only.");
	advise(doctor, "In a container, run gpuarbctl doctor on the host.");
	judge_user(doctor, &unit);
	judge_limits(doctor, &unit);
}

/* ---- files for the bus and polkit --------------------------------------------------------- */

static const struct file {
	const char *name;
	const char *places[5]; /* directories, NULL after the last */
	bool needed;           /* gpuarbd cannot run on the system bus without it */
	const char *have, *lack;
} files[] = {
	{ "org.gpuarb.Arbiter1.conf",
	  { "/usr/share/dbus-1/system.d", "/etc/dbus-1/system.d" },
	  true,
	  "The bus allows gpuarbd to own its name, and every user to talk to it.",
	  "The bus allows no process to own the name of gpuarbd, so it cannot run there." },
	{ "org.gpuarb.Arbiter1.service",
	  { "/usr/share/dbus-1/system-services", "/usr/local/share/dbus-1/system-services",
	    "/etc/dbus-1/system-services", "/lib/dbus-1/system-services" },
	  false,
	  "The bus starts gpuarbd with the first request.",
	  "The bus does not start gpuarbd: systemd must start it at boot." },
	{ "org.gpuarb.Arbiter1.policy",
	  { "/usr/share/polkit-1/actions", "/usr/local/share/polkit-1/actions",
	    "/etc/polkit-1/actions" },
	  false,
	  "polkit decides which users are administrators of gpuarb; by default those who can "
	  "authenticate as one.",
	  "polkit does not know the action org.gpuarb.Arbiter1.manage: only root and the user of "
	  "gpuarbd can drain, reload, or end leases of other users." },
};

static bool find_file(const struct doctor *doctor, const struct file *file, char *path, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(file->places) && file->places[i]; i++) {
		snprintf(path, size, "%s/%s", file->places[i], file->name);
		if (doctor_find(doctor, path) == 0)
			return true;
	}
	return false;
}

void check_installed(struct doctor *doctor)
{
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct file *file = &files[i];

		if (find_file(doctor, file, path, sizeof(path))) {
			report(doctor, MARK_OK, "%s", path);
			means(doctor, "%s", file->have);
			continue;
		}
		/* A daemon that answered does not need the file. */
		report(doctor, file->needed && !doctor->view ? MARK_PROBLEM : MARK_NOTE,
		       "%s is not in %s or a similar directory", file->name, file->places[0]);
		means(doctor, "%s", file->lack);
		advise(doctor, "Install gpuarb as a package or with meson install and "
			       "--prefix=/usr.");
	}
}
