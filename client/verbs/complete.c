/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Completion for shells:
 *
 *	gpuarbctl --complete SHELL CURSOR WORDS...
 *
 * WORDS is the command line with the name of the program first, CURSOR the index of the word that
 * is completed. Prints one candidate a line: "WORD" for bash, "WORD:DESCRIPTION" for zsh with the
 * colons of WORD escaped, "WORD<TAB>DESCRIPTION" for fish. What the shell completes itself is a
 * line that starts with a colon: ":files START" and ":directories START" with the part of the
 * path that is typed, ":command INDEX" with the word at which the line of another program starts.
 *
 * The candidates come from the tables of verbs and options. A place of a line ("[GPU]", "FILE…",
 * "any|GPU") holds alternatives: verb_place(). GPU, LEASE and TENANT are read from the daemon, PROFILE
 * from the directory of profiles; NAMES are columns of the verb; of other kinds (N, MASK) nothing is
 * known.
 */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"
#include "util/number.h"

#define DESCRIPTION_COLUMNS 60U
#define DAEMON_SECONDS 5U /* a shell that waits longer for a daemon that hangs is of no use */

struct completion {
	const char *shell;
	const char *typed; /* the word at the cursor */
	size_t cursor;     /* its index */

	/* What the words before the cursor say. */
	const struct verb *verb;     /* NULL: none yet */
	const struct option *option; /* the cursor is at its value; NULL: it is not */
	const char *profiles;        /* of --profiles */
	const char *templates;       /* of --templates */
	const char *action;          /* the first word after the verb: config init */
	bool ended;                  /* "--" was there */
	size_t n_verb_words;         /* after the verb */
};

static unsigned groups_of(const struct completion *completion)
{
	return OPTIONS_GENERAL | (completion->verb ? completion->verb->groups : 0);
}

static bool is_shell(const struct completion *completion, const char *shell)
{
	return strcmp(completion->shell, shell) == 0;
}

/* ---- candidates --------------------------------------------------------------------------- */

static void print_escaped(const char *text, char special)
{
	for (; *text; text++) {
		if (*text == special)
			putchar('\\');
		putchar(*text);
	}
}

/* Prints PREFIX and WORD if this continues the typed word. The description is any user's text. */
static void offer(const struct completion *completion, const char *prefix, const char *word,
		  const char *description)
{
	_cleanup_(freep) char *all = NULL,
			      *escaped = print_escape(description, DESCRIPTION_COLUMNS);

	if (asprintf(&all, "%s%s", prefix, word) < 0) {
		all = NULL;
		return;
	}
	if (strncmp(all, completion->typed, strlen(completion->typed)) != 0)
		return;
	if (is_shell(completion, "bash")) {
		puts(all);
		return;
	}
	print_escaped(all, is_shell(completion, "zsh") ? ':' : '\0');
	printf("%c%s\n", is_shell(completion, "zsh") ? ':' : '\t', escaped ? escaped : "");
}

static void offer_options(const struct completion *completion)
{
	unsigned groups = groups_of(completion);
	char name[48];

	for (size_t i = 0; i < option_count; i++) {
		const struct option *option = &option_table[i];
		bool value = option->argument && !option_value_optional(option);

		snprintf(name, sizeof(name), "--%s%s", option->name, value ? "=" : "");
		if (option->group & groups)
			offer(completion, "", name, option->help);
	}
}

static void offer_verbs(const struct completion *completion)
{
	for (size_t i = 0; i < verb_count; i++)
		offer(completion, "", verb_table[i].name, verb_table[i].summary);
}

/* The names of the *.conf in a directory. */
static void offer_files(const struct completion *completion, const char *prefix, const char *path,
			const char *description)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		const char *suffix = strrchr(entry->d_name, '.');
		char name[256];

		if (!suffix || strcmp(suffix, ".conf") != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(suffix - entry->d_name), entry->d_name);
		offer(completion, prefix, name, description);
	}
	if (directory)
		closedir(directory);
}

static void offer_columns(const struct completion *completion, const char *prefix)
{
	const char *const *heads = completion->verb ? completion->verb->heads : NULL;

	for (; heads && *heads; heads++) {
		char name[32];
		size_t n = 0;

		for (const char *c = *heads; *c && n + 1 < sizeof(name); c++)
			name[n++] = (char)tolower((unsigned char)*c);
		name[n] = '\0';
		offer(completion, prefix, name, "column");
	}
}

static void offer_gpus(const struct completion *completion, const char *prefix,
		       const struct command *command)
{
	char text[256];

	for (size_t i = 0; i < command->n_gpus; i++) {
		const struct gpuarb_gpu *gpu = &command->gpus[i];

		snprintf(text, sizeof(text), "%s, %u of %u CUs free", gpu->device, gpu->cus_free,
			 gpu->cus);
		offer(completion, prefix, gpu->name, text);
	}
}

/* Not what a shell would expand: any user can choose a name. */
static bool is_plain(const char *name)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return *name && *name != '-' && name[strspn(name, plain)] == '\0' &&
	       name[strspn(name, "0123456789")];
}

static bool is_only(const struct command *command, const char *name)
{
	unsigned n = 0;

	for (size_t i = 0; i < command->n_leases; i++)
		n += strcmp(command->leases[i].name, name) == 0;
	return n == 1;
}

static void offer_leases(const struct completion *completion, const char *prefix,
			 const struct command *command)
{
	char id[24], text[256];

	for (size_t i = 0; i < command->n_leases; i++) {
		const struct gpuarb_lease_info *lease = &command->leases[i];

		snprintf(id, sizeof(id), "%" PRIu64, lease->id);
		snprintf(text, sizeof(text), "%s, %s %s", lease->state, lease->lease_class,
			 lease->name);
		offer(completion, prefix, id, text);
		if (is_plain(lease->name) && is_only(command, lease->name))
			offer(completion, prefix, lease->name, text);
	}
}

static void offer_tenants(const struct completion *completion, const char *prefix,
			  const struct gpuarb_view *view)
{
	const char *const *tenants;
	size_t n = gpuarb_view_tenants(view, &tenants);

	for (size_t i = 0; i < n; i++)
		offer(completion, prefix, tenants[i], "tenant");
}

/* Nothing where no daemon answers in time: the alarm ends this process. */
static void offer_live(const struct completion *completion, const char *prefix, const char *kind)
{
	_cleanup_(session_done) struct command command = { 0 };

	fflush(stdout);
	alarm(DAEMON_SECONDS);
	if (gpuarb_open(&command.gpuarb) < 0 || session_refresh(&command) < 0)
		return;
	if (strcmp(kind, "GPU") == 0)
		offer_gpus(completion, prefix, &command);
	else if (strcmp(kind, "LEASE") == 0)
		offer_leases(completion, prefix, &command);
	else
		offer_tenants(completion, prefix, command.view);
}

static void offer_values(const struct completion *completion, const char *prefix,
			 const char *alternatives)
{
	const char *start = completion->typed + strlen(prefix), *last = start;
	_cleanup_(freep) char *copy = strdup(alternatives), *before = NULL;
	char *rest = copy, *word;

	/* "id,sta", "left=radeon-vii,right=ra": the last item of a list. */
	for (const char *c = start; *c; c++)
		if (*c == ',' || *c == '=')
			last = c + 1;
	before = strndup(completion->typed, (size_t)(last - completion->typed));
	while (before && rest && (word = strsep(&rest, "|"))) {
		if (strcmp(word, "FILE") == 0)
			printf(":files %s\n", start);
		else if (strcmp(word, "DIR") == 0)
			printf(":directories %s\n", start);
		else if (strcmp(word, "PROFILE") == 0)
			offer_files(completion, before, completion->profiles, "GPU model");
		else if (strcmp(word, "POLICY") == 0)
			offer_files(completion, prefix, completion->templates, "policy");
		else if (strcmp(word, "NAMES") == 0)
			offer_columns(completion, before);
		else if (strcmp(word, "GPU") == 0 || strcmp(word, "LEASE") == 0 ||
			 strcmp(word, "TENANT") == 0)
			offer_live(completion, before, word);
		else if (*word >= 'a' && *word <= 'z')
			offer(completion, prefix, word, "");
	}
}

/* ---- the command line --------------------------------------------------------------------- */

/* The directory that this option names. NULL: another option. */
static const char **directory_of(struct completion *completion, const struct option *option)
{
	return strcmp(option->name, "profiles") == 0    ? &completion->profiles
	       : strcmp(option->name, "templates") == 0 ? &completion->templates
							: NULL;
}

/* An option before the cursor. Its value may be the next word. */
static void take_option(struct completion *completion, const char *word)
{
	const struct option *option = strncmp(word, "--", 2) == 0
					      ? option_find(groups_of(completion), word + 2)
					      : NULL;
	const char *value = strchr(word, '=');

	if (!option || !option->argument || option_value_optional(option))
		return;
	if (value && directory_of(completion, option))
		*directory_of(completion, option) = value + 1;
	if (!value)
		completion->option = option;
}

/* Takes the word before the cursor. False: nothing can be offered, or `:command` was. */
static bool take_word(struct completion *completion, const char *word, size_t index)
{
	if (completion->option) {
		if (directory_of(completion, completion->option))
			*directory_of(completion, completion->option) = word;
		completion->option = NULL;
	} else if (!completion->ended && strcmp(word, "--") == 0) {
		completion->ended = true;
	} else if (!completion->ended && word[0] == '-' && word[1]) {
		take_option(completion, word);
	} else if (!completion->verb) {
		completion->verb = verb_find(word);
		return completion->verb;
	} else if (completion->verb->command) {
		printf(":command %zu\n", index);
		return false;
	} else if (completion->n_verb_words++ == 0) {
		completion->action = word;
	}
	return true;
}

/* The cursor is at "--NAME=…". */
static void complete_value(const struct completion *completion)
{
	const struct option *option = option_find(groups_of(completion), completion->typed + 2);
	char prefix[48];

	if (!option || !option->argument)
		return;
	snprintf(prefix, sizeof(prefix), "--%s=", option->name);
	offer_values(completion, prefix, option->values ? option->values : option->argument);
}

static void complete_word(const struct completion *completion)
{
	const struct option *option = completion->option;
	const struct verb *verb = completion->verb;
	const char *typed = completion->typed, *place;
	char buf[VERB_PLACE];

	if (option) {
		offer_values(completion, "", option->values ? option->values : option->argument);
	} else if (!completion->ended && strncmp(typed, "--", 2) == 0 && strchr(typed, '=')) {
		complete_value(completion);
	} else if (!completion->ended && typed[0] == '-') {
		offer_options(completion);
	} else if (!verb) {
		offer_verbs(completion);
	} else if (verb->command) {
		printf(":command %zu\n", completion->cursor);
	} else {
		place = verb_place(verb, completion->n_verb_words, buf, NULL);
		if (place && completion->action && strcmp(completion->action, "init") == 0)
			place = "POLICY";
		if (place)
			offer_values(completion, "", place);
	}
}

int complete(int argc, char **argv)
{
	struct completion completion = {
		.profiles = GPUARB_PROFILE_DIR,
		.templates = GPUARB_TEMPLATE_DIR,
	};
	uint64_t cursor;

	if (argc < 3 || number_parse(argv[1], 1, (uint64_t)argc - 3, &cursor) < 0) {
		fprintf(stderr, "gpuarbctl --complete: expected SHELL CURSOR WORDS..., with CURSOR "
				"the index of one of the words after the first\n");
		return EXIT_USAGE;
	}
	completion.shell = argv[0];
	completion.cursor = cursor;
	completion.typed = argv[2 + cursor];
	for (size_t i = 1; i < cursor; i++)
		if (!take_word(&completion, argv[2 + i], i))
			return EXIT_OK;
	complete_word(&completion);
	return EXIT_OK;
}
