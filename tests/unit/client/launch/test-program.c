/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which commands LD_PRELOAD works for. */

#include "client/launch/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static char dir[] = "/tmp/gpuarb-test-XXXXXX";

static void path_of(const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", dir, name);
}

static void write_file(const char *name, const void *data, size_t size)
{
	char path[PATH_MAX];
	int fd;

	path_of(name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
}

/* Writes a 64-bit program for this machine; loader NULL: static. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	char loader[128];
};

static struct image make_image(const char *loader)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct image image = { 0 };

	CHECK(fd >= 0);
	CHECK(read(fd, &image.header, sizeof(image.header)) == (ssize_t)sizeof(image.header));
	close(fd);
	image.header.e_phoff = offsetof(struct image, segments);
	image.header.e_phnum = 2;
	image.segments[0].p_type = PT_LOAD;
	image.segments[1].p_type = loader ? PT_INTERP : PT_NOTE;
	image.segments[1].p_offset = offsetof(struct image, loader);
	if (loader) {
		snprintf(image.loader, sizeof(image.loader), "%s", loader);
		image.segments[1].p_filesz = strlen(loader) + 1;
	}
	return image;
}

/* The loader of this program. */
static const char *own_loader(void)
{
	static char loader[PATH_MAX];
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK(pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header));
	for (unsigned i = 0; i < header.e_phnum && !*loader; i++) {
		CHECK(pread(fd, &segment, sizeof(segment),
			    (off_t)(header.e_phoff + i * sizeof(segment))) ==
		      (ssize_t)sizeof(segment));
		if (segment.p_type == PT_INTERP)
			CHECK(pread(fd, loader, segment.p_filesz, (off_t)segment.p_offset) > 0);
	}
	close(fd);
	return loader;
}

/* Whether the program can be preloaded; if not, the reason contains `words`. */
static bool takes(const char *command, const char *words)
{
	char why[256] = "";
	bool musl;

	if (program_preloads(command, &musl, why, sizeof(why)))
		return !musl;
	if (!words || !strstr(why, words)) {
		fprintf(stderr, "said: %s\n", why);
		abort();
	}
	return false;
}

static bool file_takes(const char *name, const char *words)
{
	char path[PATH_MAX];

	path_of(name, path);
	return takes(path, words);
}

TEST(an_ordinary_program_can_be_preloaded)
{
	struct image image = make_image(own_loader());

	CHECK(mkdtemp(dir));
	CHECK(takes("/proc/self/exe", NULL) && takes("sh", NULL) && takes("/bin/sh", NULL));
	write_file("good", &image, sizeof(image));
	CHECK(file_takes("good", NULL));
}

TEST(a_missing_program_is_left_to_exec)
{
	CHECK(takes("/nowhere/at/all", NULL) && takes("no-such-command-anywhere", NULL));
	write_file("text", "not a program", 13);
	write_file("empty", "", 0);
	write_file("short", "\177ELF", 4);
	CHECK(file_takes("text", NULL) && file_takes("empty", NULL) && file_takes("short", NULL));
}

TEST(a_program_that_cannot_be_preloaded_has_a_reason)
{
	struct image image = make_image(NULL);

	write_file("static", &image, sizeof(image));
	CHECK(!file_takes("static", "statically"));
	image = make_image("/lib/ld-other.so.1");
	write_file("other", &image, sizeof(image));
	CHECK(!file_takes("other", "another C library (/lib/ld-other.so.1)"));
	image = make_image(own_loader());
	image.header.e_machine = EM_68K;
	write_file("foreign", &image, sizeof(image));
	CHECK(!file_takes("foreign", "machine"));
	image.header.e_ident[EI_CLASS] = ELFCLASS32;
	write_file("narrow", &image, sizeof(image));
	CHECK(!file_takes("narrow", "not a 64-bit program"));
}

TEST(a_program_of_musl_can_be_preloaded)
{
	struct image image = make_image("/lib/ld-musl-x86_64.so.1");
	char path[PATH_MAX], why[256];
	bool musl = false;

	write_file("musl", &image, sizeof(image));
	path_of("musl", path);
	CHECK(program_preloads(path, &musl, why, sizeof(why)) && musl);
}

TEST(a_broken_program_is_left_to_exec)
{
	struct image image = make_image(own_loader());

	write_file("cut", &image, offsetof(struct image, segments[1]));
	CHECK(file_takes("cut", NULL));
	image.segments[1].p_filesz = UINT64_MAX;
	write_file("huge", &image, sizeof(image));
	CHECK(file_takes("huge", NULL));
	write_file("header", &image, sizeof(image.header) - 1);
	CHECK(file_takes("header", NULL));
}

static void write_script(const char *name, const char *interpreter)
{
	char text[PATH_MAX];

	write_file(name, text,
		   (size_t)snprintf(text, sizeof(text), "#! %s/%s -x\necho\n", dir, interpreter));
}

TEST(a_script_is_judged_by_its_interpreter)
{
	char text[64] = "#!/bin/sh\n";

	write_file("shell", text, strlen(text));
	CHECK(file_takes("shell", NULL));
	write_script("bad", "static");
	CHECK(!file_takes("bad", "static"));
	write_script("worse", "bad");
	CHECK(!file_takes("worse", "static"));
	write_script("itself", "itself");
	CHECK(file_takes("itself", NULL));
	write_script("lost", "nowhere");
	CHECK(file_takes("lost", NULL));
	write_file("nothing", "#!\n", 3);
	CHECK(file_takes("nothing", NULL));
}

TEST(a_script_of_env_is_judged_by_the_program_that_env_starts)
{
	const char *path = getenv("PATH");
	char *before = path ? strdup(path) : NULL;

	CHECK(before && setenv("PATH", dir, 1) == 0);
	write_file("env-bad", "#!/usr/bin/env static\n", 22);
	CHECK(!file_takes("env-bad", "static"));
	write_file("env-words", "#! /usr/bin/env -S static -x\n", 29);
	CHECK(!file_takes("env-words", "static"));
	write_file("env-good", "#!/usr/bin/env\tgood", 19);
	CHECK(file_takes("env-good", NULL));
	write_file("env-lost", "#!/usr/bin/env nowhere\n", 23);
	write_file("env-none", "#!/usr/bin/env\n", 15);
	CHECK(file_takes("env-lost", NULL) && file_takes("env-none", NULL));
	CHECK(setenv("PATH", before, 1) == 0);
	free(before);
}

TEST(a_command_is_found_in_the_path)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/nowhere:%s:/bin", dir);
	setenv("PATH", path, 1);
	CHECK(!takes("static", "statically"));
	CHECK(takes("good", NULL) && takes("true", NULL));
	CHECK(chdir(dir) == 0);
	setenv("PATH", "/bin:", 1); /* the last is the directory that one is in */
	CHECK(!takes("static", "statically"));
	CHECK(chdir("/") == 0);
	unsetenv("PATH");
	CHECK(takes("sh", NULL));
}

TEST(a_setuid_program_cannot_be_preloaded)
{
	struct image image = make_image(own_loader());
	char path[PATH_MAX], command[PATH_MAX + 16];

	write_file("set-user", &image, sizeof(image));
	path_of("set-user", path);
	CHECK(chmod(path, 04755) == 0);
	CHECK(file_takes("set-user", NULL)); /* one's own gives nothing */
	if (chown(path, 4711, 4711) == 0) {
		CHECK(chmod(path, 04755) == 0);
		CHECK(!file_takes("set-user", "rights"));
		CHECK(chmod(path, 02755) == 0);
		CHECK(!file_takes("set-user", "rights"));
		CHECK(chmod(path, 02745) == 0); /* a lock, and no right */
		CHECK(file_takes("set-user", NULL));
	} else {
		puts("skipped: not root, and so there is no other's file to try");
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(system(command) == 0);
}
