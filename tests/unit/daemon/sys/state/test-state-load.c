/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Saved leases are read by the next daemon: random ledgers, and leases with random values.
 *
 *	STATE_SEED=N …      the same run again
 */

#include "sys/state/state.h"

#include <errno.h>
#include <sys/resource.h>

#include "check.h"
#include "ledger-play.h"
#include "seed.h"
#include "state-rig.h"
#include "sys/state/state-json.h"

/* ---- random ledgers ------------------------------------------------------------------ */

static struct play played(unsigned seed)
{
	struct play play = play_new(seed);

	for (unsigned i = 20 + play_below(&play, 100); i > 0; i--)
		play_step(&play);
	return play;
}

static bool same_processes(const struct state_lease *read, const struct arbiter *old)
{
	struct lease_process processes[16];
	size_t n = known_processes(old, read->lease->id, false, processes, ARRAY_SIZE(processes));

	if (n != read->n_processes)
		return false;
	for (size_t i = 0; i < n; i++)
		if (processes[i].pid != read->processes[i].pid ||
		    processes[i].start_time != read->processes[i].start_time)
			return false;
	return true;
}

static void load_one(struct rig *rig, struct state *state, const struct arbiter *old,
		     struct arbiter *new, const struct lease *lease)
{
	static struct state_lease read;
	char why[256] = "";

	CHECK(state_load(state, new, lease->id, &read, &rig->diagnostics) == 0);
	CHECK(same_lease(lease, read.lease) && read.lost[0] == '\0');
	CHECK(same_processes(&read, old));
	if (arbiter_adopt(new, read.lease, read.lost, why, sizeof(why)) < 0) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
}

/* Saves all leases and loads them as the next daemon does. */
static void hand_over(struct rig *rig, const struct play *old, struct play *new)
{
	struct state *state = open_state(rig);
	uint64_t *ids;
	size_t n;

	for (size_t i = old->arbiter->n_leases; i-- > 0;)
		CHECK(state_save(state, old->arbiter, old->arbiter->leases[i]) == 0);
	state_close(state);

	state = open_again(rig);
	CHECK(state_list(state, &ids, &n, &rig->diagnostics) == 0 && n == old->arbiter->n_leases);
	for (size_t i = 0; i < n; i++) {
		CHECK(ids[i] == old->arbiter->leases[i]->id);
		load_one(rig, state, old->arbiter, new->arbiter, old->arbiter->leases[i]);
	}
	CHECK(rig->diagnostics.n == 0 && !there(rig, "set-aside"));
	check_promises(new->arbiter);
	free(ids);
	state_close(state);
}

TEST(random_ledger_is_read_as_it_was_saved)
{
	unsigned seed = SEED_OF_RUN("STATE_SEED"), leases = 0, waiting = 0, ending = 0;

	for (unsigned run = 0; run < check_rounds(40, 400); run++) {
		struct play old = played(seed_nth(seed, run)), new = play_new(seed_nth(seed, run));
		struct rig *rig = state_rig_new();

		hand_over(rig, &old, &new);
		for (size_t i = 0; i < old.arbiter->n_leases; i++) {
			leases++;
			waiting += old.arbiter->leases[i]->state == STATE_WAITING;
			ending += old.arbiter->leases[i]->state == STATE_ENDING;
		}
		state_rig_free(rig);
		play_drain(&new);
		arbiter_free(old.arbiter);
		arbiter_free(new.arbiter);
	}
	printf("%u leases, %u of them waiting, %u ending\n", leases, waiting, ending);
	CHECK_REACHED(leases > 100 && waiting > 0 && ending > 0);
}

/* ---- random values ------------------------------------------------------------------- */

/* Often a small number or the largest one. */
static uint64_t any_number(struct play *play, uint64_t max)
{
	uint64_t number = (uint64_t)play_below(play, 1U << 31) << 33 ^
			  (uint64_t)play_below(play, 1U << 31) << 10 ^ play_below(play, 1U << 31);

	if (play_chance(play, 30))
		return play_below(play, 3);
	if (play_chance(play, 30))
		return max;
	return max == UINT64_MAX ? number : number % (max + 1);
}

static unsigned any_unsigned(struct play *play)
{
	return (unsigned)any_number(play, UINT_MAX);
}

/* Random characters, also those that JSON has to escape. */
static void any_text(struct play *play, char *buf, size_t size)
{
	static const char *const characters[] = { "\u00a0",     "\u07ff",     "\u0800",
						  "\ud7ff",     "\ue000",     "\uffff",
						  "\U00010000", "\U0001f600", "\U0010ffff" };
	size_t length = play_chance(play, 20) ? size - 1 : play_below(play, (unsigned)size);
	char *end = buf, *last = buf + length;

	while (end < last) {
		const char *one = characters[play_below(play, ARRAY_SIZE(characters))];

		if (play_chance(play, 30) && end + strlen(one) <= last)
			end = stpcpy(end, one);
		else
			*end++ = (char)(1 + play_below(play, 127));
	}
	*end = '\0';
}

static void any_budget(struct play *play, struct budget *budget)
{
	budget->queues = any_unsigned(play);
	budget->processes = any_unsigned(play);
	budget->sdma_queues = any_unsigned(play);
	budget->sdma_xgmi_queues = any_unsigned(play);
	budget->cooperative = any_unsigned(play);
	budget->vram = any_number(play, UINT64_MAX);
}

static void any_cus(struct play *play, const struct gpu *gpu, struct cuset *ret)
{
	uint32_t words[CODEC_WORDS];

	for (size_t i = 0; i < CODEC_WORDS; i++)
		words[i] = (uint32_t)any_unsigned(play);
	codec_decode(&gpu->codec, words, CODEC_WORDS, ret);
}

static void any_partition(struct play *play, struct partition *p)
{
	const struct gpu *gpu = &play->arbiter->gpus[p->gpu];

	any_cus(play, gpu, &p->cus);
	any_cus(play, gpu, &p->occupied);
	p->count = cuset_count(&p->cus);
	p->asked = any_unsigned(play);
	any_budget(play, &p->granted);
	any_budget(play, &p->charged);
	p->streams = any_unsigned(play);
	p->priority = play_below(play, PRIORITY_MAX + 1);
	p->isolation = (enum isolation)(1 + play_below(play, ISOLATION_SHARED));
	p->alone = play_chance(play, 50);
	p->any_shape = play_chance(play, 50);
	if (play_chance(play, 30))
		any_cus(play, gpu, &p->resize);
	if (p->adaptation) {
		any_cus(play, gpu, &p->adaptation->base);
		any_cus(play, gpu, &p->adaptation->before);
		any_cus(play, gpu, &p->adaptation->moved_from);
	}
}

static void any_want(struct play *play, struct want *want)
{
	any_text(play, want->gpu, sizeof(want->gpu));
	want->cus = any_unsigned(play);
	want->shader_engines = any_unsigned(play);
	want->cus_min = any_unsigned(play);
	want->cus_max = any_unsigned(play);
	want->exact = play_chance(play, 50);
	want->any_shape = play_chance(play, 50);
	want->queues = any_unsigned(play);
	want->streams = any_unsigned(play);
	want->processes = any_unsigned(play);
	want->sdma_queues = any_unsigned(play);
	want->sdma_xgmi_queues = any_unsigned(play);
	want->vram = any_number(play, UINT64_MAX);
	want->cooperative = play_chance(play, 50);
	want->priority = any_unsigned(play);
	want->isolation = (enum isolation)play_below(play, ISOLATION_SHARED + 1);
}

static void any_request(struct play *play, struct request *request)
{
	memset(request, 0, sizeof(*request));
	request->n_wants = play_chance(play, 10) ? REQUEST_WANTS : 1 + play_below(play, 3);
	request->class = (int)play_below(play, 4) - 1;
	any_text(play, request->name, sizeof(request->name));
	any_text(play, request->tenant, sizeof(request->tenant));
	any_text(play, request->token, sizeof(request->token));
	request->wait_usec = any_number(play, UINT64_MAX);
	request->start_inactive = play_chance(play, 50);
	request->adaptable = play_chance(play, 50);
	for (size_t i = 0; i < request->n_wants; i++)
		any_want(play, &request->wants[i]);
}

static void any_words(struct play *play, struct lease *lease)
{
	any_text(play, lease->name, sizeof(lease->name));
	any_text(play, lease->tenant, sizeof(lease->tenant));
	any_text(play, lease->token, sizeof(lease->token));
	any_text(play, lease->unit, sizeof(lease->unit));
	any_text(play, lease->reason, sizeof(lease->reason));
	lease->class = (enum lease_class)play_below(play, CLASS_REALTIME + 1);
	lease->state = (enum lease_state)play_below(play, STATE_ENDING + 1);
	lease->cause = (enum result_kind)play_below(play, RESULT_KINDS);
}

static void any_lease(struct play *play, struct lease *lease)
{
	any_words(play, lease);
	lease->id = 1 + any_number(play, (UINT64_C(1) << 53) - 2);
	lease->generation = 1 + any_number(play, UINT64_MAX - 1);
	lease->acknowledged = play_chance(play, 50) ? lease->generation : 1;
	lease->owner = any_unsigned(play);
	lease->pid = (pid_t)any_number(play, INT32_MAX);
	lease->deadline_usec = any_number(play, UINT64_MAX);
	lease->lend.disturbances = any_number(play, UINT64_MAX);
	lease->wait.passed = any_unsigned(play);
	lease->wait.turn = any_unsigned(play);
	lease->adaptable = play_chance(play, 50);
	CHECK(lease_make_partitions(lease, play_below(play, PLAY_GPUS + 1)) == 0);
	for (unsigned i = 0; i < lease->n_partitions; i++) {
		lease->partitions[i].gpu = i;
		any_partition(play, &lease->partitions[i]);
	}
	if (play_chance(play, 70)) {
		static struct request request;

		any_request(play, &request);
		lease->request = request_keep(&request);
		CHECK(lease->request);
	}
}

TEST(any_value_of_a_member_is_read_as_it_was_saved)
{
	struct play play = play_new(seed_nth(SEED_OF_RUN("STATE_SEED"), 0));
	static struct state_lease read;
	struct rig *rig = state_rig_new();
	struct state *state = open_state(rig);

	for (unsigned run = 0; run < check_rounds(200, 500); run++) {
		struct lease *lease;

		CHECK(lease_new(&lease) == 0);
		any_lease(&play, lease);
		CHECK(state_save(state, play.arbiter, lease) == 0);
		CHECK(state_load(state, play.arbiter, lease->id, &read, &rig->diagnostics) == 0);
		CHECK(same_lease(lease, read.lease) && read.lost[0] == '\0');
		CHECK(state_forget(state, lease->id) == 0);
		lease_free(read.lease);
		lease_free(lease);
	}
	CHECK(rig->diagnostics.n == 0);
	state_close(state);
	state_rig_free(rig);
	arbiter_free(play.arbiter);
}

TEST(at_most_1024_processes_of_a_lease_are_saved)
{
	static const uint64_t times[] = { 0, 1, UINT64_C(1) << 63, UINT64_MAX };
	struct play play = play_new(1);
	static struct state_lease read;
	struct rig *rig = state_rig_new();
	struct state *state = open_state(rig);

	for (size_t i = 0; i < LEASE_PROCESSES_MAX + 8; i++) {
		struct lease_process process = { (pid_t)(INT32_MAX - i), times[i % 4], false, 0 };

		CHECK(known_add(play.arbiter, 17, &process) == 0);
		process = (struct lease_process){ (pid_t)(i + 1), 5, false,
						  0 }; /* of another lease */
		CHECK(known_add(play.arbiter, 18, &process) == 0);
	}
	CHECK(state_save(state, play.arbiter, &rig->lease) == 0);
	CHECK(state_load(state, &rig->arbiter, 17, &read, &rig->diagnostics) == 0);
	CHECK(read.n_processes == LEASE_PROCESSES_MAX);
	for (size_t i = 0; i < read.n_processes; i++) {
		size_t from = (size_t)INT32_MAX - (size_t)read.processes[i].pid;

		CHECK(from < LEASE_PROCESSES_MAX + 8);
		CHECK(read.processes[i].start_time == times[from % 4]);
	}
	lease_free(read.lease);
	state_close(state);
	state_rig_free(rig);
	arbiter_free(play.arbiter);
}

/* ---- GPUs that changed --------------------------------------------------------------- */

/* Loads lease 17 of one GPU and returns the lost GPU. A lost partition must be on no GPU. */
static const char *lost_with(struct rig *rig, struct state *state, char lost[GPU_NAME_MAX])
{
	static struct state_lease read;

	CHECK(state_load(state, &rig->arbiter, 17, &read, &rig->diagnostics) == 0 &&
	      rig->diagnostics.n == 0);
	CHECK(read.lease->n_partitions == 1 && read.lease->partitions[0].count == 4);
	CHECK((read.lease->partitions[0].gpu == GPU_ABSENT) == (read.lost[0] != '\0'));
	memcpy(lost, read.lost, sizeof(read.lost));
	lease_free(read.lease);
	return lost;
}

TEST(missing_or_replaced_gpu_is_reported_as_lost)
{
	struct rig *rig = state_rig_new();
	_cleanup_(state_closep) struct state *state = open_state(rig);
	const struct gpu was = rig->gpu;
	struct gpu *gpu = &rig->gpu;
	char lost[GPU_NAME_MAX];

	save(rig, state, 17);
	CHECK(strcmp(lost_with(rig, state, lost), "") == 0);
	gpu->absent = true;
	CHECK(strcmp(lost_with(rig, state, lost), "0000:03:00.0") == 0);
	*gpu = was, gpu->info.kfd_gpu_id = 1; /* another partition mode */
	CHECK(strcmp(lost_with(rig, state, lost), "0000:03:00.0") == 0);
	*gpu = was, gpu->info.geometry.xccs = 2;
	CHECK(lost_with(rig, state, lost)[0]);
	*gpu = was, gpu->info.geometry.engines = 3;
	CHECK(lost_with(rig, state, lost)[0]);
	*gpu = was, gpu->info.geometry.arrays = 2;
	CHECK(lost_with(rig, state, lost)[0]);
	*gpu = was, gpu->codec.n_bits = 64;
	CHECK(lost_with(rig, state, lost)[0]);
	*gpu = was, strcpy(gpu->info.name, "0000:03:00.0/0");
	CHECK(strcmp(lost_with(rig, state, lost), "0000:03:00.0") == 0);
	*gpu = was, rig->arbiter.n_gpus = 0;
	CHECK(strcmp(lost_with(rig, state, lost), "0000:03:00.0") == 0);
	state_rig_free(rig);
}

/* ---- no file descriptors ------------------------------------------------------------- */

TEST(files_stay_in_place_when_file_descriptors_are_used_up)
{
	struct rig *rig = state_rig_new();
	_cleanup_(state_closep) struct state *state = open_state(rig);
	struct rlimit limit, none;
	static struct state_lease read;
	uint64_t *ids;
	size_t n;
	int r, listed;

	save(rig, state, 17);
	state_load_drained(state, &rig->arbiter, &rig->diagnostics);
	CHECK(rig->diagnostics.n == 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = limit.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	r = state_load(state, &rig->arbiter, 17, &read, &rig->diagnostics);
	listed = state_list(state, &ids, &n, &rig->diagnostics);
	state_load_drained(state, &rig->arbiter, &rig->diagnostics);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);

	CHECK(listed == -EMFILE);
	CHECK(state_says(rig, "/leases"));
	CHECK(r == -EMFILE && there(rig, "leases/17.json") && !there(rig, "set-aside"));
	CHECK(state_says(rig, "/leases/17.json"));
	CHECK(state_says(rig, "/drained"));
	CHECK(state_load(state, &rig->arbiter, 17, &read, &rig->diagnostics) == 0);
	lease_free(read.lease);
	state_rig_free(rig);
}
