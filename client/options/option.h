/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One row of the table of options, between options.c that reads and option-table.c. */

#include <stddef.h>

#include "client/options/options.h"

struct option {
	const char *name;
	const char *argument; /* NULL: takes none; "[=…": may be left out */
	const char *help;
	unsigned group;
	int (*take)(struct command *command, const struct option *option, const char *value);
	size_t offset, share; /* of what it sets: in the want, the share or the command */
	unsigned min, max;
	const char *values; /* for completion; NULL: argument says it. completions/spec.h */
};

#define OPTION_MAX 64

extern const struct option option_table[];
extern const size_t option_count;

void ask_init(struct ask *ask);

/* The want that is being typed. */
static inline struct ask *last_ask(struct command *command)
{
	return &command->asks[command->n_asks - 1];
}

/* Leaves "--NAME=VALUE: works" as the problem. -EINVAL. */
int option_wrong(struct command *command, const struct option *option, const char *value,
		 const char *works);
