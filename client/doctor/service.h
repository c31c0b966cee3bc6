/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sys/config/config.h"

/* Reads the configuration with the rights and rules of trust of the user that gpuarbd runs as. */

/* Trust of gpuarbd's user; of this user if gpuarbd is not installed. */
struct trust service_trust(void);

/* config_load(), as that user if this is root: root may read files that gpuarbd may not. */
int service_load_config(const struct config_files *files, struct settings **ret,
			struct diagnostics *diagnostics);

/*
 * Whether gpuarbd has failed to start, with the reason as several lines: the first error in the
 * configuration, or else the last lines of the journal. ended: the bus has reported that it ended;
 * otherwise the state of its unit tells.
 */
bool service_failed(bool ended, char *why, size_t size);
