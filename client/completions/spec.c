/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/completions/spec.h"

#include <string.h>

#define MORE "…"

static bool is_option(const char *word)
{
	return strncmp(word, "--", 2) == 0 || strncmp(word, "[--", 3) == 0 ||
	       strncmp(word, "[OPTIONS]", strlen("[OPTIONS]")) == 0;
}

static void copy_word(const char *word, size_t n, char buf[static SPEC_MAX], bool *ret_more)
{
	if (*word == '[') {
		word++;
		n -= 2;
	}
	*ret_more = n > strlen(MORE) && strncmp(word + n - strlen(MORE), MORE, strlen(MORE)) == 0;
	if (*ret_more)
		n -= strlen(MORE);
	if (n >= SPEC_MAX)
		n = SPEC_MAX - 1;
	memcpy(buf, word, n);
	buf[n] = '\0';
}

bool spec_word(const struct verb *verb, size_t i, char buf[static SPEC_MAX], bool *ret_more)
{
	const char *word = verb->arguments;

	for (size_t n; *word; word += n + strspn(word + n, " ")) {
		n = strcspn(word, " ");
		if (is_option(word) || i-- > 0)
			continue;
		copy_word(word, n, buf, ret_more);
		return true;
	}
	return false;
}

const char *spec_value(const struct option *option)
{
	if (option->values)
		return option->values;
	return option->argument;
}

const struct option *spec_option(const struct verb *verb, size_t i)
{
	unsigned groups = (verb ? verb->groups : 0) | OPTIONS_GENERAL;

	for (size_t row = 0; row < option_count; row++) {
		if ((option_table[row].group & groups) && i-- == 0)
			return &option_table[row];
	}
	return NULL;
}
