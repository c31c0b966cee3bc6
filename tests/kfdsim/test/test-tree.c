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

static int stop(const char *name, enum tree_kind kind, void *userdata)
{
	unsigned *calls = userdata;

	(void)name, (void)kind;
	++*calls;
	return -EINTR;
}

FIXTURE(struct grove, grove, grow(grove), fell(grove));

TEST_WITH(tree_of_an_idle_machine_has_these_files, struct grove *grove)
{
	CHECK(strcmp(list(grove, ""), "dev/ drm/ kfd/ debug/ ") == 0);
	CHECK(strcmp(list(grove, "dev"), "kfd dri/ ") == 0);
	CHECK(strcmp(list(grove, "dev/dri"), "renderD128 renderD129 renderD130 ") == 0);
	CHECK(strcmp(list(grove, "kfd"), "topology/ proc/ ") == 0);
	CHECK(strcmp(list(grove, "debug"), "kfd/ kfdsim/ ") == 0);
	CHECK(strcmp(list(grove, "debug/kfd"), "mqds hqds rls mem_limit ") == 0);
	CHECK(strcmp(list(grove, "debug/kfdsim"), "state dispatches control ") == 0);
	CHECK(strcmp(list(grove, "kfd/proc"), "") == 0);
	CHECK(tree_find(grove->tree, "dev/kfd") == TREE_KFD);
	CHECK(tree_find(grove->tree, "dev/dri/renderD129") == TREE_RENDER);
	CHECK(tree_find(grove->tree, "debug/kfdsim/control") == TREE_CONTROL);
	CHECK(strcmp(text(grove, "debug/kfd/mqds"), "") == 0);
	CHECK(strstr(text(grove, "debug/kfd/hqds"), "Node 3, gpu_id 1202:\n"));
	CHECK(strstr(text(grove, "debug/kfd/rls"), "Node 2, gpu_id 1101:\n"));
	grove->sim->memory = 64ULL << 30;
	grove->sim->system_used = 5U << 20;
	CHECK(strcmp(text(grove, "debug/kfd/mem_limit"),
		     "System mem used 5M out of 61440M\nTTM mem used 0M out of 24576M\n") == 0);
	grove->sim->kfd_minor = KFD_LINUX_6_12;
	CHECK(strcmp(text(grove, "debug/kfd/mem_limit"),
		     "System mem used 5M out of 62976M\nTTM mem used 0M out of 32768M\n") == 0);
	CHECK(strstr(text(grove, "debug/kfdsim/state"), "\"processes\""));
}

TEST_WITH(invalid_paths_do_not_exist, struct grove *grove)
{
	static const char *const paths[] = {
		"x",
		"dev/x",
		"dev/dri/renderD127",
		"dev/dri/renderD128/x",
		"dev/kfd/x",
		"kfd/x",
		"kfd/topology/x",
		"kfd/topology/nodes/9",
		"kfd/topology/nodes/0/../0",
		"debug/kfd/x",
		"kfd/proc/x",
		"kfd/proc/0",
		"kfd/proc/1/x",
		"kfd/proc/1/queues/9",
		"kfd/proc/1/queues/0/x",
		"kfd/proc/1/queues/00",
		"kfd/proc/1/queues/0/gpuid/x",
		"kfd/proc/1/vram_1",
		"kfd/proc/1/vram_",
		"kfd/proc/1/vram_4096/x",
		"kfd/proc/01",
		"kfd/proc/1/pasid/x",
		"kfd/proc/1/stats_4096/x",
		"kfd/proc/1/counters_4096",
		"kfd/proc/1/queues/11111111111111111111111111111111111111111111",
		"kfd/proc/1//pasid",
	};
	char *got = NULL;
	unsigned calls = 0;
	size_t size;

	rig_queue(rig_process(grove->sim, 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		CHECK(tree_find(grove->tree, paths[i]) == TREE_NONE);
		CHECK(tree_read(grove->tree, paths[i], &got, &size) == -ENOENT && !got);
		CHECK(tree_each(grove->tree, paths[i], stop, &calls) == -ENOENT);
	}
	CHECK(tree_read(grove->tree, "kfd/proc/1", &got, &size) == -EISDIR);
	CHECK(tree_read(grove->tree, "kfd/topology/nodes", &got, &size) == -EISDIR);
	CHECK(tree_read(grove->tree, "dev/kfd", &got, &size) == -EINVAL);
	CHECK(tree_read(grove->tree, "debug/kfdsim/control", &got, &size) == -EINVAL);
	CHECK(tree_each(grove->tree, "kfd/proc/1/pasid", stop, &calls) == -ENOTDIR && calls == 0);
}

TEST_WITH(listing_stops_when_the_callback_asks_for_it, struct grove *grove)
{
	static const char *const paths[] = {
		"",
		"dev/dri",
		"kfd/topology",
		"kfd/topology/nodes",
		"kfd/topology/nodes/0/io_links",
		"kfd/proc",
		"kfd/proc/1",
		"kfd/proc/1/queues",
		"kfd/proc/1/queues/0",
		"kfd/proc/1/stats_4096",
	};

	rig_queue(rig_process(grove->sim, 1), 0);
	rig_queue(grove->sim->processes, 0);
	rig_process(grove->sim, 2);
	for (int gone = 0; gone < 2; gone++) {
		for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
			unsigned calls = 0;

			CHECK(tree_each(grove->tree, paths[i], stop, &calls) == -EINTR &&
			      calls == 1);
		}
		go(grove, 2);
	}
}

TEST_WITH(process_directory_appears_at_open, struct grove *grove)
{
	struct sim_process *process;

	process = rig_process(grove->sim, 4711);
	CHECK(strcmp(list(grove, "kfd/proc"), "4711/ ") == 0);
	CHECK(strcmp(list(grove, "kfd/proc/4711"),
		     "pasid queues/ vram_4096 sdma_4096 stats_4096/ vram_4353 sdma_4353 "
		     "stats_4353/ vram_4610 sdma_4610 stats_4610/ ") == 0);
	CHECK(strcmp(list(grove, "kfd/proc/4711/queues"), "") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/4711/pasid"), "32769\n") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/4711/vram_4353"), "0\n") == 0);
	process->sdma_usec[2] = 77;
	CHECK(strcmp(text(grove, "kfd/proc/4711/sdma_4610"), "77\n") == 0);
	CHECK(strcmp(list(grove, "kfd/proc/4711/stats_4096"), "evicted_ms cu_occupancy ") == 0);
	CHECK(strcmp(list(grove, "kfd/proc/4711/stats_4353"), "evicted_ms ") == 0); /* gfx10 */
	CHECK(tree_find(grove->tree, "kfd/proc/4711/stats_4353/cu_occupancy") == TREE_NONE);
	CHECK(strcmp(text(grove, "kfd/proc/4711/stats_4353/evicted_ms"), "0\n") == 0);
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

TEST_WITH(directory_of_an_ended_process_stays_until_teardown, struct grove *grove)
{
	struct sim_process *dead, *again;

	dead = rig_process(grove->sim, 7);
	rig_queue(dead, 0);
	dead->dead = true;
	CHECK(strcmp(list(grove, "kfd/proc/7/queues"), "0/ ") == 0);

	again = rig_process(grove->sim, 7);
	CHECK(strcmp(list(grove, "kfd/proc"), "7/ ") == 0);
	CHECK(strcmp(list(grove, "kfd/proc/7/queues"), "") == 0);
	again->dead = true;
	dead->dead = false; /* the order that they are kept in does not matter */
	CHECK(strcmp(list(grove, "kfd/proc"), "7/ ") == 0);
	CHECK(strcmp(list(grove, "kfd/proc/7/queues"), "0/ ") == 0);
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

TEST_WITH(vram_file_counts_buffers_of_that_gpu, struct grove *grove)
{
	struct sim_buffer buffers[] = {
		{ .size = 4096, .flags = 1, .gpu_id = 4096 },
		{ .size = 8192, .flags = 2, .gpu_id = 4096 }, /* GTT */
		{ .size = 1U << 20, .flags = 1U << 31 | 1, .gpu_id = 4096 },
		{ .size = 16384, .flags = 1, .gpu_id = 4353 },
	};
	struct sim_process *process;

	process = rig_process(grove->sim, 1);
	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++) {
		buffers[i].next = process->buffers;
		process->buffers = &buffers[i];
	}
	CHECK(strcmp(text(grove, "kfd/proc/1/vram_4096"), "1052672\n") == 0);
	CHECK(strcmp(text(grove, "kfd/proc/1/vram_4353"), "16384\n") == 0);
}

TEST_WITH(occupancy_is_the_cus_that_a_running_dispatch_may_be_on, struct grove *grove)
{
	struct sim_queue *queue, *other;

	queue = rig_queue(rig_process(grove->sim, 1), 0);
	CHECK(strcmp(text(grove, "kfd/proc/1/stats_4096/cu_occupancy"), "0\n") == 0);
	queue->dispatched = true;
	CHECK(strcmp(text(grove, "kfd/proc/1/stats_4096/cu_occupancy"), "6\n") == 0);
	rig_mask(queue, 1, 0x3U);
	sim_mask_map(queue);
	other = rig_queue(queue->process, 0);
	other->dispatched = true;
	rig_mask(other, 1, 0x6U);
	sim_mask_map(other);
	CHECK(strcmp(text(grove, "kfd/proc/1/stats_4096/cu_occupancy"), "3\n") == 0);
}

TEST_WITH(removed_gpu_loses_its_node_and_links, struct grove *grove)
{
	CHECK(has_line(grove, "kfd/topology/nodes/0/properties", "io_links_count 3"));
	CHECK(strcmp(text(grove, "kfd/topology/generation_id"), "1\n") == 0);
	go(grove, 1);
	CHECK(strcmp(text(grove, "kfd/topology/generation_id"), "2\n") == 0);
	CHECK(strcmp(list(grove, "kfd/topology/nodes"), "0/ 1/ 2/ ") == 0);
	CHECK(tree_find(grove->tree, "kfd/topology/nodes/3") == TREE_NONE);
	CHECK(strcmp(text(grove, "kfd/topology/nodes/2/gpu_id"), "4610\n") == 0);
	CHECK(has_line(grove, "kfd/topology/nodes/2/properties", "drm_render_minor 130"));
	CHECK(has_line(grove, "kfd/topology/nodes/2/properties", "io_links_count 1"));
	CHECK(has_line(grove, "kfd/topology/nodes/2/io_links/0/properties", "node_from 2"));
	CHECK(has_line(grove, "kfd/topology/nodes/2/io_links/0/properties", "node_to 0"));
	CHECK(has_line(grove, "kfd/topology/nodes/2/io_links/0/properties", "weight 20"));
	CHECK(has_line(grove, "kfd/topology/nodes/0/properties", "io_links_count 2"));
	CHECK(has_line(grove, "kfd/topology/nodes/0/properties", "p2p_links_count 0"));
	CHECK(strcmp(list(grove, "kfd/topology/nodes/0/io_links"), "0/ 1/ ") == 0);
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

TEST_WITH(cards_and_render_nodes_are_in_class_drm, struct grove *grove)
{
	grove->sim->gpus[0].vram_used = 4096;
	strcpy(grove->sim->gpus[1].info.name, "0000:05:00.0/0");
	strcpy(grove->sim->gpus[2].info.name, "0000:05:00.0/1");
	CHECK(strcmp(list(grove, "drm"), "renderD128/ card0/ renderD129/ card1/ renderD130/ ") ==
	      0);
	CHECK(strcmp(list(grove, "drm/card0"), "dev device/ ") == 0);
	CHECK(strcmp(list(grove, "drm/card0/device"),
		     "vendor device uevent mem_info_vram_total mem_info_vram_used ") == 0);
	CHECK(strcmp(list(grove, "drm/renderD130"), "dev ") == 0);
	CHECK(tree_find(grove->tree, "drm/renderD130/device/vendor") == TREE_NONE);
	CHECK(strcmp(text(grove, "drm/card1/dev"), "226:1\n") == 0);
	CHECK(strcmp(text(grove, "drm/renderD130/dev"), "226:130\n") == 0);
	CHECK(strcmp(text(grove, "drm/renderD128/device/vendor"), "0x1002\n") == 0);
	CHECK(strcmp(text(grove, "drm/renderD128/device/device"), "0x0000\n") == 0);
	CHECK(has_line(grove, "drm/card1/device/uevent", "PCI_SLOT_NAME=0000:05:00.0"));
	CHECK(strcmp(text(grove, "drm/card0/device/mem_info_vram_used"), "4096\n") == 0);
	go(grove, 0);
	CHECK(strcmp(list(grove, "drm"), "renderD129/ card1/ renderD130/ ") == 0);
	CHECK(tree_find(grove->tree, "drm/card0") == TREE_NONE);
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
