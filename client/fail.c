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

static void print_failure(const struct command *command, const char *sentence)
{
	print_line(stderr, "gpuarbctl%s%s: %s", *command->verb ? " " : "", command->verb, sentence);
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

static void print_refusal(FILE *out, const struct gpuarb_refusal *refusal)
{
	bool bytes = strcmp(refusal->reason, "vram") == 0;
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

	print_line(out, "  %s  %s%s%s%s", refusal->gpu, refusal->reason, amounts,
		   *refusal->hint ? "; " : "", refusal->hint);
}

void fail_print_refusals(FILE *out, const struct gpuarb *gpuarb)
{
	const struct gpuarb_refusal *refusals;
	size_t n;

	refusals = gpuarb_last_refusals(gpuarb, &n);
	for (size_t i = 0; i < n; i++)
		print_refusal(out, &refusals[i]);
}

int fail_asked(const struct command *command, const struct gpuarb *gpuarb, int error)
{
	const char *sentence = gpuarb_last_error(gpuarb);
	int code = fail_code(error);

	if (!*sentence)
		sentence = strerror(-error);

	if (command->json) {
		json_failure(sentence, gpuarb);
		return code;
	}
	print_failure(command, sentence);
	if (gpuarb)
		fail_print_refusals(stderr, gpuarb);
	return code;
}
