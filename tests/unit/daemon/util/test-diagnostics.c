/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/diagnostics.h"

#include "check.h"

TEST(diagnostics_keep_their_order_and_text)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };

	diagnostics_add(&diagnostics, false, "%s is %d", "this", 1);
	diagnostics_add(&diagnostics, true, "that");
	CHECK(diagnostics.n == 2);
	CHECK(!diagnostics.list[0].error && strcmp(diagnostics.list[0].text, "this is 1") == 0);
	CHECK(diagnostics.list[1].error && strcmp(diagnostics.list[1].text, "that") == 0);
}

TEST(warnings_are_no_errors)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };

	CHECK(!diagnostics_have_errors(&diagnostics));
	diagnostics_add(&diagnostics, false, "degraded");
	CHECK(!diagnostics_have_errors(&diagnostics));
	diagnostics_add(&diagnostics, true, "wrong");
	CHECK(diagnostics_have_errors(&diagnostics));
}

TEST(diagnostics_can_be_used_again_after_done)
{
	struct diagnostics diagnostics = { 0 };

	diagnostics_add(&diagnostics, true, "first");
	diagnostics_done(&diagnostics);
	CHECK(diagnostics.n == 0 && !diagnostics_have_errors(&diagnostics));
	diagnostics_add(&diagnostics, false, "second");
	CHECK(diagnostics.n == 1);
	diagnostics_done(&diagnostics);
	diagnostics_done(&diagnostics);
}

TEST(a_diagnostic_quotes_no_control_character)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };

	diagnostics_add(&diagnostics, true, "key '%s': invalid",
			"a\tb\x1b[31m\xc2\x9b\xe9 caf\xc3\xa9");
	CHECK(strcmp(diagnostics.list[0].text, "key 'a?b?[31m??? caf\xc3\xa9': invalid") == 0);
}
