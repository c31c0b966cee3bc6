/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/lease-table.h"
#include "client/verbs/verb.h"
#include "util/base.h"

#define WANTS (OPTIONS_WANT | OPTIONS_LEASE)

const struct verb verb_table[] = {
	{ "status", "", "show GPUs, leases and free resources (the default)",
	  .groups = OPTIONS_LIST | OPTIONS_LIMITS, .paged = true, .connect = session_observe,
	  .run = run_status },
	{ "gpus", "", "list GPUs with their geometry and slots", .groups = OPTIONS_LIST,
	  .paged = true, .connect = session_observe, .heads = gpus_heads, .run = run_gpus },
	{ "list", "", "list all leases", .groups = OPTIONS_LIST, .paged = true,
	  .connect = session_snapshot, .heads = lease_table_heads, .run = run_list },
	{ "show", "LEASE", "show one lease in full", .paged = true, .connect = session_snapshot,
	  .run = run_show },
	{ "run", "[OPTIONS] -- COMMAND [ARGUMENT...]", "run a program in a new lease",
	  .groups = WANTS | OPTIONS_REQUEUE | OPTIONS_RUN, .command = true, .run = run_run },
	{ "reserve", "[OPTIONS]", "reserve a lease and hold it until interrupted",
	  .groups = WANTS | OPTIONS_REQUEUE, .run = run_reserve },
	{ "release", "LEASE", "end a lease", .connect = session_administer, .run = run_release },
	{ "activate", "LEASE [OPTIONS]", "reclaim the CUs that an inactive lease has lent",
	  .groups = OPTIONS_ACTIVATE, .connect = session_administer, .run = run_activate },
	{ "deactivate", "LEASE", "lend the CUs of a realtime lease until it is activated",
	  .connect = session_administer, .run = run_deactivate },
	{ "revoke", "[LEASE] [OPTIONS]",
	  "end a lease, or many, after a grace period (administrators)", .groups = OPTIONS_REVOKE,
	  .connect = session_administer, .run = run_revoke },
	{ "resize", "LEASE [OPTIONS]", "change the partitions of a lease on the same GPUs",
	  .groups = OPTIONS_WANT, .run = run_resize },
	{ "plan", "[OPTIONS]", "show what reserve would be granted, without a change",
	  .groups = WANTS | OPTIONS_PLAN, .run = run_plan },
	{ "mask", "explain|encode|decode MASK|PLACES", "explain, encode or decode a CU mask",
	  .groups = OPTIONS_MODEL, .run = run_mask },
	{ "map", "[GPU]", "draw the compute units and the leases that have them",
	  .groups = OPTIONS_SVG, .paged = true, .connect = session_snapshot, .run = run_map },
	{ "slots", "[GPU]", "read which queues are in the hardware queue slots",
	  .groups = OPTIONS_SVG, .paged = true, .connect = session_snapshot, .run = run_slots },
	{ "latency", "[--gpu=GPU] [--same-line] [--json|--svg=FILE]",
	  "measure how soon compute units see each other's writes",
	  .groups = OPTIONS_LATENCY | OPTIONS_SVG, .run = run_latency },
	{ "calibrate", "[--gpu=GPU] [OPTIONS]",
	  "measure masks, neighbours and changes on an idle GPU", .groups = OPTIONS_CALIBRATE,
	  .run = run_calibrate },
	{ "rt", "plan|monitor|measure FILE|COMMAND... [OPTIONS]",
	  "plan for realtime tasks, monitor the plan, or measure execution times",
	  .groups = OPTIONS_MODEL | OPTIONS_RT, .run = run_rt },
	{ "config", "check|explain|init [FILE...]",
	  "check the configuration, explain it for a user, or begin with a policy",
	  .groups = OPTIONS_CONFIG, .run = run_config },
	{ "cdi", "SHARE", "hold the lease of a share, and write its CDI device (services)",
	  .groups = OPTIONS_CDI, .run = run_cdi },
	{ "drain", "GPU", "stop new grants on a GPU (administrators)", .connect = session_snapshot,
	  .run = run_drain },
	{ "undrain", "GPU", "allow grants on a GPU again (administrators)",
	  .connect = session_snapshot, .run = run_undrain },
	{ "reload", "", "reload the configuration (administrators)", .connect = session_administer,
	  .run = run_reload },
	{ "monitor", "", "print a line for each change", .groups = OPTIONS_MONITOR,
	  .connect = session_snapshot, .run = run_monitor },
	{ "top", "", "show status continuously until q is typed", .groups = OPTIONS_LIST,
	  .connect = session_observe, .run = run_top },
	{ "usage", "", "show what users held, waited for and were refused", .groups = OPTIONS_USAGE,
	  .paged = true, .connect = session_open, .heads = usage_heads, .run = run_usage },
	{ "verify", "[LEASE] [--probe]", "compare grants with the usage that is observed",
	  .groups = OPTIONS_VERIFY, .paged = true, .connect = session_snapshot, .run = run_verify },
	{ "help", "[VERB]", "print how to use gpuarbctl, or a verb", .run = NULL },
	{ "doctor", "", "find what keeps GPUs from being leased, and what to do", .paged = true,
	  .groups = OPTIONS_DOCTOR, .run = run_doctor },
};

const size_t verb_count = ARRAY_SIZE(verb_table);
_Static_assert(ARRAY_SIZE(verb_table) <= VERB_MAX, "main.c has an array of their names");

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < verb_count; i++)
		if (strcmp(verb_table[i].name, name) == 0)
			return &verb_table[i];
	return NULL;
}

#define MORE "..."

static bool is_options(const char *word)
{
	return strncmp(word, "--", 2) == 0 || strncmp(word, "[--", 3) == 0 ||
	       strncmp(word, "[OPTIONS]", strlen("[OPTIONS]")) == 0;
}

const char *verb_place(const struct verb *verb, size_t i, char buf[static VERB_PLACE],
		       bool *ret_needed)
{
	const char *word = verb->arguments;

	for (size_t length; *word; word += length + strspn(word + length, " ")) {
		const char *start = word + (*word == '[');
		char *more;

		length = strcspn(word, " ");
		if (is_options(word))
			continue;
		snprintf(buf, VERB_PLACE, "%.*s", (int)strcspn(start, " ]"), start);
		more = strstr(buf, MORE);
		if (ret_needed)
			*ret_needed = *word != '[' && i == 0;
		if (more)
			*more = '\0';
		if (more || i-- == 0)
			return buf;
	}
	return NULL;
}

/* ---- help ------------------------------------------------------------------------------------ */

static const char exit_codes[] =
	"Exit codes: 0 success, 1 failure, 2 usage, 3 refused, 4 not authorised, 5 no daemon or "
	"bus,\n"
	"6 configuration error, 7 timed out, 8 lease lost, 9 drift found. run: the exit code of "
	"the\n"
	"command; 125 failure of gpuarb, 126 command not executable, 127 command not found.\n";

static void print_options(unsigned groups)
{
	const char *help;
	char option[40];

	for (size_t i = 0; option_describe(groups, i, option, sizeof(option), &help); i++)
		printf("  %-24s %s\n", option, help);
}

void help_print(void)
{
	printf("gpuarbctl [VERB [OPTIONS]]: reserve and inspect parts of AMD GPUs\n\n");
	for (size_t i = 0; i < verb_count; i++)
		printf("  %-24s %s\n", verb_table[i].name, verb_table[i].summary);
	printf("\nOptions of all verbs (gpuarbctl VERB --help prints the options of a verb):\n");
	print_options(OPTIONS_GENERAL);
	printf("\n%s", exit_codes);
}

void help_print_verb(const struct verb *verb)
{
	printf("%c%s.\n\nUsage: gpuarbctl %s%s%s\n", toupper(verb->summary[0]), verb->summary + 1,
	       verb->name, *verb->arguments ? " " : "", verb->arguments);
	if (strstr(verb->arguments, "LEASE"))
		printf("LEASE is a number in gpuarbctl list, or a name that no other lease has.\n");
	printf("\nOptions:\n");
	print_options(verb->groups | OPTIONS_GENERAL);
}

int run_help(struct command *command)
{
	const struct verb *verb = command->n_rest > 0 ? verb_find(command->rest[0]) : NULL;

	if (command->n_rest > 0 && !verb)
		return fail(command, EXIT_USAGE, "unknown verb '%.80s'; gpuarbctl help lists all",
			    command->rest[0]);
	if (verb)
		help_print_verb(verb);
	else
		help_print();
	return EXIT_OK;
}
