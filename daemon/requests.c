/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What clients ask, carried out: decide, save, put into force, tell. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon.h"
#include "util/log.h"
#include "sys/process.h"

/* Requests in a burst are judged by one look. */
#define FRESH_USEC UINT64_C(20000)

static void host_refresh(void *userdata)
{
	if (daemon_look(userdata, FRESH_USEC))
		daemon_carry_out(userdata);
}

static int host_settle(void *userdata, void (*settled)(void *call, int r), void *call)
{
	struct daemon *daemon = userdata;

	return store_settle(daemon->store, settled, call);
}

static void host_describe(void *userdata, pid_t pid, struct caller *caller)
{
	(void)userdata;
	process_place(pid, caller);
}

/* ---- what is done to leases ---------------------------------------------------------- */

static int host_release(void *userdata, const struct caller *caller, uint64_t id,
			struct result *result)
{
	struct daemon *daemon = userdata;
	struct lease *lease;
	int r;

	r = ledger_find_owned(daemon->arbiter, caller, id, &lease, result);
	if (r < 0)
		return r;
	lease->revoked |= caller->uid != lease->owner;
	arbiter_end(daemon->arbiter, id, RESULT_OK,
		    caller->uid == lease->owner ? "released" : "released by an administrator");
	daemon_carry_out(daemon);
	r = ledger_find(daemon->arbiter, id) ? daemon_save_again(daemon) : 0;
	if (r < 0)
		return result_set(result, RESULT_NOT_SAVED,
				  "lease %llu is ending, which could not be saved in %s (%s): "
				  "should gpuarbd be restarted before that, release it again",
				  (unsigned long long)id, daemon->options->runtime_directory,
				  strerror(-r));
	return 0;
}

/* ---- administering ------------------------------------------------------------------- */

static int host_drain(void *userdata, const char *gpu, bool drain, struct result *result)
{
	struct daemon *daemon = userdata;
	int index = ledger_find_gpu(daemon->arbiter, gpu), r;
	bool before;

	if (index < 0)
		return result_set(result, RESULT_NO_SUCH_GPU, "there is no GPU %s", gpu);
	before = daemon->arbiter->gpus[index].draining;
	arbiter_drain(daemon->arbiter, gpu, drain);
	r = state_save_drained(daemon->state, daemon->arbiter);
	if (r < 0) {
		arbiter_drain(daemon->arbiter, gpu, before);
		return result_set(result, RESULT_NOT_SAVED,
				  "%s: cannot save which GPUs are "
				  "drained: %s",
				  daemon->options->runtime_directory, strerror(-r));
	}
	log_notice("%s is %s", daemon->arbiter->gpus[index].info.name,
		   drain ? "drained" : "no longer drained");
	daemon_carry_out(daemon);
	return 0;
}

/* All errors that there is room for, a line each. */
static void gather(const struct diagnostics *diagnostics, int r, char *buf, size_t size)
{
	size_t n = 0;

	snprintf(buf, size, "%s", strerror(-r));
	for (size_t i = 0; i < diagnostics->n; i++) {
		if (!diagnostics->list[i].error)
			continue;
		if (n + strlen(diagnostics->list[i].text) + 2 > size)
			return;
		n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? "\n" : "",
				      diagnostics->list[i].text);
	}
}

static int host_reload(void *userdata, struct result *result)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	struct daemon *daemon = userdata;
	char why[400];
	int r;

	r = daemon_reload(daemon, &diagnostics);
	log_diagnostics(&diagnostics);
	if (r >= 0)
		return 0;
	gather(&diagnostics, r, why, sizeof(why));
	return result_set(result, RESULT_INVALID_REQUEST, "%s; what was in force stays", why);
}

const struct bus_host daemon_host = {
	.version = GPUARB_VERSION,
	.refresh = host_refresh,
	.describe = host_describe,
	.settle = host_settle,
	.disconnected = host_disconnected,
	.named = host_named,
	.reserve = host_reserve,
	.resize = host_resize,
	.release = host_release,
	.bind = host_bind,
	.acknowledge = host_acknowledge,
	.drain = host_drain,
	.reload = host_reload,
	.activate = host_activate,
	.revoke = host_revoke,
};
