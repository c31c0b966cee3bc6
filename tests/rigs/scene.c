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

struct lease *grant_list(struct scene *scene, uid_t uid, const char *format, va_list args)
{
	struct request request = request_of_list(format, args);

	return reserve(scene->arbiter, uid, &request, &scene->result);
}

struct lease *grant_as(struct scene *scene, uid_t uid, const char *format, ...)
{
	struct lease *lease;
	va_list args;

	va_start(args, format);
	lease = grant_list(scene, uid, format, args);
	va_end(args);
	return lease;
}

int resize_as(struct scene *scene, const struct lease *lease, const char *format, ...)
{
	struct caller caller = caller_of(lease->owner);
	struct request request;
	struct lease *next;
	va_list args;
	int r;

	va_start(args, format);
	request = request_of_list(format, args);
	va_end(args);
	result_done(&scene->result);
	r = arbiter_plan_resize(scene->arbiter, &caller, lease->id, &request, &next,
				&scene->result);
	if (r >= 0)
		arbiter_commit(scene->arbiter, next);
	return r;
}

struct tenant *tenant_of(const struct scene *scene, const char *name)
{
	struct tenant *tenant = scene->arbiter->settings->tenants;

	while (strcmp(tenant->name, name) != 0)
		CHECK(++tenant <
		      scene->arbiter->settings->tenants + scene->arbiter->settings->n_tenants);
	return tenant;
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
