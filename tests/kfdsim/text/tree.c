/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/text/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"
#include "kfdsim/text/text.h"

#define CONTROL_LINE 256U

struct tree {
	struct sim *sim;
	struct topology *topology;
};

enum maker { NOBODY, MQDS, HQDS, RLS, STATE, DISPATCHES };

/* What is always there; dev/dri, kfd/topology and kfd/proc have more in them. */
static const struct fixed {
	const char *path;
	enum tree_kind kind;
	enum maker maker;
} fixed[] = {
	{ "", TREE_DIRECTORY, NOBODY },
	{ "dev", TREE_DIRECTORY, NOBODY },
	{ "dev/kfd", TREE_KFD, NOBODY },
	{ "dev/dri", TREE_DIRECTORY, NOBODY },
	{ "kfd", TREE_DIRECTORY, NOBODY },
	{ "kfd/topology", TREE_DIRECTORY, NOBODY },
	{ "kfd/proc", TREE_DIRECTORY, NOBODY },
	{ "debug", TREE_DIRECTORY, NOBODY },
	{ "debug/kfd", TREE_DIRECTORY, NOBODY },
	{ "debug/kfd/mqds", TREE_TEXT, MQDS },
	{ "debug/kfd/hqds", TREE_TEXT, HQDS },
	{ "debug/kfd/rls", TREE_TEXT, RLS },
	{ "debug/kfdsim", TREE_DIRECTORY, NOBODY },
	{ "debug/kfdsim/state", TREE_TEXT, STATE },
	{ "debug/kfdsim/dispatches", TREE_TEXT, DISPATCHES },
	{ "debug/kfdsim/control", TREE_CONTROL, NOBODY },
};

int tree_new(struct sim *sim, const char *topology, struct tree **ret)
{
	_cleanup_(freep) struct tree *tree = calloc(1, sizeof(*tree));
	int r;

	if (!tree)
		return -ENOMEM;
	r = topology_new(topology, &tree->topology);
	if (r < 0)
		return r;
	tree->sim = sim;
	*ret = TAKE_PTR(tree);
	return 0;
}

struct tree *tree_free(struct tree *tree)
{
	if (tree)
		topology_free(tree->topology);
	free(tree);
	return NULL;
}

/* What follows prefix/ in path, "" for prefix itself, or NULL. */
static const char *below(const char *path, const char *prefix)
{
	size_t length = strlen(prefix);

	if (strncmp(path, prefix, length) != 0)
		return NULL;
	if (path[length] == '\0')
		return path + length;
	return path[length] == '/' && path[length + 1] ? path + length + 1 : NULL;
}

static const struct fixed *find_fixed(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (strcmp(fixed[i].path, path) == 0)
			return &fixed[i];
	return NULL;
}

static void render_name(const struct sim_gpu *gpu, char name[32])
{
	snprintf(name, 32, "renderD%u", gpu->minor);
}

static enum tree_kind find_render(const struct sim *sim, const char *wanted)
{
	char name[32];

	for (size_t i = 0; i < sim->n_gpus; i++) {
		render_name(&sim->gpus[i], name);
		if (!sim->gpus[i].gone && strcmp(name, wanted) == 0)
			return TREE_RENDER;
	}
	return TREE_NONE;
}

enum tree_kind tree_find(struct tree *tree, const char *path)
{
	const struct fixed *found = find_fixed(path);
	const char *rest;

	if (topology_update(tree->topology, tree->sim) < 0)
		return TREE_NONE;
	if (found)
		return found->kind;
	rest = below(path, "kfd/topology");
	if (rest)
		return topology_find(tree->topology, rest);
	rest = below(path, "kfd/proc");
	if (rest)
		return proc_find(tree->sim, rest);
	rest = below(path, "dev/dri");
	return rest ? find_render(tree->sim, rest) : TREE_NONE;
}

static int each_fixed(const char *path, tree_each_t *each, void *userdata)
{
	int r = 0;

	for (size_t i = 1; i < ARRAY_SIZE(fixed) && r >= 0; i++) {
		const char *name = *path ? below(fixed[i].path, path) : fixed[i].path;

		if (name && *name && !strchr(name, '/'))
			r = each(name, fixed[i].kind, userdata);
	}
	return r < 0 ? r : 0;
}

static int each_render(const struct sim *sim, tree_each_t *each, void *userdata)
{
	char name[32];
	int r = 0;

	for (size_t i = 0; i < sim->n_gpus && r >= 0; i++) {
		if (sim->gpus[i].gone)
			continue;
		render_name(&sim->gpus[i], name);
		r = each(name, TREE_RENDER, userdata);
	}
	return r < 0 ? r : 0;
}

int tree_each(struct tree *tree, const char *path, tree_each_t *each, void *userdata)
{
	enum tree_kind kind = tree_find(tree, path);
	const char *rest;

	if (kind != TREE_DIRECTORY)
		return kind == TREE_NONE ? -ENOENT : -ENOTDIR;
	rest = below(path, "kfd/topology");
	if (rest)
		return topology_each(tree->topology, rest, each, userdata);
	rest = below(path, "kfd/proc");
	if (rest)
		return proc_each(tree->sim, rest, each, userdata);
	if (strcmp(path, "dev/dri") == 0)
		return each_render(tree->sim, each, userdata);
	return each_fixed(path, each, userdata);
}

static int print_fixed(const struct tree *tree, enum maker maker, FILE *out)
{
	switch (maker) {
	case MQDS: debugfs_mqds(tree->sim, out); return 0;
	case HQDS: debugfs_hqds(tree->sim, tree->topology, out); return 0;
	case RLS: debugfs_rls(tree->sim, tree->topology, out); return 0;
	case STATE: return state_print(tree->sim, out);
	case DISPATCHES: dispatches_print(tree->sim, out); return 0;
	default: return -EINVAL;
	}
}

static int print(const struct tree *tree, const char *path, FILE *out)
{
	const struct fixed *found = find_fixed(path);
	const char *rest;

	if (found)
		return print_fixed(tree, found->maker, out);
	rest = below(path, "kfd/topology");
	if (rest)
		return topology_print(tree->topology, rest, out);
	return proc_print(tree->sim, below(path, "kfd/proc"), out);
}

int tree_read(struct tree *tree, const char *path, char **ret, size_t *ret_size)
{
	_cleanup_(freep) char *text = NULL;
	enum tree_kind kind = tree_find(tree, path);
	FILE *out;
	int r;

	if (kind != TREE_TEXT)
		return kind == TREE_NONE ? -ENOENT : kind == TREE_DIRECTORY ? -EISDIR : -EINVAL;
	out = open_memstream(&text, ret_size);
	if (!out)
		return -ENOMEM;
	r = print(tree, path, out);
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(text);
	return 0;
}

int tree_write(struct tree *tree, const char *path, const char *text, size_t size, uint64_t now_ns,
	       char *why, size_t why_size)
{
	char line[CONTROL_LINE];

	if (tree_find(tree, path) != TREE_CONTROL) {
		snprintf(why, why_size, "%s: cannot be written", path);
		return -EINVAL;
	}
	if (size > 0 && text[size - 1] == '\n')
		size--;
	if (size >= sizeof(line) || memchr(text, '\0', size) || memchr(text, '\n', size)) {
		snprintf(why, why_size, "one fault a write, in a line of less than %u characters",
			 CONTROL_LINE);
		return -EINVAL;
	}
	memcpy(line, text, size);
	line[size] = '\0';
	return sim_fault(tree->sim, line, now_ns, why, why_size);
}
