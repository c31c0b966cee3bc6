/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/gpu-table.h"
#include "client/output/lease-table.h"
#include "client/output/list.h"
#include "client/output/table.h"
#include "client/output/json.h"
#include "client/output/lease-text.h"
#include "client/output/mask-text.h"
#include "client/output/memory-cap.h"
#include "client/output/observed.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"

/* ---- status --------------------------------------------------------------------------------- */

static void json_gpus(struct json_object *list, const struct command *command)
{
	for (size_t i = 0; i < command->n_gpus; i++)
		if (gpu_is_listed(command, &command->gpus[i]))
			json_gpu(list, command->view, i);
}

static void json_leases(struct json_object *list, const struct command *command)
{
	for (size_t i = 0; i < command->n_leases; i++)
		if (lease_is_listed(command, &command->leases[i]))
			json_lease(list, command->view, i);
}

static void json_status(const struct command *command)
{
	struct json_object *map = json_map(NULL, NULL);
	const char *const *tenants;
	size_t n = gpuarb_view_tenants(command->view, &tenants);

	JSON_FIELDS(map, ("version", gpuarb_view_version(command->view)),
		    ("queue_budgets", gpuarb_view_queue_budgets(command->view)));
	json_words(map, "tenants", tenants, n);
	json_gpus(json_list(map, "gpus"), command);
	json_leases(json_list(map, "leases"), command);
	json_print(stdout, map);
}

static void add_user(struct table *table, const char *gpu, unsigned queues, const char *used_by,
		     uint32_t pid, uint32_t uid, const char *name)
{
	char user[PRINT_USER];

	print_user(uid, user);
	TABLE_CELLS(table, gpu, queues, used_by);
	table_number(table, pid);
	TABLE_CELLS(table, user, name);
}

static void add_users_of(struct table *table, const struct command *command,
			 const struct gpuarb_gpu *gpu)
{
	char used_by[32];

	for (size_t l = 0; l < command->n_leases; l++) {
		const struct gpuarb_lease_info *lease = &command->leases[l];
		const struct gpuarb_partition *partition = partition_on_gpu(lease, gpu->name);

		snprintf(used_by, sizeof(used_by), "lease %" PRIu64, lease->id);
		if (partition && lease_is_listed(command, lease))
			add_user(table, gpu->name, partition->queues, used_by, lease->owner_pid,
				 lease->owner_uid, lease->name);
	}
	for (size_t i = 0; i < gpu->n_unmanaged; i++) {
		const struct gpuarb_process *process = &gpu->unmanaged[i];

		add_user(table, gpu->name, process->queues, "unmanaged", process->pid, process->uid,
			 process->command);
	}
}

/* The users of queue slots: leases with their budgets, unmanaged processes with their use. */
static void print_users(const struct command *command)
{
	static const char *const heads[] = { "GPU",  "QUEUES",          "USED BY", "PID",
					     "USER", "NAME OR COMMAND", NULL };
	_cleanup_(table_done) struct table table = { .heads = heads, .keep = "420530" };

	for (size_t i = 0; i < command->n_gpus; i++)
		if (gpu_is_listed(command, &command->gpus[i]))
			add_users_of(&table, command, &command->gpus[i]);
	if (table.n > 0)
		putchar('\n');
	table_print(&table, command, stdout);
}

/* Names all unmanaged processes: one of them, or a lease beyond its budget, is the cause. */
static void print_alarm(const struct command *command, const struct gpuarb_gpu *gpu)
{
	char processes[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < gpu->n_unmanaged && used < sizeof(processes); i++)
		used += (size_t)snprintf(
			processes + used, sizeof(processes) - used, "%s%u (%s, %u queue%s)",
			used ? ", " : "", gpu->unmanaged[i].pid, gpu->unmanaged[i].command,
			gpu->unmanaged[i].queues, print_s(gpu->unmanaged[i].queues));

	fputs(command->colour ? COLOUR_ALARM : "", stdout);
	print_line(stdout,
		   "%s is oversubscribed: programs use more than its %u queue slot%s, %u process "
		   "slot%s, SDMA queues or memory. No lease is granted on it until that ends. "
		   "Processes without a lease: %s",
		   gpu->name, gpu->queue_slots, print_s(gpu->queue_slots), gpu->process_slots,
		   print_s(gpu->process_slots),
		   used ? processes : "none; a lease uses more than its budget (gpuarbctl verify)");
	fputs(command->colour ? COLOUR_NONE : "", stdout);
}

/* Says where leases are not alone, and where that is unknown. Nothing draws on a simulated GPU. */
static void print_graphics(const struct command *command, size_t i)
{
	const char *graphics = gpuarb_view_graphics(command->view, i);
	const struct gpuarb_gpu *gpu = &command->gpus[i];

	if (strcmp(graphics, "drawn") == 0)
		print_line(stdout,
			   "%s: processes draw through the graphics driver. Their work has no CU "
			   "mask: it runs on the CUs of every lease.",
			   gpu->name);
	else if (strcmp(graphics, "unknown") == 0 && gpu->kfd_gpu_id != 0)
		print_line(stdout,
			   "%s: it is unknown which processes draw. systemctl enable --now "
			   "gpuarb-fdinfo.socket lets gpuarbd observe them.",
			   gpu->name);
}

/* A tenant has leases whose units are to be capped, and the kernel cannot. */
static void print_unlimited(const struct command *command)
{
	const char *state = gpuarb_view_queue_budgets(command->view);

	if (*state && strcmp(state, "unused") != 0 && strcmp(state, "enforced") != 0)
		print_line(stdout, "The kernel does not limit the queues of units: %s", state);
}

/* GPUs on which drift of masks and priorities cannot be found. */
static void print_unseen(const struct command *command)
{
	for (size_t i = 0; i < command->n_gpus; i++)
		if (command->gpus[i].kfd_gpu_id != 0 &&
		    gpuarb_view_masks_observed(command->view, i) == 0)
			print_line(stdout,
				   "%s: masks and priorities of queues are not observed: gpuarbd "
				   "cannot read the hardware queue descriptors: %s",
				   command->gpus[i].name,
				   *gpuarb_view_unseen(command->view, i)
					   ? gpuarb_view_unseen(command->view, i)
					   : "it has not read them yet (gpuarb-mqds.socket)");
}

/* Where the law and margins of a GPU come from its own calibration, or why not. */
static void print_calibration(const struct command *command, size_t i)
{
	const struct gpuarb_calibration *calibration = gpuarb_view_calibration(command->view, i);

	if (calibration && *calibration->problem)
		print_line(stdout, "%s: its calibration is not used: %s", command->gpus[i].name,
			   calibration->problem);
	else if (calibration && *calibration->date)
		print_line(stdout, "%s: law = %s (calibrated %s)", command->gpus[i].name,
			   command->gpus[i].law, calibration->date);
}

static void print_memory(const struct command *command, size_t i)
{
	const struct gpuarb_gpu *gpu = &command->gpus[i];
	char left[PRINT_BYTES];

	print_bytes(gpu->vram_free, left);
	if (gpuarb_view_vram_pressure(command->view, i))
		print_line(stdout,
			   "%s: its memory runs short: %s can still be promised. Programs may fail "
			   "to allocate.",
			   gpu->name, left);
}

static void print_status(const struct command *command)
{
	if (command->n_gpus == 0)
		print_line(stdout, "No GPU: gpuarbd found none on this machine.");
	gpu_table(command, stdout);
	for (size_t i = 0; i < command->n_gpus; i++) {
		if (command->gpus[i].oversubscribed)
			print_alarm(command, &command->gpus[i]);
		if (gpuarb_view_floor_excess(command->view, i)[0])
			print_line(stdout, "%s: not all floors can be kept free: %s",
				   command->gpus[i].name,
				   gpuarb_view_floor_excess(command->view, i));
		print_memory(command, i);
		print_graphics(command, i);
		print_calibration(command, i);
	}
	print_unseen(command);
	print_unlimited(command);
	print_users(command);
	client_table(command, stdout);
	putchar('\n');
	lease_table(command);
}

int run_status(struct command *command)
{
	int r;

	if (command->limits)
		return run_limits(command);
	r = list_check(command, NULL);
	if (r != EXIT_OK)
		return r;
	if (command->json)
		json_status(command);
	else
		print_status(command);
	return EXIT_OK;
}

/* ---- gpus ----------------------------------------------------------------------------------- */

/* "15", or "13-14" if the shader engines differ, over all XCCs. */
static void per_engine(const struct gpuarb_gpu *gpu, char *buf, size_t size)
{
	const uint32_t *cus = gpu->cus_per_shader_engine;
	uint32_t least = UINT32_MAX, most = 0;

	for (size_t i = 0; i < (size_t)gpu->xccs * gpu->shader_engines; i++) {
		if (cus[i] < least)
			least = cus[i];
		if (cus[i] > most)
			most = cus[i];
	}
	snprintf(buf, size, least < most ? "%s%u-%u" : "%s%u", gpu->harvest_known ? "" : "~",
		 least < most ? least : most, most);
}

static void add_gpu(struct table *table, const struct gpuarb_gpu *gpu)
{
	char engine[32], vram[PRINT_BYTES];

	per_engine(gpu, engine, sizeof(engine));
	print_bytes(gpu->vram_bytes, vram);
	TABLE_CELLS(table, gpu->name, gpu->device, gpu->gfx_target, gpu->xccs, gpu->shader_engines,
		    gpu->cus, engine, gpu->wgp_mode ? "yes" : "no", gpu->queue_slots);
	table_add(table, "%ux%u", gpu->pipes, gpu->queues_per_pipe);
	TABLE_CELLS(table, gpu->process_slots);
	table_add(table, "%u+%u", gpu->sdma_queues, gpu->sdma_xgmi_queues);
	TABLE_CELLS(table, vram, gpu->scheduler, gpu->law);
}

const char *const gpus_heads[] = {
	"GPU",    "DEVICE", "TARGET",    "XCCS", "SE",   "CUS",       "CUS/SE", "WGP",
	"QUEUES", "PIPES",  "PROCESSES", "SDMA", "VRAM", "SCHEDULER", "LAW",    NULL,
};

int run_gpus(struct command *command)
{
	_cleanup_(table_done) struct table table = { .heads = gpus_heads,
						     .keep = "030510621728948" };
	struct json_object *list;
	int r = list_check(command, gpus_heads);

	if (r != EXIT_OK)
		return r;
	if (command->json) {
		list = json_list(NULL, NULL);
		json_gpus(list, command);
		json_print(stdout, list);
		return EXIT_OK;
	}
	for (size_t i = 0; i < command->n_gpus; i++)
		if (gpu_is_listed(command, &command->gpus[i]))
			add_gpu(&table, &command->gpus[i]);
	table_print(&table, command, stdout);
	if (command->n_gpus == 0)
		print_line(stdout, "No GPU: gpuarbd found none on this machine.");
	return EXIT_OK;
}

/* ---- list ----------------------------------------------------------------------------------- */

int run_list(struct command *command)
{
	struct json_object *list;
	int r = list_check(command, lease_table_heads);

	if (r != EXIT_OK)
		return r;
	if (!command->json) {
		lease_table(command);
		return EXIT_OK;
	}
	list = json_list(NULL, NULL);
	json_leases(list, command);
	json_print(stdout, list);
	return EXIT_OK;
}

/* ---- show ----------------------------------------------------------------------------------- */

/* What was promised, what KFD shows that it uses, and whether the kernel caps that. */
static void print_vram(const struct lent *all, const struct observed *observed,
		       const struct gpuarb_lease_info *lease, size_t i)
{
	const struct gpuarb_partition *partition = &lease->partitions[i];
	char promised[PRINT_BYTES], used[PRINT_BYTES], cap[MEMORY_CAP_TEXT];
	struct observed_use use = { 0 };
	enum memory_cap how;
	uint64_t limit = 0;
	bool known = observed_use(observed, all->leases, all->n, (size_t)(lease - all->leases), i,
				  &use) &&
		     use.vram > 0;

	how = memory_cap_read("", partition->gpu, (pid_t)lease->owner_pid, &limit);
	memory_cap_text(how, limit, cap);
	print_bytes(partition->vram, promised);
	print_bytes(use.vram, used);
	print_line(stdout, "  vram: %s%s%s, %s",
		   partition->vram > 0 ? promised : "nothing promised", known ? ", in use " : "",
		   known ? used : "", cap);
}

/* cus_min: of an adaptable lease; 0: it is fixed. */
static void print_partition(const struct lent *all, const struct observed *observed,
			    const struct gpuarb_lease_info *lease, size_t i, uint32_t cus_min)
{
	const struct gpuarb_partition *partition = &lease->partitions[i];
	char *mask = mask_hex(partition->cu_mask, partition->cu_mask_words);
	unsigned borrowed = lent_in(all, lease, i);
	char priority[80];

	priority_text(partition, priority, sizeof(priority));
	print_line(stdout, "partition    %s", partition->gpu);
	print_grant(stdout, "  ", partition);
	if (lent_by(lease))
		print_line(stdout, "  lent: %u of %u CUs", lent_out(all, lease, i), partition->cus);
	if (borrowed > 0)
		print_line(stdout, "  borrowed: %u of %u CUs", borrowed, partition->cus);
	if (cus_min > 0)
		print_line(stdout,
			   "  base: %u CU%s, below which it does not shrink (resize --cus-min)",
			   cus_min, print_s(cus_min));
	print_line(stdout, "  mask: %s", mask ? mask : "?");
	print_line(stdout,
		   "  queues: %u, of them %u masked streams a process; processes: %u; "
		   "SDMA queues: %u, for XGMI: %u",
		   partition->queues, partition->streams, partition->processes,
		   partition->sdma_queues, partition->sdma_xgmi_queues);
	print_line(stdout, "  priority: %s", priority);
	print_vram(all, observed, lease, i);
	print_line(stdout, "  tier: %s", partition->tier);
	for (size_t gap = 0; gap < partition->n_gaps; gap++)
		print_line(stdout, "  not isolated: %s", partition->gaps[gap]);
	free(mask);
}

/* Pauses, or evictions; nothing if there were none. */
static void print_times(const char *what, const struct gpuarb_pause *times)
{
	uint64_t usec = times->usec;

	if (times->count == 0)
		return;
	if (times->since > 0)
		usec += lease_clock_usec() - times->since;
	print_line(stdout, "%-12s %" PRIu64 ", %" PRIu64 ".%03" PRIu64 " s in all", what,
		   times->count, usec / 1000000, usec / 1000 % 1000);
}

static void print_drift(const struct gpuarb_view *view, size_t i)
{
	const struct gpuarb_drift *drift;

	for (size_t k = 0; (drift = gpuarb_view_drift(view, i, k)); k++) {
		char pid[32] = "";

		if (drift->pid > 0)
			snprintf(pid, sizeof(pid), ", pid %u", drift->pid);
		print_line(stdout,
			   "drift        %s on %s: %" PRIu64 " granted, %" PRIu64
			   " observed, for %" PRIu64 " s%s",
			   drift->kind, drift->gpu, drift->granted, drift->observed,
			   (lease_clock_usec() - drift->since) / 1000000, pid);
	}
}

static void print_intruders(const struct gpuarb_view *view, size_t i)
{
	const struct gpuarb_intruder *intruder;

	for (size_t k = 0; (intruder = gpuarb_view_intruder(view, i, k)); k++) {
		char whose[48] = "no lease", user[PRINT_USER];

		print_user(intruder->uid, user);
		if (intruder->lease > 0)
			snprintf(whose, sizeof(whose), "lease %" PRIu64, intruder->lease);
		print_line(stdout,
			   "disturbed    by pid %u (%s) of %s, %s: %s %u CUs of %s, for %" PRIu64
			   " s",
			   intruder->pid, intruder->command, user, whose,
			   intruder->draws ? "draws on" : "covers", intruder->cus, intruder->gpu,
			   (lease_clock_usec() - intruder->since) / 1000000);
	}
}

static void print_lease(const struct command *command, const struct lent *all,
			const struct gpuarb_lease_info *lease)
{
	char user[PRINT_USER], when[48], age[LEASE_TEXT_AGE];
	struct observed observed = { 0 };
	size_t at = (size_t)(lease - all->leases);

	print_user(lease->owner_uid, user);
	lease_text_deadline(lease->state, lease->deadline, when, sizeof(when));
	lease_text_age(gpuarb_view_since(command->view, at), age);
	print_line(stdout, "lease        %" PRIu64, lease->id);
	print_line(stdout, "name         %s", lease->name);
	print_line(stdout, "state        %s%s%s", lease_text_state(lease),
		   *lease->reason ? ": " : "", lease->reason);
	if (lease->position > 0)
		print_line(stdout, "position     %u", lease->position);
	if (*when)
		print_line(stdout, "deadline     %s", when);
	if (*age)
		print_line(stdout, "age          %s", age);
	if (gpuarb_view_duration(command->view, at) > 0) {
		lease_text_span(gpuarb_view_duration(command->view, at) / 1000000, age);
		print_line(stdout, "duration     %s", age);
	}
	print_line(stdout, "class        %s", lease->lease_class);
	print_line(stdout, "tenant       %s", lease->tenant);
	print_line(stdout, "owner        %s, pid %u%s%s", user, lease->owner_pid,
		   *lease->owner_unit ? ", " : "", lease->owner_unit);
	print_line(stdout, "adaptable    %s", lease->adaptable ? "yes" : "no");
	print_line(stdout, "generation   %" PRIu64, lease->generation);
	print_line(stdout, "disturbances %" PRIu64, lease->disturbances);
	if (gpuarb_view_capped(command->view, at))
		print_line(stdout, "capped       yes, its masks are %s",
			   gpuarb_view_verified(command->view, at) ? "verified" : "not verified");
	if (*gpuarb_view_uncapped(command->view, at))
		print_line(stdout, "capped       no: %s",
			   uncapped_text(gpuarb_view_uncapped(command->view, at)));
	if (gpuarb_view_queue_refusals(command->view, at) > 0)
		print_line(stdout, "refused      %" PRIu64 " queues beyond the grant",
			   gpuarb_view_queue_refusals(command->view, at));
	if (gpuarb_view_moves(command->view, at) > 0)
		print_line(stdout, "moves        %" PRIu64, gpuarb_view_moves(command->view, at));
	if (gpuarb_view_resets(command->view, at) > 0)
		print_line(stdout, "resets       %" PRIu64, gpuarb_view_resets(command->view, at));
	print_times("pauses", gpuarb_view_pause(command->view, at));
	print_times("evictions", gpuarb_view_evictions(command->view, at));
	print_drift(command->view, at);
	print_intruders(command->view, at);
	if (gpuarb_view_alone(command->view, at))
		print_line(stdout, "alone        yes: no queue of others covers its CUs");
	(void)observed_read("/sys", "/proc", &observed); /* without memory nothing is known */
	for (size_t i = 0; i < lease->n_partitions; i++)
		print_partition(all, &observed, lease, i,
				gpuarb_view_cus_min(command->view, at, i));
	observed_done(&observed);
}

int run_show(struct command *command)
{
	const struct lent all = { command->leases, command->n_leases };
	const struct gpuarb_lease_info *lease;
	int r = session_lease(command, command->id, &lease);

	if (r != EXIT_OK)
		return r;
	if (!command->json) {
		print_lease(command, &all, lease);
		return EXIT_OK;
	}
	json_print(stdout, json_lease(NULL, command->view, (size_t)(lease - all.leases)));
	return EXIT_OK;
}
