/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "fake-sysfs.h"
#include "scratch.h"
#include "kfdsim/test/text-rig.h"

/* Trees that no driver wrote, and what is written to control. */

#define TOPOLOGY "class/kfd/kfd"
#define MIB (1U << 20)

/* Over the driver itself: faults are its own. */
struct grove {
	struct scratch scratch;
	struct sim *sim;
	struct tree *tree;
	uint8_t *arena;
};

static void grow(struct grove *grove)
{
	static const unsigned minors[] = { 128, 129 };
	struct gpu_info infos[] = { rig_small(), rig_small_wgps() };
	struct sim_config config = { .gpus = infos, .minors = minors, .n_gpus = 2 };
	struct sim_world world = { 0 };

	for (size_t i = 0; i < 2; i++)
		infos[i].kfd_gpu_id = fake_sysfs_gpu_id(&infos[i], i);
	*grove = (struct grove){ .scratch = scratch_new(), .arena = calloc(1, MIB) };
	CHECK(grove->arena);
	world.arena = grove->arena;
	world.arena_size = MIB;
	CHECK(sim_new(&config, &world, &grove->sim) == 0);
	CHECK(fake_sysfs_build(grove->scratch.path, infos, 2) == 0);
}

static int plant(struct grove *grove)
{
	return tree_new(grove->sim, scratch_at(&grove->scratch, TOPOLOGY), &grove->tree);
}

static void fell(struct grove *grove)
{
	tree_free(grove->tree);
	sim_free(grove->sim);
	free(grove->arena);
	scratch_done(&grove->scratch);
}

static int ask(struct grove *grove, const char *fault)
{
	char why[256] = "";
	int r;

	r = tree_write(grove->tree, "debug/kfdsim/control", fault, strlen(fault), 0, why,
		       sizeof(why));
	CHECK(r == 0 ? !why[0] : r == -EINVAL && strlen(why) > 10);
	return r;
}

static int count(const char *name, enum tree_kind kind, void *userdata)
{
	unsigned *n = userdata;

	(void)name;
	CHECK(kind != TREE_NONE);
	++*n;
	return 0;
}

/* Everything below path is found, listed and read; how many entries that were. */
struct walk {
	struct grove *grove;
	const char *path;
	unsigned n;
};

static int visit(const char *name, enum tree_kind kind, void *userdata)
{
	struct walk *walk = userdata;
	char path[512], *text = NULL;
	size_t size;
	int r;

	snprintf(path, sizeof(path), "%s/%s", walk->path, name);
	CHECK(tree_find(walk->grove->tree, path) == kind);
	walk->n++;
	if (kind == TREE_DIRECTORY) {
		struct walk inner = { .grove = walk->grove, .path = path };

		CHECK(tree_each(walk->grove->tree, path, visit, &inner) == 0);
		walk->n += inner.n;
		return 0;
	}
	r = tree_read(walk->grove->tree, path, &text, &size);
	CHECK(r == 0 && text && strlen(text) <= size);
	free(text);
	return 0;
}

static unsigned walk_all(struct grove *grove)
{
	struct walk walk = { .grove = grove, .path = "kfd" };

	CHECK(tree_each(grove->tree, "kfd", visit, &walk) == 0);
	return walk.n;
}

TEST(without_nodes_there_is_no_tree)
{
	char path[8192];
	_cleanup_(fell) struct grove grove;

	grow(&grove);
	CHECK(tree_new(grove.sim, "/nowhere", &grove.tree) == -ENOENT && !grove.tree);
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	CHECK(tree_new(grove.sim, path, &grove.tree) == -ENAMETOOLONG && !grove.tree);
	CHECK(fake_sysfs_remove(grove.scratch.path, FAKE_NODES) == 0);
	CHECK(plant(&grove) == -ENOENT);
	CHECK(fake_sysfs_print(grove.scratch.path, FAKE_NODES, "a file\n") == 0);
	CHECK(plant(&grove) == -ENOTDIR && !grove.tree);
}

static void put_pipe(const struct scratch *scratch, const char *file)
{
	CHECK(fake_sysfs_remove(scratch->path, file) == 0);
	CHECK(mkfifo(scratch_at(scratch, file), 0644) == 0);
}

TEST(special_files_are_not_served)
{
	_cleanup_(fell) struct grove grove;
	const char *loop;

	grow(&grove);
	put_pipe(&grove.scratch, FAKE_NODES "/1/gpu_id");
	put_pipe(&grove.scratch, FAKE_NODES "/2/properties");
	loop = scratch_at(&grove.scratch, FAKE_NODES "/9");
	CHECK(symlink(loop, loop) == 0);
	CHECK(plant(&grove) == 0);
	CHECK(tree_find(grove.tree, "kfd/topology/nodes/1/gpu_id") == TREE_NONE);
	CHECK(tree_find(grove.tree, "kfd/topology/nodes/9") == TREE_NONE);
	CHECK(walk_all(&grove) > 40);
	CHECK(ask(&grove, "gone:0000:04:00.0") == 0);
	CHECK(walk_all(&grove) > 20);
}

/* Each in place of one file of the tree, with all GPUs there and after one has gone. */
TEST(files_with_wrong_content_are_served_unchanged)
{
	static const struct {
		const char *file, *text;
	} lies[] = {
		{ FAKE_NODES "/1/gpu_id", "" },
		{ FAKE_NODES "/1/gpu_id", "-1\n" },
		{ FAKE_NODES "/1/gpu_id", "99999999999999999999999999\n" },
		{ FAKE_NODES "/0/gpu_id", "4353\n" },
		{ FAKE_NODES "/0/properties", "io_links_count\n\n\nio_links_count 7\n" },
		{ FAKE_NODES "/0/properties", "no newline at the end" },
		{ FAKE_NODES "/0/io_links/0/properties", "" },
		{ FAKE_NODES "/0/io_links/0/properties",
		  "node_to\nnode_to \nnode_to 4294967296\n" },
		{ FAKE_NODES "/0/io_links/0/properties", "node_to -1\nnode_from 99\n" },
		{ FAKE_NODES "/0/io_links/7/properties", "node_to 1\n" },
		{ FAKE_NODES "/77/gpu_id", "5\n" },
		{ FAKE_NODES "/2147483648/gpu_id", "5\n" },
		{ FAKE_NODES "/99999999999999999999999999/gpu_id", "5\n" },
		{ FAKE_NODES "/1x/gpu_id", "5\n" },
		{ FAKE_NODES "/01/gpu_id", "5\n" },
		{ FAKE_NODES "/2/caches/x", "x\n" },
		{ FAKE_TOPOLOGY "/generation_id", "a number\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		char path[256], *text = NULL;
		struct grove grove;
		size_t size;

		grow(&grove);
		CHECK(fake_sysfs_print(grove.scratch.path, lies[i].file, "%s", lies[i].text) == 0);
		CHECK(plant(&grove) == 0);
		snprintf(path, sizeof(path), "kfd%s", lies[i].file + strlen(TOPOLOGY));
		CHECK(tree_read(grove.tree, path, &text, &size) == 0);
		CHECK(strcmp(path, "kfd/topology/generation_id") == 0 ||
		      (size == strlen(lies[i].text) && strcmp(text, lies[i].text) == 0));
		free(text);
		CHECK(walk_all(&grove) > 40);
		CHECK(ask(&grove, "gone:0000:03:00.0") == 0);
		CHECK(walk_all(&grove) > 20);
		fell(&grove);
	}
}

TEST(endless_files_are_truncated)
{
	static char large[1U << 20];
	_cleanup_(fell) struct grove grove;
	char *text = NULL;
	size_t size;

	grow(&grove);
	memset(large, '7', sizeof(large));
	CHECK(fake_sysfs_write(grove.scratch.path, FAKE_NODES "/0/properties", large,
			       sizeof(large)) == 0);
	CHECK(plant(&grove) == 0);
	CHECK(tree_read(grove.tree, "kfd/topology/nodes/0/properties", &text, &size) == 0);
	CHECK(size == 65535); /* a page of the largest kind has no more */
	free(text);
}

TEST(nodes_with_the_same_gpu_id_are_removed_together)
{
	_cleanup_(fell) struct grove grove;
	unsigned n = 0;

	grow(&grove);
	CHECK(fake_sysfs_print(grove.scratch.path, FAKE_NODES "/2/gpu_id", "4096\n") == 0);
	CHECK(plant(&grove) == 0);
	CHECK(ask(&grove, "gone:0000:03:00.0") == 0);
	CHECK(tree_each(grove.tree, "kfd/topology/nodes", count, &n) == 0 && n == 1);
}

TEST(writing_to_control_sets_a_fault)
{
	char *text = NULL;
	_cleanup_(fell) struct grove grove;
	size_t size;

	grow(&grove);
	CHECK(plant(&grove) == 0);
	CHECK(ask(&grove, "gone:0000:03:00.0\n") == 0);
	CHECK(grove.sim->gpus[0].gone && tree_find(grove.tree, "dev/dri/renderD128") == TREE_NONE);
	CHECK(tree_read(grove.tree, "kfd/topology/generation_id", &text, &size) == 0);
	CHECK(strcmp(text, "2\n") == 0);
	free(text);
	CHECK(tree_read(grove.tree, "kfd/topology/nodes/1/gpu_id", &text, &size) == 0);
	CHECK(strcmp(text, "4353\n") == 0);
	free(text);
}

TEST(invalid_writes_to_control_are_refused_with_a_message)
{
	static const char *const texts[] = {
		"",           "\n",   "gone:",       "gone:nobody", "teardown:1\nteardown:2",
		"teardown:x", "slow", "explode:now",
	};
	char why[256] = "", line[300];
	_cleanup_(fell) struct grove grove;

	grow(&grove);
	CHECK(plant(&grove) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		CHECK(ask(&grove, texts[i]) == -EINVAL);
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	CHECK(ask(&grove, line) == -EINVAL);
	CHECK(tree_write(grove.tree, "debug/kfdsim/control", "a\0b", 3, 0, why, sizeof(why)) ==
	      -EINVAL);
	CHECK(why[0]);
	why[0] = '\0';
	CHECK(tree_write(grove.tree, "debug/kfdsim/state", "x", 1, 0, why, sizeof(why)) == -EINVAL);
	CHECK(strstr(why, "debug/kfdsim/state"));
}
