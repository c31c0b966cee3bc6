/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/class.h"

#include <errno.h>

#include "check.h"

TEST(a_tenants_class_is_the_highest_it_may_ask_for)
{
	CHECK(CLASS_BESTEFFORT < CLASS_GUARANTEED && CLASS_GUARANTEED < CLASS_REALTIME);
}

TEST(each_class_and_isolation_is_found_by_its_word)
{
	for (enum lease_class c = CLASS_BESTEFFORT; c <= CLASS_REALTIME; c++)
		CHECK(class_from_name(class_names[c]) == (int)c);
	for (enum isolation i = ISOLATION_SHADER_ENGINE; i <= ISOLATION_SHARED; i++)
		CHECK(isolation_from_name(isolation_names[i]) == (int)i);
}

TEST(words_are_those_of_the_bus)
{
	CHECK(strcmp(class_names[CLASS_BESTEFFORT], "besteffort") == 0);
	CHECK(strcmp(class_names[CLASS_GUARANTEED], "guaranteed") == 0);
	CHECK(strcmp(class_names[CLASS_REALTIME], "realtime") == 0);
	CHECK(strcmp(isolation_names[ISOLATION_SHADER_ENGINE], "shader-engine") == 0);
	CHECK(strcmp(isolation_names[ISOLATION_CU], "cu") == 0);
	CHECK(strcmp(isolation_names[ISOLATION_SHARED], "shared") == 0);
	CHECK(strcmp(state_names[STATE_WAITING], "waiting") == 0);
	CHECK(strcmp(state_names[STATE_GRANTED], "granted") == 0);
	CHECK(strcmp(state_names[STATE_INACTIVE], "inactive") == 0);
	CHECK(strcmp(state_names[STATE_ACTIVATING], "activating") == 0);
	CHECK(strcmp(state_names[STATE_REVOKING], "revoking") == 0);
	CHECK(strcmp(state_names[STATE_ENDING], "ending") == 0);
}

TEST(other_words_are_none)
{
	CHECK(class_from_name("") == -EINVAL && class_from_name("Realtime") == -EINVAL);
	CHECK(isolation_from_name("se") == -EINVAL);
	CHECK(isolation_from_name(isolation_names[ISOLATION_DEFAULT]) == -EINVAL);
}

TEST(priorities_are_words_or_kfds_numbers)
{
	CHECK(priority_from_name("low") == 0 && priority_from_name("normal") == 7);
	CHECK(priority_from_name("high") == 11);
	CHECK(priority_from_name("0") == 0 && priority_from_name("15") == 15);
}

TEST(priorities_that_kfd_does_not_have_are_refused)
{
	static const char *const wrong[] = {
		"", "16", "-1", "+1", "1.0", " 1", "1 ", "0x1", "High", "99999999999999999999",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(priority_from_name(wrong[i]) == -EINVAL);
}
