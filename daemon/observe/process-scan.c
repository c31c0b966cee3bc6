/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which processes use the GPUs. They are read in parts, each in a turn of the event loop, and what was
 * read of a process counts until it is read again: however far a scan is, the facts of all processes
 * take effect together, after new processes and those of ending leases were read.
 *
 * The processes of one user take a limited part of a scan. Those beyond are read in later scans, those
 * first that were read the longest time ago.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/caller.h"
#include "enforce/enforce.h"
#include "protocol/protocol.h"
#include "observe/observe.h"
#include "sys/process.h"
#include "util/grow.h"

/* One turn of the event loop reads for so long, in parts of so many steps. A step reads a file, in 5 to 10
 * microseconds. */
#define TURN_USEC 200U
#define STEPS_OF_PART 8U
#define STEPS_OF_USER 8192U     /* in a scan of all processes … */
#define STEPS_OF_SOON 1024U     /* … and before the facts take effect */
#define STEPS_OF_DESCRIPTION 8U /* and one for each ancestor */
#define TURN_PAUSE_USEC 500U
#define LISTINGS 4U /* before the facts take effect, of processes that came meanwhile */

/* Usually the driver frees the memory of a dead process right after its queues. */
#define LEAKED_USEC UINT64_C(2000000)

struct scanned {
	struct hw_pid id;
	struct observed who; /* as it was described last, without a GPU; pid 0: it was not yet */
	struct hw_process *process;
	struct hw_use *uses;
	size_t n;
	uint64_t number;    /* of the scan that read it; 0: none has */
	uint64_t dead_usec; /* since when it has been dead; 0: it is not, or was not described */
	uid_t user;         /* whose part of a scan it takes, also when it is dead; -1: unknown */
	bool present, begun;
	bool fresh; /* new in the last listing */
	bool soon;  /* in that work */
};

/* Processes to be read. */
struct work {
	struct scanned **list;
	size_t n, at;
};

struct scanned_user {
	uid_t uid;
	unsigned steps, soon_steps; /* in this scan */
	unsigned late;              /* processes that are left for a later scan … */
	unsigned told;              /* … and were in the last one, which was logged */
};

struct process_scan {
	struct scanned **list; /* by pid; only entries that are present count */
	size_t n;
	struct scanned_user *users;
	size_t n_users;
	struct work soon, all;  /* soon: what has to be read before the facts take effect */
	bool soon_due, all_due; /* what is to be done in this scan */
	bool list_due;          /* first the processes are listed … */
	bool list_again;        /* … and once more, as another scan began meanwhile */
	bool all_listed;        /* all holds the processes that there were */
	struct hw_listing *listing;
	const struct drm_scan *clients; /* what graphics-scan.c saw last */
	bool closing;                   /* soon is its last step */
	unsigned listings, turns;       /* of this scan */
	bool slow;                      /* the last scan of all took several turns */
	int fresh;                      /* processes that were new in the last listing */
	uint64_t number;
	uint64_t begun_usec;    /* when the last scan of all began … */
	uint64_t complete_usec; /* … and the last one of those that have ended */
	uint64_t used_usec;     /* when the last scan ended that saw a GPU in use; 0: none */
	bool in_use;            /* the last one did */
	bool fails;             /* the last one failed, which was logged */
	sd_event_source *turn;
};

/* ---- users --------------------------------------------------------------------------- */

static struct scanned_user *user_of(struct process_scan *scan, uid_t uid)
{
	struct scanned_user *added;

	for (size_t i = 0; i < scan->n_users; i++)
		if (scan->users[i].uid == uid)
			return &scan->users[i];
	added = grow(&scan->users, &scan->n_users, sizeof(*added));
	if (added)
		*added = (struct scanned_user){ .uid = uid };
	return added;
}

static void tell_late(const struct scanned_user *user)
{
	char name[32] = "of unknown users";

	if (user->uid != (uid_t)-1)
		snprintf(name, sizeof(name), "of uid %u", user->uid);
	if (user->late > 0)
		log_warning(
			"processes %s that use GPUs are too many to be read in each scan, or have "
			"too many queues: %u are read in a later one",
			name, user->late);
	else
		log_notice("all processes %s that use GPUs are read in each scan again", name);
}

/* A scan has ended. */
static void review_users(struct process_scan *scan)
{
	for (size_t i = 0; i < scan->n_users; i++) {
		struct scanned_user *user = &scan->users[i];

		if ((user->late > 0) != (user->told > 0))
			tell_late(user);
		user->told = user->late;
	}
}

bool process_scan_late_user(void *userdata, size_t i, struct late_user *ret)
{
	const struct process_scan *scan = ((struct daemon *)userdata)->processes;

	for (size_t k = 0; k < scan->n_users; k++) {
		*ret = (struct late_user){ scan->users[k].uid, scan->users[k].told };
		if (ret->processes > 0 && i-- == 0)
			return true;
	}
	return false;
}

/* ---- the list ------------------------------------------------------------------------ */

static void scanned_free(struct scanned *entry)
{
	hw_forget(entry->process);
	free(entry->uses);
	free(entry);
}

static struct scanned *find(const struct process_scan *scan, pid_t pid)
{
	size_t at = COUNT_BEFORE(scan->n, i, scan->list[i]->id.pid < pid);

	return at < scan->n && scan->list[at]->id.pid == pid ? scan->list[at] : NULL;
}

static int work_add(struct work *work, struct scanned *entry)
{
	struct scanned **added = grow(&work->list, &work->n, sizeof(*added));

	if (!added)
		return -ENOMEM;
	*added = entry;
	return 0;
}

static int soon_add(struct process_scan *scan, struct scanned *entry)
{
	int r = entry->soon ? 0 : work_add(&scan->soon, entry);

	entry->soon |= r >= 0;
	return r;
}

static struct scanned *work_next(struct work *work)
{
	struct scanned *next = work->at < work->n ? work->list[work->at] : NULL;

	if (!next && work->n > 0) {
		free(work->list);
		*work = (struct work){ 0 };
	}
	return next;
}

/* A process that has the entry from now on: the entry of another one with its pid, or a new one. */
static struct scanned *begin_process(struct scanned *before, const struct hw_pid *id)
{
	struct scanned *entry = before ?: calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	hw_forget(TAKE_PTR(entry->process));
	entry->id = *id;
	entry->n = entry->number = entry->dead_usec = 0;
	entry->who.pid = 0;
	entry->user = (uid_t)-1;
	entry->begun = false;
	entry->present = entry->fresh = true;
	return entry;
}

/* These are the processes now. */
static int take_processes(struct process_scan *scan, const struct hw_pid *ids, int count)
{
	_cleanup_(freep) struct scanned **merged = NULL;
	size_t i = 0, n = 0;
	int r = 0;

	scan->fresh = 0;
	merged = calloc(scan->n + (size_t)count + 1, sizeof(*merged));
	if (!merged)
		return -ENOMEM;
	for (int k = 0; k < count && r >= 0; k++) {
		struct scanned *entry = NULL;

		for (; i < scan->n && scan->list[i]->id.pid < ids[k].pid; i++) {
			scan->list[i]->present = false;
			merged[n++] = scan->list[i];
		}
		if (i < scan->n && scan->list[i]->id.pid == ids[k].pid)
			entry = scan->list[i];
		i += entry != NULL;
		if (!entry || !entry->present || entry->id.inode != ids[k].inode) {
			entry = begin_process(entry, &ids[k]);
			r = entry ? 0 : -ENOMEM;
			scan->fresh++;
		}
		if (entry)
			merged[n++] = entry;
	}
	for (; i < scan->n; i++) {
		scan->list[i]->present = false;
		merged[n++] = scan->list[i];
	}
	free(scan->list);
	scan->list = TAKE_PTR(merged);
	scan->n = n;
	return r;
}

/* Forgets those that have ended; none of them is to be read any more. */
static void sweep(struct process_scan *scan)
{
	size_t n = 0;

	for (size_t i = 0; i < scan->n; i++)
		if (scan->list[i]->present)
			scan->list[n++] = scan->list[i];
		else
			scanned_free(scan->list[i]);
	scan->n = n;
}

/* ---- what is read -------------------------------------------------------------------- */

/* Leases end, or are revoked, by what their processes use now. */
static bool is_judged(const struct lease *lease)
{
	bool drifts = false;

	for (size_t i = 0; i < lease->n_partitions; i++)
		for (unsigned kind = 0; kind < DRIFT_KINDS; kind++)
			drifts |= lease->partitions[i].drift[kind].since_usec > 0;
	return drifts || lease->state == STATE_ENDING || lease_requeues(lease);
}

static int oldest_first(const void *a, const void *b)
{
	const struct scanned *x = *(struct scanned *const *)a, *y = *(struct scanned *const *)b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->id.pid > y->id.pid) - (x->id.pid < y->id.pid);
}

static void sort(struct work *work)
{
	if (work->n > work->at)
		qsort(work->list + work->at, work->n - work->at, sizeof(*work->list), oldest_first);
}

/* Adds the new processes, and those of leases that are judged. */
static int add_soon(struct process_scan *scan, const struct daemon *daemon)
{
	const struct arbiter *arbiter = daemon->arbiter;
	int r = 0;

	for (size_t i = 0; i < scan->n && r >= 0; i++)
		if (scan->list[i]->fresh)
			r = soon_add(scan, scan->list[i]);
	for (size_t i = 0; i < arbiter->n_known && r >= 0; i++) {
		const struct known_process *known = &arbiter->known[i];
		const struct lease *lease = known->lease ? ledger_find(arbiter, known->lease)
							 : NULL;
		struct scanned *entry = lease && is_judged(lease) ? find(scan, known->pid) : NULL;

		if (entry && entry->present)
			r = soon_add(scan, entry);
	}
	sort(&scan->soon);
	return r;
}

static int add_all(struct process_scan *scan)
{
	int r = 0;

	for (size_t i = 0; i < scan->n && r >= 0; i++)
		r = work_add(&scan->all, scan->list[i]);
	sort(&scan->all);
	scan->all_listed = true;
	return r;
}

/* Lists on, and adds what is to be read. */
static int list_on(struct process_scan *scan, const struct daemon *daemon, unsigned *steps)
{
	_cleanup_(freep) struct hw_pid *ids = NULL;
	int r = hw_processes(daemon->hw, &scan->listing, steps, &ids);

	if (r < 0)
		return r;
	scan->list_due = false;
	scan->listings++;
	r = take_processes(scan, ids, r);
	if (r >= 0 && scan->soon_due)
		r = add_soon(scan, daemon);
	if (r >= 0 && scan->all_due && !scan->all_listed)
		r = add_all(scan);
	for (size_t i = 0; i < scan->n; i++)
		scan->list[i]->fresh = false;
	return r;
}

static void restart_soon(struct process_scan *scan)
{
	scan->listings = 0;
	for (size_t i = 0; i < scan->n_users; i++)
		scan->users[i].soon_steps = 0;
}

static void begin_all(struct process_scan *scan)
{
	size_t n_users = 0;

	scan->begun_usec = daemon_now_usec();
	scan->all_due = true;
	scan->all_listed = false;
	scan->turns = 0;
	for (size_t i = 0; i < scan->n_users; i++)
		if (scan->users[i].steps > 0 || scan->users[i].told > 0)
			scan->users[n_users++] = (struct scanned_user){
				.uid = scan->users[i].uid, .told = scan->users[i].told
			};
	scan->n_users = n_users;
}

/* A process with a subordinate uid takes from the part of its owner. */
static unsigned describe(const struct daemon *daemon, struct scanned *entry)
{
	const struct subuids *subuids = &daemon->arbiter->settings->subuids;
	struct caller place = { 0 };

	entry->who = (struct observed){ .pid = entry->id.pid };
	liveness_describe(daemon, &entry->who);
	process_place(entry->id.pid, &place);
	memcpy(entry->who.unit, place.unit, sizeof(place.unit));
	if (entry->who.start_time > 0) {
		entry->dead_usec = 0;
		entry->user = subuids_user(subuids, entry->who.uid);
	} else if (entry->dead_usec == 0) {
		entry->dead_usec = daemon_now_usec();
	}
	entry->begun = true;
	return STEPS_OF_DESCRIPTION + (unsigned)entry->who.n_ancestors;
}

/* Is the share of the user used up? */
static bool is_late(struct scanned *entry, struct scanned_user *user, bool soon)
{
	if (soon ? user->soon_steps < STEPS_OF_SOON : user->steps < STEPS_OF_USER)
		return false;
	user->late += !soon;
	entry->begun = false;
	hw_leave(entry->process);
	return true;
}

static void charge(struct scanned_user *user, bool soon, unsigned steps)
{
	*(soon ? &user->soon_steps : &user->steps) += steps;
}

static int read_uses(struct process_scan *scan, const struct daemon *daemon, struct scanned *entry,
		     unsigned *steps)
{
	const struct hw_use *uses;
	struct hw_use *copy;
	int n = hw_read(daemon->hw, entry->id.pid, &entry->process, steps, &uses);

	if (n < 0)
		return n;
	copy = reallocarray(entry->uses, (size_t)n + 1, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	if (n > 0)
		memcpy(copy, uses, (size_t)n * sizeof(*copy));
	entry->uses = copy;
	entry->n = (size_t)n;
	entry->number = scan->number;
	entry->begun = false;
	return 0;
}

/* Reads on in an entry. *ret_steps: how many it took. 0: it is read, or left for a later scan; -EAGAIN: call
 * again. */
static int read_entry(struct process_scan *scan, const struct daemon *daemon, struct scanned *entry,
		      bool soon, unsigned *ret_steps)
{
	struct scanned_user *user = user_of(scan, entry->user);
	unsigned steps = STEPS_OF_PART;
	int r;

	*ret_steps = 0;
	if (!user)
		return -ENOMEM;
	if (!entry->present || (entry->who.pid > 0 && is_late(entry, user, soon)))
		return 0;
	if (!entry->begun) {
		*ret_steps = describe(daemon, entry);
		user = user_of(scan, entry->user);
		if (!user)
			return -ENOMEM;
		charge(user, soon, *ret_steps);
		if (is_late(entry, user, soon))
			return 0;
	}
	r = read_uses(scan, daemon, entry, &steps);
	charge(user, soon, steps);
	*ret_steps += steps;
	return r;
}

/* ---- what takes effect --------------------------------------------------------------- */

/* The GPU that is the whole device; NULL: the device is partitioned, and DRM does not tell the memory
 * of a partition. */
static const struct gpu *gpu_of_device(const struct arbiter *arbiter, const char *device)
{
	int i = ledger_find_gpu(arbiter, device);

	return i < 0 ? NULL : &arbiter->gpus[i];
}

DEFINE_ORDER(by_pid, struct observed, .pid)

static struct observed *find_row(struct observed *rows, size_t n, const struct drm_use *use,
				 uint32_t kfd_gpu_id)
{
	const struct observed key = { .pid = use->pid };
	struct observed *row = bsearch(&key, rows, n, sizeof(*rows), by_pid);

	while (row && row > rows && row[-1].pid == use->pid)
		row--;
	for (; row && row < rows + n && row->pid == use->pid; row++)
		if (row->kfd_gpu_id == kfd_gpu_id && !row->idle)
			return row;
	return NULL;
}

/* Did the last observation of DRM clients attribute the process to a lease? */
static bool has_lease(const struct gpu *gpu, const struct drm_use *use)
{
	for (size_t i = 0; i < gpu->graphics.n_clients; i++)
		if (gpu->graphics.clients[i].pid == use->pid &&
		    gpu->graphics.clients[i].start_time == use->start_time)
			return gpu->graphics.clients[i].lease > 0;
	return false;
}

/* Adds the VRAM that DRM counts to the rows of n uses of KFD, and a row for each process of a lease
 * that is unknown to KFD. Returns the number of rows, of which there is memory for one more for each
 * use of DRM. */
static size_t add_drm(const struct daemon *daemon, struct observed *rows, size_t n)
{
	const struct drm_scan *scan = daemon->processes->clients;
	size_t all = n;

	for (uint32_t i = 0; i < scan->n; i++) {
		const struct drm_use *use = &scan->uses[i];
		const struct gpu *gpu = gpu_of_device(daemon->arbiter, use->device);
		uint32_t id = gpu ? gpu->info.kfd_gpu_id : 0;
		struct observed *row = gpu ? find_row(rows, n, use, id) : NULL;

		if (!row && gpu && has_lease(gpu, use)) {
			struct scanned only = { .id.pid = use->pid };

			row = &rows[all];
			describe(daemon, &only);
			*row = only.who;
			row->kfd_gpu_id = id;
			row->drm_only = true;
			all += row->start_time == use->start_time;
		}
		if (row && row->start_time == use->start_time)
			row->drm_vram = gpu_drm_memory(gpu, use->vram, use->gtt);
	}
	if (all > n)
		qsort(rows, all, sizeof(*rows), by_pid);
	return all;
}

/* A process that was not read yet uses a GPU in a way that is unknown: its lease has not ended. */
static size_t rows_of(const struct scanned *entry)
{
	return !entry->present ? 0 : entry->number == 0 ? 1 : entry->n;
}

static void fill_row(const struct arbiter *arbiter, const struct scanned *entry, size_t i,
		     struct observed *row)
{
	const struct hw_use unknown = { .kfd_gpu_id = arbiter->n_gpus > 0
							      ? arbiter->gpus[0].info.kfd_gpu_id
							      : 0 };
	const struct hw_use *use = entry->number > 0 ? &entry->uses[i] : &unknown;

	*row = entry->who;
	row->pid = entry->id.pid;
	row->kfd_gpu_id = use->kfd_gpu_id;
	row->queues = use->queues;
	row->sdma_queues = use->sdma_queues;
	row->sdma_xgmi_queues = use->sdma_xgmi_queues;
	row->vram = use->vram;
	row->idle = entry->number > 0 && hw_use_is_idle(use);
	row->leaked = entry->number > 0 && entry->dead_usec > 0 &&
		      daemon_now_usec() - entry->dead_usec >= LEAKED_USEC && use->queues == 0 &&
		      use->sdma_queues == 0 && use->sdma_xgmi_queues == 0;
}

static int take_effect(const struct process_scan *scan, struct daemon *daemon)
{
	_cleanup_(freep) struct observed *rows = NULL;
	size_t n = 0, at = 0;
	int r;

	for (size_t i = 0; i < scan->n; i++)
		n += rows_of(scan->list[i]);
	rows = calloc(n + daemon->processes->clients->n + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < scan->n; i++)
		for (size_t k = 0; k < rows_of(scan->list[i]); k++)
			fill_row(daemon->arbiter, scan->list[i], k, &rows[at++]);
	daemon->processes->in_use = n > 0;
	if (n > 0)
		daemon->processes->used_usec = daemon_now_usec();
	r = arbiter_observe(daemon->arbiter, rows, add_drm(daemon, rows, n));
	if (r >= 0)
		unmanaged_review(daemon);
	return r;
}

/* ---- turns --------------------------------------------------------------------------- */

/* Gives up this scan. What was not read at all is new to the next one. */
static void cancel(struct process_scan *scan)
{
	for (size_t i = 0; i < scan->n; i++) {
		struct scanned *entry = scan->list[i];

		hw_leave(entry->process);
		entry->soon = entry->begun = entry->fresh = false;
		entry->present &= entry->number > 0;
	}
	hw_end_listing(TAKE_PTR(scan->listing));
	scan->soon.at = scan->soon.n;
	scan->all.at = scan->all.n;
	(void)work_next(&scan->soon);
	(void)work_next(&scan->all);
	scan->soon_due = scan->all_due = scan->list_due = scan->list_again = scan->closing = false;
}

static void begin_soon(struct process_scan *scan)
{
	scan->soon_due = true;
	scan->list_again = false;
	scan->list_due = true;
}

static void complete(struct process_scan *scan)
{
	scan->closing = scan->all_due = false;
	scan->complete_usec = scan->begun_usec;
	scan->slow = scan->turns > 1;
	review_users(scan);
	sweep(scan);
}

/* What has to be read before the facts take effect was read. 1: they have. */
static int end_soon(struct process_scan *scan, struct daemon *daemon)
{
	int r;

	if ((scan->list_again || scan->fresh > 0) && scan->listings < LISTINGS) {
		begin_soon(scan);
		return 0;
	}
	r = take_effect(scan, daemon);
	if (r < 0)
		return r;
	scan->soon_due = false;
	if (scan->closing)
		complete(scan);
	if (scan->list_again) {
		restart_soon(scan);
		begin_soon(scan);
	}
	return 1;
}

/* All processes were read that there were when the scan began. */
static void close_all(struct process_scan *scan)
{
	scan->closing = true;
	restart_soon(scan);
	begin_soon(scan);
}

/* Reads the next part, of *steps steps. Returns 1 if the facts have taken effect. */
static int read_part(struct process_scan *scan, struct daemon *daemon, unsigned *steps)
{
	struct scanned *next = work_next(&scan->soon);
	struct work *work = next || scan->soon_due ? &scan->soon : &scan->all;
	int r;

	*steps = STEPS_OF_PART;
	if (scan->list_due) {
		r = list_on(scan, daemon, steps);
		return r == -EAGAIN ? 0 : r;
	}
	if (!next && !scan->soon_due)
		next = work_next(work);
	if (next) {
		r = read_entry(scan, daemon, next, work == &scan->soon, steps);
		next->soon &= r < 0;
		work->at += r >= 0;
		return r == -EAGAIN ? 0 : r;
	}
	if (scan->soon_due)
		return end_soon(scan, daemon);
	close_all(scan);
	return 0;
}

/* Reads for the time of a turn, and for at least so many steps if that may end the scan, or what has to be
 * read before the facts take effect. Returns 1 if the facts have taken effect. */
static int read_on(struct process_scan *scan, struct daemon *daemon, unsigned left)
{
	uint64_t until_usec = daemon_now_usec() + TURN_USEC;
	int r = 0, done = 0;

	scan->slow |= ++scan->turns > 1 && scan->all_due;
	while (process_scan_is_busy(daemon, true) && r >= 0 &&
	       ((left > 0 && (scan->soon_due || !scan->slow)) || daemon_now_usec() < until_usec)) {
		unsigned steps;

		r = read_part(scan, daemon, &steps);
		done |= r > 0;
		left -= min_u(max_u(steps, 1), left);
	}
	return r < 0 ? r : done;
}

bool process_scan_is_busy(const struct daemon *daemon, bool all)
{
	return daemon->processes->soon_due || (all && daemon->processes->all_due);
}

uint64_t process_scan_complete_usec(const struct daemon *daemon)
{
	return daemon->processes->complete_usec;
}

bool process_scan_in_use(const struct daemon *daemon)
{
	return daemon->processes->in_use;
}

uint64_t process_scan_used_usec(const struct daemon *daemon)
{
	return daemon->processes->used_usec;
}

bool process_scan_is_slow(const struct daemon *daemon)
{
	return daemon->processes->slow;
}

static void note_result(struct daemon *daemon, int r)
{
	if (r < 0 && !daemon->processes->fails)
		log_warning("cannot read which processes use the GPUs: %s: until then ending "
			    "leases keep what they have",
			    strerror(-r));
	if (r > 0 && daemon->processes->fails)
		log_notice("the processes that use the GPUs can be read again");
	if (r != 0)
		daemon->processes->fails = r < 0;
	if (r < 0)
		cancel(daemon->processes);
}

bool process_scan_turn(struct daemon *daemon, unsigned steps)
{
	sd_event_source *turn = daemon->processes->turn;
	int r = read_on(daemon->processes, daemon, steps);
	bool busy;

	note_result(daemon, r);
	busy = process_scan_is_busy(daemon, true);
	if (busy)
		sd_event_source_set_time(turn, daemon_now_usec() + TURN_PAUSE_USEC);
	sd_event_source_set_enabled(turn, busy ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
	return r > 0;
}

/* However often scans begin, what has to be read before the facts take effect comes to its end. */
void process_scan_begin(struct daemon *daemon, bool all)
{
	struct process_scan *scan = daemon->processes;

	scan->number++;
	if (scan->soon_due) {
		scan->list_again |= !scan->list_due || scan->listing;
	} else {
		restart_soon(scan);
		if (!all || scan->slow || scan->all_due || scan->n == 0)
			begin_soon(scan);
		scan->list_due = true;
		scan->list_again = scan->listing != NULL;
	}
	if (all && !scan->all_due)
		begin_all(scan);
}

static int on_turn(sd_event_source *, uint64_t, void *userdata)
{
	struct daemon *daemon = userdata;

	if (process_scan_turn(daemon, 0))
		schedule_update(daemon);
	return 0;
}

int process_scan_start(struct daemon *daemon)
{
	daemon->processes = calloc(1, sizeof(*daemon->processes));
	if (!daemon->processes)
		return -ENOMEM;
	return schedule_add(daemon, 1, on_turn, &daemon->processes->turn);
}

void process_scan_watch(struct daemon *daemon, const struct drm_scan *clients)
{
	daemon->processes->clients = clients;
}

void process_scan_stop(struct daemon *daemon)
{
	struct process_scan *scan = daemon->processes;

	if (!scan)
		return;
	for (size_t i = 0; i < scan->n; i++)
		scanned_free(scan->list[i]);
	hw_end_listing(scan->listing);
	sd_event_source_disable_unref(scan->turn);
	free(scan->list);
	free(scan->users);
	free(scan->soon.list);
	free(scan->all.list);
	free(scan);
}
