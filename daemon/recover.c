/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a daemon leaves to the next: leases in files, and what they live by in the service
 * manager's store. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "util/log.h"

/* What cannot be in the ledger is set aside: -EINVAL. -ENOMEM: nothing can be said of it. */
static int adopt_lease(struct daemon *daemon, struct state_lease *saved,
		       struct diagnostics *diagnostics)
{
	uint64_t id = saved->lease->id;
	char why[256] = "";
	int r;

	r = arbiter_adopt(daemon->arbiter, saved->lease, saved->lost, why, sizeof(why));
	if (r < 0) {
		lease_free(saved->lease);
		if (r != -ENOMEM)
			state_set_aside(daemon->state, id, why, diagnostics);
		return r == -ENOMEM ? r : -EINVAL;
	}
	for (size_t i = 0; i < saved->n_processes && r >= 0; i++)
		r = known_add(daemon->arbiter, id, &saved->processes[i]);
	return r;
}

struct stored_fds_fd {
	char name[STORE_NAME_MAX];
	uint64_t lease; /* 0: the name is none of ours */
	pid_t pid;
	int fd;
	bool spoilt; /* what was saved of the lease could not be believed */
};

/* What the service manager kept. */
struct stored_fds {
	struct stored_fds_fd *list;
	size_t n;
};

static void stored_fds_done(struct stored_fds *stored_fds)
{
	for (size_t i = 0; i < stored_fds->n; i++)
		if (stored_fds->list[i].fd >= 0)
			close(stored_fds->list[i].fd);
	free(stored_fds->list);
}

static int stored_fds_take(struct store *store, struct stored_fds *stored_fds)
{
	struct stored_fds_fd next = { 0 }, *more;

	while (store_take(store, next.name, &next.fd) > 0) {
		if (!holders_parse_name(next.name, &next.lease, &next.pid))
			next.lease = 0;
		/* Grows by halves: thousands are not rare. */
		more = (stored_fds->n & (stored_fds->n - 1))
			       ? stored_fds->list
			       : reallocarray(stored_fds->list,
					      stored_fds->n ? stored_fds->n * 2 : 1, sizeof(next));
		if (!more) {
			close(next.fd);
			return -ENOMEM;
		}
		stored_fds->list = more;
		stored_fds->list[stored_fds->n++] = next;
	}
	return 0;
}

static int by_lease(const void *a, const void *b)
{
	const struct stored_fds_fd *x = a, *y = b;

	return (x->lease > y->lease) - (x->lease < y->lease);
}

static bool stored_fds_has(const struct stored_fds *stored_fds, uint64_t lease)
{
	const struct stored_fds_fd key = { .lease = lease };

	return stored_fds->n > 0 &&
	       bsearch(&key, stored_fds->list, stored_fds->n, sizeof(key), by_lease) != NULL;
}

static int load(struct daemon *daemon, uint64_t id, struct stored_fds *stored_fds,
		struct state_lease *saved, struct diagnostics *diagnostics)
{
	int r;

	r = state_load(daemon->state, daemon->arbiter, id, saved, diagnostics);
	if (r >= 0)
		r = adopt_lease(daemon, saved, diagnostics);
	if (r != -EINVAL)
		return r; /* not without what cannot be read now */
	journal_events_lost(id);
	for (size_t i = 0; i < stored_fds->n; i++)
		stored_fds->list[i].spoilt |= stored_fds->list[i].lease == id;
	return 0;
}

/* Leases that something was kept of come first: should a file be left of one that has ended,
 * it is not to stand in their way. */
static int load_leases(struct daemon *daemon, struct stored_fds *stored_fds,
		       struct diagnostics *diagnostics)
{
	_cleanup_(freep) struct state_lease *saved = calloc(1, sizeof(*saved));
	_cleanup_(freep) uint64_t *ids = NULL;
	size_t n = 0;
	int r;

	if (!saved)
		return -ENOMEM;
	r = state_list(daemon->state, &ids, &n, diagnostics);
	for (unsigned kept = 2; kept-- > 0;) {
		for (size_t i = 0; i < n && r >= 0; i++) {
			if (stored_fds_has(stored_fds, ids[i]) == kept)
				r = load(daemon, ids[i], stored_fds, saved, diagnostics);
		}
	}
	return r;
}

/* A lease that was set aside has ended for who holds it: it is told why. */
static void tell_gone(struct daemon *daemon, const struct stored_fds_fd *kept)
{
	_cleanup_(lease_freep) struct lease *lease = NULL;

	if (kept->pid != 0 || lease_new(1, &lease) < 0)
		return;
	lease->n_partitions = 0;
	lease->id = kept->lease;
	lease->state = STATE_ENDING;
	snprintf(lease->reason, sizeof(lease->reason),
		 "its saved state was damaged when gpuarbd was restarted");
	publish_to_holder(daemon, lease, kept->fd);
}

/* Takes the fd. */
static int adopt_fd(struct daemon *daemon, struct stored_fds_fd *kept)
{
	int r, fd = kept->fd;

	if (kept->spoilt)
		tell_gone(daemon, kept);
	if (!kept->lease || !ledger_find(daemon->arbiter, kept->lease)) {
		store_forget(daemon->liveness.store, kept->name);
		return 0;
	}
	kept->fd = -1;
	r = holders_adopt(daemon->liveness.holders, kept->lease, kept->pid, fd);
	if (r == -EEXIST)
		return 0; /* the same process once more: what is kept under its name is good */
	if (r == -EINVAL) {
		log_warning("lease %" PRIu64 ": the stored file descriptor %s is unusable",
			    kept->lease, kept->name);
		store_forget(daemon->liveness.store, kept->name);
		return 0;
	}
	if (r < 0)
		return r;
	if (kept->pid == 0)
		arbiter_add_holder(daemon->arbiter, kept->lease);
	else if (arbiter_bind(daemon->arbiter, kept->lease, kept->pid) < 0)
		holders_unbind(daemon->liveness.holders, kept->lease, kept->pid);
	return 0;
}

static int adopt_fds(struct daemon *daemon, struct stored_fds *stored_fds)
{
	int r = 0;

	for (size_t i = 0; i < stored_fds->n && r >= 0; i++)
		r = adopt_fd(daemon, &stored_fds->list[i]);
	return r;
}

/* What the daemon before has saved it need not have told any more. */
static void tell_again(struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->arbiter->n_leases; i++)
		publish_to_holders(daemon, daemon->arbiter->leases[i]);
}

/* A saved lease that nothing was kept of has lost its holders with the daemon before. */
static void end_orphans(struct arbiter *arbiter)
{
	/* From the end: one that waited leaves the list at once. */
	for (size_t i = arbiter->n_leases; i-- > 0;) {
		if (arbiter->leases[i]->state == STATE_ENDING || lease_alive(arbiter->leases[i]))
			continue;
		arbiter->leases[i]->revoked = true;
		arbiter_end(arbiter, arbiter->leases[i], RESULT_OK,
			    "gpuarbd was restarted, and no service manager kept the holders");
	}
}

/* Tells of those that go on; how many. */
static size_t tell_alive(const struct daemon *daemon)
{
	size_t n = 0;

	for (size_t i = 0; i < daemon->arbiter->n_leases; i++) {
		if (daemon->arbiter->leases[i]->state == STATE_ENDING)
			continue;
		journal_events_adopted(daemon, daemon->arbiter->leases[i]);
		n++;
	}
	return n;
}

int recover_leases(struct daemon *daemon)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	_cleanup_(stored_fds_done) struct stored_fds stored_fds = { 0 };
	size_t n, alive;
	int r;

	r = stored_fds_take(daemon->liveness.store, &stored_fds);
	if (r < 0)
		return r;
	if (stored_fds.n > 0)
		qsort(stored_fds.list, stored_fds.n, sizeof(*stored_fds.list), by_lease);
	r = load_leases(daemon, &stored_fds, &diagnostics);
	state_load_drained(daemon->state, daemon->arbiter, &diagnostics);
	log_diagnostics(&diagnostics);
	if (r < 0)
		return r;
	n = daemon->arbiter->n_leases;
	r = adopt_fds(daemon, &stored_fds);
	if (r < 0)
		return r;
	arbiter_adopted(daemon->arbiter); /* which may take back what was not told yet */
	tell_again(daemon);
	arbiter_expire(daemon->arbiter, daemon_now_usec());
	end_orphans(daemon->arbiter);
	if (daemon->arbiter->settings->revoke_on_reload)
		arbiter_review(daemon->arbiter);
	alive = tell_alive(daemon);
	if (n > 0)
		log_notice("recovered %zu of %zu lease%s", alive, n, n == 1 ? "" : "s");
	return 0;
}
