/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* KEY = VALUE in the file of a task set. */

#include "client/rt/set.h"
#include "util/ini.h"

enum rt_section { RT_SET, RT_PARTITION, RT_TASK, RT_SECTIONS };

struct entry;

struct key {
	enum rt_section section;
	const char *name;
	void (*take)(const struct entry *entry);
	size_t offset;     /* of the member that it sets */
	uint64_t min, max; /* of numbers and times */
};

/* KEY = VALUE in a valid section. */
struct entry {
	const struct ini_place *place;
	const struct key *key;
	const char *value;
	void *target; /* the row of its section */
	void *field;  /* the member that the key sets */
};

/* Letters, digits and -._@, up to RT_NAME_MAX - 1 of them. */
bool set_value_is_name(const char *name);

/* Each stores a valid value in its field, and reports any other. */
void take_time(const struct entry *entry);
void take_interval(const struct entry *entry);
void take_number(const struct entry *entry);
void take_count(const struct entry *entry);
void take_margin(const struct entry *entry);
void take_neighbours(const struct entry *entry);
void take_policy(const struct entry *entry);
void take_bool(const struct entry *entry);
void take_dispatcher(const struct entry *entry);
void take_law(const struct entry *entry);
void take_isolation(const struct entry *entry);
void take_priority(const struct entry *entry);
void take_text(const struct entry *entry);
void take_user(const struct entry *entry);
void take_gpu(const struct entry *entry);
void take_partition(const struct entry *entry);
void take_after(const struct entry *entry);
void take_deadline(const struct entry *entry);
void take_offset(const struct entry *entry);
void take_often(const struct entry *entry);
void take_wcet(const struct entry *entry);
