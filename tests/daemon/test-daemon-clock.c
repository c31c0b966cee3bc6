/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The watchdog and the clocks of the shipped daemon: setting the date changes none of them, and the
 * clock of the watchdog stops in suspend. */

#include <dirent.h>

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
	waiting(call(with(call_arbiter(bus, "Reserve"), "aa{sv}a{sv}", 1, 1, "cus", "u", 60, 1,
			  "wait-usec", "t", UINT64_C(3600000000)))); /* a deadline */
	timers = timers_of(rig.daemon);
	CHECK(timers.watchdog == 1 && timers.boottime > 0 && timers.others == 0);
	leave(bus);
}

TEST(a_stopped_and_continued_daemon_feeds_the_watchdog_again)
{
	_cleanup_(rig_done) struct rig rig;

	arrive(&rig, "2000000");
	rig_await(&rig, "WATCHDOG=1");
	CHECK(kill(rig.daemon, SIGSTOP) == 0);
	CHECK(waitpid(rig.daemon, NULL, WUNTRACED) == rig.daemon);
	CHECK(kill(rig.daemon, SIGCONT) == 0);
	rig_await(&rig, "WATCHDOG=1");
	rig_await(&rig, "WATCHDOG=1");
}
