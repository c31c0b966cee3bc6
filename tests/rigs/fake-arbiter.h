/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A process that owns gpuarbd's name and answers as a test wants it to. */

#include <sys/types.h>
#include <systemd/sd-bus.h>

struct fake_arbiter {
	pid_t pid;
	int log; /* one datagram for each call that came, while there is room: its member */
};

/* Answers a call, or does not. */
typedef int (*fake_answer_t)(sd_bus_message *call, void *userdata);

/* Returns when the name is owned. The process dies with the test. */
void fake_arbiter_start(const char *address, fake_answer_t answer, void *userdata,
			struct fake_arbiter *ret);

/* Returns when it is on the bus; it takes the name only when the next one comes there. */
void fake_arbiter_start_late(const char *address, fake_answer_t answer, void *userdata,
			     struct fake_arbiter *ret);

/* The same as the first, and whenever it dies there is another one: again() is called first,
 * unless it is NULL. */
void fake_arbiter_keep(const char *address, fake_answer_t answer, void (*again)(void *userdata),
		       void *userdata, struct fake_arbiter *ret);

void fake_arbiter_stop(struct fake_arbiter *fake);

/* Waits for the next call that came and checks that it is this one. */
void fake_arbiter_saw(const struct fake_arbiter *fake, const char *member);

/* An answer to the call; what it is sent with, which frees it. */
sd_bus_message *fake_reply(sd_bus_message *call);
int fake_send(sd_bus_message *reply);

/* Appends the entry of an a{sv}. */
void fake_append(sd_bus_message *m, const char *key, const char *type, ...);

/* Appends an aa{sv} with one partition in it, as a Radeon VII would have it. */
void fake_append_partitions(sd_bus_message *m, uint32_t cus, uint32_t kfd_gpu_id);

/* Appends the entries State, Generation and Partitions of a lease. */
void fake_append_lease(sd_bus_message *m, const char *state, uint64_t generation, uint32_t cus,
		       uint32_t kfd_gpu_id);
