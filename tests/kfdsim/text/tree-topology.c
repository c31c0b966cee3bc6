/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/base.h"
#include "kfdsim/text/text.h"

/*
 * kfd/topology: the files of a directory as they are, until a GPU goes. Then its node does, too:
 * kfd_topology_remove_device() and kfd_topology_update_sysfs() in kfd_topology.c number the
 * nodes anew, take out the links to it, and count generation_id up.
 */

#define NODES (SIM_GPUS_MAX + 1U) /* the processors' is number 0 */
#define TEXT 65536U               /* an attribute is a page */

struct topology {
	char path[4096];
	uint32_t gpu_ids[NODES]; /* of each node; 0: the processors' */
	size_t n;
};

/* Where something lies in the directory, from where it is shown. */
struct source {
	char path[4608];
	int node;   /* number there; -1: above the nodes */
	bool links; /* io_links of the node, or something in there */
	bool link;  /* one of the links, or something in it */
};

/* The whole number at the start of text, and what follows it in *ret_rest. */
static int number(const char *text, unsigned *ret, const char **ret_rest)
{
	unsigned long value;
	char *end;

	if (*text < '0' || *text > '9' || (*text == '0' && text[1] != '\0' && text[1] != '/'))
		return -ENOENT;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno != 0 || value > INT32_MAX || (*end != '\0' && *end != '/'))
		return -ENOENT;
	*ret = (unsigned)value;
	*ret_rest = end;
	return 0;
}

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

/* The number on the line of a properties file; with key "" the file's only number. */
static int property(const char *path, const char *key, unsigned long *ret)
{
	_cleanup_(freep) char *text = malloc(TEXT);
	size_t length = strlen(key);
	int r = text ? read_text(path, text) : -ENOMEM;

	if (r < 0)
		return r;
	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) != 0 || (length > 0 && line[length] != ' '))
			continue;
		*ret = strtoul(line + length, NULL, 10);
		return 0;
	}
	return -ENODATA;
}

static enum tree_kind kind_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return TREE_NONE;
	return S_ISDIR(st.st_mode) ? TREE_DIRECTORY : S_ISREG(st.st_mode) ? TREE_TEXT : TREE_NONE;
}

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
		if (property(file, "", &gpu_id) < 0)
			break;
		topology->gpu_ids[topology->n++] = (uint32_t)gpu_id;
	}
	if (topology->n == 0)
		return -ENOENT;
	*ret = TAKE_PTR(topology);
	return 0;
}

struct topology *topology_free(struct topology *topology)
{
	free(topology);
	return NULL;
}

static bool gpu_gone(const struct sim *sim, uint32_t gpu_id)
{
	for (size_t i = 0; gpu_id != 0 && i < sim->n_gpus; i++)
		if (sim->gpus[i].gone && sim->gpus[i].info.kfd_gpu_id == gpu_id)
			return true;
	return false;
}

static bool any_gone(const struct sim *sim)
{
	for (size_t i = 0; i < sim->n_gpus; i++)
		if (sim->gpus[i].gone)
			return true;
	return false;
}

/* The shown number of a node of the directory, -1 if it is not shown; and the way back. */
static int shown_of(const struct topology *topology, const struct sim *sim, unsigned source)
{
	int shown = 0;

	if (source >= topology->n || gpu_gone(sim, topology->gpu_ids[source]))
		return -1;
	for (unsigned i = 0; i < source; i++)
		shown += !gpu_gone(sim, topology->gpu_ids[i]);
	return shown;
}

static int source_of(const struct topology *topology, const struct sim *sim, unsigned shown)
{
	for (unsigned i = 0; i < topology->n; i++)
		if (shown_of(topology, sim, i) == (int)shown)
			return (int)i;
	return -1;
}

unsigned topology_node(const struct topology *topology, const struct sim *sim, uint32_t gpu_id)
{
	for (unsigned i = 0; i < topology->n; i++)
		if (topology->gpu_ids[i] == gpu_id)
			return (unsigned)shown_of(topology, sim, i);
	return 0;
}

/* Number in the directory of the n-th link that is left, -1 past the last. *ret_n, if asked
 * for: how many are left. Links are numbered from 0 on without gaps. */
static int find_link(const struct topology *topology, const struct sim *sim,
		     const struct source *source, unsigned wanted, unsigned *ret_n)
{
	unsigned left = 0;
	int found = -1;

	for (unsigned i = 0; i < NODES; i++) {
		unsigned long to;
		char path[4608];

		snprintf(path, sizeof(path), "%s/nodes/%d/io_links/%u/properties", topology->path,
			 source->node, i);
		if (property(path, "node_to", &to) < 0)
			break;
		if (shown_of(topology, sim, (unsigned)to) < 0)
			continue;
		if (left++ == wanted)
			found = (int)i;
	}
	if (ret_n)
		*ret_n = left;
	return found;
}

/* path: what follows the node's directory, "io_links/0/properties". */
static int find_in_links(const struct topology *topology, const struct sim *sim, const char *path,
			 struct source *source)
{
	size_t length = strlen("io_links");
	unsigned wanted;
	int at;

	source->links = strncmp(path, "io_links", length) == 0 &&
			(path[length] == '\0' || path[length] == '/');
	if (!source->links || !path[length] || number(path + length + 1, &wanted, &path) < 0)
		return 0;
	at = find_link(topology, sim, source, wanted, NULL);
	if (at < 0)
		return -ENOENT;
	source->link = true;
	snprintf(source->path, sizeof(source->path), "%s/nodes/%d/io_links/%d%s", topology->path,
		 source->node, at, path);
	return 0;
}

static int find_source(const struct topology *topology, const struct sim *sim, const char *path,
		       struct source *ret)
{
	unsigned shown;
	const char *rest;

	if (strstr(path, "..") || strlen(path) > 256)
		return -ENOENT;
	*ret = (struct source){ .node = -1 };
	snprintf(ret->path, sizeof(ret->path), "%s/%s", topology->path, path);
	if (!any_gone(sim) || strncmp(path, "nodes/", 6) != 0)
		return 0;
	if (number(path + 6, &shown, &rest) < 0)
		return -ENOENT;
	ret->node = source_of(topology, sim, shown);
	if (ret->node < 0)
		return -ENOENT;
	snprintf(ret->path, sizeof(ret->path), "%s/nodes/%d%s", topology->path, ret->node, rest);
	return *rest == '/' ? find_in_links(topology, sim, rest + 1, ret) : 0;
}

enum tree_kind topology_find(const struct topology *topology, const struct sim *sim,
			     const char *path)
{
	struct source source;

	if (find_source(topology, sim, path, &source) < 0)
		return TREE_NONE;
	return kind_of(source.path);
}

static int each_number(unsigned n, tree_each_t *each, void *userdata)
{
	char name[32];
	int r = 0;

	for (unsigned i = 0; i < n && r >= 0; i++) {
		snprintf(name, sizeof(name), "%u", i);
		r = each(name, TREE_DIRECTORY, userdata);
	}
	return r < 0 ? r : 0;
}

static int each_entry(const char *path, tree_each_t *each, void *userdata)
{
	char full[5120];
	struct dirent *entry;
	DIR *dir = opendir(path);
	int r = 0;

	if (!dir)
		return -errno;
	while (r >= 0 && (entry = readdir(dir))) {
		enum tree_kind kind;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(full, sizeof(full), "%s/%s", path, entry->d_name);
		kind = kind_of(full);
		if (kind != TREE_NONE)
			r = each(entry->d_name, kind, userdata);
	}
	closedir(dir);
	return r < 0 ? r : 0;
}

int topology_each(const struct topology *topology, const struct sim *sim, const char *path,
		  tree_each_t *each, void *userdata)
{
	struct source source;
	unsigned n = 0;
	int r;

	r = find_source(topology, sim, path, &source);
	if (r < 0)
		return r;
	if (any_gone(sim) && strcmp(path, "nodes") == 0) {
		while (source_of(topology, sim, n) >= 0)
			n++;
		return each_number(n, each, userdata);
	}
	if (source.links && !source.link) {
		find_link(topology, sim, &source, NODES, &n);
		return each_number(n, each, userdata);
	}
	return each_entry(source.path, each, userdata);
}

/* What is said of one line after a GPU has gone, or the line as it is. */
static void print_line(const struct topology *topology, const struct sim *sim,
		       const struct source *source, const char *line, size_t length, FILE *out)
{
	unsigned count;

	if (source->link &&
	    (strncmp(line, "node_from ", 10) == 0 || strncmp(line, "node_to ", 8) == 0)) {
		size_t key = strcspn(line, " ");
		unsigned long node = strtoul(line + key, NULL, 10);

		fprintf(out, "%.*s %d\n", (int)key, line, shown_of(topology, sim, (unsigned)node));
		return;
	}
	if (!source->link && strncmp(line, "io_links_count ", 15) == 0) {
		find_link(topology, sim, source, NODES, &count);
		fprintf(out, "io_links_count %u\n", count);
		return;
	}
	fwrite(line, 1, length, out);
}

int topology_print(const struct topology *topology, const struct sim *sim, const char *path,
		   FILE *out)
{
	_cleanup_(freep) char *text = malloc(TEXT);
	struct source source;
	int r;

	r = text ? find_source(topology, sim, path, &source) : -ENOMEM;
	if (r == 0 && kind_of(source.path) == TREE_DIRECTORY)
		r = -EISDIR;
	if (r == 0)
		r = read_text(source.path, text);
	if (r < 0)
		return r;
	if (strcmp(path, "generation_id") == 0) {
		fprintf(out, "%llu\n", strtoull(text, NULL, 10) + sim->topology_generation - 1ULL);
		return 0;
	}
	if (source.node < 0) {
		fwrite(text, 1, (size_t)r, out);
		return 0;
	}
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");

		length += line[length] == '\n';
		print_line(topology, sim, &source, line, length, out);
		line += length;
	}
	return 0;
}
