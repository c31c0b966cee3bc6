/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* config explain: which tenants a user may use, and what the user may hold of each GPU. */

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor/service.h"
#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/output/table.h"
#include "client/verbs/verb.h"
#include "core/policy/caller.h"
#include "sys/config/config.h"
#include "util/number.h"

/* The groups of the user database. A user without a name is in none. */
static int find_groups(const struct command *command, struct caller *caller)
{
	const struct passwd *user = getpwuid(caller->uid);
	int n = (int)CALLER_GROUPS;

	if (!user)
		return EXIT_OK;
	if (getgrouplist(user->pw_name, user->pw_gid, caller->groups, &n) < 0)
		return fail(command, EXIT_FAILED, "user %s is in more than %u groups",
			    user->pw_name, CALLER_GROUPS);
	caller->n_groups = (size_t)n;
	return EXIT_OK;
}

static int take_groups(const struct command *command, struct caller *caller)
{
	_cleanup_(freep) char *list = strdup(command->groups);
	char *rest = list, *name;
	uint64_t number;

	while (list && (name = strsep(&rest, ","))) {
		const struct group *group = getgrnam(name);

		if (!group && number_parse(name, 0, UINT32_MAX - 1, &number) < 0)
			return fail(command, EXIT_USAGE, "--group=%.80s: there is no group '%.80s'",
				    command->groups, name);
		if (caller->n_groups == CALLER_GROUPS)
			return fail(command, EXIT_USAGE, "--group: more than %u groups",
				    CALLER_GROUPS);
		caller->groups[caller->n_groups++] = group ? group->gr_gid : (gid_t)number;
	}
	return EXIT_OK;
}

int caller_find(const struct command *command, struct caller *ret)
{
	const char *name = command->filter.user;
	const struct passwd *user = name ? getpwnam(name) : NULL;
	uint64_t number = user ? user->pw_uid : getuid();

	*ret = (struct caller){ .uid = (uid_t)number };
	if (name && !user && number_parse(name, 0, UINT32_MAX - 1, &number) < 0)
		return fail(command, EXIT_USAGE, "--user=%.80s: there is no such user", name);
	ret->uid = (uid_t)number;
	return command->groups ? take_groups(command, ret) : find_groups(command, ret);
}

static const char *const use_names[] = {
	[TENANT_USE_NO_MATCH] = "no-match", [TENANT_USE_SOME] = "some",
	[TENANT_USE_OTHERS] = "others",     [TENANT_USE_NAMED] = "named",
	[TENANT_USE_CLOSED] = "closed",
};

/* ---- what the user may have ------------------------------------------------------------------ */

struct explained {
	const struct command *command;
	const struct settings *settings;
	const struct caller *caller;
};

static enum tenant_use use_of(const struct explained *e, size_t i)
{
	return tenant_use(e->settings, e->caller, i);
}

static bool is_used(const struct explained *e, size_t i)
{
	enum tenant_use use = use_of(e, i);

	return use != TENANT_USE_NO_MATCH && use != TENANT_USE_CLOSED &&
	       !tenant_is_ban(&e->settings->tenants[i]);
}

/* Which requests belong to the tenant. */
static void describe(const struct explained *e, size_t i, char *buf, size_t size)
{
	const struct tenant *tenant = &e->settings->tenants[i];
	const char *ban = tenant_is_ban(tenant) ? ", and get no lease" : "";

	switch (use_of(e, i)) {
	case TENANT_USE_SOME:
		snprintf(buf, size, "of programs in %s%s%s%s%s%s", tenant->unit ? tenant->unit : "",
			 tenant->unit && tenant->slice ? " and " : "",
			 tenant->slice ? tenant->slice : "",
			 tenant->executable && (tenant->unit || tenant->slice) ? " and " : "",
			 tenant->executable ? tenant->executable : "", ban);
		break;
	case TENANT_USE_OTHERS: snprintf(buf, size, "all%s", ban); break;
	case TENANT_USE_NAMED: snprintf(buf, size, "with --tenant=%s%s", tenant->name, ban); break;
	default: snprintf(buf, size, "none: it is not open"); break;
	}
}

static void add_limit(struct table *table, const struct limit *limit)
{
	if (limit->kind == LIMIT_NONE)
		table_add(table, "-");
	else
		table_add(table, "%llu%s", (unsigned long long)limit->value,
			  limit->kind == LIMIT_PERCENT ? "%" : "");
}

static void print_tenants(const struct explained *e)
{
	static const char *const heads[] = { "TENANT", "CLASS",    "LEASES",   "GPUS",
					     "CUS",    "ON-DRIFT", "REQUESTS", NULL };
	_cleanup_(table_done) struct table table = { .heads = heads, .keep = "0000000" };
	char requests[256];

	for (size_t i = 0; i < e->settings->n_tenants; i++) {
		const struct tenant *tenant = &e->settings->tenants[i];

		if (use_of(e, i) == TENANT_USE_NO_MATCH)
			continue;
		TABLE_CELLS(&table, tenant->name,
			    tenant_is_ban(tenant) ? "none" : class_names[tenant->class]);
		add_limit(&table, &tenant->max_leases);
		add_limit(&table, &tenant->max_gpus);
		add_limit(&table, &tenant->max_cus);
		describe(e, i, requests, sizeof(requests));
		TABLE_CELLS(&table, on_drift_names[tenant->on_drift], requests);
	}
	table_print(&table, e->command, stdout);
}

static void print_most(const struct explained *e)
{
	static const char *const heads[] = { "GPU",       "TENANT", "CUS", "QUEUES",
					     "PROCESSES", "VRAM",   NULL };
	_cleanup_(table_done) struct table table = { .heads = heads, .keep = "000000" };
	char vram[PRINT_BYTES];

	for (size_t g = 0; g < e->command->n_gpus; g++) {
		struct gpu_info info;

		if (config_gpu_info(&e->command->gpus[g], &info) < 0)
			continue;
		for (size_t i = 0; i < e->settings->n_tenants; i++) {
			const struct tenant *tenant = &e->settings->tenants[i];
			struct tenant_most most;

			if (!is_used(e, i))
				continue;
			tenant_find_most(e->settings, tenant, &info, &most);
			print_bytes(most.vram, vram);
			TABLE_CELLS(&table, info.name, tenant->name);
			TABLE_NUMBERS(&table, most.cus, most.queues, most.processes);
			TABLE_CELLS(&table, vram);
		}
	}
	if (table.n == 0)
		return;
	print_line(stdout, "at most of each GPU:");
	table_print(&table, e->command, stdout);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void add_json_limit(struct json_object *map, const char *key, const struct limit *limit)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu%%", (unsigned long long)limit->value);
	if (limit->kind == LIMIT_PERCENT)
		json_text(map, key, text);
	else
		json_known(map, key, limit_of(limit, 0), UINT64_MAX);
}

static void add_json_gpus(const struct explained *e, struct json_object *map, size_t i)
{
	struct json_object *list = json_list(map, "gpus");

	for (size_t g = 0; is_used(e, i) && g < e->command->n_gpus; g++) {
		struct json_object *gpu;
		struct tenant_most most;
		struct gpu_info info;

		if (config_gpu_info(&e->command->gpus[g], &info) < 0)
			continue;
		gpu = json_map(list, NULL);
		tenant_find_most(e->settings, &e->settings->tenants[i], &info, &most);
		JSON_FIELDS(gpu, ("gpu", info.name), ("cus", most.cus), ("queues", most.queues),
			    ("processes", most.processes), ("vram", most.vram));
	}
}

static void add_json_tenant(const struct explained *e, struct json_object *list, size_t i)
{
	const struct tenant *tenant = &e->settings->tenants[i];
	struct json_object *map = json_map(list, NULL);

	JSON_FIELDS(map, ("tenant", tenant->name), ("requests", use_names[use_of(e, i)]),
		    ("unit", tenant->unit), ("slice", tenant->slice),
		    ("executable", tenant->executable));
	json_flag(map, "open", tenant->open);
	JSON_FIELDS(map, ("class", tenant_is_ban(tenant) ? "none" : class_names[tenant->class]),
		    ("priority", tenant->priority), ("on_drift", on_drift_names[tenant->on_drift]));
	for (size_t k = 0; k < TENANT_LIMITS; k++) {
		char key[32];

		snprintf(key, sizeof(key), "%s", tenant_limits[k].key);
		for (char *c = key; *c; c++)
			*c = *c == '-' ? '_' : *c;
		add_json_limit(map, key, tenant_limit(tenant, k));
	}
	add_json_gpus(e, map, i);
}

static void print_json(const struct explained *e)
{
	struct json_object *map = json_map(NULL, NULL), *list;
	char user[PRINT_USER];

	print_user(e->caller->uid, user);
	JSON_FIELDS(map, ("user", user), ("uid", e->caller->uid));
	list = json_list(map, "groups");
	for (size_t i = 0; i < e->caller->n_groups; i++)
		json_number(list, NULL, e->caller->groups[i]);
	list = json_list(map, "tenants");
	for (size_t i = 0; i < e->settings->n_tenants; i++)
		if (use_of(e, i) != TENANT_USE_NO_MATCH)
			add_json_tenant(e, list, i);
	json_print(stdout, map);
}

/* ---- the verb --------------------------------------------------------------------------------- */

static int load(const struct command *command, struct settings **ret)
{
	const struct config_files files = { .trust = service_trust() };
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	int r;

	if (command->n_rest > 2)
		return fail(command, EXIT_USAGE,
			    "config explain takes one file, or one directory of tenants");
	r = command->n_rest == 2 ? config_load_named(command->rest[1], ret, &diagnostics)
				 : service_load_config(&files, ret, &diagnostics);
	if (r >= 0)
		return EXIT_OK;
	for (size_t i = 0; i < diagnostics.n; i++)
		if (diagnostics.list[i].error)
			return fail(command, EXIT_CONFIGURATION,
				    "%s; gpuarbctl config check prints all",
				    diagnostics.list[i].text);
	return fail(command, EXIT_CONFIGURATION, "%s", strerror(-r));
}

int config_explain(struct command *command)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	static struct caller caller;
	struct explained e = { .command = command, .caller = &caller };
	const char *address = getenv("GPUARB_BUS_ADDRESS");
	char user[PRINT_USER];
	int r = caller_find(command, &caller);

	if (r == EXIT_OK)
		r = load(command, &settings);
	if (r != EXIT_OK)
		return r;
	e.settings = settings;
	/* Without GPUs there are the limits as policy has them. */
	if (gpuarb_open(&command->gpuarb) >= 0)
		(void)session_refresh(command);
	if (command->json) {
		print_json(&e);
		return EXIT_OK;
	}
	print_user(caller.uid, user);
	print_line(stdout, "user %s, by these tenants in this order:", user);
	print_tenants(&e);
	print_most(&e);
	if (command->n_gpus == 0)
		print_line(stderr, "gpuarbd does not answer: what each GPU has is not known");
	if (command->n_rest == 1 && address)
		print_line(stderr, "this is the policy of " CONFIG_PLACES "; " CONFIG_ELSEWHERE,
			   address);
	return EXIT_OK;
}
