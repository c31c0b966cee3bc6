/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

/* $JOURNAL_STREAM is DEVICE:INODE of what the service manager connected to the journal
 * (systemd.exec(5)). */
static bool journal_reads(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uint64_t device, inode;
	struct stat st;

	return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* A line is one sentence: names that clients chose must not begin another. */
static void keep_on_one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

void log_line(int level, const char *format, ...)
{
	char text[LINE_MAX_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	keep_on_one_line(text);

	if (journal_reads())
		dprintf(STDERR_FILENO, "<%d>%s\n", level, text);
	else
		dprintf(STDERR_FILENO, "%s\n", text);
}

void log_notes(const struct notes *notes)
{
	for (size_t i = 0; i < notes->n; i++)
		log_line(notes->list[i].error ? LOG_ERR : LOG_WARNING, "%s", notes->list[i].text);
}
