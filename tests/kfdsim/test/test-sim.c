/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <sys/ioctl.h>

#include "check.h"
#include "kfdsim/test/sim-rig.h"

#define PID 100

static struct sim_process *start(struct sim_rig *rig, struct gpu_info info)
{
	rig_start(rig, &info, 1);
	return rig_open(rig, PID);
}

/* ---- the dispatcher ---- */

FIXTURE(struct sim_rig, rig, , rig_stop(rig));

TEST_WITH(short_arguments_are_padded_with_zeros_and_not_overrun, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega());
	uint8_t argument[sizeof(struct kfd_ioctl_get_version_args)];

	memset(argument, 0xaa, sizeof(argument));
	CHECK(rig_call(rig, process, _IOC(_IOC_READ, 'K', 1, 4), argument, 4) == 0);
	CHECK(argument[0] == 1 && argument[4] == 0xaa);
	CHECK(rig_call(rig, process, _IOC(_IOC_READ, 'K', 1, 0), NULL, 0) == 0);
	CHECK(rig_call(rig, process, AMDKFD_IOC_GET_VERSION, argument, sizeof(argument)) == 0);
	CHECK(argument[4] == 11);
}

TEST_WITH(unknown_tail_of_a_long_argument_is_untouched, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega());
	static uint8_t argument[SIM_ARGUMENT_MAX + 1];

	memset(argument, 0xaa, sizeof(argument));
	CHECK(rig_call(rig, process, _IOC(IOC_INOUT, 'K', 0x23, 64), argument, 64) == -EINVAL);
	for (size_t i = 16; i < sizeof(argument); i++)
		CHECK(argument[i] == 0xaa);
	CHECK(rig_call(rig, process, _IOC(IOC_INOUT, 'K', 0x23, 4097), argument,
		       SIM_ARGUMENT_MAX + 1) == -EINVAL);
}

/* ---- ioctls of their own ---- */

TEST_WITH(old_aperture_ioctl_returns_at_most_seven, struct sim_rig *rig)
{
	struct gpu_info infos[9];
	struct kfd_ioctl_get_process_apertures_args args = { 0 };
	struct sim_process *process;

	for (size_t i = 0; i < 9; i++)
		infos[i] = rig_vega();
	rig_start(rig, infos, 9);
	process = rig_open(rig, PID);
	CHECK(RIG_CALL(rig, process, GET_PROCESS_APERTURES, &args) == 0);
	CHECK(args.num_of_nodes == 7);
	CHECK(args.process_apertures[6].gpu_id == rig_id(rig, 6));
}

TEST_WITH(invalid_machines_are_refused, struct sim_rig *rig)
{
	struct gpu_info infos[2] = { rig_vega(), rig_vega() };
	unsigned minors[2] = { 128, 129 };
	struct sim_config config = { .gpus = infos, .minors = minors, .n_gpus = 2 };
	struct sim *sim = NULL;

	rig_start(rig, infos, 1); /* for its world */
	infos[0].kfd_gpu_id = infos[1].kfd_gpu_id = 4096;
	CHECK(sim_new(&config, &rig->world, &sim) == -EEXIST);
	infos[1].kfd_gpu_id = 0x10000;
	CHECK(sim_new(&config, &rig->world, &sim) == -EINVAL);
	infos[1].kfd_gpu_id = 0;
	CHECK(sim_new(&config, &rig->world, &sim) == -EINVAL);
	infos[1].kfd_gpu_id = 4097;
	config.n_gpus = SIM_GPUS_MAX + 1;
	CHECK(sim_new(&config, &rig->world, &sim) == -EINVAL);
	config.n_gpus = 2;
	config.timing = true;
	infos[1].geometry.xccs = 9; /* the timing model refuses it */
	CHECK(sim_new(&config, &rig->world, &sim) == -EINVAL && !sim);
}
