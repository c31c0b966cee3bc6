/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/log.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "check.h"
#include "scratch.h"

TEST(entry_has_one_line_per_field)
{
	struct journal_entry entry = { 0 };

	journal_add(&entry, "MESSAGE", "lease %d", 7);
	journal_add(&entry, "GPUARB_GPU", "0000:03:00.0");
	journal_add(&entry, "GPUARB_GPU", "0000:04:00.0/2");
	CHECK(strcmp(entry.text, "MESSAGE=lease 7\nGPUARB_GPU=0000:03:00.0\n"
				 "GPUARB_GPU=0000:04:00.0/2\n") == 0);
	CHECK(entry.size == strlen(entry.text));
}

TEST(value_cannot_start_another_field)
{
	struct journal_entry entry = { 0 };

	journal_add(&entry, "GPUARB_TENANT", "%s",
		    "a\nMESSAGE_ID=b\x1b[2J\x7f\xff\xc3\u00e9\xc2\x9b");
	CHECK(strcmp(entry.text, "GPUARB_TENANT=a?MESSAGE_ID=b?[2J???\u00e9??\n") == 0);
}

TEST(field_without_room_is_left_out)
{
	struct journal_entry entry = { 0 };

	for (unsigned i = 0; i < 6; i++)
		journal_add(&entry, "A", "%04000d", i);
	CHECK(entry.size == 3 * (2 + 2047 + 1)); /* a value is truncated at 2047 bytes */
	CHECK(entry.text[entry.size - 1] == '\n');
	journal_add(&entry, "B", "short");
	CHECK(strcmp(entry.text + entry.size - 8, "B=short\n") == 0);
}

static int listen_at(char path[static 64])
{
	snprintf(path, 64, "/tmp/gpuarb-journal-%d", getpid());
	return scratch_bind(path, SOCK_DGRAM);
}

static struct journal_entry hello(void)
{
	struct journal_entry entry = { 0 };

	journal_add(&entry, "MESSAGE", "hello");
	return entry;
}

TEST(entry_is_sent_as_one_datagram)
{
	const struct journal_entry entry = hello();
	char path[64], got[64];
	int fd = listen_at(path);

	CHECK(journal_send(path, &entry) == 0);
	CHECK(recv(fd, got, sizeof(got), MSG_DONTWAIT) == (ssize_t)entry.size);
	CHECK(memcmp(got, "MESSAGE=hello\n", entry.size) == 0);
	CHECK(recv(fd, got, sizeof(got), MSG_DONTWAIT) < 0 && errno == EAGAIN);
	close(fd);
	unlink(path);
}

TEST(largest_entry_is_sent_as_one_datagram)
{
	struct journal_entry entry = { 0 };
	char path[64], got[sizeof(entry.text)];
	int fd = listen_at(path);

	while (entry.size < sizeof(entry.text) - 16)
		journal_add(&entry, "A", "12345");
	CHECK(journal_send(path, &entry) == 0);
	CHECK(recv(fd, got, sizeof(got), MSG_DONTWAIT) == (ssize_t)entry.size);
	close(fd);
	unlink(path);
}

TEST(stopped_journal_does_not_block)
{
	const struct journal_entry entry = hello();
	char path[64], got[64];
	int fd = listen_at(path), r, n = 0;

	alarm(AWAIT_LIMIT_SEC); /* a call that waits would wait forever */
	while ((r = journal_send(path, &entry)) == 0)
		n++;
	CHECK(r == -EAGAIN && n > 0);
	CHECK(recv(fd, got, sizeof(got), MSG_DONTWAIT) > 0);
	CHECK(journal_send(path, &entry) == 0);
	alarm(0);
	close(fd);
	CHECK(journal_send(path, &entry) == -ECONNREFUSED);
	unlink(path);
	CHECK(journal_send(path, &entry) == -ENOENT);
}

TEST(send_failures_are_returned)
{
	const struct journal_entry entry = hello();
	const struct rlimit none = { 0, 0 };
	char endless[256];
	int status;
	pid_t pid;

	memset(endless, 'a', sizeof(endless) - 1);
	endless[0] = '/';
	endless[255] = '\0';
	CHECK(journal_send(endless, &entry) == -ENAMETOOLONG);

	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(setrlimit(RLIMIT_NOFILE, &none) < 0 ||
		      journal_send("/run/none", &entry) != -EMFILE);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}
