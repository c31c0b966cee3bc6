/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "state-rig.h"

#include "check-cond.h"

struct rig *state_rig_new(void)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct gpu_info info = {
		.name = "0000:03:00.0",
		.geometry = { .xccs = 1, .engines = 4, .arrays = 1, .array_cus = 16 },
	};

	CHECK(rig);
	rig->scratch = scratch_new();
	CHECK(geometry_spread(&info.geometry, 60) == 0);
	rig->gpu.info = info;
	codec_init(&rig->gpu.codec, &info.geometry);
	rig->arbiter.gpus = &rig->gpu;
	rig->arbiter.n_gpus = 1;

	rig->partition = (struct partition){
		.cus.pair = { 0x3, 0x3 },
		.occupied.pair = { 0x7, 0x3 },
		.count = 4,
		.asked = 4,
		.effective = 4,
		.granted = { .queues = 2, .processes = 1, .vram = 1 << 20 },
		.charged = { .queues = 4, .processes = 1 },
		.priority = 7,
		.isolation = ISOLATION_CU,
		.alone = true,
	};
	rig->request = (struct request){
		.wants[0] = { .gpu = "any", .cus = 4, .priority = 7 },
		.n_wants = 1,
		.class = -1,
		.token = "again",
		.wait_usec = UINT64_MAX,
	};
	rig->lease = (struct lease){
		.id = 17,
		.generation = 3,
		.acknowledged = 2,
		.state = STATE_GRANTED,
		.class = CLASS_GUARANTEED,
		.name = "trainer \"\xc3\xa9\"",
		.tenant = "students",
		.token = "again",
		.unit = "x.service",
		.owner = 1000,
		.pid = 4242,
		.deadline_usec = UINT64_MAX,
		.partitions = &rig->partition,
		.n_partitions = 1,
		.request = &rig->request,
		.reset = { .count = 2, .pending = true },
		.evicted = { .count = 3, .usec = 4000, .since_usec = 5, .now = 1 },
	};
	return rig;
}

void state_rig_free(struct rig *rig)
{
	diagnostics_done(&rig->diagnostics);
	scratch_done(&rig->scratch);
	free(rig);
}

struct state *open_state(struct rig *rig)
{
	struct state *state = NULL;

	CHECK(state_open(rig->scratch.path, NULL, &state, &rig->diagnostics) == 0);
	return state;
}

struct state *open_again(struct rig *rig)
{
	struct state *state = open_state(rig);

	diagnostics_done(&rig->diagnostics);
	return state;
}

void save(struct rig *rig, struct state *state, uint64_t id)
{
	rig->lease.id = id;
	CHECK(state_save(state, &rig->arbiter, &rig->lease) == 0);
}

bool state_says(const struct rig *rig, const char *part)
{
	for (size_t i = 0; i < rig->diagnostics.n; i++)
		if (strstr(rig->diagnostics.list[i].text, part))
			return true;
	return false;
}

bool there(const struct rig *rig, const char *name)
{
	struct stat st;

	return lstat(scratch_at(&rig->scratch, name), &st) == 0;
}

static bool same_budget(const struct budget *a, const struct budget *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static bool same_adaptation(const struct adaptation *a, const struct adaptation *b)
{
	if (!a || !b)
		return a == b;
	return cuset_equal(&a->base, &b->base) && cuset_equal(&a->before, &b->before) &&
	       cuset_equal(&a->moved_from, &b->moved_from);
}

static bool same_partition(const struct partition *a, const struct partition *b)
{
	return a->gpu == b->gpu && cuset_equal(&a->cus, &b->cus) &&
	       cuset_equal(&a->occupied, &b->occupied) && cuset_equal(&a->resize, &b->resize) &&
	       a->count == b->count && a->asked == b->asked &&
	       same_budget(&a->granted, &b->granted) && same_budget(&a->charged, &b->charged) &&
	       a->streams == b->streams && a->priority == b->priority &&
	       a->isolation == b->isolation && a->alone == b->alone &&
	       a->any_shape == b->any_shape && same_adaptation(a->adaptation, b->adaptation);
}

/* request_equal() leaves out what a repetition may change. */
static bool same_request(const struct request *a, const struct request *b)
{
	if (!a || !b)
		return a == b;
	return request_equal(a, b) && a->wait_usec == b->wait_usec;
}

static bool same_words(const struct lease *a, const struct lease *b)
{
	return a->id == b->id && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->tenant, b->tenant) == 0 && strcmp(a->token, b->token) == 0 &&
	       strcmp(a->unit, b->unit) == 0 && strcmp(a->reason, b->reason) == 0 &&
	       a->class == b->class && a->state == b->state && a->cause == b->cause;
}

static bool same_numbers(const struct lease *a, const struct lease *b)
{
	return a->generation == b->generation && a->acknowledged == b->acknowledged &&
	       a->owner == b->owner && a->pid == b->pid && a->deadline_usec == b->deadline_usec &&
	       a->lend.disturbances == b->lend.disturbances && a->adaptable == b->adaptable &&
	       a->wait.passed == b->wait.passed && a->wait.turn == b->wait.turn &&
	       a->reset.count == b->reset.count && a->reset.pending == b->reset.pending &&
	       a->reset.partition == b->reset.partition && a->evicted.count == b->evicted.count &&
	       a->evicted.usec == b->evicted.usec && b->evicted.now == 0;
}

bool same_lease(const struct lease *a, const struct lease *b)
{
	if (!same_words(a, b) || !same_numbers(a, b) || !same_request(a->request, b->request) ||
	    a->n_partitions != b->n_partitions)
		return false;
	for (size_t i = 0; i < a->n_partitions; i++)
		if (!same_partition(&a->partitions[i], &b->partitions[i]))
			return false;
	return b->n_holders == 0 && b->n_bound == 0 && b->touched == 0 &&
	       b->observed.processes == 0;
}
