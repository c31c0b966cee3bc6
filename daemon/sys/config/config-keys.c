/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/config.h"

#include "sys/config/config-internal.h"

/* clang-format off */
#define DAEMON(name, set, field, min, max)                                                 \
	{ "daemon " name, name, set, offsetof(struct settings, field), min, max }
#define GPU(name, set, field, min, max)                                                    \
	{ "gpu " name, name, set, offsetof(struct gpu_settings, field), min, max }
#define TENANT(name, set, field, min, max)                                                 \
	{ "tenant " name, name, set, offsetof(struct tenant, field), min, max }
#define TENANT_LIST(name, set) { "tenant " name, name, set, 0, 0, 0 } /* fills two fields */
/* clang-format on */

static const struct config_key daemon_keys[] = {
	DAEMON("backend", config_set_backend, backend, 0, 0),
	DAEMON("simulate", config_set_profiles, simulate, 0, 0),
	DAEMON("audit-interval", config_set_interval, audit_interval_usec, 100, 0),
	DAEMON("unmanaged", config_set_unmanaged, unmanaged, 0, 0),
	DAEMON("oversubscribe", config_set_oversubscribe, oversubscribe_besteffort, 0, 0),
	DAEMON("margin", config_set_percent, margin_percent, 0, 1000),
	DAEMON("gpus", config_set_gpus, spread_gpus, 0, 0),
	DAEMON("on-reload", config_set_on_reload, revoke_on_reload, 0, 0),
	DAEMON("activate-grace", config_set_interval, activate_grace_usec, 1, 0),
	DAEMON("activate-min-interval", config_set_interval, activate_min_interval_usec, 1, 0),
	DAEMON("grow-delay", config_set_interval, grow_delay_usec, 1, 0),
	DAEMON("enforce-delay", config_set_interval, enforce_delay_usec, 1, 0),
	DAEMON("max-leases", config_set_unsigned, max_leases, 1, 65536),
	DAEMON("max-leases-per-user", config_set_unsigned, max_leases_per_user, 1, 65536),
	DAEMON("max-holders", config_set_unsigned, max_holders, 1, 65536),
};

static const struct config_key gpu_keys[] = {
	GPU("reserve-queues", config_set_unsigned, reserve_queues, 0, 1024),
};

static const struct config_key tenant_keys[] = {
	TENANT_LIST("match-user", config_set_users),
	TENANT_LIST("match-group", config_set_groups),
	TENANT("match-unit", config_set_pattern, unit, 0, 0),
	TENANT("match-slice", config_set_pattern, slice, 0, 0),
	TENANT("match-executable", config_set_path_pattern, executable, 0, 0),
	TENANT("class", config_set_class, class, 0, 0),
	TENANT("max-leases", config_set_count, max_leases, 0, 65536),
	TENANT("max-gpus", config_set_count, max_gpus, 0, 65536),
	TENANT("max-cus", config_set_share, max_cus, 1, 1024),
	TENANT("max-queues", config_set_count, max_queues, 1, 65536),
	TENANT("max-processes", config_set_count, max_processes, 1, 65536),
	TENANT("max-vram", config_set_bytes, max_vram, 0, 0),
	TENANT("priority", config_set_priority, priority, 0, 0),
	TENANT("alone", config_set_bool, alone, 0, 0),
	TENANT("enforce", config_set_enforce, enforce, 0, 0),
};

const struct config_section config_sections[CONFIG_KINDS] = {
	[CONFIG_DAEMON] = { "daemon", false, daemon_keys, ARRAY_SIZE(daemon_keys) },
	[CONFIG_GPU] = { "gpu", true, gpu_keys, ARRAY_SIZE(gpu_keys) },
	[CONFIG_TENANT] = { "tenant", true, tenant_keys, ARRAY_SIZE(tenant_keys) },
};

const char *config_key(size_t i)
{
	for (size_t s = 0; s < CONFIG_KINDS; s++) {
		if (i < config_sections[s].n_keys)
			return config_sections[s].keys[i].full_name;
		i -= config_sections[s].n_keys;
	}
	return NULL;
}
