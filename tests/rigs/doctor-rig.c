/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "doctor-rig.h"

void patient_new(struct patient *patient)
{
	static const char *const variables[] = {
		"GPUARB_LEASE",          "HSA_CU_MASK",       "ROC_GLOBAL_CU_MASK",
		"HSA_CU_MASK_SKIP_INIT", "GPU_MAX_HW_QUEUES", "LD_LIBRARY_PATH",
		"GPUARB_BUS_ADDRESS",
	};

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		unsetenv(variables[i]);
	*patient = (struct patient){ .scratch = scratch_new() };
	CHECK(chmod(patient->scratch.path, 0755) == 0); /* for other users, too */
	snprintf(patient->sys, sizeof(patient->sys), "%s/sys", patient->scratch.path);
	patient->doctor = (struct doctor){ .root = patient->scratch.path,
					   .version = "1.2.3",
					   .config.trust = { { geteuid() } } };
}

void patient_put(const struct patient *patient, const char *path, const char *text)
{
	CHECK(fake_sysfs_print(patient->scratch.path, path, "%s", text) == 0);
}

void patient_remove(const struct patient *patient, const char *path)
{
	CHECK(fake_sysfs_remove(patient->scratch.path, path) == 0);
}

void patient_has_gpus(struct patient *patient, const char *const *names, size_t n)
{
	struct diagnostics diagnostics = { 0 };
	struct gpu_info gpus[4];
	struct profile profile;
	char profiles[256];

	CHECK(n <= ARRAY_SIZE(gpus));
	snprintf(profiles, sizeof(profiles), "%s/conf/gpus", getenv("GPUARB_ROOT"));
	for (size_t i = 0; i < n; i++) {
		CHECK(profile_load(profiles, names[i], &profile, &diagnostics) == 0);
		gpus[i] = profile.info;
	}
	diagnostics_done(&diagnostics);
	CHECK(fake_sysfs_mkdir(patient->scratch.path, "sys") == 0);
	CHECK(fake_sysfs_build(patient->sys, gpus, n) == 0);
}

void examine(struct patient *patient, void (*run)(struct doctor *doctor))
{
	const struct check check = { "test", run };
	struct doctor never_granted = patient->doctor;

	never_granted.findings = NULL;
	never_granted.n_findings = 0;
	for (size_t i = 0; i < patient->doctor.n_findings; i++) {
		free(patient->doctor.findings[i].found);
		free(patient->doctor.findings[i].means);
		free(patient->doctor.findings[i].advice);
	}
	free(patient->doctor.findings);
	free(patient->doctor.gpus);
	diagnostics_done(&never_granted.diagnostics);
	never_granted.diagnostics = (struct diagnostics){ 0 };
	never_granted.gpus = NULL;
	never_granted.n_gpus = 0;
	patient->doctor = never_granted;

	doctor_read_gpus(&patient->doctor);
	doctor_run(&patient->doctor, &check);

	/* Whatever is said says what it means, and of what is not as it should be what to do. */
	CHECK(patient->doctor.n_findings > 0);
	for (size_t i = 0; i < patient->doctor.n_findings; i++) {
		CHECK(patient->doctor.findings[i].means);
		CHECK(patient->doctor.findings[i].mark != MARK_PROBLEM ||
		      patient->doctor.findings[i].advice);
	}
}

const struct finding *finding_of(const struct patient *patient, enum mark mark, const char *found)
{
	for (size_t i = 0; i < patient->doctor.n_findings; i++) {
		const struct finding *finding = &patient->doctor.findings[i];

		if (finding->mark == mark && strstr(finding->found, found))
			return finding;
	}
	for (size_t i = 0; i < patient->doctor.n_findings; i++)
		fprintf(stderr, "%d: %s\n", (int)patient->doctor.findings[i].mark,
			patient->doctor.findings[i].found);
	fprintf(stderr, "none of them is %d: %s\n", (int)mark, found);
	abort();
}

const struct finding *only(const struct patient *patient, enum mark mark, const char *found)
{
	const struct finding *finding = finding_of(patient, mark, found);

	CHECK(patient->doctor.n_findings == 1);
	return finding;
}

bool advises(const struct finding *finding, const char *text)
{
	return finding->advice && strstr(finding->advice, text);
}

void patient_done(struct patient *patient)
{
	doctor_done(&patient->doctor);
	scratch_done(&patient->scratch);
}
