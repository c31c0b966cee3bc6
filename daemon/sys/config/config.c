/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/policy/request.h"
#include "sys/config/config-keys.h"
#include "util/fd.h"
#include "util/grow.h"
#include "util/text.h"

static const char *const main_directories[] = {
	"/usr/lib/gpuarb",
	"/run/gpuarb",
	"/etc/gpuarb",
	NULL,
};
static const char *const tenant_directories[] = {
	"/usr/lib/gpuarb/tenants.d",
	"/run/gpuarb/tenants.d",
	"/etc/gpuarb/tenants.d",
	NULL,
};

/* The configuration while its files are read. */
struct config {
	struct settings *settings;
	bool tenants_only;                    /* this file may have [tenant NAME] sections only */
	const struct config_section *section; /* NULL: none, or an unknown one */
	void *target;                         /* the struct that its keys fill, or NULL */
	struct names *names;
	struct diagnostics *diagnostics;
	unsigned errors;
};

/* ---- files --------------------------------------------------------------------------- */

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Adds DIRECTORY/NAME, in the place of a file of the same name. -ENOMEM. */
static int list_put(struct config_list *list, const char *directory, const char *name)
{
	char *path, **added;

	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(file_name(list->paths[i]), name) != 0)
			continue;
		free(list->paths[i]);
		list->paths[i] = path;
		return 0;
	}

	added = grow(&list->paths, &list->n, sizeof(*added));
	if (!added) {
		free(path);
		return -ENOMEM;
	}
	*added = path;
	return 0;
}

/* Does not follow a symbolic link: a dangling one must be reported, not ignored. */
static int list_entry(const char *directory, const char *name, const struct trust *trust,
		      struct config_list *list, struct diagnostics *diagnostics)
{
	_cleanup_fd_ int fd = trust_open(directory, trust, O_PATH | O_DIRECTORY, diagnostics);
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return list_put(list, directory, name);
	if (errno == ENOENT)
		return 0;
	diagnostics_add(diagnostics, true, "%s/%s: %s", directory, name, strerror(errno));
	return -EINVAL;
}

/* A name with an ending: README is no file that somebody takes for policy. */
static int has_ending(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && strchr(entry->d_name, '.');
}

static int list_directory(const char *path, bool required, const struct trust *trust,
			  struct config_list *list, struct diagnostics *diagnostics)
{
	_cleanup_fd_ int fd = trust_open(path, trust, O_RDONLY | O_DIRECTORY, diagnostics);
	struct dirent **entries;
	int n, r = 0;

	if (fd == -ENOENT && required)
		diagnostics_add(diagnostics, true, "%s: %s", path, strerror(ENOENT));
	if (fd < 0)
		return fd == -ENOENT && !required ? 0 : -EINVAL;
	n = scandirat(fd, ".", &entries, has_ending, alphasort);
	if (n < 0) {
		diagnostics_add(diagnostics, true, "%s: %s", path, strerror(errno));
		return -EINVAL;
	}
	for (int i = 0; i < n; i++) {
		if (!config_is_conf(entries[i]))
			diagnostics_add(diagnostics, false,
					"%s/%s: not read: its name does not end in " CONFIG_SUFFIX,
					path, entries[i]->d_name);
		else if (r == 0)
			r = list_put(list, path, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return r;
}

static int compare_names(const void *left, const void *right)
{
	const char *const *a = left, *const *b = right;

	return strcmp(file_name(*a), file_name(*b));
}

int config_find(const char *const *directories, const char *name, bool required,
		const struct trust *trust, struct config_list *list,
		struct diagnostics *diagnostics)
{
	int r, worst = 0;

	for (; *directories; directories++) {
		r = name ? list_entry(*directories, name, trust, list, diagnostics)
			 : list_directory(*directories, required, trust, list, diagnostics);
		if (r == -ENOMEM)
			return r;
		if (r < 0)
			worst = r;
	}
	if (list->n > 0)
		qsort(list->paths, list->n, sizeof(*list->paths), compare_names);
	return worst;
}

void config_list_done(struct config_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->paths[i]);
	free(list->paths);
	*list = (struct config_list){ 0 };
}

/* ---- tenants ------------------------------------------------------------------------- */

static bool is_everybody(const char *name)
{
	return strcmp(name, "*") == 0;
}

static bool is_tenant_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._@";

	return is_everybody(name) || (*name && name[strspn(name, allowed)] == '\0');
}

static bool tenant_is_new(const struct settings *settings, const struct ini_place *place,
			  const char *name)
{
	const struct tenant *tenant = tenant_named(settings, name);

	if (!tenant || !tenant->file)
		return true;
	ini_bad(place, "[tenant %s]: duplicate tenant, the first is at %s:%u", name, tenant->file,
		tenant->line);
	return false;
}

/* Inserts a tenant before "*", which stays the last. NULL: no memory. */
static struct tenant *insert_tenant(struct settings *settings, const char *name)
{
	struct tenant *last, added, *tenants;

	tenants = reallocarray(settings->tenants, settings->n_tenants + 1, sizeof(*tenants));
	if (!tenants)
		return NULL;
	settings->tenants = tenants;
	if (tenant_init(&added, name) < 0)
		return NULL;
	last = &tenants[settings->n_tenants++];
	last[0] = last[-1];
	last[-1] = added;
	return &last[-1];
}

/* Returns the tenant for "[tenant NAME]", NULL after an error. */
static struct tenant *add_tenant(struct settings *settings, const struct ini_place *place,
				 const char *name)
{
	struct tenant *tenant;

	if (!is_tenant_name(name)) {
		ini_bad(place,
			"[tenant %s]: invalid tenant name: use letters, digits and -._@, or * for "
			"all other users",
			name);
		return NULL;
	}
	if (!tenant_is_new(settings, place, name))
		return NULL;

	tenant = is_everybody(name) ? &settings->tenants[settings->n_tenants - 1]
				    : insert_tenant(settings, name);
	if (tenant)
		tenant->file = strdup(place->file);
	if (!tenant || !tenant->file) {
		ini_bad(place, "out of memory");
		return NULL;
	}
	tenant->line = place->line;
	return tenant;
}

/* Adds an error, or a warning, about a tenant. */
static void tell(struct config *config, const struct tenant *tenant, bool error, const char *format,
		 ...) PRINTF_LIKE(4, 5);

static void tell(struct config *config, const struct tenant *tenant, bool error, const char *format,
		 ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	diagnostics_add(config->diagnostics, error, "%s:%u: [tenant %s]: %s", tenant->file,
			tenant->line, tenant->name, text);
	config->errors += error;
}

static void check_tenant(struct config *config, struct tenant *tenant)
{
	if (tenant->none && tenant->max_leases.kind == LIMIT_COUNT && tenant->max_leases.value > 0)
		tell(config, tenant, true,
		     "class = none allows no lease, and max-leases = %llu does: leave out one of "
		     "them",
		     (unsigned long long)tenant->max_leases.value);
	if (tenant->max_duration_usec > 0 &&
	    tenant->default_duration_usec > tenant->max_duration_usec)
		tell(config, tenant, true,
		     "default-duration, %llu s, is above max-duration, %llu s",
		     (unsigned long long)tenant->default_duration_usec / 1000000,
		     (unsigned long long)tenant->max_duration_usec / 1000000);
	if (tenant->max_vram.kind == LIMIT_COUNT && tenant->default_vram > tenant->max_vram.value)
		tell(config, tenant, false,
		     "default-vram, %llu bytes, is above max-vram, %llu bytes: only requests with "
		     "less --vram are granted",
		     (unsigned long long)tenant->default_vram,
		     (unsigned long long)tenant->max_vram.value);
	if (tenant->none)
		tenant->max_leases = (struct limit){ LIMIT_COUNT, 0 };
	if (!tenant->has_match && !is_everybody(tenant->name))
		tell(config, tenant, true,
		     "it matches no user: it needs a valid match-user or match-group; the other "
		     "match keys only narrow them");
	if (tenant->alone && tenant->class != CLASS_REALTIME)
		tell(config, tenant, true,
		     "alone = yes needs class = realtime: it keeps other leases out of the shader "
		     "engines of realtime leases");
	if (tenant->exclusive != EXCLUSIVE_NO && tenant->class != CLASS_REALTIME)
		tell(config, tenant, true,
		     "exclusive = %s needs class = realtime: only realtime leases pause the "
		     "adaptable leases on their GPUs",
		     exclusive_names[tenant->exclusive]);
}

static bool has_all(const struct id_list *list, const struct id_list *part)
{
	for (size_t i = 0; i < part->n; i++) {
		size_t k = 0;

		while (k < list->n && list->ids[k] != part->ids[i])
			k++;
		if (k == list->n)
			return false;
	}
	return true;
}

static bool same_or_any(const char *pattern, const char *narrower)
{
	return !pattern || (narrower && strcmp(pattern, narrower) == 0);
}

/* Whether each caller that matches the second tenant matches the first. */
static bool covers(const struct tenant *first, const struct tenant *second)
{
	return !is_everybody(second->name) && has_all(&first->users, &second->users) &&
	       has_all(&first->groups, &second->groups) && same_or_any(first->unit, second->unit) &&
	       same_or_any(first->slice, second->slice) &&
	       same_or_any(first->executable, second->executable);
}

/* What is valid, and probably not what the author expects. */
static void check_effect(struct config *config, size_t i)
{
	const struct tenant *tenants = config->settings->tenants, *tenant = &tenants[i];

	if (tenant->max_queues.kind == LIMIT_COUNT && tenant->max_queues.value == 1)
		tell(config, tenant, false,
		     "max-queues = 1 is too small for HIP, which needs 2 for each process");
	for (size_t k = 0; k < i && tenant->users.n + tenant->groups.n > 0; k++) {
		if (tenant->open || !covers(&tenants[k], tenant))
			continue;
		tell(config, tenant, false,
		     "no request belongs to it: its users match [tenant %s] before it, and "
		     "--tenant=%s is for them only with open = yes here; or move it up, or narrow "
		     "the match of the other one",
		     tenants[k].name, tenant->name);
		return;
	}
}

/* ---- quotas that another tenant undoes ------------------------------------------------ */

static bool shares_id(const struct id_list *a, const struct id_list *b)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct id_list one = { .ids = &a->ids[i], .n = 1 };

		if (has_all(b, &one))
			return true;
	}
	return false;
}

/* How requests of users of the tenant get to the other one; NULL: not, or only as members of several
 * groups, which is unknown. A tenant of a higher class than the other one adds to it for some programs; its
 * limits bound that. */
static const char *way_to(const struct tenant *tenants, size_t from, size_t to)
{
	const struct tenant *own = &tenants[from], *other = &tenants[to];

	if (from == to || tenant_is_ban(own) || tenant_is_ban(other) ||
	    (!is_everybody(other->name) && !shares_id(&own->users, &other->users) &&
	     !shares_id(&own->groups, &other->groups)))
		return NULL;
	if (other->open)
		return "may name";
	return tenant_is_narrow(own) && to > from && other->class >= own->class
		       ? "match, with other programs,"
		       : NULL;
}

/* A limit that users of the tenant pass by in another tenant. One warning for each tenant. */
static void check_undone(struct config *config, size_t i)
{
	const struct tenant *tenants = config->settings->tenants, *own = &tenants[i];

	for (size_t k = 0; k < config->settings->n_tenants; k++) {
		const char *way = way_to(tenants, i, k);

		for (size_t j = 0; way && j < TENANT_LIMITS; j++) {
			const struct limit *has = tenant_limit(own, j),
					   *other = tenant_limit(&tenants[k], j);

			if (has->kind == LIMIT_NONE ||
			    (other->kind != LIMIT_NONE &&
			     (other->kind != has->kind || other->value <= has->value)))
				continue;
			tell(config, own, false,
			     "%s does not bind its users: they %s [tenant %s], which allows more%s",
			     tenant_limits[j].key, way, tenants[k].name,
			     other->kind == LIMIT_NONE ? ", without a limit" : "");
			return;
		}
	}
}

/* The shares that floors reserve of one GPU; NULL: of each GPU that no key names. */
static uint64_t reserved_percent(const struct settings *settings, const char *gpu)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < settings->n_tenants; i++) {
		const struct tenant *tenant = &settings->tenants[i];
		bool on = gpu ? tenant_floor_is_on(tenant, gpu)
			      : !tenant->reserved_gpu && !tenant->only_gpus &&
					  !tenant_is_ban(tenant);

		if (on && tenant->reserved_cus.kind == LIMIT_PERCENT)
			sum += tenant->reserved_cus.value;
	}
	return sum;
}

/* The same of the GPU with the floor of the tenant where it is most. */
static uint64_t most_reserved_percent(const struct settings *settings, const struct tenant *tenant)
{
	const char *rest = tenant->reserved_gpu ?: tenant->only_gpus;
	uint64_t most = rest ? 0 : reserved_percent(settings, NULL);
	char gpu[GPU_NAME_MAX];

	while (want_next_gpu(&rest, gpu))
		most = max_u64(most, reserved_percent(settings, gpu));
	return most;
}

/* A floor that the users of the tenant could never hold: all of them are known, and each may have
 * `most`. Numbers are not compared with percentages: that depends on the GPU. */
static void check_holdable(struct config *config, const struct tenant *tenant, const char *what,
			   const struct limit *floor, const struct limit *most)
{
	const char *unit = floor->kind == LIMIT_PERCENT ? "%" : "";
	size_t users = tenant->users.n;

	if (floor->kind == LIMIT_NONE || floor->kind != most->kind || tenant->groups.n > 0 ||
	    users == 0 || floor->value <= most->value * users)
		return;
	tell(config, tenant, true,
	     "reserved-%s = %llu%s, but with max-%s = %llu%s its %zu user%s can hold %llu%s at most: "
	     "lower reserved-%s or raise max-%s",
	     what, (unsigned long long)floor->value, unit, what, (unsigned long long)most->value,
	     unit, users, users == 1 ? "" : "s", (unsigned long long)(most->value * users), unit,
	     what, what);
}

/* A floor that is kept on no GPU. */
static void check_kept(struct config *config, const struct tenant *tenant)
{
	if (tenant_has_floor(tenant) && tenant_is_ban(tenant))
		tell(config, tenant, false, "its floor is not kept: it allows no lease");
	else if (tenant->reserved_gpu && !tenant_allows_gpu(tenant, tenant->reserved_gpu))
		tell(config, tenant, false,
		     "its floor is not kept: reserved-gpu = %s is not in only-gpus = %s",
		     tenant->reserved_gpu, tenant->only_gpus);
}

static void check_floor(struct config *config, const struct tenant *tenant)
{
	const struct limit queues = { tenant->reserved_queues ? LIMIT_COUNT : LIMIT_NONE,
				      tenant->reserved_queues };
	const struct limit processes = { tenant->reserved_processes ? LIMIT_COUNT : LIMIT_NONE,
					 tenant->reserved_processes };
	const struct limit engines = { tenant->reserved_engines ? LIMIT_COUNT : LIMIT_NONE,
				       tenant->reserved_engines };
	uint64_t sum = most_reserved_percent(config->settings, tenant);

	if (tenant->reserved_gpu && !tenant_has_floor(tenant))
		tell(config, tenant, true,
		     "reserved-gpu reserves nothing: add reserved-cus, reserved-shader-engines, "
		     "reserved-queues or reserved-processes");
	if (tenant->reserved_cus.kind == LIMIT_PERCENT && sum > 100)
		tell(config, tenant, true, "reserved-cus of all tenants adds up to %llu%% of a GPU",
		     (unsigned long long)sum);
	check_holdable(config, tenant, "cus", &tenant->reserved_cus, &tenant->max_cus);
	check_holdable(config, tenant, "queues", &queues, &tenant->max_queues);
	check_holdable(config, tenant, "processes", &processes, &tenant->max_processes);
	check_holdable(config, tenant, "shader-engines", &engines, &tenant->max_engines);
	check_kept(config, tenant);
}

/* ---- sections and keys --------------------------------------------------------------- */

/* Returns the struct for "[gpu NAME]", NULL after an error. */
static void *add_gpu(struct settings *settings, const struct ini_place *place, const char *name)
{
	struct gpu_settings *gpus;

	if (!config_is_gpu_name(name)) {
		ini_bad(place,
			"[gpu %s]: invalid GPU name: use a PCI address in lower case such as "
			"0000:03:00.0, for a partition 0000:03:00.0/2",
			name);
		return NULL;
	}
	gpus = grow(&settings->gpus, &settings->n_gpus, sizeof(*gpus));
	if (!gpus) {
		ini_bad(place, "out of memory");
		return NULL;
	}
	*gpus = (struct gpu_settings){ .reserve_queues = RESERVE_QUEUES_OF_GPU };
	strcpy(gpus->name, name);
	return gpus;
}

/* The name is that of a unit, of a file and of a CDI device. */
static bool is_share_name(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && (name[i] != '-' || i == 0 || i == n - 1))
			return false;
	return n > 0;
}

/* Returns the struct for "[share NAME]", NULL after an error. */
static void *add_share(struct settings *settings, const struct ini_place *place, const char *name)
{
	struct share_settings *shares;

	if (!is_share_name(name)) {
		ini_bad(place,
			"[share %s]: invalid name of a share: use letters, digits and -, which is "
			"not the first or last one",
			name);
		return NULL;
	}
	shares = grow(&settings->shares, &settings->n_shares, sizeof(*shares));
	if (!shares) {
		ini_bad(place, "out of memory");
		return NULL;
	}
	*shares = (struct share_settings){ .name = strdup(name), .class = SHARE_CLASS_OF_TENANT };
	if (!shares->name || asprintf(&shares->at, "%s:%u", place->file, place->line) < 0) {
		ini_bad(place, "out of memory");
		return NULL;
	}
	return shares;
}

static void share_bad(struct config *config, const struct share_settings *share, const char *format,
		      ...) PRINTF_LIKE(3, 4);

static void share_bad(struct config *config, const struct share_settings *share, const char *format,
		      ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	config->errors++;
	diagnostics_add(config->diagnostics, true, "%s: [share %s]: %s", share->at, share->name,
			text);
}

/* single: the tenants are not known. */
static void check_share(struct config *config, const struct share_settings *share, bool single)
{
	if (share->cus.kind == LIMIT_NONE)
		share_bad(config, share,
			  "it needs cus: a number of CUs, or a share of the GPU such as 25%%");
	else if (share->queues > 0 && share->queues < share->processes)
		share_bad(config, share,
			  "queues = %u is less than processes = %u: each process needs a queue, "
			  "and 2 with HIP",
			  share->queues, share->processes);
	else if (!single && share->tenant && !tenant_named(config->settings, share->tenant))
		share_bad(config, share,
			  "tenant = %s: there is no such tenant: add [tenant %s], or leave the key "
			  "out for the tenant of root",
			  share->tenant, share->tenant);
}

static void bad_section(const struct ini_place *place, const char *section, size_t size)
{
	static const char *const words[] = { "daemon", "gpu", "share", "tenant", NULL };
	char word[64];
	const char *nearest;

	snprintf(word, sizeof(word), "%.*s", (int)size, section);
	nearest = text_nearest(word, words);
	if (nearest)
		ini_bad(place, "unknown section [%s]; did you mean [%s%s]?", section, nearest,
			strcmp(nearest, "daemon") == 0 ? "" : " NAME");
	else
		ini_bad(place,
			"unknown section [%s]; known sections: [daemon], [gpu NAME], "
			"[share NAME], [tenant NAME]",
			section);
}

/* Returns the kind of a section and the NAME in it, NULL after an error. */
static const struct config_section *find_section(const struct ini_place *place, const char *section,
						 const char **ret_name)
{
	size_t size = strcspn(section, " ");
	const char *name = section[size] ? section + size + 1 : "";

	for (size_t i = 0; i < CONFIG_KINDS; i++) {
		const struct config_section *known = &config_sections[i];

		if (strlen(known->name) != size || strncmp(section, known->name, size) != 0)
			continue;
		if (known->named == (*name != '\0')) {
			*ret_name = name;
			return known;
		}
		ini_bad(place,
			known->named ? "[%s] needs a name: write [%s NAME]"
				     : "[%s] takes no name: write [%s]",
			section, known->name);
		return NULL;
	}
	bad_section(place, section, size);
	return NULL;
}

static void on_section(const struct ini_place *place, const char *section, void *userdata)
{
	struct config *config = userdata;
	const char *name;

	config->target = NULL;
	config->section = find_section(place, section, &name);
	if (!config->section)
		return;

	if (config->section == &config_sections[CONFIG_TENANT])
		config->target = add_tenant(config->settings, place, name);
	else if (config->tenants_only)
		ini_bad(place, "[%s] is not valid in tenants.d: move it to gpuarbd.conf", section);
	else if (config->section == &config_sections[CONFIG_GPU])
		config->target = add_gpu(config->settings, place, name);
	else if (config->section == &config_sections[CONFIG_SHARE])
		config->target = add_share(config->settings, place, name);
	else
		config->target = config->settings;
}

static void on_key(const struct ini_place *place, const char *section, const char *name,
		   const char *value, void *userdata)
{
	struct config *config = userdata;
	struct ini_place here = *place;
	struct tenant *tenant = NULL;

	if (!*section) {
		ini_bad(place,
			"%s: key outside of a section: write it below [daemon], [gpu NAME], "
			"[share NAME] or [tenant NAME]",
			name);
		return;
	}
	if (!config->target)
		return; /* the section was refused */

	if (config->section == &config_sections[CONFIG_TENANT])
		tenant = config->target;
	if (tenant && is_everybody(tenant->name) && strncmp(name, "match-", 6) == 0) {
		ini_bad(place, "%s: not valid in [tenant *], which matches all other users", name);
		return;
	}
	if (tenant && (strcmp(name, "match-user") == 0 || strcmp(name, "match-group") == 0))
		tenant->has_match = true;
	here.names = config->names;
	here.tenant = tenant ? tenant->name : NULL;
	config_take_key(&here, config->section, name, value, config->target);
}

/* ---- loading ------------------------------------------------------------------------- */

static void read_file(struct config *config, const char *path, const struct trust *trust)
{
	int r;

	config->section = NULL;
	config->target = NULL;
	r = ini_read(path, trust, on_section, on_key, config, config->diagnostics);
	if (r == -ENOENT)
		diagnostics_add(config->diagnostics, true,
				"%s: no such file, or a dangling symbolic link", path);
	if (r < 0)
		config->errors++;
}

/* Reads the files that a search has found. r: the result of the search. Returns how many files. */
static int read_found(struct config *config, int r, const struct config_list *list,
		      const struct trust *trust)
{
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		config->errors++;
	for (size_t i = 0; i < list->n; i++)
		read_file(config, list->paths[i], trust);
	return (int)list->n;
}

/* Returns the number of files. */
static int read_all(struct config *config, const struct config_files *files)
{
	const char *const one[] = { files->tenants, NULL };
	_cleanup_(config_list_done) struct config_list list = { 0 }, tenants = { 0 };
	int n_main = 1, n_tenants, r;

	if (files->config) {
		read_file(config, files->config, files->single ? NULL : &files->trust);
	} else {
		r = config_find(main_directories, "gpuarbd.conf", false, &files->trust, &list,
				config->diagnostics);
		n_main = read_found(config, r, &list, &files->trust);
	}
	if (n_main < 0 || files->single)
		return n_main;

	config->tenants_only = true;
	r = config_find(files->tenants ? one : tenant_directories, NULL, files->tenants != NULL,
			&files->trust, &tenants, config->diagnostics);
	n_tenants = read_found(config, r, &tenants, &files->trust);
	return n_tenants < 0 ? n_tenants : n_main + n_tenants;
}

int config_load(const struct config_files *files, struct settings **ret,
		struct diagnostics *diagnostics)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	struct config config = { .names = files->names, .diagnostics = diagnostics };
	int n = settings_new(&settings);

	config.settings = settings;
	if (n >= 0)
		n = read_all(&config, files);
	if (n == -ENOMEM)
		diagnostics_add(diagnostics, true, "configuration: out of memory");
	if (n < 0)
		return n;
	for (size_t i = 0; i < settings->n_tenants; i++) {
		check_tenant(&config, &settings->tenants[i]);
		check_floor(&config, &settings->tenants[i]);
		check_effect(&config, i);
	}
	for (size_t i = 0; i < settings->n_tenants; i++)
		check_undone(&config, i);
	for (size_t i = 0; i < settings->n_shares; i++)
		check_share(&config, &settings->shares[i], files->single);
	if (settings->simulate_at && settings->backend != BACKEND_SIMULATED)
		diagnostics_add(diagnostics, false,
				"%s: simulate: no effect without backend = simulated",
				settings->simulate_at);
	if (config.errors > 0)
		return -EINVAL;
	*ret = TAKE_PTR(settings);
	return n == 0 && !files->tenants;
}

int config_load_file(const char *path, struct settings **ret, struct diagnostics *diagnostics)
{
	const struct config_files files = { .config = path, .single = true };

	return config_load(&files, ret, diagnostics);
}
