/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor.h"

#include <sys/utsname.h>

#include "client/output/anonymous.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/doctor/service.h"
#include "client/verbs/verb.h"

/* In the order in which they use the findings of each other. */
static const struct check checks[] = {
	{ "kernel", check_kernel },
	{ "permissions", check_permissions },
	{ "scheduler", check_scheduler },
	{ "slots", check_slots },
	{ "isolation", check_isolation },
	{ "memory", check_memory },
	{ "debugfs", check_debugfs },
	{ "hip", check_hip },
	{ "environment", check_environment },
	{ "bus", check_bus },
	{ "daemon", check_daemon },
	{ "policy", check_policy },
	{ "unit", check_unit },
	{ "installed", check_installed },
	{ "helpers", check_helpers },
};

static const char *const marks[] = {
	[MARK_OK] = "ok",
	[MARK_NOTE] = "note",
	[MARK_PROBLEM] = "problem",
};

static struct json_object *json_findings(struct json_object *in, const struct doctor *doctor)
{
	struct json_object *list = json_list(in, "findings");

	JSON_ADD_ROWS(list, row, at < doctor->n_findings ? &doctor->findings[at] : NULL,
		      ("check", row->check), ("result", marks[row->mark]), ("found", row->found),
		      ("means", row->means), ("do", row->advice));
	return list;
}

/* What a report of a problem needs, without names. */
static void print_report(const struct doctor *doctor)
{
	struct json_object *map = json_map(NULL, NULL), *gpus, *leases;
	const struct gpuarb_lease_info *lease;
	const struct gpuarb_gpu *gpu;
	struct utsname machine;

	json_text(map, "version", GPUARB_VERSION);
	if (uname(&machine) == 0)
		JSON_FIELDS(map, ("kernel", machine.release), ("architecture", machine.machine));
	json_findings(map, doctor);
	gpus = json_list(map, "gpus");
	leases = json_list(map, "leases");
	for (size_t i = 0; doctor->view && i < gpuarb_view_gpus(doctor->view, &gpu); i++)
		json_gpu(gpus, doctor->view, i);
	for (size_t i = 0; doctor->view && i < gpuarb_view_leases(doctor->view, &lease); i++)
		json_lease(leases, doctor->view, i);
	anonymise(map);
	json_print(stdout, map);
}

static void print_finding(const struct command *command, const struct finding *finding)
{
	bool alarm = command->colour && finding->mark == MARK_PROBLEM;

	fputs(alarm ? COLOUR_ALARM : "", stdout);
	print_line(stdout, "%-8s %s: %s", marks[finding->mark], finding->check, finding->found);
	fputs(alarm ? COLOUR_NONE : "", stdout);
	if (command->no_legend)
		return;
	print_line(stdout, "         means: %s", finding->means);
	if (finding->advice)
		print_line(stdout, "         do: %s", finding->advice);
}

static void print_text(const struct command *command, const struct doctor *doctor)
{
	size_t counts[ARRAY_SIZE(marks)] = { 0 };

	for (size_t i = 0; i < doctor->n_findings; i++) {
		print_finding(command, &doctor->findings[i]);
		counts[doctor->findings[i].mark]++;
	}
	if (!command->no_legend)
		print_line(stdout, "%zu ok, %zu note%s, %zu problem%s", counts[MARK_OK],
			   counts[MARK_NOTE], print_s(counts[MARK_NOTE]), counts[MARK_PROBLEM],
			   print_s(counts[MARK_PROBLEM]));
}

int run_doctor(struct command *command)
{
	_cleanup_(doctor_done) struct doctor doctor = {
		.root = "",
		.version = GPUARB_VERSION,
		.config.trust = service_trust(),
	};

	doctor_read_gpus(&doctor);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		doctor_run(&doctor, &checks[i]);

	if (command->report)
		print_report(&doctor);
	else if (command->json)
		json_print(stdout, json_findings(NULL, &doctor));
	else
		print_text(command, &doctor);
	return doctor_has_problems(&doctor) ? EXIT_FAILED : EXIT_OK;
}
