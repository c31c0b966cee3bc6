/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One page of HTML with plots, which needs nothing else. */
#include <math.h>

#include "client/calibrate/calibration-print.h"
#include "client/output/svg.h"
#include "util/base.h"

#define WIDTH 720
#define HEIGHT 360
#define MARGIN 50

/* A plot of times against 1/E: the law is a line. */
struct plot {
	FILE *out;
	double most_x, most_y;
};

static double plot_x(const struct plot *plot, double x)
{
	return MARGIN + x / plot->most_x * (WIDTH - 2 * MARGIN);
}

static double plot_y(const struct plot *plot, double y)
{
	return HEIGHT - MARGIN - y / plot->most_y * (HEIGHT - 2 * MARGIN);
}

static double time_of(const struct calibration_point *point, enum neighbours kind)
{
	return kind == NEIGHBOURS_MEMORY ? point->memory_usec : point->usec;
}

static void begin_plot(const char *caption, const char *x, struct plot *plot)
{
	fprintf(plot->out,
		"<h2>%s</h2>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"" SVG_PAPER "\"/>\n"
		"<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"" SVG_INK "\"/>\n"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n"
		"<text x=\"%d\" y=\"%d\">%.*f</text>\n",
		caption, WIDTH, HEIGHT, MARGIN, MARGIN, HEIGHT - MARGIN, WIDTH - MARGIN,
		WIDTH - MARGIN, HEIGHT - MARGIN / 2, x, 8, MARGIN - 8, plot->most_y < 100 ? 2 : 0,
		plot->most_y);
}

static void print_law(const struct calibration *c, enum neighbours kind, FILE *out)
{
	const struct law_fit *law = kind == NEIGHBOURS_MEMORY ? &c->memory_law : &c->law;
	struct plot plot = { .out = out };

	for (size_t i = 0; i < c->n; i++)
		if (c->point[i].use == CALIBRATION_LAW) {
			plot.most_x = fmax(plot.most_x, 1.0 / c->point[i].effective);
			plot.most_y = fmax(plot.most_y, time_of(&c->point[i], kind));
		}
	begin_plot(kind == NEIGHBOURS_MEMORY ? "Kernel that reads memory: time in us"
					     : "Kernel that computes: time in us",
		   "1 / effective CUs", &plot);
	if (!isnan(law->a_usec))
		fprintf(out,
			"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
			"stroke=\"#888888\"/>\n",
			plot_x(&plot, 0), plot_y(&plot, fmax(law->b_usec, 0)),
			plot_x(&plot, plot.most_x),
			plot_y(&plot, law->a_usec * plot.most_x + law->b_usec));
	for (size_t i = 0; i < c->n; i++)
		if (c->point[i].use == CALIBRATION_LAW)
			fprintf(out,
				"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"" SVG_INK
				"\"><title>%s: %.0f us</title></circle>\n",
				plot_x(&plot, 1.0 / c->point[i].effective),
				plot_y(&plot, time_of(&c->point[i], kind)), c->point[i].name,
				time_of(&c->point[i], kind));
	if (isnan(law->a_usec))
		fputs("</svg>\n<p>No law fits: more CUs did not make the kernel faster.</p>\n",
		      out);
	else
		fprintf(out, "</svg>\n<p>t = %.0f us / E + %.0f us, median error %.1f %%</p>\n",
			law->a_usec, law->b_usec, law->median_error);
}

/* A bar for each round: two heights are the two states of a pair. */
static void print_beside(const struct calibration *c, FILE *out)
{
	struct plot plot = { .out = out, .most_y = 1 };
	size_t bars = c->n_beside * (CALIBRATION_ROUNDS + 1), bar = 0;
	double width = (double)(WIDTH - 2 * MARGIN) / (double)(bars > 0 ? bars : 1);

	if (c->n_beside == 0)
		return;
	for (size_t i = 0; i < c->n_beside; i++)
		plot.most_y = fmax(plot.most_y, c->beside[i].worst);
	begin_plot("Times as long beside other processes", "", &plot);
	for (size_t i = 0; i < c->n_beside; i++, bar++) {
		const struct calibration_beside *b = &c->beside[i];

		fprintf(out, "<text x=\"%.1f\" y=\"%d\">%u %s</text>\n",
			MARGIN + (double)bar * width, HEIGHT - MARGIN / 2, b->neighbours,
			neighbours_names[b->kind]);
		for (unsigned k = 0; k < b->rounds; k++, bar++)
			fprintf(out,
				"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
				"fill=\"#888888\"><title>%.2f</title></rect>\n",
				MARGIN + (double)bar * width, plot_y(&plot, b->slowdown[k]),
				width * 0.8, plot_y(&plot, 0) - plot_y(&plot, b->slowdown[k]),
				b->slowdown[k]);
	}
	fputs("</svg>\n", out);
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
	fputs("<h2>Changes</h2>\n<table>\n<tr><th>What<th>us</tr>\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!isnan(rows[i].usec))
			fprintf(out, "<tr><td>%s<td>%.0f</tr>\n", rows[i].what, rows[i].usec);
	fputs("</table>\n", out);
}

static void print_ladder(const struct calibration *c, FILE *out)
{
	if (c->n_steps == 0)
		return;
	fputs("<h2>Queues and processes</h2>\n<table>\n<tr><th>Queues<th>Processes<th>Times as long</tr>\n",
	      out);
	for (size_t i = 0; i < c->n_steps; i++) {
		const struct calibration_step *step = &c->step[i];

		fprintf(out, "<tr%s><td>%u<td>%u<td>", step->oversubscribed ? " class=\"bad\"" : "",
			step->queues, step->processes);
		if (isnan(step->usec))
			fputs("did not end</tr>\n", out);
		else
			fprintf(out, "%.2f</tr>\n", step->usec / c->step[0].usec);
	}
	fputs("</table>\n", out);
}

static void print_events(const struct calibration *c, FILE *out)
{
	if (c->n_events == 0)
		return;
	fputs("<h2>Disturbances</h2>\n<table>\n<tr><th>During<th>After s<th>Kind<th>Slower"
	      "<th>Measured again</tr>\n",
	      out);
	for (size_t i = 0; i < c->n_events; i++) {
		const struct calibration_event *event = &c->event[i];

		fprintf(out, "<tr%s><td>%s<td>%.0f<td>%s<td>",
			event->repeated ? "" : " class=\"bad\"", event->during, event->seconds,
			calibration_troubles[event->kind]);
		if (!isnan(event->slower))
			fprintf(out, "%.0f %%", event->slower);
		fprintf(out, "<td>%s</tr>\n", event->repeated ? "yes" : "no");
	}
	fputs("</table>\n", out);
}

static void print_missing(const struct calibration *c, FILE *out)
{
	if (c->n_missing == 0)
		return;
	fputs("<h2>Missing</h2>\n<table>\n<tr><th>Step<th>Reason</tr>\n", out);
	for (size_t i = 0; i < c->n_missing; i++) {
		fprintf(out, "<tr class=\"bad\"><td>%s<td>", c->missing[i].step);
		svg_text(out, c->missing[i].why);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void print_masks(const struct calibration *c, FILE *out)
{
	fputs("<h2>CUs that masks occupy</h2>\n<table>\n<tr><th>Mask<th>CUs<th>Effective<th>Expected"
	      "<th>Occupied<th>Time in us<th>Spread</tr>\n",
	      out);
	for (size_t i = 0; i < c->n; i++) {
		const struct calibration_point *p = &c->point[i];

		fprintf(out, "<tr%s><td>%s<td>%u<td>%u<td>%u<td>%u<td>%.0f<td>%.1f %%</tr>\n",
			p->honoured ? "" : " class=\"bad\"", p->name, p->cus, p->effective,
			cuset_count(&p->expected), p->occupied, p->usec, p->spread);
	}
	fputs("</table>\n", out);
}

void page_print(const struct gpuarb_gpu *gpu, const struct model *, const struct calibration *c,
		FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>"
	      "Calibration</title>\n<style>body { font-family: sans-serif; max-width: 46em; margin: 1em "
	      "auto } td, th { text-align: right; padding: 0 .6em } td:first-child { text-align: left } "
	      ".bad { background: #ffcccc }</style>\n</head>\n<body>\n<h1>",
	      out);
	svg_text(out, gpu->device);
	fputs(" (", out);
	svg_text(out, gpu->gfx_target);
	fprintf(out, "), %s</h1>\n%s", c->date,
		c->emulated ? "<p class=\"bad\">EMULATED, not measured</p>\n" : "");
	print_law(c, NEIGHBOURS_COMPUTE, out);
	print_law(c, NEIGHBOURS_MEMORY, out);
	print_beside(c, out);
	print_costs(&c->costs, out);
	print_ladder(c, out);
	print_masks(c, out);
	print_events(c, out);
	print_missing(c, out);
	fputs("</body>\n</html>\n", out);
}
