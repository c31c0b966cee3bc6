/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Compute units by where they are: "SE0,XCC1.SE2.SH0:0-7", comma-separated, each
 * [XCCn.]SEn[.SHn][:FIRST[-LAST]]. Without an XCC it is that of every XCC, without a
 * shader array both; CUs count those that work, within their array, or within the engine
 * where no array is named: array 0 first.
 */

#include "client/output/model.h"

/* -EINVAL with the sentence in buf: what is wrong with which place. */
int places_parse(const struct model *model, const char *text, struct cuset *ret, char *buf,
		 size_t size);

/* The same CUs as text that places_parse() reads back; owned, NULL without memory. */
char *places_format(const struct model *model, const struct cuset *set);
