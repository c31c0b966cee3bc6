/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/session.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "client/output/fail.h"
#include "client/options/number.h"

int session_open(const struct command *command, struct session *ret)
{
	int r = gpuarb_open(&ret->gpuarb);

	return r < 0 ? fail_asked(command, ret->gpuarb, r) : EXIT_OK;
}

int session_snapshot(const struct command *command, struct session *session)
{
	struct gpuarb_view *view = NULL;
	int r;

	if (!session->gpuarb) {
		r = session_open(command, session);
		if (r != EXIT_OK)
			return r;
	}

	r = gpuarb_look(session->gpuarb, &view);
	if (r < 0)
		return fail_asked(command, session->gpuarb, r);

	gpuarb_view_free(session->view);
	session->view = view;
	return EXIT_OK;
}

void session_administer(const struct session *session)
{
	gpuarb_set_interactive(session->gpuarb, isatty(STDIN_FILENO));
}

void session_done(struct session *session)
{
	gpuarb_view_free(session->view);
	gpuarb_close(session->gpuarb);
}

int session_gpu(const struct command *command, const struct session *session, const char *gpu,
		const struct gpuarb_gpu **ret)
{
	const struct gpuarb_gpu *gpus;
	size_t n = gpuarb_view_gpus(session->view, &gpus);
	uint64_t index = UINT64_MAX;

	(void)number_parse(gpu, 0, n, &index);
	for (size_t i = 0; i < n; i++) {
		if (i == index || strcmp(gpus[i].name, gpu) == 0) {
			*ret = &gpus[i];
			return EXIT_OK;
		}
	}
	return fail(command, EXIT_FAILED,
		    "no GPU '%.80s': gpuarbctl gpus lists the %zu GPU%s of this machine", gpu, n,
		    n == 1 ? "" : "s");
}

const struct gpuarb_lease_info *session_find(const struct session *session, uint64_t id)
{
	const struct gpuarb_lease_info *leases;
	size_t n = gpuarb_view_leases(session->view, &leases);

	for (size_t i = 0; i < n; i++)
		if (leases[i].id == id)
			return &leases[i];
	return NULL;
}

int session_lease(const struct command *command, const struct session *session, uint64_t id,
		  const struct gpuarb_lease_info **ret)
{
	const struct gpuarb_lease_info *lease = session_find(session, id);

	if (!lease)
		return fail(command, EXIT_FAILED,
			    "no lease %" PRIu64 ": it may have ended; gpuarbctl list prints all "
			    "leases",
			    id);
	*ret = lease;
	return EXIT_OK;
}
