/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* SMI events, and the faults that raise them. */

#include <errno.h>

#include "check.h"
#include "kfdsim/test/sim-rig.h"

#define PID 100
#define STREAMS 4

/* What the driver wrote to each stream, and what its reader wrote before. */
static struct stream {
	char text[2048];
	size_t size;
	uint64_t mask;
	bool written, closed, freed;
} streams[STREAMS];
static int n_streams, open_error;
static bool root;

static int stream_open(void *userdata, uint64_t request, int *ret_stream, uint32_t *ret_fd)
{
	(void)userdata;
	(void)request;
	if (open_error != 0)
		return open_error;
	streams[n_streams] = (struct stream){ 0 };
	*ret_stream = n_streams;
	*ret_fd = 40 + (uint32_t)n_streams++;
	return 0;
}

static int stream_put(void *userdata, int stream, const void *data, size_t size, size_t room,
		      size_t *unread)
{
	struct stream *to = &streams[stream];

	(void)userdata;
	*unread = to->size;
	if (to->size + size > room)
		return -ENOSPC;
	memcpy(to->text + to->size, data, size);
	to->size += size;
	to->text[to->size] = '\0';
	return 0;
}

static int stream_get(void *userdata, int stream, void *buf, size_t size)
{
	struct stream *from = &streams[stream];

	(void)userdata;
	if (from->closed)
		return -EPIPE;
	if (!from->written)
		return 0;
	CHECK(size == sizeof(from->mask));
	memcpy(buf, &from->mask, size);
	from->written = false;
	return (int)size;
}

static void put_away(void *userdata, int stream)
{
	(void)userdata;
	CHECK(!streams[stream].freed);
	streams[stream].freed = true;
}

static bool privileged(void *userdata, pid_t pid)
{
	(void)userdata;
	(void)pid;
	return root;
}

static void start(struct sim_rig *rig, unsigned kfd_minor)
{
	struct gpu_info infos[] = { rig_vega(), rig_navi() };

	n_streams = 0;
	open_error = 0;
	root = true;
	rig_start_with(rig, infos, 2, (struct sim_config){ .kfd_minor = kfd_minor }, RIG_ARENA);
	rig->sim->world.stream_open = stream_open;
	rig->sim->world.stream_put = stream_put;
	rig->sim->world.stream_get = stream_get;
	rig->sim->world.put_away = put_away;
	rig->sim->world.privileged = privileged;
}

static int subscribe(struct sim_rig *rig, struct sim_process *process, size_t gpu, uint64_t mask)
{
	struct kfd_ioctl_smi_events_args args = { .gpuid = rig_id(rig, gpu) };
	int r = RIG_CALL(rig, process, SMI_EVENTS, &args);

	if (r < 0)
		return r;
	CHECK(args.anon_fd == 40U + (uint32_t)n_streams - 1);
	streams[n_streams - 1].mask = mask;
	streams[n_streams - 1].written = mask != 0;
	return 0;
}

static bool reads(int stream, const char *text)
{
	bool same = strcmp(streams[stream].text, text) == 0;

	if (!same)
		fprintf(stderr, "stream %d: %s", stream, streams[stream].text);
	streams[stream].size = 0;
	streams[stream].text[0] = '\0';
	return same;
}

#define ALL UINT64_MAX
#define OWN (ALL & ~(1ULL << 63))

TEST(a_reset_is_told_before_and_after_with_its_number)
{
	struct sim_process *process;
	struct sim_rig rig;

	start(&rig, KFD_LINUX_6_1);
	process = rig_open(&rig, PID);
	CHECK(subscribe(&rig, process, 0, ALL) == 0);
	CHECK(subscribe(&rig, process, 1, ALL) == 0);
	CHECK(rig_fault(&rig, "reset:0000:03:00.0") == 0);
	CHECK(reads(0, "3 1\n4 1\n") && reads(1, ""));
	CHECK(rig_fault(&rig, "reset:0000:03:00.0") == 0);
	CHECK(reads(0, "3 2\n4 2\n"));
	rig_stop(&rig);
	CHECK(streams[0].freed && streams[1].freed);

	start(&rig, KFD_LINUX_6_12);
	CHECK(subscribe(&rig, rig_open(&rig, PID), 0, ALL) == 0);
	CHECK(rig_fault(&rig, "reset:0000:03:00.0") == 0);
	CHECK(reads(0, "3 1 kfdsim\n4 1 kfdsim\n"));
	rig_stop(&rig);
}

FIXTURE(struct sim_rig, rig, start(rig, 0), rig_stop(rig));

TEST_WITH(queues_of_a_reset_gpu_are_lost_and_new_ones_work, struct sim_rig *rig)
{
	struct sim_process *process;
	unsigned old, other;

	process = rig_open(rig, PID);
	old = rig_queue(rig, process, 0);
	other = rig_queue(rig, process, 1);
	CHECK(rig_fault(rig, "reset:0000:03:00.0") == 0);
	CHECK(rig->sim->gpus[0].compute_queues == 0 && rig->sim->gpus[1].compute_queues == 1);
	CHECK(rig_update(rig, process, old, 100, 7) == -EACCES);
	CHECK(rig_update(rig, process, other, 100, 7) == 0);
	CHECK(rig_destroy(rig, process, old) == 0);
	rig_queue(rig, process, 0);
	CHECK(rig->sim->gpus[0].compute_queues == 1);
	CHECK(rig_fault(rig, "reset:0000:09:00.0") == -EINVAL);
}

TEST_WITH(evicted_queues_stop_until_they_are_restored, struct sim_rig *rig)
{
	struct sim_process *process;

	process = rig_open(rig, PID);
	CHECK(subscribe(rig, process, 1, OWN) == 0);
	rig_queue(rig, process, 1);
	CHECK(rig_fault(rig, "evict:100") == 0);
	CHECK(rig->sim->gpus[1].compute_queues == 0);
	CHECK(reads(0, "9 1000000000 -100 1101 2\n"));
	rig_queue(rig, process, 1); /* born evicted */
	CHECK(rig->sim->gpus[1].compute_queues == 0);
	CHECK(rig_fault(rig, "evict:100") == -EINVAL);
	rig->now += 5000000;
	CHECK(rig_fault(rig, "restore:100") == 0);
	CHECK(rig->sim->gpus[1].compute_queues == 2);
	CHECK(reads(0, "a 1005000000 -100 1101 0\n"));
	CHECK(process->evicted_ns == 5000000);
	CHECK(rig_fault(rig, "restore:100") == -EINVAL);
	CHECK(rig_fault(rig, "evict:101") == -EINVAL && rig_fault(rig, "evict:x") == -EINVAL);
}

TEST_WITH(events_of_other_processes_are_told_to_the_privileged_who_ask, struct sim_rig *rig)
{
	struct sim_process *process;

	process = rig_open(rig, PID);
	CHECK(subscribe(rig, process, 0, ALL) == 0);
	CHECK(subscribe(rig, process, 0, OWN) == 0);
	root = false;
	CHECK(subscribe(rig, process, 0, ALL) == 0);
	rig_open(rig, PID + 1);
	CHECK(rig_fault(rig, "evict:101") == 0);
	CHECK(reads(0, "9 1000000000 -101 1000 2\n") && reads(1, "") && reads(2, ""));
}

TEST_WITH(only_events_of_the_mask_are_told, struct sim_rig *rig)
{
	struct sim_process *process;

	process = rig_open(rig, PID);
	CHECK(subscribe(rig, process, 0, 1ULL << (KFD_SMI_EVENT_THERMAL_THROTTLE - 1)) == 0);
	CHECK(subscribe(rig, process, 0, 0) == 0);
	CHECK(rig_fault(rig, "smi:0000:03:00.0:2 1:7f") == 0);
	CHECK(rig_fault(rig, "smi:0000:03:00.0:1 64:client") == 0);
	CHECK(reads(0, "2 1:7f\n") && reads(1, ""));
	CHECK(rig_fault(rig, "smi:0000:03:00.0:zz") == -EINVAL);
	CHECK(rig_fault(rig, "smi:0000:03:00.0:40 x") == -EINVAL);
	CHECK(rig_fault(rig, "smi:0000:09:00.0:2 1:7f") == -EINVAL);
}

TEST_WITH(what_is_not_read_is_lost_beyond_1024_bytes, struct sim_rig *rig)
{
	CHECK(subscribe(rig, rig_open(rig, PID), 0, ALL) == 0);
	for (unsigned i = 0; i < 300; i++)
		CHECK(rig_fault(rig, "smi:0000:03:00.0:2 1:7f") == 0);
	CHECK(streams[0].size == 1024 / strlen("2 1:7f\n") * strlen("2 1:7f\n"));
}

TEST_WITH(a_closed_descriptor_is_forgotten, struct sim_rig *rig)
{
	CHECK(subscribe(rig, rig_open(rig, PID), 0, ALL) == 0);
	streams[0].closed = true;
	CHECK(rig_fault(rig, "smi:0000:03:00.0:2 1:7f") == 0);
	CHECK(streams[0].freed && streams[0].size == 0);
}

TEST_WITH(a_descriptor_that_cannot_be_given_is_an_error, struct sim_rig *rig)
{
	struct sim_process *process;

	process = rig_open(rig, PID);
	open_error = -EMFILE;
	CHECK(subscribe(rig, process, 0, ALL) == -EMFILE);
	CHECK(rig_fault(rig, "smi:0000:03:00.0:2 1:7f") == 0);
}
