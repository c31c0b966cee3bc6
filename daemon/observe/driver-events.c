/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Events of the driver: resets, faults, throttling, and evictions of queues. gpuarb-probe makes the
 * descriptors that they are read from, when a GPU is first used and when the list of GPUs has changed.
 *
 * There are no events of a card whose compute partition mode can be changed. The driver frees the nodes of
 * the card then, and a descriptor that is closed afterwards uses what was freed: kfd_smi_ev_release() in
 * kfd_smi_events.c. A descriptor does not keep an administrator from changing the mode, as a process would
 * that has /dev/kfd open.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "observe/observe.h"
#include "hw/smi-event.h"
#include "protocol/protocol.h"
#include "util/grow.h"

struct driver {
	struct asker *probe;
	bool asked;          /* it has not answered yet */
	uint64_t usec;       /* of the last request; 0: none */
	uint64_t generation; /* of the list of GPUs at that time */
	bool fails;          /* the last request failed, which was logged */
	bool lost;           /* it failed, or a descriptor has ended since */
	LIST_HEAD(, driver_stream) streams;
	struct driver_eviction *evictions; /* at present */
	size_t n_evictions;
	uint64_t reset_usec;     /* of the last reset of a GPU */
	uint64_t throttled_usec; /* of the last log line about heat */
	pid_t faulted;           /* of the last log line about a VM fault */
};

#define ANSWER_USEC UINT64_C(10000000) /* gpuarb-probe has this time */
#define RETRY_USEC UINT64_C(60000000)  /* after a failure */
#define SCAN_MAX_AGE_USEC UINT64_C(1000000)
#define EVICTIONS_MAX 1024U /* processes that are evicted at a time */
#define READ_MAX 1024U      /* what the driver buffers */
#define THROTTLED_LOG_USEC UINT64_C(60000000)

/* The driver drops what does not fit into its buffer, so a flood costs no more than this. */
#define READS_PER_SECOND 100U

/* A descriptor of a GPU. */
struct driver_stream {
	LIST_ENTRY(driver_stream) link;
	struct daemon *daemon;
	sd_event_source *source;
	uint32_t kfd_gpu_id;
	char text[2 * READ_MAX]; /* not parsed yet */
	size_t n;
};

/* Queues of a process of a lease that the driver took off a GPU. */
struct driver_eviction {
	pid_t pid;
	uint32_t kfd_gpu_id;
	uint64_t lease;
	uint64_t usec; /* when its event was taken */
};

/* ---- evictions ----------------------------------------------------------------------- */

static void remove_eviction(struct daemon *daemon, size_t i, uint64_t usec)
{
	struct driver_eviction *list = daemon->driver->evictions;

	arbiter_restored(daemon->arbiter, list[i].lease, usec);
	list[i] = list[--daemon->driver->n_evictions];
}

static size_t find_eviction(const struct daemon *daemon, pid_t pid, uint32_t kfd_gpu_id)
{
	size_t i = 0;

	while (i < daemon->driver->n_evictions &&
	       (daemon->driver->evictions[i].pid != pid ||
		daemon->driver->evictions[i].kfd_gpu_id != kfd_gpu_id))
		i++;
	return i;
}

/* Queues of a process are evicted for several reasons at a time, and restored after the last one has
 * ended: only the first event begins it. */
static void evicted(struct daemon *daemon, const struct gpu *gpu, const struct driver_event *event)
{
	unsigned index = (unsigned)(gpu - daemon->arbiter->gpus);
	const struct lease *lease;
	struct driver_eviction *added;

	if (daemon->driver->n_evictions >= EVICTIONS_MAX ||
	    find_eviction(daemon, event->pid, gpu->info.kfd_gpu_id) < daemon->driver->n_evictions)
		return;
	/* The driver reports all GPUs that the process can see. */
	lease = ledger_find(daemon->arbiter, known_lease(daemon->arbiter, event->pid));
	if (!lease || !lease_partition_on(lease, index))
		return;
	added = grow(&daemon->driver->evictions, &daemon->driver->n_evictions, sizeof(*added));
	if (!added)
		return;
	*added = (struct driver_eviction){ event->pid, gpu->info.kfd_gpu_id, lease->id,
					   daemon_now_usec() };
	arbiter_evicted(daemon->arbiter, lease->id, event->usec);
}

static void restored(struct daemon *daemon, const struct gpu *gpu, const struct driver_event *event)
{
	size_t i = find_eviction(daemon, event->pid, gpu->info.kfd_gpu_id);

	if (event->number == 0 && i < daemon->driver->n_evictions)
		remove_eviction(daemon, i, event->usec);
}

/* Ends evictions of processes that use no GPU any more. */
static void forget_processes(struct daemon *daemon)
{
	uint64_t seen_usec = process_scan_complete_usec(daemon);

	for (size_t i = daemon->driver->n_evictions; i-- > 0;)
		if (seen_usec > daemon->driver->evictions[i].usec &&
		    !known_lease(daemon->arbiter, daemon->driver->evictions[i].pid))
			remove_eviction(daemon, i, daemon_now_usec());
}

/* ---- events --------------------------------------------------------------------------- */

/* The driver evicts all queues for a reset and restores none of them. */
static void reset(struct daemon *daemon, struct gpu *gpu, const struct driver_event *event)
{
	unsigned index = (unsigned)(gpu - daemon->arbiter->gpus);

	for (size_t i = daemon->driver->n_evictions; i-- > 0;)
		if (daemon->driver->evictions[i].kfd_gpu_id == gpu->info.kfd_gpu_id)
			remove_eviction(daemon, i, daemon_now_usec());
	daemon->driver->reset_usec = daemon_now_usec();
	arbiter_gpu_reset(daemon->arbiter, index, daemon->driver->reset_usec);
	journal_events_reset(daemon, gpu, event->text);
	descriptors_outdate(daemon);
}

static void reset_ended(struct daemon *daemon, const struct gpu *gpu)
{
	arbiter_gpu_reset_ended(daemon->arbiter, (unsigned)(gpu - daemon->arbiter->gpus));
	log_notice("%s: its reset has ended", gpu->info.name);
}

/* A process that faults does so many times: one line for each process. */
static void fault(const struct gpu *gpu, pid_t *last, const struct driver_event *event)
{
	if (*last != event->pid)
		log_warning(
			"%s: VM fault of thread %d (%s): its program uses memory of the GPU that "
			"it does not have",
			gpu->info.name, event->pid, event->text);
	*last = event->pid;
}

static void throttled(struct daemon *daemon, const struct gpu *gpu,
		      const struct driver_event *event)
{
	uint64_t now = daemon_now_usec();

	if (daemon->driver->throttled_usec > 0 &&
	    now - daemon->driver->throttled_usec < THROTTLED_LOG_USEC)
		return;
	daemon->driver->throttled_usec = now;
	log_warning("%s: the driver lowers its clock because of heat (reasons: 0x%" PRIx64 ")",
		    gpu->info.name, event->number);
}

static void take_event(struct daemon *daemon, struct gpu *gpu, const struct driver_event *event)
{
	gpu->driver_events[event->kind]++;
	/* Programs that share memory with the GPU cause thousands of migrations. */
	gpu->changed |= event->kind != DRIVER_MIGRATION_BEGINS;
	switch (event->kind) {
	case DRIVER_VM_FAULT: fault(gpu, &daemon->driver->faulted, event); break;
	case DRIVER_THROTTLED: throttled(daemon, gpu, event); break;
	case DRIVER_RESET_BEGINS: reset(daemon, gpu, event); break;
	case DRIVER_RESET_ENDED: reset_ended(daemon, gpu); break;
	case DRIVER_EVICTED: evicted(daemon, gpu, event); break;
	case DRIVER_RESTORED: restored(daemon, gpu, event); break;
	default: break;
	}
}

static struct gpu *find_gpu(const struct daemon *daemon, uint32_t kfd_gpu_id)
{
	struct gpu *gpu = ledger_find_kfd(daemon->arbiter, kfd_gpu_id);

	return gpu && !gpu->absent ? gpu : NULL;
}

/* ---- streams --------------------------------------------------------------------------- */

static void stream_free(struct driver_stream *stream)
{
	LIST_REMOVE(stream, link);
	sd_event_source_disable_unref(stream->source); /* closes the descriptor */
	free(stream);
}

static void free_streams(struct daemon *daemon)
{
	for (struct driver_stream *stream; (stream = LIST_FIRST(&daemon->driver->streams));)
		stream_free(stream);
}

/* Takes the complete lines. A text without a line that fills the buffer is no event. */
static void parse_stream(struct driver_stream *stream, struct gpu *gpu)
{
	char *line = stream->text, *end = stream->text + stream->n, *newline;
	struct driver_event event;

	while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
		smi_event_parse(line, (size_t)(newline - line), stream->kfd_gpu_id, &event);
		take_event(stream->daemon, gpu, &event);
		line = newline + 1;
	}
	if (line == stream->text && stream->n == sizeof(stream->text)) {
		gpu->driver_events[DRIVER_UNKNOWN]++;
		gpu->changed = true;
		line = end;
	}
	stream->n = (size_t)(end - line);
	memmove(stream->text, line, stream->n);
}

/* Of a younger lease the last scan does not know the processes. */
static bool has_younger_lease(const struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->arbiter->n_leases; i++)
		if (daemon->arbiter->leases[i]->since_usec >= scan_begun_usec(daemon))
			return true;
	return false;
}

static int on_stream(sd_event_source *, int fd, uint32_t events, void *userdata)
{
	struct driver_stream *stream = userdata;
	struct daemon *daemon = stream->daemon;
	struct gpu *gpu = find_gpu(daemon, stream->kfd_gpu_id);
	ssize_t n;

	n = read(fd, stream->text + stream->n, sizeof(stream->text) - stream->n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && !(events & (EPOLLHUP | EPOLLERR)))
		return 0;
	if (n <= 0 || !gpu) {
		log_notice("events of the driver for GPU id %u end: they are subscribed again",
			   stream->kfd_gpu_id);
		stream_free(stream);
		daemon->driver->lost = true;
		return 0;
	}
	stream->n += (size_t)n;
	/* Which leases the processes have. */
	scan_hardware(daemon, has_younger_lease(daemon) ? 0 : SCAN_MAX_AGE_USEC);
	gpu = find_gpu(daemon, stream->kfd_gpu_id);
	if (gpu)
		parse_stream(stream, gpu);
	schedule_update(daemon);
	return 0;
}

/* Takes the descriptor. A read must not wait, whatever it is. */
static int add_stream(struct daemon *daemon, uint32_t kfd_gpu_id, int fd)
{
	struct driver_stream *stream = calloc(1, sizeof(*stream));
	int flags = fcntl(fd, F_GETFL), r = stream ? 0 : -ENOMEM;

	if (r >= 0 && (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0))
		r = -errno;
	if (r >= 0)
		r = sd_event_add_io(daemon->event, &stream->source, fd, EPOLLIN, on_stream, stream);
	if (r < 0) {
		close(fd);
		free(stream);
		return r;
	}
	stream->daemon = daemon;
	stream->kfd_gpu_id = kfd_gpu_id;
	LIST_INSERT_HEAD(&daemon->driver->streams, stream, link);
	sd_event_source_set_io_fd_own(stream->source, true);
	return sd_event_source_set_ratelimit(stream->source, 1000000, READS_PER_SECOND);
}

/* ---- gpuarb-probe ---------------------------------------------------------------------- */

/* gpuarbd reads sysfs by itself; libhsakmt is what programs see. */
static void compare_topology(const struct gpu *gpu, const struct probe_gpu *probe)
{
	struct cuset all;
	const struct {
		const char *name;
		unsigned sysfs, hsakmt;
	} rows[] = {
		{ "gfx target version", gpu->info.gfx_target, probe->gfx_target },
		{ "compute units", (geometry_all(&gpu->info.geometry, &all), cuset_count(&all)),
		  probe->cus },
		{ "queue slots", gpu->info.queue_slots, probe->queue_slots },
		{ "SDMA queues", gpu->info.sdma_queues, probe->sdma_queues },
		{ "SDMA queues for XGMI", gpu->info.sdma_xgmi_queues, probe->sdma_xgmi_queues },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].sysfs != rows[i].hsakmt)
			log_warning("%s: %s: gpuarbd reads %u in sysfs, libhsakmt says %u: gpuarbd "
				    "uses %u",
				    gpu->info.name, rows[i].name, rows[i].sysfs, rows[i].hsakmt,
				    rows[i].sysfs);
}

/* r: 0; or a negative errno and why. */
static void note_result(struct daemon *daemon, int r, const char *why)
{
	daemon->driver->asked = false;
	daemon->driver->lost = r < 0;
	if (r < 0 && !daemon->driver->fails)
		log_line(r == -EOPNOTSUPP ? LOG_INFO : LOG_WARNING,
			 "events of the driver cannot be read: %s: resets of GPUs are not noticed",
			 why);
	if (r >= 0 && daemon->driver->fails)
		log_notice("events of the driver can be read again");
	daemon->driver->fails = r < 0;
}

static int take_gpus(struct daemon *daemon, const struct probe_answer *answer)
{
	int fds[ASKER_FDS_MAX], *fd = fds, r = 0;

	asker_take_fds(daemon->driver->probe, fds);
	free_streams(daemon); /* of the request before */
	for (size_t i = 0; i < answer->n; i++) {
		const struct probe_gpu *probe = &answer->gpus[i];
		const struct gpu *gpu = find_gpu(daemon, probe->kfd_gpu_id);

		for (size_t k = 0; probe->subscribed && k < PROBE_FDS; k++, fd++) {
			if (gpu && !gpu->info.switches && r >= 0)
				r = add_stream(daemon, probe->kfd_gpu_id, *fd);
			else
				close(*fd);
		}
		if (gpu)
			compare_topology(gpu, probe);
	}
	return r;
}

static void on_answer(void *userdata, const struct asker_request *, int r, const void *packet,
		      const char *why)
{
	const struct probe_answer *answer = packet;
	struct daemon *daemon = userdata;

	if (r == -ECONNRESET) {
		r = -EOPNOTSUPP;
		why = "gpuarb-probe ended without an answer: there is no /dev/kfd, or its journal "
		      "has the reason";
	} else if (answer && answer->error < 0) {
		r = answer->error;
		why = answer->text;
	} else if (answer) {
		r = take_gpus(daemon, answer);
		why = strerror(-r);
	}
	note_result(daemon, r, why);
}

static void request(struct daemon *daemon)
{
	char why[256];
	int r = asker_ask(daemon->driver->probe, "", 1, -1, 0, why, sizeof(why));

	daemon->driver->asked = r >= 0;
	if (r < 0)
		note_result(daemon, r, why);
}

/* Returns whether there is a GPU of which there can be events. */
static bool tell_silent(const struct daemon *daemon)
{
	bool any = false;

	for (size_t i = 0; i < daemon->arbiter->n_gpus; i++) {
		const struct gpu *gpu = &daemon->arbiter->gpus[i];

		any |= !gpu->absent && !gpu->info.switches;
		if (!gpu->absent && gpu->info.switches)
			log_info("%s: its compute partition mode can be changed: events of the "
				 "driver are not read, and resets are not noticed",
				 gpu->info.name);
	}
	return any;
}

static bool is_wanted(const struct daemon *daemon)
{
	if (hw_is_simulated(daemon->hw) || daemon->driver->asked || scan_is_unsettled(daemon) ||
	    !(process_scan_in_use(daemon) || daemon->arbiter->n_leases > 0))
		return false;
	if (daemon->driver->usec == 0 || daemon->driver->generation != scan_generation(daemon))
		return true;
	return daemon->driver->lost && daemon_now_usec() - daemon->driver->usec >= RETRY_USEC;
}

void driver_events_refresh(struct daemon *daemon)
{
	bool again;

	forget_processes(daemon);
	/* In an older scan, a lease that came since seems to have no process. */
	if (process_scan_complete_usec(daemon) > daemon->driver->reset_usec)
		arbiter_forget_resets(daemon->arbiter);
	if (daemon->arbiter->touched && commit_error(daemon) == 0)
		schedule_update(daemon);
	if (!is_wanted(daemon))
		return;
	again = daemon->driver->usec > 0 && daemon->driver->generation == scan_generation(daemon);
	daemon->driver->usec = daemon_now_usec();
	daemon->driver->generation = scan_generation(daemon);
	if (again || tell_silent(daemon))
		request(daemon);
	else
		free_streams(daemon);
}

int driver_events_start(struct daemon *daemon)
{
	daemon->driver = calloc(1, sizeof(*daemon->driver));
	if (!daemon->driver)
		return -ENOMEM;
	LIST_INIT(&daemon->driver->streams);
	return asker_new(daemon->event, &probe_helper, daemon->options->probe, ANSWER_USEC,
			 on_answer, NULL, daemon, &daemon->driver->probe);
}

void driver_events_stop(struct daemon *daemon)
{
	if (!daemon->driver)
		return;
	free_streams(daemon);
	asker_free(daemon->driver->probe);
	free(daemon->driver->evictions);
	free(daemon->driver);
}
