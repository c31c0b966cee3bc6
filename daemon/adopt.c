/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a daemon leaves to the next: leases in files, and what they live by in the service
 * manager's store. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "sys/log.h"

/* What cannot be in the ledger is set aside. -ENOMEM: nothing can be said of it. */
static int adopt_lease(struct daemon *daemon, struct state_lease *saved, struct notes *notes)
{
	uint64_t id = saved->lease->id;
	char why[256] = "";
	int r;

	r = arbiter_adopt(daemon->arbiter, saved->lease, saved->lost, why, sizeof(why));
	if (r < 0) {
		lease_free(saved->lease);
		if (r != -ENOMEM)
			state_set_aside(daemon->state, id, why, notes);
		return r == -ENOMEM ? r : 0;
	}
	for (size_t i = 0; i < saved->n_processes && r >= 0; i++)
		r = arbiter_adopt_process(daemon->arbiter, id, &saved->processes[i]);
	return r;
}

static int load_leases(struct daemon *daemon, struct notes *notes)
{
	_cleanup_(freep) struct state_lease *saved = calloc(1, sizeof(*saved));
	_cleanup_(freep) uint64_t *ids = NULL;
	size_t n = 0;
	int r;

	if (!saved)
		return -ENOMEM;
	r = state_list(daemon->state, &ids, &n, notes);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		r = state_load(daemon->state, daemon->arbiter, ids[i], saved, notes);
		if (r >= 0)
			r = adopt_lease(daemon, saved, notes);
		if (r < 0 && r != -EINVAL) /* it cannot be read now: not without it */
			return r;
	}
	return 0;
}

/* Takes fd. */
static void adopt_fd(struct daemon *daemon, const char *name, int fd)
{
	struct lease *lease = NULL;
	uint64_t id;
	pid_t pid;
	int r = -EINVAL;

	if (holders_parse_name(name, &id, &pid))
		lease = arbiter_find(daemon->arbiter, id);
	if (!lease) {
		close(fd);
		store_forget(daemon->store, name);
		return;
	}
	r = holders_adopt(daemon->holders, id, pid, fd);
	if (r == -EEXIST) {
		return; /* the same process once more: what is kept under its name is good */
	} else if (r < 0) {
		log_warning("lease %" PRIu64 ": what was kept as %s is of no use: %s", id, name,
			    strerror(-r));
		store_forget(daemon->store, name);
	} else if (pid == 0) {
		arbiter_add_holder(daemon->arbiter, id);
	} else if (arbiter_bind(daemon->arbiter, id, pid) < 0) {
		holders_unbind(daemon->holders, id, pid);
	}
}

/* What the daemon before has saved it need not have told any more. */
static void tell_again(struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->arbiter->n_leases; i++)
		daemon_tell_holders(daemon, daemon->arbiter->leases[i]);
}

/* A saved lease that nothing was kept of has lost its holders with the daemon before. */
static size_t end_orphans(struct daemon *daemon)
{
	struct arbiter *arbiter = daemon->arbiter;
	size_t ended = 0;

	/* From the end: one that waited leaves the list at once. */
	for (size_t i = arbiter->n_leases; i-- > 0;) {
		if (arbiter->leases[i]->state == STATE_ENDING || lease_alive(arbiter->leases[i]))
			continue;
		arbiter_end(arbiter, arbiter->leases[i]->id, VERDICT_OK,
			    "it ended with the gpuarbd before: nobody kept its holders");
		ended++;
	}
	return ended;
}

int daemon_adopt(struct daemon *daemon)
{
	_cleanup_(notes_done) struct notes notes = {0};
	char name[STORE_NAME_MAX];
	size_t n, ended;
	int fd, r;

	r = load_leases(daemon, &notes);
	state_load_drained(daemon->state, daemon->arbiter, &notes);
	log_notes(&notes);
	if (r < 0)
		return r;
	n = daemon->arbiter->n_leases;
	while (store_take(daemon->store, name, &fd) > 0)
		adopt_fd(daemon, name, fd);
	tell_again(daemon);
	arbiter_expire(daemon->arbiter, daemon_now_usec());
	ended = end_orphans(daemon);
	if (daemon->arbiter->settings->revoke_on_reload)
		arbiter_review(daemon->arbiter);
	if (n > 0)
		log_notice("%zu lease%s of the gpuarbd before: %zu go on", n, n == 1 ? "" : "s",
			   n - ended);
	return 0;
}
