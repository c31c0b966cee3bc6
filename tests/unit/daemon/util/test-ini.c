/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/ini.h"

#include <errno.h>
#include <stdint.h>

#include "check.h"
#include "scratch.h"

#define OURS                      \
	(struct trust)            \
	{                         \
		{                 \
			geteuid() \
		}                 \
	}

/* What the callbacks received: "LINE[SECTION]KEY=VALUE|" for each call. */
struct seen {
	char text[4096];
	size_t size;
};

static void see(struct seen *seen, const char *line, const char *section, const char *key,
		const char *value)
{
	int n = snprintf(seen->text + seen->size, sizeof(seen->text) - seen->size, "%s[%s]%s=%s|",
			 line, section, key, value);

	CHECK(n > 0 && (size_t)n < sizeof(seen->text) - seen->size);
	seen->size += (size_t)n;
}

static void on_key(const struct ini_place *place, const char *section, const char *key,
		   const char *value, void *userdata)
{
	char line[16];

	snprintf(line, sizeof(line), "%u", place->line);
	see(userdata, line, section, key, value);
	if (strcmp(value, "bad") == 0)
		ini_bad(place, "%s is bad", key);
}

static void on_section(const struct ini_place *, const char *section, void *userdata)
{
	see(userdata, "", section, "", "");
}

/* Reads the bytes from a scratch file; each diagnostic must start with its path. */
static int read_bytes(const void *bytes, size_t size, struct seen *seen,
		      struct diagnostics *diagnostics)
{
	struct scratch scratch = scratch_new();
	const char *path = scratch_put(&scratch, "x.conf", bytes, size);
	size_t before = diagnostics->n;
	int r;

	*seen = (struct seen){ 0 };
	r = ini_read(path, &OURS, NULL, on_key, seen, diagnostics);
	for (size_t i = before; i < diagnostics->n; i++) {
		CHECK(strncmp(diagnostics->list[i].text, path, strlen(path)) == 0);
		CHECK(diagnostics->list[i].error);
	}
	scratch_done(&scratch);
	return r;
}

static int read_text(const char *text, struct seen *seen, struct diagnostics *diagnostics)
{
	return read_bytes(text, strlen(text), seen, diagnostics);
}

static bool says(const struct diagnostics *diagnostics, const char *part)
{
	for (size_t i = 0; i < diagnostics->n; i++)
		if (strstr(diagnostics->list[i].text, part))
			return true;
	return false;
}

TEST(key_is_reported_with_section_and_line)
{
	struct diagnostics diagnostics = { 0 };
	struct seen seen;

	CHECK(read_text("# c\n; c\n\na=1\n[s]\n  b = two words ; why\n\tc =\r\n[t u]\nd=x=y:z",
			&seen, &diagnostics) == 0);
	CHECK(strcmp(seen.text, "4[]a=1|6[s]b=two words|7[s]c=|9[t u]d=x=y:z|") == 0);
	CHECK(diagnostics.n == 0);
}

TEST(byte_order_mark_is_skipped)
{
	struct diagnostics diagnostics = { 0 };
	struct seen seen;

	CHECK(read_text("\xef\xbb\xbf[s]\na=1\n", &seen, &diagnostics) == 0);
	CHECK(strcmp(seen.text, "2[s]a=1|") == 0);
}

TEST(section_without_keys_is_reported)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	const char *path = scratch_write(&scratch, "x", "[a]\n[b]\nk=v\n[c]\n");
	struct diagnostics diagnostics = { 0 };
	struct seen seen = { 0 };

	CHECK(ini_read(path, &OURS, on_section, on_key, &seen, &diagnostics) == 0);
	CHECK(strcmp(seen.text, "[a]=|[b]=|3[b]k=v|[c]=|") == 0);
}

FIXTURE(struct diagnostics, diagnostics, , diagnostics_done(diagnostics));

TEST_WITH(every_wrong_line_is_reported_with_its_number, struct diagnostics *diagnostics)
{
	struct seen seen;

	CHECK(read_text("[s]\nno value\na=bad\n[open\nx=1\n[t] y=1\n[u]\nb: 2\n=\nc=3\n", &seen,
			diagnostics) == -EINVAL);
	CHECK(diagnostics->n == 5);
	CHECK(says(diagnostics, ":2: 'no value': expected KEY = VALUE"));
	CHECK(says(diagnostics, ":3: a is bad"));
	CHECK(says(diagnostics, ":4: '[open'"));
	CHECK(says(diagnostics, ":6: '[t] y=1'"));
	CHECK(says(diagnostics, ":8: 'b: 2': expected KEY = VALUE"));
	CHECK(strcmp(seen.text, "3[s]a=bad|9[u]=|10[u]c=3|") == 0);
}

TEST_WITH(indented_line_does_not_continue_a_value, struct diagnostics *diagnostics)
{
	struct seen seen;

	CHECK(read_text("[s]\na = one,\n  two\n", &seen, diagnostics) == -EINVAL);
	CHECK(says(diagnostics, ":3: 'two': expected KEY = VALUE"));
	CHECK(strcmp(seen.text, "2[s]a=one,|") == 0);
}

TEST_WITH(duplicate_keys_and_sections_are_refused, struct diagnostics *diagnostics)
{
	struct seen seen;

	CHECK(read_text("[s]\na=1\na=2\n[t]\na=3\n[s]\nb=1\n", &seen, diagnostics) == -EINVAL);
	CHECK(diagnostics->n == 2);
	CHECK(says(diagnostics, "key 'a'"));
	CHECK(says(diagnostics, "section [s]"));
	CHECK(strcmp(seen.text, "2[s]a=1|5[t]a=3|") == 0);
}

TEST_WITH(line_of_190_bytes_is_read_and_longer_line_is_refused, struct diagnostics *diagnostics)
{
	struct seen seen;
	char text[256];

	snprintf(text, sizeof(text), "k=%0188d\n", 7);
	CHECK(read_text(text, &seen, diagnostics) == 0);
	CHECK(strlen(seen.text) == strlen("1[]k=|") + 188);

	snprintf(text, sizeof(text), "a=1\n\nk=%0189d\nb=bad\n", 7);
	CHECK(read_text(text, &seen, diagnostics) == -EINVAL);
	CHECK(diagnostics->n == 2 && says(diagnostics, "191 bytes"));
	CHECK(says(diagnostics, ":4: b is bad"));
}

TEST(headers_that_libinih_would_misread_are_refused)
{
	static const char *const wrong[] = { "[]", "[a ;b]", "[a", "[s\n[s", "[a]b", "[a] b ;" };
	struct diagnostics diagnostics = { 0 };
	struct seen seen;
	char text[64];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), "[s]\n%s\nk=v\n", wrong[i]);
		CHECK(read_text(text, &seen, &diagnostics) == -EINVAL);
		CHECK(seen.size == 0 && says(&diagnostics, ":2: '["));
		diagnostics_done(&diagnostics);
	}
	CHECK(read_text("[a] ; b\nk=v\n[b]\t# c\nk=v", &seen, &diagnostics) == 0);
	CHECK(strcmp(seen.text, "2[a]k=v|4[b]k=v|") == 0);
}

TEST_WITH(section_name_that_libinih_would_truncate_is_refused, struct diagnostics *diagnostics)
{
	struct seen seen;
	char text[128];

	snprintf(text, sizeof(text), "[%049d]\na=1\n", 1);
	CHECK(read_text(text, &seen, diagnostics) == 0);
	snprintf(text, sizeof(text), "[%050d]\na=1\n", 1);
	CHECK(read_text(text, &seen, diagnostics) == -EINVAL);
	CHECK(diagnostics->n == 1 && says(diagnostics, "49 ASCII"));
	CHECK(seen.size == 0);
}

TEST_WITH(binary_file_is_refused_at_its_first_control_byte, struct diagnostics *diagnostics)
{
	static const char binary[] = "[s]\na=1\n\0\n", escape[] = "a=\033[31m\nb=bad\n";
	struct seen seen;

	CHECK(read_bytes(binary, sizeof(binary) - 1, &seen, diagnostics) == -EINVAL);
	CHECK(diagnostics->n == 1 && says(diagnostics, "byte 0x00"));
	CHECK(read_text(escape, &seen, diagnostics) == -EINVAL);
	CHECK(diagnostics->n == 2 && says(diagnostics, "byte 0x1b"));
}

TEST_WITH(only_comments_may_contain_other_than_ascii, struct diagnostics *diagnostics)
{
	struct seen seen;

	CHECK(read_text("# f\xc3\xbcr\n[s]\na=1 ; f\xc3\xbcr\n", &seen, diagnostics) == 0);
	CHECK(read_text("[s]\na=\xc3\xbc\n[\xff]\n", &seen, diagnostics) == -EINVAL);
	CHECK(diagnostics->n == 2 && says(diagnostics, ":2: 'a = \xc3\xbc'"));
	CHECK(says(diagnostics, ":3: '[?]'"));
}

TEST_WITH(reading_stops_after_100_errors, struct diagnostics *diagnostics)
{
	char text[4096] = "";
	struct seen seen;

	for (size_t i = 0; i < 1000; i++)
		memcpy(text + 2 * i, "x\n", 3);
	CHECK(read_text(text, &seen, diagnostics) == -EINVAL);
	CHECK(diagnostics->n == 101 && says(diagnostics, "rest"));
}

static int read_path(const char *path, bool trusted, struct diagnostics *diagnostics)
{
	struct seen seen = { 0 };

	return ini_read(path, trusted ? &OURS : NULL, NULL, on_key, &seen, diagnostics);
}

TEST(missing_file_is_enoent_without_diagnostic)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	struct diagnostics diagnostics = { 0 };

	CHECK(read_path(scratch_at(&scratch, "none"), true, &diagnostics) == -ENOENT);
	CHECK(diagnostics.n == 0);
}

TEST_WITH(directories_and_pipes_are_refused, struct diagnostics *diagnostics)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	const char *pipe = scratch_at(&scratch, "pipe");

	CHECK(mkfifo(pipe, 0600) == 0);
	CHECK(read_path(scratch.path, true, diagnostics) == -EINVAL);
	CHECK(read_path(pipe, true, diagnostics) == -EINVAL);
	CHECK(diagnostics->n == 2 && says(diagnostics, "directory"));
	CHECK(says(diagnostics, "regular"));
}

TEST_WITH(file_of_one_mebibyte_is_read_and_larger_file_is_refused, struct diagnostics *diagnostics)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	const char *path = scratch_write(&scratch, "x", "a=1\n");
	char *blank = malloc(1 << 20);

	CHECK(blank);
	memset(blank, '\n', 1 << 20);
	CHECK(read_path(scratch_put(&scratch, "full", blank, 1 << 20), true, diagnostics) == 0);
	free(blank);
	CHECK(truncate(path, 100 << 20) == 0); /* sparse */
	CHECK(read_path(path, true, diagnostics) == -EINVAL);
	CHECK(diagnostics->n == 1 && says(diagnostics, "1 MiB"));
}

TEST_WITH(file_with_hidden_size_is_measured_while_it_is_read, struct diagnostics *diagnostics)
{
	if (access("/proc/kallsyms", R_OK) < 0)
		SKIP("no /proc/kallsyms, a large file of size 0");
	CHECK(read_path("/proc/kallsyms", false, diagnostics) == -EINVAL);
	CHECK(diagnostics->n == 1 && says(diagnostics, "1 MiB"));
}

TEST_WITH(file_that_others_can_write_is_refused, struct diagnostics *diagnostics)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	const char *path = scratch_write(&scratch, "x", "a=1\n");

	CHECK(chmod(path, 0664) == 0 && read_path(path, true, diagnostics) == -EINVAL);
	CHECK(chmod(path, 0646) == 0 && read_path(path, true, diagnostics) == -EINVAL);
	CHECK(diagnostics->n == 2 && says(diagnostics, "chmod go-w"));
	CHECK(read_path(path, false, diagnostics) == 0);
	CHECK(chmod(path, 0644) == 0 && read_path(path, true, diagnostics) == 0);
}

TEST_WITH(number_is_digits_within_its_range, struct diagnostics *diagnostics)
{
	static const char *const wrong[] = {
		"",          "-1", "+1", " 1",  "1x",
		"0x10",      "0",  "11", "1e1", "99999999999999999999999",
		"4294967297"
	};
	struct ini_place place = { .file = "F", .line = 7, .diagnostics = diagnostics };
	unsigned n = 5;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(ini_unsigned(&place, "key", wrong[i], 1, 10, &n) == -EINVAL && n == 5);
	CHECK(strstr(diagnostics->list[1].text, "F:7: key: '-1'"));
	CHECK(ini_unsigned(&place, "key", "010", 1, 10, &n) == 0 && n == 10);
	CHECK(ini_unsigned(&place, "key", "4294967295", 0, UINT32_MAX, &n) == 0 && n == UINT32_MAX);
}

TEST_WITH(size_takes_one_suffix_and_does_not_overflow, struct diagnostics *diagnostics)
{
	static const char *const wrong[] = { "",    "G",    "-1G",       "1GB",
					     "1 G", "1.5G", "16777216T", "18446744073709551616",
					     "1E" };
	struct ini_place place = { .file = "F", .line = 7, .diagnostics = diagnostics };
	uint64_t n = 5;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(ini_bytes(&place, "key", wrong[i], &n) == -EINVAL && n == 5);
	CHECK(ini_bytes(&place, "key", "4096", &n) == 0 && n == 4096);
	CHECK(ini_bytes(&place, "key", "2k", &n) == 0 && n == 2048);
	CHECK(ini_bytes(&place, "key", "512M", &n) == 0 && n == 512ULL << 20);
	CHECK(ini_bytes(&place, "key", "2G", &n) == 0 && n == 2ULL << 30);
	CHECK(ini_bytes(&place, "key", "16777215T", &n) == 0 && n == 16777215ULL << 40);
}

TEST_WITH(booleans_are_words, struct diagnostics *diagnostics)
{
	struct ini_place place = { .file = "F", .line = 7, .diagnostics = diagnostics };
	bool b = false;

	CHECK(ini_bool(&place, "key", "Yes", &b) == 0 && b);
	CHECK(ini_bool(&place, "key", "off", &b) == 0 && !b);
	CHECK(ini_bool(&place, "key", "2", &b) == -EINVAL && !b);
	CHECK(strstr(diagnostics->list[0].text, "F:7: key: '2'"));
}

/* Nothing is mapped at the beginning of a process. */
TEST(file_that_cannot_be_read_is_refused)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	struct seen seen = { 0 };

	CHECK(ini_read("/proc/self/mem", &OURS, NULL, on_key, &seen, &diagnostics) == -EINVAL);
	CHECK(diagnostics.n == 1 && diagnostics.list[0].error && seen.size == 0);
}
