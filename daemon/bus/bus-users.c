/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What each user costs the daemon: connections, calls that wait, time of the event loop, and answers
 * that the bus still keeps because the user's connections do not read them. Time and calls are two
 * budgets that fill while time passes; where one is used up, the user's calls wait.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bus/bus-users.h"
#include "core/ledger/ledger.h"
#include "util/clock.h"

#define SEC UINT64_C(1000000)
#define FORGET_USEC (60 * SEC) /* a budget is full again after this time */

/* With so many calls under way each costs as much as two, with 16 times as many as 257: dbus-daemon
 * walks through all that wait for an answer when it passes on a call or an answer of any user. The
 * more it has to walk, the fewer answers it gets, each of which brings the next call. */
#define UNDER_WAY 512U

/* A user who was quiet may do this much at once: a fraction of a second's budget. */
#define BURST_CALLS 32U
#define BURST_TIME 10U

uint64_t bus_now_usec(void)
{
	return clock_usec(CLOCK_MONOTONIC);
}

uint64_t bus_cpu_usec(void)
{
	return clock_usec(CLOCK_THREAD_CPUTIME_ID);
}

static int64_t fill(int64_t left, uint64_t per_second, uint64_t passed, uint64_t most)
{
	uint64_t more = passed < 2 * SEC ? passed * (per_second / SEC) : 2 * per_second;

	left += (int64_t)more;
	return left < (int64_t)most ? left : (int64_t)most;
}

/* The budgets are in millionths of a call and of a microsecond, so that no fraction is lost. */
static void refill(const struct bus *bus, struct bus_user *user, uint64_t now)
{
	const struct settings *settings = bus->arbiter->settings;
	uint64_t calls = settings->max_calls_per_user * SEC,
		 time = settings->max_time_per_user * (SEC / 100) * SEC;
	uint64_t passed = now - user->filled_usec;

	user->calls = fill(user->calls, calls, passed, calls / BURST_CALLS + SEC);
	user->time = fill(user->time, time, passed, time / BURST_TIME);
	user->filled_usec = now;
}

static struct bus_user *find(struct bus *bus, uid_t uid)
{
	struct bus_user *user;

	TAILQ_FOREACH(user, &bus->users, link)
	if (user->uid == uid)
		return user;
	return NULL;
}

/* Forgets users without a connection whose budgets are full again. */
static void sweep(struct bus *bus, uint64_t now)
{
	struct bus_user *next;

	for (struct bus_user *user = TAILQ_FIRST(&bus->users); user; user = next) {
		next = TAILQ_NEXT(user, link);
		if (!TAILQ_EMPTY(&user->peers) || now - user->filled_usec < FORGET_USEC)
			continue;
		TAILQ_REMOVE(&bus->users, user, link);
		free(user);
	}
}

struct bus_user *bus_user_get(struct bus *bus, const struct caller *caller)
{
	struct bus_user *user = find(bus, caller->uid);
	uint64_t now = bus_now_usec();

	if (user)
		return user;
	sweep(bus, now);
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = caller->uid;
	user->exempt = caller->administrator;
	TAILQ_INIT(&user->queue);
	TAILQ_INIT(&user->peers);
	refill(bus, user, now - SEC);
	user->filled_usec = now;
	TAILQ_INSERT_TAIL(&bus->users, user, link);
	return user;
}

uint64_t bus_user_ready_usec(struct bus *bus, struct bus_user *user, uint64_t now)
{
	const struct settings *settings = bus->arbiter->settings;
	uint64_t calls = 0, time = 0;

	if (user->exempt)
		return now;
	refill(bus, user, now);
	if (user->calls < (int64_t)SEC)
		calls = (uint64_t)((int64_t)SEC - user->calls) / settings->max_calls_per_user + 1;
	if (user->time < 0)
		time = (uint64_t)-user->time / (settings->max_time_per_user * (SEC / 100)) + 1;
	return now + (calls > time ? calls : time);
}

void bus_user_charge(struct bus_user *user, unsigned calls, uint64_t usec)
{
	uint64_t extra = user->n_queued * user->n_queued / (UNDER_WAY * UNDER_WAY);

	user->calls -= (int64_t)(calls * SEC * (1 + extra));
	user->time -= (int64_t)(usec * SEC);
	user->served += calls;
	user->used_usec += usec;
}

/* The debt is bounded: with calls a user ends the leases that cause it. */
void bus_examined(struct bus *bus, uid_t uid, uint64_t usec)
{
	int64_t most = (int64_t)(bus->arbiter->settings->max_time_per_user * (SEC / 100) * SEC);
	struct bus_user *user = find(bus, uid);

	bus->changed = true;
	if (!user)
		return;
	user->used_usec += usec;
	if (user->time > -most)
		user->time -= (int64_t)min_u64(usec * SEC, (uint64_t)(user->time + most));
}

/* One user has at most half of what the others leave, so that there is always some for the next. */
bool bus_user_has_share(uint64_t own, uint64_t all, uint64_t most, uint64_t total)
{
	uint64_t others = all - own;

	return own < most && others < total && own < (total - others + 1) / 2;
}

/* A message that waits keeps its fds open, and sd-bus does not tell how many: the lowest free
 * number does, because it is above the half only where more than half are open. */
bool bus_fds_are_scarce(const struct bus *bus)
{
	int fd = fcntl(sd_event_get_fd(bus->event), F_DUPFD_CLOEXEC, 0);
	struct rlimit limit;

	if (fd < 0)
		return true;
	close(fd);
	return getrlimit(RLIMIT_NOFILE, &limit) < 0 || (rlim_t)fd >= limit.rlim_cur / 2;
}

void bus_drop_users(struct bus *bus)
{
	for (struct bus_user *user; (user = TAILQ_FIRST(&bus->users));) {
		TAILQ_REMOVE(&bus->users, user, link);
		free(user);
	}
}
