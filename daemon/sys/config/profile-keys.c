/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/profile-keys.h"

#include <stdint.h>
#include <string.h>

#include "util/text.h"

/* One key: take() reads its value into the draft, or complains. */
struct key {
	const char *name;
	void (*take)(const struct ini_place *place, const struct key *key, const char *value,
		     struct profile_draft *draft);
	size_t offset;     /* in the draft, for those that take one plain value */
	unsigned min, max; /* of a number */
	bool optional;
	const char *word[2]; /* for true and for false */
};

static void *target(struct profile_draft *draft, const struct key *key)
{
	return (char *)draft + key->offset;
}

static void take_number(const struct ini_place *place, const struct key *key, const char *value,
			struct profile_draft *draft)
{
	ini_unsigned(place, key->name, value, key->min, key->max, target(draft, key));
}

static void take_bool(const struct ini_place *place, const struct key *key, const char *value,
		      struct profile_draft *draft)
{
	ini_bool(place, key->name, value, target(draft, key));
}

static void take_word(const struct ini_place *place, const struct key *key, const char *value,
		      struct profile_draft *draft)
{
	bool *flag = target(draft, key);

	for (size_t i = 0; i < ARRAY_SIZE(key->word); i++)
		if (strcmp(value, key->word[i]) == 0) {
			*flag = i == 0;
			return;
		}
	ini_bad(place, "%s: '%s' is neither %s nor %s", key->name, value, key->word[0],
		key->word[1]);
}

static void take_device(const struct ini_place *place, const struct key *key, const char *value,
			struct profile_draft *draft)
{
	size_t size = strlen(value) + 1;

	if (size == 1 || size > GPU_DEVICE_MAX)
		ini_bad(place, "%s: a name of 1 to %u bytes is wanted", key->name,
			GPU_DEVICE_MAX - 1);
	else
		memcpy(draft->profile.info.device, value, size);
}

static void take_vram(const struct ini_place *place, const struct key *key, const char *value,
		      struct profile_draft *draft)
{
	unsigned long long bytes;

	if (ini_bytes(place, key->name, value, &bytes) < 0)
		return;
	if (bytes == 0)
		ini_bad(place, "%s: '%s' is no memory at all", key->name, value);
	draft->profile.info.vram_bytes = bytes;
}

static void take_scheduler(const struct ini_place *place, const struct key *key, const char *value,
			   struct profile_draft *draft)
{
	int r = scheduler_from_name(value);

	if (r < 0)
		ini_bad(place, "%s: '%s' is none of hws hws-strict none mes unknown", key->name,
			value);
	else
		draft->profile.info.scheduler = (enum scheduler)r;
}

/* Counts of CUs, set apart by blanks or commas. Those past the largest GPU are counted
 * and not kept. */
static void take_active(const struct ini_place *place, const struct key *key, const char *value,
			struct profile_draft *draft)
{
	_cleanup_(freep) char *copy = strdup(value);
	char *word, *rest = copy;
	unsigned cus;

	if (!copy)
		ini_bad(place, "out of memory");
	while (copy && (word = strtok_r(rest, " \t,", &rest))) {
		if (ini_unsigned(place, key->name, word, key->min, key->max, &cus) < 0)
			return;
		if (draft->n_active < PROFILE_ARRAYS)
			draft->active[draft->n_active] = (uint8_t)cus;
		draft->n_active++;
	}
}

#define INFO(member) offsetof(struct profile_draft, profile.info.member)
#define SHAPE(member) INFO(geometry.member)
#define NUMBER(key, at, least, most) \
	.name = (key), .take = take_number, .offset = (at), .min = (least), .max = (most)
#define WORD(key, at, yes, no) \
	.name = (key), .take = take_word, .offset = (at), .word = { (yes), (no) }

static const struct key keys[KEYS] = {
	[KEY_DEVICE] = { .name = "device", .take = take_device },
	/* gfx7 was the first that KFD drove. */
	[KEY_GFX_TARGET] = { NUMBER("gfx-target", INFO(gfx_target), 70000, 999999) },
	[KEY_XCCS] = { NUMBER("xccs", SHAPE(xccs), 1, CUSET_XCCS), .optional = true },
	[KEY_SHADER_ENGINES] = { NUMBER("shader-engines", SHAPE(engines), 1, CUSET_ENGINES) },
	[KEY_SHADER_ARRAYS] = { NUMBER("shader-arrays", SHAPE(arrays), 1, CUSET_ARRAYS) },
	[KEY_CUS_PER_ARRAY] = { NUMBER("cus-per-array", SHAPE(array_cus), 1, CUSET_ARRAY_CUS) },
	[KEY_CUS] = { NUMBER("cus", offsetof(struct profile_draft, cus), 1,
			     PROFILE_ARRAYS *CUSET_ARRAY_CUS),
		      .optional = true },
	[KEY_ACTIVE] = { .name = "active",
			 .take = take_active,
			 .max = CUSET_ARRAY_CUS,
			 .optional = true },
	[KEY_WGP] = { .name = "wgp", .take = take_bool, .offset = SHAPE(wgp) },
	[KEY_QUEUE_SLOTS] = { NUMBER("queue-slots", INFO(queue_slots), 1, 256) },
	[KEY_PROCESS_SLOTS] = { NUMBER("process-slots", INFO(process_slots), 1, 15) },
	[KEY_PIPES] = { NUMBER("pipes", INFO(pipes), 1, 8) },
	[KEY_QUEUES_PER_PIPE] = { NUMBER("queues-per-pipe", INFO(queues_per_pipe), 1, 32) },
	[KEY_SDMA_QUEUES] = { NUMBER("sdma-queues", INFO(sdma_queues), 0, 1024) },
	[KEY_VRAM] = { .name = "vram", .take = take_vram },
	[KEY_SCHEDULER] = { .name = "scheduler", .take = take_scheduler },
	[KEY_LAW] = { WORD("law", INFO(law_measured), "measured", "assumed") },
	[KEY_HARVEST] = { WORD("harvest", INFO(harvest_known), "known", "assumed") },
	[KEY_RESERVE_QUEUES] = { NUMBER("reserve-queues", INFO(reserve_queues), 0, 255),
				 .optional = true },
	[KEY_PARTITIONS] = { NUMBER("partitions",
				    offsetof(struct profile_draft, profile.partitions), 1,
				    CUSET_XCCS),
			     .optional = true },
};

static void unknown_key(const struct ini_place *place, const char *name)
{
	const char *words[KEYS + 1] = { 0 };

	for (size_t i = 0; i < KEYS; i++)
		words[i] = keys[i].name;
	ini_unknown_key(place, "gpu", name, words);
}

void profile_take_key(const struct ini_place *place, const char *section, const char *name,
		      const char *value, void *userdata)
{
	struct profile_draft *draft = userdata;

	if (strcmp(section, "gpu") != 0) {
		ini_bad(place, "'%s' is in section [%s]: a profile has one section, [gpu]", name,
			section);
		return;
	}
	for (size_t i = 0; i < KEYS; i++) {
		if (strcmp(name, keys[i].name) != 0)
			continue;
		draft->line[i] = place->line;
		keys[i].take(place, &keys[i], value, draft);
		return;
	}
	unknown_key(place, name);
}

const char *profile_key_name(enum profile_key key)
{
	return keys[key].name;
}

bool profile_key_optional(enum profile_key key)
{
	return keys[key].optional;
}
