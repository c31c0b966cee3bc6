/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The smallest and largest GPUs, and requests with contradicting bounds. */

#include "check.h"
#include "util/base.h"
#include "ledger-rig.h"

#define RT 1 /* a uid whose tenant allows realtime */

static struct arbiter *machine(const struct geometry *geometry)
{
	struct gpu_info info = radeon_vii("gpu");
	struct arbiter *arbiter;
	char why[256];

	info.geometry = *geometry;
	CHECK(geometry_check(geometry, why, sizeof(why)) == 0);
	arbiter = arbiter_of(&info, 1);
	add_tenant(arbiter, "rt", RT, CLASS_REALTIME);
	return arbiter;
}

static bool bounded_by(const struct result *result, const char *key, uint64_t asked, uint64_t limit)
{
	const struct refusal *refusal = &result->refusals[0];

	return refusal->key && strcmp(refusal->key, key) == 0 && refusal->asked == asked &&
	       refusal->limit == limit;
}

static struct geometry even(unsigned xccs, unsigned engines, unsigned arrays, unsigned array_cus)
{
	struct geometry g = {
		.xccs = xccs, .engines = engines, .arrays = arrays, .array_cus = array_cus
	};

	CHECK(geometry_spread(&g, xccs * engines * arrays * array_cus) == 0);
	return g;
}

/* The granted partition; count 0: the request was refused. */
static struct partition ask(struct arbiter *arbiter, uid_t uid, const struct request *request,
			    struct result *result)
{
	struct lease *lease = reserve(arbiter, uid, request, result);

	return lease ? lease->partitions[0] : (struct partition){ 0 };
}

static void done(struct arbiter *arbiter, struct result *result)
{
	result_done(result);
	arbiter_free(arbiter);
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
	struct geometry g = even(1, 1, 1, 16);
	struct arbiter *arbiter = machine(&g);
	struct request request = request_for(5);
	struct result result = { 0 };

	CHECK(ask(arbiter, RT, &request, &result).count == 5);
	CHECK(ask(arbiter, RT, &request, &result).count == 0);
	CHECK(result.kind == RESULT_NO_CAPACITY &&
	      result.refusals[0].reason == REASON_SHADER_ENGINES);
	request = request_for(11);
	CHECK(ask(arbiter, 0, &request, &result).count == 11);
	request = request_for(1);
	CHECK(ask(arbiter, 0, &request, &result).count == 0);
	CHECK(result.refusals[0].reason == REASON_CUS && result.refusals[0].free == 0);
	done(arbiter, &result);
}

TEST(smallest_gpu_grants_its_only_cu)
{
	struct geometry g = even(1, 1, 1, 1);
	struct arbiter *arbiter = machine(&g);
	struct request request = request_for(2);
	struct result result = { 0 };

	CHECK(ask(arbiter, RT, &request, &result).count == 0);
	CHECK(result.kind == RESULT_NEVER_FITS);
	request = request_for(1);
	CHECK(ask(arbiter, RT, &request, &result).count == 1);
	done(arbiter, &result);
}

TEST(an_engine_without_a_cu_is_never_in_a_mask)
{
	struct geometry g = { 1, 4, 1, 16, false, { { { 15 }, { 0 }, { 15 }, { 15 } } } };
	struct arbiter *arbiter = machine(&g);
	struct request request = request_for(0);
	struct result result = { 0 };
	struct partition p;

	request.wants[0].shader_engines = 4;
	CHECK(ask(arbiter, RT, &request, &result).count == 0);
	CHECK(result.kind == RESULT_NEVER_FITS);
	request.wants[0].shader_engines = 3;
	p = ask(arbiter, RT, &request, &result);
	CHECK(p.count == 45 && cuset_engines(&p.cus) == 0xd);
	done(arbiter, &result);
}

TEST(engine_without_a_cu_on_one_xcc_is_never_granted_to_realtime)
{
	struct geometry g = even(2, 2, 1, 4);
	struct arbiter *arbiter;
	struct request request = request_for(6);
	struct result result = { 0 };
	struct partition p;

	g.active[1][0][0] = 0;
	arbiter = machine(&g);
	p = ask(arbiter, RT, &request, &result);
	CHECK(p.count == 6 && cuset_engines(&p.cus) == 2);
	CHECK(ask(arbiter, RT, &request, &result).count == 0);
	CHECK(result.kind == RESULT_NO_CAPACITY);
	done(arbiter, &result);
}

TEST(gpu_with_as_many_cus_as_mask_bits_is_granted_whole)
{
	struct geometry g = even(8, 8, 1, 16);
	struct arbiter *arbiter = machine(&g);
	struct request request = request_for(1024), half = request_for(512);
	struct result result = { 0 };
	uint32_t mask[CODEC_WORDS];
	struct partition p;

	p = ask(arbiter, RT, &request, &result);
	CHECK(p.count == 1024 && p.effective == 1024);
	codec_encode(&arbiter->gpus[0].codec, &p.cus, mask);
	for (size_t i = 0; i < CODEC_WORDS; i++)
		CHECK(mask[i] == UINT32_MAX);
	release(arbiter, 1);
	for (unsigned i = 0; i < 2; i++) {
		p = ask(arbiter, RT, &half, &result);
		CHECK(p.count == 512 && __builtin_popcount(cuset_engines(&p.cus)) == 4);
	}
	request = request_for(1025);
	request.wants[0].exact = true;
	CHECK(ask(arbiter, 0, &request, &result).count == 0);
	CHECK(result.kind == RESULT_NEVER_FITS);
	done(arbiter, &result);
}

TEST(cus_that_no_mask_bit_reaches_are_never_granted)
{
	struct geometry g = even(8, 8, 2, 16);
	struct arbiter *arbiter = machine(&g);
	struct request request = request_for(2048);
	struct result result = { 0 };
	struct partition p;

	CHECK(ask(arbiter, RT, &request, &result).count == 0);
	CHECK(result.kind == RESULT_NEVER_FITS && arbiter->gpus[0].cus == 1024);
	request = request_for(1024);
	p = ask(arbiter, RT, &request, &result);
	CHECK(p.count == 1024 && cuset_within(&p.cus, &arbiter->gpus[0].all));
	done(arbiter, &result);
}

TEST(cus_min_above_the_engines_never_fits)
{
	struct geometry g = even(1, 4, 1, 15);
	struct arbiter *arbiter = machine(&g);
	struct request request = request_for(0);
	struct want *want = &request.wants[0];
	struct result result = { 0 };

	want->shader_engines = 2;
	want->cus_min = 31;
	CHECK(ask(arbiter, RT, &request, &result).count == 0);
	CHECK(result.kind == RESULT_NEVER_FITS);
	CHECK(bounded_by(&result, "cus-min", 31, 30));
	want->cus_min = 30;
	CHECK(ask(arbiter, RT, &request, &result).count == 30);
	done(arbiter, &result);
}

TEST(cus_max_below_the_engines_never_fits)
{
	struct geometry g = even(1, 4, 1, 15);
	struct arbiter *arbiter = machine(&g);
	struct request request = request_for(0);
	struct want *want = &request.wants[0];
	struct result result = { 0 };

	want->shader_engines = 2;
	want->cus_max = 29;
	CHECK(ask(arbiter, 0, &request, &result).count == 0);
	CHECK(result.kind == RESULT_NEVER_FITS);
	CHECK(bounded_by(&result, "cus-max", 29, 30));
	want->cus_min = 29;
	want->cus = 28;
	CHECK(ask(arbiter, 0, &request, &result).count == 0);
	CHECK(result.kind == RESULT_INVALID_REQUEST);
	CHECK(strstr(result.sentence, "cus-min 29"));
	done(arbiter, &result);
}
