/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/program/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong(const char *option, const char *value, const char *wanted)
{
	fprintf(stderr, "kfdsim: %s %s: %s\n", option, value, wanted);
	return -EINVAL;
}

static int add(const char **list, size_t *n, size_t max, const char *option, const char *value)
{
	if (*n == max)
		return wrong(option, value, "one too many of these");
	list[(*n)++] = value;
	return 0;
}

static int take_kfd(struct options *options, const char *value)
{
	static const struct {
		const char *name;
		unsigned minor;
	} versions[] = { { "1.11", 11 }, { "1.17", 17 }, { "1.23", 23 } };

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (strcmp(versions[i].name, value) == 0) {
			options->kfd_minor = versions[i].minor;
			return 0;
		}
	return wrong("--kfd", value,
		     "wanted: 1.11 (Linux 6.1), 1.17 (Linux 6.12) or 1.23 (Linux 7.2)");
}

static int take(struct options *options, int option, const char *value)
{
	switch (option) {
	case 'g': return add(options->gpus, &options->n_gpus, OPTIONS_GPUS, "--gpu", value);
	case 'f': return add(options->faults, &options->n_faults, OPTIONS_FAULTS, "--fail", value);
	case 'm': options->timing = true; return 0;
	case 'v': options->module_version = value; return 0;
	case 's': options->no_smi = true; return 0;
	case 'p': options->profiles = value; return 0;
	case 'k': return take_kfd(options, value);
	case 'h': options->help = true; return 0;
	default: return -EINVAL; /* getopt has said why */
	}
}

static int check(const struct options *options)
{
	if (options->help)
		return 0;
	if (options->n_gpus == 0) {
		fprintf(stderr, "kfdsim: which GPUs? --gpu PROFILE, once for each card\n");
		return -EINVAL;
	}
	if (!options->command[0]) {
		fprintf(stderr, "kfdsim: no command; wanted: kfdsim OPTION... -- COMMAND...\n");
		return -EINVAL;
	}
	return 0;
}

int options_parse(struct options *options, int argc, char *argv[])
{
	static const struct option table[] = {
		{ "gpu", required_argument, NULL, 'g' },
		{ "fail", required_argument, NULL, 'f' },
		{ "kfd", required_argument, NULL, 'k' },
		{ "module-version", required_argument, NULL, 'v' },
		{ "timing", no_argument, NULL, 'm' },
		{ "no-smi", no_argument, NULL, 's' },
		{ "profiles", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option, r;

	while ((option = getopt_long(argc, argv, "+", table, NULL)) != -1) {
		r = take(options, option, optarg);
		if (r < 0)
			return r;
	}
	options->command = argv + optind;
	return check(options);
}
