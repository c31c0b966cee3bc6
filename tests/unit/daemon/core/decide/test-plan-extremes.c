/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The smallest and largest GPUs, and requests with contradicting bounds. */

#include "check.h"
#include "util/base.h"
#include "scene.h"

static struct geometry even(unsigned xccs, unsigned engines, unsigned arrays, unsigned array_cus)
{
	struct geometry g = {
		.xccs = xccs, .engines = engines, .arrays = arrays, .array_cus = array_cus
	};

	CHECK(geometry_spread(&g, xccs * engines * arrays * array_cus) == 0);
	return g;
}

/* One GPU, and a tenant that allows realtime: VR. */
static struct scene machine(struct geometry geometry)
{
	struct gpu_info info = radeon_vii("gpu");
	struct scene scene = { 0 };
	char why[256];

	info.geometry = geometry;
	CHECK(geometry_check(&geometry, why, sizeof(why)) == 0);
	scene.arbiter = arbiter_of(&info, 1);
	add_tenant(scene.arbiter, "vr", VR, CLASS_REALTIME);
	return scene;
}

/* The granted partition; count 0: the request was refused. */
static struct partition ask(struct scene *s, uid_t uid, const char *request)
{
	struct lease *lease = grant_as(s, uid, "%s", request);

	return lease ? lease->partitions[0] : (struct partition){ 0 };
}

static bool never_fits(struct scene *s, uid_t uid, const char *request)
{
	return ask(s, uid, request).count == 0 && s->result.kind == RESULT_NEVER_FITS;
}

static bool bounded_by(const struct result *result, const char *key, uint64_t asked, uint64_t limit)
{
	const struct refusal *refusal = &result->refusals[0];

	return refusal->key && strcmp(refusal->key, key) == 0 && refusal->asked == asked &&
	       refusal->limit == limit;
}

TEST(gpu_without_an_engine_is_invalid)
{
	struct geometry g = { .xccs = 1, .engines = 0, .arrays = 1, .array_cus = 16 };
	char why[256];

	CHECK(geometry_check(&g, why, sizeof(why)) < 0);
	CHECK(strstr(why, "XCC: 1 to 8"));
	CHECK(geometry_spread(&g, 16) < 0);
}

TEST(one_engine_takes_one_realtime_lease_and_others_beside_it)
{
	_cleanup_(scene_done) struct scene s = machine(even(1, 1, 1, 16));

	CHECK(ask(&s, VR, "cus=5").count == 5 && ask(&s, VR, "cus=5").count == 0);
	CHECK(refused(&s, RESULT_NO_CAPACITY, REASON_SHADER_ENGINES));
	CHECK(ask(&s, ANY, "cus=11").count == 11 && ask(&s, ANY, "cus=1").count == 0);
	CHECK(refused(&s, RESULT_NO_CAPACITY, REASON_CUS) && s.result.refusals[0].free == 0);
}

TEST(smallest_gpu_grants_its_only_cu)
{
	_cleanup_(scene_done) struct scene s = machine(even(1, 1, 1, 1));

	CHECK(never_fits(&s, VR, "cus=2") && ask(&s, VR, "cus=1").count == 1);
}

TEST(an_engine_without_a_cu_is_never_in_a_mask)
{
	const struct geometry g = { 1, 4, 1, 16, false, { { { 15 }, { 0 }, { 15 }, { 15 } } } };
	_cleanup_(scene_done) struct scene s = machine(g);
	struct partition p;

	CHECK(never_fits(&s, VR, "shader-engines=4"));
	p = ask(&s, VR, "shader-engines=3");
	CHECK(p.count == 45 && cuset_engines(&p.cus) == 0xd);
}

TEST(engine_without_a_cu_on_one_xcc_is_never_granted_to_realtime)
{
	struct geometry g = even(2, 2, 1, 4);
	struct partition p;

	g.active[1][0][0] = 0;
	_cleanup_(scene_done) struct scene s = machine(g);
	p = ask(&s, VR, "cus=6");
	CHECK(p.count == 6 && cuset_engines(&p.cus) == 2);
	CHECK(ask(&s, VR, "cus=6").count == 0 && s.result.kind == RESULT_NO_CAPACITY);
}

TEST(gpu_with_as_many_cus_as_mask_bits_is_granted_whole)
{
	_cleanup_(scene_done) struct scene s = machine(even(8, 8, 1, 16));
	struct partition p = ask(&s, VR, "cus=1024");
	uint32_t mask[CODEC_WORDS];

	CHECK(p.count == 1024 && p.effective == 1024);
	codec_encode(&s.arbiter->gpus[0].codec, &p.cus, mask);
	for (size_t i = 0; i < CODEC_WORDS; i++)
		CHECK(mask[i] == UINT32_MAX);
	release(s.arbiter, 1);
	for (unsigned i = 0; i < 2; i++) {
		p = ask(&s, VR, "cus=512");
		CHECK(p.count == 512 && __builtin_popcount(cuset_engines(&p.cus)) == 4);
	}
	CHECK(never_fits(&s, ANY, "cus=1025 exact=1"));
}

TEST(cus_that_no_mask_bit_reaches_are_never_granted)
{
	_cleanup_(scene_done) struct scene s = machine(even(8, 8, 2, 16));
	struct partition p;

	CHECK(never_fits(&s, VR, "cus=2048") && s.arbiter->gpus[0].cus == 1024);
	p = ask(&s, VR, "cus=1024");
	CHECK(p.count == 1024 && cuset_within(&p.cus, &s.arbiter->gpus[0].all));
}

TEST(bounds_that_the_engines_cannot_keep_never_fit)
{
	_cleanup_(scene_done) struct scene s = machine(even(1, 4, 1, 15));

	CHECK(never_fits(&s, VR, "shader-engines=2 cus-min=31"));
	CHECK(bounded_by(&s.result, "cus-min", 31, 30));
	CHECK(ask(&s, VR, "shader-engines=2 cus-min=30").count == 30);
	CHECK(never_fits(&s, ANY, "shader-engines=2 cus-max=29"));
	CHECK(bounded_by(&s.result, "cus-max", 29, 30));
	CHECK(ask(&s, ANY, "cus=28 shader-engines=2 cus-min=29 cus-max=29").count == 0);
	CHECK(s.result.kind == RESULT_INVALID_REQUEST && strstr(s.result.sentence, "cus-min 29"));
}
