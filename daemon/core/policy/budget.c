/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/budget.h"

void budget_add(struct budget *sum, const struct budget *budget)
{
	for (unsigned r = 0; r < BUDGETS; r++)
		sum->of[r] += budget->of[r];
}

void budget_remove(struct budget *sum, const struct budget *budget)
{
	for (unsigned r = 0; r < BUDGETS; r++)
		sum->of[r] -= budget->of[r];
}

bool budget_within(const struct budget *a, const struct budget *b)
{
	for (unsigned r = 0; r < BUDGETS; r++)
		if (a->of[r] > b->of[r])
			return false;
	return true;
}

bool budget_counts(const struct budget *granted, enum resource resource)
{
	return resource == RESOURCE_QUEUES || resource == RESOURCE_PROCESSES ||
	       granted->of[resource] > 0;
}

uint64_t budget_queues(const struct budget *budget)
{
	return budget->queues + budget->sdma_queues + budget->sdma_xgmi_queues;
}
