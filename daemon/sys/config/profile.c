/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/profile.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/config/profile-keys.h"

#define SUFFIX ".conf"

/* A place for complaints about a key after the file was read. */
static struct ini_place place_of(const char *path, const struct profile_draft *draft,
				 enum profile_key key, struct diagnostics *diagnostics)
{
	return (struct ini_place){ .file = path,
				   .line = draft->line[key],
				   .diagnostics = diagnostics };
}

static int check_missing(const char *path, const struct profile_draft *draft,
			 struct diagnostics *diagnostics)
{
	int r = 0;

	for (enum profile_key key = 0; key < KEYS; key++) {
		if (draft->line[key] > 0 || profile_key_optional(key))
			continue;
		diagnostics_add(diagnostics, true, "%s: the key '%s' is missing", path,
				profile_key_name(key));
		r = -EINVAL;
	}
	if (draft->line[KEY_CUS] == 0 && draft->line[KEY_ACTIVE] == 0) {
		diagnostics_add(diagnostics, true,
				"%s: one of the keys 'cus' and 'active' is missing", path);
		r = -EINVAL;
	}
	return r;
}

static int spread_cus(struct profile_draft *draft, const struct ini_place *place)
{
	struct geometry *geometry = &draft->profile.info.geometry;
	int r = geometry_spread(geometry, draft->cus);

	if (r < 0)
		ini_bad(place, "cus: %u do not fit %u XCCs x %u engines x %u arrays x %u CUs%s",
			draft->cus, geometry->xccs, geometry->engines, geometry->arrays,
			geometry->array_cus, geometry->wgp ? " as whole WGPs on one XCC" : "");
	return r;
}

static int place_active(struct profile_draft *draft, const struct ini_place *place)
{
	struct geometry *geometry = &draft->profile.info.geometry;
	unsigned n = 0;

	if (draft->n_active != geometry->xccs * geometry->engines * geometry->arrays) {
		ini_bad(place, "active: %zu counts for %u XCCs x %u engines x %u arrays",
			draft->n_active, geometry->xccs, geometry->engines, geometry->arrays);
		return -EINVAL;
	}
	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		for (unsigned engine = 0; engine < geometry->engines; engine++)
			for (unsigned array = 0; array < geometry->arrays; array++)
				geometry->active[xcc][engine][array] = draft->active[n++];
	return 0;
}

static int finish_geometry(const char *path, struct profile_draft *draft,
			   struct diagnostics *diagnostics)
{
	bool listed = draft->line[KEY_ACTIVE] > 0;
	enum profile_key key = listed ? KEY_ACTIVE : KEY_CUS;
	struct ini_place place = place_of(path, draft, key, diagnostics);
	char why[160];
	int r;

	if (listed && draft->line[KEY_CUS] > 0) {
		ini_bad(&place, "active: 'cus' is given, too: one of them says it all");
		return -EINVAL;
	}
	r = listed ? place_active(draft, &place) : spread_cus(draft, &place);
	if (r < 0)
		return r;
	r = geometry_check(&draft->profile.info.geometry, why, sizeof(why));
	if (r < 0)
		ini_bad(&place, "%s: %s", profile_key_name(key), why);
	return r;
}

/* Numbers that are fine alone and wrong together. */
static int check_queues(const char *path, const struct profile_draft *draft,
			struct diagnostics *diagnostics)
{
	const struct gpu_info *info = &draft->profile.info;
	struct ini_place slots = place_of(path, draft, KEY_QUEUE_SLOTS, diagnostics);
	struct ini_place reserve = place_of(path, draft, KEY_RESERVE_QUEUES, diagnostics);

	if (info->queue_slots > info->pipes * info->queues_per_pipe) {
		ini_bad(&slots, "queue-slots: %u, but %u pipes x %u queues is all there is",
			info->queue_slots, info->pipes, info->queues_per_pipe);
		return -EINVAL;
	}
	if (info->reserve_queues >= info->queue_slots) {
		ini_bad(&reserve, "reserve-queues: %u of %u queue-slots leave none",
			info->reserve_queues, info->queue_slots);
		return -EINVAL;
	}
	return 0;
}

static int is_profile(const struct dirent *entry)
{
	size_t size = strlen(entry->d_name);

	return size > strlen(SUFFIX) && strcmp(entry->d_name + size - strlen(SUFFIX), SUFFIX) == 0;
}

/* Says which profiles there are instead. */
static void note_absent(const char *dir, const char *name, struct diagnostics *diagnostics)
{
	_cleanup_(freep) char *there = NULL;
	struct dirent **list = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&there, &size);
	int n = scandir(dir, &list, is_profile, alphasort);

	for (int i = 0; i < n; i++) {
		if (stream)
			fprintf(stream, " %.*s", (int)(strlen(list[i]->d_name) - strlen(SUFFIX)),
				list[i]->d_name);
		free(list[i]);
	}
	free(list);
	if (stream)
		fclose(stream);
	diagnostics_add(diagnostics, true, "no GPU profile '%s' in %s; there are:%s", name, dir,
			n > 0 && there ? there : " none");
}

static int check_name(const char *name, struct diagnostics *diagnostics)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._";

	if (*name && *name != '.' && name[strspn(name, letters)] == '\0')
		return 0;
	diagnostics_add(
		diagnostics, true,
		"'%s' is no name of a GPU profile: letters, digits, '-', '_' and '.' are, but "
		"no '.' first",
		name);
	return -EINVAL;
}

int profile_load(const char *dir, const char *name, struct profile *ret,
		 struct diagnostics *diagnostics)
{
	struct profile_draft draft = {
		.profile = { .partitions = 1, .info.geometry.xccs = 1 },
	};
	_cleanup_(freep) char *path = NULL;
	int r;

	r = check_name(name, diagnostics);
	if (r < 0)
		return r;
	if (asprintf(&path, "%s/%s" SUFFIX, dir, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}

	r = ini_read(path, NULL, NULL, profile_take_key, &draft, diagnostics);
	if (r == -ENOENT)
		note_absent(dir, name, diagnostics);
	if (r < 0)
		return r;

	r = check_missing(path, &draft, diagnostics);
	if (r == 0)
		r = finish_geometry(path, &draft, diagnostics);
	if (r == 0)
		r = check_queues(path, &draft, diagnostics);
	if (r < 0)
		return r;
	*ret = draft.profile;
	return 0;
}
