/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The protocol between gpuarbd and gpuarb-enforce, one packet of a SOCK_SEQPACKET socket each.
 *
 * Requests: "kill START" and "freeze START UNIT" with the pidfd of one process beside them, and
 * "thaw UNIT". START is the start time of that process, the 22nd field of /proc/PID/stat. The
 * answers come in the order of the requests: "ok" or "error ERRNO SENTENCE", with the number of the
 * errno.
 */

#include <stddef.h>
#include <stdint.h>

#define ENFORCE_TEXT_MAX 512U /* bytes of a packet */
#define ENFORCE_UNIT_MAX 256U /* a unit's name and its NUL, as systemd has it */

enum enforce_verb { ENFORCE_KILL, ENFORCE_FREEZE, ENFORCE_THAW };

struct enforce_request {
	enum enforce_verb verb;
	uint64_t start_time;         /* of the process; 0 for a thaw, which names none */
	char unit[ENFORCE_UNIT_MAX]; /* "" for a kill */
};

/* Returns 0 for a service or scope that may be frozen. -EINVAL: no such name by systemd's rules;
 * -EPERM: one that is never frozen: systemd's own, gpuarb's own, the bus (by which a unit is
 * thawed), and a user's manager. With a sentence in why. */
int enforce_unit_check(const char *unit, char *why, size_t size);

/* Returns the length. */
size_t enforce_request_write(char buf[ENFORCE_TEXT_MAX], const struct enforce_request *request);

/* Returns -EBADMSG, -EINVAL or -EPERM with a sentence in why. The text need not end with a NUL. */
int enforce_request_read(const char *text, size_t length, struct enforce_request *ret, char *why,
			 size_t size);

/* r: 0, or a negative errno with a sentence, which is cut to fit and cleaned. Returns the length. */
size_t enforce_answer_write(char buf[ENFORCE_TEXT_MAX], int r, const char *sentence);

/* *ret_r as it was given; sentence is "" after an "ok". -EBADMSG: that is no answer. */
int enforce_answer_read(const char *text, size_t length, int *ret_r,
			char ret_sentence[ENFORCE_TEXT_MAX]);
