/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The verbs. Each takes the parsed command line and returns the exit code. */

#include <stdbool.h>
#include <stddef.h>

#include "client/options/options.h"

struct verb {
	const char *name;
	const char *arguments; /* its words: see verb_place() */
	const char *summary;
	unsigned groups; /* enum option_group */
	bool paged;
	bool command;             /* its words are another program's command line */
	const char *const *heads; /* columns of its only table, NULL-terminated; NULL: several */
	/* Before run: opens the connection that the verb needs, as session_snapshot() does, so that
	 * the verb fails at once without a daemon. NULL: run opens it. */
	int (*connect)(struct command *command);
	int (*run)(struct command *command); /* NULL: run_help(), which reads the table */
};

#define VERB_MAX 64

extern const struct verb verb_table[];
extern const size_t verb_count;

extern const char *const gpus_heads[];
extern const char *const usage_heads[];

const struct verb *verb_find(const char *name); /* NULL: there is none */

/*
 * Word i of the arguments that is no option, without brackets: "GPU" of "[GPU]". The last one is repeated if it ends with
 * "...". It holds alternatives with "|" between them: small letters are the word itself, capitals are a kind of word.
 * ret_needed may be NULL. NULL: the verb takes fewer words.
 */
#define VERB_PLACE 64
const char *verb_place(const struct verb *verb, size_t i, char buf[static VERB_PLACE],
		       bool *ret_needed);

/* gpuarbctl --complete: argv is what follows that word. Returns the exit code. */
int complete(int argc, char **argv);

/* config init, one of the actions of config. */
int config_init(struct command *command);
int config_explain(struct command *command);

/* The user whom --user and --group name, as policy sees one; without --user, this one. Its groups are those of the user
 * database, or those of --group. An exit code. */
struct caller;
int caller_find(const struct command *command, struct caller *ret);

/* One file, or a directory of tenants: its *.conf, which its owner or this user may own. */
struct settings;
struct diagnostics;
int config_load_named(const char *path, struct settings **ret, struct diagnostics *diagnostics);

/* What policy is compared with, of a GPU of the snapshot. Negative: its CUs in its shader engines are none
 * that a GPU can have. */
struct gpu_info;
int config_gpu_info(const struct gpuarb_gpu *gpu, struct gpu_info *ret);

/* Reserves what the command asks for, and holds it until a signal arrives or the lease is lost. changed is called when it
 * is granted and after each change; another code than EXIT_OK ends it. NULL: nothing is called. */
typedef int reserve_changed_t(const struct command *command, struct gpuarb_lease *lease);
int reserve_and_hold(struct command *command, reserve_changed_t *changed);

void help_print(void);
void help_print_verb(const struct verb *verb);

int run_help(struct command *command);
int run_status(struct command *command);
int run_gpus(struct command *command);
int run_list(struct command *command);
int run_show(struct command *command);
int run_run(struct command *command);
const char *run_library_dir(void); /* of the libraries that are loaded into commands */
int run_reserve(struct command *command);
int run_cdi(struct command *command);
int run_release(struct command *command);
int run_activate(struct command *command);
int run_deactivate(struct command *command);
int run_revoke(struct command *command);
int run_resize(struct command *command);
int run_plan(struct command *command);
int run_mask(struct command *command);
int run_map(struct command *command);
int run_slots(struct command *command);
int run_calibrate(struct command *command);
int run_latency(struct command *command);
int run_probe(struct command *command); /* verify --probe */
int run_config(struct command *command);
int run_drain(struct command *command);
int run_undrain(struct command *command);
int run_reload(struct command *command);
int run_rt(struct command *command);
int run_monitor(struct command *command);
int run_top(struct command *command);
int run_usage(struct command *command);
int run_limits(struct command *command); /* status --limits */
int run_verify(struct command *command);
int run_doctor(struct command *command);
