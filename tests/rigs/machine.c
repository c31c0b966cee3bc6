/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "machine.h"

#include "check-cond.h"

struct gpu_info machine_model(const char *name)
{
	struct diagnostics diagnostics = { 0 };
	struct profile profile;
	char profiles[256];

	snprintf(profiles, sizeof(profiles), "%s/conf/gpus", getenv("GPUARB_ROOT"));
	CHECK(profile_load(profiles, name, &profile, &diagnostics) == 0);
	diagnostics_done(&diagnostics);
	return profile.info;
}

void machine_build(struct machine *machine, size_t n)
{
	rig_new(&machine->rig);
	rig_write(&machine->rig, "gpuarbd.conf", "[daemon]\naudit-interval = 100ms\n");
	for (size_t i = 0; i < MACHINE_GPUS; i++) {
		machine->gpus[i] = machine_model("radeon-vii");
		snprintf(machine->gpus[i].name, sizeof(machine->gpus[i].name), "0000:%02zx:00.0",
			 3 + i);
	}
	snprintf(machine->sys, sizeof(machine->sys), "%s/sys", machine->rig.dir);
	CHECK(mkdir(machine->sys, 0755) == 0);
	CHECK(fake_sysfs_build(machine->sys, machine->gpus, n) == 0);
	snprintf(machine->option, sizeof(machine->option), "--sysfs=%s", machine->sys);
}

void machine_connect(struct machine *machine)
{
	machine->bus = rig_connect(&machine->rig, 0);
	listen_in(machine->bus, &machine->told);
}

void machine_boot(struct machine *machine)
{
	rig_start(&machine->rig, machine->option);
	machine_connect(machine);
}

void machine_halt(struct machine *machine)
{
	rig_done(&machine->rig);
}

void machine_replug(struct machine *machine, size_t n)
{
	char now[160], next[160], other[96];

	snprintf(other, sizeof(other), "%s/sys-%u", machine->rig.dir, machine->replugs++);
	CHECK(mkdir(other, 0755) == 0 && fake_sysfs_build(other, machine->gpus, n) == 0);
	snprintf(now, sizeof(now), "%s/" FAKE_TOPOLOGY, machine->sys);
	snprintf(next, sizeof(next), "%s/" FAKE_TOPOLOGY, other);
	CHECK(renameat2(AT_FDCWD, now, AT_FDCWD, next, RENAME_EXCHANGE) == 0);
}

uint32_t machine_gpu_id(const struct machine *machine, size_t gpu)
{
	return fake_sysfs_gpu_id(&machine->gpus[gpu], gpu);
}

void machine_use(const struct machine *machine, pid_t pid, size_t gpu, unsigned queues)
{
	CHECK(fake_sysfs_process(machine->sys, pid) == 0);
	for (unsigned i = 0; i < queues; i++)
		CHECK(fake_sysfs_queue(machine->sys, pid, i, machine_gpu_id(machine, gpu), 0) == 0);
}

unsigned unmanaged_processes(const struct machine *machine, struct row rows[static ROWS_MAX])
{
	return rows_of(machine->bus, GPUARB_PATH_GPU "/0", GPUARB_INTERFACE_GPU, "Unmanaged", rows);
}

bool is_unmanaged(const struct machine *machine, pid_t pid, unsigned queues)
{
	struct row rows[ROWS_MAX];
	unsigned n = unmanaged_processes(machine, rows);

	CHECK(n <= ROWS_MAX);
	while (n-- > 0)
		if (row_has(&rows[n], " pid=%d ", pid) && row_has(&rows[n], " queues=%u ", queues))
			return true;
	return false;
}

void machine_debugfs(const struct machine *machine)
{
	CHECK(mkdir(rig_path(&machine->rig, "debug"), 0755) == 0);
	CHECK(mkdir(rig_path(&machine->rig, "debug/kfd"), 0755) == 0);
}
