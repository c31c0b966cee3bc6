/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/options/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/options/option.h"
#include "util/ini.h"

#define GRACE_USEC UINT64_C(10000000) /* that revoke gives */

void command_init(struct command *command)
{
	*command = (struct command){
		.verb = "",
		.grace_usec = GRACE_USEC,
		.n_asks = 1,
		.options = GPUARB_OPTIONS_INIT,
	};
	ask_init(&command->asks[0]);
}

static bool optional(const struct option *option)
{
	return option->argument && option->argument[0] == '[';
}

/* name: "cus" or "cus=30". */
static const struct option *find(unsigned groups, const char *name)
{
	size_t n = strcspn(name, "=");

	for (size_t i = 0; i < option_count; i++) {
		if ((option_table[i].group & groups) && strlen(option_table[i].name) == n &&
		    strncmp(option_table[i].name, name, n) == 0)
			return &option_table[i];
	}
	return NULL;
}

static int unknown(struct command *command, unsigned groups, const char *word)
{
	const char *names[OPTION_MAX + 1], *nearest = NULL;
	char name[32];
	size_t n = 0;

	for (size_t i = 0; i < option_count; i++) {
		if (option_table[i].group & groups)
			names[n++] = option_table[i].name;
	}
	names[n] = NULL;

	if (strncmp(word, "--", 2) == 0) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
		nearest = ini_nearest(name, names);
	}
	snprintf(command->problem, sizeof(command->problem), "no option %.80s%s%s%s", word,
		 nearest ? ": did you mean --" : "; --help lists them", nearest ? nearest : "",
		 nearest ? "?" : "");
	return -EINVAL;
}

/* Takes argv[*i] and, where its value is a word of its own, the next. */
static int take_option(struct command *command, unsigned groups, int argc, char **argv, int *i)
{
	const char *word = strcmp(argv[*i], "-h") == 0 ? "--help" : argv[*i], *value;
	const struct option *option = strncmp(word, "--", 2) == 0 ? find(groups, word + 2) : NULL;
	int r;

	if (!option)
		return unknown(command, groups, word);

	value = strchr(word, '=');
	if (value)
		value++;
	if (value && !option->argument)
		return option_wrong(command, option, value, "takes no value");

	if (!value && option->argument && !optional(option)) {
		if (*i + 1 == argc) {
			snprintf(command->problem, sizeof(command->problem),
				 "--%s needs a value: --%s=%s", option->name, option->name,
				 option->argument);
			return -EINVAL;
		}
		value = argv[++*i];
	}

	r = option->take(command, option, value);
	if (r >= 0)
		last_ask(command)->given |= UINT64_C(1) << (option - option_table);
	return r;
}

int options_parse(struct command *command, unsigned groups, bool stops, int argc, char **argv)
{
	size_t n = 0;
	int i, r;

	for (i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		/* "-" alone is a word, and so is what looks like no option. */
		if (argv[i][0] != '-' || !argv[i][1]) {
			if (stops)
				break;
			argv[n++] = argv[i];
			continue;
		}
		r = take_option(command, groups, argc, argv, &i);
		if (r < 0)
			return r;
	}
	while (i < argc)
		argv[n++] = argv[i++];

	if ((int)n < argc)
		argv[n] = NULL;
	command->rest = argv;
	command->n_rest = n;
	return 0;
}

bool option_given(const struct ask *ask, const char *name)
{
	const struct option *option = find(OPTIONS_WANT, name);

	return option && (ask->given & UINT64_C(1) << (option - option_table));
}

bool option_describe(unsigned groups, size_t i, char *buf, size_t size, const char **ret_help)
{
	for (size_t row = 0; row < option_count; row++) {
		const struct option *option = &option_table[row];

		if (!(option->group & groups) || i-- > 0)
			continue;

		snprintf(buf, size, "--%s%s%s", option->name,
			 option->argument && !optional(option) ? "=" : "",
			 option->argument ? option->argument : "");
		*ret_help = option->help;
		return true;
	}
	return false;
}
