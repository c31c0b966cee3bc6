/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <systemd/sd-event.h>

/* Connects to the socket of a helper without blocking. type: SOCK_STREAM or SOCK_SEQPACKET; unit: the
 * socket unit to enable, for the message. Returns a close-on-exec, non-blocking fd, or with a sentence in
 * why: -EOPNOTSUPP, no helper listens; -ENAMETOOLONG; what socket(2) and connect(2) say. */
int helper_connect(const char *path, int type, const char *unit, char *why, size_t size);

/* A connection to a helper of type SOCK_SEQPACKET that gpuarbd makes when it asks. */
struct helper {
	sd_event *event;
	char *socket;
	const char *unit;
	int fd; /* -1: not connected */
	sd_event_source *io, *timer;
	sd_event_io_handler_t on_io;
	void *userdata;
};

/* The timer is off. For helper_done() also on failure. */
int helper_init(struct helper *helper, sd_event *event, const char *socket, const char *unit,
		sd_event_io_handler_t on_io, sd_event_time_handler_t on_timer, void *userdata);
void helper_done(struct helper *helper);

/* As helper_connect(); on_io is called when the helper answers or ends. Returns 0. */
int helper_open(struct helper *helper, char *why, size_t size);
void helper_close(struct helper *helper);
