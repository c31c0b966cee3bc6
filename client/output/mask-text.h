/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* CU masks as text: "0x3fffffff" or "0-15,32-47", bits in the kernel's order. */

#include <stddef.h>
#include <stdint.h>

/* Reads either form into an owned array, as long as the text says. -EINVAL if it is
 * neither, -ERANGE for a bit beyond 65535. */
int mask_parse(const char *text, uint32_t **ret, size_t *ret_words);

/* Owned strings; NULL without memory. An empty mask is "0x0" and "". */
char *mask_hex(const uint32_t *mask, size_t words);
char *mask_list(const uint32_t *mask, size_t words);
