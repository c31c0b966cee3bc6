/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The verbs. Each takes what options.h read and returns the exit code. */

#include <stdbool.h>
#include <stddef.h>

#include "client/options.h"

struct verb {
	const char *name, *arguments, *summary;
	unsigned groups;            /* enum option_group */
	size_t min_words, max_words; /* what is no option */
	bool paged;
	bool command;               /* its words are a command: nothing after it is ours */
	int (*run)(struct command *command);
};

int run_status(struct command *command);
int run_gpus(struct command *command);
int run_list(struct command *command);
int run_show(struct command *command);
int run_run(struct command *command);
int run_reserve(struct command *command);
int run_release(struct command *command);
int run_resize(struct command *command);
int run_plan(struct command *command);
int run_mask(struct command *command);
int run_map(struct command *command);
int run_config(struct command *command);
int run_drain(struct command *command);
int run_undrain(struct command *command);
int run_reload(struct command *command);
int run_monitor(struct command *command);
