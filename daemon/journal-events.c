/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Journal entries about leases and GPUs: a MESSAGE_ID and fields for each event. */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "core/policy/request.h"
#include "enforce/enforce.h"
#include "observe/observe.h"
#include "protocol/protocol.h"

#define UNMANAGED_LOGGED 8U

_Static_assert(LOG_GPUS_MAX >= REQUEST_WANTS, "an entry has room for all GPUs of a lease");

/* ---- fields ------------------------------------------------------------------------- */

static void add_gpu(struct log_fields *fields, const char *name)
{
	for (size_t i = 0; i < fields->n_gpus; i++)
		if (strcmp(fields->gpus[i], name) == 0)
			return;
	if (fields->n_gpus < LOG_GPUS_MAX)
		fields->gpus[fields->n_gpus++] = name;
}

/* The GPUs that a request names, granted or not. */
static void add_wanted(struct log_fields *fields, const struct daemon *daemon,
		       const struct request *request)
{
	for (size_t i = 0; i < request->n_wants; i++) {
		const char *list = request->wants[i].gpu;
		char name[GPU_NAME_MAX];

		while (want_next_gpu(&list, name)) {
			int gpu = ledger_find_gpu(daemon->arbiter, name);

			if (gpu >= 0)
				add_gpu(fields, daemon->arbiter->gpus[gpu].info.name);
		}
	}
}

static struct log_fields fields_of(const struct daemon *daemon, const struct lease *lease)
{
	struct log_fields fields = { .lease = lease->id,
				     .tenant = lease->tenant,
				     .uid = lease->owner };

	for (size_t i = 0; i < lease->n_partitions; i++)
		if (lease->partitions[i].gpu < daemon->arbiter->n_gpus)
			add_gpu(&fields, daemon->arbiter->gpus[lease->partitions[i].gpu].info.name);
	if (lease->n_partitions == 0 && lease->request)
		add_wanted(&fields, daemon, lease->request);
	return fields;
}

static struct log_fields fields_on(const char *gpu, uid_t uid)
{
	return (struct log_fields){ .uid = uid, .gpus = { gpu }, .n_gpus = 1 };
}

void journal_events_lease(const struct daemon *daemon, enum log_event event,
			  const struct lease *lease, const char *format, ...)
{
	const struct log_fields fields = fields_of(daemon, lease);
	char rest[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(rest, sizeof(rest), format, args);
	va_end(args);
	log_event(event, &fields, "lease %" PRIu64 " of uid %u%s", lease->id, lease->owner, rest);
}

/* ---- limits ------------------------------------------------------------------------- */

/* What was logged of each kind. */
struct journal_events {
	struct ratelimit refused, covered;                 /* refusals and intrusions */
	struct ratelimit seen;                             /* queues, clients that draw */
	struct ratelimit waiting, granted, changed, ended; /* of leases */
};

int journal_events_start(struct daemon *daemon)
{
	daemon->journal = calloc(1, sizeof(*daemon->journal));
	return daemon->journal ? 0 : -ENOMEM;
}

/* A user that does the same again and again must not fill the journal, nor must subordinate uids of it. */
static bool may_log(const struct daemon *daemon, struct ratelimit *limit, uid_t uid, char *note,
		    size_t size)
{
	uid_t user = subuids_user(&daemon->arbiter->settings->subuids, uid);
	uint64_t times, withheld;

	note[0] = '\0';
	if (!ratelimit(limit, user, daemon_now_usec(), &times, &withheld))
		return false;
	if (withheld > 0)
		snprintf(note, size, " (%" PRIu64 " earlier entries were not logged)", withheld);
	if (times == RATELIMIT_TIMES)
		snprintf(note, size, " (further entries within half a minute are not logged)");
	return true;
}

/* ---- leases ------------------------------------------------------------------------- */

static void log_partitions(struct daemon *daemon, enum log_event event, struct ratelimit *limit,
			   const struct lease *lease, const char *how)
{
	struct log_fields fields = fields_of(daemon, lease);
	const struct partition *first = &lease->partitions[0];
	uint64_t queues = first->granted.queues;
	char note[80];

	if (!may_log(daemon, limit, lease->owner, note, sizeof(note)))
		return;
	log_event(event, &fields,
		  "lease %" PRIu64 ": %s: %u CU%s and %" PRIu64 " queue%s on %s%s%s", lease->id,
		  how, first->count, first->count == 1 ? "" : "s", queues, queues == 1 ? "" : "s",
		  daemon->arbiter->gpus[first->gpu].info.name,
		  lease->n_partitions > 1 ? " and more GPUs" : "", note);
}

void journal_events_waits(struct daemon *daemon, const struct lease *lease)
{
	struct log_fields fields = fields_of(daemon, lease);
	char note[80], reason[REQUEST_TEXT];

	if (may_log(daemon, &daemon->journal->waiting, lease->owner, note, sizeof(note)))
		log_event(EVENT_WAITING, &fields, "lease %" PRIu64 ": uid %u, tenant %s: %s%s",
			  lease->id, lease->owner, lease->tenant,
			  arbiter_reason(daemon->arbiter, lease, reason), note);
}

void journal_events_granted(struct daemon *daemon, const struct lease *lease, const char *when)
{
	char how[2 * REQUEST_TEXT];

	snprintf(how, sizeof(how), "%s to uid %u, tenant %s%s", class_names[lease->class],
		 lease->owner, lease->tenant, when);
	log_partitions(daemon, EVENT_GRANTED, &daemon->journal->granted, lease, how);
}

void journal_events_changed(struct daemon *daemon, enum log_event event, const struct lease *lease)
{
	log_partitions(daemon, event, &daemon->journal->changed, lease,
		       event == EVENT_RESIZED     ? "resized"
		       : event == EVENT_ACTIVATED ? "active"
						  : "inactive, and lends its CUs");
}

void journal_events_lost(uint64_t lease)
{
	const struct log_fields fields = { .lease = lease, .uid = (uid_t)-1 };

	log_event(EVENT_LOST, &fields, "lease %" PRIu64 " lost: its saved state is damaged", lease);
}

/* Users do not end their leases by revocation. */
void journal_events_ended(struct daemon *daemon, const struct lease *lease)
{
	bool revoked = lease_was_revoked(lease);
	char note[80] = "";

	if (revoked || may_log(daemon, &daemon->journal->ended, lease->owner, note, sizeof(note)))
		journal_events_lease(daemon, revoked ? EVENT_REVOKED : EVENT_ENDED, lease,
				     " ended: %s%s", lease->reason, note);
}

void journal_events_revoking(const struct daemon *daemon, const struct lease *lease,
			     uint64_t grace_usec)
{
	journal_events_lease(daemon, EVENT_REVOKING, lease, " ends within %.3f s: %s",
			     (double)grace_usec / 1e6, lease->reason);
}

/* Of both sides: the lease that is revoked, or kept after all, and the lease that needs its room. */
void journal_events_preempt(struct daemon *daemon, const struct lease *lease)
{
	if (lease->state == STATE_REVOKING)
		journal_events_revoking(daemon, lease,
					beyond(lease->deadline_usec, daemon_now_usec()));
	else if (lease->state == STATE_WAITING)
		journal_events_waits(daemon, lease);
	else if (lease->state == STATE_GRANTED || lease->state == STATE_ACTIVATING)
		journal_events_lease(
			daemon, EVENT_KEPT, lease,
			" is no longer revoked: the lease that needed its room does not wait any "
			"more");
}

void journal_events_reason(const struct daemon *daemon, const struct lease *lease, bool paused)
{
	char reason[REQUEST_TEXT];

	journal_events_lease(daemon, paused ? EVENT_PAUSED : EVENT_UNTRUE, lease, "%s%s",
			     paused ? ": " : " ", arbiter_reason(daemon->arbiter, lease, reason));
}

void journal_events_drift(const struct daemon *daemon, const struct lease *lease)
{
	char text[512];

	arbiter_drift_text(daemon->arbiter, lease, text, sizeof(text));
	if (text[0])
		journal_events_lease(daemon, EVENT_EXCEEDED, lease,
				     " uses more than it was granted: %s", text);
	else
		journal_events_lease(daemon, EVENT_WITHIN, lease,
				     " uses what it was granted again");
}

/* ---- refusals ------------------------------------------------------------------------- */

static void log_refused(struct daemon *daemon, struct log_fields *fields, const char *what,
			const struct result *result)
{
	char note[80];

	if (!may_log(daemon, &daemon->journal->refused, fields->uid, note, sizeof(note)))
		return;
	for (size_t i = 0; i < result->n_refusals; i++)
		if (result->refusals[i].gpu[0])
			add_gpu(fields, result->refusals[i].gpu);
	log_event(EVENT_REFUSED, fields, "uid %u%s%s was refused %s: %s%s", fields->uid,
		  fields->tenant ? ", tenant " : "", fields->tenant ? fields->tenant : "", what,
		  result->sentence, note);
}

void journal_events_refused(struct daemon *daemon, const struct caller *caller,
			    const struct request *request, const struct result *result)
{
	_cleanup_(result_done) struct result none = { 0 };
	struct log_fields fields = { .uid = caller->uid };
	const struct tenant *tenant = NULL;

	/* A caller that matches no tenant is logged without a tenant. */
	if (tenant_find(daemon->arbiter->settings, caller, request->tenant, &tenant, &none) >= 0)
		fields.tenant = tenant->name;
	add_wanted(&fields, daemon, request);
	log_refused(daemon, &fields, "a lease", result);
}

void journal_events_resize_refused(struct daemon *daemon, const struct caller *caller, uint64_t id,
				   const struct result *result)
{
	struct log_fields fields = { .uid = caller->uid };
	const struct lease *lease = ledger_find(daemon->arbiter, id);
	char what[64];

	if (lease && (lease->owner == caller->uid || caller->administrator)) {
		fields = fields_of(daemon, lease);
		fields.uid = caller->uid;
	}
	snprintf(what, sizeof(what), "a resize of lease %" PRIu64, id);
	log_refused(daemon, &fields, what, result);
}

/* ---- queues of unmanaged processes ------------------------------------------------------ */

bool journal_events_covered(struct daemon *daemon, const struct lease *lease,
			    const struct intrusion *intrusion)
{
	struct log_fields fields = fields_of(daemon, lease);
	const char *gpu = daemon->arbiter->gpus[intrusion->gpu].info.name;
	char note[80];

	if (!may_log(daemon, &daemon->journal->covered, intrusion->uid, note, sizeof(note)))
		return false;
	fields.uid = intrusion->uid;
	log_event(EVENT_COVERED, &fields,
		  "%s: pid %d (%s) of uid %u has no lease, and queues on CUs of lease %" PRIu64
		  " of uid %u%s",
		  gpu, intrusion->pid, intrusion->command, intrusion->uid, lease->id, lease->owner,
		  note);
	return true;
}

void journal_events_uncovered(const struct daemon *daemon, const struct intrusion *intrusion)
{
	const char *gpu = daemon->arbiter->gpus[intrusion->gpu].info.name;
	struct log_fields fields = fields_on(gpu, intrusion->uid);

	fields.lease = intrusion->lease;
	log_event(EVENT_UNCOVERED, &fields,
		  "%s: pid %d (%s) of uid %u has no queues on CUs of leases any more", gpu,
		  intrusion->pid, intrusion->command, intrusion->uid);
}

void journal_events_expelled(struct daemon *daemon, const struct unleased *process, const char *why)
{
	const char *gpu = daemon->arbiter->gpus[process->gpu].info.name;
	const struct log_fields fields = fields_on(gpu, process->uid);
	char note[80];

	if (may_log(daemon, &daemon->journal->covered, process->uid, note, sizeof(note)))
		log_event(EVENT_EXPELLED, &fields,
			  "%s: pid %d (%s) of uid %u uses it without a lease, and %s%s%s", gpu,
			  process->pid, process->command, process->uid,
			  *why ? "is not ended: " : "is ended", why, note);
}

/* ---- GPUs --------------------------------------------------------------------------- */

static void log_unmanaged_processes(struct daemon *daemon, const struct gpu *gpu)
{
	for (size_t i = 0; i < gpu->observed.n_processes && i < UNMANAGED_LOGGED; i++) {
		const struct unmanaged_process *process = &gpu->observed.processes[i];
		const struct log_fields fields = fields_on(gpu->info.name, process->uid);
		char note[80];

		if (may_log(daemon, &daemon->journal->seen, process->uid, note, sizeof(note)))
			log_event(EVENT_UNMANAGED, &fields,
				  "%s: pid %d (%s) of uid %u has %u queues and no lease%s",
				  gpu->info.name, process->pid, process->command, process->uid,
				  process->queues, note);
	}
}

/* An entry for the GPU, and one for each lease on it. */
void journal_events_reset(const struct daemon *daemon, const struct gpu *gpu, const char *cause)
{
	const struct log_fields fields = fields_on(gpu->info.name, (uid_t)-1);
	unsigned index = (unsigned)(gpu - daemon->arbiter->gpus);

	log_event(EVENT_RESET, &fields, "%s is reset by its driver%s%s: all queues on it are lost",
		  gpu->info.name, *cause ? ": " : "", cause);
	for (size_t i = 0; i < daemon->arbiter->n_leases; i++) {
		const struct lease *lease = daemon->arbiter->leases[i];

		if (lease_partition_on(lease, index))
			journal_events_lease(daemon, EVENT_RESET, lease,
					     ": %s was reset: restart its program", gpu->info.name);
	}
}

static void log_oversubscribed(struct daemon *daemon, const struct gpu *gpu)
{
	const struct log_fields fields = fields_on(gpu->info.name, (uid_t)-1);
	const struct budget *used = &gpu->observed.used;
	char note[80];

	if (!may_log(daemon, &daemon->journal->seen, fields.uid, note, sizeof(note)))
		return;
	if (gpu->observed.oversubscribed)
		log_event(EVENT_OVERSUBSCRIBED, &fields,
			  "%s is oversubscribed: %" PRIu64 " queues of %" PRIu64
			  " processes on %u queue slots and %u process slots; nothing more is "
			  "granted on it%s",
			  gpu->info.name, used->queues, used->processes, gpu->info.queue_slots,
			  gpu->info.process_slots, note);
	else
		log_event(EVENT_RELIEVED, &fields, "%s is no longer oversubscribed%s",
			  gpu->info.name, note);
}

void journal_events_gpu(struct daemon *daemon, const struct gpu *gpu, bool was_oversubscribed)
{
	bool newly = gpu->observed.oversubscribed && !was_oversubscribed;

	if (newly)
		log_oversubscribed(daemon, gpu);
	if (newly || daemon->arbiter->settings->unmanaged >= UNMANAGED_WARN)
		log_unmanaged_processes(daemon, gpu);
	if (!gpu->observed.oversubscribed && was_oversubscribed && !gpu->absent)
		log_oversubscribed(daemon, gpu);
}

void journal_events_graphics(struct daemon *daemon, const struct gpu *gpu)
{
	for (size_t i = 0; i < gpu->graphics.n_clients && i < UNMANAGED_LOGGED; i++) {
		const struct gpu_client *client = &gpu->graphics.clients[i];
		const struct log_fields fields = fields_on(gpu->info.name, client->uid);
		char note[80];

		if (client->draws &&
		    may_log(daemon, &daemon->journal->seen, client->uid, note, sizeof(note)))
			log_event(EVENT_GRAPHICS, &fields,
				  "%s: pid %d (%s) of uid %u draws: CU masks of leases do not hold "
				  "for it%s",
				  gpu->info.name, client->pid, client->command, client->uid, note);
	}
}
