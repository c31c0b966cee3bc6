/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"
#include "kfdsim/driver/ioctl.h"
#include "kfdsim/driver/parts.h"

#define ERRNO_MAX 133
#define NS_OF_MSEC 1000000ULL

/* Waits for the ioctl that it is to spoil. */
struct sim_fault {
	unsigned nr;
	uint64_t left; /* 1: the next one */
	bool every;    /* from now on; left is 0 */
	int error;     /* negative */
	struct sim_fault *next;
};

struct complaint {
	char *why;
	size_t size;
};

PRINTF_LIKE(2, 3) static int bad(const struct complaint *complaint, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(complaint->why, complaint->size, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

/* ---- words ---- */

static int parse_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long value;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno != 0 || *end != '\0' || value > max)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int parse_errno(const char *text)
{
	for (int i = 1; i <= ERRNO_MAX; i++) {
		const char *name = strerrorname_np(i);

		if (name && strcmp(name, text) == 0)
			return -i;
	}
	return 0;
}

static unsigned parse_ioctl(const char *text)
{
	for (unsigned nr = 1; nr <= UINT8_MAX; nr++)
		if (sim_ioctl_name(nr) && strcmp(sim_ioctl_name(nr), text) == 0)
			return nr;
	return 0;
}

static struct sim_gpu *find_name(struct sim *sim, const char *name)
{
	for (size_t i = 0; i < sim->n_gpus; i++)
		if (!sim->gpus[i].gone && strcmp(sim->gpus[i].info.name, name) == 0)
			return &sim->gpus[i];
	return NULL;
}

/* ---- kinds ---- */

static int fault_gone(struct sim *sim, char *rest, uint64_t now_ns,
		      const struct complaint *complaint)
{
	struct sim_gpu *gpu = find_name(sim, rest);

	if (!gpu)
		return bad(complaint, "gone: no GPU «%s»", rest);
	sim_gpu_gone(sim, gpu, now_ns);
	return 0;
}

/* kgd2kfd_pre_reset() and kgd2kfd_post_reset(), kfd_device.c. */
static int fault_reset(struct sim *sim, char *rest, uint64_t now_ns,
		       const struct complaint *complaint)
{
	struct sim_gpu *gpu = find_name(sim, rest);

	if (!gpu)
		return bad(complaint, "reset: no GPU «%s»", rest);
	gpu->resets++;
	sim_smi_reset(gpu, false);
	sim_gpu_reset(gpu, now_ns);
	sim_events_of_reset(sim, gpu);
	sim_smi_reset(gpu, true);
	return 0;
}

static struct sim_process *find_pid(struct sim *sim, const char *text)
{
	uint64_t pid;

	return parse_number(text, INT32_MAX, &pid) < 0 ? NULL : sim_find_process(sim, (pid_t)pid);
}

static int evict_contexts(struct sim *sim, pid_t pid, bool evicted, uint64_t now_ns)
{
	struct sim_process *process = sim_find_context(sim->processes, pid);
	int r = 0;

	for (; process; process = sim_find_context(process->next, pid)) {
		int each = process->evicted == evicted ? 0
						       : sim_queues_evict(process, evicted, now_ns);

		r = r < 0 ? r : each;
	}
	return r;
}

/* kfd_process_evict_queues() tells of each GPU, whether the process has queues there or not. */
static int fault_evict(struct sim *sim, char *rest, uint64_t now_ns,
		       const struct complaint *complaint)
{
	struct sim_process *process = find_pid(sim, rest);

	if (!process)
		return bad(complaint, "evict: no process «%s» has /dev/kfd open", rest);
	if (process->evicted)
		return bad(complaint, "evict: process %s is evicted already", rest);
	for (size_t i = 0; i < sim->n_gpus; i++)
		sim_smi_event(&sim->gpus[i], process->pid, KFD_SMI_EVENT_QUEUE_EVICTION,
			      "%lld -%d %x %d\n", (long long)now_ns, process->pid,
			      sim->gpus[i].info.kfd_gpu_id, KFD_QUEUE_EVICTION_TRIGGER_TTM);
	return evict_contexts(sim, process->pid, true, now_ns);
}

static int fault_restore(struct sim *sim, char *rest, uint64_t now_ns,
			 const struct complaint *complaint)
{
	struct sim_process *process = find_pid(sim, rest);
	int r;

	if (!process || !process->evicted)
		return bad(complaint, "restore: no process «%s» is evicted", rest);
	r = evict_contexts(sim, process->pid, false, now_ns);
	for (size_t i = 0; i < sim->n_gpus; i++)
		sim_smi_event(&sim->gpus[i], process->pid, KFD_SMI_EVENT_QUEUE_RESTORE,
			      "%lld -%d %x %c\n", (long long)now_ns, process->pid,
			      sim->gpus[i].info.kfd_gpu_id, '0');
	return r;
}

/* The name of a GPU has colons in it, and so may the text. */
static int fault_smi(struct sim *sim, char *rest, uint64_t now_ns,
		     const struct complaint *complaint)
{
	unsigned event;
	int n = 0;

	(void)now_ns;
	for (size_t i = 0; i < sim->n_gpus; i++) {
		const char *name = sim->gpus[i].info.name, *text = rest + strlen(name);

		if (strncmp(rest, name, strlen(name)) != 0 || *text++ != ':')
			continue;
		if (sscanf(text, "%2x %n", &event, &n) != 1 || n == 0 || event == 0 || event > 63)
			return bad(complaint, "smi: «%s» does not begin with an event, 1 to 3f",
				   text);
		sim_smi_event(&sim->gpus[i], 0, event, "%s\n", text + n);
		return 0;
	}
	return bad(complaint, "smi: want GPU:TEXT, not «%s»", rest);
}

/* The dead that are there still, whatever they were told. */
static void teardown_now(struct sim *sim, uint64_t now_ns)
{
	for (struct sim_process *process = sim->processes; process; process = process->next)
		if (process->dead)
			process->gone_ns = now_ns;
}

static int fault_teardown(struct sim *sim, char *rest, uint64_t now_ns,
			  const struct complaint *complaint)
{
	uint64_t msec;

	if (strcmp(rest, "now") == 0) {
		teardown_now(sim, now_ns);
		return 0;
	}
	if (parse_number(rest, UINT32_MAX, &msec) < 0)
		return bad(complaint, "teardown: «%s» is neither milliseconds nor now", rest);
	sim->teardown_ns = msec * NS_OF_MSEC;
	return 0;
}

/* No fault, but what else is told to the driver in mid-run. */
static int fault_cost(struct sim *sim, char *rest, uint64_t now_ns,
		      const struct complaint *complaint)
{
	char *threads = strsep(&rest, ":");
	uint64_t n, nsec;

	(void)now_ns;
	if (!sim->timing)
		return bad(complaint, "cost: kernels take no time here: --timing was not given");
	if (!rest)
		return bad(complaint, "cost: want THREADS:NSEC, not «%s»", threads);
	if (parse_number(threads, SIM_GROUP_MAX, &n) < 0 || n == 0)
		return bad(complaint, "cost: «%s»: a work-group has 1 to %u threads", threads,
			   SIM_GROUP_MAX);
	if (parse_number(rest, UINT32_MAX, &nsec) < 0)
		return bad(complaint, "cost: «%s» is no number of nanoseconds", rest);
	sim->block_ns[n] = nsec;
	return 0;
}

static int fault_shift(struct sim *sim, char *rest, uint64_t now_ns,
		       const struct complaint *complaint)
{
	uint64_t bits;

	(void)now_ns;
	if (parse_number(rest, 31, &bits) < 0)
		return bad(complaint, "shift: «%s» is no number of bits up to 31", rest);
	sim->shift = (unsigned)bits;
	return 0;
}

/* The fields after the ioctl's name: N:ERRNO. */
static int parse_fault(char *rest, struct sim_fault *ret, const struct complaint *complaint)
{
	char *count = strsep(&rest, ":"), *error = strsep(&rest, ":");
	uint64_t value = 0;

	if (!count || !error || rest)
		return bad(complaint, "want IOCTL:N:ERRNO");
	if (strcmp(count, "*") != 0 && (parse_number(count, UINT32_MAX, &value) < 0 || value == 0))
		return bad(complaint, "«%s» is neither * nor a number from 1 on", count);
	ret->left = value;
	ret->every = value == 0;
	ret->error = parse_errno(error);
	if (ret->error == 0)
		return bad(complaint, "«%s» is no name of an errno", error);
	return 0;
}

static int add_fault(struct sim *sim, unsigned nr, char *rest, const struct complaint *complaint)
{
	struct sim_fault parsed = { .nr = nr }, *fault, **at = &sim->faults;
	int r = parse_fault(rest, &parsed, complaint);

	if (r < 0)
		return r;
	fault = malloc(sizeof(*fault));
	if (!fault)
		return -ENOMEM;
	*fault = parsed;
	while (*at)
		at = &(*at)->next;
	*at = fault;
	return 0;
}

int sim_fault(struct sim *sim, const char *text, uint64_t now_ns, char *why, size_t why_size)
{
	static const struct {
		const char *name;
		int (*run)(struct sim *sim, char *rest, uint64_t now_ns,
			   const struct complaint *complaint);
	} kinds[] = {
		{ "cost", fault_cost },   { "evict", fault_evict },       { "gone", fault_gone },
		{ "reset", fault_reset }, { "restore", fault_restore },   { "shift", fault_shift },
		{ "smi", fault_smi },     { "teardown", fault_teardown },
	};
	const struct complaint complaint = { why, why_size };
	_cleanup_(freep) char *copy = strdup(text);
	char *rest = copy, *kind;
	unsigned nr;

	if (!copy)
		return -ENOMEM;
	kind = strsep(&rest, ":");
	if (!rest)
		return bad(&complaint, "want KIND:…, not «%s»", text);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].name, kind) == 0)
			return kinds[i].run(sim, rest, now_ns, &complaint);
	nr = parse_ioctl(kind);
	if (nr == 0)
		return bad(
			&complaint,
			"«%s»: no ioctl, nor cost, evict, gone, reset, restore, shift, smi or teardown",
			kind);
	return add_fault(sim, nr, rest, &complaint);
}

/* ---- and in use ---- */

/* Each one counts by itself; of those that are due, the oldest says which errno. */
int sim_fault_ioctl(struct sim *sim, unsigned nr)
{
	struct sim_fault **at = &sim->faults;
	int error = 0;

	while (*at) {
		struct sim_fault *fault = *at;
		bool due = fault->nr == nr && (fault->every || --fault->left == 0);

		if (due && error == 0)
			error = fault->error;
		if (due && !fault->every) {
			*at = fault->next;
			free(fault);
		} else {
			at = &fault->next;
		}
	}
	return error;
}

void sim_faults_free(struct sim *sim)
{
	for (struct sim_fault *fault = sim->faults, *next; fault; fault = next) {
		next = fault->next;
		free(fault);
	}
	sim->faults = NULL;
}
