/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-sysfs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "scratch.h"
#include "util/base.h"

#define FIRST_CU_ID 0x80001000U /* what the driver starts to count CUs at */

/* The directory that path is in, and what that is in, where missing. */
static int make_parents(const char *path)
{
	_cleanup_(freep) char *parent = strdup(path);
	char *slash = parent ? strrchr(parent, '/') : NULL;
	int r;

	if (!parent)
		return -ENOMEM;
	if (!slash || slash == parent)
		return 0;
	*slash = '\0';
	if (mkdir(parent, 0755) == 0 || errno == EEXIST)
		return 0;
	if (errno != ENOENT)
		return -errno;
	r = make_parents(parent);
	return r < 0 ? r : make_parents(path);
}

int fake_sysfs_write(const char *dir, const char *file, const void *data, size_t size)
{
	_cleanup_(freep) char *path = NULL;
	FILE *stream;
	int r;

	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return -ENOMEM;
	stream = fopen(path, "we");
	if (!stream && errno == ENOENT) {
		r = make_parents(path);
		if (r < 0)
			return r;
		stream = fopen(path, "we");
	}
	if (!stream)
		return -errno;
	r = fwrite(data, 1, size, stream) == size ? 0 : -EIO;
	return fclose(stream) == 0 ? r : -errno;
}

int fake_sysfs_mkdir(const char *dir, const char *path)
{
	_cleanup_(freep) char *full = NULL;

	if (asprintf(&full, "%s/%s/", dir, path) < 0)
		return -ENOMEM;
	return make_parents(full);
}

int fake_sysfs_print(const char *dir, const char *file, const char *format, ...)
{
	_cleanup_(freep) char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	return n < 0 ? -ENOMEM : fake_sysfs_write(dir, file, text, (size_t)n);
}

int fake_sysfs_remove(const char *dir, const char *path)
{
	_cleanup_(freep) char *full = NULL;

	if (asprintf(&full, "%s/%s", dir, path) < 0)
		return -ENOMEM;
	if (scratch_remove(full) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

static int read_text(const char *dir, const char *file, char *buf, size_t size)
{
	_cleanup_(freep) char *path = NULL;
	FILE *stream;
	size_t n;

	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return -ENOMEM;
	stream = fopen(path, "re");
	if (!stream)
		return -errno;
	n = fread(buf, 1, size - 1, stream);
	buf[n] = '\0';
	fclose(stream);
	return 0;
}

int fake_sysfs_set(const char *dir, const char *file, const char *key, const char *value)
{
	char text[4096], out[8192] = "";
	size_t n = 0, length = strlen(key);
	int r;

	r = read_text(dir, file, text, sizeof(text));
	if (r < 0)
		return r;
	for (char *line = text, *next; *line; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n';
		if (strncmp(line, key, length) == 0 && line[length] == ' ')
			continue;
		memcpy(out + n, line, (size_t)(next - line));
		n += (size_t)(next - line);
	}
	if (value)
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s %s\n", key, value);
	return fake_sysfs_write(dir, file, out, n);
}

uint32_t fake_sysfs_gpu_id(const struct gpu_info *info, size_t i)
{
	return info->kfd_gpu_id ? info->kfd_gpu_id : 0x1000U + 0x101U * (uint32_t)i;
}

/* As kfd_fill_iolink_info_to_cpu() in kfd_crat.c has it for a card without XGMI. */
int fake_sysfs_link(const char *dir, unsigned from, unsigned n, unsigned to)
{
	char file[128];

	snprintf(file, sizeof(file), FAKE_NODES "/%u/io_links/%u/properties", from, n);
	return fake_sysfs_print(dir, file,
				"type 2\nversion_major 0\nversion_minor 0\nnode_from %u\n"
				"node_to %u\nweight 20\nmin_latency 0\nmax_latency 0\n"
				"min_bandwidth 312\nmax_bandwidth 32000\n"
				"recommended_transfer_size 0\n"
				"recommended_sdma_engine_id_mask 0\nflags 1\n",
				from, to);
}

/* Its caches are not told: libhsakmt asks the CPUs themselves. */
static int write_cpu(const char *dir, size_t n_gpus)
{
	int r;

	r = fake_sysfs_print(dir, FAKE_NODES "/0/gpu_id", "0\n");
	r = r < 0 ? r : fake_sysfs_print(dir, FAKE_NODES "/0/name", "\n");
	r = r < 0 ? r
		  : fake_sysfs_print(dir, FAKE_NODES "/0/mem_banks/0/properties",
				     "heap_type 0\nsize_in_bytes 68719476736\nflags 0\n"
				     "width 64\nmem_clk_max 3200\n");
	for (unsigned i = 0; i < n_gpus && r == 0; i++)
		r = fake_sysfs_link(dir, 0, i, i + 1);
	return r < 0 ? r
		     : fake_sysfs_print(
			       dir, FAKE_NODES "/0/properties",
			       "cpu_cores_count 16\nsimd_count 0\nmem_banks_count 1\ncaches_count 0\n"
			       "io_links_count %zu\np2p_links_count 0\ncpu_core_id_base 0\nsimd_id_base 0\n"
			       "max_waves_per_simd 0\nlds_size_in_kb 0\ngds_size_in_kb 0\nnum_gws 0\n"
			       "wave_front_size 0\narray_count 0\nsimd_arrays_per_engine 0\n"
			       "cu_per_simd_array 0\nsimd_per_cu 0\nmax_slots_scratch_cu 0\n"
			       "gfx_target_version 0\nvendor_id 0\ndevice_id 0\nlocation_id 0\ndomain 0\n"
			       "drm_render_minor 0\nhive_id 0\nnum_sdma_engines 0\n"
			       "num_sdma_xgmi_engines 0\nnum_sdma_queues_per_engine 0\nnum_cp_queues 0\n"
			       "max_engine_clk_ccompute 3800\n",
			       n_gpus);
}

/* sched_policy is the module's, so the first GPU that it matters to decides. */
static int write_parameters(const char *dir, const struct gpu_info *gpus, size_t n)
{
	enum scheduler scheduler = SCHEDULER_HWS;
	int r;

	for (size_t i = n; i > 0; i--)
		if (gpus[i - 1].scheduler != SCHEDULER_MES)
			scheduler = gpus[i - 1].scheduler;
	r = fake_sysfs_print(dir, FAKE_MODULE "/initstate", "live\n");
	if (r == 0)
		r = fake_sysfs_print(dir, FAKE_PARAMETERS "/hws_max_conc_proc", "-1\n");
	if (r == 0)
		r = fake_sysfs_print(dir, FAKE_PARAMETERS "/queue_preemption_timeout_ms", "9000\n");
	if (r < 0 || scheduler == SCHEDULER_UNKNOWN)
		return r;
	return fake_sysfs_print(dir, FAKE_PARAMETERS "/sched_policy", "%d\n",
				scheduler == SCHEDULER_HWS_STRICT ? 1
				: scheduler == SCHEDULER_NONE     ? 2
								  : 0);
}

static int write_system(const char *dir, const char *generation)
{
	int r;

	r = fake_sysfs_print(dir, FAKE_TOPOLOGY "/generation_id", "%lu\n",
			     strtoul(generation, NULL, 10) + 1);
	return r < 0 ? r
		     : fake_sysfs_print(dir, FAKE_TOPOLOGY "/system_properties",
					"platform_oem 0\nplatform_id 0\nplatform_rev 0\n");
}

int fake_sysfs_build(const char *dir, const struct gpu_info *gpus, size_t n)
{
	unsigned first_cu = FIRST_CU_ID;
	char generation[64] = "0";
	int r;

	(void)read_text(dir, FAKE_TOPOLOGY "/generation_id", generation, sizeof(generation));
	r = fake_sysfs_remove(dir, "class/kfd");
	r = r < 0 ? r : fake_sysfs_remove(dir, "module/amdgpu");
	r = r < 0 ? r : write_cpu(dir, n);
	r = r < 0 ? r : write_parameters(dir, gpus, n);
	r = r < 0 ? r : fake_sysfs_mkdir(dir, FAKE_PROC);
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct geometry *geometry = &gpus[i].geometry;

		r = fake_sysfs_node(dir, &gpus[i], i, first_cu);
		first_cu += geometry->engines * geometry->arrays * geometry->array_cus;
	}
	return r < 0 ? r : write_system(dir, generation);
}

int fake_sysfs_process(const char *dir, pid_t pid)
{
	char file[128], gpu_id[32];
	int r;

	snprintf(file, sizeof(file), FAKE_PROC "/%d/pasid", (int)pid);
	r = fake_sysfs_print(dir, file, "%d\n", 0x8000);
	for (unsigned i = 1; r == 0; i++) {
		snprintf(file, sizeof(file), FAKE_NODES "/%u/gpu_id", i);
		if (read_text(dir, file, gpu_id, sizeof(gpu_id)) < 0)
			break;
		gpu_id[strcspn(gpu_id, "\n")] = '\0';
		snprintf(file, sizeof(file), FAKE_PROC "/%d/vram_%s", (int)pid, gpu_id);
		r = fake_sysfs_print(dir, file, "0\n");
		snprintf(file, sizeof(file), FAKE_PROC "/%d/sdma_%s", (int)pid, gpu_id);
		r = r < 0 ? r : fake_sysfs_print(dir, file, "0\n");
	}
	snprintf(file, sizeof(file), FAKE_PROC "/%d/queues", (int)pid);
	return r < 0 ? r : fake_sysfs_mkdir(dir, file);
}

int fake_sysfs_process_gone(const char *dir, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), FAKE_PROC "/%d", (int)pid);
	return fake_sysfs_remove(dir, path);
}

/* Without a newline at the end, as the driver does it. */
int fake_sysfs_queue(const char *dir, pid_t pid, unsigned queue, uint32_t gpu_id, unsigned type)
{
	char file[128];
	int r;

	snprintf(file, sizeof(file), FAKE_PROC "/%d/queues/%u/gpuid", (int)pid, queue);
	r = fake_sysfs_print(dir, file, "%u", gpu_id);
	snprintf(file, sizeof(file), FAKE_PROC "/%d/queues/%u/size", (int)pid, queue);
	r = r < 0 ? r : fake_sysfs_print(dir, file, "%u", 65536U);
	snprintf(file, sizeof(file), FAKE_PROC "/%d/queues/%u/type", (int)pid, queue);
	return r < 0 ? r : fake_sysfs_print(dir, file, "%u", type);
}

int fake_sysfs_queue_gone(const char *dir, pid_t pid, unsigned queue)
{
	char path[64];

	snprintf(path, sizeof(path), FAKE_PROC "/%d/queues/%u", (int)pid, queue);
	return fake_sysfs_remove(dir, path);
}

int fake_sysfs_vram(const char *dir, pid_t pid, uint32_t gpu_id, uint64_t bytes)
{
	char file[128];

	snprintf(file, sizeof(file), FAKE_PROC "/%d/vram_%u", (int)pid, gpu_id);
	return fake_sysfs_print(dir, file, "%llu\n", (unsigned long long)bytes);
}
