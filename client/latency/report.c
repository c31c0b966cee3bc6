/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/launch/child.h"
#include "client/options/options.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "util/base.h"

#define REPORT_FD 3
#define REPORT_FILE "/dev/fd/3"

static void close_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* Runs gpuarb-figures to its end. in: for REPORT_FD; out: for its standard output. Why it has failed; NULL: it has not. */
static const char *run(const char *const *arguments, FILE *in, FILE *out)
{
	char found[PATH_MAX];
	const char *program = sibling_find("gpuarb-figures", GPUARB_FIGURES, found);
	const char *const words[] = { program, arguments[0], arguments[1],
				      arguments[1] ? arguments[2] : NULL, NULL };
	const struct process_fd fds[] = { { STDOUT_FILENO, fileno(out) },
					  { REPORT_FD, in ? fileno(in) : -1 } };
	pid_t pid;
	int r;

	fflush(out);
	r = process_spawn(program, words, false, fds, in ? ARRAY_SIZE(fds) : 1, &pid);
	if (r < 0)
		return strerror(-r);
	return process_wait(pid) == 0 ? NULL : "it has failed";
}

/* Needs no directory for temporary files: one that is full loses no measurement. */
static const char *show(struct json_object *report, const char *const *arguments, FILE *out)
{
	int fd = memfd_create("report", MFD_CLOEXEC);
	_cleanup_(close_file) FILE *in = fd < 0 ? NULL : fdopen(fd, "w");

	if (!in)
		return strerror(errno);
	fputs(json_line(report), in);
	fflush(in);
	return run(arguments, in, out);
}

/* kept: where what was measured is, if the report cannot be written. */
static int make(const struct command *command, struct json_object *report, const char *option,
		const char *file, const char *kept)
{
	const char *const arguments[] = { option, REPORT_FILE,
					  command->no_legend ? "--no-legend" : NULL };
	bool own = strcmp(file, "-") != 0;
	FILE *out = own ? fopen(file, "we") : stdout;
	const char *problem = out ? show(report, arguments, out) : NULL;

	if (!out)
		return fail(command, EXIT_FAILED, "%s: %s%s", file, strerror(errno), kept);
	if (own)
		fclose(out); /* nothing was written to it here */
	if (!problem)
		return EXIT_OK;
	return fail(command, EXIT_FAILED, "%s: cannot write the report: gpuarb-figures: %s%s",
		    own ? file : "standard output", problem, kept);
}

int report_write(const struct command *command, struct json_object *report, const char *option,
		 const char *file)
{
	return make(command, report, option, file, "");
}

int report_print(const struct command *command, struct json_object *report, const char *option,
		 const char *file)
{
	int r = EXIT_OK;

	if (option)
		r = make(command, report, option, file,
			 "; what was measured is on standard output as JSON, of which "
			 "gpuarb-figures --text FILE makes the report");
	if (!option || r != EXIT_OK)
		json_print(stdout, report);
	else
		json_free(report);
	return r;
}

int report_draw(const struct command *command, const char *directory)
{
	const char *const arguments[] = { "--", directory, NULL };
	const char *problem = run(arguments, NULL, stdout);

	if (!problem)
		return EXIT_OK;
	return fail(command, EXIT_FAILED,
		    "the figures cannot be drawn: gpuarb-figures: %s; the data is in %s", problem,
		    directory);
}
