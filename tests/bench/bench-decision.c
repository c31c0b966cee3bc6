/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How long a decision alone takes, for every profile: arbiter_plan() on a GPU that is
 * partly taken, requests of all classes and sizes, granted and refused. The floor is what
 * any answer costs that is kept: making and freeing a lease object. Best of several runs.
 *
 *	bench-decision SOURCE-ROOT
 */

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/change/arbiter.h"
#include "ledger-rig.h"
#include "sys/config/profile.h"

#define REQUESTS 64
#define ROUNDS 200
#define RUNS 7

struct figures {
	char name[64];
	unsigned cus;
	double floor, granted, refused, all; /* nanoseconds */
	unsigned n_granted;
};

static void make_requests(struct request *requests, unsigned cus, unsigned *seed)
{
	for (unsigned i = 0; i < REQUESTS; i++) {
		unsigned part = (unsigned)rand_r(seed) % 100;

		requests[i] = request_for(1 + (unsigned)rand_r(seed) % (part < 50   ? cus / 8
									: part < 85 ? cus / 4
										    : cus));
		requests[i].class = (int)((unsigned)rand_r(seed) % 3);
		requests[i].wants[0].queues = 1;
	}
}

/* A quarter realtime, a quarter best effort. */
static struct arbiter *half_full(const struct gpu_info *info)
{
	unsigned cus = geometry_cus(&info->geometry);
	struct arbiter *arbiter = arbiter_of(info, 1);
	struct result result = { 0 };

	add_tenant(arbiter, "bench", 1, CLASS_REALTIME);
	for (int i = 0; i < 2; i++) {
		struct request request = request_for(max_u(cus / 4, 1));

		request.class = i == 0 ? CLASS_REALTIME : CLASS_BESTEFFORT;
		request.wants[0].queues = 1;
		reserve(arbiter, 1, &request, &result);
	}
	result_done(&result);
	return arbiter;
}

/* Average nanoseconds for those of the requests whose answer is `granted`. */
static double decide(const struct arbiter *arbiter, const struct request *requests, int granted,
		     unsigned *ret_n)
{
	const struct caller caller = caller_of(1);
	struct result result = { 0 };
	uint64_t best = UINT64_MAX;
	unsigned n = 0;

	for (unsigned run = 0; run < RUNS; run++) {
		uint64_t sum = 0;

		n = 0;
		for (unsigned i = 0; i < REQUESTS; i++) {
			struct lease *lease = NULL;
			uint64_t start;
			bool fits = arbiter_plan(arbiter, &caller, &requests[i], &lease, &result) ==
				    0;

			lease_free(lease);
			if (granted >= 0 && fits != (bool)granted)
				continue;
			n++;
			start = bench_nsec();
			for (unsigned j = 0; j < ROUNDS; j++) {
				lease = NULL;
				result_done(&result);
				arbiter_plan(arbiter, &caller, &requests[i], &lease, &result);
				lease_free(lease);
			}
			sum += bench_nsec() - start;
		}
		if (sum < best)
			best = sum;
	}
	result_done(&result);
	*ret_n = n;
	return n ? (double)best / (n * ROUNDS) : 0;
}

static double floor_of(void)
{
	uint64_t best = UINT64_MAX;

	for (unsigned run = 0; run < RUNS; run++) {
		uint64_t start = bench_nsec();

		for (unsigned i = 0; i < REQUESTS * ROUNDS; i++) {
			struct lease *lease = NULL;

			if (lease_new(&lease) < 0 || lease_make_partitions(lease, 1) < 0)
				abort();
			__asm__ volatile("" : : "r"(lease) : "memory");
			lease_free(lease);
		}
		start = bench_nsec() - start;
		if (start < best)
			best = start;
	}
	return (double)best / (REQUESTS * ROUNDS);
}

static struct figures measure(const char *name, const struct gpu_info *info)
{
	struct figures f = { .cus = geometry_cus(&info->geometry) };
	struct request *requests = calloc(REQUESTS, sizeof(*requests));
	struct arbiter *arbiter = half_full(info);
	unsigned seed = 1, n;

	snprintf(f.name, sizeof(f.name), "%.63s", name);
	make_requests(requests, f.cus, &seed);
	f.floor = floor_of();
	f.granted = decide(arbiter, requests, 1, &f.n_granted);
	f.refused = decide(arbiter, requests, 0, &n);
	f.all = decide(arbiter, requests, -1, &n);
	arbiter_free(arbiter);
	free(requests);
	return f;
}

int main(int argc, char *argv[])
{
	struct diagnostics diagnostics = { 0 };
	struct figures list[32];
	struct dirent *entry;
	char dir[4096];
	size_t n = 0;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/conf/gpus", argc > 1 ? argv[1] : ".");
	d = opendir(dir);
	if (!d) {
		perror(dir);
		return 1;
	}
	bench_pin();
	while ((entry = readdir(d)) && n < ARRAY_SIZE(list)) {
		struct profile profile;
		char *dot = strstr(entry->d_name, ".conf");

		if (!dot)
			continue;
		*dot = '\0';
		if (profile_load(dir, entry->d_name, &profile, &diagnostics) == 0)
			list[n++] = measure(entry->d_name, &profile.info);
	}
	closedir(d);
	diagnostics_done(&diagnostics);

	printf("%-14s %5s %9s %9s %9s %9s %8s\n", "profile", "CUs", "floor ns", "granted",
	       "refused", "all", "granted");
	for (size_t i = 0; i < n; i++)
		printf("%-14s %5u %9.0f %9.0f %9.0f %9.0f %5u/%u\n", list[i].name, list[i].cus,
		       list[i].floor, list[i].granted, list[i].refused, list[i].all,
		       list[i].n_granted, REQUESTS);
	printf("\n[");
	for (size_t i = 0; i < n; i++)
		printf("%s{\"profile\":\"%s\",\"cus\":%u,\"floor_ns\":%.0f,\"granted_ns\":%.0f,"
		       "\"refused_ns\":%.0f,\"all_ns\":%.0f}",
		       i ? "," : "", list[i].name, list[i].cus, list[i].floor, list[i].granted,
		       list[i].refused, list[i].all);
	printf("]\n");
	return n > 0 ? 0 : 1;
}
