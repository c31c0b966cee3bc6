/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/anonymous.h"

#include <ctype.h>
#include <json-c/json.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/output/print.h"
#include "util/base.h"
#include "util/grow.h"

struct names {
	char **words;
	size_t n;
	int64_t *uids;
	size_t n_uids;
};

static void names_done(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->words[i]);
	free(names->words);
	free(names->uids);
}

static void add_word(struct names *names, const char *word)
{
	char **added;

	/* "*" is the tenant of everybody, and root is on every machine. */
	if (!word || !word[0] || !word[1] || strcmp(word, "root") == 0)
		return;
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->words[i], word) == 0)
			return;
	added = have(grow(&names->words, &names->n, sizeof(*added)));
	*added = have(strdup(word));
}

static int64_t uid_number(struct names *names, int64_t uid)
{
	int64_t *added;
	size_t i = 0;

	while (i < names->n_uids && names->uids[i] != uid)
		i++;
	if (i < names->n_uids)
		return (int64_t)i + 1;
	added = have(grow(&names->uids, &names->n_uids, sizeof(*added)));
	*added = uid;
	return (int64_t)i + 1;
}

/* A GPU has the key name, too: that is a PCI address. */
static bool is_name(const char *key, struct json_object *in)
{
	static const char *const keys[] = { "user", "tenant", "unit", "command" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return strcmp(key, "name") == 0 && !json_object_object_get(in, "device");
}

static void collect(struct names *names, struct json_object *value)
{
	if (json_object_is_type(value, json_type_array))
		for (size_t i = 0; i < json_object_array_length(value); i++)
			collect(names, json_object_array_get_idx(value, i));
	if (!json_object_is_type(value, json_type_object))
		return;
	json_object_object_foreach(value, key, member)
	{
		if (is_name(key, value) && json_object_is_type(member, json_type_string))
			add_word(names, json_object_get_string(member));
		else if (strcmp(key, "uid") == 0 && json_object_is_type(member, json_type_int))
			json_object_set_int64(member,
					      uid_number(names, json_object_get_int64(member)));
		else
			collect(names, member);
	}
}

static bool is_part(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The longest of the names that begins here and is a word of its own; names.n: none. */
static size_t name_at(const struct names *names, const char *text, const char *at)
{
	size_t found = names->n;

	for (size_t i = 0; i < names->n; i++) {
		const char *word = names->words[i];
		size_t n = strlen(word);

		if (strncmp(at, word, n) == 0 && !(is_part(word[n - 1]) && is_part(at[n])) &&
		    !(at > text && is_part(word[0]) && is_part(at[-1])) &&
		    (found == names->n || n > strlen(names->words[found])))
			found = i;
	}
	return found;
}

static void replace(const struct names *names, struct json_object *string)
{
	const char *text = json_object_get_string(string), *at = text;
	char *changed = NULL;
	size_t size, i;
	FILE *out = have(open_memstream(&changed, &size));

	while (*at) {
		i = name_at(names, text, at);
		if (i == names->n) {
			fputc(*at++, out);
			continue;
		}
		fprintf(out, "name%zu", i + 1);
		at += strlen(names->words[i]);
	}
	if (fclose(out) != 0 || !json_object_set_string(string, changed))
		no_memory();
	free(changed);
}

static void replace_below(const struct names *names, struct json_object *value)
{
	if (json_object_is_type(value, json_type_string))
		replace(names, value);
	if (json_object_is_type(value, json_type_array))
		for (size_t i = 0; i < json_object_array_length(value); i++)
			replace_below(names, json_object_array_get_idx(value, i));
	if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, key, member)
		{
			(void)key;
			replace_below(names, member);
		}
	}
}

void anonymise(struct json_object *value)
{
	_cleanup_(names_done) struct names names = { 0 };
	const struct passwd *user = getpwuid(getuid());
	struct utsname machine;

	if (uname(&machine) == 0)
		add_word(&names, machine.nodename);
	if (user) {
		add_word(&names, user->pw_name);
		add_word(&names, strcmp(user->pw_dir, "/root") == 0 ? "" : user->pw_dir);
	}
	add_word(&names, getenv("SUDO_USER"));
	collect(&names, value);
	replace_below(&names, value);
}
