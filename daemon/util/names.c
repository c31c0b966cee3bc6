/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/names.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"
#include "util/number.h"

void names_done(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->list[i].name);
	free(names->list);
	*names = (struct names){ 0 };
}

static bool ask(const char *name, bool group, unsigned *ret)
{
	const struct passwd *user = group ? NULL : getpwnam(name);
	const struct group *entry = group ? getgrnam(name) : NULL;

	*ret = user ? user->pw_uid : entry ? entry->gr_gid : 0;
	return user || entry;
}

static int add(struct names *names, const char *name, bool group, bool known, unsigned id)
{
	_cleanup_(freep) char *copy = strdup(name);
	struct name *added = copy ? grow(&names->list, &names->n, sizeof(*added)) : NULL;

	if (!added)
		return -ENOMEM;
	*added = (struct name){ .name = TAKE_PTR(copy), .group = group, .known = known, .id = id };
	return 0;
}

static int compare(const void *left, const void *right)
{
	const struct name *a = left, *b = right;

	return a->group != b->group ? a->group - b->group : strcmp(a->name, b->name);
}

bool names_find(struct names *names, const char *name, bool group, unsigned *ret)
{
	const struct name key = { .name = (char *)(uintptr_t)name, .group = group }, *found = NULL;
	bool known;

	if (!names || names->asks) {
		known = ask(name, group, ret);
		if (names)
			(void)add(names, name, group, known,
				  *ret); /* else its reader does not know it */
		return known;
	}
	if (names->n > 0)
		found = bsearch(&key, names->list, names->n, sizeof(key), compare);
	*ret = found ? found->id : 0;
	return found && found->known;
}

/* A line for each name: "u 1000 alice", "g - staff". */
int names_format(const struct names *names, char **ret)
{
	_cleanup_(freep) char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return -ENOMEM;
	for (size_t i = 0; i < names->n; i++) {
		const struct name *name = &names->list[i];

		if (name->known)
			fprintf(file, "%c %u %s\n", name->group ? 'g' : 'u', name->id, name->name);
		else
			fprintf(file, "%c - %s\n", name->group ? 'g' : 'u', name->name);
	}
	if (fclose(file) != 0)
		return -ENOMEM;
	*ret = TAKE_PTR(text);
	return 0;
}

static int parse_line(char *line, struct names *names)
{
	const char *kind = strsep(&line, " "), *number = strsep(&line, " ");
	uint64_t id = 0;
	bool known;

	if (!line || !*line || (strcmp(kind, "g") != 0 && strcmp(kind, "u") != 0))
		return -EBADMSG;
	known = strcmp(number, "-") != 0;
	if (known && number_parse(number, 0, UINT32_MAX - 1, &id) < 0)
		return -EBADMSG;
	return add(names, line, *kind == 'g', known, (unsigned)id);
}

int names_parse(char *text, struct names *ret)
{
	_cleanup_(names_done) struct names names = { 0 };
	char *line;
	int r = 0;

	while (r >= 0 && (line = strsep(&text, "\n")) && (text || *line))
		r = text ? parse_line(line, &names) : -EBADMSG; /* it has no end */
	if (r < 0)
		return r;
	if (names.n > 0)
		qsort(names.list, names.n, sizeof(*names.list), compare);
	*ret = names;
	names = (struct names){ 0 };
	return 0;
}
