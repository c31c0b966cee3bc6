/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Administration with polkit, which the daemon asks without waiting. A connection of the test plays
 * polkit. */

#include "check.h"
#include "adapter.h"
#include "core/ledger/ledger.h"

NEEDS(bus_missing);

#define POLKIT "org.freedesktop.PolicyKit1"

struct polkit {
	struct adapter a;
	sd_bus *bus;           /* polkit's; NULL: there is none */
	sd_bus *client;        /* a stranger's */
	sd_bus_message *asked; /* the question, held */
	bool was_asked, cancelled, holds;
	unsigned n_asked;
	unsigned long last; /* number of the last question: polkit refuses one that it still has */
	const char *answer; /* "yes", "no", "nonsense" */
	char subject[256], action[256];
	uint32_t flags;
};

static void polkit_answer(struct polkit *p)
{
	if (strcmp(p->answer, "nonsense") == 0)
		CHECK(sd_bus_reply_method_return(p->asked, "s", "perhaps") >= 0);
	else
		CHECK(sd_bus_reply_method_return(p->asked, "(bba{ss})",
						 strcmp(p->answer, "yes") == 0, 0, 0) >= 0);
	p->asked = sd_bus_message_unref(p->asked);
}

static void take_question(struct polkit *p, sd_bus_message *m)
{
	const char *kind, *key, *name, *action, *id;
	unsigned long number;

	CHECK(sd_bus_message_read(m, "(sa{sv})sa{ss}us", &kind, 1, &key, "s", &name, &action, 0,
				  &p->flags, &id) >= 0);
	CHECK(sscanf(id, "gpuarb-%lu", &number) == 1 && number > p->last);
	p->last = number;
	CHECK(strcmp(kind, "system-bus-name") == 0 && strcmp(key, "name") == 0);
	snprintf(p->subject, sizeof(p->subject), "%s", name);
	snprintf(p->action, sizeof(p->action), "%s", action);
	sd_bus_message_unref(p->asked);
	p->asked = sd_bus_message_ref(m);
	p->was_asked = true;
	p->n_asked++;
	if (!p->holds)
		polkit_answer(p);
}

/* Without a vtable, which would only let answers of the right type pass. */
static int on_call(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct polkit *p = userdata;

	if (sd_bus_message_is_method_call(m, POLKIT ".Authority", "CheckAuthorization"))
		take_question(p, m);
	else if (sd_bus_message_is_method_call(m, POLKIT ".Authority", "CancelCheckAuthorization"))
		p->cancelled = true;
	else
		return 0;
	return 1;
}

/* answer NULL: no polkit. */
static void polkit_new(struct polkit *p, const char *answer)
{
	*p = (struct polkit){ .answer = answer };
	adapter_new(&p->a);
	p->client = adapter_connect(&p->a, STRANGER);
	if (!answer)
		return;
	p->bus = adapter_connect(&p->a, 0);
	CHECK(sd_bus_add_object(p->bus, NULL, "/org/freedesktop/PolicyKit1/Authority", on_call,
				p) >= 0);
	CHECK(sd_bus_request_name(p->bus, POLKIT, 0) >= 0);
}

static void polkit_dies(struct polkit *p)
{
	p->asked = sd_bus_message_unref(p->asked);
	leave(p->bus);
	p->bus = NULL;
}

static void polkit_done(struct polkit *p)
{
	polkit_dies(p);
	leave(p->client);
	adapter_done(&p->a);
}

static void await_questions(const struct polkit *p, unsigned n)
{
	AWAIT_LOOP(p->a.event, p->n_asked >= n);
}

static bool drained(const struct polkit *p)
{
	return p->a.arbiter->gpus[0].draining;
}

FIXTURE(struct polkit, p, , polkit_done(p));

TEST_WITH(a_caller_that_polkit_allows_may_administer, struct polkit *p)
{
	const char *name;

	polkit_new(p, "yes");
	CHECK(is_fine(call_run(&p->a, drain(p->client, "0"))) && drained(p));
	CHECK(sd_bus_get_unique_name(p->client, &name) >= 0);
	CHECK(strcmp(p->subject, name) == 0 && p->flags == 0);
	CHECK(strcmp(p->action, "org.gpuarb.Arbiter1.manage") == 0);
	CHECK(is_fine(call_run(&p->a, call_arbiter(p->client, "Reload"))));
}

TEST_WITH(interaction_is_allowed_only_if_the_caller_sets_the_flag, struct polkit *p)
{
	sd_bus_message *call;

	polkit_new(p, "yes");
	call = drain(p->client, "0");
	CHECK(sd_bus_message_set_allow_interactive_authorization(call, true) >= 0);
	CHECK(is_fine(call_run(&p->a, call)) && p->flags == 1);
}

TEST_WITH(a_caller_that_polkit_denies_may_not_administer, struct polkit *p)
{
	polkit_new(p, "no");
	CHECK(is_error(call_run(&p->a, drain(p->client, "0")), GPUARB_ERROR_NOT_PERMITTED,
		       "denies"));
	CHECK(is_error(call_run(&p->a, call_arbiter(p->client, "Reload")),
		       GPUARB_ERROR_NOT_PERMITTED, "org.gpuarb.Arbiter1.manage"));
	CHECK(!drained(p));
}

TEST_WITH(polkit_is_not_asked_about_root, struct polkit *p)
{
	sd_bus *root;

	polkit_new(p, "no");
	root = adapter_connect(&p->a, 0);
	CHECK(is_fine(call_run(&p->a, drain(root, "0"))) && drained(p) && !p->was_asked);
}

TEST_WITH(without_polkit_only_root_and_the_service_user_administer, struct polkit *p)
{
	polkit_new(p, NULL);
	CHECK(is_error(call_run(&p->a, drain(p->client, "0")), GPUARB_ERROR_NOT_PERMITTED,
		       "org.gpuarb.Arbiter1.manage"));
	CHECK(!drained(p));
}

TEST_WITH(a_malformed_answer_of_polkit_denies, struct polkit *p)
{
	polkit_new(p, "nonsense");
	CHECK(is_error(call_run(&p->a, drain(p->client, "0")), GPUARB_ERROR_NOT_PERMITTED, "read"));
	CHECK(!drained(p));
}

TEST_WITH(other_calls_are_served_while_polkit_decides_and_its_death_denies, struct polkit *p)
{
	struct answer slow;

	polkit_new(p, "yes");
	p->holds = true;
	call_send(drain(p->client, "0"), &slow);
	adapter_run(&p->a, &p->was_asked);
	CHECK(is_fine(call_run(&p->a, ask(p->client, "Reserve", 15))) && !slow.came);

	polkit_dies(p);
	adapter_run(&p->a, &slow.came);
	CHECK(is_error(slow.m, GPUARB_ERROR_NOT_PERMITTED, "org.gpuarb.Arbiter1.manage"));
	CHECK(!drained(p));
}

/* The time-out is five seconds, because no password is typed here. */
TEST_WITH(a_polkit_timeout_denies_and_cancels_the_question, struct polkit *p)
{
	polkit_new(p, "yes");
	p->holds = true;
	CHECK(is_error(call_run(&p->a, drain(p->client, "0")), GPUARB_ERROR_NOT_PERMITTED,
		       "org.gpuarb.Arbiter1.manage"));
	adapter_run(&p->a, &p->cancelled);
	polkit_answer(p); /* too late */
	settle(p->client);
	CHECK(is_fine(call_run(&p->a, ask(p->client, "Plan", 15))) && !drained(p));
}

TEST_WITH(questions_are_bounded_for_each_user_and_answered_with_shutdown, struct polkit *p)
{
	struct answer answers[9], other;
	unsigned refused = 0;
	sd_bus *second;

	polkit_new(p, "yes");
	p->holds = true;
	for (unsigned i = 0; i < 9; i++)
		call_send(drain(p->client, "0"), &answers[i]);
	adapter_run(&p->a, &answers[8].came);
	CHECK(is_error(answers[8].m, SD_BUS_ERROR_LIMITS_EXCEEDED, "uid"));

	second = adapter_connect(&p->a, STRANGER + 1);
	call_send(drain(second, "0"), &other);
	await_questions(p, 9); /* polkit is asked about another user */
	CHECK(!other.came);

	p->a.bus = bus_free(p->a.bus);
	for (unsigned i = 0; i < 8; i++) {
		adapter_run(&p->a, &answers[i].came);
		refused += is_error(answers[i].m, GPUARB_ERROR_SHUTDOWN, "");
	}
	adapter_run(&p->a, &other.came);
	CHECK(is_error(other.m, GPUARB_ERROR_SHUTDOWN, ""));
	CHECK(refused == 8 && !drained(p));
}

TEST_WITH(a_question_ends_with_the_connection_of_its_caller, struct polkit *p)
{
	struct answer slow[8], again;

	polkit_new(p, "yes");
	p->holds = true;
	for (unsigned i = 0; i < 8; i++)
		call_send(drain(p->client, "0"), &slow[i]);
	await_questions(p, 8);
	leave(p->client);
	p->client = NULL;
	adapter_run(&p->a, &p->cancelled);

	p->holds = false;
	p->client = adapter_connect(&p->a, STRANGER);
	call_send(drain(p->client, "0"), &again); /* the user has its places again */
	adapter_run(&p->a, &again.came);
	CHECK(is_fine(again.m) && drained(p));
}

TEST_WITH(the_lease_of_another_user_needs_polkit, struct polkit *p)
{
	sd_bus *root;

	polkit_new(p, "no");
	root = adapter_connect(&p->a, 0);
	CHECK(is_fine(call_run(&p->a, ask(root, "Reserve", 15))));
	CHECK(is_fine(call_run(&p->a, ask(p->client, "Reserve", 15))));
	CHECK(is_error(call_run(&p->a, call_lease(p->client, GPUARB_PATH_LEASE "/1", "Release")),
		       GPUARB_ERROR_NOT_PERMITTED, "lease 1"));
	CHECK(p->was_asked && p->a.arbiter->n_leases == 2);

	p->was_asked = false;
	CHECK(is_fine(call_run(&p->a, call_lease(p->client, GPUARB_PATH_LEASE "/2", "Release"))));
	CHECK(!p->was_asked && p->a.arbiter->n_leases == 1);

	p->answer = "yes";
	CHECK(is_fine(call_run(&p->a, call_lease(p->client, GPUARB_PATH_LEASE "/1", "Release"))));
	CHECK(p->was_asked && p->a.arbiter->n_leases == 0);
}
