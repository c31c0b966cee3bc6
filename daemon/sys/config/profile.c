/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/profile.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/config/config-keys.h"
#include "util/text-stream.h"

#define ARRAYS_MAX (CUSET_PAIRS * CUSET_ARRAYS)

/* The keys that have been read. */
struct draft {
	struct profile profile;
	unsigned cus;
	uint8_t active[ARRAYS_MAX]; /* by XCC, engine, array */
	size_t n_active;
	unsigned line[CONFIG_KEYS_MAX]; /* of each of keys[]; 0: it is missing */
};

/* ---- keys ---------------------------------------------------------------------------- */

static void set_device(const struct ini_place *place, const struct config_key *key,
		       const char *value, void *field)
{
	size_t size = strlen(value) + 1;

	if (size == 1 || size > GPU_DEVICE_MAX)
		ini_bad(place, "%s: '%s' is not a name of 1 to %u bytes", key->name, value,
			GPU_DEVICE_MAX - 1);
	else
		memcpy(field, value, size);
}

static void set_vram(const struct ini_place *place, const struct config_key *key, const char *value,
		     void *field)
{
	uint64_t bytes;

	if (ini_bytes(place, key->name, value, &bytes) < 0)
		return;
	if (bytes == 0)
		ini_bad(place, "%s: '%s' is not a size above 0", key->name, value);
	*(uint64_t *)field = bytes;
}

/* Numbers of CUs, with blanks or commas between them. Those past the largest GPU are counted, but
 * not stored. The field is the draft. */
static void set_active(const struct ini_place *place, const struct config_key *key,
		       const char *value, void *field)
{
	_cleanup_(freep) char *copy = strdup(value);
	struct draft *draft = field;
	char *word, *rest = copy;
	unsigned cus;

	if (!copy)
		ini_bad(place, "out of memory");
	while (copy && (word = strtok_r(rest, " \t,", &rest))) {
		if (ini_unsigned(place, key->name, word, key->min, key->max, &cus) < 0)
			return;
		if (draft->n_active < ARRAYS_MAX)
			draft->active[draft->n_active] = (uint8_t)cus;
		draft->n_active++;
	}
}

static const char *const harvest_words[] = { "assumed", "known", NULL };

#define DRAFT(member) .offset = offsetof(struct draft, member)
#define INFO(member) DRAFT(profile.info.member)
#define NUMBER(key, least, most, ...)                                                     \
	{                                                                                 \
		.name = (key), .set = config_set_unsigned, .min = (least), .max = (most), \
		__VA_ARGS__                                                               \
	}

/* clang-format off */
static const struct config_key keys[] = {
	{ "device", set_device, INFO(device) },
	/* gfx7 is the first that KFD supported. */
	NUMBER("gfx-target", 70000, 999999, INFO(gfx_target)),
	NUMBER("xccs", 1, CUSET_XCCS, INFO(geometry.xccs), .optional = true),
	NUMBER("shader-engines", 1, CUSET_ENGINES, INFO(geometry.engines)),
	NUMBER("shader-arrays", 1, CUSET_ARRAYS, INFO(geometry.arrays)),
	NUMBER("cus-per-array", 1, CUSET_ARRAY_CUS, INFO(geometry.array_cus)),
	NUMBER("cus", 1, ARRAYS_MAX * CUSET_ARRAY_CUS, DRAFT(cus), .optional = true),
	{ "active", set_active, .max = CUSET_ARRAY_CUS, .optional = true },
	{ "wgp", config_set_bool, INFO(geometry.wgp) },
	NUMBER("queue-slots", 1, 256, INFO(queue_slots)),
	NUMBER("process-slots", 1, 15, INFO(process_slots)),
	NUMBER("pipes", 1, 8, INFO(pipes)),
	NUMBER("queues-per-pipe", 1, 32, INFO(queues_per_pipe)),
	NUMBER("sdma-queues", 0, 1024, INFO(sdma_queues)),
	NUMBER("sdma-xgmi-queues", 0, 1024, INFO(sdma_xgmi_queues), .optional = true),
	{ "vram", set_vram, INFO(vram_bytes) },
	{ "system-memory", config_set_bool, INFO(system_memory), .optional = true },
	{ "scheduler", config_set_word, INFO(scheduler), .words = scheduler_names },
	{ "law", config_set_word, INFO(law.basis), .words = law_names },
	{ "harvest", config_set_flag, INFO(harvest_known), .words = harvest_words },
	NUMBER("reserve-queues", 0, 255, INFO(reserve_queues), .optional = true),
	NUMBER("partitions", 1, CUSET_XCCS, DRAFT(profile.partitions), .optional = true),
};
/* clang-format on */

static void on_key(const struct ini_place *place, const char *section, const char *name,
		   const char *value, void *userdata)
{
	static const struct config_section gpu = { "gpu", false, keys, ARRAY_SIZE(keys) };
	struct draft *draft = userdata;
	int i;

	if (strcmp(section, gpu.name) != 0) {
		ini_bad(place,
			"'%s' is in section [%s]: move it to [gpu], the only section of a profile",
			name, section);
		return;
	}
	i = config_take_key(place, &gpu, name, value, draft);
	if (i >= 0)
		draft->line[i] = place->line;
}

/* ---- checks of the whole ------------------------------------------------------------- */

/* The line of a key; 0: it is missing. */
static unsigned line_of(const struct draft *draft, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strcmp(keys[i].name, name) == 0)
			return draft->line[i];
	return 0;
}

/* The place of a key, for errors that show when the whole file was read. */
static struct ini_place place_of(const char *path, const struct draft *draft, const char *key,
				 struct diagnostics *diagnostics)
{
	return (struct ini_place){ .file = path,
				   .line = line_of(draft, key),
				   .diagnostics = diagnostics };
}

static int check_missing(const char *path, const struct draft *draft,
			 struct diagnostics *diagnostics)
{
	int r = 0;

	for (size_t key = 0; key < ARRAY_SIZE(keys); key++) {
		if (draft->line[key] > 0 || keys[key].optional)
			continue;
		diagnostics_add(diagnostics, true, "%s: missing key '%s'", path, keys[key].name);
		r = -EINVAL;
	}
	if (line_of(draft, "cus") == 0 && line_of(draft, "active") == 0) {
		diagnostics_add(diagnostics, true, "%s: missing key 'cus' or 'active'", path);
		r = -EINVAL;
	}
	return r;
}

static int spread_cus(struct draft *draft, const struct ini_place *place)
{
	struct geometry *geometry = &draft->profile.info.geometry;
	int r = geometry_spread(geometry, draft->cus);

	if (r < 0)
		ini_bad(place, "cus: %u CUs do not fit %u XCCs x %u engines x %u arrays x %u CUs%s",
			draft->cus, geometry->xccs, geometry->engines, geometry->arrays,
			geometry->array_cus, geometry->wgp ? " as whole WGPs on one XCC" : "");
	return r;
}

static int place_active(struct draft *draft, const struct ini_place *place)
{
	struct geometry *geometry = &draft->profile.info.geometry;
	unsigned n = 0;

	if (draft->n_active != geometry->xccs * geometry->engines * geometry->arrays) {
		ini_bad(place, "active: %zu numbers for %u XCCs x %u engines x %u arrays",
			draft->n_active, geometry->xccs, geometry->engines, geometry->arrays);
		return -EINVAL;
	}
	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		for (unsigned engine = 0; engine < geometry->engines; engine++)
			for (unsigned array = 0; array < geometry->arrays; array++)
				geometry->active[xcc][engine][array] = draft->active[n++];
	return 0;
}

static int finish_geometry(const char *path, struct draft *draft, struct diagnostics *diagnostics)
{
	bool listed = line_of(draft, "active") > 0;
	const char *key = listed ? "active" : "cus";
	struct ini_place place = place_of(path, draft, key, diagnostics);
	char why[160];
	int r;

	if (listed && line_of(draft, "cus") > 0) {
		ini_bad(&place, "active: 'cus' is set too: remove one of them");
		return -EINVAL;
	}
	r = listed ? place_active(draft, &place) : spread_cus(draft, &place);
	if (r < 0)
		return r;
	r = geometry_check(&draft->profile.info.geometry, why, sizeof(why));
	if (r < 0)
		ini_bad(&place, "%s: %s", key, why);
	return r;
}

/* Numbers that contradict each other. */
static int check_queues(const char *path, const struct draft *draft,
			struct diagnostics *diagnostics)
{
	const struct gpu_info *info = &draft->profile.info;
	struct ini_place slots = place_of(path, draft, "queue-slots", diagnostics);
	struct ini_place reserve = place_of(path, draft, "reserve-queues", diagnostics);

	if (info->queue_slots > info->pipes * info->queues_per_pipe) {
		ini_bad(&slots, "queue-slots: %u is more than %u pipes x %u queues",
			info->queue_slots, info->pipes, info->queues_per_pipe);
		return -EINVAL;
	}
	if (info->reserve_queues >= info->queue_slots) {
		ini_bad(&reserve, "reserve-queues: %u leaves none of %u queue-slots",
			info->reserve_queues, info->queue_slots);
		return -EINVAL;
	}
	return 0;
}

/* Adds what was measured on the target, if the profile has the law of the target. */
static void finish_law(struct gpu_info *info)
{
	struct law law = law_of_target(info->gfx_target);

	if (info->law.basis == law.basis)
		info->law = law;
}

/* Reports a missing profile with those that exist. */
static void report_missing(const char *dir, const char *name, struct diagnostics *diagnostics)
{
	_cleanup_(freep) char *there = NULL;
	struct dirent **list = NULL;
	struct text_stream stream;
	FILE *out = text_stream_open(&stream);
	int n = scandir(dir, &list, config_is_conf, alphasort);

	for (int i = 0; i < n; i++) {
		if (out)
			fprintf(out, " %.*s",
				(int)(strlen(list[i]->d_name) - strlen(CONFIG_SUFFIX)),
				list[i]->d_name);
		free(list[i]);
	}
	free(list);
	there = text_stream_close(&stream);
	diagnostics_add(diagnostics, true, "no GPU profile '%s' in %s; available:%s", name, dir,
			n > 0 && there ? there : " none");
}

int profile_load(const char *dir, const char *name, struct profile *ret,
		 struct diagnostics *diagnostics)
{
	struct draft draft = {
		.profile = { .partitions = 1, .info.geometry.xccs = 1 },
	};
	_cleanup_(freep) char *path = NULL;
	int r;

	if (!config_is_profile_name(name)) {
		diagnostics_add(
			diagnostics, true,
			"'%s' is not a profile name: use letters, digits, '-', '_' and '.', "
			"and no '.' first",
			name);
		return -EINVAL;
	}
	if (asprintf(&path, "%s/%s" CONFIG_SUFFIX, dir, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}

	r = ini_read(path, NULL, NULL, on_key, &draft, diagnostics);
	if (r == -ENOENT)
		report_missing(dir, name, diagnostics);
	if (r < 0)
		return r;

	r = check_missing(path, &draft, diagnostics);
	if (r == 0)
		r = finish_geometry(path, &draft, diagnostics);
	if (r == 0)
		r = check_queues(path, &draft, diagnostics);
	if (r < 0)
		return r;
	finish_law(&draft.profile.info);
	*ret = draft.profile;
	return 0;
}
