/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/config-internal.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Cuts the first item, without blanks, out of "a, b"; *rest is what follows, NULL past the
 * last. */
static char *next_item(char **rest)
{
	char *item = *rest, *comma = strchr(item, ','), *end;

	*rest = comma ? comma + 1 : NULL;
	end = comma ? comma : item + strlen(item);
	while (isblank((unsigned char)*item))
		item++;
	while (end > item && isblank((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return item;
}

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

/* The number of a user or group, where the last one there can be means nobody. */
static int parse_id(const char *text, unsigned *ret)
{
	unsigned long long id;

	errno = 0;
	id = strtoull(text, NULL, 10);
	if (errno != 0 || id >= UINT32_MAX)
		return -ERANGE;
	*ret = (unsigned)id;
	return 0;
}

static int find_user(const char *name, unsigned *ret)
{
	const struct passwd *user = getpwnam(name);

	if (!user)
		return -ENOENT;
	*ret = user->pw_uid;
	return 0;
}

static int find_group(const char *name, unsigned *ret)
{
	const struct group *group = getgrnam(name);

	if (!group)
		return -ENOENT;
	*ret = group->gr_gid;
	return 0;
}

/* Reads a list of names or numbers. ret has room for as many as the value has commas, and
 * one more. Returns how many there are, 0 after a complaint. */
static size_t read_ids(const struct ini_place *place, const struct config_key *key, char *value,
		       const char *what, int (*find)(const char *name, unsigned *ret),
		       unsigned *ret)
{
	char *rest = value, *item;
	bool good = true;
	size_t n = 0;
	int r;

	while (rest) {
		item = next_item(&rest);
		r = is_number(item) ? parse_id(item, &ret[n]) : find(item, &ret[n]);
		if (r >= 0) {
			n++;
			continue;
		}
		good = false;
		if (!*item)
			ini_bad(place, "%s: a %s is missing: names or numbers with commas between",
				key->name, what);
		else
			ini_bad(place, "%s: there is no %s '%s' on this machine", key->name, what,
				item);
	}
	return good ? n : 0;
}

/* Returns the list, NULL after a complaint. */
static unsigned *new_ids(const struct ini_place *place, const struct config_key *key,
			 const char *value, const char *what,
			 int (*find)(const char *name, unsigned *ret), size_t *ret_n)
{
	_cleanup_(freep) char *copy = strdup(value);
	unsigned *ids = calloc(strlen(value) + 1, sizeof(*ids));
	size_t n;

	if (!copy || !ids) {
		ini_bad(place, "out of memory");
		free(ids);
		return NULL;
	}
	n = read_ids(place, key, copy, what, find, ids);
	if (n == 0) {
		free(ids);
		return NULL;
	}
	*ret_n = n;
	return ids;
}

void config_set_users(const struct ini_place *place, const struct config_key *key,
		      const char *value, void *field)
{
	struct tenant *tenant = field;

	_Static_assert(sizeof(uid_t) == sizeof(unsigned), "user ids are unsigned");
	tenant->users = new_ids(place, key, value, "user", find_user, &tenant->n_users);
}

void config_set_groups(const struct ini_place *place, const struct config_key *key,
		       const char *value, void *field)
{
	struct tenant *tenant = field;

	_Static_assert(sizeof(gid_t) == sizeof(unsigned), "group ids are unsigned");
	tenant->groups = new_ids(place, key, value, "group", find_group, &tenant->n_groups);
}

static void set_string(const struct ini_place *place, const char *value, char **field)
{
	char *copy = strdup(value);

	if (!copy) {
		ini_bad(place, "out of memory");
		return;
	}
	free(*field);
	*field = copy;
}

void config_set_pattern(const struct ini_place *place, const struct config_key *key,
			const char *value, void *field)
{
	if (!*value)
		ini_bad(place, "%s: a pattern is missing, such as vr-*.service", key->name);
	else
		set_string(place, value, field);
}

void config_set_path_pattern(const struct ini_place *place, const struct config_key *key,
			     const char *value, void *field)
{
	if (*value != '/' && *value != '*')
		ini_bad(place, "%s: '%s' matches no path: it has to begin with / or *", key->name,
			value);
	else
		set_string(place, value, field);
}

/* A profile is named as its file is: no path, nothing hidden. */
static bool is_profile_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._";

	return *name && *name != '.' && name[strspn(name, allowed)] == '\0';
}

void config_set_profiles(const struct ini_place *place, const struct config_key *key,
			 const char *value, void *field)
{
	_cleanup_(freep) char *copy = strdup(value);
	_cleanup_(freep) char *list = calloc(1, strlen(value) + 1);
	char *rest = copy, *item;

	if (!copy || !list) {
		ini_bad(place, "out of memory");
		return;
	}
	while (rest) {
		item = next_item(&rest);
		if (!is_profile_name(item)) {
			ini_bad(place,
				"%s: '%s' names no profile: radeon-vii, or several with "
				"commas between",
				key->name, item);
			return;
		}
		if (*list)
			strcat(list, ",");
		strcat(list, item);
	}
	set_string(place, list, field);
}
