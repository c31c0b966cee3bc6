/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "client/output/fail.h"
#include "client/verbs/verb.h"

static const char exit_codes[] =
	"Exit codes: 0 success, 1 failure, 2 usage, 3 refused, 4 not authorised, 5 no daemon or "
	"bus,\n"
	"6 configuration error, 7 timed out, 8 lease lost, 9 drift found. run: the exit code of "
	"the\n"
	"command; 125 failure of gpuarb, 126 command not executable, 127 command not found.\n";

static void print_options(unsigned groups)
{
	const char *help;
	char option[40];

	for (size_t i = 0; option_describe(groups, i, option, sizeof(option), &help); i++)
		printf("  %-24s %s\n", option, help);
}

void help_print(void)
{
	printf("gpuarbctl [VERB [OPTIONS]]: reserve and inspect parts of AMD GPUs\n\n");
	for (size_t i = 0; i < verb_count; i++)
		printf("  %-24s %s\n", verb_table[i].name, verb_table[i].summary);
	printf("\nOptions of all verbs (gpuarbctl VERB --help prints the options of a verb):\n");
	print_options(OPTIONS_GENERAL);
	printf("\n%s", exit_codes);
}

void help_print_verb(const struct verb *verb)
{
	printf("%c%s.\n\nUsage: gpuarbctl %s%s%s\n", toupper(verb->summary[0]), verb->summary + 1,
	       verb->name, *verb->arguments ? " " : "", verb->arguments);
	if (strstr(verb->arguments, "LEASE"))
		printf("LEASE is a number in gpuarbctl list, or a name that no other lease has.\n");
	printf("\nOptions:\n");
	print_options(verb->groups | OPTIONS_GENERAL);
}

int run_help(struct command *command)
{
	const struct verb *verb = command->n_rest > 0 ? verb_find(command->rest[0]) : NULL;

	if (command->n_rest > 0 && !verb)
		return fail(command, EXIT_USAGE, "unknown verb '%.80s'; gpuarbctl help lists all",
			    command->rest[0]);
	if (verb)
		help_print_verb(verb);
	else
		help_print();
	return EXIT_OK;
}
