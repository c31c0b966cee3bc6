/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "check.h"
#include "fake-sysfs.h"
#include "scratch.h"
#include "kfdsim/test/text-rig.h"

#define TOPOLOGY "class/kfd/kfd"

struct grove {
	struct scratch scratch;
	struct sim *sim;
	struct tree *tree;
	char *text;
};

static void grow(struct grove *grove)
{
	struct gpu_info infos[] = { rig_small(), rig_small_wgps(), rig_small_xccs() };

	*grove = (struct grove){ .scratch = scratch_new(), .sim = rig_sim(infos, 3) };
	CHECK(fake_sysfs_build(grove->scratch.path, infos, 3) == 0);
	CHECK(tree_new(grove->sim, scratch_at(&grove->scratch, TOPOLOGY), &grove->tree) == 0);
}

static void fell(struct grove *grove)
{
	free(grove->text);
	tree_free(grove->tree);
	sim_record_free(grove->sim);
	rig_done(grove->sim);
	scratch_done(&grove->scratch);
}

/* As the fault "gone" leaves it. */
static void go(struct grove *grove, unsigned gpu)
{
	grove->sim->gpus[gpu].gone = true;
	grove->sim->topology_generation++;
}

static const char *text(struct grove *grove, const char *path)
{
	size_t size = 0;

	free(grove->text);
	grove->text = NULL;
	CHECK(tree_find(grove->tree, path) == TREE_TEXT);
	CHECK(tree_read(grove->tree, path, &grove->text, &size) == 0);
	CHECK(strlen(grove->text) == size);
	return grove->text;
}

static bool has_line(struct grove *grove, const char *path, const char *line)
{
	const char *found = strstr(text(grove, path), line);

	return found && (found == grove->text || found[-1] == '\n') && found[strlen(line)] == '\n';
}

struct names {
	char text[65536];
	size_t n;
};

static int append(const char *name, enum tree_kind kind, void *userdata)
{
	struct names *names = userdata;
	size_t left = sizeof(names->text) - names->n;

	CHECK(kind != TREE_NONE);
	names->n += (size_t)snprintf(names->text + names->n, left, "%s%s ", name,
				     kind == TREE_DIRECTORY ? "/" : "");
	CHECK(names->n < sizeof(names->text));
	return 0;
}

static const char *list(struct grove *grove, const char *path)
{
	static struct names names;

	names = (struct names){ 0 };
	CHECK(tree_find(grove->tree, path) == TREE_DIRECTORY);
	CHECK(tree_each(grove->tree, path, append, &names) == 0);
	return names.text;
}

FIXTURE(struct grove, grove, grow(grove), fell(grove));

TEST_WITH(process_directory_appears_at_open, struct grove *grove)
{
	rig_process(grove->sim, 4711);
	CHECK(strcmp(list(grove, "kfd/proc"), "4711/ ") == 0);
	CHECK(strcmp(list(grove, "kfd/proc/4711"),
		     "pasid queues/ vram_4096 vram_4353 vram_4610 ") == 0);
	CHECK(strcmp(list(grove, "kfd/proc/4711/queues"), "") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/4711/pasid"), "32769\n") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/4711/vram_4353"), "0\n") == 0);
}

TEST_WITH(a_context_has_a_directory_in_that_of_its_process, struct grove *grove)
{
	struct sim_process *process, *context;

	grove->sim->kfd_minor = KFD_LINUX_7_2;
	process = rig_process(grove->sim, 4711);
	rig_queue(process, 0);
	context = rig_process(grove->sim, 4711);
	context->context = 3;
	rig_queue(context, 0);
	rig_queue(context, 0);
	CHECK(strcmp(list(grove, "kfd/proc"), "4711/ ") == 0);
	CHECK(strstr(list(grove, "kfd/proc/4711"), " context_3/ "));
	CHECK(!strstr(list(grove, "kfd/proc/4711/context_3"), "context"));
	CHECK(strcmp(list(grove, "kfd/proc/4711/queues"), "0/ ") == 0);
	CHECK(strcmp(list(grove, "kfd/proc/4711/context_3/queues"), "1/ 0/ ") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/4711/context_3/queues/1/type"), "0") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/4711/context_3/pasid"), "0\n") == 0);
	CHECK(tree_find(grove->tree, "kfd/proc/4711/context_0") == TREE_NONE);
	CHECK(tree_find(grove->tree, "kfd/proc/4711/context_65535") == TREE_NONE);
	CHECK(tree_find(grove->tree, "kfd/proc/4711/context_3/context_3") == TREE_NONE);
	CHECK(tree_find(grove->tree, "kfd/proc/4711/context_3/context_3/pasid") == TREE_NONE);
}

TEST_WITH(files_of_queues_have_no_newline, struct grove *grove)
{
	struct sim_process *process;
	struct sim_queue *queue;

	process = rig_process(grove->sim, 1);
	rig_queue(process, 0);
	queue = rig_queue(process, 1);
	queue->type = SIM_SDMA_XGMI;
	queue->ring_size = UINT64_C(1) << 33;
	CHECK(strcmp(list(grove, "kfd/proc/1/queues"), "1/ 0/ ") == 0);
	CHECK(strcmp(list(grove, "kfd/proc/1/queues/1"), "gpuid size type ") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/1/queues/0/gpuid"), "4096") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/1/queues/0/size"), "65536") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/1/queues/0/type"), "0") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/1/queues/1/gpuid"), "4353") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/1/queues/1/size"), "8589934592") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/1/queues/1/type"), "4") == 0);
}

TEST_WITH(removed_gpu_loses_its_node_and_links, struct grove *grove)
{
	CHECK(has_line(grove, "kfd/topology/nodes/0/properties", "io_links_count 3"));
	CHECK(strcmp(text(grove, "kfd/topology/generation_id"), "1\n") == 0);
	go(grove, 1);
	CHECK(strcmp(text(grove, "kfd/topology/generation_id"), "2\n") == 0);
	CHECK(tree_find(grove->tree, "kfd/topology/nodes/3") == TREE_NONE);
	CHECK(strcmp(text(grove, "kfd/topology/nodes/2/gpu_id"), "4610\n") == 0);
	CHECK(has_line(grove, "kfd/topology/nodes/2/properties", "drm_render_minor 130"));
	CHECK(has_line(grove, "kfd/topology/nodes/2/properties", "io_links_count 1"));
	CHECK(has_line(grove, "kfd/topology/nodes/2/io_links/0/properties", "node_from 2"));
	CHECK(has_line(grove, "kfd/topology/nodes/2/io_links/0/properties", "node_to 0"));
	CHECK(has_line(grove, "kfd/topology/nodes/2/io_links/0/properties", "weight 20"));
	CHECK(has_line(grove, "kfd/topology/nodes/0/properties", "io_links_count 2"));
	CHECK(has_line(grove, "kfd/topology/nodes/0/properties", "p2p_links_count 0"));
	CHECK(has_line(grove, "kfd/topology/nodes/0/io_links/1/properties", "node_to 2"));
	CHECK(tree_find(grove->tree, "kfd/topology/nodes/0/io_links/2") == TREE_NONE);
	CHECK(tree_find(grove->tree, "kfd/topology/nodes/0/io_links/x") == TREE_NONE);
	CHECK(strcmp(list(grove, "kfd/topology/nodes/0/mem_banks"), "0/ ") == 0);
	CHECK(has_line(grove, "kfd/topology/nodes/2/caches/7/properties", "level 1"));
	CHECK(strcmp(list(grove, "dev/dri"), "renderD128 renderD130 ") == 0);
	CHECK(tree_find(grove->tree, "dev/dri/renderD129") == TREE_NONE);

	go(grove, 0);
	go(grove, 2);
	CHECK(strcmp(list(grove, "kfd/topology/nodes"), "0/ ") == 0);
	CHECK(has_line(grove, "kfd/topology/nodes/0/properties", "io_links_count 0"));
	CHECK(strcmp(list(grove, "kfd/topology/nodes/0/io_links"), "") == 0);
	CHECK(strcmp(list(grove, "dev/dri"), "") == 0);
}

TEST_WITH(processes_keep_their_files_after_gpu_removal, struct grove *grove)
{
	rig_process(grove->sim, 1)->acquired[0] = true;
	rig_process(grove->sim, 2);
	go(grove, 0);
	CHECK(strstr(list(grove, "kfd/proc/1"), "vram_4096 "));
	CHECK(strcmp(text(grove, "kfd/proc/1/vram_4096"), "0\n") == 0);
	CHECK(!strstr(list(grove, "kfd/proc/2"), "vram_4096 "));
	CHECK(tree_find(grove->tree, "kfd/proc/2/vram_4096") == TREE_NONE);
}
