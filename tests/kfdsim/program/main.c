/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * kfdsim: runs a command on AMD GPUs that do not exist. The command, and all that it starts, sees
 * /dev/kfd, /dev/dri and the kernel's texts as amdkfd has them; libhsakmt, ROCr and HIP run
 * unmodified. What happened is JSON in /sys/kernel/debug/kfdsim/state there.
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "util/base.h"
#include "fake-sysfs.h"
#include "kfdsim/front/fuse.h"
#include "kfdsim/program/machine.h"
#include "kfdsim/program/options.h"

#define EXIT_OWN 125
#define EXIT_USAGE 2

static void print_help(void)
{
	puts("kfdsim OPTION... -- COMMAND...\n\n"
	     "Runs COMMAND on emulated AMD GPUs, in a mount namespace of its own. Needs root and\n"
	     "FUSE with passthrough (Linux 6.9).\n\n"
	     "  --gpu PROFILE     a card as gpuarb's profiles describe it; once for each\n"
	     "  --profiles DIR    where they are (" KFDSIM_PROFILES ")\n"
	     "  --fail SPEC       a fault, as control takes it: IOCTL:N:ERRNO[:PID], gone:GPU,\n"
	     "                    reset:GPU, evict:PID, restore:PID, smi:GPU:TEXT,\n"
	     "                    cost:THREADS:NSEC, teardown:MSEC or teardown:now\n"
	     "  --kfd VERSION     the driver of Linux 6.1, 6.12 or 7.2: 1.11, 1.17 or 1.23; 1.11\n"
	     "  --module-version TEXT\n"
	     "                    of a driver that was built outside of the kernel (DKMS); none\n"
	     "  --no-smi          no SMI events; the command can use seccomp notification\n"
	     "  --timing          kernels take time (a model)\n"
	     "  --help\n\n"
	     "Inside, /sys/kernel/debug/kfdsim/state is what happened, as JSON; what is written\n"
	     "to control there are faults. Exit status: the command's; 125 where kfdsim failed,\n"
	     "126 and 127 where the command could not be run or found, 2 for a wrong command\n"
	     "line.");
}

static int make_machine(struct machine *machine, const struct options *options)
{
	int r;

	r = machine_from_profiles(machine, options->profiles, options->gpus, options->n_gpus,
				  FRONT_SYSFS);
	if (r == 0 && options->module_version)
		r = fake_sysfs_print(FRONT_SYSFS, "module/amdgpu/version", "%s\n",
				     options->module_version);
	return r < 0 || options->kfd_minor < 17
		       ? r
		       : machine_of_newer(machine, FRONT_SYSFS, options->kfd_minor);
}

static int apply_faults(struct front *front, const struct options *options)
{
	char why[FRONT_WHY] = "";

	for (size_t i = 0; i < options->n_faults; i++)
		if (sim_fault(front->sim, options->faults[i], front_now(), why, sizeof(why)) < 0) {
			fprintf(stderr, "kfdsim: --fail %s: %s\n", options->faults[i], why);
			return -EINVAL;
		}
	return 0;
}

static int make_sim(struct front *front, const struct options *options)
{
	_cleanup_(freep) struct machine *machine = calloc(1, sizeof(*machine));
	struct sim_config config;
	int r;

	if (!machine)
		return -ENOMEM;
	r = make_machine(machine, options);
	if (r < 0)
		return r;
	config = (struct sim_config){
		.gpus = machine->gpus,
		.minors = machine->minors,
		.each = machine->each,
		.n_gpus = machine->n,
		.kfd_minor = options->kfd_minor,
		.timing = options->timing,
	};
	r = sim_new(&config, &front->world, &front->sim);
	r = r < 0 ? r : tree_new(front->sim, FRONT_SYSFS "/class/kfd/kfd", &front->tree);
	if (r < 0) {
		fprintf(stderr, "kfdsim: %s: %s\n", FRONT_SYSFS, strerror(-r));
		return r;
	}
	return 0;
}

static int status_of(const struct front *front)
{
	return WIFSIGNALED(front->child_status) ? 128 + WTERMSIG(front->child_status)
						: WEXITSTATUS(front->child_status);
}

static int run(struct front *front, const struct options *options)
{
	char why[FRONT_WHY] = "";
	int r;

	front->no_smi = options->no_smi;
	r = fuse_start(front, why, sizeof(why));
	if (r < 0)
		fprintf(stderr, "kfdsim: %s\n", why);
	r = r < 0 ? r : make_sim(front, options);
	if (r == 0 && apply_faults(front, options) < 0)
		return EXIT_USAGE;
	r = r < 0 ? r : fuse_run(front, options->command);
	return r < 0 ? EXIT_OWN : status_of(front);
}

int main(int argc, char *argv[])
{
	struct options options = { .profiles = KFDSIM_PROFILES };
	struct front front = { .arena_fd = -1, .epoll_fd = -1, .signal_fd = -1 };
	int r;

	if (options_parse(&options, argc, argv) < 0) {
		fprintf(stderr, "kfdsim --help lists the options\n");
		return EXIT_USAGE;
	}
	if (options.help) {
		print_help();
		return EXIT_SUCCESS;
	}
	r = run(&front, &options);
	front_done(&front);
	return r;
}
