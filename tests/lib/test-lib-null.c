/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* NULL and invalid values for every argument of every function. */

#include <errno.h>
#include <math.h>

#include "check.h"
#include "lib-rig.h"
#include "libgpuarb/gpuarb.h"

static int say_nothing(sd_bus_message *, void *)
{
	return 0;
}

static void count(const char *, const char *, void *)
{
}

TEST(every_function_accepts_null)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	const struct gpuarb_lease_info *leases;
	const struct gpuarb_gpu *gpus;
	const char *const *tenants;
	struct gpuarb_lease *lease = NULL;
	struct gpuarb_view *view = NULL;
	char **environment = NULL;
	const char *result = NULL;
	unsigned position = 1;
	size_t n = 1;

	CHECK(gpuarb_open(NULL) == -EINVAL);
	gpuarb_close(NULL);
	gpuarb_set_interactive(NULL, true);
	gpuarb_set_timeout(NULL, 0);
	CHECK(gpuarb_last_error(NULL) && strcmp(gpuarb_last_error_name(NULL), "") == 0);
	CHECK(!gpuarb_last_refusals(NULL, &n) && n == 0 && !gpuarb_last_refusals(NULL, NULL));
	CHECK(!gpuarb_last_plan(NULL, &n) && !gpuarb_last_plan(NULL, NULL));
	CHECK(!gpuarb_last_plan_effects(NULL));
	CHECK(gpuarb_reserve(NULL, &want, 1, NULL, &lease) == -EINVAL);
	CHECK(gpuarb_reserve_start(NULL, &want, 1, NULL, &lease) == -EINVAL);
	CHECK(gpuarb_lease_join(NULL, 1, &lease) == -EINVAL);
	CHECK(gpuarb_lease_position(NULL, &position) == -EINVAL && position == 1);
	CHECK(gpuarb_plan(NULL, &want, 1, NULL, &result) == -EINVAL);
	CHECK(gpuarb_look(NULL, &view) == -EINVAL);
	CHECK(gpuarb_watch(NULL, 0, count, NULL) == -EINVAL);
	CHECK(gpuarb_release(NULL, 1) == -EINVAL && gpuarb_resize(NULL, 1, &want, 1) == -EINVAL);
	CHECK(gpuarb_drain(NULL, "0", true) == -EINVAL && gpuarb_reload(NULL) == -EINVAL);
	CHECK(gpuarb_activate(NULL, 1) == -EINVAL && gpuarb_deactivate(NULL, 1) == -EINVAL);
	CHECK(gpuarb_revoke(NULL, 1, 0, "") == -EINVAL);

	gpuarb_lease_close(NULL);
	CHECK(gpuarb_lease_release(NULL) == -EINVAL && gpuarb_lease_wait(NULL, 0) == -EINVAL);
	CHECK(gpuarb_lease_dispatch(NULL, NULL, NULL) == -EINVAL);
	CHECK(gpuarb_lease_resize(NULL, &want, 1) == -EINVAL);
	CHECK(gpuarb_lease_acknowledge(NULL) == -EINVAL && gpuarb_lease_bind(NULL, 0) == -EINVAL);
	CHECK(gpuarb_lease_cap(NULL, true) == -EINVAL && gpuarb_view_queue_refusals(NULL, 0) == 0);
	CHECK(gpuarb_lease_activate(NULL) == -EINVAL && gpuarb_lease_deactivate(NULL) == -EINVAL);
	CHECK(gpuarb_lease_environment(NULL, &environment) == -EINVAL);
	CHECK(gpuarb_lease_apply(NULL) == -EINVAL);
	CHECK(gpuarb_lease_queue_ids(NULL, 0, NULL, 0) == -EINVAL);
	CHECK(gpuarb_lease_mask_queue(NULL, 0, 0, NULL, 0) == -EINVAL);
	CHECK(gpuarb_lease_pause_queue(NULL, 0, 0, 1) == -EINVAL);
	CHECK(gpuarb_lease_fail(NULL, -EIO, "") == -EINVAL);
	gpuarb_lease_attach(NULL, &n, NULL);
	CHECK(!gpuarb_lease_attached(NULL));
	CHECK(gpuarb_lease_fd(NULL) == -EINVAL && gpuarb_lease_id(NULL) == 0);
	CHECK(gpuarb_lease_generation(NULL) == 0 && gpuarb_lease_deadline(NULL) == 0);
	CHECK(!*gpuarb_lease_state(NULL) && !*gpuarb_lease_reason(NULL));
	CHECK(gpuarb_lease_partitions(NULL) == 0 && !gpuarb_lease_partition(NULL, 0));
	CHECK(!gpuarb_lease_gpu(NULL, 0) && !gpuarb_lease_cu_mask(NULL, 0, &n) && n == 0);
	CHECK(gpuarb_lease_cus(NULL, 0) == 0 && gpuarb_lease_effective_cus(NULL, 0) == 0);
	CHECK(gpuarb_lease_queues(NULL, 0) == 0 && gpuarb_lease_streams(NULL, 0) == 0);
	CHECK(gpuarb_lease_processes(NULL, 0) == 0 && gpuarb_lease_priority(NULL, 0) == 0);

	gpuarb_view_free(NULL);
	CHECK(!gpuarb_view_calibration(NULL, 0) && !gpuarb_view_named_only(NULL, 0) &&
	      !gpuarb_view_vram_pressure(NULL, 0) && !gpuarb_view_system_memory(NULL, 0) &&
	      !*gpuarb_view_memory(NULL, 0));
	CHECK(gpuarb_view_barred_for(NULL, 0) == 0);
	CHECK(!*gpuarb_view_version(NULL) && !*gpuarb_view_queue_budgets(NULL) &&
	      gpuarb_view_tenants(NULL, &tenants) == 0);
	CHECK(strcmp(gpuarb_view_pipes_source(NULL, 0), "") == 0);
	CHECK(!gpuarb_view_evictions(NULL, 0) && gpuarb_view_resets(NULL, 0) == 0);
	CHECK(gpuarb_view_driver_events(NULL, 0, NULL) == 0);
	CHECK(gpuarb_start(NULL, 0) == -EINVAL);
	CHECK(gpuarb_read_slots(NULL, "0", NULL) == -EINVAL && !gpuarb_slots_get(NULL, 0));
	CHECK(gpuarb_slots_usec(NULL) == 0 && gpuarb_slots_queues(NULL, NULL) == 0);
	gpuarb_slots_free(NULL);
	CHECK(gpuarb_read_usage(NULL, 0, NULL) == -EINVAL && !gpuarb_usage_get(NULL, 0));
	CHECK(gpuarb_usage_from(NULL) == 0);
	gpuarb_usage_free(NULL);
	CHECK(gpuarb_read_limits(NULL, NULL) == -EINVAL && !gpuarb_limits_get(NULL, 0));
	CHECK(!gpuarb_limits_values(NULL));
	gpuarb_limits_free(NULL);
	CHECK(gpuarb_read_counters(NULL, NULL) == -EINVAL && !gpuarb_counters_get(NULL, 0));
	CHECK(!gpuarb_counters_duration(NULL, 0) && gpuarb_counters_since(NULL) == 0);
	gpuarb_counters_free(NULL);
	CHECK(!*gpuarb_view_floor_excess(NULL, 0));
	CHECK(isnan(gpuarb_view_fairness(NULL, 0)) && !*gpuarb_view_graphics(NULL, 0) &&
	      !gpuarb_view_client(NULL, 0, 0));
	CHECK(gpuarb_view_gpus(NULL, &gpus) == 0 && gpuarb_view_leases(NULL, &leases) == 0);
}

LIB_TEST(invalid_arguments_are_refused_without_a_call, say_nothing, NULL)
{
	struct gpuarb_slots *slots;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	const char *result = NULL;

	CHECK(gpuarb_reserve(gpuarb, NULL, 1, NULL, &lease) == -EINVAL);
	CHECK(gpuarb_reserve(gpuarb, &want, 1, NULL, NULL) == -EINVAL);
	CHECK(gpuarb_reserve_start(gpuarb, &want, 1, NULL, NULL) == -EINVAL);
	CHECK(gpuarb_lease_join(gpuarb, 1, NULL) == -EINVAL);
	CHECK(gpuarb_plan(gpuarb, NULL, 0, NULL, &result) == -EINVAL);
	CHECK(gpuarb_plan(gpuarb, &want, 1, NULL, NULL) == -EINVAL);
	CHECK(gpuarb_look(gpuarb, NULL) == -EINVAL);
	CHECK(gpuarb_watch(gpuarb, 0, NULL, NULL) == -EINVAL);
	CHECK(gpuarb_drain(gpuarb, NULL, true) == -EINVAL);
	CHECK(gpuarb_drain(gpuarb, "\xff", true) == -EINVAL);
	CHECK(strstr(gpuarb_last_error(gpuarb), "gpu "));
	CHECK(gpuarb_revoke(gpuarb, 1, 0, "\xff") == -EINVAL);
	CHECK(strstr(gpuarb_last_error(gpuarb), "reason "));
	CHECK(gpuarb_resize(gpuarb, 1, NULL, 0) == -EINVAL);
	CHECK(gpuarb_read_slots(gpuarb, "\xff", &slots) == -EINVAL);
}
