/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-lease.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dbus/names.h"
#include "lib-rig.h"

#define LEASE GPUARB_PATH_LEASE "/17"

struct ledger {
	int ours, theirs;
	const char *state; /* at Reserve */
	uint32_t kfd_gpu_id;
	const char *refuse; /* the error that everything but Reserve and GetAll gets */
};

static void must(bool so, const char *what)
{
	if (so)
		return;
	fprintf(stderr, "fake lease: not so: %s\n", what);
	abort();
}

static int answer_reserve(sd_bus_message *call, struct ledger *ledger)
{
	sd_bus_message *reply = NULL;
	bool waits = strcmp(ledger->state, "waiting") == 0;
	int r = sd_bus_message_new_method_return(call, &reply);

	if (r >= 0)
		r = sd_bus_message_append(reply, "ohs", LEASE, ledger->theirs, ledger->state);
	if (r >= 0)
		r = waits ? sd_bus_message_append(reply, "aa{sv}", 0) :
			    fake_append_partitions(reply, 30, ledger->kfd_gpu_id);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	sd_bus_message_unref(reply);
	close(ledger->theirs);
	ledger->theirs = -1;
	return r;
}

/* All properties of the lease as they are after a change: 20 CUs, generation 3. */
static int answer_properties(sd_bus_message *call, struct ledger *ledger)
{
	sd_bus_message *reply = NULL;
	int r = sd_bus_message_new_method_return(call, &reply);

	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "{sv}");
	if (r >= 0)
		r = fake_append(reply, "Id", "t", UINT64_C(17));
	if (r >= 0)
		r = fake_append(reply, "State", "s", "granted");
	if (r >= 0)
		r = fake_append(reply, "Generation", "t", UINT64_C(3));
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'e', "sv");
	if (r >= 0)
		r = sd_bus_message_append(reply, "s", "Partitions");
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'v', "aa{sv}");
	if (r >= 0)
		r = fake_append_partitions(reply, 20, ledger->kfd_gpu_id);
	for (int i = 0; i < 3 && r >= 0; i++)
		r = sd_bus_message_close_container(reply);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	sd_bus_message_unref(reply);
	return r;
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
	if (ledger->refuse)
		return sd_bus_reply_method_errorf(call, ledger->refuse, "%s", "it is so");
	return sd_bus_reply_method_return(call, NULL);
}

bool stage_set(struct stage *ret, const char *state, const char *refuse)
{
	struct ledger ledger = { .state = state, .refuse = refuse };
	int pair[2];

	if (!private_bus_start(&ret->bus))
		return false;
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "a pair");
	ledger.ours = ret->daemon_end = pair[0];
	ledger.theirs = pair[1];
	fake_arbiter_start(ret->bus.address, answer, &ledger, &ret->fake);
	close(pair[1]);
	ret->gpuarb = lib_rig_open();
	return true;
}

void stage_strike(struct stage *stage)
{
	gpuarb_close(stage->gpuarb);
	close(stage->daemon_end);
	fake_arbiter_stop(&stage->fake);
	private_bus_stop(&stage->bus);
}

struct gpuarb_lease *stage_reserve(struct stage *stage, uint64_t wait_usec)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;

	want.cus = 31;
	options.wait_usec = wait_usec;
	must(gpuarb_reserve(stage->gpuarb, &want, 1, &options, &lease) == 0,
	     gpuarb_last_error(stage->gpuarb));
	return lease;
}

struct datagram {
	struct gpuarb_record record;
	struct gpuarb_record_partition partition;
};

void stage_tell(const struct stage *stage, uint64_t generation, uint32_t state, uint32_t cus)
{
	struct datagram datagram = {
		.record = { .version = GPUARB_RECORD_VERSION,
			    .header_size = sizeof(struct gpuarb_record),
			    .partition_size = sizeof(struct gpuarb_record_partition),
			    .n_partitions = cus > 0,
			    .lease = 17,
			    .generation = generation,
			    .deadline_usec = UINT64_MAX,
			    .state = state,
			    .reason = "so it is" },
		.partition = { .gpu = "0000:03:00.0", .cus = cus, .effective_cus = cus,
			       .queues = 5, .processes = 1, .n_words = 1,
			       .cu_mask = { (UINT32_C(1) << cus) - 1 } },
	};
	size_t size = sizeof(datagram.record) + (cus > 0 ? sizeof(datagram.partition) : 0);

	must(send(stage->daemon_end, &datagram, size, MSG_NOSIGNAL) == (ssize_t)size, "sent");
}

bool stage_holder_gone(const struct stage *stage)
{
	struct pollfd fd = { .fd = stage->daemon_end, .events = POLLIN };

	return poll(&fd, 1, 5000) == 1 && fd.revents & POLLHUP;
}
