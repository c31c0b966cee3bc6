/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Administrators: root, the user that the daemon runs as, and callers that polkit grants the action
 * org.gpuarb.Arbiter1.manage. The daemon asks polkit without waiting. If polkit is absent, does not
 * answer in time, or ends, the action is denied.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/bus-polkit.h"

#include "bus/bus-reply.h"
#include "bus/bus-sender.h"
#include "core/ledger/lease.h"
#include "core/ledger/ledger.h"
#include "dbus/names.h"

#define ACTION GPUARB_INTERFACE ".manage"

/* polkit's D-Bus interface, org.freedesktop.PolicyKit1.Authority. */
#define POLKIT_NAME "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE POLKIT_NAME ".Authority"
#define ALLOW_INTERACTION 1U

/* polkit answers them one after the other, and a question may take as long as a password: no user can
 * take the places of the others. */
#define QUESTIONS_MAX 256U
#define USER_QUESTIONS_MAX 8U
#define ANSWER_USEC UINT64_C(5000000)   /* polkit decides alone */
#define PERSON_USEC UINT64_C(120000000) /* a person types a password */

/* A call whose caller polkit has to authorise. */
struct question {
	struct bus *bus;
	uint64_t number;
	sd_bus_message *call;
	sd_bus_message_handler_t handler;
	sd_bus_slot *slot;
	struct caller caller;
	bool answered;
	const char *why; /* answered and denied: the reason */
	LIST_ENTRY(question) link;
};

static struct question *question_free(struct question *question)
{
	sd_bus_slot_unref(question->slot);
	sd_bus_message_unref(question->call);
	free(question);
	return NULL;
}
DEFINE_CLEANUP(struct question *, question_free)

static void forget(struct question *question)
{
	LIST_REMOVE(question, link);
	question->bus->n_questions--;
	question_free(question);
}

static void question_id(const struct question *question, char *buf, size_t size)
{
	snprintf(buf, size, "gpuarb-%" PRIu64, question->number);
}

static struct question *find(const struct bus *bus, const sd_bus_message *call)
{
	struct question *question = LIST_FIRST(&bus->questions);

	while (question && question->call != call)
		question = LIST_NEXT(question, link);
	return question;
}

/* Closes the password dialogue. Does not start a polkit that has ended. */
static void cancel(const struct question *question)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	char id[32];

	if (sd_bus_message_new_method_call(question->bus->sd, &m, POLKIT_NAME, POLKIT_PATH,
					   POLKIT_INTERFACE, "CancelCheckAuthorization") < 0)
		return;
	question_id(question, id, sizeof(id));
	if (sd_bus_message_append_basic(m, 's', id) >= 0 &&
	    sd_bus_message_set_auto_start(m, false) >= 0 &&
	    sd_bus_message_set_expect_reply(m, false) >= 0)
		sd_bus_send(question->bus->sd, m, NULL);
}

static void take_answer(struct question *question, sd_bus_message *m)
{
	int authorised = 0;

	if (sd_bus_message_is_method_error(m, SD_BUS_ERROR_NO_REPLY))
		cancel(question);
	if (sd_bus_message_is_method_error(m, NULL))
		question->why = "polkit cannot be asked";
	else if (sd_bus_message_enter_container(m, 'r', "bba{ss}") < 0 ||
		 sd_bus_message_read_basic(m, 'b', &authorised) < 0)
		question->why = "polkit sent an answer that gpuarbd cannot read";
	else if (!authorised)
		question->why = "polkit denies it";
	question->caller.administrator = authorised;
	question->answered = true;
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct question *question = userdata;

	take_answer(question, m);
	bus_handle_again(question->bus, question->call, question->handler);
	forget(question);
	return 1;
}

static int send_question(struct question *question)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	bool person = sd_bus_message_get_allow_interactive_authorization(question->call) > 0;
	char id[32];
	int r;

	question_id(question, id, sizeof(id));
	r = sd_bus_message_new_method_call(question->bus->sd, &m, POLKIT_NAME, POLKIT_PATH,
					   POLKIT_INTERFACE, "CheckAuthorization");
	if (r >= 0)
		r = sd_bus_message_append(m, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
					  sd_bus_message_get_sender(question->call), ACTION, 0,
					  person ? ALLOW_INTERACTION : 0U, id);
	if (r >= 0)
		r = sd_bus_call_async(question->bus->sd, &question->slot, m, on_answer, question,
				      person ? PERSON_USEC : ANSWER_USEC);
	return r;
}

static unsigned questions_of(const struct bus *bus, uid_t uid)
{
	const struct question *question;
	unsigned n = 0;

	LIST_FOREACH(question, &bus->questions, link)
	n += question->caller.uid == uid;
	return n;
}

static int ask(struct bus *bus, sd_bus_message *call, sd_bus_message_handler_t handler,
	       const struct caller *caller)
{
	_cleanup_(question_freep) struct question *question = NULL;
	int r;

	if (questions_of(bus, caller->uid) >= USER_QUESTIONS_MAX)
		return sd_bus_reply_method_errorf(
			call, SD_BUS_ERROR_LIMITS_EXCEEDED,
			"%u calls of uid %u are waiting for polkit already: try again later",
			USER_QUESTIONS_MAX, caller->uid);
	if (bus->n_questions >= QUESTIONS_MAX)
		return sd_bus_reply_method_errorf(
			call, SD_BUS_ERROR_LIMITS_EXCEEDED,
			"%u calls are waiting for polkit already: try again later", QUESTIONS_MAX);
	question = calloc(1, sizeof(*question));
	if (!question)
		return -ENOMEM;
	question->bus = bus;
	question->number = ++bus->last_question;
	question->call = sd_bus_message_ref(call);
	question->handler = handler;
	question->caller = *caller;
	r = send_question(question);
	if (r < 0)
		return r;

	LIST_INSERT_HEAD(&bus->questions, question, link);
	TAKE_PTR(question);
	bus->n_questions++;
	return 0;
}

static bool is_owner(const struct bus *bus, const struct caller *caller, uint64_t id)
{
	const struct lease *lease = ledger_find(bus->arbiter, id);

	/* A lease that has ended has no owner; the daemon refuses the call. */
	return !lease || lease->owner == caller->uid;
}

/* As bus_sender(), but asks polkit about a caller that is no administrator, and not the owner of the
 * lease unless that is NULL. *ret_why: why polkit denied it; NULL: it was not asked, or allowed it. */
static const struct caller *sender(struct bus *bus, sd_bus_message *call,
				   sd_bus_message_handler_t handler, const uint64_t *lease,
				   const char **ret_why)
{
	const struct question *question = find(bus, call);
	const struct caller *caller;
	int r;

	if (question && question->answered) {
		*ret_why = question->why;
		return &question->caller;
	}
	caller = bus_sender(bus, call);
	*ret_why = NULL;
	if (!caller || caller->administrator || (lease && is_owner(bus, caller, *lease)))
		return caller;

	r = ask(bus, call, handler, caller);
	if (r < 0)
		sd_bus_reply_method_errno(call, r, NULL);
	return NULL;
}

const struct caller *bus_administrator(struct bus *bus, sd_bus_message *call,
				       sd_bus_message_handler_t handler, const char *what)
{
	_cleanup_(result_done) struct result result = { 0 };
	const struct caller *caller;
	const char *why;

	caller = sender(bus, call, handler, NULL, &why);
	if (!caller || caller->administrator)
		return caller;

	result_set(&result, RESULT_NOT_PERMITTED,
		   "Access denied: to %s takes administrator rights (polkit action " ACTION "): %s",
		   what, why);
	bus_refuse(call, -EACCES, &result);
	return NULL;
}

const struct caller *bus_owner(struct bus *bus, sd_bus_message *call,
			       sd_bus_message_handler_t handler, uint64_t lease)
{
	const char *why;

	return sender(bus, call, handler, &lease, &why);
}

void bus_forget_questions(struct bus *bus, const char *sender)
{
	struct question *next;

	for (struct question *question = LIST_FIRST(&bus->questions); question; question = next) {
		next = LIST_NEXT(question, link);
		if (question->answered ||
		    strcmp(sd_bus_message_get_sender(question->call), sender) != 0)
			continue;
		cancel(question);
		forget(question);
	}
}

void bus_drop_questions(struct bus *bus)
{
	for (struct question *question; (question = LIST_FIRST(&bus->questions));) {
		bus_refuse_as(question->call, RESULT_SHUTDOWN, BUS_STOPPING);
		forget(question);
	}
}
