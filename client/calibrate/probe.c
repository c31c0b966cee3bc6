/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* verify --probe: whether a kernel under a lease runs on the CUs of the lease. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/calibrate/calibration.h"
#include "client/latency/bench.h"
#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "util/base.h"

struct probe {
	char gpu[64];
	struct cuset granted, seen;
	unsigned occupied;
	bool honoured;
};

/* More work-groups than fit at a time, so that each CU gets one. */
static int run(const struct bench *bench, const uint32_t *mask, size_t words, struct probe *ret)
{
	const struct work work = { NEIGHBOURS_COMPUTE, CALIBRATION_PER_CU * bench->gpu->cus,
				   CALIBRATION_SPINS, 0 };
	_cleanup_(freep) struct wave *waves = calloc(work.groups, sizeof(*waves));
	const struct device *device = &bench->device;
	struct spun spun;
	void *stream;
	int r;

	if (!waves)
		return -ENOMEM;
	r = device->calls->create(device->data, mask, words, &stream);
	if (r < 0)
		return r;
	r = device->calls->spin(device->data, stream, &work, waves, &spun);
	if (r >= 0)
		r = occupied_add(bench->gpu->gfx_target, waves, work.groups, &ret->seen);
	device->calls->destroy(device->data, stream);
	return r;
}

/* Takes a new snapshot. The lease may have been changed meanwhile: then the granted CUs are others. */
static int check_unchanged(struct command *command, struct bench *bench)
{
	const struct gpuarb_lease_info *lease;
	int r = bench_find_gpu(command, bench);

	if (r == EXIT_OK)
		r = session_lease(command, command->id, &lease);
	if (r == EXIT_OK && lease->generation != gpuarb_lease_generation(bench->lease))
		return fail(command, EXIT_LOST,
			    "lease %" PRIu64 " was changed meanwhile: try again", command->id);
	return r;
}

static void tell(const struct command *command, const struct probe *probe, bool emulated,
		 struct json_object *list)
{
	const char *result = probe->honoured ? "ok" : "drift";
	struct json_object *map;
	char found[160];

	snprintf(found, sizeof(found), "a kernel ran on %u CUs%s%s", probe->occupied,
		 probe->honoured ? ", those of the lease" : ": the lease has others",
		 emulated ? "; EMULATED, not measured" : "");
	if (!command->json) {
		print_line(stdout, "%-5s  lease %" PRIu64 " on %s: probe: %s", result, command->id,
			   probe->gpu, found);
		return;
	}
	map = json_map(list, NULL);
	JSON_FIELDS(map, ("lease", command->id), ("gpu", probe->gpu), ("check", "probe"),
		    ("result", result), ("found", found),
		    ("granted_cus", cuset_count(&probe->granted)),
		    ("occupied_cus", probe->occupied), ("emulated", emulated));
}

static int tell_all(const struct command *command, const struct probe *probes, size_t n,
		    bool emulated)
{
	struct json_object *list = command->json ? json_list(NULL, NULL) : NULL;
	int r = EXIT_OK;

	for (size_t i = 0; i < n; i++) {
		tell(command, &probes[i], emulated, list);
		if (!probes[i].honoured)
			r = EXIT_DRIFT;
	}
	if (list)
		json_print(stdout, list);
	return r;
}

static int probe_partition(struct command *command, struct bench *bench, struct probe *ret)
{
	const uint32_t *mask;
	size_t words;
	int r = bench_find_gpu(command, bench);

	if (r == EXIT_OK)
		r = bench_open_device(command, bench);
	if (r != EXIT_OK)
		return r;
	mask = gpuarb_lease_cu_mask(bench->lease, bench->partition, &words);
	snprintf(ret->gpu, sizeof(ret->gpu), "%s", bench->gpu->name);
	codec_decode(&bench->model.codec, mask, words, &ret->granted);
	r = run(bench, mask, words, ret);
	if (r < 0)
		return bench_failed(command, bench, r, bench->device.problem);
	r = check_unchanged(command, bench);
	if (r == EXIT_OK)
		ret->honoured = occupied_judge(&bench->model, &ret->granted, &ret->seen,
					       &ret->occupied);
	return r;
}

static int probe_all(struct command *command, struct bench *bench, size_t n)
{
	struct probe probes[REQUEST_WANTS] = { 0 };
	int r = EXIT_OK;

	for (size_t i = 0; i < n && r == EXIT_OK; i++) {
		device_done(&bench->device);
		bench->device = (struct device){ 0 };
		bench->partition = i;
		r = probe_partition(command, bench, &probes[i]);
	}
	return r == EXIT_OK ? tell_all(command, probes, n, bench->device.emulated) : r;
}

int probe_run(struct command *command, struct bench *bench)
{
	int r = bench_join(command, bench);

	return r == EXIT_OK ? probe_all(command, bench,
					min_u((unsigned)gpuarb_lease_partitions(bench->lease),
					      REQUEST_WANTS))
			    : r;
}
