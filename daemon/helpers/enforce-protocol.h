/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The protocol between gpuarbd and gpuarb-enforce: one struct in each packet of a SOCK_SEQPACKET
 * socket, in the byte order of the host. The pidfd of one process comes with each but a thaw. The
 * answers come in the order of the requests. The fields leave no padding.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENFORCE_UNIT_MAX 256U /* a unit's name and its NUL, as systemd has it */
#define ENFORCE_SENTENCE_MAX 508U

/* WARN and END: a process that uses a GPU without a lease. END is a kill; neither is for one of root. */
enum enforce_verb { ENFORCE_KILL = 1, ENFORCE_FREEZE, ENFORCE_THAW, ENFORCE_WARN, ENFORCE_END };

static inline bool enforce_names_unit(uint64_t verb)
{
	return verb == ENFORCE_FREEZE || verb == ENFORCE_THAW;
}

struct enforce_request {
	uint64_t verb;       /* enum enforce_verb */
	uint64_t start_time; /* 22nd field of /proc/PID/stat; 0 for a thaw */
	uint64_t
		uid; /* whose lease it is, or 0 if root bound the process; 0 for a thaw; the user of a
		       * process without a lease */
	char text[ENFORCE_UNIT_MAX]; /* the unit; of a process: what its terminal shows, or "" */
};

struct enforce_answer {
	int32_t r;                           /* 0 or a negative errno */
	char sentence[ENFORCE_SENTENCE_MAX]; /* "" where r is 0 */
};

/* Returns 0 for a service or scope that may be frozen. -EINVAL: no such name by systemd's rules;
 * -EPERM: one that is never frozen: systemd's own, gpuarb's own, the bus (by which a unit is
 * thawed), and a user's manager. With a sentence in why. */
int enforce_unit_check(const char *unit, char *why, size_t size);

/* Checks a received packet of length bytes, of which the struct has the first. Returns 0; with a
 * sentence in why: -EMSGSIZE, too long; -EBADMSG, too short or no such request; -EINVAL or -EPERM for
 * the unit, as enforce_unit_check(). */
int enforce_request_check(const struct enforce_request *request, size_t length, char *why,
			  size_t size);

/* The sentence is truncated to fit and cleaned. */
struct enforce_answer enforce_answer_new(int r, const char *sentence);

/* Checks a received packet of length bytes and cleans its sentence. -EBADMSG: not an answer. */
int enforce_answer_check(struct enforce_answer *answer, size_t length);
