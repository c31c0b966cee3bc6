/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/driver-probe.h"

#include <string.h>

static size_t count_fds(const struct probe_answer *answer)
{
	size_t n = 0;

	for (size_t i = 0; i < answer->n; i++)
		n += answer->gpus[i].subscribed ? PROBE_FDS : 0;
	return n;
}

static bool is_valid(void *packet, size_t length, size_t n_fds, const void *)
{
	const struct probe_answer *answer = packet;

	return length == sizeof(*answer) && answer->protocol == PROBE_PROTOCOL &&
	       answer->error <= 0 && answer->n <= (answer->error < 0 ? 0 : PROBE_GPUS) &&
	       n_fds == count_fds(answer) && memchr(answer->text, '\0', sizeof(answer->text));
}

const struct asker_helper probe_helper = {
	.name = "gpuarb-probe",
	.unit = "gpuarb-probe.socket",
	.most = 1,
	.answer_size = sizeof(struct probe_answer),
	.answer_fds = PROBE_GPUS * PROBE_FDS,
	.is_valid = is_valid,
};
