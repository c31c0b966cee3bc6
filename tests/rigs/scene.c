/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scene.h"

#include "refusal-check.h"

#include "check-cond.h"

struct scene scene_of(size_t n_gpus)
{
	struct gpu_info gpus[8];
	struct scene scene = { 0 };
	char name[16];

	for (size_t i = 0; i < n_gpus; i++) {
		snprintf(name, sizeof(name), "0000:%02zx:00.0", 3 + i);
		gpus[i] = radeon_vii(name);
	}
	scene.arbiter = arbiter_of(gpus, n_gpus);
	add_tenant(scene.arbiter, "lab", LAB, CLASS_GUARANTEED);
	add_tenant(scene.arbiter, "vr", VR, CLASS_REALTIME)->priority = PRIORITY_HIGH;
	return scene;
}

void scene_done(struct scene *scene)
{
	result_done(&scene->result);
	arbiter_free(scene->arbiter);
}

struct lease *grant(struct scene *scene, uid_t uid, unsigned cus)
{
	struct request request = request_for(cus);

	return reserve(scene->arbiter, uid, &request, &scene->result);
}

bool refused(const struct scene *scene, enum result_kind kind, enum reason reason)
{
	const char *lacks = scene->result.n_refusals > 0 ? refusal_lacks(&scene->result.refusals[0])
							 : "a refusal";

	if (scene->result.kind == kind && !lacks && scene->result.refusals[0].reason == reason)
		return true;
	fprintf(stderr, "result %d lacks %s: %s\n", scene->result.kind, lacks ? lacks : "nothing",
		scene->result.sentence);
	return false;
}
