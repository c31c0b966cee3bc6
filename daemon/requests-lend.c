/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What leases are asked to lend and to give back, and what they say of it. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon.h"

static int not_saved(const struct daemon *daemon, int r, struct result *result, const char *outcome)
{
	return result_set(result, RESULT_NOT_SAVED, "it could not be saved in %s (%s), so %s",
			  daemon->options->runtime_directory, strerror(-r), outcome);
}

int host_activate(void *userdata, const struct caller *caller, uint64_t id, bool active,
		  struct result *result)
{
	_cleanup_(result_done) struct result none = { 0 };
	struct daemon *daemon = userdata;
	struct arbiter *arbiter = daemon->arbiter;
	int r;

	r = active ? arbiter_activate(arbiter, caller, id, result)
		   : arbiter_deactivate(arbiter, caller, id, result);
	if (r < 0)
		return r;
	r = daemon_save(daemon, ledger_find(arbiter, id));
	if (r < 0 && active) {
		arbiter_deactivate(arbiter, caller, id, &none);
		daemon_carry_out(daemon);
		return not_saved(daemon, r, result, "the lease stays inactive");
	}
	if (!active)
		journal_events_inactive(daemon, ledger_find(arbiter, id));
	daemon->stale |= r < 0; /* after a restart it would be active again, and lend nothing */
	daemon_carry_out(daemon);
	return 0;
}

int host_acknowledge(void *userdata, const struct caller *caller, uint64_t id, uint64_t generation,
		     struct result *result)
{
	struct daemon *daemon = userdata;
	struct lease *lease;
	int r;

	r = ledger_find_owned(daemon->arbiter, caller, id, &lease, result);
	if (r < 0)
		return r;
	if (arbiter_acknowledge(daemon->arbiter, id, generation) < 0)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "generation %" PRIu64 ": lease %" PRIu64 " is at %" PRIu64,
				  generation, id, lease->generation);
	daemon->outdated = true;
	daemon_carry_out(daemon);
	return 0;
}

int host_revoke(void *userdata, uint64_t id, uint64_t grace_usec, const char *reason,
		struct result *result)
{
	struct daemon *daemon = userdata;
	int r;

	r = arbiter_revoke(daemon->arbiter, id, daemon_now_usec(), grace_usec, reason, result);
	if (r < 0)
		return r;
	if (ledger_find(daemon->arbiter, id))
		journal_events_revoking(daemon, ledger_find(daemon->arbiter, id), grace_usec);
	daemon_carry_out(daemon);
	r = ledger_find(daemon->arbiter, id) ? daemon_save_again(daemon) : 0;
	if (r < 0)
		return not_saved(daemon, r, result,
				 "a restart would forget it: revoke the lease again then");
	return 0;
}
