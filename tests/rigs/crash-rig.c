/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "crash-rig.h"

#include "check-cond.h"

#define MISSED_MAX 3

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct stage *stage = userdata;
	const char *name, *before, *now;

	CHECK(sd_bus_message_read(m, "sss", &name, &before, &now) >= 0);
	if (!now[0])
		stage->gone = true;
	return 0;
}

sd_bus_message *crash_try(sd_bus_message *m)
{
	sd_bus_message *answer = call(m);

	if (!sd_bus_message_is_method_error(answer, SD_BUS_ERROR_NO_REPLY) &&
	    !sd_bus_message_is_method_error(answer, SD_BUS_ERROR_SERVICE_UNKNOWN))
		return answer;
	sd_bus_message_unref(answer);
	return NULL;
}

bool crash_done(sd_bus_message *m)
{
	sd_bus_message *answer = crash_try(m);

	if (answer)
		CHECK(is_fine(answer));
	return answer;
}

void ping(struct stage *stage)
{
	crash_done(call_new(stage->bus, GPUARB_PATH, "org.freedesktop.DBus.Peer", "Ping"));
}

void take_grant(struct known *known, sd_bus_message *answer)
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

static void take_record(struct known *known, const char *bytes)
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

void hear(struct known *known)
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

void await_news(struct stage *stage, struct known *known)
{
	const struct await await = AWAIT_BEGIN("news of a lease");
	enum knowledge before = known->told;

	for (hear(known); known->told == before && !stage->gone; hear(known)) {
		struct pollfd fds[] = {
			{ .fd = sd_bus_get_fd(stage->bus), .events = POLLIN },
			{ .fd = known->lease.holder, .events = POLLIN },
		};

		if (sd_bus_process(stage->bus, NULL) == 0)
			await_fds(&await, fds, 2);
	}
}

static bool is_known(const struct stage *stage, uint64_t id)
{
	return stage->known[0].lease.id == id || stage->known[1].lease.id == id;
}

static void compare_lease(const struct known *known, const struct book_lease *lease)
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
static void compare(struct stage *stage)
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

bool no_file_is_left(const struct stage *stage)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/run/leases", stage->rig.dir);
	return count_entries(path) == 0; /* .new: what was not in place yet */
}

/* When nobody holds anything nothing is left, anywhere. */
static void let_go(struct stage *stage)
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

void crash_connect(struct stage *stage)
{
	stage->bus = rig_connect(&stage->rig, 0);
	CHECK(sd_bus_match_signal(stage->bus, NULL, "org.freedesktop.DBus", NULL,
				  "org.freedesktop.DBus", "NameOwnerChanged", on_owner,
				  stage) >= 0);
	listen_in(stage->bus, &stage->heard);
}

static void set_up(struct stage *stage, const struct operation *operation)
{
	*stage = (struct stage){ .known = { { .lease.holder = -1 }, { .lease.holder = -1 } } };
	rig_new(&stage->rig);
	if (operation->configure)
		operation->configure(&stage->rig);
	rig_start_managed(&stage->rig, operation->hardware, "--store-max=64");
	crash_connect(stage);
}

unsigned crash_at_each(struct stage *stage, bool (*try_at)(void *data, unsigned at), void *data)
{
	unsigned points = 0, missed = 0;

	for (unsigned at = 1; missed < MISSED_MAX && !stage->untraceable; at++) {
		bool killed = try_at(data, at);

		points += killed;
		missed = killed ? 0 : missed + 1;
	}
	return points;
}

bool crash_arm(struct stage *stage, unsigned at)
{
	const char *why;

	rig_say(&stage->rig, "hold");
	rig_say(&stage->rig, "arm %u", at);
	why = rig_hear(&stage->rig, "armed");
	if (!*why)
		return true;
	fprintf(stderr, "cannot trace the daemon: %s\n", why);
	stage->untraceable = true;
	return false;
}

bool crash_disarm(struct stage *stage, unsigned at)
{
	rig_say(&stage->rig, "disarm");
	return strtoul(rig_hear(&stage->rig, "count"), NULL, 10) >= at;
}

bool crash_start_next(struct stage *stage, unsigned at)
{
	bool killed = false;

	if (at > 0)
		CHECK(crash_arm(stage, at));
	rig_say(&stage->rig, "go");
	rig_hear(&stage->rig, "ready");
	settle(stage->bus);
	if (at > 0)
		killed = crash_disarm(stage, at); /* maybe after it was ready */
	rig_await_ready(&stage->rig);
	stage->gone = false;
	return killed;
}

static void run(struct stage *stage, const struct operation *operation)
{
	if (!operation->run)
		return;
	operation->run(stage);
	ping(stage);
}

/* Cuts off the operation, and then the start; 0: not that. Returns how often it did. */
static unsigned try_point(struct stage *stage, const struct operation *operation, unsigned at,
			  unsigned start_at)
{
	unsigned killed = 0;

	if (operation->before)
		operation->before(stage);
	ping(stage);
	stage->heard.removed = 0;
	if (at > 0 && !crash_arm(stage, at))
		return 0;
	run(stage, operation);
	if (at == 0)
		rig_down(&stage->rig);
	if (at == 0 || crash_disarm(stage, at))
		killed = 1 + crash_start_next(stage, start_at);
	else
		rig_say(&stage->rig, "go");
	if (!operation->compares)
		compare(stage);
	if (operation->after)
		operation->after(stage);
	let_go(stage);
	return killed;
}

static unsigned try_starts(struct stage *stage, const struct operation *operation, unsigned at)
{
	unsigned start_at = 1;

	while (try_point(stage, operation, at, start_at) == 2)
		start_at++;
	return start_at - 1;
}

struct everywhere {
	struct stage stage;
	const struct operation *operation;
	unsigned starts;
};

static bool try_operation(void *data, unsigned at)
{
	struct everywhere *e = data;

	if (try_point(&e->stage, e->operation, at, 0) == 0)
		return false;
	if (getenv("GPUARB_LONG"))
		e->starts += try_starts(&e->stage, e->operation, at);
	return true;
}

bool crash_everywhere(const struct operation *operation)
{
	static struct everywhere e;
	unsigned points = 0;

	e.operation = operation;
	e.starts = 0;
	set_up(&e.stage, operation);
	if (operation->run)
		points = crash_at_each(&e.stage, try_operation, &e);
	else
		e.starts = try_starts(&e.stage, operation, 0);
	CHECK(points + e.starts > 0 || e.stage.untraceable);
	if (!e.stage.untraceable)
		printf("killed at %u points of it and %u of starts\n", points, e.starts);
	leave(e.stage.bus);
	rig_done(&e.stage.rig);
	return !e.stage.untraceable;
}
