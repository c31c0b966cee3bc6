/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/agent-socket.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "util/fd.h"

#define FILES "gpuarb-agent-"
#define LEFT_SEC 60

static socklen_t write_address(const char *name, bool file, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret->sun_path + !file, name, strlen(name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

int agent_socket_listen(const char *name, bool file)
{
	struct sockaddr_un address;
	socklen_t length = write_address(name, file, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, SOMAXCONN) < 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

/* Whether a killed agent of this user has left the file. The file of one that does not listen yet is young. */
static bool is_left(const char *path)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;
	socklen_t length = write_address(path, true, &address);
	struct stat st;

	return fd >= 0 && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid() &&
	       st.st_mtime < time(NULL) - LEFT_SEC &&
	       connect(fd, (struct sockaddr *)&address, length) < 0 && errno == ECONNREFUSED;
}

static void delete_left(const char *dir)
{
	DIR *entries = opendir(dir);
	const struct dirent *entry;
	char path[AGENT_SOCKET];

	while (entries && (entry = readdir(entries)))
		if (strncmp(entry->d_name, FILES, strlen(FILES)) == 0 &&
		    snprintf(path, AGENT_SOCKET, "%s/%s", dir, entry->d_name) < AGENT_SOCKET - 1 &&
		    is_left(path))
			(void)unlink(path);
	if (entries)
		closedir(entries);
}

int agent_socket_make(const char *dir, uint64_t lease, char ret[static AGENT_SOCKET])
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	if (dir[0] != '/' || snprintf(ret, AGENT_SOCKET, "%s/" FILES "%" PRIu64 "-%016" PRIx64, dir,
				      lease, random) >= AGENT_SOCKET - 1)
		return -ENOENT;
	delete_left(dir);
	return agent_socket_listen(ret, true);
}
