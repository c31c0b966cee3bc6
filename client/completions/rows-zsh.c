/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "client/completions/rows.h"
#include "client/completions/spec.h"

#define QUOTE "'\\''"

/* Text inside of a specification of _arguments: what would end it is escaped. */
static void put_escaped(FILE *out, const char *text, const char *special)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			fputc('\\', out);
		if (*text == '\'')
			fputs(QUOTE, out);
		else
			fputc(*text, out);
	}
}

/* ':GPU: _gpuarbctl_values "any|GPU"', with the message that stands where nothing is known. */
static void put_action(FILE *out, const char *message, const char *spec)
{
	fputc(':', out);
	put_escaped(out, message, ":\\");
	fprintf(out, ": _gpuarbctl_values \"%s\"", spec);
}

static void put_option(FILE *out, const struct option *option)
{
	const char *value = spec_value(option);

	/* Each want has its own; others stand once. */
	fprintf(out, "\n\t\t'%s--%s%s[", option->group & OPTIONS_WANT ? "*" : "", option->name,
		!value                  ? ""
		: spec_optional(option) ? "=-"
					: "=");
	put_escaped(out, option->help, "[]\\");
	fputc(']', out);
	if (value && spec_optional(option))
		fputs("::seconds:", out);
	else if (value)
		put_action(out, option->argument, value);
	fputc('\'', out);
}

static void put_words(FILE *out, const struct verb *verb)
{
	char word[SPEC_MAX];
	bool more;

	if (verb->command) {
		fputs("\n\t\t'(-)1:command: _command_names -e' '*::arguments: _normal'", out);
		return;
	}
	for (size_t i = 0; spec_word(verb, i, word, &more); i++) {
		fputs("\n\t\t'", out);
		if (more)
			fputc('*', out);
		else
			fprintf(out, "%zu", i + 1);
		put_action(out, word, word);
		fputc('\'', out);
	}
}

static void put_verb(FILE *out, const struct verb *verb)
{
	const struct option *option;

	fprintf(out, "\t%s) arguments=(%s", verb->name, verb->command ? "\n\t\t-A '-*'" : "");
	for (size_t i = 0; (option = spec_option(verb, i)); i++)
		put_option(out, option);
	put_words(out, verb);
	fputs(") ;;\n", out);
}

static void put_verb_names(FILE *out)
{
	const struct option *option;

	fputs("\t'') arguments=(", out);
	for (size_t i = 0; (option = spec_option(NULL, i)); i++)
		put_option(out, option);
	fputs(")\n\t\tverbs=(", out);
	for (size_t i = 0; i < verb_count; i++) {
		fprintf(out, "\n\t\t'%s:", verb_table[i].name);
		put_escaped(out, verb_table[i].summary, ":\\");
		fputc('\'', out);
	}
	fputs(") ;;\n", out);
}

void rows_zsh(FILE *out)
{
	put_verb_names(out);
	for (size_t i = 0; i < verb_count; i++)
		put_verb(out, &verb_table[i]);
}
