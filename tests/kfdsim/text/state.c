/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/text/state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"

static void free_queue(struct state_queue *queue)
{
	for (size_t i = 0; i < queue->n_masks; i++)
		free(queue->masks[i]);
	free(queue->masks);
	free(queue);
}

static void free_process(struct state_process *process)
{
	struct state_queue *next;

	for (struct state_queue *queue = process->queues; queue; queue = next) {
		next = queue->next;
		free_queue(queue);
	}
	free(process);
}

void sim_record_free(struct sim *sim)
{
	struct state_process *next;

	if (!sim->record)
		return;
	for (struct state_process *p = sim->record->processes; p; p = next) {
		next = p->next;
		free_process(p);
	}
	free(sim->record->dispatches);
	free(sim->record);
	sim->record = NULL;
}

bool state_alive(const struct sim *sim, const struct state_process *process)
{
	for (const struct sim_process *p = sim->processes; p; p = p->next)
		if (p->serial == process->serial)
			return !p->dead;
	return false;
}

static bool has_live_queues(const struct state_process *process)
{
	for (const struct state_queue *queue = process->queues; queue; queue = queue->next)
		if (queue->live)
			return true;
	return false;
}

/* What is printed of a program is its name, without what would upset a terminal. */
static void read_command(pid_t pid, char *buf, int size)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (!fgets(buf, size, file))
		buf[0] = '\0';
	fclose(file);
	buf[strcspn(buf, "\n")] = '\0';
	for (char *c = buf; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
}

static void drop_process(struct sim_record *record, struct state_process **at)
{
	struct state_process *process = *at;

	*at = process->next;
	for (const struct state_queue *queue = process->queues; queue; queue = queue->next) {
		record->n_queues--;
		record->forgotten++;
	}
	record->n_processes--;
	record->forgotten++;
	free_process(process);
}

/* The oldest that has ended; who lives is never dropped. */
static void drop_processes(struct sim *sim)
{
	struct sim_record *record = sim->record;
	struct state_process **at = &record->processes;

	while (*at && record->n_processes > STATE_PROCESSES) {
		if (state_alive(sim, *at) || has_live_queues(*at))
			at = &(*at)->next;
		else
			drop_process(record, at);
	}
}

static void drop_queues(struct sim_record *record)
{
	struct state_queue **oldest = NULL, *queue;

	if (record->n_queues <= STATE_QUEUES)
		return;
	for (struct state_process *p = record->processes; p; p = p->next)
		for (struct state_queue **at = &p->queues; *at; at = &(*at)->next)
			if (!(*at)->live &&
			    (!oldest || (*at)->last.serial < (*oldest)->last.serial))
				oldest = at;
	if (!oldest)
		return;
	queue = *oldest;
	*oldest = queue->next;
	record->n_queues--;
	record->forgotten++;
	free_queue(queue);
}

static struct state_process *find_process(const struct sim_process *process)
{
	struct sim_record *record = process->sim->record;
	struct state_process *found = record ? record->processes : NULL;

	while (found && found->serial != process->serial)
		found = found->next;
	return found;
}

static struct state_queue *find_queue(const struct sim_queue *queue)
{
	struct state_process *process = find_process(queue->process);
	struct state_queue *found = process ? process->queues : NULL;

	while (found && found->live != queue)
		found = found->next;
	return found;
}

void sim_record_process(struct sim_process *process)
{
	struct sim *sim = process->sim;
	struct state_process *added, **end;

	if (!sim->record)
		sim->record = calloc(1, sizeof(*sim->record));
	if (!sim->record || find_process(process))
		return;
	added = calloc(1, sizeof(*added));
	if (!added) {
		sim->record->forgotten++;
		return;
	}
	added->serial = process->serial;
	added->pid = process->pid;
	read_command(process->pid, added->command, sizeof(added->command));
	for (end = &sim->record->processes; *end;)
		end = &(*end)->next;
	*end = added;
	sim->record->n_processes++;
	drop_processes(sim);
}

static void count(struct state_process *process, const struct sim_queue *queue, int change)
{
	unsigned gpu = queue->gpu->index;

	if (queue->type != SIM_COMPUTE)
		return;
	process->now += (unsigned)change;
	process->peak = max_u(process->peak, process->now);
	process->gpu_now[gpu] += (unsigned)change;
	process->gpu_peak[gpu] = max_u(process->gpu_peak[gpu], process->gpu_now[gpu]);
}

void sim_record_queue(struct sim_queue *queue)
{
	struct state_process *process;
	struct state_queue *added, **end;

	sim_record_process(queue->process);
	process = find_process(queue->process);
	added = process ? calloc(1, sizeof(*added)) : NULL;
	if (!added)
		return;
	added->live = queue;
	for (end = &process->queues; *end;)
		end = &(*end)->next;
	*end = added;
	process->made++;
	count(process, queue, 1);
	queue->process->sim->record->n_queues++;
	drop_queues(queue->process->sim->record);
}

char *state_mask(const uint32_t *mask, unsigned bits)
{
	size_t words = bits / 32;
	char *text, *end;

	while (words > 1 && mask[words - 1] == 0)
		words--;
	text = malloc(words * 8 + 4);
	if (!text)
		return NULL;
	end = text + sprintf(text, "0x%x", words > 0 ? mask[words - 1] : 0);
	for (size_t i = words; i-- > 1;)
		end += sprintf(end, "%08x", mask[i - 1]);
	return text;
}

/* The oldest mask makes room. */
static void add_mask(struct state_queue *queue, char *mask)
{
	char **masks;

	if (queue->n_masks == STATE_MASKS) {
		free(queue->masks[0]);
		memmove(queue->masks, queue->masks + 1, (STATE_MASKS - 1) * sizeof(*masks));
		queue->masks[STATE_MASKS - 1] = mask;
		return;
	}
	masks = reallocarray(queue->masks, queue->n_masks + 1, sizeof(*masks));
	if (!masks) {
		free(mask);
		return;
	}
	queue->masks = masks;
	queue->masks[queue->n_masks++] = mask;
}

void sim_record_change(struct sim_queue *queue)
{
	struct state_queue *found = find_queue(queue);
	char *mask;

	if (!found || found->changes == queue->mask_changes)
		return;
	found->changes = queue->mask_changes;
	mask = state_mask(queue->mask, queue->mask_bits);
	if (mask)
		add_mask(found, mask);
}

void sim_record_queue_gone(struct sim_queue *queue)
{
	struct state_queue *found = find_queue(queue);

	if (!found)
		return;
	count(find_process(queue->process), queue, -1);
	found->last = *queue;
	found->last.process = NULL;
	found->last.next = NULL;
	found->live = NULL;
}
