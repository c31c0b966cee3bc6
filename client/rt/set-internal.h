/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Between set.c, which has the sections, set-keys.c and set-check.c. */

#include "client/rt/set.h"
#include "util/ini.h"

enum rt_section { RT_SET, RT_PARTITION, RT_TASK, RT_SECTIONS };

struct rt_reader {
	struct rt_set *set;
	size_t room_partitions, room_tasks;
	bool within; /* a section that is known: the next two say which */
	enum rt_section section;
	void *target;           /* what its keys fill; NULL: it was complained of */
	struct ini_place whole; /* for what is wrong with the file as such */
	unsigned complaints;
};

/* For ini_read(), with the struct rt_reader. */
void rt_take_key(const struct ini_place *place, const char *section, const char *key,
		 const char *value, void *userdata);

/* "[task NAME]": the name, for a sentence that has its section. */
const char *rt_section_name(enum rt_section section);

/* Letters, digits and -._@, up to RT_NAME_MAX - 1 of them. */
bool rt_is_name(const char *name);

/* Complains of what can only be seen in the whole; puts tasks to their partitions and their
 * tables in order. */
void rt_set_check(struct rt_reader *reader);
