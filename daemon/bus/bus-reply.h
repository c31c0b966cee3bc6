/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Answers to calls. */

#include "bus/bus-private.h"

/* Sends a reply that was built with the result r. Returns what a method handler returns. */
int bus_send(sd_bus_message *reply, int r);

/* The error's name; NULL for RESULT_OK. */
const char *bus_error_name(enum result_kind kind);

/* Answers a call with the error of the result, its sentence and its refusals; with the errno r
 * where the result has no kind. Returns what a method handler returns. */
int bus_refuse(sd_bus_message *call, int r, const struct result *result);

#define BUS_STOPPING "gpuarbd is stopping" /* the sentence of RESULT_SHUTDOWN */

/* Answers a call with an error that has no refusals. Returns what a method handler returns. */
int bus_refuse_as(sd_bus_message *call, enum result_kind kind, const char *sentence);

/* Handles a call that has waited, and answers what the handler does not answer. */
void bus_handle_again(struct bus *bus, sd_bus_message *call, sd_bus_message_handler_t handler);

/* Sends the reply when a restart of the daemon would keep the holders that were made so far:
 * host->settle(). If it cannot be sent, the lease ends; 0: the call made none. Returns what a method
 * handler returns. */
int bus_send_settled(struct bus *bus, sd_bus_message *call, sd_bus_message *reply, uint64_t lease);

/* Answers a Reserve with the lease and its holder. Takes the holder. */
int bus_reply_reserve(struct bus *bus, sd_bus_message *call, const struct lease *lease,
		      const struct request *request, int holder, const char *state);

/* Answers a Reserve without wait-usec whose lease is activating: later, by bus_answer_deferred(),
 * when the lease is granted or has ended. Takes the holder. */
int bus_defer_reserve(struct bus *bus, sd_bus_message *call, const struct lease *lease, int holder);
void bus_answer_deferred(struct bus *bus, const struct lease *lease, unsigned touched);
void bus_forget_deferred(struct bus *bus, const char *sender); /* its connection has closed */
