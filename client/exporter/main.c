/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarb-exporter: serves the metrics of gpuarbd over HTTP, for Prometheus. systemd passes the socket,
 * or --port names one of 127.0.0.1. A scrape takes a snapshot; between scrapes the program sleeps.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "client/exporter/metrics.h"
#include "util/base.h"
#include "util/clock.h"
#include "util/text-stream.h"

#define CONNECTIONS 16U     /* at a time; further ones wait in the backlog of the socket */
#define TIMEOUT_SECONDS 10U /* of a client that sends or reads nothing */
#define FRESH_USEC 1000000U /* scrapes within this time share a snapshot */

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
};

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

static int serve(int fd)
{
	struct exporter exporter = { .gpuarb = NULL };
	struct MHD_Daemon *server;
	sigset_t signals;
	int number;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	/* Without MHD_USE_ERROR_LOG: clients that close early would fill the journal. */
	server = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, on_request,
				  &exporter, MHD_OPTION_LISTEN_SOCKET, fd,
				  MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
				  MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_SECONDS, MHD_OPTION_END);
	if (!server) {
		fprintf(stderr, "cannot serve HTTP on the socket\n");
		return EXIT_FAILURE;
	}
	sd_notify(false, "READY=1");
	sigwait(&signals, &number);
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

static int parse_port(const char *text, uint16_t *ret)
{
	char *rest;
	unsigned long port = strtoul(text, &rest, 10);

	if (*text < '0' || *text > '9' || *rest || port == 0 || port > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

int main(int argc, char *argv[])
{
	static const struct option options[] = { { "port", required_argument, NULL, 'p' },
						 { "help", no_argument, NULL, 'h' },
						 { "version", no_argument, NULL, 'v' },
						 { 0 } };
	uint16_t port = 0;
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
		if (parse_port(optarg, &port) < 0) {
			fprintf(stderr, "--port=%s: must be a number from 1 to 65535\n", optarg);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "%s: unexpected argument\n", argv[optind]);
		return 2;
	}

	fd = get_socket(port);
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
