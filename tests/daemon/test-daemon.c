/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped daemon and its D-Bus contract: requests, ownership, saving, administration. */

#include <sys/stat.h>

#include "check.h"
#include "book.h"

NEEDS(daemon_missing);

#define OTHER 2 /* "bin" */
#define HOUR_USEC UINT64_C(3600000000)

static void arrive(struct live *s)
{
	rig_new(&s->rig);
	rig_start(&s->rig, "--simulate=radeon-vii");
	live_connect(s);
}

/* The next value of the message as text, for free(). */
static char *text_of(sd_bus_message *m)
{
	sd_bus_message *copy;
	char *text = NULL;
	size_t size;
	FILE *file;

	CHECK(sd_bus_message_new_method_call(sd_bus_message_get_bus(m), &copy, NULL, "/", "a.b",
					     "C") >= 0);
	CHECK(sd_bus_message_copy(copy, m, false) > 0);
	CHECK(sd_bus_message_seal(copy, 1, 0) >= 0);
	file = open_memstream(&text, &size);
	CHECK(file && sd_bus_message_dump(copy, file, SD_BUS_MESSAGE_DUMP_SUBTREE_ONLY) >= 0);
	CHECK(fclose(file) == 0);
	sd_bus_message_unref(copy);
	return text;
}

FIXTURE(struct live, s, , rig_done(&s->rig));

TEST_WITH(plan_reserve_and_the_lease_agree, struct live *s)
{
	char *planned, *granted, *shown;
	const char *path, *word;
	sd_bus_message *m;
	int holder;

	arrive(s);
	m = call(ask(s->bus, "Plan", 31));
	CHECK(sd_bus_message_read(m, "s", &word) >= 0 && strcmp(word, "granted") == 0);
	planned = text_of(m);
	sd_bus_message_unref(m);
	CHECK(gpu_number(s->bus, "CusFree") == 60);

	m = call(ask(s->bus, "Reserve", 31));
	CHECK(sd_bus_message_read(m, "ohs", &path, &holder, &word) >= 0);
	granted = text_of(m);
	CHECK(strcmp(planned, granted) == 0 && strstr(granted, "cu-mask"));

	sd_bus_message *n = call(get(s->bus, path, GPUARB_INTERFACE_LEASE, "Partitions"));
	CHECK(sd_bus_message_enter_container(n, 'v', "aa{sv}") >= 0);
	shown = text_of(n);
	CHECK(strcmp(granted, shown) == 0);
	sd_bus_message_unref(n);
	sd_bus_message_unref(m);
	free(planned), free(granted), free(shown);
}

TEST_WITH(free_resources_are_signalled_when_they_change, struct live *s)
{
	struct live_lease lease;
	unsigned slots;

	arrive(s);
	slots = gpu_number(s->bus, "QueueSlotsFree");
	lease = reserve(s->bus, 15);
	AWAIT(s->bus, s->told.added == 1 && s->told.gpu >= 1);
	CHECK(strcmp(s->told.last_added, lease.path) == 0);
	CHECK(s->told.cus_free == 45 && s->told.slots_free == slots - 2);
	CHECK(gpu_number(s->bus, "CusFree") == 45);

	CHECK(is_fine(call(release(s->bus, lease.path))));
	AWAIT(s->bus, s->told.removed == 1 && s->told.cus_free == 60);
	CHECK(strcmp(s->told.last_removed, lease.path) == 0 && s->told.slots_free == slots);
	CHECK(!lease_exists(s->bus, lease.path));
	CHECK(is_error(call(release(s->bus, lease.path)), GPUARB_ERROR_NO_SUCH_LEASE, "ended"));
}

TEST_WITH(changes_of_a_gpu_are_signalled_together, struct live *s)
{
	uint64_t start;
	struct live_lease lease;

	arrive(s);
	start = boottime_usec();
	for (unsigned i = 0; i < 200; i++) {
		lease = reserve(s->bus, 15);
		CHECK(is_fine(call(release(s->bus, lease.path))));
		close(lease.holder);
	}
	lease = reserve(s->bus, 30);
	AWAIT(s->bus, s->told.gpu > 0 && s->told.cus_free == 30); /* the last state */
	CHECK(s->told.gpu <= (boottime_usec() - start) / 20000 + 2);
}

TEST_WITH(a_token_identifies_one_lease_of_one_user, struct live *s)
{
	struct live_lease first, again, others;
	sd_bus *other;

	arrive(s);
	other = rig_connect(&s->rig, OTHER);
	first = granted(call(ask_token(s->bus, 15, "t")));
	again = granted(call(ask_token(s->bus, 15, "t")));
	CHECK(first.id == again.id && gpu_number(s->bus, "CusFree") == 45);
	CHECK(is_error(call(ask_token(s->bus, 30, "t")), GPUARB_ERROR_TOKEN_CONFLICT, "token"));
	others = granted(call(ask_token(other, 15, "t")));
	CHECK(others.id != first.id);

	close(first.holder);
	settle(s->bus);
	CHECK(lease_exists(s->bus, first.path));
	close(again.holder);
	AWAIT(s->bus, s->told.removed == 1);
	CHECK(strcmp(s->told.last_removed, first.path) == 0);
	CHECK(granted(call(ask_token(s->bus, 15, "t"))).id > others.id);
}

TEST_WITH(a_token_with_some_gpus_of_a_granted_lease_joins_it, struct live *s)
{
	static const char *const others[] = { "gpu=any cus=15; token=t",
					      "gpu=0,1 cus=15; token=t",
					      "gpu=1 cus=30; token=t",
					      "gpu=1 cus=15; token=t name=x",
					      "gpu=1 cus=60; token=waits wait-usec=9000000",
					      "gpu=1 cus=15; token=follows adaptable=1" };
	struct live_lease whole, part, waits, follows;
	sd_bus_message *m;
	char *answer;

	rig_new(&s->rig);
	rig_start(&s->rig, "--simulate=radeon-vii,radeon-vii");
	live_connect(s);
	whole = granted(call(ask_for(s->bus, "gpu=0 cus=15 | gpu=1 cus=15; token=t")));
	follows = granted(
		call(ask_for(s->bus, "gpu=0 cus=15 | gpu=1 cus=15; token=follows adaptable=1")));
	waits = waiting(call(
		ask_for(s->bus, "gpu=0 cus=60 | gpu=1 cus=60; token=waits wait-usec=9000000")));

	m = call(ask_for(s->bus, "gpu=1 cus=15; token=t"));
	CHECK(sd_bus_message_skip(m, "ohs") >= 0);
	answer = text_of(m);
	CHECK(strstr(answer, "0000:04:00.0") && !strstr(answer, "0000:03:00.0"));
	free(answer);
	CHECK(sd_bus_message_rewind(m, true) >= 0);
	part = granted(m);
	CHECK(part.id == whole.id);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		CHECK(is_error(call(ask_for(s->bus, "%s", others[i])), GPUARB_ERROR_TOKEN_CONFLICT,
			       "token"));

	close(whole.holder);
	settle(s->bus);
	CHECK(lease_exists(s->bus, whole.path));
	close(part.holder);
	AWAIT(s->bus, s->told.removed == 1);
	close(waits.holder);
	close(follows.holder);
}

TEST_WITH(a_waiting_lease_has_position_reason_and_deadline, struct live *s)
{
	struct live_lease all, first, second;
	static struct book book;
	uint64_t before, after;
	struct live_record record;

	arrive(s);
	all = reserve(s->bus, 60);
	before = boottime_usec();
	first = waiting(call(ask_for(s->bus, "cus=30; wait-usec=%" PRIu64, HOUR_USEC)));
	after = boottime_usec();
	second = waiting(call(ask_for(s->bus, "cus=15; wait-usec=forever")));
	book_read(s->bus, &book);
	CHECK(book.n_leases == 3);
	for (unsigned i = 0; i < 2; i++) {
		const struct book_lease *lease = book_find(&book, i == 0 ? first.id : second.id);

		CHECK(strcmp(lease->state, "waiting") == 0 && lease->n_parts == 0);
		CHECK(lease->position == i + 1 && lease->generation == 1);
		CHECK(strstr(lease->reason, "0000:03:00.0"));
	}
	CHECK(book_find(&book, first.id)->deadline >= before + HOUR_USEC);
	CHECK(book_find(&book, first.id)->deadline <= after + HOUR_USEC);
	CHECK(book_find(&book, second.id)->deadline == UINT64_MAX);

	close(all.holder);
	record = await_record(first.holder, GPUARB_RECORD_GRANTED);
	CHECK(record.record.n_partitions == 1 && record.partitions[0].cus == 30);
	CHECK(record.record.deadline_usec == UINT64_MAX);
	await_record(second.holder, GPUARB_RECORD_GRANTED);
	book_read(s->bus, &book);
	book_check(&book, true);
	CHECK(memcmp(book_find(&book, first.id)->parts[0].mask, record.partitions[0].cu_mask,
		     sizeof(uint32_t) * record.partitions[0].n_words) == 0);
	CHECK(number_of(s->bus, first.path, GPUARB_INTERFACE_LEASE, "Position") == 0 &&
	      lease_says(s->bus, first.path, "State", "granted"));
}

static sd_bus_message *ask_all_of(sd_bus *bus, const char *gpu)
{
	return ask_for(bus, "gpu=%s cus=60; wait-usec=forever", gpu);
}

TEST_WITH(a_waiting_lease_is_granted_when_it_can_be_saved, struct live *s)
{
	struct live_lease has[2], waits[2];

	rig_new(&s->rig);
	rig_write(&s->rig, "gpuarbd.conf", "[daemon]\naudit-interval = 100ms\n");
	rig_start(&s->rig, "--simulate=radeon-vii,radeon-vii");
	s->bus = rig_connect(&s->rig, STRANGER);
	for (unsigned i = 0; i < 2; i++)
		has[i] = granted(call(ask_all_of(s->bus, i ? "1" : "0")));
	for (unsigned i = 0; i < 2; i++)
		waits[i] = waiting(call(ask_all_of(s->bus, i ? "1" : "0")));

	CHECK(mkdir(rig_path(&s->rig, "run/leases/.new"), 0700) ==
	      0); /* in the way of every file */
	CHECK(is_fine(call(release(s->bus, has[0].path))));
	CHECK(lease_says(s->bus, waits[0].path, "State", "waiting"));
	CHECK(rmdir(rig_path(&s->rig, "run/leases/.new")) == 0);
	CHECK(is_fine(call(release(s->bus, has[1].path)))); /* the other is not all that is tried */
	for (unsigned i = 0; i < 2; i++)
		await_record(waits[i].holder, GPUARB_RECORD_GRANTED);
}

TEST_WITH(a_reload_is_atomic_and_for_new_requests, struct live *s)
{
	struct live_lease lease;

	arrive(s);
	s->user = rig_connect(&s->rig, STRANGER);
	lease = reserve(s->user, 30);
	rig_write(&s->rig, "tenants.d/10-t.conf", /* a GPU that is missing is a warning */
		  "[tenant few]\nmatch-user = 1\nmax-cus = 15\nreserved-gpu = 0000:99:00.0\n"
		  "reserved-queues = 1\n");
	CHECK(is_error(call(call_arbiter(s->user, "Reload")), GPUARB_ERROR_NOT_PERMITTED, ""));
	CHECK(is_fine(call(call_arbiter(s->bus, "Reload"))));
	CHECK(is_error(call(ask(s->user, "Reserve", 16)), GPUARB_ERROR_QUOTA_EXCEEDED, "max-cus"));
	CHECK(lease_exists(s->user, lease.path) && gpu_number(s->bus, "CusFree") == 30);

	rig_write(&s->rig, "tenants.d/10-t.conf", "[tenant few]\nmatch-user = 1\nmax-cuss = 1\n");
	CHECK(is_error(call(call_arbiter(s->bus, "Reload")), GPUARB_ERROR_INVALID_REQUEST,
		       "10-t.conf:3"));
	CHECK(is_error(call(ask(s->user, "Reserve", 16)), GPUARB_ERROR_QUOTA_EXCEEDED, "max-cus"));
	rig_write(&s->rig, "tenants.d/10-t.conf", "[tenant few]\nmatch-user = 1\n");
	CHECK(kill(s->rig.daemon, SIGHUP) == 0);
	rig_await(&s->rig, "READY=1");
	close(reserve(s->user, 16).holder);

	CHECK(is_error(call(drain(s->user, "0")), GPUARB_ERROR_NOT_PERMITTED, ""));
	CHECK(is_error(call(drain(s->bus, "7")), GPUARB_ERROR_NO_SUCH_GPU, "7"));
	CHECK(is_fine(call(drain(s->bus, "0"))));
	CHECK(gpu_number(s->bus, "Draining") == 1 && lease_exists(s->user, lease.path));
	CHECK(is_error(call(ask(s->user, "Reserve", 1)), GPUARB_ERROR_NO_CAPACITY, "drain"));
	CHECK(is_fine(call(with(call_arbiter(s->bus, "Undrain"), "s", "0"))));
	reserve(s->user, 1);
}
