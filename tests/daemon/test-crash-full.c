/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Random histories on a runtime directory that is full, fills and empties, with a gpuarbd that is killed
 * between two calls, or at a random visible step of a call. Clients remember what they were told: no CU is in
 * two masks, no granted lease is lost, and no generation goes backwards.
 */

#include "check.h"
#include "crash-rig.h"
#include "lend-live.h"
#include "seed.h"
#include "small-fs.h"

NEEDS(daemon_missing);

#define HOLDERS 10U
#define WORDS 2U /* of the mask of the GPU */
#define PAGES_MAX 4U

enum kind { FIXED, BORROWER, LENDER };

/* A lease as its client knows it. */
struct holder {
	struct live_lease lease;
	enum kind kind;
	bool used;            /* the slot */
	bool granted;         /* told so, and not deactivated since */
	uint64_t generation;  /* the latest that the client saw */
	uint64_t heard;       /* the latest of a record */
	uint32_t mask[WORDS]; /* the latest */
	uint32_t
		occupied[WORDS]; /* that the client uses: masks until a later one is acknowledged */
};

struct history {
	struct stage stage; /* without its leases */
	sd_bus *crowd;
	struct holder holders[HOLDERS];
	bool full;
	unsigned restarts, calls, unsaved, kills;
	uint64_t random;
};

static unsigned pick(struct history *h, unsigned n)
{
	h->random = h->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(h->random >> 33) % n;
}

static sd_bus *bus_of(const struct history *h, const struct holder *holder)
{
	return holder->kind == BORROWER ? h->crowd : h->stage.bus;
}

/* ---- what clients learn ----------------------------------------------------------------------- */

static void use(struct holder *holder, const uint32_t *mask)
{
	for (unsigned i = 0; i < WORDS; i++) {
		holder->mask[i] = mask[i];
		holder->occupied[i] |= holder->granted ? mask[i] : 0;
	}
}

static void take_news(struct holder *holder, const struct live_record *record)
{
	CHECK(record->record.state != GPUARB_RECORD_ENDING);
	CHECK(record->record.generation >= holder->generation);
	/* Activation ends a grant for nobody; only its own client deactivates it. */
	CHECK(!holder->granted || record->record.state == GPUARB_RECORD_GRANTED);
	if (record->record.state == GPUARB_RECORD_GRANTED)
		holder->granted = true;
	holder->generation = holder->heard = record->record.generation;
	use(holder, record->partitions[0].cu_mask);
}

static void hear_all(struct history *h)
{
	for (unsigned i = 0; i < HOLDERS; i++) {
		struct holder *holder = &h->holders[i];
		struct pollfd ready = { .fd = holder->lease.holder, .events = POLLIN };
		struct live_record record;

		while (holder->used && poll(&ready, 1, 0) > 0) {
			CHECK(next_record(holder->lease.holder, &record));
			take_news(holder, &record);
		}
	}
}

static void check_apart(const struct history *h)
{
	for (unsigned i = 0; i < HOLDERS; i++)
		for (unsigned j = 0; j < i; j++)
			for (unsigned w = 0; w < WORDS; w++)
				CHECK(!(h->holders[i].occupied[w] & h->holders[j].occupied[w]));
}

/* What the bus shows is no older than what clients heard, and records no older than what it showed. */
static void check_shown(struct history *h)
{
	static struct book book;

	book_read(h->stage.bus, &book);
	hear_all(h);
	for (unsigned i = 0; i < HOLDERS; i++) {
		struct holder *holder = &h->holders[i];
		const struct book_lease *shown = book_find(&book, holder->lease.id);

		if (!holder->used)
			continue;
		CHECK(shown && shown->n_parts == 1);
		CHECK(!holder->granted || strcmp(shown->state, "granted") == 0);
		if (shown->generation > holder->generation)
			holder->generation = shown->generation;
	}
	check_apart(h);
}

/* ---- calls -------------------------------------------------------------------------------------- */

/* Whether it was done. NULL: gpuarbd was killed; the outcome is unknown. */
static bool done(struct history *h, sd_bus_message *answer)
{
	bool error = answer && sd_bus_message_is_method_error(answer, NULL);

	h->calls++;
	if (error && sd_bus_message_is_method_error(answer, GPUARB_ERROR_NOT_SAVED))
		h->unsaved++;
	if (error || !answer) {
		sd_bus_message_unref(answer);
		return false;
	}
	return true;
}

static sd_bus_message *ask_any(struct history *h, enum kind kind)
{
	if (kind == BORROWER)
		return ask_to_borrow(h->crowd, LEND_LEAST, LEND_CUS, 1);
	return ask_for(h->stage.bus, "cus=%u queues=1; start-inactive=%d wait-usec=1",
		       4U << pick(h, 2), kind == LENDER);
}

static void reserve_it(struct history *h, struct holder *holder)
{
	enum kind kind = (enum kind)pick(h, 3);
	sd_bus_message *answer = crash_try(ask_any(h, kind));
	const char *path, *state;
	struct book_part part;
	unsigned n;
	int fd;

	if (!done(h, answer))
		return;
	CHECK(sd_bus_message_read(answer, "ohs", &path, &fd, &state) >= 0);
	*holder = (struct holder){ .kind = kind, .used = true, .generation = 1, .heard = 1 };
	snprintf(holder->lease.path, sizeof(holder->lease.path), "%s", path);
	CHECK(sscanf(path, GPUARB_PATH_LEASE "/%" SCNu64, &holder->lease.id) == 1);
	holder->lease.holder = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	CHECK(holder->lease.holder >= 0);
	holder->granted = strcmp(state, "granted") == 0;
	if (strcmp(state, "waiting") == 0) { /* it is not worth waiting for */
		close(holder->lease.holder);
		*holder = (struct holder){ .lease.holder = -1 };
		sd_bus_message_unref(answer);
		return;
	}
	CHECK(holder->granted || kind == LENDER);
	book_take_parts(answer, &part, &n);
	sd_bus_message_unref(answer);
	CHECK(n == 1);
	use(holder, part.mask);
}

/* The client has its queues in the latest mask alone, and acknowledges that. */
static void follow_it(struct history *h, struct holder *holder)
{
	hear_all(h);
	if (holder->granted)
		memcpy(holder->occupied, holder->mask, sizeof(holder->mask));
	(void)done(h,
		   crash_try(with(call_lease(bus_of(h, holder), holder->lease.path, "Acknowledge"),
				  "t", holder->heard)));
	hear_all(h);
}

static void activate_it(struct history *h, struct holder *holder, const char *method)
{
	bool deactivate = strcmp(method, "Deactivate") == 0, was_granted = holder->granted;

	if (holder->kind != LENDER)
		return;
	if (deactivate) { /* it has no queues any more, whatever the answer is */
		memset(holder->occupied, 0, sizeof(holder->occupied));
		holder->granted = false;
	}
	if (!done(h, crash_try(call_lease(h->stage.bus, holder->lease.path, method))) &&
	    deactivate && was_granted)
		holder->granted = false; /* until a record says so again */
}

static void release_it(struct history *h, struct holder *holder)
{
	(void)done(h, crash_try(release(bus_of(h, holder), holder->lease.path)));
	close(holder->lease.holder);
	*holder = (struct holder){ .lease.holder = -1 };
}

static void resize_it(struct history *h, struct holder *holder)
{
	if (holder->kind == FIXED)
		(void)done(h, crash_try(resize(bus_of(h, holder), holder->lease.path,
					       4U << pick(h, 2))));
}

static void play_call(struct history *h)
{
	struct holder *holder = &h->holders[pick(h, HOLDERS)];

	if (!holder->used) {
		reserve_it(h, holder);
		return;
	}
	switch (pick(h, 8)) {
	case 0: release_it(h, holder); break;
	case 1: resize_it(h, holder); break;
	case 2:
	case 3: activate_it(h, holder, "Activate"); break;
	case 4: activate_it(h, holder, "Deactivate"); break;
	default: follow_it(h, holder);
	}
}

/* ---- the file system, and the crash ------------------------------------------------------------- */

static void change_room(struct history *h)
{
	if (h->full)
		small_fs_empty(&h->stage.rig);
	h->full = pick(h, 3) > 0;
	if (h->full)
		small_fs_fill(&h->stage.rig, pick(h, PAGES_MAX));
}

/* Kills gpuarbd at the step number at of a call, if it has so many; else after the call. */
static void crash(struct history *h)
{
	unsigned at = 1 + pick(h, 12);

	h->restarts++;
	if (pick(h, 2) == 0 && !h->stage.untraceable && crash_arm(&h->stage, at)) {
		play_call(h);
		ping(&h->stage);
		if (crash_disarm(&h->stage, at)) {
			h->kills++;
			if (pick(h, 2) == 0)
				change_room(h);
			crash_start_next(&h->stage, 0);
			return;
		}
		rig_say(&h->stage.rig, "go");
	}
	rig_down(&h->stage.rig);
	if (pick(h, 2) == 0)
		change_room(h);
	rig_up(&h->stage.rig);
	rig_await_ready(&h->stage.rig);
	h->stage.gone = false;
}

/* With room all is as it was told, and everybody follows: then everything can be returned. */
static void finish(struct history *h)
{
	static struct book book;

	if (h->full)
		small_fs_empty(&h->stage.rig);
	h->full = false;
	for (unsigned i = 0; i < HOLDERS; i++)
		if (h->holders[i].used)
			follow_it(h, &h->holders[i]);
	check_shown(h);
	for (unsigned i = 0; i < HOLDERS; i++)
		if (h->holders[i].used)
			release_it(h, &h->holders[i]);
	do
		book_read(h->stage.bus, &book);
	while (!book_is_empty(&book));
	CHECK(no_file_is_left(&h->stage));
	rig_await_stored(&h->stage.rig, 0);
}

static void begin(struct history *h)
{
	struct stage *s = &h->stage;

	small_fs_mount(&s->rig, "size=96k,mode=755");
	lend_configure(
		&s->rig,
		"activate-grace = 20ms\nenforce-delay = 20ms\noversubscribe = besteffort\n" GROW_SOON,
		"report");
	rig_start_managed(&s->rig, LEND_GPU, "--store-max=64");
	crash_connect(s);
	h->crowd = rig_connect(&s->rig, STRANGER);
	for (unsigned i = 0; i < HOLDERS; i++)
		h->holders[i].lease.holder = -1;
}

static void play_history(void)
{
	unsigned restarts = check_rounds(25, 1000);
	static struct history h;

	h.random = SEED_OF_RUN("CRASH_SEED");
	fflush(stdout);
	begin(&h);
	while (h.restarts < restarts) {
		change_room(&h);
		for (unsigned i = pick(&h, 12); i > 0; i--) {
			play_call(&h);
			check_shown(&h);
		}
		crash(&h);
		check_shown(&h);
	}
	finish(&h);
	printf("%u restarts, %u of them at a step of a call; %u calls, %u not saved\n", h.restarts,
	       h.kills, h.calls, h.unsaved);
	fflush(stdout);
	small_fs_done(&h.stage.rig);
}

TEST(nothing_is_lost_or_granted_twice_on_a_full_file_system)
{
	SMALL_FS(play_history);
}
