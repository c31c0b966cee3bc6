/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks of doctor: the systemd unit, by its file and by the answer of systemctl. */

#include <errno.h>

#include "check.h"
#include "doctor-rig.h"

#define UNIT_FILE "usr/lib/systemd/system/gpuarbd.service"

/* A machine with a systemctl that prints these lines. */
static void new_booted(struct patient *patient, const char *answer, int code)
{
	char path[512];

	patient_new(patient);
	CHECK(fake_sysfs_mkdir(patient->scratch.path, "run/systemd/system") == 0);
	CHECK(fake_sysfs_print(patient->scratch.path, "bin/systemctl",
			       "#!/bin/sh\n[ \"$1\" = show ] || exit 9\ncat <<'END'\n%s\nEND\nexit "
			       "%d\n",
			       answer, code) == 0);
	CHECK(chmod(scratch_at(&patient->scratch, "bin/systemctl"), 0755) == 0);
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", scratch_at(&patient->scratch, "bin"));
	setenv("PATH", path, 1);
	CHECK(settings_new(&patient->doctor.settings) == 0);
	patient->doctor.settings->max_holders = 4096;
}

TEST(a_missing_unit_is_a_note)
{
	struct patient patient;

	patient_new(&patient);
	examine(&patient, check_unit);
	only(&patient, MARK_NOTE, "gpuarbd.service is not installed");
	patient_done(&patient);

	new_booted(&patient, "LoadState=not-found\nActiveState=inactive", 0);
	examine(&patient, check_unit);
	only(&patient, MARK_NOTE, "gpuarbd.service is not installed");
	patient_done(&patient);
}

TEST(without_systemd_the_unit_file_is_checked)
{
	_cleanup_(patient_done) struct patient patient;

	patient_new(&patient);
	patient_put(&patient, UNIT_FILE,
		    "[Service]\nFileDescriptorStoreMax=4352\nLimitNOFILE=16384\n");
	examine(&patient, check_unit);
	only(&patient, MARK_NOTE, "/" UNIT_FILE " exists");

	/* The administrator's comes first. */
	patient_put(&patient, "etc/systemd/system/gpuarbd.service", "[Service]\n");
	examine(&patient, check_unit);
	finding_of(&patient, MARK_NOTE, "/etc/systemd/system/gpuarbd.service exists");
	finding_of(&patient, MARK_PROBLEM, "FileDescriptorStoreMax=0");
}

TEST(the_shipped_unit_has_the_limits_that_doctor_requires)
{
	_cleanup_(patient_done) struct patient patient;
	char *text = NULL, path[512];
	size_t size = 0;
	FILE *file;

	patient_new(&patient);
	CHECK(settings_new(&patient.doctor.settings) == 0);
	snprintf(path, sizeof(path), "%s/systemd/gpuarbd.service.in", getenv("GPUARB_ROOT"));
	file = fopen(path, "re");
	CHECK(file && getdelim(&text, &size, '\0', file) > 0);
	fclose(file);
	patient_put(&patient, UNIT_FILE, text);
	free(text);
	examine(&patient, check_unit);
	only(&patient, MARK_NOTE, "systemd does not answer");
}

TEST(a_running_systemd_is_asked_first)
{
	static const struct {
		const char *state;
		enum mark mark;
		const char *found;
	} rows[] = {
		{ "active", MARK_OK, "gpuarbd.service is active" },
		{ "reloading", MARK_OK, "gpuarbd.service is reloading" },
		{ "inactive", MARK_NOTE, "gpuarbd.service is inactive" },
		{ "failed", MARK_PROBLEM, "gpuarbd.service has failed" },
	};
	char answer[256];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct patient patient;

		snprintf(answer, sizeof(answer),
			 "LoadState=loaded\nActiveState=%s\n"
			 "FileDescriptorStoreMax=4352\nLimitNOFILE=16384",
			 rows[i].state);
		new_booted(&patient, answer, 0);
		examine(&patient, check_unit);
		only(&patient, rows[i].mark, rows[i].found);
		patient_done(&patient);
	}
}

TEST(a_unit_that_cannot_be_loaded_is_a_problem)
{
	_cleanup_(patient_done) struct patient patient;

	new_booted(&patient, "LoadState=masked\nActiveState=inactive", 0);
	examine(&patient, check_unit);
	CHECK(advises(only(&patient, MARK_PROBLEM, "masked"), "unmask"));
}

TEST(the_unit_file_is_checked_if_systemctl_fails)
{
	struct patient patient;

	new_booted(&patient, "LoadState=loaded\nActiveState=failed\nLimitNOFILE=1", 1);
	patient_put(&patient, UNIT_FILE,
		    "[Service]\nFileDescriptorStoreMax=4352\nLimitNOFILE=infinity\n");
	examine(&patient, check_unit);
	only(&patient, MARK_NOTE, "systemd does not answer");
	patient_done(&patient);

	new_booted(&patient, "", 0);
	examine(&patient, check_unit);
	only(&patient, MARK_NOTE, "not installed");
	patient_done(&patient);
}

TEST(limits_that_do_not_fit_together_are_problems)
{
	static const struct {
		const char *store, *files;
		const char *problem, *advice; /* NULL: none */
	} rows[] = {
		{ "4096", "5376", NULL, NULL },
		{ "4096", "5375", "LimitNOFILE=5375", "LimitNOFILE=5376" },
		{ "4095", "infinity", "FileDescriptorStoreMax=4095",
		  "FileDescriptorStoreMax=4096" },
		{ "0", "infinity", "FileDescriptorStoreMax=0", "FileDescriptorStoreMax=4096" },
		{ "many", "infinity", "FileDescriptorStoreMax=0", "FileDescriptorStoreMax=4096" },
		{ "4352", "much", NULL, NULL }, /* of a systemd that says it otherwise */
	};
	char answer[256];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct patient patient;

		snprintf(answer, sizeof(answer),
			 "LoadState=loaded\nActiveState=active\n"
			 "FileDescriptorStoreMax=%s\nLimitNOFILE=%s",
			 rows[i].store, rows[i].files);
		new_booted(&patient, answer, 0);
		examine(&patient, check_unit);
		if (rows[i].problem)
			CHECK(advises(finding_of(&patient, MARK_PROBLEM, rows[i].problem),
				      rows[i].advice));
		else
			only(&patient, MARK_OK, "is active");
		patient_done(&patient);
	}
}

TEST(a_unit_that_runs_as_another_user_is_a_problem)
{
	static const char *const users[][2] = {
		{ "User=", "runs as root, not as gpuarb" },
		{ "User=nobody", "runs as nobody, not as gpuarb" },
		{ "User=gpuarb", NULL },
	};
	char answer[256];

	for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
		struct patient patient;

		snprintf(answer, sizeof(answer),
			 "LoadState=loaded\nActiveState=active\n%s\n"
			 "FileDescriptorStoreMax=4352\nLimitNOFILE=16384",
			 users[i][0]);
		new_booted(&patient, answer, 0);
		examine(&patient, check_unit);
		if (users[i][1])
			CHECK(advises(finding_of(&patient, MARK_PROBLEM, users[i][1]),
				      "User=gpuarb"));
		else
			only(&patient, MARK_OK, "is active");
		patient_done(&patient);
	}
}
