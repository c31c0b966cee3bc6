/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* CU masks as text: "0x3fffffff" or "0-15,32-47", bits in KFD order. */

#include <stddef.h>
#include <stdint.h>

#include "client/output/model.h"

/* Reads either form into an owned array. -EINVAL: neither form; -ERANGE: a bit beyond 65535. */
int mask_parse(const char *text, uint32_t **ret, size_t *ret_words);

/* Owned; NULL: out of memory. An empty mask is "0x0" and "". */
char *mask_hex(const uint32_t *mask, size_t words);
char *mask_list(const uint32_t *mask, size_t words);
char *mask_hex_of(const struct model *model, const struct cuset *set);

/*
 * CUs by their place: "SE0,XCC1.SE2.SH0:0-7", comma-separated, each
 * [XCCn.]SEn[.SHn][:FIRST[-LAST]]. Without XCC the place is in all XCCs, without SH in all shader
 * arrays. CU numbers count the working CUs of the shader array, or of the shader engine without SH,
 * array 0 first.
 */

/* -EINVAL, with an error in buf that quotes the place. */
int places_parse(const struct model *model, const char *text, struct cuset *ret, char *buf,
		 size_t size);

/* Text that places_parse() reads back. Owned; NULL: out of memory. */
char *places_format(const struct model *model, const struct cuset *set);
