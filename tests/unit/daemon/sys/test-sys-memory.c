/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Memory that runs out at any one allocation of what the daemon reads and saves: configuration, leases,
 * sysfs and /proc. It fails as a whole, and says so; nothing is read or saved in part.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "fake-procfs.h"
#include "fake-sysfs.h"
#include "hw/drm-fdinfo.h"
#include "hw/hw.h"
#include "lack.h"
#include "ledger-rig.h"
#include "scratch.h"
#include "sys/config/config.h"
#include "sys/config/profile.h"
#include "sys/liveness/holder.h"
#include "sys/state/state-json.h"
#include "sys/state/state.h"

static struct scratch scratch;

/* An error without memory for its diagnostic, too, is an error. */
static int failed(int r, struct diagnostics *diagnostics)
{
	CHECK(r == 0 || r == -ENOMEM || r == -EINVAL || r == -EIO);
	diagnostics_done(diagnostics);
	return r < 0 ? -ENOMEM : 0;
}

/* ---- configuration ------------------------------------------------------------------------------ */

#define CONFIG                                                                  \
	"[daemon]\nsimulate = radeon-vii\nmax-leases = 7\n[gpu 0000:03:00.0]\n" \
	"reserve-queues = 2\n"
#define TENANT                                                                                   \
	"[tenant students]\nmatch-user = 0, 1000\nmatch-group = 4711\nmatch-unit = a*.service\n" \
	"match-slice = user-*.slice\nmatch-executable = /usr/bin/*\nclass = guaranteed\n"        \
	"max-cus = 16\nreserved-gpu = 0000:03:00.0\nreserved-queues = 1\n[tenant *]\nmax-leases = 0\n"

static bool is_whole(const struct settings *settings)
{
	const struct tenant *tenant = &settings->tenants[0];

	return settings->n_tenants == 2 && settings->n_gpus == 1 &&
	       settings->gpus[0].reserve_queues == 2 && settings->max_leases == 7 &&
	       strcmp(settings->simulate, "radeon-vii") == 0 && tenant->users.n == 2 &&
	       tenant->groups.n == 1 && tenant->unit && tenant->slice && tenant->executable &&
	       tenant->reserved_gpu && tenant->file && tenant->max_cus.value == 16 &&
	       settings->tenants[1].max_leases.kind == LIMIT_COUNT;
}

static int load_config(long allocations)
{
	char config[128], tenants[128];
	const struct config_files files = { .config = config,
					    .tenants = tenants,
					    .trust = { { geteuid() } } };
	_cleanup_(settings_freep) struct settings *settings = NULL;
	struct diagnostics diagnostics = { 0 };
	int r;

	snprintf(config, sizeof(config), "%s/gpuarbd.conf", scratch.path);
	snprintf(tenants, sizeof(tenants), "%s/tenants.d", scratch.path);
	lack_left = allocations;
	r = config_load(&files, &settings, &diagnostics);
	lack_left = lack_left < 0 ? -1 : lack_left;
	CHECK(r == 0 ? is_whole(settings) : !settings);
	return failed(r, &diagnostics);
}

TEST(configuration_is_read_whole_or_refused)
{
	scratch = scratch_new();
	scratch_write(&scratch, "gpuarbd.conf", CONFIG);
	scratch_mkdir(&scratch, "tenants.d");
	scratch_write(&scratch, "tenants.d/50-a.conf", TENANT);
	CHECK(lack_each("config_load", load_config) > 20);
	scratch_done(&scratch);
}

static int load_profile(long allocations)
{
	struct diagnostics diagnostics = { 0 };
	struct profile profile;
	char dir[512];
	int r;

	snprintf(dir, sizeof(dir), "%s/conf/gpus", getenv("GPUARB_SOURCE_ROOT"));
	lack_left = allocations;
	r = profile_load(dir, "radeon-vii", &profile, &diagnostics);
	CHECK(r < 0 || geometry_cus(&profile.info.geometry) == 60);
	return failed(r, &diagnostics);
}

TEST_CASE(profile_is_read_whole_or_refused, CHECK(lack_each("profile_load", load_profile) > 0));

/* ---- saved leases ------------------------------------------------------------------------------- */

/* json-c 0.16 forgets keys and values that it has no memory to add to their object. */
#if defined(__SANITIZE_ADDRESS__)
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libjson-c\n";
}
#endif

static struct arbiter *arbiter;
static struct lease *lease;

static int open_state(long allocations)
{
	_cleanup_(state_closep) struct state *state = NULL;
	struct diagnostics diagnostics = { 0 };
	int r;

	lack_left = allocations;
	r = state_open(scratch.path, NULL, &state, &diagnostics);
	CHECK((r == 0) == (state != NULL));
	return failed(r, &diagnostics);
}

static struct state *state_now(void)
{
	struct diagnostics diagnostics = { 0 };
	struct state *state = NULL;

	CHECK(state_open(scratch.path, NULL, &state, &diagnostics) == 0);
	diagnostics_done(&diagnostics);
	return state;
}

static int save_lease(long allocations)
{
	_cleanup_(state_closep) struct state *state = state_now();

	lack_left = allocations;
	return state_save(state, arbiter, lease);
}

/* The file stays: the next daemon can read it. */
static int load_lease(long allocations)
{
	_cleanup_(state_closep) struct state *state = state_now();
	_cleanup_(freep) uint64_t *ids = NULL;
	struct diagnostics diagnostics = { 0 };
	static struct state_lease saved;
	size_t n = 0;
	int r;

	saved.lease = NULL;
	lack_left = allocations;
	r = state_list(state, &ids, &n, &diagnostics);
	CHECK(r < 0 || (n == 1 && ids[0] == lease->id));
	if (r >= 0)
		r = state_load(state, arbiter, lease->id, &saved, &diagnostics);
	CHECK((r == 0) == (saved.lease != NULL));
	lease_free(saved.lease);
	CHECK(r != -EINVAL);
	return failed(r, &diagnostics);
}

static int save_names(long allocations)
{
	_cleanup_(state_closep) struct state *state = state_now();
	struct diagnostics diagnostics = { 0 };
	int r;

	lack_left = allocations;
	r = state_save_drained(state, arbiter, 1);
	if (r >= 0)
		state_load_drained(state, arbiter, &diagnostics);
	if (diagnostics_have_errors(&diagnostics))
		r = -ENOMEM;
	return failed(r, &diagnostics);
}

TEST(lease_is_saved_and_read_whole_or_stays)
{
	const struct gpu_info gpu = radeon_vii("0000:03:00.0");
	struct request request = request_for(15);
	struct result result = { 0 };

	scratch = scratch_new();
	arbiter = arbiter_of(&gpu, 1);
	strcpy(request.token, "again");
	lease = reserve(arbiter, 0, &request, &result);
	CHECK(lease && lease->request);
	CHECK(lack_each("state_open", open_state) > 0);
	CHECK(lack_each("state_save", save_lease) > 2);
	lack_spares_strings = true;
	CHECK(lack_each("state_load", load_lease) > 2);
	lack_spares_strings = false;
	CHECK(lack_each("names", save_names) > 0);
	result_done(&result);
	arbiter_free(arbiter);
	scratch_done(&scratch);
}

/* ---- holders ------------------------------------------------------------------------------------ */

static void gone(void *, uint64_t)
{
}

static void bound_gone(void *, uint64_t, pid_t)
{
}

static int hold(long allocations)
{
	static const struct holders_callbacks callbacks = { gone, bound_gone };
	_cleanup_(holders_freep) struct holders *holders = NULL;
	_cleanup_(sd_event_unrefp) sd_event *event = NULL;
	_cleanup_(store_freep) struct store *store = NULL;
	struct diagnostics diagnostics = { 0 };
	int r, fd = -1;

	CHECK(sd_event_new(&event) >= 0);
	lack_left = allocations;
	r = store_new(event, STORE_PATIENCE_MSEC, &store, &diagnostics);
	if (r >= 0)
		r = holders_new(event, store, &callbacks, NULL, &holders);
	if (r >= 0)
		r = fd = holders_add(holders, 17);
	CHECK(r < 0 || holders_count(holders) == 1);
	if (fd >= 0)
		close(fd);
	return failed(r < 0 ? r : 0, &diagnostics);
}

TEST(holder_that_cannot_be_watched_leaves_no_descriptor)
{
	unsigned fds;

	CHECK(unsetenv("NOTIFY_SOCKET") == 0);
	CHECK(hold(-1) == 0);
	fds = count_fds();
	CHECK(lack_each("holders", hold) > 3);
	CHECK(count_fds() == fds);
}

/* ---- sysfs and /proc ---------------------------------------------------------------------------- */

static int list_gpus(long allocations)
{
	struct diagnostics diagnostics = { 0 };
	struct gpu_info gpus[4];
	struct hw_use uses[4];
	struct hw *hw = NULL;
	int r, n = 0, used = 0;

	lack_left = allocations;
	r = hw_kfd_open(scratch.path, &hw, &diagnostics);
	if (r >= 0)
		r = n = hw_list(hw, gpus, 4, &diagnostics);
	if (r >= 0)
		r = used = hw_uses(hw, uses, 4);
	CHECK(r < 0 || (n == 2 && used == 2 && uses[0].queues + uses[1].queues == 1));
	hw_close(hw);
	return failed(r < 0 ? r : 0, &diagnostics);
}

TEST(gpus_and_queues_are_listed_whole_or_not)
{
	struct gpu_info gpus[] = { radeon_vii("0000:03:00.0"), radeon_vii("0000:04:00.0") };

	scratch = scratch_new();
	CHECK(fake_sysfs_build(scratch.path, gpus, 2) == 0);
	CHECK(fake_sysfs_process(scratch.path, 100) == 0);
	CHECK(fake_sysfs_queue(scratch.path, 100, 1, fake_sysfs_gpu_id(&gpus[0], 0), 0) == 0);
	CHECK(lack_each("hw_kfd", list_gpus) > 2);
	scratch_done(&scratch);
}

static int simulate(long allocations)
{
	const struct gpu_info gpu = radeon_vii("");
	const unsigned one = 1;
	struct hw *hw = NULL;
	int r;

	lack_left = allocations;
	r = hw_simulated_new(&gpu, &one, 1, &hw);
	CHECK((r == 0) == (hw != NULL));
	hw_close(hw);
	return r;
}

TEST_CASE(simulated_gpus_need_memory, CHECK(lack_each("hw_simulated_new", simulate) > 0));

static struct fake_procfs procfs;

static int scan_clients(long allocations)
{
	_cleanup_(drm_reader_freep) struct drm_reader *reader = NULL;
	static struct drm_scan scan;
	int r;

	lack_left = allocations;
	r = drm_reader_new(procfs.dir, &(struct subuids){ 0 }, &reader);
	if (r >= 0)
		r = drm_scan_read(reader, true, UINT64_C(600000000), &scan);
	CHECK(r < 0 || (scan.n == 1 && scan.uses[0].gfx_nsec == 5) || scan.unread > 0);
	return r < 0 ? r : scan.n == 1 ? 0 : -ENOMEM;
}

TEST(clients_that_cannot_be_read_are_counted)
{
	const struct procfs_client client = { .id = 7, .gfx_nsec = 5 };

	scratch = scratch_new();
	procfs_new(scratch.path, &procfs);
	procfs_process(&procfs, 100, 1);
	procfs_client(&procfs, 100, 3, &client);
	CHECK(lack_each("drm_scan_read", scan_clients) > 1);
	scratch_done(&scratch);
}
