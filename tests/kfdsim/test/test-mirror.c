/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>

#include "kfdsim/front/seccomp.h"

#include "check.h"
#include "scratch.h"

/* A tree of the test's: entries with a NULL text are directories. */
struct tree {
	struct {
		const char *path, *text;
		enum tree_kind kind;
	} entries[8];
	int error; /* of reading a text, or listing what is below the root */
};

static size_t parent_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

int tree_each(struct tree *tree, const char *path,
	      int (*each)(const char *name, enum tree_kind kind, void *userdata), void *userdata)
{
	int r = *path ? tree->error : 0;

	for (size_t i = 0; i < 8 && tree->entries[i].path && r == 0; i++) {
		const char *entry = tree->entries[i].path;
		size_t n = parent_length(entry);

		if (n == strlen(path) && strncmp(entry, path, n) == 0)
			r = each(entry + n + (n > 0), tree->entries[i].kind, userdata);
	}
	return r;
}

int tree_read(struct tree *tree, const char *path, char **ret, size_t *ret_size)
{
	if (tree->error < 0)
		return tree->error;
	for (size_t i = 0; i < 8 && tree->entries[i].path; i++)
		if (strcmp(tree->entries[i].path, path) == 0) {
			*ret = strdup(tree->entries[i].text);
			CHECK(*ret);
			*ret_size = strlen(*ret);
			return 0;
		}
	return -ENOENT;
}

static struct scratch scratch;

static int mirror(struct tree *tree)
{
	return mirror_tree(tree, "", scratch.path, scratch_at(&scratch, "device"));
}

static struct stat status(const char *name)
{
	struct stat st;

	CHECK(stat(scratch_at(&scratch, name), &st) == 0);
	return st;
}

static bool there(const char *name)
{
	return access(scratch_at(&scratch, name), F_OK) == 0;
}

static bool holds(const char *name, const char *text)
{
	char buf[64] = "";
	FILE *file = fopen(scratch_at(&scratch, name), "re");
	size_t n;

	if (!file)
		return false;
	n = fread(buf, 1, sizeof(buf) - 1, file);
	fclose(file);
	return n == strlen(text) && strcmp(buf, text) == 0;
}

static void start(void)
{
	scratch = scratch_new();
	scratch_write(&scratch, "device", "memory");
}

TEST(tree_is_written_as_files)
{
	struct tree tree = { .entries = {
				     { "device", NULL, TREE_KFD },
				     { "proc", NULL, TREE_DIRECTORY },
				     { "proc/7", NULL, TREE_DIRECTORY },
				     { "proc/7/size", "64", TREE_TEXT },
				     { "render", NULL, TREE_RENDER },
				     { "control", NULL, TREE_CONTROL },
			     } };
	mode_t mask = umask(077);

	start();
	CHECK(mirror(&tree) == 0);
	umask(mask);
	CHECK(holds("proc/7/size", "64") && holds("device", "memory"));
	CHECK((status("proc/7").st_mode & 07777) == 0755);
	CHECK((status("proc/7/size").st_mode & 07777) == 0444);
	CHECK(status("render").st_ino == status("device").st_ino);
	CHECK(S_ISFIFO(status("control").st_mode));
	CHECK((status("control").st_mode & 07777) == 0644);
	CHECK(mirror(&tree) == 0);
	scratch_done(&scratch);
}

TEST(unchanged_files_are_not_rewritten)
{
	struct tree tree = { .entries = {
				     { "device", NULL, TREE_KFD },
				     { "a", "1\n", TREE_TEXT },
				     { "b", "1\n", TREE_TEXT },
			     } };
	char old[8] = "";
	ino_t a, b;
	int fd;

	start();
	CHECK(mirror(&tree) == 0);
	a = status("a").st_ino;
	b = status("b").st_ino;
	fd = open(scratch_at(&scratch, "a"), O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	tree.entries[1].text = "2\n";
	CHECK(mirror(&tree) == 0);
	CHECK(holds("a", "2\n") && status("a").st_ino != a && status("b").st_ino == b);
	CHECK(read(fd, old, sizeof(old)) == 2 && strcmp(old, "1\n") == 0);
	close(fd);
	tree.entries[2].text = "";
	CHECK(mirror(&tree) == 0 && holds("b", "") && !there("a.new") && !there("b.new"));
	scratch_done(&scratch);
}

TEST(files_of_removed_entries_are_deleted)
{
	struct tree tree = { .entries = {
				     { "device", NULL, TREE_KFD },
				     { "proc", NULL, TREE_DIRECTORY },
				     { "proc/8", NULL, TREE_DIRECTORY },
				     { "proc/7", NULL, TREE_DIRECTORY },
				     { "proc/7/size", "64", TREE_TEXT },
				     { "last", "x", TREE_TEXT },
			     } };

	start();
	CHECK(mirror(&tree) == 0 && there("proc/7/size") && there("last"));
	tree.entries[3].path = NULL;
	CHECK(mirror(&tree) == 0);
	CHECK(there("proc/8") && !there("proc/7") && !there("last") && there("device"));
	scratch_done(&scratch);
}

TEST(entries_that_vanish_while_listing_are_skipped)
{
	struct tree tree = { .entries = {
				     { "device", NULL, TREE_KFD },
				     { "a", "1", TREE_TEXT },
				     { "b", NULL, TREE_DIRECTORY },
				     { "b/c", "1", TREE_TEXT },
			     } };

	start();
	tree.error = -ENOENT;
	CHECK(mirror(&tree) == 0 && !there("a") && !there("b/c"));
	tree.error = -ENOMEM;
	CHECK(mirror(&tree) == -ENOMEM);
	scratch_done(&scratch);
}

TEST(write_errors_are_returned)
{
	struct tree tree = { .entries = { { "a", "1", TREE_TEXT } } };
	start();
	CHECK(mirror_tree(&tree, "", scratch_at(&scratch, "no/where"), "") == -ENOENT);
	CHECK(mirror_tree(&tree, "", scratch_at(&scratch, "device"), "") == -ENOTDIR);
	scratch_mkdir(&scratch, "a");
	scratch_write(&scratch, "a/b", "");
	CHECK(mirror(&tree) == -EISDIR);
	tree.entries[0].kind = TREE_RENDER;
	CHECK(mirror_tree(&tree, "", scratch.path, "/no/where") == -ENOENT);
	scratch_done(&scratch);
}
