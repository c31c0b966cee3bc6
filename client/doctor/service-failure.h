/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether gpuarbd has failed to start, with the reason as several lines: the first error in the
 * configuration, or else the last lines of the journal. ended: the bus has reported that it ended;
 * otherwise the state of its unit tells.
 */
bool service_failed(bool ended, char *why, size_t size);
