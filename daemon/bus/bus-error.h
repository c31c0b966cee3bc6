/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the arbiter refuses, as D-Bus errors. */

#include <systemd/sd-bus.h>

#include "core/policy/result.h"

/* The error's name; NULL for RESULT_OK. */
const char *bus_error_name(enum result_kind kind);

/* Answers the call: the sentence and, where GPUs refused, a row for each. r is the
 * negative errno that came with the result, sent alone where the result has no kind.
 * Returns what a method handler returns. */
int bus_refuse(sd_bus_message *call, int r, const struct result *result);
