/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The processes of a unit: do they belong to a lease? */

#include "daemon.h"
#include "sys/cgroup.h"

static bool is_of(const struct daemon *daemon, const struct lease *lease, pid_t pid)
{
	struct observed row = { .pid = pid };

	liveness_describe(daemon, &row);
	return attribution_is_bound(daemon->arbiter, lease, &row);
}

int unit_find_other(const struct daemon *daemon, const struct lease *lease, const char *cgroup,
		    pid_t *ret)
{
	_cleanup_(freep) pid_t *pids = NULL;
	size_t n;
	int r;

	r = unit_processes(CGROUP_ROOT, cgroup, &pids, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (is_of(daemon, lease, pids[i]))
			continue;
		*ret = pids[i];
		return 1;
	}
	return 0;
}
