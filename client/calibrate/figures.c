/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/calibrate/figures.h"

#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/calibrate/calibration-print.h"
#include "client/launch/sibling.h"
#include "client/output/fail.h"
#include "util/base.h"

#define REPORT_FD 3

extern char **environ;

/* Runs the program with an option and an argument to its end. in, out: for REPORT_FD and standard output, or NULL. 0,
 * a negative errno, or -EPROTO: it has failed and said why. */
static int run(const char *option, const char *argument, FILE *in, FILE *out)
{
	char found[PATH_MAX];
	const char *program = sibling_find("gpuarb-figures", GPUARB_FIGURES, found);
	const char *const words[] = { program, option, argument, NULL };
	posix_spawn_file_actions_t actions;
	int status = 0, r;
	pid_t pid;

	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	if (in)
		posix_spawn_file_actions_adddup2(&actions, fileno(in), REPORT_FD);
	if (out)
		posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
	/* posix_spawn() does not write to the words. */
	r = posix_spawn(&pid, program, &actions, NULL, (char *const *)(uintptr_t)words, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return -r;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPROTO;
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

/* The program reads the report by its number, and its output is copied when it has ended well. */
void figures_embed(const struct gpuarb_gpu *gpu, const struct model *model,
		   const struct calibration *c, FILE *out)
{
	_cleanup_(close_file) FILE *report = tmpfile();
	_cleanup_(close_file) FILE *drawn = tmpfile();
	char buf[4096];
	size_t n = 0, all = 0;
	int r = report && drawn ? 0 : -errno;

	if (r >= 0) {
		calibration_print_json(gpu, model, c, report);
		rewind(report);
		r = run("--report", "/dev/fd/3", report, drawn);
	}
	if (r >= 0)
		rewind(drawn);
	while (r >= 0 && (n = fread(buf, 1, sizeof(buf), drawn)) > 0)
		all += fwrite(buf, 1, n, out);
	if (all == 0)
		fputs("<p>Figures are missing: python3-matplotlib draws them.</p>\n", out);
}
