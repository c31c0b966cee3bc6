/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * 64 clients that reserve, resize, release and die at random: when they have ended, nothing is left
 * behind.
 */

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "check.h"
#include "scratch.h"
#include "live.h"
#include "seed.h"

NEEDS(daemon_missing);

#define CLIENTS 64
#define KEPT 4 /* leases that a client has at a time */
#define GPUS "--simulate=radeon-vii,radeon-vii,mi300x-cpx"

/* Memory that the allocator may keep for later. */
#define MEMORY_KIB 8192

/* ---- a client ---------------------------------------------------------------------------- */

struct shared {
	atomic_uint cycles, refused, waited, killed;
	unsigned goal;
};

struct client {
	sd_bus *bus;
	unsigned seed;
	struct live_lease leases[KEPT]; /* holder -1: none */
};

static unsigned roll(struct client *client, unsigned n)
{
	return (unsigned)rand_r(&client->seed) / 7 % n;
}

static sd_bus_message *any_reserve(struct client *client)
{
	sd_bus_message *m = call_arbiter(client->bus, "Reserve");
	unsigned cus = 1 + roll(client, 20);
	char token[16];

	switch (roll(client, 5)) {
	case 0: return with_request(m, "cus=%u", cus);
	case 1: return with_request(m, "cus=%u | cus=%u", cus, cus);
	case 2:
		return with_request(m, "cus=%u; wait-usec=%" PRIu64, cus,
				    UINT64_C(1000) * roll(client, 20));
	case 3:
		snprintf(token, sizeof(token), "%u", roll(client, 1000));
		return with_request(m, "cus=10 isolation=shared; token=%s", token);
	default: return with_request(m, "cus=%u isolation=shared queues=1", cus);
	}
}

/* Whether any client can get this answer at any time. InvalidRequest is expected from a lease on several
 * GPUs, or without a second generation. */
static bool is_ordinary(sd_bus_message *answer, bool of_lease)
{
	if (!sd_bus_message_is_method_error(answer, NULL) ||
	    sd_bus_message_is_method_error(answer, GPUARB_ERROR_NO_CAPACITY) ||
	    (of_lease && (sd_bus_message_is_method_error(answer, GPUARB_ERROR_NO_SUCH_LEASE) ||
			  sd_bus_message_is_method_error(answer, GPUARB_ERROR_INVALID_STATE) ||
			  sd_bus_message_is_method_error(answer, GPUARB_ERROR_INVALID_REQUEST))))
		return true;
	fprintf(stderr, "%s: %s\n", sd_bus_message_get_error(answer)->name,
		sd_bus_message_get_error(answer)->message);
	return false;
}

static void ask_one(struct client *client, struct shared *shared)
{
	struct live_lease *lease = &client->leases[roll(client, KEPT)];
	sd_bus_message *answer = call(any_reserve(client));
	const char *path, *state;

	CHECK(is_ordinary(answer, false));
	atomic_fetch_add(&shared->cycles, 1);
	if (sd_bus_message_is_method_error(answer, NULL)) {
		atomic_fetch_add(&shared->refused, 1);
	} else {
		if (lease->holder >= 0)
			close(lease->holder);
		CHECK(sd_bus_message_read(answer, "ohs", &path, &lease->holder, &state) >= 0);
		if (strcmp(state, "waiting") == 0)
			atomic_fetch_add(&shared->waited, 1);
		snprintf(lease->path, sizeof(lease->path), "%s", path);
		lease->holder = fcntl(lease->holder, F_DUPFD_CLOEXEC, 3);
		CHECK(lease->holder >= 0);
	}
	sd_bus_message_unref(answer);
}

static void do_something(struct client *client, struct live_lease *lease)
{
	sd_bus_message *answer;

	switch (roll(client, 4)) {
	case 0: answer = call(release(client->bus, lease->path)); break;
	case 1: answer = call(resize(client->bus, lease->path, 1 + roll(client, 20))); break;
	case 2:
		answer = call(with(call_lease(client->bus, lease->path, "Acknowledge"), "t",
				   UINT64_C(2)));
		break;
	default:
		close(lease->holder);
		lease->holder = -1;
		return;
	}
	CHECK(is_ordinary(answer, true));
	sd_bus_message_unref(answer);
}

/* Dies during a call. */
static void die(struct client *client, struct shared *shared)
{
	sd_bus_message *m = any_reserve(client);

	atomic_fetch_add(&shared->killed, 1);
	CHECK(sd_bus_send(client->bus, m, NULL) >= 0);
	kill(getpid(), SIGKILL);
}

static _Noreturn void live(const struct rig *rig, struct shared *shared, unsigned seed)
{
	struct client client = { .seed = seed_nth(seed, 0) };

	client.bus = rig_connect(rig, seed % 2 ? STRANGER : 0);
	for (unsigned i = 0; i < KEPT; i++)
		client.leases[i].holder = -1;
	while (atomic_load(&shared->cycles) < shared->goal) {
		struct live_lease *lease = &client.leases[roll(&client, KEPT)];

		if (roll(&client, 40) == 0)
			die(&client, shared);
		ask_one(&client, shared);
		if (lease->holder >= 0)
			do_something(&client, lease);
	}
	_exit(0);
}

/* ---- all of them --------------------------------------------------------------------------- */

static void start_client(const struct rig *rig, struct shared *shared, unsigned seed)
{
	pid_t parent = getpid(), pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent);
		live(rig, shared, seed);
	}
}

/* Starts a client for each that died, until all leases were requested. */
static void run(const struct rig *rig, struct shared *shared, unsigned cycles, unsigned *seed)
{
	unsigned living = 0;
	int status;

	shared->goal = atomic_load(&shared->cycles) + cycles;
	for (; living < CLIENTS; living++)
		start_client(rig, shared, (*seed)++);
	while (living > 0) {
		CHECK(wait(&status) > 0);
		CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
		      (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
		living--;
		if (atomic_load(&shared->cycles) < shared->goal) {
			start_client(rig, shared, (*seed)++);
			living++;
		}
	}
}

/* ---- figures ------------------------------------------------------------------------------- */

struct figures {
	unsigned fds, kib, files, leases, stored, cus_free, slots_free;
};

static unsigned count_leases(sd_bus *bus)
{
	sd_bus_message *m = call(call_new(bus, GPUARB_PATH, "org.freedesktop.DBus.ObjectManager",
					  "GetManagedObjects"));
	const char *path;
	unsigned n = 0;

	CHECK(sd_bus_message_enter_container(m, 'a', "{oa{sa{sv}}}") >= 0);
	while (sd_bus_message_enter_container(m, 'e', "oa{sa{sv}}") > 0) {
		CHECK(sd_bus_message_read(m, "o", &path) >= 0);
		n += strstr(path, "/lease/") != NULL;
		CHECK(sd_bus_message_skip(m, "a{sa{sv}}") >= 0);
		CHECK(sd_bus_message_exit_container(m) >= 0);
	}
	sd_bus_message_unref(m);
	return n;
}

/* What is left when all ended leases are removed. */
static struct figures take_figures(struct rig *rig, sd_bus *bus)
{
	struct figures figures = { 0 };
	char path[128];

	while (count_leases(bus) > 0)
		continue;
	rig_await_stored(rig, 0);
	snprintf(path, sizeof(path), "%s/run/leases", rig->dir);
	figures.files = count_entries(path);
	snprintf(path, sizeof(path), "/proc/%d/fd", rig->daemon);
	figures.fds = count_entries(path);
	figures.kib = (unsigned)rig_resident_kib(rig->daemon);
	figures.cus_free = gpu_number(bus, "CusFree");
	figures.slots_free = gpu_number(bus, "QueueSlotsFree");
	return figures;
}

static void print(const char *when, const struct figures *f)
{
	printf("%-22s %5u %9u %6u %7u %7u %9u %11u\n", when, f->fds, f->kib, f->files, f->leases,
	       f->stored, f->cus_free, f->slots_free);
}

static void start(struct rig *rig)
{
	rig_write(rig, "gpuarbd.conf", CROWD);
	rig_start_managed(rig, GPUS, "--store-max=4096");
}

TEST(clients_that_die_at_random_leave_nothing_behind)
{
	unsigned cycles = check_rounds(1000, 100000);
	unsigned seed = SEED_OF_RUN("SOAK_SEED");
	struct figures first, warm, last;
	struct shared *shared;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	start_quietly(&rig, start);
	bus = rig_connect(&rig, 0);
	printf("SOAK_SEED=%u\n", seed);
	first = take_figures(&rig, bus);
	run(&rig, shared, cycles / 10, &seed);
	warm = take_figures(&rig, bus);
	run(&rig, shared, cycles - cycles / 10, &seed);
	last = take_figures(&rig, bus);

	printf("%u leases asked for, %u refused, %u waited, %u clients killed with a call under "
	       "way\n",
	       atomic_load(&shared->cycles), atomic_load(&shared->refused),
	       atomic_load(&shared->waited), atomic_load(&shared->killed));
	printf("%-22s %5s %9s %6s %7s %7s %9s %11s\n", "", "fds", "RSS KiB", "files", "leases",
	       "stored", "CUs free", "slots free");
	print("before", &first);
	print("after a tenth", &warm);
	print("after", &last);
	CHECK(last.fds == first.fds && last.files == 0 && first.files == 0);
	CHECK(last.cus_free == first.cus_free && last.slots_free == first.slots_free);
	CHECK(last.kib <= warm.kib + MEMORY_KIB);
	munmap(shared, sizeof(*shared));
}
