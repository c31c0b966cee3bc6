/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "live.h"

#include <sys/prctl.h>

#include "check-cond.h"

const char *daemon_missing(void)
{
	return bus_missing() ? bus_missing() : rig_missing();
}

sd_bus_message *call(sd_bus_message *m)
{
	sd_bus *bus = sd_bus_message_get_bus(m);
	struct answer answer;

	call_send(m, &answer);
	AWAIT(bus, answer.came);
	return answer.m;
}

unsigned count_answers(const struct answer *answers, unsigned n, const char *error)
{
	unsigned found = 0;

	while (n-- > 0)
		if (error)
			found += sd_bus_message_is_method_error(answers[n].m, error) > 0;
		else
			found += sd_bus_message_is_method_error(answers[n].m, NULL) == 0;
	return found;
}

void drop_answers(struct answer *answers, unsigned n)
{
	while (n-- > 0)
		sd_bus_message_unref(answers[n].m);
}

uint64_t boottime_usec(void)
{
	struct timespec now;

	CHECK(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void await_time(uint64_t boottime)
{
	const struct itimerspec at = { .it_value = { (time_t)(boottime / 1000000),
						     (long)(boottime % 1000000) * 1000 } };
	int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	uint64_t n;

	CHECK(fd >= 0 && timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL) == 0);
	CHECK(read(fd, &n, sizeof(n)) == sizeof(n));
	close(fd);
}

struct live_lease reserved(sd_bus_message *m, const char *in_state)
{
	struct live_lease lease;
	const char *path, *state;

	if (sd_bus_message_is_method_error(m, NULL))
		fprintf(stderr, "%s\n", sd_bus_message_get_error(m)->message);
	CHECK(sd_bus_message_read(m, "ohs", &path, &lease.holder, &state) >= 0);
	CHECK(strcmp(state, in_state) == 0);
	snprintf(lease.path, sizeof(lease.path), "%s", path);
	CHECK(sscanf(path, GPUARB_PATH_LEASE "/%" SCNu64, &lease.id) == 1);
	lease.holder = fcntl(lease.holder, F_DUPFD_CLOEXEC, 3);
	CHECK(lease.holder >= 0);
	sd_bus_message_unref(m);
	return lease;
}

struct live_lease granted(sd_bus_message *m)
{
	return reserved(m, "granted");
}

struct live_lease waiting(sd_bus_message *m)
{
	return reserved(m, "waiting");
}

struct live_lease reserve(sd_bus *bus, unsigned cus)
{
	return granted(call(ask(bus, "Reserve", cus)));
}

sd_bus_message *ask_shared(sd_bus *bus)
{
	return ask_for(bus, "cus=15 isolation=shared queues=1");
}

sd_bus_message *ask_token(sd_bus *bus, unsigned cus, const char *token)
{
	return ask_for(bus, "cus=%u; token=%s", cus, token);
}

sd_bus_message *ask_bound(sd_bus *bus, unsigned cus, int fd)
{
	return ask_for(bus, "cus=%u; process=%d", cus, fd);
}

void bind_process(sd_bus *bus, const struct live_lease *lease, int pidfd)
{
	CHECK(is_fine(call(with(call_lease(bus, lease->path, "Bind"), "h", pidfd))));
}

sd_bus_message *resize(sd_bus *bus, const char *path, unsigned cus)
{
	return with_request(call_lease(bus, path, "Resize"), "cus=%u", cus);
}

sd_bus_message *release(sd_bus *bus, const char *path)
{
	return call_lease(bus, path, "Release");
}

bool next_record(int holder, struct live_record *ret)
{
	ssize_t n;

	AWAIT_FD(holder, POLLIN);
	n = recv(holder, ret, sizeof(*ret), MSG_DONTWAIT);
	CHECK(n == 0 ||
	      (n >= (ssize_t)sizeof(ret->record) && ret->record.version == GPUARB_RECORD_VERSION &&
	       ret->record.header_size == sizeof(ret->record) &&
	       ret->record.partition_size == sizeof(ret->partitions[0])));
	return n > 0;
}

struct live_record await_record(int holder, enum gpuarb_record_state state)
{
	struct live_record record;

	do
		CHECK(next_record(holder, &record));
	while (record.record.state != state);
	return record;
}

uint64_t number_of(sd_bus *bus, const char *path, const char *interface, const char *name)
{
	sd_bus_message *m = call(get(bus, path, interface, name));
	const char *type;
	uint64_t number;
	uint32_t small;

	if (sd_bus_message_is_method_error(m, NULL))
		fprintf(stderr, "%s: %s\n", name, sd_bus_message_get_error(m)->message);
	CHECK(!sd_bus_message_is_method_error(m, NULL));
	CHECK(sd_bus_message_peek_type(m, NULL, &type) > 0);
	if (strcmp(type, "t") == 0) {
		CHECK(sd_bus_message_read(m, "v", "t", &number) >= 0);
	} else {
		CHECK(sd_bus_message_read(m, "v", type, &small) >= 0);
		number = small;
	}
	sd_bus_message_unref(m);
	return number;
}

unsigned gpu_number(sd_bus *bus, const char *name)
{
	return (unsigned)number_of(bus, GPUARB_PATH_GPU "/0", GPUARB_INTERFACE_GPU, name);
}

static bool says(sd_bus_message *m, const char *text)
{
	const char *value = "";
	bool has;

	CHECK(sd_bus_message_read(m, "v", "s", &value) >= 0);
	has = *text ? strstr(value, text) != NULL : *value == '\0';
	sd_bus_message_unref(m);
	return has;
}

bool lease_says(sd_bus *bus, const char *path, const char *name, const char *text)
{
	return says(call(get(bus, path, GPUARB_INTERFACE_LEASE, name)), text);
}

bool gpu_says(sd_bus *bus, const char *name, const char *text)
{
	return says(call(get(bus, GPUARB_PATH_GPU "/0", GPUARB_INTERFACE_GPU, name)), text);
}

/* Prints the value of an entry: " KEY=VALUE ". */
static void print_entry(FILE *file, sd_bus_message *m)
{
	union {
		uint8_t byte;
		int flag;
		uint32_t number;
		uint64_t large;
		double real;
		const char *text;
	} value;
	const char *key, *type;

	CHECK(sd_bus_message_read(m, "s", &key) > 0);
	CHECK(sd_bus_message_peek_type(m, NULL, &type) > 0);
	if (!strchr("butds", type[0])) {
		CHECK(sd_bus_message_skip(m, "v") >= 0);
		return;
	}
	CHECK(sd_bus_message_read(m, "v", type, &value) > 0);
	switch (type[0]) {
	case 's': fprintf(file, "%s=%s ", key, value.text); break;
	case 'd': fprintf(file, "%s=%g ", key, value.real); break;
	case 't': fprintf(file, "%s=%" PRIu64 " ", key, value.large); break;
	default: fprintf(file, "%s=%" PRIu32 " ", key, value.number);
	}
}

bool read_row(sd_bus_message *m, struct row *ret)
{
	FILE *file;

	if (sd_bus_message_enter_container(m, 'a', "{sv}") <= 0)
		return false;
	file = fmemopen(ret->text, sizeof(ret->text), "w");
	CHECK(file);
	fputc(' ', file);
	while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
		print_entry(file, m);
		CHECK(sd_bus_message_exit_container(m) >= 0);
	}
	CHECK(sd_bus_message_exit_container(m) >= 0 && fclose(file) == 0);
	return true;
}

unsigned read_rows(sd_bus_message *m, struct row rows[static ROWS_MAX])
{
	unsigned n = 0;

	CHECK(sd_bus_message_enter_container(m, 'a', "a{sv}") >= 0);
	while (read_row(m, &rows[n < ROWS_MAX ? n : ROWS_MAX - 1]))
		n++;
	CHECK(sd_bus_message_exit_container(m) >= 0);
	return n;
}

unsigned rows_of(sd_bus *bus, const char *path, const char *interface, const char *name,
		 struct row rows[static ROWS_MAX])
{
	sd_bus_message *m = call(get(bus, path, interface, name));
	unsigned n;

	CHECK(sd_bus_message_enter_container(m, 'v', "aa{sv}") >= 0);
	n = read_rows(m, rows);
	sd_bus_message_unref(m);
	return n;
}

uint64_t row_number(const struct row *row, const char *key)
{
	char wanted[64];
	const char *at;

	snprintf(wanted, sizeof(wanted), " %s=", key);
	at = strstr(row->text, wanted);
	return at ? strtoull(at + strlen(wanted), NULL, 10) : 0;
}

bool row_has(const struct row *row, const char *format, ...)
{
	char wanted[64];
	va_list args;

	va_start(args, format);
	vsnprintf(wanted, sizeof(wanted), format, args);
	va_end(args);
	return strstr(row->text, wanted);
}

struct row user_limits(sd_bus *bus, uid_t uid)
{
	sd_bus_message *m = call(call_arbiter(bus, "ReadLimits"));
	struct row rows[ROWS_MAX];
	unsigned n;

	CHECK(sd_bus_message_skip(m, "a{sv}") >= 0);
	n = read_rows(m, rows);
	CHECK(n <= ROWS_MAX);
	sd_bus_message_unref(m);
	while (n-- > 0)
		if (row_has(&rows[n], " uid=%u ", uid))
			return rows[n];
	return (struct row){ "" };
}

uint64_t user_limit(sd_bus *bus, uid_t uid, const char *key)
{
	struct row limits = user_limits(bus, uid);

	return row_number(&limits, key);
}

bool lease_exists(sd_bus *bus, const char *path)
{
	sd_bus_message *m = call(get(bus, path, GPUARB_INTERFACE_LEASE, "Id"));
	bool exists = !sd_bus_message_is_method_error(m, NULL);

	CHECK(exists || sd_bus_message_is_method_error(m, GPUARB_ERROR_NO_SUCH_LEASE));
	sd_bus_message_unref(m);
	return exists;
}

static int live_objects(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	bool added = sd_bus_message_is_signal(m, NULL, "InterfacesAdded");
	struct told *told = userdata;
	const char *path;

	CHECK(sd_bus_message_read(m, "o", &path) >= 0);
	snprintf(added ? told->last_added : told->last_removed, 64, "%s", path);
	++*(added ? &told->added : &told->removed);
	return 0;
}

static int live_properties(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct told *told = userdata;
	const char *name;

	CHECK(sd_bus_message_read(m, "s", &name) >= 0);
	if (strcmp(name, GPUARB_INTERFACE_LEASE) == 0)
		told->lease++;
	if (strcmp(name, GPUARB_INTERFACE_GPU) != 0)
		return 0;
	told->gpu++;
	CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") >= 0);
	while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
		CHECK(sd_bus_message_read(m, "s", &name) >= 0);
		if (strcmp(name, "CusFree") == 0)
			CHECK(sd_bus_message_read(m, "v", "u", &told->cus_free) >= 0);
		else if (strcmp(name, "QueueSlotsFree") == 0)
			CHECK(sd_bus_message_read(m, "v", "u", &told->slots_free) >= 0);
		else
			CHECK(sd_bus_message_skip(m, "v") >= 0);
		CHECK(sd_bus_message_exit_container(m) >= 0);
	}
	return 0;
}

void listen_in(sd_bus *bus, struct told *told)
{
	memset(told, 0, sizeof(*told));
	CHECK(sd_bus_match_signal(bus, NULL, GPUARB_BUS_NAME, GPUARB_PATH,
				  "org.freedesktop.DBus.ObjectManager", NULL, live_objects,
				  told) >= 0);
	CHECK(sd_bus_match_signal(bus, NULL, GPUARB_BUS_NAME, NULL,
				  "org.freedesktop.DBus.Properties", "PropertiesChanged",
				  live_properties, told) >= 0);
}

void live_connect(struct live *live)
{
	live->bus = rig_connect(&live->rig, 0);
	listen_in(live->bus, &live->told);
}

pid_t idler(uid_t uid, int *ret_pidfd)
{
	int ready[2];
	char byte;
	pid_t pid;

	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(uid == 0 || setuid(uid) == 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* after setuid(), which clears it */
		CHECK(write(ready[1], "", 1) == 1);
		for (;;)
			pause();
	}
	CHECK(read(ready[0], &byte, 1) == 1); /* it is that user's now */
	close(ready[0]);
	close(ready[1]);
	if (ret_pidfd) {
		*ret_pidfd = pidfd_open(pid, 0);
		CHECK(*ret_pidfd >= 0);
	}
	return pid;
}

pid_t family(uid_t uid, uid_t uid_of_child, pid_t *ret_child)
{
	int ends[2];
	pid_t pid;

	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		pid_t child = idler(uid_of_child, NULL);

		CHECK(setuid(uid) == 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* after setuid(), which clears it */
		CHECK(write(ends[1], &child, sizeof(child)) == sizeof(child));
		for (;;)
			pause();
	}
	CHECK(read(ends[0], ret_child, sizeof(*ret_child)) == sizeof(*ret_child));
	close(ends[0]);
	close(ends[1]);
	return pid;
}

void end_process(pid_t pid)
{
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static char log_path[128];
static int log_before;

/* A failed check prints to the log, too. */
static void show_log(int)
{
	int fd = open(log_path, O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n;

	do
		n = read(fd, text, sizeof(text));
	while (n > 0 && write(log_before, text, (size_t)n) > 0);
}

void log_begin(const struct rig *rig)
{
	int fd;

	snprintf(log_path, sizeof(log_path), "%s/log", rig->dir);
	fd = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	log_before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	CHECK(log_before >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
	CHECK(signal(SIGABRT, show_log) != SIG_ERR);
}

static const char *read_log(const struct rig *rig)
{
	static char text[1 << 20];
	char path[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/log", rig->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	CHECK(n >= 0);
	text[n] = '\0';
	close(fd);
	return text;
}

bool log_says(const struct rig *rig, const char *text)
{
	return strstr(read_log(rig), text);
}

const char *log_end(const struct rig *rig)
{
	CHECK(signal(SIGABRT, SIG_DFL) != SIG_ERR && dup2(log_before, STDERR_FILENO) >= 0);
	close(log_before);
	return read_log(rig);
}

void start_quietly(struct rig *rig, void (*start)(struct rig *rig))
{
	const char *options = getenv("ASAN_OPTIONS");
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	char text[256];

	snprintf(text, sizeof(text), "%s:quarantine_size_mb=1", options ? options : "");
	CHECK(setenv("ASAN_OPTIONS", text, 1) == 0);
	CHECK(null >= 0 && errors >= 0 && dup2(null, STDERR_FILENO) >= 0);
	rig_new(rig);
	start(rig);
	CHECK(dup2(errors, STDERR_FILENO) >= 0);
	close(errors);
	close(null);
}
