/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A state made by hand beside a topology that names its GPUs, and the debugfs texts of both. */

#include "fake-sysfs.h"
#include "scratch.h"
#include "kfdsim/test/text-parse.h"
#include "kfdsim/test/text-rig.h"

struct stage {
	struct scratch scratch;
	struct sim *sim;
	struct topology *topology;
	char *text;
};

static inline void stage_start(struct stage *stage, const struct gpu_info *gpus, size_t n)
{
	char file[128];

	*stage = (struct stage){ .scratch = scratch_new(), .sim = rig_sim(gpus, n) };
	CHECK(fake_sysfs_print(stage->scratch.path, FAKE_NODES "/0/gpu_id", "0\n") == 0);
	for (size_t i = 0; i < n; i++) {
		snprintf(file, sizeof(file), FAKE_NODES "/%zu/gpu_id", i + 1);
		CHECK(fake_sysfs_print(stage->scratch.path, file, "%u\n",
				       stage->sim->gpus[i].info.kfd_gpu_id) == 0);
	}
	CHECK(topology_new(scratch_at(&stage->scratch, "class/kfd/kfd"), &stage->topology) == 0);
}

static inline void stage_end(struct stage *stage)
{
	free(stage->text);
	topology_free(stage->topology);
	rig_done(stage->sim);
	scratch_done(&stage->scratch);
}

static inline FILE *stage_open(struct stage *stage, size_t *size)
{
	FILE *out;

	free(stage->text);
	stage->text = NULL;
	out = open_memstream(&stage->text, size);
	CHECK(out);
	return out;
}

static inline const char *mqds(struct stage *stage)
{
	size_t size;
	FILE *out = stage_open(stage, &size);

	debugfs_mqds(stage->sim, out);
	CHECK(fclose(out) == 0 && strlen(stage->text) == size);
	return stage->text;
}

static inline const char *hqds(struct stage *stage)
{
	size_t size;
	FILE *out = stage_open(stage, &size);

	debugfs_hqds(stage->sim, stage->topology, out);
	CHECK(fclose(out) == 0 && strlen(stage->text) == size);
	return stage->text;
}

static inline const char *rls(struct stage *stage)
{
	size_t size;
	FILE *out = stage_open(stage, &size);

	debugfs_rls(stage->sim, stage->topology, out);
	CHECK(fclose(out) == 0 && strlen(stage->text) == size);
	return stage->text;
}
