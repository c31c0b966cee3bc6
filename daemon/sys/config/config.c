/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/config/config-keys.h"
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

/* A tenant while the files are read, and its place in them. */
struct row {
	struct tenant tenant;
	char *file;
	unsigned line;
	bool matches; /* it has match-user or match-group, valid or not */
};

/* The configuration while its files are read. */
struct config {
	struct settings *settings;
	struct row *rows;
	size_t n_rows;
	bool tenants_only;                    /* this file may have [tenant NAME] sections only */
	const struct config_section *section; /* NULL: none, or an unknown one */
	void *target;                         /* the struct that its keys fill, or NULL */
	struct diagnostics *diagnostics;
	unsigned errors;
};

/* ---- files --------------------------------------------------------------------------- */

static void close_directory(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whether the directory has an entry of this name. Does not follow a symbolic link: a dangling one
 * must be reported, not ignored. -ENOENT, -EINVAL with a diagnostic. */
static int find_entry(const char *directory, const char *name, const struct trust *trust,
		      struct diagnostics *diagnostics)
{
	int fd = trust_open(directory, trust, O_PATH | O_DIRECTORY, diagnostics), r = 0;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	close(fd);
	if (r >= 0 || r == -ENOENT)
		return r;
	diagnostics_add(diagnostics, true, "%s/%s: %s", directory, name, strerror(-r));
	return -EINVAL;
}

int config_find(const char *const *directories, const char *name, const struct trust *trust,
		char **ret, struct diagnostics *diagnostics)
{
	_cleanup_(freep) char *found = NULL;
	int r, worst = 0;

	for (; *directories; directories++) {
		char *path;

		r = find_entry(*directories, name, trust, diagnostics);
		if (r < 0 && r != -ENOENT)
			worst = r;
		if (r < 0)
			continue;
		if (asprintf(&path, "%s/%s", *directories, name) < 0)
			return -ENOMEM;
		free(found);
		found = path;
	}
	if (worst == 0)
		*ret = TAKE_PTR(found);
	return worst;
}

/* Takes ownership of path. A file of the same name is replaced. */
static int list_put(struct config_list *list, char *path)
{
	char **paths;

	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(file_name(list->paths[i]), file_name(path)) != 0)
			continue;
		free(list->paths[i]);
		list->paths[i] = path;
		return 0;
	}

	paths = reallocarray(list->paths, list->n + 1, sizeof(*paths));
	if (!paths) {
		free(path);
		return -ENOMEM;
	}
	list->paths = paths;
	list->paths[list->n++] = path;
	return 0;
}

static bool is_conf(const char *name)
{
	size_t size = strlen(name);

	return *name != '.' && size > 5 && strcmp(name + size - 5, ".conf") == 0;
}

static DIR *open_directory(int fd)
{
	DIR *directory = fdopendir(fd);
	int r = errno;

	if (!directory)
		close(fd);
	errno = r;
	return directory;
}

static int list_directory(const char *path, bool required, const struct trust *trust,
			  struct config_list *list, struct diagnostics *diagnostics)
{
	int fd = trust_open(path, trust, O_RDONLY | O_DIRECTORY, diagnostics);
	_cleanup_(close_directory) DIR *directory = fd >= 0 ? open_directory(fd) : NULL;
	const struct dirent *entry;
	char *file;
	int r;

	if (fd == -ENOENT && required)
		diagnostics_add(diagnostics, true, "%s: %s", path, strerror(ENOENT));
	if (fd < 0)
		return fd == -ENOENT && !required ? 0 : -EINVAL;
	while (directory && (errno = 0, entry = readdir(directory))) {
		if (!is_conf(entry->d_name))
			continue;
		if (asprintf(&file, "%s/%s", path, entry->d_name) < 0)
			return -ENOMEM;
		r = list_put(list, file);
		if (r < 0)
			return r;
	}
	if (directory && errno == 0)
		return 0;
	diagnostics_add(diagnostics, true, "%s: %s", path, strerror(errno));
	return -EINVAL;
}

static int compare_names(const void *left, const void *right)
{
	const char *const *a = left, *const *b = right;

	return strcmp(file_name(*a), file_name(*b));
}

int config_find_all(const char *const *directories, bool required, const struct trust *trust,
		    struct config_list *list, struct diagnostics *diagnostics)
{
	int r, worst = 0;

	for (; *directories; directories++) {
		r = list_directory(*directories, required, trust, list, diagnostics);
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

static bool is_everybody(const struct row *row)
{
	return strcmp(row->tenant.name, "*") == 0;
}

static bool is_tenant_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._@";

	return strcmp(name, "*") == 0 || (*name && name[strspn(name, allowed)] == '\0');
}

static bool tenant_is_new(const struct config *config, const struct ini_place *place,
			  const char *name)
{
	for (size_t i = 0; i < config->n_rows; i++) {
		const struct row *row = &config->rows[i];

		if (strcmp(row->tenant.name, name) != 0)
			continue;
		ini_bad(place, "[tenant %s]: duplicate tenant, the first is at %s:%u", name,
			row->file, row->line);
		return false;
	}
	return true;
}

/* Returns the tenant for "[tenant NAME]", NULL after an error. */
static struct tenant *add_tenant(struct config *config, const struct ini_place *place,
				 const char *name)
{
	_cleanup_(freep) char *file = NULL;
	struct row *rows;

	if (!is_tenant_name(name)) {
		ini_bad(place,
			"[tenant %s]: invalid tenant name: use letters, digits and -._@, or * for "
			"all other users",
			name);
		return NULL;
	}
	if (!tenant_is_new(config, place, name))
		return NULL;

	file = strdup(place->file);
	rows = reallocarray(config->rows, config->n_rows + 1, sizeof(*rows));
	if (rows)
		config->rows = rows;
	if (!file || !rows || tenant_init(&rows[config->n_rows].tenant, name) < 0) {
		ini_bad(place, "out of memory");
		return NULL;
	}
	rows += config->n_rows++;
	rows->file = TAKE_PTR(file);
	rows->line = place->line;
	rows->matches = false;
	return &rows->tenant;
}

static void check_row(struct config *config, const struct row *row)
{
	struct ini_place place = {
		.file = row->file,
		.line = row->line,
		.diagnostics = config->diagnostics,
		.errors = &config->errors,
	};

	if (!row->matches && !is_everybody(row))
		ini_bad(&place,
			"[tenant %s] matches no user: add match-user or match-group; the other "
			"match keys only narrow them",
			row->tenant.name);
	if (row->tenant.alone && row->tenant.class != CLASS_REALTIME)
		ini_bad(&place,
			"[tenant %s]: alone = yes needs class = realtime: it keeps other leases "
			"out of the shader engines of realtime leases",
			row->tenant.name);
}

/* Reports tenants without a match and contradicting keys. */
static void check_tenants(struct config *config)
{
	for (size_t i = 0; i < config->n_rows; i++)
		check_row(config, &config->rows[i]);
}

/* Moves the tenants into the settings; "*", built in or from a file, is the last. -ENOMEM. */
static int settle_tenants(struct config *config)
{
	struct settings *settings = config->settings;
	struct tenant *tenants, everybody = settings->tenants[0];
	size_t n = 0;

	tenants = calloc(config->n_rows + 1, sizeof(*tenants));
	if (!tenants)
		return -ENOMEM;

	for (size_t i = 0; i < config->n_rows; i++) {
		struct tenant *tenant = &config->rows[i].tenant;

		if (is_everybody(&config->rows[i])) {
			tenant_done(&everybody);
			everybody = *tenant;
		} else {
			tenants[n++] = *tenant;
		}
		free(config->rows[i].file);
	}
	tenants[n++] = everybody;
	config->n_rows = 0;

	free(settings->tenants);
	settings->tenants = tenants;
	settings->n_tenants = n;
	return 0;
}

static void drop_tenants(struct config *config)
{
	for (size_t i = 0; i < config->n_rows; i++) {
		tenant_done(&config->rows[i].tenant);
		free(config->rows[i].file);
	}
	free(config->rows);
}

/* ---- sections and keys --------------------------------------------------------------- */

/* "0000:03:00.0" or "0000:03:00.0/2": a PCI address as the kernel writes it. */
static bool is_gpu_name(const char *name)
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

/* Returns the struct for "[gpu NAME]", NULL after an error. */
static void *add_gpu(struct config *config, const struct ini_place *place, const char *name)
{
	struct settings *settings = config->settings;
	struct gpu_settings *gpus;

	if (!is_gpu_name(name)) {
		ini_bad(place,
			"[gpu %s]: invalid GPU name: use a PCI address in lower case such as "
			"0000:03:00.0, for a partition 0000:03:00.0/2",
			name);
		return NULL;
	}
	gpus = reallocarray(settings->gpus, settings->n_gpus + 1, sizeof(*gpus));
	if (!gpus) {
		ini_bad(place, "out of memory");
		return NULL;
	}
	settings->gpus = gpus;
	gpus += settings->n_gpus++;
	*gpus = (struct gpu_settings){ 0 };
	strcpy(gpus->name, name);
	return gpus;
}

static void bad_section(const struct ini_place *place, const char *section, size_t size)
{
	static const char *const words[] = { "daemon", "gpu", "tenant", NULL };
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
			"[tenant NAME]",
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
		config->target = add_tenant(config, place, name);
	else if (config->tenants_only)
		ini_bad(place, "[%s] is not valid in tenants.d: move it to gpuarbd.conf", section);
	else if (config->section == &config_sections[CONFIG_GPU])
		config->target = add_gpu(config, place, name);
	else
		config->target = config->settings;
}

static void on_key(const struct ini_place *place, const char *section, const char *name,
		   const char *value, void *userdata)
{
	struct config *config = userdata;
	struct row *row = NULL;

	if (!*section) {
		ini_bad(place,
			"%s: key outside of a section: write it below [daemon], [gpu NAME] or "
			"[tenant NAME]",
			name);
		return;
	}
	if (!config->target)
		return; /* the section was refused */

	if (config->section == &config_sections[CONFIG_TENANT])
		row = &config->rows[config->n_rows - 1];
	if (row && is_everybody(row) && strncmp(name, "match-", 6) == 0) {
		ini_bad(place, "%s: not valid in [tenant *], which matches all other users", name);
		return;
	}
	if (row && (strcmp(name, "match-user") == 0 || strcmp(name, "match-group") == 0))
		row->matches = true;
	config_take_key(place, config->section, name, value, config->target);
}

const char *config_key(size_t i, const char **ret_section)
{
	for (size_t s = 0; s < CONFIG_KINDS; s++) {
		*ret_section = config_sections[s].name;
		if (i < config_sections[s].n_keys)
			return config_sections[s].keys[i].name;
		i -= config_sections[s].n_keys;
	}
	return NULL;
}

/* ---- loading ------------------------------------------------------------------------- */

static void config_done(struct config *config)
{
	drop_tenants(config);
	settings_free(config->settings);
}

static int config_init(struct config *config, struct diagnostics *diagnostics)
{
	*config = (struct config){ .diagnostics = diagnostics };
	return settings_new(&config->settings);
}

/* Checks what only all files together can show, and returns the settings. */
static int config_finish(struct config *config, struct settings **ret)
{
	int r;

	check_tenants(config);
	if (config->errors > 0)
		return -EINVAL;
	r = settle_tenants(config);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(config->settings);
	return 0;
}

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

/* Returns the number of files: 0 or 1. */
static int read_main_file(struct config *config, const struct config_files *files)
{
	_cleanup_(freep) char *found = NULL;
	int r = 0;

	if (!files->config)
		r = config_find(main_directories, "gpuarbd.conf", &files->trust, &found,
				config->diagnostics);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		config->errors++;
	if (!files->config && !found)
		return 0;
	read_file(config, found ? found : files->config, &files->trust);
	return 1;
}

static int read_tenants(struct config *config, const struct config_files *files)
{
	const char *const one[] = { files->tenants, NULL };
	_cleanup_(config_list_done) struct config_list list = { 0 };
	int r;

	r = config_find_all(files->tenants ? one : tenant_directories, files->tenants != NULL,
			    &files->trust, &list, config->diagnostics);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		config->errors++;

	config->tenants_only = true;
	for (size_t i = 0; i < list.n; i++)
		read_file(config, list.paths[i], &files->trust);
	return (int)list.n;
}

/* Returns the number of files. */
static int read_all(struct config *config, const struct config_files *files)
{
	int main_files = read_main_file(config, files), tenants;

	if (main_files < 0)
		return main_files;
	tenants = read_tenants(config, files);
	return tenants < 0 ? tenants : main_files + tenants;
}

int config_load(const struct config_files *files, struct settings **ret,
		struct diagnostics *diagnostics)
{
	_cleanup_(config_done) struct config config;
	int n = 0, r;

	r = config_init(&config, diagnostics);
	if (r >= 0)
		r = n = read_all(&config, files);
	if (r >= 0)
		r = config_finish(&config, ret);
	if (r == -ENOMEM)
		diagnostics_add(diagnostics, true, "configuration: out of memory");
	return r < 0 ? r : n == 0 && !files->tenants;
}

int config_load_file(const char *path, struct settings **ret, struct diagnostics *diagnostics)
{
	_cleanup_(config_done) struct config config;
	int r;

	r = config_init(&config, diagnostics);
	if (r >= 0) {
		read_file(&config, path, NULL);
		r = config_finish(&config, ret);
	}
	if (r == -ENOMEM)
		diagnostics_add(diagnostics, true, "%s: out of memory", path);
	return r;
}

int config_check_file(const char *path, struct diagnostics *diagnostics)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;

	return config_load_file(path, &settings, diagnostics);
}
