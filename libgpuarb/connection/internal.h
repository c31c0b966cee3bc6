/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The library's own objects. What needs libdbus is in call.h. */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuarb/gpuarb.h"

#define GPUARB_EXPORT __attribute__((visibility("default")))

#define _cleanup_(f) __attribute__((cleanup(f)))

/* After the prototype of a free function that takes NULL: makes NAMEp for _cleanup_(). */
#define DEFINE_CLEANUP(type, func)          \
	static inline void func##p(type *p) \
	{                                   \
		if (*p)                     \
			func(*p);           \
	}

/* Gives the pointer away: the variable is NULL afterwards. */
#define TAKE_PTR(p)                               \
	({                                        \
		__typeof__(p) *take_p_ = &(p);    \
		__typeof__(p) take_v_ = *take_p_; \
		*take_p_ = NULL;                  \
		take_v_;                          \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* How long the daemon may take for an answer. It answers at once; one that is stopped, or
 * an fd store that hangs, must not hold its clients for ever. */
#define ANSWER_USEC (25U * UINT64_C(1000000))

/* How long a call waits for a daemon or a bus that went away, at most ANSWER_USEC. */
#define RETURN_USEC (10U * UINT64_C(1000000))

/* How much longer than its deadline a lease may wait: it is the daemon who ends it, and
 * knows why. */
#define GRACE_USEC (5U * UINT64_C(1000000))

DEFINE_CLEANUP(struct gpuarb *, gpuarb_close)
DEFINE_CLEANUP(struct gpuarb_lease *, gpuarb_lease_close)
DEFINE_CLEANUP(struct gpuarb_view *, gpuarb_view_free)

void free_charp(char **p);

/* Closes *fd unless it is negative, and makes it -1. */
void close_fd(int *fd);

/* ---- memory that goes together: what one answer of the daemon was read into ---------- */

struct arena {
	struct arena_block *blocks;
};

/* Room for n objects of size bytes, zeroed; never NULL for n = 0. NULL: no memory. */
void *arena_alloc(struct arena *arena, size_t n, size_t size);
char *arena_string(struct arena *arena, const char *string);
void *arena_copy(struct arena *arena, const void *data, size_t n, size_t size);
void arena_clear(struct arena *arena); /* frees all; the pool is empty afterwards */

/* ---- waiting ------------------------------------------------------------------------- */

uint64_t now_usec(void);                /* CLOCK_MONOTONIC */
uint64_t deadline_after(uint64_t usec); /* GPUARB_FOREVER stays for ever */

struct pollfd;

/* poll() until a moment. Returns how many are ready, -ETIMEDOUT, -EINTR. */
int poll_until(struct pollfd *fds, size_t n, uint64_t deadline);

/* ---- the handle ---------------------------------------------------------------------- */

struct connection;

struct gpuarb {
	unsigned references; /* the program's own, and one for each lease */
	char *address;
	uint64_t answer_usec, return_usec;
	struct connection *connection; /* NULL: the next call makes one */
	bool interactive;
	bool stop;       /* the watch that goes on is to end */
	const int *wake; /* an fd; readable: who waits here gives up with -ECANCELED. NULL: none */
	bool known;      /* the daemon was here: one that is not is waited for */
	bool repeated;   /* the last call was cut off before and may have been carried out then */

	/* The last failure, and what the last answer listed. */
	char *sentence, *error_name;
	bool no_memory;
	struct arena answer;
	const struct gpuarb_refusal *refusals;
	size_t n_refusals;
	const struct gpuarb_partition *plan;
	size_t n_plan;
};

/* A handle that is not connected, for the bus at that address; NULL: as gpuarb_open(). */
int gpuarb_new(const char *address, struct gpuarb **ret);

struct gpuarb *gpuarb_reference(struct gpuarb *gpuarb);
void gpuarb_unreference(struct gpuarb *gpuarb);

/* Forgets the last failure and answer: the first thing that a public function does. */
void begin(struct gpuarb *gpuarb);

/* What public functions return by: without memory there may be no sentence yet. */
int done(struct gpuarb *gpuarb, int r);

/* Notes the sentence and returns error, or -ENOMEM where it found no room. */
int fail(struct gpuarb *gpuarb, int error, const char *format, ...) PRINTF_LIKE(3, 4);

/* The same with the D-Bus error name that stands behind it. */
int fail_as(struct gpuarb *gpuarb, const char *name, const char *format, ...) PRINTF_LIKE(3, 4);

int interrupted(struct gpuarb *gpuarb); /* -EINTR */

/* errno for a D-Bus error name; -EPROTO for one that is unknown. */
int error_from_name(const char *name);

/* ---- a lease ------------------------------------------------------------------------- */

/* What this library knows of the masks of queues (book.c). */
struct mask_cache {
	struct mask_cache_entry *entries; /* by the queues' ids */
	size_t n;
};

void mask_cache_clear(struct mask_cache *mask_cache);

struct gpuarb_lease {
	struct gpuarb *gpuarb;
	int fd;         /* the holder */
	int process_fd; /* to be bound to it once it is granted; -1: none */
	void *record;   /* room for one datagram */

	struct gpuarb_lease_info info;
	struct arena arena; /* what info points to */
	uint32_t cause;     /* of its end: enum gpuarb_record_cause */

	struct mask_cache mask_cache; /* masks of this process's queues: apply.h */
	struct agent *agent;          /* agent.h; NULL: none */
	void *attached;
	void (*attached_done)(void *data);
};

/* Reads all properties again. Blocks. */
int lease_refresh(struct gpuarb_lease *lease);

/* The same of a lease that may have ended meanwhile: then the failure is what its holder says. */
int lease_update(struct gpuarb_lease *lease);

/* Takes in what came by the holder, as gpuarb_lease_dispatch(). */
int lease_dispatch(struct gpuarb_lease *lease, gpuarb_lease_changed_t callback, void *userdata);

bool lease_is(const struct gpuarb_lease *lease, const char *state);
bool lease_pending(const struct gpuarb_lease *lease); /* for room, or for CUs that are lent */
bool lease_usable(const struct gpuarb_lease *lease);  /* granted, active or not, and to stay */

/* Waits while it is pending, at most until a moment; as gpuarb_lease_wait() then. */
int lease_wait_until(struct gpuarb_lease *lease, uint64_t deadline);

/* Binds the process that it was reserved for, if there is one. */
int lease_bind_process(struct gpuarb_lease *lease);

/* Asks that it ends, whatever keeps it alive, and does not wait for the answer. */
void lease_abandon(struct gpuarb_lease *lease);

/* Room for one record of the holder; a longer one is not understood. */
#define RECORD_MAX 65536U

/*
 * Reads one datagram: all of *ret that a holder can ask for. Returns 1, 0 for a record of an
 * unknown version, which is to be skipped, -EPROTO or -ENOMEM.
 */
int record_read(const void *data, size_t size, struct arena *arena, struct gpuarb_lease_info *ret,
		uint32_t *ret_cause);
