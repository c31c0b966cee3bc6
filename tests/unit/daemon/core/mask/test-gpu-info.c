/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/gpu-info.h"

#include <errno.h>

#include "check.h"

TEST(gfx_targets_are_named_as_compilers_name_them)
{
	static const struct {
		unsigned target;
		const char *name;
	} rows[] = {
		{ 80003, "gfx803" },   { 90006, "gfx906" },   { 90010, "gfx90a" },
		{ 90402, "gfx942" },   { 100300, "gfx1030" }, { 110501, "gfx1151" },
		{ 120001, "gfx1201" },
	};
	char name[16];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		gpu_info_target_name(rows[i].target, name, sizeof(name));
		CHECK(strcmp(name, rows[i].name) == 0);
	}
}

TEST(a_target_name_is_cut_to_the_room_there_is)
{
	char name[4] = "xxx";

	gpu_info_target_name(90006, name, sizeof(name));
	CHECK(strcmp(name, "gfx") == 0);
}

TEST(each_scheduler_is_found_by_its_word)
{
	static const char *const words[] = { "unknown", "hws", "hws-strict", "none", "mes" };

	for (enum scheduler s = SCHEDULER_UNKNOWN; s <= SCHEDULER_MES; s++) {
		CHECK(strcmp(scheduler_names[s], words[s]) == 0);
		CHECK(scheduler_from_name(words[s]) == (int)s);
	}
	CHECK(scheduler_from_name("HWS") == -EINVAL && scheduler_from_name("") == -EINVAL);
}

TEST(names_of_targets_are_read_back)
{
	static const unsigned targets[] = { 80003, 90006,  90010,  90402,
					    90500, 100300, 110501, 120001 };
	static const char *const bad[] = { "",    "gfx",    "gfx9",   "gfx90",  "gfx90600",
					   "906", "gfxa06", "gfx90g", "gfx 906" };
	char name[16];

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		gpu_info_target_name(targets[i], name, sizeof(name));
		CHECK(gpu_info_target_from_name(name) == targets[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(gpu_info_target_from_name(bad[i]) == 0);
}
