/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager-notify.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check-cond.h"

int notify_open(char ret_address[static 32])
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(address.sun_family);
	int fd, on = 1;

	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0);
	CHECK(bind(fd, (struct sockaddr *)&address, size) == 0); /* an abstract one of its choice */
	CHECK(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0);
	size = sizeof(address);
	CHECK(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
	snprintf(ret_address, 32, "@%.*s", (int)(size - sizeof(address.sun_family) - 1),
		 address.sun_path + 1);
	return fd;
}

static void take_control(struct msghdr *message, struct notification *ret)
{
	struct ucred sender;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&sender, CMSG_DATA(c), sizeof(sender));
			ret->sender = sender.pid;
		} else if (c->cmsg_type == SCM_RIGHTS) {
			ret->n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			memcpy(ret->fds, CMSG_DATA(c), ret->n_fds * sizeof(int));
		}
	}
}

bool notify_take(int fd, struct notification *ret)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred)) +
			   CMSG_SPACE(NOTIFICATION_FDS * sizeof(int))];
	} control;
	struct iovec iov = { ret->text, sizeof(ret->text) - 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t n;

	ret->sender = 0;
	ret->n_fds = 0;
	n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return false;
	take_control(&message, ret);
	ret->text[message.msg_flags & MSG_TRUNC ? 0 : n] = '\0';
	return true;
}

/* What follows this beginning of a line; NULL. */
static const char *after(const char *text, const char *beginning)
{
	size_t length = strlen(beginning);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (strncmp(text, beginning, length) == 0)
			return text + length;
	}
	return NULL;
}

bool notification_has(const struct notification *notification, const char *line)
{
	const char *rest = after(notification->text, line);

	return rest && (*rest == '\n' || *rest == '\0');
}

bool notification_value(const struct notification *notification, const char *name, char *ret,
			size_t size)
{
	const char *value = after(notification->text, name);
	size_t length = value ? strcspn(value, "\n") : size;

	if (length >= size)
		return false;
	memcpy(ret, value, length);
	ret[length] = '\0';
	return true;
}
