/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "client/calibrate/calibration.h"

/* The mask changes between the whole GPU and a unit less of each shader engine that has more than one. */
int costs_measure(const struct calibration_run *run)
{
	unsigned step = geometry_step(&run->model->geometry);
	uint32_t all[CODEC_WORDS] = { 0 }, less[CODEC_WORDS] = { 0 };
	const uint32_t *const masks[] = { all, less };
	struct cuset set = run->model->all;

	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++)
		if (cuset_count_word(set.pair[pair]) > step)
			set.pair[pair] &= ~(((UINT32_C(1) << step) - 1)
					    << __builtin_ctz(set.pair[pair]));
	run->calibration->during = "changes";
	codec_encode(&run->model->codec, &run->model->all, all);
	codec_encode(&run->model->codec, &set, less);
	return run->device->calls->change(run->device->data, masks, codec_words(&run->model->codec),
					  CALIBRATION_CHANGES, &run->calibration->costs);
}
