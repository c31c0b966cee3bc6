/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What each GPU has room for. */

#include <stdio.h>
#include <string.h>

#include "client/doctor/doctor.h"
#include "client/output/print.h"

/* Four HIP processes of two queues each, the least that they can live with. */
#define FEW_QUEUES 8U
#define FEW_PROCESSES 4U

static void describe(struct doctor *doctor, const struct gpu_info *gpu)
{
	bool few = gpu->queue_slots <= FEW_QUEUES || gpu->process_slots <= FEW_PROCESSES;
	char target[16];

	gpu_info_target_name(gpu->gfx_target, target, sizeof(target));
	say(doctor, few ? MARK_NOTE : MARK_OK,
	    "%s (%s): %u queue slot%s, %u process slot%s "
	    "(VMIDs), %u SDMA queue%s",
	    gpu->name, target, gpu->queue_slots, print_s(gpu->queue_slots), gpu->process_slots,
	    print_s(gpu->process_slots), gpu->sdma_queues, print_s(gpu->sdma_queues));
	if (!few) {
		means(doctor, "As many queues, and processes, compute at a time; those beyond take "
			      "turns.");
		return;
	}
	means(doctor,
	      "Few: a HIP process takes 5 queues if it is let, and 2 at least, so %u of "
	      "them fit, and what comes without a lease makes all take turns.",
	      min_u(gpu->queue_slots / 2, gpu->process_slots));
	advise(doctor, "Name --queues and --processes when asking, and let all programs on this "
		       "GPU have leases.");
}

void check_slots(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->n_gpus; i++)
		describe(doctor, &doctor->gpus[i]);
	if (doctor->n_gpus > 0)
		return;

	say(doctor, MARK_NOTE, "there is no GPU whose slots could be counted");
	means(doctor, "Nothing can be leased.");
	advise(doctor, "See kernel.");
}

/* Partitions of a card share the file: a value for each of them. */
static bool first_of_card(const struct doctor *doctor, size_t i, size_t length)
{
	for (size_t k = 0; k < i; k++) {
		const char *name = doctor->gpus[k].name;

		if (strcspn(name, "/") == length &&
		    strncmp(name, doctor->gpus[i].name, length) == 0)
			return false;
	}
	return true;
}

static void judge_card(struct doctor *doctor, const char *card, const char *path, const char *value)
{
	if (value[strspn(value, "0 ")] == '\0') {
		say(doctor, MARK_OK, "%s: enforce_isolation is off", card);
		means(doctor, "Processes compute side by side, as leases want it.");
		return;
	}
	say(doctor, MARK_NOTE, "%s: enforce_isolation is %s", card, value);
	means(doctor, "Where it is not 0, one process is on the GPU at a time: leases on it take "
		      "turns, whatever CUs they have.");
	advise(doctor, "Unless that is wanted: echo 0 > %s (a 0 for each partition)", path);
}

/* Older kernels have no such file. */
void check_isolation(struct doctor *doctor)
{
	size_t before = doctor->n_findings;

	for (size_t i = 0; i < doctor->n_gpus; i++) {
		const char *name = doctor->gpus[i].name;
		size_t length = strcspn(name, "/");
		char path[128], value[256], card[GPU_NAME_MAX];

		if (!first_of_card(doctor, i, length))
			continue;
		snprintf(card, sizeof(card), "%.*s", (int)length, name);
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/enforce_isolation", card);
		if (doctor_read_line(doctor, path, value, sizeof(value)) == 0)
			judge_card(doctor, card, path, value);
	}
	if (doctor->n_findings > before)
		return;

	say(doctor, MARK_OK, "no GPU here has enforce_isolation");
	means(doctor, "Processes compute side by side, as leases want it.");
}
