/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The protocol between gpuarbd and gpuarb-budget: one struct in each packet of a SOCK_SEQPACKET
 * socket, in the byte order of the host, of which only the first n rows are sent. Each connection has
 * one request and one answer. A request has all budgets: gpuarb-budget removes those that it does not
 * name. The fields leave no padding.
 */

#include <stddef.h>
#include <stdint.h>

#define BUDGET_ROWS_MAX 4096U /* the default of max-leases */
#define BUDGET_VERSION 1U
#define BUDGET_LIMIT_MAX UINT64_C(65535)
#define BUDGET_SENTENCE_MAX 244U

struct budget_row {
	uint64_t lease;
	uint64_t cgroup; /* its id: the inode of its directory */
	uint64_t limit;  /* queues of all types, at most BUDGET_LIMIT_MAX */
};

struct budget_request {
	uint32_t version, n;
	uint64_t
		try; /* not 0: where there is no row, find out whether the kernel would enforce any */
	struct budget_row rows[BUDGET_ROWS_MAX];
};

struct budget_state {
	uint64_t refused; /* calls, since the cgroup has the budget */
	int32_t queues;
	int32_t r; /* 0: the budget is in force; or a negative errno */
};

/* r 0: the rows are those of the request. Else a negative errno with a sentence, and no row. */
struct budget_answer {
	uint32_t version, n;
	int32_t r;
	char sentence[BUDGET_SENTENCE_MAX];
	struct budget_state rows[BUDGET_ROWS_MAX];
};

static inline size_t budget_request_size(uint32_t n)
{
	return offsetof(struct budget_request, rows) + n * sizeof(struct budget_row);
}

static inline size_t budget_answer_size(uint32_t n)
{
	return offsetof(struct budget_answer, rows) + n * sizeof(struct budget_state);
}
