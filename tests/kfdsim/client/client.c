/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/client/client.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noreturn)) static void usage(const char *what)
{
	fprintf(stderr,
		"%s; wanted: [--device N] [--streams N] [--masked HEX]... [--high] "
		"[--copy] [--work] [--hold]\n",
		what);
	exit(2);
}

static unsigned number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || value > 1024)
		usage(text);
	return (unsigned)value;
}

/* "0x3ff00ff00ff": the last eight digits are the first word. */
static void take_mask(struct client_options *options, const char *text)
{
	const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
	size_t length = strlen(digits), n = (length + 7) / 8;
	struct client_mask *mask = &options->masks[options->n_masks];
	char word[9];

	if (options->n_masks == CLIENT_MASKS || length == 0 || n > CLIENT_WORDS ||
	    strspn(digits, "0123456789abcdefABCDEF") != length)
		usage(text);
	for (size_t i = 0; i < n; i++) {
		size_t end = length - 8 * i, start = end > 8 ? end - 8 : 0;

		memcpy(word, digits + start, end - start);
		word[end - start] = '\0';
		mask->words[i] = (uint32_t)strtoul(word, NULL, 16);
	}
	mask->n = (unsigned)n;
	options->n_masks++;
}

void client_options(struct client_options *options, int argc, char *argv[])
{
	static const struct option table[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "streams", required_argument, NULL, 's' },
		{ "masked", required_argument, NULL, 'm' },
		{ "high", no_argument, NULL, 'p' },
		{ "copy", no_argument, NULL, 'c' },
		{ "work", no_argument, NULL, 'w' },
		{ "broken", no_argument, NULL, 'b' },
		{ "hold", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1)
		switch (option) {
		case 'd': options->device = number(optarg); break;
		case 's': options->streams = number(optarg); break;
		case 'm': take_mask(options, optarg); break;
		case 'p': options->high = true; break;
		case 'c': options->copy = true; break;
		case 'w': options->work = true; break;
		case 'b': options->broken = true; break;
		case 'h': options->hold = true; break;
		default: usage("no such option");
		}
	if (optind < argc)
		usage(argv[optind]);
}

bool client_step(const struct client_options *options)
{
	char c = '\0';

	if (!options->hold)
		return false;
	puts("ready");
	fflush(stdout);
	while (c != '\n')
		if (read(STDIN_FILENO, &c, 1) != 1)
			return false;
	return true;
}

void client_hold(const struct client_options *options)
{
	while (client_step(options))
		continue;
}
