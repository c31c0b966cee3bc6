/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Clients whose daemon may be killed at any moment: what they were told, and the comparison
 * of that with the ledger of the next one. */

#include <poll.h>

#include "book.h"
#include "dbus/record.h"
#include "entries.h"

enum knowledge { NOTHING, WAITING, GRANTED, GONE };

/* What a client knows of a lease. */
struct known {
	struct live_lease lease; /* holder -1: none, or closed */
	enum knowledge told;
	uint32_t cause;
	uint64_t generation;
	struct book_part parts[BOOK_GPUS];
	unsigned n_parts;
	bool expires, bound, resized, acknowledged;
};

struct stage {
	struct rig rig;
	sd_bus *bus;
	bool gone; /* the daemon */
	struct told heard;
	bool drained;
	pid_t process;
	int pidfd;
	struct known known[2];
	struct book book;
};

/* ---- clients that may lose their daemon ------------------------------------------------ */

static inline int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct stage *stage = userdata;
	const char *name, *before, *now;

	(void)error;
	CHECK(sd_bus_message_read(m, "sss", &name, &before, &now) >= 0);
	if (!now[0])
		stage->gone = true;
	return 0;
}

/* Sends a call, which it frees. The answer; NULL: the daemon has gone. */
static inline sd_bus_message *try(sd_bus_message *m)
{
	sd_bus_message *answer = call(m);

	if (!sd_bus_message_is_method_error(answer, SD_BUS_ERROR_NO_REPLY) &&
	    !sd_bus_message_is_method_error(answer, SD_BUS_ERROR_SERVICE_UNKNOWN))
		return answer;
	sd_bus_message_unref(answer);
	return NULL;
}

/* Whether it was told that this was done. */
static inline bool done(sd_bus_message *m)
{
	sd_bus_message *answer = try(m);

	if (answer)
		CHECK(is_fine(answer));
	return answer;
}

/* What a daemon does after an answer is done before the next one. */
static inline void ping(struct stage *stage)
{
	done(call_new(stage->bus, GPUARB_PATH, "org.freedesktop.DBus.Peer", "Ping"));
}

static inline void take_grant(struct known *known, sd_bus_message *answer)
{
	const char *path, *state;
	int holder;

	if (!answer)
		return;
	if (sd_bus_message_is_method_error(answer, NULL))
		fprintf(stderr, "%s\n", sd_bus_message_get_error(answer)->message);
	CHECK(sd_bus_message_read(answer, "ohs", &path, &holder, &state) >= 0);
	snprintf(known->lease.path, sizeof(known->lease.path), "%s", path);
	CHECK(sscanf(path, GPUARB_PATH_LEASE "/%" SCNu64, &known->lease.id) == 1);
	if (known->lease.holder >= 0)
		close(known->lease.holder);
	known->lease.holder = fcntl(holder, F_DUPFD_CLOEXEC, 3);
	CHECK(known->lease.holder >= 0);
	known->told = strcmp(state, "waiting") == 0 ? WAITING : GRANTED;
	known->generation = 1;
	book_take_parts(answer, known->parts, &known->n_parts);
	sd_bus_message_unref(answer);
}

static inline void take_record(struct known *known, const char *bytes)
{
	struct gpuarb_record record;
	struct gpuarb_record_partition part;

	memcpy(&record, bytes, sizeof(record));
	known->cause = record.cause;
	known->told = record.state == GPUARB_RECORD_ENDING    ? GONE
		      : record.state == GPUARB_RECORD_WAITING ? WAITING
							      : GRANTED;
	known->generation = record.generation;
	known->n_parts = record.n_partitions;
	for (unsigned i = 0; i < record.n_partitions; i++) {
		memcpy(&part, bytes + record.header_size + i * record.partition_size, sizeof(part));
		memset(&known->parts[i], 0, sizeof(known->parts[i]));
		snprintf(known->parts[i].gpu, sizeof(known->parts[i].gpu), "%s", part.gpu);
		memcpy(known->parts[i].mask, part.cu_mask, part.n_words * sizeof(uint32_t));
		known->parts[i].cus = part.cus;
		known->parts[i].queues = part.queues;
	}
}

/* All records that are there. */
static inline void hear(struct known *known)
{
	char bytes[8192];
	ssize_t n;

	if (known->lease.holder < 0)
		return;
	while ((n = recv(known->lease.holder, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		take_record(known, bytes);
	if (n == 0)
		known->told = GONE;
}

/* Until something else is told, or the daemon is gone. */
static inline void await_news(struct stage *stage, struct known *known)
{
	enum knowledge before = known->told;

	for (hear(known); known->told == before && !stage->gone; hear(known)) {
		struct pollfd fds[] = {
			{ .fd = sd_bus_get_fd(stage->bus), .events = POLLIN },
			{ .fd = known->lease.holder, .events = POLLIN },
		};

		if (sd_bus_process(stage->bus, NULL) == 0)
			CHECK(poll(fds, 2, 60000) > 0);
	}
}

/* ---- the ledger, and what was told -------------------------------------------------------- */

static inline bool is_known(const struct stage *stage, uint64_t id)
{
	return stage->known[0].lease.id == id || stage->known[1].lease.id == id;
}

static inline void compare_lease(const struct known *known, const struct book_lease *lease)
{
	if (known->told == GONE) {
		CHECK(!lease || strcmp(lease->state, "ending") == 0 || known->expires);
		CHECK(!lease || strcmp(lease->state, "granted") != 0);
		return;
	}
	if (known->expires && !lease)
		return;
	CHECK(lease);
	if (known->told == WAITING) {
		CHECK(strcmp(lease->state, "waiting") == 0 || !known->expires);
		return;
	}
	CHECK(strcmp(lease->state, "granted") == 0);
	CHECK(known->resized ? lease->generation >= known->generation
			     : lease->generation == known->generation);
	if (lease->generation == known->generation)
		CHECK(book_same_parts(lease, known->parts, known->n_parts));
}

/* What nobody was told of has no holder, and goes by itself. */
static inline void compare(struct stage *stage)
{
	bool strange, settled = true;

	do {
		for (unsigned i = 0; i < ARRAY_SIZE(stage->known); i++)
			hear(&stage->known[i]);
		book_read(stage->bus, &stage->book);
		strange = false;
		for (unsigned i = 0; i < stage->book.n_leases; i++)
			strange = strange || !is_known(stage, stage->book.leases[i].id);
	} while (strange);
	for (unsigned i = 0; i < ARRAY_SIZE(stage->known); i++) {
		const struct known *known = &stage->known[i];

		settled = settled && (!known->resized || known->acknowledged);
		if (known->told != NOTHING)
			compare_lease(known, book_find(&stage->book, known->lease.id));
	}
	book_check(&stage->book, settled);
}

static inline bool no_file_is_left(const struct stage *stage)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/run/leases", stage->rig.dir);
	return count_entries(path) == 0; /* .new: what was not in place yet */
}

/* When nobody holds anything nothing is left, anywhere. */
static inline void let_go(struct stage *stage)
{
	for (unsigned i = 0; i < ARRAY_SIZE(stage->known); i++) {
		if (stage->known[i].lease.holder >= 0)
			close(stage->known[i].lease.holder);
		stage->known[i] = (struct known){ .lease.holder = -1 };
	}
	do
		book_read(stage->bus, &stage->book);
	while (!book_is_empty(&stage->book));
	CHECK(no_file_is_left(stage));
	rig_await_stored(&stage->rig, 0);
}
