/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reading files of task sets, and errors in them. */

#include "client/rt/set.h"

#include <errno.h>
#include <unistd.h>

#include "check.h"
#include "core/policy/settings.h"
#include "lack.h"

#define HEAD "[partition p]\n"
#define TASK HEAD "[task t]\npartition = p\nperiod = 10ms\nwcet = 15:2000 30:1200\n"

static int load_under(const struct settings *settings, const char *text, size_t size,
		      struct rt_set **ret, struct diagnostics *diagnostics)
{
	char path[] = "/tmp/gpuarb-set-XXXXXX";
	int fd = mkstemp(path), r;

	CHECK(fd >= 0);
	CHECK(write(fd, text, size) == (ssize_t)size);
	close(fd);
	r = rt_set_load(path, settings, ret, diagnostics);
	unlink(path);
	return r;
}

static int load_text(const char *text, size_t size, struct rt_set **ret,
		     struct diagnostics *diagnostics)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;

	CHECK(settings_new(&settings) == 0);
	return load_under(settings, text, size, ret, diagnostics);
}

static struct rt_set *good(const char *text)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	struct rt_set *set = NULL;
	int r = load_text(text, strlen(text), &set, &diagnostics);

	for (size_t i = 0; i < diagnostics.n; i++)
		printf("%s\n", diagnostics.list[i].text);
	CHECK(r == 0 && diagnostics.n == 0 && set);
	return set;
}

/* Refused with one error in this line that contains `words`. */
static void bad(const char *text, unsigned line, const char *words)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	struct rt_set *set = NULL;
	char place[32];

	CHECK(load_text(text, strlen(text), &set, &diagnostics) == -EINVAL && !set);
	snprintf(place, sizeof(place), ":%u: ", line);
	for (size_t i = 0; i < diagnostics.n; i++)
		printf("  %s\n", diagnostics.list[i].text);
	CHECK(diagnostics.n == 1 && diagnostics.list[0].error);
	CHECK(strstr(diagnostics.list[0].text, place) && strstr(diagnostics.list[0].text, words));
}

TEST(missing_keys_have_the_defaults_of_the_daemon)
{
	_cleanup_(rt_set_freep) struct rt_set *set = good(TASK);
	_cleanup_(settings_freep) struct settings *settings = NULL;

	CHECK(settings_new(&settings) == 0);
	CHECK(set->margin_percent == settings->margin_percent);
	CHECK(set->daemon.activate_min_interval == settings->activate_min_interval_usec);
	CHECK(set->daemon.activate_grace == settings->activate_grace_usec);
	CHECK(set->daemon.enforce_delay == settings->enforce_delay_usec);
	CHECK(!set->capped && !set->no_graphics && set->borrowers && set->law);
	CHECK(set->preemption == RT_UNSET && set->queue_changes.number == RT_UNSET);
	CHECK(set->tasks[0].deadline == 10000 && set->tasks[0].jitter == 0);
	CHECK(set->partitions[0].n_tasks == 1 && rt_partition_queues(&set->partitions[0]) == 2);
	CHECK(set->partitions[0].isolation == ISOLATION_SHADER_ENGINE);
}

TEST(keys_of_the_file_override_the_configuration)
{
	_cleanup_(rt_set_freep) struct rt_set *silent = NULL, *loud = NULL;
	_cleanup_(settings_freep) struct settings *settings = NULL;
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	static const char text[] = "[taskset]\nmargin = 70%\nactivate-grace = 3s\n" TASK;

	CHECK(settings_new(&settings) == 0);
	settings->margin_percent = 25;
	settings->activate_grace_usec = 2000000;
	settings->activate_min_interval_usec = 4000000;
	settings->enforce_delay_usec = 500000;
	CHECK(load_under(settings, TASK, strlen(TASK), &silent, &diagnostics) == 0);
	CHECK(silent->margin_percent == 25 && silent->daemon.activate_grace == 2000000);
	CHECK(silent->daemon.activate_min_interval == 4000000);
	CHECK(silent->daemon.enforce_delay == 500000);
	CHECK(load_under(settings, text, strlen(text), &loud, &diagnostics) == 0);
	CHECK(loud->margin_percent == 70 && loud->daemon.activate_grace == 3000000);
	CHECK(loud->in_force.activate_grace == 2000000 && loud->daemon.enforce_delay == 500000);
}

TEST(times_without_a_unit_are_microseconds)
{
	_cleanup_(rt_set_freep) struct rt_set *set = good(
		HEAD "host-submission = 70us\n[task t]\npartition = p\nperiod = 2min\n"
		     "deadline = 1min\njitter = 5ms\nwcet = 30:1200, 15:2ms\n");

	CHECK(set->partitions[0].host_submission == 70);
	CHECK(set->tasks[0].period == 120000000 && set->tasks[0].deadline == 60000000);
	CHECK(set->tasks[0].jitter == 5000 && set->tasks[0].n_points == 2);
	CHECK(set->tasks[0].points[0].cus == 15 && set->tasks[0].points[0].usec == 2000);
	CHECK(set->tasks[0].points[1].cus == 30 && set->tasks[0].points[1].usec == 1200);
}

TEST(every_key_is_stored)
{
	_cleanup_(rt_set_freep) struct rt_set *set = good(
		"[taskset]\nmargin = 25%\nevery-client-capped = yes\nno-graphics = yes\n"
		"borrowers = no\nlaw = no\npreemption = 90us\nqueue-changes = 3\nactivations = 1\n"
		"changed-queues = 4\nactivate-grace = 500ms\nactivate-min-interval = 3s\n"
		"enforce-delay = 2s\npreemption-timeout = 4s\n"
		"[partition p]\nisolation = cu\nstart-inactive = yes\nwaits-for-grant = yes\n"
		"activation-latency = 40ms\nqueues = 6\nprocesses = 2\npriority = high\nalone = yes\n"
		"user = vr\ncommand = ./run it --all\n"
		"[task t]\npartition = p\nperiod = 10ms\nwcet = 1:1\n");
	const struct rt_partition *p = &set->partitions[0];

	CHECK(set->margin_percent == 25 && set->capped && set->no_graphics && !set->borrowers);
	CHECK(!set->law && set->preemption == 90 && set->queue_changes.number == 3);
	CHECK(set->activations.number == 1 && set->changed_queues == 4);
	CHECK(set->daemon.activate_grace == 500000 && set->daemon.enforce_delay == 2000000);
	CHECK(set->daemon.activate_min_interval == 3000000);
	CHECK(set->preemption_timeout == 4000000);
	CHECK(p->isolation == ISOLATION_CU && p->start_inactive && p->waits_for_grant);
	CHECK(p->activation == 40000 && rt_partition_queues(p) == 6 && p->processes == 2);
	CHECK(p->priority == PRIORITY_HIGH && p->alone);
	CHECK(strcmp(p->user, "vr") == 0 && strcmp(p->command, "./run it --all") == 0);
}

TEST(an_empty_set_is_refused)
{
	bad("", 1, "add a section [task NAME]");
	bad("# nothing\n", 1, "add a section [task NAME]");
	bad("[taskset]\nmargin = 10%\n", 1, "add a section [task NAME]");
}

TEST(a_missing_key_of_a_task_is_named)
{
	bad(HEAD "[task t]\npartition = p\nwcet = 1:1\n", 2, "[task t] has no period");
	bad(HEAD "[task t]\npartition = p\nperiod = 1s\n", 2, "[task t] has no wcet");
	bad(TASK "[task u]\nperiod = 1s\nwcet = 1:1\n", 6, "[task u] has no partition");
	bad(TASK "[partition q]\n", 6, "[partition q] has no task");
	bad(HEAD "[task t]\npartition = p\nperiod = 1s\nwcet =\n", 5, "the table is empty");
}

TEST(a_deadline_past_the_period_is_refused)
{
	bad(HEAD "[task t]\npartition = p\nperiod = 10ms\ndeadline = 10001us\nwcet = 1:1\n", 5,
	    "deadline 10001 us is longer than the period of 10000 us");
	bad(HEAD "[task t]\ndeadline = 11ms\npartition = p\nwcet = 1:1\nperiod = 10ms\n", 3,
	    "longer than the period");
}

TEST(utilisation_above_one_is_refused)
{
	bad(HEAD "[task a]\npartition = p\nperiod = 10ms\nwcet = 15:9ms 30:6ms\n"
		 "[task b]\npartition = p\nperiod = 5ms\nwcet = 15:4ms 30:2001\n",
	    1, "utilisation 1.0002 is above one");
	bad(HEAD "[task a]\npartition = p\nperiod = 10ms\nwcet = 15:12ms\n", 1,
	    "utilisation 1.2 is above one");
	rt_set_free(good(HEAD "[task a]\npartition = p\nperiod = 10ms\nwcet = 15:9ms 30:6ms\n"
			      "[task b]\npartition = p\nperiod = 5ms\nwcet = 15:4ms 30:2000\n"));
}

TEST(execution_times_that_grow_with_cus_are_refused)
{
	bad(HEAD "[task t]\npartition = p\nperiod = 1s\nwcet = 15:2000 30:2001\n", 5,
	    "wcet grows with CUs: 2000 us on 15, 2001 us on 30");
	bad(HEAD "[task t]\npartition = p\nperiod = 1s\nwcet = 30:9 15:8\n", 5, "grows with CUs");
	bad(HEAD "[task t]\npartition = p\nperiod = 1s\nwcet = 15:9 15:9\n", 5, "15 CUs twice");
	rt_set_free(good(HEAD "[task t]\npartition = p\nperiod = 1s\nwcet = 15:9 30:9\n"));
}

TEST(unknown_keys_and_sections_suggest_the_nearest)
{
	bad(TASK "perod = 1s\n", 6, "unknown key 'perod' in [task]; did you mean 'period'?");
	bad(TASK "colour = red\n", 6,
	    "unknown key 'colour' in [task]; known keys: partition, period, "
	    "deadline, after, offset, jitter, copy-in, copy-out, wcet");
	bad(TASK "[taskste]\n", 6, "did you mean [taskset]?");
	bad(TASK "[tsk u]\n", 6, "did you mean [task NAME]?");
	bad(TASK "[gpu x]\nprofile = 1\n", 6, "unknown section [gpu x]: use [taskset]");
	bad(TASK "[taskset x]\n", 6, "takes no name");
	bad(TASK "[task]\nperiod = 1\n", 6, "[task NAME]");
	bad("period = 1s\n" TASK, 1, "needs a [section] above it");
	bad("[partition big]\n[task t]\npartition = bigg\nperiod = 1s\nwcet = 1:1\n"
	    "[task u]\npartition = big\nperiod = 1s\nwcet = 1:1\n",
	    2, "no section [partition bigg]; did you mean big?");
}

TEST(duplicates_are_refused)
{
	bad(TASK "[task t]\nperiod = 3s\n", 6,
	    "duplicate section [task t]: move its keys to line 2");
	bad(TASK "[partition p]\n", 6, "duplicate section [partition p]: move its keys to line 1");
	bad(TASK "period = 3s\n", 6, "duplicate key 'period': remove it here or at line 4");
}

TEST(a_task_is_in_one_partition)
{
	bad(HEAD "[partition q]\n[task t]\npartition = p, q\nperiod = 1s\nwcet = 1:1\n", 4,
	    "use one task for each partition");
	bad(TASK "partition = p\n", 6, "duplicate key 'partition'");
}

TEST(invalid_numbers_are_refused)
{
	static const char *const times[] = { "-1",  "0",     "1.5ms", "ms",
					     "2h",  "3601s", "5 ms",  "99999999999999999999",
					     "1e3", "10msec" };
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		snprintf(text, sizeof(text),
			 HEAD "[task t]\npartition = p\nperiod = %s\nwcet = 1:1\n", times[i]);
		bad(text, 4, "use 1 us to 1 h");
	}
	static const char *const points[] = { "15",     "15:",    ":5",
					      "0:5",    "15:0",   "-1:5",
					      "15:-5",  "1025:5", "15:3601s",
					      "15ms:5", "15:5:5", "99999999999999999999:1" };
	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		snprintf(text, sizeof(text),
			 HEAD "[task t]\npartition = p\nperiod = 1s\nwcet = %s\n", points[i]);
		bad(text, 5, "use CUS:TIME");
	}
	bad("[taskset]\nmargin = -5%\n" TASK, 2, "margin");
	bad("[taskset]\nmargin = 1001%\n" TASK, 2, "margin");
	bad("[taskset]\nmargin = 60\n" TASK, 2, "60%");
	bad("[taskset]\npreemption = 0\n" TASK, 2, "use 1 us to 1 h");
	bad("[taskset]\nqueue-changes = -1\n" TASK, 2, "queue-changes");
	bad("[taskset]\nqueue-changes = 0/10ms\n" TASK, 2, "invalid rate '0/10ms'");
	bad("[taskset]\nqueue-changes = 4/0\n" TASK, 2, "invalid rate '4/0'");
	bad("[taskset]\nactivations = 0/1s\n" TASK, 2, "activations = 0 is for none");
	bad("[taskset]\nactivations = 1/1s 5\n" TASK, 2, "invalid rate '5'");
	bad("[taskset]\nactivations = x/1s\n" TASK, 2, "invalid rate 'x/1s'");
	bad("[taskset]\nactivations = 1/1s 2/2s 3/3s 4/4s 5/5s\n" TASK, 2, "more than 4 rates");
	bad("[taskset]\nactivate-min-interval = 1500us\n" TASK, 2, "whole milliseconds");
	bad("[taskset]\nactivate-min-interval = 0\n" TASK, 2, "whole milliseconds");
	bad("[taskset]\nno-graphics = perhaps\n" TASK, 2, "is not yes or no");
}

#define CHAIN(keys) TASK "[task u]\npartition = p\nwcet = 1:1\n" keys

TEST(tasks_of_a_chain_have_the_period_of_its_first)
{
	_cleanup_(rt_set_freep) struct rt_set *set =
		good(CHAIN("after = t\n") "[task v]\npartition = p\nwcet = 1:1\nafter = u\n");

	CHECK(set->tasks[1].after == 1 && set->tasks[2].after == 2 && rt_set_has_chains(set));
	CHECK(set->tasks[2].period == set->tasks[0].period);
	CHECK(set->tasks[2].deadline == set->tasks[0].period);
	bad(CHAIN("after = none\n"), 9, "there is no section [task none]");
	bad(CHAIN("after = u\n"), 9, "is part of a circle");
	bad(CHAIN("after = v w\n"), 9, "invalid name");
	bad(TASK "[task u]\npartition = p?\nwcet = 1:1\n", 7, "invalid name 'p?'");
	bad(CHAIN("period = 1h\nafter = t\n"), 10, "is not that of [task t]");
}

TEST_CASE(a_chain_that_is_a_circle_over_partitions_is_refused,
	  bad(HEAD "[partition q]\n[task t]\npartition = p\nwcet = 1:1\nafter = v\n"
		   "[task u]\npartition = q\nwcet = 1:1\nafter = t\n"
		   "[task v]\npartition = p\nwcet = 1:1\nafter = u\n",
	      6, "[task t]: after = v is part of a circle"));

TEST(copies_that_take_no_time_are_refused)
{
	_cleanup_(rt_set_freep) struct rt_set *set = good(TASK "copy-in = 1us\ncopy-out = 1h\n");

	CHECK(set->tasks[0].copy_in == 1 && set->tasks[0].copy_out == RT_TIME_MAX);
	CHECK(rt_set_sdma_queues(set, 0) == 2);
	bad(TASK "copy-in = 0\n", 6, "copy-in: invalid time '0'");
	bad(TASK "copy-out = 61min\n", 6, "copy-out: invalid time '61min'");
}

TEST(copies_without_sdma_queues_of_their_own_are_refused)
{
	static const char text[] = "[partition p]\nprocesses = 2\nsdma-queues = 4\n"
				   "[task t]\npartition = p\nperiod = 1s\nwcet = 1:1\n"
				   "copy-in = 1ms\n";
	_cleanup_(rt_set_freep) struct rt_set *set = good(text);

	CHECK(set->partitions[0].sdma_queues == 4);
	bad("[partition p]\nsdma-queues = 0\n[task t]\npartition = p\nperiod = 1s\nwcet = 1:1\n"
	    "copy-out = 1ms\n",
	    1, "sdma-queues = 0 is too small for copies of 1 process: ");
	bad("[partition p]\nprocesses = 2\nsdma-queues = 3\n[task t]\npartition = p\nperiod = 1s\n"
	    "wcet = 1:1\ncopy-in = 1ms\n",
	    1, "use at least 4");
}

/* Only a job that the program itself releases can wait. */
TEST(a_chain_from_another_partition_does_not_wait_for_the_grant)
{
#define PATIENT "[partition q]\nstart-inactive = yes\nwaits-for-grant = yes\n"
	static const char own[] = PATIENT "[task t]\npartition = q\nperiod = 1s\nwcet = 1:1\n"
					  "[task u]\npartition = q\nafter = t\nwcet = 1:1\n";
	_cleanup_(rt_set_freep) struct rt_set *set = good(own);

	CHECK(set->tasks[1].after == 1);
	bad(TASK PATIENT "[task u]\npartition = q\nafter = t\nwcet = 1:1\n", 11,
	    "[task u]: a job of [task t] releases it, whether [partition q] is granted or not: "
	    "leave out waits-for-grant");
}

TEST(invalid_names_of_gpus_are_refused)
{
	_cleanup_(rt_set_freep) struct rt_set *set = good(
		"[partition p]\ngpu = 0000:03:00.0\n[task t]\npartition = p\nperiod = 1s\n"
		"wcet = 1:1\n");

	CHECK(strcmp(set->partitions[0].gpu, "0000:03:00.0") == 0);
	bad("[partition p]\ngpu = left, right\n[task t]\npartition = p\nperiod = 1s\nwcet = 1:1\n",
	    2, "gpu: invalid name 'left, right'");
}

TEST(an_offset_past_the_period_is_refused)
{
	_cleanup_(rt_set_freep) struct rt_set *set = good(TASK "offset = 9999us\n");

	CHECK(set->tasks[0].offset == 9999 && set->tasks[0].offset_line > 0);
	bad(TASK "offset = 10ms\n", 6, "offset 10000 us is past the period of 10000 us");
	bad(TASK "offset = -1us\n", 6, "invalid time '-1us'");
	bad(CHAIN("after = t\noffset = 0\n"), 10, "releases it, so it has no offset");
}

TEST(invalid_keys_of_a_partition_are_refused)
{
	bad(TASK "[partition q]\npolicy = rm\n", 7, "use fifo, np-edf or np-dm");
	bad(TASK "[partition q]\nisolation = shared\n", 7, "use shader-engine or cu");
	bad(TASK "[partition q]\npriority = 16\n", 7, "0 to 15");
	bad(TASK "[partition q]\nuser = a, b\n", 7, "use one name");
	bad(TASK "[partition q]\ncommand =\n", 7, "must not be empty");
	bad("[partition p]\nqueues = 3\nprocesses = 2\n[task t]\npartition = p\nperiod = 1s\n"
	    "wcet = 1:1\n",
	    1, "queues = 3 is too small for 2 processes");
	bad("[partition p]\nqueues = 1\n[task t]\npartition = p\nperiod = 1s\nwcet = 1:1\n", 1,
	    "queues = 1 is too small for 1 process:");
	bad("[partition p]\nprocesses = 2\npolicy = np-dm\n[task t]\npartition = p\nperiod = 1s\n"
	    "wcet = 1:1\n",
	    1, "the dispatcher of policy = np-dm is one process, not 2");
	bad("[partition p]\nprocesses = 2\ndispatcher = yes\n[task t]\npartition = p\nperiod = 1s\n"
	    "wcet = 1:1\n",
	    1, "the dispatcher of policy = fifo is one process, not 2");
	bad("[partition p]\ndispatcher = no\npolicy = np-dm\n[task t]\npartition = p\nperiod = 1s\n"
	    "wcet = 1:1\n",
	    1, "policy = np-dm needs a dispatcher");
	bad("[partition p]\nactivation-latency = 1s\n[task t]\npartition = p\nperiod = 1s\n"
	    "wcet = 1:1\n",
	    1, "activation-latency needs a lease that starts inactive");
	bad("[partition p]\nwaits-for-grant = yes\n[task t]\npartition = p\nperiod = 1s\n"
	    "wcet = 1:1\n",
	    1, "waits-for-grant needs a lease that starts inactive");
	bad(TASK "[task a b]\n", 6, "use up to 32 letters");
	bad(TASK "[task abcdefghijklmnopqrstuvwxyz0123456]\n", 6, "use up to 32 letters");
}

TEST(all_errors_are_reported_at_once)
{
	static const char text[] = HEAD "[task t]\npartition = q\nwcet = 1:1\n[task u]\n";
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	struct rt_set *set = NULL;

	CHECK(load_text(text, strlen(text), &set, &diagnostics) == -EINVAL);
	/* t: no period, no such partition; u: none of three; p: no task. */
	CHECK(diagnostics.n == 6);
}

TEST(a_missing_or_binary_file_is_refused)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	struct rt_set *set = NULL;

	CHECK(settings_new(&settings) == 0);
	CHECK(rt_set_load("/nonexistent/set.ini", settings, &set, &diagnostics) == -ENOENT);
	CHECK(diagnostics.n == 1 && strstr(diagnostics.list[0].text, "file"));
	CHECK(rt_set_load("/tmp", settings, &set, &diagnostics) < 0 && diagnostics.n == 2);
	CHECK(load_text("[task\0t]\n", 9, &set, &diagnostics) == -EINVAL && diagnostics.n == 3);
	CHECK(!set);
}

static char *many(size_t tasks)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, HEAD);
	for (size_t i = 0; i < tasks; i++)
		fprintf(out, "[task t%zu]\npartition = p\nperiod = 1h\nwcet = 15:9 30:5\n", i);
	fclose(out);
	return text;
}

TEST(the_number_of_tasks_is_limited)
{
	_cleanup_(freep) char *text = many(RT_TASKS_MAX), *more = many(RT_TASKS_MAX + 900);
	struct rt_set *set;

	set = good(text);
	CHECK(set->n_tasks == RT_TASKS_MAX && set->partitions[0].n_tasks == RT_TASKS_MAX);
	rt_set_free(set);

	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	set = NULL;
	CHECK(load_text(more, strlen(more), &set, &diagnostics) == -EINVAL && !set);
	/* Told as often as complaints of one file are. */
	CHECK(diagnostics.n > 0 && diagnostics.n <= 110);
	CHECK(strstr(diagnostics.list[0].text, "4096 tasks"));
}

TEST(the_numbers_of_partitions_and_points_are_limited)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	_cleanup_(freep) char *text = NULL;
	struct rt_set *set = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (unsigned i = 0; i <= RT_PARTITIONS_MAX; i++)
		fprintf(out,
			"[partition p%u]\n[task t%u]\npartition = p%u\nperiod = 1s\nwcet = 1:1\n",
			i, i, i);
	fclose(out);
	CHECK(load_text(text, size, &set, &diagnostics) == -EINVAL && !set);
	CHECK(strstr(diagnostics.list[0].text, "64 partitions"));
	bad(HEAD
	    "[task t]\npartition = p\nperiod = 1s\nwcet = 1:9 2:9 3:9 4:9 5:9 6:9 7:9 8:9 9:9 "
	    "10:9 11:9 12:9 13:9 14:9 15:9 16:9 17:9 18:9 19:9 20:9 21:9 22:9 23:9 24:9 25:9 26:9 "
	    "27:9 28:9 29:9 30:9 31:9 32:9 33:9\n",
	    5, "more than 32 points");
}

/* An error without memory for its diagnostic, too, is an error. */
static int load_without_memory(long allocations)
{
	static const char text[] = "[taskset]\nqueue-changes = 1/10ms\n" HEAD
				   "user = lab\n[task t]\npartition = p\nperiod = 10ms\n"
				   "wcet = 15:2000 30:1200\n";
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	_cleanup_(settings_freep) struct settings *settings = NULL;
	_cleanup_(rt_set_freep) struct rt_set *set = NULL;
	int r;

	CHECK(settings_new(&settings) == 0);
	lack_left = allocations;
	r = load_under(settings, text, strlen(text), &set, &diagnostics);
	CHECK(r == 0 ? set->n_tasks == 1 && set->tasks[0].n_points == 2 : !set);
	return r < 0 ? -ENOMEM : 0;
}

TEST_CASE(a_set_is_read_whole_or_refused,
	  CHECK(lack_each("rt_set_load", load_without_memory) >= 5));
