/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/svg.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/fail.h"

void svg_begin(FILE *out, unsigned width, unsigned height)
{
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"font-family=\"sans-serif\" font-size=\"12\" fill=\"" SVG_INK "\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"" SVG_PAPER "\"/>\n",
		width, height);
}

/* XML cannot express most control characters. */
void svg_text(FILE *out, const char *text)
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

void svg_name(FILE *out, const char *text, size_t characters)
{
	_cleanup_(freep) char *start = strdup(text);
	size_t n = 0, bytes = 0;

	for (; text[bytes]; bytes++)
		if ((text[bytes] & 0xc0) != 0x80 && n++ == characters)
			break;
	if (!start)
		return;
	start[bytes] = '\0';
	svg_text(out, start);
	fputs(text[bytes] ? ".." : "", out);
}

void svg_title(FILE *out, unsigned y, const struct gpuarb_gpu *gpu, const char *format, ...)
{
	va_list args;

	fprintf(out, "<text x=\"%u\" y=\"%u\" font-weight=\"bold\">", SVG_MARGIN, SVG_Y(y));
	svg_text(out, gpu->name);
	fputs(" ", out);
	svg_text(out, gpu->device);
	fputs(", ", out);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fputs("</text>\n", out);
}

void svg_cell(FILE *out, unsigned x, unsigned y, int i, char letter)
{
	fprintf(out, "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"", x, y,
		SVG_CELL - 2, SVG_CELL - 2);
	if (i == SVG_FREE)
		fputs("#e4e4e4\"/>", out);
	else if (i == SVG_SHARED)
		fputs("#888888\"/>", out);
	else
		fprintf(out, "hsl(%u,65%%,70%%)\"/>", (unsigned)i * 137 % 360);
	if (i != SVG_FREE)
		fprintf(out, "<text x=\"%u\" y=\"%u\" text-anchor=\"middle\">%c</text>",
			x + (SVG_CELL - 2) / 2, SVG_Y(y), letter);
	fputc('\n', out);
}

void svg_legend_free(FILE *out, unsigned y)
{
	svg_cell(out, SVG_MARGIN, y, SVG_FREE, ' ');
	fprintf(out, "<text x=\"%u\" y=\"%u\">free</text>\n", SVG_MARGIN + SVG_LINE, SVG_Y(y));
}

int svg_write(const struct command *command, void (*draw)(FILE *out, const void *drawing),
	      const void *drawing)
{
	FILE *out = strcmp(command->svg, "-") == 0 ? stdout : fopen(command->svg, "we");

	if (!out)
		return fail(command, EXIT_FAILED, "%s: %s", command->svg, strerror(errno));
	draw(out, drawing);
	if (out != stdout && (ferror(out) | (fclose(out) != 0)))
		return fail(command, EXIT_FAILED, "%s: cannot write the drawing", command->svg);
	return EXIT_OK;
}
