/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store-rig.h"

void manager_bind(struct manager *manager)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t length = strlen(manager->address);

	memcpy(un.sun_path, manager->address, length);
	if (un.sun_path[0] == '@')
		un.sun_path[0] = '\0';
	manager->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(manager->socket >= 0);
	CHECK(bind(manager->socket, (const struct sockaddr *)&un,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0);
}

void manager_start(struct manager *manager, size_t max)
{
	*manager = (struct manager){ .store = { .max = max, .watch = -1 }, .late = -1 };
	snprintf(manager->address, sizeof(manager->address), "@gpuarb-test-%d", (int)getpid());
	manager_bind(manager);
}

void manager_stop(struct manager *manager)
{
	manager_store_clear(&manager->store);
	if (manager->store.watch >= 0)
		close(manager->store.watch);
	if (manager->socket >= 0)
		close(manager->socket);
	manager->socket = -1;
}

static void manager_obey(struct manager *manager, const char *text, int fd)
{
	char name[64];

	if (sscanf(text, "FDSTORE=1\nFDNAME=%63s", name) == 1 ||
	    sscanf(text, "FDSTORE=1\nFDPOLL=0\nFDNAME=%63s", name) == 1) {
		CHECK(fd >= 0);
		manager->kept++;
		if (manager->tardy && manager->store.n >= manager->store.max)
			manager->late = fd;
		else
			manager_store_add(&manager->store, name, fd, !strstr(text, "FDPOLL=0"));
	} else if (sscanf(text, "FDSTOREREMOVE=1\nFDNAME=%63s", name) == 1) {
		CHECK(fd < 0);
		manager->forgotten++;
		manager_store_remove(&manager->store, name);
	} else {
		CHECK(strcmp(text, "BARRIER=1") == 0 && fd >= 0);
		manager->barriers++;
		close(fd);
		if (manager->late >= 0)
			close(manager->late);
		manager->late = -1;
	}
}

bool manager_read(struct manager *manager)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char text[256];
	struct iovec io = { .iov_base = text, .iov_len = sizeof(text) - 1 };
	struct msghdr message = {
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	const struct cmsghdr *header;
	ssize_t n;
	int fd = -1;

	if (manager->socket < 0)
		return false;
	n = recvmsg(manager->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0) {
		CHECK(errno == EAGAIN);
		return false;
	}
	text[n] = '\0';
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	manager_obey(manager, text, fd);
	return true;
}

static void *manager_serve(void *userdata)
{
	struct manager_thread *thread = userdata;
	struct pollfd fds[2] = {
		{ .fd = thread->manager->socket, .events = POLLIN },
		{ .fd = thread->stop, .events = POLLIN },
	};

	do {
		CHECK(poll(fds, 2, -1) > 0 || errno == EINTR);
		while (manager_read(thread->manager))
			;
	} while (!fds[1].revents);
	return NULL;
}

struct store *manager_store_new(struct manager *manager, sd_event *event,
				struct diagnostics *diagnostics)
{
	struct manager_thread thread = { .manager = manager };
	struct store *store;
	pthread_t id;
	int stop[2];

	CHECK(pipe(stop) == 0);
	thread.stop = stop[0];
	CHECK(setenv("NOTIFY_SOCKET", manager->address, 1) == 0);
	CHECK(pthread_create(&id, NULL, manager_serve, &thread) == 0);
	CHECK(store_new(event, STORE_PATIENCE_MSEC, &store, diagnostics) == 0);
	close(stop[1]);
	CHECK(pthread_join(id, NULL) == 0);
	close(stop[0]);
	CHECK(unsetenv("NOTIFY_SOCKET") == 0);
	return store;
}

void manager_settle(struct manager *manager, sd_event *event)
{
	bool any;
	int r;

	do {
		any = false;
		while (manager_read(manager))
			any = true;
		manager_store_poll(&manager->store);
		while ((r = sd_event_run(event, 0)) > 0)
			any = true;
		CHECK(r >= 0);
	} while (any);
}

bool manager_has(const struct manager *manager, const char *name)
{
	for (size_t i = 0; i < manager->store.n; i++)
		if (strcmp(manager->store.list[i].name, name) == 0)
			return true;
	return false;
}

struct rlimit leave_fds(unsigned n)
{
	struct rlimit limit, few;
	int lowest = dup(0);

	CHECK(lowest >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
	close(lowest);
	few = (struct rlimit){ .rlim_cur = (rlim_t)lowest + n, .rlim_max = limit.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	return limit;
}
