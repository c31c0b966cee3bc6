/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Hardware queue descriptors, read by a script in a directory that stands for debugfs. */

#include <errno.h>
#include <signal.h>

#include "check.h"
#include "probe-rig.h"

/* ---- a directory for debugfs ------------------------------------------------------------ */

FIXTURE(struct stage, stage, probe_stage_new(stage, true), probe_stage_end(stage));

TEST_WITH(the_file_is_read_by_a_script, struct stage *stage)
{
	scratch_write(&stage->scratch, "kfd/mqds", "Process 1 PASID 0x8001:\n");
	CHECK(start(stage) == 0 && finish(stage) == 0);
	CHECK(stage->size == 24 && strcmp(stage->text, "Process 1 PASID 0x8001:\n") == 0);
	check_no_children();
}

TEST_WITH(run_lists_follow_the_descriptors, struct stage *stage)
{
	scratch_write(&stage->scratch, "kfd/mqds", "Process 1 PASID 0x8001:\n");
	scratch_write(&stage->scratch, "kfd/rls", "Node 1, gpu_id 3a7c:\n");
	CHECK(start(stage) == 0 && finish(stage) == 0);
	CHECK(strcmp(stage->text, "Process 1 PASID 0x8001:\nNode 1, gpu_id 3a7c:\n") == 0);
}

TEST_WITH(one_probe_asks_again_and_again, struct stage *stage)
{
	char text[16];

	for (unsigned i = 0; i < 20; i++) {
		int n = snprintf(text, sizeof(text), "%u\n", i);

		scratch_write(&stage->scratch, "kfd/mqds", text);
		CHECK(start(stage) == 0 && finish(stage) == 0);
		CHECK(stage->size == (size_t)n && strcmp(stage->text, text) == 0);
		CHECK(is_quiet(stage));
	}
}

TEST_WITH(an_empty_file_and_one_with_zeros_are_texts, struct stage *stage)
{
	scratch_write(&stage->scratch, "kfd/mqds", "");
	CHECK(start(stage) == 0 && finish(stage) == 0);
	CHECK(stage->size == 0 && stage->text[0] == '\0');
	scratch_put(&stage->scratch, "kfd/mqds", "a\0\n", 3);
	CHECK(start(stage) == 0 && finish(stage) == 0);
	CHECK(stage->size == 3 && memcmp(stage->text, "a\0\n", 4) == 0);
}

/* Lines of 1024 bytes, but the last one; it must not be taken for a mark. */
static void write_lines(struct stage *stage, size_t size)
{
	char *text = malloc(size + 1);

	CHECK(text);
	memset(text, 'x', size);
	text[size] = '\0';
	for (size_t i = 1023; i < size; i += 1024)
		text[i] = '\n';
	text[size - 2] = '.';
	text[size - 1] = '\n';
	scratch_write(&stage->scratch, "kfd/mqds", text);
	free(text);
}

TEST_WITH(a_long_text_comes_in_pieces_of_whole_lines, struct stage *stage)
{
	write_lines(stage, 3 * PROBE_PIECE_MAX + 7);
	CHECK(start(stage) == 0 && finish(stage) == 0);
	CHECK(stage->total == 3 * PROBE_PIECE_MAX + 7 && stage->pieces > 3);
}

TEST(a_line_that_is_longer_than_a_piece_is_refused)
{
	struct stage stage;

	probe_stage_new(&stage, true);
	scratch_write(&stage.scratch, "kfd/mqds", "x");
	CHECK(truncate(scratch_at(&stage.scratch, "kfd/mqds"), PROBE_PIECE_MAX) == 0);
	CHECK(start(&stage) == 0 && finish(&stage) == -EFBIG);
	CHECK(probe_says(&stage, "1024 KiB"));
	CHECK(start(&stage) == 0);
	probe_stage_end(&stage);
	check_no_children();
}

TEST_WITH(missing_file_is_reported_as_not_supported, struct stage *stage)
{
	CHECK(start(stage) == -EOPNOTSUPP && probe_says(stage, "there is no /"));
	CHECK(go_on(stage) == -EAGAIN && is_quiet(stage));
	CHECK(rmdir(scratch_at(&stage->scratch, "kfd")) == 0);
	CHECK(start(stage) == -EOPNOTSUPP);
	scratch_write(&stage->scratch, "kfd", "a file");
	CHECK(start(stage) == -EOPNOTSUPP);
	CHECK(unlink(scratch_at(&stage->scratch, "kfd")) == 0);
}

TEST_WITH(unreadable_file_is_reported_with_the_reason, struct stage *stage)
{
	int r;

	if (geteuid() != 0) {
		CHECK(chmod(scratch_write(&stage->scratch, "kfd/mqds", "x"), 0) == 0);
		r = start(stage);
	} else {
		scratch_write(&stage->scratch, "kfd/mqds", "x");
		CHECK(seteuid(NOBODY) == 0); /* the directory is root's alone */
		r = start(stage);
		CHECK(seteuid(0) == 0);
	}
	CHECK(r == -EACCES && probe_says(stage, "/kfd/mqds: Permission denied"));
}

TEST_WITH(a_file_that_cat_cannot_read_is_an_error, struct stage *stage)
{
	scratch_mkdir(&stage->scratch, "kfd/mqds");
	CHECK(start(stage) == 0 && finish(stage) == -EIO);
	CHECK(probe_says(stage, "/kfd/mqds"));
	CHECK(go_on(stage) == -EAGAIN);
	check_no_children();
}

/* Another script. */
static void put_script(struct stage *stage, const char *script)
{
	static struct probe_files files;

	files = probe_mqds;
	files.script = script;
	scratch_write(&stage->scratch, "kfd/mqds", "x");
	probe_stage_read(stage, &files);
}

TEST_WITH(files_of_user_queues_that_cannot_be_read_are_in_the_text, struct stage *stage)
{
	probe_stage_read(stage, &probe_userqs);
	for (unsigned i = 0; i < 4; i++) {
		static const char *const directories[] = { "dri", "dri/client-7",
							   "dri/client-7/device",
							   "dri/client-7/queue_1" };

		scratch_mkdir(&stage->scratch, directories[i]);
	}
	scratch_write(&stage->scratch, "dri/client-7/device/name", "amdgpu dev=0000:03:00.0\n");
	CHECK(start(stage) == 0 && finish(stage) == 0);
	CHECK(strstr(stage->text, "/dri/client-7/device/name:amdgpu dev=0000:03:00.0\n"));
	CHECK(strstr(stage->text, "/queue*/mqd_info: No such file or directory\n"));
	scratch_mkdir(&stage->scratch, "dri/client-7/queue_1/mqd_info");
	CHECK(start(stage) == 0 && finish(stage) == 0);
	CHECK(strstr(stage->text, "grep: "));
	CHECK(strstr(stage->text, "/dri/client-7/queue_1/mqd_info: Is a directory\n"));
}

TEST_WITH(a_reader_that_is_killed_or_fails_has_failed, struct stage *stage)
{
	put_script(stage, "echo half; kill -9 $$");
	CHECK(start(stage) == 0 && finish(stage) == -EIO && probe_says(stage, "killed"));
	put_script(stage, "printf half");
	CHECK(start(stage) == 0 && finish(stage) == -EIO);
	put_script(stage, "echo half; echo !");
	CHECK(start(stage) == 0 && finish(stage) == -EIO && strcmp(stage->text, "half\n") == 0);
}

/* The signals of a daemon: the script must not inherit that they are blocked. */
TEST_WITH(the_script_has_default_signals, struct stage *stage)
{
	sigset_t set, before;

	put_script(stage, "while read k v; do case $k in SigBlk:|SigIgn:) echo $k $v;; esac; "
			  "done </proc/self/status; echo .");
	sigfillset(&set);
	CHECK(sigprocmask(SIG_BLOCK, &set, &before) == 0);
	CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	CHECK(start(stage) == 0);
	CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
	CHECK(finish(stage) == 0);
	CHECK(strstr(stage->text, "SigBlk: 0000000000000000\n"));
	CHECK(strstr(stage->text, "SigIgn: ")[8 + 12] == '0'); /* SIGPIPE is 0x1000 */
}

/* Where it would wait for ever: nobody writes to it. */
static void put_fifo(struct stage *stage)
{
	CHECK(mkfifo(scratch_at(&stage->scratch, "kfd/mqds"), 0600) == 0);
}

TEST_WITH(asking_waits_for_nothing, struct stage *stage)
{
	char line[] = "late\n";
	int fd;

	put_fifo(stage);
	CHECK(start(stage) == 0 && go_on(stage) == -EAGAIN && is_quiet(stage));
	fd = open(scratch_at(&stage->scratch, "kfd/mqds"), O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && write(fd, line, 5) == 5);
	wait_readable(stage);
	CHECK(go_on(stage) == -EAGAIN && is_quiet(stage));
	close(fd);
	CHECK(finish(stage) == 0 && strcmp(stage->text, "late\n") == 0);
}

TEST_WITH(a_question_that_is_given_up_leaves_no_child, struct stage *stage)
{
	put_fifo(stage);
	CHECK(start(stage) == 0);
	probe_cancel(stage->probe);
	probe_cancel(stage->probe);
	check_no_children();
	CHECK(is_quiet(stage));
}

TEST(asking_anew_gives_up_what_was_asked)
{
	struct stage stage;

	probe_stage_new(&stage, true);
	put_fifo(&stage);
	CHECK(start(&stage) == 0);
	CHECK(start(&stage) == 0);
	CHECK(unlink(scratch_at(&stage.scratch, "kfd/mqds")) == 0);
	scratch_write(&stage.scratch, "kfd/mqds", "new\n");
	CHECK(start(&stage) == 0 && finish(&stage) == 0);
	CHECK(strcmp(stage.text, "new\n") == 0);
	probe_stage_end(&stage);
	check_no_children();
}

TEST(a_probe_that_goes_waits_for_nothing)
{
	struct stage stage;

	probe_stage_new(&stage, true);
	put_fifo(&stage);
	CHECK(start(&stage) == 0);
	probe_stage_end(&stage);
	check_no_children();
	CHECK(!probe_free(NULL));
}

/* Wherever fds run out, what was begun is undone. */
TEST_WITH(running_out_of_file_descriptors_leaves_nothing_behind, struct stage *stage)
{
	struct rlimit before, limit;
	unsigned failures = 0;
	rlim_t from;
	int r;

	scratch_write(&stage->scratch, "kfd/mqds", "x\n");
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	from = open_files();
	for (limit = before, limit.rlim_cur = from;; limit.rlim_cur++) {
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		r = start(stage);
		CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
		if (r == 0)
			break;
		CHECK(r == -EMFILE && probe_says(stage, strerror(EMFILE)));
		CHECK(open_files() == from);
		check_no_children();
		failures++;
	}
	CHECK(failures >= 2 && start(stage) == 0 && finish(stage) == 0);
}
