/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ReadSlots of the shipped daemon, on texts of kfd/hqds that a test writes. */

#include "check.h"
#include "machine.h"
#include "seed.h"

NEEDS(daemon_missing);

#define DEBUGFS "debug"
#define HQDS DEBUGFS "/kfd/hqds"
#define MQDS DEBUGFS "/kfd/mqds"

struct stage {
	struct machine machine;
	pid_t pid; /* a process without a lease */
	int fd;
};

/* A directory for debugfs without a file. */
static void arrive(struct stage *s)
{
	char options[256];

	machine_build(&s->machine, 1);
	CHECK(mkdir(rig_path(&s->machine.rig, DEBUGFS), 0755) == 0);
	CHECK(mkdir(rig_path(&s->machine.rig, DEBUGFS "/kfd"), 0755) == 0);
	s->pid = idler(STRANGER, &s->fd);
	snprintf(options, sizeof(options), "%s --debugfs=%s", s->machine.option,
		 rig_path(&s->machine.rig, DEBUGFS));
	rig_start(&s->machine.rig, options);
	machine_connect(&s->machine);
}

static void depart(struct stage *s)
{
	end_process(s->pid);
	close(s->fd);
	machine_halt(&s->machine);
}

static void print_words(FILE *file, unsigned first, unsigned n, unsigned queue_at,
			uint32_t doorbell, uint32_t base, const char *indent)
{
	for (unsigned i = first; i < first + n; i++) {
		uint32_t word = 0;

		if (i == queue_at + 2)
			word = 1;
		if (i == queue_at + 3)
			word = 9;
		if (i == queue_at + 6)
			word = 7;
		if (i == queue_at + 15)
			word = doorbell;
		if (i % 8 == 0)
			fprintf(file, "%s%08x:", indent, base + 4 * i);
		fprintf(file, " %08x%s", word, i % 8 == 7 ? "\n" : "");
	}
}

/* Writes one queue slot and the descriptor of the queue in it. tail: more lines of kfd/hqds. */
static void show(const struct stage *s, const char *tail)
{
	FILE *file = fopen(rig_path(&s->machine.rig, HQDS), "we");

	CHECK(file);
	fprintf(file, "Node 1, gpu_id %x:\n Inst 0,  CP Pipe 2, Queue 5\n",
		machine_gpu_id(&s->machine, 0));
	print_words(file, 0, 56, 0, 0x40001008, 0xc914, "    ");
	fprintf(file, "%s", tail);
	CHECK(fclose(file) == 0);
	file = fopen(rig_path(&s->machine.rig, MQDS), "we");
	CHECK(file);
	fprintf(file, "Process %d PASID 0x8000:\n  Compute queue on device %x\n", s->pid,
		machine_gpu_id(&s->machine, 0));
	print_words(file, 0, 512, 128, 0x40001008, 0, "    ");
	CHECK(fclose(file) == 0);
}

static sd_bus_message *read_slots(const struct stage *s, const char *gpu)
{
	return with(call_arbiter(s->machine.bus, "ReadSlots"), "s", gpu);
}

static bool read_fails(const struct stage *s, const char *name, const char *says)
{
	return is_error(call(read_slots(s, "0")), name, says);
}

/* ---- the answer ---------------------------------------------------------------------- */

FIXTURE(struct stage, s, arrive(s), depart(s));

TEST_WITH(slots_have_the_process_of_their_queue, struct stage *s)
{
	struct row rows[ROWS_MAX];
	sd_bus_message *m;

	CHECK(gpu_number(s->machine.bus, "Pipes") == 4);
	show(s, "");
	m = call(read_slots(s, "0000:03:00.0"));
	CHECK(read_rows(m, rows) == 1 && row_has(rows, " pid=%d ", s->pid));
	CHECK(row_has(rows, " pipe=2 ") && row_has(rows, " vmid=9 "));
	read_row(m, rows);
	CHECK(row_has(rows, " without-slot=0 "));
	sd_bus_message_unref(m);
	CHECK(gpu_number(s->machine.bus, "Pipes") == 3 &&
	      gpu_number(s->machine.bus, "QueuesPerPipe") == 6);
}

/* No event ends the second for which a reading is remembered. */
static void await_second(void)
{
	await_time(boottime_usec() + 1000000);
}

/* Reads twice, and breaks the text between. false: a busy machine took longer than a second for that, and
 * the second one was a reading. */
static bool reads_once(const struct stage *s)
{
	uint64_t begin;
	bool fine;

	await_second();
	show(s, "");
	begin = boottime_usec();
	CHECK(is_fine(call(read_slots(s, "0"))));
	show(s, "stuff\n");
	fine = is_fine(call(read_slots(s, "0")));
	CHECK(fine || boottime_usec() - begin >= 1000000);
	return fine;
}

TEST_WITH(a_second_reading_within_a_second_is_not_made, struct stage *s)
{
	AWAIT_STATE(reads_once(s));
	await_second();
	CHECK(read_fails(s, GPUARB_ERROR_NOT_SUPPORTED, "kfd/hqds, line 10"));
	CHECK(read_fails(s, GPUARB_ERROR_NOT_SUPPORTED, "line 10")); /* nor after a failure */
}

/* ---- what cannot be read --------------------------------------------------------------- */

TEST_WITH(unreadable_slots_are_refused_with_the_reason, struct stage *s)
{
	CHECK(is_error(call(read_slots(s, "7")), GPUARB_ERROR_NO_SUCH_GPU, "7: "));
	CHECK(read_fails(s, GPUARB_ERROR_NOT_SUPPORTED, "/kfd/hqds"));
	rig_write(&s->machine.rig, HQDS, "");
	await_second();
	CHECK(read_fails(s, GPUARB_ERROR_NOT_SUPPORTED, "0000:03:00.0: kfd/hqds"));
}

TEST(simulated_gpus_have_no_slots)
{
	static struct rig rig;
	sd_bus *bus;

	rig_new(&rig);
	rig_start(&rig, "--simulate=radeon-vii");
	bus = rig_connect(&rig, STRANGER);
	CHECK(is_error(call(with(call_arbiter(bus, "ReadSlots"), "s", "0")),
		       GPUARB_ERROR_NOT_SUPPORTED, "0000:03:00.0"));
	rig_done(&rig);
}

/* ---- a driver that does not answer --------------------------------------------------------- */

#define CALLS 257U /* one more than can wait */

TEST_WITH(calls_wait_for_a_driver_without_blocking_the_daemon, struct stage *s)
{
	static struct answer answers[CALLS];
	struct answer of_other;
	sd_bus *bus;

	bus = rig_connect(&s->machine.rig, 2);
	CHECK(mkfifo(rig_path(&s->machine.rig, HQDS), 0644) == 0);
	for (unsigned i = 0; i < CALLS; i++)
		call_send(read_slots(s, "0"), &answers[i]);
	CHECK(gpu_number(s->machine.bus, "Pipes") == 4); /* another call is answered */
	CHECK(!answers[0].came);
	call_send(with(call_arbiter(bus, "ReadSlots"), "s", "0"), &of_other);
	for (unsigned i = 0; i < CALLS; i++)
		AWAIT(s->machine.bus, answers[i].came);
	CHECK(count_answers(answers, CALLS, GPUARB_ERROR_TIMED_OUT) == CALLS - 1);
	CHECK(count_answers(answers, CALLS, SD_BUS_ERROR_LIMITS_EXCEEDED) == 1);
	AWAIT(bus, of_other.came); /* the calls of one user take the room of no other user */
	CHECK(count_answers(&of_other, 1, SD_BUS_ERROR_LIMITS_EXCEEDED) == 0);
	drop_answers(answers, CALLS);
	drop_answers(&of_other, 1);
}

/* ---- files that somebody else has written ------------------------------------------------------ */

#define LONG_USEC UINT64_C(600000000)

/* Writes other bytes into a text as the driver makes it. */
static void spoil(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	for (unsigned i = 0; i < 8; i++) {
		char bytes[8];

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = "0123456789abcdef\n :\0\xff"[rand() % 21];
		CHECK(pwrite(fd, bytes, (size_t)(rand() % 8), rand() % (st.st_size + 1)) >= 0);
	}
	if (rand() % 4 == 0)
		CHECK(ftruncate(fd, rand() % (st.st_size + 1)) == 0);
	close(fd);
}

static void replace_file(const char *path, unsigned kind)
{
	static const char *const targets[] = { "/dev/zero", "/dev/urandom", "/dev/full",
					       "/proc/self/mem", "." };

	if (kind > ARRAY_SIZE(targets)) {
		spoil(path);
		return;
	}
	CHECK(unlink(path) == 0);
	if (kind < ARRAY_SIZE(targets))
		CHECK(symlink(targets[kind], path) == 0);
	else
		CHECK(mkdir(path, 0755) == 0);
}

static void remove_any(const char *path)
{
	(void)(unlink(path) < 0 && rmdir(path) < 0);
}

TEST_WITH(whatever_is_in_place_of_the_descriptors_the_daemon_goes_on, struct stage *s)
{
	unsigned seed = SEED_OF_RUN("SLOTS_SEED"), rounds = 0;
	uint64_t begin = boottime_usec();

	while (rounds < 3 || (getenv("GPUARB_LONG") && boottime_usec() - begin < LONG_USEC)) {
		sd_bus_message *m;

		seed_rand(seed_nth(seed, rounds++));
		show(s, "");
		replace_file(rig_path(&s->machine.rig, rand() % 2 ? HQDS : MQDS),
			     (unsigned)rand() % 12);
		await_second();
		m = call(read_slots(s, "0"));
		CHECK(gpu_number(s->machine.bus, "Pipes") >= 1);
		sd_bus_message_unref(m);
		remove_any(rig_path(&s->machine.rig, HQDS));
		remove_any(rig_path(&s->machine.rig, MQDS));
	}
	printf("%u readings\n", rounds);
}

TEST_WITH(waiting_calls_are_answered_when_the_daemon_stops, struct stage *s)
{
	struct answer answer;

	CHECK(mkfifo(rig_path(&s->machine.rig, HQDS), 0644) == 0);
	call_send(read_slots(s, "0"), &answer);
	CHECK(gpu_number(s->machine.bus, "Pipes") == 4);
	rig_stop(&s->machine.rig);
	AWAIT(s->machine.bus, answer.came);
	CHECK(count_answers(&answer, 1, GPUARB_ERROR_TIMED_OUT) == 0);
	drop_answers(&answer, 1);
}
