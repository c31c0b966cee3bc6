/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TOPOLOGY "class/kfd/kfd/topology"
#define TRIES 4

/* One reading of the topology. */
struct listing {
	struct found {
		struct kfd_node node;
		struct gpu_info info;
		bool left_out; /* but there: what shares its PCI device is a partition */
	} found[KFD_NODES];
	size_t n_found;
	struct gpu_info gpus[KFD_NODES];
	size_t n_gpus;
	struct diagnostics diagnostics;
};

static struct listing *listing_free(struct listing *listing)
{
	if (!listing)
		return NULL;

	diagnostics_done(&listing->diagnostics);
	free(listing);
	return NULL;
}
DEFINE_CLEANUP(struct listing *, listing_free)

static void read_node(const struct kfd_dir *nodes, unsigned number, struct listing *listing)
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
		return;
	}
	if (kfd_node_read(&dir, &found->node, &listing->diagnostics) <= 0)
		return;
	found->left_out = kfd_gpu_read(&dir, &found->node, &found->info, &listing->diagnostics) < 0;
	listing->n_found++;
}

static int read_nodes(const struct kfd_dir *topology, struct listing *listing)
{
	_cleanup_dir_ struct kfd_dir nodes = KFD_DIR_NONE;
	unsigned numbers[KFD_NODES];
	int n;

	n = kfd_dir_open(topology, "nodes", &nodes);
	if (n == 0)
		n = kfd_dir_numbers(&nodes, numbers, KFD_NODES);
	if (n <= 0) {
		diagnostics_add(&listing->diagnostics, true, "%s/nodes: %s", topology->path,
				n < 0 ? kfd_trouble(n) : "holds no node, not even the CPU's");
		return -EIO;
	}
	for (int i = 0; i < n; i++)
		read_node(&nodes, numbers[i], listing);
	return 0;
}

/* A partition that is seen alone is still one: its number says so, unless it is 0. */
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
					"%s/gpu_id: %u is that of %s too; this "
					"GPU is left out",
					found->node.path, info->kfd_gpu_id, other->name);
		else if (strcmp(other->name, info->name) == 0)
			diagnostics_add(&listing->diagnostics, true,
					"%s/properties: location_id: that of "
					"gpu_id %u too; this GPU is left out",
					found->node.path, other->kfd_gpu_id);
		else
			continue;
		return true;
	}
	return false;
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
		kfd_parameters_read(sys, &parameters, &listing->diagnostics);
	for (size_t i = 0; i < listing->n_found; i++) {
		struct found *found = &listing->found[i];

		if (found->left_out)
			continue;
		kfd_gpu_finish(&found->node, &parameters, &found->info);
		if (!is_known(listing, found))
			listing->gpus[listing->n_gpus++] = found->info;
	}
	qsort(listing->gpus, listing->n_gpus, sizeof(listing->gpus[0]), compare_names);
	return 0;
}

/* The driver counts generation_id up when nodes come or go: what was read between two
 * equal ones belongs together. */
static void read_generation(const struct kfd_dir *topology, char buf[64])
{
	if (kfd_read(topology, "generation_id", buf, 64) < 0)
		buf[0] = '\0';
}

static int try_listing(const struct kfd_dir *sys, const struct kfd_dir *topology,
		       struct listing **ret)
{
	_cleanup_(listing_freep) struct listing *listing = calloc(1, sizeof(*listing));
	char before[64], after[64];
	int r;

	if (!listing)
		return -ENOMEM;

	read_generation(topology, before);
	r = read_listing(sys, topology, listing);
	read_generation(topology, after);
	if (strcmp(before, after) != 0)
		return -EAGAIN;
	*ret = TAKE_PTR(listing);
	return r;
}

static int hand_out(const struct listing *listing, int result, struct gpu_info *gpus, size_t max,
		    struct diagnostics *diagnostics)
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

int kfd_topology_list(const struct kfd_dir *sys, struct gpu_info *gpus, size_t max,
		      struct diagnostics *diagnostics)
{
	_cleanup_(listing_freep) struct listing *listing = NULL;
	_cleanup_dir_ struct kfd_dir topology = KFD_DIR_NONE;
	int r;

	r = kfd_dir_open(sys, TOPOLOGY, &topology);
	if (r < 0) {
		diagnostics_add(diagnostics, r != -ENOENT, "%s/" TOPOLOGY ": %s%s", sys->path,
				kfd_trouble(r),
				r == -ENOENT ? ": no AMD GPU here, or amdgpu is not loaded" : "");
		return r == -ENOENT ? 0 : -EIO;
	}

	r = -EAGAIN;
	for (unsigned i = 0; i < TRIES && r == -EAGAIN; i++)
		r = try_listing(sys, &topology, &listing);
	if (r == -EAGAIN) {
		diagnostics_add(diagnostics, true,
				"%s/generation_id: changes while the nodes are read; try "
				"again when the partition mode is settled",
				topology.path);
		return -EIO;
	}
	return listing ? hand_out(listing, r, gpus, max, diagnostics) : r;
}

/* The driver counts anew when it is loaded anew; then its directory is another, too. */
uint64_t kfd_topology_generation(const struct kfd_dir *sys)
{
	_cleanup_dir_ struct kfd_dir topology = KFD_DIR_NONE;
	uint64_t count;
	struct stat st;

	if (kfd_dir_open(sys, TOPOLOGY, &topology) < 0 || fstat(topology.fd, &st) < 0 ||
	    kfd_read_number(&topology, "generation_id", UINT32_MAX, &count) < 0)
		return UINT64_MAX;
	return (uint64_t)st.st_ino << 32 | count;
}
