/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks of AMD's runtime and of its environment variables. Libraries are identified by the
 * names of their files, because loading a library runs its code. */

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/doctor/doctor.h"
#include "client/output/print.h"

/* Where distributions and AMD put libraries. */
static const char *const places[] = {
	"/opt/rocm*/lib", "/usr/local/lib", "/usr/lib64", "/usr/lib/*-linux-gnu", "/usr/lib",
};

/* The files of one library, by their real paths. */
struct libraries {
	char *paths[16];
	size_t n;
};

static void libraries_done(struct libraries *libraries)
{
	for (size_t i = 0; i < libraries->n; i++)
		free(libraries->paths[i]);
}

static void add(struct libraries *libraries, const char *path)
{
	char *real = realpath(path, NULL);

	for (size_t i = 0; real && i < libraries->n; i++) {
		if (strcmp(libraries->paths[i], real) == 0) {
			free(real);
			return;
		}
	}
	if (real && libraries->n < ARRAY_SIZE(libraries->paths))
		libraries->paths[libraries->n++] = real;
	else
		free(real);
}

static void add_matching(struct libraries *libraries, const char *pattern)
{
	glob_t found = { 0 };

	if (glob(pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			add(libraries, found.gl_pathv[i]);
	}
	globfree(&found);
}

/* name: "libamdhip64.so". Searches LD_LIBRARY_PATH first, as the loader does. */
static void find(const struct doctor *doctor, const char *name, struct libraries *libraries)
{
	const char *own = getenv("LD_LIBRARY_PATH");
	char path[DOCTOR_PATH];

	for (size_t n; own && *own; own += n + (own[n] == ':')) {
		n = strcspn(own, ":");
		if (n > 0 && (size_t)snprintf(path, sizeof(path), "%.*s/%s.*", (int)n, own, name) <
				     sizeof(path))
			add_matching(libraries, path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		add_matching(libraries, doctor_path(doctor, path, "%s/%s.*", places[i], name));
}

/* "5.2.21153" of .../libamdhip64.so.5.2.21153. */
static const char *version_of(const char *path)
{
	const char *suffix = strstr(path, ".so.");

	return suffix ? suffix + 4 : "of unknown version";
}

static void describe_hip(struct doctor *doctor, const char *path)
{
	const char *version = version_of(path);
	int major = atoi(version);

	report(doctor, MARK_OK, "HIP %s (%s)", version, path);
	if (major > 0 && major <= 5)
		means(doctor,
		      "This version fails (hipErrorOutOfMemory) if HSA_CU_MASK narrows the mask "
		      "of a stream: programs under gpuarbctl run that create streams with "
		      "masks must stay within the mask of the lease.");
	else
		means(doctor, "Programs that use it can run in a lease.");
}

void check_hip(struct doctor *doctor)
{
	_cleanup_(libraries_done) struct libraries hip = { 0 }, rocr = { 0 };

	find(doctor, "libamdhip64.so", &hip);
	find(doctor, "libhsa-runtime64.so", &rocr);
	for (size_t i = 0; i < hip.n; i++)
		describe_hip(doctor, hip.paths[i]);
	for (size_t i = 0; i < rocr.n; i++) {
		report(doctor, MARK_OK, "ROCr %s (%s)", version_of(rocr.paths[i]), rocr.paths[i]);
		means(doctor, "It reads HSA_CU_MASK and applies the mask to each queue from its "
			      "creation on.");
	}
	if (hip.n == 0) {
		report(doctor, MARK_NOTE, "no HIP (libamdhip64) in the usual directories");
		means(doctor,
		      "Programs with a HIP of their own, in a container or a Python package, "
		      "do not need it, and neither does gpuarbd.");
		advise(doctor, "If programs need it, install it or set LD_LIBRARY_PATH.");
	}
	if (hip.n > 1) {
		report(doctor, MARK_NOTE, "%zu versions of HIP are installed", hip.n);
		means(doctor, "The loader decides which of them a program uses.");
		advise(doctor, "To find out, run ldd PROGRAM.");
	}
}

static const struct variable {
	const char *name;
	enum mark mark;
	const char *means, *advice;
} variables[] = {
	{ "HSA_CU_MASK", MARK_PROBLEM,
	  "The runtime would combine it with the mask of a lease, so gpuarbctl run fails.",
	  "unset HSA_CU_MASK" },
	{ "ROC_GLOBAL_CU_MASK", MARK_PROBLEM,
	  "The runtime would combine it with the mask of a lease, so gpuarbctl run fails.",
	  "unset ROC_GLOBAL_CU_MASK" },
	{ "HSA_CU_MASK_SKIP_INIT", MARK_NOTE,
	  "Queues start without the mask of HSA_CU_MASK. gpuarbctl run removes the variable; a "
	  "program that sets it uses the whole GPU.",
	  "unset HSA_CU_MASK_SKIP_INIT" },
	{ "GPU_MAX_HW_QUEUES", MARK_NOTE,
	  "HIP creates up to so many queues for each priority class. gpuarbctl run sets it by the "
	  "lease; other programs use this value.",
	  "unset GPU_MAX_HW_QUEUES, unless you need it" },
};

void check_environment(struct doctor *doctor)
{
	const char *lease = getenv("GPUARB_LEASE");
	size_t before = doctor->n_findings;

	/* gpuarbctl run has set the variables. */
	if (lease) {
		report(doctor, MARK_OK, "this shell runs in lease %s", lease);
		means(doctor, "Programs that are started from here have the mask of that lease and "
			      "share its queues.");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *value = getenv(variables[i].name);

		if (!value)
			continue;
		report(doctor, variables[i].mark, "%s=%s", variables[i].name, value);
		means(doctor, "%s", variables[i].means);
		advise(doctor, "%s", variables[i].advice);
	}
	if (doctor->n_findings > before)
		return;

	report(doctor, MARK_OK, "no environment variable disturbs masks");
	means(doctor, "The variables that gpuarbctl run sets take effect.");
}
