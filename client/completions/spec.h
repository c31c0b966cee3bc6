/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What may stand in a place, read from the text that help shows: alternatives with "|"
 * between. Small letters are the word itself, "explain|encode|decode"; capitals are a kind:
 * GPU, ID (a lease), TENANT and PROFILE are looked up when the shell asks, FILE and DIR are
 * the shell's own, from COMMAND on stands another command. Of other kinds (N, MASK) nothing
 * is known.
 *
 * A verb's words are its arguments without options, "ID [OPTIONS]" is one; "FILE…" is any
 * number of them.
 */

#include <stdbool.h>
#include <stddef.h>

#include "client/options/options.h"
#include "client/verbs/verb.h"

#define SPEC_MAX 64U

/* The i-th word of the verb, its brackets taken off; false past the last. */
bool spec_word(const struct verb *verb, size_t i, char buf[static SPEC_MAX], bool *ret_more);

/* What the option's value may be; NULL where it takes none. */
const char *spec_value(const struct option *option);

/* "--wait" alone will do. */
static inline bool spec_optional(const struct option *option)
{
	return option->argument && option->argument[0] == '[';
}

/* The i-th option of the verb, of every verb where it is NULL; NULL past the last. */
const struct option *spec_option(const struct verb *verb, size_t i);
