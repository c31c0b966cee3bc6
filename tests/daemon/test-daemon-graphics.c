/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped daemon and gpuarb-fdinfo on a KFD tree and a fake /proc: processes that draw. */

#include <errno.h>
#include <sys/resource.h>

#include "check.h"
#include "fake-procfs.h"
#include "lend-live.h"
#include "machine.h"

NEEDS(daemon_missing);

#define GPU_PATH GPUARB_PATH_GPU "/0"
#define SECOND_NSEC UINT64_C(1000000000)

struct stage {
	struct machine machine;
	struct fake_procfs procfs;
};

static struct stage s;

/* graphics: the value of the key; helper: start gpuarb-fdinfo. */
static void prepare(const char *graphics, bool helper)
{
	char text[512];

	machine_build(&s.machine, 1);
	procfs_new(s.machine.rig.dir, &s.procfs);
	if (helper)
		procfs_serve(&s.procfs, NULL, NULL);
	snprintf(text, sizeof(text), "[daemon]\naudit-interval = 100ms\ngraphics = %s\n", graphics);
	rig_write(&s.machine.rig, "gpuarbd.conf", text);
	rig_write(&s.machine.rig, "tenants.d/10-all.conf", "[tenant *]\nclass = realtime\n");
}

static void start(void)
{
	char hardware[256];

	snprintf(hardware, sizeof(hardware), "%s --fdinfo=%s", s.machine.option, s.procfs.socket);
	rig_start(&s.machine.rig, hardware);
	machine_connect(&s.machine);
}

static void boot(const char *graphics, bool helper)
{
	prepare(graphics, helper);
	start();
}

static void halt(void)
{
	procfs_done(&s.procfs);
	machine_halt(&s.machine);
}

/* A process that has drawn for so long. */
static pid_t drawer(uint64_t gfx_nsec)
{
	pid_t pid;

	pid = idler(STRANGER, NULL);
	procfs_process(&s.procfs, pid, 0);
	procfs_client(
		&s.procfs, pid, 5,
		&(struct procfs_client){ .id = (unsigned)pid, .gfx_nsec = gfx_nsec, .vram = 4 });
	return pid;
}

static void observe(void)
{
	CHECK(is_fine(call(call_arbiter(s.machine.bus, "ObserveClients"))));
}

static bool graphics_is(const char *state)
{
	return gpu_says(s.machine.bus, "Graphics", state);
}

/* Returns how many clients the GPU has. */
static unsigned clients(struct row rows[static ROWS_MAX])
{
	return rows_of(s.machine.bus, GPU_PATH, GPUARB_INTERFACE_GPU, "Clients", rows);
}

TEST(processes_that_draw_are_on_the_bus_when_a_client_asks)
{
	struct row rows[ROWS_MAX];
	pid_t pid;

	boot("ignore", true);
	CHECK(graphics_is("unknown"));
	pid = drawer(SECOND_NSEC);
	observe();
	CHECK(graphics_is("drawn"));
	CHECK(clients(rows) == 1 && row_has(rows, " pid=%d ", pid) && row_has(rows, " uid=1 "));
	CHECK(row_has(rows, " command=") && !row_has(rows, " command= "));
	CHECK(row_has(rows, " draws=1 "));
	CHECK(row_number(rows, "gfx-nsec") == SECOND_NSEC && row_has(rows, " gfx-share=0 "));
	CHECK(row_has(rows, " vram=4096 "));

	end_process(pid);
	procfs_process_gone(&s.procfs, pid);
	do
		observe();
	while (!graphics_is("none"));
	CHECK(clients(rows) == 0);
	halt();
}

TEST(a_process_whose_pid_is_used_again_does_not_draw)
{
	struct row rows[ROWS_MAX];
	pid_t pid;

	boot("ignore", true);
	pid = idler(STRANGER, NULL);
	procfs_process(&s.procfs, pid, 1); /* another start time than /proc has */
	procfs_client(&s.procfs, pid, 5, &(struct procfs_client){ .id = 1, .gfx_nsec = 1 });
	observe();
	CHECK(graphics_is("none") && clients(rows) == 0);
	end_process(pid);
	halt();
}

#define NO_PID 4194305 /* above the largest that Linux gives */

/* Processes of STRANGER that have the device open, more than an observation lists. */
static void make_strangers(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pid_t pid = NO_PID + (pid_t)i;
		char path[192];

		procfs_process(&s.procfs, pid, 500);
		procfs_client(&s.procfs, pid, 3, &(struct procfs_client){ .id = 10 + i });
		snprintf(path, sizeof(path), "%s/%d", s.procfs.dir, (int)pid);
		CHECK(chown(path, STRANGER, (gid_t)-1) == 0);
	}
}

TEST(many_processes_of_another_user_do_not_make_it_unknown_whether_one_draws)
{
	struct live_lease lease;
	struct row rows[ROWS_MAX];
	sd_bus *victim;

	boot("refuse-realtime", true);
	make_strangers(700);
	victim = rig_connect(&s.machine.rig, 2);
	lease = reserve(victim, 15);
	CHECK(is_fine(call(release(victim, lease.path))));
	CHECK(graphics_is("none"));
	CHECK(clients(rows) > 0 && row_has(rows, " pid=0 ") && row_has(rows, " uid=1 "));
	CHECK(row_has(rows, " processes") && row_has(rows, " draws=0 "));
	procfs_client(&s.procfs, NO_PID + 699, 3,
		      &(struct procfs_client){ .id = 709, .gfx_nsec = SECOND_NSEC });
	while (!graphics_is("drawn"))
		observe();
	CHECK(clients(rows) > 0 && row_has(rows, " draws=1 ") && row_has(rows, " pid=0 "));
	CHECK(is_error(call(ask(victim, "Reserve", 15)), GPUARB_ERROR_NO_CAPACITY, "processes)"));
	leave(victim);
	halt();
}

TEST(a_realtime_request_is_refused_where_a_process_draws_and_granted_afterwards)
{
	struct live_lease lease;
	char says[64];
	pid_t pid;

	boot("refuse-realtime", true);
	pid = drawer(SECOND_NSEC);
	snprintf(says, sizeof(says), "pid %d (", pid);
	CHECK(is_error(call(ask(s.machine.bus, "Reserve", 15)), GPUARB_ERROR_NO_CAPACITY, says));
	lease = waiting(call(ask_for(s.machine.bus, "cus=15; wait-usec=forever")));
	CHECK(lease_says(s.machine.bus, lease.path, "Reason", "draws"));
	end_process(pid);
	procfs_process_gone(&s.procfs, pid);
	await_record(lease.holder, GPUARB_RECORD_GRANTED);
	halt();
}

TEST(a_lease_in_force_stays_and_the_journal_names_the_process_once)
{
	struct live_lease lease;
	const char *said, *first;
	char line[64];
	pid_t pid;

	prepare("warn", true);
	log_begin(&s.machine.rig);
	start();
	lease = reserve(s.machine.bus, 15);
	pid = drawer(SECOND_NSEC);
	AWAIT(s.machine.bus, graphics_is("drawn"));
	for (unsigned i = 0; i < 3; i++)
		observe();
	CHECK(lease_exists(s.machine.bus, lease.path));
	end_process(pid);
	said = log_end(&s.machine.rig);
	snprintf(line, sizeof(line), "pid %d (", pid);
	first = strstr(said, line);
	CHECK(first && strstr(first, "draws") && !strstr(first + 1, line));
	halt();
}

TEST(without_the_helper_it_is_unknown_and_a_strict_policy_refuses)
{
	boot("refuse-realtime", false);
	observe();
	CHECK(graphics_is("unknown"));
	CHECK(is_error(call(ask(s.machine.bus, "Reserve", 15)), GPUARB_ERROR_NO_CAPACITY,
		       "gpuarb-fdinfo.socket"));
	procfs_serve(&s.procfs, NULL, NULL);
	while (!graphics_is("none"))
		observe();
	reserve(s.machine.bus, 15);
	halt();
}

/* ---- user queues ----------------------------------------------------------------------------- */

#define DRI "debug/dri/client-7/"

/* A GPU that can have user queues, in the first place. */
static void boot_with_user_queues(void)
{
	char hardware[320];

	machine_build(&s.machine, 0);
	s.machine.gpus[0] = machine_model("rx7900xtx");
	strcpy(s.machine.gpus[0].name, "0000:03:00.0");
	machine_replug(&s.machine, 1);
	CHECK(fake_sysfs_print(s.machine.sys, FAKE_PARAMETERS "/user_queue", "1\n") == 0);
	procfs_new(s.machine.rig.dir, &s.procfs);
	procfs_serve(&s.procfs, NULL, NULL);
	rig_write(&s.machine.rig, "tenants.d/10-all.conf", "[tenant *]\nclass = realtime\n");
	snprintf(hardware, sizeof(hardware), "%s --fdinfo=%s --debugfs=%s/debug", s.machine.option,
		 s.procfs.socket, s.machine.rig.dir);
	rig_start(&s.machine.rig, hardware);
	machine_connect(&s.machine);
}

static void make_debugfs(const char *last)
{
	static const char *const names[] = { "debug",       "debug/dri",
					     "debug/dri/0", "debug/dri/client-7",
					     DRI "device",  DRI "queue_1" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CHECK(mkdir(rig_path(&s.machine.rig, names[i]), 0755) == 0 || errno == EEXIST);
		if (strcmp(names[i], last) == 0)
			return;
	}
}

static bool is_refused(const char *why)
{
	return is_error(call(ask(s.machine.bus, "Reserve", 16)), GPUARB_ERROR_NO_CAPACITY, why);
}

TEST(user_queue_of_the_graphics_driver_that_computes_refuses_realtime_leases)
{
	pid_t pid;

	boot_with_user_queues();
	pid = drawer(0);
	CHECK(is_refused("unknown"));
	make_debugfs("debug/dri/0");
	rig_write(&s.machine.rig, "debug/dri/0/name", "amdgpu dev=0000:03:00.0\n");
	CHECK(is_refused("unknown")); /* a kernel that shows no client */
	make_debugfs(DRI "queue_1");
	rig_write(&s.machine.rig, DRI "device/name",
		  "amdgpu dev=0000:03:00.0 unique=0000:03:00.0\n");
	rig_write(&s.machine.rig, DRI "queue_1/mqd_info", "queue_type: 1\n");
	AWAIT_STATE(is_refused("compute: 1,"));
	rig_write(&s.machine.rig, DRI "queue_1/mqd_info", "queue_type: 0\n");
	AWAIT_STATE(is_fine(call(ask(s.machine.bus, "Reserve", 16))));
	CHECK(unlink(rig_path(&s.machine.rig, DRI "device/name")) == 0);
	AWAIT_STATE(is_refused("unknown"));
	end_process(pid);
	procfs_process_gone(&s.procfs, pid);
	CHECK(unlink(rig_path(&s.machine.rig, DRI "queue_1/mqd_info")) == 0);
	AWAIT_STATE(is_fine(call(ask(s.machine.bus, "Reserve", 16))));
	halt();
}

/* The reader is given up after 5 s, which is longer than the interval of observations. */
TEST(slow_reader_of_user_queues_delays_realtime_requests_once)
{
	boot_with_user_queues();
	make_debugfs(DRI "queue_1");
	rig_write(&s.machine.rig, DRI "device/name",
		  "amdgpu dev=0000:03:00.0 unique=0000:03:00.0\n");
	CHECK(mkfifo(rig_path(&s.machine.rig, DRI "queue_1/mqd_info"), 0600) == 0);
	CHECK(is_fine(call(ask_for(s.machine.bus, "cus=16; class=besteffort"))));
	CHECK(is_refused("unknown"));
	halt();
}

/* ---- memory -------------------------------------------------------------------------------- */

#define MIB (UINT64_C(1) << 20)

static uint64_t vram_free(void)
{
	return number_of(s.machine.bus, GPU_PATH, GPUARB_INTERFACE_GPU, "VramFree");
}

TEST(vram_that_drm_counts_beyond_what_a_lease_declared_is_not_free)
{
	struct live_lease lease;
	struct procfs_client client = { .id = 7, .vram = 300 * 1024 };
	uint64_t total;
	pid_t pid;
	int fd;

	boot("warn", true);
	total = vram_free();
	pid = idler(0, &fd);
	lease = granted(
		call(ask_for(s.machine.bus, "cus=15 vram=%" PRIu64 "; process=%d", 200 * MIB, fd)));
	CHECK(vram_free() == total - 200 * MIB);
	procfs_process(&s.procfs, pid, 0);
	procfs_client(&s.procfs, pid, 5, &client);
	AWAIT(s.machine.bus,
	      /* 100 MiB more than promised, rounded up to 16; a process that KFD does not know */
	      vram_free() == total - 312 * MIB);
	machine_use(&s.machine, pid, 0, 1);
	client.vram = 250 * 1024;
	procfs_client(&s.procfs, pid, 5, &client);
	AWAIT(s.machine.bus, vram_free() == total - 264 * MIB);
	client.vram = 100 * 1024;
	procfs_client(&s.procfs, pid, 5, &client);
	AWAIT(s.machine.bus, vram_free() == total - 200 * MIB);
	CHECK(lease_exists(s.machine.bus, lease.path));
	end_process(pid);
	halt();
}

/* ---- a helper that does not answer ----------------------------------------------------------- */

/* In place of gpuarb-fdinfo. */
static void serve_script(const char *text)
{
	const char *script = rig_path(&s.machine.rig, "script");

	rig_write(&s.machine.rig, "script", text);
	CHECK(chmod(script, 0755) == 0);
	procfs_serve(&s.procfs, script, NULL);
}

TEST(a_request_waits_for_a_helper_that_hangs_and_other_calls_do_not)
{
	struct answer answer;

	prepare("refuse-realtime", false);
	serve_script("#!/bin/sh\nexec sleep 60\n");
	start();
	call_send(ask(s.machine.bus, "Reserve", 15), &answer);
	CHECK(gpu_number(s.machine.bus, "Cus") == 60 && gpu_number(s.machine.bus, "CusFree") == 60);
	CHECK(!answer.came);
	procfs_done(&s.procfs);
	AWAIT(s.machine.bus, answer.came);
	CHECK(is_error(answer.m, GPUARB_ERROR_NO_CAPACITY, "unknown"));
	halt();
}

TEST(requests_full_of_file_descriptors_that_wait_do_no_harm)
{
	enum { CALLS = 40, FDS = 16 };
	static struct answer answers[CALLS];
	const struct rlimit few = { 320, 320 };
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sd_bus *user;

	if (getenv("GPUARB_BUS"))
		SKIP("dbus-broker disconnects a user with so many file descriptors");
	prepare("refuse-realtime", false);
	serve_script("#!/bin/sh\nexec sleep 60\n");
	start();
	CHECK(prlimit(s.machine.rig.daemon, RLIMIT_NOFILE, &few, NULL) == 0);
	user = rig_connect(&s.machine.rig, STRANGER);
	for (unsigned i = 0; i < CALLS; i++) {
		sd_bus_message *m = call_arbiter(user, "Reserve");

		with(m, "aa{sv}", 1, 1, "cus", "u", 15);
		CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
		for (unsigned j = 0; j < FDS; j++)
			with(m, "{sv}", "unheard-of", "h", null);
		CHECK(sd_bus_message_close_container(m) >= 0);
		call_send(m, &answers[i]);
	}
	settle(user);
	CHECK(gpu_number(s.machine.bus, "CusFree") == 60 && !answers[0].came);
	procfs_done(&s.procfs);
	for (unsigned i = 0; i < CALLS; i++)
		AWAIT(user, answers[i].came);
	CHECK(count_answers(answers, CALLS, GPUARB_ERROR_INVALID_REQUEST) +
		      count_answers(answers, CALLS, SD_BUS_ERROR_LIMITS_EXCEEDED) ==
	      CALLS);
	drop_answers(answers, CALLS);
	close(null);
	halt();
}

TEST(a_call_that_waits_is_forgotten_with_its_caller_and_answered_when_the_daemon_ends)
{
	struct answer answer, lost;
	sd_bus *other;

	prepare("ignore", false);
	serve_script("#!/bin/sh\nexec sleep 60\n");
	start();
	other = rig_connect(&s.machine.rig, STRANGER);
	call_send(call_arbiter(other, "ObserveClients"), &lost);
	settle(other);
	leave(other);
	call_send(call_arbiter(s.machine.bus, "ObserveClients"), &answer);
	CHECK(gpu_number(s.machine.bus, "Cus") == 60);
	CHECK(!answer.came && !lost.came);
	rig_stop(&s.machine.rig);
	AWAIT(s.machine.bus, answer.came);
	CHECK(is_error(answer.m, GPUARB_ERROR_SHUTDOWN, ""));
	halt();
}

/* ---- when nobody asks ------------------------------------------------------------------------ */

/* gpuarb-fdinfo, which leaves a file when it is started. */
static void serve_marked(void)
{
	char text[512];

	snprintf(text, sizeof(text), "#!/bin/sh\n: >%s\nexec %s \"$@\"\n",
		 rig_path(&s.machine.rig, "started"), getenv("GPUARB_FDINFO"));
	serve_script(text);
}

static bool was_started(void)
{
	return access(rig_path(&s.machine.rig, "started"), F_OK) == 0;
}

TEST(the_helper_is_not_started_without_a_lease_or_with_ignore)
{
	prepare("warn", false);
	serve_marked();
	start();
	for (unsigned i = 0; i < 5; i++)
		CHECK(gpu_number(s.machine.bus, "CusFree") == 60);
	CHECK(!was_started());
	reserve(s.machine.bus, 15);
	AWAIT(s.machine.bus, graphics_is("none"));
	CHECK(was_started());
	halt();

	prepare("ignore", false);
	serve_marked();
	start();
	reserve(s.machine.bus, 15);
	CHECK(gpu_number(s.machine.bus, "CusFree") == 45);
	CHECK(!was_started() && graphics_is("unknown"));
	observe();
	CHECK(was_started() && graphics_is("none"));
	halt();
}
