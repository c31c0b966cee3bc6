/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/result.h"

void want_init(struct want *want)
{
	memset(want, 0, sizeof(*want));
	strcpy(want->gpu, "any");
	want->priority = PRIORITY_NORMAL;
}

/* The bytes that request_keep() copies: without the wants behind n_wants. */
static size_t size_of(const struct request *request)
{
	return offsetof(struct request, wants) + request->n_wants * sizeof(request->wants[0]);
}

struct request *request_keep(const struct request *request)
{
	struct request *kept = malloc(size_of(request));

	if (kept)
		memcpy(kept, request, size_of(request));
	return kept;
}

void request_recall(const struct request *kept, struct request *ret)
{
	memcpy(ret, kept, size_of(kept));
}

bool want_next_gpu(const char **list, char ret[static GPU_NAME_MAX])
{
	size_t n = *list ? strcspn(*list, ",") : 0;

	if (!*list)
		return false;
	snprintf(ret, GPU_NAME_MAX, "%.*s", (int)n, *list);
	*list = (*list)[n] ? *list + n + 1 : NULL;
	return true;
}

static unsigned percent_of(unsigned percent, unsigned cus)
{
	return (unsigned)((uint64_t)cus * percent / 100);
}

void want_resolve_percent(const struct want *want, unsigned cus, struct want *ret)
{
	*ret = *want;
	if (want->cus_percent > 0)
		ret->cus = percent_of(want->cus_percent, cus);
	if (want->cus_min_percent > 0)
		ret->cus_min = max_u(percent_of(want->cus_min_percent, cus), 1);
	if (want->cus_max_percent > 0)
		ret->cus_max = max_u(percent_of(want->cus_max_percent, cus), 1);
	ret->cus_percent = ret->cus_min_percent = ret->cus_max_percent = 0;
}

static int check_percent(const struct want *want, size_t i, struct result *result)
{
	const struct {
		const char *key;
		unsigned number, percent;
	} list[] = { { "cus", want->cus, want->cus_percent },
		     { "cus-min", want->cus_min, want->cus_min_percent },
		     { "cus-max", want->cus_max, want->cus_max_percent } };

	for (size_t k = 0; k < ARRAY_SIZE(list); k++)
		if (list[k].number > 0 && list[k].percent > 0)
			return result_set(
				result, RESULT_INVALID_REQUEST,
				"want %zu: %s and %s-percent exclude each other: give one", i,
				list[k].key, list[k].key);
	if (want->cus_percent > 0 && want->cus_min_percent > want->cus_percent)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "want %zu: cus-min-percent %u is above cus-percent %u", i,
				  want->cus_min_percent, want->cus_percent);
	if (want->cus_max_percent > 0 && want->cus_max_percent < want->cus_percent)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "want %zu: cus-max-percent %u is below cus-percent %u", i,
				  want->cus_max_percent, want->cus_percent);
	return 0;
}

static int check_cus(const struct want *want, size_t i, enum lease_class lease_class,
		     struct result *result)
{
	bool bounded = want->cus_max > 0 || want->cus_max_percent > 0;

	if (want->cus == 0 && want->cus_percent == 0 && want->shader_engines == 0)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "want %zu: cus or shader-engines must say how much", i);
	if (check_percent(want, i, result) < 0)
		return -EINVAL;
	if (want->cus > 0 && want->cus_min > want->cus)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "want %zu: cus-min %u is above cus %u", i, want->cus_min,
				  want->cus);
	if (want->cus_max > 0 && want->cus_max < want->cus)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "want %zu: cus-max %u is below cus %u", i, want->cus_max,
				  want->cus);
	if (bounded && lease_class != CLASS_BESTEFFORT)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "want %zu: cus-max is for class besteffort; a %s lease gets "
				  "what cus says",
				  i, class_names[lease_class]);
	if (want->exact && (want->cus_max > want->cus || want->cus_max_percent > want->cus_percent))
		return result_set(result, RESULT_INVALID_REQUEST,
				  "want %zu: exact and cus-max contradict each other", i);
	return 0;
}

static int check_isolation(const struct want *want, size_t i, enum lease_class lease_class,
			   struct result *result)
{
	bool realtime = lease_class == CLASS_REALTIME;

	if (want->isolation == ISOLATION_SHARED && lease_class != CLASS_BESTEFFORT)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "want %zu: isolation shared is for class besteffort; the CUs "
				  "of a %s lease are its own",
				  i, class_names[lease_class]);
	if (want->isolation == ISOLATION_SHADER_ENGINE && !realtime)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "want %zu: isolation shader-engine is for class realtime; a %s "
				  "lease can have cu%s",
				  i, class_names[lease_class],
				  lease_class == CLASS_BESTEFFORT ? " or shared" : "");
	return 0;
}

static int check_budget(const struct want *want, size_t i, struct result *result)
{
	uint64_t least = want->processes * (1 + (uint64_t)want->streams);

	if (want->queues >= least)
		return 0;
	return result_set(result, RESULT_INVALID_REQUEST,
			  "want %zu: queues %" PRIu64 " is too few: %" PRIu64
			  " process%s with %u masked stream%s "
			  "need%s at least %" PRIu64 " (each process has one utility queue)",
			  i, want->queues, want->processes, want->processes == 1 ? "" : "es",
			  want->streams, want->streams == 1 ? "" : "s",
			  want->processes == 1 ? "s" : "", least);
}

static int complete_want(struct want *want, size_t i, enum lease_class lease_class,
			 struct result *result)
{
	if (want->priority > PRIORITY_BY_CLASS)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "want %zu: priority %u is above %u", i, want->priority,
				  PRIORITY_MAX);
	if (check_cus(want, i, lease_class, result) < 0 ||
	    check_isolation(want, i, lease_class, result) < 0)
		return -EINVAL;
	if (want->processes == 0)
		want->processes = 1;
	if (want->queues == 0)
		want->queues = min_u64(want->processes * (2 + (uint64_t)want->streams), UINT32_MAX);
	if (want->isolation == ISOLATION_DEFAULT)
		want->isolation = lease_class == CLASS_REALTIME ? ISOLATION_SHADER_ENGINE
								: ISOLATION_CU;
	return check_budget(want, i, result);
}

static int check_options(const struct request *request, enum lease_class lease_class,
			 struct result *result)
{
	const char *name = class_names[lease_class];

	if (request->start_inactive && lease_class != CLASS_REALTIME)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "start-inactive: class %s does not lend; only realtime does",
				  name);
	if (request->exclusive && lease_class != CLASS_REALTIME)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "exclusive (--alone=active): class %s shares its GPUs; ask for "
				  "class realtime",
				  name);
	if (request->adaptable && lease_class != CLASS_BESTEFFORT)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "adaptable: a %s lease keeps what it has; only besteffort "
				  "shrinks and grows",
				  name);
	return 0;
}

static int check_adaptable(const struct want *want, size_t i, struct result *result)
{
	const char *key = want->exact                           ? "exact"
			  : want->any_shape                     ? "shape any"
			  : want->isolation == ISOLATION_SHARED ? "isolation shared"
			  : want->shader_engines > 0            ? "shader-engines"
								: NULL;

	if (!key)
		return 0;
	return result_set(result, RESULT_INVALID_REQUEST,
			  "want %zu: %s: an adaptable lease is any rectangle between cus-min and "
			  "cus-max, and shares no CU",
			  i, key);
}

int request_complete(struct request *request, enum lease_class lease_class, struct result *result)
{
	if (request->n_wants == 0 || request->n_wants > REQUEST_WANTS)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "%zu wants: a lease is over 1 to %u GPUs", request->n_wants,
				  REQUEST_WANTS);
	if (check_options(request, lease_class, result) < 0)
		return -EINVAL;
	for (size_t i = 0; i < request->n_wants; i++)
		if (complete_want(&request->wants[i], i + 1, lease_class, result) < 0 ||
		    (request->adaptable && check_adaptable(&request->wants[i], i + 1, result) < 0))
			return -EINVAL;
	return 0;
}

bool want_equal(const struct want *a, const struct want *b)
{
	return strcmp(a->gpu, b->gpu) == 0 && a->cus == b->cus &&
	       a->shader_engines == b->shader_engines && a->cus_min == b->cus_min &&
	       a->cus_max == b->cus_max && a->cus_percent == b->cus_percent &&
	       a->cus_min_percent == b->cus_min_percent &&
	       a->cus_max_percent == b->cus_max_percent && a->exact == b->exact &&
	       a->any_shape == b->any_shape && a->streams == b->streams &&
	       memcmp(&a->budget, &b->budget, sizeof(a->budget)) == 0 &&
	       a->priority == b->priority && a->isolation == b->isolation;
}

bool request_wants_equal(const struct request *a, const struct request *b)
{
	if (a->n_wants != b->n_wants)
		return false;
	for (size_t i = 0; i < a->n_wants; i++)
		if (!want_equal(&a->wants[i], &b->wants[i]))
			return false;
	return true;
}

static bool options_equal(const struct request *a, const struct request *b)
{
	return a->class == b->class && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->tenant, b->tenant) == 0 && strcmp(a->token, b->token) == 0 &&
	       a->start_inactive == b->start_inactive && a->adaptable == b->adaptable &&
	       a->exclusive == b->exclusive && a->requeue == b->requeue &&
	       a->duration_usec == b->duration_usec;
}

bool request_equal(const struct request *a, const struct request *b)
{
	return options_equal(a, b) && request_wants_equal(a, b);
}

static bool has_want(const struct request *request, const struct want *want)
{
	for (size_t i = 0; i < request->n_wants; i++)
		if (want_equal(&request->wants[i], want))
			return true;
	return false;
}

bool request_is_part(const struct request *part, const struct request *whole)
{
	if (part->n_wants >= whole->n_wants || !options_equal(part, whole))
		return false;
	for (size_t i = 0; i < part->n_wants; i++) {
		const struct want *want = &part->wants[i];

		if (strcmp(want->gpu, "any") == 0 || strchr(want->gpu, ',') ||
		    !has_want(whole, want))
			return false;
	}
	return true;
}
