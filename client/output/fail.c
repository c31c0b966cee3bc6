/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/json-view.h"
#include "client/output/json.h"
#include "client/output/print.h"

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

/* The first `length` bytes. A sentence of several lines, such as all that is wrong with a
 * configuration, is told in as many. */
static void print_failure(const struct command *command, const char *sentence, size_t length)
{
	const char *end = sentence + length;
	size_t n;

	do {
		n = strcspn(sentence, "\n");
		if (n > (size_t)(end - sentence))
			n = (size_t)(end - sentence);
		print_line(stderr, "gpuarbctl%s%s: %.*s", *command->verb ? " " : "", command->verb,
			   (int)n, sentence);
		sentence += n;
	} while (sentence < end && ++sentence < end);
}

static void json_failure(const char *sentence, const struct gpuarb *gpuarb)
{
	_cleanup_(json_freep) struct json_object *failure = json_map(NULL, NULL);
	const char *name = gpuarb ? gpuarb_last_error_name(gpuarb) : "";

	json_text(failure, "error", sentence);
	json_text(failure, "error_name", *name ? name : NULL);
	json_refusals(failure, "refusals", gpuarb);
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
		print_failure(command, sentence, strlen(sentence));
	free(sentence);
	return code;
}

/* What policy says can change any time, and it is said already. */
static const char *prospects(const struct gpuarb_refusal *refusal)
{
	if (refusal->retry)
		return "; later it may";
	if (strcmp(refusal->reason, "policy") == 0 || strcmp(refusal->reason, "quota") == 0)
		return "";
	return "; it never will";
}

/* "2 queue slots are free; …": with a unit, and needs no number beside it. */
static bool says_what_is_free(const struct gpuarb_refusal *refusal, bool bytes)
{
	const char *text = strstr(refusal->hint, " free");
	char *end;
	uint64_t number = strtoull(refusal->hint, &end, 10);

	return text && (size_t)(text - refusal->hint) < strcspn(refusal->hint, ";") &&
	       end > refusal->hint && (bytes || number == refusal->free);
}

/* ": 31 asked, 30 free", or "". */
static void describe_amounts(const struct gpuarb_refusal *refusal, char *buf, size_t size)
{
	/* A quota on memory is called quota; nothing but bytes comes in millions. */
	bool bytes = strcmp(refusal->reason, "vram") == 0 || refusal->asked >= 1U << 20;
	char asked[PRINT_BYTES], left[PRINT_BYTES];

	buf[0] = '\0';
	if (refusal->asked == 0 && refusal->free == 0)
		return;
	if (bytes) {
		print_bytes(refusal->asked, asked);
		print_bytes(refusal->free, left);
	} else {
		snprintf(asked, sizeof(asked), "%" PRIu64, refusal->asked);
		snprintf(left, sizeof(left), "%" PRIu64, refusal->free);
	}
	if (says_what_is_free(refusal, bytes))
		snprintf(buf, size, ": %s asked", asked);
	else
		snprintf(buf, size, ": %s asked, %s free", asked, left);
}

/* said: what the reader has read before it, and need not read again. */
static void print_refusal(FILE *out, const struct gpuarb_refusal *refusal, const char *said)
{
	const char *hint = strstr(said, refusal->hint) ? "" : refusal->hint;
	char amounts[96];

	describe_amounts(refusal, amounts, sizeof(amounts));
	print_line(out, "  %s  %s%s%s%s%s", refusal->gpu, refusal->reason, amounts,
		   *hint ? "; " : "", hint, prospects(refusal));
}

static void print_refusals(FILE *out, const struct gpuarb *gpuarb, const char *said)
{
	const struct gpuarb_refusal *refusals;
	size_t n;

	refusals = gpuarb_last_refusals(gpuarb, &n);
	for (size_t i = 0; i < n; i++)
		print_refusal(out, &refusals[i], said);
}

void fail_print_refusals(FILE *out, const struct gpuarb *gpuarb)
{
	print_refusals(out, gpuarb, "");
}

/* How much of "no room now: 0000:03:00.0 refuses for queues …" is not in the refusals. */
static size_t head_of(const char *sentence, const struct gpuarb *gpuarb)
{
	const struct gpuarb_refusal *refusals;
	char tail[128];
	const char *at;
	size_t n;

	refusals = gpuarb_last_refusals(gpuarb, &n);
	for (size_t i = 0; i < n; i++) {
		snprintf(tail, sizeof(tail), ": %s refuses for %s ", refusals[i].gpu,
			 refusals[i].reason);
		at = strstr(sentence, tail);
		if (at)
			return (size_t)(at - sentence);
	}
	return strlen(sentence);
}

/* The sentence that is said instead of the library's. */
static int fail_saying(const struct command *command, const struct gpuarb *gpuarb, int code,
		       const char *sentence)
{
	size_t head = head_of(sentence, gpuarb);

	if (command->json) {
		json_failure(sentence, gpuarb);
		return code;
	}
	print_failure(command, sentence, head);
	print_refusals(stderr, gpuarb, sentence[head] ? "" : sentence);
	return code;
}

int fail_asked(const struct command *command, const struct gpuarb *gpuarb, int error)
{
	const char *sentence = gpuarb_last_error(gpuarb);

	return fail_saying(command, gpuarb, fail_code(error),
			   *sentence ? sentence : strerror(-error));
}

int fail_lease(const struct command *command, const struct gpuarb *gpuarb, int error, uint64_t id)
{
	char sentence[64];

	if (error != -ENOENT)
		return fail_asked(command, gpuarb, error);

	snprintf(sentence, sizeof(sentence), "no lease %" PRIu64 "; it may have ended", id);
	return fail_saying(command, gpuarb, EXIT_FAILED, sentence);
}
