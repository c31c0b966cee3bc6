/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/shelf.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/fd.h"

int shelf_write(const struct shelf_entry *entries, size_t n, int *ret)
{
	char names[SHELF_MAX][STORE_NAME_MAX] = { 0 };
	int fds[SHELF_MAX], pair[2], r;

	for (size_t i = 0; i < n; i++) {
		memcpy(names[i], entries[i].name, strnlen(entries[i].name, STORE_NAME_MAX));
		fds[i] = entries[i].fd;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	r = send_with_fds(pair[0], names, n * STORE_NAME_MAX, MSG_DONTWAIT, fds, n);
	close(pair[0]);
	if (r < 0)
		close(pair[1]);
	else
		*ret = pair[1];
	return r;
}

int shelf_read(int socket, struct shelf_entry entries[static SHELF_MAX], size_t *ret_n)
{
	char names[SHELF_MAX][STORE_NAME_MAX];
	int fds[SHELF_MAX], flags = MSG_PEEK;
	size_t n;
	ssize_t size = receive_with_fds(socket, names, sizeof(names), &flags, fds, SHELF_MAX, &n);

	if (size < 0)
		return size == -EMFILE || size == -ENFILE || size == -ENOMEM ? (int)size : -EBADMSG;
	if ((flags & (MSG_TRUNC | MSG_CTRUNC)) || n == 0 || (size_t)size != n * STORE_NAME_MAX) {
		for (size_t i = 0; i < n; i++)
			close(fds[i]);
		return flags & MSG_CTRUNC ? -EMFILE : -EBADMSG;
	}
	for (size_t i = 0; i < n; i++) {
		memcpy(entries[i].name, names[i], STORE_NAME_MAX);
		entries[i].name[STORE_NAME_MAX - 1] = '\0';
		entries[i].fd = fds[i];
	}
	*ret_n = n;
	return 0;
}
