/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * dbus-broker with the command line of dbus-daemon. Tests that find this program first in PATH run on
 * dbus-broker, with the configuration of their bus:
 *
 *	dbus-daemon --config-file=FILE [--fork] [--print-pid] [--print-address[=FD]] …
 *
 * Without a configuration it is dbus-daemon itself: cockpit-bridge starts a session bus for its own use, and
 * ends where that fails.
 *
 * dbus-broker-launch gets the listening socket from its parent, and does not start without the socket
 * of systemd-journald: it gets one that nobody reads, in a mount namespace.
 */

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTENER 3 /* SD_LISTEN_FDS_START */
#define JOURNAL_FOLDER "/run/systemd/journal"
#define JOURNAL JOURNAL_FOLDER "/socket"

struct options {
	const char *config;
	int address_fd; /* -1: the address is not printed */
	bool fork, print_pid;
};

static bool has_config(char **argv)
{
	while (*argv && strncmp(*argv, "--config-file=", 14) != 0)
		argv++;
	return *argv;
}

static struct options parse(int argc, char **argv)
{
	struct options options = { .address_fd = -1 };

	for (int i = 1; i < argc; i++) {
		const char *value = strchr(argv[i], '=');

		if (strncmp(argv[i], "--config-file=", 14) == 0)
			options.config = value + 1;
		else if (strncmp(argv[i], "--print-address", 15) == 0)
			options.address_fd = value ? atoi(value + 1) : STDOUT_FILENO;
		else if (strcmp(argv[i], "--print-pid") == 0)
			options.print_pid = true;
		else if (strcmp(argv[i], "--fork") == 0)
			options.fork = true;
		else if (strncmp(argv[i], "--no", 4) != 0)
			errx(2, "'%s': this option of dbus-daemon is unknown here", argv[i]);
	}
	return options;
}

/* The path of <listen>unix:path=PATH</listen>. */
static void read_path(const char *config, struct sockaddr_un *ret)
{
	static char text[65536];
	FILE *file = fopen(config, "re");
	const char *path;

	if (!file)
		err(1, "%s", config);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	path = strstr(text, "<listen>unix:path=");
	if (!path || sscanf(path, "<listen>unix:path=%107[^<]", ret->sun_path) != 1)
		errx(1, "%s: there is no <listen>unix:path=PATH</listen>", config);
}

static int listen_at(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	unlink(address->sun_path); /* of the last bus */
	umask(0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		err(1, "%s", address->sun_path);
	return fd;
}

/* The socket stays open in dbus-broker-launch. */
static void make_journal(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = JOURNAL };
	int fd;

	if (unshare(CLONE_NEWNS) < 0 && access(JOURNAL, F_OK) == 0)
		return;
	fd = fcntl(socket(AF_UNIX, SOCK_DGRAM, 0), F_DUPFD, LISTENER + 1);
	if (fd < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/run", "tmpfs", 0, NULL) < 0 || mkdir("/run/systemd", 0755) < 0 ||
	    mkdir(JOURNAL_FOLDER, 0755) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		err(1,
		    "cannot make %s, which dbus-broker-launch needs: start systemd-journald, or "
		    "run the test as root",
		    JOURNAL);
}

/* A client can connect now, and waits until dbus-broker runs. */
static void print(const struct options *options, const struct sockaddr_un *address, pid_t pid)
{
	if (options->address_fd >= 0)
		dprintf(options->address_fd, "unix:path=%s\n", address->sun_path);
	if (options->print_pid)
		printf("%d\n", pid);
	fflush(stdout);
	if (options->address_fd > STDERR_FILENO)
		close(options->address_fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct options options;
	char config[4096], itself[128], pid[16];
	pid_t child = 0;
	int fd;

	if (!has_config(argv)) {
		execv("/usr/bin/dbus-daemon", argv);
		err(127, "/usr/bin/dbus-daemon");
	}
	options = parse(argc, argv);
	read_path(options.config, &address);
	fd = listen_at(&address);
	make_journal();
	if (options.fork && (child = fork()) != 0) {
		if (child < 0)
			err(1, "fork");
		print(&options, &address, child);
		return 0;
	}
	if (!options.fork)
		print(&options, &address, getpid());
	if (options.fork && (setsid() < 0 || !freopen("/dev/null", "w", stdout)))
		err(1, "/dev/null");
	snprintf(config, sizeof(config), "--config-file=%s", options.config);
	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(itself, sizeof(itself), "unix:path=%s", address.sun_path);
	setenv("DBUS_SYSTEM_BUS_ADDRESS", itself, 1); /* it is a client of its bus */
	setenv("LISTEN_FDS", "1", 1);
	setenv("LISTEN_PID", pid, 1);
	if (fd != LISTENER && dup2(fd, LISTENER) < 0)
		err(1, "dup2");
	execlp("dbus-broker-launch", "dbus-broker-launch", config, (char *)NULL);
	err(127, "dbus-broker-launch: tests/setup installs it");
}
