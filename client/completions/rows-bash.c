/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/completions/rows.h"
#include "client/completions/spec.h"

/* options='--gpu=any|GPU --exact --wait[=SECONDS]' */
static void put_options(FILE *out, const struct verb *verb)
{
	const struct option *option;

	fputs("options='", out);
	for (size_t i = 0; (option = spec_option(verb, i)); i++) {
		const char *value = spec_value(option);

		fprintf(out, "%s--%s%s%s", i > 0 ? " " : "", option->name,
			value && !spec_optional(option) ? "=" : "", value ? value : "");
	}
	fputc('\'', out);
}

/* words='check FILE...' */
static void put_words(FILE *out, const struct verb *verb)
{
	char word[SPEC_MAX];
	bool more;

	fputs(" words='", out);
	for (size_t i = 0; spec_word(verb, i, word, &more); i++)
		fprintf(out, "%s%s%s", i > 0 ? " " : "", word, more ? "..." : "");
	fputc('\'', out);
}

static void put_verb_names(FILE *out)
{
	fputs("	'') ", out);
	put_options(out, NULL);
	fputs(" words='", out);
	for (size_t i = 0; i < verb_count; i++)
		fprintf(out, "%s%s", i > 0 ? "|" : "", verb_table[i].name);
	fputs("' ;;\n", out);
}

void rows_bash(FILE *out)
{
	put_verb_names(out);
	for (size_t i = 0; i < verb_count; i++) {
		fprintf(out, "	%s) ", verb_table[i].name);
		put_options(out, &verb_table[i]);
		put_words(out, &verb_table[i]);
		fputs(" ;;\n", out);
	}
}
