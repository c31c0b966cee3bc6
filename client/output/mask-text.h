/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* CU masks as text: "0x3fffffff" or "0-15,32-47", bits in the kernel's order. */

#include <stddef.h>
#include <stdint.h>

#include "client/output/model.h"

/* Reads either form into an owned array, as long as the text says. -EINVAL if it is
 * neither, -ERANGE for a bit beyond 65535. */
int mask_parse(const char *text, uint32_t **ret, size_t *ret_words);

/* Owned strings; NULL without memory. An empty mask is "0x0" and "". */
char *mask_hex(const uint32_t *mask, size_t words);
char *mask_list(const uint32_t *mask, size_t words);

/*
 * Compute units by where they are: "SE0,XCC1.SE2.SH0:0-7", comma-separated, each
 * [XCCn.]SEn[.SHn][:FIRST[-LAST]]. Without an XCC it is that of every XCC, without a
 * shader array both; CUs count those that work, within their array, or within the engine
 * where no array is named: array 0 first.
 */

/* -EINVAL with the sentence in buf: what is wrong with which place. */
int places_parse(const struct model *model, const char *text, struct cuset *ret, char *buf,
		 size_t size);

/* The same CUs as text that places_parse() reads back; owned, NULL without memory. */
char *places_format(const struct model *model, const struct cuset *set);
