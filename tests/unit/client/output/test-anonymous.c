/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What doctor --report takes out. */

#include <json-c/json.h>

#include "check.h"
#include "client/output/anonymous.h"

static const char before[] =
	"{'findings': [{'found': 'rita may not open it; filmic, film2; film, film: /dev/kfd'}],"
	" 'leases': ["
	"  {'name': 'film', 'tenant': 'artists', 'owner': {'uid': 1007, 'unit': 'film.service'},"
	"   'reason': 'film.service waits', 'intruders': [{'uid': 1008, 'command': 'rita'}]},"
	"  {'name': 'x', 'tenant': '*', 'owner': {'uid': 1007, 'unit': null}, 'queues': 4}],"
	" 'gpus': [{'name': '0000:03:00.0', 'device': 'vega20', 'unmanaged': [{'uid': 1007}]}]}";

static const char after[] =
	"{'findings': [{'found': 'ritaN may not open it; filmic, film2; filmN, filmN: /dev/kfd'}],"
	" 'leases': ["
	"  {'name': 'filmN', 'tenant': 'artistsN', 'owner': {'uid': 1, 'unit': 'serviceN'},"
	"   'reason': 'serviceN waits', 'intruders': [{'uid': 2, 'command': 'ritaN'}]},"
	"  {'name': 'x', 'tenant': '*', 'owner': {'uid': 1, 'unit': null}, 'queues': 4}],"
	" 'gpus': [{'name': '0000:03:00.0', 'device': 'vega20', 'unmanaged': [{'uid': 1}]}]}";

static struct json_object *parse(const char *text)
{
	char copy[1024];
	struct json_object *value;

	CHECK(snprintf(copy, sizeof(copy), "%s", text) < (int)sizeof(copy));
	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	value = json_tokener_parse(copy);
	CHECK(value);
	return value;
}

/* Writes what stands for the name of a lease's member into the expected text. */
static void expect(char *text, size_t size, const char *word, const char *name)
{
	char *at, rest[1024];

	while ((at = strstr(text, word))) {
		snprintf(rest, sizeof(rest), "%s", at + strlen(word));
		snprintf(at, size - (size_t)(at - text), "%s%s", name, rest);
	}
}

TEST(names_become_numbers_and_the_same_name_the_same_number)
{
	struct json_object *value = parse(before), *expected, *lease, *owner, *intruder;
	char text[1024];

	anonymise(value);
	lease = json_object_array_get_idx(json_object_object_get(value, "leases"), 0);
	owner = json_object_object_get(lease, "owner");
	intruder = json_object_array_get_idx(json_object_object_get(lease, "intruders"), 0);
	snprintf(text, sizeof(text), "%s", after);
	expect(text, sizeof(text), "ritaN",
	       json_object_get_string(json_object_object_get(intruder, "command")));
	expect(text, sizeof(text), "filmN",
	       json_object_get_string(json_object_object_get(lease, "name")));
	expect(text, sizeof(text), "artistsN",
	       json_object_get_string(json_object_object_get(lease, "tenant")));
	expect(text, sizeof(text), "serviceN",
	       json_object_get_string(json_object_object_get(owner, "unit")));
	CHECK(!strstr(text, "rita") && !strstr(text, "artists") && !strstr(text, ".service"));
	expected = parse(text);
	CHECK(json_object_equal(value, expected));
	json_object_put(expected);
	json_object_put(value);
}
