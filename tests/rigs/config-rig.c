/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config-rig.h"
#include "sys/config/config-keys.h"

const char *config_key(size_t i, const char **ret_section)
{
	for (size_t s = 0; s < CONFIG_KINDS; s++) {
		*ret_section = config_sections[s].name;
		if (i < config_sections[s].n_keys)
			return config_sections[s].keys[i].name;
		i -= config_sections[s].n_keys;
	}
	return NULL;
}

bool config_says(const struct diagnostics *diagnostics, const char *part)
{
	for (size_t i = 0; i < diagnostics->n; i++)
		if (strstr(diagnostics->list[i].text, part))
			return diagnostics->list[i].error;
	return false;
}

struct tree tree_new(const char *config)
{
	struct tree tree = { .scratch = scratch_new() };

	scratch_write(&tree.scratch, "gpuarbd.conf", config);
	scratch_mkdir(&tree.scratch, "tenants.d");
	return tree;
}

int tree_load(struct tree *tree)
{
	const struct config_files files = {
		.config = scratch_at(&tree->scratch, "gpuarbd.conf"),
		.tenants = scratch_at(&tree->scratch, "tenants.d"),
		.trust = { { geteuid() } },
	};

	return config_load(&files, &tree->settings, &tree->diagnostics);
}

void tree_done(struct tree *tree)
{
	settings_free(tree->settings);
	diagnostics_done(&tree->diagnostics);
	scratch_done(&tree->scratch);
}
