/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/print.h"

#include <locale.h>

#include "check.h"

static bool escaped_is(const char *text, size_t columns, const char *wanted)
{
	char *escaped = print_escape(text, columns);
	bool same = strcmp(escaped, wanted) == 0;

	if (!same)
		fprintf(stderr, "\"%s\" is not \"%s\"\n", escaped, wanted);
	free(escaped);
	return same;
}

static bool granted_is(const struct gpuarb_partition *partition, const char *wanted)
{
	char line[160] = "";
	FILE *out = fmemopen(line, sizeof(line), "w");

	print_grant(out, "", partition);
	fclose(out);
	return strcmp(line, wanted) == 0;
}

TEST(control_characters_are_escaped)
{
	CHECK(escaped_is("plain text", SIZE_MAX, "plain text"));
	CHECK(escaped_is("a\033[31mb\n\t\x7f", SIZE_MAX, "a\\x1b[31mb\\x0a\\x09\\x7f"));
	CHECK(escaped_is("", SIZE_MAX, ""));
}

TEST(printable_characters_of_the_locale_are_kept)
{
	CHECK(setenv("LC_ALL", "C", 1) == 0);
	setlocale(LC_CTYPE, "C");
	CHECK(escaped_is("\xc3\xa9", SIZE_MAX, "\\xc3\\xa9"));
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		SKIP("no locale C.UTF-8");

	CHECK(escaped_is("\xc3\xa9", SIZE_MAX, "\xc3\xa9"));
	CHECK(escaped_is("\xc3", SIZE_MAX, "\\xc3"));
	/* U+009B starts a control sequence, U+202E turns text around. */
	CHECK(escaped_is("\xc2\x9b", SIZE_MAX, "\\xc2\\x9b"));
	CHECK(escaped_is("\xe2\x80\xae", SIZE_MAX, "\\xe2\\x80\\xae"));
	setlocale(LC_CTYPE, "C");
}

TEST(long_text_is_cut_to_its_columns)
{
	CHECK(escaped_is("12345678", 8, "12345678"));
	CHECK(escaped_is("123456789", 8, "123456.."));
	CHECK(escaped_is("1234\033678", 8, "1234.."));
}

TEST(consecutive_numbers_become_ranges)
{
	const uint32_t numbers[] = { 0, 1, 2, 4, 6, 7 };
	char text[32];

	print_ranges(numbers, 6, text, sizeof(text));
	CHECK(strcmp(text, "0-2,4,6-7") == 0);
	print_ranges(numbers, 0, text, sizeof(text));
	CHECK(strcmp(text, "") == 0);
	print_ranges(numbers, 6, text, 4);
	CHECK(strcmp(text, "0-2") == 0);
}

TEST(bytes_are_rounded_with_a_suffix)
{
	char text[PRINT_BYTES];

	print_bytes(0, text);
	CHECK(strcmp(text, "0") == 0);
	print_bytes(1023, text);
	CHECK(strcmp(text, "1023") == 0);
	print_bytes(UINT64_C(3) << 29, text);
	CHECK(strcmp(text, "1.5G") == 0);
	print_bytes(UINT64_MAX, text);
	CHECK(strcmp(text, "16.0E") == 0);
}

TEST(a_grant_is_printed_as_one_line)
{
	const uint32_t engines[] = { 0, 1 };
	struct gpuarb_partition partition = {
		.gpu = "0000:03:00.0",
		.cus = 30,
		.cus_asked = 31,
		.effective_cus = 30,
		.shader_engines = engines,
		.n_shader_engines = 2,
	};

	CHECK(granted_is(&partition, "cus: 31 asked, 30 granted, 30 effective "
				     "(0000:03:00.0 SE 0-1 x15)\n"));
	partition.cus = 31;
	CHECK(granted_is(&partition, "cus: 31 asked, 31 granted, 30 effective "
				     "(0000:03:00.0 SE 0-1 uneven)\n"));
	partition.n_shader_engines = 0;
	CHECK(granted_is(&partition, "cus: 31 asked, 31 granted, 30 effective "
				     "(0000:03:00.0 SE  uneven)\n"));
}

TEST(a_user_without_a_name_is_a_number)
{
	char text[PRINT_USER];

	print_user(UINT32_MAX, text);
	CHECK(strcmp(text, "?") == 0);
	print_user(4000000000U, text);
	CHECK(strcmp(text, "4000000000") == 0);
	print_user(0, text);
	CHECK(strcmp(text, "root") == 0);
}
