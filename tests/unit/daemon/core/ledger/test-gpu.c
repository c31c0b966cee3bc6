/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The processes that a GPU names in a refusal, and the partitions that a saved lease may have. */

#include <errno.h>

#include "check.h"
#include "ledger-rig.h"

TEST(a_process_that_uses_a_gpu_by_both_drivers_is_named_once)
{
	static struct gpu gpu;
	struct refusal refusal = { .n_processes = 0 };
	struct gpu_client clients[] = { { .pid = 1, .vram = 1 },
					{ .pid = 2 },
					{ .pid = 3, .vram = 1, .lease = 4 } };

	gpu.graphics.n_clients = 3;
	gpu.graphics.clients = clients;
	gpu.observed.n_processes = 3;
	for (int i = 0; i < 3; i++)
		gpu.observed.processes[i].pid = i + 1;
	gpu_name_vram_users(&gpu, &refusal);
	CHECK(refusal.n_processes == 3);
	for (int i = 0; i < 3; i++)
		CHECK(refusal.processes[i].pid == i + 1);
}

/* CUs 0 to n - 1 of a shader engine. */
static void set_engine(struct cuset *set, unsigned engine, unsigned n)
{
	set->pair[cuset_pair(0, engine)] = (UINT32_C(1) << n) - 1;
}

TEST(the_base_of_an_adaptable_partition_is_a_rectangle)
{
	static const struct {
		unsigned cus[2]; /* of two engines */
		int r;
	} rows[] = { { { 4, 4 }, 0 },
		     { { 8, 0 }, 0 },
		     { { 4, 3 }, -EINVAL },
		     { { 0, 0 }, -EINVAL },
		     { { 9, 9 }, -EINVAL } };
	const struct gpu_info info = radeon_vii("0000:03:00.0");
	struct arbiter *arbiter = arbiter_of(&info, 1);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct adaptation adaptation = { .base = { { 0 } } };
		struct partition partition = { .adaptation = &adaptation };
		char why[128] = "";

		for (unsigned engine = 0; engine < 2; engine++) {
			set_engine(&partition.cus, engine, 8);
			set_engine(&adaptation.base, engine, rows[i].cus[engine]);
		}
		partition.occupied = partition.cus;
		partition.count = partition.effective = cuset_count(&partition.cus);
		CHECK(gpu_check_partition(&arbiter->gpus[0], &partition, why, sizeof(why)) ==
		      rows[i].r);
		CHECK(rows[i].r == 0 || strstr(why, "rectangle"));
	}
	arbiter_free(arbiter);
}
