/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/helper.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/text.h"

int helper_connect(const char *path, int type, const char *unit, char *why, size_t size)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd, r;

	if (strlen(path) >= sizeof(un.sun_path))
		return refuse(why, size, -ENAMETOOLONG, "%s: the path of the socket is too long",
			      path);
	strcpy(un.sun_path, path);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return refuse(why, size, -errno, "cannot connect to %s: cannot make a socket: %s",
			      path, strerror(errno));
	if (connect(fd, (const struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	r = -errno;
	close(fd);
	if (r == -ENOENT || r == -ECONNREFUSED)
		return refuse(why, size, -EOPNOTSUPP,
			      "%s: no helper is listening: systemctl enable --now %s", path, unit);
	return refuse(why, size, r, "cannot connect to %s: %s", path, strerror(-r));
}
