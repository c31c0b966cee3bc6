/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Journal entries of the shipped daemon: lease changes with their fields. */

#include "check.h"
#include "journal-rig.h"
#include "kfd-mqd-rig.h"
#include "machine.h"

NEEDS(daemon_missing);

#define TENANT "[tenant gold]\nmatch-user = daemon\nclass = guaranteed\nmax-cus = 30\n"
#define GPU "GPUARB_GPU=0000:03:00.0"

#define NEEDS_JOURNAL(journal)                                           \
	do {                                                             \
		*(journal) = journal_open();                             \
		if (*(journal) < 0)                                      \
			SKIP("there can be no journal of its own here"); \
	} while (0)

/* Daemons that are started from now on until log_end() take a file for the journal. */
static void begin(struct rig *rig)
{
	log_begin(rig);
	journal_reads_stderr();
}

/* A simulated GPU, a service manager with a store, and a user who matches tenant gold. */
struct scene {
	struct rig rig;
	sd_bus *root, *user;
	int journal;
};

static void arrive(struct scene *scene)
{
	rig_new(&scene->rig);
	rig_write(&scene->rig, "tenants.d/10-gold.conf", TENANT);
	begin(&scene->rig);
	rig_start_managed(&scene->rig, "--simulate=radeon-vii", "--store-max=64");
	log_end(&scene->rig);
	scene->root = rig_connect(&scene->rig, 0);
	scene->user = rig_connect(&scene->rig, STRANGER);
}

static void depart(struct scene *scene)
{
	struct entry entry;

	rig_done(&scene->rig);
	while (entry_take(scene->journal, &entry))
		;
	close(scene->journal);
}

static bool is_golds(const struct entry *entry)
{
	return entry_has(entry, "GPUARB_TENANT=gold") && entry_has(entry, "GPUARB_UID=1");
}

static bool is_of(const struct entry *entry, const struct live_lease *lease)
{
	char field[64];

	snprintf(field, sizeof(field), "GPUARB_LEASE=%" PRIu64, lease->id);
	return entry_has(entry, field);
}

#define ARRIVE(scene)                             \
	do {                                      \
		NEEDS_JOURNAL(&(scene)->journal); \
		arrive(scene);                    \
	} while (0)

FIXTURE(struct scene, scene, ARRIVE(scene), depart(scene));

TEST_WITH(grant_resize_and_release_are_logged, struct scene *scene)
{
	struct live_lease lease;
	struct entry entry;

	lease = reserve(scene->user, 15);
	entry = entry_next(scene->journal, EVENT_GRANTED);
	CHECK(is_golds(&entry) && is_of(&entry, &lease) && entry_has(&entry, GPU));
	CHECK(entry_has(&entry, "SYSLOG_IDENTIFIER=gpuarbd") && entry_says(&entry, "15 CUs"));

	CHECK(is_fine(call(resize(scene->user, lease.path, 30))));
	entry = entry_next(scene->journal, EVENT_RESIZED);
	CHECK(is_golds(&entry) && is_of(&entry, &lease) && entry_has(&entry, GPU));
	CHECK(entry_says(&entry, "30 CUs"));

	CHECK(is_fine(call(release(scene->user, lease.path))));
	entry = entry_next(scene->journal, EVENT_ENDED);
	CHECK(is_golds(&entry) && is_of(&entry, &lease) && entry_has(&entry, GPU));
	CHECK(entry_says(&entry, ": released"));
	CHECK(!entry_take(scene->journal, &entry));
}

static sd_bus_message *ask_as(sd_bus *bus, unsigned cus, const char *tenant)
{
	return ask_for(bus, "cus=%u; tenant=%s", cus, tenant);
}

TEST_WITH(refusals_are_logged_under_a_tenant_only_if_the_caller_matches_it, struct scene *scene)
{
	struct live_lease lease;
	struct entry entry;

	CHECK(is_error(call(ask(scene->user, "Reserve", 45)), GPUARB_ERROR_QUOTA_EXCEEDED, ""));
	entry = entry_next(scene->journal, EVENT_REFUSED);
	CHECK(is_golds(&entry) && entry_has(&entry, GPU) && !entry_names(&entry, "GPUARB_LEASE="));
	CHECK(entry_says(&entry, "max-cus"));

	/* An invalid request is for its caller alone. */
	CHECK(is_error(call(ask(scene->user, "Reserve", 0)), GPUARB_ERROR_INVALID_REQUEST, ""));

	CHECK(is_error(call(ask_as(scene->root, 15, "gold")), GPUARB_ERROR_NOT_PERMITTED, ""));
	entry = entry_next(scene->journal, EVENT_REFUSED);
	CHECK(entry_has(&entry, "GPUARB_UID=0") && !entry_names(&entry, "GPUARB_TENANT="));

	lease = reserve(scene->user, 15);
	entry_next(scene->journal, EVENT_GRANTED);
	CHECK(is_error(call(resize(scene->user, lease.path, 45)), GPUARB_ERROR_QUOTA_EXCEEDED, ""));
	entry = entry_next(scene->journal, EVENT_REFUSED);
	CHECK(is_golds(&entry) && is_of(&entry, &lease) && entry_has(&entry, GPU));
	CHECK(!entry_take(scene->journal, &entry));
}

/* A client that repeats a refused request without a pause. */
TEST_WITH(a_flood_of_refusals_is_bounded_for_each_user, struct scene *scene)
{
	unsigned told = 0, more = 0, others = 0, windows;
	uint64_t began;
	struct entry entry;

	began = boottime_usec();
	for (unsigned i = 0; i < 150; i++) {
		sd_bus_message_unref(call(ask(scene->user, "Reserve", 45)));
		while (entry_take(scene->journal, &entry)) {
			told++;
			if (entry_says(&entry, "not logged"))
				more++;
		}
	}
	CHECK(is_error(call(ask_as(scene->root, 15, "gold")), GPUARB_ERROR_NOT_PERMITTED, ""));
	while (entry_take(scene->journal, &entry))
		if (entry_has(&entry, "GPUARB_UID=0"))
			others++;
	windows = 1 + (unsigned)((boottime_usec() - began) / 30000000); /* half a minute each */
	CHECK(told >= 100 && told <= 100 * windows && more <= windows && others == 1);
	CHECK(windows > 1 || more == 1);
}

/* A client that takes and returns leases without a pause. */
TEST_WITH(a_flood_of_grants_and_ends_is_bounded_for_each_user, struct scene *scene)
{
	unsigned grants = 0, ends = 0, more = 0, others = 0, windows;
	struct live_lease lease;
	uint64_t began;
	struct entry entry;

	began = boottime_usec();
	for (unsigned i = 0; i < 150; i++) {
		lease = reserve(scene->user, 15);
		CHECK(is_fine(call(release(scene->user, lease.path))));
		close(lease.holder);
		while (entry_take(scene->journal, &entry)) {
			grants += entry_says(&entry, "tenant gold: 15 CUs");
			ends += entry_says(&entry, "released");
			more += entry_says(&entry, "not logged");
		}
	}
	lease = reserve(scene->root, 15);
	CHECK(is_fine(call(release(scene->root, lease.path))));
	close(lease.holder);
	while (entry_take(scene->journal, &entry))
		others += entry_has(&entry, "GPUARB_UID=0");
	windows = 1 + (unsigned)((boottime_usec() - began) / 30000000); /* half a minute each */
	CHECK(grants >= 100 && grants <= 100 * windows && ends >= 100 && ends <= 100 * windows);
	CHECK(others == 2 && more <= 2 * (2 * windows - 1));
	CHECK(windows > 1 || more == 2);
}

TEST_WITH(waiting_leases_are_logged_until_they_are_granted_or_end, struct scene *scene)
{
	struct live_lease first, second, third;
	struct entry entry;

	first = reserve(scene->root, 60);
	entry_next(scene->journal, EVENT_GRANTED);
	second = waiting(call(ask_for(scene->user, "gpu=0 cus=30; wait-usec=forever")));
	entry = entry_next(scene->journal, EVENT_WAITING);
	CHECK(is_golds(&entry) && is_of(&entry, &second) && entry_has(&entry, GPU));

	third = waiting(call(ask_for(scene->root, "cus=60; wait-usec=1")));
	entry = entry_next(scene->journal, EVENT_WAITING);
	CHECK(is_of(&entry, &third) && !entry_names(&entry, "GPUARB_GPU="));
	entry = entry_next(scene->journal, EVENT_ENDED);
	CHECK(is_of(&entry, &third));

	close(first.holder);
	entry = entry_next(scene->journal, EVENT_ENDED);
	CHECK(is_of(&entry, &first) && entry_says(&entry, "holder"));
	entry = entry_next(scene->journal, EVENT_GRANTED);
	CHECK(is_golds(&entry) && is_of(&entry, &second) && entry_has(&entry, GPU));
	CHECK(entry_says(&entry, "waiting"));
}

TEST_WITH(recovery_loss_and_revocation_are_logged, struct scene *scene)
{
	struct live_lease kept, spoilt;
	struct entry entry;
	char file[64];

	kept = reserve(scene->user, 15);
	spoilt = reserve(scene->root, 15);
	entry_next(scene->journal, EVENT_GRANTED);
	entry_next(scene->journal, EVENT_GRANTED);
	rig_down(&scene->rig);
	snprintf(file, sizeof(file), "run/leases/%" PRIu64 ".json", spoilt.id);
	rig_write(&scene->rig, file, "{");
	rig_up(&scene->rig);
	entry = entry_next(scene->journal, EVENT_LOST);
	CHECK(is_of(&entry, &spoilt) && !entry_names(&entry, "GPUARB_UID="));
	entry = entry_next(scene->journal, EVENT_ADOPTED);
	CHECK(is_golds(&entry) && is_of(&entry, &kept) && entry_has(&entry, GPU));

	CHECK(is_fine(call(release(scene->root, kept.path))));
	entry = entry_next(scene->journal, EVENT_REVOKED);
	CHECK(is_golds(&entry) && is_of(&entry, &kept) && entry_says(&entry, "administrator"));
	CHECK(!entry_take(scene->journal, &entry));
}

/* net.unix.max_dgram_qlen is 10 by default, and seldom above 512. */
TEST_WITH(a_stopped_journal_blocks_neither_clients_nor_entries, struct scene *scene)
{
	struct live_lease lease;
	char text[80];

	for (unsigned i = 0; i < 600; i++) {
		lease = reserve(scene->user, 15);
		CHECK(is_fine(
			call(release(scene->root, lease.path)))); /* all revocations are logged */
		close(lease.holder);
	}
	snprintf(text, sizeof(text), "<5>lease %" PRIu64 " of uid 1 ended: released by", lease.id);
	CHECK(log_says(&scene->rig, text));
}

/* ---- on hardware -------------------------------------------------------------------- */

static void boot(struct machine *machine, const char *config)
{

	machine_build(machine, 1);
	rig_write(&machine->rig, "gpuarbd.conf", config);
	begin(&machine->rig);
	machine_boot(machine);
	log_end(&machine->rig);
}

#define QUICK "[daemon]\naudit-interval = 100ms\ndrift-grace = 1ms\n"

static void forget(const struct machine *machine, pid_t pid, unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		CHECK(fake_sysfs_queue_gone(machine->sys, pid, i) == 0);
}

TEST(excess_is_logged_when_it_begins_and_when_it_ends)
{
	static struct machine machine;
	struct live_lease lease;
	struct entry entry;
	int fd, journal;
	pid_t pid;

	NEEDS_JOURNAL(&journal);
	boot(&machine, QUICK);
	pid = idler(0, &fd);
	lease = granted(call(ask_bound(machine.bus, 15, fd)));
	entry_next(journal, EVENT_GRANTED);
	machine_use(&machine, pid, 0, 3);
	entry = entry_next(journal, EVENT_EXCEEDED);
	CHECK(is_of(&entry, &lease) && entry_has(&entry, "GPUARB_UID=0") && entry_has(&entry, GPU));
	CHECK(entry_has(&entry, "GPUARB_TENANT=*") && entry_says(&entry, "(granted: 2)"));
	machine_use(&machine, pid, 0, 4);
	AWAIT(machine.bus, lease_says(machine.bus, lease.path, "Reason", "4 queues on"));
	forget(&machine, pid, 2, 4);
	entry = entry_next(journal, EVENT_WITHIN);
	CHECK(is_of(&entry, &lease) && entry_has(&entry, GPU));

	machine_replug(&machine, 0);
	entry = entry_next(journal, EVENT_REVOKED);
	CHECK(is_of(&entry, &lease) && entry_has(&entry, GPU) && entry_says(&entry, "gone"));
	end_process(pid);
	machine_halt(&machine);
	close(journal);
}

/* Writes the descriptors: a queue of each of these processes on all CUs. */
static void show_queues(const struct machine *machine, const pid_t *pids, unsigned n)
{
	_cleanup_(page_done) struct page page = page_new();

	for (unsigned i = 0; i < n; i++) {
		page_add(&page, "Process %d PASID 0x8000:\n  Compute queue on device %x\n", pids[i],
			 machine_gpu_id(machine, 0));
		dump(&page, ROWS, ones);
		CHECK(fflush(page.out) == 0);
	}
	rig_write(&machine->rig, "debug/kfd/mqds~", page.text ?: "");
	CHECK(rename(rig_path(&machine->rig, "debug/kfd/mqds~"),
		     rig_path(&machine->rig, "debug/kfd/mqds")) == 0);
	if (page.out)
		fclose(page.out);
}

static void build_with_descriptors(struct machine *machine)
{
	machine_build(machine, 1);
	rig_write(&machine->rig, "gpuarbd.conf", QUICK);
	machine_debugfs(machine);
	show_queues(machine, NULL, 0);
}

static void start_with_descriptors(struct machine *machine)
{
	char option[256];

	snprintf(option, sizeof(option), "%s --debugfs=%s", machine->option,
		 rig_path(&machine->rig, "debug"));
	rig_start(&machine->rig, option);
	machine_connect(machine);
}

TEST(queues_of_an_unmanaged_process_on_cus_of_a_lease_are_logged_once_and_when_they_end)
{
	const pid_t unmanaged = getppid(); /* children of this process belong to its lease */
	static struct machine machine;
	struct live_lease lease;
	struct entry entry;
	char pid[32];
	int journal;

	NEEDS_JOURNAL(&journal);
	build_with_descriptors(&machine);
	begin(&machine.rig);
	start_with_descriptors(&machine);
	log_end(&machine.rig);
	lease = granted(call(ask(machine.bus, "Reserve", 15)));
	entry_next(journal, EVENT_GRANTED);
	machine_use(&machine, unmanaged, 0, 1);
	show_queues(&machine, &unmanaged, 1);
	entry = entry_next(journal, EVENT_COVERED);
	snprintf(pid, sizeof(pid), "pid %d (", unmanaged);
	CHECK(is_of(&entry, &lease) && entry_has(&entry, GPU) && entry_says(&entry, pid));
	CHECK(entry_names(&entry, "GPUARB_UID="));
	show_queues(&machine, NULL, 0); /* the process stays */
	entry = entry_next(journal, EVENT_UNCOVERED);
	CHECK(is_of(&entry, &lease) && entry_has(&entry, GPU) && entry_says(&entry, pid));
	machine_halt(&machine);
	close(journal);
}

#define LOGGED 64U /* processes of one user whose queues on CUs of leases are logged at a time */
#define COVERS "has no lease, and queues on CUs of lease"
#define EXPELLED "uses it without a lease, and is not ended"

/* One process more than are logged at a time, each with a subordinate uid of its own, and one of another user with
 * more queues: gpuarbd lists 64 processes, those with the most queues. */
struct flood {
	struct machine machine;
	pid_t pids[LOGGED + 2];
};

static uid_t uid_of(unsigned i)
{
	return i <= LOGGED ? 70000 + i : 3;
}

static bool says(const struct flood *flood, unsigned i, const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), ": pid %d (test-daemon) of uid %u %s", flood->pids[i],
		 uid_of(i), what);
	return log_says(&flood->machine.rig, text);
}

/* Of how many processes with subordinate uids. */
static unsigned logged(const struct flood *flood, const char *what)
{
	unsigned n = 0;

	for (unsigned i = 0; i <= LOGGED; i++)
		n += says(flood, i, what);
	return n;
}

static void begin_flood(struct flood *flood)
{
	struct machine *machine = &flood->machine;

	build_with_descriptors(machine);
	rig_write(&machine->rig, "subuid", "bin:70000:100\n");
	CHECK(setenv("GPUARB_SUBUID", rig_path(&machine->rig, "subuid"), 1) == 0);
	log_begin(&machine->rig);
	start_with_descriptors(machine);
	CHECK(unsetenv("GPUARB_SUBUID") == 0);
	granted(call(ask(rig_connect(&machine->rig, STRANGER), "Reserve", 15)));
	for (unsigned i = 0; i < ARRAY_SIZE(flood->pids); i++) {
		flood->pids[i] = idler(uid_of(i), NULL);
		machine_use(machine, flood->pids[i], 0, i <= LOGGED ? 1 : 2);
	}
}

TEST(subordinate_uids_fill_no_more_of_the_log_than_their_owner)
{
	static struct flood flood;
	unsigned n, windows;
	uint64_t began;

	begin_flood(&flood);
	began = boottime_usec();
	show_queues(&flood.machine, flood.pids, ARRAY_SIZE(flood.pids));
	AWAIT_STATE(logged(&flood, COVERS) >= LOGGED && says(&flood, LOGGED + 1, COVERS));
	gpu_number(flood.machine.bus, "QueueSlotsFree"); /* answered after all of that turn */
	CHECK(logged(&flood, COVERS) == LOGGED);
	rig_write(&flood.machine.rig, "gpuarbd.conf",
		  QUICK "unmanaged = refuse\nunmanaged-grace = 1ms\n");
	CHECK(is_fine(call(call_arbiter(flood.machine.bus, "Reload"))));
	AWAIT_STATE(log_says(&flood.machine.rig, "further entries within half a minute"));
	n = LOGGED + logged(&flood, EXPELLED);
	windows = 1 + (unsigned)((boottime_usec() - began) / 30000000); /* half a minute each */
	CHECK(n >= 100 && n <= 100 * windows);
	log_end(&flood.machine.rig);
	machine_halt(&flood.machine);
	for (unsigned i = 0; i < ARRAY_SIZE(flood.pids); i++)
		end_process(flood.pids[i]);
}

TEST(an_oversubscribed_gpu_is_logged_with_its_unmanaged_processes)
{
	static struct machine machine;
	struct entry entry;
	unsigned slots;
	int journal;
	char says[64];
	pid_t pid;

	NEEDS_JOURNAL(&journal);
	boot(&machine, QUICK);
	slots = machine.gpus[0].queue_slots;
	pid = idler(STRANGER, NULL);
	machine_use(&machine, pid, 0, slots + 1);
	gpu_number(machine.bus, "Oversubscribed"); /* whoever asks makes it look */
	entry = entry_next(journal, EVENT_OVERSUBSCRIBED);
	CHECK(entry_has(&entry, GPU) && !entry_names(&entry, "GPUARB_UID="));
	entry = entry_next(journal, EVENT_UNMANAGED);
	snprintf(says, sizeof(says), "pid %d (", pid);
	CHECK(entry_has(&entry, GPU) && entry_has(&entry, "GPUARB_UID=1") &&
	      entry_says(&entry, says));
	forget(&machine, pid, 3, slots + 1);
	AWAIT(machine.bus, gpu_number(machine.bus, "Oversubscribed") == 0);
	entry = entry_next(journal, EVENT_RELIEVED);
	CHECK(entry_has(&entry, GPU));
	CHECK(!entry_take(journal, &entry));
	end_process(pid);
	machine_halt(&machine);
	close(journal);
}

/* A daemon with unmanaged = warn, and a process with a queue and no lease. */
static pid_t warn_of_one(struct machine *machine)
{
	pid_t pid;

	boot(machine, QUICK "unmanaged = warn\n");
	pid = idler(STRANGER, NULL);
	machine_use(machine, pid, 0, 1);
	return pid;
}

TEST(unmanaged_processes_are_logged_with_unmanaged_warn)
{
	static struct machine machine;
	struct entry entry;
	int journal;
	pid_t pid;

	NEEDS_JOURNAL(&journal);
	pid = warn_of_one(&machine);
	gpu_number(machine.bus, "Oversubscribed");
	entry = entry_next(journal, EVENT_UNMANAGED);
	CHECK(entry_has(&entry, GPU) && entry_says(&entry, "1 queues"));
	end_process(pid);
	machine_halt(&machine);
	close(journal);
}

/* Creates and destroys queues without a pause. */
TEST(a_flood_of_unmanaged_queues_is_bounded_for_each_user)
{
	unsigned told = 0, more = 0, windows;
	static struct machine machine;
	struct entry entry;
	uint64_t began;
	int journal;
	pid_t pid;

	NEEDS_JOURNAL(&journal);
	pid = warn_of_one(&machine);
	began = boottime_usec();
	for (unsigned i = 0; i < 110; i++) {
		if (i % 2 == 0)
			machine_use(&machine, pid, 0, 2);
		else
			forget(&machine, pid, 1, 2);
		AWAIT(machine.bus, is_unmanaged(&machine, pid, 2 - i % 2));
		while (entry_take(journal, &entry)) {
			told++;
			more += entry_says(&entry, "not logged");
		}
	}
	windows = 1 + (unsigned)((boottime_usec() - began) / 30000000); /* half a minute each */
	CHECK(told >= 100 && told <= 100 * windows && more <= 2 * windows - 1);
	CHECK(windows > 1 || more == 1);
	end_process(pid);
	machine_halt(&machine);
	close(journal);
}
