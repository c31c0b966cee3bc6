/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus/bus-reply.h"

#include <errno.h>
#include <systemd/sd-bus-protocol.h>

#include "check.h"
#include "dbus/names.h"

TEST(every_result_has_an_error_name_of_its_own)
{
	CHECK(!bus_error_name(RESULT_OK));
	for (enum result_kind a = RESULT_OK + 1; a < RESULT_KINDS; a++) {
		CHECK(sd_bus_interface_name_is_valid(bus_error_name(a)) > 0);
		for (enum result_kind b = RESULT_OK + 1; b < a; b++)
			CHECK(strcmp(bus_error_name(a), bus_error_name(b)) != 0);
	}
}

TEST(error_names_are_in_the_gpuarb_namespace_except_no_memory)
{
	for (enum result_kind kind = RESULT_OK + 1; kind < RESULT_KINDS; kind++) {
		bool ours = strncmp(bus_error_name(kind), GPUARB_ERROR, strlen(GPUARB_ERROR)) == 0;

		CHECK(ours == (kind != RESULT_NO_MEMORY));
	}
}

TEST(an_errno_stands_for_one_error_name)
{
	int seen[RESULT_KINDS];
	_cleanup_(result_done) struct result result = { 0 };

	for (enum result_kind kind = RESULT_OK + 1; kind < RESULT_KINDS; kind++) {
		seen[kind] = result_set(&result, kind, "why");
		CHECK(seen[kind] < 0 && result.kind == kind);
		for (enum result_kind other = RESULT_OK + 1; other < kind; other++)
			CHECK(seen[other] != seen[kind]);
	}
}
