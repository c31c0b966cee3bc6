/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The library and the shipped daemon, with a simulated Radeon VII. */

#include <errno.h>
#include <signal.h>

#include "await.h"
#include "check.h"
#include "libgpuarb/gpuarb.h"
#include "rig.h"

static struct gpuarb *start(struct rig *rig)
{
	struct gpuarb *gpuarb = NULL;

	rig_new(rig);
	rig_start(rig, "--simulate=radeon-vii,radeon-vii");
	CHECK(gpuarb_open(&gpuarb) == 0);
	return gpuarb;
}

static void stop(struct rig *rig, struct gpuarb *gpuarb)
{
	gpuarb_close(gpuarb);
	rig_stop(rig);
	rig_done(rig);
}

#define START(rig, gpuarb)                   \
	do {                                 \
		if (rig_missing())           \
			SKIP(rig_missing()); \
		gpuarb = start(rig);         \
	} while (0)

static struct gpuarb_lease *take(struct gpuarb *gpuarb, const char *gpu, uint32_t cus)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	int r;

	want.gpu = gpu;
	want.cus = cus;
	r = gpuarb_reserve(gpuarb, &want, 1, NULL, &lease);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", strerror(-r), gpuarb_last_error(gpuarb));
	CHECK(r == 0);
	return lease;
}

static unsigned popcount(const struct gpuarb_lease *lease, size_t i)
{
	const uint32_t *mask;
	unsigned n = 0;
	size_t words;

	mask = gpuarb_lease_cu_mask(lease, i, &words);
	for (size_t k = 0; k < words; k++)
		n += (unsigned)__builtin_popcount(mask[k]);
	return n;
}

static size_t leases(struct gpuarb *gpuarb)
{
	struct gpuarb_view *view = NULL;
	size_t n;

	CHECK(gpuarb_look(gpuarb, &view) == 0);
	n = gpuarb_view_leases(view, NULL);
	gpuarb_view_free(view);
	return n;
}

TEST(a_lease_of_several_gpus_is_granted_with_its_environment)
{
	struct gpuarb_want wants[2] = { GPUARB_WANT_INIT, GPUARB_WANT_INIT };
	struct gpuarb_lease *lease = NULL;
	struct gpuarb *gpuarb;
	char **environment = NULL;
	struct rig rig;

	START(&rig, gpuarb);
	wants[0].cus = wants[1].cus = 30;
	wants[1].queues = 6;
	wants[1].streams = 1;
	CHECK(gpuarb_reserve(gpuarb, wants, 2, NULL, &lease) == 0);
	CHECK(gpuarb_lease_partitions(lease) == 2);
	CHECK(popcount(lease, 0) == gpuarb_lease_cus(lease, 0) && gpuarb_lease_cus(lease, 1) == 30);
	CHECK(strcmp(gpuarb_lease_gpu(lease, 0), gpuarb_lease_gpu(lease, 1)) != 0);
	CHECK(gpuarb_lease_queues(lease, 0) == 2 && gpuarb_lease_queues(lease, 1) == 6);
	CHECK(gpuarb_lease_environment(lease, &environment) == 0);
	CHECK(strcmp(environment[0], "ROCR_VISIBLE_DEVICES=0,1") == 0);
	CHECK(strncmp(environment[1], "HSA_CU_MASK=0:0x", 16) == 0);
	CHECK(strcmp(environment[2], "GPU_MAX_HW_QUEUES=1") == 0);
	free(environment);
	CHECK(gpuarb_lease_release(lease) == 0 && leases(gpuarb) == 0);
	stop(&rig, gpuarb);
}

TEST(every_holder_sees_a_resize)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *one = NULL, *two = NULL;
	const struct gpuarb_partition *part;
	struct gpuarb *gpuarb;
	int fd;
	struct rig rig;

	START(&rig, gpuarb);
	want.cus = 30;
	options.token = "t";
	CHECK(gpuarb_reserve(gpuarb, &want, 1, &options, &one) == 0);
	CHECK(gpuarb_reserve(gpuarb, &want, 1, &options, &two) == 0);
	want.cus = 16;
	CHECK(gpuarb_lease_resize(one, &want, 1) == 0);
	CHECK(popcount(one, 0) == 16 && gpuarb_lease_generation(one) == 2);

	fd = gpuarb_lease_fd(two);
	while (gpuarb_lease_generation(two) < 2) {
		AWAIT_FD(fd, POLLIN);
		CHECK(gpuarb_lease_dispatch(two, NULL, NULL) >= 0);
	}
	CHECK(popcount(two, 0) == 16);
	part = gpuarb_lease_partition(two, 0);
	CHECK(part->cus_asked == 16 && part->effective_cus == 16 && part->n_shader_engines > 0);
	CHECK(*part->tier && part->n_gaps > 0); /* they come with the record, too */
	CHECK(gpuarb_lease_acknowledge(one) == 0);
	CHECK(gpuarb_lease_release(one) == 0);
	while (gpuarb_lease_dispatch(two, NULL, NULL) >= 0)
		AWAIT_FD(fd, POLLIN);
	CHECK(gpuarb_lease_dispatch(two, NULL, NULL) == -ENOENT);
	gpuarb_lease_close(two);
	stop(&rig, gpuarb);
}

TEST(leases_survive_a_killed_daemon)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *first, *second = NULL;
	struct gpuarb *gpuarb = NULL;
	struct rig rig;

	if (rig_missing())
		SKIP(rig_missing());
	rig_new(&rig);
	rig_start_managed(&rig, "--simulate=radeon-vii", "--store-max=64");
	CHECK(gpuarb_open(&gpuarb) == 0);
	first = take(gpuarb, "0", 60);
	want.cus = 30;
	options.wait_usec = GPUARB_FOREVER;
	CHECK(gpuarb_reserve_start(gpuarb, &want, 1, &options, &second) == 0);

	CHECK(kill(rig.daemon, SIGKILL) == 0); /* the service manager restarts it */
	CHECK(leases(gpuarb) == 2 && gpuarb_lease_acknowledge(first) == 0);
	CHECK(gpuarb_lease_dispatch(first, NULL, NULL) == 0);
	CHECK(gpuarb_lease_release(first) == 0);
	CHECK(gpuarb_lease_wait(second, GPUARB_FOREVER) == 0 && popcount(second, 0) == 30);
	gpuarb_lease_close(second);
	gpuarb_close(gpuarb);
	rig_done(&rig);
}

TEST(a_snapshot_has_all_values_of_a_gpu)
{
	const struct gpuarb_gpu *gpus;
	struct gpuarb_view *view = NULL;
	struct gpuarb_lease *lease;
	struct gpuarb *gpuarb;
	const char *result;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct rig rig;
	unsigned cus = 0;

	START(&rig, gpuarb);
	lease = take(gpuarb, "0000:03:00.0", 30);
	CHECK(gpuarb_look(gpuarb, &view) == 0 && *gpuarb_view_version(view));
	CHECK(gpuarb_view_gpus(view, &gpus) == 2 && gpus[0].cus == 60 && gpus[0].cus_free == 30);
	CHECK(gpus[0].xccs == 1 && gpus[0].shader_engines == 4 && gpus[0].shader_arrays == 1);
	for (unsigned i = 0; i < 4; i++)
		cus += gpus[0].cus_per_shader_array[i];
	CHECK(cus == 60 && gpus[0].cus_per_shader_engine[3] == 15);
	CHECK(gpus[0].queue_slots >= gpus[0].queue_slots_free && *gpus[0].law);
	gpuarb_view_free(view);

	want.gpu = "0";
	want.cus = 60;
	CHECK(gpuarb_plan(gpuarb, &want, 1, NULL, &result) == 0);
	CHECK(strcmp(result, "granted") != 0);
	CHECK(gpuarb_drain(gpuarb, "0", true) == 0 && gpuarb_drain(gpuarb, "0", false) == 0);
	CHECK(gpuarb_drain(gpuarb, "7", true) == -ENODEV);
	CHECK(gpuarb_release(gpuarb, 4711) == -ENOENT);
	gpuarb_lease_close(lease);
	stop(&rig, gpuarb);
}
