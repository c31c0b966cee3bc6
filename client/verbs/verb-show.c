/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdlib.h>

#include "client/output/fail.h"
#include "client/output/json-view.h"
#include "client/output/lease-text.h"
#include "client/output/lent.h"
#include "client/output/mask-text.h"
#include "client/output/print.h"
#include "client/output/priority-text.h"
#include "client/launch/session.h"
#include "client/verbs/verb.h"

static void print_partition(const struct lent *all, const struct gpuarb_lease_info *lease, size_t i)
{
	const struct gpuarb_partition *partition = &lease->partitions[i];
	char *mask = mask_hex(partition->cu_mask, partition->cu_mask_words);
	unsigned borrowed = lent_in(all, lease, i);
	char vram[PRINT_BYTES], priority[80];

	priority_text(partition, priority, sizeof(priority));
	print_bytes(partition->vram, vram);
	print_line(stdout, "partition    %s", partition->gpu);
	print_grant(stdout, "  ", partition);
	if (lent_by(lease))
		print_line(stdout, "  lent: %u of %u CUs", lent_out(all, lease, i), partition->cus);
	if (borrowed > 0)
		print_line(stdout, "  borrowed: %u of %u CUs", borrowed, partition->cus);
	print_line(stdout, "  mask: %s", mask ? mask : "?");
	print_line(stdout,
		   "  queues: %u, of them %u masked streams a process; processes: %u; "
		   "SDMA queues: %u",
		   partition->queues, partition->streams, partition->processes,
		   partition->sdma_queues);
	print_line(stdout, "  priority: %s", priority);
	print_line(stdout, "  vram: %s", partition->vram > 0 ? vram : "not counted");
	print_line(stdout, "  tier: %s", partition->tier);
	for (size_t gap = 0; gap < partition->n_gaps; gap++)
		print_line(stdout, "  not isolated: %s", partition->gaps[gap]);
	free(mask);
}

static void print_lease(const struct lent *all, const struct gpuarb_lease_info *lease)
{
	char user[PRINT_USER], when[48];

	print_user(lease->owner_uid, user);
	lease_text_deadline(lease->state, lease->deadline, when, sizeof(when));
	print_line(stdout, "lease        %" PRIu64, lease->id);
	print_line(stdout, "name         %s", lease->name);
	print_line(stdout, "state        %s%s%s", lease->state, *lease->reason ? ": " : "",
		   lease->reason);
	if (lease->position > 0)
		print_line(stdout, "position     %u", lease->position);
	if (*when)
		print_line(stdout, "deadline     %s", when);
	print_line(stdout, "class        %s", lease->lease_class);
	print_line(stdout, "tenant       %s", lease->tenant);
	print_line(stdout, "owner        %s, pid %u%s%s", user, lease->owner_pid,
		   *lease->owner_unit ? ", " : "", lease->owner_unit);
	print_line(stdout, "adaptable    %s", lease->adaptable ? "yes" : "no");
	print_line(stdout, "generation   %" PRIu64, lease->generation);
	print_line(stdout, "disturbances %" PRIu64, lease->disturbances);
	for (size_t i = 0; i < lease->n_partitions; i++)
		print_partition(all, lease, i);
}

int run_show(struct command *command)
{
	_cleanup_(session_done) struct session session = { 0 };
	_cleanup_(json_freep) struct json_object *map = NULL;
	const struct gpuarb_lease_info *lease;
	struct lent all = { 0 };
	uint64_t id;
	int r;

	r = session_id(command, command->rest[0], &id);
	if (r == EXIT_OK)
		r = session_look(command, &session);
	if (r == EXIT_OK)
		r = session_lease(command, &session, id, &lease);
	if (r != EXIT_OK)
		return r;

	if (!command->json) {
		all.n = gpuarb_view_leases(session.view, &all.leases);
		print_lease(&all, lease);
		return EXIT_OK;
	}
	map = json_map(NULL, NULL);
	json_lease_into(map, lease);
	json_print(stdout, map);
	return EXIT_OK;
}
