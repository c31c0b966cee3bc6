/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A made-up machine for the checks of `gpuarbctl doctor`, and what they say of it. */

#include <sys/stat.h>

#include "check-cond.h"
#include "client/doctor/doctor.h"
#include "fake-sysfs.h"
#include "scratch.h"
#include "sys/config/profile.h"

struct patient {
	struct scratch scratch;
	struct doctor doctor;
	char sys[80];
};

void patient_new(struct patient *patient);

void patient_put(const struct patient *patient, const char *path, const char *text);

void patient_remove(const struct patient *patient, const char *path);

/* What profiles say, up to four, with the driver's parameters as they are by default. */
void patient_has_gpus(struct patient *patient, const char *const *names, size_t n);

/* Runs one check on the machine as it is now; what was said before is forgotten. */
void examine(struct patient *patient, void (*run)(struct doctor *doctor));

const struct finding *finding_of(const struct patient *patient, enum mark mark, const char *found);

/* It alone was said. */
const struct finding *only(const struct patient *patient, enum mark mark, const char *found);

bool advises(const struct finding *finding, const char *text);

void patient_done(struct patient *patient);
