/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The watchdog and the clocks of the shipped daemon: setting the date changes none of them, and the
 * clock of the watchdog stops in suspend. */

#include <dirent.h>
#include <sys/stat.h>

#include "check.h"
#include "live.h"

NEEDS(daemon_missing);

#define WATCHDOG_SECONDS 100000 /* no other timer of the daemon is as far away */

struct timers {
	unsigned monotonic, boottime, others;
	unsigned watchdog; /* of the monotonic ones: those that are due in such a time */
};

/* proc(5), fdinfo of a timerfd. */
static void count_timer(pid_t pid, const char *fd, struct timers *timers)
{
	char path[320], line[128];
	unsigned long long seconds = 0;
	int clock = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, fd);
	file = fopen(path, "re");
	if (!file)
		return; /* closed since */
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "clockid: %d", &clock);
		sscanf(line, "it_value: (%llu", &seconds);
	}
	fclose(file);
	timers->monotonic += clock == CLOCK_MONOTONIC;
	timers->boottime += clock == CLOCK_BOOTTIME;
	timers->others += clock >= 0 && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME;
	timers->watchdog += clock == CLOCK_MONOTONIC && seconds > WATCHDOG_SECONDS / 4 &&
			    seconds < WATCHDOG_SECONDS;
}

static struct timers timers_of(pid_t pid)
{
	struct timers timers = { 0 };
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", pid);
	dir = opendir(path);
	CHECK(dir);
	for (const struct dirent *entry; (entry = readdir(dir));)
		if (entry->d_name[0] != '.')
			count_timer(pid, entry->d_name, &timers);
	closedir(dir);
	return timers;
}

static void arrive(struct rig *rig, const char *watchdog_usec)
{
	CHECK(setenv("WATCHDOG_USEC", watchdog_usec, 1) == 0);
	rig_new(rig);
	rig_start(rig, "--simulate=radeon-vii");
	CHECK(unsetenv("WATCHDOG_USEC") == 0);
}

TEST(neither_suspend_nor_a_new_date_triggers_the_watchdog)
{
	struct timers timers;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;

	arrive(&rig, "100000000000");
	bus = rig_connect(&rig, 0);
	reserve(bus, 60);
	waiting(call(ask_for(bus, "cus=60; wait-usec=3600000000"))); /* a deadline */
	timers = timers_of(rig.daemon);
	CHECK(timers.watchdog == 1 && timers.boottime > 0 && timers.others == 0);
}

TEST(a_stopped_and_continued_daemon_feeds_the_watchdog_again)
{
	_cleanup_(rig_done) struct rig rig;

	arrive(&rig, "2000000");
	rig_await(&rig, "WATCHDOG=1");
	rig_pause(rig.daemon);
	rig_go_on(rig.daemon);
	rig_await(&rig, "WATCHDOG=1");
	rig_await(&rig, "WATCHDOG=1");
}

/* ---- clocks that jump ------------------------------------------------------------------------ */

/* From now on a daemon that starts is in a time namespace whose CLOCK_BOOTTIME and CLOCK_MONOTONIC are ahead by so
 * many seconds. */
static void set_clock(const struct rig *rig, unsigned ahead)
{
	char script[512];

	snprintf(script, sizeof(script),
		 "#!/bin/sh\nexec unshare --time --boottime=%u --monotonic=%u %s \"$@\"\n", ahead,
		 ahead, getenv("GPUARBD"));
	rig_write(rig, "clock.new", script);
	CHECK(chmod(rig_path(rig, "clock.new"), 0755) == 0);
	CHECK(rename(rig_path(rig, "clock.new"), rig_path(rig, "clock")) == 0);
}

/* unshare(1) starts a program in the namespace since Linux 6.3; before, only its children are. */
static bool clocks_can_jump(void)
{
	char text[64] = "";
	FILE *uptime = popen("unshare --time --boottime=1000000000 cat /proc/uptime 2>&1", "re");

	CHECK(uptime);
	(void)!fgets(text, sizeof(text), uptime);
	pclose(uptime);
	return strtod(text, NULL) > 1e9;
}

static struct live_lease wait_for(sd_bus *bus, uint64_t usec)
{
	return waiting(call(ask_for(bus, "cus=60; wait-usec=%" PRIu64, usec)));
}

static void start_in(struct rig *rig, unsigned ahead)
{
	char *daemon = strdup(getenv("GPUARBD"));

	rig_new(rig);
	set_clock(rig, ahead);
	CHECK(daemon && setenv("GPUARBD", rig_path(rig, "clock"), 1) == 0);
	rig_start_managed(rig, "--simulate=radeon-vii", "--store-max=64");
	CHECK(setenv("GPUARBD", daemon, 1) == 0);
	free(daemon);
}

#define HOUR UINT64_C(3600000000)
#define MONTH (30U * 86400U)

TEST(a_clock_that_has_jumped_ahead_ends_what_is_due_and_nothing_else)
{
	struct live_lease held, timed;
	struct rig rig;
	sd_bus *bus;

	if (!clocks_can_jump())
		SKIP("unshare(1) cannot start a program in a time namespace");
	start_in(&rig, 0);
	bus = rig_connect(&rig, 0);
	held = reserve(bus, 15);
	timed = wait_for(bus, HOUR);
	wait_for(bus, UINT64_MAX);
	rig_await_stored(&rig, 3);
	rig_down(&rig);
	set_clock(&rig, MONTH);
	rig_up(&rig);
	await_record(timed.holder, GPUARB_RECORD_ENDING);
	CHECK(lease_says(bus, held.path, "State", "granted"));
	CHECK(is_fine(call(release(bus, held.path))));
	AWAIT_STATE(gpu_number(bus, "CusFree") == 0); /* of the one that waits for ever */
	rig_done(&rig);
}

TEST(a_clock_that_has_gone_back_ends_no_lease)
{
	struct live_lease held, timed, next;
	struct rig rig;
	sd_bus *bus;

	if (!clocks_can_jump())
		SKIP("unshare(1) cannot start a program in a time namespace");
	start_in(&rig, MONTH);
	bus = rig_connect(&rig, 0);
	held = reserve(bus, 15);
	timed = wait_for(bus, HOUR);
	rig_await_stored(&rig, 2);
	rig_down(&rig);
	set_clock(&rig, 0);
	rig_up(&rig);
	CHECK(lease_says(bus, held.path, "State", "granted"));
	CHECK(lease_says(bus, timed.path, "State", "waiting"));
	next = reserve(bus, 15);
	CHECK(is_fine(call(release(bus, next.path))));
	CHECK(is_fine(call(release(bus, held.path))));
	AWAIT_STATE(lease_says(bus, timed.path, "State", "granted"));
	rig_done(&rig);
}
