/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The command line of kfdsim. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_GPUS 16U
#define OPTIONS_FAULTS 32U

struct options {
	const char *gpus[OPTIONS_GPUS]; /* profiles */
	size_t n_gpus;
	const char *profiles; /* where profiles are */
	const char *faults[OPTIONS_FAULTS];
	size_t n_faults;
	const char *module_version; /* NULL: the module has none, as in Linux */
	unsigned kfd_minor;         /* 0: as of Linux 6.1 */
	bool timing, no_smi, help;
	char **command;
};

/* -EINVAL with a sentence on stderr: usage. */
int options_parse(struct options *options, int argc, char *argv[]);
