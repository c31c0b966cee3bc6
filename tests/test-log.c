/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/log.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* What a process with a pipe for standard error writes. journal: that pipe is the one that
 * $JOURNAL_STREAM names. */
static void capture(void (*write_lines)(void), bool journal, char *ret, size_t size)
{
	int ends[2];
	ssize_t n;
	pid_t pid;

	CHECK(pipe(ends) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		char stream[64];
		struct stat st;

		if (fstat(ends[1], &st) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
			_exit(1);
		snprintf(stream, sizeof(stream), "%lu:%lu", st.st_dev, st.st_ino + !journal);
		setenv("JOURNAL_STREAM", stream, 1);
		write_lines();
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	n = read(ends[0], ret, size - 1);
	CHECK(n > 0);
	ret[n] = '\0';
	close(ends[0]);
	close(ends[1]);
}

static void two_levels(void)
{
	log_error("cannot %s", "open");
	log_info("ready: %d GPUs", 2);
}

TEST(the_journal_is_told_the_level_and_nobody_else)
{
	char text[4096];

	capture(two_levels, true, text, sizeof(text));
	CHECK(strcmp(text, "<3>cannot open\n<6>ready: 2 GPUs\n") == 0);
	capture(two_levels, false, text, sizeof(text));
	CHECK(strcmp(text, "cannot open\nready: 2 GPUs\n") == 0);
}

static void name_with_a_line_of_its_own(void)
{
	log_warning("lease \"%s\" ended", "a\n<0>forged\033[2J");
}

TEST(a_name_cannot_begin_another_line)
{
	char text[4096];

	capture(name_with_a_line_of_its_own, true, text, sizeof(text));
	CHECK(strcmp(text, "<4>lease \"a?<0>forged?[2J\" ended\n") == 0);
}

static void endless(void)
{
	log_notice("%05000d", 1);
}

TEST(a_line_has_an_end)
{
	char text[8192];

	capture(endless, false, text, sizeof(text));
	CHECK(strlen(text) == 2048 && text[2047] == '\n');
}

static void notes_of_both_kinds(void)
{
	struct notes notes = {0};

	notes_add(&notes, true, "wrong");
	notes_add(&notes, false, "degraded");
	log_notes(&notes);
	notes_done(&notes);
}

TEST(notes_are_errors_or_warnings)
{
	char text[4096];

	capture(notes_of_both_kinds, true, text, sizeof(text));
	CHECK(strcmp(text, "<3>wrong\n<4>degraded\n") == 0);
}
