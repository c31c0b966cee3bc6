/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "apply-rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check-cond.h"
#include "fake-sysfs.h"
#include "scratch.h"

static int open_device(void *userdata)
{
	struct apply_rig *rig = userdata;

	rig->opened++;
	return rig->open_error ? rig->open_error : open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int set_mask(void *userdata, int fd, uint32_t queue, const struct mask *mask)
{
	struct apply_rig *rig = userdata;

	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(queue < APPLY_QUEUES && mask->words > 0 && mask->words <= MASK_WORDS);
	rig->calls++;
	if (rig->calls == rig->vanish_at) {
		apply_rig_queue_gone(rig, queue);
		return -EFAULT;
	}
	if (rig->calls == rig->fail_at && !rig->writes_anyway)
		return rig->fail_with;
	rig->has[queue] = *mask;
	return rig->calls == rig->fail_at ? rig->fail_with : 0;
}

static int set_turn(void *userdata, int fd, uint32_t queue, bool paused, uint32_t priority)
{
	struct apply_rig *rig = userdata;

	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && queue < APPLY_QUEUES);
	rig->turns++;
	if (rig->turn_error < 0)
		return rig->turn_error;
	rig->paused[queue] = paused;
	rig->priority[queue] = priority;
	return 0;
}

static const char *get(void *userdata, const char *name)
{
	struct apply_rig *rig = userdata;

	if (strcmp(name, "HSA_CU_MASK") == 0)
		return rig->hsa_mask;
	if (strcmp(name, "ROC_GLOBAL_CU_MASK") == 0)
		return rig->global_mask;
	return strcmp(name, "GPUARB_LEASE") == 0 ? rig->lease : NULL;
}

static void build_tree(struct apply_rig *rig)
{
	static const struct {
		unsigned target, xccs;
	} models[APPLY_GPUS] = { { 90006, 1 }, { 90402, 8 }, { 100300, 1 } };

	snprintf(rig->dev, sizeof(rig->dev), "%s/dev", rig->sys);
	for (unsigned i = 0; i < APPLY_GPUS; i++) {
		char file[64];

		rig->gpu_ids[i] = 1001 + i;
		snprintf(file, sizeof(file), "dri/renderD%u", 128 + i);
		CHECK(fake_sysfs_write(rig->dev, file, "", 0) == 0);
		snprintf(file, sizeof(file), FAKE_NODES "/%u/gpu_id", 1 + i);
		CHECK(fake_sysfs_print(rig->sys, file, "%u\n", rig->gpu_ids[i]) == 0);
		snprintf(file, sizeof(file), FAKE_NODES "/%u/properties", 1 + i);
		CHECK(fake_sysfs_print(rig->sys, file,
				       "simd_count 240\ndrm_render_minor %u\n"
				       "gfx_target_version %u\nnum_xcc %u\n",
				       128 + i, models[i].target, models[i].xccs) == 0);
	}
}

void apply_rig_new(struct apply_rig *rig, size_t n)
{
	static const char *const names[APPLY_GPUS] = { "0000:03:00.0", "0000:04:00.0",
						       "0000:05:00.0" };

	*rig = (struct apply_rig){ .gpuarb.references = 1 };
	scratch_directory(rig->sys, sizeof(rig->sys));
	build_tree(rig);
	for (unsigned i = 0; i < APPLY_GPUS; i++) {
		rig->partitions[i] = (struct gpuarb_partition){
			.gpu = names[i],
			.kfd_gpu_id = rig->gpu_ids[i],
			.cu_mask = rig->masks[i],
			.cu_mask_words = i == 1 ? 10 : 3,
			.priority = 7,
		};
		apply_rig_mask(rig, i, 0xffff, 0);
	}
	rig->driver = (struct driver){ rig, open_device, set_mask, set_turn, NULL };
	rig->info = (struct gpuarb_lease_info){
		.id = 12,
		.state = "granted",
		.partitions = rig->partitions,
		.n_partitions = n,
	};
	rig->apply = (struct apply){
		.gpuarb = &rig->gpuarb,
		.lease = &rig->info,
		.mask_cache = &rig->mask_cache,
		.sys = rig->sys,
		.dev = rig->dev,
		.pid = APPLY_PID,
		.driver = &rig->driver,
		.get = get,
		.userdata = rig,
	};
}

void apply_rig_done(struct apply_rig *rig)
{
	mask_cache_clear(&rig->mask_cache);
	handle_begin(&rig->gpuarb);
	CHECK(fake_sysfs_remove("/", rig->sys + 1) == 0);
}

void apply_rig_queue(struct apply_rig *rig, unsigned id, unsigned gpu, unsigned type)
{
	rig->has[id].words = 0;
	CHECK(fake_sysfs_queue(rig->sys, APPLY_PID, id, rig->gpu_ids[gpu], type) == 0);
}

void apply_rig_queue_gone(struct apply_rig *rig, unsigned id)
{
	rig->has[id].words = 0;
	CHECK(fake_sysfs_queue_gone(rig->sys, APPLY_PID, id) == 0);
}

void apply_rig_mask(struct apply_rig *rig, unsigned gpu, uint32_t word0, uint32_t word1)
{
	memset(rig->masks[gpu], 0, sizeof(rig->masks[gpu]));
	rig->masks[gpu][0] = word0;
	rig->masks[gpu][1] = word1;
}

bool apply_rig_has(const struct apply_rig *rig, unsigned id, uint32_t word0, uint32_t word1)
{
	const struct mask *has = &rig->has[id];

	for (size_t i = 2; i < has->words; i++)
		if (has->word[i])
			return false;
	return has->words >= 2 && has->word[0] == word0 && has->word[1] == word1;
}

bool apply_rig_free(const struct apply_rig *rig, unsigned id)
{
	for (size_t i = 0; i < rig->has[id].words; i++)
		if (rig->has[id].word[i] != UINT32_MAX)
			return false;
	return rig->has[id].words == 0 || rig->has[id].words == MASK_WORDS;
}

int apply_rig_apply(struct apply_rig *rig)
{
	handle_begin(&rig->gpuarb);
	rig->calls = 0;
	return apply_all(&rig->apply);
}

int apply_rig_own(struct apply_rig *rig, unsigned gpu, unsigned id, const uint32_t *mask,
		  size_t words)
{
	handle_begin(&rig->gpuarb);
	rig->calls = 0;
	return apply_own(&rig->apply, gpu, id, mask, words);
}

bool apply_rig_said(const struct apply_rig *rig, const char *words)
{
	return strstr(gpuarb_last_error(&rig->gpuarb), words);
}
