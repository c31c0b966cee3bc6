/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads files of debugfs without blocking: the hardware queue descriptors (MQDs) and the run lists
 * behind them; the queue slots (HQDs) and the descriptors behind them; or the user queues of DRM clients.
 *
 * debugfs belongs to root, and the kernel prints each process under a mutex that the process may hold for
 * any time. So a script in another process reads the files: the service behind the socket, or one that
 * gpuarbd starts where --debugfs names a directory. The last line of a text is "." if the script has read all of
 * it, and "!" if not. A service does not start without the file that it needs: then no text comes. A probe makes
 * one request at a time.
 */

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "util/base.h"

#define PROBE_MAX (1024U * 1024U * 1024U) /* of a text */
#define PROBE_PIECE_MAX (1024U * 1024U)
#define PROBE_USEC UINT64_C(5000000) /* how long it usually may take */

struct probe;

#define PROBE_SCRIPT_SECONDS "10" /* as RuntimeMaxSec= of the services */

struct probe_files {
	const char *needs;  /* there is nothing to read without it */
	const char *script; /* run in debugfs, prints the text */
	const char *socket; /* of the service that sends the text to each connection */
	const char *name;   /* of that service */
};

/* kfd/mqds and kfd/rls. */
extern const struct probe_files probe_mqds;

/* kfd/hqds and kfd/mqds. To print kfd/hqds the driver selects each slot in turn and reads its registers,
 * which can wake an idle GPU: only on demand. */
extern const struct probe_files probe_hqds;

/* What hw/drm-queues.h parses. */
extern const struct probe_files probe_userqs;

/* Takes the next piece of the text, whole lines without the mark. A negative errno ends the request, with a
 * sentence in why. May not cancel it. */
typedef int probe_piece_t(void *userdata, const char *text, size_t size, char *why,
			  size_t why_size);

/*
 * The request has ended. 0: with the text. Else with a sentence in why: what the other function returned;
 * -ETIMEDOUT; -EFBIG, beyond PROBE_MAX, or a line is longer than a piece; -EOPNOTSUPP, no text came; -EIO, the
 * text has no mark, or one of a failure; -ENOMEM, or what else the kernel says. May start the next one.
 */
typedef void probe_done_t(void *userdata, int r, const char *why);

/* debugfs: the directory to read instead of /sys/kernel/debug, or NULL to use the socket. Neither needs
 * to exist yet. files have to stay. patience_usec: how long a text may take. Both functions are called from the
 * event loop. -ENOMEM. */
int probe_new(sd_event *event, const char *debugfs, const struct probe_files *files,
	      uint64_t patience_usec, probe_piece_t *piece, probe_done_t *done, void *userdata,
	      struct probe **ret);

/* Takes NULL. Cancels the request. */
struct probe *probe_free(struct probe *probe);
DEFINE_CLEANUP(struct probe *, probe_free)

/*
 * Starts a request, and cancels an earlier one that is not finished. With a sentence in why:
 * -EOPNOTSUPP, the file does not exist or no service listens; -EAGAIN, the socket has too many
 * connections; -EACCES, or what else the kernel says.
 */
int probe_start(struct probe *probe, char *why, size_t size);

/* The rest of the text has that time again. */
void probe_go_on(struct probe *probe);

/* Cancels the request, if there is one: what reads the files cannot write any more. */
void probe_cancel(struct probe *probe);
