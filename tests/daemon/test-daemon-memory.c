/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The shipped daemon answers each call although an allocation fails on the way, whichever it is. A short
 * run lets every fifth one fail.
 */

#include <stdatomic.h>
#include <sys/mman.h>

#include "check.h"
#include "filtered.h"
#include "machine.h"
#include "seed.h"

NEEDS(daemon_missing);

#define OFF (-1)
#define SANITIZER 99 /* exitcode in ASAN_OPTIONS */
#define LOADER 127   /* before main() */
#define ALLOCATIONS_MAX 2000

struct stage {
	struct machine machine;
	struct filtered process;
	sd_bus *bus, *other;
	atomic_long *left; /* the daemon's: tests/rigs/lack-preload.c */
	struct live_lease lease;
};

/* What daemons that start from now on have left. */
static atomic_long *lack_begin(const struct rig *rig)
{
	atomic_long *left;
	long none = OFF;
	int fd = open(rig_path(rig, "lack"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	CHECK(fd >= 0 && write(fd, &none, sizeof(none)) == sizeof(none));
	left = mmap(NULL, sizeof(*left), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(left != MAP_FAILED);
	close(fd);
	CHECK(setenv("GPUARB_LACK", rig_path(rig, "lack"), 1) == 0);
	CHECK(setenv("LD_PRELOAD", getenv("LACK_PRELOAD"), 1) == 0);
	return left;
}

/* On these GPUs, with a lease of so many CUs, if not 0. */
static void stage_boot(struct stage *s, const char *hardware, unsigned cus)
{
	rig_write(&s->machine.rig, "gpuarbd.conf", "[daemon]\naudit-interval = 1h\n");
	s->left = lack_begin(&s->machine.rig);
	rig_start_managed(&s->machine.rig, hardware, "--store-max=64");
	CHECK(unsetenv("LD_PRELOAD") == 0);
	s->bus = rig_connect(&s->machine.rig, 0);
	s->lease.holder = -1;
	if (cus > 0)
		s->lease = reserve(s->bus, cus);
}

static void stage_start(struct stage *s, unsigned cus)
{
	memset(s, 0, sizeof(*s));
	rig_new(&s->machine.rig);
	stage_boot(s, "--simulate=radeon-vii", cus);
}

/* On a GPU of a fake sysfs, with a lease and texts of debugfs. */
static void stage_start_machine(struct stage *s)
{
	char options[256], text[64];

	memset(s, 0, sizeof(*s));
	machine_build(&s->machine, 1);
	CHECK(mkdir(rig_path(&s->machine.rig, "debug"), 0755) == 0);
	CHECK(mkdir(rig_path(&s->machine.rig, "debug/kfd"), 0755) == 0);
	snprintf(text, sizeof(text), "Node 1, gpu_id %x:\n", machine_gpu_id(&s->machine, 0));
	rig_write(&s->machine.rig, "debug/kfd/hqds", text);
	snprintf(text, sizeof(text), "Process %d PASID 0x8000:\n", (int)getpid());
	rig_write(&s->machine.rig, "debug/kfd/mqds", text);
	snprintf(options, sizeof(options), "%s --debugfs=%s", s->machine.option,
		 rig_path(&s->machine.rig, "debug"));
	stage_boot(s, options, 15);
}

static void stage_end(struct stage *s)
{
	if (s->lease.holder >= 0)
		close(s->lease.holder);
	munmap(s->left, sizeof(*s->left));
	rig_done(&s->machine.rig);
}

/* A daemon that could not answer leaves the bus, which answers for it, and comes back. */
static void await_daemon(struct stage *s)
{
	bool answers;

	do {
		sd_bus_message *m =
			call(call_new(s->bus, GPUARB_PATH, "org.freedesktop.DBus.Peer", "Ping"));

		answers = !sd_bus_message_is_method_error(m, NULL);
		sd_bus_message_unref(m);
	} while (!answers);
}

/* Whether the call was answered by the daemon or for it; *ret_fine: without an error. Takes it. */
static bool is_answered(sd_bus_message *m, sd_bus_message **ret)
{
	uint64_t before = boottime_usec();

	*ret = call(m);
	return !sd_bus_message_is_method_error(*ret, SD_BUS_ERROR_NO_REPLY) ||
	       boottime_usec() - before < await_limit_usec() / 2;
}

typedef sd_bus_message *make_t(struct stage *s);

/* Lets each allocation of the call fail, in a call of its own. */
static void deny_each(struct stage *s, make_t *make,
		      void (*after)(struct stage *s, sd_bus_message *m))
{
	sd_bus_message *answer;
	long left;

	for (long step = check_one_in(5, 1), n = SEED_OF_RUN("SEED") % step; n < ALLOCATIONS_MAX;
	     n += step) {
		sd_bus_message *m = make(s);

		*s->left = n;
		if (!is_answered(m, &answer)) {
			fprintf(stderr, "no answer after %ld allocations\n", n);
			abort();
		}
		left = *s->left;
		*s->left = OFF;
		after(s, answer);
		await_daemon(s);
		if (left >= 0) {
			printf("%ld allocations\n", n - left);
			CHECK(n > 0);
			return;
		}
	}
	CHECK(false); /* the call does not end */
}

static void drop_answer(struct stage *, sd_bus_message *m)
{
	sd_bus_message_unref(m);
}

/* ---- calls --------------------------------------------------------------------------------- */

static sd_bus_message *make_plan(struct stage *s)
{
	return ask(s->bus, "Plan", 15);
}

static sd_bus_message *make_reserve(struct stage *s)
{
	return ask(s->bus, "Reserve", 15);
}

/* Closes the holder, if there is one: the lease ends. */
static void end_lease(struct stage *s, sd_bus_message *m)
{
	if (!sd_bus_message_is_method_error(m, NULL)) {
		struct live_lease lease = granted(m);

		close(lease.holder);
	} else {
		sd_bus_message_unref(m);
	}
	await_daemon(s);
	while (gpu_number(s->bus, "CusFree") != 60)
		continue;
}

static sd_bus_message *make_tree(struct stage *s)
{
	return call_new(s->bus, GPUARB_PATH, "org.freedesktop.DBus.ObjectManager",
			"GetManagedObjects");
}

static sd_bus_message *make_resize(struct stage *s)
{
	return resize(s->bus, s->lease.path, gpu_number(s->bus, "CusFree") == 45 ? 30 : 15);
}

static sd_bus_message *make_drain(struct stage *s)
{
	return drain(s->bus, "0");
}

static sd_bus_message *make_reload(struct stage *s)
{
	return call_arbiter(s->bus, "Reload");
}

/* The first call of a connection: gpuarbd asks the bus who that is. */
static sd_bus_message *make_first(struct stage *s)
{
	leave(s->other);
	s->other = rig_connect(&s->machine.rig, 0);
	return call_arbiter(s->other, "ReadLimits");
}

/* Lists the objects below. */
static sd_bus_message *make_introspect(struct stage *s)
{
	return call_new(s->bus, GPUARB_PATH, "org.freedesktop.DBus.Introspectable", "Introspect");
}

static sd_bus_message *make_usage(struct stage *s)
{
	return with(call_arbiter(s->bus, "ReadUsage"), "t", UINT64_C(0));
}

/* A process that is bound again changes nothing. */
static sd_bus_message *make_bind(struct stage *s)
{
	int fd = pidfd_open(getpid(), 0);
	sd_bus_message *m = with(call_lease(s->bus, s->lease.path, "Bind"), "h", fd);

	CHECK(fd >= 0);
	close(fd);
	return m;
}

static sd_bus_message *make_slots(struct stage *s)
{
	return with(call_arbiter(s->bus, "ReadSlots"), "s", "0");
}

static sd_bus_message *make_cap(struct stage *s)
{
	if (s->process.pid == 0)
		s->process = filtered_start();
	return with(call_lease(s->bus, s->lease.path, "Cap"), "h", s->process.listener);
}

/* The processes end, which ends the listener that gpuarbd may have. */
static void end_filtered(struct stage *s, sd_bus_message *m)
{
	sd_bus_message_unref(m);
	filtered_end(&s->process);
	s->process.pid = 0;
}

/* ---- tests --------------------------------------------------------------------------------- */

static void run(unsigned cus, make_t *make, void (*after)(struct stage *s, sd_bus_message *m))
{
	static struct stage s;

	stage_start(&s, cus);
	deny_each(&s, make, after);
	stage_end(&s);
}

TEST_CASE(plan_is_answered_without_memory, run(0, make_plan, drop_answer));
TEST_CASE(reserve_is_answered_without_memory, run(0, make_reserve, end_lease));
TEST_CASE(refusal_is_answered_without_memory, run(60, make_reserve, drop_answer));

TEST(get_managed_objects_is_answered_without_memory)
{
	run(15, make_tree, drop_answer);
	run(15, make_introspect, drop_answer);
}

TEST(drain_and_reload_are_answered_without_memory)
{
	run(0, make_drain, drop_answer);
	run(0, make_reload, drop_answer);
}

TEST_CASE(resize_is_answered_without_memory, run(15, make_resize, drop_answer));
TEST_CASE(first_call_of_a_connection_is_answered_without_memory, run(0, make_first, drop_answer));

TEST(usage_is_answered_and_processes_are_bound_without_memory)
{
	run(15, make_usage, drop_answer);
	run(15, make_bind, drop_answer);
}

TEST(calls_that_read_the_driver_are_answered_without_memory)
{
	static struct stage s;

	stage_start_machine(&s);
	deny_each(&s, make_slots, drop_answer);
	deny_each(&s, make_plan, drop_answer);
	deny_each(&s, make_cap, end_filtered);
	stage_end(&s);
}

/* How many allocations more each start may make than the one before. Coverage needs a start for each. */
static unsigned start_step(void)
{
	return getenv("GCOV_ERROR_FILE") ? 1 : check_one_in(37, 7);
}

/* The service manager starts gpuarbd again until it has the lease that the one before had saved. */
TEST(saved_lease_survives_starts_without_memory)
{
	static struct stage s;
	unsigned step = start_step();

	stage_start(&s, 15);
	s.machine.rig.may_fail = true;
	for (long n = SEED_OF_RUN("SEED") % step, rest = OFF; rest < 0; n += step) {
		*s.left = n;
		rig_crash(&s.machine.rig);
		rest = *s.left;
		*s.left = OFF;
		await_daemon(&s);
		CHECK(lease_says(s.bus, s.lease.path, "State", "granted"));
		CHECK(gpu_number(s.bus, "CusFree") == 45);
	}
	stage_end(&s);
}

/* Where an object cannot be added for lack of memory, sd-bus 252 fails an assertion, or compares a path
 * that it has freed: the caller of strcmp() is in its library. */
static bool fails_in_sd_bus(int status, const char *text)
{
	const char *caller = status == SANITIZER ? strstr(text, "#1 ") : NULL, *library;

	if (!caller)
		return status == 128 + SIGABRT && strstr(text, "src/libsystemd/");
	library = strstr(caller, "libsystemd.so");
	return library && library < strchrnul(caller, '\n');
}

/* gcov 12 crashes where it has no memory to write its counters. */
static bool fails_in_gcov(int status)
{
	return status == 128 + SIGSEGV && getenv("GCOV_ERROR_FILE");
}

/* Stops when it is told, or fails as a daemon does: sd-event, too, takes memory for an event. */
static bool is_end(int status, const char *text)
{
	return (status >= 0 && status < SANITIZER) || status == LOADER || fails_in_gcov(status) ||
	       fails_in_sd_bus(status, text);
}

TEST(daemon_starts_or_ends_with_a_status_without_memory)
{
	static struct machine machine;
	unsigned failures = 0, step = start_step();
	long n = SEED_OF_RUN("SEED") % step;
	atomic_long *left;

	machine_build(&machine, 2);
	rig_write(
		&machine.rig, "tenants.d/10-all.conf",
		"[tenant a]\nmatch-user = root\nreserved-gpu = 0000:03:00.0\nreserved-queues = 1\n");
	left = lack_begin(&machine.rig);
	printf("from %ld on\n", n);
	for (*left = OFF; *left < 0; n += step) {
		const char *text;
		int status;

		log_begin(&machine.rig);
		*left = n;
		status = rig_try_start(&machine.rig, machine.option);
		if (status == RIG_READY)
			status = rig_try_stop(&machine.rig);
		text = log_end(&machine.rig);
		if (!is_end(status, text)) {
			fprintf(stderr, "%sstatus %d after %ld allocations\n", text, status, n);
			abort();
		}
		failures += status != 0;
	}
	CHECK(unsetenv("LD_PRELOAD") == 0);
	printf("%ld allocations, %u failures\n", n - step - *left, failures);
	munmap(left, sizeof(*left));
	rig_done(&machine.rig);
}
