/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/svg.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/fail.h"
#include "client/output/print.h"

/* A drawing is readable on a dark page, too: it has a background of its own. */
#define SVG_INK "#222222"
#define SVG_PAPER "#ffffff"

#define SVG_MARGIN 16U
#define SVG_WIDTH 560U                /* at least: for legends */
#define SVG_Y(y) ((y) + SVG_CELL - 6) /* of the text beside a cell at y */

/* Text of any user, escaped. XML cannot express most control characters. */
static void put_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '&')
			fputs("&amp;", out);
		else if (c == '<')
			fputs("&lt;", out);
		else if (c == '>')
			fputs("&gt;", out);
		else if (c == '"')
			fputs("&quot;", out);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\x%02x", c);
		else
			fputc(c, out);
	}
}

const char *svg_cut(const char *text, size_t characters, char *buf)
{
	size_t n = 0, bytes = 0;

	for (; text[bytes]; bytes++)
		if ((text[bytes] & 0xc0) != 0x80 && n++ == characters)
			break;
	snprintf(buf, SVG_NAME(characters), "%.*s%s", (int)bytes, text, text[bytes] ? ".." : "");
	return buf;
}

void svg_title(struct svg *svg, const struct gpuarb_gpu *gpu, const char *format, ...)
{
	va_list args;

	fprintf(svg->out, "<text x=\"%u\" y=\"%u\" font-weight=\"bold\">", SVG_MARGIN,
		SVG_Y(svg->y));
	put_text(svg->out, gpu->name);
	fputs(" ", svg->out);
	put_text(svg->out, gpu->device);
	fputs(", ", svg->out);
	va_start(args, format);
	vfprintf(svg->out, format, args);
	va_end(args);
	fputs("</text>\n", svg->out);
	svg->y += SVG_LINE;
}

void svg_row(struct svg *svg, const char *label, unsigned width)
{
	fprintf(svg->out, "<text x=\"%u\" y=\"%u\">%s</text>\n", SVG_MARGIN, SVG_Y(svg->y), label);
	svg->x = SVG_MARGIN + width;
}

void svg_cell(struct svg *svg, int i, char letter)
{
	FILE *out = svg->out;

	fprintf(out, "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"", svg->x, svg->y,
		SVG_CELL - 2, SVG_CELL - 2);
	if (i == SVG_FREE)
		fputs("#e4e4e4\"/>", out);
	else if (i == SVG_SHARED)
		fputs("#888888\"/>", out);
	else
		fprintf(out, "hsl(%u,65%%,70%%)\"/>", (unsigned)i * 137 % 360);
	if (i != SVG_FREE)
		fprintf(out, "<text x=\"%u\" y=\"%u\" text-anchor=\"middle\">%c</text>",
			svg->x + (SVG_CELL - 2) / 2, SVG_Y(svg->y), letter);
	fputc('\n', out);
	svg->x += SVG_CELL;
	svg->right = max_u(svg->right, svg->x);
}

void svg_legend(struct svg *svg, int i, char letter, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	svg->x = SVG_MARGIN;
	svg_cell(svg, i, letter);
	fprintf(svg->out, "<text x=\"%u\" y=\"%u\">", SVG_MARGIN + SVG_LINE, SVG_Y(svg->y));
	put_text(svg->out, text);
	fputs("</text>\n", svg->out);
	svg->y += SVG_LINE;
}

int svg_write(const struct command *command, void (*draw)(struct svg *svg, const void *drawing),
	      const void *drawing)
{
	_cleanup_(freep) char *body = NULL;
	size_t size;
	struct svg svg = {
		.out = have(open_memstream(&body, &size)),
		.y = SVG_MARGIN,
		.right = SVG_WIDTH - SVG_MARGIN,
	};
	FILE *out;

	draw(&svg, drawing);
	if (ferror(svg.out) | (fclose(svg.out) != 0))
		no_memory();
	out = strcmp(command->svg, "-") == 0 ? stdout : fopen(command->svg, "we");
	if (!out)
		return fail(command, EXIT_FAILED, "%s: %s", command->svg, strerror(errno));
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"font-family=\"sans-serif\" font-size=\"12\" fill=\"" SVG_INK "\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"" SVG_PAPER "\"/>\n%s</svg>\n",
		svg.right + SVG_MARGIN, svg.y + SVG_MARGIN, body);
	if (out != stdout && (ferror(out) | (fclose(out) != 0)))
		return fail(command, EXIT_FAILED, "%s: cannot write the drawing", command->svg);
	return EXIT_OK;
}
