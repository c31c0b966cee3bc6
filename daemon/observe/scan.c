/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The scan of the hardware: which GPUs there are, and which processes use them. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "observe/observe.h"
#include "protocol/protocol.h"
#include "sys/config/profile.h"
#include "sys/state/calibration-file.h"

/* Reads several processes, in a millisecond or two. */
#define STEPS_AT_ONCE 256U

#define NEVER_LISTED (UINT64_MAX - 1) /* no generation of the hardware's list */

struct scan {
	uint64_t usec;                       /* when the last scan began … */
	uint64_t all_usec;                   /* … and the last one of all processes */
	uint64_t generation;                 /* of the hardware's list that is in force */
	struct gpu_info last[REQUEST_WANTS]; /* the last list, maybe of half a tree */
	size_t n_last;
	uint64_t last_usec; /* since when the list is the same */
	bool unsettled;     /* the list has to be read again */
	bool fails;         /* the last attempt failed, which was logged */
};

/* ---- the list of GPUs ---------------------------------------------------------------- */

static int simulate(const struct daemon_options *options, const char *profiles, struct hw **ret,
		    struct diagnostics *diagnostics)
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
			diagnostics_add(diagnostics, true, "simulate: too many cards: at most %u",
					REQUEST_WANTS);
			return -EINVAL;
		}
		r = profile_load(options->profiles, name, &profile, diagnostics);
		if (r < 0)
			return r == -ENOMEM ? r : -EINVAL;
		cards[n] = profile.info;
		partitions[n++] = profile.partitions;
	}
	if (n == 0) {
		diagnostics_add(diagnostics, true, "simulate: \"%s\" names no profile", profiles);
		return -EINVAL;
	}
	return hw_simulated_new(cards, partitions, n, ret);
}

static void read_calibrations(const struct daemon_options *options, struct gpu_info *gpus, size_t n,
			      struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < n && options->state_directory; i++)
		calibration_load(options->state_directory, &options->files.trust, &gpus[i],
				 diagnostics);
}

int scan_find_gpus(const struct daemon_options *options, const struct settings *settings,
		   struct hw **ret_hw, struct gpu_info *gpus, size_t max,
		   struct diagnostics *diagnostics)
{
	bool simulated = options->simulate ||
			 (!options->sysfs && settings->backend == BACKEND_SIMULATED);
	_cleanup_(hw_closep) struct hw *hw = NULL;
	int r;

	if (simulated)
		r = simulate(options, options->simulate ? options->simulate : settings->simulate,
			     &hw, diagnostics);
	else
		r = hw_kfd_open(options->sysfs ? options->sysfs : "/sys", &hw, diagnostics);
	if (r < 0)
		return r;
	if (!simulated)
		hw_kfd_set_maps(hw, options->harvest);
	r = hw_list(hw, gpus, max, diagnostics);
	if (r >= 0 && (size_t)r > max) {
		diagnostics_add(diagnostics, false, "%d GPUs found: only the first %zu are used", r,
				max);
		r = (int)max;
	}
	if (r < 0)
		return r;
	read_calibrations(options, gpus, (size_t)r, diagnostics);
	*ret_hw = TAKE_PTR(hw);
	return r;
}

void scan_calibrations(struct daemon *daemon, struct diagnostics *diagnostics)
{
	_cleanup_(freep) struct gpu_info *gpus = calloc(REQUEST_WANTS, sizeof(*gpus));
	_cleanup_(diagnostics_done) struct diagnostics known = { 0 };
	struct arbiter *arbiter = daemon->arbiter;
	int n;

	if (!gpus)
		return;
	n = hw_list(daemon->hw, gpus, REQUEST_WANTS, &known);
	n = n < 0 ? 0 : (int)min_u((unsigned)n, REQUEST_WANTS);
	read_calibrations(daemon->options, gpus, (size_t)n, diagnostics);
	for (unsigned i = 0; i < arbiter->n_gpus; i++)
		for (int k = 0; k < n; k++) {
			struct gpu_info *info = &arbiter->gpus[i].info;

			if (arbiter->gpus[i].absent || strcmp(info->name, gpus[k].name) != 0)
				continue;
			info->law = gpus[k].law;
			info->calibrated = gpus[k].calibrated;
			if (daemon->bus)
				bus_tell_gpu(daemon->bus, i, CHANGE_PROPERTIES);
		}
}

static bool is_settled(struct daemon *daemon, const struct gpu_info *gpus, size_t n)
{
	bool same = n == daemon->scan->n_last && daemon->scan->last_usec > 0;

	for (size_t i = 0; same && i < n; i++)
		same = gpu_info_same(&gpus[i], &daemon->scan->last[i]);
	if (same)
		return daemon->scan->usec - daemon->scan->last_usec >= SCAN_SETTLE_USEC;
	memcpy(daemon->scan->last, gpus, n * sizeof(*gpus));
	daemon->scan->n_last = n;
	daemon->scan->last_usec = daemon->scan->usec;
	return false;
}

/* 1: the list is in force. 0: it has not settled yet. */
static int list_again(struct daemon *daemon, struct diagnostics *diagnostics)
{
	_cleanup_(freep) struct gpu_info *gpus = calloc(REQUEST_WANTS, sizeof(*gpus));
	int n, r;

	if (!gpus)
		return -ENOMEM;
	n = hw_list(daemon->hw, gpus, REQUEST_WANTS, diagnostics);
	if (n < 0)
		return n;
	n = (int)min_u((unsigned)n, REQUEST_WANTS);
	if (!is_settled(daemon, gpus, (size_t)n))
		return 0;
	read_calibrations(daemon->options, gpus, (size_t)n, diagnostics);
	r = arbiter_set_gpus(daemon->arbiter, gpus, (size_t)n);
	if (r == 0 || r == -E2BIG)
		state_load_drained(daemon->state, daemon->arbiter,
				   diagnostics); /* a drained GPU may be back */
	return r < 0 ? r : 1;
}

static void warn_unlisted(int r)
{
	if (r == -E2BIG)
		log_warning(
			"too many GPUs: added ones cannot be used until leases on removed ones have ended");
	else
		log_warning("the GPUs have changed and cannot be listed: %s: the last list stays "
			    "in force",
			    strerror(-r));
}

/* Lists the GPUs again if they may have changed. */
static void check_gpus(struct daemon *daemon)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	uint64_t generation = hw_generation(daemon->hw);
	int r;

	daemon->scan->unsettled = false;
	if (generation == daemon->scan->generation)
		return;
	r = list_again(daemon, &diagnostics);
	daemon->scan->unsettled = r == 0;
	if (r == 0)
		return;
	if (r > 0)
		daemon->scan->generation = generation;
	if (r > 0 || !daemon->scan->fails)
		log_diagnostics(&diagnostics);
	if (r < 0 && !daemon->scan->fails)
		warn_unlisted(r);
	daemon->scan->fails = r < 0;
}

bool scan_is_unsettled(const struct daemon *daemon)
{
	return daemon->scan->unsettled;
}

uint64_t scan_generation(const struct daemon *daemon)
{
	return daemon->scan->generation;
}

/* ---- one scan ------------------------------------------------------------------------ */

bool scan_hardware(struct daemon *daemon, uint64_t max_age_usec)
{
	uint64_t now = daemon_now_usec(), interval = daemon->arbiter->settings->audit_interval_usec;
	bool all = !process_scan_is_slow(daemon) || now - daemon->scan->all_usec >= interval;

	if (now - daemon->scan->usec < max_age_usec)
		return false;
	daemon->scan->usec = now;
	if (all)
		daemon->scan->all_usec = now;
	check_gpus(daemon);
	process_scan_begin(daemon, all);
	return process_scan_turn(daemon, STEPS_AT_ONCE);
}

bool scan_finish(struct daemon *daemon, bool all)
{
	bool changed = false;

	while (process_scan_is_busy(daemon, all))
		changed |= process_scan_turn(daemon, STEPS_AT_ONCE);
	return changed;
}

struct gpu_info *scan_present_gpus(const struct daemon *daemon, size_t *ret_n)
{
	const struct arbiter *arbiter = daemon->arbiter;
	struct gpu_info *gpus = calloc(REQUEST_WANTS, sizeof(*gpus));

	*ret_n = 0;
	for (size_t i = 0; gpus && i < arbiter->n_gpus; i++)
		if (!arbiter->gpus[i].absent)
			gpus[(*ret_n)++] = arbiter->gpus[i].info;
	return gpus;
}

uint64_t scan_begun_usec(const struct daemon *daemon)
{
	return daemon->scan->usec;
}

int scan_start(struct daemon *daemon)
{
	daemon->scan = calloc(1, sizeof(*daemon->scan));
	if (!daemon->scan)
		return -ENOMEM;
	daemon->scan->generation = NEVER_LISTED; /* a GPU added since is found by the first scan */
	return 0;
}
