/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "client/output/fail.h"
#include "client/output/gpu-table.h"
#include "client/output/json-view.h"
#include "client/output/lease-table.h"
#include "client/output/print.h"
#include "client/launch/session.h"
#include "client/output/table.h"
#include "client/verbs/verb.h"

struct picture {
	const struct gpuarb_gpu *gpus;
	const struct gpuarb_lease_info *leases;
	size_t n_gpus, n_leases;
};

static void print_json(const struct gpuarb_view *view, const struct picture *picture)
{
	_cleanup_(json_freep) struct json_object *map = json_map(NULL, NULL);
	struct json_object *list;
	const char *const *tenants;
	size_t n = gpuarb_view_tenants(view, &tenants);

	json_text(map, "version", gpuarb_view_version(view));
	list = json_list(map, "tenants");
	for (size_t i = 0; i < n; i++)
		json_text(list, NULL, tenants[i]);
	list = json_list(map, "gpus");
	for (size_t i = 0; i < picture->n_gpus; i++)
		json_gpu(list, NULL, &picture->gpus[i]);
	list = json_list(map, "leases");
	for (size_t i = 0; i < picture->n_leases; i++)
		json_lease(list, NULL, &picture->leases[i]);
	json_print(stdout, map);
}

static void add_lease_user(struct table *table, const struct gpuarb_lease_info *lease,
			   const struct gpuarb_partition *partition)
{
	char user[PRINT_USER];

	print_user(lease->owner_uid, user);
	table_add(table, "%s", partition->gpu);
	table_add(table, "%u", partition->queues);
	table_add(table, "lease %" PRIu64, lease->id);
	if (lease->owner_pid > 0)
		table_add(table, "%u", lease->owner_pid);
	else
		table_add(table, "-");
	table_add(table, "%s", user);
	table_add(table, "%s", lease->name);
}

static void add_unmanaged(struct table *table, const struct gpuarb_gpu *gpu,
			  const struct gpuarb_process *process)
{
	char user[PRINT_USER];

	print_user(process->uid, user);
	table_add(table, "%s", gpu->name);
	table_add(table, "%u", process->queues);
	table_add(table, "unmanaged");
	table_add(table, "%u", process->pid);
	table_add(table, "%s", user);
	table_add(table, "%s", process->command);
}

static void add_users_of(struct table *table, const struct picture *picture,
			 const struct gpuarb_gpu *gpu)
{
	for (size_t l = 0; l < picture->n_leases; l++) {
		const struct gpuarb_lease_info *lease = &picture->leases[l];

		for (size_t i = 0; i < lease->n_partitions; i++) {
			if (strcmp(lease->partitions[i].gpu, gpu->name) == 0)
				add_lease_user(table, lease, &lease->partitions[i]);
		}
	}
	for (size_t i = 0; i < gpu->n_unmanaged; i++)
		add_unmanaged(table, gpu, &gpu->unmanaged[i]);
}

/* Who has the queue slots: leases their budgets, the others what they were seen to use. */
static void print_users(const struct command *command, const struct picture *picture)
{
	static const char *const heads[] = { "GPU",  "QUEUES",          "USED BY", "PID",
					     "USER", "NAME OR COMMAND", NULL };
	_cleanup_(table_done) struct table table = { .heads = heads };

	for (size_t i = 0; i < picture->n_gpus; i++)
		add_users_of(&table, picture, &picture->gpus[i]);
	if (table.n > 0)
		putchar('\n');
	table_print(&table, command, stdout);
}

/* Names every process outside the leases: one of them it must be, or a lease's own. */
static void print_alarm(const struct command *command, const struct gpuarb_gpu *gpu)
{
	char who[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < gpu->n_unmanaged && used < sizeof(who); i++)
		used += (size_t)snprintf(who + used, sizeof(who) - used, "%s%u (%s, %u queue%s)",
					 used ? ", " : "", gpu->unmanaged[i].pid,
					 gpu->unmanaged[i].command, gpu->unmanaged[i].queues,
					 print_s(gpu->unmanaged[i].queues));

	fputs(command->colour ? COLOUR_ALARM : "", stdout);
	print_line(stdout,
		   "%s is oversubscribed: more is in use than its %u queue slot%s and %u "
		   "process slot%s, SDMA queues or memory; nothing more is granted on it. "
		   "Processes without a lease: %s",
		   gpu->name, gpu->queue_slots, print_s(gpu->queue_slots), gpu->process_slots,
		   print_s(gpu->process_slots),
		   used ? who : "none, so a lease uses more than its budget");
	fputs(command->colour ? COLOUR_NONE : "", stdout);
}

static void print_picture(const struct command *command, const struct picture *picture)
{
	if (picture->n_gpus == 0)
		print_line(stdout, "No GPU: the daemon found none on this machine.");
	gpu_table(command, picture->gpus, picture->n_gpus, stdout);
	for (size_t i = 0; i < picture->n_gpus; i++) {
		if (picture->gpus[i].oversubscribed)
			print_alarm(command, &picture->gpus[i]);
	}
	print_users(command, picture);
	putchar('\n');
	lease_table(command, picture->leases, picture->n_leases);
}

int run_status(struct command *command)
{
	_cleanup_(session_done) struct session session = { 0 };
	struct picture picture;
	int r;

	r = session_look(command, &session);
	if (r != EXIT_OK)
		return r;

	picture.n_gpus = gpuarb_view_gpus(session.view, &picture.gpus);
	picture.n_leases = gpuarb_view_leases(session.view, &picture.leases);
	if (command->json)
		print_json(session.view, &picture);
	else
		print_picture(command, &picture);
	return EXIT_OK;
}
