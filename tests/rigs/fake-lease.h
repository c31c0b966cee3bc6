/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Lease 17 on a bus with a fake daemon, whose end of the holder the test has. */

#include "dbus/record.h"
#include "fake-arbiter.h"
#include "libgpuarb/gpuarb.h"
#include "rig.h"

struct stage {
	struct rig bus;
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	int daemon_end;
};

/*
 * Reserve answers with the state, and 30 CUs of a simulated GPU unless that is "waiting":
 * then GetAll says so, too, and generation 0. Else it says 20 CUs, generation 3. "gone" waits
 * at first, and there is no such lease any more when GetAll asks; "activating" is told by GetAll,
 * after "waiting" by Reserve. Get says 2. All else is refused with the error, or done if that is
 * NULL, or not answered at first if it is ""; Activate leads to "activating", Deactivate to
 * "inactive".
 */
void stage_set(struct stage *ret, const char *state, const char *refuse);
void stage_strike(struct stage *stage);

/* Asks for 31 CUs, which must be granted within the time. */
struct gpuarb_lease *stage_reserve(struct stage *stage, uint64_t wait_usec);

/* Both, without a time to wait. */
struct gpuarb_lease *stage_begin(struct stage *ret, const char *state, const char *refuse);

/* Sends a record; cus 0: without a partition. */
void stage_tell(const struct stage *stage, uint64_t generation, uint32_t state, uint32_t cus);

/* Sends that it is being revoked, with 20 CUs of generation 3. */
void stage_revoke(const struct stage *stage, uint64_t deadline);

/* Sends the last record: why it ended. */
void stage_end(const struct stage *stage, uint32_t cause);

/* Waits until every copy of the holder is closed; false if that takes too long. */
bool stage_holder_gone(const struct stage *stage);
