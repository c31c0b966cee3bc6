/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads files of debugfs without blocking: the hardware queue descriptors (MQDs) and the run lists
 * behind them; the queue slots (HQDs) and the descriptors behind them; or the user queues of DRM clients.
 *
 * debugfs belongs to root, and the kernel prints each process under a mutex that the process may hold for
 * any time. So another process reads the file: the service behind the socket, or a child that reads it
 * where --debugfs names a directory. A probe makes one request at a time; the caller limits its time.
 */

#include <stddef.h>

#include "util/base.h"

#define PROBE_MAX (1024U * 1024U * 1024U) /* of a text */
#define PROBE_PIECE_MAX (1024U * 1024U)

struct probe;

struct probe_files {
	const char *first;  /* below debugfs */
	const char *second; /* read behind the first, if it exists; NULL: first is a directory … */
	const char *script; /* … in which this is run */
	int status_max;     /* the highest exit status that means success */
	const char *socket; /* of the service that sends both to each connection */
	const char *unit;   /* the socket unit of that service */
};

/* kfd/mqds and kfd/rls. */
extern const struct probe_files probe_mqds;

/* kfd/hqds and kfd/mqds. To print kfd/hqds the driver selects each slot in turn and reads its registers,
 * which can wake an idle GPU: only on demand. */
extern const struct probe_files probe_hqds;

/* What hw/drm-queues.h parses. */
extern const struct probe_files probe_userqs;

/* debugfs: the directory to read instead of /sys/kernel/debug, or NULL to use the socket. Neither needs
 * to exist yet. -ENOMEM, or what epoll_create1(2) says. */
int probe_new(const char *debugfs, const struct probe_files *files, struct probe **ret);

/* Takes NULL. Cancels the request and waits up to a second for a killed child: it takes longer to die
 * only while it is blocked in the kernel. */
struct probe *probe_free(struct probe *probe);
DEFINE_CLEANUP(struct probe *, probe_free)

/* For poll(2), the same fd for the life of the probe: readable when probe_read() has something to do. */
int probe_fd(const struct probe *probe);

/*
 * Starts a request, and cancels an earlier one that is not finished. With a sentence in why:
 * -EOPNOTSUPP, the file does not exist or no service listens; -EAGAIN, the socket has too many
 * connections; -EBUSY, a cancelled child still runs, try again later; -EACCES, or what else the kernel
 * says.
 */
int probe_start(struct probe *probe, char *why, size_t size);

/*
 * Continues the request. Returns 1 with the next piece of the text, whole lines but for the last line of a
 * text that ends within one; it is valid until the next call of a function of this probe. 0: the text has
 * ended. -EAGAIN: no more can be read now, or there is no request: wait for probe_fd(). Other errors end
 * the request, with a sentence in why: -EFBIG beyond PROBE_MAX, or a line is longer than a piece; -EIO,
 * the child failed; -ENOMEM, or what else the kernel says. A service that fails sends an empty text.
 */
int probe_read(struct probe *probe, const char **ret_text, size_t *ret_size, char *why,
	       size_t size);

/* Cancels the request, if there is one: closes the connection, or kills the child. A later call reaps
 * the child. */
void probe_cancel(struct probe *probe);
