/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The report of a measurement is one JSON object. gpuarb-figures makes text, pages and drawings of it. */

struct command;
struct json_object;

/* These print what failed and return the exit code. */

/* Writes what gpuarb-figures makes of the report with an option to a file; "-": standard output. */
int report_write(const struct command *command, struct json_object *report, const char *option,
		 const char *file);

/* The same, and frees the report. NULL, or what failed: prints the report as it is, so that no measurement is lost. */
int report_print(const struct command *command, struct json_object *report, const char *option,
		 const char *file);

/* Draws the data of a directory into it. Without matplotlib gpuarb-figures says so, and that is no failure. */
int report_draw(const struct command *command, const char *directory);
