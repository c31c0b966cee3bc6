/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/fuse.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"

static struct fuse_handle *handle_of(uint64_t number)
{
	return (struct fuse_handle *)(uintptr_t)number;
}

/*
 * Without FLUSH: exec() closes files while nobody may look at the process's memory (bprm's
 * exec_update_lock), and who looks at it here is who would have to answer.
 */
static int reply_open(struct fuse *fuse, const struct fuse_request *request,
		      struct fuse_handle *handle, uint32_t flags)
{
	struct wire_open_out out = {
		.handle = (uintptr_t)handle,
		.flags = flags | WIRE_OPEN_NO_FLUSH,
		.backing_id = flags & WIRE_OPEN_PASSTHROUGH ? fuse->backing_id : 0,
	};
	int r;

	/* Who was interrupted in open() will never close. */
	r = fuse_reply(fuse, request->in->unique, 0, &out, sizeof(out));
	if (r == -ENOENT) {
		if (handle->client)
			front_close(fuse->front, handle->client);
		free(handle);
		return 0;
	}
	LIST_INSERT_HEAD(&fuse->handles, handle, of_fuse);
	return r;
}

int fuse_open(struct fuse *fuse, const struct fuse_request *request)
{
	enum tree_kind kind = tree_find(fuse->front->tree, request->node->path);
	bool device = kind == TREE_KFD || kind == TREE_RENDER;
	struct fuse_handle *handle;
	int r = 0;

	if (kind == TREE_NONE)
		return -ENOENT;
	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return -ENOMEM;
	handle->render = kind == TREE_RENDER;
	if (handle->render)
		r = front_render_minor(request->node->path, &handle->minor);
	else if (kind == TREE_KFD)
		r = front_open(fuse->front, (pid_t)request->in->pid, &handle->client);
	if (r < 0) {
		free(handle);
		return r;
	}
	return reply_open(fuse, request, handle,
			  device ? WIRE_OPEN_PASSTHROUGH : WIRE_OPEN_DIRECT_IO);
}

int fuse_opendir(struct fuse *fuse, const struct fuse_request *request)
{
	struct fuse_handle *handle = calloc(1, sizeof(*handle));

	return handle ? reply_open(fuse, request, handle, 0) : -ENOMEM;
}

void fuse_handle_free(struct fuse_handle *handle)
{
	LIST_REMOVE(handle, of_fuse);
	free(handle->data);
	free(handle);
}

int fuse_release(struct fuse *fuse, const struct fuse_request *request)
{
	const struct fuse_release_in *in = request->body;
	struct fuse_handle *handle;

	if (request->size < sizeof(*in))
		return -EINVAL;
	handle = handle_of(in->fh);
	if (handle->context && !handle->client->ended)
		sim_close(handle->context, front_now());
	if (handle->client)
		front_close(fuse->front, handle->client);
	fuse_handle_free(handle);
	return fuse_reply(fuse, request->in->unique, 0, NULL, 0);
}

static int reply_part(struct fuse *fuse, const struct fuse_request *request,
		      const struct fuse_handle *handle, const struct fuse_read_in *in)
{
	size_t size = 0;

	if (in->offset < handle->size) {
		size = handle->size - in->offset;
		size = size < in->size ? size : in->size;
	}
	return fuse_reply(fuse, request->in->unique, 0, size > 0 ? handle->data + in->offset : NULL,
			  size);
}

/* As seq_file and sysfs do: reading from the beginning makes the text anew. */
int fuse_read(struct fuse *fuse, const struct fuse_request *request)
{
	const struct fuse_read_in *in = request->body;
	struct fuse_handle *handle;
	int r;

	if (request->size < sizeof(*in))
		return -EINVAL;
	handle = handle_of(in->fh);
	if (in->offset == 0 || !handle->data) {
		free(TAKE_PTR(handle->data));
		handle->size = 0;
		r = tree_read(fuse->front->tree, request->node->path, &handle->data, &handle->size);
		if (r < 0)
			return r;
	}
	return reply_part(fuse, request, handle, in);
}

int fuse_write(struct fuse *fuse, const struct fuse_request *request)
{
	const struct fuse_write_in *in = request->body;
	struct fuse_write_out out = { 0 };
	char why[FRONT_WHY] = "";
	int r;

	if (request->size < sizeof(*in) || request->size - sizeof(*in) < in->size)
		return -EINVAL;
	r = tree_write(fuse->front->tree, request->node->path, (const char *)(in + 1), in->size,
		       front_now(), why, sizeof(why));
	if (r < 0) {
		fprintf(stderr, "kfdsim: %s: %s\n", request->node->path, why);
		return r;
	}
	out.size = in->size;
	return fuse_reply(fuse, request->in->unique, 0, &out, sizeof(out));
}

static int add_entry(const char *name, enum tree_kind kind, void *userdata)
{
	struct fuse_handle *handle = userdata;
	size_t length = strlen(name), size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
	char *data = realloc(handle->data, handle->size + size);
	struct fuse_dirent *entry;

	if (!data)
		return -ENOMEM;
	memset(data + handle->size, 0, size);
	entry = (struct fuse_dirent *)(void *)(data + handle->size);
	handle->data = data;
	handle->size += size;
	entry->ino = UINT32_MAX; /* FUSE_UNKNOWN_INO: numbers come with LOOKUP */
	entry->off = handle->size;
	entry->namelen = (uint32_t)length;
	entry->type = kind == TREE_DIRECTORY ? DT_DIR : DT_REG;
	memcpy(entry->name, name, length);
	return 0;
}

static int read_entries(struct fuse *fuse, const struct fuse_request *request,
			struct fuse_handle *handle)
{
	int r;

	free(TAKE_PTR(handle->data));
	handle->size = 0;
	r = add_entry(".", TREE_DIRECTORY, handle);
	r = r < 0 ? r : add_entry("..", TREE_DIRECTORY, handle);
	return r < 0 ? r : tree_each(fuse->front->tree, request->node->path, add_entry, handle);
}

/* An entry's offset is where the next one starts, so a part of them starts anywhere; the
 * kernel reads no entry that is cut off, and asks for it again. */
int fuse_readdir(struct fuse *fuse, const struct fuse_request *request)
{
	const struct fuse_read_in *in = request->body;
	struct fuse_handle *handle;
	int r;

	if (request->size < sizeof(*in))
		return -EINVAL;
	handle = handle_of(in->fh);
	if (in->offset == 0) {
		r = read_entries(fuse, request, handle);
		if (r < 0)
			return r;
	}
	return reply_part(fuse, request, handle, in);
}
