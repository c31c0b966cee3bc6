/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/service-failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/doctor/service-user.h"
#include "sys/config/profile.h"

#define SYSTEMCTL                                                             \
	"LC_ALL=C systemctl show --no-pager --property=ActiveState,SubState," \
	"NRestarts,ExecMainStatus gpuarbd.service 2>/dev/null"
#define JOURNALCTL \
	"LC_ALL=C journalctl --quiet --no-pager -o cat -n 3 -u gpuarbd.service 2>/dev/null"

/* ---- the unit ------------------------------------------------------------------------ */

struct unit_state {
	char active[32], sub[32];
	unsigned restarts, status;
};

static void take_line(const char *line, struct unit_state *state)
{
	if (sscanf(line, "ActiveState=%31s", state->active) == 1 ||
	    sscanf(line, "SubState=%31s", state->sub) == 1 ||
	    sscanf(line, "NRestarts=%9u", &state->restarts) == 1)
		return;
	(void)sscanf(line, "ExecMainStatus=%9u", &state->status);
}

static bool read_state(struct unit_state *ret)
{
	FILE *file = popen(SYSTEMCTL, "re");
	char line[256];

	*ret = (struct unit_state){ 0 };
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		take_line(line, ret);
	return pclose(file) == 0 && ret->active[0];
}

/* systemd starts the unit again after every failure, so it is rarely in the state failed. */
static bool state_failed(const struct unit_state *state)
{
	return strcmp(state->active, "failed") == 0 || strcmp(state->sub, "auto-restart") == 0 ||
	       (strcmp(state->active, "activating") == 0 && state->restarts > 0);
}

/* ---- the reason ---------------------------------------------------------------------- */

/* What gpuarbd reads at its start: the configuration, and the profiles that it simulates. */
static void read_config(struct diagnostics *diagnostics)
{
	const struct config_files files = { .trust = service_trust() };
	_cleanup_(settings_freep) struct settings *settings = NULL;
	struct profile profile;
	char *rest, *name;

	if (service_load_config(&files, &settings, diagnostics) < 0 ||
	    settings->backend != BACKEND_SIMULATED)
		return;
	rest = settings->simulate;
	while ((name = strtok_r(rest, ",", &rest)))
		(void)profile_load(GPUARB_PROFILE_DIR, name, &profile, diagnostics);
}

/* Writes the first error. False: there is none. */
static bool write_problem(char *why, size_t size)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	const char *first = NULL;
	size_t n = 0;

	read_config(&diagnostics);
	for (size_t i = 0; i < diagnostics.n; i++) {
		if (!diagnostics.list[i].error)
			continue;
		first = first ? first : diagnostics.list[i].text;
		n++;
	}
	if (first)
		snprintf(why, size, "%.700s\ngpuarbctl config check shows %s", first,
			 n > 1 ? "all problems" : "it, too; after a correction gpuarbd starts");
	return first;
}

static bool write_journal(char *why, size_t size)
{
	FILE *file = popen(JOURNALCTL, "re");
	char line[256];
	size_t used = 0;

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file) && used + sizeof(line) < size)
		used += (size_t)snprintf(why + used, size - used, "%s", line);
	pclose(file);
	while (used > 0 && why[used - 1] == '\n')
		why[--used] = '\0';
	return used > 0;
}

bool service_failed(bool ended, char *why, size_t size)
{
	struct unit_state state = { .active = "" };
	int n = 0;

	if (!ended && (!read_state(&state) || !state_failed(&state)))
		return false;
	if (state.status > 0) /* 0: it is starting again */
		n = snprintf(why, size, "exit status %u\n", state.status);
	if (!write_problem(why + n, size - (size_t)n) && !write_journal(why + n, size - (size_t)n))
		snprintf(why + n, size - (size_t)n,
			 "read journalctl -u gpuarbd as an administrator");
	return true;
}
