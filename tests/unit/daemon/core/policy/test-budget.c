/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/budget.h"

#include "check.h"

TEST(amounts_are_in_the_order_of_the_resources)
{
	const struct budget budget = { .queues = 1,
				       .processes = 2,
				       .sdma_queues = 3,
				       .sdma_xgmi_queues = 4,
				       .vram = 5,
				       .cooperative = 6 };

	CHECK(budget.of[RESOURCE_NONE] == 0 && budget.of[RESOURCE_QUEUES] == 1);
	CHECK(budget.of[RESOURCE_PROCESSES] == 2 && budget.of[RESOURCE_SDMA_QUEUES] == 3);
	CHECK(budget.of[RESOURCE_SDMA_XGMI_QUEUES] == 4 && budget.of[RESOURCE_VRAM] == 5);
	CHECK(budget.of[RESOURCE_COOPERATIVE_QUEUES] == 6 && budget_queues(&budget) == 8);
}

TEST(a_budget_is_within_another_only_with_every_amount)
{
	const struct budget most = { .of = { 0, 7, 7, 7, 7, 7, 7 } };

	for (unsigned r = RESOURCE_QUEUES; r < BUDGETS; r++) {
		struct budget budget = most, sum = most;

		CHECK(budget_within(&budget, &most));
		budget.of[r]++;
		CHECK(!budget_within(&budget, &most) && budget_within(&most, &budget));
		budget_add(&sum, &budget);
		CHECK(sum.of[r] == 15);
		budget_remove(&sum, &budget);
		CHECK(memcmp(&sum, &most, sizeof(sum)) == 0);
	}
}

TEST(use_of_what_was_not_granted_counts_for_slots_alone)
{
	const struct budget none = { 0 }, some = { .sdma_queues = 1, .vram = 1 };

	for (unsigned r = RESOURCE_QUEUES; r < BUDGETS; r++)
		CHECK(budget_counts(&none, r) == (r <= RESOURCE_PROCESSES));
	CHECK(budget_counts(&some, RESOURCE_SDMA_QUEUES) && budget_counts(&some, RESOURCE_VRAM));
	CHECK(!budget_counts(&some, RESOURCE_SDMA_XGMI_QUEUES));
}
