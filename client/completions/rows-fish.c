/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/completions/rows.h"
#include "client/completions/spec.h"

#define QUOTE "\\'"

static void put_description(FILE *out, const char *text)
{
	fputs(" -d ", out);
	rows_quote(out, text, QUOTE);
	fputc('\n', out);
}

static void put_values(FILE *out, const char *spec)
{
	fprintf(out, " -a '(__gpuarbctl_values \"%s\")'", spec);
}

/* Options of every verb may stand before it; those of a command end where it begins. */
static void put_option(FILE *out, const struct verb *verb, const struct option *option)
{
	const char *value = spec_value(option);

	fputs("complete -c gpuarbctl", out);
	if (verb)
		fprintf(out, " -n '__gpuarbctl_at %s 0%s'", verb->name,
			verb->command ? "" : " more");
	else
		fputs(" -n __gpuarbctl_open", out);
	fprintf(out, " -l %s", option->name);
	if (value && !spec_optional(option)) {
		fputs(" -x", out);
		put_values(out, value);
	}
	put_description(out, option->help);
}

static void put_verb(FILE *out, const struct verb *verb)
{
	const struct option *option;
	char word[SPEC_MAX];
	bool more;

	fprintf(out, "complete -c gpuarbctl -n '__gpuarbctl_at \"\" 0' -a %s", verb->name);
	put_description(out, verb->summary);
	for (size_t i = 0; (option = spec_option(verb, i)); i++) {
		if (!(option->group & OPTIONS_GENERAL))
			put_option(out, verb, option);
	}
	for (size_t i = 0; spec_word(verb, i, word, &more); i++) {
		fprintf(out, "complete -c gpuarbctl -n '__gpuarbctl_at %s %zu%s'", verb->name, i,
			more ? " more" : "");
		put_values(out, word);
		fputc('\n', out);
	}
}

/* Of these the next word may be the value. */
static void put_valued(FILE *out)
{
	fputs("function __gpuarbctl_valued\n\tcontains -- $argv[1]", out);
	for (size_t row = 0; row < option_count; row++) {
		if (option_table[row].argument && !spec_optional(&option_table[row]))
			fprintf(out, " --%s", option_table[row].name);
	}
	fputs("\nend\n\n", out);
}

static void put_command_verbs(FILE *out)
{
	fputs("function __gpuarbctl_runs\n\tcontains -- $argv[1]", out);
	for (size_t i = 0; i < verb_count; i++) {
		if (verb_table[i].command)
			fprintf(out, " %s", verb_table[i].name);
	}
	fputs("\nend\n\n", out);
}

void rows_fish(FILE *out)
{
	const struct option *option;

	put_valued(out);
	put_command_verbs(out);
	for (size_t i = 0; (option = spec_option(NULL, i)); i++)
		put_option(out, NULL, option);
	for (size_t i = 0; i < verb_count; i++)
		put_verb(out, &verb_table[i]);
}
