/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "journal-rig.h"

#include "await.h"
#include "scratch.h"

int journal_open(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/run", "tmpfs", 0, NULL) < 0)
		return -1;
	CHECK(mkdir("/run/systemd", 0755) == 0 && mkdir("/run/systemd/journal", 0755) == 0);
	return scratch_bind(JOURNAL_SOCKET, SOCK_DGRAM);
}

void journal_reads_stderr(void)
{
	char stream[64];
	struct stat st;

	CHECK(fstat(STDERR_FILENO, &st) == 0);
	snprintf(stream, sizeof(stream), "%lu:%lu", st.st_dev, st.st_ino);
	CHECK(setenv("JOURNAL_STREAM", stream, 1) == 0);
}

bool entry_has(const struct entry *entry, const char *field)
{
	size_t length = strlen(field);

	for (const char *line = entry->text; *line; line = strchr(line, '\n') + 1)
		if (strncmp(line, field, length) == 0 && line[length] == '\n')
			return true;
	return false;
}

bool entry_names(const struct entry *entry, const char *name)
{
	for (const char *line = entry->text; *line; line = strchr(line, '\n') + 1)
		if (strncmp(line, name, strlen(name)) == 0)
			return true;
	return false;
}

bool entry_says(const struct entry *entry, const char *text)
{
	const char *line = strncmp(entry->text, "MESSAGE=", 8) == 0 ? entry->text : "\n";
	char message[sizeof(entry->text)];

	snprintf(message, sizeof(message), "%.*s", (int)strcspn(line, "\n"), line);
	return strstr(message, text);
}

bool entry_take(int journal, struct entry *ret)
{
	ssize_t n = recv(journal, ret->text, sizeof(ret->text) - 1, MSG_DONTWAIT);

	if (n < 0)
		return false;
	CHECK(n > 0 && ret->text[n - 1] == '\n');
	ret->text[n] = '\0';
	return true;
}

struct entry entry_next(int journal, enum log_event event)
{
	static const char *const events[][2] = {
#define ENTRY_ROW(name, level, id) [EVENT_##name] = { "MESSAGE_ID=" id, #level },
		LOG_EVENTS(ENTRY_ROW)
#undef ENTRY_ROW
	};
	const char *level = events[event][1];
	struct entry entry;

	AWAIT_FD(journal, POLLIN);
	CHECK(entry_take(journal, &entry));
	if (!entry_has(&entry, events[event][0]))
		fprintf(stderr, "no %s:\n%s", events[event][0], entry.text);
	CHECK(entry_has(&entry, events[event][0]));
	CHECK(entry_has(&entry, strcmp(level, "LOG_INFO") == 0     ? "PRIORITY=6"
				: strcmp(level, "LOG_NOTICE") == 0 ? "PRIORITY=5"
								   : "PRIORITY=4"));
	return entry;
}
