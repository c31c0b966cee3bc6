/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks of doctor: the helpers of gpuarbd. */

#include "check.h"
#include "doctor-rig.h"

#define UNITS "usr/lib/systemd/system/"
#define PROGRAM "usr/libexec/gpuarb-probe"

static const char names[][8] = { "mqds", "hqds", "userqs", "fdinfo", "probe", "enforce", "budget" };

/* A machine with the units of all helpers, and the program of one. */
static void new_with_units(struct patient *patient)
{
	char path[128];

	patient_new(patient);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), UNITS "gpuarb-%s.socket", names[i]);
		patient_put(patient, path, "[Socket]\n");
		snprintf(path, sizeof(path), UNITS "gpuarb-%s%s.service", names[i],
			 strcmp(names[i], "enforce") == 0 ? "" : "@");
		patient_put(patient, path,
			    strcmp(names[i], "probe") == 0
				    ? "[Service]\nExecStart=/" PROGRAM " --quick\n"
				    : "[Service]\nExecStart=cat /sys/kernel/debug/kfd/mqds\n");
	}
	patient_put(patient, PROGRAM, "");
	CHECK(chmod(scratch_at(&patient->scratch, PROGRAM), 0755) == 0);
}

static void listen_all(struct patient *patient)
{
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "run/gpuarb-%s.socket", names[i]);
		patient_put(patient, path, "");
	}
}

TEST(helpers_that_are_not_installed_or_do_not_listen_are_notes)
{
	struct patient patient;

	patient_new(&patient);
	examine(&patient, check_helpers);
	CHECK(patient.doctor.n_findings == ARRAY_SIZE(names));
	CHECK(advises(finding_of(&patient, MARK_NOTE, "gpuarb-mqds.socket"), "package"));
	patient_done(&patient);

	new_with_units(&patient);
	examine(&patient, check_helpers);
	CHECK(advises(finding_of(&patient, MARK_NOTE, "gpuarb-fdinfo.socket"),
		      "enable --now gpuarb-fdinfo.socket"));
	CHECK(!doctor_has_problems(&patient.doctor));
	listen_all(&patient);
	examine(&patient, check_helpers);
	CHECK(patient.doctor.n_findings == ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		CHECK(patient.doctor.findings[i].mark == MARK_OK);
	patient_done(&patient);
}

TEST(a_helper_without_service_or_program_is_a_problem)
{
	_cleanup_(patient_done) struct patient patient;

	new_with_units(&patient);
	listen_all(&patient);
	CHECK(chmod(scratch_at(&patient.scratch, PROGRAM), 0644) == 0);
	examine(&patient, check_helpers);
	finding_of(&patient, MARK_PROBLEM, "/" PROGRAM);
	patient_remove(&patient, PROGRAM);
	examine(&patient, check_helpers);
	finding_of(&patient, MARK_PROBLEM, "/" PROGRAM);
	patient_remove(&patient, UNITS "gpuarb-enforce.service");
	examine(&patient, check_helpers);
	CHECK(advises(finding_of(&patient, MARK_PROBLEM, "gpuarb-enforce.socket"), "package"));
}

TEST(selinux_is_named_where_it_enforces)
{
	_cleanup_(patient_done) struct patient patient;

	new_with_units(&patient);
	patient_put(&patient, "sys/fs/selinux/enforce", "0");
	listen_all(&patient);
	examine(&patient, check_helpers);
	CHECK(patient.doctor.n_findings == ARRAY_SIZE(names));
	patient_put(&patient, "sys/fs/selinux/enforce", "1");
	examine(&patient, check_helpers);
	CHECK(advises(finding_of(&patient, MARK_NOTE, "SELinux"), "ausearch"));
}
