/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Runs one target over files, without libFuzzer.
 *
 *	fuzz NAME FILE|DIRECTORY…
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

#define INPUT_MAX (1U << 20)

static unsigned ran;

static void run_file(const struct fuzz_target *target, const char *path)
{
	static uint8_t buffer[INPUT_MAX];
	FILE *file = fopen(path, "re");
	size_t size;
	uint8_t *data;

	CHECK(file);
	size = fread(buffer, 1, sizeof(buffer), file);
	CHECK(!ferror(file));
	fclose(file);

	/* Of its exact size: a sanitizer sees what is read beyond the end. */
	data = malloc(size > 0 ? size : 1);
	CHECK(data);
	memcpy(data, buffer, size);
	printf("%s\n", path);
	fflush(stdout);
	target->run(data, size);
	free(data);
	ran++;
}

static void run_path(const struct fuzz_target *target, const char *path)
{
	const struct dirent *entry;
	char file[4096];
	DIR *directory = opendir(path);

	if (!directory) {
		CHECK(errno == ENOTDIR);
		run_file(target, path);
		return;
	}
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		run_path(target, file);
	}
	closedir(directory);
}

int main(int argc, char *argv[])
{
	const struct fuzz_target *target = argc > 1 ? fuzz_find(argv[1]) : NULL;

	if (!target) {
		fprintf(stderr, "%s: no such target\n", argc > 1 ? argv[1] : "fuzz");
		return EXIT_FAILURE;
	}
	for (int i = 2; i < argc; i++)
		run_path(target, argv[i]);
	CHECK(ran > 0);
	return EXIT_SUCCESS;
}
