/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What can be configured: plain values with their defaults. sys/config/config.c fills them from
 * files; core and the daemon read them. Keys: gpuarbd.conf(5).
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/base.h"
#include "util/diagnostics.h"
#include "core/mask/gpu-info.h"
#include "core/policy/class.h"
#include "core/policy/result.h"
#include "core/policy/subuid.h"

struct caller;

/* The scan interval while a lease is ending, because other leases wait for its resources. */
#define SCAN_WHILE_ENDING_USEC UINT64_C(50000)

enum backend { BACKEND_AUTO, BACKEND_KFD, BACKEND_SIMULATED };
/* UNMANAGED_REFUSE: as WARN, and processes without a lease are killed: on CUs of active realtime leases after
 * drift-grace, elsewhere after unmanaged-grace. */
enum unmanaged { UNMANAGED_IGNORE, UNMANAGED_COUNT, UNMANAGED_WARN, UNMANAGED_REFUSE };
enum graphics { GRAPHICS_IGNORE, GRAPHICS_WARN, GRAPHICS_REFUSE_REALTIME };
/* By what was measured on such a GPU beside as many leases. */
#define MARGIN_MEASURED UINT_MAX

/* Which of several GPUs that fit comes first: decide/choice.c. */
enum gpu_order { GPU_ORDER_BALANCE, GPU_ORDER_PACK, GPU_ORDER_SPREAD };

enum unmasked { UNMASKED_REFUSE, UNMASKED_IGNORE };

/* An upper bound: none, a count, or a percentage of what a GPU has. */
struct limit {
	enum { LIMIT_NONE, LIMIT_COUNT, LIMIT_PERCENT } kind;
	uint64_t value;
};

/* The bound in units if the GPU has `whole` of them; UINT64_MAX: none. Percentages are rounded
 * down. */
uint64_t limit_of(const struct limit *limit, uint64_t whole);

struct id_list {
	unsigned *ids;
	size_t n;
	char *unresolved; /* names that do not exist, with commas; NULL: none */
};

/* The next of the names; *rest: the list at first. */
bool id_list_next_unresolved(const char **rest, char ret[static 256]);

/* The name exists now. Returns whether it is in the list of names that did not. */
bool id_list_resolve(struct id_list *list, const char *name, unsigned id);

_Static_assert(sizeof(uid_t) == sizeof(unsigned) && sizeof(gid_t) == sizeof(unsigned),
	       "ids of users and groups are unsigned");

/* The same for a floor; LIMIT_NONE: 0. */
uint64_t limit_reserved(const struct limit *limit, uint64_t whole);

#define TENANT_WEIGHT 100U /* the default */
#define TENANT_MAX_WAIT_USEC UINT64_C(3600000000)

/* One row of policy: which users may have which leases. Limits bound what one user holds under this
 * tenant, over all its leases; limits of parts of a GPU hold for each GPU. */
struct tenant {
	char *name; /* "*" matches every user and is always the last */
	char *file; /* that configures it; NULL: built in */
	unsigned line;
	bool has_match; /* match-user or match-group is configured, valid or not */

	/* It matches a uid or gid in one of the lists; the patterns narrow that. */
	struct id_list users, groups;
	char *unit, *slice, *executable; /* glob patterns, NULL: any */
	bool open;                       /* users of other tenants that it matches may name it */

	enum lease_class class;
	bool none; /* class = none: no lease, as max_leases = 0 */
	struct limit max_leases, max_waiting, max_gpus;
	struct limit max_cus, max_queues, max_processes, max_vram;
	uint64_t default_vram;      /* bytes that a want without any is promised; 0: none */
	struct limit max_fixed_cus; /* of best-effort leases that are not adaptable */
	struct limit max_engines;   /* that have CUs which its leases were granted, not borrowed */
	char *only_gpus;            /* names with commas; NULL: all */
	uint64_t max_duration_usec,
		default_duration_usec; /* of a lease; 0: no limit, the maximum */
	unsigned priority;             /* the highest it may ask for */

	unsigned weight; /* of its adaptable leases, when CUs that they borrow are divided; 0: the
			  * default */

	/* Floors: kept free for all its users together, on each GPU or one. 0: none. */
	struct limit reserved_cus;
	unsigned reserved_engines, reserved_queues, reserved_processes;
	char *reserved_gpu; /* NULL: each */

	bool alone;                /* realtime: no other lease in its shader engines */
	enum exclusive exclusive;  /* realtime: adaptable leases pause while it is active */
	uint64_t max_wait_usec;    /* a waiting lease bars a GPU no longer; 0: the default */
	uint64_t max_pause_usec;   /* adaptable: a longer pause is reported; 0: no bound */
	enum enforce_step enforce; /* the last step against a lease that is overdue */
	enum on_drift on_drift;    /* what is done about drift of its leases */
	enum cap_policy cap;       /* the kernel refuses queues beyond the grant */
	bool preempt;              /* its leases may be revoked for a lease of a higher class */
};

struct gpu_settings {
	char name[GPU_NAME_MAX];
	unsigned reserve_queues; /* RESERVE_QUEUES_OF_GPU: the advice of its profile */
	bool named_only;         /* any = no: only a want that names the GPU is placed there */
};
#define RESERVE_QUEUES_OF_GPU UINT_MAX

/* "[share NAME]": the standing lease that gpuarbctl cdi holds for containers. gpuarbd only reads it. */
struct share_settings {
	char *name, *gpu, *tenant; /* gpu, tenant NULL: none is named */
	char *at;                  /* "FILE:LINE" */
	struct limit cus;
	unsigned queues, processes; /* 0: the default */
	uint64_t vram;
	unsigned class; /* SHARE_CLASS_OF_TENANT, or an enum lease_class */
};
#define SHARE_CLASS_OF_TENANT UINT_MAX

struct settings {
	enum backend backend;
	char *simulate;    /* comma-separated profiles, never NULL */
	char *simulate_at; /* "FILE:LINE" of that key; NULL: the default */

	/* Keys that differ from those with which gpuarbd started. */
	bool restart_for_backend, restart_for_simulate;
	uint64_t audit_interval_usec;
	uint64_t drift_grace_usec; /* what lasts longer is drift */
	enum unmanaged unmanaged;
	uint64_t unmanaged_grace_usec; /* before a process without a lease is ended */
	struct id_list exempt;         /* whose processes are not */
	enum graphics graphics;        /* processes that draw beside leases */
	enum unmasked unmasked; /* CUs that observed queues cover, and no lease grants them */
	bool oversubscribe_besteffort;
	unsigned margin_percent; /* added to running times by gpuarbctl rt plan; MARGIN_MEASURED */
	enum gpu_order gpu_order;
	bool share_by_lease;   /* each adaptable lease has a share of its own; else each user */
	bool revoke_on_reload; /* a reload ends leases that the new policy would not grant */

	/* Lending. */
	uint64_t activate_grace_usec;        /* for borrowers to give CUs back */
	uint64_t activate_min_interval_usec; /* between two growths of masks on a GPU */
	uint64_t grow_delay_usec;            /* from the moment when CUs become free */
	uint64_t enforce_delay_usec;         /* between two enforcement steps */

	/* Limits of the daemon, and of one user. */
	unsigned max_leases, max_leases_per_user, max_holders;

	/* Limits of the calls of one user. */
	unsigned max_calls_per_user;   /* in a second */
	unsigned max_time_per_user;    /* of the event loop, in percent */
	unsigned max_pending_per_user; /* calls that wait */
	uint64_t max_unread_per_user;  /* bytes of answers */

	struct gpu_settings *gpus;
	size_t n_gpus;
	struct share_settings *shares;
	size_t n_shares;
	struct tenant *tenants; /* in the order in which they match; never empty */
	size_t n_tenants;

	struct subuids subuids; /* of the machine */
};

/* The defaults, with the built-in tenant "*": class besteffort, no limits. */
int settings_new(struct settings **ret);
struct settings *settings_free(struct settings *settings);
DEFINE_CLEANUP(struct settings *, settings_free)

/* May a tenant have exclusive leases? */
bool settings_allow_exclusive(const struct settings *settings);

/* A tenant with the defaults: class besteffort, priority normal, no limits. -ENOMEM. */
int tenant_init(struct tenant *tenant, const char *name);

/* Are both the uid of one user, or subordinate uids of that user? (uid_t) -1 matches no user. */
bool settings_same_user(const struct settings *settings, uid_t a, uid_t b);

/* The lists of users and groups, the exempt users first; NULL after the last. */
struct id_list *settings_list(struct settings *settings, size_t i, bool *ret_group);

/* With unmanaged = refuse: whether processes of this user are left. */
bool settings_is_exempt(const struct settings *settings, uid_t uid);

/* NULL: the configuration has no section for this GPU. */
const struct gpu_settings *settings_gpu(const struct settings *settings, const char *name);

/* NULL: the configuration has no such share. */
const struct share_settings *settings_share(const struct settings *settings, const char *name);

/* How many queue slots of the GPU no lease is granted. */
unsigned settings_reserve_queues(const struct settings *settings, const struct gpu_info *gpu);

/* May a want for any GPU be placed there? */
bool settings_gpu_any(const struct settings *settings, const char *name);

/* ---- the tenant of a caller -------------------------------------------------------------- */

/* The first tenant that matches the caller, or the named one if it matches and is open, unless the first
 * one allows no lease. -ESRCH: no tenant has this name; -EACCES: none matches, or the named one is not
 * open, with the refusal. */
int tenant_find(const struct settings *settings, const struct caller *caller, const char *name,
		const struct tenant **ret, struct result *result);

/* NULL: no tenant has this name. */
const struct tenant *tenant_named(const struct settings *settings, const char *name);

/* Whether the tenant may match this user. The groups of a caller are not kept, so a tenant with
 * groups may match every user. */
bool tenant_may_match(const struct tenant *tenant, uid_t uid);

/* The tenant whose user this certainly is, and which does not let the user choose `tenant`; NULL: none.
 * By match-user alone. */
const struct tenant *tenant_that_binds(const struct settings *settings, const struct tenant *tenant,
				       uid_t uid);

/* The tenant of a lease, if policy has it still and opens it to the user of the lease. -ESRCH, -EACCES. */
int tenant_of_lease(const struct settings *settings, const char *name, uid_t uid,
		    const struct tenant **ret, struct result *result);

/* How a user gets leases of a tenant, by user and groups. */
enum tenant_use {
	TENANT_USE_NO_MATCH,
	TENANT_USE_SOME,   /* some programs do: match-unit and the like narrow it */
	TENANT_USE_OTHERS, /* all programs that no tenant before it has */
	TENANT_USE_NAMED,  /* requests that name it */
	TENANT_USE_CLOSED, /* not: it is not open, or the tenant before it is a ban */
};
enum tenant_use tenant_use(const struct settings *settings, const struct caller *caller, size_t i);

/* What one user may hold of a GPU under the tenant, beside the floors of other tenants. */
struct tenant_most {
	uint64_t cus, queues, processes, vram;
};
void tenant_find_most(const struct settings *settings, const struct tenant *tenant,
		      const struct gpu_info *gpu, struct tenant_most *ret);

/* The limits of what one user holds. */
struct tenant_limit {
	const char *key;
	size_t offset; /* of the struct limit in the tenant */
};
#define TENANT_LIMITS 9U
extern const struct tenant_limit tenant_limits[TENANT_LIMITS];

static inline const struct limit *tenant_limit(const struct tenant *tenant, size_t i)
{
	return (const struct limit *)(const void *)((const char *)tenant + tenant_limits[i].offset);
}

/* Whether it matches some programs of its users only. */
bool tenant_is_narrow(const struct tenant *tenant);

/* Whether it allows no lease at all: max-leases = 0 or class = none. */
bool tenant_is_ban(const struct tenant *tenant);

/* Of its adaptable leases. NULL: policy has the tenant no more. */
static inline unsigned tenant_weight(const struct tenant *tenant)
{
	return tenant && tenant->weight > 0 ? tenant->weight : TENANT_WEIGHT;
}

/* Whether its leases may have a part of this GPU. */
bool tenant_allows_gpu(const struct tenant *tenant, const char *gpu);

/* How long a lease lasts that asks for so long; 0: for no time, or without limit. */
uint64_t tenant_duration_usec(const struct tenant *tenant, uint64_t asked_usec);

bool tenant_has_floor(const struct tenant *tenant);

/* A floor is kept only where the tenant may have leases. */
bool tenant_floor_is_on(const struct tenant *tenant, const char *gpu);

/* Whether this GPU has what all floors reserve; else -ENOSPC, with an error, or a warning that gpuarbd
 * goes on, which names the sum and the part of each tenant. */
int settings_check_floors(const struct settings *settings, const struct gpu_info *gpu, bool error,
			  struct diagnostics *diagnostics);

/* Warns of shares that are less than one CU or engine of a GPU which their tenant may use. */
void settings_check_shares(const struct settings *settings, const struct gpu_info *gpu,
			   struct diagnostics *diagnostics);

/* Whether it limits what a user holds of one GPU. */
bool tenant_bounds_parts(const struct tenant *tenant);
