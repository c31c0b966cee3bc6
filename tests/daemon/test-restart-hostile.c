/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The shipped daemon starts on files that somebody else has changed: saved leases, what else is in the runtime
 * directory, and calibrations. It must come up, grant nothing twice, and serve. HOSTILE_SEED and DAMAGE_SEED
 * repeat a run; with GPUARB_LONG it takes ten minutes.
 */

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "check.h"
#include "lend-live.h"
#include "live.h"
#include "seed.h"
#include "sys/state/state-file.h"

NEEDS(daemon_missing);

#define FILES_MAX 32U
#define ROUNDS 8U
#define LONG_USEC UINT64_C(600000000)

struct saved {
	char path[384];
	char text[16384];
	size_t size;
};

struct stage {
	struct rig rig;
	sd_bus *bus;
	struct saved files[FILES_MAX];
	size_t n;
	int holders[8];
	size_t n_holders;
};

static struct stage s;

static void read_saved(const char *path)
{
	struct saved *file = &s.files[s.n++];
	FILE *in = fopen(path, "re");

	CHECK(in && s.n <= FILES_MAX);
	snprintf(file->path, sizeof(file->path), "%s", path);
	file->size = fread(file->text, 1, sizeof(file->text), in);
	CHECK(file->size < sizeof(file->text));
	fclose(in);
}

static void read_tree(const char *dir)
{
	DIR *list = opendir(dir);
	const struct dirent *entry;

	CHECK(list);
	while ((entry = readdir(list))) {
		char path[384];

		CHECK(snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) <
		      (int)sizeof(path));
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		    strcmp(entry->d_name, "set-aside") != 0)
			read_tree(path);
		else if (entry->d_type == DT_REG)
			read_saved(path);
	}
	closedir(list);
}

/* ---- what is changed ------------------------------------------------------------------------- */

static unsigned any(unsigned n)
{
	return (unsigned)rand() % n;
}

static size_t put(char *text, size_t size, size_t room, size_t at, size_t old, const char *new)
{
	size_t length = strlen(new);

	if (size - old + length > room)
		return size;
	memmove(text + at + length, text + at + old, size - at - old);
	memcpy(text + at, new, length);
	return size - old + length;
}

/* Replaces one number, name or text of JSON by another that is as good for a parser. */
static size_t change_token(char *text, size_t size, size_t room)
{
	static const char *const values[] = {
		"0",
		"1",
		"-1",
		"64",
		"4294967295",
		"9007199254740991",
		"18446744073709551615",
		"1e308",
		"0.5",
		"null",
		"true",
		"\"\"",
		"[]",
		"{}",
		"\"waiting\"",
		"\"granted\"",
		"\"ending\"",
		"\"inactive\"",
		"\"realtime\"",
		"\"0000:03:00.0\"",
		"\"\\u0000\"",
	};
	size_t at = any((unsigned)size), end;

	while (at < size && !strchr("0123456789\"", text[at]))
		at++;
	if (at == size)
		return size;
	end = at + 1;
	if (text[at] == '"')
		while (end < size && text[end++] != '"')
			continue;
	else
		while (end < size && strchr("0123456789.", text[end]))
			end++;
	return put(text, size, room, at, end - at, values[any(ARRAY_SIZE(values))]);
}

static size_t change(char *text, size_t size, size_t room)
{
	size_t at = size > 0 ? any((unsigned)size) : 0;
	const struct saved *other = &s.files[any((unsigned)s.n)];

	if (size == 0)
		return size;
	switch (any(16)) {
	case 0: text[at] = (char)any(256); return size;
	case 1: return at;
	case 2: return put(text, size, room, at, any((unsigned)(size - at)), "");
	case 3: return put(text, size, room, at, 0, "[[[[[[[[[[[[[[[[{\"a\":");
	case 4: memcpy(text, other->text, other->size); return other->size;
	default: return change_token(text, size, room);
	}
}

/* Something else than a file, or one of another size. */
static void replace(const char *path)
{
	int fd;

	unlink(path);
	switch (any(6)) {
	case 0: CHECK(mkfifo(path, 0644) == 0); return;
	case 1: CHECK(mkdir(path, 0755) == 0); return;
	case 2: CHECK(symlink("/dev/zero", path) == 0); return;
	case 3: CHECK(symlink(path, path) == 0); return;
	case 4: return;
	default:
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		CHECK(fd >= 0 && ftruncate(fd, (off_t)1 << (10 + any(20))) == 0);
		close(fd);
	}
}

static void write_to(const char *path, const char *text, size_t size)
{
	int fd;

	(void)(unlink(path) < 0 && rmdir(path) < 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && write(fd, text, size) == (ssize_t)size);
	close(fd);
}

static void change_files(void)
{
	static char text[65536];

	for (size_t i = 0; i < s.n; i++) {
		const struct saved *file = &s.files[i];
		size_t size = file->size;

		memcpy(text, file->text, size);
		for (unsigned k = any(4); k > 0; k--)
			size = change(text, size, sizeof(text));
		write_to(file->path, text, size);
		if (any(12) == 0)
			replace(file->path);
	}
	if (any(4) == 0)
		replace(rig_path(&s.rig, "run/" STATE_FILE_NEW));
	if (any(4) == 0)
		replace(rig_path(&s.rig, "run/leases/" STATE_FILE_NEW));
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static void set_up(void)
{
	char state[160], calibration[192];

	rig_new(&s.rig);
	snprintf(state, sizeof(state), "%s/state", s.rig.dir);
	CHECK(mkdir(state, 0755) == 0 && setenv("STATE_DIRECTORY", state, 1) == 0);
	snprintf(calibration, sizeof(calibration), "%s/calibration", state);
	CHECK(mkdir(calibration, 0755) == 0);
	rig_write(&s.rig, "tenants.d/10-all.conf", "[tenant *]\nclass = realtime\n");
	rig_start_managed(&s.rig, "--simulate=radeon-vii,radeon-vii", "--store-max=64");
	s.bus = rig_connect(&s.rig, 0);
}

static void keep(struct live_lease lease)
{
	s.holders[s.n_holders++] = lease.holder;
}

static sd_bus_message *ask_of_class(const char *class)
{
	return ask_for(s.bus, "cus=8; class=%s", class);
}

static void take_leases(void)
{
	s.n_holders = 0;
	keep(granted(call(ask_of_class("realtime"))));
	keep(granted(call(ask_of_class("guaranteed"))));
	keep(granted(call(ask_of_class("besteffort"))));
	keep(keep_inactive(s.bus, 15));
	keep(borrow(s.bus));
	keep(waiting(call(ask_for(s.bus, "cus=60; wait-usec=forever"))));
}

/* Each GPU has a report that is used. */
static void install_reports(void)
{
	static struct book book;
	char from[256], name[128], path[192];
	char text[16384];
	FILE *in;

	snprintf(from, sizeof(from), "%s/tests/fuzz/corpus/calibration/report",
		 getenv("GPUARB_ROOT"));
	in = fopen(from, "re");
	CHECK(in);
	text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
	fclose(in);
	book_read(s.bus, &book);
	for (unsigned i = 0; i < book.n_gpus; i++) {
		snprintf(name, sizeof(name), "state/calibration/%s.json", book.gpus[i].name);
		rig_write(&s.rig, name, text);
		snprintf(path, sizeof(path), "%s/%s", s.rig.dir, name);
		read_saved(path);
	}
}

/* No CU is granted twice, and a lease can be had as far as there is room and it can be saved. */
static void check_daemon(void)
{
	static struct book book;
	sd_bus_message *m;

	book_read(s.bus, &book);
	book_check(&book, false);
	m = call(ask(s.bus, "Reserve", 1));
	if (sd_bus_message_is_method_error(m, GPUARB_ERROR_NOT_SAVED)) /* into a directory */
		CHECK(is_error(m, GPUARB_ERROR_NOT_SAVED, ""));
	else if (sd_bus_message_is_method_error(m, NULL))
		CHECK(is_error(m, GPUARB_ERROR_NO_CAPACITY, ""));
	else
		sd_bus_message_unref(m);
}

static void play_round(void)
{
	char path[192];

	s.n = 0;
	set_up();
	take_leases();
	install_reports();
	rig_down(&s.rig);
	snprintf(path, sizeof(path), "%s/run", s.rig.dir);
	read_tree(path);
	CHECK(s.n > 5);
	change_files();
	rig_up(&s.rig);
	check_daemon();
	rig_crash(&s.rig); /* on what it has saved of that */
	check_daemon();
	while (s.n_holders > 0)
		close(s.holders[--s.n_holders]);
	rig_done(&s.rig);
}

TEST(daemon_comes_up_on_any_files)
{
	unsigned seed = SEED_OF_RUN("HOSTILE_SEED"), rounds = 0;
	uint64_t begin = boottime_usec();

	while (rounds < ROUNDS || (getenv("GPUARB_LONG") && boottime_usec() - begin < LONG_USEC)) {
		seed_rand(seed_nth(seed, rounds++));
		play_round();
	}
	printf("%u rounds\n", rounds);
}

/* ---- files of other leases ------------------------------------------------------------------- */

#define SPOILT 3U

static void spoil_files(const struct live_lease *leases)
{
	char name[64];

	s.n = 0;
	for (unsigned i = 0; i < SPOILT; i++) {
		snprintf(name, sizeof(name), "run/leases/%" PRIu64 ".json", leases[i].id);
		read_saved(rig_path(&s.rig, name));
	}
	for (unsigned i = 0; i < SPOILT; i++) {
		struct saved file = s.files[i];

		for (unsigned k = 1 + any(3); k > 0; k--)
			file.size = change(file.text, file.size, sizeof(file.text));
		write_to(file.path, file.text, file.size);
	}
}

/* The last one is saved last. */
static void play_spoilt(void)
{
	struct live_lease leases[SPOILT + 1];
	struct book_part part, now;
	static struct book book;

	for (unsigned i = 0; i <= SPOILT; i++)
		leases[i] = reserve(s.bus, 15);
	part = part_of(s.bus, &leases[SPOILT]);
	rig_down(&s.rig);
	spoil_files(leases);
	rig_up(&s.rig);
	rig_await_ready(&s.rig);
	CHECK(is_in_state(s.bus, &leases[SPOILT], "granted"));
	now = part_of(s.bus, &leases[SPOILT]);
	CHECK(same_part(&part, &now));
	book_read(s.bus, &book);
	book_check(&book, false);
	for (unsigned i = 0; i <= SPOILT; i++)
		close(leases[i].holder);
	do
		book_read(s.bus, &book);
	while (!book_is_empty(&book));
}

TEST(damaged_files_of_other_leases_cost_no_lease)
{
	seed_rand(seed_nth(SEED_OF_RUN("DAMAGE_SEED"), 0));
	CHECK(unsetenv("STATE_DIRECTORY") == 0);
	rig_new(&s.rig);
	rig_start_managed(&s.rig, LEND_GPU, "--store-max=64");
	s.bus = rig_connect(&s.rig, 0);
	for (unsigned round = check_rounds(10, 1000); round > 0; round--)
		play_spoilt();
	rig_done(&s.rig);
}
