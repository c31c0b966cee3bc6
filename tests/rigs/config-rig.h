/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A configuration for a test: gpuarbd.conf and tenants.d in a scratch directory. */

#include "check-cond.h"
#include "scratch.h"
#include "sys/config/config.h"

/* All keys; NULL after the last. */
const char *config_key(size_t i, const char **ret_section);

bool config_says(const struct diagnostics *diagnostics, const char *part);

struct tree {
	struct scratch scratch;
	struct diagnostics diagnostics;
	struct settings *settings;
};

struct tree tree_new(const char *config);

int tree_load(struct tree *tree);

void tree_done(struct tree *tree);
