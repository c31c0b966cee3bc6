/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/container.h"
#include "sys/liveness/shelf.h"
#include "sys/process.h"

#define BUCKETS 4096U /* lease ids follow each other: id % BUCKETS spreads them evenly */

/* Kernel memory for the queue of one holder: a few of the largest records. A reader needs only the
 * latest record, and there can be thousands of holders that nobody reads. */
#define QUEUE_BYTES 32768

/* Edge-triggered: with level-triggered events thousands of ends at once (a killed job of many
 * processes) would be quadratic, because each turn of the loop would report all of them. */
#define HANG_UP EPOLLET
#define ROOM (EPOLLET | EPOLLOUT)
#define EXIT (EPOLLET | EPOLLIN)

/* What keeps a lease alive: the daemon's end of a holder pair, or a bound process. */
struct holder_entry {
	struct holders *holders;
	LIST_ENTRY(holder_entry) link;
	uint64_t lease;
	uint64_t inode; /* of a holder: part of its name in the store */
	pid_t pid;      /* 0: a holder */
	bool delegated; /* root bound the process */
	bool leaving;   /* the lease was dropped, and its last record waits */
	bool shelved;   /* a shelf has, or had, a copy of fd */
	int fd;
	struct shelf *shelf;               /* NULL: stored under its own name */
	TAILQ_ENTRY(holder_entry) sibling; /* in holders->loose, or on the shelf */
	bool stored;                       /* it is in one of these */
	sd_event_source *source;
	void *waiting; /* the latest record, if the queue was full */
	size_t waiting_size;
	struct container_place *container; /* that begins with the process; NULL: none does */
	LIST_ENTRY(holder_entry) next_container;
};

LIST_HEAD(entries, holder_entry);
TAILQ_HEAD(stored_entries, holder_entry);

/* Entries that the store keeps as one descriptor: sys/liveness/shelf.h. */
struct shelf {
	LIST_ENTRY(shelf) link;
	struct holders *holders; /* NULL: they were freed while it settles */
	uint64_t number;
	int fd;
	bool settling; /* the service manager may not have it yet: the entries are stored twice */
	bool emptying; /* its entries are stored under their own names again, and it is dropped */
	struct stored_entries entries;
	unsigned n;
};

struct holders {
	sd_event *event;
	struct store *store;
	struct holders_callbacks callbacks;
	void *userdata;
	size_t n;
	struct stored_entries loose; /* each stored under its own name; the oldest first */
	unsigned n_loose;
	unsigned shelve_at; /* so many loose entries are too many */
	LIST_HEAD(, shelf) shelves;
	uint64_t last_shelf;
	bool settling; /* a shelf is */
	bool ending;   /* the store stays as it is */
	struct entries buckets[BUCKETS];
	struct entries containers;
	struct entries leaving[HOLDERS_LEAVING_MAX]; /* a ring of lists with one entry each */
	unsigned next_leaving;
};

/* ---- file descriptors and their names in the store ----------------------------------- */

/* Makes a pair: pair[0] stays here and can only send, pair[1] is the client's and can only
 * receive. */
static int new_pair(int pair[static 2])
{
	const int queue = QUEUE_BYTES;
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;

	/* Now the client cannot send. When its end is closed or shut down, both directions are shut
	 * down here, which is EPOLLHUP. EPOLLRDHUP would be permanent. */
	if (shutdown(pair[0], SHUT_RD) < 0 ||
	    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &queue, sizeof(queue)) < 0) {
		r = -errno;
		close(pair[0]);
		close(pair[1]);
		return r;
	}
	return 0;
}

/* Opens a pidfd of its own: a duplicate is the same file, which a client can bind to several leases
 * and which the store keeps only once. */
static int copy_pidfd(int pidfd, pid_t pid)
{
	int copy = fcntl(pidfd, F_DUPFD_CLOEXEC, 3), own;

	if (copy < 0)
		return -errno;
	own = (int)syscall(SYS_pidfd_open, pid, 0);
	if (own < 0 && errno == ESRCH)
		return copy;
	if (own < 0)
		own = -errno;
	if (own < 0 || process_is_alive(pidfd)) {
		close(copy);
		return own;
	}
	close(own); /* the process has ended: this may be another one with its pid */
	return copy;
}

static bool is_end_of_pair(int fd)
{
	int domain = 0, type = 0;
	socklen_t size = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/* Accepts a pidfd whose pid cannot be read: the process has ended, or no file is free to read it. */
static bool is_pidfd_of(int fd, pid_t pid)
{
	pid_t of;
	uid_t uid;
	int r = process_of_pidfd(fd, &of, &uid);

	return r == 0 ? of == pid : r != -EBADF && r != -EPERM;
}

static const char *const kinds[STORED_KINDS] = { "", "pid-", "root-", "cap-" };

void stored_name_write(const struct stored_name *of, char ret[static STORE_NAME_MAX])
{
	snprintf(ret, STORE_NAME_MAX, "lease-%" PRIu64 "-%s%" PRIu64, of->lease, kinds[of->kind],
		 of->number);
}

bool stored_name_parse(const char *name, struct stored_name *ret)
{
	struct stored_name of = { .kind = STORED_KINDS - 1 };
	char again[STORE_NAME_MAX];
	int n = 0;

	if (sscanf(name, "lease-%" SCNu64 "-%n", &of.lease, &n) != 1 || n == 0)
		return false;
	while (strncmp(name + n, kinds[of.kind], strlen(kinds[of.kind])) != 0)
		of.kind--;
	if (sscanf(name + n + strlen(kinds[of.kind]), "%" SCNu64, &of.number) != 1 ||
	    of.lease == 0 || of.number == 0 || (of.kind != STORED_END && of.number > INT_MAX))
		return false;
	stored_name_write(&of, again); /* refuses signs, leading zeros and more text */
	if (strcmp(again, name) != 0)
		return false;
	*ret = of;
	return true;
}

static void write_name(char name[static STORE_NAME_MAX], const struct holder_entry *entry)
{
	enum stored_kind bound = entry->delegated ? STORED_DELEGATED : STORED_BOUND;

	stored_name_write(&(struct stored_name){ entry->lease, entry->pid ? bound : STORED_END,
						 entry->pid ? (uint64_t)entry->pid : entry->inode },
			  name);
}

unsigned holders_most(uint64_t id)
{
	/* MAX_ARG_STRLEN (32 pages), less some room for other text. */
	const unsigned names = 32 * 4096 - 128;
	/* An id that takes years to reach, and the largest pid. An inode number is shorter. */
	const struct holder_entry longest = { .lease = id < 10000000000 ? 10000000000 : id,
					      .pid = 4194304,
					      .delegated = true };
	char name[STORE_NAME_MAX];

	write_name(name, &longest);
	return names / ((unsigned)strlen(name) + 1);
}

static uint64_t inode_of(int fd)
{
	struct stat st = { 0 };

	fstat(fd, &st);
	return st.st_ino;
}

/* ---- entries ------------------------------------------------------------------------- */

static struct holder_entry *first_in_bucket(const struct holders *holders, uint64_t lease)
{
	return LIST_FIRST(&holders->buckets[lease % BUCKETS]);
}

static void shelf_name(char name[static STORE_NAME_MAX], uint64_t number)
{
	snprintf(name, STORE_NAME_MAX, "shelf-%" PRIu64, number);
}

static void shelf_free(struct shelf *shelf)
{
	if (shelf->holders)
		LIST_REMOVE(shelf, link);
	close(shelf->fd);
	free(shelf);
}

static void shelf_drop(struct shelf *shelf)
{
	char name[STORE_NAME_MAX];

	shelf_name(name, shelf->number);
	store_forget(shelf->holders->store, name);
	shelf_free(shelf);
}

static void put(struct holder_entry *holder_entry, struct shelf *shelf)
{
	struct holders *holders = holder_entry->holders;

	holder_entry->shelf = shelf;
	holder_entry->shelved |= shelf != NULL;
	holder_entry->stored = true;
	TAILQ_INSERT_TAIL(shelf ? &shelf->entries : &holders->loose, holder_entry, sibling);
	*(shelf ? &shelf->n : &holders->n_loose) += 1;
}

static void detach(struct holder_entry *holder_entry)
{
	struct holders *holders = holder_entry->holders;
	struct shelf *shelf = holder_entry->shelf;

	if (!holder_entry->stored)
		return;
	TAILQ_REMOVE(shelf ? &shelf->entries : &holders->loose, holder_entry, sibling);
	*(shelf ? &shelf->n : &holders->n_loose) -= 1;
	holder_entry->stored = false;
	holder_entry->shelf = NULL;
}

/* Leaves the store as it is. A copy on a shelf must not keep the client's end from its end. */
static void holder_entry_free(struct holder_entry *holder_entry)
{
	if (holder_entry->shelved && holder_entry->pid == 0 && !holder_entry->holders->ending)
		shutdown(holder_entry->fd, SHUT_RDWR);
	detach(holder_entry);
	LIST_REMOVE(holder_entry, link);
	holder_entry->holders->n--;
	if (holder_entry->container)
		LIST_REMOVE(holder_entry, next_container);
	sd_event_source_disable_unref(holder_entry->source);
	close(holder_entry->fd);
	free(holder_entry->container);
	free(holder_entry->waiting);
	free(holder_entry);
}

DEFINE_CLEANUP(struct holder_entry *, holder_entry_free)

/* pid 0: the end of a holder with this inode. */
static struct holder_entry *find_entry(const struct holders *holders, uint64_t lease, pid_t pid,
				       uint64_t inode)
{
	struct holder_entry *entry = first_in_bucket(holders, lease);

	while (entry && (entry->lease != lease || entry->pid != pid || entry->inode != inode))
		entry = LIST_NEXT(entry, link);
	return entry;
}

static struct holder_entry *find_process(const struct holders *holders, uint64_t lease, pid_t pid)
{
	return find_entry(holders, lease, pid, 0);
}

/* ---- the store ----------------------------------------------------------------------- */

static int holder_entry_store(const struct holder_entry *holder_entry)
{
	char name[STORE_NAME_MAX];

	write_name(name, holder_entry);
	return store_keep(holder_entry->holders->store, name, holder_entry->fd);
}

static void shelf_review(struct shelf *shelf);

static void holder_entry_forget(struct holder_entry *holder_entry)
{
	struct shelf *shelf = holder_entry->shelf;
	char name[STORE_NAME_MAX];

	if (holder_entry->leaving)
		return; /* done when the lease was dropped */
	if (!shelf || shelf->settling) {
		write_name(name, holder_entry);
		store_forget(holder_entry->holders->store, name);
	}
	detach(holder_entry);
	if (shelf)
		shelf_review(shelf);
}

/* ---- shelves --------------------------------------------------------------------------- */

static void forget_names(struct shelf *shelf)
{
	struct holder_entry *entry;
	char name[STORE_NAME_MAX];

	TAILQ_FOREACH(entry, &shelf->entries, sibling)
	{
		write_name(name, entry);
		store_forget(shelf->holders->store, name);
	}
}

static void take_all_off(struct shelf *shelf)
{
	struct holder_entry *entry;

	while ((entry = TAILQ_FIRST(&shelf->entries))) {
		detach(entry);
		put(entry, NULL);
	}
}

static void review_all(struct holders *holders)
{
	struct shelf *next;

	for (struct shelf *shelf = LIST_FIRST(&holders->shelves); shelf; shelf = next) {
		next = LIST_NEXT(shelf, link);
		shelf_review(shelf);
	}
}

static void on_settled(void *userdata, int r)
{
	struct shelf *shelf = userdata;
	struct holders *holders = shelf->holders;

	shelf->settling = false;
	if (!holders) {
		shelf_free(shelf);
		return;
	}
	holders->settling = false;
	if (r < 0 && shelf->emptying)
		return; /* it may have the only copies: it stays until the next daemon */
	if (r >= 0 && !shelf->emptying) {
		forget_names(shelf); /* the service manager has the shelf */
	} else {
		take_all_off(shelf);
		shelf_drop(shelf);
	}
	review_all(holders);
}

/* Stores the entries under their own names again. A failure leaves them where they are. */
static void shelf_empty(struct shelf *shelf)
{
	struct holders *holders = shelf->holders;
	struct holder_entry *entry;
	int r = 0;

	TAILQ_FOREACH(entry, &shelf->entries, sibling)
	{
		r = holder_entry_store(entry);
		if (r < 0) {
			forget_names(shelf);
			return;
		}
	}
	take_all_off(shelf);
	shelf->emptying = shelf->settling = holders->settling = true;
	r = store_settle(holders->store, on_settled, shelf);
	if (r < 0)
		on_settled(shelf, r);
}

/* Linux counts the copies on all shelves for this user, also those of entries that have ended, and lets
 * it send no more descriptors than it may open: no shelf is kept for few entries. */
static void shelf_review(struct shelf *shelf)
{
	struct holders *holders = shelf->holders;

	if (shelf->settling || shelf->emptying || holders->ending)
		return;
	if (shelf->n == 0)
		shelf_drop(shelf);
	else if (shelf->n <= SHELF_MAX / 2 && !holders->settling && store_works(holders->store))
		shelf_empty(shelf);
}

static int shelf_new(struct holders *holders, uint64_t number, int fd, struct shelf **ret)
{
	struct shelf *shelf = calloc(1, sizeof(*shelf));

	if (!shelf)
		return -ENOMEM;
	*shelf = (struct shelf){ .holders = holders, .number = number, .fd = fd };
	TAILQ_INIT(&shelf->entries);
	LIST_INSERT_HEAD(&holders->shelves, shelf, link);
	if (number > holders->last_shelf)
		holders->last_shelf = number;
	*ret = shelf;
	return 0;
}

/* Copies of the oldest loose entries in one socket. */
static int write_oldest(const struct holders *holders, int *ret)
{
	struct shelf_entry entries[SHELF_MAX];
	const struct holder_entry *entry;
	size_t n = 0;

	TAILQ_FOREACH(entry, &holders->loose, sibling)
	{
		if (n == SHELF_MAX)
			break;
		write_name(entries[n].name, entry);
		entries[n++].fd = entry->fd;
	}
	return shelf_write(entries, n, ret);
}

/* A failure leaves the entries where they are, and the next one tries again. */
static void shelve(struct holders *holders)
{
	char name[STORE_NAME_MAX];
	struct shelf *shelf;
	int fd;

	if (write_oldest(holders, &fd) < 0)
		return;
	if (shelf_new(holders, holders->last_shelf + 1, fd, &shelf) < 0) {
		close(fd);
		return;
	}
	shelf_name(name, shelf->number);
	if (store_keep(holders->store, name, fd) < 0) {
		shelf_free(shelf);
		return;
	}
	for (unsigned i = 0; i < SHELF_MAX; i++) {
		struct holder_entry *entry = TAILQ_FIRST(&holders->loose);

		detach(entry);
		put(entry, shelf);
	}
	shelf->settling = holders->settling = true;
	fd = store_settle(holders->store, on_settled, shelf);
	if (fd < 0)
		on_settled(shelf, fd);
}

void holders_shelve_at(struct holders *holders, unsigned n)
{
	holders->shelve_at = n;
}

int holders_take_shelf(struct holders *holders, uint64_t number, int fd, struct shelf **ret)
{
	int r = shelf_new(holders, number, fd, ret);

	if (r < 0)
		close(fd);
	return r;
}

void holders_adopted(struct holders *holders)
{
	review_all(holders);
}

/* ---- records ------------------------------------------------------------------------- */

static void keep_waiting(struct holder_entry *holder_entry, const void *record, size_t size)
{
	void *copy = malloc(size);

	/* Without memory the older record stays: the holder still learns of a change, and can ask
	 * for the present state. */
	if (!copy)
		return;
	memcpy(copy, record, size);
	free(holder_entry->waiting);
	holder_entry->waiting = copy;
	holder_entry->waiting_size = size;
	sd_event_source_set_io_events(holder_entry->source, ROOM);
}

/* Returns false if the record has to wait; true if it was sent or never can be. */
static bool send_record(const struct holder_entry *holder_entry, const void *record, size_t size)
{
	return send(holder_entry->fd, record, size, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM);
}

static void send_waiting(struct holder_entry *holder_entry)
{
	if (!holder_entry->waiting ||
	    !send_record(holder_entry, holder_entry->waiting, holder_entry->waiting_size))
		return;
	free(holder_entry->waiting);
	holder_entry->waiting = NULL;
	sd_event_source_set_io_events(holder_entry->source, HANG_UP);
}

/* ---- ends ---------------------------------------------------------------------------- */

static void holder_entry_end(struct holder_entry *holder_entry)
{
	holder_entry_forget(holder_entry);
	holder_entry_free(holder_entry);
}

static int on_holder(sd_event_source *, int, uint32_t events, void *userdata)
{
	struct holder_entry *holder_entry = userdata;
	struct holders *holders = holder_entry->holders;
	uint64_t lease = holder_entry->lease;
	bool leaving;

	if (!(events & (EPOLLHUP | EPOLLERR))) {
		send_waiting(holder_entry);
		if (holder_entry->leaving && !holder_entry->waiting)
			holder_entry_free(holder_entry);
		return 0;
	}

	/* Freed before the callback, which may drop the whole lease. */
	leaving = holder_entry->leaving;
	holder_entry_end(holder_entry);
	if (!leaving)
		holders->callbacks.holder_gone(holders->userdata, lease);
	return 0;
}

static int on_process(sd_event_source *, int, uint32_t, void *userdata)
{
	struct holder_entry *holder_entry = userdata;
	struct holders *holders = holder_entry->holders;
	uint64_t lease = holder_entry->lease;
	pid_t pid = holder_entry->pid;

	holder_entry_end(holder_entry);
	holders->callbacks.bound_gone(holders->userdata, lease, pid);
	return 0;
}

/* ---- creation and end ---------------------------------------------------------------- */

int holders_new(sd_event *event, struct store *store, const struct holders_callbacks *callbacks,
		void *userdata, struct holders **ret)
{
	struct holders *holders = calloc(1, sizeof(*holders));

	if (!holders)
		return -ENOMEM;

	holders->event = sd_event_ref(event);
	holders->store = store;
	holders->callbacks = *callbacks;
	holders->userdata = userdata;
	TAILQ_INIT(&holders->loose);
	holders->shelve_at = UINT_MAX;
	*ret = holders;
	return 0;
}

struct holders *holders_free(struct holders *holders)
{
	struct shelf *shelf;

	if (!holders)
		return NULL;

	holders->ending = true;
	for (size_t i = 0; i < BUCKETS; i++)
		while (!LIST_EMPTY(&holders->buckets[i]))
			holder_entry_free(LIST_FIRST(&holders->buckets[i]));
	for (size_t i = 0; i < HOLDERS_LEAVING_MAX; i++)
		if (!LIST_EMPTY(&holders->leaving[i]))
			holder_entry_free(LIST_FIRST(&holders->leaving[i]));
	while ((shelf = LIST_FIRST(&holders->shelves))) {
		LIST_REMOVE(shelf, link);
		shelf->holders = NULL;
		if (!shelf->settling)
			shelf_free(shelf);
	}
	sd_event_unref(holders->event);
	free(holders);
	return NULL;
}

/* Without memory, what an engine starts in the container counts for no lease. */
static void find_container(struct holder_entry *holder_entry)
{
	struct container_place place;

	if (container_read("/proc", holder_entry->pid, &place) < 0)
		return;
	holder_entry->container = malloc(sizeof(place));
	if (!holder_entry->container)
		return;
	*holder_entry->container = place;
	LIST_INSERT_HEAD(&holder_entry->holders->containers, holder_entry, next_container);
}

/* Takes ownership of fd, also on failure. */
static int holder_entry_new(struct holders *holders, uint64_t lease, pid_t pid, bool delegated,
			    int fd, struct holder_entry **ret)
{
	_cleanup_(holder_entry_freep) struct holder_entry *holder_entry =
		calloc(1, sizeof(*holder_entry));
	int r;

	if (!holder_entry) {
		close(fd);
		return -ENOMEM;
	}
	*holder_entry = (struct holder_entry){ .holders = holders,
					       .lease = lease,
					       .inode = pid ? 0 : inode_of(fd),
					       .pid = pid,
					       .delegated = delegated,
					       .fd = fd };
	LIST_INSERT_HEAD(&holders->buckets[lease % BUCKETS], holder_entry, link);
	holders->n++;
	if (pid)
		find_container(holder_entry);
	r = sd_event_add_io(holders->event, &holder_entry->source, fd, pid ? EXIT : HANG_UP,
			    pid ? on_process : on_holder, holder_entry);
	/* Ends are handled before requests that arrived at the same time. */
	if (r >= 0)
		r = sd_event_source_set_priority(holder_entry->source, SD_EVENT_PRIORITY_IMPORTANT);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(holder_entry);
	return 0;
}

/* Takes ownership of fd, also on failure. */
static int keep(struct holders *holders, uint64_t lease, pid_t pid, bool delegated, int fd)
{
	struct holder_entry *holder_entry;
	int r;

	r = holder_entry_new(holders, lease, pid, delegated, fd, &holder_entry);
	if (r < 0)
		return r;
	r = holder_entry_store(holder_entry);
	if (r < 0) {
		holder_entry_free(holder_entry);
		return r;
	}
	put(holder_entry, NULL);
	if (holders->n_loose >= holders->shelve_at && !holders->settling &&
	    store_works(holders->store))
		shelve(holders);
	return 0;
}

int holders_add(struct holders *holders, uint64_t lease)
{
	int pair[2], r;

	r = new_pair(pair);
	if (r < 0)
		return r;
	r = keep(holders, lease, 0, false, pair[0]);
	if (r < 0) {
		close(pair[1]);
		return r;
	}
	return pair[1];
}

int holders_bind(struct holders *holders, uint64_t lease, int pidfd, pid_t pid, bool delegated)
{
	int fd;

	if (find_process(holders, lease, pid))
		return -EEXIST;
	fd = copy_pidfd(pidfd, pid);
	return fd < 0 ? fd : keep(holders, lease, pid, delegated, fd);
}

int holders_process(const struct holders *holders, uint64_t lease, pid_t pid)
{
	const struct holder_entry *process = pid ? find_process(holders, lease, pid) : NULL;

	return process ? process->fd : -1;
}

pid_t holders_container(const struct holders *holders, pid_t pid)
{
	const struct holder_entry *entry;
	struct container_place place;
	size_t longest = 0;
	pid_t ret = 0;

	if (LIST_EMPTY(&holders->containers) || container_place_read("/proc", pid, &place) < 0)
		return 0;
	LIST_FOREACH(entry, &holders->containers, next_container)
	{
		size_t length = strlen(entry->container->cgroup);

		if (length < longest || !container_has(entry->container, &place))
			continue;
		/* Two that begin in one cgroup cannot be told apart. */
		ret = length > longest || entry->pid == ret ? entry->pid : 0;
		longest = length;
	}
	return ret;
}

void holders_unbind(struct holders *holders, uint64_t lease, pid_t pid)
{
	struct holder_entry *holder_entry = find_process(holders, lease, pid);

	if (holder_entry)
		holder_entry_end(holder_entry);
}

/* The daemon may have been killed when the service manager had a shelf and the entries on it. */
static int adopt_again(struct holders *holders, const struct holder_entry *before,
		       const struct shelf *shelf)
{
	char name[STORE_NAME_MAX];

	write_name(name, before);
	if (before->shelf && !shelf)
		store_forget(holders->store, name);
	return -EEXIST;
}

int holders_adopt(struct holders *holders, const struct stored_name *name, int fd,
		  struct shelf *shelf)
{
	pid_t pid = name->kind == STORED_END ? 0 : (pid_t)name->number;
	struct holder_entry *holder_entry = NULL;
	int r = 0;

	if (pid ? !is_pidfd_of(fd, pid) : !is_end_of_pair(fd))
		r = -EINVAL;
	else
		holder_entry = find_entry(holders, name->lease, pid, pid ? 0 : inode_of(fd));
	if (holder_entry)
		r = adopt_again(holders, holder_entry, shelf);
	if (r < 0) {
		close(fd);
		return r;
	}
	r = holder_entry_new(holders, name->lease, pid, name->kind == STORED_DELEGATED, fd,
			     &holder_entry);
	if (r >= 0)
		put(holder_entry, shelf);
	return r;
}

void holders_tell(struct holders *holders, uint64_t lease, const void *record, size_t size)
{
	for (struct holder_entry *holder_entry = first_in_bucket(holders, lease); holder_entry;
	     holder_entry = LIST_NEXT(holder_entry, link)) {
		if (holder_entry->lease != lease || holder_entry->pid != 0)
			continue;
		/* Never overtake a record that waits. */
		if (holder_entry->waiting || !send_record(holder_entry, record, size))
			keep_waiting(holder_entry, record, size);
	}
}

/* Keeps the entry until its last record is sent. The ring replaces the oldest one. */
static void let_leave(struct holder_entry *holder_entry)
{
	struct holders *holders = holder_entry->holders;
	struct entries *place = &holders->leaving[holders->next_leaving++ % HOLDERS_LEAVING_MAX];

	if (!LIST_EMPTY(place))
		holder_entry_free(LIST_FIRST(place));
	LIST_REMOVE(holder_entry, link);
	LIST_INSERT_HEAD(place, holder_entry, link);
	holder_entry->leaving = true;
}

void holders_drop(struct holders *holders, uint64_t lease)
{
	struct holder_entry *holder_entry, *next;

	for (holder_entry = first_in_bucket(holders, lease); holder_entry; holder_entry = next) {
		next = LIST_NEXT(holder_entry, link);
		if (holder_entry->lease != lease)
			continue;
		holder_entry_forget(holder_entry);
		if (holder_entry->waiting)
			let_leave(holder_entry);
		else
			holder_entry_free(holder_entry);
	}
}

size_t holders_count(const struct holders *holders)
{
	return holders->n;
}
