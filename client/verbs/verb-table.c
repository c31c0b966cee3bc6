/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/verbs/verb.h"

#include <string.h>

#include "util/base.h"

#define WANTS (OPTIONS_WANT | OPTIONS_LEASE)

const struct verb verb_table[] = {
	{ "status", "", "who uses the GPUs, and what is free (the default)", .paged = true,
	  .run = run_status },
	{ "gpus", "", "the GPUs and what they have", .paged = true, .run = run_gpus },
	{ "list", "", "all leases", .paged = true, .run = run_list },
	{ "show", "ID", "everything about one lease", .min_words = 1, .max_words = 1, .paged = true,
	  .run = run_show },
	{ "run", "[OPTIONS] -- COMMAND [ARGUMENT…]", "start a program inside a lease of its own",
	  .groups = WANTS | OPTIONS_QUIET, .min_words = 1, .max_words = SIZE_MAX, .command = true,
	  .run = run_run },
	{ "reserve", "[OPTIONS]", "take a lease and hold it until interrupted", .groups = WANTS,
	  .run = run_reserve },
	{ "release", "ID", "end a lease", .min_words = 1, .max_words = 1, .run = run_release },
	{ "activate", "ID [OPTIONS]",
	  "have the CUs of an inactive lease back from who borrows them",
	  .groups = OPTIONS_ACTIVATE, .min_words = 1, .max_words = 1, .run = run_activate },
	{ "deactivate", "ID", "lend the CUs of a realtime lease", .min_words = 1, .max_words = 1,
	  .run = run_deactivate },
	{ "revoke", "ID [OPTIONS]", "take a lease away, with time to finish (administrators)",
	  .groups = OPTIONS_REVOKE, .min_words = 1, .max_words = 1, .run = run_revoke },
	{ "resize", "ID [OPTIONS]", "ask for other parts of the same GPUs", .groups = OPTIONS_WANT,
	  .min_words = 1, .max_words = 1, .run = run_resize },
	{ "plan", "[OPTIONS]", "what reserve would get, with nothing changed", .groups = WANTS,
	  .run = run_plan },
	{ "mask", "explain|encode|decode MASK|PLACES", "what a CU mask means and costs",
	  .groups = OPTIONS_MODEL, .min_words = 2, .max_words = 2, .run = run_mask },
	{ "map", "[GPU]", "the compute units and who has them", .groups = OPTIONS_SVG,
	  .max_words = 1, .paged = true, .run = run_map },
	{ "latency", "[--gpu=GPU] [--same-line] [--json|--svg=FILE]",
	  "how long compute units take to see each other's writes",
	  .groups = OPTIONS_LATENCY | OPTIONS_SVG, .run = run_latency },
	{ "rt", "plan FILE [OPTIONS]",
	  "whether realtime tasks keep their deadlines, and on which CUs",
	  .groups = OPTIONS_MODEL | OPTIONS_RT, .min_words = 2, .max_words = 2, .paged = true,
	  .run = run_rt },
	{ "config", "check [FILE…]", "say what is wrong with the configuration", .min_words = 1,
	  .max_words = SIZE_MAX, .run = run_config },
	{ "drain", "GPU", "grant nothing more on a GPU (administrators)", .min_words = 1,
	  .max_words = 1, .run = run_drain },
	{ "undrain", "GPU", "open a GPU for leases again (administrators)", .min_words = 1,
	  .max_words = 1, .run = run_undrain },
	{ "reload", "", "read the configuration again (administrators)", .run = run_reload },
	{ "monitor", "", "a line for each thing that changes", .run = run_monitor },
	{ "top", "", "status, kept up to date until q is typed", .run = run_top },
	{ "verify", "[ID]", "compare what leases were granted with what is seen", .max_words = 1,
	  .paged = true, .run = run_verify },
	{ "doctor", "", "what keeps GPUs from being leased here, and what to do", .paged = true,
	  .run = run_doctor },
};

const size_t verb_count = ARRAY_SIZE(verb_table);
_Static_assert(ARRAY_SIZE(verb_table) <= VERB_MAX, "main.c lists their names");

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < verb_count; i++)
		if (strcmp(verb_table[i].name, name) == 0)
			return &verb_table[i];
	return NULL;
}
