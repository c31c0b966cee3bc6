/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A daemon that is killed or restarted while leases are held: the next one recovers them. */

#include "check.h"
#include "book.h"

NEEDS(daemon_missing);

#define TWO_GPUS "--simulate=radeon-vii,radeon-vii"
#define HOUR UINT64_C(3600000000)

/* ---- a machine full of leases ----------------------------------------------------------- */

struct scene {
	struct rig rig;
	sd_bus *bus;
	struct told told;
	struct live_lease held, bound, gang, token, resized, first, second;
	pid_t process;
	int pidfd;
	struct book before, after;
};

static sd_bus_message *ask_on(sd_bus *bus, const char *gpu, unsigned cus)
{
	return ask_for(bus, "gpu=%s cus=%u", gpu, cus);
}

static sd_bus_message *ask_gang(sd_bus *bus)
{
	return ask_for(bus, "gpu=0 cus=15 | gpu=1 cus=15");
}

static sd_bus_message *ask_to_wait(sd_bus *bus, uint64_t usec)
{
	return ask_for(bus, "gpu=0 cus=60; wait-usec=%" PRIu64, usec);
}

static sd_bus_message *ask_with_token(sd_bus *bus, unsigned cus)
{
	return ask_for(bus, "gpu=1 cus=%u; token=restart", cus);
}

static void arrive(struct scene *scene, const char *hardware, const char *options)
{
	memset(scene, 0, sizeof(*scene));
	rig_new(&scene->rig);
	rig_start_managed(&scene->rig, hardware, options);
	scene->bus = rig_connect(&scene->rig, 0);
	listen_in(scene->bus, &scene->told);
}

/* GPU 0: 15 CUs each for a lease with a holder, one with a process and one on both GPUs, and two leases
 * that wait for all of it. GPU 1: 15 CUs of the lease on both, 15 of one with a token, 15 of one that
 * was resized from 30; drained. */
static void fill(struct scene *scene)
{
	sd_bus *bus = scene->bus;

	scene->held = granted(call(ask_on(bus, "0", 15)));
	scene->bound = granted(call(ask_on(bus, "0", 15)));
	scene->process = idler(0, &scene->pidfd);
	bind_process(bus, &scene->bound, scene->pidfd);
	close(scene->bound.holder);
	scene->gang = granted(call(ask_gang(bus)));
	scene->token = granted(call(ask_with_token(bus, 15)));
	scene->resized = granted(call(ask_on(bus, "1", 30)));
	CHECK(is_fine(call(
		with_request(call_lease(bus, scene->resized.path, "Resize"), "gpu=1 cus=15"))));
	scene->first = waiting(call(ask_to_wait(bus, UINT64_MAX)));
	scene->second = waiting(call(ask_to_wait(bus, HOUR)));
	CHECK(is_fine(call(drain(bus, "1"))));
}

static void compare(const struct book *before, struct book *after)
{
	CHECK(before->n_leases == after->n_leases && before->n_gpus == after->n_gpus);
	for (unsigned i = 0; i < before->n_leases; i++) {
		const struct book_lease *a = &before->leases[i], *b = book_find(after, a->id);

		CHECK(b && strcmp(a->state, b->state) == 0 && strcmp(a->reason, b->reason) == 0);
		CHECK(a->generation == b->generation && a->deadline == b->deadline);
		CHECK(a->position == b->position && book_same_parts(a, b->parts, b->n_parts));
	}
	for (unsigned i = 0; i < before->n_gpus; i++) {
		const struct book_gpu *a = &before->gpus[i], *b = &after->gpus[i];

		CHECK(strcmp(a->name, b->name) == 0 && a->cus_free == b->cus_free);
		CHECK(a->slots_free == b->slots_free && a->draining == b->draining);
	}
}

/* Each lease is still kept alive by its holder or process, and by nothing else. */
static void end_one_by_one(struct scene *scene)
{
	sd_bus *bus = scene->bus;

	scene->told.removed = 0;
	CHECK(is_fine(
		call(with(call_lease(bus, scene->resized.path, "Acknowledge"), "t", UINT64_C(2)))));
	end_process(scene->process);
	close(scene->pidfd);
	AWAIT(bus, scene->told.removed == 1);
	CHECK(strcmp(scene->told.last_removed, scene->bound.path) == 0);
	close(scene->held.holder);
	AWAIT(bus, scene->told.removed == 2);
	CHECK(lease_says(bus, scene->first.path, "State", "waiting"));
	close(scene->gang.holder);
	AWAIT(bus, scene->told.removed == 3);
	await_record(scene->first.holder, GPUARB_RECORD_GRANTED);
	close(scene->first.holder);
	AWAIT(bus, scene->told.removed == 4);
	await_record(scene->second.holder, GPUARB_RECORD_GRANTED);
	close(scene->second.holder);
	close(scene->token.holder);
	close(scene->resized.holder);
	AWAIT(bus, scene->told.removed == 7);
	book_read(bus, &scene->after);
	CHECK(book_is_empty(&scene->after));
	rig_await_stored(&scene->rig, 0);
}

static void go_through(const char *options, void (*restart)(struct rig *rig))
{
	static struct scene scene;

	arrive(&scene, TWO_GPUS, options);
	fill(&scene);
	book_read(scene.bus, &scene.before);
	CHECK(scene.before.n_leases == 7 && scene.before.gpus[1].draining);
	for (unsigned i = 0; i < 2; i++) {
		restart(&scene.rig);
		book_read(scene.bus, &scene.after);
		compare(&scene.before, &scene.after);
	}
	end_one_by_one(&scene);
	rig_done(&scene.rig);
}

TEST_CASE(leases_of_all_kinds_survive_kill_9, go_through("--store-max=64", rig_crash));
TEST_CASE(leases_of_all_kinds_survive_a_restart, go_through("--store-max=64", rig_restart));
TEST_CASE(leases_of_all_kinds_survive_under_a_manager_that_hides_its_store_size,
	  go_through("--store-max=64 --no-fdstore-variable", rig_crash));

/* An upgrade of the package: the new program is installed first and started later. */
static void upgrade(struct rig *rig)
{
	rig_say(rig, "hold");
	rig_say(rig, "restart");
	CHECK(strcmp(rig_hear(rig, "died"), "0") == 0);
	rig_up(rig);
}

TEST_CASE(leases_of_all_kinds_survive_an_upgrade, go_through("--store-max=64", upgrade));

FIXTURE(struct scene, scene, , rig_done(&scene->rig));

/* ---- during the restart --------------------------------------------------------------------- */

TEST_WITH(leases_that_lost_their_holders_during_the_restart_end, struct scene *scene)
{
	arrive(scene, TWO_GPUS, "--store-max=64");
	fill(scene);
	book_read(scene->bus, &scene->before);
	rig_down(&scene->rig);
	end_process(scene->process);
	close(scene->held.holder);
	close(scene->gang.holder);
	close(scene->second.holder);
	rig_up(&scene->rig);
	while (scene->after.n_leases != 3)
		book_read(scene->bus, &scene->after);
	CHECK(!book_find(&scene->after, scene->bound.id) &&
	      !book_find(&scene->after, scene->held.id));
	CHECK(!book_find(&scene->after, scene->gang.id) &&
	      !book_find(&scene->after, scene->second.id));
	CHECK(strcmp(book_find(&scene->after, scene->first.id)->state, "granted") == 0);
	CHECK(scene->after.gpus[0].cus_free == 0 && scene->after.gpus[1].cus_free == 15);

	close(scene->pidfd);
	close(scene->first.holder);
	close(scene->token.holder);
	close(scene->resized.holder);
	rig_await_stored(&scene->rig, 0);
}

TEST_WITH(a_deadline_that_passed_during_the_restart_counts, struct scene *scene)
{
	struct live_record end;
	uint64_t deadline;

	arrive(scene, TWO_GPUS, "--store-max=64");
	scene->held = granted(call(ask_on(scene->bus, "0", 60)));
	scene->first = waiting(call(ask_to_wait(scene->bus, 2000000)));
	deadline = number_of(scene->bus, scene->first.path, GPUARB_INTERFACE_LEASE, "Deadline");
	rig_down(&scene->rig);
	close(scene->held.holder); /* which would let it in */
	await_time(deadline);
	rig_up(&scene->rig);
	end = await_record(scene->first.holder, GPUARB_RECORD_ENDING);
	CHECK(end.record.cause == GPUARB_RECORD_TIMED_OUT && end.record.generation == 1);
}
