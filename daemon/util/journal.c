/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/journal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "util/fd.h"
#include "util/text.h"

#define VALUE_MAX_BYTES 2048

/* The format "NAME=VALUE\n" is for values without a newline; text_clean() removes newlines. */
void journal_add(struct journal_entry *entry, const char *name, const char *format, ...)
{
	char raw[VALUE_MAX_BYTES], value[VALUE_MAX_BYTES];
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
