/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarb-harvest: asks the driver which CUs of a GPU work, where sysfs does not show it, and writes that for
 * gpuarbd. It opens the render node of such a GPU for a moment, and no other.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "helpers/helper-program.h"
#include "hw/hw.h"
#include "hw/kfd-gpu.h"
#include "util/fd.h"

/* Of the kernel's amdgpu_drm.h, which not every distribution installs: struct drm_amdgpu_info, and the beginning of
 * struct drm_amdgpu_info_device. */
struct info_request {
	uint64_t address;
	uint32_t size, query, unused[4];
};
#define IOC_INFO _IOW('d', 0x45, struct info_request)
#define QUERY_DEVICE 0x16

struct device_info {
	uint32_t other[14], cu_bitmap[4][4];
};

static int ask_driver(const struct kfd_node *node, struct device_info *ret)
{
	struct info_request request = {
		.address = (uint64_t)(uintptr_t)ret,
		.size = sizeof(*ret),
		.query = QUERY_DEVICE,
	};
	_cleanup_fd_ int fd = -1;
	char path[64];
	int r;

	memset(ret, 0, sizeof(*ret));
	snprintf(path, sizeof(path), "/dev/dri/renderD%u", (unsigned)node->value[KFD_RENDER_MINOR]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && ioctl(fd, IOC_INFO, &request) >= 0)
		return 0;
	r = -errno;
	fprintf(stderr, "gpuarb-harvest: %s: %s\n", path, strerror(-r));
	return r;
}

/* From gfx11 on, engine 4 and those after it are in the columns behind the arrays of the first four
 * (gfx_v11_0_get_cu_info()). */
static unsigned count_cus(const struct device_info *info, unsigned engine, unsigned array)
{
	unsigned column = array + engine / 4 * 2;

	return column < 4 ? (unsigned)__builtin_popcount(info->cu_bitmap[engine % 4][column]) : 0;
}

/* gpuarbd compares the numbers with what sysfs says. */
static int write_map(const char *directory, const struct kfd_node *node,
		     const struct geometry *geometry, const struct device_info *info)
{
	char path[512], draft[520];
	FILE *file;
	int r;

	snprintf(path, sizeof(path), "%.480s/%u", directory, node->gpu_id);
	snprintf(draft, sizeof(draft), "%s.new", path);
	file = fopen(draft, "we");
	if (!file)
		return -errno;
	for (unsigned engine = 0; engine < geometry->engines; engine++)
		for (unsigned array = 0; array < geometry->arrays; array++)
			fprintf(file, "%u ", count_cus(info, engine, array));
	fputc('\n', file);
	r = ferror(file) ? -EIO : 0;
	if (fclose(file) < 0 || r < 0 || rename(draft, path) < 0) {
		r = r < 0 ? r : -errno;
		unlink(draft);
	}
	return r;
}

static int map_node(const struct kfd_dir *dir, const char *directory)
{
	_cleanup_(diagnostics_done) struct diagnostics unused = { 0 };
	struct device_info info;
	struct geometry geometry;
	struct kfd_node node;
	int r;

	if (kfd_node_read(dir, &node, &unused) <= 0 || !node.has[KFD_RENDER_MINOR] ||
	    !kfd_gpu_hides_harvest(&node, &geometry))
		return 0;
	r = ask_driver(&node, &info);
	return r < 0 ? r : write_map(directory, &node, &geometry, &info);
}

static int map_all(const struct helper_program *program)
{
	_cleanup_dir_ struct kfd_dir topology = { .path = "/sys/class/kfd/kfd/topology" };
	_cleanup_dir_ struct kfd_dir nodes = KFD_DIR_NONE;
	unsigned numbers[KFD_NODES];
	int n, r = 0;

	topology.fd = open(topology.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (topology.fd < 0)
		return 0; /* no GPU */
	n = kfd_dir_open_numbers(&topology, "nodes", numbers, KFD_NODES, &nodes);
	for (int i = 0; i < n; i++) {
		_cleanup_dir_ struct kfd_dir dir = KFD_DIR_NONE;
		char name[16];
		int error;

		snprintf(name, sizeof(name), "%u", numbers[i]);
		error = kfd_dir_open(&nodes, name, &dir);
		error = error < 0 ? error : map_node(&dir, program->directory);
		r = error < 0 ? error : r;
	}
	return n < 0 ? n : r;
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "directory", required_argument, NULL, HELPER_DIRECTORY },
		HELPER_OPTIONS,
	};
	struct helper_program program = {
		.name = "gpuarb-harvest",
		.task = "Writes for gpuarbd which compute units of a GPU work, where sysfs does not "
			"show it.",
		.help = "  --directory=DIR  write into DIR (" HARVEST_DIR ")\n",
		.options = options,
		.run = map_all,
		.directory = HARVEST_DIR,
	};

	return helper_program_main(&program, argc, argv);
}
