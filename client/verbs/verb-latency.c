/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/output/fail.h"
#include "client/verbs/verb.h"
#include "util/base.h"

/* A program of its own, because it links HIP and gpuarbctl does not. "": built without HIP. */
static const char program[] = GPUARB_LATENCY;

/* Comes back only with a failure. */
static int start(const struct command *command)
{
	char id[32];
	const struct {
		const char *option, *value;
	} texts[] = {
		{ "--gpu", command->gpu },
		{ "--svg", command->svg },
		{ "--html", command->html },
		{ "--submit-file", command->submit_file },
		{ "--probe", command->probe ? id : NULL },
	};
	const struct {
		const char *option;
		bool given;
	} flags[] = {
		{ "--same-line", command->same_line },
		{ "--compare-and-swap", command->compare_and_swap },
		{ "--json", command->json },
		{ "--quick", command->quick },
		{ "--shared", command->shared },
		{ "--oversubscribe", command->oversubscribe },
		{ "--emulated", command->emulated },
		{ "--no-legend", command->no_legend },
	};
	const char *words[3 + 2 * ARRAY_SIZE(texts) + ARRAY_SIZE(flags)] = { program,
									     command->verb };
	size_t n = 2;

	snprintf(id, sizeof(id), "%" PRIu64, command->id);

	if (!*program)
		return fail(command, EXIT_FAILED,
			    "this gpuarbctl was built without HIP, which %s needs: install its "
			    "development files (libamdhip64-dev on Debian) and build gpuarb again",
			    command->verb);

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].value) {
			words[n++] = texts[i].option;
			words[n++] = texts[i].value;
		}
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (flags[i].given)
			words[n++] = flags[i].option;

	/* execv() does not write to the words. */
	execv(program, (char *const *)(uintptr_t)words);
	return fail(command, EXIT_FAILED, "cannot start %s: %s%s", program, strerror(errno),
		    errno == ENOENT ? "; on Debian it is in the package gpuarb-latency" : "");
}

int run_latency(struct command *command)
{
	if (command->json && command->svg)
		return fail(command, EXIT_USAGE, "--json and --svg exclude each other");
	return start(command);
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
	if (command->oversubscribe && (command->quick || command->shared))
		return fail(command, EXIT_USAGE, "--oversubscribe excludes --quick and --shared");
	return start(command);
}

int run_probe(struct command *command)
{
	return start(command);
}
