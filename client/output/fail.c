/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/json.h"
#include "client/output/print.h"
#include "core/policy/refusal.h"
#include "util/diagnostics.h"
#include "util/text-stream.h"

int fail_code(int error)
{
	static const struct {
		int error, code;
	} table[] = {
		{ -EINVAL, EXIT_USAGE },        { -EBUSY, EXIT_REFUSED },
		{ -ENOSPC, EXIT_REFUSED },      { -EDQUOT, EXIT_REFUSED },
		{ -EUSERS, EXIT_REFUSED },      { -EACCES, EXIT_FORBIDDEN },
		{ -ECONNREFUSED, EXIT_ABSENT }, { -ECONNRESET, EXIT_ABSENT },
		{ -ESHUTDOWN, EXIT_ABSENT },    { -ETIMEDOUT, EXIT_WAITED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].error == error)
			return table[i].code;
	}
	return EXIT_FAILED;
}

/* A sentence of several lines, such as all that is wrong with a configuration, becomes as many
 * lines. */
static void print_failure(const struct command *command, const char *sentence)
{
	for (;;) {
		size_t n = strcspn(sentence, "\n");

		print_line(stderr, "gpuarbctl%s%s: %.*s", *command->verb ? " " : "", command->verb,
			   (int)n, sentence);
		sentence += n;
		if (!*sentence || !*++sentence)
			return;
	}
}

static void json_failure(const char *sentence, const struct gpuarb *gpuarb)
{
	struct json_object *failure = json_map(NULL, NULL);
	const char *name = gpuarb ? gpuarb_last_error_name(gpuarb) : "";

	JSON_FIELDS(failure, ("error", sentence), ("error_name", name, ""));
	json_refusals(failure, gpuarb);
	json_print(stderr, failure);
}

int fail(const struct command *command, int code, const char *format, ...)
{
	char *sentence = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&sentence, format, args);
	va_end(args);
	if (n < 0)
		return code;

	if (command->json)
		json_failure(sentence, NULL);
	else
		print_failure(command, sentence);
	free(sentence);
	return code;
}

int fail_diagnostics(const struct command *command, int code, const struct diagnostics *diagnostics,
		     int error)
{
	_cleanup_(freep) char *sentence = NULL;
	struct text_stream stream;
	FILE *out = text_stream_open(&stream);

	for (size_t i = 0; out && i < diagnostics->n; i++)
		fprintf(out, "%s%s", i > 0 ? "\n" : "", diagnostics->list[i].text);
	sentence = text_stream_close(&stream);
	if (!sentence || diagnostics->n == 0)
		return fail(command, EXIT_FAILED, "%s", strerror(sentence ? -error : ENOMEM));
	return fail(command, code, "%s", sentence);
}

/* ---- refusals ------------------------------------------------------------------------- */

static void take_lists(const struct gpuarb_refusal_facts *facts, struct refusal *ret)
{
	for (size_t i = 0; i < facts->n_fits && i < ARRAY_SIZE(ret->fits); i++)
		ret->fits[ret->n_fits++] = facts->fits[i];
	for (size_t i = 0; i < facts->n_leases && i < REFUSAL_LEASES; i++)
		ret->leases[i] = facts->leases[i];
	ret->n_leases = facts->n_leases ? facts->lease_count : 0;
	for (size_t i = 0; i < facts->n_processes && i < REFUSAL_PROCESSES; i++) {
		struct unmanaged_process *process = &ret->processes[i];

		process->pid = (pid_t)facts->processes[i].pid;
		process->uid = facts->processes[i].uid;
		process->queues = facts->processes[i].queues;
		snprintf(process->command, sizeof(process->command), "%.15s",
			 facts->processes[i].command);
	}
	ret->n_processes = facts->n_processes ? facts->process_count : 0;
}

/* The facts as the daemon has them. False: an older daemon sent none, or a newer one sent names
 * that this program does not have. */
static bool take_facts(const struct gpuarb_refusal *row, const struct gpuarb_refusal_facts *facts,
		       struct refusal *ret)
{
	int reason = reason_from_name(row->reason), resource = resource_from_name(facts->resource);
	int fits = resource_from_name(facts->fits_resource);
	int asked = class_from_name(facts->asked_class),
	    limit = class_from_name(facts->limit_class);

	if (reason < 0 || resource < 0 || fits < 0 ||
	    (!*facts->resource && !*facts->key && reason != REASON_EXCLUSIVE &&
	     reason != REASON_GRAPHICS) ||
	    (resource == RESOURCE_EXCLUSIVE &&
	     (row->asked > EXCLUSIVE_ACTIVE || facts->limit > EXCLUSIVE_ACTIVE)) ||
	    (resource == RESOURCE_CLASS && (asked < 0 || limit < 0)))
		return false;
	*ret = (struct refusal){
		.reason = (enum reason)reason,
		.resource = (enum resource)resource,
		.retry = row->retry,
		.asked = resource == RESOURCE_CLASS ? (uint64_t)asked : row->asked,
		.free = row->free,
		.total = facts->total,
		.reserved = facts->reserved,
		.key = *facts->key ? facts->key : NULL,
		.limit = resource == RESOURCE_CLASS ? (uint64_t)limit : facts->limit,
		.held = facts->held,
		.uid = facts->uid,
		.fit_resource = (enum resource)fits,
		.behind = facts->behind,
	};
	snprintf(ret->tenant, sizeof(ret->tenant), "%s", facts->tenant);
	snprintf(ret->preempt, sizeof(ret->preempt), "%s", facts->preempt_tenant);
	take_lists(facts, ret);
	return true;
}

/* Policy can change at any time: whether its refusal lasts is unknown. */
static const char *prospects(const struct gpuarb_refusal *refusal)
{
	if (refusal->retry)
		return "; may succeed later";
	if (strcmp(refusal->reason, "policy") == 0 || strcmp(refusal->reason, "quota") == 0)
		return "";
	return "; can never succeed";
}

_Static_assert(REFUSAL_USER == PRINT_USER, "a name fits");

/* What is printed of a refusal after its GPU. */
typedef char refusal_text[REFUSAL_TEXT + 64];

static void describe(const struct gpuarb_refusal *row, const struct gpuarb_refusal_facts *facts,
		     refusal_text ret)
{
	struct refusal refusal;
	char line[REFUSAL_TEXT];

	if (take_facts(row, facts, &refusal))
		refusal_line(&refusal, print_user, line);
	else
		snprintf(line, sizeof(line), "%" PRIu64 " asked, %" PRIu64 " free; %s", row->asked,
			 row->free, row->hint);
	snprintf(ret, sizeof(refusal_text), "%.31s: %s%s", row->reason, line, prospects(row));
}

/* "GPU", "GPU and GPU", "GPU, GPU and GPU" or "GPU, GPU and 2 more": those that refuse as the first one. */
static void name_gpus(const struct gpuarb_refusal *rows, const refusal_text *texts, size_t n,
		      char *buf, size_t size)
{
	size_t same = 0, named = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		same += strcmp(texts[i], texts[0]) == 0;
	for (size_t i = 0; i < n && named < (same > 3 ? 2 : same); i++) {
		const char *before = named == 0 ? "" : named + 1 < same ? ", " : " and ";

		if (strcmp(texts[i], texts[0]) != 0)
			continue;
		at += (size_t)snprintf(buf + at, size - at, "%s%.40s", before, rows[i].gpu);
		named++;
	}
	if (same > named)
		snprintf(buf + at, size - at, " and %zu more", same - named);
}

static void print_refusal(FILE *out, const struct gpuarb_refusal *rows, const refusal_text *texts,
			  size_t n)
{
	bool every = !*rows->gpu || strcmp(rows->gpu, "any") == 0;
	char gpus[192];

	name_gpus(rows, texts, n, gpus, sizeof(gpus));
	print_line(out, "  %s%s%s", every ? "" : gpus, every ? "" : "  ", *texts);
}

void fail_print_refusals(FILE *out, const struct gpuarb *gpuarb)
{
	const struct gpuarb_refusal *rows;
	_cleanup_(freep) refusal_text *texts = NULL;
	size_t n, before;

	rows = gpuarb_last_refusals(gpuarb, &n);
	texts = have(calloc(n + 1, sizeof(*texts)));
	for (size_t i = 0; i < n; i++)
		describe(&rows[i], gpuarb_last_refusal_facts(gpuarb, i), texts[i]);
	for (size_t i = 0; i < n; i++) {
		for (before = 0; strcmp(texts[before], texts[i]) != 0;)
			before++;
		if (before == i)
			print_refusal(out, &rows[i], &texts[i], n - i);
	}
}

/* What the refusals that follow have in common; NULL: the sentence of the library says more. */
static const char *head_of(const struct gpuarb *gpuarb, int error)
{
	size_t n;

	gpuarb_last_refusals(gpuarb, &n);
	if (n == 0)
		return NULL;
	switch (error) {
	case -EBUSY: return "no room now";
	case -EDQUOT: return "above the quota";
	case -ENOSPC: return "can never fit";
	case -EACCES: return "policy does not allow it";
	default: return NULL;
	}
}

/* head: instead of the sentence, before the refusals; NULL: the sentence. */
static void print_asked(const struct command *command, const char *head, const char *sentence)
{
	if (command->json) {
		json_failure(sentence, command->gpuarb);
		return;
	}
	print_failure(command, head ? head : sentence);
	fail_print_refusals(stderr, command->gpuarb);
}

int fail_asked(const struct command *command, int error)
{
	const char *sentence = gpuarb_last_error(command->gpuarb);

	print_asked(command, head_of(command->gpuarb, error),
		    *sentence ? sentence : strerror(-error));
	return fail_code(error);
}

int fail_lost(const struct command *command, int code, const struct gpuarb_lease *lease)
{
	const char *reason = gpuarb_lease_reason(lease);

	return fail(command, code, "lease %" PRIu64 " is lost: %s", gpuarb_lease_id(lease),
		    *reason ? reason : "gpuarbd ended, and no service manager kept the lease");
}

int fail_gpu(const struct command *command, const char *gpu)
{
	char names[160] = "";
	size_t at = 0, i;

	for (i = 0; i < command->n_gpus && at < sizeof(names) - 32; i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%.29s",
				       at > 0 ? ", " : "", command->gpus[i].name);
	return fail(command, EXIT_FAILED, "there is no GPU '%.80s': this machine has %s%s", gpu,
		    *names ? names : "none", i < command->n_gpus ? ", ..." : "");
}

int fail_lease(const struct command *command, int error)
{
	char sentence[64];

	if (error != -ENOENT)
		return fail_asked(command, error);

	snprintf(sentence, sizeof(sentence), "no lease %" PRIu64 "; it may have ended",
		 command->id);
	print_asked(command, NULL, sentence);
	return EXIT_FAILED;
}
