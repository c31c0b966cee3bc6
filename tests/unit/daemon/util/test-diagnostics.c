/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/diagnostics.h"

#include "check.h"

TEST(notes_keep_their_order_and_text)
{
	struct notes notes = { 0 };

	notes_add(&notes, false, "%s is %d", "this", 1);
	notes_add(&notes, true, "that");
	CHECK(notes.n == 2);
	CHECK(!notes.list[0].error && strcmp(notes.list[0].text, "this is 1") == 0);
	CHECK(notes.list[1].error && strcmp(notes.list[1].text, "that") == 0);
	notes_done(&notes);
}

TEST(only_errors_are_errors)
{
	struct notes notes = { 0 };

	CHECK(!notes_have_errors(&notes));
	notes_add(&notes, false, "degraded");
	CHECK(!notes_have_errors(&notes));
	notes_add(&notes, true, "wrong");
	CHECK(notes_have_errors(&notes));
	notes_done(&notes);
}

TEST(finished_notes_can_be_used_again)
{
	struct notes notes = { 0 };

	notes_add(&notes, true, "first");
	notes_done(&notes);
	CHECK(notes.n == 0 && !notes_have_errors(&notes));
	notes_add(&notes, false, "second");
	CHECK(notes.n == 1);
	notes_done(&notes);
	notes_done(&notes);
}
