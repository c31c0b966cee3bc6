/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The driver where memory runs out: told by -ENOMEM, and nothing is half done. */

#include <errno.h>

#include "check.h"
#include "kfdsim/test/sim-rig.h"

#ifdef __SANITIZE_ADDRESS__

TEST(every_allocation_can_fail)
{
	SKIP("the sanitizer has its own malloc");
}

#else

#include "lack.h"

static void start(struct sim_rig *rig, bool timing)
{
	struct gpu_info infos[] = { rig_vega(), rig_navi() };

	rig_start_with(rig, infos, 2, (struct sim_config){ .timing = timing }, RIG_ARENA);
}

/* ---- one after the other ---- */

/* Each returns 0 or -ENOMEM, and can be called again. */
static int make_queue(struct sim_rig *rig, struct sim_process *process)
{
	unsigned before = process->n_queues, slots = rig->sim->gpus[0].compute_queues;
	int r = rig_try_queue(rig, process, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);

	CHECK(process->n_queues == before + (r >= 0));
	CHECK(rig->sim->gpus[0].compute_queues == slots + (r >= 0));
	return r < 0 ? r : 0;
}

static int make_buffer(struct sim_rig *rig, struct sim_process *process)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = 1U << 30,
		.size = 2U << 20,
		.gpu_id = rig_id(rig, 0),
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM,
	};
	uint64_t before = rig->sim->gpus[0].vram_used;
	int r = RIG_CALL(rig, process, ALLOC_MEMORY_OF_GPU, &args);

	CHECK(rig->sim->gpus[0].vram_used == before + (r < 0 ? 0 : args.size));
	return r;
}

static int make_event(struct sim_rig *rig, struct sim_process *process)
{
	struct kfd_ioctl_create_event_args args = { 0 };

	return RIG_CALL(rig, process, CREATE_EVENT, &args);
}

static int make_wait(struct sim_rig *rig, struct sim_process *process)
{
	struct kfd_ioctl_wait_events_args args = { .events_ptr = RIG_MEMORY,
						   .num_events = 1,
						   .timeout = UINT32_MAX };
	struct kfd_event_data *data = rig_at(rig, RIG_MEMORY);
	int r;

	memset(data, 0, sizeof(*data));
	data->event_id = 1;
	r = RIG_CALL(rig, process, WAIT_EVENTS, &args);
	return r == -EINPROGRESS ? 0 : r;
}

static int make_fault(struct sim_rig *rig, struct sim_process *process)
{
	char why[64] = "";

	(void)process;
	return sim_fault(rig->sim, "create-event:9:EIO", 0, why, sizeof(why));
}

static void lack(struct sim_rig *rig, struct sim_process *process,
		 int (*make)(struct sim_rig *rig, struct sim_process *process))
{
	unsigned failed = 0;
	int r = -ENOMEM;

	for (long n = 0; r < 0; n++) {
		lack_left = n;
		r = make(rig, process);
		failed += lack_left < 0 && r < 0;
		CHECK(r == 0 || r == -ENOMEM);
	}
	lack_left = -1;
	CHECK(failed > 0);
}

static void lack_everything(bool timing)
{
	static struct sim_rig rig;
	struct sim_process *process;

	start(&rig, timing);
	process = rig_open(&rig, 1);
	lack(&rig, process, make_queue);
	lack(&rig, process, make_queue);
	lack(&rig, process, make_buffer);
	lack(&rig, process, make_event);
	lack(&rig, process, make_event);
	lack(&rig, process, make_wait);
	lack(&rig, process, make_fault);
	CHECK(rig_destroy(&rig, process, 0) == 0 && rig_destroy(&rig, process, 1) == 0);
	rig_stop(&rig);
}

TEST(failed_allocation_can_be_retried)
{
	lack_everything(false);
	lack_everything(true);
}

TEST(driver_and_process_creation_fail_without_memory)
{
	static struct sim_rig rig;
	struct gpu_info info = rig_vega();
	unsigned minor = 128, failed = 0;
	struct sim_config config = { .gpus = &info, .minors = &minor, .n_gpus = 1, .timing = true };
	struct sim_process *process;
	struct sim *sim = NULL;

	info.kfd_gpu_id = 4096;
	start(&rig, false);
	for (long n = 0; !sim; n++) {
		int r;

		lack_left = n;
		r = sim_new(&config, &rig.world, &sim);
		CHECK(r == (sim ? 0 : -ENOMEM));
		failed += r < 0;
	}
	CHECK(failed > 3);
	lack_left = 0;
	CHECK(sim_open(sim, 1, &process) == -ENOMEM && !sim->processes);
	lack_left = -1;
	sim_free(sim);
	rig_stop(&rig);
}

TEST(freeing_without_memory_loses_only_that_range)
{
	static struct sim_rig rig;
	uint64_t a, b, c;

	start(&rig, false);
	CHECK(sim_arena_take(rig.sim, 4096, &a) == 0 && sim_arena_take(rig.sim, 4096, &b) == 0);
	lack_left = 0;
	sim_arena_put(rig.sim, a, 4096);
	CHECK(lack_left < 0);
	CHECK(sim_arena_take(rig.sim, 4096, &c) == 0 && c != a && c != b);
	rig_stop(&rig);
}

#endif
