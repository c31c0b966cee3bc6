/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The checks of `gpuarbctl doctor`. Each examines one part of the machine and adds findings: what
 * it found, what that means and what to do. No check changes anything. /dev/kfd is open for a moment only: an
 * open /dev/kfd keeps administrators from changing the partition mode of GPUs.
 *
 * Out of memory ends the program with a failure: a problem must not be lost.
 */

#include <stdbool.h>
#include <stddef.h>

#include "util/base.h"
#include "util/diagnostics.h"
#include "core/policy/settings.h"
#include "hw/hw.h"
#include "libgpuarb/gpuarb.h"
#include "sys/config/config.h"

enum mark { MARK_OK, MARK_NOTE, MARK_PROBLEM };

struct finding {
	const char *check;
	enum mark mark;
	char *found, *means, *advice; /* advice NULL: there is nothing to do */
};

struct doctor {
	const char *root;           /* prefix of every path; "" except in tests */
	const char *version;        /* of this program */
	struct config_files config; /* as for config_load() */

	/* What checks learn from earlier checks. */
	struct gpu_info *gpus; /* from the driver, by doctor_read_gpus() */
	size_t n_gpus;
	int listed;                     /* number of GPUs; negative: the topology cannot be read */
	struct diagnostics diagnostics; /* of reading the topology */
	struct gpuarb *gpuarb;          /* by check_bus(); NULL: no bus */
	struct gpuarb_view *view;       /* by check_daemon(); NULL: no answer */
	struct settings *settings;      /* by check_policy(); NULL: not valid */

	const char *check; /* the check that runs */
	struct finding *findings;
	size_t n_findings;
};

struct check {
	const char *name;
	void (*run)(struct doctor *doctor);
};

void doctor_read_gpus(struct doctor *doctor);
void doctor_run(struct doctor *doctor, const struct check *check);
bool doctor_has_problems(const struct doctor *doctor);
void doctor_done(struct doctor *doctor);

/* ---- for the checks --------------------------------------------------------------------- */

/* report() adds a finding; means() and advise() complete the last one. */
void report(struct doctor *doctor, enum mark mark, const char *format, ...) PRINTF_LIKE(3, 4);
void means(struct doctor *doctor, const char *format, ...) PRINTF_LIKE(2, 3);
void advise(struct doctor *doctor, const char *format, ...) PRINTF_LIKE(2, 3);

/* Writes the path below the root into buf. */
#define DOCTOR_PATH 512U
const char *doctor_path(const struct doctor *doctor, char buf[static DOCTOR_PATH],
			const char *format, ...) PRINTF_LIKE(3, 4);

/* 0: the path exists; else a negative errno. */
int doctor_find(const struct doctor *doctor, const char *path);

/* Reads the first line of a small file, without the newline. Negative errno. */
int doctor_read_line(const struct doctor *doctor, const char *path, char *buf, size_t size);

/* Writes the path of the file of a systemd unit: the first that exists, as systemd reads it. */
bool doctor_find_unit(const struct doctor *doctor, const char *unit, char ret[static DOCTOR_PATH]);

/* Counts AMD GPUs on the PCI bus, with or without a driver. A negative errno: the bus cannot be
 * read. */
int doctor_count_devices(const struct doctor *doctor);

/* ---- the checks ----------------------------------------------------------------------- */

void check_kernel(struct doctor *doctor); /* doctor-driver.c */
void check_scheduler(struct doctor *doctor);
void check_debugfs(struct doctor *doctor);
void check_slots(struct doctor *doctor);
void check_isolation(struct doctor *doctor);
void check_memory(struct doctor *doctor);
void check_permissions(struct doctor *doctor); /* doctor-programs.c */
void check_hip(struct doctor *doctor);
void check_environment(struct doctor *doctor);
void check_bus(struct doctor *doctor); /* doctor-service.c */
void check_daemon(struct doctor *doctor);
void check_policy(struct doctor *doctor);
void check_unit(struct doctor *doctor);
void check_installed(struct doctor *doctor);
void check_helpers(struct doctor *doctor); /* doctor-helpers.c */

/* Findings for an answer of the daemon, and for a failure to get one. */
void judge_daemon(struct doctor *doctor, const char *version, size_t n_gpus);
void judge_silence(struct doctor *doctor, int error, const char *sentence);
