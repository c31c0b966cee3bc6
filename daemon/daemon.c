/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "util/log.h"
#include "sys/process.h"

/* Others wait for what an ending lease had; the default of a quarter second is long. */
#define LOOK_ACCURACY_USEC 5000U
#define DEADLINE_ACCURACY_USEC 1000U

#define NEVER_LISTED (UINT64_MAX - 1) /* a generation of the hardware that is none */

/* ---- events ------------------------------------------------------------------------ */

static void on_holder_gone(void *userdata, uint64_t lease)
{
	struct daemon *daemon = userdata;

	arbiter_holder_gone(daemon->arbiter, lease);
	daemon_carry_out_soon(daemon);
}

static void on_bound_gone(void *userdata, uint64_t lease, pid_t pid)
{
	struct daemon *daemon = userdata;

	arbiter_bound_gone(daemon->arbiter, lease, pid);
	daemon_carry_out_soon(daemon);
}

static int on_carry(sd_event_source *source, void *userdata)
{
	(void)source;
	daemon_carry_out(userdata);
	return 0;
}

static int on_audit(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct daemon *daemon = userdata;

	(void)source;
	(void)usec;
	daemon_look(daemon, 0);
	daemon_save_again(daemon);
	daemon_carry_out(daemon); /* which also tries once more who fits and could not be saved */
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct daemon *daemon = userdata;

	(void)source;
	(void)usec;
	arbiter_expire(daemon->arbiter, daemon_now_usec());
	daemon_carry_out(daemon);
	return 0;
}

/* ---- coming and going ---------------------------------------------------------------- */

/* As many as we may have; with a store, as many as the service manager can give to the next
 * process of ours, which is what this one was started with, and copies wait for a manager
 * that is slow. */
static unsigned count_fds(bool store)
{
	struct rlimit limit, more;
	rlim_t own, next, copies;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	more = (struct rlimit){ limit.rlim_max, limit.rlim_max };
	own = setrlimit(RLIMIT_NOFILE, &more) < 0 ? limit.rlim_cur : limit.rlim_max;
	copies = own / 4 < STORE_QUEUE_MAX ? own / 4 : STORE_QUEUE_MAX;
	next = limit.rlim_cur;
	if (store)
		next = next < own - copies ? next : own - copies;
	if (!store)
		next = own;
	return next < UINT_MAX ? (unsigned)next : UINT_MAX;
}

static int load_settings(const struct daemon *daemon, struct settings **ret,
			 struct diagnostics *diagnostics)
{
	int r = config_load(&daemon->options->files, ret, diagnostics);

	if (r > 0)
		log_info(CONFIG_NONE);
	for (size_t i = 0; r >= 0 && i < (*ret)->n_tenants; i++)
		if ((*ret)->tenants[i].executable && !process_sees_executables())
			diagnostics_add(
				diagnostics, false,
				"tenant %s: match-executable matches nobody: gpuarbd may not see "
				"which program other users run without CAP_SYS_PTRACE; see "
				"SECURITY in gpuarbd(8)",
				(*ret)->tenants[i].name);
	return r;
}

static int make_arbiter(struct daemon *daemon, struct diagnostics *diagnostics)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	_cleanup_(freep) struct gpu_info *gpus = calloc(REQUEST_WANTS, sizeof(*gpus));
	int n, r;

	if (!gpus)
		return -ENOMEM;
	r = load_settings(daemon, &settings, diagnostics);
	if (r < 0)
		return r;
	n = daemon_find_gpus(daemon->options, settings, &daemon->ops, &daemon->hw, gpus,
			     REQUEST_WANTS, diagnostics);
	if (n < 0)
		return n;
	r = state_open(daemon->options->runtime_directory, &daemon->state, diagnostics);
	if (r < 0)
		return r;
	r = arbiter_new(settings, gpus, (size_t)n, state_first_id(daemon->state), &daemon->arbiter);
	if (r < 0)
		return r;
	TAKE_PTR(settings);
	for (size_t i = 0; i < daemon->arbiter->n_gpus; i++)
		daemon->arbiter->gpus[i].shown = true; /* nobody is told that they have come */
	return n;
}

static int make_timer(struct daemon *daemon, uint64_t accuracy_usec,
		      sd_event_time_handler_t handler, sd_event_source **ret)
{
	int r = sd_event_add_time(daemon->event, ret, CLOCK_BOOTTIME, UINT64_MAX, accuracy_usec,
				  handler, daemon);

	return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

static int make_sources(struct daemon *daemon)
{
	int r;

	r = sd_event_add_defer(daemon->event, &daemon->carry, on_carry, daemon);
	if (r >= 0)
		r = sd_event_source_set_enabled(daemon->carry, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_priority(daemon->carry, PRIORITY_CARRY_OUT);
	if (r >= 0)
		r = make_timer(daemon, DEADLINE_ACCURACY_USEC, on_deadline, &daemon->deadline);
	if (r >= 0)
		r = make_timer(daemon, LOOK_ACCURACY_USEC, on_audit, &daemon->audit);
	return r;
}

static int make_keepers(struct daemon *daemon)
{
	static const struct holders_callbacks callbacks = { on_holder_gone, on_bound_gone };
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	int r;

	r = store_new(daemon->event, &daemon->store, &diagnostics);
	log_diagnostics(&diagnostics);
	if (r < 0)
		return r;
	daemon->stored = store_works(daemon->store);
	daemon->nofile = count_fds(daemon->stored);
	daemon->store_max = store_works(daemon->store) ? store_max(daemon->store) : UINT_MAX;
	return holders_new(daemon->event, daemon->store, &callbacks, daemon, &daemon->holders);
}

/* Past its maximum the service manager would throw fds away without a word. */
static void ask_store_max(struct daemon *daemon)
{
	int r;

	if (!store_works(daemon->store) || daemon->store_max != UINT_MAX)
		return;
	r = bus_store_max(daemon->bus, &daemon->store_max);
	if (r < 0)
		log_notice("nobody says how many file descriptors the service manager keeps (%s): "
			   "FileDescriptorStoreMax= must be at least max-holders",
			   strerror(-r));
}

/* Who has the name, and the lock on the state, is the only daemon: what was saved is its
 * own. No request is looked at before it is all in place again. */
static int start(struct daemon *daemon)
{
	int r;

	r = make_keepers(daemon);
	if (r >= 0)
		r = make_sources(daemon);
	if (r >= 0)
		r = daemon_start_enforce(daemon);
	if (r >= 0)
		r = daemon_start_probe(daemon);
	if (r >= 0)
		r = daemon_connect(daemon);
	if (r < 0)
		return r;
	ask_store_max(daemon);
	daemon->max_holders = daemon_limit_holders(daemon, daemon->arbiter->settings);
	r = daemon_adopt(daemon);
	if (r < 0)
		return r;
	daemon_look(daemon, 0);
	daemon_carry_out(daemon);
	return 0;
}

int daemon_new(const struct daemon_options *options, sd_event *event, struct daemon **ret)
{
	_cleanup_(daemon_freep) struct daemon *daemon = calloc(1, sizeof(*daemon));
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	int n, r;

	if (!daemon)
		return -ENOMEM;
	daemon->options = options;
	daemon->event = sd_event_ref(event);
	daemon->generation = NEVER_LISTED; /* the first look lists once more: nothing is missed */

	n = make_arbiter(daemon, &diagnostics);
	log_diagnostics(&diagnostics);
	if (n < 0)
		return n;
	log_info("%s: %d GPU%s", daemon->ops->name, n, n == 1 ? "" : "s");
	r = start(daemon);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(daemon);
	return 0;
}

struct daemon *daemon_free(struct daemon *daemon)
{
	if (!daemon)
		return NULL;

	if (daemon->holders && store_works(daemon->store))
		daemon_leave_leases(daemon);
	else if (daemon->holders)
		daemon_end_leases(daemon); /* their holders close with this process */
	holders_free(daemon->holders);
	store_free(daemon->store); /* answers what still waits, so the bus goes after it */
	bus_free(daemon->bus);
	sd_event_source_disable_unref(daemon->reconnect);
	sd_event_source_disable_unref(daemon->carry);
	sd_event_source_disable_unref(daemon->deadline);
	sd_event_source_disable_unref(daemon->audit);
	sd_event_source_disable_unref(daemon->probing);
	probe_free(daemon->probe);
	enforce_free(daemon->enforce);
	arbiter_free(daemon->arbiter);
	state_close(daemon->state);
	if (daemon->ops)
		daemon->ops->close(daemon->hw);
	sd_event_unref(daemon->event);
	free(daemon->uses);
	free(daemon);
	return NULL;
}

int daemon_reload(struct daemon *daemon, struct diagnostics *diagnostics)
{
	struct settings *settings = NULL;
	int r;

	r = load_settings(daemon, &settings, diagnostics);
	if (r < 0)
		return r;
	arbiter_set_settings(daemon->arbiter, settings);
	if (settings->revoke_on_reload)
		arbiter_review(daemon->arbiter);
	daemon->max_holders = daemon_limit_holders(daemon, settings);
	log_notice("configuration reloaded: %zu tenant%s", settings->n_tenants,
		   settings->n_tenants == 1 ? "" : "s");
	if (daemon->bus)
		bus_tell_tenants(daemon->bus);
	daemon_carry_out(daemon);
	return 0;
}
