/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/service.h"

#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/config/profile.h"
#include "util/number.h"

struct trust service_trust(void)
{
	uid_t uid = trust_service();

	return (struct trust){ { uid ? uid : geteuid() } };
}

/* With the groups of the user, or none if the user has no name. */
static bool become(uid_t uid)
{
	const struct passwd *user = getpwuid(uid);

	if (user ? initgroups(user->pw_name, user->pw_gid) < 0 || setegid(user->pw_gid) < 0
		 : setgroups(0, NULL) < 0 || setegid((gid_t)uid) < 0)
		return false;
	return seteuid(uid) == 0;
}

/* A program that cannot return to root must not go on. */
static void return_to_root(const gid_t *groups, int n)
{
	if (seteuid(0) < 0 || setegid(getgid()) < 0 || setgroups((size_t)n, groups) < 0)
		abort();
}

int service_load_config(const struct config_files *files, struct settings **ret,
			struct diagnostics *diagnostics)
{
	int n = getgroups(0, NULL), r;
	_cleanup_(freep) gid_t *groups = calloc(n > 0 ? (size_t)n : 1, sizeof(*groups));

	if (geteuid() != 0 || files->trust.owners[0] == 0 || !groups || getgroups(n, groups) != n ||
	    !become(files->trust.owners[0]))
		return config_load(files, ret, diagnostics);
	r = config_load(files, ret, diagnostics);
	return_to_root(groups, n);
	return r;
}

/* ---- the unit -------------------------------------------------------------------------------- */

static bool take_limit(const char *value, uint64_t *ret)
{
	*ret = UINT64_MAX;
	return strcmp(value, "infinity") == 0 || number_parse(value, 0, UINT64_MAX, ret) == 0;
}

void service_read_unit(FILE *file, struct service_unit *unit)
{
	char line[512], limit[32];

	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "LoadState=%31[^\n]", unit->load) == 1 ||
		    sscanf(line, "ActiveState=%31[^\n]", unit->active) == 1 ||
		    sscanf(line, "SubState=%31[^\n]", unit->sub) == 1 ||
		    sscanf(line, "NRestarts=%9u", &unit->restarts) == 1 ||
		    sscanf(line, "ExecMainStatus=%9u", &unit->status) == 1)
			continue;
		if (strncmp(line, "User=", strlen("User=")) == 0) {
			unit->has_user = true;
			unit->user[0] = '\0';
			(void)sscanf(line, "User=%63[^\n]", unit->user);
		}
		if (sscanf(line, "FileDescriptorStoreMax=%31[^\n]", limit) == 1)
			unit->has_store = take_limit(limit, &unit->store);
		if (sscanf(line, "LimitNOFILE=%31[^\n]", limit) == 1)
			unit->has_files = take_limit(limit, &unit->files);
	}
}

bool service_ask_systemd(struct service_unit *ret)
{
	FILE *file =
		popen("LC_ALL=C systemctl show --no-pager --property=LoadState,ActiveState,"
		      "SubState,NRestarts,ExecMainStatus,FileDescriptorStoreMax,LimitNOFILE,User "
		      "gpuarbd.service 2>/dev/null",
		      "re");

	*ret = (struct service_unit){ 0 };
	if (!file)
		return false;
	service_read_unit(file, ret);
	return pclose(file) == 0;
}

/* ---- a failure to start ---------------------------------------------------------------------- */

#define JOURNALCTL \
	"LC_ALL=C journalctl --quiet --no-pager -o cat -n 3 -u gpuarbd.service 2>/dev/null"

/* systemd starts the unit again after every failure, so it is rarely in the state failed. */
static bool state_failed(const struct service_unit *state)
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
	struct service_unit state = { .active = "" };
	int n = 0;

	if (!ended && (!service_ask_systemd(&state) || !state_failed(&state)))
		return false;
	if (state.status > 0) /* 0: it is starting again */
		n = snprintf(why, size, "exit status %u\n", state.status);
	if (!write_problem(why + n, size - (size_t)n) && !write_journal(why + n, size - (size_t)n))
		snprintf(why + n, size - (size_t)n,
			 "read journalctl -u gpuarbd as an administrator");
	return true;
}
