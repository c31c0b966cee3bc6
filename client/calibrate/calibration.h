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

#define CALIBRATION_RANDOM 4U   /* masks */
#define CALIBRATION_ATTEMPTS 3U /* if the clock of the GPU jumps */
#define CALIBRATION_COOL_MS 500 /* pause if the GPU has become slower */
#define CALIBRATION_COOL_MAX 8U /* such pauses */
#define CALIBRATION_EVENTS 32U
#define CALIBRATION_READS 256U /* of each thread of a work-group that reads memory */

#define CALIBRATION_BISTABLE 1.25
#define CALIBRATION_BESIDE 4U  /* kinds x numbers of neighbours */
#define CALIBRATION_CHANGES 5U /* of a mask */

/* What disturbed a measurement. */
enum calibration_trouble {
	CALIBRATION_THROTTLED, /* the GPU became slower */
	CALIBRATION_CLOCK,     /* its clock jumped */
};
extern const char *const calibration_troubles[];

struct calibration_event {
	enum calibration_trouble kind;
	double seconds;  /* since the start */
	char during[48]; /* the mask, or what else was measured */
	double slower;   /* percent; NAN: unknown */
	bool repeated;   /* what was measured */
};

enum calibration_use {
	CALIBRATION_LAW,   /* a rectangle */
	CALIBRATION_CLIFF, /* a shader engine, and one unit of another */
	CALIBRATION_ANY,   /* random units on every XCC */
	CALIBRATION_BAD,   /* it leaves out XCCs, which then run unmasked */
};

struct calibration_point {
	char name[48]; /* "2 x 15" */
	enum calibration_use use;
	struct cuset set;
	struct cuset expected; /* to be occupied */
	unsigned cus, effective;
	unsigned occupied; /* CUs on which work-groups ran; 0: unknown */
	bool honoured; /* as many of each shader engine of each XCC as expected, and no others */
	unsigned repeats;
	double usec;        /* median of the repeats */
	double spread;      /* of the repeats, in percent of the median */
	double memory_usec; /* the same with a kernel that reads memory; 0: not measured */
	bool throttled;     /* the whole GPU was slower before and after it than at its fastest */
};

/* What a kernel loses beside kernels of other processes, all on parts of the GPU of the same size. */
struct calibration_beside {
	enum neighbours kind; /* of the others */
	unsigned neighbours;
	double slowdown
		[CALIBRATION_ROUNDS]; /* of each round, with new processes: the worse of both kinds */
	unsigned rounds;
	double worst;
	bool throttled; /* alone, the kernels were slower after the rounds than before */
	bool bistable; /* rounds differ by more than CALIBRATION_BISTABLE times: pairs draw one of two states */
};

#define CALIBRATION_QUEUES 96U
#define CALIBRATION_STEPS 24U
#define CALIBRATION_CLIFF_TIMES 4.0 /* slower than before: more queues are not tried */

/* The time of the same work by more queues, or of one kernel beside more processes, by the host. */
struct calibration_step {
	unsigned queues, processes; /* queues that run kernels; ROCr has one more */
	bool oversubscribed;        /* more queues than slots */
	double usec;                /* NAN: it did not end */
};

#define CALIBRATION_MISSING 16U

/* A step that failed: the rest of the report is without it. */
struct calibration_missing {
	char step[48], why[320]; /* a problem of the device fits */
};

struct calibration {
	struct calibration_point point[CALIBRATION_POINTS];
	size_t n;
	unsigned groups;
	size_t honoured;                /* points */
	struct law_fit law, memory_law; /* NAN: none fits */
	unsigned clock_jumps, pauses;
	struct calibration_event event[CALIBRATION_EVENTS]; /* the first ones */
	size_t n_events;
	double began;       /* CLOCK_MONOTONIC, in seconds */
	const char *during; /* what is measured now */
	struct calibration_beside beside[CALIBRATION_BESIDE];
	size_t n_beside;
	struct costs costs;
	struct calibration_step step[CALIBRATION_STEPS];
	size_t n_steps;
	struct calibration_missing missing[CALIBRATION_MISSING]; /* the first ones */
	size_t n_missing;
	bool begun;   /* the whole GPU was measured */
	bool shared;  /* beside other leases or processes */
	double cliff; /* how many times longer with one unit more; 0: the GPU has one engine */
	bool emulated;
	char date[sizeof("2026-11-23")];
};

/* Chooses the masks: rectangles from one unit on each XCC to the whole GPU, the cliff, random ones, and bad ones. */
void calibration_plan(const struct model *model, struct calibration *ret);

/* The longest time that the measurement takes if a work-group takes as long as on a Radeon VII. */
double calibration_estimate(const struct calibration *calibration);

/* Processes that run kernels all the time, each on a set of CUs. start() returns when all of them run; of the work its
 * kind and threads count. check(): -ECHILD: one has ended. */
struct partners {
	int (*start)(void *data, const struct work *work, const struct cuset *sets, unsigned n);
	int (*check)(void *data);
	void (*stop)(void *data);
	void *data;
};

struct calibration_run {
	struct device *device;
	const struct stop *stop;
	const struct model *model;
	const char *target;                                         /* "gfx90a" */
	void (*progress)(const char *what, size_t done, size_t of); /* or NULL */
	struct calibration *calibration;
	struct wave *waves; /* room for all work-groups */
	const struct partners *partners;
};

/* Each result below: 0; a device's error; -ENODATA: the kernel did not run; -EPROTO: a kernel was cut off, or
 * its registers or times are impossible; -ECHILD: a neighbour has failed. */

const char *calibration_failure(const struct calibration_run *run, int error);

/* Notes a step that failed. 0: others can be measured; a reason to stop; -ETIMEDOUT: a kernel does not end, so
 * the device cannot be used any more. */
int calibration_miss(const struct calibration_run *run, const char *step, int error);

/* Measures the masks: what they occupy, and the law. A mask that fails is missing; an error is one of
 * calibration_miss(), or of the whole GPU. */
int calibration_measure(const struct calibration_run *run);

/* What neighbours cost (interference.c), and changes of a mask (costs.c): measured first, because HIP keeps
 * queues for streams that follow. */
int interference_measure(const struct calibration_run *run);

/* Chooses the numbers of neighbours, at most so many. */
void interference_plan(const struct model *model, unsigned most, struct calibration *calibration);
int costs_measure(const struct calibration_run *run);

/* The ladder of so many queues of this process, and of so many processes with it (ladder.c). */
int ladder_measure(const struct calibration_run *run, unsigned queues, unsigned processes);

/* So many streams show the cost of more queues than slots: half as many again. */
unsigned ladder_beyond(unsigned slots);

/* The ladder goes on, to that many streams of this process, until it is CALIBRATION_CLIFF_TIMES slower or
 * hangs. The device is not used afterwards. */
int ladder_oversubscribe(const struct calibration_run *run, unsigned slots);

/* Whether a measurement at which the GPU became slower is to be repeated: notes the event, and waits. -errno
 * of the stop. */
int calibration_cool(const struct calibration_run *run, double slower);

/* Runs a kernel once. seen: or NULL. A time that is not above 0, or longer than on the host, is a jump of
 * the clock of the GPU, as at a reset: the run is repeated. */
int calibration_time(const struct calibration_run *run, void *stream, const struct work *work,
		     struct cuset *seen, double *ret_usec, double *ret_host_usec);

/* The units that an engine has on every XCC; those of each of the first engines, which come in the order of
 * their units. Adds the first units of the engine in place n on every XCC, array 0 first. */
unsigned calibration_units(const struct model *model, unsigned engine);
unsigned calibration_height(const struct model *model, unsigned engines);
void calibration_add(const struct model *model, unsigned n, unsigned units, struct cuset *set);

/* A stream with the mask of a set, and the median time of several runs of a kernel on it; seen: or NULL. */
int calibration_stream(const struct calibration_run *run, const struct cuset *set, void **ret);
int calibration_median(const struct calibration_run *run, void *stream, enum neighbours kind,
		       struct cuset *seen, unsigned *ret_repeats, double *ret_usec,
		       double *ret_spread);

/* Adds the places of work-groups to the set. A fused-off CU has a number here and none in a mask, so only
 * counts can be compared. -ENODATA: the kernel did not run; -EPROTO: it was cut off, or its registers are
 * impossible on this target. */
int occupied_add(const char *target, const struct wave *waves, unsigned n, struct cuset *seen);

/* Counts the CUs that were seen. Returns whether they are as many of each shader engine of each XCC as
 * expected, and no others. */
bool occupied_judge(const struct model *model, const struct cuset *expected,
		    const struct cuset *seen, unsigned *ret_cus);

/* The verb calibrate: calibrate.c. Prints what failed and returns the exit code. */
struct bench;
int calibrate_run(struct command *command, struct bench *bench);

/* What both forms of the verb begin with: whether the GPU is idle and all its CUs are granted, and whether gpuarbd
 * grants more queues than slots. */
int calibrate_whole(struct command *command, struct bench *bench);
int calibrate_check_oversubscription(struct command *command, struct bench *bench);

/* What both forms end with: EXIT_OK, or a failure that names the first step that is missing. */
int calibrate_end(struct command *command, const struct calibration *calibration);

/* For how many processes it needs a lease, this one and neighbours, and for how many streams of each: as
 * there are free queue slots. */
int calibrate_size(struct command *command, unsigned *ret_processes, unsigned *ret_streams);

/* verify --probe: probe.c. */
int probe_run(struct command *command, struct bench *bench);
