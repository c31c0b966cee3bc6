/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Borrowers of the shipped daemon on a KFD tree: their acknowledgements are compared with the queue
 * descriptors, and the CUs of a killed lease are free when its queues are gone.
 */

#include "check.h"
#include "enforce-rig.h"
#include "lend-live.h"
#include "machine.h"

NEEDS(daemon_missing);

#define DEBUGFS "debug"
#define MQDS DEBUGFS "/kfd/mqds"
#define WORDS 512U /* of a descriptor */

struct stage {
	struct machine machine;
	struct helper helper;
	sd_bus *crowd;
	struct live_lease rt, borrower;
	pid_t unmanaged; /* with a queue in the descriptors; 0: this process */
	bool alone;      /* 0: none */
	bool beside;     /* its queue has the CUs of the borrower's */
	bool unmounted;  /* there are no descriptors */
	pid_t pid;       /* bound to the borrower; 0: it has ended */
	int fd;
};

/* ---- descriptors ------------------------------------------------------------------------- */

/* Offsets of the masks of the four shader engines in a gfx9 descriptor. */
static const unsigned registers[] = { 23, 24, 26, 27 };

static void print_queue(FILE *file, const struct stage *s, const uint32_t masks[static 4])
{
	uint32_t words[WORDS] = { 0 };

	for (unsigned e = 0; e < 4; e++)
		words[registers[e]] = masks[e];
	fprintf(file, "  Compute queue on device %x\n", machine_gpu_id(&s->machine, 0));
	for (unsigned row = 0; row < WORDS / 8; row++) {
		fprintf(file, "    %08x:", row * 32);
		for (unsigned i = 0; i < 8; i++)
			fprintf(file, " %08x", words[row * 8 + i]);
		fprintf(file, "\n");
	}
}

/* Writes a queue of an unmanaged process with all CUs, and one of the borrower with this mask; NULL:
 * with all CUs. */
static void show(const struct stage *s, const struct book_part *part)
{
	static const uint32_t all[4] = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };
	uint32_t masks[4];
	struct cuset cus;
	struct codec codec;
	FILE *file;

	if (s->unmounted)
		return;
	file = fopen(rig_path(&s->machine.rig, MQDS "~"), "we");
	CHECK(file);
	if (part) {
		codec_init(&codec, &s->machine.gpus[0].geometry);
		codec_decode(&codec, part->mask, codec_words(&codec), &cus);
		for (unsigned e = 0; e < 4; e++)
			masks[e] = cus.pair[cuset_pair(0, e)];
	}
	if (s->unmanaged || !s->alone) {
		fprintf(file, "Process %d PASID 0x8000:\n", s->unmanaged ?: getpid());
		print_queue(file, s, s->beside ? masks : all);
	}
	if (s->pid > 0) {
		fprintf(file, "Process %d PASID 0x8001:\n", s->pid);
		print_queue(file, s, part ? masks : all);
	}
	CHECK(fclose(file) == 0);
	CHECK(rename(rig_path(&s->machine.rig, MQDS "~"), rig_path(&s->machine.rig, MQDS)) == 0);
}

/* ---- the stage --------------------------------------------------------------------------- */

static void prepare(struct stage *s)
{
	memset(s, 0, sizeof(*s));
	machine_build(&s->machine, 1);
	machine_debugfs(&s->machine);
}

/* A borrower whose process has a queue, and the inactive lease that it borrows from. */
static void settle_in(struct stage *s, const char *settings, const char *enforce)
{
	char options[256];

	helper_listen(&s->helper);
	snprintf(s->helper.sysfs, sizeof(s->helper.sysfs), "%s",
		 strchr(s->machine.option, '=') + 1);
	helper_start(&s->helper, NULL, NULL, -1);
	lend_configure(&s->machine.rig, settings, enforce);
	show(s, NULL);
	snprintf(options, sizeof(options), "%s --enforce=%s --debugfs=%s", s->machine.option,
		 s->helper.path, rig_path(&s->machine.rig, DEBUGFS));
	rig_start(&s->machine.rig, options);
	machine_connect(&s->machine);
	s->crowd = rig_connect(&s->machine.rig, STRANGER);
	s->rt = keep_inactive(s->machine.bus, 15);
	s->borrower = borrow(s->crowd);
	s->pid = idler(STRANGER, &s->fd);
	bind_process(s->crowd, &s->borrower, s->fd);
	machine_use(&s->machine, s->pid, 0, 1);
	show(s, NULL);
}

static void arrive(struct stage *s, const char *settings, const char *enforce)
{
	prepare(s);
	settle_in(s, settings, enforce);
}

static void depart(struct stage *s)
{
	if (s->pid > 0)
		end_process(s->pid);
	close(s->fd);
	machine_halt(&s->machine);
	helper_stop(&s->helper);
}

static void await_text(struct stage *s, const struct live_lease *lease, const char *name,
		       const char *text)
{
	AWAIT(s->machine.bus, lease_says(s->machine.bus, lease->path, name, text));
}

#define SCANS_OFTEN "audit-interval = 100ms\ndrift-grace = 1ms\n" GROW_NEVER

/* ---- verification ------------------------------------------------------------------------ */

FIXTURE(struct stage, s, , depart(s));

static bool is_alone(const struct stage *s)
{
	sd_bus_message *m = call(get(s->machine.bus, s->rt.path, GPUARB_INTERFACE_LEASE, "Alone"));
	int alone;

	CHECK(sd_bus_message_read(m, "v", "b", &alone) >= 0);
	sd_bus_message_unref(m);
	return alone;
}

/* Whether this process alone disturbs the realtime lease, on all its CUs; 0: nobody does. */
static bool is_intruder(const struct stage *s, pid_t pid)
{
	struct row rows[ROWS_MAX];
	unsigned n = rows_of(s->machine.bus, s->rt.path, GPUARB_INTERFACE_LEASE, "Intruders", rows);

	return pid == 0 ? n == 0
			: n == 1 && row_has(rows, " pid=%d ", pid) && row_has(rows, " cus=15 ");
}

/* Until the holder gets a record with so many CUs of the lease disturbed. */
static struct live_record await_disturbed(int holder, unsigned cus)
{
	struct live_record record;

	do
		CHECK(next_record(holder, &record));
	while (record.partitions[0].disturbed_cus != cus);
	return record;
}

TEST_WITH(the_holder_of_a_lease_is_told_who_disturbs_it_and_when_it_is_over, struct stage *s)
{
	struct live_record record;
	struct book_part part;
	char pid[32];

	arrive(s, SCANS_OFTEN, "report");
	s->alone = true;
	CHECK(is_fine(activate(s->machine.bus, &s->rt)));
	part = part_of(s->machine.bus, &s->borrower);
	show(s, &part);
	CHECK(is_fine(acknowledge(s->crowd, &s->borrower, 2)));
	await_record(s->rt.holder, GPUARB_RECORD_GRANTED);
	AWAIT(s->machine.bus, is_alone(s));
	CHECK(is_intruder(s, 0));

	s->unmanaged = getppid();
	machine_use(&s->machine, s->unmanaged, 0, 1);
	show(s, &part);
	record = await_disturbed(s->rt.holder, 15);
	snprintf(pid, sizeof(pid), "pid %d (", s->unmanaged);
	CHECK(strstr(record.record.reason, pid) && record.partitions[0].flags == 0);
	CHECK(is_intruder(s, s->unmanaged) && !is_alone(s));
	CHECK(lease_says(s->machine.bus, s->rt.path, "Reason", pid));
	CHECK(is_in_state(s->machine.bus, &s->rt, "granted"));

	CHECK(fake_sysfs_process_gone(s->machine.sys, s->unmanaged) == 0);
	s->unmanaged = 0;
	show(s, &part);
	record = await_disturbed(s->rt.holder, 0);
	CHECK(record.record.reason[0] == '\0');
	AWAIT(s->machine.bus, is_alone(s));
	CHECK(is_intruder(s, 0) && lease_says(s->machine.bus, s->rt.path, "Reason", ""));
}

TEST_WITH(descriptors_that_cannot_be_read_are_unseen_and_the_daemon_says_so, struct stage *s)
{
	arrive(s, SCANS_OFTEN, "report");
	await_text(s, &s->borrower, "Tier", "verified");
	CHECK(!gpu_says(s->machine.bus, "Unseen", "KiB"));
	CHECK(truncate(rig_path(&s->machine.rig, MQDS), 2 << 20) == 0);
	AWAIT(s->machine.bus, gpu_says(s->machine.bus, "Unseen", "1024 KiB"));
	show(s, NULL);
	await_text(s, &s->borrower, "Tier", "verified");
	CHECK(!gpu_says(s->machine.bus, "Unseen", "KiB"));
}

TEST_WITH(masks_are_verified_when_debugfs_is_mounted_after_the_start, struct stage *s)
{
	prepare(s);
	s->unmounted = true;
	settle_in(s, SCANS_OFTEN, "report");
	CHECK(gpu_says(s->machine.bus, "Unseen", "there is no /"));
	s->unmounted = false;
	show(s, NULL);
	await_text(s, &s->borrower, "Tier", "verified");
	CHECK(gpu_says(s->machine.bus, "Unseen", ""));
}

TEST_WITH(acknowledgements_are_verified_when_descriptors_become_readable, struct stage *s)
{
	struct book_part part;
	const char *said;
	uint64_t grown;

	prepare(s);
	log_begin(&s->machine.rig);
	settle_in(s, "audit-interval = 100ms\ngrow-delay = 1ms\nactivate-grace = 1h\n", "report");
	await_text(s, &s->borrower, "Tier", "verified");
	CHECK(unlink(rig_path(&s->machine.rig, MQDS)) == 0);
	CHECK(is_fine(activate(s->machine.bus, &s->rt)));
	CHECK(is_fine(acknowledge(s->crowd, &s->borrower, 2)));
	await_record(s->rt.holder, GPUARB_RECORD_GRANTED);
	part = part_of(s->machine.bus, &s->borrower);
	show(s, &part);
	await_text(s, &s->borrower, "Tier", "verified");

	CHECK(is_fine(deactivate(s->machine.bus, &s->rt)));
	AWAIT(s->machine.bus,
	      (grown = lease_number(s->machine.bus, &s->borrower, "Generation")) > 2);
	CHECK(is_fine(acknowledge(s->crowd, &s->borrower, grown)));
	CHECK(is_fine(activate(s->machine.bus, &s->rt)));
	show(s, NULL);
	CHECK(is_fine(acknowledge(s->crowd, &s->borrower, grown + 1)));
	await_text(s, &s->borrower, "Reason", "acknowledged generation");
	said = log_end(&s->machine.rig);
	CHECK(strstr(said, "descriptors can be read:"));
	CHECK(strstr(said, "descriptors cannot be read any more:"));
	CHECK(strstr(said, "descriptors can be read again:"));
}

/* ---- enforcement --------------------------------------------------------------- */

#define SOON SCANS_OFTEN "activate-grace = 50ms\nenforce-delay = 50ms\n"

static void end_on_hardware(struct stage *s)
{
	CHECK(victim_was_killed(s->pid));
	CHECK(fake_sysfs_process_gone(s->machine.sys, s->pid) == 0);
	s->pid = 0;
}

TEST_WITH(a_false_acknowledgement_is_killed_and_its_cus_are_granted_when_its_queues_are_gone,
	  struct stage *s)
{
	arrive(s, SOON, "kill");
	CHECK(is_fine(activate(s->machine.bus, &s->rt)));
	CHECK(is_fine(acknowledge(s->crowd, &s->borrower, 2)));
	await_record(s->borrower.holder, GPUARB_RECORD_ENDING);
	CHECK(is_in_state(s->machine.bus, &s->rt, "activating")); /* it is on the hardware still */
	end_on_hardware(s);
	await_record(s->rt.holder, GPUARB_RECORD_GRANTED);
	AWAIT(s->machine.bus, s->machine.told.removed == 1);
}

/* With nothing in its policy but the defaults. */
TEST_WITH(a_process_on_the_engines_of_a_realtime_lease_is_killed_after_its_lease, struct stage *s)
{
	struct book_part part;

	arrive(s, SCANS_OFTEN "activate-grace = 100ms\nenforce-delay = 100ms\n", "report");
	s->alone = true;
	part = part_of(s->machine.bus, &s->borrower);
	show(s, &part);
	await_text(s, &s->borrower, "Tier", "verified");
	CHECK(is_fine(activate(s->machine.bus, &s->rt)));
	part = part_of(s->machine.bus, &s->borrower);
	show(s, &part);
	CHECK(is_fine(acknowledge(s->crowd, &s->borrower, 2)));
	await_record(s->rt.holder, GPUARB_RECORD_GRANTED);
	show(s, NULL); /* it drops its mask */
	await_disturbed(s->rt.holder, 15);
	await_record(s->borrower.holder, GPUARB_RECORD_ENDING);
	CHECK(victim_was_killed(s->pid));
	CHECK(fake_sysfs_process_gone(s->machine.sys, s->pid) == 0);
	s->pid = 0;
	show(s, NULL);
	await_disturbed(s->rt.holder, 0);
	CHECK(is_in_state(s->machine.bus, &s->rt, "granted"));
}

/* One that covers a best-effort lease is told of; one of a user who is not exempt is killed when it covers a realtime
 * lease, too. It is logged once, when gpuarb-enforce has killed it: the answer to the warning comes as late here. */
static void intrude(uid_t uid, bool exempt)
{
	struct book_part part;
	static struct stage s;
	const char *said;
	char pid[48];

	prepare(&s);
	log_begin(&s.machine.rig);
	settle_in(&s,
		  SCANS_OFTEN "unmanaged = refuse\nunmanaged-grace = 1h\nunmanaged-exempt = sys\n",
		  "report");
	s.alone = true;
	CHECK(is_fine(activate(s.machine.bus, &s.rt)));
	part = part_of(s.machine.bus, &s.borrower);
	show(&s, &part);
	CHECK(is_fine(acknowledge(s.crowd, &s.borrower, 2)));
	await_record(s.rt.holder, GPUARB_RECORD_GRANTED);
	s.unmanaged = idler(uid, NULL);
	CHECK(kill(s.helper.pid, SIGSTOP) == 0);
	machine_use(&s.machine, s.unmanaged, 0, 1);
	s.beside = true;
	show(&s, &part);
	snprintf(pid, sizeof(pid), "pid %d ", (int)s.unmanaged);
	AWAIT_STATE(log_says(&s.machine.rig, pid));
	CHECK(kill(s.unmanaged, 0) == 0 && !log_says(&s.machine.rig, "ended"));
	s.beside = false;
	show(&s, &part);
	snprintf(pid, sizeof(pid), "CUs of lease %" PRIu64 " ", s.rt.id);
	AWAIT_STATE(log_says(&s.machine.rig, pid));
	CHECK(kill(s.helper.pid, SIGCONT) == 0);
	if (exempt) {
		CHECK(kill(s.unmanaged, 0) == 0 && !log_says(&s.machine.rig, "ended"));
		end_process(s.unmanaged);
	} else {
		CHECK(victim_was_killed(s.unmanaged));
		AWAIT_STATE(log_says(&s.machine.rig, "without a lease, and is ended"));
	}
	CHECK(fake_sysfs_process_gone(s.machine.sys, s.unmanaged) == 0);
	s.unmanaged = 0;
	show(&s, &part);
	await_disturbed(s.rt.holder, 0);
	CHECK(is_in_state(s.machine.bus, &s.borrower, "granted"));
	said = strstr(log_end(&s.machine.rig), " and is ");
	CHECK(exempt ? !said : said && !strstr(said + 1, " and is "));
	depart(&s);
}

TEST_CASE(a_process_without_a_lease_is_killed_where_policy_refuses_it, intrude(STRANGER, false));
TEST_CASE(intruder_of_an_exempt_user_is_told_and_not_killed, intrude(3, true));

TEST_WITH(a_process_that_goes_on_after_acknowledging_its_revocation_is_killed, struct stage *s)
{
	struct live_record record;

	arrive(s, SOON, "kill");
	CHECK(is_fine(take_away(s->machine.bus, &s->borrower, 100000, "")));
	record = await_record(s->borrower.holder, GPUARB_RECORD_REVOKING);
	CHECK(is_fine(acknowledge(s->crowd, &s->borrower, record.record.generation)));
	end_on_hardware(s);
	AWAIT(s->machine.bus, s->machine.told.removed == 1);
}

/* The process that reserved uses the lease, but only a bound process and its children are known to live
 * for it. The parent uses no KFD device: it is not killed. */
TEST_WITH(a_child_that_uses_the_gpu_is_killed_and_its_idle_parent_is_not, struct stage *s)
{
	pid_t parent, child, asker;
	int fd;

	arrive(s, SOON, "kill");
	parent = family(STRANGER, STRANGER, &child);
	machine_use(&s->machine, child, 0, 1);
	asker = (pid_t)lease_number(s->machine.bus, &s->borrower, "OwnerPid");
	machine_use(&s->machine, asker, 0, 1);
	fd = pidfd_open(parent, 0);
	CHECK(fd >= 0);
	bind_process(s->crowd, &s->borrower, fd);
	await_text(s, &s->borrower, "Reason", "3 queues on"); /* all are seen */
	CHECK(is_fine(activate(s->machine.bus, &s->rt)));
	end_on_hardware(s);
	AWAIT_END(child);
	CHECK(waitpid(parent, NULL, WNOHANG) == 0);
	end_process(parent);
	CHECK(fake_sysfs_process_gone(s->machine.sys, child) == 0);
	await_record(s->borrower.holder, GPUARB_RECORD_ENDING);
	CHECK(waitpid(asker, NULL, WNOHANG) == 0);
	CHECK(is_in_state(s->machine.bus, &s->rt, "activating"));
	CHECK(fake_sysfs_process_gone(s->machine.sys, asker) == 0);
	await_record(s->rt.holder, GPUARB_RECORD_GRANTED);
}

/* ---- before the first read ------------------------------------------------------------------ */

/* Starts gpuarbd, whose first read of descriptors lasts as long as the returned fd is open, beside an
 * unmanaged process with queues on all CUs. */
static int start_blind(struct stage *s, const char *settings)
{
	char options[256];
	int fd;

	prepare(s);
	lend_configure(&s->machine.rig, settings, "report");
	s->unmanaged = getppid();
	machine_use(&s->machine, s->unmanaged, 0, 1);
	CHECK(mkfifo(rig_path(&s->machine.rig, MQDS), 0600) == 0);
	snprintf(options, sizeof(options), "%s --debugfs=%s", s->machine.option,
		 rig_path(&s->machine.rig, DEBUGFS));
	rig_start(&s->machine.rig, options);
	fd = open(rig_path(&s->machine.rig, MQDS), O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	machine_connect(&s->machine);
	s->crowd = rig_connect(&s->machine.rig, STRANGER);
	return fd;
}

/* Gives the descriptors to the read that has begun, and to later ones. */
static void let_read(const struct stage *s, int fifo)
{
	static char text[65536];
	ssize_t n;
	int fd;

	show(s, NULL);
	fd = open(rig_path(&s->machine.rig, MQDS), O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text));
	CHECK(n > 0 && n < (ssize_t)sizeof(text) && write(fifo, text, (size_t)n) == n);
	close(fd);
	close(fifo);
}

static bool is_refused(sd_bus_message *reply)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *plan = reply;
	const char *result;

	return is_fine(sd_bus_message_ref(plan)) && sd_bus_message_read(plan, "s", &result) >= 0 &&
	       strcmp(result, "refused") == 0;
}

TEST(requests_after_a_start_are_decided_after_the_first_read_of_descriptors)
{
	struct answer reserve, plan;
	static struct stage s;
	char pid[32];
	int fd;

	fd = start_blind(&s, SCANS_OFTEN);
	call_send(ask(s.machine.bus, "Reserve", 15), &reserve);
	call_send(ask(s.machine.bus, "Plan", 15), &plan);
	granted(call(ask(s.crowd, "Reserve", 15))); /* best effort does not wait */
	CHECK(gpu_says(s.machine.bus, "Unseen", "") && !reserve.came && !plan.came);
	let_read(&s, fd);
	AWAIT(s.machine.bus, reserve.came && plan.came);
	snprintf(pid, sizeof(pid), "pid %d (", s.unmanaged);
	CHECK(is_error(reserve.m, GPUARB_ERROR_NO_CAPACITY, pid));
	CHECK(is_refused(plan.m));
	machine_halt(&s.machine);
}

TEST(an_activation_after_a_start_is_decided_after_the_first_read_of_descriptors)
{
	struct answer reply;
	static struct stage s;
	char pid[32];
	int fd;

	fd = start_blind(&s, SCANS_OFTEN "unmasked = ignore\n");
	s.rt = keep_inactive(s.machine.bus, 15);
	lend_configure(&s.machine.rig, SCANS_OFTEN, "report");
	CHECK(is_fine(call(call_arbiter(s.machine.bus, "Reload"))));
	call_send(call_lease(s.machine.bus, s.rt.path, "Activate"), &reply);
	CHECK(is_in_state(s.machine.bus, &s.rt, "inactive") && !reply.came);
	let_read(&s, fd);
	AWAIT(s.machine.bus, reply.came);
	snprintf(pid, sizeof(pid), "pid %d (", s.unmanaged);
	CHECK(is_error(reply.m, GPUARB_ERROR_NO_CAPACITY, pid));
	machine_halt(&s.machine);
}

/* The read fails, and then it does not end. */
TEST(a_request_does_not_wait_longer_than_the_first_read_may_take)
{
	struct answer reply;
	static struct stage s;
	int fd;

	for (unsigned hangs = 0; hangs < 2; hangs++) {
		fd = start_blind(&s, SCANS_OFTEN);
		call_send(ask(s.machine.bus, "Reserve", 15), &reply);
		CHECK(gpu_says(s.machine.bus, "Unseen", "") && !reply.came);
		if (!hangs) {
			CHECK(write(fd, "garbage\n", 8) == 8);
			close(fd);
		}
		AWAIT(s.machine.bus, reply.came);
		granted(reply.m);
		AWAIT_STATE(gpu_says(s.machine.bus, "Unseen", hangs ? "within 5 s" : "garbage"));
		if (hangs)
			close(fd);
		machine_halt(&s.machine);
	}
}

/* gpuarbd ends while a lease waits for the CUs under the queue of an unmanaged process. */
TEST(a_waiting_lease_is_not_granted_after_a_start_before_the_first_read_of_descriptors)
{
	struct answer plan;
	struct live_lease lease;
	static struct stage s;
	char options[256];
	int fd;

	prepare(&s);
	lend_configure(&s.machine.rig, SCANS_OFTEN, "report");
	s.unmanaged = getppid();
	machine_use(&s.machine, s.unmanaged, 0, 1);
	show(&s, NULL);
	snprintf(options, sizeof(options), "%s --debugfs=%s", s.machine.option,
		 rig_path(&s.machine.rig, DEBUGFS));
	rig_start_managed(&s.machine.rig, options, "--store-max=64");
	machine_connect(&s.machine);
	CHECK(is_refused(call(ask(s.machine.bus, "Plan", 15)))); /* it waits for the first read */
	lease = waiting(call(ask_for(s.machine.bus, "cus=15; class=guaranteed wait-usec=forever")));
	rig_await_stored(&s.machine.rig, 1);
	rig_down(&s.machine.rig);
	CHECK(unlink(rig_path(&s.machine.rig, MQDS)) == 0);
	CHECK(mkfifo(rig_path(&s.machine.rig, MQDS), 0600) == 0);
	rig_up(&s.machine.rig);
	fd = open(rig_path(&s.machine.rig, MQDS), O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(is_in_state(s.machine.bus, &lease, "waiting"));
	call_send(ask(s.machine.bus, "Plan", 15), &plan);
	let_read(&s, fd);
	AWAIT(s.machine.bus, plan.came);
	CHECK(is_refused(plan.m));
	CHECK(is_in_state(s.machine.bus, &lease, "waiting"));
	CHECK(fake_sysfs_process_gone(s.machine.sys, s.unmanaged) == 0);
	s.unmanaged = 0;
	show(&s, NULL);
	await_record(lease.holder, GPUARB_RECORD_GRANTED);
	machine_halt(&s.machine);
}
