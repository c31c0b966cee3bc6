/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/settings.h"

#include "check.h"

TEST(the_defaults_let_everybody_ask_for_best_effort)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	const struct tenant *tenant;

	CHECK(settings_new(&settings) == 0);
	CHECK(settings->backend == BACKEND_AUTO && settings->unmanaged == UNMANAGED_COUNT);
	CHECK(strcmp(settings->simulate, "radeon-vii") == 0);
	CHECK(settings->audit_interval_usec == 2000000 &&
	      settings->margin_percent == MARGIN_MEASURED);
	CHECK(!settings->oversubscribe_besteffort && settings->n_gpus == 0);
	CHECK(settings->max_leases == 4096 && settings->max_leases_per_user == 1024);
	CHECK(settings->max_holders == 4096);
	CHECK(settings->activate_grace_usec == 1000000 && settings->enforce_delay_usec == 1000000);
	CHECK(settings->activate_min_interval_usec == 1000000);
	CHECK(settings->grow_delay_usec == 2000000);

	CHECK(settings->n_tenants == 1);
	tenant = &settings->tenants[0];
	CHECK(strcmp(tenant->name, "*") == 0 && tenant->class == CLASS_BESTEFFORT);
	CHECK(tenant->priority == PRIORITY_NORMAL && !tenant->alone);
	CHECK(tenant->enforce == ENFORCE_STEP_REPORT);
	CHECK(tenant->max_leases.kind == LIMIT_NONE && tenant->max_vram.kind == LIMIT_NONE);
}

TEST(a_limit_is_none_or_a_count_or_a_share_rounded_down)
{
	const struct limit none = { 0 }, count = { LIMIT_COUNT, 7 }, share = { LIMIT_PERCENT, 25 };

	CHECK(limit_of(&none, 60) == UINT64_MAX);
	CHECK(limit_of(&count, 60) == 7 && limit_of(&count, 3) == 7);
	CHECK(limit_of(&share, 60) == 15 && limit_of(&share, 63) == 15);
	CHECK(limit_of(&share, 3) == 0 && limit_of(&share, 0) == 0);
}

TEST(a_share_of_the_largest_number_does_not_overflow)
{
	const struct limit all = { LIMIT_PERCENT, 100 }, half = { LIMIT_PERCENT, 50 };

	CHECK(limit_of(&all, UINT64_MAX) == UINT64_MAX);
	CHECK(limit_of(&half, UINT64_MAX) == UINT64_MAX / 2);
}

TEST(a_gpu_is_found_by_its_whole_name)
{
	struct gpu_settings gpus[] = { { "0000:03:00.0/1", 1, false },
				       { "0000:03:00.0", 2, true } };
	const struct settings settings = { .gpus = gpus, .n_gpus = 2 };

	CHECK(settings_gpu(&settings, "0000:03:00.0") == &gpus[1]);
	CHECK(settings_gpu(&settings, "0000:03:00.0/1") == &gpus[0]);
	CHECK(!settings_gpu(&settings, "0000:03:00.0/2"));
	CHECK(settings_gpu_any(&settings, "0000:03:00.0/1"));
	CHECK(!settings_gpu_any(&settings, "0000:03:00.0"));
	CHECK(settings_gpu_any(&settings, "0000:03:00.0/2"));
}

TEST(freeing_nothing_is_fine)
{
	CHECK(!settings_free(NULL));
}
