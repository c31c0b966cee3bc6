/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MUSL "ld-musl-" /* how the name of its loader begins */
#define SCRIPTS 4       /* interpreters of interpreters; the kernel allows 4 (fs/exec.c) */

/* The parts of an ELF file that decide about its loader. */
struct image {
	unsigned char class;
	uint16_t machine;
	char loader[PATH_MAX]; /* "": none */
};

/* ---- finding ----------------------------------------------------------------------------- */

/* 0, or the error of execve(); -EISDIR instead of its EACCES. */
static int check_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

/* Searches $PATH as execvp() does. -ENOENT: no file; -EACCES: only files that cannot be executed. */
static int find(const char *command, char path[PATH_MAX])
{
	const char *dir = getenv("PATH"), *end;
	int result = -ENOENT, r;

	if (strchr(command, '/'))
		return snprintf(path, PATH_MAX, "%s", command) < PATH_MAX ? check_file(path)
									  : -ENAMETOOLONG;
	for (dir = dir ? dir : "/bin:/usr/bin"; *command; dir = end + 1) {
		end = strchrnul(dir, ':');
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)(end - dir), dir,
			     end > dir ? "/" : "", command) < PATH_MAX) {
			r = check_file(path);
			if (r >= 0)
				return 0;
			if (r == -EACCES || r == -EISDIR)
				result = -EACCES;
		}
		if (!*end)
			break;
	}
	return result;
}

/* ---- reading ----------------------------------------------------------------------------- */

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
	return pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static bool read_loader(int fd, const Elf64_Ehdr *header, struct image *ret)
{
	for (unsigned i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;

		if (!read_at(fd, &segment, sizeof(segment),
			     header->e_phoff + (uint64_t)i * header->e_phentsize))
			return false;
		if (segment.p_type != PT_INTERP)
			continue;
		if (segment.p_filesz >= sizeof(ret->loader) ||
		    !read_at(fd, ret->loader, segment.p_filesz, segment.p_offset))
			return false;
		ret->loader[segment.p_filesz] = '\0';
		break; /* a program has one */
	}
	return true;
}

/* false: no valid ELF file. */
static bool read_image(int fd, struct image *ret)
{
	Elf64_Ehdr header;

	*ret = (struct image){ .class = ELFCLASSNONE };
	if (!read_at(fd, &header, EI_NIDENT, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	ret->class = header.e_ident[EI_CLASS];
	if (ret->class != ELFCLASS64)
		return true;
	if (!read_at(fd, &header, sizeof(header), 0))
		return false;
	ret->machine = header.e_machine;
	return read_loader(fd, &header, ret);
}

/* Takes the next word off the front of *text. */
static char *next_word(char **text)
{
	char *word = *text + strspn(*text, " \t");
	size_t n = strcspn(word, " \t\n");

	*text = word + n + (word[n] != '\0');
	word[n] = '\0';
	return word;
}

/* The word after "#!"; after "#!/usr/bin/env [-S]" the program that env starts. */
static bool read_interpreter(int fd, char path[PATH_MAX])
{
	char line[256] = "", *rest = line + 2, *word;
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);

	if (n < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[strcspn(line, "\n")] = '\0';
	word = next_word(&rest);
	if (strcmp(basename(word), "env") == 0) {
		word = next_word(&rest);
		if (strcmp(word, "-S") == 0)
			word = next_word(&rest);
		if (find(word, path) >= 0)
			return true;
	}
	return snprintf(path, PATH_MAX, "%s", word) > 0;
}

/* ---- judging ----------------------------------------------------------------------------- */

/* The loader ignores LD_PRELOAD for a program that gets more rights than its caller (AT_SECURE). */
static bool is_privileged(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	    (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getegid()))
		return true;
	return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* Compares with gpuarbctl, which is of the same build as the agent's library. */
static bool judge_image(const struct image *image, const char *path, bool *ret_musl, char *why,
			size_t size)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct image own = { .class = ELFCLASSNONE };
	bool known = fd >= 0 && read_image(fd, &own);

	if (fd >= 0)
		close(fd);
	if (image->class != ELFCLASS64) {
		snprintf(why, size, "%s is not a 64-bit program", path);
		return false;
	}
	if (known && image->machine != own.machine) {
		snprintf(why, size, "%s is for another machine architecture", path);
		return false;
	}
	if (!*image->loader) {
		snprintf(why, size, "%s is linked statically, so no library can be loaded into it",
			 path);
		return false;
	}
	if (!known || strcmp(basename(image->loader), basename(own.loader)) == 0)
		return true;
	*ret_musl = strncmp(basename(image->loader), MUSL, strlen(MUSL)) == 0;
	if (!*ret_musl) {
		snprintf(why, size, "%s uses another C library (%s)", path, image->loader);
		return false;
	}
	return true;
}

static bool judge(const char *path, int depth, bool *ret_musl, char *why, size_t size)
{
	char interpreter[PATH_MAX];
	struct image image;
	bool good = true;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return true;
	if (is_privileged(fd)) {
		snprintf(why, size,
			 "%s gives more rights to its caller (setuid, setgid or "
			 "capabilities), so the loader ignores LD_PRELOAD",
			 path);
		good = false;
	} else if (read_image(fd, &image)) {
		good = judge_image(&image, path, ret_musl, why, size);
	} else if (depth < SCRIPTS && read_interpreter(fd, interpreter)) {
		good = judge(interpreter, depth + 1, ret_musl, why, size);
	}
	close(fd);
	return good;
}

bool program_preloads(const char *command, bool *ret_musl, char *why, size_t size)
{
	char path[PATH_MAX];

	*ret_musl = false;
	return find(command, path) < 0 || judge(path, 0, ret_musl, why, size);
}

/* The kernel reports a missing interpreter as if the script were missing. */
static int check_interpreter(const char *path, char *why, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = 0;
	char interpreter[PATH_MAX];

	if (fd < 0)
		return 0; /* a program may be executable and not readable */
	if (read_interpreter(fd, interpreter))
		r = check_file(interpreter);
	close(fd);
	if (r < 0)
		snprintf(why, size, "its first line names the interpreter %s: %s", interpreter,
			 strerror(-r));
	return r;
}

/* A number alone is rather the value of an option. */
static bool is_number(const char *word)
{
	return *word && strspn(word, "0123456789%.") == strlen(word);
}

int program_check(const char *command, char *why, size_t size)
{
	char path[PATH_MAX];
	int r = find(command, path);

	if (r >= 0)
		return check_interpreter(path, why, size);
	if (is_number(command))
		snprintf(why, size,
			 "no such command; the command begins at the first word that is neither an "
			 "option nor its value: write -- before it");
	else if (r == -ENOENT && !strchr(command, '/'))
		snprintf(why, size, "no such command in PATH");
	else
		snprintf(why, size, "%s", strerror(-r));
	return r;
}
