/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks of doctor: runtimes, bus, daemon and configuration. */

#include <errno.h>

#include "check.h"
#include "doctor-rig.h"

/* ---- hip ------------------------------------------------------------------------------- */

FIXTURE(struct patient, patient, patient_new(patient), patient_done(patient));

TEST_WITH(a_machine_without_hip_is_no_problem, struct patient *patient)
{
	examine(patient, check_hip);
	CHECK(advises(only(patient, MARK_NOTE, "no HIP"), "LD_LIBRARY_PATH"));
}

TEST_WITH(symbolic_links_to_one_hip_count_once, struct patient *patient)
{
	patient_put(patient, "usr/lib/x86_64-linux-gnu/libamdhip64.so.5.2.21153", "");
	CHECK(symlink("libamdhip64.so.5.2.21153",
		      scratch_at(&patient->scratch, "usr/lib/x86_64-linux-gnu/libamdhip64.so.5")) ==
	      0);
	CHECK(symlink("nowhere", scratch_at(&patient->scratch,
					    "usr/lib/x86_64-linux-gnu/libamdhip64.so.4")) == 0);
	examine(patient, check_hip);
	CHECK(strstr(only(patient, MARK_OK, "HIP 5.2.21153 (")->means, "hipErrorOutOfMemory"));

	patient_put(patient, "opt/rocm-6.4.1/lib/libamdhip64.so.6.4.60401", "");
	patient_put(patient, "opt/rocm-6.4.1/lib/libhsa-runtime64.so.1.15.0", "");
	examine(patient, check_hip);
	CHECK(patient->doctor.n_findings == 4);
	CHECK(strstr(finding_of(patient, MARK_OK, "HIP 6.4.60401")->means, "OutOfMemory"));
	finding_of(patient, MARK_OK, "ROCr 1.15.0");
	finding_of(patient, MARK_NOTE, "2 versions of HIP");
}

TEST_WITH(hip_is_found_by_ld_library_path, struct patient *patient)
{
	char path[256];

	patient_put(patient, "mine/libamdhip64.so.7.0.1", "");
	snprintf(path, sizeof(path), ":/nonexistent:%s:", scratch_at(&patient->scratch, "mine"));
	setenv("LD_LIBRARY_PATH", path, 1);
	examine(patient, check_hip);
	unsetenv("LD_LIBRARY_PATH");
	CHECK(!strstr(only(patient, MARK_OK, "HIP 7.0.1")->means, "OutOfMemory"));
}

TEST_WITH(runtimes_newer_than_this_gpuarb_are_noted, struct patient *patient)
{
	patient_put(patient, "usr/lib/libamdhip64.so.8.0.1", "");
	patient_put(patient, "usr/lib/libhsa-runtime64.so.2.0.0", "");
	examine(patient, check_hip);
	CHECK(patient->doctor.n_findings == 2);
	CHECK(strstr(finding_of(patient, MARK_NOTE, "HIP 8.0.1")->advice, "gpuarbctl verify"));
	finding_of(patient, MARK_NOTE, "ROCr 2.0.0");
}

TEST_WITH(the_number_of_listed_runtimes_is_limited, struct patient *patient)
{
	char path[64];

	for (int i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "usr/lib/libamdhip64.so.6.%d", i);
		patient_put(patient, path, "");
	}
	examine(patient, check_hip);
	finding_of(patient, MARK_NOTE, "16 versions of HIP");
}

/* ---- environment ----------------------------------------------------------------------- */

TEST_WITH(variables_that_change_masks_have_findings, struct patient *patient)
{
	examine(patient, check_environment);
	only(patient, MARK_OK, "no environment variable");

	setenv("HSA_CU_MASK", "0:0-3", 1);
	setenv("ROC_GLOBAL_CU_MASK", "0xf", 1);
	setenv("HSA_CU_MASK_SKIP_INIT", "1", 1);
	setenv("GPU_MAX_HW_QUEUES", "8", 1);
	examine(patient, check_environment);
	CHECK(patient->doctor.n_findings == 4);
	CHECK(advises(finding_of(patient, MARK_PROBLEM, "HSA_CU_MASK=0:0-3"), "unset HSA_CU_MASK"));
	finding_of(patient, MARK_PROBLEM, "ROC_GLOBAL_CU_MASK=0xf");
	finding_of(patient, MARK_NOTE, "HSA_CU_MASK_SKIP_INIT=1");
	finding_of(patient, MARK_NOTE, "GPU_MAX_HW_QUEUES=8");

	/* Set by gpuarbctl run. */
	setenv("GPUARB_LEASE", "12", 1);
	examine(patient, check_environment);
	only(patient, MARK_OK, "lease 12");
}

/* ---- bus, daemon ----------------------------------------------------------------------- */

TEST_WITH(a_missing_bus_gets_advice_for_its_address, struct patient *patient)
{
	setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/system", 1);
	examine(patient, check_bus);
	CHECK(advises(only(patient, MARK_PROBLEM, "/nonexistent/system"), "systemctl start dbus"));

	setenv("GPUARB_BUS_ADDRESS", "unix:path=/nonexistent/own", 1);
	examine(patient, check_bus);
	CHECK(advises(only(patient, MARK_PROBLEM, "/nonexistent/own"), "unset"));
	examine(patient, check_daemon);
	only(patient, MARK_PROBLEM, "without a bus");
	unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
	unsetenv("GPUARB_BUS_ADDRESS");
}

static void same_version(struct doctor *doctor)
{
	judge_daemon(doctor, "1.2.3", doctor->n_gpus);
}

static void other_version(struct doctor *doctor)
{
	judge_daemon(doctor, "2.0.0", doctor->n_gpus + 1);
}

static void no_version(struct doctor *doctor)
{
	judge_daemon(doctor, "", 1);
}

TEST_WITH(another_version_or_fewer_gpus_of_the_daemon_have_findings, struct patient *patient)
{
	static const char *const gpus[] = { "radeon-vii", "mi210" };

	patient_has_gpus(patient, gpus, 2);
	examine(patient, same_version);
	only(patient, MARK_OK, "gpuarbd 1.2.3 answers");
	examine(patient, other_version);
	CHECK(advises(only(patient, MARK_NOTE, "2.0.0"), "systemctl restart gpuarbd"));
	examine(patient, no_version);
	finding_of(patient, MARK_NOTE, "gpuarbd of unknown version");
	CHECK(advises(finding_of(patient, MARK_PROBLEM, "gpuarbd has 1 GPU, but KFD has 2"),
		      "device"));
}

static void not_there(struct doctor *doctor)
{
	judge_silence(doctor, -ECONNREFUSED, "gpuarbd does not run");
}

static void denied(struct doctor *doctor)
{
	judge_silence(doctor, -EACCES, "");
}

static void strange(struct doctor *doctor)
{
	judge_silence(doctor, -EPROTO, "Leases: of type s");
}

TEST_WITH(each_error_of_the_daemon_has_its_advice, struct patient *patient)
{
	examine(patient, not_there);
	CHECK(advises(only(patient, MARK_PROBLEM, "does not run"), "systemctl start gpuarbd"));
	examine(patient, denied);
	CHECK(advises(only(patient, MARK_PROBLEM, strerror(EACCES)), "org.gpuarb.Arbiter1.conf"));
	examine(patient, strange);
	CHECK(strstr(only(patient, MARK_PROBLEM, "type")->means, "1.2.3"));
}

/* ---- policy ---------------------------------------------------------------------------- */

static void new_policy(struct patient *patient, const char *config, const char *tenant)
{
	patient_new(patient);
	patient->doctor.config.config = scratch_write(&patient->scratch, "gpuarbd.conf", config);
	patient->doctor.config.tenants = scratch_mkdir(&patient->scratch, "tenants.d");
	scratch_write(&patient->scratch, "tenants.d/10.conf", tenant);
}

TEST(the_tenant_of_this_user_is_found)
{
	struct patient patient;
	char tenant[128];

	snprintf(tenant, sizeof(tenant), "[tenant research]\nmatch-user = %u\nclass = guaranteed\n",
		 geteuid());
	new_policy(&patient, "[daemon]\n", tenant);
	examine(&patient, check_policy);
	only(&patient, MARK_OK, "is tenant research with class guaranteed");
	patient_done(&patient);

	snprintf(tenant, sizeof(tenant), "[tenant lab]\nmatch-group = %u\n", getegid());
	new_policy(&patient, "[daemon]\n", tenant);
	examine(&patient, check_policy);
	only(&patient, MARK_OK, "is tenant lab");
	patient_done(&patient);

	new_policy(&patient, "[daemon]\n", "[tenant other]\nmatch-user = 4711\n");
	examine(&patient, check_policy);
	only(&patient, MARK_OK, "2 tenants; ");
	only(&patient, MARK_OK, "is tenant * with class besteffort");
	patient_done(&patient);
}

TEST(a_bus_of_another_gpuarbd_has_a_note_about_its_policy)
{
	_cleanup_(patient_done) struct patient patient;

	new_policy(&patient, "[daemon]\n", "[tenant other]\nmatch-user = 4711\n");
	setenv("GPUARB_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	examine(&patient, check_policy);
	unsetenv("GPUARB_BUS_ADDRESS");
	CHECK(advises(finding_of(&patient, MARK_NOTE, "unix:path=/nonexistent/bus"), "--tenants"));
	finding_of(&patient, MARK_OK, "2 tenants; ");
}

TEST(a_configuration_with_an_error_is_a_problem)
{
	struct patient patient;

	new_policy(&patient, "[daemon]\naudit-intervall = 3s\n", "[tenant a]\nmatch-user = 0\n");
	examine(&patient, check_policy);
	CHECK(strstr(only(&patient, MARK_PROBLEM, "gpuarbd.conf:2")->found, "audit-interval"));
	CHECK(!patient.doctor.settings);
	patient_done(&patient);

	new_policy(&patient, "[daemon]\n", "[tenant a]\nmatch-user = 0\n");
	CHECK(chmod(scratch_at(&patient.scratch, "tenants.d/10.conf"), 0666) == 0);
	examine(&patient, check_policy);
	finding_of(&patient, MARK_PROBLEM, "10.conf");
	patient_done(&patient);
}

TEST(a_directory_that_other_users_can_write_is_a_problem)
{
	_cleanup_(patient_done) struct patient patient;

	new_policy(&patient, "[daemon]\n", "[tenant a]\nmatch-user = 4711\n");
	CHECK(chmod(scratch_at(&patient.scratch, "tenants.d"), 0775) == 0);
	examine(&patient, check_policy);
	CHECK(strstr(only(&patient, MARK_PROBLEM, "/tenants.d")->found, "chmod go-w"));
	CHECK(!patient.doctor.settings);
}

TEST(a_directory_of_another_user_is_a_problem)
{
	struct patient patient;

	if (geteuid() != 0)
		SKIP("it takes root to give a directory away");
	new_policy(&patient, "[daemon]\n", "[tenant a]\nmatch-user = 4711\n");
	CHECK(chown(scratch_at(&patient.scratch, "tenants.d"), 54321, 0) == 0);
	examine(&patient, check_policy);
	CHECK(strstr(only(&patient, MARK_PROBLEM, "uid 54321")->found, "chown root"));
	patient_done(&patient);
}

/* Root may read every file, the user of gpuarbd may not. */
TEST(a_file_that_the_service_user_may_not_read_is_a_problem_for_root)
{
	struct patient patient;

	if (geteuid() != 0)
		SKIP("it takes root to be another user");
	new_policy(&patient, "[daemon]\n", "[tenant a]\nmatch-user = 4711\n");
	patient.doctor.config.trust.owners[0] = 54321;
	CHECK(chmod(scratch_at(&patient.scratch, "tenants.d/10.conf"), 0600) == 0);
	examine(&patient, check_policy);
	only(&patient, MARK_PROBLEM, "/10.conf: not readable by uid 54321");
	CHECK(geteuid() == 0 && getegid() == 0);
	CHECK(chown(scratch_at(&patient.scratch, "tenants.d/10.conf"), 54321, 0) == 0);
	examine(&patient, check_policy);
	only(&patient, MARK_OK, "is tenant *");
	patient_done(&patient);
}

/* ---- installed ------------------------------------------------------------------------- */

TEST_WITH(missing_files_of_bus_and_polkit_have_findings, struct patient *patient)
{
	examine(patient, check_installed);
	CHECK(patient->doctor.n_findings == 3);
	finding_of(patient, MARK_PROBLEM, "org.gpuarb.Arbiter1.conf is not in");
	finding_of(patient, MARK_NOTE, "org.gpuarb.Arbiter1.service is not in");
	finding_of(patient, MARK_NOTE, "org.gpuarb.Arbiter1.policy is not in");

	patient_put(patient, "etc/dbus-1/system.d/org.gpuarb.Arbiter1.conf", "");
	patient_put(patient, "usr/share/dbus-1/system-services/org.gpuarb.Arbiter1.service", "");
	patient_put(patient, "usr/share/polkit-1/actions/org.gpuarb.Arbiter1.policy", "");
	examine(patient, check_installed);
	finding_of(patient, MARK_OK, "/etc/dbus-1/system.d/org.gpuarb.Arbiter1.conf");
	CHECK(!doctor_has_problems(&patient->doctor) && patient->doctor.n_findings == 3);
	for (size_t i = 0; i < 3; i++)
		CHECK(patient->doctor.findings[i].mark == MARK_OK);
}
