/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A filter on the command, and all that it starts, which hands SMI_EVENTS over to a listener. */

#include <stdbool.h>
#include <stdint.h>

/* True if this kernel can do it (Linux 5.19). */
bool seccomp_there(void);

/* Puts the filter on this process, and what it starts, and sends the listener. -EBUSY: there is one already. */
int seccomp_install(int socket_fd);
int seccomp_receive(int socket_fd, int *ret_listener_fd);

/* Puts a descriptor of this process into the one whose call that is: its number there. */
int seccomp_give(int listener_fd, uint64_t id, int fd);

/* Whoever asked was not killed meanwhile: what /proc says of the thread is of the same one. */
bool seccomp_waits(int listener_fd, uint64_t id);

/* 0 or a negative errno for the caller, or flags to go on by itself. Whoever was killed wants no answer. */
int seccomp_reply(int listener_fd, uint64_t id, int result, uint32_t flags);
