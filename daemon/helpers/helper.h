/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* A connection to a helper that gpuarbd makes when it asks, and the time that an answer has. */
struct helper {
	sd_event *event;
	char *socket;
	int type;         /* SOCK_STREAM or SOCK_SEQPACKET */
	const char *name; /* of the socket unit to enable, without .socket */
	int fd;           /* -1: not connected */
	sd_event_source *io, *timer;
	sd_event_io_handler_t on_io;
	void *userdata;
};

/* The timer is off. For helper_done() also on failure. */
int helper_init(struct helper *helper, sd_event *event, int type, const char *socket,
		const char *name, sd_event_io_handler_t on_io, sd_event_time_handler_t on_timer,
		void *userdata);
void helper_done(struct helper *helper);

/* Connects without blocking. Returns a close-on-exec, non-blocking fd, or with a sentence in why: -EOPNOTSUPP, no
 * helper listens; -ENAMETOOLONG; what socket(2) and connect(2) say. */
int helper_connect(const struct helper *helper, char *why, size_t size);

/* The same; on_io is called when the helper answers or ends. Returns 0. */
int helper_open(struct helper *helper, char *why, size_t size);
int helper_watch(struct helper *helper, int fd, char *why,
		 size_t size); /* with this connection, which it takes in any case */
void helper_close(struct helper *helper);

/* on_timer is called after this time; 0: it is not. */
int helper_await(struct helper *helper, uint64_t usec);
