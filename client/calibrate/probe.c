/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* verify --probe: whether a kernel under a lease runs on the CUs of the lease. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/calibrate/calibration.h"
#include "client/calibrate/occupied.h"
#include "client/latency/bench.h"
#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "util/base.h"

struct probe {
	struct cuset granted, seen;
	unsigned occupied;
	bool honoured;
};

/* More work-groups than fit at a time, so that each CU gets one. */
static int run(const struct bench *bench, const uint32_t *mask, size_t words, struct probe *ret)
{
	const struct work work = { NEIGHBOURS_COMPUTE, CALIBRATION_PER_CU * bench->gpu->cus,
				   CALIBRATION_SPINS };
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

static int tell(const struct command *command, const struct bench *bench, const struct probe *probe)
{
	const char *result = probe->honoured ? "ok" : "drift";
	struct json_object *list, *map;
	char found[160];

	snprintf(found, sizeof(found), "a kernel ran on %u CUs%s%s", probe->occupied,
		 probe->honoured ? ", those of the lease" : ": the lease has others",
		 bench->device.emulated ? "; EMULATED, not measured" : "");
	if (!command->json) {
		print_line(stdout, "%-5s  lease %" PRIu64 " on %s: probe: %s", result, command->id,
			   bench->gpu->name, found);
		return probe->honoured ? EXIT_OK : EXIT_DRIFT;
	}
	list = json_list(NULL, NULL);
	map = json_map(list, NULL);
	json_number(map, "lease", command->id);
	json_text(map, "gpu", bench->gpu->name);
	json_text(map, "check", "probe");
	json_text(map, "result", result);
	json_text(map, "found", found);
	json_number(map, "granted_cus", cuset_count(&probe->granted));
	json_number(map, "occupied_cus", probe->occupied);
	json_flag(map, "emulated", bench->device.emulated);
	json_print(stdout, list);
	return probe->honoured ? EXIT_OK : EXIT_DRIFT;
}

int probe_run(struct command *command, struct bench *bench)
{
	struct probe probe = { 0 };
	const uint32_t *mask;
	size_t words;
	int r = bench_start(command, bench);

	if (r != EXIT_OK)
		return r;
	mask = gpuarb_lease_cu_mask(bench->lease, 0, &words);
	codec_decode(&bench->model.codec, mask, words, &probe.granted);
	r = run(bench, mask, words, &probe);
	if (r < 0)
		return bench_failed(command, bench, r, bench->device.problem);
	r = check_unchanged(command, bench);
	if (r != EXIT_OK)
		return r;
	probe.honoured = occupied_judge(&bench->model, &probe.granted, &probe.seen,
					&probe.occupied);
	return tell(command, bench, &probe);
}
