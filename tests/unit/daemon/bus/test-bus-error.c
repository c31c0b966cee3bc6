/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus/bus-error.h"

#include <errno.h>
#include <systemd/sd-bus-protocol.h>

#include "check.h"
#include "dbus/names.h"

TEST(every_verdict_has_an_error_name_of_its_own)
{
	CHECK(!bus_error_name(VERDICT_OK));
	for (enum verdict_kind a = VERDICT_OK + 1; a < VERDICT_KINDS; a++) {
		CHECK(sd_bus_interface_name_is_valid(bus_error_name(a)) > 0);
		for (enum verdict_kind b = VERDICT_OK + 1; b < a; b++)
			CHECK(strcmp(bus_error_name(a), bus_error_name(b)) != 0);
	}
}

TEST(names_are_ours_but_for_memory)
{
	for (enum verdict_kind kind = VERDICT_OK + 1; kind < VERDICT_KINDS; kind++) {
		bool ours = strncmp(bus_error_name(kind), GPUARB_ERROR, strlen(GPUARB_ERROR)) == 0;

		CHECK(ours == (kind != VERDICT_NO_MEMORY));
	}
}

TEST(an_errno_stands_for_one_error_name)
{
	int seen[VERDICT_KINDS];
	struct verdict verdict = { 0 };

	for (enum verdict_kind kind = VERDICT_OK + 1; kind < VERDICT_KINDS; kind++) {
		seen[kind] = verdict_set(&verdict, kind, "why");
		CHECK(seen[kind] < 0 && verdict.kind == kind);
		for (enum verdict_kind other = VERDICT_OK + 1; other < kind; other++)
			CHECK(seen[other] != seen[kind]);
	}
	verdict_done(&verdict);
}
