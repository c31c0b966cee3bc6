/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/refusal-help.h"

#include <inttypes.h>
#include <string.h>

#include "client/launch/session.h"
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

static void find_remedy(const struct gpuarb *gpuarb, struct remedy *ret)
{
	const struct gpuarb_refusal *rows;
	double best = 0;
	size_t n;

	*ret = (struct remedy){ .row = NULL };
	rows = gpuarb_last_refusals(gpuarb, &n);
	for (size_t i = 0; i < n; i++) {
		const struct gpuarb_refusal_facts *facts = gpuarb_last_refusal_facts(gpuarb, i);
		uint64_t amount = find_amount(&rows[i], facts);
		double share = (double)amount / (double)rows[i].asked;

		ret->later |= rows[i].retry;
		if (amount == 0 || amount == rows[i].asked)
			continue;
		share = rows[i].retry + (share < 1 ? share : 1 / share);
		if (share <= best)
			continue;
		best = share;
		ret->row = &rows[i];
		ret->facts = facts;
		ret->amount = amount;
	}
}

/* The option for a number of queues, which processes and streams need if it is not given. */
static const char *option_of_queues(const struct command *command, uint64_t *amount)
{
	const struct gpuarb_want *want = &command->wants[0].want;
	unsigned own = want->queues > 0 ? 1 : 2; /* of a process, beside its streams */
	uint64_t each = *amount / (want->processes > 0 ? want->processes : 1);

	if (strcmp(command->verb, "resize") == 0 || (own == 1 && each > want->streams))
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

/* Of several wants, the option is for that of the GPU. */
static void print_amount(FILE *out, const char **head, const struct command *command,
			 const struct remedy *remedy)
{
	const char *name = option_of(is_policy(remedy->row) ? remedy->facts->resource
							    : remedy->facts->fits_resource);
	bool one = command->n_wants == 1, queues = strcmp(name, "queues") == 0;
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
		 is_policy(remedy->row)                      ? "is allowed"
		 : strcmp(remedy->row->reason, "quota") == 0 ? "is within the quota"
		 : remedy->row->retry                        ? "fits now"
							     : "fits an empty GPU");
	print_option(out, head, option, effect);
}

static void print_options(FILE *out, const struct command *command, const struct remedy *remedy)
{
	bool resize = strcmp(command->verb, "resize") == 0,
	     plan = strcmp(command->verb, "plan") == 0;
	const char *head = "  what would help:";

	if (remedy->row)
		print_amount(out, &head, command, remedy);
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

	find_remedy(command->gpuarb, &remedy);
	print_options(out, command, &remedy);
	print_holders(out, command, ids, n); /* replaces the refusals */
}
