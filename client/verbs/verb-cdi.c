/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * cdi: holds the lease of a share, and keeps the file with which container engines know the share as the device
 * gpuarb.org/share=NAME. The format is version 0.5.0 of CDI: podman 4.3 takes no later one.
 *
 * The file is there while the lease is granted. A hook in it binds the container's first process to the lease, and fails
 * for a lease that has ended: no container starts with a file that a killed gpuarbctl has left.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "client/doctor/service.h"
#include "client/oci/variables.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/verbs/verb.h"
#include "util/fd.h"

#define INTO "/run/cdi"
#define FILES 512

/* ---- the share ------------------------------------------------------------------------------ */

static int load_share(const struct command *command, struct settings **ret_settings,
		      const struct share_settings **ret)
{
	const struct config_files files = { .config = command->config,
					    .trust = service_trust(),
					    .single = command->config != NULL };
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	int r = config_load(&files, ret_settings, &diagnostics);

	for (size_t i = 0; r < 0 && i < diagnostics.n; i++)
		if (diagnostics.list[i].error)
			return fail(command, EXIT_CONFIGURATION, "%s", diagnostics.list[i].text);
	if (r < 0)
		return fail(command, EXIT_CONFIGURATION, "%s", strerror(-r));
	*ret = settings_share(*ret_settings, command->rest[0]);
	return *ret ? EXIT_OK
		    : fail(command, EXIT_CONFIGURATION,
			   "there is no share '%.80s': write [share %.80s] into gpuarbd.conf",
			   command->rest[0], command->rest[0]);
}

/* name: lives as long as the command. With the token the next gpuarbctl gets the lease that containers still hold. */
static void take_share(struct command *command, const struct share_settings *share,
		       const char *name)
{
	struct typed_want *typed = &command->wants[0];

	typed->want.gpu = share->gpu;
	typed->want.queues = share->queues;
	typed->want.processes = share->processes;
	typed->want.vram = share->vram;
	if (share->cus.kind == LIMIT_PERCENT)
		typed->share.cus = (unsigned)share->cus.value;
	else
		typed->want.cus = (uint32_t)share->cus.value;
	if (share->class != SHARE_CLASS_OF_TENANT)
		command->options.lease_class = class_names[share->class];
	command->options.tenant = share->tenant;
	command->options.name = command->options.token = name;
	command->options.wait_usec = GPUARB_FOREVER;
	command->options.requeue = true;
}

/* ---- the file ------------------------------------------------------------------------------- */

static void add_variables(struct json_object *edits, struct gpuarb_lease *lease)
{
	size_t n = gpuarb_lease_partitions(lease);
	_cleanup_(freep) struct gpuarb_partition *parts = calloc(n, sizeof(*parts));
	_cleanup_(freep) char *variables = NULL;
	struct json_object *env = json_list(edits, "env");

	for (size_t i = 0; parts && i < n; i++)
		parts[i] = *gpuarb_lease_partition(lease, i);
	variables = parts ? oci_variables(parts, n, gpuarb_lease_id(lease)) : NULL;
	for (const char *v = variables ? variables : ""; *v; v += strlen(v) + 1)
		if (strchr(v, '=')) /* CDI removes no variables */
			json_text(env, NULL, v);
}

static void add_hook(struct json_object *edits, uint64_t lease)
{
	struct json_object *hook = json_map(json_list(edits, "hooks"), NULL), *args;
	char id[24];

	snprintf(id, sizeof(id), "%" PRIu64, lease);
	json_text(hook, "hookName", "createRuntime");
	json_text(hook, "path", GPUARB_OCI);
	args = json_list(hook, "args");
	json_text(args, NULL, "gpuarb-createruntime");
	json_text(args, NULL, id);
}

static struct json_object *make_spec(const char *share, struct gpuarb_lease *lease)
{
	struct json_object *map = json_map(NULL, NULL), *device, *edits;

	JSON_FIELDS(map, ("cdiVersion", "0.5.0"), ("kind", "gpuarb.org/share"));
	device = json_map(json_list(map, "devices"), NULL);
	json_text(device, "name", share);
	edits = json_map(device, "containerEdits");
	add_variables(edits, lease);
	add_hook(edits, gpuarb_lease_id(lease));
	return map;
}

/* Engines read the directory at any moment. They ignore names that do not end with .json. */
static int write_spec(const struct command *command, struct gpuarb_lease *lease, const char *path)
{
	struct json_object *map = make_spec(command->rest[0], lease);
	char part[FILES + 8];
	int r;

	snprintf(part, sizeof(part), "%s.part", path);
	r = json_object_to_file_ext(part, map,
				    JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
	json_object_put(map);
	if (r < 0)
		return fail(command, EXIT_FAILED, "%s: %s", part, strerror(errno));
	if (rename(part, path) < 0)
		return fail(command, EXIT_FAILED, "%s: %s", path, strerror(errno));
	return EXIT_OK;
}

static void file_path(const struct command *command, const char *suffix, char path[static FILES])
{
	snprintf(path, FILES, "%.400s/gpuarb-share-%s%s", command->into ? command->into : INTO,
		 command->rest[0], suffix);
}

/* One at a time: another one would delete the file, or write what has changed since. The lock ends with this process. */
static int lock_spec(const struct command *command, int *ret)
{
	char path[FILES];
	int fd;

	file_path(command, ".lock", path);
	fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fail(command, EXIT_FAILED, "%s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		(void)(errno == EWOULDBLOCK
			       ? fail(command, EXIT_FAILED,
				      "%s: another gpuarbctl cdi keeps the share '%.80s': stop it, "
				      "perhaps with systemctl stop gpuarb-share@%.80s",
				      path, command->rest[0], command->rest[0])
			       : fail(command, EXIT_FAILED, "%s: %s", path, strerror(errno)));
		close(fd);
		return EXIT_FAILED;
	}
	*ret = fd;
	return EXIT_OK;
}

/* lease NULL: it is not held yet, or no more. */
static int keep_spec(const struct command *command, struct gpuarb_lease *lease)
{
	char path[FILES];

	file_path(command, ".json", path);
	if (lease && strcmp(gpuarb_lease_state(lease), "granted") == 0)
		return write_spec(command, lease, path);
	if (unlink(path) < 0 && errno != ENOENT)
		return fail(command, EXIT_FAILED, "%s: %s", path, strerror(errno));
	return EXIT_OK;
}

int run_cdi(struct command *command)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	const struct share_settings *share;
	_cleanup_fd_ int lock = -1; /* until the file is gone */
	char name[REQUEST_TEXT];
	int r = load_share(command, &settings, &share), unkept;

	if (r != EXIT_OK)
		return r;
	snprintf(name, sizeof(name), "share-%s", share->name);
	take_share(command, share, name);
	r = lock_spec(command, &lock);
	if (r == EXIT_OK)
		r = keep_spec(command, NULL);
	if (r != EXIT_OK)
		return r;
	r = reserve_and_hold(command, keep_spec);
	unkept = keep_spec(command, NULL);
	return r != EXIT_OK ? r : unkept;
}
