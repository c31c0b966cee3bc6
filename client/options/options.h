/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the command line into plain values, by one table of options for all verbs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/mask/gpu-info.h"
#include "core/policy/class.h"
#include "libgpuarb/gpuarb.h"

/* Which options a verb takes, as bits. */
enum option_group {
	OPTIONS_GENERAL = 1 << 0, /* every verb */
	OPTIONS_WANT = 1 << 1,    /* one want */
	OPTIONS_LEASE = 1 << 2,   /* the request as a whole */
	OPTIONS_RUN = 1 << 3,
	OPTIONS_MODEL = 1 << 4, /* the GPU or profile of a mask */
	OPTIONS_SVG = 1 << 5,
	OPTIONS_LATENCY = 1 << 6,
	OPTIONS_ACTIVATE = 1 << 7,
	OPTIONS_REVOKE = 1 << 8,
	OPTIONS_RT = 1 << 9,
	OPTIONS_REQUEUE = 1 << 10,
	OPTIONS_CONFIG = 1 << 11,
	OPTIONS_LIST = 1 << 12, /* which leases and columns are shown */
	OPTIONS_MONITOR = 1 << 13,
	OPTIONS_CALIBRATE = 1 << 14,
	OPTIONS_USAGE = 1 << 15,
	OPTIONS_LIMITS = 1 << 16,
	OPTIONS_PLAN = 1 << 18,
	OPTIONS_VERIFY = 1 << 17,
	OPTIONS_CDI = 1 << 19,
	OPTIONS_DOCTOR = 1 << 20,
};

/* One want as it was typed. wants.h turns shares into CUs. */
struct typed_want {
	struct gpuarb_want want;
	struct share {
		unsigned cus, cus_min, cus_max; /* percent of the GPU's CUs; 0: none */
	} share;
	uint64_t given; /* options of a want that were typed, as bits by their row in the table */
	char gpu[GPU_NAME_MAX]; /* of a want that stands for one of --gpu=all */
};

struct command {
	bool json, no_legend, no_pager, help, version, quiet, same_line, fixed, cap, no_cap,
		export_dir, restart, report;
	/* run: why the lease cannot be adaptable. "": it can be; NULL: the options decide. */
	const char *fixed_reason;
	unsigned
		hip_queues; /* that HIP would use, where the request has a number for it; 0: it has not */
	bool colour;        /* decided by main */
	const char *verb; /* for messages; "": none yet */
	char **typed;     /* the words of the command line, as they were; NULL after the last */
	const char *gpu, *profile, *profiles, *svg, *html, *submit_file, *paper;
	uint32_t seed; /* calibrate --paper; 0: drawn */
	uint64_t grace_usec;
	bool all, now;                /* revoke */
	const char *reason;           /* NULL: none */
	const char *config;           /* NULL: not given */
	const char *templates, *into; /* directories of config init; NULL: not given */
	bool yes;

	/* Lists: which leases, NULL: all; which columns, NULL: those that fit. */
	struct {
		const char *user, *tenant, *gpu, *state;
	} filter;
	const char *groups; /* config explain; NULL: those of the user */
	const char *columns;
	uint64_t since; /* usage: seconds of CLOCK_REALTIME; 0: all */
	bool wide, watch, time, limits, probe, quick, shared, oversubscribe, emulated,
		compare_and_swap;
	unsigned width; /* columns of the terminal, decided by main; 0: no terminal, no limit */
	bool margin_given;
	uint32_t runs;         /* rt measure; 0: the default */
	const char *sizes;     /* rt measure; NULL: all */
	const char *beside;    /* rt measure; NULL: the command itself */
	const char *beside_on; /* rt measure; NULL: the other engines */
	unsigned margin_percent;

	struct typed_want wants[REQUEST_WANTS];
	size_t n_wants; /* at least 1 */
	bool every_gpu; /* --gpu=all: the wants are of one option */
	struct gpuarb_options options;

	uint64_t id; /* the lease of verbs that take LEASE as their first word; 0: none */
	char **rest; /* words that are no options: part of argv */
	size_t n_rest;

	char problem[320]; /* the error of options_parse() */

	/* Why gpuarbd does not start: doctor/service-failure.h. NULL: not known. */
	bool (*service_failed)(bool ended, char *why, size_t size);

	/* The connection to the daemon and its last snapshot: see launch/session.h. */
	struct gpuarb *gpuarb;    /* NULL: not open */
	struct gpuarb_view *view; /* NULL: none; owns the arrays */
	const struct gpuarb_gpu *gpus;
	const struct gpuarb_lease_info *leases;
	size_t n_gpus, n_leases;
	char *visible; /* the GPUs that the environment shows, with commas; NULL: it does not restrict them */
};

/* One row of the table of options. */
struct option {
	const char *name;
	const char *argument; /* NULL: takes none; "[=…": may be left out */
	const char *help;
	unsigned group;
	/* NULL: without an argument it is a flag; with max a number; with values one of these words; else text. */
	int (*take)(struct command *command, const struct option *option, const char *value);
	size_t offset, share; /* of the field that it sets: in the want, the share or the command */
	int (*read)(const char *text, uint64_t *ret); /* of a number of 64 bits; NULL: of 32 bits */
	uint64_t min, max;                            /* of a number */
	const char *works;                            /* a sentence for one that is wrong */
	const char *values; /* for completion: see verbs/complete.c; NULL: as argument */
};

#define OPTION_MAX 100

extern const struct option option_table[];
extern const size_t option_count;

void command_init(struct command *command);

/*
 * Takes the options of these groups out of argv[0..argc). stops: the first word that is no option
 * starts a command and ends the options; otherwise words and options may be mixed. "--" ends the
 * options. Moves the remaining words to the front of argv, with a NULL after them. Returns -EINVAL
 * with an error in command->problem that names the option, its value and what is valid.
 */
int options_parse(struct command *command, unsigned groups, bool stops, int argc, char **argv);

/* Whether this option was typed for this want. */
bool option_given(const struct typed_want *typed, const char *name);

/* "--wait" works without a value, "--cus" does not. */
static inline bool option_value_optional(const struct option *option)
{
	return option->argument && option->argument[0] == '[';
}

/* The option of these groups with this name: "cus", or "cus=30" up to the equals sign. NULL:
 * none. */
const struct option *option_find(unsigned groups, const char *name);

/* For help: the i-th option of these groups as "--cus=N|N%", and what it does; false past the
 * last. */
bool option_describe(unsigned groups, size_t i, char *buf, size_t size, const char **ret_help);

/* Failures as of number_parse(). */

/* Microseconds of "10", "10s", "500ms", "5min", "2h", "7d": seconds without a unit. -EINVAL: no time;
 * -ERANGE: too large. */
int number_time(const char *text, uint64_t *ret);
