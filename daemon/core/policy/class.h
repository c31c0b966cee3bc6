/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Enumerations of the bus contract and their names, and its bounds. */

#define REQUEST_WANTS 64U /* GPUs in one lease at most */
#define REQUEST_TEXT 128U /* bytes of a name, token or tenant with the NUL */

enum lease_class {
	CLASS_BESTEFFORT, /* ordered: a tenant's class is the highest it may ask for */
	CLASS_GUARANTEED,
	CLASS_REALTIME,
};

enum isolation {
	ISOLATION_DEFAULT, /* by class: realtime takes engines, the others CUs */
	ISOLATION_SHADER_ENGINE,
	ISOLATION_CU,
	ISOLATION_SHARED,
};

enum lease_state {
	STATE_WAITING,
	STATE_GRANTED,
	STATE_INACTIVE,
	STATE_ACTIVATING,
	STATE_REVOKING,
	STATE_ENDING,
};

/* Steps against a lease that is overdue, in the order in which they are taken; a tenant's policy names
 * the last one. */
enum enforce_step {
	ENFORCE_STEP_NONE,
	ENFORCE_STEP_REPORT, /* in the log and on the bus */
	ENFORCE_STEP_FREEZE, /* its unit is frozen; work that its queues already have runs on */
	ENFORCE_STEP_KILL,   /* its processes are killed, and it ends */
};

/* Does a realtime lease have its GPUs for itself while it is active: the adaptable leases there are
 * paused? A tenant's policy: for none of its leases, for those that ask, for all. */
enum exclusive { EXCLUSIVE_NO, EXCLUSIVE_ASK, EXCLUSIVE_ACTIVE };

/* How what is observed of a lease can exceed what it was granted. */
enum drift_kind {
	DRIFT_MASK,   /* a queue has CUs outside the mask */
	DRIFT_QUEUES, /* from here to DRIFT_VRAM as enum resource */
	DRIFT_PROCESSES,
	DRIFT_SDMA_QUEUES,
	DRIFT_SDMA_XGMI_QUEUES,
	DRIFT_VRAM, /* bytes */
	DRIFT_PRIORITY,
	DRIFT_KINDS,
};

/* What a tenant's policy does about drift of its leases. ON_DRIFT_PROTECT, the default: revoke a lease
 * whose queues have CUs or shader engines of an active realtime lease, report any other. */
enum on_drift { ON_DRIFT_PROTECT, ON_DRIFT_REPORT, ON_DRIFT_REVOKE, ON_DRIFT_KILL };

/* Whether the kernel refuses queues beyond the grant. CAP_AUTO, the default: of realtime and guaranteed leases
 * that have a unit of their own. */
enum cap_policy { CAP_AUTO, CAP_NO, CAP_YES };

/* KFD queue priorities: 0..15, where 0..6 is the low pipe priority, 7..10 the medium one,
 * 11..15 the high one (pipe_priority_map, kfd_mqd_manager.c). The words are the ones
 * ROCr maps HSA_AMD_QUEUE_PRIORITY_{LOW,NORMAL,HIGH} to. */
#define PRIORITY_LOW 0U
#define PRIORITY_NORMAL 7U
#define PRIORITY_HIGH 11U
#define PRIORITY_MAX 15U
#define PRIORITY_BY_CLASS \
	16U /* of a request: realtime the highest that its tenant allows, else normal */

/* The names by value, NULL after the last. */
extern const char *const class_names[], *const isolation_names[], *const state_names[];
extern const char *const enforce_step_names[], *const exclusive_names[];
extern const char *const priority_names[]; /* low normal high */
extern const char *const drift_names[], *const on_drift_names[];

/* The pipe priority that the hardware makes of a queue priority: 0 low, 1 medium, 2 high. */
unsigned priority_class(unsigned priority);

/* The value of a name; -EINVAL: unknown name. */
int class_from_name(const char *name);
int isolation_from_name(const char *name); /* there is no name for the default */
int priority_from_name(const char *name);  /* low normal high, or 0..15 in digits */
