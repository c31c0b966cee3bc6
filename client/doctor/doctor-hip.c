/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* AMD's runtime, and what it is told by the environment. Libraries are known by the names of
 * their files: to load one would run it. */

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

/* Different files of one library, by their real paths. */
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

/* name: "libamdhip64.so". First what the linker would look at first. */
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

	return suffix ? suffix + 4 : "of an unknown version";
}

static void describe_hip(struct doctor *doctor, const char *path)
{
	const char *version = version_of(path);
	int major = atoi(version);

	say(doctor, MARK_OK, "HIP %s (%s)", version, path);
	if (major > 0 && major <= 5)
		means(doctor, "It takes a stream's mask that HSA_CU_MASK narrows for a failure "
			      "(hipErrorOutOfMemory): programs under `gpuarbctl run` that make "
			      "streams with masks have to stay within the lease's.");
	else
		means(doctor, "Its programs can run in a lease.");
}

void check_hip(struct doctor *doctor)
{
	_cleanup_(libraries_done) struct libraries hip = { 0 }, rocr = { 0 };

	find(doctor, "libamdhip64.so", &hip);
	find(doctor, "libhsa-runtime64.so", &rocr);
	for (size_t i = 0; i < hip.n; i++)
		describe_hip(doctor, hip.paths[i]);
	for (size_t i = 0; i < rocr.n; i++) {
		say(doctor, MARK_OK, "ROCr %s (%s)", version_of(rocr.paths[i]), rocr.paths[i]);
		means(doctor, "It reads HSA_CU_MASK, and gives every queue its mask from the first "
			      "on.");
	}
	if (hip.n == 0) {
		say(doctor, MARK_NOTE, "no HIP (libamdhip64) where libraries usually are");
		means(doctor, "Programs that bring their own, in a container or a Python package, "
			      "do without. gpuarbd needs none.");
		advise(doctor, "If programs here should find one: install it, or set "
			       "LD_LIBRARY_PATH.");
	}
	if (hip.n > 1) {
		say(doctor, MARK_NOTE, "there are %zu versions of HIP", hip.n);
		means(doctor, "Which of them a program has is between it and its linker.");
		advise(doctor, "If it matters: ldd PROGRAM");
	}
}

static const struct variable {
	const char *name;
	enum mark mark;
	const char *means, *advice;
} variables[] = {
	{ "HSA_CU_MASK", MARK_PROBLEM,
	  "A lease's mask would be combined with it: `gpuarbctl run` refuses to start anything.",
	  "unset HSA_CU_MASK" },
	{ "ROC_GLOBAL_CU_MASK", MARK_PROBLEM,
	  "A lease's mask would be combined with it: `gpuarbctl run` refuses to start anything.",
	  "unset ROC_GLOBAL_CU_MASK" },
	{ "HSA_CU_MASK_SKIP_INIT", MARK_NOTE,
	  "Queues start without the mask of HSA_CU_MASK. `gpuarbctl run` takes it out; a program "
	  "that sets it has the whole GPU.",
	  "unset HSA_CU_MASK_SKIP_INIT" },
	{ "GPU_MAX_HW_QUEUES", MARK_NOTE,
	  "HIP makes so many queues for each priority class. `gpuarbctl run` sets it by the lease; "
	  "programs without a lease, or with one of their own making, use this one.",
	  "unset GPU_MAX_HW_QUEUES, unless it is wanted" },
};

void check_environment(struct doctor *doctor)
{
	const char *lease = getenv("GPUARB_LEASE");
	size_t before = doctor->n_findings;

	/* What stands there then is the lease's. */
	if (lease) {
		say(doctor, MARK_OK, "inside lease %s", lease);
		means(doctor, "What is started from here has that lease's mask and shares its "
			      "queues.");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *value = getenv(variables[i].name);

		if (!value)
			continue;
		say(doctor, variables[i].mark, "%s=%s", variables[i].name, value);
		means(doctor, "%s", variables[i].means);
		advise(doctor, "%s", variables[i].advice);
	}
	if (doctor->n_findings > before)
		return;

	say(doctor, MARK_OK, "no variable that would undo a mask");
	means(doctor, "What `gpuarbctl run` sets stands alone.");
}
