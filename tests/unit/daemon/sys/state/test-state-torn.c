/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Damaged texts of leases. */

#include <ctype.h>
#include <errno.h>
#include <sys/wait.h>

#include "check.h"
#include "seed.h"
#include "state-rig.h"
#include "sys/state/state-json.h"

static struct state_lease read_lease;
static char read_why[160];

static int read_text(const struct rig *rig, const char *text, size_t length)
{
	read_why[0] = '\0';
	return state_json_read(&rig->arbiter, text, length, &read_lease, read_why,
			       sizeof(read_why));
}

static char *text_of(const struct rig *rig)
{
	char *text = NULL;

	CHECK(state_json_write(&rig->arbiter, &rig->lease, &text) == 0);
	return text;
}

/* Whether the text is refused with a reason, or gives the same lease. */
static bool refused_or_same(const struct rig *rig, const char *text, size_t length)
{
	int r = read_text(rig, text, length);
	bool same;

	if (r < 0)
		return r == -EINVAL && read_why[0] && !read_lease.lease;
	same = same_lease(&rig->lease, read_lease.lease) && read_lease.lost[0] == '\0' &&
	       read_lease.n_processes == 0;
	lease_free(read_lease.lease);
	return same;
}

FIXTURE(struct rig, rig, rig = state_rig_new(), state_rig_free(rig));

TEST_WITH(truncated_file_is_refused, struct rig *rig)
{
	char *text = text_of(rig);
	size_t length = strlen(text);

	CHECK(read_text(rig, text, length) == 0);
	lease_free(read_lease.lease);
	for (size_t n = 0; n < length - 1; n += check_one_in(1, 1)) /* the last byte is a newline */
		CHECK(read_text(rig, text, n) == -EINVAL && read_why[0]);
	CHECK(refused_or_same(rig, text, length - 1));
	free(text);
}

/* Marks the bytes of values: digits, and characters of strings that are not keys. */
static void mark_values(const char *text, bool *value)
{
	bool string = false;
	size_t start = 0;

	for (size_t i = 0; text[i]; i++) {
		value[i] = !string && isdigit((unsigned char)text[i]);
		if (string && text[i] == '\\') {
			i++;
			value[i] = false;
		} else if (text[i] == '"') {
			for (size_t k = start + 1; string && text[i + 1] != ':' && k < i; k++)
				value[k] = true;
			string = !string;
			start = i;
		}
	}
}

/* A damaged value may give another value. Other damage must be refused or change nothing. */
static void check_spoilt(const struct rig *rig, const char *text, size_t length, bool value)
{
	if (!value)
		CHECK(refused_or_same(rig, text, length));
	else if (read_text(rig, text, length) == 0)
		lease_free(read_lease.lease);
	else
		CHECK(read_why[0] && !read_lease.lease);
}

TEST_WITH(flipped_bit_outside_of_a_value_never_changes_the_lease, struct rig *rig)
{
	char *text = text_of(rig);
	size_t length = strlen(text), marked = 0;
	bool *value = calloc(length + 1, sizeof(*value));
	unsigned seed = SEED_OF_RUN("SEED"), one_in = check_one_in(1, 1);

	CHECK(value);
	mark_values(text, value);
	for (size_t i = 0; i < length; i++) {
		marked += value[i];
		for (unsigned bit = 0; bit < 8 && (i + seed) % one_in == 0; bit++) {
			text[i] = (char)(text[i] ^ (1 << bit));
			check_spoilt(rig, text, length, value[i]);
			text[i] = (char)(text[i] ^ (1 << bit));
		}
	}
	CHECK(marked > length / 10 && marked < length / 2);
	free(value);
	free(text);
}

TEST_WITH(lost_or_doubled_byte_outside_of_a_value_never_changes_the_lease, struct rig *rig)
{
	char *text = text_of(rig);
	size_t length = strlen(text);
	bool *value = calloc(length + 1, sizeof(*value));
	char *other = malloc(length + 2);
	unsigned one_in = check_one_in(1, 1);

	CHECK(value && other);
	mark_values(text, value);
	for (size_t i = SEED_OF_RUN("SEED") % one_in; i < length; i += one_in) {
		memcpy(other, text, i);
		memcpy(other + i, text + i + 1, length - i);
		check_spoilt(rig, other, length - 1, value[i]);
		memcpy(other, text, i + 1);
		memcpy(other + i + 1, text + i, length - i + 1);
		check_spoilt(rig, other, length + 1, value[i]);
	}
	free(other);
	free(value);
	free(text);
}

/* ---- edited files -------------------------------------------------------------------- */

/* Replaces a part of the text that occurs once. */
static char *replaced(const char *text, const char *old, const char *new)
{
	const char *at = strstr(text, old);
	char *other;

	CHECK(at && !strstr(at + 1, old));
	CHECK(asprintf(&other, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old)) > 0);
	return other;
}

TEST_WITH(every_member_is_checked_and_named_in_the_error, struct rig *rig)
{
	static const struct {
		const char *old, *new, *why;
	} wrong[] = {
		{ "\"version\":2,", "", "version: is missing" },
		{ "\"version\":2", "\"version\":\"2\"", "version: has another type" },
		{ "\"version\":2", "\"version\":3", "version 3 is newer than 2" },
		{ "\"version\":2", "\"version\":1", "version 1 is older than 2" },
		{ "\"id\":17", "\"id\":0", "id: is out of range" },
		{ "\"id\":17", "\"id\":-17", "id: is out of range" },
		{ "\"id\":17", "\"id\":17.0", "id: has another type" },
		{ "\"id\":17", "\"id\":null", "id: has another type" },
		{ "\"id\":17", "\"id\":9007199254740992", "id: is out of range" },
		{ "\"id\":17", "\"id\":017", "not JSON" },
		{ "\"owner\":1000", "\"owner\":4294967296", "owner: is out of range" },
		{ "\"pid\":4242", "\"pid\":2147483648", "pid: is out of range" },
		{ "\"acknowledged\":2", "\"acknowledged\":4", "acknowledged: is out of range" },
		{ "\"generation\":3", "\"generation\":0", "generation: is out of range" },
		{ "\"passed\":0", "\"passed\":4294967296", "passed: is out of range" },
		{ "\"passed\":0", "\"reset_partition\":1,\"passed\":0",
		  "reset_partition: is out of range" },
		{ "\"students\"", "\"stu\\u0000dents\"", "tenant: is too long or has a NUL" },
		{ "\"students\"", "false", "tenant: has another type" },
		{ "\"class\":\"guaranteed\"", "\"class\":\"best\"", "class: is a word" },
		{ "\"state\":\"granted\"", "\"state\":\"gone\"", "state: is a word" },
		{ "\"cause\":\"ok\"", "\"cause\":\"\"", "cause: is a word" },
		{ "\"isolation\":\"cu\"", "\"isolation\":\"default\"", "isolation: is a word" },
		{ "\"priority\":7,\"isolation\"", "\"priority\":16,\"isolation\"",
		  "priority: is out of range" },
		{ "\"gpu\":\"0000:03:00.0\"", "\"gpu\":\"\"", "gpu: has no name" },
		{ "\"cu_mask\":\"0x00000033,0x00000000\"", "\"cu_mask\":\"0x00000033\"",
		  "cu_mask: is not a mask of this GPU" },
		{ "0x00000033,0x00000000", "0x00000033,0x10000000",
		  "cu_mask: is not a mask of this GPU" }, /* bit 60 of 60 */
		{ "0x00000033,0x00000000", "0x00000033,0x00000000,0x00000000", "cu_mask: is not" },
		{ "0x00000033,0x00000000", "0x00000033 0x00000000", "cu_mask: is not a mask" },
		{ "0x00000033,0x00000000", "0x0000003G,0x00000000", "cu_mask: is not a mask" },
		{ "0x00000033,0x00000000", "", "cu_mask: is not a mask" },
		{ "0x00000133,0x00000000", "0x00000133,0x0000000", "occupied: is not a mask" },
		{ "\"partitions\":[{", "\"partitions\":[7,{", "partitions: has another type" },
		{ "\"wants\":[{", "\"wants\":[[],{", "wants: has another type" },
		{ "\"processes\":[]", "\"processes\":[7]", "processes: has another type" },
		{ "\"processes\":[]", "\"processes\":[[7]]", "processes: has another number" },
		{ "\"processes\":[]", "\"processes\":[[0,1]]", "processes: is out of range" },
		{ "\"processes\":[]", "\"processes\":[[7,1,1,1]]",
		  "processes: has another number" },
		{ "\"processes\":[]", "\"processes\":[[7,\"\"]]", "processes: has another" },
		{ "\"alone\":true", "\"alone\":1", "alone: has another type" },
		{ "\"alone\":true", "\"alone\":true,\"x\":0", "partition: has a member that" },
		{ "\"alone\":true", "\"alone\":true,\"base\":\"0x00000033,0x00000000\"",
		  "partition: has a member that" }, /* the lease is not adaptable */
		{ "\"adaptable\":false,\"state\"", "\"adaptable\":true,\"state\"",
		  "base: is missing" },
		{ "\"passed\":0", "\"passed\":0,\"bound\":[]", "lease: has a member that" },
		{ "\"exact\":false", "\"exact\":false,\"x\":0", "want: has a member that" },
		{ "\"token\":\"again\",\"wait", "\"token\":\"again\",\"x\":0,\"wait",
		  "request: has a member that" },
		{ "\"cooperative\":0,\"vram\":1048576", "\"cooperative\":0,\"vram\":1,\"x\":0",
		  "granted: has a member that" },
		{ "\"id\":17", "\"id\":[[[[[[[[[17]]]]]]]]]", "not JSON" }, /* too deep */
	};
	char *text = text_of(rig);

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		char *other = replaced(text, wrong[i].old, wrong[i].new);

		CHECK(read_text(rig, other, strlen(other)) == -EINVAL);
		if (!strstr(read_why, wrong[i].why))
			fprintf(stderr, "%s: %s\n", wrong[i].new, read_why);
		CHECK(strstr(read_why, wrong[i].why));
		free(other);
	}
	free(text);
}

/* json-c before 0.18 reads the largest number, later versions refuse the text. */
TEST_WITH(number_beyond_64_bits_is_refused, struct rig *rig)
{
	char *text = text_of(rig);
	char *other = replaced(text, "\"id\":17", "\"id\":18446744073709551633"); /* 2^64 + 17 */

	CHECK(read_text(rig, other, strlen(other)) == -EINVAL);
	CHECK(strstr(read_why, "id: is out of range") || strstr(read_why, "not JSON"));
	free(other);
	free(text);
}

/* "KEY":[ELEMENT,ELEMENT,…] with n elements. */
static char *many(const char *key, const char *element, size_t n)
{
	char *text = malloc(64 + n * (strlen(element) + 1)), *end = text;

	CHECK(text);
	end += sprintf(end, "\"%s\":[", key);
	for (size_t i = 0; i < n; i++)
		end += sprintf(end, "%s%s", i > 0 ? "," : "", element);
	strcpy(end, "]");
	return text;
}

TEST_WITH(arrays_that_are_too_long_are_refused, struct rig *rig)
{
	static const struct {
		const char *key, *element;
		size_t n;
		const char *why;
	} wrong[] = {
		{ "partitions", "{}", REQUEST_WANTS + 1, "partitions: has too many elements" },
		{ "partitions", "{}", 1, "gpu: is missing" },
		{ "processes", "[1,1]", LEASE_PROCESSES_MAX + 1,
		  "processes: has too many elements" },
		{ "wants", "{}", REQUEST_WANTS + 1, "wants: has too many elements" },
		{ "wants", "{}", 0, "wants: is empty" },
	};

	rig->lease.n_partitions = 0;
	rig->request.n_wants = 0; /* so that every array is written as [] */
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		char *text = text_of(rig), *list = many(wrong[i].key, wrong[i].element, wrong[i].n);
		char *empty = many(wrong[i].key, "", 0), *other = replaced(text, empty, list);

		CHECK(read_text(rig, other, strlen(other)) == -EINVAL);
		CHECK(strcmp(read_why, wrong[i].why) == 0);
		free(other), free(empty), free(list), free(text);
	}
}

TEST_WITH(mask_with_half_a_wgp_is_refused, struct rig *rig)
{
	struct geometry *geometry = &rig->gpu.info.geometry;
	char *text, *other;

	*geometry = (struct geometry){
		.xccs = 1, .engines = 4, .arrays = 2, .array_cus = 8, .wgp = true
	};
	CHECK(geometry_spread(geometry, 64) == 0);
	codec_init(&rig->gpu.codec, geometry);
	text = text_of(rig);
	CHECK(refused_or_same(rig, text, strlen(text)));
	other = replaced(text, "\"cu_mask\":\"0x0000000f", "\"cu_mask\":\"0x0000000e");
	CHECK(read_text(rig, other, strlen(other)) == -EINVAL);
	CHECK(strstr(read_why, "cu_mask"));
	free(other);
	free(text);
}

TEST_WITH(text_after_the_lease_is_refused, struct rig *rig)
{
	char *text = text_of(rig), *other;
	size_t length = strlen(text);

	CHECK(asprintf(&other, "%s{}", text) > 0);
	CHECK(read_text(rig, other, length + 2) == -EINVAL);
	other[length] = '\0';
	CHECK(read_text(rig, other, length + 2) == -EINVAL);
	CHECK(read_text(rig, "[1]", 3) == -EINVAL);
	free(other);
	free(text);
}
