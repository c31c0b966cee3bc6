/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

TEST(recorded_names_are_found_without_the_name_service)
{
	_cleanup_(names_done) struct names recorded = { .asks = true }, names = { 0 };
	unsigned id;
	char *text;

	CHECK(names_find(&recorded, "root", false, &id) && id == 0);
	CHECK(names_find(&recorded, "daemon", true, &id));
	CHECK(!names_find(&recorded, "unheard", false, &id));
	CHECK(names_format(&recorded, &text) == 0);
	CHECK(names_parse(text, &names) == 0 && names.n == 3 && !names.asks);
	free(text);
	CHECK(names_find(&names, "root", false, &id) && id == 0);
	CHECK(names_find(&names, "daemon", true, &id));
	CHECK(!names_find(&names, "daemon", false, &id)); /* no user of it was recorded */
	CHECK(!names_find(&names, "unheard", false, &id));
	CHECK(!names_find(&names, "bin", false, &id)); /* it exists, and nothing is asked */
}

TEST(text_that_is_no_table_of_names_is_refused)
{
	static const char *const bad[] = {
		"u",        "u 1 a",        "x 1 a\n", "u 1x a\n", "u 4294967295 a\n",
		"u -1 a\n", "u 1 a\n\ng 1", "u 1 \n"
	};
	struct names names = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_(freep) char *text = strdup(bad[i]);

		CHECK(text && names_parse(text, &names) == -EBADMSG && names.n == 0);
	}
	CHECK(names_parse((char[]){ "" }, &names) == 0 && names.n == 0);
	names_done(&names);
}
