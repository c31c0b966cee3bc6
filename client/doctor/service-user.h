/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the configuration with the rights and rules of trust of the user that gpuarbd runs as. */

#include "sys/config/config.h"

/* Trust of gpuarbd's user; of this user if gpuarbd is not installed. */
struct trust service_trust(void);

/* config_load(), as that user if this is root: root may read files that gpuarbd may not. */
int service_load_config(const struct config_files *files, struct settings **ret,
			struct diagnostics *diagnostics);
