/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the helpers that are programs of their own share: the command line, and the connection. */

#include <getopt.h>
#include <stdbool.h>

/* For the table of options of a program, whose further rows have one of these values. */
enum {
	HELPER_IDLE = 'i',      /* seconds */
	HELPER_TIMEOUT = 't',   /* seconds */
	HELPER_DIRECTORY = 'd', /* to read instead of /sys or /proc */
	HELPER_REMOVE = 'r',    /* no argument */
};
#define HELPER_OPTIONS                                                             \
	{ "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'v' }, \
	{                                                                          \
		NULL, 0, NULL, 0                                                   \
	}

struct helper_program {
	const char *name;
	const char *task; /* a sentence of two lines for --help */
	const char *help; /* a line for each option but --help and --version */
	const struct option *options;

	/* 0: the work is done. -errno: it is printed. */
	int (*run)(const struct helper_program *program);
	bool needs_connection; /* of type SOCK_SEQPACKET, as standard input, except with --remove */

	/* Defaults, which the command line changes. */
	unsigned long idle, timeout; /* seconds */
	const char *directory;
	bool remove;
	bool done; /* --help or --version: nothing is left to do */
};

/* Returns the exit status. */
int helper_program_main(struct helper_program *program, int argc, char *argv[]);
