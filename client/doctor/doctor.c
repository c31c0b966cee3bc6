/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/output/print.h"
#include "util/fd.h"
#include "util/grow.h"

static char *compose(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
static char *compose(const char *format, va_list args)
{
	char *text = NULL;

	if (vasprintf(&text, format, args) < 0)
		no_memory();
	return text;
}

void report(struct doctor *doctor, enum mark mark, const char *format, ...)
{
	struct finding *finding =
		have(grow(&doctor->findings, &doctor->n_findings, sizeof(*finding)));
	va_list args;

	va_start(args, format);
	*finding = (struct finding){
		.check = doctor->check,
		.mark = mark,
		.found = compose(format, args),
	};
	va_end(args);
}

void means(struct doctor *doctor, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	doctor->findings[doctor->n_findings - 1].means = compose(format, args);
	va_end(args);
}

void advise(struct doctor *doctor, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	doctor->findings[doctor->n_findings - 1].advice = compose(format, args);
	va_end(args);
}

const char *doctor_path(const struct doctor *doctor, char buf[static DOCTOR_PATH],
			const char *format, ...)
{
	int n = snprintf(buf, DOCTOR_PATH, "%s", doctor->root);
	va_list args;

	if (n >= 0 && (size_t)n < DOCTOR_PATH) {
		va_start(args, format);
		vsnprintf(buf + n, DOCTOR_PATH - (size_t)n, format, args);
		va_end(args);
	}
	return buf;
}

int doctor_find(const struct doctor *doctor, const char *path)
{
	char buf[DOCTOR_PATH];
	struct stat st;

	return stat(doctor_path(doctor, buf, "%s", path), &st) < 0 ? -errno : 0;
}

int doctor_read_line(const struct doctor *doctor, const char *path, char *buf, size_t size)
{
	char full[DOCTOR_PATH];
	int r = read_text_at(AT_FDCWD, doctor_path(doctor, full, "%s", path), buf, size);

	if (r >= 0)
		buf[strcspn(buf, "\n")] = '\0';
	return r;
}

bool doctor_find_unit(const struct doctor *doctor, const char *unit, char ret[static DOCTOR_PATH])
{
	static const char *const places[] = {
		"/etc/systemd/system", "/run/systemd/system",     "/usr/local/lib/systemd/system",
		"/lib/systemd/system", "/usr/lib/systemd/system",
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (access(doctor_path(doctor, ret, "%s/%s", places[i], unit), F_OK) == 0)
			return true;
	return false;
}

/* Lists twice: first for the number of GPUs, then for their data. A GPU may vanish in between. */
void doctor_read_gpus(struct doctor *doctor)
{
	_cleanup_(diagnostics_done) struct diagnostics counting = { 0 };
	char sys[DOCTOR_PATH];
	struct hw *hw;
	int n;

	doctor->listed = hw_kfd_open(doctor_path(doctor, sys, "/sys"), &hw, &doctor->diagnostics);
	if (doctor->listed < 0)
		return;

	hw_kfd_set_maps(hw, doctor_path(doctor, sys, HARVEST_DIR));
	n = hw_list(hw, NULL, 0, &counting);
	doctor->gpus = have(calloc(n > 0 ? (size_t)n : 1, sizeof(*doctor->gpus)));
	doctor->listed = hw_list(hw, doctor->gpus, n > 0 ? (size_t)n : 0, &doctor->diagnostics);
	if (doctor->listed > 0)
		doctor->n_gpus = min_u((unsigned)doctor->listed, n > 0 ? (unsigned)n : 0);
	hw_close(hw);
}

void doctor_run(struct doctor *doctor, const struct check *check)
{
	doctor->check = check->name;
	check->run(doctor);
}

bool doctor_has_problems(const struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->n_findings; i++) {
		if (doctor->findings[i].mark == MARK_PROBLEM)
			return true;
	}
	return false;
}

void doctor_done(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->n_findings; i++) {
		free(doctor->findings[i].found);
		free(doctor->findings[i].means);
		free(doctor->findings[i].advice);
	}
	free(doctor->findings);
	free(doctor->gpus);
	diagnostics_done(&doctor->diagnostics);
	settings_free(doctor->settings);
	gpuarb_view_free(doctor->view);
	gpuarb_close(doctor->gpuarb);
	*doctor = (struct doctor){ 0 };
}

/* ---- devices on the PCI bus ----------------------------------------------------------------- */

#define PCI_DEVICES "/sys/bus/pci/devices"

/* The classes that amdgpu takes: VGA, other displays, accelerators (pciidlist in
 * drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c). The class is 0xCCSSPP. */
static bool is_gpu(const struct doctor *doctor, const char *device)
{
	char path[DOCTOR_PATH], vendor[16], class[16];
	unsigned long code;

	if ((size_t)snprintf(path, sizeof(path), PCI_DEVICES "/%s/vendor", device) >=
		    sizeof(path) ||
	    doctor_read_line(doctor, path, vendor, sizeof(vendor)) < 0 ||
	    strcmp(vendor, "0x1002") != 0)
		return false;
	if ((size_t)snprintf(path, sizeof(path), PCI_DEVICES "/%s/class", device) >= sizeof(path) ||
	    doctor_read_line(doctor, path, class, sizeof(class)) < 0)
		return false;
	code = strtoul(class, NULL, 16) >> 8;
	return code == 0x0300 || code == 0x0380 || code == 0x1200;
}

int doctor_count_devices(const struct doctor *doctor)
{
	char path[DOCTOR_PATH];
	_cleanup_(closedirp) DIR *directory = opendir(doctor_path(doctor, path, PCI_DEVICES));
	const struct dirent *entry;
	int n = 0;

	if (!directory)
		return -errno;
	while ((entry = readdir(directory)))
		n += entry->d_name[0] != '.' && is_gpu(doctor, entry->d_name);
	return n;
}
