/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What KFD shows in sysfs, as gpuarbd and libgpuarb read it. */

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "core/mask/geometry.h"
#include "fake-sysfs.h"
#include "fuzz.h"
#include "hw/hw.h"
#include "libgpuarb/lease/kfd-sysfs.h"
#include "scratch.h"
#include "util/base.h"
#include "util/text.h"

#define GPUS 16
#define USES 64

/* The letter after the '@' of a line stands for a folder. */
static const struct {
	char letter;
	const char *folder;
} folders[] = {
	{ 't', FAKE_TOPOLOGY }, { 'n', FAKE_NODES },      { 'p', FAKE_PROC },
	{ 'm', FAKE_MODULE },   { 'k', FAKE_PARAMETERS }, { 'd', "dev/dri" },
};

/* "@n/1/gpu_id": the path of a file below the tree. false: none, or one that leads out of it. */
static bool path_of(const char *line, size_t length, char *ret, size_t size)
{
	if (length < 4 || line[2] != '/')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (line[1] == folders[i].letter)
			snprintf(ret, size, "%s/%.*s", folders[i].folder, (int)length - 3,
				 line + 3);
		else if (i + 1 == ARRAY_SIZE(folders) && ret[0] == '\0')
			return false;
	return !strstr(ret, "..") && !strstr(ret, "//") && ret[strlen(ret) - 1] != '/';
}

/* Writes the files of the input: a line with a path, and the content until the next such line. */
static void write_tree(const char *dir, const char *text, size_t size)
{
	const char *end = text + size;

	for (unsigned files = 0; text < end && files < 64; files++) {
		const char *eol = memchr(text, '\n', (size_t)(end - text)), *next;
		char path[128] = "";
		bool ok;

		if (!eol)
			return;
		ok = text[0] == '@' && path_of(text, (size_t)(eol - text), path, sizeof(path));
		next = memmem(eol, (size_t)(end - eol), "\n@", 2);
		next = next ? next + 1 : end;
		if (ok && next > eol)
			(void)fake_sysfs_write(dir, path, eol + 1, (size_t)(next - eol - 1));
		text = next;
	}
}

static void check_gpus(const struct gpu_info *gpus, int n)
{
	char problem[160];

	for (int i = 0; i < n && i < GPUS; i++) {
		CHECK(geometry_check(&gpus[i].geometry, problem, sizeof(problem)) == 0);
		CHECK(gpus[i].name[0] && gpus[i].device[0] && text_printable(gpus[i].device));
		CHECK(i == 0 || strcmp(gpus[i - 1].name, gpus[i].name) < 0);
	}
}

static void read_as_daemon(const char *dir)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	struct gpu_info gpus[GPUS];
	struct hw_use uses[USES];
	struct hw *hw;
	int n;

	if (hw_kfd_open(dir, &hw, &diagnostics) == 0) {
		n = hw_list(hw, gpus, GPUS, &diagnostics);
		check_gpus(gpus, n);
		(void)hw_generation(hw);
		n = hw_uses(hw, uses, USES);
		for (int i = 0; i < n && i < USES; i++)
			CHECK(uses[i].pid > 0);
		hw_close(hw);
	}
	for (size_t i = 0; i < diagnostics.n; i++)
		CHECK(text_printable(diagnostics.list[i].text));
}

static void read_as_library(const char *dir)
{
	struct topology topology = { 0 };
	struct queue_list queues = { 0 };
	char dev[128];

	snprintf(dev, sizeof(dev), "%s/dev", dir);
	if (topology_read(dir, dev, &topology) == 0)
		for (size_t i = 0; i < topology.n; i++)
			CHECK(topology.gpus[i].xccs > 0);
	free(topology.gpus);
	if (queues_read(dir, 5, &queues) == 0)
		for (size_t i = 1; i < queues.n; i++)
			CHECK(queues.queues[i - 1].id <= queues.queues[i].id);
	free(queues.queues);
}

FUZZ(sysfs)
{
	static struct scratch scratch;

	if (!scratch.path[0])
		scratch = scratch_new();
	write_tree(scratch.path, (const char *)data, size);
	read_as_daemon(scratch.path);
	read_as_library(scratch.path);
	(void)fake_sysfs_remove(scratch.path, "class");
	(void)fake_sysfs_remove(scratch.path, "module");
	(void)fake_sysfs_remove(scratch.path, "dev");
}
