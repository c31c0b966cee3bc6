/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager-store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check-cond.h"

#define FIRST 3 /* SD_LISTEN_FDS_START */

static bool same_file(int a, int b)
{
	pid_t pid = getpid();

	return syscall(SYS_kcmp, pid, pid, KCMP_FILE, a, b) == 0;
}

/* kcmp(2) is asked where it can be the same, or to store a thousand descriptors takes seconds. */
static bool has(const struct manager_store *store, int fd, const struct stat *file)
{
	for (size_t i = 0; i < store->n; i++)
		if (store->list[i].device == file->st_dev && store->list[i].inode == file->st_ino &&
		    same_file(store->list[i].fd, fd))
			return true;
	return false;
}

/* Hang-up and error are told unasked. What cannot be polled (EPERM) never hangs up. */
static void watch(struct manager_store *store, int fd)
{
	struct epoll_event event = { .data.fd = fd };

	if (store->watch < 0)
		store->watch = epoll_create1(EPOLL_CLOEXEC);
	CHECK(store->watch >= 0);
	CHECK(epoll_ctl(store->watch, EPOLL_CTL_ADD, fd, &event) == 0 || errno == EPERM);
}

void manager_store_add(struct manager_store *store, const char *name, int fd, bool poll)
{
	struct stored *stored;
	struct stat file;

	CHECK(fstat(fd, &file) == 0);
	if (store->n >= store->max || has(store, fd, &file)) {
		close(fd);
		return;
	}
	store->list = realloc(store->list, (store->n + 1) * sizeof(*store->list));
	CHECK(store->list);
	stored = &store->list[store->n++];
	*stored = (struct stored){ .fd = fd, .device = file.st_dev, .inode = file.st_ino };
	snprintf(stored->name, sizeof(stored->name), "%s", name);
	if (poll)
		watch(store, fd);
}

/* epoll goes by the file, which others may have open, too. */
static void drop(struct manager_store *store, size_t i)
{
	if (store->watch >= 0)
		epoll_ctl(store->watch, EPOLL_CTL_DEL, store->list[i].fd, NULL);
	close(store->list[i].fd);
	memmove(&store->list[i], &store->list[i + 1], (--store->n - i) * sizeof(*store->list));
}

void manager_store_remove(struct manager_store *store, const char *name)
{
	for (size_t i = store->n; i-- > 0;)
		if (strcmp(store->list[i].name, name) == 0)
			drop(store, i);
}

void manager_store_poll(struct manager_store *store)
{
	struct epoll_event events[64];
	int n;

	while (store->watch >= 0 && (n = epoll_wait(store->watch, events, 64, 0)) > 0)
		for (int e = 0; e < n; e++)
			for (size_t i = store->n; i-- > 0;)
				if (store->list[i].fd == events[e].data.fd)
					drop(store, i);
}

void manager_store_clear(struct manager_store *store)
{
	while (store->n > 0)
		drop(store, store->n - 1);
	free(store->list);
	store->list = NULL;
}

static char *join_names(const struct manager_store *store)
{
	size_t size = 0;
	char *names = NULL;
	FILE *f = open_memstream(&names, &size);

	if (!f)
		return NULL;
	for (size_t i = store->n; i-- > 0;)
		fprintf(f, "%s%s", store->list[i].name, i > 0 ? ":" : "");
	fclose(f);
	return names;
}

static int set_number(const char *name, long number)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", number);
	return setenv(name, text, 1);
}

/* First out of the way of each other, then where they belong. */
int manager_store_pass(const struct manager_store *store, rlim_t limit)
{
	int *away = calloc(store->n + 1, sizeof(*away)), n = (int)store->n;
	char *names = join_names(store);
	int r = 0;

	if (!away || !names)
		r = -ENOMEM;
	if (r == 0 && (rlim_t)(FIRST + n) > limit)
		r = -EMFILE;
	for (int i = 0; r == 0 && i < n; i++) {
		away[i] = fcntl(store->list[n - 1 - i].fd, F_DUPFD_CLOEXEC, FIRST + n);
		r = away[i] < 0 ? -errno : 0;
	}
	for (int i = 0; r == 0 && i < n; i++)
		r = dup2(away[i], FIRST + i) < 0 ? -errno : 0;
	if (r == 0 && n > 0 &&
	    (set_number("LISTEN_PID", getpid()) < 0 || set_number("LISTEN_FDS", n) < 0 ||
	     setenv("LISTEN_FDNAMES", names, 1) < 0))
		r = -errno;
	free(away);
	free(names);
	return r;
}
