/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/helper-program.h"
#include "util/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECONDS_MAX 86400UL
#define EXIT_USAGE 2

static void print_help(const struct helper_program *program)
{
	printf("%s [OPTION...]\n\n"
	       "%s\n\n"
	       "%s"
	       "  --help, --version\n\n"
	       "gpuarbd(8), HELPERS, says more.\n",
	       program->name, program->task, program->help);
}

static int parse_seconds(const struct helper_program *program, const char *option, const char *text,
			 unsigned long *ret)
{
	uint64_t seconds;

	if (number_parse(text, 1, SECONDS_MAX, &seconds) < 0) {
		fprintf(stderr, "%s: --%s=%s: a number of seconds from 1 to %lu\n", program->name,
			option, text, SECONDS_MAX);
		return -EINVAL;
	}
	*ret = seconds;
	return 0;
}

static int parse_option(struct helper_program *program, int value, const char *name)
{
	switch (value) {
	case HELPER_IDLE: return parse_seconds(program, name, optarg, &program->idle);
	case HELPER_TIMEOUT: return parse_seconds(program, name, optarg, &program->timeout);
	case HELPER_DIRECTORY: program->directory = optarg; return 0;
	case HELPER_REMOVE: program->remove = true; return 0;
	case 'h': print_help(program); break;
	case 'v': printf("%s %s\n", program->name, GPUARB_VERSION); break;
	default: return -EINVAL; /* getopt_long() has printed why */
	}
	program->done = true;
	return 0;
}

static int parse(struct helper_program *program, int argc, char *argv[])
{
	int value, i = 0, r = 0;

	while (r >= 0 && !program->done &&
	       (value = getopt_long(argc, argv, "", program->options, &i)) >= 0)
		r = parse_option(program, value, program->options[i].name);
	if (r >= 0 && !program->done && optind < argc) {
		fprintf(stderr, "%s: unexpected argument \"%s\": see --help\n", program->name,
			argv[optind]);
		return -EINVAL;
	}
	return r;
}

static bool is_connection(int fd)
{
	socklen_t size = sizeof(int);
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

int helper_program_main(struct helper_program *program, int argc, char *argv[])
{
	int r;

	if (parse(program, argc, argv) < 0)
		return EXIT_USAGE;
	if (program->done)
		return EXIT_SUCCESS;
	if (program->needs_connection && !program->remove && !is_connection(STDIN_FILENO)) {
		fprintf(stderr,
			"%s: standard input is not a connection of gpuarbd: start %s.socket\n",
			program->name, program->name);
		return EXIT_USAGE;
	}
	r = program->run(program);
	if (r < 0)
		fprintf(stderr, "%s, reading %s: %s\n", program->name, program->directory,
			strerror(-r));
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
