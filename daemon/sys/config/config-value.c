/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/config-internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

#define NUMBER_BYTES 24U

/* The index of a word, or -1 after a complaint that has the nearest. */
static int find_word(const struct ini_place *place, const struct config_key *key, const char *value,
		     const char *const *words, const char *choice)
{
	const char *nearest;

	for (int i = 0; words[i]; i++)
		if (strcmp(value, words[i]) == 0)
			return i;

	nearest = text_nearest(value, words);
	if (nearest)
		ini_bad(place, "%s: '%s' is not %s; did you mean '%s'?", key->name, value, choice,
			nearest);
	else
		ini_bad(place, "%s: '%s' is not %s", key->name, value, choice);
	return -1;
}

void config_set_backend(const struct ini_place *place, const struct config_key *key,
			const char *value, void *field)
{
	static const char *const words[] = { "auto", "kfd", "simulated", NULL };
	int i = find_word(place, key, value, words, "auto, kfd or simulated");

	if (i >= 0)
		*(enum backend *)field = (enum backend)i;
}

void config_set_unmanaged(const struct ini_place *place, const struct config_key *key,
			  const char *value, void *field)
{
	static const char *const words[] = { "ignore", "count", "warn", NULL };
	int i = find_word(place, key, value, words, "ignore, count or warn");

	if (i >= 0)
		*(enum unmanaged *)field = (enum unmanaged)i;
}

/* One of two words: the second is true. */
static void set_either(const struct ini_place *place, const struct config_key *key,
		       const char *value, void *field, const char *no, const char *yes)
{
	const char *const words[] = { no, yes, NULL };
	char works[64];
	int i;

	snprintf(works, sizeof(works), "%s or %s", no, yes);
	i = find_word(place, key, value, words, works);
	if (i >= 0)
		*(bool *)field = i == 1;
}

void config_set_oversubscribe(const struct ini_place *place, const struct config_key *key,
			      const char *value, void *field)
{
	set_either(place, key, value, field, "no", "besteffort");
}

void config_set_on_reload(const struct ini_place *place, const struct config_key *key,
			  const char *value, void *field)
{
	set_either(place, key, value, field, "keep", "revoke");
}

void config_set_gpus(const struct ini_place *place, const struct config_key *key, const char *value,
		     void *field)
{
	set_either(place, key, value, field, "pack", "spread");
}

void config_set_class(const struct ini_place *place, const struct config_key *key,
		      const char *value, void *field)
{
	static const char *const words[] = { "besteffort", "guaranteed", "realtime", NULL };
	int i = find_word(place, key, value, words, "besteffort, guaranteed or realtime");

	if (i >= 0)
		*(enum lease_class *)field = (enum lease_class)class_from_name(value);
}

void config_set_enforce(const struct ini_place *place, const struct config_key *key,
			const char *value, void *field)
{
	static const char *const words[] = { "report", "freeze", "kill", NULL };

	if (find_word(place, key, value, words, "report, freeze or kill") >= 0)
		*(enum enforce_step *)field = (enum enforce_step)enforce_step_from_name(value);
}

void config_set_priority(const struct ini_place *place, const struct config_key *key,
			 const char *value, void *field)
{
	static const char *const words[] = { "low", "normal", "high", NULL };
	int priority = priority_from_name(value);

	if (priority >= 0)
		*(unsigned *)field = (unsigned)priority;
	else
		find_word(place, key, value, words, "low, normal, high or a number from 0 to 15");
}

void config_set_unsigned(const struct ini_place *place, const struct config_key *key,
			 const char *value, void *field)
{
	ini_unsigned(place, key->name, value, key->min, key->max, field);
}

void config_set_bool(const struct ini_place *place, const struct config_key *key, const char *value,
		     void *field)
{
	ini_bool(place, key->name, value, field);
}

/* Splits "250ms" into "250" and "ms". Digits that number cannot hold are left in the unit,
 * which then is none. */
static const char *split_unit(const char *value, char number[static NUMBER_BYTES])
{
	size_t n = strspn(value, "0123456789");

	if (n >= NUMBER_BYTES)
		n = 0;
	memcpy(number, value, n);
	number[n] = '\0';
	return value + n;
}

/* All times are at least a few milliseconds, and nobody who waits for one is to wait for ever. */
#define TIME_MAX_USEC UINT64_C(3600000000)

/* Digits and a unit; 0 for what is neither, or longer than any time may be. */
static uint64_t read_time(const char *value)
{
	static const struct {
		const char *name;
		unsigned usec;
	} units[] = {
		{ "ms", 1000 },
		{ "s", 1000000 },
		{ "min", 60000000 },
		{ "h", 3600000000 },
	};
	char number[NUMBER_BYTES];
	const char *unit = split_unit(value, number);
	unsigned long long n;

	errno = 0;
	n = strtoull(number, NULL, 10);
	for (size_t i = 0; errno == 0 && i < ARRAY_SIZE(units); i++)
		if (strcmp(unit, units[i].name) == 0 && n <= TIME_MAX_USEC / units[i].usec)
			return n * units[i].usec;
	return 0;
}

void config_set_interval(const struct ini_place *place, const struct config_key *key,
			 const char *value, void *field)
{
	uint64_t usec = read_time(value);

	if (usec > 0 && usec >= key->min * UINT64_C(1000))
		*(uint64_t *)field = usec;
	else
		ini_bad(place,
			"%s: '%s' is not a time from %ums to 1h, written like 500ms, 2s or "
			"1min",
			key->name, value, (unsigned)key->min);
}

void config_set_percent(const struct ini_place *place, const struct config_key *key,
			const char *value, void *field)
{
	ini_percent(place, key->name, value, key->min, key->max, field);
}

void config_set_count(const struct ini_place *place, const struct config_key *key,
		      const char *value, void *field)
{
	struct limit *limit = field;
	unsigned n;

	if (ini_unsigned(place, key->name, value, key->min, key->max, &n) == 0)
		*limit = (struct limit){ .kind = LIMIT_COUNT, .value = n };
}

/* Returns whether it was a share, good or bad. */
static bool read_share(const struct ini_place *place, const struct config_key *key,
		       const char *value, struct limit *ret)
{
	unsigned n;

	if (strcmp(value + strspn(value, "0123456789"), "%") != 0)
		return false;
	if (ini_percent(place, key->name, value, 1, 100, &n) == 0)
		*ret = (struct limit){ .kind = LIMIT_PERCENT, .value = n };
	return true;
}

void config_set_share(const struct ini_place *place, const struct config_key *key,
		      const char *value, void *field)
{
	if (read_share(place, key, value, field))
		return;
	if (value[strspn(value, "0123456789")])
		ini_bad(place, "%s: '%s' is neither a count like 16 nor a share like 25%%",
			key->name, value);
	else
		config_set_count(place, key, value, field);
}

void config_set_bytes(const struct ini_place *place, const struct config_key *key,
		      const char *value, void *field)
{
	struct limit *limit = field;
	unsigned long long n;

	if (read_share(place, key, value, limit))
		return;
	if (ini_bytes(place, key->name, value, &n) < 0)
		return;
	if (n == 0)
		ini_bad(place,
			"%s: 0 would bound nothing, as memory that is not asked for is not "
			"counted; use max-leases = 0 to allow nothing",
			key->name);
	else
		*limit = (struct limit){ .kind = LIMIT_COUNT, .value = n };
}
