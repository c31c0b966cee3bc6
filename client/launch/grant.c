/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/grant.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "client/launch/session.h"
#include "client/launch/wants.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "util/base.h"

#define HOLDERS_MAX 4U

/* ---- holders ----------------------------------------------------------------------------- */

void refusal_help_lease(FILE *out, const struct command *command,
			const struct gpuarb_lease_info *lease)
{
	size_t at = (size_t)(lease - command->leases);
	uint64_t since = gpuarb_view_since(command->view, at);
	char user[PRINT_USER], age[LEASE_TEXT_AGE], keeps[64] = "";
	unsigned cus = 0, base = 0;

	print_user(lease->owner_uid, user);
	lease_text_age(since, age);
	for (size_t i = 0; i < lease->n_partitions; i++) {
		cus += lease->partitions[i].cus;
		base += gpuarb_view_cus_min(command->view, at, i);
	}
	if (base > 1)
		snprintf(keeps, sizeof(keeps), " (at least %u: --cus-min)", base);
	print_line(out, "  %" PRIu64 "  %s%s%s of %s, %u CU%s%s%s%s", lease->id, lease->name,
		   *lease->name ? ", " : "", lease->lease_class, user, cus, print_s(cus), keeps,
		   *age ? ", for " : "", age);
}

/* The leases of all refusals, each once. */
static size_t collect(const struct command *command, uint64_t *ret)
{
	const struct gpuarb_refusal_facts *facts;
	size_t n = 0;

	for (size_t i = 0; (facts = gpuarb_last_refusal_facts(command->gpuarb, i)); i++) {
		for (size_t k = 0; k < facts->n_leases && n < HOLDERS_MAX; k++) {
			bool known = false;

			for (size_t j = 0; j < n && !known; j++)
				known = ret[j] == facts->leases[k];
			if (!known)
				ret[n++] = facts->leases[k];
		}
	}
	return n;
}

static void print_holders(FILE *out, struct command *command, const uint64_t *ids, size_t n)
{
	if (n == 0 || session_refresh(command) < 0)
		return;
	print_line(out, "  leases that hold it:");
	for (size_t i = 0; i < n; i++) {
		const struct gpuarb_lease_info *lease = session_find(command, ids[i]);

		if (lease) /* it may have ended since */
			refusal_help_lease(out, command, lease);
	}
}

/* ---- options ----------------------------------------------------------------------------- */

struct remedy {
	const struct gpuarb_refusal *row;         /* where the least has to change; NULL: none */
	const struct gpuarb_refusal_facts *facts; /* of row */
	uint64_t amount;                          /* that passes the check */
	bool later;                               /* a refusal may be gone later */
	bool fixed;                               /* a shared lease is not bounded so */
	const char *unnamed; /* a GPU that would grant it if it were named; NULL: none */
};

static bool is_policy(const struct gpuarb_refusal *row)
{
	return strcmp(row->reason, "policy") == 0;
}

/* The option of run, reserve and plan for a resource; NULL: none. */
static const char *option_of(const char *resource)
{
	static const char *const options[] = { "cus",       "shader-engines", "queues",
					       "processes", "sdma-queues",    "sdma-xgmi-queues",
					       "vram",      "priority",       "duration",
					       NULL };

	for (size_t i = 0; options[i]; i++)
		if (strcmp(options[i], resource) == 0)
			return options[i];
	return NULL;
}

/* Less than asked, else more; 0: none. */
static uint64_t find_amount(const struct gpuarb_refusal *row,
			    const struct gpuarb_refusal_facts *facts)
{
	if (is_policy(row))
		return option_of(facts->resource) ? facts->limit : 0;
	if (facts->n_fits == 0 || !option_of(facts->fits_resource))
		return 0;
	return facts->fits[0] > 0 ? facts->fits[0] : facts->fits[facts->n_fits - 1];
}

static void find_remedy(const struct command *command, struct remedy *ret)
{
	const struct gpuarb *gpuarb = command->gpuarb;
	const struct gpuarb_refusal *rows;
	double best = 0;
	bool none = false;
	size_t n;

	*ret = (struct remedy){ .row = NULL };
	rows = gpuarb_last_refusals(gpuarb, &n);
	for (size_t i = 0; i < n; i++) {
		const struct gpuarb_refusal_facts *facts = gpuarb_last_refusal_facts(gpuarb, i);
		uint64_t amount = find_amount(&rows[i], facts);
		/* Where the request asks for engines, gpuarbd may tell how many CUs fit. */
		bool same = is_policy(&rows[i]) ||
			    strcmp(facts->resource, facts->fits_resource) == 0;
		double share = same ? (double)amount / (double)rows[i].asked : 0;

		ret->later |= rows[i].retry;
		ret->fixed |= strcmp(facts->key, "max-fixed-cus") == 0;
		if (!ret->unnamed && strcmp(facts->key, "any") == 0 && facts->n_fits > 0)
			ret->unnamed = rows[i].gpu;
		none |= amount == 0;
		if (amount == 0 || (same && amount == rows[i].asked))
			continue;
		share = rows[i].retry + (share < 1 ? share : 1 / share);
		if (ret->row && (command->every_gpu ? share >= best : share <= best))
			continue;
		best = share;
		ret->row = &rows[i];
		ret->facts = facts;
		ret->amount = amount;
	}
	if (command->every_gpu && none) /* on one of the GPUs nothing would fit */
		ret->row = NULL;
}

/* The option for a number of queues, which processes and streams need if it is not given. */
static const char *option_of_queues(const struct command *command, uint64_t *amount)
{
	const struct gpuarb_want *want = &command->wants[0].want;
	unsigned own = want->queues > 0 ? 1 : 2; /* of a process, beside its streams */
	uint64_t each = *amount / (want->processes > 0 ? want->processes : 1);

	if (strcmp(command->verb, "resize") == 0 || each >= own + want->streams)
		return "queues";
	if (want->streams > 0 && each > own) {
		*amount = each - own;
		return "streams";
	}
	*amount /= own + want->streams;
	return "processes";
}

/* Rounded down to what the option takes. */
static void format_bytes(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = { "", "K", "M", "G", "T" };
	size_t i = 0;

	for (; i < ARRAY_SIZE(units) - 1 && (bytes % 1024 == 0 || bytes >= UINT64_C(100) << 10);
	     i++)
		bytes /= 1024;
	snprintf(buf, size, "%" PRIu64 "%s", bytes, units[i]);
}

/* head: printed before the first option. */
static void print_option(FILE *out, const char **head, const char *option, const char *effect)
{
	if (*head)
		print_line(out, "%s", *head);
	*head = NULL;
	print_line(out, "    %-22s %s", option, effect);
}

/* What a row says of the amount. Slots and memory are counted before CUs are: they are free, but the CUs may not fit. */
static const char *effect_of(const struct remedy *remedy)
{
	const char *counted = remedy->facts->fits_resource;
	bool cus = strcmp(counted, "cus") == 0 || strcmp(counted, "shader-engines") == 0;

	if (is_policy(remedy->row))
		return "is allowed";
	if (strcmp(remedy->row->reason, "quota") == 0)
		return "is within the quota";
	if (!remedy->row->retry)
		return "fits an empty GPU";
	return cus ? "fits now" : "is free now, but the CUs may not fit";
}

/* Of several wants, the option is for that of the GPU; with --gpu=all for all of them. */
static void print_amount(FILE *out, const char **head, const struct command *command,
			 const struct remedy *remedy)
{
	const char *name = option_of(is_policy(remedy->row) ? remedy->facts->resource
							    : remedy->facts->fits_resource);
	bool one = command->n_wants == 1 || command->every_gpu,
	     queues = strcmp(name, "queues") == 0;
	char option[96], effect[64], value[32];
	uint64_t amount = remedy->amount;

	if (!one && (queues || !*remedy->row->gpu || strcmp(remedy->row->gpu, "any") == 0))
		return;
	if (queues)
		name = option_of_queues(command, &amount);
	if (amount == 0)
		return;
	snprintf(value, sizeof(value), "%" PRIu64, amount);
	if (strcmp(name, "vram") == 0)
		format_bytes(amount, value, sizeof(value));
	snprintf(option, sizeof(option), "%s%s%s--%s=%s",
		 one ? "" : "--gpu=", one ? "" : remedy->row->gpu, one ? "" : " ", name, value);
	snprintf(effect, sizeof(effect), "%s%s",
		 queues && strcmp(name, "queues") != 0 ? "counting queues, " : "",
		 effect_of(remedy));
	print_option(out, head, option, effect);
}

static void print_options(FILE *out, const struct command *command, const struct remedy *remedy)
{
	bool resize = strcmp(command->verb, "resize") == 0,
	     plan = strcmp(command->verb, "plan") == 0;
	const char *head = "  what would help:";
	char option[64];

	if (remedy->row)
		print_amount(out, &head, command, remedy);
	if (remedy->unnamed && command->n_wants == 1) {
		snprintf(option, sizeof(option), "--gpu=%s", remedy->unnamed);
		print_option(out, &head, option, "fits now");
	}
	if (remedy->fixed && !resize)
		print_option(out, &head, "gpuarbctl run",
			     "without --cus: a share that max-fixed-cus does not bound");
	if (remedy->later && command->options.wait_usec == 0 && !resize)
		print_option(out, &head, "--wait",
			     plan ? "with run or reserve: wait until it fits"
				  : "wait until it fits; --wait=10min: for so long");
	if (remedy->later && !plan && !resize)
		print_option(out, &head, "gpuarbctl plan",
			     "with the same options: which leases would "
			     "have to end");
}

void refusal_help(struct command *command, bool holders, FILE *out)
{
	uint64_t ids[HOLDERS_MAX];
	size_t n = holders ? collect(command, ids) : 0;
	struct remedy remedy;

	find_remedy(command, &remedy);
	print_options(out, command, &remedy);
	print_holders(out, command, ids, n); /* replaces the refusals */
}

/* ---- grants ---------------------------------------------------------------------------------- */

#define DAEMON_LATE_USEC UINT64_C(2000000)

static int print_json(struct command *command, const struct gpuarb_lease *lease, FILE *out)
{
	const struct gpuarb_lease_info *info;
	int r;

	r = session_snapshot(command);
	if (r == EXIT_OK)
		r = session_lease(command, gpuarb_lease_id(lease), &info);
	if (r == EXIT_OK)
		json_print_lease(out, info);
	return r;
}

/* Without --cus, a lease that cannot give CUs back gets what an adaptable one would have now, and half of a
 * GPU at most. Returns how many CUs in all; 0: that is not known. */
static unsigned limit_to_share(struct command *command, struct gpuarb_want *wants)
{
	const struct gpuarb_partition *planned;
	unsigned all = 0;
	size_t n;

	planned = gpuarb_last_plan(command->gpuarb, &n);
	for (size_t i = 0; i < n && !want_has_cus(&command->wants[i]); i++) {
		const struct gpuarb_gpu *gpu;
		unsigned share = planned[i].cus;

		if (session_gpu(command, planned[i].gpu, &gpu) == EXIT_OK)
			share = min_u(share, gpu->cus / 2);
		if (share < max_u(wants[i].cus, wants[i].cus_min))
			continue;
		wants[i].cus_max = share;
		wants[i].cus_max_percent = 0;
		all += share;
	}
	return all;
}

/* Reports why a lease that could be adaptable is fixed. The daemon knows whether its class and its
 * wants, such as --exact, allow an adaptable lease. */
static void report_fixed(struct command *command, struct gpuarb_want *wants, const char *before)
{
	const char *result;
	char share[64] = "";
	unsigned cus;
	int r;

	command->options.adaptable = true;
	r = gpuarb_plan(command->gpuarb, wants, command->n_wants, &command->options, &result);
	command->options.adaptable = false;
	cus = r >= 0 ? limit_to_share(command, wants) : 0;
	if (cus > 0)
		snprintf(share, sizeof(share), "; its share is %u CU%s, more only with --cus", cus,
			 print_s(cus));
	if (r != -EINVAL && !command->quiet && !command->json)
		print_line(stderr, "%sthe lease is fixed: %s%s", before, command->fixed_reason,
			   share);
}

/* The class or a want excludes an adaptable lease that the user did not ask for. */
static bool ask_fixed(struct command *command, int r)
{
	if (r != -EINVAL || !command->fixed_reason || !command->options.adaptable)
		return false;
	command->options.adaptable = false;
	return true;
}

/* Holders and options follow a lack of room; what policy refuses has a limit instead. */
static int refuse(struct command *command, int error)
{
	int r = fail_asked(command, error);

	if ((error == -EBUSY || error == -ENOSPC || error == -EDQUOT) && !command->json)
		refusal_help(command, error == -EBUSY, stderr);
	return r;
}

static int plan(struct command *command, const struct gpuarb_want *wants, const struct caller *user,
		const char **ret)
{
	_Static_assert(sizeof(gid_t) == sizeof(uint32_t), "groups are those of the bus");

	if (!user)
		return gpuarb_plan(command->gpuarb, wants, command->n_wants, &command->options,
				   ret);
	return gpuarb_plan_as(command->gpuarb, wants, command->n_wants, &command->options,
			      user->uid, user->groups, user->n_groups, ret);
}

static bool refused_for_queues(const struct gpuarb *gpuarb)
{
	const struct gpuarb_refusal_facts *facts;

	for (size_t i = 0; (facts = gpuarb_last_refusal_facts(gpuarb, i)); i++)
		if (strcmp(facts->resource, "queues") == 0)
			return true;
	return false;
}

static int plan_fewer(struct command *command, struct gpuarb_want *wants, const struct caller *user,
		      const char **ret)
{
	int r;

	do {
		r = plan(command, wants, user, ret);
	} while (ask_fixed(command, r) ||
		 (r >= 0 && strcmp(*ret, "refused") == 0 && refused_for_queues(command->gpuarb) &&
		  want_ask_less(command, wants)));
	return r;
}

/* Has the last plan these GPUs? in_order: each want has the GPU at its place. */
static bool is_planned_on(const struct command *command, char gpus[][GPU_NAME_MAX], bool in_order)
{
	const struct gpuarb_partition *planned;
	size_t n, found = 0;

	planned = gpuarb_last_plan(command->gpuarb, &n);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			found += (i == j || !in_order) && strcmp(planned[i].gpu, gpus[j]) == 0;
	return n == command->n_wants && found == n;
}

/* After a plan that is granted with the fewest queues: as many as are fair on its GPUs. More would keep the program from
 * a GPU with few slots. Wants that have other numbers can change their GPUs with each other. */
static int plan_more(struct command *command, struct gpuarb_want *wants, const struct caller *user,
		     const char **ret)
{
	char gpus[REQUEST_WANTS][GPU_NAME_MAX];
	const struct gpuarb_partition *planned;
	size_t n, turns = command->n_wants;
	int r = 0;

	do {
		planned = gpuarb_last_plan(command->gpuarb, &n);
		for (size_t i = 0; i < n; i++)
			snprintf(gpus[i], sizeof(gpus[i]), "%s", planned[i].gpu);
		if (!want_ask_queues(command, planned, wants))
			return r;
		r = plan(command, wants, user, ret);
	} while (r >= 0 && --turns > 0 && !is_planned_on(command, gpus, true) &&
		 is_planned_on(command, gpus, false));
	while (r >= 0 && !is_planned_on(command, gpus, true) && want_ask_less(command, wants))
		r = plan(command, wants, user, ret);
	return r;
}

int grant_plan(struct command *command, struct gpuarb_want *wants, const struct caller *user,
	       const char **ret)
{
	const uint64_t wait_usec = command->options.wait_usec;
	struct gpuarb_want waiting[REQUEST_WANTS];
	bool granted;
	int r;

	memcpy(waiting, wants, command->n_wants * sizeof(*wants));
	command->options.wait_usec = 0;
	(void)want_ask_queues(command, NULL, wants);
	r = plan_fewer(command, wants, user, ret);
	granted = r >= 0 && strcmp(*ret, "granted") == 0;
	if (granted)
		r = plan_more(command, wants, user, ret);
	command->options.wait_usec = wait_usec;
	if (r < 0 || granted || (wait_usec == 0 && strcmp(*ret, "refused") == 0))
		return r;
	memcpy(wants, waiting, command->n_wants * sizeof(*wants));
	return plan_fewer(command, wants, user, ret);
}

/* Finds the number of queues that fits, where none was typed. Only plans: gpuarbd logs and counts each
 * request that it refuses. */
static void find_queues(struct command *command, struct gpuarb_want *wants)
{
	const char *result;
	bool typed = true;

	for (size_t i = 0; i < command->n_wants; i++)
		typed = typed && wants[i].queues == command->wants[i].want.queues;
	if (!typed)
		(void)grant_plan(command, wants, NULL, &result);
}

static int request(struct command *command, const char *before, struct gpuarb_lease **ret)
{
	struct gpuarb_want wants[REQUEST_WANTS];
	int r;

	r = want_resolve(command, wants);
	if (r != EXIT_OK)
		return r;
	if (command->fixed_reason && *command->fixed_reason)
		report_fixed(command, wants, before);
	else if (command->fixed_reason)
		command->options.adaptable = true;

	find_queues(command, wants);
	do {
		r = gpuarb_reserve_start(command->gpuarb, wants, command->n_wants,
					 &command->options, ret);
	} while (ask_fixed(command, r));
	return r < 0 ? refuse(command, r) : EXIT_OK;
}

static bool is(const struct gpuarb_lease *lease, const char *state)
{
	return strcmp(gpuarb_lease_state(lease), state) == 0;
}

/* "lease 12 is activating: waits for 30 CUs that lease 9 borrows; active in 1 s". */
static void print_activating(const struct gpuarb_lease *lease, const char *before)
{
	const char *reason = gpuarb_lease_reason(lease);
	char why[256];

	lease_text_why("activating", 0, *reason ? reason : "waits for borrowed CUs",
		       gpuarb_lease_deadline(lease), why, sizeof(why));
	print_line(stderr, "%slease %" PRIu64 " is activating: %s", before, gpuarb_lease_id(lease),
		   why);
}

/* "lease 12 waits for 30 CUs on 0000:03:00.0; position 2; gives up in 60 s". */
static int print_waiting(struct command *command, struct gpuarb_lease *lease, const char *before)
{
	const char *reason;
	unsigned position;
	char why[256];
	int r;

	if (command->quiet)
		return EXIT_OK;
	if (command->json)
		return print_json(command, lease, stderr);
	if (is(lease, "activating"))
		print_activating(lease, before);
	if (!is(lease, "waiting"))
		return EXIT_OK;

	r = gpuarb_lease_position(lease, &position);
	if (r < 0)
		return fail_asked(command, r);
	if (position == 0) /* it no longer waits */
		return EXIT_OK;

	reason = gpuarb_lease_reason(lease);
	lease_text_why("waiting", position, *reason ? reason : "waits",
		       gpuarb_lease_deadline(lease), why, sizeof(why));
	print_line(stderr, "%slease %" PRIu64 " %s", before, gpuarb_lease_id(lease), why);
	return EXIT_OK;
}

/* The daemon ends the wait in time, with its reason; this limit is for a daemon that hangs. */
static uint64_t wait_limit(const struct command *command)
{
	uint64_t usec = command->options.wait_usec;

	return usec > GPUARB_FOREVER - DAEMON_LATE_USEC ? GPUARB_FOREVER : usec + DAEMON_LATE_USEC;
}

/* A token can find a waiting lease although --wait was not given. */
static int refuse_to_wait(const struct command *command, const struct gpuarb_lease *lease)
{
	const char *reason = gpuarb_lease_reason(lease);

	return fail(command, EXIT_REFUSED,
		    "lease %" PRIu64 ", which has this token, is %s%s%s; use --wait to wait for it",
		    gpuarb_lease_id(lease), gpuarb_lease_state(lease), *reason ? ": " : "", reason);
}

static int wait_for_it(struct command *command, struct gpuarb_lease *lease, const char *before)
{
	int r;

	if (command->options.wait_usec == 0 && !is(lease, "revoking"))
		return refuse_to_wait(command, lease);

	r = print_waiting(command, lease, before);
	if (r != EXIT_OK)
		return r;

	r = gpuarb_lease_wait(lease, wait_limit(command));
	if (r >= 0)
		return EXIT_OK;
	(void)fail_asked(command, r);
	return r == -ENOENT || r == -EBADFD ? EXIT_LOST : fail_code(r);
}

int grant_reserve(struct command *command, const char *before, struct gpuarb_lease **ret)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	int r;

	r = request(command, before, &lease);
	if (r == EXIT_OK && !is(lease, "granted") && !is(lease, "inactive"))
		r = wait_for_it(command, lease, before);
	if (r == EXIT_OK)
		*ret = TAKE_PTR(lease);
	return r;
}

int grant_print(struct command *command, const struct gpuarb_lease *lease, const char *before,
		FILE *out)
{
	char head[64];

	if (command->quiet)
		return EXIT_OK;
	if (command->json)
		return print_json(command, lease, out);

	snprintf(head, sizeof(head), "%slease %" PRIu64 ": ", before, gpuarb_lease_id(lease));
	for (size_t i = 0; i < gpuarb_lease_partitions(lease); i++) {
		print_grant(out, head, gpuarb_lease_partition(lease, i));
		print_pause(out, head, gpuarb_lease_partition(lease, i));
	}
	if (is(lease, "inactive"))
		print_line(out, "%sinactive: its CUs are lent until gpuarbctl activate %" PRIu64,
			   head, gpuarb_lease_id(lease));
	fflush(out);
	return EXIT_OK;
}
