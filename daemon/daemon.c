/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "record.h"
#include "sys/log.h"
#include "sys/profile.h"

/* Bus, event loop, files being written, and above all calls under way: each can bring 16 fds
 * (max_message_unix_fds of a bus), and a call that finds no room for them ends our
 * connection. dbus-daemon has up to 64 on their way to us at a time. */
#define FDS_OF_OUR_OWN 256U

/* Others wait for what an ending lease had; the default of a quarter second is long. */
#define LOOK_ACCURACY_USEC 5000U

/* ---- carrying out ------------------------------------------------------------------ */

static void tell_holders(struct daemon *daemon, const struct lease *lease)
{
	_cleanup_(freep) void *record = NULL;
	size_t size = 0;

	if (record_new(daemon->arbiter, lease, &record, &size) < 0)
		return;
	holders_tell(daemon->holders, lease->id, record, size);
}

static void carry_out_lease(struct daemon *daemon, struct lease *lease, unsigned touched)
{
	int r;

	if ((touched & TOUCH_CHANGED) && !(touched & TOUCH_REMOVED)) {
		r = state_save(daemon->state, daemon->arbiter, lease);
		if (r < 0)
			log_warning("cannot save lease %llu: %s", (unsigned long long)lease->id,
				    strerror(-r));
	}
	if (touched & (TOUCH_CHANGED | TOUCH_ENDING))
		tell_holders(daemon, lease);
	if (touched & TOUCH_ENDING) {
		log_info("lease %llu of uid %u ends: %s", (unsigned long long)lease->id,
			 lease->owner, lease->reason);
		daemon->must_look = true;
	}
	if (daemon->bus)
		bus_tell_lease(daemon->bus, lease, touched);
	if (touched & TOUCH_REMOVED) {
		holders_drop(daemon->holders, lease->id);
		state_forget(daemon->state, lease->id);
		lease_free(lease);
	}
}

static void warn_of_strangers(const struct gpu *gpu)
{
	for (size_t i = 0; i < gpu->n_strangers && i < 8; i++)
		log_warning("%s: pid %d (%s) of uid %u has %u queues and no lease",
			    gpu->info.name, gpu->strangers[i].pid, gpu->strangers[i].command,
			    gpu->strangers[i].uid, gpu->strangers[i].queues);
}

static void carry_out_gpu(struct daemon *daemon, unsigned index)
{
	struct gpu *gpu = &daemon->arbiter->gpus[index];
	uint64_t bit = UINT64_C(1) << index;

	gpu->changed = false;
	if (gpu->oversubscribed && !(daemon->warned & bit)) {
		log_warning("%s is oversubscribed: %u queues of %u processes on %u queue slots and "
			    "%u process slots; nothing more is granted on it", gpu->info.name,
			    gpu->seen.queues, gpu->seen.processes, gpu->info.queue_slots,
			    gpu->info.process_slots);
		warn_of_strangers(gpu);
	} else if (daemon->arbiter->settings->unmanaged == UNMANAGED_WARN) {
		warn_of_strangers(gpu);
	}
	daemon->warned = gpu->oversubscribed ? daemon->warned | bit : daemon->warned & ~bit;
	if (daemon->bus)
		bus_tell_gpu(daemon->bus, index);
}

void daemon_carry_out(struct daemon *daemon)
{
	struct lease *lease;
	unsigned touched;

	while ((lease = arbiter_take_touched(daemon->arbiter, &touched)))
		carry_out_lease(daemon, lease, touched);
	for (unsigned i = 0; i < daemon->arbiter->n_gpus; i++)
		if (daemon->arbiter->gpus[i].changed)
			carry_out_gpu(daemon, i);
	if (daemon->must_look)
		daemon_look(daemon, 0);
	else
		daemon_plan_look(daemon);
}

static void on_holder_gone(void *userdata, uint64_t lease)
{
	struct daemon *daemon = userdata;

	arbiter_holder_gone(daemon->arbiter, lease);
	daemon_carry_out(daemon);
}

static void on_bound_gone(void *userdata, uint64_t lease, pid_t pid)
{
	struct daemon *daemon = userdata;

	arbiter_bound_gone(daemon->arbiter, lease, pid);
	daemon_carry_out(daemon);
}

static int on_audit(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	daemon_look(userdata, 0);
	return 0;
}

/* ---- hardware ---------------------------------------------------------------------- */

static int simulate(const struct daemon_options *options, const char *profiles, struct hw **ret,
		    struct notes *notes)
{
	_cleanup_(freep) char *list = strdup(profiles);
	struct gpu_info cards[REQUEST_WANTS];
	unsigned partitions[REQUEST_WANTS];
	char *rest = NULL;
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		struct profile profile;
		int r;

		if (n == REQUEST_WANTS) {
			notes_add(notes, true, "%u simulated cards are the most", REQUEST_WANTS);
			return -E2BIG;
		}
		r = profile_load(options->profiles, name, &profile, notes);
		if (r < 0)
			return r;
		cards[n] = profile.info;
		partitions[n++] = profile.partitions;
	}
	if (n == 0) {
		notes_add(notes, true, "no profile to simulate is named: \"%s\"", profiles);
		return -EINVAL;
	}
	return hw_simulated_new(cards, partitions, n, ret);
}

int daemon_find_gpus(const struct daemon_options *options, const struct settings *settings,
		     const struct hw_ops **ret_ops, struct hw **ret_hw, struct gpu_info *gpus,
		     size_t max, struct notes *notes)
{
	bool simulated = options->simulate ||
			 (!options->sysfs && settings->backend == BACKEND_SIMULATED);
	const struct hw_ops *ops = simulated ? &hw_simulated : &hw_kfd;
	struct hw *hw = NULL;
	int r;

	if (simulated)
		r = simulate(options, options->simulate ? options->simulate : settings->simulate,
			     &hw, notes);
	else
		r = ops->open(options->sysfs ? options->sysfs : "/sys", &hw, notes);
	if (r < 0)
		return r;
	r = ops->list(hw, gpus, max, notes);
	if (r >= 0 && (size_t)r > max) {
		notes_add(notes, false, "%d GPUs are here; the first %zu are used", r, max);
		r = (int)max;
	}
	if (r < 0) {
		ops->close(hw);
		return r;
	}
	*ret_ops = ops;
	*ret_hw = hw;
	return r;
}

/* ---- coming and going ---------------------------------------------------------------- */

/* Each holder is an fd: more than the limit allows cannot be kept. */
static unsigned limit_holders(const struct settings *settings)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return settings->max_holders;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return settings->max_holders;
	if (limit.rlim_cur >= (rlim_t)settings->max_holders + FDS_OF_OUR_OWN)
		return settings->max_holders;

	log_warning("max-holders %u needs LimitNOFILE=%u, which is %llu", settings->max_holders,
		    settings->max_holders + FDS_OF_OUR_OWN, (unsigned long long)limit.rlim_cur);
	return limit.rlim_cur > FDS_OF_OUR_OWN ? (unsigned)limit.rlim_cur - FDS_OF_OUR_OWN : 0;
}

static int make_arbiter(struct daemon *daemon, struct notes *notes)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	_cleanup_(freep) struct gpu_info *gpus = calloc(REQUEST_WANTS, sizeof(*gpus));
	int n, r;

	if (!gpus)
		return -ENOMEM;
	r = config_load(&daemon->options->files, &settings, notes);
	if (r < 0)
		return r;
	n = daemon_find_gpus(daemon->options, settings, &daemon->ops, &daemon->hw, gpus,
			     REQUEST_WANTS, notes);
	if (n < 0)
		return n;
	r = state_open(daemon->options->runtime_directory, &daemon->state, notes);
	if (r < 0)
		return r;
	r = arbiter_new(settings, gpus, (size_t)n, state_first_id(daemon->state),
			&daemon->arbiter);
	if (r < 0)
		return r;
	TAKE_PTR(settings);
	return n;
}

/* Nobody kept the holders of a daemon before, so its leases have ended. Who has the name
 * is the only daemon: before that they may be those of one that runs. */
static void clear_state(struct daemon *daemon)
{
	_cleanup_(notes_done) struct notes notes = {0};

	state_clear(daemon->state, &notes);
	log_notes(&notes);
}

static int start(struct daemon *daemon)
{
	static const struct holders_callbacks callbacks = { on_holder_gone, on_bound_gone };
	int r;

	daemon->max_holders = limit_holders(daemon->arbiter->settings);
	r = holders_new(daemon->event, &callbacks, daemon, &daemon->holders);
	if (r < 0)
		return r;
	r = sd_event_add_time(daemon->event, &daemon->audit, CLOCK_BOOTTIME, UINT64_MAX,
			      LOOK_ACCURACY_USEC, on_audit, daemon);
	if (r < 0)
		return r;
	sd_event_source_set_enabled(daemon->audit, SD_EVENT_OFF);
	daemon_look(daemon, 0);

	r = bus_new(daemon->event, daemon->options->bus_address, daemon->arbiter, &daemon_host,
		    daemon, &daemon->bus);
	if (r < 0) {
		log_error("cannot connect to %s: %s", daemon->options->bus_address ?
			  daemon->options->bus_address : "the system bus", strerror(-r));
		return r;
	}
	r = bus_own_name(daemon->bus);
	if (r < 0) {
		log_error("cannot take the name on the bus: %s",
			  r == -EEXIST ? "another gpuarbd has it" : strerror(-r));
		return r;
	}
	clear_state(daemon);
	return 0;
}

int daemon_new(const struct daemon_options *options, sd_event *event, struct daemon **ret)
{
	_cleanup_(daemon_freep) struct daemon *daemon = calloc(1, sizeof(*daemon));
	_cleanup_(notes_done) struct notes notes = {0};
	int n, r;

	if (!daemon)
		return -ENOMEM;
	daemon->options = options;
	daemon->event = sd_event_ref(event);

	n = make_arbiter(daemon, &notes);
	log_notes(&notes);
	if (n < 0)
		return n;
	log_info("%s: %d GPU%s", daemon->ops->name, n, n == 1 ? "" : "s");
	r = start(daemon);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(daemon);
	return 0;
}

static void end_leases(struct daemon *daemon)
{
	struct arbiter *arbiter = daemon->arbiter;

	for (size_t i = 0; arbiter && daemon->holders && i < arbiter->n_leases; i++) {
		arbiter_end(arbiter, arbiter->leases[i]->id, "gpuarbd stopped");
		tell_holders(daemon, arbiter->leases[i]);
		state_forget(daemon->state, arbiter->leases[i]->id);
	}
}

struct daemon *daemon_free(struct daemon *daemon)
{
	if (!daemon)
		return NULL;

	end_leases(daemon);
	bus_free(daemon->bus);
	holders_free(daemon->holders);
	sd_event_source_disable_unref(daemon->audit);
	arbiter_free(daemon->arbiter);
	state_close(daemon->state);
	if (daemon->ops)
		daemon->ops->close(daemon->hw);
	sd_event_unref(daemon->event);
	free(daemon->uses);
	free(daemon);
	return NULL;
}

int daemon_reload(struct daemon *daemon, struct notes *notes)
{
	struct settings *settings = NULL;
	int r;

	r = config_load(&daemon->options->files, &settings, notes);
	if (r < 0)
		return r;
	arbiter_set_settings(daemon->arbiter, settings);
	daemon->max_holders = limit_holders(settings);
	log_notice("configuration reloaded: %zu tenants", settings->n_tenants);
	bus_tell_tenants(daemon->bus);
	daemon_carry_out(daemon);
	return 0;
}
