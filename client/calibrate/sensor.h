/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The clock and the temperature of a GPU, which amdgpu tells in hwmon. */

struct sensor {
	char clock[192], temperature[192]; /* files; "": none */
};

/* gpu: "0000:03:00.0", or with "/2". root: "" except in tests. */
void sensor_find(const char *root, const char *gpu, struct sensor *ret);

/* NAN: it cannot be read. */
double sensor_mhz(const struct sensor *sensor);
double sensor_celsius(const struct sensor *sensor);
