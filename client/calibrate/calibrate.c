/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The verb calibrate. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/calibrate/calibration-print.h"
#include "client/latency/bench.h"
#include "client/output/fail.h"
#include "util/base.h"

static void progress_of_masks(size_t done, size_t of)
{
	fprintf(stderr, "\r%zu of %zu masks ", done, of);
	if (done + 1 == of)
		fprintf(stderr, "\r%30s\r", "");
}

/* Whether another lease, or a process without one, is on the GPU: it would change the times. */
static int check_alone(const struct command *command, const struct bench *bench)
{
	const char *gpu = bench->gpu->name;
	size_t words, cus = 0;
	const uint32_t *mask = gpuarb_lease_cu_mask(bench->lease, 0, &words);

	for (size_t i = 0; i < words; i++)
		cus += (size_t)__builtin_popcount(mask[i]);
	if (bench->gpu->n_unmanaged > 0)
		return fail(command, EXIT_REFUSED,
			    "%s: pid %u uses the GPU without a lease: end it first", gpu,
			    bench->gpu->unmanaged[0].pid);
	for (size_t i = 0; i < command->n_leases; i++) {
		const struct gpuarb_lease_info *lease = &command->leases[i];

		for (size_t p = 0; p < lease->n_partitions && lease->position == 0; p++)
			if (lease->id != gpuarb_lease_id(bench->lease) &&
			    strcmp(lease->partitions[p].gpu, gpu) == 0)
				return fail(command, EXIT_REFUSED,
					    "%s: lease %" PRIu64
					    " is on the GPU: end it first, because "
					    "neighbours change the times",
					    gpu, lease->id);
	}
	if (cus != bench->gpu->cus)
		return fail(command, EXIT_REFUSED, "%s: %zu of %u CUs were granted: all are needed",
			    gpu, cus, bench->gpu->cus);
	return EXIT_OK;
}

int calibrate_run(const struct command *command, struct bench *bench)
{
	struct calibration calibrated = { 0 }, *calibration = &calibrated;
	const struct calibration_run run = {
		.device = &bench->device,
		.stop = &bench->stop,
		.model = &bench->model,
		.target = bench->gpu->gfx_target,
		.progress = isatty(STDERR_FILENO) ? progress_of_masks : NULL,
	};
	const time_t now = time(NULL);
	int r = check_alone(command, bench);

	if (r != EXIT_OK)
		return r;
	calibration_plan(&bench->model, calibration);
	strftime(calibration->date, sizeof(calibration->date), "%F", gmtime(&now));
	if (!command->json)
		fprintf(stderr,
			"gpuarbctl calibrate: %zu masks, about %.0f s as fast as a Radeon VII\n",
			calibration->n, ceil(calibration_estimate(calibration)));
	r = bench_open_device(command, bench);
	if (r != EXIT_OK)
		return r;
	r = calibration_measure(&run, calibration);
	if (r < 0)
		return bench_failed(command, bench, r, bench->device.problem);
	if (command->json)
		calibration_print_json(bench->gpu, &bench->model, calibration, stdout);
	else
		calibration_print_text(command, bench->gpu, calibration, stdout);
	return EXIT_OK;
}
