/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/grow.h"
#include "util/names.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int names_parse(const char *text, struct names *ret)
{
	_cleanup_(names_done) struct names names = { 0 };
	char name[256], kind, id[16];
	int used, r = 0;

	for (; *text && r >= 0; text += used) {
		char *end;
		unsigned long number;

		used = 0;
		if (sscanf(text, "%c %15[-0-9]%*1[ ]%255[^\n]%*1[\n]%n", &kind, id, name, &used) !=
			    3 ||
		    used == 0 || (kind != 'u' && kind != 'g'))
			return -EBADMSG;
		number = strtoul(id, &end, 10);
		if (strcmp(id, "-") != 0 && (*end || number >= UINT32_MAX))
			return -EBADMSG;
		r = add(&names, name, kind == 'g', strcmp(id, "-") != 0, (unsigned)number);
	}
	if (r < 0)
		return r;
	if (names.n > 0)
		qsort(names.list, names.n, sizeof(*names.list), compare);
	*ret = names;
	names = (struct names){ 0 };
	return 0;
}
