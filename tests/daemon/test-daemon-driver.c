/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Events of the driver. The test is gpuarb-probe: it sends the ends of pipes in place of the descriptors
 * of the driver, or what gpuarb-probe never sends.
 */

#include <stdarg.h>

#include "check.h"
#include "helpers/probe-protocol.h"
#include "machine.h"
#include "scratch.h"

NEEDS(daemon_missing);

struct stage {
	struct machine machine;
	int listening, probe; /* probe: the connection of the daemon; -1: none */
	int urgent, other;    /* where the test writes events */
	struct live_lease lease;
	pid_t pid; /* of the lease, with a queue */
	int fd;
};

static void listen_at(struct stage *s)
{
	s->listening = scratch_bind(rig_path(&s->machine.rig, "probe"), SOCK_SEQPACKET);
	CHECK(listen(s->listening, 4) == 0);
}

/* A GPU with a lease whose process has a queue, so that the daemon wants events. logged: its log goes to a file until
 * log_end(). */
static void arrive_at(struct stage *s, size_t gpus, bool switches, bool logged)
{
	char options[256];

	memset(s, 0, sizeof(*s));
	s->probe = s->urgent = s->other = -1;
	machine_build(&s->machine, gpus);
	if (switches)
		CHECK(fake_sysfs_print(s->machine.sys,
				       "bus/pci/devices/0000:03:00.0/available_compute_partition",
				       "SPX, DPX, CPX\n") == 0);
	listen_at(s);
	snprintf(options, sizeof(options), "%s --probe=%s", s->machine.option,
		 rig_path(&s->machine.rig, "probe"));
	if (logged)
		log_begin(&s->machine.rig);
	rig_start(&s->machine.rig, options);
	machine_connect(&s->machine);
	s->pid = idler(STRANGER, &s->fd);
	machine_use(&s->machine, s->pid, 0, 1);
	s->lease = granted(call(ask_bound(s->machine.bus, 15, s->fd)));
}

static void arrive(struct stage *s)
{
	arrive_at(s, 1, false, false);
}

static void close_if(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void depart(struct stage *s)
{
	end_process(s->pid);
	close(s->fd);
	close(s->lease.holder);
	close_if(&s->probe);
	close_if(&s->urgent);
	close_if(&s->other);
	close(s->listening);
	machine_halt(&s->machine);
}

static void accept_daemon(struct stage *s)
{
	s->probe = accept4(s->listening, NULL, NULL, SOCK_CLOEXEC);
	CHECK(s->probe >= 0 && recv(s->probe, &(char){ 0 }, 1, 0) == 1);
}

static void send_message(struct stage *s, struct probe_answer message, const int *fds, size_t n)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { &message, sizeof(message) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n > 0) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
	}
	CHECK(sendmsg(s->probe, &header, MSG_NOSIGNAL) == (ssize_t)sizeof(message));
}

/* What gpuarb-probe says of the GPU: the same as sysfs. */
static struct probe_answer about(const struct stage *s)
{
	const struct gpu_info *info = &s->machine.gpus[0];

	return (struct probe_answer){ .protocol = PROBE_PROTOCOL,
				      .n = 1,
				      .gpus = { { .kfd_gpu_id = machine_gpu_id(&s->machine, 0),
						  .subscribed = 1,
						  .gfx_target = info->gfx_target,
						  .cus = 60,
						  .queue_slots = info->queue_slots,
						  .sdma_queues = info->sdma_queues,
						  .sdma_xgmi_queues = info->sdma_xgmi_queues } } };
}

/* Gives the daemon the ends of two pipes. */
static void subscribe(struct stage *s, const struct probe_answer *message)
{
	int urgent[2], other[2];

	accept_daemon(s);
	CHECK(pipe2(urgent, O_CLOEXEC) == 0 && pipe2(other, O_CLOEXEC) == 0);
	send_message(s, *message, (int[]){ urgent[0], other[0] }, 2);
	close(urgent[0]);
	close(other[0]);
	s->urgent = urgent[1];
	s->other = other[1];
}

static void tell(int fd, const char *text)
{
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static uint64_t lease_number(const struct stage *s, const char *name)
{
	return number_of(s->machine.bus, s->lease.path, GPUARB_INTERFACE_LEASE, name);
}

/* The number of events of this kind of the GPU. */
static uint64_t events_of(const struct stage *s, const char *gpu, const char *wanted)
{
	sd_bus_message *m = call(get(s->machine.bus, gpu, GPUARB_INTERFACE_GPU, "DriverEvents"));
	uint64_t count, found = 0;
	const char *kind;

	CHECK(sd_bus_message_enter_container(m, 'v', "a{st}") > 0);
	CHECK(sd_bus_message_enter_container(m, 'a', "{st}") > 0);
	while (sd_bus_message_read(m, "{st}", &kind, &count) > 0)
		if (strcmp(kind, wanted) == 0)
			found = count;
	sd_bus_message_unref(m);
	return found;
}

static uint64_t events(const struct stage *s, const char *wanted)
{
	return events_of(s, GPUARB_PATH_GPU "/0", wanted);
}

PRINTF_LIKE(2, 3)
static void evict(const struct stage *s, const char *format, ...)
{
	char text[128];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	tell(s->other, text);
}

/* ---- events -------------------------------------------------------------------------- */

FIXTURE(struct stage, s, , depart(s));

TEST_WITH(a_reset_marks_the_leases_of_its_gpu, struct stage *s)
{
	struct live_record record;

	arrive(s);
	subscribe(s, (struct probe_answer[]){ about(s) });
	tell(s->urgent, "3 1 job hang\n");
	AWAIT(s->machine.bus, lease_number(s, "Resets") == 1);
	CHECK(lease_says(s->machine.bus, s->lease.path, "Reason", "0000:03:00.0"));
	CHECK(lease_says(s->machine.bus, s->lease.path, "State", "granted"));
	do
		CHECK(next_record(s->lease.holder, &record));
	while (!*record.record.reason);
	CHECK(strstr(record.record.reason, "0000:03:00.0"));
	CHECK(record.partitions[0].resets == 1 &&
	      (record.partitions[0].flags & GPUARB_RECORD_RESETTING));
	tell(s->urgent, "4 1\n");
	AWAIT(s->machine.bus, events(s, "reset-ended") == 1);
	CHECK(events(s, "reset") == 1);
	/* When the processes of the lease have left the GPU, they have no queue to lose. */
	CHECK(fake_sysfs_queue_gone(s->machine.sys, s->pid, 0) == 0);
	AWAIT(s->machine.bus, !lease_says(s->machine.bus, s->lease.path, "Reason", "0000:03:00.0"));
	CHECK(lease_number(s, "Resets") == 1);
	do
		CHECK(next_record(s->lease.holder, &record));
	while (record.partitions[0].flags & GPUARB_RECORD_RESETTING);
	CHECK(record.partitions[0].resets == 1 && !*record.record.reason);
}

TEST_WITH(nothing_is_granted_on_a_gpu_that_is_being_reset, struct stage *s)
{
	struct live_lease lease;

	arrive(s);
	subscribe(s, (struct probe_answer[]){ about(s) });
	tell(s->urgent, "3 1 job hang\n");
	AWAIT(s->machine.bus, events(s, "reset") == 1);
	CHECK(is_error(call(ask(s->machine.bus, "Reserve", 15)), GPUARB_ERROR_NO_CAPACITY,
		       "resets"));
	lease = waiting(call(ask_for(s->machine.bus, "cus=15; wait-usec=forever")));
	tell(s->urgent, "4 1\n");
	await_record(lease.holder, GPUARB_RECORD_GRANTED);
}

TEST_WITH(evictions_are_counted_and_timed, struct stage *s)
{
	uint32_t id;

	arrive(s);
	subscribe(s, (struct probe_answer[]){ about(s) });
	id = machine_gpu_id(&s->machine, 0);
	evict(s, "9 5000000 -%d %x 2\n9 5100000 -%d %x 0\n", s->pid, id, s->pid, id);
	AWAIT(s->machine.bus, events(s, "evicted") == 2);
	CHECK(lease_number(s, "EvictedCount") == 1 && lease_number(s, "EvictedSince") == 5000);
	evict(s, "a 6000000 -%d %x R\n", s->pid, id); /* is tried again */
	AWAIT(s->machine.bus, events(s, "restored") == 1);
	CHECK(lease_number(s, "EvictedSince") == 5000);
	evict(s, "a 7500000 -%d %x\n", s->pid, id);
	AWAIT(s->machine.bus, lease_number(s, "EvictedSince") == 0);
	CHECK(lease_number(s, "EvictedUsec") == 2500 && lease_number(s, "EvictedCount") == 1);

	/* Neither a process without a lease nor another GPU changes the lease. */
	evict(s, "9 8000000 -%d %x 2\n9 8000000 -%d %x 2\n", getpid(), id, s->pid, id + 1);
	AWAIT(s->machine.bus, events(s, "evicted") == 3 && events(s, "unknown") == 1);
	CHECK(lease_number(s, "EvictedCount") == 1 && lease_number(s, "EvictedSince") == 0);
}

TEST_WITH(a_process_that_leaves_the_gpu_is_not_evicted_any_more, struct stage *s)
{
	arrive(s);
	subscribe(s, (struct probe_answer[]){ about(s) });
	evict(s, "9 5000000 -%d %x 2\n", s->pid, machine_gpu_id(&s->machine, 0));
	AWAIT(s->machine.bus, lease_number(s, "EvictedSince") == 5000);
	CHECK(fake_sysfs_queue_gone(s->machine.sys, s->pid, 0) == 0);
	AWAIT(s->machine.bus, lease_number(s, "EvictedSince") == 0);
}

TEST_WITH(garbled_events_are_counted_as_unknown, struct stage *s)
{
	char noise[8192];

	arrive(s);
	subscribe(s, (struct probe_answer[]){ about(s) });
	tell(s->urgent, "stuff\n\n3 \n7f 1\n");
	AWAIT(s->machine.bus, events(s, "unknown") == 4);
	tell(s->urgent, "4 "); /* the rest of the line comes later */
	tell(s->other, "2 1:1\n");
	AWAIT(s->machine.bus, events(s, "throttled") == 1);
	tell(s->urgent, "9\n");
	AWAIT(s->machine.bus, events(s, "reset-ended") == 1);
	memset(noise, 'x', sizeof(noise));
	CHECK(write(s->urgent, noise, sizeof(noise)) == sizeof(noise)); /* without a line */
	AWAIT(s->machine.bus, events(s, "unknown") >= 6);
	CHECK(lease_number(s, "Resets") == 0);
}

TEST_WITH(a_flood_of_events_does_not_block_the_daemon, struct stage *s)
{
	uint64_t before;

	arrive(s);
	subscribe(s, (struct probe_answer[]){ about(s) });
	CHECK(fcntl(s->other, F_SETFL, O_NONBLOCK) == 0);
	for (unsigned i = 0; i < 20; i++) {
		before = events(s, "migration");
		while (write(s->other, "5 1000 -7 @0(1) 0->1 0:0 0\n", 27) == 27)
			;
		while (events(s, "migration") == before)
			; /* the daemon answers every call meanwhile */
	}
	tell(s->urgent, "3 1\n"); /* has a descriptor of its own */
	AWAIT(s->machine.bus, lease_number(s, "Resets") == 1);
}

/* ---- a gpuarb-probe that fails ------------------------------------------------------- */

/* Until the daemon has closed its end. */
static void await_probe_end(struct stage *s)
{
	AWAIT_FD(s->probe, POLLIN);
	CHECK(recv(s->probe, &(char){ 0 }, 1, 0) <= 0);
	close_if(&s->probe);
	CHECK(lease_says(s->machine.bus, s->lease.path, "State", "granted"));
}

TEST_WITH(a_probe_that_never_answers_does_not_block_the_daemon, struct stage *s)
{
	arrive(s);
	accept_daemon(s);
	CHECK(lease_says(s->machine.bus, s->lease.path, "State", "granted"));
	await_probe_end(s);
}

static void await_refusal(struct stage *s)
{
	await_probe_end(s);
	CHECK(strstr(log_end(&s->machine.rig), "gpuarb-probe sent an invalid answer"));
}

TEST(invalid_messages_end_the_request)
{
	struct probe_answer wrong[7];
	static struct stage s;
	int fds[2], n_fds[] = { 2, 2, 2, 1, 2, 2, 0 };

	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		arrive_at(&s, 1, false, true);
		for (size_t k = 0; k < ARRAY_SIZE(wrong); k++)
			wrong[k] = about(&s);
		wrong[0].protocol++;
		wrong[1].n = PROBE_GPUS + 1;
		wrong[2].error = 1;
		wrong[4].error = -EIO;
		memset(wrong[5].text, 'x', sizeof(wrong[5].text));
		accept_daemon(&s);
		send_message(&s, wrong[i], fds, (size_t)n_fds[i]);
		await_refusal(&s);
		depart(&s);
	}
	arrive_at(&s, 1, false, true);
	accept_daemon(&s);
	CHECK(send(s.probe, "stuff", 5, 0) == 5);
	await_refusal(&s);
	depart(&s);
	close(fds[0]);
	close(fds[1]);
}

TEST_WITH(a_topology_that_differs_from_sysfs_is_logged, struct stage *s)
{
	struct probe_answer message;
	const char *said;
	char line[64];

	arrive_at(s, 1, false, true);
	message = about(s);
	message.gpus[0].queue_slots += 8;
	subscribe(s, &message);
	tell(s->urgent, "2 1:1\n");
	AWAIT(s->machine.bus, events(s, "throttled") == 1);
	said = log_end(&s->machine.rig);
	snprintf(line, sizeof(line), "libhsakmt says %u", message.gpus[0].queue_slots);
	CHECK(strstr(said, line));
}

TEST_WITH(a_machine_without_kfd_is_logged_once, struct stage *s)
{
	struct probe_answer end = { .protocol = PROBE_PROTOCOL,
				    .error = -EOPNOTSUPP,
				    .text = "cannot open /dev/kfd" };
	const char *said;

	arrive_at(s, 1, false, true);
	accept_daemon(s);
	send_message(s, end, NULL, 0);
	await_probe_end(s);
	said = log_end(&s->machine.rig);
	said = strstr(said, "/dev/kfd");
	CHECK(said && !strstr(said + 1, "/dev/kfd"));
}

static bool is_closed(int fd)
{
	struct pollfd end = { .fd = fd };

	return poll(&end, 1, 0) == 1 && end.revents & POLLERR;
}

TEST_WITH(no_events_are_kept_of_a_card_whose_partition_mode_can_be_changed, struct stage *s)
{
	struct probe_answer message;

	arrive_at(s, 2, true, false);
	message = about(s);
	subscribe(s, &message);
	AWAIT_STATE(is_closed(s->urgent) && is_closed(s->other));
	depart(s);
	arrive_at(s, 2, true, false);
	message = about(s);
	message.gpus[message.n++] = message.gpus[0];
	message.gpus[0].subscribed = 0;
	message.gpus[1].kfd_gpu_id = machine_gpu_id(&s->machine, 1);
	subscribe(s, &message);
	tell(s->urgent, "2 1:1\n");
	AWAIT(s->machine.bus, events_of(s, GPUARB_PATH_GPU "/1", "throttled") == 1);
	CHECK(!is_closed(s->urgent) && !is_closed(s->other));
}

TEST_WITH(a_probe_may_send_a_gpu_without_events, struct stage *s)
{
	struct probe_answer message;
	const char *said;

	arrive_at(s, 1, false, true);
	message = about(s);
	message.gpus[0].cus++; /* it is compared all the same */
	message.gpus[0].subscribed = 0;
	accept_daemon(s);
	send_message(s, message, NULL, 0);
	await_probe_end(s);
	said = log_end(&s->machine.rig);
	CHECK(strstr(said, "says 61") && !strstr(said, "events of the driver cannot"));
}

TEST_WITH(a_machine_of_such_cards_does_not_start_the_probe, struct stage *s)
{
	struct pollfd asked;

	arrive_at(s, 1, true, true);
	/* It decides when the list of GPUs has settled. */
	AWAIT_STATE(log_says(&s->machine.rig,
			     "0000:03:00.0: its compute partition mode can be changed"));
	asked = (struct pollfd){ .fd = s->listening, .events = POLLIN };
	CHECK(poll(&asked, 1, 0) == 0);
	log_end(&s->machine.rig);
}
