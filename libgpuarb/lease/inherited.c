/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Masks that the runtime gave to queues by itself, because the environment said so. */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuarb/lease/apply.h"

static unsigned digit(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

/* Hexadecimal digits up to the end of the item; false for anything else. */
static bool parse_hex(const char *text, struct mask *ret)
{
	size_t digits = strspn(text, "0123456789abcdefABCDEF");
	struct mask mask = { .words = (digits + 7) / 8 };

	if (digits == 0 || digits > MASK_WORDS * 8 || (text[digits] && text[digits] != ';'))
		return false;

	for (size_t i = 0; i < digits; i++) {
		size_t place = digits - 1 - i;

		mask.word[place / 8] |= (uint32_t)digit(text[i]) << place % 8 * 4;
	}
	*ret = mask;
	return true;
}

bool inherited_mask(const char *value, size_t i, struct mask *ret)
{
	struct mask mask;
	bool found = false;

	for (const char *item = value; item; item = strchr(item, ';')) {
		unsigned long gpu;
		char *end;

		item += *item == ';';
		if (!isdigit((unsigned char)*item))
			return false;
		gpu = strtoul(item, &end, 10);
		if (strncmp(end, ":0x", 3) != 0 || !parse_hex(end + 3, &mask))
			return false;
		if (gpu == i && !found) {
			*ret = mask;
			found = true;
		}
	}
	return found;
}

static const char *value_of(const struct apply *apply, const char *name)
{
	const char *value = apply->get(apply->userdata, name);

	return value && *value ? value : NULL;
}

/* Whether the program was started with the environment of this very lease. */
static bool of_this_lease(const struct apply *apply, const char *masks)
{
	const char *lease = value_of(apply, "GPUARB_LEASE");
	char number[24];
	struct mask mask;

	snprintf(number, sizeof(number), "%" PRIu64, apply->lease);
	if (!lease || strcmp(lease, number) != 0)
		return false;
	for (size_t i = 0; i < apply->n; i++)
		if (!inherited_mask(masks, i, &mask))
			return false;
	return true;
}

int inherited_check(const struct apply *apply)
{
	const char *masks = value_of(apply, "HSA_CU_MASK");
	const char *global = value_of(apply, "ROC_GLOBAL_CU_MASK");

	if (!global && (!masks || of_this_lease(apply, masks)))
		return 0;
	return fail(apply->gpuarb, -EEXIST,
		    "%s=%s is in the environment, and lease %" PRIu64 " would take the place of "
		    "that mask: start the program without it, or do not ask for a lease inside "
		    "another one",
		    global ? "ROC_GLOBAL_CU_MASK" : "HSA_CU_MASK", global ? global : masks,
		    apply->lease);
}

void inherited_of(const struct apply *apply, size_t i, struct mask *ret)
{
	const char *masks = value_of(apply, "HSA_CU_MASK");

	/* As many ones as the driver looks at are what a queue has that was never masked. */
	if (!masks || !inherited_mask(masks, i, ret)) {
		memset(ret->word, 0xff, sizeof(ret->word));
		ret->words = MASK_WORDS;
	}
}
