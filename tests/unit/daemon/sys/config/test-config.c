/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/config.h"

#include <errno.h>

#include "check.h"
#include "config-rig.h"

static const char full[] = "[daemon]\n"
			   "backend = simulated\n"
			   "simulate = radeon-vii , mi300x-cpx\n"
			   "audit-interval = 500ms\n"
			   "drift-grace = 250ms\n"
			   "unmasked = ignore\n"
			   "unmanaged = refuse\n"
			   "unmanaged-grace = 250ms\n"
			   "unmanaged-exempt = 4711, root\n"
			   "graphics = refuse-realtime\n"
			   "oversubscribe = besteffort\n"
			   "margin = 41%\n"
			   "gpus = spread\n"
			   "share-by = lease\n"
			   "on-reload = revoke\n"
			   "activate-grace = 1500ms\n"
			   "activate-min-interval = 1min\n"
			   "grow-delay = 1h\n"
			   "enforce-delay = 1ms\n"
			   "max-leases = 5\n"
			   "max-leases-per-user = 4\n"
			   "max-holders = 6\n"
			   "max-calls-per-user = 100\n"
			   "max-time-per-user = 7%\n"
			   "max-pending-per-user = 16\n"
			   "max-unread-per-user = 64K\n"
			   "[gpu 0000:03:00.0]\n"
			   "reserve-queues = 2\n"
			   "[gpu 0000:c1:00.0/7]\n"
			   "reserve-queues = 0\n"
			   "any = no\n"
			   "[share web]\n"
			   "cus = 25%\n"
			   "queues = 16\n"
			   "processes = 8\n"
			   "vram = 1K\n"
			   "gpu = 0000:03:00.0\n"
			   "class = guaranteed\n"
			   "tenant = small\n"
			   "[tenant *]\n"
			   "max-waiting = 2\n"
			   "max-gpus = 1\n"
			   "[tenant compositor]\n"
			   "match-user = root, 4294967294\n"
			   "match-group = root\n"
			   "match-unit = vr-*.service\n"
			   "match-slice = *.slice\n"
			   "match-executable = /usr/bin/vr*\n"
			   "open = yes\n"
			   "class = realtime\n"
			   "max-leases = 2\n"
			   "max-gpus = 3\n"
			   "max-cus = 25%\n"
			   "max-queues = 4\n"
			   "max-processes = 2\n"
			   "max-vram = 2G\n"
			   "max-fixed-cus = 20%\n"
			   "max-shader-engines = 3\n"
			   "max-duration = 7d\n"
			   "default-vram = 2G\n"
			   "default-duration = 90min\n"
			   "only-gpus = 0000:03:00.0 , 0000:c1:00.0/7\n"
			   "reserved-cus = 20%\n"
			   "reserved-shader-engines = 2\n"
			   "reserved-queues = 4\n"
			   "reserved-processes = 3\n"
			   "reserved-gpu = 0000:03:00.0\n"
			   "weight = 300\n"
			   "priority = high\n"
			   "alone = yes\n"
			   "exclusive = active\n"
			   "max-pause = 1min\n"
			   "max-wait = 20min\n"
			   "enforce = kill\n"
			   "cap = yes\n"
			   "on-drift = kill\n"
			   "preempt = revoke\n"
			   "[tenant small]\n"
			   "match-group = 7\n"
			   "max-cus = 16\n"
			   "max-vram = 50%\n"
			   "priority = 15\n"
			   "enforce = freeze\n";

TEST(every_key_is_stored_in_its_field)
{
	_cleanup_(tree_done) struct tree tree = tree_new(full);
	const struct settings *s;
	const struct tenant *t;

	CHECK(tree_load(&tree) == 0 && tree.diagnostics.n == 0);
	s = tree.settings;
	CHECK(s->backend == BACKEND_SIMULATED);
	CHECK(strcmp(s->simulate, "radeon-vii,mi300x-cpx") == 0);
	CHECK(s->audit_interval_usec == 500000 && s->unmanaged == UNMANAGED_REFUSE);
	CHECK(s->unmanaged_grace_usec == 250000 && s->exempt.n == 2);
	CHECK(s->graphics == GRAPHICS_REFUSE_REALTIME);
	CHECK(s->oversubscribe_besteffort && s->margin_percent == 41 && s->revoke_on_reload);
	CHECK(s->gpu_order == GPU_ORDER_SPREAD);
	CHECK(s->share_by_lease);
	CHECK(s->activate_grace_usec == 1500000 && s->activate_min_interval_usec == 60000000);
	CHECK(s->grow_delay_usec == 3600000000 && s->enforce_delay_usec == 1000);
	CHECK(s->max_leases == 5 && s->max_leases_per_user == 4 && s->max_holders == 6);
	CHECK(s->max_calls_per_user == 100 && s->max_time_per_user == 7);
	CHECK(s->max_pending_per_user == 16 && s->max_unread_per_user == 65536);
	CHECK(s->n_gpus == 2 && settings_gpu(s, "0000:03:00.0")->reserve_queues == 2);
	CHECK(settings_gpu(s, "0000:c1:00.0/7")->reserve_queues == 0);
	CHECK(settings_gpu_any(s, "0000:03:00.0") && !settings_gpu_any(s, "0000:c1:00.0/7"));

	CHECK(s->n_tenants == 3);
	t = &s->tenants[0];
	CHECK(strcmp(t->name, "compositor") == 0);
	CHECK(t->users.n == 2 && t->users.ids[0] == 0 && t->users.ids[1] == 4294967294);
	CHECK(t->groups.n == 1 && t->groups.ids[0] == 0);
	CHECK(strcmp(t->unit, "vr-*.service") == 0 && strcmp(t->slice, "*.slice") == 0);
	CHECK(strcmp(t->executable, "/usr/bin/vr*") == 0 && t->class == CLASS_REALTIME && t->open);
	CHECK(t->max_leases.kind == LIMIT_COUNT && t->max_leases.value == 2);
	CHECK(t->max_gpus.kind == LIMIT_COUNT && t->max_gpus.value == 3);
	CHECK(t->max_cus.kind == LIMIT_PERCENT && t->max_cus.value == 25);
	CHECK(t->max_queues.kind == LIMIT_COUNT && t->max_queues.value == 4);
	CHECK(t->max_processes.kind == LIMIT_COUNT && t->max_processes.value == 2);
	CHECK(t->max_vram.kind == LIMIT_COUNT && t->max_vram.value == 2ULL << 30);
	CHECK(t->max_fixed_cus.kind == LIMIT_PERCENT && t->max_fixed_cus.value == 20);
	CHECK(t->max_engines.kind == LIMIT_COUNT && t->max_engines.value == 3);
	CHECK(t->max_duration_usec == 7 * UINT64_C(86400000000));
	CHECK(t->default_duration_usec == UINT64_C(5400000000));
	CHECK(t->default_vram == UINT64_C(2) << 30);
	CHECK(strcmp(t->only_gpus, "0000:03:00.0,0000:c1:00.0/7") == 0);
	CHECK(t->weight == 300 && s->tenants[1].weight == TENANT_WEIGHT);
	CHECK(t->reserved_cus.kind == LIMIT_PERCENT && t->reserved_cus.value == 20);
	CHECK(t->reserved_engines == 2 && t->reserved_queues == 4 && t->reserved_processes == 3);
	CHECK(strcmp(t->reserved_gpu, "0000:03:00.0") == 0);
	CHECK(t->priority == PRIORITY_HIGH && t->alone && t->enforce == ENFORCE_STEP_KILL);
	CHECK(t->cap && t->preempt && t->on_drift == ON_DRIFT_KILL);
	CHECK(t->exclusive == EXCLUSIVE_ACTIVE && t->max_pause_usec == 60000000);
	CHECK(t->max_wait_usec == UINT64_C(1200000000) && s->tenants[1].max_wait_usec == 0);

	CHECK(s->drift_grace_usec == 250000 && s->unmasked == UNMASKED_IGNORE);

	t = &s->tenants[1];
	CHECK(strcmp(t->name, "small") == 0 && t->groups.ids[0] == 7 &&
	      t->class == CLASS_BESTEFFORT);
	CHECK(t->max_cus.kind == LIMIT_COUNT && t->max_cus.value == 16);
	CHECK(t->max_vram.kind == LIMIT_PERCENT && t->max_vram.value == 50);
	CHECK(t->priority == 15 && !t->alone && t->max_leases.kind == LIMIT_NONE);
	CHECK(t->enforce == ENFORCE_STEP_FREEZE);
}

TEST(floor_that_the_users_of_a_tenant_cannot_hold_is_refused)
{
	static const struct {
		const char *keys, *problem; /* NULL: valid */
	} cases[] = {
		{ "match-user = 1\nreserved-cus = 30\nmax-cus = 20\n",
		  "[tenant t]: reserved-cus = 30, but with max-cus = 20 its 1 user can hold 20 at most" },
		{ "match-user = 1\nreserved-cus = 30%\nmax-cus = 20%\n", "can hold 20% at most" },
		{ "match-user = 1, 2\nreserved-cus = 41\nmax-cus = 20\n",
		  "its 2 users can hold 40" },
		{ "match-user = 1, 2\nreserved-cus = 40\nmax-cus = 20\n", NULL },
		{ "match-user = 1\nreserved-cus = 30\nmax-cus = 20%\n",
		  NULL }, /* depends on the GPU */
		{ "match-group = 1\nreserved-cus = 30\nmax-cus = 20\n", NULL },
		{ "match-user = 1\nreserved-queues = 5\nmax-queues = 4\n", "max-queues = 4" },
		{ "match-user = 1\nreserved-processes = 3\nmax-processes = 2\n",
		  "max-processes = 2" },
		{ "match-user = 1\nreserved-processes = 3\n", NULL },
		{ "match-user = 1\nreserved-shader-engines = 3\nmax-shader-engines = 2\n",
		  "with max-shader-engines = 2 its 1 user can hold 2 at most" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[256];
		_cleanup_(tree_done) struct tree tree;

		snprintf(text, sizeof(text), "[tenant t]\n%s", cases[i].keys);
		tree = tree_new(text);
		CHECK((tree_load(&tree) == -EINVAL) == (cases[i].problem != NULL));
		CHECK(!cases[i].problem || config_says(&tree.diagnostics, cases[i].problem));
	}
}

TEST(shares_of_floors_above_a_gpu_are_refused)
{
	_cleanup_(tree_done) struct tree tree = tree_new(
		"[tenant a]\nmatch-user = 1\nreserved-cus = 60%\n"
		"[tenant b]\nmatch-user = 2\nreserved-cus = 41%\n"
		"reserved-gpu = 0000:03:00.0\n");

	CHECK(tree_load(&tree) == -EINVAL && tree.diagnostics.n == 1);
	CHECK(config_says(&tree.diagnostics, ":4: [tenant b]: reserved-cus"));
	CHECK(config_says(&tree.diagnostics, " 101%"));
}

TEST(shares_of_floors_add_up_only_where_their_tenants_may_have_leases)
{
	_cleanup_(tree_done) struct tree apart = tree_new(
		"[tenant a]\nmatch-user = 1\nreserved-cus = 60%\n"
		"only-gpus = 0000:03:00.0, 0000:04:00.0\n"
		"[tenant b]\nmatch-user = 2\nreserved-cus = 41%\nonly-gpus = 0000:05:00.0\n");
	_cleanup_(tree_done) struct tree together = tree_new(
		"[tenant a]\nmatch-user = 1\nreserved-cus = 60%\n"
		"only-gpus = 0000:03:00.0, 0000:04:00.0\n"
		"[tenant b]\nmatch-user = 2\nreserved-cus = 41%\nonly-gpus = 0000:04:00.0\n");

	CHECK(tree_load(&apart) == 0 && apart.diagnostics.n == 0);
	CHECK(tree_load(&together) == -EINVAL && together.diagnostics.n == 2);
	CHECK(config_says(&together.diagnostics, ":5: [tenant b]: reserved-cus"));
	CHECK(config_says(&together.diagnostics, " 101%"));
}

TEST(floor_that_is_kept_nowhere_and_memory_above_the_limit_are_warned_of)
{
	static const struct {
		const char *keys, *warning;
	} cases[] = {
		{ "reserved-queues = 1\nclass = none\n",
		  "its floor is not kept: it allows no lease" },
		{ "reserved-queues = 1\nreserved-gpu = 0000:04:00.0\nonly-gpus = 0000:03:00.0\n",
		  "its floor is not kept: reserved-gpu = 0000:04:00.0 is not in only-gpus = "
		  "0000:03:00.0" },
		{ "default-vram = 4G\nmax-vram = 2G\n",
		  "default-vram, 4294967296 bytes, is above max-vram, 2147483648 bytes" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[256];
		_cleanup_(tree_done) struct tree tree;

		snprintf(text, sizeof(text), "[tenant t]\nmatch-user = 1\n%s", cases[i].keys);
		tree = tree_new(text);
		CHECK(tree_load(&tree) == 0 && tree.diagnostics.n == 1);
		CHECK(strstr(tree.diagnostics.list[0].text, cases[i].warning));
	}
}

TEST(exclusive_leases_of_a_tenant_without_realtime_are_refused)
{
	_cleanup_(tree_done) struct tree tree =
		tree_new("[tenant a]\nmatch-user = 1\nexclusive = ask\n");

	CHECK(tree_load(&tree) == -EINVAL && tree.diagnostics.n == 1);
	CHECK(config_says(&tree.diagnostics, ":1: [tenant a]: exclusive = ask"));
}

TEST(default_tenant_is_last_wherever_its_section_is)
{
	_cleanup_(tree_done) struct tree tree = tree_new(full);
	const struct tenant *last;

	CHECK(tree_load(&tree) == 0);
	last = &tree.settings->tenants[2];
	CHECK(strcmp(last->name, "*") == 0 && last->max_gpus.value == 1);
	CHECK(last->enforce == ENFORCE_STEP_REPORT); /* the default */
}

TEST(empty_configuration_is_the_defaults)
{
	_cleanup_(tree_done) struct tree tree = tree_new("");

	CHECK(tree_load(&tree) == 0 && tree.settings->n_tenants == 1);
	CHECK(strcmp(tree.settings->tenants[0].name, "*") == 0);
	CHECK(tree.settings->drift_grace_usec == 1000000 &&
	      tree.settings->unmasked == UNMASKED_REFUSE);
	CHECK(tree.settings->tenants[0].on_drift == ON_DRIFT_PROTECT);
	CHECK(tree.settings->max_leases == 4096 && !tree.settings->revoke_on_reload);
}

TEST(defaults_may_be_written_out)
{
	_cleanup_(tree_done) struct tree tree = tree_new(
		"[daemon]\non-reload = keep\ngpus = pack\nshare-by = user\n"
		"[tenant *]\nenforce = report\n");

	CHECK(tree_load(&tree) == 0 && !tree.settings->revoke_on_reload);
	CHECK(tree.settings->gpu_order == GPU_ORDER_PACK);
	CHECK(!tree.settings->share_by_lease);
	CHECK(tree.settings->tenants[0].enforce == ENFORCE_STEP_REPORT);
}

TEST(simulate_without_its_backend_is_a_warning)
{
	_cleanup_(tree_done) struct tree tree = tree_new("[daemon]\nsimulate = v620\n");

	CHECK(tree_load(&tree) == 0 && tree.diagnostics.n == 1);
	CHECK(strstr(tree.diagnostics.list[0].text, "gpuarbd.conf:2: simulate: "));
	CHECK(!tree.diagnostics.list[0].error);
}

TEST(full_configuration_has_every_key)
{
	char needle[64];
	const char *key, *section;
	size_t n = 0;

	for (; (key = config_key(n, &section)); n++) {
		snprintf(needle, sizeof(needle), "\n%s = ", key);
		CHECK(strstr(full, needle));
	}
	CHECK(n == 69);
}

TEST(invalid_value_is_refused_with_file_line_and_key)
{
	static const struct {
		const char *section, *line, *says;
	} wrong[] = {
		{ "daemon", "backend = kdf", "did you mean 'kfd'?" },
		{ "daemon", "backend =", "is not auto, kfd or simulated" },
		{ "daemon", "backend = KFD", "did you mean 'kfd'?" },
		{ "daemon", "simulate = ../passwd", "'../passwd' is not a profile name" },
		{ "daemon", "simulate = .hidden", "'.hidden' is not a profile name" },
		{ "daemon", "simulate =", "'' is not a profile name" },
		{ "daemon", "simulate = a,,b", "'' is not a profile name" },
		{ "daemon", "audit-interval = 2", "is not a time from 100ms to 1h" },
		{ "daemon", "audit-interval = 99ms", "'99ms' is not a time from 100ms to 1h" },
		{ "daemon", "audit-interval = 0s", "'0s' is not a time from 100ms" },
		{ "daemon", "audit-interval = 61min", "'61min' is not a time from" },
		{ "daemon", "audit-interval = 2h", "'2h' is not a time from" },
		{ "daemon", "audit-interval = -1s", "'-1s' is not a time" },
		{ "daemon", "audit-interval = ms", "'ms' is not a time" },
		{ "daemon", "audit-interval = 99999999999999999999s", "is not a time" },
		{ "daemon", "audit-interval = 999999999999999999999999999s", "is not a time" },
		{ "daemon", "unmanaged-grace = 0s", "is not a time from 1ms to 1h" },
		{ "daemon", "unmanaged-exempt = root,,1", "empty item" },
		{ "daemon", "unmanaged = counts", "did you mean 'count'?" },
		{ "daemon", "graphics = refuse", "refuse-realtime" },
		{ "daemon", "oversubscribe = yes", "is not no or besteffort" },
		{ "daemon", "margin = 60", "is not a percentage from 0% to 1000%, such as 60%" },
		{ "daemon", "margin = 1001%", "'1001%' is not a percentage from 0% to 1000%" },
		{ "daemon", "margin = -1%", "is not a percentage" },
		{ "daemon", "margin = %", "is not a percentage" },
		{ "daemon", "on-reload = kep", "is not keep or revoke; did you mean 'keep'?" },
		{ "daemon", "gpus = packed",
		  "is not balance, pack or spread; did you mean 'pack'?" },
		{ "daemon", "share-by = users", "is not user or lease; did you mean 'user'?" },
		{ "daemon", "on-reload = no", "'no' is not keep or revoke" },
		{ "daemon", "activate-grace = 0s",
		  "activate-grace: '0s' is not a time from 1ms to 1h" },
		{ "daemon", "activate-grace = 0", "'0' is not a time" },
		{ "daemon", "activate-grace = 365d", "'365d' is not a time from 1ms to 1h" },
		{ "daemon", "activate-grace = 8760h", "'8760h' is not a time from 1ms to 1h" },
		{ "daemon", "activate-grace = 3600001ms", "'3600001ms' is not a time" },
		{ "daemon", "activate-grace = 1.5s", "'1.5s' is not a time" },
		{ "daemon", "activate-min-interval = 0ms", "activate-min-interval: '0ms' is not" },
		{ "daemon", "activate-min-interval = 2h", "'2h' is not a time from 1ms to 1h" },
		{ "daemon", "grow-delay = 0min", "grow-delay: '0min' is not a time from 1ms" },
		{ "daemon", "grow-delay = never", "'never' is not a time from 1ms to 1h" },
		{ "daemon", "enforce-delay = 0h", "enforce-delay: '0h' is not a time from 1ms" },
		{ "daemon", "enforce-delay = 61min", "'61min' is not a time from 1ms to 1h" },
		{ "daemon", "activate-grase = 1s", "did you mean 'activate-grace'?" },
		{ "daemon", "max-leases = 0", "is not a number from 1 to 65536" },
		{ "daemon", "max-leases = 65537", "is not a number from 1 to 65536" },
		{ "daemon", "max-leases-per-user = -1", "is not a number from 1 to 65536" },
		{ "daemon", "max-holders = many", "is not a number from 1 to 65536" },
		{ "daemon", "max-time-per-user = 0%", "1%" },
		{ "daemon", "max-unread-per-user = 63K", "is not from 64K to 1048576K" },
		{ "daemon", "max-lease = 1",
		  "unknown key 'max-lease' in [daemon]; did you mean "
		  "'max-leases'?" },
		{ "daemon", "colour-of-fan = 1", "in [daemon]; known keys: backend, simulate," },
		{ "gpu 0000:03:00.0", "reserve-queues = -2", "is not a number from 0 to 1024" },
		{ "gpu 0000:03:00.0", "reserve_queues = 2", "did you mean 'reserve-queues'?" },
		{ "tenant t", "match-user = 4294967295", "user '4294967295' does not exist" },
		{ "tenant t", "match-user = 99999999999999999999",
		  "user '99999999999999999999' does not" },
		{ "tenant t", "match-user = -1", "user '-1' does not exist" },
		{ "tenant t", "match-user =", "empty item: write user names" },
		{ "tenant t", "match-user = root,", "empty item: write user names" },
		{ "tenant t", "match-group = root, ,root", "empty item: write group names" },
		{ "tenant t", "match-unit =", "empty pattern" },
		{ "tenant t", "match-executable = vr", "start the pattern with / or *" },
		{ "tenant t", "class = real-time", "did you mean 'realtime'?" },
		{ "tenant t", "max-leases = -1", "is not a number from 0 to 65536" },
		{ "tenant t", "max-gpus = 1.5", "is not a number from 0 to 65536" },
		{ "tenant t", "max-waiting = 1s", "is not a number from 0 to 65536" },
		{ "tenant t", "max-cus = 0", "is not a number from 1 to 1024" },
		{ "tenant t", "max-cus = 0%", "'0%' is not a percentage from 1% to 100%" },
		{ "tenant t", "max-cus = 101%", "'101%' is not a percentage from 1% to 100%" },
		{ "tenant t", "max-cus = %", "'%' is not a percentage from 1% to 100%" },
		{ "tenant t", "max-vram = 99999999999999999999%",
		  "is not a percentage from 1% to" },
		{ "tenant t", "max-cus = half",
		  "is not a number such as 16 or a percentage such as 25%" },
		{ "tenant t", "max-cus =", "is not a number from 1 to 1024" },
		{ "tenant t", "max-queues = 0", "is not a number from 1 to 65536" },
		{ "tenant t", "max-queues = 50%", "is not a number from 1 to 65536" },
		{ "tenant t", "max-processes = 0", "is not a number from 1 to 65536" },
		{ "tenant t", "max-vram = 0", "0 would end with the first byte" },
		{ "tenant t", "max-vram = 2GB", "is not a size in bytes" },
		{ "tenant t", "max-vram = 99999999T", "is not a size in bytes" },
		{ "tenant t", "max-fixed-cus = 1025", "is not a number from 0 to 1024" },
		{ "tenant t", "max-shader-engines = 0", "is not a number from 1 to 8" },
		{ "tenant t", "max-duration = 0", "'0' is not a time from 1s to 365d" },
		{ "tenant t", "max-duration = 0s", "is not a time from 1s to 365d" },
		{ "tenant t", "max-duration = -1h", "is not a time from 1s to 365d" },
		{ "tenant t", "default-duration = 1000000000d", "is not a time from 1s to 365d" },
		{ "tenant t", "default-duration = 366d", "is not a time from 1s to 365d" },
		{ "tenant t", "max-duration = 500ms", "is not a time from 1s to 365d" },
		{ "tenant t", "only-gpus = 0", "'0' is not a GPU name" },
		{ "tenant t", "only-gpus = 0000:03:00.0,", "'' is not a GPU name" },
		{ "tenant t", "weight = 0", "is not a number from 1 to 10000" },
		{ "tenant t", "weight = -1", "is not a number from 1 to 10000" },
		{ "tenant t", "weight = 10001", "is not a number from 1 to 10000" },
		{ "tenant t", "weight = 1e3", "is not a number from 1 to 10000" },
		{ "tenant t", "reserved-cus = 0", "is not a number from 1 to 1024" },
		{ "tenant t", "reserved-cus = 101%", "is not a percentage from 1% to 100%" },
		{ "tenant t", "reserved-shader-engines = 9", "is not a number from 1 to 8" },
		{ "tenant t", "reserved-queues = -1", "is not a number from 1 to 65536" },
		{ "tenant t", "reserved-processes = 0", "is not a number from 1 to 65536" },
		{ "tenant t", "reserved-gpu = card0", "'card0' is not a GPU name" },
		{ "tenant t", "reserved-gpu = 0000:03:00.0", "reserved-gpu reserves nothing" },
		{ "tenant t", "priority = 16",
		  "is not low, normal, high or a number from 0 to 15" },
		{ "tenant t", "priority = hihg", "from 0 to 15; did you mean 'high'?" },
		{ "tenant t", "alone = perhaps", "is not yes or no" },
		{ "tenant t", "alone = yes", "alone = yes needs class = realtime" },
		{ "tenant t", "enforce = kil",
		  "is not report, freeze or kill; did you mean 'kill'?" },
		{ "tenant t", "enforce = none", "'none' is not report, freeze or kill" },
		{ "tenant t", "enforce = no", "'no' is not report, freeze or kill" },
		{ "tenant t", "preempt = yes", "'yes' is not no or revoke" },
		{ "tenant t", "enforce =", "'' is not report, freeze or kill" },
		{ "daemon", "enforce = kill", "unknown key 'enforce' in [daemon]" },
		{ "tenant t", "activate-grace = 1s", "unknown key 'activate-grace' in [tenant]" },
		{ "tenant t", "margin = 1%", "unknown key 'margin' in [tenant]" },
	};
	char text[512], where[32];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		bool all = wrong[i].section[0] == 't' && !strstr(wrong[i].line, "match-user");
		_cleanup_(tree_done) struct tree tree;

		snprintf(text, sizeof(text), "[%s]\n%s\n%s", wrong[i].section, wrong[i].line,
			 all ? "match-user = root\n" : "");
		tree = tree_new(text);
		snprintf(where, sizeof(where), "/gpuarbd.conf:%d: ",
			 strstr(wrong[i].says, "needs class") ||
					 strstr(wrong[i].says, "reserves nothing")
				 ? 1
				 : 2);
		CHECK(tree_load(&tree) == -EINVAL && !tree.settings);
		if (tree.diagnostics.n != 1 || !config_says(&tree.diagnostics, wrong[i].says) ||
		    !config_says(&tree.diagnostics, where)) {
			fprintf(stderr, "%s -> %s\n", wrong[i].line, tree.diagnostics.list[0].text);
			abort();
		}
	}
}

TEST(time_of_any_unit_is_at_most_one_hour)
{
	static const struct {
		const char *value;
		uint64_t usec;
	} table[] = {
		{ "1ms", 1000 },         { "3600000ms", 3600000000 }, { "1s", 1000000 },
		{ "3600s", 3600000000 }, { "60min", 3600000000 },     { "1h", 3600000000 },
		{ "0001s", 1000000 },
	};
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_(tree_done) struct tree tree;

		snprintf(text, sizeof(text), "[daemon]\nactivate-grace = %s\n", table[i].value);
		tree = tree_new(text);
		CHECK(tree_load(&tree) == 0);
		CHECK(tree.settings->activate_grace_usec == table[i].usec);
	}
}

TEST(invalid_section_is_refused)
{
	static const struct {
		const char *section, *says;
	} wrong[] = {
		{ "deamon", "unknown section [deamon]; did you mean [daemon]?" },
		{ "tennant x", "unknown section [tennant x]; did you mean [tenant NAME]?" },
		{ "", "'[]' is not a section header" },
		{ "x", "unknown section [x]; known sections: [daemon], [gpu NAME], [share NAME], "
		       "[tenant NAME]" },
		{ "Daemon", "did you mean [daemon]?" },
		{ "daemon x", "[daemon x] takes no name: write [daemon]" },
		{ "gpu", "[gpu] needs a name: write [gpu NAME]" },
		{ "gpu ", "needs a name" },
		{ "share", "[share] needs a name" },
		{ "share -web", "invalid name of a share" },
		{ "share web-", "invalid name of a share" },
		{ "share we b", "invalid name of a share" },
		{ "share ../web", "invalid name of a share" },
		{ "tenant", "[tenant] needs a name" },
		{ "gpu 0", "invalid GPU name" },
		{ "gpu 0000:03:00", "invalid GPU name" },
		{ "gpu 0000:03:00.8", "invalid GPU name" },
		{ "gpu 0000:03:20.0", "invalid GPU name" },
		{ "gpu 0000:C1:00.0", "in lower case" },
		{ "gpu 0000:03:00.0/", "invalid GPU name" },
		{ "gpu 0000:03:00.0/x", "invalid GPU name" },
		{ "gpu 0000:03:00.0 ", "invalid GPU name" },
		{ "gpu  0000:03:00.0", "invalid GPU name" },
		{ "gpu 0x00:03:00.0", "invalid GPU name" },
		{ "gpu 0000:03:00.0/01", "invalid GPU name" },
		{ "tenant a b", "invalid tenant name" },
		{ "tenant **", "invalid tenant name: use letters" },
		{ "tenant nobody",
		  "[tenant nobody]: it matches no user: it needs a valid match-user or match-group" },
	};
	char text[128];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_cleanup_(tree_done) struct tree tree;

		snprintf(text, sizeof(text), "\n[%s]\nanything = 1\n", wrong[i].section);
		if (strcmp(wrong[i].section, "tenant nobody") == 0)
			snprintf(text, sizeof(text), "\n[tenant nobody]\nmatch-unit = *\n");
		tree = tree_new(text);
		CHECK(tree_load(&tree) == -EINVAL);
		CHECK(tree.diagnostics.n == 1 &&
		      config_says(&tree.diagnostics, "/gpuarbd.conf:2: "));
		CHECK(config_says(&tree.diagnostics, wrong[i].says));
	}
}

TEST(name_that_cannot_be_resolved_is_a_warning_and_matches_nobody)
{
	_cleanup_(tree_done) struct tree tree = tree_new(
		"[tenant a]\nmatch-user = root, no-such-user\nmatch-group = no-such-group\n"
		"[tenant b]\nmatch-group = no-such-group\n");
	const struct tenant *a, *b;

	CHECK(tree_load(&tree) == 0 && tree.diagnostics.n == 3);
	CHECK(!tree.diagnostics.list[0].error && !tree.diagnostics.list[2].error);
	CHECK(strstr(tree.diagnostics.list[0].text, ":2: match-user: user 'no-such-user'"));
	CHECK(strstr(tree.diagnostics.list[2].text, ":5: match-group: group 'no-such-group'"));
	a = tenant_named(tree.settings, "a");
	b = tenant_named(tree.settings, "b");
	CHECK(a->users.n == 1 && a->groups.n == 0);
	CHECK(strcmp(a->users.unresolved, "no-such-user") == 0);
	CHECK(strcmp(a->groups.unresolved, "no-such-group") == 0);
	CHECK(b->users.n + b->groups.n == 0 && strcmp(b->groups.unresolved, "no-such-group") == 0);
	CHECK(!tenant_may_match(b, 0));
}

TEST(exempt_user_that_cannot_be_resolved_is_a_warning_and_kept)
{
	_cleanup_(tree_done) struct tree tree =
		tree_new("[daemon]\nunmanaged = refuse\nunmanaged-exempt = 4711, no-such-user\n");

	CHECK(tree_load(&tree) == 0 && tree.diagnostics.n == 1 && !tree.diagnostics.list[0].error);
	CHECK(strstr(tree.diagnostics.list[0].text, ":3: unmanaged-exempt: user 'no-such-user'"));
	CHECK(strcmp(tree.settings->exempt.unresolved, "no-such-user") == 0);
	CHECK(settings_is_exempt(tree.settings, 4711) && settings_is_exempt(tree.settings, 0));
	CHECK(!settings_is_exempt(tree.settings, 4712));
}

TEST(pci_domain_of_five_digits_is_a_gpu_name)
{
	_cleanup_(tree_done) struct tree tree =
		tree_new("[gpu 10000:e1:1f.7]\nreserve-queues = 1\n");

	CHECK(tree_load(&tree) == 0 && settings_gpu(tree.settings, "10000:e1:1f.7"));
}

TEST(share_is_read)
{
	_cleanup_(tree_done) struct tree tree = tree_new(
		"[share web]\ncus = 25%\nqueues = 16\nprocesses = 8\nvram = 1K\n"
		"gpu = 0000:03:00.0\nclass = guaranteed\ntenant = *\n[share b-1]\ncus = 3\n");
	const struct share_settings *web, *other;

	CHECK(tree_load(&tree) == 0 && tree.settings->n_shares == 2);
	web = settings_share(tree.settings, "web");
	CHECK(web->cus.kind == LIMIT_PERCENT && web->cus.value == 25 && web->queues == 16);
	CHECK(web->processes == 8 && web->vram == 1024 && web->class == CLASS_GUARANTEED);
	CHECK(strcmp(web->gpu, "0000:03:00.0") == 0 && strcmp(web->tenant, "*") == 0);
	other = settings_share(tree.settings, "b-1");
	CHECK(other->cus.kind == LIMIT_COUNT && other->cus.value == 3 && !other->gpu);
	CHECK(other->queues == 0 && !other->tenant && other->class == SHARE_CLASS_OF_TENANT);
	CHECK(!settings_share(tree.settings, "we"));
}

TEST(invalid_value_of_a_share_is_refused)
{
	static const char *const wrong[][2] = {
		{ "cus = 0%", "'0%' is not a percentage from 1% to 100%" },
		{ "cus = 1025", "is not a number from 1 to 1024" },
		{ "queues = 0", "is not a number from 1 to 65536" },
		{ "processes = -1", "is not a number from 1 to 65536" },
		{ "vram = much", "is not a size in bytes" },
		{ "gpu = 0", "'0' is not a GPU name" },
		{ "class = none", "'none' is not besteffort, guaranteed" },
		{ "cus = 1\ntenant = nobody", "tenant = nobody: there is no such tenant: add" },
		{ "cus = 1\nqueues = 7\nprocesses = 8", "queues = 7 is less than processes = 8" },
		{ "cu = 2", "did you mean 'cus'?" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		char text[64];
		_cleanup_(tree_done) struct tree tree;

		snprintf(text, sizeof(text), "[share web]\n%s\n", wrong[i][0]);
		tree = tree_new(text);
		CHECK(tree_load(&tree) == -EINVAL && config_says(&tree.diagnostics, wrong[i][1]));
	}
}

TEST(share_without_cus_is_refused)
{
	_cleanup_(tree_done) struct tree tree = tree_new("\n[share web]\nqueues = 4\n");

	CHECK(tree_load(&tree) == -EINVAL && tree.diagnostics.n == 1);
	CHECK(config_says(&tree.diagnostics, "/gpuarbd.conf:2: "));
}

TEST(all_errors_are_reported_at_once)
{
	_cleanup_(tree_done) struct tree tree =
		tree_new("x = 1\n[daemon]\nmargin = no\n[tenant a]\nclass = some\n");

	scratch_write(&tree.scratch, "tenants.d/a.conf",
		      "[tenant b]\n\n[tenant *]\nmatch-user=root\n");
	scratch_mkdir(&tree.scratch, "tenants.d/d.conf");
	CHECK(tree_load(&tree) == -EINVAL && !tree.settings);
	CHECK(tree.diagnostics.n == 7);
	CHECK(config_says(&tree.diagnostics, "/gpuarbd.conf:1"));
	CHECK(config_says(&tree.diagnostics, "/gpuarbd.conf:3: margin"));
	CHECK(config_says(&tree.diagnostics, "/gpuarbd.conf:4: [tenant"));
	CHECK(config_says(&tree.diagnostics, "/gpuarbd.conf:5: class"));
	CHECK(config_says(&tree.diagnostics, "/a.conf:1: [tenant"));
	CHECK(config_says(&tree.diagnostics, "/a.conf:4: match-user"));
	CHECK(config_says(&tree.diagnostics, "/d.conf"));
}
