/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* AMD's GPUs as the PCI bus has them, with a driver or without. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/doctor/doctor.h"

#define PCI_DEVICES "/sys/bus/pci/devices"

static void close_directory(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

/* What the driver takes: VGA, other displays, accelerators (drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c,
 * pciidlist). The class is 0xCCSSPP. */
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
	_cleanup_(close_directory) DIR *directory = opendir(doctor_path(doctor, path, PCI_DEVICES));
	const struct dirent *entry;
	int n = 0;

	if (!directory)
		return -errno;
	while ((entry = readdir(directory)))
		n += entry->d_name[0] != '.' && is_gpu(doctor, entry->d_name);
	return n;
}
