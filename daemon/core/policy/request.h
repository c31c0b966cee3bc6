/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A request, as plain values. bus/bus-read.c fills them, with the defaults of the bus contract for keys
 * that are missing; request_complete() checks them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/mask/gpu-info.h"
#include "core/policy/budget.h"
#include "core/policy/caller.h"
#include "core/policy/class.h"

/* The longest grace that a revocation can ask for: a day. */
#define REVOKE_GRACE_MAX_USEC (UINT64_C(24) * 3600 * 1000000)

#define WANT_GPUS 1024U /* bytes of the GPUs that a want names, with the NUL: 64 partitions */

/* One partition as requested. */
struct want {
	char gpu[WANT_GPUS];     /* "any", an index in decimal, a name, or several with commas */
	unsigned cus;            /* the aim; 0: that of shader_engines */
	unsigned shader_engines; /* 0: any number of them */
	unsigned cus_min;        /* 0: nine tenths of the aim */
	unsigned cus_max;        /* 0: the aim; best effort only */
	/* Percent of the CUs of each GPU instead; 0: not. */
	unsigned cus_percent, cus_min_percent, cus_max_percent;
	bool exact;
	bool any_shape; /* shape=any: not a rectangle */
	union {         /* queues 0: 2 x processes; processes 0: 1; vram 0: not counted */
		struct budget budget;
		struct {
			BUDGET_AMOUNTS;
		};
	};
	bool default_vram; /* vram is default-vram of the tenant: plan.c */
	unsigned streams;  /* masked streams of each process: a queue each */
	unsigned priority; /* 0..15, or PRIORITY_BY_CLASS */
	enum isolation isolation;
};

/* All zero but priority = PRIORITY_NORMAL and gpu = "any". */
void want_init(struct want *want);
bool want_equal(const struct want *a, const struct want *b);

/* The next GPU of a list with commas, which becomes NULL behind the last one; false: there is none. A name
 * that is too long is cut. */
bool want_next_gpu(const char **list, char ret[static GPU_NAME_MAX]);

static inline bool want_has_percent(const struct want *want)
{
	return want->cus_percent > 0 || want->cus_min_percent > 0 || want->cus_max_percent > 0;
}

/* The same for a GPU with so many CUs, with numbers instead of percentages, rounded down. cus_percent may
 * be less than one CU: then cus is 0. */
void want_resolve_percent(const struct want *want, unsigned cus, struct want *ret);

/* The fewest CUs that do for the want, which aims at so many. */
static inline unsigned want_least_cus(const struct want *want, unsigned aim)
{
	return want->cus_min ? want->cus_min : aim - aim / 10; /* 9/10, up */
}

struct request {
	size_t n_wants;
	int class; /* enum lease_class, or -1: the tenant's */
	char name[REQUEST_TEXT];
	char tenant[REQUEST_TEXT]; /* "": the first that matches */
	char token[REQUEST_TEXT];  /* "": none */
	uint64_t wait_usec;
	uint64_t duration_usec; /* 0: as the tenant */
	bool start_inactive;
	bool adaptable;
	bool exclusive;                   /* exclusive = active was asked for */
	bool requeue;                     /* if it is revoked for another lease, it waits again */
	struct want wants[REQUEST_WANTS]; /* last: request_keep() copies n_wants of them */
};

/* A copy in no more memory than its wants need. Read its members, or give it to request_equal() and
 * request_recall(); never copy the structure, which is shorter than its type. NULL: no memory. */
struct request *request_keep(const struct request *request);
void request_recall(const struct request *kept, struct request *ret);

struct result;

/* Checks what needs no GPU, and fills in the defaults that depend on other values, for a lease of
 * this class. -EINVAL or -EOPNOTSUPP, with a sentence that names the want (from 1) and the key. */
int request_complete(struct request *request, enum lease_class lease_class, struct result *result);

/* Whether all wants are equal; name, token and tenant are not compared. */
bool request_wants_equal(const struct request *a, const struct request *b);

/* Whether two requests, both before request_complete(), are equal; wait_usec is not compared. */
bool request_equal(const struct request *a, const struct request *b);

/* Whether a request is equal to another one but lacks some of its wants, and names the GPU of each that it has. */
bool request_is_part(const struct request *part, const struct request *whole);
