/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/settings.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/request.h"
#include "util/text.h"

uint64_t limit_of(const struct limit *limit, uint64_t whole)
{
	switch (limit->kind) {
	case LIMIT_COUNT: return limit->value;
	case LIMIT_PERCENT: return whole / 100 * limit->value + whole % 100 * limit->value / 100;
	case LIMIT_NONE: break;
	}
	return UINT64_MAX;
}

#define LIMIT(key, field)                           \
	{                                           \
		key, offsetof(struct tenant, field) \
	}

const struct tenant_limit tenant_limits[TENANT_LIMITS] = {
	LIMIT("max-leases", max_leases),
	LIMIT("max-waiting", max_waiting),
	LIMIT("max-gpus", max_gpus),
	LIMIT("max-cus", max_cus),
	LIMIT("max-queues", max_queues),
	LIMIT("max-processes", max_processes),
	LIMIT("max-vram", max_vram),
	LIMIT("max-fixed-cus", max_fixed_cus),
	LIMIT("max-shader-engines", max_engines),
};

uint64_t limit_reserved(const struct limit *limit, uint64_t whole)
{
	return limit->kind == LIMIT_NONE ? 0 : limit_of(limit, whole);
}

int tenant_init(struct tenant *tenant, const char *name)
{
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;

	*tenant = (struct tenant){
		.name = copy,
		.class = CLASS_BESTEFFORT,
		.priority = PRIORITY_NORMAL,
		.enforce = ENFORCE_STEP_REPORT,
		.weight = TENANT_WEIGHT,
	};
	return 0;
}

static void id_list_done(struct id_list *list)
{
	free(list->ids);
	free(list->unresolved);
}

bool id_list_next_unresolved(const char **rest, char ret[static 256])
{
	size_t size = *rest ? strcspn(*rest, ",") : 0;

	if (size == 0 || size >= 256)
		return false;
	memcpy(ret, *rest, size);
	ret[size] = '\0';
	*rest += size + ((*rest)[size] == ',');
	return true;
}

bool id_list_resolve(struct id_list *list, const char *name, unsigned id)
{
	const char *rest = list->unresolved;
	char next[256], *at = NULL;
	unsigned *more;

	while (!at && id_list_next_unresolved(&rest, next))
		if (strcmp(next, name) == 0)
			at = list->unresolved + (rest - list->unresolved);
	more = at ? reallocarray(list->ids, list->n + 1, sizeof(*more)) : NULL;
	if (!more)
		return false;
	list->ids = more;
	list->ids[list->n++] = id;
	if (*at) { /* other names follow */
		memmove(at - strlen(name) - 1, at, strlen(at) + 1);
		return true;
	}
	at -= strlen(name);
	if (at > list->unresolved) {
		at[-1] = '\0';
		return true;
	}
	free(list->unresolved);
	list->unresolved = NULL;
	return true;
}

static void tenant_done(struct tenant *tenant)
{
	free(tenant->name);
	free(tenant->file);
	id_list_done(&tenant->users);
	id_list_done(&tenant->groups);
	free(tenant->unit);
	free(tenant->slice);
	free(tenant->executable);
	free(tenant->reserved_gpu);
	free(tenant->only_gpus);
	*tenant = (struct tenant){ 0 };
}

static void share_done(struct share_settings *share)
{
	free(share->name);
	free(share->gpu);
	free(share->tenant);
	free(share->at);
}

int settings_new(struct settings **ret)
{
	_cleanup_(settings_freep) struct settings *settings = calloc(1, sizeof(*settings));
	int r;

	if (!settings)
		return -ENOMEM;

	settings->backend = BACKEND_AUTO;
	settings->audit_interval_usec = 2000000;
	settings->drift_grace_usec = 1000000;
	settings->activate_grace_usec = 1000000;
	settings->activate_min_interval_usec = 1000000;
	settings->grow_delay_usec = 2000000;
	settings->enforce_delay_usec = 1000000;
	settings->unmanaged = UNMANAGED_COUNT;
	settings->unmanaged_grace_usec = 10000000;
	settings->graphics = GRAPHICS_WARN;
	settings->margin_percent = MARGIN_MEASURED;
	settings->max_leases = 4096;
	settings->max_leases_per_user = 1024;
	settings->max_holders = 4096;
	settings->max_calls_per_user = 2000;
	settings->max_time_per_user = 20;
	settings->max_pending_per_user = 1024;
	settings->max_unread_per_user = UINT64_C(8) << 20;

	settings->simulate = strdup("radeon-vii");
	settings->tenants = calloc(1, sizeof(*settings->tenants));
	if (!settings->simulate || !settings->tenants)
		return -ENOMEM;
	r = tenant_init(&settings->tenants[0], "*");
	if (r < 0)
		return r;
	settings->n_tenants = 1;

	*ret = TAKE_PTR(settings);
	return 0;
}

struct settings *settings_free(struct settings *settings)
{
	if (!settings)
		return NULL;

	for (size_t i = 0; i < settings->n_tenants; i++)
		tenant_done(&settings->tenants[i]);
	free(settings->tenants);
	for (size_t i = 0; i < settings->n_shares; i++)
		share_done(&settings->shares[i]);
	free(settings->shares);
	free(settings->gpus);
	free(settings->simulate);
	free(settings->simulate_at);
	id_list_done(&settings->exempt);
	subuids_done(&settings->subuids);
	free(settings);
	return NULL;
}

const struct share_settings *settings_share(const struct settings *settings, const char *name)
{
	for (size_t i = 0; i < settings->n_shares; i++)
		if (strcmp(settings->shares[i].name, name) == 0)
			return &settings->shares[i];
	return NULL;
}

const struct gpu_settings *settings_gpu(const struct settings *settings, const char *name)
{
	for (size_t i = 0; i < settings->n_gpus; i++)
		if (strcmp(settings->gpus[i].name, name) == 0)
			return &settings->gpus[i];
	return NULL;
}

unsigned settings_reserve_queues(const struct settings *settings, const struct gpu_info *gpu)
{
	const struct gpu_settings *own = settings_gpu(settings, gpu->name);

	return own && own->reserve_queues != RESERVE_QUEUES_OF_GPU ? own->reserve_queues
								   : gpu->reserve_queues;
}

bool settings_gpu_any(const struct settings *settings, const char *name)
{
	const struct gpu_settings *own = settings_gpu(settings, name);

	return !own || !own->named_only;
}

/* ---- the tenant of a caller -------------------------------------------------------------- */

static bool matches_pattern(const char *pattern, const char *text)
{
	return !pattern || (text[0] && fnmatch(pattern, text, 0) == 0);
}

static bool has_id(const struct id_list *list, unsigned id)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->ids[i] == id)
			return true;
	return false;
}

static bool matches_who(const struct tenant *tenant, const struct caller *caller)
{
	if (has_id(&tenant->users, caller->uid))
		return true;
	for (size_t i = 0; i < caller->n_groups; i++)
		if (has_id(&tenant->groups, caller->groups[i]))
			return true;
	return strcmp(tenant->name, "*") == 0;
}

/* uid and groups authorise, because the bus guarantees them; the hints only narrow the match. */
static bool matches(const struct tenant *tenant, const struct caller *caller)
{
	return matches_who(tenant, caller) && matches_pattern(tenant->unit, caller->unit) &&
	       matches_pattern(tenant->slice, caller->slice) &&
	       matches_pattern(tenant->executable, caller->executable);
}

bool settings_same_user(const struct settings *settings, uid_t a, uid_t b)
{
	return a != (uid_t)-1 && b != (uid_t)-1 &&
	       (a == b ||
		subuids_user(&settings->subuids, a) == subuids_user(&settings->subuids, b));
}

struct id_list *settings_list(struct settings *settings, size_t i, bool *ret_group)
{
	*ret_group = i > 0 && i % 2 == 0;
	if (i == 0)
		return &settings->exempt;
	i--;
	if (i / 2 >= settings->n_tenants)
		return NULL;
	return i % 2 == 0 ? &settings->tenants[i / 2].users : &settings->tenants[i / 2].groups;
}

bool settings_is_exempt(const struct settings *settings, uid_t uid)
{
	bool exempt = uid == 0 || uid == (uid_t)-1;

	for (size_t i = 0; i < settings->exempt.n && !exempt; i++)
		exempt = settings_same_user(settings, uid, settings->exempt.ids[i]);
	return exempt;
}

const struct tenant *tenant_named(const struct settings *settings, const char *name)
{
	for (size_t i = 0; i < settings->n_tenants; i++)
		if (strcmp(settings->tenants[i].name, name) == 0)
			return &settings->tenants[i];
	return NULL;
}

bool tenant_may_match(const struct tenant *tenant, uid_t uid)
{
	return has_id(&tenant->users, uid) || tenant->groups.n > 0 ||
	       strcmp(tenant->name, "*") == 0;
}

bool tenant_allows_gpu(const struct tenant *tenant, const char *gpu)
{
	const char *rest = tenant->only_gpus;
	char name[GPU_NAME_MAX];

	while (want_next_gpu(&rest, name))
		if (strcmp(name, gpu) == 0)
			return true;
	return !tenant->only_gpus;
}

uint64_t tenant_duration_usec(const struct tenant *tenant, uint64_t asked_usec)
{
	if (asked_usec > 0)
		return asked_usec;
	return tenant->default_duration_usec > 0 ? tenant->default_duration_usec
						 : tenant->max_duration_usec;
}

bool tenant_has_floor(const struct tenant *tenant)
{
	return tenant->reserved_cus.kind != LIMIT_NONE || tenant->reserved_engines > 0 ||
	       tenant->reserved_queues > 0 || tenant->reserved_processes > 0;
}

bool tenant_floor_is_on(const struct tenant *tenant, const char *gpu)
{
	return (!tenant->reserved_gpu || strcmp(tenant->reserved_gpu, gpu) == 0) &&
	       tenant_allows_gpu(tenant, gpu) && !tenant_is_ban(tenant);
}

/* Whole engines that hold a floor of CUs. */
static uint64_t engines_of(const struct geometry *geometry, uint64_t cus)
{
	uint64_t each = geometry_cus(geometry) / geometry->engines;

	return each > 0 ? (cus + each - 1) / each : 0;
}

enum floor_key { FLOOR_ENGINES, FLOOR_CUS, FLOOR_QUEUES, FLOOR_PROCESSES, FLOOR_KEYS };

/* What the floor of the tenant keeps of the GPU. Whole engines are kept with all of their CUs. */
static void find_part(const struct tenant *tenant, const struct gpu_info *gpu,
		      uint64_t ret[static FLOOR_KEYS])
{
	uint64_t all = geometry_cus(&gpu->geometry), each = all / gpu->geometry.engines;
	uint64_t own = limit_reserved(&tenant->reserved_cus, all), whole = 0;

	memset(ret, 0, FLOOR_KEYS * sizeof(*ret));
	if (!tenant_floor_is_on(tenant, gpu->name))
		return;
	if (tenant->class == CLASS_REALTIME || tenant->reserved_engines > 0)
		whole = engines_of(&gpu->geometry, own);
	whole = max_u64(whole, tenant->reserved_engines);
	ret[FLOOR_ENGINES] = whole;
	ret[FLOOR_CUS] = max_u64(own, whole * each);
	ret[FLOOR_QUEUES] = tenant->reserved_queues;
	ret[FLOOR_PROCESSES] = tenant->reserved_processes;
}

#define PARTS_NAMED 4U /* in a sentence */

/* "a 30, b 31 and 2 more" */
static void list_parts(const struct settings *settings, const struct gpu_info *gpu,
		       enum floor_key key, char *buf, size_t size)
{
	uint64_t part[FLOOR_KEYS];
	size_t named = 0, more = 0, at = 0;

	for (size_t i = 0; i < settings->n_tenants; i++) {
		find_part(&settings->tenants[i], gpu, part);
		if (part[key] == 0)
			continue;
		if (named == PARTS_NAMED) {
			more++;
			continue;
		}
		at += (size_t)snprintf(buf + at, size - at, "%s%.40s %llu", named++ ? ", " : "",
				       settings->tenants[i].name, (unsigned long long)part[key]);
	}
	if (more > 0)
		snprintf(buf + at, size - at, " and %zu more", more);
}

int settings_check_floors(const struct settings *settings, const struct gpu_info *gpu, bool error,
			  struct diagnostics *diagnostics)
{
	const struct {
		const char *key;
		uint64_t has;
	} keys[FLOOR_KEYS] = {
		[FLOOR_ENGINES] = { "reserved-shader-engines", gpu->geometry.engines },
		[FLOOR_CUS] = { "reserved-cus", geometry_cus(&gpu->geometry) },
		[FLOOR_QUEUES] = { "reserved-queues", gpu->queue_slots },
		[FLOOR_PROCESSES] = { "reserved-processes", gpu->process_slots },
	};
	uint64_t sum[FLOOR_KEYS] = { 0 }, part[FLOOR_KEYS];
	char parts[320];

	for (size_t i = 0; i < settings->n_tenants; i++) {
		find_part(&settings->tenants[i], gpu, part);
		for (size_t key = 0; key < FLOOR_KEYS; key++)
			sum[key] += part[key];
	}
	for (size_t key = 0; key < FLOOR_KEYS; key++) {
		if (sum[key] <= keys[key].has)
			continue;
		list_parts(settings, gpu, (enum floor_key)key, parts, sizeof(parts));
		diagnostics_add(diagnostics, error,
				"%s of all tenants adds up to %llu (%s), and %s has %llu%s",
				keys[key].key, (unsigned long long)sum[key], parts,
				gpu->name[0] ? gpu->name : gpu->device,
				(unsigned long long)keys[key].has,
				error ? "" : ": not all of it can be kept free");
		return -ENOSPC;
	}
	return 0;
}

static void check_shares(const struct tenant *tenant, const struct gpu_info *gpu,
			 struct diagnostics *diagnostics)
{
	const uint64_t cus = geometry_cus(&gpu->geometry), engines = gpu->geometry.engines;
	const struct {
		const char *key;
		const struct limit *share;
		uint64_t whole;
	} shares[] = {
		{ "max-cus", &tenant->max_cus, cus },
		{ "max-shader-engines", &tenant->max_engines, engines },
		{ "reserved-cus", &tenant->reserved_cus, cus },
	};

	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		const struct limit *share = shares[i].share;

		if (share->kind == LIMIT_PERCENT && limit_of(share, shares[i].whole) == 0)
			diagnostics_add(
				diagnostics, false,
				"tenant %s: %s = %llu%% counts as 0 on %s, which has %llu: use %llu%% "
				"or more",
				tenant->name, shares[i].key, (unsigned long long)share->value,
				gpu->name[0] ? gpu->name : gpu->device,
				(unsigned long long)shares[i].whole,
				(unsigned long long)((99 + shares[i].whole) / shares[i].whole));
	}
}

void settings_check_shares(const struct settings *settings, const struct gpu_info *gpu,
			   struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < settings->n_tenants; i++)
		if (tenant_allows_gpu(&settings->tenants[i], gpu->name))
			check_shares(&settings->tenants[i], gpu, diagnostics);
}

bool tenant_bounds_parts(const struct tenant *tenant)
{
	return tenant->max_cus.kind != LIMIT_NONE || tenant->max_queues.kind != LIMIT_NONE ||
	       tenant->max_processes.kind != LIMIT_NONE || tenant->max_vram.kind != LIMIT_NONE ||
	       tenant->max_fixed_cus.kind != LIMIT_NONE || tenant->max_engines.kind != LIMIT_NONE;
}

/* name: of the tenant that the caller asked for ("": none), or, with the key "open", belongs to. */
static int not_permitted(const struct caller *caller, const char *key, const char *name,
			 struct result *result)
{
	struct refusal refusal = { .gpu = "any", .reason = REASON_POLICY, .uid = caller->uid };

	refusal_set_bound(&refusal, key, 0, name);
	return result_refuse_all(result, RESULT_NOT_PERMITTED, &refusal);
}

#define TENANTS_NAMED 8U

static int no_such_tenant(const struct settings *settings, const char *name, struct result *result)
{
	char names[TENANTS_NAMED * 40] = "";
	size_t at = 0;

	for (size_t i = 0; i < settings->n_tenants && i < TENANTS_NAMED; i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%.32s", i > 0 ? ", " : "",
				       settings->tenants[i].name);
	return result_set(result, RESULT_NO_SUCH_TENANT, "there is no tenant %s: there are %s%s",
			  name, names, settings->n_tenants > TENANTS_NAMED ? ", ..." : "");
}

bool tenant_is_narrow(const struct tenant *tenant)
{
	return tenant->unit || tenant->slice || tenant->executable;
}

static const struct tenant *find_first(const struct settings *settings, const struct caller *caller)
{
	for (size_t i = 0; i < settings->n_tenants; i++)
		if (matches(&settings->tenants[i], caller))
			return &settings->tenants[i];
	return NULL;
}

bool tenant_is_ban(const struct tenant *tenant)
{
	return limit_of(&tenant->max_leases, 100) == 0;
}

/* Whether a user who belongs to one tenant may choose another one that matches, too. */
static bool may_choose(const struct tenant *own, const struct tenant *other)
{
	return own == other || (other->open && !tenant_is_ban(own));
}

const struct tenant *tenant_that_binds(const struct settings *settings, const struct tenant *tenant,
				       uid_t uid)
{
	for (const struct tenant *t = settings->tenants; t != tenant; t++)
		if (has_id(&t->users, uid) && !tenant_is_narrow(t) && !may_choose(t, tenant))
			return t;
	return NULL;
}

int tenant_of_lease(const struct settings *settings, const char *name, uid_t uid,
		    const struct tenant **ret, struct result *result)
{
	const struct tenant *tenant = tenant_named(settings, name), *own;

	if (!tenant)
		return result_set(result, RESULT_NO_SUCH_TENANT, "policy has no tenant %s any more",
				  name);
	if (!tenant_may_match(tenant, uid))
		return result_set(result, RESULT_NOT_PERMITTED,
				  "tenant %s is not for uid %u any more", name, uid);
	own = tenant_that_binds(settings, tenant, uid);
	if (own)
		return result_set(result, RESULT_NOT_PERMITTED,
				  "uid %u belongs to tenant %s, and tenant %s is not open to it",
				  uid, own->name, name);
	*ret = tenant;
	return 0;
}

int tenant_find(const struct settings *settings, const struct caller *caller, const char *name,
		const struct tenant **ret, struct result *result)
{
	const struct tenant *own = find_first(settings, caller), *tenant = own;

	if (name[0])
		tenant = tenant_named(settings, name);
	if (!tenant && name[0])
		return no_such_tenant(settings, name, result);
	if (!tenant || !matches(tenant, caller))
		return not_permitted(caller, "tenant", name, result);
	if (!may_choose(own, tenant))
		return not_permitted(caller, "open", own->name, result);
	*ret = tenant;
	return 0;
}

enum tenant_use tenant_use(const struct settings *settings, const struct caller *caller, size_t i)
{
	const struct tenant *tenant = &settings->tenants[i], *own = NULL;

	if (!matches_who(tenant, caller))
		return TENANT_USE_NO_MATCH;
	for (size_t k = 0; k < i && !own; k++)
		if (matches_who(&settings->tenants[k], caller) &&
		    !tenant_is_narrow(&settings->tenants[k]))
			own = &settings->tenants[k];
	if (own)
		return may_choose(own, tenant) ? TENANT_USE_NAMED : TENANT_USE_CLOSED;
	return tenant_is_narrow(tenant) ? TENANT_USE_SOME : TENANT_USE_OTHERS;
}

static uint64_t most_of(const struct limit *limit, uint64_t has, uint64_t kept)
{
	return min_u64(limit_of(limit, has), beyond(has, kept));
}

void tenant_find_most(const struct settings *settings, const struct tenant *tenant,
		      const struct gpu_info *gpu, struct tenant_most *ret)
{
	uint64_t kept[FLOOR_KEYS] = { 0 }, part[FLOOR_KEYS];

	kept[FLOOR_QUEUES] = settings_reserve_queues(settings, gpu);
	for (size_t i = 0; i < settings->n_tenants; i++) {
		if (&settings->tenants[i] == tenant)
			continue;
		find_part(&settings->tenants[i], gpu, part);
		for (size_t key = 0; key < FLOOR_KEYS; key++)
			kept[key] += part[key];
	}
	*ret = (struct tenant_most){ 0 };
	if (!tenant_allows_gpu(tenant, gpu->name))
		return;
	*ret = (struct tenant_most){
		.cus = most_of(&tenant->max_cus, geometry_cus(&gpu->geometry), kept[FLOOR_CUS]),
		.queues = most_of(&tenant->max_queues, gpu->queue_slots, kept[FLOOR_QUEUES]),
		.processes = most_of(&tenant->max_processes, gpu->process_slots,
				     kept[FLOOR_PROCESSES]),
		.vram = most_of(&tenant->max_vram, gpu->vram_bytes, 0),
	};
}

bool settings_allow_exclusive(const struct settings *settings)
{
	for (size_t i = 0; i < settings->n_tenants; i++)
		if (settings->tenants[i].exclusive != EXCLUSIVE_NO)
			return true;
	return false;
}
