/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "client/options/options.h"

/* Turns into the program that measures. It links HIP, which gpuarbctl does not need for
 * anything else. Comes back only when that fails, with the exit code. */
int latency_start(const struct command *command);
