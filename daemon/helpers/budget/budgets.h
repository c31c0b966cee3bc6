/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The budgets in the kernel: made equal to those of a request. */

#include "helpers/budget-protocol.h"

/* Writes the answer up to its n rows. */
void budgets_apply(const char *sysfs, const struct budget_request *request,
		   struct budget_answer *ret);
