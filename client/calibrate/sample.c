/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/calibrate/sample.h"

#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/latency/matrix.h"
#include "util/base.h"
#include "util/fd.h"

#define VALUES 64U

uint64_t sample_draw(uint64_t *seed, uint64_t n)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % n;
}

static double median_of(const double *values, size_t n)
{
	double sorted[VALUES];

	memcpy(sorted, values, n * sizeof(*values));
	return statistic_median(sorted, n);
}

struct interval sample_interval(const double *values, size_t n, uint64_t seed)
{
	double medians[SAMPLE_RESAMPLES], drawn[VALUES];
	struct interval ret;

	n = n < VALUES ? n : VALUES;
	for (size_t i = 0; i < SAMPLE_RESAMPLES; i++) {
		for (size_t k = 0; k < n; k++)
			drawn[k] = values[sample_draw(&seed, n)];
		medians[i] = statistic_median(drawn, n);
	}
	(void)statistic_median(medians, SAMPLE_RESAMPLES); /* sorts them */
	ret.median = median_of(values, n);
	ret.low = fmin(medians[SAMPLE_RESAMPLES * 25 / 1000], ret.median);
	ret.high = fmax(medians[SAMPLE_RESAMPLES * 975 / 1000 - 1], ret.median);
	return ret;
}

unsigned sample_outliers(const double *values, size_t n)
{
	double copy[VALUES], median, fence;
	unsigned outliers = 0;

	n = n < VALUES ? n : VALUES;
	median = median_of(values, n);
	memcpy(copy, values, n * sizeof(*values));
	fence = statistic_fence(copy, n);
	for (size_t i = 0; i < n; i++)
		outliers += fabs(values[i] - median) > fence;
	return outliers;
}

/* ---- sensors --------------------------------------------------------------------------------- */

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
	char text[64];
	double value;

	return read_text_at(AT_FDCWD, path, text, sizeof(text)) >= 0 &&
			       sscanf(text, "%lf", &value) == 1
		       ? value
		       : NAN;
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
