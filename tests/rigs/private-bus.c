/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "private-bus.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "scratch.h"

static const char config[] =
	"<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\"\n"
	" \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
	"<busconfig><type>custom</type><listen>unix:path=%s/bus</listen>\n"
	"<auth>EXTERNAL</auth><policy context=\"default\"><allow user=\"*\"/>\n"
	"<allow own=\"*\"/><allow send_destination=\"*\"/><allow receive_sender=\"*\"/>\n"
	"</policy></busconfig>\n";

static void run(const struct private_bus *bus, int address_fd)
{
	char file[96], print[32];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(file, sizeof(file), "--config-file=%s/bus.conf", bus->dir);
	snprintf(print, sizeof(print), "--print-address=%d", address_fd);
	execlp("dbus-daemon", "dbus-daemon", file, "--nofork", "--nopidfile", print, (char *)NULL);
	_exit(127);
}

/* It writes its address when it listens, and closes the pipe if it cannot. */
bool private_bus_again(struct private_bus *bus)
{
	int fds[2];
	char c;
	bool listens;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	bus->pid = fork();
	if (bus->pid == 0) {
		fcntl(fds[1], F_SETFD, 0);
		run(bus, fds[1]);
	}
	close(fds[1]);
	listens = bus->pid > 0 && read(fds[0], &c, 1) == 1;
	close(fds[0]);
	return listens;
}

bool private_bus_start(struct private_bus *ret)
{
	char path[96];
	FILE *file;

	*ret = (struct private_bus){ .pid = -1 };
	scratch_directory(ret->dir, sizeof(ret->dir));
	snprintf(ret->address, sizeof(ret->address), "unix:path=%s/bus", ret->dir);
	snprintf(path, sizeof(path), "%s/bus.conf", ret->dir);
	file = fopen(path, "we");
	if (!file)
		return false;
	fprintf(file, config, ret->dir);
	if (fclose(file) != 0 || !private_bus_again(ret)) {
		private_bus_stop(ret);
		return false;
	}
	setenv("GPUARB_BUS_ADDRESS", ret->address, 1);
	return true;
}

/* What is killed can be the parent of the bus, which ends a moment later and closes this connection. */
void private_bus_kill(struct private_bus *bus)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct pollfd fd = { .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	struct await await = AWAIT_BEGIN("the end of the bus");
	char path[96];

	snprintf(path, sizeof(path), "%s/bus", bus->dir);
	memcpy(un.sun_path, path, sizeof(path));
	if (bus->pid > 0) {
		bool connected = connect(fd.fd, (struct sockaddr *)&un, sizeof(un)) == 0;

		kill(bus->pid, SIGKILL);
		waitpid(bus->pid, NULL, 0);
		bus->pid = -1;
		if (connected)
			await_fds(&await, &fd, 1);
	}
	close(fd.fd);
	unlink(path);
}

void private_bus_stop(struct private_bus *bus)
{
	char path[96];

	private_bus_kill(bus);
	snprintf(path, sizeof(path), "%s/bus.conf", bus->dir);
	unlink(path);
	rmdir(bus->dir);
}
