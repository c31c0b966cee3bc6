/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Makes a shell's completion from the tables of verbs and options:
 *
 *	completions SHELL TEMPLATE >SCRIPT
 *
 * The line @rows@ of the template becomes what the tables say, @profiles@ in a line the
 * directory of GPU profiles. Runs when gpuarb is built, and is not installed.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/completions/rows.h"
#include "util/base.h"

static const struct {
	const char *name;
	void (*rows)(FILE *out);
} shells[] = {
	{ "bash", rows_bash },
	{ "zsh", rows_zsh },
	{ "fish", rows_fish },
};

void rows_quote(FILE *out, const char *text, const char *quoted_quote)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			fputs(quoted_quote, out);
		else
			fputc(*text, out);
	}
	fputc('\'', out);
}

static void put_line(FILE *out, const char *line)
{
	static const char mark[] = "@profiles@";
	const char *at;

	while ((at = strstr(line, mark))) {
		fprintf(out, "%.*s%s", (int)(at - line), line, GPUARB_PROFILE_DIR);
		line = at + strlen(mark);
	}
	fputs(line, out);
}

static int generate(const char *path, void (*rows)(FILE *out))
{
	FILE *template = fopen(path, "re");
	char line[256];

	if (!template)
		return -errno;
	while (fgets(line, sizeof(line), template)) {
		if (strcmp(line, "@rows@\n") == 0)
			rows(stdout);
		else
			put_line(stdout, line);
	}
	fclose(template);
	return fflush(stdout) != 0 || ferror(stdout) ? -EIO : 0;
}

int main(int argc, char **argv)
{
	int r = -EINVAL;

	for (size_t i = 0; argc == 3 && i < ARRAY_SIZE(shells); i++) {
		if (strcmp(argv[1], shells[i].name) == 0)
			r = generate(argv[2], shells[i].rows);
	}
	if (r < 0)
		fprintf(stderr, "completions SHELL TEMPLATE: %s\n", strerror(-r));
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
