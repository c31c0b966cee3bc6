/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/fuse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/base.h"

#define TEXT_SIZE 4096U /* as sysfs says of every attribute, however long it is */

struct fuse_node *fuse_node_of(struct fuse *fuse, uint64_t id)
{
	return id == FUSE_ROOT_ID ? &fuse->nodes.root : (struct fuse_node *)(uintptr_t)id;
}

uint64_t fuse_node_id(const struct fuse *fuse, const struct fuse_node *node)
{
	return node == &fuse->nodes.root ? FUSE_ROOT_ID : (uintptr_t)node;
}

static size_t bucket_of(const char *path)
{
	uint32_t hash = 2166136261U;

	for (; *path; path++)
		hash = (hash ^ (uint8_t)*path) * 16777619U;
	return hash % FUSE_BUCKETS;
}

/* The node of a path, made where it is not there; *path is taken if so. */
static struct fuse_node *node_get(struct fuse_nodes *nodes, char **path)
{
	struct fuse_node **bucket = &nodes->buckets[bucket_of(*path)], *node;

	for (node = *bucket; node; node = node->next)
		if (strcmp(node->path, *path) == 0)
			return node;
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	node->path = TAKE_PTR(*path);
	node->next = *bucket;
	*bucket = node;
	return node;
}

static void node_drop(struct fuse_nodes *nodes, struct fuse_node *node, uint64_t lookups)
{
	struct fuse_node **at;

	if (node == &nodes->root)
		return;
	node->lookups -= lookups;
	if (node->lookups > 0)
		return;
	at = &nodes->buckets[bucket_of(node->path)];
	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	free(node->path);
	free(node);
}

void fuse_nodes_done(struct fuse_nodes *nodes)
{
	for (size_t i = 0; i < FUSE_BUCKETS; i++)
		while (nodes->buckets[i])
			node_drop(nodes, nodes->buckets[i], nodes->buckets[i]->lookups);
}

static uint32_t mode_of(enum tree_kind kind)
{
	switch (kind) {
	case TREE_DIRECTORY: return S_IFDIR | 0755;
	case TREE_CONTROL: return S_IFREG | 0644;
	case TREE_KFD:
	case TREE_RENDER: return S_IFREG | 0666;
	case TREE_TEXT:
	case TREE_NONE: break;
	}
	return S_IFREG | 0444;
}

static struct fuse_attr attributes(const struct fuse *fuse, const struct fuse_node *node)
{
	return (struct fuse_attr){
		.ino = fuse_node_id(fuse, node),
		.size = node->kind == TREE_DIRECTORY ? 0 : TEXT_SIZE,
		.mode = mode_of(node->kind),
		.nlink = 1,
		.blksize = TEXT_SIZE,
	};
}

int fuse_lookup(struct fuse *fuse, const struct fuse_request *request)
{
	const char *parent = request->node->path, *name = request->body;
	struct fuse_entry_out out = { 0 };
	_cleanup_(freep) char *path = NULL;
	struct fuse_node *node;
	enum tree_kind kind;

	if (request->size == 0 || name[request->size - 1] != '\0')
		return -EINVAL;
	if (asprintf(&path, "%s%s%s", parent, *parent ? "/" : "", name) < 0)
		return -ENOMEM;
	kind = tree_find(fuse->front->tree, path);
	if (kind == TREE_NONE)
		return -ENOENT;
	node = node_get(&fuse->nodes, &path);
	if (!node)
		return -ENOMEM;
	node->kind = kind;
	node->lookups++;
	out.nodeid = fuse_node_id(fuse, node);
	out.attr = attributes(fuse, node);
	return fuse_reply(fuse, request->in->unique, 0, &out, sizeof(out));
}

int fuse_forget(struct fuse *fuse, const struct fuse_request *request)
{
	const struct fuse_forget_in *in = request->body;

	if (request->size >= sizeof(*in))
		node_drop(&fuse->nodes, request->node, in->nlookup);
	return 0;
}

int fuse_batch_forget(struct fuse *fuse, const struct fuse_request *request)
{
	const struct fuse_batch_forget_in *in = request->body;
	const struct fuse_forget_one *one = (const struct fuse_forget_one *)(in + 1);

	if (request->size < sizeof(*in) || (request->size - sizeof(*in)) / sizeof(*one) < in->count)
		return 0;
	for (uint32_t i = 0; i < in->count; i++)
		node_drop(&fuse->nodes, fuse_node_of(fuse, one[i].nodeid), one[i].nlookup);
	return 0;
}

int fuse_getattr(struct fuse *fuse, const struct fuse_request *request)
{
	struct fuse_attr_out out = { 0 };

	if (request->node != &fuse->nodes.root &&
	    tree_find(fuse->front->tree, request->node->path) == TREE_NONE)
		return -ENOENT;
	out.attr = attributes(fuse, request->node);
	return fuse_reply(fuse, request->in->unique, 0, &out, sizeof(out));
}

/* Nothing changes: open() with O_TRUNC asks for it. A character device refuses ftruncate(); what
 * truncate() asks for looks as that of open(). */
int fuse_setattr(struct fuse *fuse, const struct fuse_request *request)
{
	const uint32_t resize = FATTR_SIZE | FATTR_FH;
	const struct fuse_setattr_in *in = request->body;
	enum tree_kind kind = request->node->kind;

	if (request->size < sizeof(*in))
		return -EINVAL;
	if ((kind == TREE_KFD || kind == TREE_RENDER) && (in->valid & resize) == resize)
		return -EINVAL;
	return fuse_getattr(fuse, request);
}
