/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/config-keys.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/settings.h"
#include "util/names.h"
#include "util/diagnostics.h"
#include "util/number.h"
#include "util/text.h"

/* ---- words, numbers and times -------------------------------------------------------- */

/* The index of a word, or -1 after an error with all words from key->min on and the nearest. more:
 * what else would be valid, or NULL. */
static int find_word(const struct ini_place *place, const struct config_key *key, const char *value,
		     const char *more)
{
	const char *const *words = key->words + key->min, *nearest = text_nearest(value, words);
	int found = text_index(words, value);
	char choice[128] = "";
	size_t size = 0;

	if (found >= 0)
		return found + (int)key->min;
	for (int i = 0; words[i]; i++)
		size += (size_t)snprintf(choice + size, sizeof(choice) - size, "%s%s",
					 i == 0                 ? ""
					 : more || words[i + 1] ? ", "
								: " or ",
					 words[i]);
	ini_bad(place, "%s: '%s' is not %s%s%s%s%s%s", key->name, value, choice, more ? " or " : "",
		more ? more : "", nearest ? "; did you mean '" : "", nearest ? nearest : "",
		nearest ? "'?" : "");
	return -1;
}

void config_set_word(const struct ini_place *place, const struct config_key *key, const char *value,
		     void *field)
{
	int i = find_word(place, key, value, NULL);

	if (i >= 0)
		*(unsigned *)field = (unsigned)i;
}

void config_set_flag(const struct ini_place *place, const struct config_key *key, const char *value,
		     void *field)
{
	int i = find_word(place, key, value, NULL);

	if (i >= 0)
		*(bool *)field = i == 1;
}

/* none: no lease, of whatever class. */
static void set_class(const struct ini_place *place, const struct config_key *key,
		      const char *value, void *target)
{
	struct tenant *tenant = target;
	int i = strcmp(value, "none") == 0 ? -1 : find_word(place, key, value, "none");

	tenant->none = strcmp(value, "none") == 0;
	if (i >= 0)
		tenant->class = (enum lease_class)i;
}

static void set_priority(const struct ini_place *place, const struct config_key *key,
			 const char *value, void *field)
{
	int priority = priority_from_name(value);

	if (priority >= 0)
		*(unsigned *)field = (unsigned)priority;
	else
		find_word(place, key, value, "a number from 0 to 15");
}

void config_set_unsigned(const struct ini_place *place, const struct config_key *key,
			 const char *value, void *field)
{
	ini_unsigned(place, key->name, value, key->min, key->max, field);
}

void config_set_bool(const struct ini_place *place, const struct config_key *key, const char *value,
		     void *field)
{
	ini_bool(place, key->name, value, field);
}

static void set_any(const struct ini_place *place, const struct config_key *key, const char *value,
		    void *field)
{
	bool any = !*(bool *)field;

	ini_bool(place, key->name, value, &any);
	*(bool *)field = !any;
}

/* Without the key: CAP_AUTO. */
static void set_cap(const struct ini_place *place, const struct config_key *key, const char *value,
		    void *field)
{
	bool yes;

	if (ini_bool(place, key->name, value, &yes) >= 0)
		*(enum cap_policy *)field = yes ? CAP_YES : CAP_NO;
}

static void set_percent(const struct ini_place *place, const struct config_key *key,
			const char *value, void *field)
{
	ini_percent(place, key->name, value, key->min, key->max, field);
}

static void set_margin(const struct ini_place *place, const struct config_key *key,
		       const char *value, void *field)
{
	if (strcmp(value, "measured") == 0)
		*(unsigned *)field = MARGIN_MEASURED;
	else
		set_percent(place, key, value, field);
}

#define TIME_MAX_USEC UINT64_C(3600000000)

static void set_time(const struct ini_place *place, const struct config_key *key, const char *value,
		     void *field)
{
	static const struct number_unit units[] = {
		{ "ms", 1000 },         { "s", 1000000 }, { "min", 60000000 },
		{ "h", TIME_MAX_USEC }, { NULL, 0 },
	};
	uint64_t usec;

	if (number_parse_units(value, units, &usec) >= 0 && usec > 0 && usec <= TIME_MAX_USEC &&
	    usec >= key->min * UINT64_C(1000))
		*(uint64_t *)field = usec;
	else
		ini_bad(place, "%s: '%s' is not a time from %ums to 1h, such as 500ms, 2s or 1min",
			key->name, value, key->min);
}

#define DURATION_MAX_DAYS 365U

static void set_duration(const struct ini_place *place, const struct config_key *key,
			 const char *value, void *field)
{
	static const struct number_unit units[] = {
		{ "s", 1000000 },
		{ "min", 60000000 },
		{ "h", UINT64_C(3600000000) },
		{ "d", UINT64_C(86400000000) },
		{ NULL, 0 },
	};
	uint64_t usec;

	if (number_parse_units(value, units, &usec) >= 0 && usec > 0 &&
	    usec <= DURATION_MAX_DAYS * UINT64_C(86400000000))
		*(uint64_t *)field = usec;
	else
		ini_bad(place, "%s: '%s' is not a time from 1s to %ud, such as 30min, 8h or 7d",
			key->name, value, DURATION_MAX_DAYS);
}

/* ---- limits -------------------------------------------------------------------------- */

static void set_count(const struct ini_place *place, const struct config_key *key,
		      const char *value, void *field)
{
	struct limit *limit = field;
	unsigned n;

	if (ini_unsigned(place, key->name, value, key->min, key->max, &n) == 0)
		*limit = (struct limit){ .kind = LIMIT_COUNT, .value = n };
}

/* Returns whether the value is a percentage, valid or not. */
static bool take_percentage(const struct ini_place *place, const struct config_key *key,
			    const char *value, struct limit *ret)
{
	unsigned n;

	if (strcmp(value + strspn(value, "0123456789"), "%") != 0)
		return false;
	if (ini_percent(place, key->name, value, 1, 100, &n) == 0)
		*ret = (struct limit){ .kind = LIMIT_PERCENT, .value = n };
	return true;
}

static void set_count_or_percent(const struct ini_place *place, const struct config_key *key,
				 const char *value, void *field)
{
	if (take_percentage(place, key, value, field))
		return;
	if (value[strspn(value, "0123456789")])
		ini_bad(place, "%s: '%s' is not a number such as 16 or a percentage such as 25%%",
			key->name, value);
	else
		set_count(place, key, value, field);
}

static void set_bytes_or_percent(const struct ini_place *place, const struct config_key *key,
				 const char *value, void *field)
{
	struct limit *limit = field;
	uint64_t n;

	if (take_percentage(place, key, value, limit))
		return;
	if (ini_bytes(place, key->name, value, &n) < 0)
		return;
	if (n == 0)
		ini_bad(place,
			"%s: 0 would end with the first byte that a program uses; to allow no "
			"lease, use max-leases = 0",
			key->name);
	else
		*limit = (struct limit){ .kind = LIMIT_COUNT, .value = n };
}

static void set_bytes(const struct ini_place *place, const struct config_key *key,
		      const char *value, void *field)
{
	ini_bytes(place, key->name, value, field);
}

/* The bounds of the key are in KiB. */
static void set_kibibytes(const struct ini_place *place, const struct config_key *key,
			  const char *value, void *field)
{
	uint64_t n;

	if (ini_bytes(place, key->name, value, &n) < 0)
		return;
	if (n < key->min * 1024ULL || n > key->max * 1024ULL)
		ini_bad(place, "%s: '%s' is not from %uK to %uK", key->name, value, key->min,
			key->max);
	else
		*(uint64_t *)field = n;
}

/* ---- users, patterns and profiles ---------------------------------------------------- */

/* Cuts the first item, without blanks, out of "a, b"; *rest is the text after its comma, NULL after
 * the last item. */
static char *next_item(char **rest)
{
	char *item = strsep(rest, ",");
	size_t size;

	item += strspn(item, " \t");
	size = strlen(item);
	while (size > 0 && strchr(" \t", item[size - 1]))
		size--;
	item[size] = '\0';
	return item;
}

/* Finds a user or group by name or number. The largest number is (uid_t) -1, which is no user. */
static bool find_id(const struct ini_place *place, const char *text, bool group, unsigned *ret)
{
	uint64_t id = 0;
	int r;

	if (text[strspn(text, "0123456789")])
		return names_find(place->names, text, group, ret);
	r = number_parse(text, 0, UINT32_MAX - 1, &id);
	*ret = (unsigned)id;
	return r >= 0;
}

/* A name that the machine does not know now: a directory service may, later. */
static void keep_unresolved(const struct ini_place *place, const struct config_key *key,
			    const char *what, const char *name, struct id_list *list)
{
	char *names = NULL;

	diagnostics_add(place->diagnostics, false,
			"%s:%u: %s: %s '%s' does not exist on this machine: %s%s%s%s", place->file,
			place->line, key->name, what, name, place->tenant ? "tenant " : "",
			place->tenant ?: "no process without a lease is ended",
			place->tenant ? " does not match it until it exists" : " until it exists",
			strpbrk(name, " \t") ? "; write commas between names" : "");
	if (asprintf(&names, "%s%s%s", list->unresolved ?: "", list->unresolved ? "," : "", name) <
	    0) {
		ini_bad(place, "out of memory");
		return;
	}
	free(list->unresolved);
	list->unresolved = names;
}

/* Parses a list of names and numbers into ids, which has room for as many as value has bytes.
 * Returns how many there are, 0 after an error. */
static size_t parse_ids(const struct ini_place *place, const struct config_key *key, char *value,
			unsigned *ids, struct id_list *list)
{
	const char *what = key->group ? "group" : "user", *item;
	char *rest = value;
	bool good = true;
	size_t n = 0;

	while (rest) {
		item = next_item(&rest);
		if (*item && find_id(place, item, key->group, &ids[n])) {
			n++;
			continue;
		}
		if (*item && item[strspn(item, "-0123456789")]) {
			keep_unresolved(place, key, what, item, list);
			continue;
		}
		good = false;
		if (*item)
			ini_bad(place, "%s: %s '%s' does not exist on this machine", key->name,
				what, item);
		else
			ini_bad(place,
				"%s: empty item: write %s names or numbers with commas between "
				"them",
				key->name, what);
	}
	return good ? n : 0;
}

static void set_ids(const struct ini_place *place, const struct config_key *key, const char *value,
		    void *field)
{
	_cleanup_(freep) char *copy = strdup(value);
	_cleanup_(freep) unsigned *ids = calloc(strlen(value) + 1, sizeof(*ids));
	struct id_list *list = field;

	if (!copy || !ids) {
		ini_bad(place, "out of memory");
		return;
	}
	list->n = parse_ids(place, key, copy, ids, list);
	list->ids = TAKE_PTR(ids);
}

static void set_string(const struct ini_place *place, const struct config_key *, const char *value,
		       void *field)
{
	char *copy = strdup(value);

	if (!copy) {
		ini_bad(place, "out of memory");
		return;
	}
	free(*(char **)field);
	*(char **)field = copy;
}

static void set_pattern(const struct ini_place *place, const struct config_key *key,
			const char *value, void *field)
{
	if (!*value)
		ini_bad(place, "%s: empty pattern: write one such as vr-*.service", key->name);
	else
		set_string(place, key, value, field);
}

static void set_path_pattern(const struct ini_place *place, const struct config_key *key,
			     const char *value, void *field)
{
	if (*value != '/' && *value != '*')
		ini_bad(place, "%s: '%s' matches no path: start the pattern with / or *", key->name,
			value);
	else
		set_string(place, key, value, field);
}

int config_is_conf(const struct dirent *entry)
{
	size_t size = strlen(entry->d_name);

	return entry->d_name[0] != '.' && size > strlen(CONFIG_SUFFIX) &&
	       strcmp(entry->d_name + size - strlen(CONFIG_SUFFIX), CONFIG_SUFFIX) == 0;
}

/* A PCI address as the kernel writes it. */
bool config_is_gpu_name(const char *name)
{
	unsigned domain, bus, device, function, partition;
	char again[64];
	int n = sscanf(name, "%8x:%2x:%2x.%1x/%2u", &domain, &bus, &device, &function, &partition);

	if (n < 4 || device > 0x1f || function > 7)
		return false;
	if (n == 4)
		snprintf(again, sizeof(again), "%04x:%02x:%02x.%x", domain, bus, device, function);
	else
		snprintf(again, sizeof(again), "%04x:%02x:%02x.%x/%u", domain, bus, device,
			 function, partition);
	return strcmp(name, again) == 0 && strlen(name) < GPU_NAME_MAX;
}

static void bad_gpu(const struct ini_place *place, const struct config_key *key, const char *name)
{
	ini_bad(place,
		"%s: '%s' is not a GPU name: use a PCI address in lower case such as "
		"0000:03:00.0",
		key->name, name);
}

static void set_gpu(const struct ini_place *place, const struct config_key *key, const char *value,
		    void *field)
{
	if (config_is_gpu_name(value))
		set_string(place, key, value, field);
	else
		bad_gpu(place, key, value);
}

/* Sets the names of a list, with one comma between two names. false: the list is wrong, which bad() or this
 * function has reported. */
static bool set_names(const struct ini_place *place, const struct config_key *key,
		      const char *value, bool (*is_name)(const char *name),
		      void (*bad)(const struct ini_place *place, const struct config_key *key,
				  const char *name),
		      void *field)
{
	_cleanup_(freep) char *copy = strdup(value), *list = calloc(1, strlen(value) + 1);
	char *rest = copy, *name;

	if (!copy || !list) {
		ini_bad(place, "out of memory");
		return false;
	}
	while (rest) {
		name = next_item(&rest);
		if (!is_name(name)) {
			bad(place, key, name);
			return false;
		}
		if (*list)
			strcat(list, ",");
		strcat(list, name);
	}
	set_string(place, key, list, field);
	return true;
}

static void set_gpus(const struct ini_place *place, const struct config_key *key, const char *value,
		     void *field)
{
	(void)set_names(place, key, value, config_is_gpu_name, bad_gpu, field);
}

bool config_is_profile_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._";

	return *name && *name != '.' && name[strspn(name, allowed)] == '\0';
}

static void bad_profile(const struct ini_place *place, const struct config_key *key,
			const char *name)
{
	ini_bad(place,
		"%s: '%s' is not a profile name: write one such as radeon-vii, or "
		"several with commas between them",
		key->name, name);
}

static void set_profiles(const struct ini_place *place, const struct config_key *key,
			 const char *value, void *field)
{
	struct settings *settings = field;
	char at[512];

	if (!set_names(place, key, value, config_is_profile_name, bad_profile, &settings->simulate))
		return;
	snprintf(at, sizeof(at), "%s:%u", place->file, place->line);
	set_string(place, key, at, &settings->simulate_at);
}

/* ---- the keys ------------------------------------------------------------------------ */

static const char *const backends[] = { "auto", "kfd", "simulated", NULL };
static const char *const unmanaged[] = { "ignore", "count", "warn", "refuse", NULL };
static const char *const graphics[] = { "ignore", "warn", "refuse-realtime", NULL };
static const char *const unmasked[] = { "refuse", "ignore", NULL };
static const char *const oversubscribe[] = { "no", "besteffort", NULL };
static const char *const reload[] = { "keep", "revoke", NULL };
static const char *const preempt[] = { "no", "revoke", NULL };
static const char *const shares[] = { "user", "lease", NULL };
static const char *const gpu_orders[] = { "balance", "pack", "spread", NULL };

_Static_assert(BACKEND_SIMULATED == ARRAY_SIZE(backends) - 2, "backends are in order");
_Static_assert(GPU_ORDER_SPREAD == ARRAY_SIZE(gpu_orders) - 2, "words are in order");
_Static_assert(UNMANAGED_REFUSE == ARRAY_SIZE(unmanaged) - 2, "words are in order");
_Static_assert(GRAPHICS_REFUSE_REALTIME == ARRAY_SIZE(graphics) - 2, "words are in order");

#define KEY(key, setter, ...)                               \
	{                                                   \
		.name = (key), .set = (setter), __VA_ARGS__ \
	}
#define DAEMON(field) .offset = offsetof(struct settings, field)
#define SHARE(field) .offset = offsetof(struct share_settings, field)
#define TENANT(field) .offset = offsetof(struct tenant, field)
#define RANGE(least, most) .min = (least), .max = (most)

/* clang-format off */
static const struct config_key daemon_keys[] = {
	KEY("backend", config_set_word, DAEMON(backend), .words = backends),
	KEY("simulate", set_profiles, .offset = 0),
	KEY("audit-interval", set_time, DAEMON(audit_interval_usec), .min = 100),
	KEY("drift-grace", set_time, DAEMON(drift_grace_usec), .min = 1),
	KEY("unmasked", config_set_word, DAEMON(unmasked), .words = unmasked),
	KEY("unmanaged", config_set_word, DAEMON(unmanaged), .words = unmanaged),
	KEY("unmanaged-grace", set_time, DAEMON(unmanaged_grace_usec), .min = 1),
	KEY("unmanaged-exempt", set_ids, DAEMON(exempt)),
	KEY("graphics", config_set_word, DAEMON(graphics), .words = graphics),
	KEY("oversubscribe", config_set_flag, DAEMON(oversubscribe_besteffort), .words = oversubscribe),
	KEY("margin", set_margin, DAEMON(margin_percent), RANGE(0, 1000)),
	KEY("gpus", config_set_word, DAEMON(gpu_order), .words = gpu_orders),
	KEY("share-by", config_set_flag, DAEMON(share_by_lease), .words = shares),
	KEY("on-reload", config_set_flag, DAEMON(revoke_on_reload), .words = reload),
	KEY("activate-grace", set_time, DAEMON(activate_grace_usec), .min = 1),
	KEY("activate-min-interval", set_time, DAEMON(activate_min_interval_usec), .min = 1),
	KEY("grow-delay", set_time, DAEMON(grow_delay_usec), .min = 1),
	KEY("enforce-delay", set_time, DAEMON(enforce_delay_usec), .min = 1),
	KEY("max-leases", config_set_unsigned, DAEMON(max_leases), RANGE(1, 65536)),
	KEY("max-leases-per-user", config_set_unsigned, DAEMON(max_leases_per_user), RANGE(1, 65536)),
	KEY("max-holders", config_set_unsigned, DAEMON(max_holders), RANGE(1, 65536)),
	KEY("max-calls-per-user", config_set_unsigned, DAEMON(max_calls_per_user), RANGE(10, 1000000)),
	KEY("max-time-per-user", set_percent, DAEMON(max_time_per_user), RANGE(1, 100)),
	KEY("max-pending-per-user", config_set_unsigned, DAEMON(max_pending_per_user), RANGE(16, 65536)),
	KEY("max-unread-per-user", set_kibibytes, DAEMON(max_unread_per_user), RANGE(64, 1048576)),
};

static const struct config_key gpu_keys[] = {
	KEY("reserve-queues", config_set_unsigned,
	    .offset = offsetof(struct gpu_settings, reserve_queues), RANGE(0, 1024)),
	KEY("any", set_any, .offset = offsetof(struct gpu_settings, named_only)),
};

static const struct config_key share_keys[] = {
	KEY("cus", set_count_or_percent, SHARE(cus), RANGE(1, 1024)),
	KEY("queues", config_set_unsigned, SHARE(queues), RANGE(1, 65536)),
	KEY("processes", config_set_unsigned, SHARE(processes), RANGE(1, 65536)),
	KEY("vram", set_bytes, SHARE(vram)),
	KEY("gpu", set_gpu, SHARE(gpu)),
	KEY("class", config_set_word, SHARE(class), .words = class_names),
	KEY("tenant", set_string, SHARE(tenant)),
};

static const struct config_key tenant_keys[] = {
	KEY("match-user", set_ids, TENANT(users)),
	KEY("match-group", set_ids, TENANT(groups), .group = true),
	KEY("match-unit", set_pattern, TENANT(unit)),
	KEY("match-slice", set_pattern, TENANT(slice)),
	KEY("match-executable", set_path_pattern, TENANT(executable)),
	KEY("open", config_set_bool, TENANT(open)),
	KEY("class", set_class, .offset = 0, .words = class_names),
	KEY("max-leases", set_count, TENANT(max_leases), RANGE(0, 65536)),
	KEY("max-waiting", set_count, TENANT(max_waiting), RANGE(0, 65536)),
	KEY("max-gpus", set_count, TENANT(max_gpus), RANGE(0, 65536)),
	KEY("max-cus", set_count_or_percent, TENANT(max_cus), RANGE(1, 1024)),
	KEY("max-queues", set_count, TENANT(max_queues), RANGE(1, 65536)),
	KEY("max-processes", set_count, TENANT(max_processes), RANGE(1, 65536)),
	KEY("max-vram", set_bytes_or_percent, TENANT(max_vram)),
	KEY("default-vram", set_bytes, TENANT(default_vram)),
	KEY("max-fixed-cus", set_count_or_percent, TENANT(max_fixed_cus), RANGE(0, 1024)),
	KEY("max-shader-engines", set_count_or_percent, TENANT(max_engines), RANGE(1, CUSET_ENGINES)),
	KEY("max-duration", set_duration, TENANT(max_duration_usec)),
	KEY("default-duration", set_duration, TENANT(default_duration_usec)),
	KEY("only-gpus", set_gpus, TENANT(only_gpus)),
	KEY("reserved-cus", set_count_or_percent, TENANT(reserved_cus), RANGE(1, 1024)),
	KEY("reserved-shader-engines", config_set_unsigned, TENANT(reserved_engines), RANGE(1, CUSET_ENGINES)),
	KEY("reserved-queues", config_set_unsigned, TENANT(reserved_queues), RANGE(1, 65536)),
	KEY("reserved-processes", config_set_unsigned, TENANT(reserved_processes), RANGE(1, 65536)),
	KEY("reserved-gpu", set_gpu, TENANT(reserved_gpu)),
	KEY("weight", config_set_unsigned, TENANT(weight), RANGE(1, 10000)),
	KEY("priority", set_priority, TENANT(priority), .words = priority_names),
	KEY("alone", config_set_bool, TENANT(alone)),
	KEY("exclusive", config_set_word, TENANT(exclusive), .words = exclusive_names),
	KEY("max-wait", set_time, TENANT(max_wait_usec), .min = 1),
	KEY("max-pause", set_time, TENANT(max_pause_usec), .min = 1),
	KEY("enforce", config_set_word, TENANT(enforce), .words = enforce_step_names,
	    .min = ENFORCE_STEP_REPORT),
	KEY("cap", set_cap, TENANT(cap)),
	KEY("on-drift", config_set_word, TENANT(on_drift), .words = on_drift_names),
	KEY("preempt", config_set_flag, TENANT(preempt), .words = preempt),
};
/* clang-format on */

const struct config_section config_sections[CONFIG_KINDS] = {
	[CONFIG_DAEMON] = { "daemon", false, daemon_keys, ARRAY_SIZE(daemon_keys) },
	[CONFIG_GPU] = { "gpu", true, gpu_keys, ARRAY_SIZE(gpu_keys) },
	[CONFIG_SHARE] = { "share", true, share_keys, ARRAY_SIZE(share_keys) },
	[CONFIG_TENANT] = { "tenant", true, tenant_keys, ARRAY_SIZE(tenant_keys) },
};

int config_take_key(const struct ini_place *place, const struct config_section *section,
		    const char *name, const char *value, void *target)
{
	const char *known[CONFIG_KEYS_MAX + 1] = { 0 };

	for (size_t i = 0; i < section->n_keys; i++) {
		const struct config_key *key = &section->keys[i];

		known[i] = key->name;
		if (strcmp(key->name, name) != 0)
			continue;
		key->set(place, key, value, (char *)target + key->offset);
		return (int)i;
	}
	ini_unknown_key(place, section->name, name, known);
	return -1;
}
