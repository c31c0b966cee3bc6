/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/oci/oci-gpus.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/oci/variables.h"
#include "core/policy/request.h"
#include "dbus/names.h"
#include "util/number.h"

#define RENDER "/dev/dri/renderD"
#define DRM_MAJOR 226
#define RENDER_FIRST 128U /* minors of render nodes (drivers/gpu/drm/drm_drv.c) */
#define RENDER_LAST 255U

/* ---- the render nodes of the container ----------------------------------------------------- */

struct nodes {
	size_t n; /* 0: the configuration names none, so that it may have all */
	unsigned minors[RENDER_LAST - RENDER_FIRST + 1];
};

static bool has_node(const struct nodes *nodes, uint64_t minor)
{
	for (size_t i = 0; i < nodes->n; i++)
		if (nodes->minors[i] == minor)
			return true;
	return false;
}

static void add_node(struct nodes *nodes, uint64_t minor)
{
	if (minor >= RENDER_FIRST && minor <= RENDER_LAST && !has_node(nodes, minor))
		nodes->minors[nodes->n++] = (unsigned)minor;
}

static const char *text_of(struct json_object *entry, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(entry, key, &value) ? json_object_get_string(value) ?: ""
							     : "";
}

/* Rootful engines add devices, and rootless ones bind the files. */
static void find_nodes(struct json_object *config, struct nodes *ret)
{
	struct json_object *devices = config_member(config, "linux", "devices"), *mounts = NULL;
	uint64_t minor;

	*ret = (struct nodes){ .n = 0 };
	for (size_t i = 0; i < config_length(devices); i++) {
		struct json_object *device = json_object_array_get_idx(devices, i);

		if (strtol(text_of(device, "major"), NULL, 10) == DRM_MAJOR &&
		    number_parse(text_of(device, "minor"), 0, RENDER_LAST, &minor) >= 0)
			add_node(ret, minor);
	}
	json_object_object_get_ex(config, "mounts", &mounts);
	for (size_t i = 0; i < config_length(mounts); i++) {
		const char *source = text_of(json_object_array_get_idx(mounts, i), "source");

		if (strncmp(source, RENDER, strlen(RENDER)) == 0 &&
		    number_parse(source + strlen(RENDER), 0, RENDER_LAST, &minor) >= 0)
			add_node(ret, minor);
	}
}

static void describe_nodes(const struct nodes *nodes, char *buf, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < nodes->n && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s" RENDER "%u", i ? ", " : "",
					 nodes->minors[i]);
}

/* ---- the GPUs of gpuarbd --------------------------------------------------------------------- */

struct gpu {
	char name[GPU_NAME_MAX]; /* "": there is none with this index */
	bool shown;              /* the container has its render node */
	bool named_only;
};

static int read_gpu(sd_bus *bus, unsigned index, const struct nodes *nodes, struct gpu *ret,
		    sd_bus_error *error)
{
	_cleanup_(freep) char *name = NULL;
	uint32_t kfd_gpu_id = 0, minor;
	int named_only = 0, r;
	char path[64];

	snprintf(path, sizeof(path), GPUARB_PATH_GPU "/%u", index);
	r = sd_bus_get_property_string(bus, GPUARB_BUS_NAME, path, GPUARB_INTERFACE_GPU, "Name",
				       error, &name);
	if (r >= 0)
		r = sd_bus_get_property_trivial(bus, GPUARB_BUS_NAME, path, GPUARB_INTERFACE_GPU,
						"KfdGpuId", error, 'u', &kfd_gpu_id);
	if (r >= 0)
		r = sd_bus_get_property_trivial(bus, GPUARB_BUS_NAME, path, GPUARB_INTERFACE_GPU,
						"NamedOnly", error, 'b', &named_only);
	if (r < 0)
		return r;
	minor = oci_render_minor(kfd_gpu_id);
	*ret = (struct gpu){ .shown = minor == 0 || nodes->n == 0 || has_node(nodes, minor),
			     .named_only = named_only };
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	return 0;
}

/* A GPU that was removed leaves a gap. */
static int read_gpus(sd_bus *bus, const struct nodes *nodes, struct gpu ret[static REQUEST_WANTS],
		     char why[static OCI_LEASE_PROBLEM])
{
	int r = 0;

	for (unsigned i = 0; r >= 0 && i < REQUEST_WANTS; i++) {
		sd_bus_error error = SD_BUS_ERROR_NULL;

		ret[i] = (struct gpu){ .name = "" };
		r = read_gpu(bus, i, nodes, &ret[i], &error);
		if (sd_bus_error_has_name(&error, GPUARB_ERROR_NO_SUCH_GPU))
			r = 0;
		if (r < 0)
			snprintf(why, OCI_LEASE_PROBLEM, "%s",
				 error.message ? error.message : strerror(-r));
		sd_bus_error_free(&error);
	}
	return r;
}

static bool is_named(const char *item, unsigned index, const struct gpu *gpu)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", index);
	return strcmp(item, number) == 0 || strcmp(item, gpu->name) == 0;
}

/* Whether a list names the GPU; NULL and "any": each. */
static bool asks_for(const char *list, unsigned index, const struct gpu *gpu)
{
	char item[GPU_NAME_MAX];

	if (!list || strcmp(list, "any") == 0)
		return true;
	while (want_next_gpu(&list, item))
		if (is_named(item, index, gpu))
			return true;
	return false;
}

/* ---- the wants ----------------------------------------------------------------------------------- */

struct choice {
	size_t asked,
		shown; /* GPUs that the want asks for, and how many of them the container has */
	char list[WANT_GPUS]; /* the latter */
};

static void choose(struct gpu gpus[static REQUEST_WANTS], const char *list, struct choice *ret)
{
	size_t used = 0;

	*ret = (struct choice){ .asked = 0 };
	for (unsigned i = 0; i < REQUEST_WANTS; i++) {
		if (!*gpus[i].name || !asks_for(list, i, &gpus[i]))
			continue;
		ret->asked++;
		if (!gpus[i].shown)
			continue;
		if (used < sizeof(ret->list))
			used += (size_t)snprintf(ret->list + used, sizeof(ret->list) - used, "%s%s",
						 ret->shown ? "," : "", gpus[i].name);
		ret->shown++;
	}
}

/* A want for each GPU of the container, as gpuarbctl has it for --gpu=all. */
static void want_all(struct gpu gpus[static REQUEST_WANTS], bool restricted,
		     struct command *command)
{
	const struct typed_want typed = command->wants[0];

	command->n_wants = 0;
	for (unsigned i = 0; i < REQUEST_WANTS; i++) {
		struct typed_want *want = &command->wants[command->n_wants];

		if (!*gpus[i].name || !gpus[i].shown || (gpus[i].named_only && !restricted))
			continue;
		*want = typed;
		memcpy(want->gpu, gpus[i].name, sizeof(want->gpu));
		want->want.gpu = want->gpu;
		command->n_wants++;
	}
}

static int refuse(const char *list, const struct nodes *nodes, char why[static OCI_LEASE_PROBLEM])
{
	char shown[256] = "none at all";

	describe_nodes(nodes, shown, sizeof(shown));
	snprintf(why, OCI_LEASE_PROBLEM,
		 ANNOTATION "gpu=%.80s: the container has no render node of such a GPU, but %s",
		 list ?: "any", shown);
	return -ENODEV;
}

int oci_gpus_choose(sd_bus *bus, struct json_object *config, struct command *command,
		    char why[static OCI_LEASE_PROBLEM])
{
	const char *list = command->wants[0].want.gpu;
	bool all = list && strcmp(list, "all") == 0;
	struct gpu gpus[REQUEST_WANTS];
	struct choice choice;
	struct nodes nodes;
	int r;

	find_nodes(config, &nodes);
	if (nodes.n == 0 && !all)
		return 0;
	r = read_gpus(bus, &nodes, gpus, why);
	if (r < 0)
		return r;
	choose(gpus, all ? NULL : list, &choice);
	if (all)
		want_all(gpus, nodes.n > 0, command);
	if (all ? command->n_wants == 0 : choice.asked > 0 && choice.shown == 0)
		return refuse(list, &nodes, why);
	if (all || choice.shown == choice.asked) /* gpuarbd knows what else a list names */
		return 0;
	command->visible = strdup(choice.list);
	command->wants[0].want.gpu = command->visible;
	if (!command->visible)
		snprintf(why, OCI_LEASE_PROBLEM, "out of memory");
	return command->visible ? 0 : -ENOMEM;
}
