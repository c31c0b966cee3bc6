/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Values of HSA_CU_MASK against rocr-mask-parser.h, and of ROC_GLOBAL_CU_MASK against its rules. */

#include "client/output/mask-variable.h"

#include <string.h>

#include "check.h"
#include "lack.h"
#include "random-geometry.h"
#include "rocr-mask-parser.h"
#include "seed.h"
#include "util/base.h"

#define GPUS 4U
#define CUS 60U

/* The problem is that of the part. */
static bool names(const char *problem, const char *part)
{
	return strncmp(problem, part, strlen(part)) == 0;
}

static struct variable_masks hsa(const char *value)
{
	struct variable_masks masks;

	CHECK(variable_parse_hsa(value, GPUS, CUS, &masks) == 0);
	return masks;
}

static struct variable_masks global(const char *value, unsigned cus, unsigned step)
{
	struct variable_masks masks;

	variable_parse_global(value, cus, step, &masks);
	return masks;
}

/* Both read the same masks, and both understand all of the value or not. */
static void agree(const char *value)
{
	struct variable_masks masks = hsa(value);
	struct rocr_masks expected;

	rocr_parse_masks(value, GPUS, CUS, &expected);
	CHECK(!*masks.problem == !expected.ignored);
	for (unsigned i = 0; i < VARIABLE_GPUS; i++) {
		if (masks.set[i] != expected.set[i])
			fprintf(stderr, "'%s'\n", value);
		CHECK(masks.set[i] == expected.set[i]);
		CHECK(memcmp(masks.word[i], expected.word[i], sizeof(masks.word[i])) == 0);
	}
}

TEST(values_of_hsa_cu_mask_are_read_as_rocr_reads_them)
{
	static const char *const values[] = {
		"",
		"0:0-15",
		"0:0x3333333333",
		"0:0-14;1:0-7",
		"0-1,3:0xFF",
		"0:",
		":0",
		"0",
		"0:0-15:",
		"0:0-15;",
		"0:0;0:1",
		"0:0-15;;1:0",
		"0:59-70",
		"0:60",
		"0:61",
		"4:0",
		"5:0",
		"0,9:0",
		"0:0x0",
		"0: 0 - 3 , 5",
		"0:3-1",
		"0:1,1",
		"GPU-12:0",
		"0:0XfF",
		"0:1x5",
		"0:-",
		"0:5-",
		"0:-5",
		"0:,",
		"0:0xg",
		"0:0x",
		"0:0-3;x:1;2:5",
		"0:0x10000000000000000000",
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		agree(values[i]);
}

static bool has_two_signs(const char *value)
{
	for (const char *dash = strchr(value, '-'); dash; dash = strchr(dash + 1, '-'))
		if (dash[1 + strspn(dash + 1, " ")] == '-')
			return true;
	return false;
}

TEST(random_values_of_hsa_cu_mask_are_read_as_rocr_reads_them)
{
	static const char letters[] = "00112345679,,--::;;xXaf ";
	unsigned seed = SEED_OF_RUN("SEED"), understood = 0;

	seed_rand(seed);
	for (unsigned i = 0; i < check_rounds(60000, 200000); i++) {
		char value[24] = "0:";
		unsigned length = 1 + below(20), start = below(2) ? 2 : 0;

		for (unsigned k = start; k < length; k++)
			value[k] = letters[below(sizeof(letters) - 1)];
		value[length > start ? length : start] = '\0';
		/* strtoul() reads "--5" as a number near its largest. */
		if (has_two_signs(value))
			continue;
		agree(value);
		understood += !*hsa(value).problem;
	}
	CHECK_REACHED(understood > 1000);
}

TEST(what_rocr_ignores_is_named)
{
	CHECK(names(hsa("0:0-15;1:x;2:0").problem, "'1:x'"));
	CHECK(names(hsa("0:0-15;0:16").problem, "'0:16'"));
	CHECK(names(hsa("0:0x0").problem, "'0:0x0'"));
	CHECK(names(hsa("7:0").problem, "'7:0'"));
	CHECK(hsa("0:50-70").dropped && !*hsa("0:50-70").problem && !hsa("0:50-59").dropped);
}

static int parse_once(long allocations)
{
	struct variable_masks masks;

	lack_left = allocations;
	return variable_parse_hsa("0:0-15", GPUS, CUS, &masks);
}

TEST(lack_of_memory_is_reported)
{
	CHECK(lack_each("variable_parse_hsa", parse_once) == 1);
}

TEST(values_of_roc_global_cu_mask_are_read_as_hip_reads_them)
{
	struct variable_masks masks = global("ffff", CUS, 1);

	CHECK(masks.set[0] && masks.word[0][0] == 0xffff && !*masks.problem && !masks.dropped);
	masks = global("0X1000000ff", CUS, 1);
	CHECK(masks.word[0][0] == 0xff && masks.word[0][1] == 1);
	masks = global("0x81", 80, 2); /* a bit is a WGP */
	CHECK(masks.word[0][0] == 0xc003);
	masks = global("123456789abcdef0", CUS, 1); /* 15 digits have CUs */
	CHECK(masks.dropped && masks.word[0][0] == 0x9abcdef0);
	masks = global("3g", CUS, 1);
	CHECK(masks.set[0] && masks.word[0][0] == 3);
}

TEST(values_that_hip_ignores_set_no_mask)
{
	CHECK(!global("0x0", CUS, 1).set[0] && !global("", CUS, 1).set[0]);
	CHECK(names(global("g", CUS, 1).problem, "'g'"));
	CHECK(!global("gffffffff", CUS, 1).set[0]);
	CHECK(names(global("fffffffffffffff", CUS, 1).problem, "'fffffffffffffff'"));
	CHECK(global("ffffffffffffffe", CUS, 1).set[0]);
}
