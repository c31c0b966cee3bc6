/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Single times, what they tell of the median, and the state of the GPU before each. */

struct sample {
	double usec, host_usec;
	double mhz, celsius; /* of the GPU before the run; NAN: sysfs does not tell */
};

/* The median, and the interval that has it with 95 % by the bootstrap: the medians of resampled values. */
struct interval {
	double median, low, high;
};

#define SAMPLE_RESAMPLES 1000U

/* Draws with splitmix64, from 0 to below n. */
uint64_t sample_draw(uint64_t *seed, uint64_t n);

/* Of at least one value. */
struct interval sample_interval(const double *values, size_t n, uint64_t seed);

/* Counts values above or below the median by more than five scaled median distances. They stay. */
unsigned sample_outliers(const double *values, size_t n);

/* The clock and the temperature of a GPU, which amdgpu tells in hwmon. */

struct sensor {
	char clock[192], temperature[192]; /* files; "": none */
};

/* gpu: "0000:03:00.0", or with "/2". root: "" except in tests. */
void sensor_find(const char *root, const char *gpu, struct sensor *ret);

/* NAN: it cannot be read. */
double sensor_mhz(const struct sensor *sensor);
double sensor_celsius(const struct sensor *sensor);
