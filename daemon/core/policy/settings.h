/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What can be configured: plain values with their defaults. sys/config/config.c fills them from
 * files; core and the daemon read them. Keys: gpuarbd.conf(5).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/base.h"
#include "core/policy/class.h"
#include "core/mask/gpu-info.h"

/* How often the hardware is looked at while a lease is ending: others wait for what it had. */
#define LOOK_WHILE_ENDING_USEC UINT64_C(50000)

enum backend { BACKEND_AUTO, BACKEND_KFD, BACKEND_SIMULATED };
enum unmanaged { UNMANAGED_IGNORE, UNMANAGED_COUNT, UNMANAGED_WARN };

/* A bound on how much of something: none, a count, or a share of what a GPU has. */
struct limit {
	enum { LIMIT_NONE, LIMIT_COUNT, LIMIT_PERCENT } kind;
	uint64_t value;
};

/* The bound in units, where the GPU has `whole` of them; UINT64_MAX for none. Shares are
 * rounded down. */
uint64_t limit_of(const struct limit *limit, uint64_t whole);

/* One row of policy: who may ask for what. Numbers bound what one user holds under this
 * tenant, over all its leases; those about parts of a GPU count for each GPU. */
struct tenant {
	char *name; /* "*" matches everybody and is always the last */

	/* Who: uid or gid in one of the lists. The strings only narrow that. */
	uid_t *users;
	size_t n_users;
	gid_t *groups;
	size_t n_groups;
	char *unit, *slice, *executable; /* glob patterns, NULL: any */

	enum lease_class class;
	struct limit max_leases, max_gpus;
	struct limit max_cus, max_queues, max_processes, max_vram;
	unsigned priority; /* the highest it may ask for */
	bool alone;        /* realtime: nobody else in its shader engines */
	enum enforce_step
		enforce; /* the last thing that may be done to a lease that does not give back */
};

struct gpu_settings {
	char name[GPU_NAME_MAX];
	unsigned reserve_queues;
};

struct settings {
	enum backend backend;
	char *simulate; /* comma-separated profiles, never NULL */
	uint64_t audit_interval_usec;
	enum unmanaged unmanaged;
	bool oversubscribe_besteffort;
	unsigned margin_percent; /* for who reckons with running times: gpuarbctl rt plan */
	bool spread_gpus;        /* of GPUs that do, the emptiest; else the fullest */
	bool revoke_on_reload;   /* end what the policy of now would not grant; else it stays */

	/* Lending. */
	uint64_t activate_grace_usec;        /* for borrowers to give back */
	uint64_t activate_min_interval_usec; /* between two times that masks of a GPU grow */
	uint64_t grow_delay_usec;            /* from when something is free */
	uint64_t enforce_delay_usec;         /* between two rungs */

	/* What one daemon, and one user, can make it hold. */
	unsigned max_leases, max_leases_per_user, max_holders;

	struct gpu_settings *gpus;
	size_t n_gpus;
	struct tenant *tenants; /* in the order in which they match; never empty */
	size_t n_tenants;
};

/* The defaults, with the built-in tenant "*": class besteffort, no limits. */
int settings_new(struct settings **ret);
struct settings *settings_free(struct settings *settings);
DEFINE_CLEANUP(struct settings *, settings_free)

/* A tenant with the defaults: class besteffort, priority normal, no limits. -ENOMEM. */
int tenant_init(struct tenant *tenant, const char *name);
void tenant_done(struct tenant *tenant); /* frees what it points to */

/* NULL: the configuration says nothing of this GPU. */
const struct gpu_settings *settings_gpu(const struct settings *settings, const char *name);
