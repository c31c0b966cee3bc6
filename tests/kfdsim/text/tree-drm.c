/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/base.h"
#include "kfdsim/text/text.h"

/*
 * class/drm: the cards and render nodes that drm_sysfs.c and drm_minor_register() make, and of
 * their PCI device what the PCI core and amdgpu_vram_mgr.c tell. Links of a machine are directories
 * here. A partition of a card other than the first has a render node and no PCI device.
 */

#define DRM_MAJOR 226U
#define ADDRESS 12 /* characters of 0000:03:00.0 */

enum file { CLASS, NODE, DEV, DEVICE, VENDOR, DEVICE_ID, UEVENT, VRAM_TOTAL, VRAM_USED };

static const struct {
	const char *path; /* below a node's */
	enum file file;
} files[] = {
	{ "dev", DEV },
	{ "device", DEVICE },
	{ "device/vendor", VENDOR },
	{ "device/device", DEVICE_ID },
	{ "device/uevent", UEVENT },
	{ "device/mem_info_vram_total", VRAM_TOTAL },
	{ "device/mem_info_vram_used", VRAM_USED },
};

struct place {
	enum file file;
	const struct sim_gpu *gpu;
	unsigned minor;
};

static bool first_of_card(const struct sim_gpu *gpu)
{
	const char *partition = strchr(gpu->info.name, '/');

	return !partition || strcmp(partition, "/0") == 0;
}

/* The n-th node, render nodes and cards in turn; -ENOENT: there is none. */
static int node_of(const struct sim *sim, size_t n, struct place *place, char name[32])
{
	const struct sim_gpu *gpu = &sim->gpus[n / 2];
	unsigned card = 0;

	*place = (struct place){ .gpu = gpu, .minor = gpu->minor };
	snprintf(name, 32, "renderD%u", gpu->minor);
	if (gpu->gone || n % 2 == 0)
		return gpu->gone ? -ENOENT : 0;
	for (size_t i = 0; i < gpu->index; i++)
		card += first_of_card(&sim->gpus[i]);
	place->minor = card;
	snprintf(name, 32, "card%u", card);
	return first_of_card(gpu) ? 0 : -ENOENT;
}

static int find_file(const char *path, struct place *place)
{
	if (*path == '\0') {
		place->file = NODE;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (strcmp(files[i].path, path + 1) == 0) {
			place->file = files[i].file;
			return place->file == DEV || first_of_card(place->gpu) ? 0 : -ENOENT;
		}
	return -ENOENT;
}

/* The GPU whose card or render node has this name. */
static int find_node(const struct sim *sim, const char *name, size_t length, struct place *place)
{
	char of_gpu[32];

	for (size_t i = 0; i < 2 * sim->n_gpus; i++) {
		if (node_of(sim, i, place, of_gpu) == 0 && strlen(of_gpu) == length &&
		    strncmp(of_gpu, name, length) == 0)
			return 0;
	}
	return -ENOENT;
}

static int find_place(const struct sim *sim, const char *path, struct place *place)
{
	size_t length = strcspn(path, "/");
	int r;

	*place = (struct place){ .file = CLASS };
	if (length == 0)
		return 0;
	r = find_node(sim, path, length, place);
	return r < 0 ? r : find_file(path + length, place);
}

enum tree_kind drm_find(const struct sim *sim, const char *path)
{
	struct place place;

	if (find_place(sim, path, &place) < 0)
		return TREE_NONE;
	return place.file == CLASS || place.file == NODE || place.file == DEVICE ? TREE_DIRECTORY
										 : TREE_TEXT;
}

static int each_node(const struct sim *sim, tree_each_t *each, void *userdata)
{
	struct place place;
	char name[32];
	int r = 0;

	for (size_t i = 0; i < 2 * sim->n_gpus && r >= 0; i++)
		if (node_of(sim, i, &place, name) == 0)
			r = each(name, TREE_DIRECTORY, userdata);
	return r < 0 ? r : 0;
}

int drm_each(const struct sim *sim, const char *path, tree_each_t *each, void *userdata)
{
	struct place place;
	int r = find_place(sim, path, &place);

	if (r < 0 || place.file == CLASS)
		return r < 0 ? r : each_node(sim, each, userdata);
	for (size_t i = 0; i < ARRAY_SIZE(files) && r >= 0; i++) {
		const char *name = strrchr(files[i].path, '/');

		if ((name != NULL) != (place.file == DEVICE) ||
		    (files[i].file != DEV && !first_of_card(place.gpu)))
			continue;
		r = each(name ? name + 1 : files[i].path,
			 files[i].file == DEVICE ? TREE_DIRECTORY : TREE_TEXT, userdata);
	}
	return r < 0 ? r : 0;
}

/* Of the whole card, whatever its partitions. */
static void print_vram(const struct sim *sim, const struct place *place, FILE *out)
{
	uint64_t total = 0, used = 0;

	for (size_t i = 0; i < sim->n_gpus; i++)
		if (strncmp(sim->gpus[i].info.name, place->gpu->info.name, ADDRESS) == 0) {
			total += sim->gpus[i].info.vram_bytes;
			used += sim->gpus[i].vram_used;
		}
	fprintf(out, "%" PRIu64 "\n", place->file == VRAM_TOTAL ? total : used);
}

int drm_print(const struct sim *sim, const char *path, FILE *out)
{
	struct place place;
	int r = find_place(sim, path, &place);

	if (r < 0)
		return r;
	switch (place.file) {
	case DEV: fprintf(out, "%u:%u\n", DRM_MAJOR, place.minor); return 0;
	case VENDOR: fprintf(out, "0x1002\n"); return 0;
	case DEVICE_ID: fprintf(out, "0x%04x\n", place.gpu->node.device_id); return 0;
	case UEVENT:
		fprintf(out, "DRIVER=amdgpu\nPCI_ID=1002:%04X\nPCI_SLOT_NAME=%.*s\n",
			place.gpu->node.device_id, ADDRESS, place.gpu->info.name);
		return 0;
	case VRAM_TOTAL:
	case VRAM_USED: print_vram(sim, &place, out); return 0;
	default: return -EISDIR;
	}
}
