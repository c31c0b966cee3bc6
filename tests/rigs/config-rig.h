/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Configurations for tests: a gpuarbd.conf and a tenants.d in a directory of their own. */

#include "check-cond.h"
#include "scratch.h"
#include "sys/config/config.h"

bool config_says(const struct diagnostics *diagnostics, const char *part);

struct tree {
	struct scratch scratch;
	struct diagnostics diagnostics;
	struct settings *settings;
};

struct tree tree_new(const char *config);

int tree_load(struct tree *tree);

void tree_done(struct tree *tree);
