/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "bus/bus-error.h"
#include "bus/bus-private.h"

/* An answer that must not be sent before what it tells outlives the daemon. It does not need
 * the bus that it came by any more: where that is gone, sending fails, and with the reply
 * goes the holder in it. */
struct answer {
	sd_bus_message *call, *reply;
};

static void answer_free(struct answer *answer)
{
	sd_bus_message_unref(answer->call);
	sd_bus_message_unref(answer->reply);
	free(answer);
}

static void on_settled(void *userdata, int r)
{
	_cleanup_(result_done) struct result result = { 0 };
	struct answer *answer = userdata;

	if (r == -ECANCELED) {
		result_set(&result, RESULT_SHUTDOWN, "gpuarbd is going down");
		bus_refuse(answer->call, r, &result);
	} else {
		/* Where the service manager has gone the lease is as good as any: none outlives
		 * this daemon any more, which the host says. */
		sd_bus_send(NULL, answer->reply, NULL);
	}
	answer_free(answer);
}

int bus_send_settled(struct bus *bus, sd_bus_message *call, sd_bus_message *reply)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	int r;

	if (!answer)
		return -ENOMEM;
	answer->call = sd_bus_message_ref(call);
	answer->reply = sd_bus_message_ref(reply);
	r = bus->host->settle(bus->userdata, on_settled, answer);
	if (r < 0) {
		answer_free(answer);
		return r;
	}
	return 1;
}
