/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "await.h"
#include "check-cond.h"
#include "dbus/names.h"
#include "lib-rig.h"

#define LEASE GPUARB_PATH_LEASE "/17"

struct ledger {
	int ours, theirs;
	const char *state; /* at Reserve; Activate and Deactivate change it */
	uint32_t kfd_gpu_id;
	const char *refuse; /* the error that everything but Reserve and GetAll gets */
};

static bool is(const struct ledger *ledger, const char *state)
{
	return strcmp(ledger->state, state) == 0;
}

static bool waits(const struct ledger *ledger)
{
	return is(ledger, "waiting") || is(ledger, "gone");
}

static int answer_reserve(sd_bus_message *call, struct ledger *ledger)
{
	bool later = waits(ledger) || is(ledger, "activating");
	sd_bus_message *reply = fake_reply(call);
	int r;

	CHECK(sd_bus_message_append(reply, "ohs", LEASE, ledger->theirs,
				    later ? "waiting" : ledger->state) >= 0);
	if (later)
		CHECK(sd_bus_message_append(reply, "aa{sv}", 0) >= 0);
	else
		fake_append_partitions(reply, 30, ledger->kfd_gpu_id);
	r = fake_send(reply);
	close(ledger->theirs);
	ledger->theirs = -1;
	return r;
}

/* All properties of the lease, which are those after a change if it is granted: 20 CUs, generation 3. */
static int answer_properties(sd_bus_message *call, const struct ledger *ledger)
{
	sd_bus_message *reply;

	if (is(ledger, "gone"))
		return sd_bus_reply_method_errorf(call, GPUARB_ERROR_NO_SUCH_LEASE, "it is gone");
	reply = fake_reply(call);
	CHECK(sd_bus_message_open_container(reply, 'a', "{sv}") >= 0);
	fake_append(reply, "Id", "t", UINT64_C(17));
	if (waits(ledger)) {
		fake_append(reply, "State", "s", "waiting");
		fake_append(reply, "Deadline", "t", UINT64_C(4711));
		fake_append(reply, "Reason", "s", "one is before it");
	} else {
		fake_append_lease(reply, ledger->state, 3, 20, ledger->kfd_gpu_id);
	}
	CHECK(sd_bus_message_close_container(reply) >= 0);
	return fake_send(reply);
}

static int answer_else(sd_bus_message *call, struct ledger *ledger)
{
	if (!ledger->refuse) {
		if (sd_bus_message_is_method_call(call, NULL, "Activate"))
			ledger->state = "activating";
		if (sd_bus_message_is_method_call(call, NULL, "Deactivate"))
			ledger->state = "inactive";
		return sd_bus_reply_method_return(call, NULL);
	}
	if (*ledger->refuse)
		return sd_bus_reply_method_errorf(call, ledger->refuse, "%s", "it is so");
	ledger->refuse = NULL;
	return 0;
}

static int answer(sd_bus_message *call, void *userdata)
{
	struct ledger *ledger = userdata;

	if (ledger->ours >= 0) {
		close(ledger->ours); /* the test's */
		ledger->ours = -1;
	}
	if (sd_bus_message_is_method_call(call, NULL, "Reserve"))
		return answer_reserve(call, ledger);
	if (sd_bus_message_is_method_call(call, NULL, "GetAll"))
		return answer_properties(call, ledger);
	if (sd_bus_message_is_method_call(call, NULL, "Get"))
		return sd_bus_reply_method_return(call, "v", "u", 2);
	return answer_else(call, ledger);
}

void stage_set(struct stage *ret, const char *state, const char *refuse)
{
	struct ledger ledger = { .state = state, .refuse = refuse };
	int pair[2];

	rig_new(&ret->bus);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	ledger.ours = ret->daemon_end = pair[0];
	ledger.theirs = pair[1];
	fake_arbiter_start(ret->bus.address, answer, &ledger, &ret->fake);
	close(pair[1]);
	ret->gpuarb = lib_rig_open();
}

void stage_strike(struct stage *stage)
{
	gpuarb_close(stage->gpuarb);
	close(stage->daemon_end);
	fake_arbiter_stop(&stage->fake);
	rig_done(&stage->bus);
}

struct gpuarb_lease *stage_reserve(struct stage *stage, uint64_t wait_usec)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;

	want.cus = 31;
	options.wait_usec = wait_usec;
	CHECK(gpuarb_reserve(stage->gpuarb, &want, 1, &options, &lease) == 0);
	return lease;
}

struct gpuarb_lease *stage_begin(struct stage *ret, const char *state, const char *refuse)
{
	stage_set(ret, state, refuse);
	return stage_reserve(ret, 0);
}

struct datagram {
	struct gpuarb_record record;
	struct gpuarb_record_partition partition;
};

static void send_record(const struct stage *stage, struct gpuarb_record record, uint32_t cus)
{
	struct datagram datagram = {
		.record = record,
		.partition = { .gpu = "0000:03:00.0",
			       .tier = "cooperative",
			       .gaps = "power reset",
			       .vram = 1 << 20,
			       .cus = cus,
			       .cus_asked = cus + 1,
			       .effective_cus = cus,
			       .shader_engines = 0xa,
			       .queues = 5,
			       .processes = 1,
			       .sdma_queues = 3,
			       .sdma_xgmi_queues = 5,
			       .n_words = 1,
			       .cu_mask = { (UINT32_C(1) << cus) - 1 } },
	};
	size_t size = sizeof(datagram.record) + (cus > 0 ? sizeof(datagram.partition) : 0);

	datagram.record.version = GPUARB_RECORD_VERSION;
	datagram.record.header_size = sizeof(struct gpuarb_record);
	datagram.record.partition_size = sizeof(struct gpuarb_record_partition);
	datagram.record.n_partitions = cus > 0;
	datagram.record.lease = 17;
	CHECK(send(stage->daemon_end, &datagram, size, MSG_NOSIGNAL) == (ssize_t)size);
}

void stage_tell(const struct stage *stage, uint64_t generation, uint32_t state, uint32_t cus)
{
	struct gpuarb_record record = { .generation = generation,
					.state = state,
					.deadline_usec = UINT64_MAX,
					.reason = "so it is" };

	send_record(stage, record, cus);
}

void stage_revoke(const struct stage *stage, uint64_t deadline)
{
	struct gpuarb_record record = { .generation = 3,
					.state = GPUARB_RECORD_REVOKING,
					.deadline_usec = deadline,
					.reason = "so it is" };

	send_record(stage, record, 20);
}

void stage_end(const struct stage *stage, uint32_t cause)
{
	struct gpuarb_record record = { .state = GPUARB_RECORD_ENDING,
					.cause = cause,
					.deadline_usec = UINT64_MAX,
					.reason = "so it is" };

	send_record(stage, record, 0);
}

bool stage_holder_gone(const struct stage *stage)
{
	return AWAIT_FD(stage->daemon_end, POLLIN) & POLLHUP;
}
