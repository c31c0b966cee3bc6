/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Asks for the text of debugfs kfd/mqds, which takes root, and takes its time: the kernel prints
 * a process under a mutex that this process may hold for as long as it likes. So somebody else
 * reads it: a service behind a socket, or a child where a directory stands for debugfs.
 *
 * One probe object asks again and again, one question at a time. Nothing here waits; how long a
 * question may take is up to the caller.
 */

#include <stddef.h>

#include "util/base.h"

#define PROBE_SOCKET "/run/gpuarb-mqds.socket" /* each connection is answered with the text */
#define PROBE_MAX (64U * 1024U * 1024U)

struct probe;

/* debugfs: a directory that stands for /sys/kernel/debug, or NULL to ask at the socket.
 * -ENOMEM and the like; neither need be there. */
int probe_new(const char *debugfs, const char *socket, struct probe **ret);

/* Takes NULL. What is being read is given up; a child gets a second to die of its SIGKILL, which
 * takes it longer only while it is in the kernel. */
struct probe *probe_free(struct probe *probe);
DEFINE_CLEANUP(struct probe *, probe_free)

/* One fd for as long as the probe lives, for poll: readable when probe_read() has something
 * to do. */
int probe_fd(const struct probe *probe);

/*
 * Asks. Gives up an earlier question that has no answer yet. With a sentence in why:
 * -EOPNOTSUPP: cannot be read here, for there is no such file or nobody at the socket;
 * -EAGAIN: too many ask at the socket; -EBUSY: a child that was given up has not died yet, try
 * later; -EACCES and whatever else the kernel says.
 */
int probe_start(struct probe *probe, char *why, size_t size);

/*
 * Goes on. 0: that was all, *ret_text is for free() and has a NUL behind ret_size bytes (and maybe
 * others among them); -EAGAIN: nothing yet, or nothing was asked: wait for probe_fd(). Else it has
 * failed, with a sentence in why: -EFBIG beyond PROBE_MAX, -EIO where the reader failed, -ENOMEM
 * and whatever else the kernel says. An empty text from the socket may be that of a reader which
 * failed.
 */
int probe_read(struct probe *probe, char **ret_text, size_t *ret_size, char *why, size_t size);

/* Gives up the question, if there is one: closes the connection, or kills the child. It is reaped
 * by a later call when it is dead. */
void probe_cancel(struct probe *probe);
