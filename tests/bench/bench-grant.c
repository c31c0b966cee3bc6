/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From a realtime request for two shader engines of each GPU to its grant, while adaptable leases
 * borrow all that is idle. The shipped daemon serves the request on a private bus, with simulated
 * MI300X; one process holds all borrowers and acknowledges each change at once, as if its queues had
 * the new mask in no time. The floor is the same request without a borrower. A real borrower adds
 * one change for each of its queues, and before gfx11 the driver preempts every queue of the GPU for
 * each of them. There is no public measurement of that time, so the table has the number of leases
 * that shrank instead.
 *
 *	GPUARBD=… GPUARB_ROOT=… SERVICE_MANAGER=… bench-grant
 */

#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "bench/client.h"
#include "book.h"

#define SAMPLES 200U
#define GPUS 8U
#define BORROWERS_MAX 64U
#define CUS 304U /* of a GPU */
#define CUS_MIN 8U
#define QUIET_MSEC 200

static const char hardware[] = "--simulate=mi300x-spx,mi300x-spx,mi300x-spx,mi300x-spx,"
			       "mi300x-spx,mi300x-spx,mi300x-spx,mi300x-spx";

struct row {
	unsigned gpus, borrowers;
	uint64_t grant[SAMPLES];
	double shrank; /* leases, for each request */
	unsigned lent; /* CUs that the borrowers had before each request */
};

/* ---- borrowers ------------------------------------------------------------------------------ */

/* What the borrowers have together, told at the start and after each change. */
struct report {
	unsigned cus;
	unsigned shrank; /* how often a borrower did */
};

struct taken {
	struct client_lease lease;
	bool granted;
	unsigned cus;
};

/* Sends a Reserve, and frees it. */
static struct taken take(sd_bus *bus, sd_bus_message *m)
{
	sd_bus_message *answer = client_call(bus, m);
	struct book_part parts[BOOK_GPUS];
	struct taken taken;
	const char *state;
	unsigned n;

	CHECK(sd_bus_message_read(answer, "ohs", NULL, NULL, &state) >= 0);
	taken.granted = strcmp(state, "granted") == 0;
	book_take_parts(answer, parts, &n);
	taken.cus = n > 0 ? parts[0].cus : 0;
	CHECK(sd_bus_message_rewind(answer, true) >= 0);
	taken.lease = client_take(answer);
	return taken;
}

/* Does not wait: the borrowers before it have to shrink for its base. */
static struct taken take_borrower(sd_bus *bus, unsigned gpu, unsigned most)
{
	sd_bus_message *m = client_ask_arbiter(bus, "Reserve");
	char index[12];

	snprintf(index, sizeof(index), "%u", gpu);
	CHECK(sd_bus_message_append(m, "aa{sv}a{sv}", 1, 5, "gpu", "s", index, "cus", "u", CUS_MIN,
				    "cus-min", "u", CUS_MIN, "cus-max", "u", most, "queues", "u", 2,
				    3, "class", "s", "besteffort", "adaptable", "b", 1, "wait-usec",
				    "t", UINT64_MAX) >= 0);
	return take(bus, m);
}

/* Reads one record, and acknowledges the mask in it. */
static void follow(sd_bus *bus, struct taken *borrower)
{
	struct live_record record;
	sd_bus_message *m;

	CHECK(next_record(borrower->lease.holder, &record));
	if (record.record.state != GPUARB_RECORD_GRANTED)
		return;
	m = client_ask(bus, borrower->lease.path, GPUARB_INTERFACE_LEASE, "Acknowledge");
	CHECK(sd_bus_message_append(m, "t", record.record.generation) >= 0);
	sd_bus_message_unref(client_call(bus, m));
	borrower->cus = record.partitions[0].cus;
}

static _Noreturn void borrow(const struct rig *rig, const struct row *row, int report_fd)
{
	struct taken borrowers[BORROWERS_MAX];
	struct report report = { 0 };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	sd_bus *bus;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bus = rig_connect(rig, getuid());
	for (unsigned i = 0; i < row->borrowers; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

		borrowers[i] = take_borrower(bus, i % row->gpus, CUS * row->gpus / row->borrowers);
		report.cus += borrowers[i].cus;
		CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, borrowers[i].lease.holder, &event) == 0);
	}
	CHECK(send(report_fd, &report, sizeof(report), 0) == sizeof(report));
	for (;;) {
		struct epoll_event event;
		struct taken *borrower;
		unsigned before;

		CHECK(epoll_wait(epoll, &event, 1, -1) == 1);
		borrower = &borrowers[event.data.u32];
		before = borrower->cus;
		follow(bus, borrower);
		report.cus += borrower->cus - before;
		report.shrank += borrower->cus < before;
		CHECK(send(report_fd, &report, sizeof(report), 0) == sizeof(report));
	}
}

static pid_t start_borrowers(const struct rig *rig, const struct row *row, int *ret_reports)
{
	int pair[2];
	pid_t pid;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		borrow(rig, row, pair[1]);
	close(pair[1]);
	*ret_reports = pair[0];
	return pid;
}

/* The last report, once there is none for a while. */
static void await_quiet(int reports, struct report *report)
{
	struct pollfd ready = { .fd = reports, .events = POLLIN };

	while (poll(&ready, 1, QUIET_MSEC) == 1)
		CHECK(recv(reports, report, sizeof(*report), 0) == sizeof(*report));
}

/* ---- what is measured ------------------------------------------------------------------------- */

static struct taken ask_realtime(sd_bus *bus, unsigned gpus)
{
	sd_bus_message *m = client_ask_arbiter(bus, "Reserve");

	CHECK(sd_bus_message_open_container(m, 'a', "a{sv}") >= 0);
	for (unsigned i = 0; i < gpus; i++) {
		char index[12];

		snprintf(index, sizeof(index), "%u", i);
		CHECK(sd_bus_message_append(m, "a{sv}", 3, "gpu", "s", index, "shader-engines", "u",
					    2, "queues", "u", 2) >= 0);
	}
	CHECK(sd_bus_message_close_container(m) >= 0);
	CHECK(sd_bus_message_append(m, "a{sv}", 1, "class", "s", "realtime") >= 0);
	return take(bus, m);
}

static uint64_t time_grant(sd_bus *bus, unsigned gpus)
{
	uint64_t start = bench_nsec();
	struct taken taken = ask_realtime(bus, gpus);

	if (!taken.granted)
		await_record(taken.lease.holder, GPUARB_RECORD_GRANTED);
	start = bench_nsec() - start;
	client_release(bus, &taken.lease);
	return start;
}

static void measure(const struct rig *rig, sd_bus *bus, struct row *row)
{
	static struct book book;
	struct report report = { 0 };
	unsigned before;
	int reports;
	pid_t pid = start_borrowers(rig, row, &reports);

	await_quiet(reports, &report);
	row->lent = report.cus;
	for (unsigned i = 0; i < SAMPLES; i++) {
		before = report.shrank;
		row->grant[i] = time_grant(bus, row->gpus);
		/* They grow back before the next request. */
		while (report.shrank == before || report.cus < row->lent) {
			if (row->borrowers == 0)
				break;
			CHECK(recv(reports, &report, sizeof(report), 0) == sizeof(report));
		}
		row->shrank += (double)(report.shrank - before) / SAMPLES;
	}
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	close(reports);
	do
		book_read(bus, &book);
	while (book.n_leases > 0);
}

static void start_daemon(struct rig *rig)
{
	rig_write(rig, "gpuarbd.conf",
		  "[daemon]\nactivate-grace = 1min\ngrow-delay = 1ms\n"
		  "activate-min-interval = 1ms\n");
	rig_write(rig, "tenants.d/10-all.conf",
		  "[tenant all]\nmatch-user = root\nclass = realtime\n");
	client_start_daemon(rig, hardware, true);
}

static void print(struct row *rows, size_t n)
{
	printf("%5s %10s %8s %8s %10s %10s\n", "GPUs", "borrowers", "CUs", "shrank", "p50 us",
	       "p99 us");
	for (size_t i = 0; i < n; i++)
		printf("%5u %10u %8u %8.1f %10.1f %10.1f\n", rows[i].gpus, rows[i].borrowers,
		       rows[i].lent, rows[i].shrank,
		       (double)bench_quantile(rows[i].grant, SAMPLES, 0.5) / 1e3,
		       (double)bench_quantile(rows[i].grant, SAMPLES, 0.99) / 1e3);
	printf("\n{\"grants\":[");
	for (size_t i = 0; i < n; i++)
		printf("%s{\"gpus\":%u,\"borrowers\":%u,\"lent\":%u,\"shrank\":%.1f,"
		       "\"p50_ns\":%llu,\"p99_ns\":%llu}",
		       i ? "," : "", rows[i].gpus, rows[i].borrowers, rows[i].lent, rows[i].shrank,
		       (unsigned long long)bench_quantile(rows[i].grant, SAMPLES, 0.5),
		       (unsigned long long)bench_quantile(rows[i].grant, SAMPLES, 0.99));
	printf("]}\n");
}

int main(void)
{
	static struct row rows[] = {
		{ .gpus = 1, .borrowers = 0 },
		{ .gpus = 1, .borrowers = 1 },
		{ .gpus = 1, .borrowers = 8 },
		{ .gpus = GPUS, .borrowers = 0 },
		{ .gpus = GPUS, .borrowers = BORROWERS_MAX },
	};
	struct rig rig;
	sd_bus *bus;

	if (rig_missing()) {
		fprintf(stderr, "%s\n", rig_missing());
		return 1;
	}
	bench_pin();
	rig_new(&rig);
	start_daemon(&rig);
	bus = rig_connect(&rig, getuid());
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		measure(&rig, bus, &rows[i]);
	print(rows, ARRAY_SIZE(rows));
	leave(bus);
	rig_done(&rig);
	return 0;
}
