/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "client/launch/session.h"
#include "client/launch/child.h"
#include "client/output/fail.h"
#include "client/output/gpu-table.h"
#include "client/output/lease-table.h"
#include "client/output/list.h"
#include "client/output/table.h"
#include "client/output/observed.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"
#include "util/text-stream.h"

/* ---- what is shown ------------------------------------------------------------------------ */

enum top_sort { SORT_ID, SORT_NAME, SORT_CUS, SORT_AGE, SORTS };

static const char *const sort_names[SORTS] = { "id", "name", "CUs", "age" };

/* Changed by keys. */
struct top_layout {
	enum top_sort sort;
	bool reverse, help;
	unsigned scroll; /* lines above the screen */
};

/* The order of the leases, for qsort_r(). */
struct order {
	const struct command *command;
	const struct top_layout *layout;
};

static unsigned cus_of(const struct gpuarb_lease_info *lease)
{
	unsigned cus = 0;

	for (size_t i = 0; i < lease->n_partitions; i++)
		cus += lease->partitions[i].cus;
	return cus;
}

/* The most CUs and the oldest first; equal ones by number. */
static int compare_leases(const void *left, const void *right, void *userdata)
{
	const struct order *order = userdata;
	const struct command *command = order->command;
	size_t a = *(const size_t *)left, b = *(const size_t *)right;
	const struct gpuarb_lease_info *first = &command->leases[a], *second = &command->leases[b];
	int r = 0;

	if (order->layout->sort == SORT_NAME)
		r = strcmp(first->name, second->name);
	else if (order->layout->sort == SORT_CUS)
		r = (cus_of(first) < cus_of(second)) - (cus_of(first) > cus_of(second));
	else if (order->layout->sort == SORT_AGE)
		r = (gpuarb_view_since(command->view, a) > gpuarb_view_since(command->view, b)) -
		    (gpuarb_view_since(command->view, a) < gpuarb_view_since(command->view, b));
	if (r == 0)
		r = (first->id > second->id) - (first->id < second->id);
	return order->layout->reverse ? -r : r;
}

/* Owned; NULL: out of memory. */
static size_t *sorted_leases(const struct command *command, const struct top_layout *layout)
{
	size_t *sorted = calloc(command->n_leases + 1, sizeof(*sorted));
	struct order order = { command, layout };

	for (size_t l = 0; sorted && l < command->n_leases; l++)
		sorted[l] = l;
	if (sorted)
		qsort_r(sorted, command->n_leases, sizeof(*sorted), compare_leases, &order);
	return sorted;
}

/* ---- the tables --------------------------------------------------------------------------- */

#define LINE_HOME "\033[H"
#define LINE_REST "\033[K" /* clears the rest of the line */
#define PAGE_REST "\033[J" /* clears the rest of the screen */

static void add_head(struct table *table, const struct command *command, size_t l)
{
	const struct gpuarb_lease_info *lease = &command->leases[l];
	char user[PRINT_USER];

	print_user(lease->owner_uid, user);
	TABLE_CELLS(table, lease->id, lease->name);
	lease_table_state(table, command, l);
	TABLE_CELLS(table, lease->lease_class, user);
}

/* "3, 1.2 s"; "-": none. */
static void add_evictions(struct table *table, const struct gpuarb_pause *evictions)
{
	uint64_t usec = evictions->usec;

	if (evictions->since > 0)
		usec += lease_clock_usec() - evictions->since;
	if (evictions->count > 0)
		table_add(table, "%" PRIu64 ", %.1f s", evictions->count, (double)usec / 1e6);
	else
		table_add(table, "-");
}

static void add_tail(struct table *table, const struct command *command,
		     const struct gpuarb_lease_info *lease)
{
	const struct lent all = { command->leases, command->n_leases };
	char why[LEASE_TABLE_WHY];

	lease_table_why(&all, lease, why, sizeof(why));
	TABLE_CELLS(table, lease->disturbances);
	add_evictions(table,
		      gpuarb_view_evictions(command->view, (size_t)(lease - command->leases)));
	TABLE_CELLS(table, why);
}

static void add_part(struct table *table, const struct command *command,
		     const struct observed *observed, size_t l, size_t i)
{
	const struct gpuarb_partition *partition = &command->leases[l].partitions[i];
	struct observed_use use;

	TABLE_CELLS(table, partition->gpu, partition->cus);
	if (observed_use(observed, command->leases, command->n_leases, l, i, &use))
		table_add(table, "%u of %u", use.queues, partition->queues);
	else
		table_add(table, "? of %u", partition->queues);
}

static void add_lease(struct table *table, const struct command *command,
		      const struct observed *observed, size_t l)
{
	const struct gpuarb_lease_info *lease = &command->leases[l];

	for (size_t i = 0; i < lease->n_partitions; i++) {
		add_head(table, command, l);
		add_part(table, command, observed, l, i);
		add_tail(table, command, lease);
	}
	if (lease->n_partitions > 0)
		return;
	add_head(table, command, l);
	TABLE_CELLS(table, "-", "-", "-");
	add_tail(table, command, lease);
}

static void add_unmanaged(struct table *table, const struct gpuarb_gpu *gpu)
{
	for (size_t i = 0; i < gpu->n_unmanaged; i++) {
		const struct gpuarb_process *process = &gpu->unmanaged[i];
		char user[PRINT_USER];

		print_user(process->uid, user);
		TABLE_CELLS(table, "-", process->command, "unmanaged", "-", user, gpu->name, "-",
			    process->queues, "-", "-");
		table_add(table, "pid %u", process->pid);
	}
}

/* A table of GPUs, and one with a row for each lease and GPU and for each unmanaged process. */
static void top_print(const struct command *command, const struct observed *observed,
		      const struct top_layout *layout, FILE *out)
{
	_cleanup_(freep) size_t *sorted = sorted_leases(command, layout);
	static const char *const heads[] = { "ID",        "NAME",    "STATE",  "CLASS",
					     "USER",      "GPU",     "CUS",    "USED QUEUES",
					     "DISTURBED", "EVICTED", "REASON", NULL };
	_cleanup_(table_done) struct table table = { .heads = heads, .keep = "01061324780" };

	gpu_table(command, out);
	for (size_t l = 0; sorted && l < command->n_leases; l++)
		if (lease_is_listed(command, &command->leases[sorted[l]]))
			add_lease(&table, command, observed, sorted[l]);
	for (size_t i = 0; i < command->n_gpus; i++)
		if (gpu_is_listed(command, &command->gpus[i]))
			add_unmanaged(&table, &command->gpus[i]);
	if (command->n_gpus > 0)
		fputc('\n', out);
	table_print(&table, command, out);
	if (table.n == 0)
		print_line(out, command->n_leases > 0 ? "No such leases." : "No leases.");
	client_table(command, out);
}

static unsigned screen_lines(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

#define HEAD_LINES 2U /* of the text, which do not scroll */

/* Scrolls no further than to the last line. */
static void put_lines(const char *text, unsigned *scroll)
{
	unsigned left = screen_lines(), line = 0, lines = 1;

	for (const char *end = text; (end = strchr(end, '\n')); end++)
		lines++;
	*scroll = min_u(*scroll, lines > left ? lines - left : 0);
	fputs(LINE_HOME, stdout);
	for (; *text && left > 1; line++) {
		size_t n = strcspn(text, "\n");

		if (line >= HEAD_LINES && line < HEAD_LINES + *scroll) {
			text += n + (text[n] != '\0');
			continue;
		}
		left--;
		printf("%.*s" LINE_REST "\n", (int)n, text);
		text += n + (text[n] != '\0');
	}
	fputs(PAGE_REST, stdout);
	fflush(stdout);
}

/* Replaces the text on the terminal, cut at its last line. note: printed above the tables, "" for
 * none. */
static void top_draw(const struct command *command, const struct observed *observed,
		     struct top_layout *layout, const char *note)
{
	const char *user = command->filter.user, *state = command->filter.state;
	_cleanup_(freep) char *text = NULL;
	struct text_stream stream;
	FILE *out = text_stream_open(&stream);

	if (!out)
		return; /* out of memory; the next snapshot may succeed */

	if (layout->help)
		print_line(out,
			   "q quit, ? back, s sort, r reverse, u own, w waiting, arrows and PgUp "
			   "PgDn scroll");
	else
		print_line(out, "gpuarbctl top: q quits, ? helps; by %s%s%s%s%s%s%s%s",
			   sort_names[layout->sort], layout->reverse ? ", reversed" : "",
			   user ? "; user " : "", user ? user : "", state ? "; " : "",
			   state ? state : "", *note ? "; " : "", note);
	fputc('\n', out);
	top_print(command, observed, layout, out);
	text = text_stream_close(&stream);
	if (text)
		put_lines(text, &layout->scroll);
}

/* ---- the screen --------------------------------------------------------------------------- */

#define SECOND_USEC UINT64_C(1000000) /* between two snapshots without a change */
#define PAUSE_USEC UINT64_C(100000)   /* least time between two snapshots */
/* For a call. After SECOND_USEC, libgpuarb takes no answer for no change. */
#define ANSWER_USEC UINT64_C(800000)

#define SCREEN_ENTER "\033[?1049h\033[?25l\033[?7l" /* alternate screen, no cursor, no line wrap */
#define SCREEN_LEAVE "\033[?7h\033[?25h\033[?1049l"

struct painter {
	struct command *command;
	struct observed observed;
	struct top_layout layout;
	int wake;    /* readable while there is a key or a signal */
	char escape; /* the last byte of an unfinished sequence of a key; 0: none */
	bool quits;
	char own[PRINT_USER];
	uint64_t drawn_usec;
};

static void put_screen(const char *text)
{
	fputs(text, stdout);
	fflush(stdout);
}

static void take_snapshot(struct painter *painter)
{
	struct observed observed;

	if (gpuarb_observe_clients(painter->command->gpuarb) != -EINTR)
		(void)session_refresh(painter->command);
	if (observed_read("/sys", "/proc", &observed) >= 0) {
		observed_done(&painter->observed);
		painter->observed = observed;
	}
}

static void draw(struct painter *painter, const char *note)
{
	if (!painter->command->wide)
		painter->command->width = print_width(stdout); /* it may have changed */
	top_draw(painter->command, &painter->observed, &painter->layout, note);
	painter->drawn_usec = lease_clock_usec();
}

/* Many changes at once stop the watch. It is restarted after a pause, with a new snapshot. */
static void on_change(const char *kind, const char *what, void *userdata)
{
	struct painter *painter = userdata;

	(void)what;
	if (strcmp(kind, "daemon-gone") == 0) {
		draw(painter, "gpuarbd does not run");
	} else if (strcmp(kind, "watching") != 0 &&
		   lease_clock_usec() - painter->drawn_usec < PAUSE_USEC) {
		gpuarb_watch_stop(painter->command->gpuarb);
	} else {
		take_snapshot(painter);
		draw(painter, "");
	}
}

/* ---- keys --------------------------------------------------------------------------------- */

static void scroll_by(struct top_layout *layout, int lines)
{
	int to = (int)layout->scroll + lines;

	layout->scroll = to < 0 ? 0 : (unsigned)to;
}

/* The last byte of "ESC [ A" and others. */
static void take_sequence(struct painter *painter, char key)
{
	int page = (int)screen_lines() - (int)HEAD_LINES - 1;

	if (key == 'A')
		scroll_by(&painter->layout, -1);
	else if (key == 'B')
		scroll_by(&painter->layout, 1);
	else if (key == '5')
		scroll_by(&painter->layout, -page);
	else if (key == '6')
		scroll_by(&painter->layout, page);
}

static void take_key(struct painter *painter, char key)
{
	struct command *command = painter->command;
	struct top_layout *layout = &painter->layout;

	if (painter->escape == '[')
		take_sequence(painter, key);
	if (key == 033 || (painter->escape == 033 && key == '[') || painter->escape == '[') {
		painter->escape = painter->escape == '[' ? 0 : key;
		return;
	}
	painter->escape = 0;
	if (key == 's')
		layout->sort = (layout->sort + 1) % SORTS;
	else if (key == 'r')
		layout->reverse = !layout->reverse;
	else if (key == '?' || key == 'h')
		layout->help = !layout->help;
	else if (key == 'u')
		command->filter.user = command->filter.user ? NULL : painter->own;
	else if (key == 'w')
		command->filter.state = command->filter.state ? NULL : "waiting";
	else if (key == 'j' || key == 'k')
		scroll_by(layout, key == 'j' ? 1 : -1);
}

/* q, Ctrl-C and Ctrl-D end it, and so does a signal. */
static void take_keys(struct painter *painter, int signals)
{
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};
	char keys[64];
	ssize_t n;

	if (poll(fds, ARRAY_SIZE(fds), 0) <= 0)
		return;
	n = fds[0].revents ? read(STDIN_FILENO, keys, sizeof(keys)) : 1;
	painter->quits = fds[1].revents || n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
	for (ssize_t i = 0; fds[0].revents && i < n && !painter->quits; i++) {
		painter->quits = strchr("qQ\003\004", keys[i]) && keys[i];
		take_key(painter, keys[i]);
	}
	if (!painter->quits)
		draw(painter, "");
}

/* A key interrupts calls of libgpuarb, which poll, so that q works even if the daemon hangs. */
static void on_key(int number)
{
	(void)number;
}

static void pause_a_little(const struct painter *painter)
{
	uint64_t passed = lease_clock_usec() - painter->drawn_usec;

	if (passed < PAUSE_USEC)
		poll(NULL, 0, (int)((PAUSE_USEC - passed) / 1000));
}

/* Until the user quits, or a negative errno. */
static int paint(struct painter *painter, int signals)
{
	struct gpuarb *gpuarb = painter->command->gpuarb;
	int r = 0;

	gpuarb_set_timeout(gpuarb, ANSWER_USEC);
	while (r >= 0 && !painter->quits) {
		r = gpuarb_watch_until(gpuarb, painter->wake, SECOND_USEC, on_change, painter);
		take_keys(painter, signals);
		if (r == -EINTR)
			r = 0;
		if (r == -ECONNREFUSED || r == -ECONNRESET || r == -ETIMEDOUT) {
			draw(painter, gpuarb_last_error(gpuarb));
			r = 0;
		}
		if (!painter->quits)
			pause_a_little(painter);
	}
	return painter->quits ? 0 : r;
}

/* A descriptor that is readable while one of the two is; negative errno. */
static int join(int first, int second)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, first, &event) == 0 &&
	    epoll_ctl(fd, EPOLL_CTL_ADD, second, &event) == 0)
		return fd;
	return -errno;
}

static int show(struct command *command)
{
	static const int watched[] = { SIGINT, SIGTERM, SIGHUP, 0 };
	const struct sigaction action = { .sa_handler = on_key, .sa_flags = SA_RESTART };
	struct painter painter = { .command = command };
	struct termios before, raw;
	int signals, flags, r;

	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return fail(command, EXIT_FAILED, "cannot read the settings of the terminal: %s",
			    strerror(errno));
	signals = signals_open(command, watched, NULL);
	if (signals < 0)
		return EXIT_FAILED;
	painter.wake = join(STDIN_FILENO, signals);
	if (painter.wake < 0)
		return fail(command, EXIT_FAILED, "cannot wait for keys: %s",
			    strerror(-painter.wake));
	print_user(geteuid(), painter.own);
	sigaction(SIGIO, &action, NULL);
	flags = fcntl(STDIN_FILENO, F_GETFL);
	(void)fcntl(STDIN_FILENO, F_SETOWN, getpid());
	(void)fcntl(STDIN_FILENO, F_SETFL, flags | O_ASYNC);
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	put_screen(SCREEN_ENTER);
	r = paint(&painter, signals);
	put_screen(SCREEN_LEAVE);
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
	(void)fcntl(STDIN_FILENO, F_SETFL, flags);
	observed_done(&painter.observed);
	close(painter.wake);
	close(signals);
	return r < 0 ? fail_asked(command, r) : EXIT_OK;
}

static int print_once(struct command *command)
{
	const struct top_layout layout = { .sort = SORT_ID };
	struct observed observed;

	if (command->json)
		return run_status(command);
	if (observed_read("/sys", "/proc", &observed) < 0)
		return fail(command, EXIT_FAILED, "out of memory");
	top_print(command, &observed, &layout, stdout);
	observed_done(&observed);
	return EXIT_OK;
}

int run_top(struct command *command)
{
	int r = list_check(command, NULL);

	if (r != EXIT_OK)
		return r;
	if (command->json || !isatty(STDIN_FILENO) || !print_is_screen(stdout))
		return print_once(command);
	return show(command);
}
