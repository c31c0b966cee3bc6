/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Restarts with damaged state files, stores that are too small, and processes that still use the
 * hardware. */

#include <sys/stat.h>

#include "check.h"
#include "lend-live.h"
#include "machine.h"

NEEDS(daemon_missing);

#define SIMULATED "--simulate=radeon-vii"

static void arrive(struct live *s, const char *options)
{
	rig_new(&s->rig);
	rig_start_managed(&s->rig, SIMULATED, options);
	live_connect(s);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void read_file(const struct rig *rig, uint64_t id, char *ret, size_t size)
{
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/run/leases/%" PRIu64 ".json", rig->dir, id);
	file = fopen(path, "re");
	CHECK(file);
	ret[fread(ret, 1, size - 1, file)] = '\0';
	fclose(file);
}

static void write_file(const struct rig *rig, uint64_t id, const char *text)
{
	char name[64];

	snprintf(name, sizeof(name), "run/leases/%" PRIu64 ".json", id);
	rig_write(rig, name, text);
}

/* Replaces the number behind the first "key":. */
static void set_number(char *text, size_t size, const char *key, uint64_t number)
{
	char *at = strstr(text, key), rest[8192];

	CHECK(at);
	at += strlen(key);
	at += strspn(at, "\": ");
	snprintf(rest, sizeof(rest), "%s", at + strspn(at, "0123456789"));
	snprintf(at, size - (size_t)(at - text), "%" PRIu64 "%s", number, rest);
}

static bool is_set_aside(const struct rig *rig, const char *name)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/run/set-aside/%s", rig->dir, name);
	return access(path, F_OK) == 0;
}

/* Whether a line of the log has the name of the file and the text. */
static bool log_names(const char *log, uint64_t id, const char *what)
{
	char name[32];
	const char *at, *end;

	snprintf(name, sizeof(name), "%" PRIu64 ".json", id);
	for (at = log; (at = strstr(at, name)); at = end) {
		end = at + strcspn(at, "\n");
		if (memmem(at, (size_t)(end - at), what, strlen(what)))
			return true;
	}
	return false;
}

FIXTURE(struct live, s, , rig_done(&s->rig));

TEST_WITH(damaged_state_files_are_set_aside_and_logged, struct live *s)
{
	struct live_lease good, torn, newer;
	static struct book book;
	char text[8192], name[64];
	const char *said;

	rig_new(&s->rig);
	log_begin(&s->rig);
	rig_start_managed(&s->rig, SIMULATED, "--store-max=64");
	live_connect(s);
	good = reserve(s->bus, 15);
	torn = reserve(s->bus, 15);
	newer = reserve(s->bus, 15);
	rig_down(&s->rig);

	read_file(&s->rig, torn.id, text, sizeof(text));
	text[strlen(text) / 2] = '\0';
	write_file(&s->rig, torn.id, text);
	read_file(&s->rig, newer.id, text, sizeof(text));
	set_number(text, sizeof(text), "\"version\"", 99);
	write_file(&s->rig, newer.id, text);
	read_file(&s->rig, good.id, text, sizeof(text));
	set_number(text, sizeof(text), "\"id\"", newer.id + 1); /* the same CUs once more */
	write_file(&s->rig, newer.id + 1, text);
	write_file(&s->rig, newer.id + 2, text); /* another's id */
	rig_write(&s->rig, "run/leases/notes.txt", "Remember the milk.\n");
	rig_up(&s->rig);

	book_read(s->bus, &book);
	CHECK(book.n_leases == 1 && book.leases[0].id == good.id && book.gpus[0].cus_free == 45);
	book_check(&book, true);
	CHECK(is_set_aside(&s->rig, "notes.txt"));
	for (uint64_t id = torn.id; id <= newer.id + 2; id++) {
		snprintf(name, sizeof(name), "%" PRIu64 ".json", id);
		CHECK(is_set_aside(&s->rig, name));
	}
	said = log_end(&s->rig);
	CHECK(strstr(said, "notes.txt"));
	CHECK(log_names(said, torn.id, "") && log_names(said, newer.id, "version"));
	CHECK(log_names(said, newer.id + 1, "") && log_names(said, newer.id + 2, "lease"));

	CHECK(strstr(await_record(torn.holder, GPUARB_RECORD_ENDING).record.reason, "damaged"));
	await_record(newer.holder, GPUARB_RECORD_ENDING);
	CHECK(!next_record(torn.holder, &(struct live_record){ 0 }));
	CHECK(!next_record(newer.holder, &(struct live_record){ 0 }));
	rig_await_stored(&s->rig, 1);
	rig_crash(&s->rig);
	CHECK(lease_exists(s->bus, good.path));
}

/* Removes a number and its key: a file as an older gpuarbd wrote it. */
static void remove_number(char *text, const char *key)
{
	char *at = strstr(text, key), *end;

	CHECK(at && at > text);
	end = at + strlen(key) + strspn(at + strlen(key), "\": 0123456789");
	memmove(at - 1, end, strlen(end) + 1); /* with the comma before it */
}

struct claims {
	struct rig rig;
	sd_bus *bus;
	struct live_lease first, second;
	char old[8192]; /* the file of the first lease, when it had CUs that the second one has now */
};

static void two_claims(struct claims *c)
{
	rig_new(&c->rig);
	log_begin(&c->rig);
	rig_start_managed(&c->rig, SIMULATED, "--store-max=64");
	c->bus = rig_connect(&c->rig, 0);
	c->first = reserve(c->bus, 60);
	read_file(&c->rig, c->first.id, c->old, sizeof(c->old));
	CHECK(is_fine(call(resize(c->bus, c->first.path, 15))));
	await_generation(c->first.holder, 2);
	CHECK(is_fine(
		call(with(call_lease(c->bus, c->first.path, "Acknowledge"), "t", UINT64_C(2)))));
	c->second = reserve(c->bus, 45);
	rig_down(&c->rig);
}

/* Returns the log of the start. */
static const char *start_with_claims(struct claims *c)
{
	write_file(&c->rig, c->first.id, c->old);
	rig_up(&c->rig);
	rig_await_ready(&c->rig);
	return log_end(&c->rig);
}

TEST(the_lease_that_was_saved_last_keeps_a_cu_that_two_files_claim)
{
	static struct book book;
	static struct claims c;
	const char *said;

	two_claims(&c);
	said = start_with_claims(&c);
	CHECK(is_set_aside(&c.rig, "1.json") && c.first.id == 1);
	CHECK(log_names(said, c.first.id, "saved"));
	CHECK(lease_says(c.bus, c.second.path, "State", "granted"));
	CHECK(!lease_exists(c.bus, c.first.path));
	CHECK(strstr(await_record(c.first.holder, GPUARB_RECORD_ENDING).record.reason,
		     "contradicted"));
	book_read(c.bus, &book);
	book_check(&book, true);
	rig_done(&c.rig);
}

TEST(files_without_a_serial_are_adopted_in_the_order_of_their_leases)
{
	static struct claims c;
	char text[8192];

	two_claims(&c);
	remove_number(c.old, "\"serial\"");
	read_file(&c.rig, c.second.id, text, sizeof(text));
	remove_number(text, "\"serial\"");
	write_file(&c.rig, c.second.id, text);
	start_with_claims(&c);
	CHECK(is_set_aside(&c.rig, "2.json") && c.second.id == 2);
	CHECK(lease_says(c.bus, c.first.path, "State", "granted"));
	CHECK(!lease_exists(c.bus, c.second.path));
	rig_done(&c.rig);
}

/* ---- stores ---------------------------------------------------------------------------------- */

TEST_WITH(a_full_store_refuses_leases_and_loses_none, struct live *s)
{
	struct live_lease leases[3];

	arrive(s, "--store-max=3");
	s->user = rig_connect(&s->rig, STRANGER);
	leases[0] = reserve(s->bus, 15);
	leases[1] = reserve(s->bus, 15);
	CHECK(is_error(call(ask(s->bus, "Reserve", 15)), GPUARB_ERROR_TOO_MANY_LEASES, "3"));
	leases[2] = reserve(s->user, 15);
	CHECK(is_error(call(ask(s->user, "Reserve", 15)), GPUARB_ERROR_TOO_MANY_LEASES, "3"));
	rig_await_stored(&s->rig, 3);
	rig_crash(&s->rig);
	for (unsigned i = 0; i < 3; i++)
		CHECK(lease_exists(s->bus, leases[i].path));
	CHECK(gpu_number(s->bus, "CusFree") == 15);

	CHECK(is_error(call(ask(s->bus, "Reserve", 15)), GPUARB_ERROR_TOO_MANY_LEASES, "3"));
	close(leases[0].holder);
	AWAIT(s->bus, s->told.removed == 1);
	reserve(s->bus, 15);
}

TEST_WITH(without_a_store_leases_end_with_the_daemon_and_that_is_logged, struct live *s)
{
	struct live_lease lease;
	const char *said;

	rig_new(&s->rig);
	log_begin(&s->rig);
	rig_start_managed(&s->rig, SIMULATED, "--store-max=0");
	live_connect(s);
	lease = reserve(s->bus, 15);
	rig_crash(&s->rig);
	CHECK(!next_record(lease.holder, &(struct live_record){ 0 }));
	CHECK(!lease_exists(s->bus, lease.path) && gpu_number(s->bus, "CusFree") == 60);
	lease = reserve(s->bus, 15);
	rig_restart(&s->rig);
	CHECK(strcmp(await_record(lease.holder, GPUARB_RECORD_ENDING).record.reason,
		     "gpuarbd stopped") == 0);
	CHECK(!lease_exists(s->bus, lease.path));
	said = log_end(&s->rig);
	CHECK(strstr(said, "restarts"));
	CHECK(strstr(said, "ended"));
}

/* ---- hardware --------------------------------------------------------------------------------- */

TEST_WITH(a_lease_on_a_replaced_gpu_ends_at_the_restart, struct live *s)
{
	struct live_lease kept, lost;
	struct live_record end;
	char text[8192];

	arrive(s, "--store-max=64");
	kept = reserve(s->bus, 15);
	lost = reserve(s->bus, 15);
	rig_down(&s->rig);
	read_file(&s->rig, lost.id, text, sizeof(text));
	set_number(text, sizeof(text), "\"kfd_gpu_id\"", 4711);
	write_file(&s->rig, lost.id, text);
	rig_up(&s->rig);
	end = await_record(lost.holder, GPUARB_RECORD_ENDING);
	CHECK(end.record.cause == GPUARB_RECORD_NO_SUCH_GPU);
	CHECK(strstr(end.record.reason, "0000:03:00.0"));
	CHECK(lease_exists(s->bus, kept.path));
}

static void boot_managed(struct machine *machine)
{
	machine_build(machine, 1);
	rig_start_managed(&machine->rig, machine->option, "--store-max=64");
	machine_connect(machine);
}

TEST(nothing_is_granted_until_a_release_is_saved)
{
	static struct machine machine;
	char leases[96], file[128];
	struct live_lease lease, other;
	pid_t pid;
	int fd;

	boot_managed(&machine);
	snprintf(leases, sizeof(leases), "%s/run/leases", machine.rig.dir);
	pid = idler(0, &fd);
	lease = granted(call(ask_bound(machine.bus, 15, fd)));
	machine_use(&machine, pid, 0, 3);
	AWAIT(machine.bus, machine.told.lease > 0); /* one more than granted: they are seen */

	snprintf(file, sizeof(file), "%s/%" PRIu64 ".json", leases, lease.id);
	CHECK(unlink(file) == 0 && rmdir(leases) == 0);
	CHECK(is_error(call(release(machine.bus, lease.path)), GPUARB_ERROR_NOT_SAVED, "ending"));
	CHECK(is_error(call(ask(machine.bus, "Reserve", 15)), GPUARB_ERROR_NOT_SAVED, "granted"));
	CHECK(mkdir(leases, 0700) == 0);
	other = reserve(machine.bus, 15);
	rig_crash(&machine.rig);
	CHECK(lease_says(machine.bus, lease.path, "State", "ending"));
	CHECK(lease_says(machine.bus, other.path, "State", "granted"));

	end_process(pid);
	CHECK(fake_sysfs_process_gone(machine.sys, pid) == 0);
	AWAIT(machine.bus, machine.told.removed == 1);
	machine_halt(&machine);
}

TEST_WITH(a_lease_whose_file_cannot_be_deleted_ends, struct live *s)
{
	struct live_lease lease;
	char name[64];

	arrive(s, "--store-max=64");
	lease = reserve(s->bus, 30);
	snprintf(name, sizeof(name), "run/leases/%" PRIu64 ".json", lease.id);
	CHECK(unlink(rig_path(&s->rig, name)) == 0 && mkdir(rig_path(&s->rig, name), 0700) == 0);
	close(lease.holder);
	AWAIT(s->bus, s->told.removed == 1);
	CHECK(gpu_number(s->bus, "CusFree") == 60);
	reserve(s->bus, 60);
}
