/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One packet of a client, with what came beside it. */

#include <stdbool.h>
#include <stddef.h>

#include "helpers/enforce-protocol.h"

struct packet {
	char text[ENFORCE_TEXT_MAX];
	size_t length;
	bool cut;       /* it was longer than that */
	int fd;         /* the first; -1: none */
	unsigned n_fds; /* as many as are told apart: 0, 1, more */
};

/* 1: there is one, for packet_done(); 0: the client sends no more (or an empty packet, which
 * nobody does); -EAGAIN: not now; or what the kernel says. */
int packet_receive(int socket, struct packet *ret);
void packet_done(struct packet *packet);
