/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Figures, which the program gpuarb-figures draws with matplotlib, and one page of HTML, which needs nothing else. */

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "client/calibrate/calibration-print.h"
#include "client/launch/child.h"
#include "client/output/fail.h"
#include "client/output/svg.h"
#include "util/base.h"

#define REPORT_FD 3

/* Runs the program with an option and an argument to its end. in, out: for REPORT_FD and standard output, or both NULL. 0,
 * a negative errno, or -EPROTO: it has failed and said why. */
static int run(const char *option, const char *argument, FILE *in, FILE *out)
{
	char found[PATH_MAX];
	const char *program = sibling_find("gpuarb-figures", GPUARB_FIGURES, found);
	const char *const words[] = { program, option, argument, NULL };
	const struct process_fd fds[] = { { REPORT_FD, in ? fileno(in) : -1 },
					  { STDOUT_FILENO, out ? fileno(out) : -1 } };
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

/* The program reads the report by its number, and its output is copied when it has ended well. */
static void figures_embed(const struct gpuarb_gpu *gpu, const struct model *model,
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

/* ---- the page -------------------------------------------------------------------------------- */

/* heads: those of the columns, with "<th>" between them. */
static void begin_table(FILE *out, const char *title, const char *heads)
{
	fprintf(out, "<h2>%s</h2>\n<table>\n<tr><th>%s</tr>\n", title, heads);
}

static void end_table(FILE *out)
{
	fputs("</table>\n", out);
}

static void print_law(const char *kernel, const struct law_fit *law, FILE *out)
{
	if (isnan(law->a_usec))
		fprintf(out,
			"<tr><td>%s<td colspan=\"5\">none: more CUs did not make it faster</tr>\n",
			kernel);
	else
		fprintf(out,
			"<tr><td>%s<td>%.0f us<td>%.0f us<td>%.1f %%<td>%.1f %%<td>%.0f %%</tr>\n",
			kernel, law->a_usec, law->b_usec, law->median_error, law->worst_error,
			law->constant);
}

static void print_laws(const struct calibration *c, FILE *out)
{
	begin_table(
		out, "Law t = a / E + b",
		"Kernel<th>a<th>b<th>Median error<th>Worst error<th>b of the time on the whole GPU");
	print_law("compute", &c->law, out);
	print_law("memory", &c->memory_law, out);
	end_table(out);
}

static void print_beside(const struct calibration *c, FILE *out)
{
	if (c->n_beside == 0)
		return;
	begin_table(out, "Times as long beside other processes", "Neighbours<th>Each round");
	for (size_t i = 0; i < c->n_beside; i++) {
		const struct calibration_beside *b = &c->beside[i];

		fprintf(out, "<tr%s><td>%u that use %s<td>", b->bistable ? " class=\"bad\"" : "",
			b->neighbours, neighbours_names[b->kind]);
		for (unsigned k = 0; k < b->rounds; k++)
			fprintf(out, " %.2f", b->slowdown[k]);
		fputs("</tr>\n", out);
	}
	end_table(out);
}

static void print_costs(const struct costs *costs, FILE *out)
{
	const struct {
		const char *what;
		double usec;
	} rows[] = {
		{ "Create a stream with a mask", costs->create },
		{ "Change a mask", costs->change },
		{ "Meanwhile other queues stand still", costs->preemption },
		{ "Pause a queue", costs->pause },
		{ "Resume a queue", costs->resume },
		{ "Its kernel stands still", costs->paused },
	};

	if (!(costs->create > 0))
		return;
	begin_table(out, "Changes", "What<th>us");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!isnan(rows[i].usec))
			fprintf(out, "<tr><td>%s<td>%.0f</tr>\n", rows[i].what, rows[i].usec);
	end_table(out);
}

static void print_ladder(const struct calibration *c, FILE *out)
{
	if (c->n_steps == 0)
		return;
	begin_table(out, "Queues and processes", "Queues<th>Processes<th>Times as long");
	for (size_t i = 0; i < c->n_steps; i++) {
		const struct calibration_step *step = &c->step[i];

		fprintf(out, "<tr%s><td>%u<td>%u<td>", step->oversubscribed ? " class=\"bad\"" : "",
			step->queues, step->processes);
		if (isnan(step->usec))
			fputs("did not end</tr>\n", out);
		else
			fprintf(out, "%.2f</tr>\n", step->usec / c->step[0].usec);
	}
	end_table(out);
}

static void print_events(const struct calibration *c, FILE *out)
{
	if (c->n_events == 0)
		return;
	begin_table(out, "Disturbances", "During<th>After s<th>Kind<th>Slower<th>Measured again");
	for (size_t i = 0; i < c->n_events; i++) {
		const struct calibration_event *event = &c->event[i];

		fprintf(out, "<tr%s><td>%s<td>%.0f<td>%s<td>",
			event->repeated ? "" : " class=\"bad\"", event->during, event->seconds,
			calibration_troubles[event->kind]);
		if (!isnan(event->slower))
			fprintf(out, "%.0f %%", event->slower);
		fprintf(out, "<td>%s</tr>\n", event->repeated ? "yes" : "no");
	}
	end_table(out);
}

static void print_missing(const struct calibration *c, FILE *out)
{
	if (c->n_missing == 0)
		return;
	begin_table(out, "Missing", "Step<th>Reason");
	for (size_t i = 0; i < c->n_missing; i++) {
		fprintf(out, "<tr class=\"bad\"><td>%s<td>", c->missing[i].step);
		svg_text(out, c->missing[i].why);
		fputs("</tr>\n", out);
	}
	end_table(out);
}

static void print_masks(const struct calibration *c, FILE *out)
{
	begin_table(out, "CUs that masks occupy",
		    "Mask<th>CUs<th>Effective<th>Expected<th>Occupied<th>Time in us<th>Spread");
	for (size_t i = 0; i < c->n; i++) {
		const struct calibration_point *p = &c->point[i];

		fprintf(out, "<tr%s><td>%s<td>%u<td>%u<td>%u<td>%u<td>%.0f<td>%.1f %%</tr>\n",
			p->honoured ? "" : " class=\"bad\"", p->name, p->cus, p->effective,
			cuset_count(&p->expected), p->occupied, p->usec, p->spread);
	}
	end_table(out);
}

void page_print(const struct gpuarb_gpu *gpu, const struct model *model,
		const struct calibration *c, FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>"
	      "Calibration</title>\n<style>body { font-family: sans-serif; max-width: 60em; margin: 1em "
	      "auto } td, th { text-align: right; padding: 0 .6em } td:first-child { text-align: left } "
	      ".bad { background: #ffcccc } svg { max-width: 100%; height: auto } td { white-space: nowrap }</style>\n</head>\n<body>\n<h1>",
	      out);
	svg_text(out, gpu->device);
	fputs(" (", out);
	svg_text(out, gpu->gfx_target);
	fprintf(out, "), %s</h1>\n%s", c->date,
		c->emulated ? "<p class=\"bad\">EMULATED, not measured</p>\n" : "");
	figures_embed(gpu, model, c, out);
	print_laws(c, out);
	print_beside(c, out);
	print_costs(&c->costs, out);
	print_ladder(c, out);
	print_masks(c, out);
	print_events(c, out);
	print_missing(c, out);
	fputs("</body>\n</html>\n", out);
}
