/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/refusal-help.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/launch/session.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"

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

struct
try {
	const struct gpuarb_refusal_facts *facts; /* of the refusal where the most would fit */
	bool now;                                 /* it would fit now, not on an idle GPU only */
	bool quota;                               /* of a quota, not of a GPU */
	bool later;                               /* a refusal may be gone later */
};

/* The option of run, reserve and plan for a resource; NULL: none. */
static const char *option_of(const char *resource)
{
	static const char *const options[] = { "cus",       "shader-engines", "queues",
					       "processes", "sdma-queues",    "sdma-xgmi-queues",
					       NULL };

	for (size_t i = 0; options[i]; i++)
		if (strcmp(options[i], resource) == 0)
			return options[i];
	return NULL;
}

static void find_try(const struct gpuarb *gpuarb, struct try *ret)
{
	const struct gpuarb_refusal *rows;
	size_t n;

	*ret = (struct try){ .facts = NULL };
	rows = gpuarb_last_refusals(gpuarb, &n);
	for (size_t i = 0; i < n; i++) {
		const struct gpuarb_refusal_facts *facts = gpuarb_last_refusal_facts(gpuarb, i);

		ret->later |= rows[i].retry;
		if (facts->n_fits == 0 || facts->fits[0] == 0 || !option_of(facts->fits_resource) ||
		    facts->fits[0] >= rows[i].asked)
			continue;
		if (ret->facts && (!rows[i].retry || facts->fits[0] <= ret->facts->fits[0]))
			continue;
		ret->facts = facts;
		ret->now = rows[i].retry;
		ret->quota = strcmp(rows[i].reason, "quota") == 0;
	}
}

static void print_option(FILE *out, const char *option, const char *effect)
{
	print_line(out, "    %-22s %s", option, effect);
}

static void print_options(FILE *out, const struct command *command, const struct try *try)
{
	bool resize = strcmp(command->verb, "resize") == 0,
	     plan = strcmp(command->verb, "plan") == 0;
	char option[64];

	if (!try->facts && !try->later)
		return;
	print_line(out, "  what would help:");
	if (try->facts && command->n_wants == 1) {
		snprintf(option, sizeof(option), "--%s=%" PRIu64,
			 option_of(try->facts->fits_resource), try->facts->fits[0]);
		print_option(out, option,
			     try->quota ? "is within the quota"
			     : try->now ? "fits now"
					: "fits an empty GPU");
	}
	if (try->later && command->options.wait_usec == 0 && !resize)
		print_option(out, "--wait",
			     plan ? "with run or reserve: wait until it fits"
				  : "wait until it fits; --wait=10min: for so long");
	if (try->later && !plan && !resize)
		print_option(out, "gpuarbctl plan",
			     "with the same options: which leases would "
			     "have to end");
}

void refusal_help(struct command *command, bool holders, FILE *out)
{
	uint64_t ids[HOLDERS_MAX];
	size_t n = holders ? collect(command, ids) : 0;
	struct try try;

	find_try(command->gpuarb, &try);
	print_options(out, command, &try);
	print_holders(out, command, ids, n); /* replaces the refusals */
}
