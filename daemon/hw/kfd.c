/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/hw-private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hw/kfd-gpu.h"

#define TOPOLOGY "class/kfd/kfd/topology"
#define TRIES 4

struct hw *hw_close(struct hw *hw)
{
	if (!hw)
		return NULL;

	kfd_dir_close(&hw->sys);
	free(hw);
	return NULL;
}

bool hw_is_simulated(const struct hw *hw)
{
	return hw->sys.fd < 0;
}

const char *hw_name(const struct hw *hw)
{
	return hw_is_simulated(hw) ? "simulated" : "kfd";
}

int hw_kfd_open(const char *where, struct hw **ret, struct diagnostics *diagnostics)
{
	_cleanup_(hw_closep) struct hw *hw = calloc(1, sizeof(*hw));
	int n, r;

	if (!hw)
		return -ENOMEM;

	n = snprintf(hw->sys.path, sizeof(hw->sys.path), "%s", where);
	hw->sys.fd = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = hw->sys.fd < 0 ? -errno : (size_t)n >= sizeof(hw->sys.path) ? -ENAMETOOLONG : 0;
	if (r < 0) {
		diagnostics_add(diagnostics, true, "%s: %s", where, kfd_trouble(r));
		return r;
	}
	*ret = TAKE_PTR(hw);
	return 0;
}

void hw_kfd_set_maps(struct hw *hw, const char *dir)
{
	snprintf(hw->maps, sizeof(hw->maps), "%s", dir);
}

/* ---- module parameters --------------------------------------------------------------- */

#define PARAMETERS "module/amdgpu/parameters"

/* otherwise: the value if the file cannot be read, which `assumed` describes. */
static unsigned read_parameter(const struct kfd_dir *sys, const char *name, unsigned max,
			       unsigned otherwise, const char *assumed,
			       struct diagnostics *diagnostics)
{
	char path[64];
	uint64_t value;
	int r;

	snprintf(path, sizeof(path), PARAMETERS "/%s", name);
	r = kfd_read_number(sys, path, max, &value);
	if (r == 0)
		return (unsigned)value;
	diagnostics_add(diagnostics, false, "%s/%s: %s; %s", sys->path, path, kfd_trouble(r),
			assumed);
	return otherwise;
}

static enum scheduler read_scheduler(const struct kfd_dir *sys, struct diagnostics *diagnostics)
{
	static const enum scheduler policies[] = {
		SCHEDULER_HWS,
		SCHEDULER_HWS_STRICT,
		SCHEDULER_NONE,
		SCHEDULER_UNKNOWN,
	};

	return policies[read_parameter(sys, "sched_policy", 2, 3, "the scheduler is unknown",
				       diagnostics)];
}

/* -1, the default, means no limit; 0 means one process (pm_calc_rlib_size() in
 * kfd_packet_manager.c). */
static unsigned read_max_processes(const struct kfd_dir *sys, struct diagnostics *diagnostics)
{
	char text[64];

	if (kfd_read(sys, PARAMETERS "/hws_max_conc_proc", text, sizeof(text)) == 0 &&
	    text[0] == '-')
		return UINT_MAX;
	return max_u(read_parameter(sys, "hws_max_conc_proc", INT_MAX, UINT_MAX,
				    "assuming no limit", diagnostics),
		     1);
}

/* Grants do not depend on it, so a missing file is not reported. */
static unsigned read_preemption(const struct kfd_dir *sys, struct diagnostics *diagnostics)
{
	if (faccessat(sys->fd, PARAMETERS "/queue_preemption_timeout_ms", F_OK, 0) < 0 &&
	    errno == ENOENT)
		return 0;
	return read_parameter(sys, "queue_preemption_timeout_ms", INT_MAX, 0,
			      "assuming its default", diagnostics);
}

/* Since Linux 6.16; -1, the default, and 0 disable them (early_init() of gfx_v11_0.c and gfx_v12_0.c). */
static bool read_drm_queues(const struct kfd_dir *sys)
{
	uint64_t value;

	return kfd_read_number(sys, PARAMETERS "/user_queue", INT_MAX, &value) == 0 && value > 0;
}

static void read_parameters(const struct kfd_dir *sys, struct kfd_parameters *ret,
			    struct diagnostics *diagnostics)
{
	*ret = (struct kfd_parameters){
		.scheduler = read_scheduler(sys, diagnostics),
		.max_processes = read_max_processes(sys, diagnostics),
		.preemption_msec = read_preemption(sys, diagnostics),
		.drm_queues = read_drm_queues(sys),
	};
}

/* ---- topology ------------------------------------------------------------------------ */

/* The topology as read once. */
struct listing {
	struct found {
		struct kfd_node node;
		struct gpu_info info;
		bool left_out; /* kept for kfd_node_same_device() only */
	} found[KFD_NODES];
	size_t n_found;
	struct gpu_info gpus[KFD_NODES];
	size_t n_gpus;
	const char *maps;
	struct diagnostics diagnostics;
};

static struct listing *listing_free(struct listing *listing)
{
	diagnostics_done(&listing->diagnostics);
	free(listing);
	return NULL;
}
DEFINE_CLEANUP(struct listing *, listing_free)

/* A node that is invalid is left out; a negative errno: it cannot be read now. */
static int read_node(const struct kfd_dir *nodes, unsigned number, struct listing *listing)
{
	_cleanup_dir_ struct kfd_dir dir = KFD_DIR_NONE;
	struct found *found = &listing->found[listing->n_found];
	char name[16];
	int r;

	snprintf(name, sizeof(name), "%u", number);
	r = kfd_dir_open(nodes, name, &dir);
	if (r < 0) {
		diagnostics_add(&listing->diagnostics, true, "%s/%s: %s", nodes->path, name,
				kfd_trouble(r));
		return kfd_is_unread(r) ? r : 0;
	}
	r = kfd_node_read(&dir, &found->node, &listing->diagnostics);
	if (r <= 0)
		return kfd_is_unread(r) ? r : 0;
	r = kfd_gpu_read(&dir, &found->node, listing->maps, &found->info, &listing->diagnostics);
	if (kfd_is_lacking(r))
		return r;
	found->left_out = r < 0;
	listing->n_found++;
	return 0;
}

static int read_nodes(const struct kfd_dir *topology, struct listing *listing)
{
	_cleanup_dir_ struct kfd_dir nodes = KFD_DIR_NONE;
	unsigned numbers[KFD_NODES];
	int n, r = 0;

	n = kfd_dir_open_numbers(topology, "nodes", numbers, KFD_NODES, &nodes);
	if (n <= 0) {
		diagnostics_add(&listing->diagnostics, true, "%s/nodes: %s", topology->path,
				n < 0 ? kfd_trouble(n) : "has no node, not even one of the CPU");
		return -EIO;
	}
	for (int i = 0; i < n && r >= 0; i++)
		r = read_node(&nodes, numbers[i], listing);
	return r;
}

/* A single visible partition is known by its number, unless that is 0. */
static void mark_partitions(struct listing *listing)
{
	for (size_t i = 0; i < listing->n_found; i++)
		for (size_t k = 0; k < listing->n_found; k++)
			if (i != k &&
			    kfd_node_same_device(&listing->found[i].node, &listing->found[k].node))
				listing->found[i].node.partitioned = true;
}

static bool is_known(struct listing *listing, const struct found *found)
{
	const struct gpu_info *info = &found->info;

	for (size_t i = 0; i < listing->n_gpus; i++) {
		const struct gpu_info *other = &listing->gpus[i];

		if (other->kfd_gpu_id == info->kfd_gpu_id)
			diagnostics_add(&listing->diagnostics, true,
					"%s/gpu_id: %u is also that of %s; this "
					"GPU is left out",
					found->node.path, info->kfd_gpu_id, other->name);
		else if (strcmp(other->name, info->name) == 0)
			diagnostics_add(&listing->diagnostics, true,
					"%s/properties: location_id: the same as "
					"of gpu_id %u; this GPU is left out",
					found->node.path, other->kfd_gpu_id);
		else
			continue;
		return true;
	}
	return false;
}

/* The driver makes the file only for cards whose mode can be changed (amdgpu_gfx_sysfs_xcp_init()). Where that
 * cannot be found out, the card counts as one. */
static bool can_switch(const struct kfd_dir *sys, const char *gpu)
{
	char path[96];

	snprintf(path, sizeof(path), "bus/pci/devices/%.*s/available_compute_partition",
		 (int)strcspn(gpu, "/"), gpu);
	return faccessat(sys->fd, path, F_OK, 0) == 0 || errno != ENOENT;
}

/* Of an APU, KFD's banks can be memory of the machine: they are larger than what its firmware set aside,
 * and no program has more than GTT gives (amdgpu_amdkfd_get_local_mem_info(), amdgpu_ttm.c). A card, and a
 * driver without these files, has what the banks say. */
static void read_memory(const struct kfd_dir *sys, struct gpu_info *info)
{
	int length = (int)strcspn(info->name, "/");
	uint64_t set_aside, most;
	char path[96];

	snprintf(path, sizeof(path), "bus/pci/devices/%.*s/mem_info_vram_total", length,
		 info->name);
	if (kfd_read_number(sys, path, UINT64_MAX >> 8, &set_aside) < 0 ||
	    info->vram_bytes <= set_aside)
		return;
	info->system_memory = true;
	snprintf(path, sizeof(path), "bus/pci/devices/%.*s/mem_info_gtt_total", length, info->name);
	if (kfd_read_number(sys, path, UINT64_MAX >> 8, &most) == 0)
		info->vram_bytes = min_u64(info->vram_bytes, most);
}

/* Which part of the memory of its card a partition uses: with NPS4, two of eight partitions have one in common.
 * Unknown: all have one. */
static unsigned memory_of(const struct kfd_dir *sys, const struct listing *listing,
			  const struct found *found)
{
	unsigned n = 0, parts = 0;
	char path[96], text[16];

	for (size_t i = 0; i < listing->n_found; i++)
		n += kfd_node_same_device(&listing->found[i].node, &found->node);
	snprintf(path, sizeof(path), "bus/pci/devices/%.*s/current_memory_partition",
		 (int)strcspn(found->info.name, "/"), found->info.name);
	if (kfd_read(sys, path, text, sizeof(text)) < 0 || sscanf(text, "NPS%2u", &parts) != 1 ||
	    parts == 0 || n % parts != 0 || found->node.partition >= n)
		return 0;
	return found->node.partition * parts / n;
}

static int compare_names(const void *a, const void *b)
{
	const struct gpu_info *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int read_listing(const struct kfd_dir *sys, const struct kfd_dir *topology,
			struct listing *listing)
{
	struct kfd_parameters parameters = { 0 };
	int r;

	r = read_nodes(topology, listing);
	if (r < 0)
		return r;

	mark_partitions(listing);
	if (listing->n_found > 0)
		read_parameters(sys, &parameters, &listing->diagnostics);
	for (size_t i = 0; i < listing->n_found; i++) {
		struct found *found = &listing->found[i];

		if (found->left_out)
			continue;
		kfd_gpu_finish(&found->node, &parameters, &found->info);
		found->info.switches = can_switch(sys, found->info.name);
		read_memory(sys, &found->info);
		found->info.memory = memory_of(sys, listing, found);
		if (!is_known(listing, found))
			listing->gpus[listing->n_gpus++] = found->info;
	}
	qsort(listing->gpus, listing->n_gpus, sizeof(listing->gpus[0]), compare_names);
	return 0;
}

/* The driver increments generation_id when nodes come or go: if it is the same before and after,
 * the nodes belong together. */
static void read_generation(const struct kfd_dir *topology, char buf[64])
{
	if (kfd_read(topology, "generation_id", buf, 64) < 0)
		buf[0] = '\0';
}

static int try_listing(const struct hw *hw, const struct kfd_dir *topology, struct listing **ret)
{
	_cleanup_(listing_freep) struct listing *listing = calloc(1, sizeof(*listing));
	char before[64], after[64];
	int r;

	if (!listing)
		return -ENOMEM;

	listing->maps = hw->maps;
	read_generation(topology, before);
	r = read_listing(&hw->sys, topology, listing);
	read_generation(topology, after);
	if (strcmp(before, after) != 0)
		return -EAGAIN;
	*ret = TAKE_PTR(listing);
	return r;
}

static int copy_listing(const struct listing *listing, int result, struct gpu_info *gpus,
			size_t max, struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < listing->diagnostics.n; i++)
		diagnostics_add(diagnostics, listing->diagnostics.list[i].error, "%s",
				listing->diagnostics.list[i].text);
	if (result < 0)
		return result;

	for (size_t i = 0; i < listing->n_gpus && i < max; i++)
		gpus[i] = listing->gpus[i];
	return (int)listing->n_gpus;
}

static int list_simulated(const struct hw *hw, struct gpu_info *gpus, size_t max)
{
	for (size_t i = 0; i < hw->n && i < max; i++)
		gpus[i] = hw->gpus[i];
	return (int)hw->n;
}

int hw_list(struct hw *hw, struct gpu_info *gpus, size_t max, struct diagnostics *diagnostics)
{
	const struct kfd_dir *sys = &hw->sys;
	_cleanup_(listing_freep) struct listing *listing = NULL;
	_cleanup_dir_ struct kfd_dir topology = KFD_DIR_NONE;
	int r;

	if (hw_is_simulated(hw))
		return list_simulated(hw, gpus, max);
	r = kfd_dir_open(sys, TOPOLOGY, &topology);
	if (r < 0) {
		diagnostics_add(diagnostics, r != -ENOENT, "%s/" TOPOLOGY ": %s%s", sys->path,
				kfd_trouble(r),
				r == -ENOENT ? ": no AMD GPU here, or amdgpu is not loaded" : "");
		return r == -ENOENT ? 0 : -EIO;
	}

	r = -EAGAIN;
	for (unsigned i = 0; i < TRIES && r == -EAGAIN; i++)
		r = try_listing(hw, &topology, &listing);
	if (r == -EAGAIN) {
		diagnostics_add(diagnostics, true,
				"%s/generation_id: changes while the nodes are read; try "
				"again when the partition mode no longer changes",
				topology.path);
		return -EIO;
	}
	return listing ? copy_listing(listing, r, gpus, max, diagnostics) : r;
}

/* The count restarts when the driver is loaded again; then the directory has another inode. */
uint64_t hw_generation(struct hw *hw)
{
	_cleanup_dir_ struct kfd_dir topology = KFD_DIR_NONE;
	uint64_t count;
	struct stat st;

	if (hw_is_simulated(hw))
		return 1; /* profiles are read once */
	if (kfd_dir_open(&hw->sys, TOPOLOGY, &topology) < 0 || fstat(topology.fd, &st) < 0 ||
	    kfd_read_number(&topology, "generation_id", UINT32_MAX, &count) < 0)
		return UINT64_MAX;
	return (uint64_t)st.st_ino << 32 | count;
}
