/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The checks behind `gpuarbctl doctor`. Each looks at one thing and says, once or more, what
 * it found, what that means and what to do. None changes anything; /dev/kfd stays closed, for
 * whoever has it open keeps everybody from changing partition modes.
 *
 * A program that runs out of memory here ends with a failure: a problem must not be lost.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
	char *found, *means, *advice; /* the last is NULL where there is nothing to do */
};

struct doctor {
	const char *root;           /* stands before every path: "" */
	const char *version;        /* of this program */
	struct config_files config; /* as for config_load() */

	/* What checks use of one another. */
	struct gpu_info *gpus; /* as the driver shows them; by doctor_look_at_gpus() */
	size_t n_gpus;
	int listed;                     /* negative: nothing of the topology can be believed */
	struct diagnostics diagnostics; /* what was said of that */
	struct gpuarb *gpuarb;          /* by check_bus(); NULL: there is no bus */
	struct gpuarb_view *view;       /* by check_daemon(); NULL: it did not answer */
	struct settings *settings;      /* by check_policy(); NULL: not valid */

	const char *check; /* the one that runs now */
	struct finding *findings;
	size_t n_findings;
};

struct check {
	const char *name;
	void (*run)(struct doctor *doctor);
};

void doctor_look_at_gpus(struct doctor *doctor);
void doctor_run(struct doctor *doctor, const struct check *check);
bool doctor_has_problems(const struct doctor *doctor);
void doctor_done(struct doctor *doctor);

/* ---- for the checks: doctor.c ----------------------------------------------------------- */

/* A finding; what it means, and what to do about it, are said of the last one. */
void say(struct doctor *doctor, enum mark mark, const char *format, ...) PRINTF_LIKE(3, 4);
void means(struct doctor *doctor, const char *format, ...) PRINTF_LIKE(2, 3);
void advise(struct doctor *doctor, const char *format, ...) PRINTF_LIKE(2, 3);

/* The path below the root, in buf. */
#define DOCTOR_PATH 512U
const char *doctor_path(const struct doctor *doctor, char buf[static DOCTOR_PATH],
			const char *format, ...) PRINTF_LIKE(3, 4);

/* Is it there? 0, or a negative errno. */
int doctor_find(const struct doctor *doctor, const char *path);

/* The first line of a small file, without its end. A negative errno where there is none. */
int doctor_read_line(const struct doctor *doctor, const char *path, char *buf, size_t size);

/* AMD's GPUs on the PCI bus, whatever drives them: 0 means that there is nothing to find. A negative
 * errno where the bus cannot be seen. doctor-pci.c */
int doctor_count_devices(const struct doctor *doctor);

/* ---- the checks ----------------------------------------------------------------------- */

void check_kernel(struct doctor *doctor); /* doctor-kernel.c */
void check_scheduler(struct doctor *doctor);
void check_debugfs(struct doctor *doctor);
void check_slots(struct doctor *doctor); /* doctor-gpu.c */
void check_isolation(struct doctor *doctor);
void check_permissions(struct doctor *doctor); /* doctor-access.c */
void check_hip(struct doctor *doctor);         /* doctor-hip.c */
void check_environment(struct doctor *doctor);
void check_bus(struct doctor *doctor); /* doctor-daemon.c */
void check_daemon(struct doctor *doctor);
void check_policy(struct doctor *doctor);    /* doctor-policy.c */
void check_unit(struct doctor *doctor);      /* doctor-unit.c */
void check_installed(struct doctor *doctor); /* doctor-installed.c */

/* What an answer of the daemon's says, and what its absence does. */
void judge_daemon(struct doctor *doctor, const char *version, size_t n_gpus);
void judge_silence(struct doctor *doctor, int error, const char *sentence);
