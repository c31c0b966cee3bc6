/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd-read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fd.h"
#include "util/number.h"

int kfd_dir_open(const struct kfd_dir *parent, const char *name, struct kfd_dir *ret)
{
	struct kfd_dir dir;
	int n;

	n = snprintf(dir.path, sizeof(dir.path), "%s/%s", parent->path, name);
	if (n < 0 || (size_t)n >= sizeof(dir.path))
		return -ENAMETOOLONG;

	dir.fd = openat(parent->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	if (dir.fd < 0)
		return -errno;

	*ret = dir;
	return 0;
}

void kfd_dir_close(struct kfd_dir *dir)
{
	close_fd(&dir->fd);
}

bool kfd_name_number(const char *name, unsigned *ret)
{
	size_t length = strlen(name);
	uint64_t number;

	if (kfd_number(name, length, INT32_MAX, &number) < 0 || (length > 1 && name[0] == '0'))
		return false;
	*ret = (unsigned)number;
	return true;
}

DEFINE_ORDER(compare_numbers, unsigned, )

static int list_numbers(const struct kfd_dir *dir, unsigned *numbers, size_t max)
{
	_cleanup_(closedirp) DIR *stream =
		open_directory(openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *entry;
	size_t n = 0, entries = 0;
	unsigned number;

	while (stream && (errno = 0, entry = readdir(stream))) {
		entries += entry->d_name[0] != '.';
		if (entries > KFD_ENTRIES)
			return -E2BIG;
		if (!kfd_name_number(entry->d_name, &number))
			continue;
		if (n == max)
			return -E2BIG;
		numbers[n++] = number;
	}
	return errno ? -errno : (int)n;
}

int kfd_dir_open_numbers(const struct kfd_dir *parent, const char *name, unsigned *numbers,
			 size_t max, struct kfd_dir *ret)
{
	int n = kfd_dir_open(parent, name, ret);

	if (n == 0)
		n = list_numbers(ret, numbers, max);
	if (n > 0)
		qsort(numbers, (size_t)n, sizeof(*numbers), compare_numbers);
	return n;
}

int kfd_read(const struct kfd_dir *dir, const char *name, char *buf, size_t size)
{
	/* O_NONBLOCK: opening a FIFO must not wait for its other end. */
	_cleanup_fd_ int fd = openat(dir->fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EBADMSG;
	n = read_to_end(fd, buf, size);
	if (n < 0)
		return (int)n;
	if ((size_t)n == size)
		return -EFBIG;
	buf[n] = '\0';
	return strlen(buf) == (size_t)n ? 0 : -EBADMSG;
}

int kfd_number(const char *text, size_t length, uint64_t max, uint64_t *ret)
{
	const char *end = text;
	uint64_t number;
	int r = number_take(&end, &number);

	if (r == -EINVAL || (r >= 0 && end != text + length))
		return -EBADMSG;
	if (r < 0 || number > max)
		return -ERANGE;
	*ret = number;
	return 0;
}

int kfd_read_number(const struct kfd_dir *dir, const char *name, uint64_t max, uint64_t *ret)
{
	char text[64];
	size_t length;
	int r;

	r = kfd_read(dir, name, text, sizeof(text));
	if (r < 0)
		return r;

	length = strlen(text);
	if (length > 0 && text[length - 1] == '\n')
		length--;
	return kfd_number(text, length, max, ret);
}

int kfd_property(const char *text, const char *key, const char **ret, size_t *ret_length)
{
	size_t length = strlen(key);

	for (const char *line = text; *line; line += *line == '\n') {
		size_t end = strcspn(line, "\n");

		if (end > length && strncmp(line, key, length) == 0 && line[length] == ' ') {
			*ret = line + length + 1;
			*ret_length = end - length - 1;
			return 0;
		}
		line += end;
	}
	return -ENODATA;
}

int kfd_property_number(const char *text, const char *key, uint64_t max, uint64_t *ret)
{
	const char *value;
	size_t length;
	int r;

	r = kfd_property(text, key, &value, &length);
	return r < 0 ? r : kfd_number(value, length, max, ret);
}

bool kfd_is_lacking(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

bool kfd_is_unread(int error)
{
	return kfd_is_lacking(error) || error == -E2BIG;
}

const char *kfd_trouble(int error)
{
	switch (-error) {
	case EFBIG: return "longer than a sysfs attribute can be";
	case EBADMSG: return "not what the driver writes";
	case ERANGE: return "a number larger than any driver writes";
	case E2BIG: return "too many entries";
	case ENODATA: return "missing";
	case EPERM: return "the device cgroup of this process hides the GPU";
	default: return strerror(-error);
	}
}
