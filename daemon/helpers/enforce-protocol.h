/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What gpuarbd and gpuarb-enforce say to each other, a packet of a SOCK_SEQPACKET socket each:
 * requests "kill" (with one pidfd beside it), "freeze UNIT" and "thaw UNIT"; an answer to each, in
 * their order, "ok" or "error ERRNO SENTENCE" with the number of the errno.
 */

#include <stddef.h>

#define ENFORCE_TEXT_MAX 512U /* bytes of a packet */
#define ENFORCE_UNIT_MAX 256U /* a unit's name and its NUL, as systemd has it */

enum enforce_verb { ENFORCE_KILL, ENFORCE_FREEZE, ENFORCE_THAW };

/* Returns 0 for a service or scope that may be frozen. -EINVAL: no such name by systemd's rules;
 * -EPERM: one that is never frozen: systemd's own, gpuarb's own, the bus (by which a unit is
 * thawed), and a user's manager. With a sentence in why. */
int enforce_unit_check(const char *unit, char *why, size_t size);

/* Returns the length. unit: NULL for a kill. */
size_t enforce_request_write(char buf[ENFORCE_TEXT_MAX], enum enforce_verb verb, const char *unit);

/* Returns -EBADMSG, -EINVAL or -EPERM with a sentence in why. The text need not end with a NUL. */
int enforce_request_read(const char *text, size_t length, enum enforce_verb *ret_verb,
			 char ret_unit[ENFORCE_UNIT_MAX], char *why, size_t size);

/* r: 0, or a negative errno with a sentence, which is cut to fit and cleaned. Returns the length. */
size_t enforce_answer_write(char buf[ENFORCE_TEXT_MAX], int r, const char *sentence);

/* *ret_r as it was given; sentence is "" after an "ok". -EBADMSG: that is no answer. */
int enforce_answer_read(const char *text, size_t length, int *ret_r,
			char ret_sentence[ENFORCE_TEXT_MAX]);
