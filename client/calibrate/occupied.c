/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/calibrate/occupied.h"

#include <errno.h>

#include "client/latency/unit.h"

int occupied_add(const char *target, const struct wave *waves, unsigned n, struct cuset *seen)
{
	for (unsigned i = 0; i < n; i++) {
		struct place place;

		if (waves[i].state != WAVE_ENDED)
			return waves[i].state == WAVE_NONE ? -ENODATA : -EPROTO;
		hw_id_place(target, waves[i].hw_id, waves[i].xcc_id, &place);
		if (place.xcc >= CUSET_XCCS || place.engine >= CUSET_ENGINES ||
		    place.array >= CUSET_ARRAYS || place.cu >= CUSET_ARRAY_CUS)
			return -EPROTO;
		seen->pair[cuset_pair(place.xcc, place.engine)] |=
			UINT32_C(1) << (place.array * CUSET_ARRAY_CUS + place.cu);
	}
	return 0;
}

bool occupied_judge(const struct model *model, const struct cuset *expected,
		    const struct cuset *seen, unsigned *ret_cus)
{
	unsigned step = geometry_step(&model->geometry), cus = 0;
	bool honoured = true;

	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++) {
		unsigned ran = cuset_count_word(seen->pair[pair]) * step;

		cus += ran;
		honoured &= ran == cuset_count_word(expected->pair[pair]);
	}
	*ret_cus = cus;
	return honoured;
}
