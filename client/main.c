/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/doctor/service.h"
#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"
#include "util/text.h"

/* What the verbs of kubectl, loginctl, docker and shells are called here. */
static const char *known_verb(const char *name)
{
	static const char *const names[][2] = {
		{ "delete", "release" },    { "describe", "show" }, { "end", "release" },
		{ "exec", "run" },          { "get", "list" },      { "info", "show" },
		{ "kill", "release" },      { "ls", "list" },       { "ps", "list" },
		{ "rm", "release" },        { "stop", "release" },  { "terminate", "release" },
		{ "version", "--version" }, { "watch", "monitor" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i][0], name) == 0)
			return names[i][1];
	return NULL;
}

static int unknown_verb(const struct command *command, const char *name)
{
	const char *names[VERB_MAX + 1], *nearest = known_verb(name);

	for (size_t i = 0; i < verb_count; i++)
		names[i] = verb_table[i].name;
	names[verb_count] = NULL;

	if (!nearest)
		nearest = text_nearest(name, names);
	return fail(command, EXIT_USAGE, "unknown verb '%.80s'%s%s%s", name,
		    nearest ? "; did you mean " : "; see gpuarbctl --help", nearest ? nearest : "",
		    nearest ? "?" : "");
}

/* run uses 125 for its own failures: the command can end with any other code. */
static int usage_code(const struct verb *verb)
{
	return verb->command ? EXIT_RUN_FAILED : EXIT_USAGE;
}

/* The alternatives of the first word, if that is an action. */
static bool takes_action(char *place, const char *word)
{
	char *action;

	if (!islower((unsigned char)*place))
		return true;
	while ((action = strsep(&place, "|")))
		if (strcmp(action, word) == 0)
			return true;
	return false;
}

static int check_words(struct command *command, const struct verb *verb)
{
	const char *gap = *verb->arguments ? " " : "";
	char place[VERB_PLACE];
	bool needed;

	for (size_t i = 0; i < command->n_rest; i++) {
		const char *word = command->rest[i];

		if (!verb_place(verb, i, place, NULL))
			return fail(command, usage_code(verb),
				    "unexpected argument '%.80s': gpuarbctl %s%s%s", word,
				    verb->name, gap, verb->arguments);
		if (i == 0 && !takes_action(place, word))
			return fail(command, usage_code(verb),
				    "unknown action '%.80s': gpuarbctl %s %s", word, verb->name,
				    verb->arguments);
	}
	if (verb_place(verb, command->n_rest, place, &needed) && needed)
		return fail(command, usage_code(verb), "missing argument: gpuarbctl %s %s",
			    verb->name, verb->arguments);
	return EXIT_OK;
}

static void stop_watch(const char *kind, const char *what, void *userdata)
{
	(void)what;
	if (strcmp(kind, "watching") != 0)
		gpuarb_watch_stop(userdata);
}

/* Prints again after each change, and after 2 s: ages and what is observed change without one. */
static int run_again_and_again(struct command *command, const struct verb *verb)
{
	bool screen = print_is_screen(stdout);
	int r = EXIT_OK;

	for (;;) {
		if (screen)
			fputs("\033[H\033[2J", stdout);
		r = verb->run(command);
		if (!command->json && !screen)
			putchar('\n');
		if (r != EXIT_OK || fflush(stdout) != 0)
			return r;
		r = gpuarb_watch(command->gpuarb, UINT64_C(2000000), stop_watch, command->gpuarb);
		if (r >= 0)
			r = session_refresh(command);
		if (r < 0)
			return fail_asked(command, r);
	}
}

static int run_verb(struct command *command, const struct verb *verb)
{
	pid_t pager = session_screen(command, verb->paged);
	char place[VERB_PLACE];
	int r;

	r = verb->connect ? verb->connect(command) : EXIT_OK;
	if (r == EXIT_OK && command->n_rest > 0 &&
	    strcmp(verb_place(verb, 0, place, NULL), "LEASE") == 0)
		r = session_choose(command, command->rest[0]);
	if (!verb->run)
		r = run_help(command);
	else if (r == EXIT_OK)
		r = command->watch ? run_again_and_again(command, verb) : verb->run(command);
	if (pager > 0)
		pager_finish(pager);
	return r;
}

static int take_verb(struct command *command, int argc, char **argv)
{
	const struct verb *verb = verb_find(argc > 0 ? argv[0] : "status");

	if (!verb)
		return unknown_verb(command, argv[0]);

	command->verb = argc > 0 ? argv[0] : verb->name;
	if (options_parse(command, verb->groups | OPTIONS_GENERAL, verb->command,
			  argc > 0 ? argc - 1 : 0, argc > 0 ? argv + 1 : argv) < 0)
		return fail(command, usage_code(verb), "%s", command->problem);
	if (command->help) {
		help_print_verb(verb);
		return EXIT_OK;
	}
	if (command->version) {
		printf("gpuarbctl %s\n", GPUARB_VERSION);
		return EXIT_OK;
	}
	if (command->export_dir) {
		puts(run_library_dir());
		return EXIT_OK;
	}
	if (check_words(command, verb) != EXIT_OK)
		return usage_code(verb);
	return run_verb(command, verb);
}

static int take_words(struct command *command, int argc, char **argv)
{
	/* Options of all verbs may precede the verb. */
	if (options_parse(command, OPTIONS_GENERAL, true, argc, argv) < 0)
		return fail(command, EXIT_USAGE, "%s", command->problem);
	if (command->help && command->n_rest == 0) {
		help_print();
		return EXIT_OK;
	}
	return take_verb(command, (int)command->n_rest, command->rest);
}

int main(int argc, char **argv)
{
	_cleanup_(freep) char **typed = calloc((size_t)argc + 1, sizeof(*typed));
	struct command command;
	int r;

	command_init(&command);
	command.service_failed = service_failed;
	if (!typed)
		return fail(&command, EXIT_FAILED, "out of memory");
	/* Parsing moves the words. */
	for (int i = 1; i < argc; i++)
		typed[i - 1] = argv[i];
	command.typed = typed;

	if (argc > 1 && strcmp(argv[1], "--complete") == 0)
		r = complete(argc - 2, argv + 2);
	else
		r = take_words(&command, argc - 1, argv + 1);
	return session_end(&command, r);
}
