/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The configuration as gpuarbd sees it, which runs as a user of its own. */

#include "sys/config/config.h"

/* Whom gpuarbd runs as here, and so believes; where it is not installed, this user. */
struct trust service_trust(void);

/* config_load() as that user, where this is root, who may read what the service may not. */
int service_load_config(const struct config_files *files, struct settings **ret,
			struct diagnostics *diagnostics);
