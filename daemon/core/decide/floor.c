/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/floor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/lease.h"
#include "core/mask/place.h"

/* What all leases of a tenant hold of a GPU. */
struct tenant_holding {
	unsigned cus;
	uint32_t engines;    /* of realtime leases, which take whole ones */
	unsigned within_cus; /* of other leases, which leave the rest of an engine to others */
	struct budget budget;
};

bool floor_configured(const struct settings *settings)
{
	for (size_t i = 0; i < settings->n_tenants; i++)
		if (tenant_has_floor(&settings->tenants[i]))
			return true;
	return false;
}

static uint64_t bit_of(size_t tenant)
{
	return UINT64_C(1) << (tenant < FLOOR_TENANTS ? tenant : FLOOR_TENANTS - 1);
}

const struct tenant *floor_first(const struct settings *settings, uint64_t tenants)
{
	return &settings->tenants[__builtin_ctzll(tenants)];
}

void floor_names(const struct settings *settings, uint64_t tenants, char *ret, size_t size)
{
	size_t used = 0;

	*ret = '\0';
	for (size_t i = 0; i < settings->n_tenants && i < FLOOR_TENANTS; i++) {
		const char *name = settings->tenants[i].name;

		if (!(tenants & bit_of(i)) || used + strlen(name) + 3 > size)
			continue;
		used += (size_t)snprintf(ret + used, size - used, "%s%s", used > 0 ? ", " : "",
					 name);
	}
}

/* What the leases of each tenant hold of the GPU. */
static void find_holdings(const struct arbiter *arbiter, unsigned gpu, struct tenant_holding *ret)
{
	const struct settings *settings = arbiter->settings;

	FOR_EACH_LEASE(lease, arbiter) {
		const struct partition *p = lease_partition_on(lease, gpu);
		struct cuset claim;
		size_t t = 0;

		while (p && t < settings->n_tenants &&
		       strcmp(lease->tenant, settings->tenants[t].name) != 0)
			t++;
		if (!p || t == settings->n_tenants)
			continue;
		claim = partition_claim(p);
		ret[t].cus += cuset_count(&claim);
		if (lease->class == CLASS_REALTIME)
			ret[t].engines |= cuset_engines(&claim);
		else
			ret[t].within_cus += cuset_count(&claim);
		budget_add(&ret[t].budget, &p->charged);
	}
}

/* Moves the best engine from free to kept: an empty one, else the one with the most free CUs; the
 * last of several. Returns its CUs; 0: none is free. */
static unsigned keep_engine(const struct gpu *gpu, struct cuset *free, struct cuset *kept)
{
	struct cuset best = { 0 };
	unsigned most = 0;

	for (unsigned e = 0; e < gpu->info.geometry.engines; e++) {
		struct cuset cus = *free, all = gpu->all;
		unsigned worth;

		cuset_keep_engines(&cus, UINT32_C(1) << e);
		cuset_keep_engines(&all, UINT32_C(1) << e);
		worth = cuset_count(&cus) + (cuset_equal(&cus, &all) ? CODEC_BITS : 0);
		if (cuset_empty(&cus) || worth < most)
			continue;
		most = worth;
		best = cus;
	}
	cuset_remove(free, &best);
	cuset_add(kept, &best);
	return cuset_count(&best);
}

/* Moves n CUs from free to kept: a rectangle if there is one, else any. place() leaves the largest rectangle
 * beside it. */
static void keep_cus(const struct gpu *gpu, unsigned n, struct cuset *free, struct cuset *kept)
{
	struct place_request request = { .all = &gpu->all,
					 .avail = *free,
					 .aim = n,
					 .floor = n,
					 .ceiling = n,
					 .limit = gpu->cus };
	struct placement placement;

	if (n == 0)
		return;
	if (place(&gpu->info.geometry, &request, &placement, NULL) < 0) {
		request.any_shape = request.few_engines = true;
		request.floor = 1;
		if (place(&gpu->info.geometry, &request, &placement, NULL) < 0)
			return;
	}
	cuset_remove(free, &placement.cus);
	cuset_add(kept, &placement.cus);
}

/* Is the floor kept as whole engines? Realtime leases take those. */
static bool keeps_engines(const struct tenant *tenant)
{
	return tenant->class == CLASS_REALTIME || tenant->reserved_engines > 0;
}

/* How many engines of a floor the tenant has. A program that may shrink to a CU does not fill one. Engines without a CU
 * do not count. */
static unsigned count_engines(const struct gpu *gpu, const struct tenant_holding *holding)
{
	unsigned least = gpu->cus;

	for (unsigned e = 0; e < gpu->info.geometry.engines; e++) {
		struct cuset engine = gpu->all;

		cuset_keep_engines(&engine, UINT32_C(1) << e);
		if (!cuset_empty(&engine))
			least = min_u(least, cuset_count(&engine));
	}
	return (unsigned)__builtin_popcount(holding->engines) + holding->within_cus / least;
}

static void keep_engines(const struct gpu *gpu, const struct tenant *tenant,
			 const struct tenant_holding *holding, struct cuset *free,
			 struct cuset *kept)
{
	uint64_t engines = beyond(tenant->reserved_engines, count_engines(gpu, holding));
	uint64_t cus = beyond(limit_reserved(&tenant->reserved_cus, gpu->cus), holding->cus);

	while (engines > 0 || cus > 0) {
		unsigned n = keep_engine(gpu, free, kept);

		if (n == 0)
			return;
		engines -= engines > 0;
		cus = beyond(cus, n);
	}
}

static void add_slots(const struct tenant *tenant, const struct tenant_holding *holding,
		      uint64_t of, struct slots *kept)
{
	const struct budget floor = { .queues = tenant->reserved_queues,
				      .processes = tenant->reserved_processes };

	for (unsigned r = 0; r < BUDGETS; r++) {
		uint64_t lacks = beyond(floor.of[r], holding->budget.of[r]);

		kept->budget.of[r] += lacks;
		kept->of[r] |= lacks > 0 ? of : 0;
	}
}

/* holdings: by tenant; NULL: the GPU is empty. free: the CUs that no lease claims. */
static void find_reserved(const struct settings *settings, const struct tenant_holding *holdings,
			  const struct gpu *gpu, const struct tenant *self, struct cuset *free,
			  struct reserved *ret, struct reserved *ret_own)
{
	*ret = (struct reserved){ 0 };
	*ret_own = (struct reserved){ 0 };
	/* Engines first: other CUs can be kept anywhere. Own ones are placed as well: those of others
	 * must not need them. */
	for (size_t i = 0; i < 2 * settings->n_tenants; i++) {
		const struct tenant *tenant = &settings->tenants[i % settings->n_tenants];
		bool engines = i < settings->n_tenants;
		struct tenant_holding holding = { 0 };
		struct cuset cus = { 0 };
		struct reserved *kept;

		if (!tenant_has_floor(tenant) || !tenant_floor_is_on(tenant, gpu->info.name) ||
		    engines != keeps_engines(tenant))
			continue;
		if (holdings)
			holding = holdings[i % settings->n_tenants];
		if (engines)
			keep_engines(gpu, tenant, &holding, free, &cus);
		else
			keep_cus(gpu,
				 (unsigned)beyond(limit_reserved(&tenant->reserved_cus, gpu->cus),
						  holding.cus),
				 free, &cus);
		kept = self && strcmp(tenant->name, self->name) == 0 ? ret_own : ret;
		cuset_add(&kept->cus, &cus);
		kept->cus_of |= cuset_empty(&cus) ? 0 : bit_of(i % settings->n_tenants);
		add_slots(tenant, &holding, bit_of(i % settings->n_tenants), &kept->slots);
	}
}

void floor_find_ever(const struct settings *settings, const struct gpu *gpu,
		     const struct tenant *self, struct reserved *ret)
{
	struct cuset free = gpu->all;
	struct reserved own;

	find_reserved(settings, NULL, gpu, self, &free, ret, &own);
}

int floor_find(const struct arbiter *arbiter, unsigned gpu, const struct tenant *self,
	       const struct lease *previous, struct floor *ret)
{
	const struct settings *settings = arbiter->settings;
	_cleanup_(freep) struct tenant_holding *holdings = calloc(settings->n_tenants,
								  sizeof(*holdings));
	const struct gpu *of = &arbiter->gpus[gpu];
	const struct partition *had = previous ? lease_partition_on(previous, gpu) : NULL;
	const struct tenant_holding none = { 0 };
	const struct cuset had_claim = had ? partition_claim(had) : (struct cuset){ 0 };
	struct cuset free = of->all;

	if (!holdings)
		return -ENOMEM;
	find_holdings(arbiter, gpu, holdings);
	cuset_remove(&free, &of->taken);
	cuset_remove(&free, &of->shared);
	cuset_remove(&free, &had_claim);
	find_reserved(settings, holdings, of, self, &free, &ret->now, &ret->own);
	ret->ever = (struct slots){ 0 };
	for (size_t i = 0; i < settings->n_tenants; i++)
		if (&settings->tenants[i] != self &&
		    tenant_floor_is_on(&settings->tenants[i], of->info.name))
			add_slots(&settings->tenants[i], &none, bit_of(i), &ret->ever);
	return 0;
}
