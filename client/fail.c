/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/json-view.h"
#include "client/json.h"
#include "client/print.h"

int fail_code(int error)
{
	static const struct {
		int error, code;
	} table[] = {
		{ -EINVAL, EXIT_USAGE },
		{ -EBUSY, EXIT_REFUSED },
		{ -ENOSPC, EXIT_REFUSED },
		{ -EDQUOT, EXIT_REFUSED },
		{ -EUSERS, EXIT_REFUSED },
		{ -EACCES, EXIT_FORBIDDEN },
		{ -ECONNREFUSED, EXIT_ABSENT },
		{ -ECONNRESET, EXIT_ABSENT },
		{ -ESHUTDOWN, EXIT_ABSENT },
		{ -ETIMEDOUT, EXIT_WAITED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].error == error)
			return table[i].code;
	}
	return EXIT_FAILED;
}

/* A sentence of several lines, such as all that is wrong with a configuration, is told in as
 * many. */
static void print_failure(const struct command *command, const char *sentence)
{
	size_t n;

	do {
		n = strcspn(sentence, "\n");
		print_line(stderr, "gpuarbctl%s%s: %.*s", *command->verb ? " " : "", command->verb,
			   (int)n, sentence);
		sentence += n;
	} while (*sentence && *++sentence);
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
		print_failure(command, sentence);
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

static void print_refusal(FILE *out, const struct gpuarb_refusal *refusal)
{
	/* A quota on memory is called quota; nothing but bytes comes in millions. */
	bool bytes = strcmp(refusal->reason, "vram") == 0 || refusal->asked >= 1U << 20;
	char asked[PRINT_BYTES], left[PRINT_BYTES], amounts[96] = "";

	if (bytes) {
		print_bytes(refusal->asked, asked);
		print_bytes(refusal->free, left);
	} else {
		snprintf(asked, sizeof(asked), "%" PRIu64, refusal->asked);
		snprintf(left, sizeof(left), "%" PRIu64, refusal->free);
	}
	if (refusal->asked > 0 || refusal->free > 0)
		snprintf(amounts, sizeof(amounts), ": %s asked, %s free", asked, left);

	print_line(out, "  %s  %s%s%s%s%s", refusal->gpu, refusal->reason, amounts,
		   *refusal->hint ? "; " : "", refusal->hint, prospects(refusal));
}

void fail_print_refusals(FILE *out, const struct gpuarb *gpuarb)
{
	const struct gpuarb_refusal *refusals;
	size_t n;

	refusals = gpuarb_last_refusals(gpuarb, &n);
	for (size_t i = 0; i < n; i++)
		print_refusal(out, &refusals[i]);
}

/* The sentence that is said instead of the library's. */
static int fail_saying(const struct command *command, const struct gpuarb *gpuarb, int code,
		       const char *sentence)
{
	if (command->json) {
		json_failure(sentence, gpuarb);
		return code;
	}
	print_failure(command, sentence);
	if (gpuarb)
		fail_print_refusals(stderr, gpuarb);
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
