/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Recovers the leases of an earlier daemon: the leases from their files, and their holders and
 * bound processes from the service manager. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/protocol.h"
#include "cap/cap.h"
#include "sys/liveness/shelf.h"
#include "sys/state/state-json.h"
#include "util/fd.h"
#include "util/grow.h"

/* Clients connect again within a fraction of a second after the start. */
#define CLAIM_USEC 5000000U

/* A file descriptor that the service manager kept. */
struct stored_fd {
	char name[STORE_NAME_MAX];
	struct stored_name of; /* lease 0: the name is not from gpuarbd */
	int fd;
	bool damaged;        /* the file of the lease was set aside */
	struct shelf *shelf; /* that has it; NULL: it is stored under its name */
};

struct stored_fds {
	struct stored_fd *list;
	size_t n;
};

static void stored_fds_done(struct stored_fds *stored_fds)
{
	for (size_t i = 0; i < stored_fds->n; i++)
		close_fd(&stored_fds->list[i].fd);
	free(stored_fds->list);
}

static int stored_fds_add(struct stored_fds *stored_fds, const char *name, int fd,
			  struct shelf *shelf)
{
	struct stored_fd next = { .fd = fd, .shelf = shelf }, *added;

	snprintf(next.name, sizeof(next.name), "%s", name);
	(void)stored_name_parse(next.name, &next.of);
	added = grow(&stored_fds->list, &stored_fds->n, sizeof(*added));
	if (!added) {
		close(next.fd);
		return -ENOMEM;
	}
	*added = next;
	return 0;
}

/* Takes the fd. What cannot be read is left to a later daemon. */
static int stored_fds_take_shelf(struct daemon *daemon, struct stored_fds *stored_fds,
				 uint64_t number, int fd)
{
	struct shelf_entry entries[SHELF_MAX];
	struct shelf *shelf;
	size_t n = 0;
	int r = shelf_read(fd, entries, &n);

	if (r < 0) {
		log_error("shelf-%" PRIu64 " of the service manager cannot be read: %s", number,
			  strerror(-r));
		close(fd);
		return r == -EBADMSG ? 0 : r;
	}
	r = holders_take_shelf(daemon->holders, number, fd, &shelf);
	for (size_t i = 0; i < n; i++) {
		if (r >= 0)
			r = stored_fds_add(stored_fds, entries[i].name, entries[i].fd, shelf);
		else
			close(entries[i].fd);
	}
	return r;
}

static int stored_fds_take(struct daemon *daemon, struct stored_fds *stored_fds)
{
	char name[STORE_NAME_MAX];
	uint64_t number;
	int fd, r = 0;

	while (r >= 0 && store_take(daemon->store, name, &fd) > 0)
		r = sscanf(name, "shelf-%20" SCNu64, &number) == 1
			    ? stored_fds_take_shelf(daemon, stored_fds, number, fd)
			    : stored_fds_add(stored_fds, name, fd, NULL);
	return r;
}

DEFINE_ORDER(by_lease, struct stored_fd, .of.lease)

static bool stored_fds_has(const struct stored_fds *stored_fds, uint64_t lease)
{
	const struct stored_fd key = { .of.lease = lease };

	return stored_fds->n > 0 &&
	       bsearch(&key, stored_fds->list, stored_fds->n, sizeof(key), by_lease) != NULL;
}

/* A lease that was read and is not in force yet. */
struct found {
	struct lease *lease; /* NULL: it is in force, or its file was set aside */
	bool kept;           /* a stored fd belongs to it */
	char lost[GPU_NAME_MAX];
	struct lease_process *processes;
	size_t n_processes;
};

struct all_found {
	struct found *list;
	size_t n;
};

static void all_found_done(struct all_found *all)
{
	for (size_t i = 0; i < all->n; i++) {
		lease_free(all->list[i].lease);
		free(all->list[i].processes);
	}
	free(all->list);
}

/* First the leases that a stored fd belongs to: a file that was left of an ended lease must not take
 * their resources. Among them the file that was saved last: where two claim the same, the other one
 * was not saved when its lease lost that. */
static int by_claim(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->kept != y->kept)
		return y->kept - x->kept;
	if (x->lease->serial != y->lease->serial)
		return x->lease->serial < y->lease->serial ? 1 : -1;
	return (x->lease->id > y->lease->id) - (x->lease->id < y->lease->id);
}

static void lose(uint64_t id, struct stored_fds *stored_fds)
{
	journal_events_lost(id);
	for (size_t i = 0; i < stored_fds->n; i++)
		stored_fds->list[i].damaged |= stored_fds->list[i].of.lease == id;
}

/* A lease that contradicts itself, the hardware or another lease is lost, and its file set aside. */
static int adopt_lease(struct daemon *daemon, struct found *found, struct stored_fds *stored_fds,
		       struct diagnostics *diagnostics)
{
	uint64_t id = found->lease->id;
	char why[256] = "";
	int r;

	r = arbiter_adopt(daemon->arbiter, found->lease, found->lost, why, sizeof(why));
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		if (r == -EEXIST && found->lease->serial > 0)
			strncat(why, ", and was saved later", sizeof(why) - strlen(why) - 1);
		state_set_aside(daemon->state, id, why, diagnostics);
		lose(id, stored_fds);
		return 0;
	}
	found->lease = NULL;
	for (size_t i = 0; i < found->n_processes && r >= 0; i++)
		r = known_add(daemon->arbiter, id, &found->processes[i]);
	return r;
}

static int keep(struct all_found *all, const struct state_lease *saved, bool kept)
{
	struct found *found = &all->list[all->n++];

	*found = (struct found){ .lease = saved->lease, .kept = kept };
	memcpy(found->lost, saved->lost, sizeof(found->lost));
	found->n_processes = saved->n_processes;
	found->processes = calloc(saved->n_processes + 1, sizeof(*found->processes));
	if (!found->processes)
		return -ENOMEM;
	memcpy(found->processes, saved->processes, saved->n_processes * sizeof(*found->processes));
	return 0;
}

static int load_leases(struct daemon *daemon, struct stored_fds *stored_fds,
		       struct diagnostics *diagnostics)
{
	_cleanup_(freep) struct state_lease *saved = calloc(1, sizeof(*saved));
	_cleanup_(all_found_done) struct all_found all = { 0 };
	_cleanup_(freep) uint64_t *ids = NULL;
	size_t n = 0;
	int r;

	if (!saved)
		return -ENOMEM;
	r = state_list(daemon->state, &ids, &n, diagnostics);
	if (r >= 0) {
		all.list = calloc(n + 1, sizeof(*all.list));
		r = all.list ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = state_load(daemon->state, daemon->arbiter, ids[i], saved, diagnostics);
		if (r == -EINVAL) {
			lose(ids[i], stored_fds);
			r = 0;
		} else if (r >= 0) { /* a file that cannot be read now must not be lost */
			r = keep(&all, saved, stored_fds_has(stored_fds, ids[i]));
		}
	}
	if (all.n > 0)
		qsort(all.list, all.n, sizeof(*all.list), by_claim);
	for (size_t i = 0; i < all.n && r >= 0; i++)
		r = adopt_lease(daemon, &all.list[i], stored_fds, diagnostics);
	return r;
}

/* Tells a holder that its lease has ended because the file was set aside. */
static void tell_damaged(struct daemon *daemon, const struct stored_fd *stored)
{
	_cleanup_(lease_freep) struct lease *lease = NULL;

	if (stored->of.kind != STORED_END || lease_new(&lease) < 0)
		return;
	lease->id = stored->of.lease;
	lease->state = STATE_ENDING;
	snprintf(
		lease->reason, sizeof(lease->reason),
		"when gpuarbd was restarted, its saved state was damaged or contradicted by that of "
		"another lease");
	publish_to_holder(daemon, lease, stored->fd);
}

/* What is on a shelf has no name of its own in the store. */
static void forget(struct daemon *daemon, const struct stored_fd *stored)
{
	if (!stored->shelf)
		store_forget(daemon->store, stored->name);
}

/* Takes the fd. */
static int adopt_fd(struct daemon *daemon, struct stored_fd *stored)
{
	const struct stored_name *of = &stored->of;
	int r, fd;

	if (stored->damaged)
		tell_damaged(daemon, stored);
	if (!of->lease || !ledger_find(daemon->arbiter, of->lease)) {
		forget(daemon, stored);
		return 0;
	}
	fd = take_fd(&stored->fd);
	r = of->kind == STORED_CAP ? caps_adopt(daemon, of->lease, (pid_t)of->number, fd)
				   : holders_adopt(daemon->holders, of, fd, stored->shelf);
	if (r == -EEXIST)
		return 0; /* the same process twice: the fd that is stored under this name is fine */
	if (r == -EINVAL || r == -EBADF) {
		log_warning("lease %" PRIu64 ": the stored file descriptor %s is unusable",
			    of->lease, stored->name);
		forget(daemon, stored);
		return 0;
	}
	if (r < 0 || of->kind == STORED_CAP)
		return r;
	if (of->kind == STORED_END) {
		arbiter_add_holder(daemon->arbiter, of->lease);
		return 0;
	}
	r = arbiter_bind(daemon->arbiter, of->lease, (pid_t)of->number,
			 of->kind == STORED_DELEGATED);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		holders_unbind(daemon->holders, of->lease, (pid_t)of->number);
	return 0;
}

static int adopt_fds(struct daemon *daemon, struct stored_fds *stored_fds)
{
	int r = 0;

	for (size_t i = 0; i < stored_fds->n && r >= 0; i++)
		r = adopt_fd(daemon, &stored_fds->list[i]);
	return r;
}

/* The earlier daemon may have crashed between saving a change and publishing it. What differs from the
 * file is published when it is saved. */
static void tell_again(struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->arbiter->n_leases; i++)
		if (!(daemon->arbiter->leases[i]->touched & (TOUCH_CHANGED | TOUCH_ENDING)))
			publish_to_holders(daemon, daemon->arbiter->leases[i]);
}

/* Ends the saved leases of which no holder and no bound process was kept. */
static void end_orphans(struct arbiter *arbiter)
{
	/* Backwards: arbiter_end() removes a waiting lease at once. */
	for (size_t i = arbiter->n_leases; i-- > 0;) {
		if (arbiter->leases[i]->state == STATE_ENDING || lease_alive(arbiter->leases[i]))
			continue;
		arbiter->leases[i]->revoked = true;
		arbiter_end(arbiter, arbiter->leases[i], RESULT_OK,
			    "gpuarbd was restarted, and no holder of the lease was kept");
	}
}

/* Returns how many leases were recovered. */
static size_t log_recovered(const struct daemon *daemon)
{
	size_t n = 0;

	for (size_t i = 0; i < daemon->arbiter->n_leases; i++) {
		if (daemon->arbiter->leases[i]->state == STATE_ENDING)
			continue;
		journal_events_lease(daemon, EVENT_ADOPTED, daemon->arbiter->leases[i],
				     " recovered: %s",
				     state_names[daemon->arbiter->leases[i]->state]);
		n++;
	}
	return n;
}

int recover_leases(struct daemon *daemon)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	_cleanup_(stored_fds_done) struct stored_fds stored_fds = { 0 };
	size_t n, recovered;
	int r;

	r = stored_fds_take(daemon, &stored_fds);
	if (stored_fds.n > 0)
		qsort(stored_fds.list, stored_fds.n, sizeof(*stored_fds.list), by_lease);
	if (r >= 0)
		r = load_leases(daemon, &stored_fds, &diagnostics);
	state_load_drained(daemon->state, daemon->arbiter, &diagnostics);
	log_diagnostics(&diagnostics);
	n = daemon->arbiter->n_leases;
	arbiter_await_claims(daemon->arbiter, daemon_now_usec() + CLAIM_USEC);
	if (r >= 0)
		r = adopt_fds(daemon, &stored_fds);
	if (r < 0)
		return r;
	holders_adopted(daemon->holders);
	for (size_t i = 0; i < daemon->arbiter->n_leases; i++)
		caps_review(daemon, daemon->arbiter->leases[i]->id);
	arbiter_adopted(daemon->arbiter, daemon_now_usec());
	tell_again(daemon);
	arbiter_expire(daemon->arbiter, daemon_now_usec());
	end_orphans(daemon->arbiter);
	if (daemon->arbiter->settings->revoke_on_reload)
		arbiter_review(daemon->arbiter);
	recovered = log_recovered(daemon);
	if (n > 0)
		log_notice("recovered %zu of %zu lease%s", recovered, n, n == 1 ? "" : "s");
	return 0;
}
