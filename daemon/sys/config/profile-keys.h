/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The keys of a GPU profile, read one at a time into a draft. */

#include <stddef.h>
#include <stdint.h>

#include "util/ini.h"
#include "sys/config/profile.h"

#define PROFILE_ARRAYS (CUSET_PAIRS * CUSET_ARRAYS)

enum profile_key {
	KEY_DEVICE,
	KEY_GFX_TARGET,
	KEY_XCCS,
	KEY_SHADER_ENGINES,
	KEY_SHADER_ARRAYS,
	KEY_CUS_PER_ARRAY,
	KEY_CUS,
	KEY_ACTIVE,
	KEY_WGP,
	KEY_QUEUE_SLOTS,
	KEY_PROCESS_SLOTS,
	KEY_PIPES,
	KEY_QUEUES_PER_PIPE,
	KEY_SDMA_QUEUES,
	KEY_VRAM,
	KEY_SCHEDULER,
	KEY_LAW,
	KEY_HARVEST,
	KEY_RESERVE_QUEUES,
	KEY_PARTITIONS,
	KEYS,
};

/* What has been read so far. */
struct profile_draft {
	struct profile profile;
	unsigned cus;
	uint8_t active[PROFILE_ARRAYS]; /* by XCC, engine, array */
	size_t n_active;
	unsigned line[KEYS]; /* where the key stands; 0: nowhere */
};

/* For ini_read(), with a struct profile_draft as userdata. */
void profile_take_key(const struct ini_place *place, const char *section, const char *name,
		      const char *value, void *userdata);

const char *profile_key_name(enum profile_key key);
bool profile_key_optional(enum profile_key key);
