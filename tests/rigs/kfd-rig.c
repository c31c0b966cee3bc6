/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfd-rig.h"

#include "scratch.h"

void kfd_rig_start(struct rig *rig, const struct gpu_info *gpus, size_t n)
{
	*rig = (struct rig){ 0 };
	scratch_directory(rig->dir, sizeof(rig->dir));
	CHECK(fake_sysfs_build(rig->dir, gpus, n) == 0);
	CHECK(hw_kfd_open(rig->dir, &rig->hw, &rig->diagnostics) == 0);
	CHECK(rig->diagnostics.n == 0);
}

int kfd_rig_list(struct rig *rig)
{
	char problem[160];

	diagnostics_done(&rig->diagnostics);
	rig->n = hw_list(rig->hw, rig->gpus, RIG_GPUS, &rig->diagnostics);
	for (int i = 0; i < rig->n; i++) {
		CHECK(geometry_check(&rig->gpus[i].geometry, problem, sizeof(problem)) == 0);
		CHECK(rig->gpus[i].name[0] && rig->gpus[i].device[0]);
		CHECK(i == 0 || strcmp(rig->gpus[i - 1].name, rig->gpus[i].name) < 0);
	}
	return rig->n;
}

void kfd_rig_end(struct rig *rig)
{
	hw_close(rig->hw);
	diagnostics_done(&rig->diagnostics);
	CHECK(fake_sysfs_remove(rig->dir, "") == 0);
}

bool kfd_rig_says(const struct rig *rig, const char *file, const char *word)
{
	for (size_t i = 0; i < rig->diagnostics.n; i++)
		if (strstr(rig->diagnostics.list[i].text, file) &&
		    strstr(rig->diagnostics.list[i].text, word))
			return true;
	for (size_t i = 0; i < rig->diagnostics.n; i++)
		fprintf(stderr, "said: %s\n", rig->diagnostics.list[i].text);
	return false;
}

struct geometry shape(unsigned xccs, unsigned engines, unsigned arrays, unsigned array_cus,
		      bool wgp, unsigned cus)
{
	struct geometry geometry = {
		.xccs = xccs,
		.engines = engines,
		.arrays = arrays,
		.array_cus = array_cus,
		.wgp = wgp,
	};

	CHECK(geometry_spread(&geometry, cus) == 0);
	return geometry;
}

struct gpu_info kfd_radeon_vii(void)
{
	return (struct gpu_info){
		.name = "0000:03:00.0",
		.gfx_target = 90006,
		.geometry = shape(1, 4, 1, 16, false, 60),
		.queue_slots = 24,
		.sdma_queues = 16,
		.vram_bytes = UINT64_C(16) << 30,
		.scheduler = SCHEDULER_HWS,
	};
}

struct gpu_info mi300x_cpx(unsigned bus, unsigned partition)
{
	struct gpu_info info = {
		.gfx_target = 90402,
		.geometry = shape(1, 4, 1, 10, false, 38),
		.queue_slots = 24,
		.sdma_queues = 16,
		.vram_bytes = UINT64_C(24) << 30,
		.scheduler = SCHEDULER_HWS,
	};

	snprintf(info.name, sizeof(info.name), "0000:%02x:00.0/%u", bus & 0xff, partition & 7);
	return info;
}

void start_two(struct rig *rig)
{
	struct gpu_info infos[2] = { kfd_radeon_vii(), kfd_radeon_vii() };

	strcpy(infos[1].name, "0000:04:00.0");
	infos[1].geometry = shape(1, 1, 1, 4, false, 4); /* its caches are files */
	infos[0].geometry.active[0][1][0] = 12;
	kfd_rig_start(rig, infos, 2);
}

void check_degraded(struct rig *rig, const char *file)
{
	CHECK(kfd_rig_list(rig) == 2 && kfd_rig_says(rig, file, "") &&
	      !diagnostics_have_errors(&rig->diagnostics));
}

void put_path(const struct rig *rig, const char *file, char *buf, size_t size)
{
	CHECK((size_t)snprintf(buf, size, "%s/%s", rig->dir, file) < size);
}

void in_place_of(struct rig *rig, const char *file, const char *kind)
{
	static char large[1U << 20];
	char path[256];

	put_path(rig, file, path, sizeof(path));
	CHECK(fake_sysfs_remove(rig->dir, file) == 0);
	if (strcmp(kind, "directory") == 0) {
		CHECK(mkdir(path, 0755) == 0);
	} else if (strcmp(kind, "pipe") == 0) {
		CHECK(mkfifo(path, 0644) == 0);
	} else if (strcmp(kind, "loop") == 0) {
		CHECK(symlink(path, path) == 0);
	} else if (strcmp(kind, "empty") == 0) {
		CHECK(fake_sysfs_write(rig->dir, file, "", 0) == 0);
	} else if (strcmp(kind, "binary") == 0) {
		CHECK(fake_sysfs_write(rig->dir, file, "\x7f\x45\x4c\x46\0\1\2\xff 1\n", 11) == 0);
	} else if (strcmp(kind, "large") == 0) {
		memset(large, '7', sizeof(large));
		CHECK(fake_sysfs_write(rig->dir, file, large, sizeof(large)) == 0);
		CHECK(truncate(path, 10L << 20) == 0);
	}
}

void with_each_intruder(const char *file, void (*check)(struct rig *rig, const char *file))
{
	struct rig rig;

	start_two(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(intruders); i++) {
		in_place_of(&rig, file, intruders[i]);
		check(&rig, file);
	}
	kfd_rig_end(&rig);
}

void with_each_value(const char *file, const struct kfd_value *values, size_t n,
		     void (*check)(struct rig *rig, const char *file))
{
	char path[256], before[4096] = "";
	struct rig rig;
	FILE *stream;

	start_two(&rig);
	put_path(&rig, file, path, sizeof(path));
	stream = fopen(path, "re");
	CHECK(stream && fread(before, 1, sizeof(before) - 1, stream) > 0);
	fclose(stream);
	for (size_t i = 0; i < n; i++) {
		CHECK(fake_sysfs_print(rig.dir, file, "%s", before) == 0);
		CHECK(fake_sysfs_set(rig.dir, file, values[i].key, values[i].value) == 0);
		check(&rig, file);
	}
	kfd_rig_end(&rig);
}
