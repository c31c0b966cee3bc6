/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/hw.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hw/kfd-gpu.h"
#include "hw/kfd-read.h"

#define TOPOLOGY "class/kfd/kfd/topology"
#define TRIES 4

/* AMD GPUs as the kernel driver amdkfd shows them in sysfs. /dev/kfd is never opened: a process
 * that has it open prevents changes of the partition mode. */
struct hw {
	struct kfd_dir sys;
};

static void kfd_close(struct hw *hw)
{
	if (!hw)
		return;

	kfd_dir_close(&hw->sys);
	free(hw);
}
DEFINE_CLEANUP(struct hw *, kfd_close)

int hw_kfd_open(const char *where, struct hw **ret, struct diagnostics *diagnostics)
{
	_cleanup_(kfd_closep) struct hw *hw = calloc(1, sizeof(*hw));
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

static void read_parameters(const struct kfd_dir *sys, struct kfd_parameters *ret,
			    struct diagnostics *diagnostics)
{
	*ret = (struct kfd_parameters){
		.scheduler = read_scheduler(sys, diagnostics),
		.max_processes = read_max_processes(sys, diagnostics),
		.preemption_msec = read_preemption(sys, diagnostics),
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
	found->left_out = kfd_gpu_read(&dir, &found->node, &found->info, &listing->diagnostics) < 0;
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

static int kfd_list(struct hw *hw, struct gpu_info *gpus, size_t max,
		    struct diagnostics *diagnostics)
{
	const struct kfd_dir *sys = &hw->sys;
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
				"again when the partition mode no longer changes",
				topology.path);
		return -EIO;
	}
	return listing ? copy_listing(listing, r, gpus, max, diagnostics) : r;
}

/* The count restarts when the driver is loaded again; then the directory has another inode. */
static uint64_t kfd_generation(struct hw *hw)
{
	_cleanup_dir_ struct kfd_dir topology = KFD_DIR_NONE;
	uint64_t count;
	struct stat st;

	if (kfd_dir_open(&hw->sys, TOPOLOGY, &topology) < 0 || fstat(topology.fd, &st) < 0 ||
	    kfd_read_number(&topology, "generation_id", UINT32_MAX, &count) < 0)
		return UINT64_MAX;
	return (uint64_t)st.st_ino << 32 | count;
}

/* ---- use by processes ---------------------------------------------------------------- */

/* class/kfd/kfd/proc/PID as kfd_process.c makes it: vram_GPUID, queues/QID/{gpuid,type}. sdma_GPUID
 * is never opened: reading it starts work in the kernel and waits for it. */
#define PROC "class/kfd/kfd/proc"
#define PROCESSES 4096U
#define QUEUES 4096U

/* enum kfd_queue_type in kfd_priv.h; the other types are of the kernel itself. */
enum { TYPE_COMPUTE = 0, TYPE_SDMA = 1, TYPE_SDMA_XGMI = 4 };

/* The use of one process, a row for each GPU. */
struct rows {
	const struct kfd_dir *dir; /* the directory that is being read */
	pid_t pid;
	struct hw_use list[KFD_NODES];
	size_t n;
};

static struct hw_use *row_of(struct rows *rows, uint32_t gpu_id)
{
	for (size_t i = 0; i < rows->n; i++)
		if (rows->list[i].kfd_gpu_id == gpu_id)
			return &rows->list[i];
	if (rows->n == KFD_NODES)
		return NULL;

	rows->list[rows->n] = (struct hw_use){ .pid = rows->pid, .kfd_gpu_id = gpu_id };
	return &rows->list[rows->n++];
}

/* What has gone meanwhile, or is not what the driver writes, counts as absent. What cannot be read now
 * does not: leases would end, and others be granted their CUs. */
static int absent(int error)
{
	return kfd_is_unread(error) ? error : 0;
}

static int read_queue(const struct kfd_dir *queues, unsigned number, struct rows *rows)
{
	uint64_t gpu_id, type;
	struct hw_use *row;
	char name[32];
	int r;

	snprintf(name, sizeof(name), "%u/gpuid", number);
	r = kfd_read_number(queues, name, UINT32_MAX, &gpu_id);
	if (r < 0)
		return absent(r);
	snprintf(name, sizeof(name), "%u/type", number);
	r = kfd_read_number(queues, name, UINT32_MAX, &type);
	if (r < 0)
		return absent(r);
	row = row_of(rows, (uint32_t)gpu_id);
	if (!row)
		return 0;
	if (type == TYPE_COMPUTE)
		row->queues++;
	else if (type == TYPE_SDMA)
		row->sdma_queues++;
	else if (type == TYPE_SDMA_XGMI)
		row->sdma_xgmi_queues++;
	return 0;
}

static int read_queues(const struct kfd_dir *process, struct rows *rows)
{
	_cleanup_dir_ struct kfd_dir queues = KFD_DIR_NONE;
	unsigned numbers[QUEUES];
	int n, r = 0;

	n = kfd_dir_open_numbers(process, "queues", numbers, QUEUES, &queues);
	if (n < 0)
		return absent(n);
	for (int i = 0; i < n && r >= 0; i++)
		r = read_queue(&queues, numbers[i], rows);
	return r;
}

static int read_vram(const struct kfd_dir *process, const char *name, struct rows *rows)
{
	const char *id = name + strlen("vram_");
	uint64_t gpu_id, bytes;
	struct hw_use *row;
	int r;

	if (kfd_number(id, strlen(id), UINT32_MAX, &gpu_id) < 0)
		return 0;
	r = kfd_read_number(process, name, UINT64_MAX >> 8, &bytes);
	if (r < 0)
		return absent(r);
	row = row_of(rows, (uint32_t)gpu_id);
	if (row)
		row->vram += bytes;
	return 0;
}

static int read_entry(const char *name, void *userdata);

static int read_process(const struct kfd_dir *parent, const char *name, struct rows *rows)
{
	_cleanup_dir_ struct kfd_dir dir = KFD_DIR_NONE;
	const struct kfd_dir *outer = rows->dir;
	int r;

	r = kfd_dir_open(parent, name, &dir);
	if (r >= 0)
		r = read_queues(&dir, rows);
	if (r < 0)
		return absent(r);

	rows->dir = &dir;
	r = kfd_dir_each(&dir, read_entry, rows);
	rows->dir = outer;
	return absent(r);
}

/* Newer drivers allow several contexts per process: context_N has the same layout as the directory
 * of the process (kfd_create_process_sysfs()). Contexts do not nest. */
static int read_entry(const char *name, void *userdata)
{
	struct rows *rows = userdata;

	if (strncmp(name, "vram_", strlen("vram_")) == 0)
		return read_vram(rows->dir, name, rows);
	if (strncmp(name, "context_", strlen("context_")) == 0 &&
	    !strstr(rows->dir->path, "/context_"))
		return read_process(rows->dir, name, rows);
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct hw_use *x = a, *y = b;

	return (x->kfd_gpu_id > y->kfd_gpu_id) - (x->kfd_gpu_id < y->kfd_gpu_id);
}

/* Skips rows of zeros: the driver makes a vram file for each GPU as soon as /dev/kfd is open. */
static size_t add_rows(struct rows *rows, struct hw_use *uses, size_t max, size_t n)
{
	qsort(rows->list, rows->n, sizeof(rows->list[0]), compare_rows);
	for (size_t i = 0; i < rows->n; i++) {
		const struct hw_use *row = &rows->list[i];

		if (row->queues == 0 && row->sdma_queues == 0 && row->sdma_xgmi_queues == 0 &&
		    row->vram == 0)
			continue;
		if (n < max)
			uses[n] = *row;
		n++;
	}
	return n;
}

static int kfd_use(struct hw *hw, struct hw_use *uses, size_t max)
{
	_cleanup_dir_ struct kfd_dir proc = KFD_DIR_NONE;
	unsigned pids[PROCESSES];
	size_t n_uses = 0;
	char name[16];
	int n, r;

	n = kfd_dir_open_numbers(&hw->sys, PROC, pids, PROCESSES, &proc);
	for (int i = 0; i < n; i++) {
		struct rows rows = { .pid = (pid_t)pids[i] };

		snprintf(name, sizeof(name), "%u", pids[i]);
		r = read_process(&proc, name, &rows);
		if (r < 0)
			return r;
		n_uses = add_rows(&rows, uses, max, n_uses);
	}
	return n < 0 && n != -ENOENT ? n : (int)n_uses;
}

static int kfd_use_of(struct hw *hw, pid_t pid, struct hw_use *uses, size_t max)
{
	_cleanup_dir_ struct kfd_dir proc = KFD_DIR_NONE;
	struct rows rows = { .pid = pid };
	char name[16];
	int r;

	r = kfd_dir_open(&hw->sys, PROC, &proc);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	snprintf(name, sizeof(name), "%d", (int)pid);
	r = read_process(&proc, name, &rows);
	return r < 0 ? r : (int)add_rows(&rows, uses, max, 0);
}

const struct hw_ops hw_kfd = {
	.name = "kfd",
	.close = kfd_close,
	.list = kfd_list,
	.generation = kfd_generation,
	.use = kfd_use,
	.use_of = kfd_use_of,
};
