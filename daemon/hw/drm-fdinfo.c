/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/drm-fdinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "util/fd.h"
#include "util/clock.h"
#include "util/grow.h"
#include "util/number.h"

#define TEXT_MAX 4096U            /* of one fdinfo file: a client has about 1 KiB */
#define DESCRIPTORS_OF_USER 8192U /* before those of others … */
#define DESCRIPTORS_OF_PROCESS 8U /* … where a process costs as much as so many */
#define SCANS_UNREAD 30U          /* of a process that seems to be the same */

/* ---- one file -------------------------------------------------------------------------- */

/* Saturates. Returns the number of digits. */
static size_t parse_number(const char *text, uint64_t *ret)
{
	const char *end = text;

	if (number_take(&end, ret) == -ERANGE)
		*ret = UINT64_MAX;
	return strspn(text, "0123456789");
}

/* "123 ns", "4 KiB", "67". -EBADMSG: not a number with a unit that the documentation names. */
static int parse_value(const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} units[] = { { "", 1 }, { "ns", 1 }, { "KiB", 1024 }, { "MiB", 1024 * 1024 } };
	uint64_t number;
	size_t length;

	text += strspn(text, " \t");
	length = parse_number(text, &number);
	if (length == 0)
		return -EBADMSG;
	text += length;
	text += strspn(text, " \t");
	length = strcspn(text, " \t\r\n");
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strlen(units[i].name) != length || strncmp(text, units[i].name, length) != 0)
			continue;
		if (__builtin_mul_overflow(number, units[i].factor, ret))
			*ret = UINT64_MAX;
		return 0;
	}
	return -EBADMSG;
}

enum { KEY_DRIVER, KEY_DEVICE, KEY_ID, KEY_MEMORY_VRAM, KEY_MEMORY_GTT, KEY_NUMBERS };

/* resident replaces memory, the name of the same amount before Linux 6.6. */
static const struct {
	const char *name;
	size_t offset;
} keys[] = {
	[KEY_DRIVER] = { "drm-driver:", 0 },
	[KEY_DEVICE] = { "drm-pdev:", 0 },
	[KEY_ID] = { "drm-client-id:", offsetof(struct drm_client, id) },
	[KEY_MEMORY_VRAM] = { "drm-memory-vram:", offsetof(struct drm_client, use.vram) },
	[KEY_MEMORY_GTT] = { "drm-memory-gtt:", offsetof(struct drm_client, use.gtt) },
	[KEY_NUMBERS] = { "drm-resident-vram:", offsetof(struct drm_client, use.vram) },
	{ "drm-resident-gtt:", offsetof(struct drm_client, use.gtt) },
	{ "drm-engine-gfx:", offsetof(struct drm_client, use.gfx_nsec) },
	{ "drm-engine-compute:", offsetof(struct drm_client, use.compute_nsec) },
	{ "drm-engine-dma:", offsetof(struct drm_client, use.dma_nsec) },
};

#define SEEN(key) (1U << (key))

/* The value of the key at the beginning of the line; NULL: another key. */
static const char *value_of(const char *line, const char *key)
{
	size_t length = strlen(key);

	return strncmp(line, key, length) == 0 ? line + length : NULL;
}

static bool is_word(const char *value, const char *word)
{
	size_t length = strlen(word);

	value += strspn(value, " \t");
	return strncmp(value, word, length) == 0 && strchr("\n", value[length]);
}

static int take_device(const char *value, char ret[static GPU_NAME_MAX])
{
	size_t length;

	value += strspn(value, " \t");
	length = strspn(value, "0123456789abcdef:.");
	if (length == 0 || length >= GPU_NAME_MAX || !strchr("\n", value[length]))
		return -EBADMSG;
	memcpy(ret, value, length);
	return 0;
}

/* Is the amount in drm-memory- the one of a drm-resident- that came before? */
static bool is_replaced(size_t key, unsigned seen)
{
	return (key == KEY_MEMORY_VRAM && (seen & SEEN(KEY_NUMBERS))) ||
	       (key == KEY_MEMORY_GTT && (seen & SEEN(KEY_NUMBERS + 1)));
}

static void take_line(const char *line, unsigned *seen, struct drm_client *client)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *value = value_of(line, keys[i].name);
		uint64_t number;
		bool good;

		if (!value)
			continue;
		if (*seen & SEEN(i) || is_replaced(i, *seen))
			return;
		if (i == KEY_DRIVER)
			good = is_word(value, "amdgpu");
		else if (i == KEY_DEVICE)
			good = take_device(value, client->use.device) == 0;
		else
			good = parse_value(value, &number) == 0;
		if (good && i >= KEY_ID)
			memcpy((char *)client + keys[i].offset, &number, sizeof(number));
		*seen |= good ? SEEN(i) : 0;
		return;
	}
}

/* Begins a part of the text of another file with names that its user chooses, line ends included: that of a DMA buffer
 * (dma_buf_show_fdinfo() in drivers/dma-buf/dma-buf.c), and of files of an io_uring, as Linux 6.12 and older show them
 * (io_uring_show_fdinfo() in io_uring/fdinfo.c). */
static bool is_of_other_file(const char *line)
{
	return value_of(line, "exp_name:") || value_of(line, "UserFiles:");
}

int drm_client_parse(const char *text, struct drm_client *ret)
{
	const unsigned needed = SEEN(KEY_DRIVER) | SEEN(KEY_DEVICE) | SEEN(KEY_ID);
	struct drm_client client = { .use.clients = 1 };
	unsigned seen = 0;
	bool old = false;

	while (*text) {
		if (is_of_other_file(text))
			return -ENODATA;
		if (strncmp(text, "drm-", 4) == 0)
			take_line(text, &seen, &client);
		old |= value_of(text, "vram mem:") != NULL;
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	if ((seen & needed) != needed)
		return old ? -EOPNOTSUPP : -ENODATA;
	*ret = client;
	return 0;
}

/* ---- processes ------------------------------------------------------------------------- */

/* A process without a client, as it was when its descriptors were read. */
struct idle {
	pid_t pid;
	ino_t inode;         /* of /proc/PID/fd: another process has another */
	off_t n_descriptors; /* size of /proc/PID/fd */
	unsigned scans;      /* that need not read it again */
};

struct idle_list {
	struct idle *list; /* by pid */
	size_t n;
};

struct drm_reader {
	char *procfs;
	const struct subuids *subuids;
	bool counts; /* the kernel tells how many descriptors a process has */
	struct idle_list idle;
	unsigned first; /* of those that are read later */
};

struct reading_user {
	uid_t uid;
	unsigned descriptors; /* that were read in this scan */
};

/* A process that is read after those of others. */
struct later {
	pid_t pid;
	uid_t uid;
};

struct walk {
	struct drm_reader *reader;
	struct drm_client *clients;
	struct reading_user *users;
	struct later *later;
	size_t n, n_users, n_later;
	struct drm_scan *scan;
	struct idle_list idle; /* that replaces the reader's */
	uint64_t end_usec;
	bool all;
	bool last;   /* reads those that were left for later */
	bool failed; /* no memory */
};

static void walk_done(struct walk *walk)
{
	free(walk->clients);
	free(walk->users);
	free(walk->later);
}

/* Without memory the scan fails. */
static void *add_to(struct walk *walk, void *list, size_t *n, size_t size)
{
	void *element = grow(list, n, size);

	walk->failed |= !element;
	return element;
}

static struct reading_user *user_of(struct walk *walk, uid_t uid)
{
	struct reading_user *user;

	for (size_t i = 0; i < walk->n_users; i++)
		if (walk->users[i].uid == uid)
			return &walk->users[i];
	user = add_to(walk, &walk->users, &walk->n_users, sizeof(*user));
	if (user)
		*user = (struct reading_user){ .uid = uid };
	return user;
}

static bool is_over(const struct walk *walk)
{
	return clock_usec(CLOCK_MONOTONIC) > walk->end_usec;
}

static void leave_late(struct walk *walk, uid_t uid)
{
	walk->scan->late++;
	walk->scan->late_uid = uid;
}

/* Is the rest of this process, or all of it, to be read later, or not by this scan? */
static bool is_put_off(struct walk *walk, struct reading_user *user, pid_t pid, unsigned more)
{
	struct later *later;

	if (walk->last || user->uid == 0) {
		if (!is_over(walk))
			return false;
		if (walk->last)
			leave_late(walk, user->uid);
		else
			walk->scan->unread++;
		return true;
	}
	user->descriptors += more;
	if (user->descriptors <= DESCRIPTORS_OF_USER)
		return false;
	later = add_to(walk, &walk->later, &walk->n_later, sizeof(*later));
	if (later)
		*later = (struct later){ pid, user->uid };
	return true;
}

static ssize_t read_text(int dir, const char *name, char text[static TEXT_MAX])
{
	/* O_NONBLOCK: in a tree that is not the kernel's the file may be a FIFO. */
	_cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_MAX - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

/* Field 22, counted from behind the command, which is in parentheses and may contain any others. */
static int read_start_time(int process, uint64_t *ret)
{
	char text[TEXT_MAX];
	ssize_t n = read_text(process, "stat", text);
	const char *at = n > 0 ? strrchr(text, ')') : NULL;

	for (unsigned field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at && parse_number(at + 1, ret) > 0 ? 0 : -ESRCH;
}

/* The owner of /proc/PID, its effective user, but root for an undumpable process. */
static uid_t read_uid(int process)
{
	char text[TEXT_MAX];
	const char *line;
	unsigned uid;
	struct stat st;

	if (fstat(process, &st) == 0 && st.st_uid != 0)
		return st.st_uid;
	line = read_text(process, "status", text) > 0 ? strstr(text, "\nUid:") : NULL;
	return line && sscanf(line, "\nUid: %u", &uid) == 1 ? uid : (uid_t)-1;
}

/* Returns whether to read on in the process. */
static bool add_client(struct walk *walk, const char *text, int process, struct drm_use *of)
{
	struct drm_client client, *added;
	int r = drm_client_parse(text, &client);

	walk->scan->unread += r == -EOPNOTSUPP;
	if (r < 0)
		return r != -EOPNOTSUPP;
	if (of->start_time == 0 && read_start_time(process, &of->start_time) < 0)
		return false;
	client.use.pid = of->pid;
	client.use.uid = of->uid;
	client.use.processes = 1;
	client.use.start_time = of->start_time;
	added = add_to(walk, &walk->clients, &walk->n, sizeof(*added));
	if (added)
		*added = client;
	return added;
}

/* All lookups start at the descriptor of /proc/PID: they fail when the process has ended, also if
 * another process has its pid. Returns whether all descriptors were read. */
static bool read_process(struct walk *walk, int process, pid_t pid)
{
	_cleanup_(closedirp) DIR *dir = open_directory(
		openat(process, "fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
	struct drm_use of = { .pid = pid };
	struct reading_user *user;
	const struct dirent *entry;
	char text[TEXT_MAX];
	bool more = true;

	if (!dir) {
		walk->scan->unread += errno != ENOENT && errno != ESRCH;
		return false;
	}
	of.uid = subuids_user(walk->reader->subuids, read_uid(process));
	user = user_of(walk, of.uid);
	if (!user || is_put_off(walk, user, pid, DESCRIPTORS_OF_PROCESS))
		return false;
	while (more && (entry = readdir(dir))) {
		ssize_t size;

		if (entry->d_name[0] == '.')
			continue;
		if (is_put_off(walk, user, pid, 1))
			return false;
		size = read_text(dirfd(dir), entry->d_name, text);
		if (size == -EACCES || size == -EPERM) {
			walk->scan->unread++;
			return false;
		}
		if (size > 0)
			more = add_client(walk, text, process, &of);
	}
	return more;
}

DEFINE_ORDER(by_pid, struct idle, .pid)

/* A process that is not remembered is read again by the next scan. */
static void remember(struct idle_list *idle, const struct idle *process)
{
	struct idle *added = grow(&idle->list, &idle->n, sizeof(*added));

	if (added)
		*added = *process;
}

/* Is the process one of those without a client, with the same number of descriptors? The first time
 * that a process is read again depends on its pid, so that not all are read by one scan. */
static bool is_still_idle(struct walk *walk, struct idle *now)
{
	const struct idle_list *idle = &walk->reader->idle;
	const struct idle *before =
		idle->n > 0 ? bsearch(now, idle->list, idle->n, sizeof(*now), by_pid) : NULL;

	now->scans = (unsigned)now->pid % SCANS_UNREAD;
	if (!before || before->inode != now->inode)
		return false;
	now->scans = SCANS_UNREAD - 1;
	if (walk->all || before->scans == 0 || before->n_descriptors != now->n_descriptors)
		return false;
	now->scans = before->scans - 1;
	return true;
}

/* Fills *ret for a process whose number of descriptors the kernel tells. */
static bool describe_process(const struct walk *walk, int procfs, pid_t pid, struct idle *ret)
{
	char path[32];
	struct stat st;

	if (!walk->reader->counts)
		return false;
	snprintf(path, sizeof(path), "%d/fd", (int)pid);
	if (fstatat(procfs, path, &st, 0) < 0)
		return false;
	*ret = (struct idle){ .pid = pid, .inode = st.st_ino, .n_descriptors = st.st_size };
	return true;
}

static void read_entry(struct walk *walk, int procfs, const char *name, pid_t pid)
{
	_cleanup_fd_ int process = -1;
	size_t before = walk->n;
	struct idle now;
	bool known = describe_process(walk, procfs, pid, &now);

	if (known && now.n_descriptors == 0)
		return;
	if (known && is_still_idle(walk, &now)) {
		walk->scan->skipped++;
		remember(&walk->idle, &now);
		return;
	}
	process = openat(procfs, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process >= 0 && read_process(walk, process, pid) && walk->n == before && known)
		remember(&walk->idle, &now);
}

/* 0: the entry is no process. */
static pid_t pid_of(const char *name)
{
	uint64_t pid;
	size_t length = parse_number(name, &pid);

	return length > 0 && !name[length] && pid <= INT32_MAX ? (pid_t)pid : 0;
}

/* Each scan begins with another one of those that were left for later. */
static void read_later(struct walk *walk, int procfs)
{
	size_t n = walk->n_later;

	walk->last = true;
	for (size_t i = 0; i < n; i++) {
		const struct later *later = &walk->later[(i + walk->reader->first) % n];
		char name[16];

		snprintf(name, sizeof(name), "%d", (int)later->pid);
		if (is_over(walk))
			leave_late(walk, later->uid);
		else
			read_entry(walk, procfs, name, later->pid);
	}
	walk->reader->first++;
}

static void read_all(struct walk *walk, DIR *dir)
{
	const struct dirent *entry;

	while ((entry = readdir(dir))) {
		pid_t pid = pid_of(entry->d_name);

		if (pid == 0)
			continue;
		if (is_over(walk))
			walk->scan->unread++;
		else
			read_entry(walk, dirfd(dir), entry->d_name, pid);
	}
	read_later(walk, dirfd(dir));
	if (walk->idle.n > 0)
		qsort(walk->idle.list, walk->idle.n, sizeof(*walk->idle.list), by_pid);
	free(walk->reader->idle.list);
	walk->reader->idle = walk->idle;
}

int drm_reader_new(const char *procfs, const struct subuids *subuids, struct drm_reader **ret)
{
	_cleanup_(drm_reader_freep) struct drm_reader *reader = calloc(1, sizeof(*reader));
	_cleanup_fd_ int dir = open(procfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (dir < 0)
		return -errno;
	if (!reader)
		return -ENOMEM;
	reader->procfs = strdup(procfs);
	if (!reader->procfs)
		return -ENOMEM;
	reader->subuids = subuids;
	/* This process has descriptors; before Linux 6.2 the size is 0. */
	reader->counts = fstatat(dir, "self/fd", &st, 0) == 0 && st.st_size > 0;
	*ret = TAKE_PTR(reader);
	return 0;
}

struct drm_reader *drm_reader_free(struct drm_reader *reader)
{
	free(reader->idle.list);
	free(reader->procfs);
	free(reader);
	return NULL;
}

/* ---- sums ------------------------------------------------------------------------------ */

static int order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_client(const void *a, const void *b)
{
	const struct drm_client *x = a, *y = b;
	int r = strcmp(x->use.device, y->use.device);

	if (r == 0)
		r = order(x->id, y->id);
	if (r == 0)
		r = order(y->use.start_time, x->use.start_time);
	return r ? r : order((uint64_t)y->use.pid, (uint64_t)x->use.pid);
}

/* Leaves one row for each client: of the process that started last. */
static void drop_shared(struct walk *walk)
{
	size_t n = 0;

	if (walk->n > 0)
		qsort(walk->clients, walk->n, sizeof(*walk->clients), by_client);
	for (size_t i = 0; i < walk->n; i++) {
		const struct drm_client *last = n > 0 ? &walk->clients[n - 1] : NULL;

		if (last && last->id == walk->clients[i].id &&
		    strcmp(last->use.device, walk->clients[i].use.device) == 0)
			continue;
		walk->clients[n++] = walk->clients[i];
	}
	walk->n = n;
}

static void add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

static void add_use(struct drm_use *sum, const struct drm_use *use)
{
	add(&sum->gfx_nsec, use->gfx_nsec);
	add(&sum->compute_nsec, use->compute_nsec);
	add(&sum->dma_nsec, use->dma_nsec);
	add(&sum->vram, use->vram);
	add(&sum->gtt, use->gtt);
	sum->clients += use->clients;
}

static int by_process(const void *a, const void *b)
{
	const struct drm_use *x = a, *y = b;
	int r = order((uint64_t)x->pid, (uint64_t)y->pid);

	r = r ? r : order(x->uid, y->uid);
	return r ? r : strcmp(x->device, y->device);
}

/* One use of each process and device. Returns how many. */
static size_t sum_clients(const struct drm_client *clients, size_t n, struct drm_use *uses)
{
	size_t n_uses = 0;

	for (size_t i = 0; i < n; i++)
		uses[i] = clients[i].use;
	qsort(uses, n, sizeof(*uses), by_process);
	for (size_t i = 0; i < n; i++) {
		struct drm_use *last = n_uses > 0 ? &uses[n_uses - 1] : NULL;

		if (last && by_process(last, &uses[i]) == 0)
			add_use(last, &uses[i]);
		else
			uses[n_uses++] = uses[i];
	}
	return n_uses;
}

/* ---- as many rows as there is room for --------------------------------------------------- */

/* What has most memory is left as it is. */
static int by_user(const void *a, const void *b)
{
	const struct drm_use *x = a, *y = b;
	int r = order(x->uid, y->uid);

	r = r ? r : strcmp(x->device, y->device);
	r = r ? r : order(y->vram, x->vram);
	return r ? r : order((uint64_t)x->pid, (uint64_t)y->pid);
}

static int by_device(const void *a, const void *b)
{
	return strcmp(((const struct drm_use *)a)->device, ((const struct drm_use *)b)->device);
}

/* Leaves so many processes of each user on each device, and makes one use of the others. Returns the number of
 * uses, of which as many as there is room for are in ret. */
static size_t fold(const struct drm_use *uses, size_t n, size_t each, struct drm_use *ret)
{
	size_t n_ret = 0, left = 0;

	for (size_t i = 0; i < n; i++) {
		bool same = i > 0 && uses[i].uid == uses[i - 1].uid &&
			    strcmp(uses[i].device, uses[i - 1].device) == 0;
		struct drm_use *last = n_ret > 0 ? &ret[n_ret - 1] : NULL;

		left = same ? left : each;
		if (same && left == 0 && last->pid == 0) {
			add_use(last, &uses[i]);
			last->processes += uses[i].processes;
			continue;
		}
		if (n_ret == DRM_USES_MAX)
			return n_ret + 1;
		ret[n_ret] = uses[i];
		if (left == 0) {
			ret[n_ret].pid = 0;
			ret[n_ret].start_time = 0;
		}
		left -= left > 0;
		n_ret++;
	}
	return n_ret;
}

/* uses: of which there are more than there is room for. */
static void fit(struct drm_use *uses, size_t n, struct drm_scan *ret)
{
	size_t n_ret = DRM_USES_MAX + 1;

	qsort(uses, n, sizeof(*uses), by_user);
	for (size_t each = DRM_USES_MAX / 2; n_ret > DRM_USES_MAX; each /= 2) {
		n_ret = fold(uses, n, each, ret->uses);
		if (each == 0)
			break;
	}
	if (n_ret > DRM_USES_MAX) { /* of too many users to tell apart */
		for (size_t i = 0; i < n; i++)
			uses[i].uid = (uint32_t)-1;
		qsort(uses, n, sizeof(*uses), by_device);
		n_ret = fold(uses, n, 0, ret->uses);
	}
	ret->n = (uint32_t)n_ret;
	if (n_ret > DRM_USES_MAX) { /* of more devices than there are */
		ret->n = DRM_USES_MAX;
		ret->unread++;
	}
	qsort(ret->uses, ret->n, sizeof(*ret->uses), by_process);
}

static int take_clients(struct walk *walk, struct drm_scan *ret)
{
	_cleanup_(freep) struct drm_use *uses = calloc(walk->n + 1, sizeof(*uses));
	size_t n;

	if (!uses || walk->failed)
		return -ENOMEM;
	drop_shared(walk);
	n = sum_clients(walk->clients, walk->n, uses);
	if (n > DRM_USES_MAX) {
		fit(uses, n, ret);
		return 0;
	}
	memcpy(ret->uses, uses, n * sizeof(*uses));
	ret->n = (uint32_t)n;
	return 0;
}

int drm_scan_read(struct drm_reader *reader, bool all, uint64_t usec, struct drm_scan *ret)
{
	_cleanup_(closedirp) DIR *dir = opendir(reader->procfs);
	_cleanup_(walk_done) struct walk walk = { .reader = reader, .scan = ret, .all = all };
	uint64_t begin = clock_usec(CLOCK_THREAD_CPUTIME_ID);
	int r;

	if (!dir)
		return -errno;
	walk.end_usec = clock_usec(CLOCK_MONOTONIC) + usec;
	*ret = (struct drm_scan){ .version = DRM_VERSION };
	read_all(&walk, dir);
	r = take_clients(&walk, ret);
	ret->cpu_usec = clock_usec(CLOCK_THREAD_CPUTIME_ID) - begin;
	return r;
}

/* ---- packets --------------------------------------------------------------------------- */

size_t drm_scan_size(const struct drm_scan *scan)
{
	return offsetof(struct drm_scan, uses) + scan->n * sizeof(scan->uses[0]);
}

int drm_scan_check(const struct drm_scan *scan, size_t length)
{
	if (length < offsetof(struct drm_scan, uses) || scan->version != DRM_VERSION ||
	    scan->n > DRM_USES_MAX || length != drm_scan_size(scan))
		return -EBADMSG;
	for (uint32_t i = 0; i < scan->n; i++)
		if (scan->uses[i].pid < 0 || !memchr(scan->uses[i].device, '\0', GPU_NAME_MAX))
			return -EBADMSG;
	return 0;
}
