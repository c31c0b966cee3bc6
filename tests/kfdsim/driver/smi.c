/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kfdsim/driver/ioctl.h"
#include "kfdsim/driver/parts.h"

/*
 * SMI_EVENTS: a descriptor for each call, on which the driver tells a GPU's events in lines of
 * text. Who reads writes a mask of events first. kfd_smi_events.c (Linux 6.1 and 6.12).
 */

#define FIFO_SIZE 1024U /* MAX_KFIFO_SIZE: what does not fit is lost */

struct sim_smi {
	struct sim_gpu *gpu;
	pid_t pid;
	bool privileged; /* may ask for events of all processes */
	uint64_t events;
	int stream;
	size_t unread;
	struct sim_smi *next;
};

static uint64_t bit(unsigned event)
{
	return KFD_SMI_EVENT_MASK_FROM_INDEX(event);
}

int ioctl_smi_events(const struct sim_call *call, void *argument)
{
	const struct sim_world *world = &call->sim->world;
	struct kfd_ioctl_smi_events_args *args = argument;
	struct sim_gpu *gpu = sim_find_gpu(call->sim, args->gpuid);
	struct sim_smi *smi;
	int r;

	if (!gpu)
		return -EINVAL;
	if (!world->stream_open)
		return -EOPNOTSUPP;
	smi = calloc(1, sizeof(*smi));
	if (!smi)
		return -ENOMEM;
	r = world->stream_open(world->userdata, call->request, &smi->stream, &args->anon_fd);
	if (r < 0) {
		free(smi);
		return r;
	}
	smi->gpu = gpu;
	smi->pid = call->process->pid;
	smi->privileged = world->privileged(world->userdata, smi->pid);
	smi->next = call->sim->smis;
	call->sim->smis = smi;
	return 0;
}

/* The last mask that was written, however long ago. -EPIPE: nobody has the descriptor any more. */
static int take_mask(const struct sim_world *world, struct sim_smi *smi)
{
	uint64_t mask;
	int r;

	while ((r = world->stream_get(world->userdata, smi->stream, &mask, sizeof(mask))) ==
	       sizeof(mask))
		smi->events = mask;
	return r == -EPIPE ? r : 0;
}

static bool wanted(const struct sim_smi *smi, pid_t pid, unsigned event)
{
	bool all = smi->privileged && smi->events & bit(KFD_SMI_EVENT_ALL_PROCESS);

	return (pid == 0 || smi->pid == pid || all) && smi->events & bit(event);
}

static void tell(const struct sim_gpu *gpu, pid_t pid, unsigned event, const char *line,
		 size_t size)
{
	const struct sim_world *world = &gpu->sim->world;
	struct sim_smi **at = &gpu->sim->smis, *smi;

	while ((smi = *at)) {
		if (take_mask(world, smi) < 0) {
			*at = smi->next;
			world->put_away(world->userdata, smi->stream);
			free(smi);
			continue;
		}
		if (smi->gpu == gpu && wanted(smi, pid, event))
			(void)world->stream_put(world->userdata, smi->stream, line, size, FIFO_SIZE,
						&smi->unread);
		at = &smi->next;
	}
}

void sim_smi_event(const struct sim_gpu *gpu, pid_t pid, unsigned event, const char *format, ...)
{
	char line[KFD_SMI_EVENT_MSG_SIZE];
	va_list arguments;
	int n, more;

	n = snprintf(line, sizeof(line), "%x ", event);
	va_start(arguments, format);
	more = vsnprintf(line + n, sizeof(line) - (size_t)n, format, arguments);
	va_end(arguments);
	n += more < 0 ? 0 : more;
	tell(gpu, pid, event, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

/* kfd_smi_event_update_gpu_reset(): 6.12 has a word for the cause behind it. */
void sim_smi_reset(const struct sim_gpu *gpu, bool after)
{
	unsigned event = after ? KFD_SMI_EVENT_GPU_POST_RESET : KFD_SMI_EVENT_GPU_PRE_RESET;

	if (gpu->sim->kfd_minor < KFD_LINUX_6_12)
		sim_smi_event(gpu, 0, event, "%x\n", gpu->resets);
	else
		sim_smi_event(gpu, 0, event, "%x %s\n", gpu->resets, "kfdsim");
}

void sim_smis_free(struct sim *sim)
{
	const struct sim_world *world = &sim->world;

	while (sim->smis) {
		struct sim_smi *smi = sim->smis;

		sim->smis = smi->next;
		world->put_away(world->userdata, smi->stream);
		free(smi);
	}
}
