/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/kfd-sysfs.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static void write_file(const char *root, const char *path, const char *text)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	file = fopen(full, "w");
	CHECK(file);
	fputs(text, file);
	CHECK(fclose(file) == 0);
}

static void remove_tree(const char *root)
{
	char command[600];

	snprintf(command, sizeof(command), "rm -r '%s'", root);
	CHECK(system(command) == 0);
}

#define NODES "class/kfd/kfd/topology/nodes/"

TEST(gpus_are_listed_in_the_order_of_rocm)
{
	char root[] = "/tmp/test-topology-XXXXXX", link[128];
	struct topology topology;

	CHECK(mkdtemp(root));
	write_file(root, NODES "0/gpu_id", "0\n");
	write_file(root, NODES "0/properties", "cpu_cores_count 8\nsimd_count 0\n");
	write_file(root, NODES "10/gpu_id", "1010\n");
	write_file(root, NODES "10/properties",
		   "simd_count 240\ngfx_target_version 90402\nnum_xcc 8\n");
	write_file(root, NODES "2/gpu_id", "1002\n");
	write_file(root, NODES "2/properties",
		   "mem_banks_count 1\nsimd_count 240\nsimd_id_base 9\ndrm_render_minor 129\n"
		   "unique_id 18364758544493064720\n");
	write_file(root, NODES "3/gpu_id", "1003\n"); /* the device cgroup hides its properties */
	write_file(root, NODES "4/gpu_id", "1004\n");
	write_file(root, NODES "4/properties", "simd_count 240\ndrm_render_minor 130\n");
	write_file(root, NODES "5/gpu_id", "1005\n");
	write_file(root, NODES "5/properties", "simd_count 0\n");
	write_file(root, NODES "6/properties", "simd_count 240\n");
	write_file(root, NODES "seven/gpu_id", "1007\n");
	write_file(root, NODES "99999/gpu_id", "1099\n");
	write_file(root, "dri/renderD129", "");
	snprintf(link, sizeof(link), "%s/" NODES "8", root);
	CHECK(symlink("8", link) == 0);

	CHECK(topology_read(root, root, &topology) == 0);
	CHECK(topology.n == 2);
	CHECK(topology.gpus[0].kfd_gpu_id == 1002);
	CHECK(topology.gpus[0].unique_id == 18364758544493064720U);
	CHECK(topology.gpus[0].gfx_target == 0 && topology.gpus[0].xccs == 1);
	CHECK(topology.gpus[1].kfd_gpu_id == 1010 && topology.gpus[1].unique_id == 0);
	CHECK(topology.gpus[1].gfx_target == 90402 && topology.gpus[1].xccs == 8);
	CHECK(topology_find(&topology, 1010) == &topology.gpus[1]);
	CHECK(!topology_find(&topology, 1011));
	topology.gpus[0].kfd_gpu_id = 1010;
	CHECK(!topology_find(&topology, 1010)); /* two GPUs have this id */
	free(topology.gpus);
	remove_tree(root);
}

TEST(reading_fails_without_kfd)
{
	struct topology topology = { NULL, 3 };

	CHECK(topology_read("/proc/self/nothing", "/dev", &topology) == -ENODEV);
	CHECK(topology.n == 3);
}
