/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/fd.h"
#include "util/text.h"

#define LINE_MAX_BYTES 2048

/* $JOURNAL_STREAM is DEVICE:INODE of the socket that the service manager connected to the journal
 * (systemd.exec(5)). */
static bool journal_reads(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uint64_t device, inode;
	struct stat st;

	return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* Formats one line. Cleaning keeps a newline in a client's name from starting another line. */
static void compose(char ret[static LINE_MAX_BYTES], const char *format, va_list args)
	PRINTF_LIKE(2, 0);

static void compose(char ret[static LINE_MAX_BYTES], const char *format, va_list args)
{
	char raw[LINE_MAX_BYTES];

	vsnprintf(raw, sizeof(raw), format, args);
	text_clean(ret, LINE_MAX_BYTES, raw);
}

/* Does not wait: if the socket of a stopped journal is full, the line is lost. */
static void write_line(bool journal, int level, const char *text)
{
	char line[LINE_MAX_BYTES + 8];
	int n;

	if (journal)
		n = snprintf(line, sizeof(line), "<%d>%s\n", level, text);
	else
		n = snprintf(line, sizeof(line), "%s\n", text);
	/* Without stdio, which would call fstat() first. A line that cannot be written is lost, too. */
	if (send(STDERR_FILENO, line, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
	    errno == ENOTSOCK && write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

void log_line(int level, const char *format, ...)
{
	char text[LINE_MAX_BYTES];
	va_list args;

	va_start(args, format);
	compose(text, format, args);
	va_end(args);
	write_line(journal_reads(), level, text);
}

void log_diagnostics(const struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < diagnostics->n; i++)
		log_line(diagnostics->list[i].error ? LOG_ERR : LOG_WARNING, "%s",
			 diagnostics->list[i].text);
}

/* ---- the journal's protocol ---------------------------------------------------------- */

/* The format "NAME=VALUE\n" is for values without a newline; text_clean() removes newlines. */
void journal_add(struct journal_entry *entry, const char *name, const char *format, ...)
{
	char raw[LINE_MAX_BYTES], value[LINE_MAX_BYTES];
	size_t room = sizeof(entry->text) - entry->size;
	va_list args;
	int n;

	va_start(args, format);
	vsnprintf(raw, sizeof(raw), format, args);
	va_end(args);
	text_clean(value, sizeof(value), raw);
	n = snprintf(entry->text + entry->size, room, "%s=%s\n", name, value);
	if (n > 0 && (size_t)n < room)
		entry->size += (size_t)n;
}

int journal_send(const char *path, const struct journal_entry *entry)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = -1;

	if (strlen(path) >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	memcpy(un.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, entry->text, entry->size, MSG_DONTWAIT | MSG_NOSIGNAL,
			     (const struct sockaddr *)&un, sizeof(un)) < 0)
		return -errno;
	return 0;
}

/* ---- entries with fields ------------------------------------------------------------- */

static const struct {
	int level;
	const char *id;
} events[LOG_N_EVENTS] = {
#define EVENT_ROW(name, row_level, row_id) [EVENT_##name] = { row_level, row_id },
	LOG_EVENTS(EVENT_ROW)
#undef EVENT_ROW
};

/* The standard fields are the same as those of lines on standard error. */
static int send_entry(enum log_event event, const struct log_fields *fields, const char *text)
{
	struct journal_entry entry = { 0 };

	journal_add(&entry, "MESSAGE", "%s", text);
	journal_add(&entry, "MESSAGE_ID", "%s", events[event].id);
	journal_add(&entry, "PRIORITY", "%d", events[event].level);
	journal_add(&entry, "SYSLOG_FACILITY", "%d", LOG_FAC(LOG_DAEMON));
	journal_add(&entry, "SYSLOG_IDENTIFIER", "%s", program_invocation_short_name);
	if (fields->lease)
		journal_add(&entry, "GPUARB_LEASE", "%" PRIu64, fields->lease);
	if (fields->tenant)
		journal_add(&entry, "GPUARB_TENANT", "%s", fields->tenant);
	if (fields->uid != (uid_t)-1)
		journal_add(&entry, "GPUARB_UID", "%u", fields->uid);
	for (size_t i = 0; i < fields->n_gpus; i++)
		journal_add(&entry, "GPUARB_GPU", "%s", fields->gpus[i]);
	return journal_send(JOURNAL_SOCKET, &entry);
}

void log_event(enum log_event event, const struct log_fields *fields, const char *format, ...)
{
	bool journal = journal_reads();
	char text[LINE_MAX_BYTES];
	va_list args;

	va_start(args, format);
	compose(text, format, args);
	va_end(args);
	if (!journal || send_entry(event, fields, text) < 0)
		write_line(journal, events[event].level, text);
}
