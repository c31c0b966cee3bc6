/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Verbs that are programs of their own, which gpuarbctl becomes: gpuarb-latency, because it links HIP and
 * gpuarbctl does not, and gpuarb-rt, because it is no tool of the arbiter.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/launch/child.h"
#include "client/output/fail.h"
#include "client/verbs/verb.h"
#include "util/base.h"

/* The verb, and what the user typed but for the verb and what ends options before it. lease: instead of the
 * first word; NULL: that word stays. */
static const char **words_of(const struct command *command, const char *program, const char *lease)
{
	const char **words;
	bool begun = false;
	size_t n = 0;

	for (size_t i = 0; command->typed[i]; i++)
		n++;
	words = calloc(n + 3, sizeof(*words));
	if (!words)
		return NULL;
	words[0] = program;
	words[1] = command->verb;
	for (size_t i = 0, k = 2; i < n; i++) {
		const char *word = command->typed[i];

		if (word == command->verb)
			begun = true;
		else if (begun || strcmp(word, "--") != 0)
			words[k++] = lease && word == command->rest[0] ? lease : word;
	}
	return words;
}

/* Comes back only with a failure. execv() does not write to the words. */
static int become(const struct command *command, const char *program, const char *package,
		  const char *lease)
{
	_cleanup_(freep) const char **words = words_of(command, program, lease);

	if (!words)
		return fail(command, EXIT_FAILED, "out of memory");
	execv(program, (char *const *)(uintptr_t)words);
	return fail(command, EXIT_FAILED, "cannot start %s: %s%s%s", program, strerror(errno),
		    errno == ENOENT ? "; on Debian it is in the package " : "",
		    errno == ENOENT ? package : "");
}

/* "": built without HIP. */
static int become_latency(const struct command *command, const char *lease)
{
	static const char program[] = GPUARB_LATENCY;

	if (!*program)
		return fail(command, EXIT_FAILED,
			    "this gpuarbctl was built without HIP, which %s needs: install its "
			    "development files (libamdhip64-dev on Debian) and build gpuarb again",
			    command->verb);
	return become(command, program, "gpuarb-latency", lease);
}

int run_latency(struct command *command)
{
	if (command->json && command->svg)
		return fail(command, EXIT_USAGE, "--json and --svg exclude each other");
	return become_latency(command, NULL);
}

static bool is_stdout(const char *file)
{
	return file && strcmp(file, "-") == 0;
}

int run_calibrate(struct command *command)
{
	const char *html = command->html, *submission = command->submit_file;

	if (command->json && (is_stdout(html) || is_stdout(submission)))
		return fail(command, EXIT_USAGE,
			    "--json and a file '-' both write to standard output: name a file");
	if (html && submission && strcmp(html, submission) == 0)
		return fail(command, EXIT_USAGE,
			    "--html and --submit-file both name '%.80s': name two files", html);
	if (command->paper && (html || submission || command->quick || command->shared))
		return fail(command, EXIT_USAGE,
			    "--paper excludes --quick, --shared, --html and --submit-file");
	if (command->seed > 0 && !command->paper)
		return fail(command, EXIT_USAGE, "--seed needs --paper");
	if (command->oversubscribe && (command->quick || command->shared))
		return fail(command, EXIT_USAGE, "--oversubscribe excludes --quick and --shared");
	return become_latency(command, NULL);
}

int run_probe(struct command *command)
{
	char id[32];

	snprintf(id, sizeof(id), "%" PRIu64, command->id);
	return become_latency(command, id);
}

int run_rt(struct command *command)
{
	char path[PATH_MAX];

	return become(command, sibling_find("gpuarb-rt", GPUARB_RT, path), "gpuarb", NULL);
}
