/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/refusal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

const char *const reason_names[] = {
	[REASON_CUS] = "cus",
	[REASON_SHADER_ENGINES] = "shader-engines",
	[REASON_SHAPE] = "shape",
	[REASON_QUEUES] = "queues",
	[REASON_PROCESSES] = "processes",
	[REASON_SDMA] = "sdma",
	[REASON_SDMA_XGMI] = "sdma-xgmi",
	[REASON_VRAM] = "vram",
	[REASON_COOPERATIVE] = "cooperative",
	[REASON_QUOTA] = "quota",
	[REASON_POLICY] = "policy",
	[REASON_DRAIN] = "drain",
	[REASON_UNMANAGED] = "unmanaged",
	[REASON_OVERSUBSCRIBED] = "oversubscribed",
	[REASON_ABSENT] = "absent",
	[REASON_FLOOR] = "floor",
	[REASON_MASK] = "mask",
	[REASON_UNMASKED] = "unmasked",
	[REASON_EXCLUSIVE] = "exclusive",
	[REASON_GRAPHICS] = "graphics",
	[REASON_RESET] = "reset",
	NULL,
};

static const struct {
	const char *name, *unit, *units;
} resources[RESOURCES] = {
	[RESOURCE_NONE] = { "", "", "" },
	[RESOURCE_CUS] = { "cus", "CU", "CUs" },
	[RESOURCE_SHADER_ENGINES] = { "shader-engines", "shader engine", "shader engines" },
	[RESOURCE_QUEUES] = { "queues", "queue slot", "queue slots" },
	[RESOURCE_PROCESSES] = { "processes", "process slot", "process slots" },
	[RESOURCE_SDMA_QUEUES] = { "sdma-queues", "SDMA queue", "SDMA queues" },
	[RESOURCE_SDMA_XGMI_QUEUES] = { "sdma-xgmi-queues", "SDMA queue for XGMI",
					"SDMA queues for XGMI" },
	[RESOURCE_VRAM] = { "vram", "of VRAM", "of VRAM" },
	[RESOURCE_COOPERATIVE_QUEUES] = { "cooperative", "cooperative (GWS) queue",
					  "cooperative (GWS) queues" },
	[RESOURCE_LEASES] = { "leases", "lease", "leases" },
	[RESOURCE_GPUS] = { "gpus", "GPU", "GPUs" },
	[RESOURCE_CLASS] = { "class", "", "" },
	[RESOURCE_PRIORITY] = { "priority", "", "" },
	[RESOURCE_EXCLUSIVE] = { "exclusive", "", "" },
	[RESOURCE_DURATION] = { "duration", "", "" },
};

const char *resource_name(enum resource resource)
{
	return resources[resource].name;
}

int reason_from_name(const char *name)
{
	return text_index(reason_names, name);
}

int resource_from_name(const char *name)
{
	for (int i = 0; i < RESOURCES; i++)
		if (strcmp(resources[i].name, name) == 0)
			return i;
	return -EINVAL;
}

void refusal_set_fits(struct refusal *refusal, enum resource resource, uint64_t below,
		      uint64_t above)
{
	refusal->fit_resource = resource;
	refusal->n_fits = 0;
	if (below > 0)
		refusal->fits[refusal->n_fits++] = below;
	if (above > 0)
		refusal->fits[refusal->n_fits++] = above;
}

void refusal_set_bound(struct refusal *refusal, const char *key, uint64_t limit, const char *tenant)
{
	refusal->key = key;
	refusal->limit = limit;
	snprintf(refusal->tenant, sizeof(refusal->tenant), "%s", tenant);
}

void refusal_add_process(struct refusal *refusal, const struct unmanaged_process *process)
{
	if (refusal->n_processes < REFUSAL_PROCESSES)
		refusal->processes[refusal->n_processes] = *process;
	refusal->n_processes++;
}

void refusal_add_lease(struct refusal *refusal, uint64_t lease)
{
	if (refusal->n_leases < REFUSAL_LEASES)
		refusal->leases[refusal->n_leases] = lease;
	refusal->n_leases++;
}

/* ---- text --------------------------------------------------------------------------------- */

/* A sentence that grows; what does not fit is cut. */
struct text {
	char *buf;
	size_t used;
	refusal_user_t user;
};

static struct text text_start(char *buf)
{
	buf[0] = '\0';
	return (struct text){ .buf = buf };
}

static void put(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);

static void put(struct text *text, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->buf + text->used, REFUSAL_TEXT - text->used, format, args);
	va_end(args);
	if (n <= 0)
		return;
	text->used += (size_t)n;
	if (text->used < REFUSAL_TEXT)
		return;
	text_clean(text->buf, REFUSAL_TEXT, text->buf); /* no half of a character */
	text->used = REFUSAL_TEXT - 1;
}

/* Texts in memory that lives to the end of the block. */
#define PART_TEXT 64U
#define USER(text, uid) write_user((char[PART_TEXT]){ 0 }, text, uid)
#define NUMBER(resource, n) write_number((char[PART_TEXT]){ 0 }, resource, n)
#define AMOUNT(resource, n) write_amount((char[PART_TEXT]){ 0 }, resource, n)

/* "alice", or "uid 1000" if nobody names users here. */
static const char *write_user(char *ret, const struct text *text, uid_t uid)
{
	if (!text->user || !text->user(uid, ret))
		snprintf(ret, PART_TEXT, "uid %u", uid);
	return ret;
}

/* Before every part of a sentence but the first. */
static void put_break(struct text *text)
{
	if (text->used > 0)
		put(text, "; ");
}

#define put_part(text, ...) (put_break(text), put(text, __VA_ARGS__))

/* "24"; of memory "1.5G", rounded down: free memory must not appear as more. */
static const char *write_number(char *ret, enum resource resource, uint64_t n)
{
	static const char units[] = "KMGTPE";
	uint64_t tenths = n;
	size_t i = 0;

	if (resource == RESOURCE_CLASS)
		return class_names[n];
	if (resource == RESOURCE_EXCLUSIVE)
		return exclusive_names[n];
	if (resource != RESOURCE_VRAM || n < 1024) {
		snprintf(ret, PART_TEXT, "%llu%s", (unsigned long long)n,
			 resource == RESOURCE_DURATION ? " s" : "");
		return ret;
	}
	for (; tenths >> 10 >= 1024; tenths >>= 10)
		i++;
	tenths = (tenths >> 10) * 10 + (tenths & 1023) * 10 / 1024;
	snprintf(ret, PART_TEXT, "%llu.%llu%c", (unsigned long long)tenths / 10,
		 (unsigned long long)tenths % 10, units[i]);
	return ret;
}

/* "24 queue slots", "1 CU", "1.5G of VRAM". */
static const char *write_amount(char *ret, enum resource resource, uint64_t n)
{
	const char *unit = n == 1 ? resources[resource].unit : resources[resource].units;

	snprintf(ret, PART_TEXT, "%s%s%s", NUMBER(resource, n), *unit ? " " : "", unit);
	return ret;
}

/* ---- what was asked, and what there is --------------------------------------------------- */

static bool is_geometric(const struct refusal *refusal)
{
	return refusal->reason == REASON_CUS || refusal->reason == REASON_SHADER_ENGINES ||
	       refusal->reason == REASON_SHAPE;
}

/* "30 free of 60", in the words of the reason. */
static void put_available(struct text *text, const struct refusal *refusal)
{
	enum resource resource = refusal->resource;

	if (refusal->reason == REASON_POLICY)
		put(text, "tenant %s allows %s", refusal->tenant, NUMBER(resource, refusal->limit));
	else if (refusal->reason == REASON_QUOTA)
		put(text, "%s left", NUMBER(resource, refusal->free));
	else if (refusal->retry)
		put(text, "%s of %s free", NUMBER(resource, refusal->free),
		    NUMBER(resource, refusal->total));
	else if (refusal->reason == REASON_ABSENT && refusal->free < refusal->total)
		put(text, "%s of the %s of the machine can be chosen",
		    NUMBER(resource, refusal->free), NUMBER(resource, refusal->total));
	else
		put(text, "the %s has %s", resource == RESOURCE_GPUS ? "machine" : "GPU",
		    NUMBER(resource, refusal->total));
}

/* named: the unit, which the reason names as well in "queues: 3 asked". */
static void put_amounts(struct text *text, const struct refusal *refusal, bool named)
{
	enum resource resource = refusal->resource;

	if (resource == RESOURCE_NONE || refusal->reason == REASON_DRAIN)
		return;
	if (refusal->reason == REASON_OVERSUBSCRIBED && refusal->held <= refusal->total) {
		put(text, "more was in use at the last scan than the GPU has");
		return;
	}
	if (refusal->reason == REASON_OVERSUBSCRIBED) {
		put(text, "%s in use, the GPU has %s", NUMBER(resource, refusal->held),
		    AMOUNT(resource, refusal->total));
		return;
	}
	if (refusal->reason == REASON_SHAPE && refusal->key &&
	    strcmp(refusal->key, "cus-percent") == 0) {
		put(text, "%llu%% of %s is less than one CU", (unsigned long long)refusal->asked,
		    AMOUNT(resource, refusal->limit));
		return;
	}
	if (refusal->reason == REASON_SHAPE && refusal->key) {
		put(text, "%s %llu, but the shader engines asked for have %s", refusal->key,
		    (unsigned long long)refusal->asked, AMOUNT(resource, refusal->limit));
		return;
	}
	if (refusal->reason == REASON_POLICY)
		put(text, "%s ", refusal->key);
	put(text, "%s asked",
	    named ? AMOUNT(resource, refusal->asked) : NUMBER(resource, refusal->asked));
	if (refusal->behind)
		return;
	put(text, ", ");
	put_available(text, refusal);
}

/* ---- what is in the way, and what would fit ---------------------------------------------- */

static void put_fits(struct text *text, const struct refusal *refusal)
{
	const char *where = refusal->retry ? "now" : "an empty GPU";
	enum resource resource = refusal->fit_resource;
	uint64_t last = refusal->n_fits > 0 ? refusal->fits[refusal->n_fits - 1] : 0;

	if (last == 0 && refusal->free == 0 && text->used > 0)
		return; /* that nothing is free has been written */
	if (last == 0) {
		put_part(text, "no number of CUs fits %s", where);
		return;
	}
	put_break(text);
	if (refusal->n_fits == 2)
		put(text, "%s or ", NUMBER(resource, refusal->fits[0]));
	put(text, "%s fit%s %s", AMOUNT(resource, last), last == 1 ? "s" : "", where);
	if (refusal->n_fits == 1 && resource == refusal->resource && last > refusal->asked)
		put(text, ", fewer do not");
}

static void put_quota(struct text *text, const struct refusal *refusal)
{
	put_part(text, "%s of tenant %s is %s, %s holds %s", refusal->key, refusal->tenant,
		 NUMBER(refusal->resource, refusal->limit), USER(text, refusal->uid),
		 NUMBER(refusal->resource, refusal->held));
	if (refusal->by_default)
		put(text, "; asked by default-vram, not by the request");
}

static void put_policy(struct text *text, const struct refusal *refusal)
{
	const char *key = refusal->key ?: "";

	put_break(text);
	if (refusal->resource != RESOURCE_NONE)
		put(text, "see gpuarb-tenants(5)");
	else if (strcmp(key, "open") == 0)
		put(text,
		    "%s belongs to tenant %s and may name another tenant only if that one has open = "
		    "yes",
		    USER(text, refusal->uid), refusal->tenant);
	else if (strcmp(key, "only-gpus") == 0)
		put(text, "only-gpus of tenant %s does not name this GPU", refusal->tenant);
	else if (strcmp(key, "any") == 0)
		put(text, "only a request that names this GPU gets it (any = no)");
	else if (refusal->tenant[0])
		put(text, "tenant %s does not match %s", refusal->tenant, USER(text, refusal->uid));
	else
		put(text, "no tenant matches %s", USER(text, refusal->uid));
}

static void put_leases(struct text *text, const struct refusal *refusal)
{
	size_t listed = min_u((unsigned)refusal->n_leases, 3);

	if (listed == 0)
		return;
	put_part(text, "%s lease%s",
		 refusal->reason == REASON_EXCLUSIVE  ? "active:"
		 : refusal->reason == REASON_UNMASKED ? "outside the mask of"
						      : "held by",
		 refusal->n_leases == 1 ? "" : "s");
	for (size_t i = 0; i < listed; i++)
		put(text, "%s %llu", i == 0 ? "" : ",", (unsigned long long)refusal->leases[i]);
	if (refusal->n_leases > listed)
		put(text, " and %zu more", refusal->n_leases - listed);
}

static void put_use(struct text *text, const struct refusal *refusal,
		    const struct unmanaged_process *process)
{
	if (refusal->reason == REASON_GRAPHICS)
		put(text, " of %s draws", USER(text, process->uid));
	else if (refusal->resource == RESOURCE_VRAM)
		put(text, " uses VRAM");
	else
		put(text, " has %u queue%s", process->queues, process->queues == 1 ? "" : "s");
}

static void put_processes(struct text *text, const struct refusal *refusal)
{
	size_t listed = min_u((unsigned)refusal->n_processes, 3);

	for (size_t i = 0; i < listed; i++) {
		const struct unmanaged_process *process = &refusal->processes[i];

		if (i == 0)
			put_break(text);
		put(text, "%spid %d (%s", i > 0 ? ", " : "", process->pid, process->command);
		if ((refusal->reason == REASON_UNMASKED || refusal->resource == RESOURCE_VRAM) &&
		    process->uid != (uid_t)-1)
			put(text, ", %s", USER(text, process->uid));
		put(text, ")");
		put_use(text, refusal, process);
	}
	if (refusal->n_processes > listed)
		put(text, " and %zu more", refusal->n_processes - listed);
}

static void put_graphics(struct text *text, const struct refusal *refusal)
{
	const char *need = "enable gpuarb-userqs.socket, with Linux 6.17 or later";

	if (refusal->reason != REASON_GRAPHICS)
		return;
	put_break(text);
	if (refusal->user_queues > 0)
		need = "end their programs";
	if (refusal->user_queues > 0)
		put(text,
		    "user queues of the graphics driver that compute: %d, which no CU mask limits",
		    refusal->user_queues);
	else if (refusal->user_queues < 0)
		put(text, "it is unknown whether user queues of the graphics driver compute");
	if (refusal->user_queues != 0) {
		put(text, ": %s, or boot with amdgpu.user_queue=0", need);
		return;
	}
	if (refusal->n_processes == 0)
		put(text, "it is unknown which processes draw: enable gpuarb-fdinfo.socket, with "
			  "Linux 5.19 or later; ");
	put(text, "policy has graphics = refuse-realtime");
}

static void put_detail(struct text *text, const struct refusal *refusal)
{
	static const char *const sentences[REASONS] = {
		[REASON_DRAIN] = "the GPU is being drained: an administrator can undrain it",
		[REASON_RESET] = "its driver resets the GPU, which usually takes seconds: wait, "
				 "or try again",
		[REASON_MASK] = "gpuarbd does not know its CU masks, because it is newer than this "
				"gpuarb or its BIOS names other CUs than there are: only all CUs "
				"can be granted",
		[REASON_EXCLUSIVE] = "an exclusive lease is active only beside adaptable leases",
	};

	if (refusal->reason == REASON_QUOTA)
		put_quota(text, refusal);
	if (refusal->reason == REASON_POLICY)
		put_policy(text, refusal);
	if (refusal->reason == REASON_FLOOR) {
		put_break(text);
		if (strchr(refusal->tenant, ','))
			put(text, "the floors of tenants %s keep", refusal->tenant);
		else
			put(text, "%s of tenant %s keeps", refusal->key, refusal->tenant);
		put(text, " %s free", NUMBER(refusal->resource, refusal->limit));
	}
	if (sentences[refusal->reason])
		put_part(text, "%s", sentences[refusal->reason]);
	if (refusal->behind)
		put_part(text, "lease %llu waits for this GPU and is granted first",
			 (unsigned long long)refusal->behind);
	else if (is_geometric(refusal) && !refusal->key)
		put_fits(text, refusal);
	if (refusal->reserved > 0)
		put_part(text, "%llu reserved", (unsigned long long)refusal->reserved);
	put_leases(text, refusal);
	put_processes(text, refusal);
	put_graphics(text, refusal);
	if (refusal->reason == REASON_UNMASKED)
		put_part(
			text,
			"these queues use CUs that no lease grants them: end the processes, or start "
			"them with gpuarbctl run; unmasked = ignore grants the CUs anyway");
	if (refusal->preempt[0]) {
		put_part(text, "preempt = revoke of tenant %s would make room", refusal->preempt);
		if (refusal->resource == RESOURCE_QUEUES || refusal->resource == RESOURCE_PROCESSES)
			put(text, ", and reserved-%s keep some free for a tenant",
			    resource_name(refusal->resource));
	}
}

void refusal_line(const struct refusal *refusal, refusal_user_t user, char ret[static REFUSAL_TEXT])
{
	bool same = strcmp(reason_names[refusal->reason], resource_name(refusal->resource)) == 0;
	struct text text = text_start(ret);

	text.user = user;
	put_amounts(&text, refusal, !same);
	put_detail(&text, refusal);
}

void refusal_hint(const struct refusal *refusal, char ret[static REFUSAL_TEXT])
{
	struct text text = text_start(ret);

	/* What can be counted fits up to what is free, which put_detail() leaves out. */
	if (!is_geometric(refusal) || refusal->key)
		put_amounts(&text, refusal, true);
	put_detail(&text, refusal);
}

void refusal_wait(const struct refusal *refusal, char ret[static REFUSAL_TEXT])
{
	const char *gpu = refusal->gpu[0] ? refusal->gpu : "a GPU";
	struct text text = text_start(ret);

	if (refusal->behind) {
		put(&text, "its turn on %s, behind lease %llu", gpu,
		    (unsigned long long)refusal->behind);
	} else if (refusal->reason == REASON_EXCLUSIVE) {
		put(&text, "%s: an exclusive lease is active only beside adaptable leases", gpu);
	} else if (refusal->reason == REASON_GRAPHICS) {
		put(&text, "%s, on which %s", gpu,
		    refusal->user_queues ? "the graphics driver may compute" : "a process draws");
	} else if (refusal->reason == REASON_RESET) {
		put(&text, "%s, which its driver resets", gpu);
	} else if (refusal->resource == RESOURCE_NONE) {
		put(&text, "%s", gpu);
	} else if (refusal->reason == REASON_DRAIN) {
		put(&text, "%s, which is being drained", gpu);
	} else if (refusal->reason == REASON_OVERSUBSCRIBED) {
		put(&text, "%s, which is oversubscribed", gpu);
	} else if (refusal->reason == REASON_UNMANAGED) {
		put(&text, "%s that processes without a lease use on %s",
		    resources[refusal->resource].units, gpu);
	} else if (refusal->reason == REASON_UNMASKED) {
		put(&text, "CUs that queues outside of their lease use on %s", gpu);
	} else if (refusal->reason == REASON_FLOOR) {
		put(&text, "room beside %s of tenant %s on %s", refusal->key, refusal->tenant, gpu);
	} else if (refusal->reason == REASON_QUOTA) {
		put(&text, "room under %s of tenant %s on %s", refusal->key, refusal->tenant, gpu);
	} else {
		put(&text, "%s%s on %s", refusal->reason == REASON_SHAPE ? "a rectangle of " : "",
		    AMOUNT(refusal->resource, refusal->asked), gpu);
	}
	if (refusal->others)
		put(&text, "; other GPUs refuse too");
}
