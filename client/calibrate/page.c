/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Figures, and one page of HTML for a report: gpuarb-figures makes them. */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/calibrate/calibration-print.h"
#include "client/launch/child.h"
#include "client/output/fail.h"
#include "util/base.h"

#define REPORT_FD 3

/* Runs the program with an option and an argument to its end. in, out: for REPORT_FD and standard output, or both NULL. 0,
 * a negative errno, or -EPROTO: it has failed and said why. */
static int run(const char *option, const char *argument, FILE *in, FILE *out)
{
	char found[PATH_MAX];
	const char *program = sibling_find("gpuarb-figures", GPUARB_FIGURES, found);
	const char *const words[] = { program, option, argument, NULL };
	const struct process_fd fds[] = { { STDOUT_FILENO, out ? fileno(out) : -1 },
					  { REPORT_FD, in ? fileno(in) : -1 } };
	pid_t pid;
	int r = process_spawn(program, words, false, fds, in ? ARRAY_SIZE(fds) : 0, &pid);

	if (r < 0)
		return r;
	return process_wait(pid) == 0 ? 0 : -EPROTO;
}

int figures_draw(const struct command *command, const char *directory)
{
	int r = run("--", directory, NULL, NULL);

	if (r >= 0)
		return EXIT_OK;
	return fail(command, EXIT_FAILED, "the figures cannot be drawn: %s; the data is in %s",
		    r == -EPROTO ? "gpuarb-figures has failed" : strerror(-r), directory);
}

static void close_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* The program reads the report by its number. */
int page_print(const struct gpuarb_gpu *gpu, const struct model *model, const struct calibration *c,
	       FILE *out)
{
	_cleanup_(close_file) FILE *report = tmpfile();

	if (!report)
		return -errno;
	calibration_print_json(gpu, model, c, report);
	rewind(report);
	return run("--report", "/dev/fd/3", report, out);
}
