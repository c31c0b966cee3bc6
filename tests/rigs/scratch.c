/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scratch.h"

#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>

#include "check-cond.h"

const char *scratch_root(void)
{
	static const char memory[] = "/dev/shm";
	struct statvfs file_system;

	return statvfs(memory, &file_system) == 0 && !(file_system.f_flag & ST_NOEXEC) &&
			       access(memory, W_OK) == 0
		       ? memory
		       : "/tmp";
}

void scratch_directory(char *ret, size_t size)
{
	CHECK((size_t)snprintf(ret, size, "%s/gpuarb-test-XXXXXX", scratch_root()) < size);
	CHECK(mkdtemp(ret));
}

int scratch_bind(const char *path, int type)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK((size_t)snprintf(un.sun_path, sizeof(un.sun_path), "%s", path) < sizeof(un.sun_path));
	unlink(path);
	CHECK(bind(fd, (const struct sockaddr *)&un, sizeof(un)) == 0);
	return fd;
}

struct scratch scratch_new(void)
{
	struct scratch scratch;

	scratch_directory(scratch.path, sizeof(scratch.path));
	return scratch;
}

static int remove_entry(const char *path, const struct stat *, int type, struct FTW *)
{
	return type == FTW_DP ? rmdir(path) : remove(path);
}

int scratch_remove(const char *path)
{
	return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void scratch_done(const struct scratch *scratch)
{
	CHECK(scratch_remove(scratch->path) == 0);
}

const char *scratch_at(const struct scratch *scratch, const char *name)
{
	static char paths[64][256];
	static unsigned turn;
	char *path = paths[turn++ % 64];

	snprintf(path, sizeof(paths[0]), "%s/%s", scratch->path, name);
	return path;
}

const char *scratch_put(const struct scratch *scratch, const char *name, const void *bytes,
			size_t size)
{
	const char *path = scratch_at(scratch, name);
	FILE *file = fopen(path, "we");

	CHECK(file);
	CHECK(fwrite(bytes, 1, size, file) == size);
	CHECK(fclose(file) == 0);
	CHECK(chmod(path, 0644) == 0);
	return path;
}

const char *scratch_write(const struct scratch *scratch, const char *name, const char *text)
{
	return scratch_put(scratch, name, text, strlen(text));
}

const char *scratch_mkdir(const struct scratch *scratch, const char *name)
{
	const char *path = scratch_at(scratch, name);

	CHECK(mkdir(path, 0755) == 0 && chmod(path, 0755) == 0);
	return path;
}

unsigned count_entries(const char *path)
{
	const struct dirent *entry;
	DIR *directory = opendir(path);
	unsigned n = 0;

	CHECK(directory);
	while ((entry = readdir(directory)))
		n += entry->d_name[0] != '.';
	closedir(directory);
	return n;
}

unsigned count_fds(void)
{
	return count_entries("/proc/self/fd");
}

/* The queue appears with all of its files at once: an agent may scan the tree at any time. */
void queue_tree_add(const struct scratch *tree, unsigned queue)
{
	const char *made = scratch_mkdir(tree, "new-queue");
	char name[64];

	scratch_write(tree, "new-queue/gpuid", "7");
	scratch_write(tree, "new-queue/type", "0");
	snprintf(name, sizeof(name), "class/kfd/kfd/proc/5/queues/%u", queue);
	CHECK(rename(made, scratch_at(tree, name)) == 0);
}

struct scratch queue_tree_new(unsigned queues)
{
	static const char *const directories[] = {
		"class",
		"class/kfd",
		"class/kfd/kfd",
		"class/kfd/kfd/topology",
		"class/kfd/kfd/topology/nodes",
		"class/kfd/kfd/topology/nodes/1",
		"class/kfd/kfd/proc",
		"class/kfd/kfd/proc/5",
		"class/kfd/kfd/proc/5/queues",
	};
	struct scratch tree = scratch_new();

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		scratch_mkdir(&tree, directories[i]);
	scratch_write(&tree, "class/kfd/kfd/topology/nodes/1/gpu_id", "7");
	scratch_write(&tree, "class/kfd/kfd/topology/nodes/1/properties", "simd_count 240\n");
	for (unsigned i = 0; i < queues; i++)
		queue_tree_add(&tree, i);
	return tree;
}
