/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarb-exporter: serves the metrics of gpuarbd over HTTP, for Prometheus. systemd passes the socket,
 * or --port names one of 127.0.0.1. A scrape takes a snapshot; between scrapes the program sleeps.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "client/exporter/metrics.h"
#include "util/base.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/number.h"
#include "util/text-stream.h"

#define CONNECTIONS 64U      /* at a time; further ones wait in the backlog of the socket */
#define REPLACE_AT 48U       /* from so many on, each new one replaces the one that takes longest */
#define TIMEOUT_SECONDS 10U  /* of a client that sends or reads nothing */
#define PHASE_USEC 10000000U /* for sending a request, and again for reading its answer */
#define FRESH_USEC 1000000U  /* scrapes within this time share a snapshot */

/* Of a gpuarbd that restarts or hangs, for each call of a scrape: Prometheus waits for 10 s. */
#define ANSWER_USEC 3000000U

#define PATH "/metrics"
#define TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_OPEN "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct exporter {
	struct gpuarb *gpuarb;
	struct gpuarb_view *view;         /* NULL: none was taken, or gpuarbd is away */
	struct gpuarb_counters *counters; /* NULL: the same, or it is older than its counters */
	uint64_t taken_usec;
	bool failed; /* and reported */
	struct visit {
		int fd; /* -1: none */
		uint64_t
			since_usec; /* it sends its request, or reads its answer; 0: disconnected */
	} visits[CONNECTIONS];
};

/* ---- connections ------------------------------------------------------------------------- */

/* libmicrohttpd reads the end, and closes the connection. */
static void disconnect(struct visit *visit)
{
	shutdown(visit->fd, SHUT_RDWR);
	visit->since_usec = 0;
}

/* NULL: there is none. *ret_n: how many there are. */
static struct visit *find_longest(struct exporter *exporter, unsigned *ret_n)
{
	struct visit *longest = NULL;

	*ret_n = 0;
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		struct visit *visit = &exporter->visits[i];

		if (visit->fd < 0 || visit->since_usec == 0)
			continue;
		++*ret_n;
		if (!longest || visit->since_usec < longest->since_usec)
			longest = visit;
	}
	return longest;
}

/* Disconnects the clients whose time is over. Returns the milliseconds until the next one's is; -1: there
 * is none. */
static int disconnect_overdue(struct exporter *exporter)
{
	uint64_t now = clock_usec(CLOCK_BOOTTIME);
	struct visit *longest;
	unsigned n;

	while ((longest = find_longest(exporter, &n)) && now - longest->since_usec >= PHASE_USEC)
		disconnect(longest);
	return longest ? (int)((longest->since_usec + PHASE_USEC - now) / 1000) + 1 : -1;
}

static void on_connection(void *userdata, struct MHD_Connection *connection, void **state,
			  enum MHD_ConnectionNotificationCode code)
{
	struct exporter *exporter = userdata;
	struct visit *visit = *state;
	unsigned n, free = 0;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		visit->fd = -1;
		return;
	}
	visit = find_longest(exporter, &n);
	if (n >= REPLACE_AT)
		disconnect(visit);
	while (exporter->visits[free].fd >= 0) /* there is one: libmicrohttpd limits the number */
		free++;
	visit = &exporter->visits[free];
	visit->fd =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	visit->since_usec = clock_usec(CLOCK_BOOTTIME);
	*state = visit;
}

/* The client has sent its request, or has read its answer. */
static void begin_phase(struct MHD_Connection *connection)
{
	struct visit *visit = MHD_get_connection_info(connection,
						      MHD_CONNECTION_INFO_SOCKET_CONTEXT)
				      ->socket_context;

	if (visit->since_usec > 0)
		visit->since_usec = clock_usec(CLOCK_BOOTTIME);
}

static void on_completed(void *, struct MHD_Connection *connection, void **,
			 enum MHD_RequestTerminationCode)
{
	begin_phase(connection);
}

/* ---- scrapes ----------------------------------------------------------------------------- */

static void free_snapshot(struct exporter *exporter)
{
	gpuarb_view_free(exporter->view);
	gpuarb_counters_free(exporter->counters);
	exporter->view = NULL;
	exporter->counters = NULL;
}

/* Leaves view NULL on failure, and reports the first one. */
static void take_snapshot(struct exporter *exporter)
{
	int r = 0;

	if (exporter->view && clock_usec(CLOCK_BOOTTIME) - exporter->taken_usec < FRESH_USEC)
		return;
	free_snapshot(exporter);
	if (!exporter->gpuarb) {
		r = gpuarb_open(&exporter->gpuarb);
		gpuarb_set_timeout(exporter->gpuarb, ANSWER_USEC);
	}
	if (r >= 0)
		r = gpuarb_look(exporter->gpuarb, &exporter->view);
	if (r >= 0)
		(void)gpuarb_read_counters(exporter->gpuarb, &exporter->counters);
	exporter->taken_usec = clock_usec(CLOCK_BOOTTIME);
	if (r < 0 && !exporter->failed)
		fprintf(stderr, "no snapshot: %s\n", gpuarb_last_error(exporter->gpuarb));
	exporter->failed = r < 0;
}

/* The text belongs to the caller; NULL: no memory. */
static char *write_text(struct exporter *exporter, const struct metrics_format *format)
{
	struct text_stream stream;
	FILE *file = text_stream_open(&stream);
	char *text;
	int r = 0;

	if (file && exporter->view)
		r = metrics_write(file, format, exporter->view, exporter->counters,
				  clock_usec(CLOCK_BOOTTIME));
	else if (file)
		metrics_write_absent(file, format);
	text = text_stream_close(&stream);
	if (r >= 0)
		return text;
	free(text);
	return NULL;
}

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned status, const char *type,
			       char *text, size_t size)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(size, text,
									MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result = MHD_NO;

	if (response && MHD_add_response_header(response, "Content-Type", type) == MHD_YES)
		result = MHD_queue_response(connection, status, response);
	if (response)
		MHD_destroy_response(response);
	return result;
}

static enum MHD_Result respond_with(struct MHD_Connection *connection, unsigned status,
				    const char *sentence)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%s\n", sentence);

	return respond(connection, status, "text/plain", text, (size_t)n);
}

static enum MHD_Result respond_metrics(struct exporter *exporter, struct MHD_Connection *connection)
{
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
	const struct metrics_format format = {
		.open = accept && strstr(accept, "application/openmetrics-text"),
	};
	enum MHD_Result result;
	char *text;

	take_snapshot(exporter);
	begin_phase(connection);
	text = write_text(exporter, &format);
	if (!text)
		result = respond_with(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
	else
		result = respond(connection, MHD_HTTP_OK, format.open ? TYPE_OPEN : TYPE_TEXT, text,
				 strlen(text));
	free(text);
	return result;
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection,
				  const char *url, const char *method, const char *, const char *,
				  size_t *size, void **state)
{
	if (!*state) { /* the headers: the answer follows with the end of the request */
		*state = connection;
		return MHD_YES;
	}
	if (*size > 0) { /* what the client uploads */
		*size = 0;
		return MHD_YES;
	}
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return respond_with(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "use GET " PATH);
	if (strcmp(url, PATH) != 0)
		return respond_with(connection, MHD_HTTP_NOT_FOUND, "the metrics are at " PATH);
	return respond_metrics(userdata, connection);
}

/* ---- the program ------------------------------------------------------------------------- */

/* The socket that systemd passes, or port of 127.0.0.1. */
static int get_socket(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd, on = 1, n = sd_listen_fds(true);

	if (n == 1)
		return SD_LISTEN_FDS_START;
	if (n > 1)
		return -E2BIG;
	if (port == 0)
		return -EDESTADDRREQ;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, SOMAXCONN) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

/* Until a signal arrives. */
static void serve_all(struct exporter *exporter, struct MHD_Daemon *server, int signals)
{
	struct pollfd fds[] = {
		{ .fd = MHD_get_daemon_info(server, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
		  .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};

	while (!fds[1].revents) {
		int msec = disconnect_overdue(exporter);
		MHD_UNSIGNED_LONG_LONG wait;

		if (MHD_get_timeout(server, &wait) == MHD_YES &&
		    (msec < 0 || wait < (unsigned)msec))
			msec = wait < INT_MAX ? (int)wait : INT_MAX;
		poll(fds, ARRAY_SIZE(fds), msec);
		MHD_run(server);
	}
}

static int serve(int fd)
{
	struct exporter exporter = { .gpuarb = NULL };
	_cleanup_fd_ int signals = -1;
	struct MHD_Daemon *server;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		exporter.visits[i].fd = -1;
	/* Without MHD_USE_ERROR_LOG: clients that close early would fill the journal. */
	server = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, on_request, &exporter, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
		TIMEOUT_SECONDS, MHD_OPTION_NOTIFY_CONNECTION, on_connection, &exporter,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, &exporter, MHD_OPTION_END);
	if (!server || signals < 0) {
		fprintf(stderr, "cannot serve HTTP on the socket\n");
		return EXIT_FAILURE;
	}
	sd_notify(false, "READY=1");
	serve_all(&exporter, server, signals);
	MHD_stop_daemon(server);
	free_snapshot(&exporter);
	gpuarb_close(exporter.gpuarb);
	return EXIT_SUCCESS;
}

static void print_help(void)
{
	puts("gpuarb-exporter [OPTION]...\n\n"
	     "Serves the metrics of gpuarbd at http://ADDRESS" PATH ", on the socket that systemd\n"
	     "passes.\n\n"
	     "  --port=PORT   serve on this port of 127.0.0.1, if systemd passes no socket\n"
	     "  --help        print this help\n"
	     "  --version     print the version");
}

int main(int argc, char *argv[])
{
	static const struct option options[] = { { "port", required_argument, NULL, 'p' },
						 { "help", no_argument, NULL, 'h' },
						 { "version", no_argument, NULL, 'v' },
						 { 0 } };
	uint64_t port = 0;
	int c, fd;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'h') {
			print_help();
			return EXIT_SUCCESS;
		}
		if (c == 'v') {
			puts("gpuarb-exporter " GPUARB_VERSION);
			return EXIT_SUCCESS;
		}
		if (c != 'p')
			return 2;
		if (number_parse(optarg, 1, UINT16_MAX, &port) < 0) {
			fprintf(stderr, "--port=%s: must be a number from 1 to 65535\n", optarg);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "%s: unexpected argument\n", argv[optind]);
		return 2;
	}

	fd = get_socket((uint16_t)port);
	if (fd == -EDESTADDRREQ) {
		fprintf(stderr,
			"no socket from systemd: start gpuarb-exporter.socket, or use --port\n");
		return 2;
	}
	if (fd < 0) {
		fprintf(stderr, "no socket: %s\n", strerror(-fd));
		return EXIT_FAILURE;
	}
	return serve(fd);
}
