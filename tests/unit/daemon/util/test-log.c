/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/log.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "check.h"
#include "journal-rig.h"

/* Captures standard error of a child through a pipe. journal: whether $JOURNAL_STREAM names that
 * pipe. */
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

TEST(only_the_journal_gets_the_level)
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

TEST(newline_in_a_name_does_not_start_another_line)
{
	char text[4096];

	capture(name_with_a_line_of_its_own, true, text, sizeof(text));
	CHECK(strcmp(text, "<4>lease \"a?<0>forged?[2J\" ended\n") == 0);
}

static void endless(void)
{
	log_notice("%05000d", 1);
}

TEST(line_is_truncated_at_2047_bytes)
{
	char text[8192];

	capture(endless, false, text, sizeof(text));
	CHECK(strlen(text) == 2048 && text[2047] == '\n');
}

static void diagnostics_of_both_kinds(void)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };

	diagnostics_add(&diagnostics, true, "wrong");
	diagnostics_add(&diagnostics, false, "degraded");
	log_diagnostics(&diagnostics);
}

TEST(diagnostics_are_logged_as_errors_or_warnings)
{
	char text[4096];

	capture(diagnostics_of_both_kinds, true, text, sizeof(text));
	CHECK(strcmp(text, "<3>wrong\n<4>degraded\n") == 0);
}

static void one_event(void)
{
	const struct log_fields fields = { .lease = 7,
					   .tenant = "gold\n<0>",
					   .uid = 1000,
					   .gpus = { "0000:03:00.0", "0000:04:00.0" },
					   .n_gpus = 2 };

	log_event(EVENT_REVOKED, &fields, "lease %d ends: %s", 7, "told\nso");
}

TEST(event_is_a_plain_line_without_a_journal)
{
	char text[4096];

	capture(one_event, false, text, sizeof(text));
	CHECK(strcmp(text, "lease 7 ends: told?so\n") == 0);
}

/* Runs the function in a child and returns its status: 77 if it cannot have a journal. */
static int in_a_child(void (*run)(void))
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		run();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int own_journal(void)
{
	int journal = journal_open();

	if (journal < 0)
		_exit(77);
	return journal;
}

static const char no_journal[] = "a journal of its own takes root";

static void send_events(void)
{
	int journal = own_journal();
	struct entry entry;

	journal_reads_stderr();
	one_event();
	entry = entry_next(journal, EVENT_REVOKED);
	CHECK(strcmp(entry.text,
		     "MESSAGE=lease 7 ends: told?so\n"
		     "MESSAGE_ID=f810bf3518ee457caf3fd6bb20ae8780\nPRIORITY=5\nSYSLOG_FACILITY=3\n"
		     "SYSLOG_IDENTIFIER=test-util\nGPUARB_LEASE=7\nGPUARB_TENANT=gold?<0>\n"
		     "GPUARB_UID=1000\nGPUARB_GPU=0000:03:00.0\nGPUARB_GPU=0000:04:00.0\n") == 0);

	log_event(EVENT_LOST, &(struct log_fields){ .uid = (uid_t)-1 }, "lost");
	entry = entry_next(journal, EVENT_LOST);
	CHECK(!strstr(entry.text, "GPUARB_"));
}

TEST(event_is_an_entry_with_fields_for_the_journal)
{
	int status = in_a_child(send_events);

	if (status == 77)
		SKIP(no_journal);
	CHECK(status == 0);
}

static void many_gpus(void)
{
	struct log_fields fields = { .lease = UINT64_MAX, .uid = 0, .n_gpus = LOG_GPUS_MAX };
	int journal = own_journal();
	char names[LOG_GPUS_MAX][32], field[2304];
	struct entry entry;

	for (size_t i = 0; i < LOG_GPUS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "0000:%02zx:00.0/4294967295", i);
		fields.gpus[i] = names[i];
	}
	journal_reads_stderr();
	log_event(EVENT_GRANTED, &fields, "%04000d", 1);
	entry = entry_next(journal, EVENT_GRANTED);
	for (size_t i = 0; i < LOG_GPUS_MAX; i++) {
		snprintf(field, sizeof(field), "GPUARB_GPU=%s", names[i]);
		CHECK(entry_has(&entry, field));
	}
	CHECK(entry_has(&entry, "GPUARB_LEASE=18446744073709551615"));
}

TEST(entry_has_room_for_64_gpus)
{
	int status = in_a_child(many_gpus);

	if (status == 77)
		SKIP(no_journal);
	CHECK(status == 0);
}

static void only_a_journal(void)
{
	close(own_journal());
}

static void event_without_a_journal(void)
{
	only_a_journal();
	one_event();
}

TEST(event_is_a_line_if_the_journal_does_not_take_the_entry)
{
	char text[4096];

	if (in_a_child(only_a_journal) == 77)
		SKIP(no_journal);
	capture(event_without_a_journal, true, text, sizeof(text));
	CHECK(strcmp(text, "<5>lease 7 ends: told?so\n") == 0);
}

static void log_to_a_stopped_journal(void)
{
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	CHECK(dup2(ends[0], STDERR_FILENO) >= 0);
	journal_reads_stderr();
	alarm(AWAIT_LIMIT_SEC); /* a call that waits would wait forever */
	for (unsigned i = 0; i < 100000; i++)
		log_info("%d", i);
	CHECK(recv(ends[1], &(char[5]){ 0 }, 5, 0) == 5);
}

TEST(stopped_journal_does_not_block)
{
	CHECK(in_a_child(log_to_a_stopped_journal) == 0);
}
