/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the environment says of a store, and what it gives back. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "sys/liveness/notify.h"
#include "sys/liveness/store-internal.h"

#define SO_LEASES_END "when gpuarbd stops or restarts, leases end"

int store_take_over(struct store *store, struct diagnostics *diagnostics)
{
	const char *names = getenv("LISTEN_FDNAMES");
	int n;

	store->names = store->next_name = strdup(names ? names : "");
	if (!store->names)
		return -ENOMEM;
	n = sd_listen_fds(true);
	if (n < 0)
		diagnostics_add(diagnostics, false,
				"LISTEN_FDS, LISTEN_PID: %s: leases of an earlier gpuarbd "
				"end",
				strerror(-n));
	store->next_fd = SD_LISTEN_FDS_START;
	store->end_fd = SD_LISTEN_FDS_START + (n > 0 ? n : 0);
	return 0;
}

static unsigned read_max(void)
{
	const char *text = getenv("FDSTORE");
	unsigned long long max;
	char *end;

	if (!text || text[0] < '0' || text[0] > '9')
		return UINT_MAX;
	max = strtoull(text, &end, 10);
	return *end || max > UINT_MAX ? UINT_MAX : (unsigned)max;
}

static void explain(struct diagnostics *diagnostics, const char *address, int r)
{
	if (r == -ENOSPC)
		diagnostics_add(
			diagnostics, false,
			"the service manager keeps no file descriptors for this "
			"service (FileDescriptorStoreMax=), or has no room for more: " SO_LEASES_END);
	else if (r == -ETIMEDOUT)
		diagnostics_add(diagnostics, false,
				"the service manager does not answer (NOTIFY_SOCKET=%s), "
				"so that it keeps no file descriptors: " SO_LEASES_END,
				address);
	else
		diagnostics_add(
			diagnostics, false,
			"no file descriptors can be kept (NOTIFY_SOCKET=%s: %s): " SO_LEASES_END,
			address, strerror(-r));
}

static int probe(const struct store *store, int patience_msec)
{
	int r = notify_probe(store->socket, patience_msec);

	/* A store that has given something back is one, though it be full of that. */
	return r == -ENOSPC && store->next_fd < store->end_fd ? 0 : r;
}

int store_find_manager(struct store *store, int patience_msec, struct diagnostics *diagnostics)
{
	const char *address = getenv("NOTIFY_SOCKET");
	int r;

	if (!address) {
		diagnostics_add(
			diagnostics, false,
			"there is no service manager that keeps file descriptors: " SO_LEASES_END);
		return 0;
	}
	store->address = strdup(address);
	if (!store->address)
		return -ENOMEM;
	store->socket = notify_open(address);
	r = store->socket < 0 ? store->socket : probe(store, patience_msec);
	if (r < 0) {
		explain(diagnostics, address, r);
		if (store->socket >= 0)
			close(store->socket);
		store->socket = -1;
		return 0;
	}
	store->max = read_max();
	return 0;
}

int store_take(struct store *store, char name[static STORE_NAME_MAX], int *ret)
{
	const char *next;
	int fd;

	while (store->next_fd < store->end_fd) {
		fd = store->next_fd++;
		next = strsep(&store->next_name, ":");
		snprintf(name, STORE_NAME_MAX, "%s", next ? next : "");
		if (strcmp(name, NOTIFY_PROBE) != 0) {
			*ret = fd;
			return 1;
		}
		close(fd); /* of a process that died while it looked for a store */
	}
	return 0;
}
