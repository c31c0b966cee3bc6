/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/clients.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

/* ---- gpuarb-budget --------------------------------------------------------------------- */

static bool is_budget(void *packet, size_t length, size_t, const void *asked)
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
	.most = 1,
	.answer_size = sizeof(struct budget_answer),
	.is_valid = is_budget,
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

/* ---- gpuarb-enforce -------------------------------------------------------------------- */

static bool is_enforced(void *answer, size_t length, size_t, const void *)
{
	return enforce_answer_check(answer, length) >= 0;
}

const struct asker_helper enforce_helper = {
	.name = "gpuarb-enforce",
	.most = ENFORCE_QUEUE,
	.answer_size = sizeof(struct enforce_answer),
	.is_valid = is_enforced,
	.lasts = true,
};

int enforce_ask(struct asker *asker, enum enforce_verb verb, int pidfd, uint64_t start_time,
		uid_t uid, const char *text, uint64_t tag, char *why, size_t size)
{
	struct enforce_request request = { .verb = verb, .start_time = start_time, .uid = uid };
	int r = enforce_names_unit(verb) ? enforce_unit_check(text, why, size) : 0;

	if (r < 0)
		return r;
	if (pidfd < 0 && verb != ENFORCE_THAW)
		return refuse(why, size, -EBADF, "there is no pidfd of the process");
	snprintf(request.text, sizeof(request.text), "%s", text);
	return asker_ask(asker, &request, sizeof(request), pidfd, tag, why, size);
}

/* ---- gpuarb-fdinfo --------------------------------------------------------------------- */

static bool is_scan(void *answer, size_t length, size_t, const void *)
{
	return drm_scan_check(answer, length) == 0;
}

const struct asker_helper fdinfo_helper = {
	.name = "gpuarb-fdinfo",
	.most = 1,
	.answer_size = sizeof(struct drm_scan),
	.is_valid = is_scan,
	.lasts = true,
	.repeats = true,
};

/* ---- gpuarb-probe ---------------------------------------------------------------------- */

static size_t count_fds(const struct probe_answer *answer)
{
	size_t n = 0;

	for (size_t i = 0; i < answer->n; i++)
		n += answer->gpus[i].subscribed ? PROBE_FDS : 0;
	return n;
}

static bool is_probed(void *packet, size_t length, size_t n_fds, const void *)
{
	const struct probe_answer *answer = packet;

	return length == sizeof(*answer) && answer->protocol == PROBE_PROTOCOL &&
	       answer->error <= 0 && answer->n <= (answer->error < 0 ? 0 : PROBE_GPUS) &&
	       n_fds == count_fds(answer) && memchr(answer->text, '\0', sizeof(answer->text));
}

const struct asker_helper probe_helper = {
	.name = "gpuarb-probe",
	.most = 1,
	.answer_size = sizeof(struct probe_answer),
	.answer_fds = PROBE_GPUS * PROBE_FDS,
	.is_valid = is_probed,
};
