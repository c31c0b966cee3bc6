/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks of the helpers that gpuarbd asks for what it may not read or do itself. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor/doctor.h"

static const struct helper {
	const char *name; /* of the socket unit, and of the socket in /run */
	const char *does, *lacks;
} helpers[] = {
	{ "gpuarb-mqds", "gpuarbd can read the CU masks of hardware queues.",
	  "Masks are not verified, and queues outside of their lease are not seen." },
	{ "gpuarb-hqds", "gpuarbctl slots can show the hardware queue slots.",
	  "gpuarbctl slots fails." },
	{ "gpuarb-userqs", "gpuarbd can count user queues of the graphics driver.",
	  "Where amdgpu.user_queue enables them, all realtime requests are refused." },
	{ "gpuarb-fdinfo", "gpuarbd can observe which processes draw.",
	  "It is unknown which processes draw: with graphics = refuse-realtime all realtime requests "
	  "are refused." },
	{ "gpuarb-probe", "gpuarbd can subscribe to events of the driver.",
	  "Resets of GPUs and evictions of queues are not noticed." },
	{ "gpuarb-enforce", "gpuarbd can freeze and kill processes where policy says so.",
	  "enforce = freeze and enforce = kill have no effect." },
	{ "gpuarb-budget", "gpuarbd can ask the kernel to limit the queues of units.",
	  "Units are not capped: only what gpuarbctl run --cap started." },
};

/* The program of a service: the first word after ExecStart=. "": the file does not tell it, or not
 * with its path. */
static void find_program(const char *path, char *ret, size_t size)
{
	FILE *file = fopen(path, "re");
	char line[512];

	ret[0] = '\0';
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "ExecStart=/", strlen("ExecStart=/")) == 0) {
			line[strcspn(line, " \n")] = '\0';
			if (strlen(line + strlen("ExecStart=")) < size)
				strcpy(ret, line + strlen("ExecStart="));
		}
	if (file)
		fclose(file);
}

/* Returns whether the service of the socket can be started; reports why not. */
static bool judge_program(struct doctor *doctor, const struct helper *helper)
{
	char unit[64], path[DOCTOR_PATH], program[DOCTOR_PATH - 64];

	snprintf(unit, sizeof(unit), "%s@.service", helper->name);
	if (!doctor_find_unit(doctor, unit, path)) {
		snprintf(unit, sizeof(unit), "%s.service", helper->name);
		if (!doctor_find_unit(doctor, unit, path)) {
			report(doctor, MARK_PROBLEM, "%s.socket has no service", helper->name);
			means(doctor, "%s", helper->lacks);
			advise(doctor, "Install gpuarb as a package or with meson install.");
			return false;
		}
	}
	find_program(path, program, sizeof(program));
	if (!*program || access(doctor_path(doctor, path, "%s", program), X_OK) == 0)
		return true;
	report(doctor, MARK_PROBLEM, "%s of %s: %s", program, unit, strerror(errno));
	means(doctor, "%s", helper->lacks);
	advise(doctor, "Install gpuarb again; the file must be executable.");
	return false;
}

static void judge_helper(struct doctor *doctor, const struct helper *helper)
{
	char unit[64], path[DOCTOR_PATH];

	snprintf(unit, sizeof(unit), "%s.socket", helper->name);
	if (!doctor_find_unit(doctor, unit, path)) {
		report(doctor, MARK_NOTE, "%s is not installed", unit);
		means(doctor, "%s", helper->lacks);
		advise(doctor, "Install gpuarb as a package or with meson install.");
		return;
	}
	if (!judge_program(doctor, helper))
		return;
	if (access(doctor_path(doctor, path, "/run/%s", unit), F_OK) == 0) {
		report(doctor, MARK_OK, "%s listens", unit);
		means(doctor, "%s", helper->does);
		return;
	}
	report(doctor, MARK_NOTE, "%s does not listen", unit);
	means(doctor, "%s", helper->lacks);
	advise(doctor, "systemctl enable --now %s", unit);
}

/* The capabilities of a helper are in its unit. What can take them away again is told here. */
static void judge_selinux(struct doctor *doctor)
{
	char enforces[8];

	if (doctor_read_line(doctor, "/sys/fs/selinux/enforce", enforces, sizeof(enforces)) < 0 ||
	    strcmp(enforces, "1") != 0)
		return;
	report(doctor, MARK_NOTE, "SELinux is enforcing");
	means(doctor,
	      "Its policy can deny the helpers debugfs, /proc of other users or /dev/kfd, although "
	      "their units allow it.");
	advise(doctor, "If one fails, search for denials since the boot: ausearch -m avc -ts boot");
}

void check_helpers(struct doctor *doctor)
{
	for (size_t i = 0; i < ARRAY_SIZE(helpers); i++)
		judge_helper(doctor, &helpers[i]);
	judge_selinux(doctor);
}
