/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check-cond.h"
#include "service-manager.h"

static void signal_child(const struct manager *manager, int number)
{
	if (manager->child > 0)
		CHECK(kill(manager->child, number) == 0);
}

void manager_stop(struct manager *manager)
{
	manager->stopping = true;
	if (manager->child == 0)
		manager_finish(manager, 0);
	manager_trace_stop(&manager->trace); /* LeakSanitizer traces at the end */
	signal_child(manager, SIGTERM);
}

/* A death that it causes is told first. */
static void disarm(struct manager *manager)
{
	siginfo_t info;

	manager->arm = false;
	manager_trace_stop(&manager->trace);
	if (manager->trace.killed_before) {
		waitid(P_PID, (id_t)manager->child, &info, WEXITED | WNOWAIT);
		manager_take_child(manager);
	}
	tell(manager, "count %u", manager->trace.count);
}

static void restart(struct manager *manager)
{
	manager->restarting = true;
	manager_trace_stop(&manager->trace);
	signal_child(manager, SIGTERM);
}

static void crash(struct manager *manager)
{
	signal_child(manager, SIGKILL);
}

static void hold(struct manager *manager)
{
	manager->hold = true;
}

static void go(struct manager *manager)
{
	manager->hold = manager->restarting = false;
	if (manager->child == 0)
		manager_start(manager);
}

static void say_stored(struct manager *manager)
{
	tell(manager, "holds %zu", manager->store.n);
	manager->told_stored = manager->store.n;
}

static void say_count(struct manager *manager)
{
	tell(manager, "count %u", manager->trace.count);
}

static const struct command {
	const char *name;
	void (*run)(struct manager *manager);
} commands[] = {
	{ "stop", manager_stop }, { "restart", restart }, { "kill", crash },
	{ "hold", hold },         { "go", go },           { "stored", say_stored },
	{ "disarm", disarm },     { "count", say_count },
};

static void arm(struct manager *manager)
{
	int r;

	manager->arm = true;
	r = manager_arm(manager);
	if (r < 0)
		tell(manager, "armed %s", strerror(-r));
	else
		tell(manager, "armed");
}

static void obey(struct manager *manager, const char *line)
{
	if (sscanf(line, "arm %u", &manager->arm_at) == 1) {
		arm(manager);
		return;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(line, commands[i].name) == 0) {
			commands[i].run(manager);
			return;
		}
	fprintf(stderr, "service-manager: it does not know \"%s\"\n", line);
}

void manager_take_commands(struct manager *manager)
{
	ssize_t n = read(STDIN_FILENO, manager->line + manager->line_size,
			 sizeof(manager->line) - manager->line_size);
	char *end;

	manager->deaf = n <= 0;
	if (n <= 0)
		return;
	manager->line_size += (size_t)n;
	while ((end = memchr(manager->line, '\n', manager->line_size))) {
		*end++ = '\0';
		obey(manager, manager->line);
		manager->line_size -= (size_t)(end - manager->line);
		memmove(manager->line, end, manager->line_size);
	}
	CHECK(manager->line_size < sizeof(manager->line));
}
