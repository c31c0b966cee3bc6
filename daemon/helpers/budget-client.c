/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/budget-client.h"

#include <stdlib.h>
#include <string.h>

#include "helpers/asker.h"

static bool is_valid(void *packet, size_t length, size_t, const void *asked)
{
	const struct budget_request *request = asked;
	const struct budget_answer *answer = packet;

	return length >= budget_answer_size(0) && answer->version == BUDGET_VERSION &&
	       answer->r <= 0 && answer->n == (answer->r < 0 ? 0 : request->n) &&
	       length == budget_answer_size(answer->n) &&
	       memchr(answer->sentence, '\0', sizeof(answer->sentence));
}

const struct asker_helper budget_helper = {
	.name = "gpuarb-budget",
	.unit = "gpuarb-budget.socket",
	.most = 1,
	.answer_size = sizeof(struct budget_answer),
	.is_valid = is_valid,
};

DEFINE_ORDER(by_cgroup, struct budget_row, .cgroup)

static int by_cgroup_and_lease(const void *a, const void *b)
{
	const struct budget_row *x = a, *y = b;
	int order = by_cgroup(a, b);

	return order != 0 ? order : (x->lease > y->lease) - (x->lease < y->lease);
}

size_t budget_request_fill(struct budget_request *request, struct budget_row *rows, size_t n)
{
	size_t n_cgroups = 0;

	request->n = 0;
	qsort(rows, n, sizeof(*rows), by_cgroup_and_lease);
	for (size_t i = 0; i < n; i++) {
		struct budget_row *last = request->n ? &request->rows[request->n - 1] : NULL;
		bool again = i > 0 && rows[i].cgroup == rows[i - 1].cgroup;

		n_cgroups += !again;
		if (n_cgroups > BUDGET_ROWS_MAX)
			continue;
		if (!again)
			request->rows[request->n++] = rows[i];
		else
			last->limit = min_u64(last->limit + rows[i].limit, BUDGET_LIMIT_MAX);
	}
	return n_cgroups - request->n;
}

const struct budget_state *budget_state_of(const struct budget_request *request,
					   const struct budget_answer *answer, uint64_t cgroup)
{
	const struct budget_row key = { .cgroup = cgroup };
	const struct budget_row *row = bsearch(&key, request->rows, answer->n,
					       sizeof(request->rows[0]), by_cgroup);

	return row ? &answer->rows[row - request->rows] : NULL;
}
