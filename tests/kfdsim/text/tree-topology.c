/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "scratch.h"
#include "util/base.h"
#include "kfdsim/text/text.h"

/*
 * kfd/topology: a directory of files. When a GPU goes, its node does, too:
 * kfd_topology_remove_device() and kfd_topology_update_sysfs() in kfd_topology.c number the
 * nodes anew, take out the links to it, and count generation_id up.
 */

#define NODES (SIM_GPUS_MAX + 1U) /* the processors' is number 0 */
#define TEXT 65536U               /* an attribute is a page */

struct topology {
	char path[4096];
	uint32_t gpu_ids[NODES]; /* of each node; 0: the processors' */
	size_t n;
	uint64_t generation; /* of the driver, which the directory shows */
};

/* ---- files --------------------------------------------------------------------------------- */

static int read_text(const char *path, char text[TEXT])
{
	FILE *stream = fopen(path, "re");
	size_t size;

	if (!stream)
		return -errno;
	size = fread(text, 1, TEXT - 1, stream);
	fclose(stream);
	text[size] = '\0';
	return (int)size;
}

static bool is_line(const char *line, const char *key)
{
	size_t length = strlen(key);

	return strncmp(line, key, length) == 0 && (length == 0 || line[length] == ' ');
}

/* The number on the line of a properties file; with key "" the file's only number. */
static int get_number(const char *path, const char *key, unsigned long *ret)
{
	_cleanup_(freep) char *text = malloc(TEXT);
	int r = text ? read_text(path, text) : -ENOMEM;

	if (r < 0)
		return r;
	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!is_line(line, key))
			continue;
		*ret = strtoul(line + strlen(key), NULL, 10);
		return 0;
	}
	return -ENODATA;
}

static int set_number(const char *path, const char *key, unsigned long value)
{
	_cleanup_(freep) char *text = malloc(TEXT);
	int r = text ? read_text(path, text) : -ENOMEM;
	char *rest = text;
	FILE *stream;

	if (r < 0)
		return r;
	stream = fopen(path, "we");
	if (!stream)
		return -errno;
	while (rest && *rest) {
		const char *line = strsep(&rest, "\n");

		if (is_line(line, key))
			fprintf(stream, *key ? "%s %lu\n" : "%s%lu\n", key, value);
		else
			fprintf(stream, "%s\n", line);
	}
	return fclose(stream) != 0 ? -EIO : 0;
}

/* ---- a GPU goes ---------------------------------------------------------------------------- */

static bool gpu_gone(const struct sim *sim, uint32_t gpu_id)
{
	for (size_t i = 0; gpu_id != 0 && i < sim->n_gpus; i++)
		if (sim->gpus[i].gone && sim->gpus[i].info.kfd_gpu_id == gpu_id)
			return true;
	return false;
}

/* The links of a node without those to nodes that have gone: now[] has what nodes were numbered before, -1 for
 * those. Links are numbered from 0 on without gaps. */
static int renumber_links(const struct topology *topology, unsigned node, const int now[NODES])
{
	char links[4608], from[5120], to[5120], file[5200];
	unsigned left = 0;
	int r = 0;

	snprintf(links, sizeof(links), "%s/nodes/%u/io_links", topology->path, node);
	for (unsigned i = 0; r == 0 && i < NODES; i++) {
		unsigned long other;

		snprintf(from, sizeof(from), "%s/%u", links, i);
		snprintf(file, sizeof(file), "%s/properties", from);
		if (get_number(file, "node_to", &other) < 0)
			break;
		if (other >= NODES || now[other] < 0) {
			r = scratch_remove(from);
			continue;
		}
		snprintf(to, sizeof(to), "%s/%u", links, left++);
		r = set_number(file, "node_from", node);
		r = r < 0 ? r : set_number(file, "node_to", (unsigned long)now[other]);
		if (r == 0 && strcmp(from, to) != 0 && rename(from, to) < 0)
			r = -errno;
	}
	snprintf(file, sizeof(file), "%s/nodes/%u/properties", topology->path, node);
	return r < 0 ? r : set_number(file, "io_links_count", left);
}

static int remove_nodes(struct topology *topology, const struct sim *sim, int now[NODES])
{
	char from[4608], to[4608];
	unsigned left = 0;

	for (unsigned i = 0; i < topology->n; i++) {
		snprintf(from, sizeof(from), "%s/nodes/%u", topology->path, i);
		now[i] = gpu_gone(sim, topology->gpu_ids[i]) ? -1 : (int)left;
		if (now[i] < 0) {
			if (scratch_remove(from) < 0)
				return -errno;
			continue;
		}
		snprintf(to, sizeof(to), "%s/nodes/%u", topology->path, left);
		if (left < i && rename(from, to) < 0)
			return -errno;
		topology->gpu_ids[left++] = topology->gpu_ids[i];
	}
	topology->n = left;
	return 0;
}

int topology_update(struct topology *topology, const struct sim *sim)
{
	int now[NODES], r;
	char file[4608];

	if (topology->generation == sim->topology_generation)
		return 0;
	for (unsigned i = 0; i < NODES; i++)
		now[i] = -1;
	r = remove_nodes(topology, sim, now);
	for (unsigned i = 0; r == 0 && i < topology->n; i++)
		r = renumber_links(topology, i, now);
	snprintf(file, sizeof(file), "%s/generation_id", topology->path);
	r = r < 0 ? r : set_number(file, "", sim->topology_generation);
	if (r == 0)
		topology->generation = sim->topology_generation;
	return r;
}

/* ---- what there is ------------------------------------------------------------------------- */

int topology_new(const char *path, struct topology **ret)
{
	_cleanup_(freep) struct topology *topology = calloc(1, sizeof(*topology));
	unsigned long gpu_id = 0;
	char file[4608];

	if (!topology)
		return -ENOMEM;
	if ((size_t)snprintf(topology->path, sizeof(topology->path), "%s/topology", path) >=
	    sizeof(topology->path))
		return -ENAMETOOLONG;
	while (topology->n < NODES) {
		snprintf(file, sizeof(file), "%s/nodes/%zu/gpu_id", topology->path, topology->n);
		if (get_number(file, "", &gpu_id) < 0)
			break;
		topology->gpu_ids[topology->n++] = (uint32_t)gpu_id;
	}
	if (topology->n == 0)
		return -ENOENT;
	topology->generation = 1;
	*ret = TAKE_PTR(topology);
	return 0;
}

struct topology *topology_free(struct topology *topology)
{
	free(topology);
	return NULL;
}

unsigned topology_node(const struct topology *topology, uint32_t gpu_id)
{
	for (unsigned i = 0; i < topology->n; i++)
		if (topology->gpu_ids[i] == gpu_id)
			return i;
	return 0;
}

static enum tree_kind kind_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return TREE_NONE;
	return S_ISDIR(st.st_mode) ? TREE_DIRECTORY : S_ISREG(st.st_mode) ? TREE_TEXT : TREE_NONE;
}

static int find_path(const struct topology *topology, const char *path, char ret[static 4608])
{
	if (strstr(path, "..") || strlen(path) > 256)
		return -ENOENT;
	snprintf(ret, 4608, "%s/%s", topology->path, path);
	return 0;
}

enum tree_kind topology_find(const struct topology *topology, const char *path)
{
	char full[4608];

	return find_path(topology, path, full) < 0 ? TREE_NONE : kind_of(full);
}

int topology_each(const struct topology *topology, const char *path, tree_each_t *each,
		  void *userdata)
{
	char dir[4608], full[5120];
	struct dirent *entry;
	DIR *stream;
	int r;

	r = find_path(topology, path, dir);
	if (r < 0)
		return r;
	stream = opendir(dir);
	if (!stream)
		return -errno;
	while (r >= 0 && (entry = readdir(stream))) {
		enum tree_kind kind;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(full, sizeof(full), "%s/%s", dir, entry->d_name);
		kind = kind_of(full);
		if (kind != TREE_NONE)
			r = each(entry->d_name, kind, userdata);
	}
	closedir(stream);
	return r < 0 ? r : 0;
}

int topology_print(const struct topology *topology, const char *path, FILE *out)
{
	_cleanup_(freep) char *text = malloc(TEXT);
	char full[4608];
	int r;

	r = text ? find_path(topology, path, full) : -ENOMEM;
	r = r < 0 ? r : read_text(full, text);
	if (r < 0)
		return r;
	fwrite(text, 1, (size_t)r, out);
	return 0;
}
