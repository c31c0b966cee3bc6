/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Measures one GPU: which CUs masks occupy, and the law of masks t = a/E + b for a compute kernel. The
 * order of measurements and what follows from them need no GPU: device.h.
 */

#include "client/latency/device.h"
#include "client/options/options.h"
#include "client/output/model.h"

#define CALIBRATION_POINTS 64U
#define CALIBRATION_REPEATS 3U     /* the median counts */
#define CALIBRATION_REPEATS_MAX 9U /* while times differ by more than CALIBRATION_SPREAD */
#define CALIBRATION_SPREAD 5.0     /* percent */
#define CALIBRATION_SPINS 20000U   /* of a work-group */
#define CALIBRATION_PER_CU 32U     /* work-groups for each CU of the GPU */

enum calibration_use {
	CALIBRATION_LAW,   /* a rectangle */
	CALIBRATION_CLIFF, /* a shader engine, and one unit of another */
};

struct calibration_point {
	char name[48]; /* "2 x 15" */
	enum calibration_use use;
	struct cuset set;
	unsigned cus, effective;
	unsigned occupied; /* CUs on which work-groups ran */
	bool honoured; /* as many of each shader engine of each XCC as in the mask, and no others */
	unsigned repeats;
	double usec;   /* median of the repeats */
	double spread; /* of the repeats, in percent of the median */
};

struct calibration {
	struct calibration_point point[CALIBRATION_POINTS];
	size_t n;
	unsigned groups;
	size_t honoured;    /* points */
	struct law_fit law; /* NAN: none fits */
	double cliff; /* how many times longer with one unit more; 0: the GPU has one engine */
	bool emulated;
	char date[sizeof("2026-11-23")];
};

/* Chooses the masks: rectangles from one unit on each XCC to the whole GPU, and the cliff. */
void calibration_plan(const struct model *model, struct calibration *ret);

/* The longest time that the measurement takes if a work-group takes as long as on a Radeon VII. */
double calibration_estimate(const struct calibration *calibration);

struct calibration_run {
	const struct device *device;
	const struct stop *stop;
	const struct model *model;
	const char *target;                       /* "gfx90a" */
	void (*progress)(size_t done, size_t of); /* or NULL */
};

/* 0; a device's error; -ENODATA: the kernel did not run; -EPROTO: a kernel was cut off, or its times are
 * impossible. */
int calibration_measure(const struct calibration_run *run, struct calibration *calibration);

/* The verb calibrate: calibrate.c. Prints what failed and returns the exit code. */
struct bench;
int calibrate_run(const struct command *command, struct bench *bench);

/* verify --probe: probe.c. */
int probe_run(struct command *command, struct bench *bench);
