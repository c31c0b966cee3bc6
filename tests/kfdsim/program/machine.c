/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/program/machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"
#include "fake-sysfs.h"
#include "hw/hw.h"
#include "sys/config/profile.h"

#define KFD_MINOR_7_2 23U
#define CARDS 16U

static void tell(struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < diagnostics->n; i++)
		fprintf(stderr, "kfdsim: %s\n", diagnostics->list[i].text);
	diagnostics_done(diagnostics);
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "kfdsim: %s: %s\n", what, strerror(-error));
	return error;
}

/* The number on a line of a file. */
static unsigned property(const char *path, const char *key)
{
	_cleanup_(freep) char *line = NULL;
	size_t size = 0, length = strlen(key);
	unsigned long value = 0;
	FILE *stream = fopen(path, "re");

	while (stream && getline(&line, &size, stream) > 0)
		if (strncmp(line, key, length) == 0 && line[length] == ' ')
			value = strtoul(line + length, NULL, 10);
	if (stream)
		fclose(stream);
	return (unsigned)value;
}

/* Node i + 1 is GPU i: its render minor, and what else it tells. */
static void read_node(struct machine *machine, const char *sysfs, size_t i)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/" FAKE_NODES "/%zu/properties", sysfs, i + 1);
	machine->minors[i] = property(path, "drm_render_minor");
	machine->each[i] = (struct sim_node){
		.device_id = property(path, "device_id"),
		.sdma_engines = property(path, "num_sdma_engines"),
		.sdma_xgmi_engines = property(path, "num_sdma_xgmi_engines"),
	};
}

static int load_profiles(const char *dir, const char *const *names, size_t n,
			 struct gpu_info *cards, unsigned *partitions)
{
	struct diagnostics diagnostics = { 0 };
	struct profile profile;
	int r = n > CARDS ? -E2BIG : 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		r = profile_load(dir, names[i], &profile, &diagnostics);
		if (r == 0) {
			cards[i] = profile.info;
			partitions[i] = profile.partitions;
		}
	}
	tell(&diagnostics);
	return r;
}

/* A card is as many GPUs as it has partitions, named by where it would sit. */
static int expand(struct machine *machine, const struct gpu_info *cards, const unsigned *partitions,
		  size_t n)
{
	struct hw *hw;
	int r;

	r = hw_simulated_new(cards, partitions, n, &hw);
	if (r < 0)
		return fail("--gpu", r);
	r = hw_list(hw, machine->gpus, SIM_GPUS_MAX, NULL);
	hw_close(hw);
	if (r > (int)SIM_GPUS_MAX)
		return fail("--gpu", -E2BIG);
	machine->n = (size_t)r;
	for (size_t i = 0; i < machine->n; i++)
		machine->gpus[i].kfd_gpu_id = fake_sysfs_gpu_id(&machine->gpus[i], i);
	return 0;
}

int machine_from_profiles(struct machine *machine, const char *profiles, const char *const *names,
			  size_t n, const char *sysfs)
{
	struct gpu_info cards[CARDS];
	unsigned partitions[CARDS];
	int r;

	r = load_profiles(profiles, names, n, cards, partitions);
	if (r < 0)
		return r;
	r = expand(machine, cards, partitions, n);
	if (r < 0)
		return r;
	r = fake_sysfs_build(sysfs, machine->gpus, machine->n);
	if (r < 0)
		return fail(sysfs, r);
	for (size_t i = 0; i < machine->n; i++)
		read_node(machine, sysfs, i);
	return 0;
}

int machine_of_newer(const struct machine *machine, const char *sysfs, unsigned kfd_minor)
{
	char file[256], value[32];
	int r = 0;

	for (size_t i = 0; i < machine->n && r == 0; i++) {
		struct sim_save_area area = sim_save_area(&machine->gpus[i]);

		snprintf(file, sizeof(file), FAKE_NODES "/%zu/properties", i + 1);
		snprintf(value, sizeof(value), "%u", area.control);
		r = fake_sysfs_set(sysfs, file, "ctl_stack_size", value);
		snprintf(value, sizeof(value), "%u", area.all);
		r = r < 0 ? r : fake_sysfs_set(sysfs, file, "cwsr_size", value);
		if (r == 0 && kfd_minor >= KFD_MINOR_7_2)
			r = fake_sysfs_set(sysfs, file, "capability2", "0");
	}
	return r < 0 ? fail(sysfs, r) : 0;
}
