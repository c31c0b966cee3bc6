/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/helper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/fd.h"
#include "util/text.h"

int helper_connect(const struct helper *helper, char *why, size_t size)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const char *path = helper->socket;
	int fd, r;

	if (strlen(path) >= sizeof(un.sun_path))
		return refuse(why, size, -ENAMETOOLONG, "%s: the path of the socket is too long",
			      path);
	strcpy(un.sun_path, path);
	fd = socket(AF_UNIX, helper->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return refuse(why, size, -errno, "cannot connect to %s: cannot make a socket: %s",
			      path, strerror(errno));
	if (connect(fd, (const struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	r = -errno;
	close(fd);
	if (r == -ENOENT || r == -ECONNREFUSED)
		return refuse(why, size, -EOPNOTSUPP,
			      "%s: no helper is listening: systemctl enable --now %s.socket", path,
			      helper->name);
	return refuse(why, size, r, "cannot connect to %s: %s", path, strerror(-r));
}

int helper_init(struct helper *helper, sd_event *event, int type, const char *socket,
		const char *name, sd_event_io_handler_t on_io, sd_event_time_handler_t on_timer,
		void *userdata)
{
	int r;

	*helper = (struct helper){
		.event = sd_event_ref(event),
		.socket = strdup(socket),
		.type = type,
		.name = name,
		.fd = -1,
		.on_io = on_io,
		.userdata = userdata,
	};
	if (!helper->socket)
		return -ENOMEM;
	r = sd_event_add_time(event, &helper->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, userdata);
	return r < 0 ? r : sd_event_source_set_enabled(helper->timer, SD_EVENT_OFF);
}

void helper_done(struct helper *helper)
{
	helper_close(helper);
	sd_event_source_disable_unref(helper->timer);
	sd_event_unref(helper->event);
	free(helper->socket);
}

int helper_watch(struct helper *helper, int fd, char *why, size_t size)
{
	int r;

	helper->fd = fd;
	r = sd_event_add_io(helper->event, &helper->io, fd, EPOLLIN, helper->on_io,
			    helper->userdata);
	if (r >= 0)
		return 0;
	helper_close(helper);
	return refuse(why, size, r, "cannot wait for answers on %s: %s", helper->socket,
		      strerror(-r));
}

int helper_open(struct helper *helper, char *why, size_t size)
{
	int r = helper_connect(helper, why, size);

	return r < 0 ? r : helper_watch(helper, r, why, size);
}

void helper_close(struct helper *helper)
{
	helper->io = sd_event_source_disable_unref(helper->io);
	close_fd(&helper->fd);
}

int helper_await(struct helper *helper, uint64_t usec)
{
	int r = usec > 0 ? sd_event_source_set_time_relative(helper->timer, usec) : 0;

	return r < 0 ? r
		     : sd_event_source_set_enabled(helper->timer,
						   usec > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}
