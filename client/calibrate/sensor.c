/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/calibrate/sensor.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/base.h"

/* The first file that there is. */
static void find_file(const char *root, const char *gpu, const char *name, char *buf, size_t size)
{
	glob_t found = { 0 };

	snprintf(buf, size, "%s/sys/bus/pci/devices/%.*s/hwmon/hwmon*/%s", root,
		 (int)strcspn(gpu, "/"), gpu, name);
	if (glob(buf, 0, NULL, &found) == 0 && strlen(found.gl_pathv[0]) < size)
		snprintf(buf, size, "%s", found.gl_pathv[0]);
	else
		*buf = '\0';
	globfree(&found);
}

void sensor_find(const char *root, const char *gpu, struct sensor *ret)
{
	find_file(root, gpu, "freq1_input", ret->clock, sizeof(ret->clock));
	find_file(root, gpu, "temp1_input", ret->temperature, sizeof(ret->temperature));
}

static double read_file(const char *path)
{
	FILE *file = *path ? fopen(path, "re") : NULL;
	double value = NAN;

	if (file && fscanf(file, "%lf", &value) != 1)
		value = NAN;
	if (file)
		fclose(file);
	return value;
}

/* Hz. */
double sensor_mhz(const struct sensor *sensor)
{
	return read_file(sensor->clock) / 1e6;
}

/* Thousandths of a degree. */
double sensor_celsius(const struct sensor *sensor)
{
	return read_file(sensor->temperature) / 1e3;
}
