/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static ino_t inode_of(int fd)
{
	struct stat st;

	CHECK(fstat(fd, &st) == 0);
	return st.st_ino;
}

/* A shelf of n ends of pipes, named by their number. */
static int write_pipes(struct shelf_entry *entries, size_t n)
{
	int pair[2], fd;

	for (size_t i = 0; i < n; i++) {
		CHECK(pipe2(pair, O_CLOEXEC) == 0);
		close(pair[1]);
		entries[i].fd = pair[0];
		snprintf(entries[i].name, sizeof(entries[i].name), "lease-%zu", i);
	}
	CHECK(shelf_write(entries, n, &fd) == 0);
	return fd;
}

TEST(a_shelf_keeps_its_descriptors_when_it_is_read)
{
	static struct shelf_entry written[SHELF_MAX], read[SHELF_MAX];
	int shelf = write_pipes(written, SHELF_MAX);
	size_t n;

	for (unsigned round = 0; round < 2; round++) {
		CHECK(shelf_read(shelf, read, &n) == 0 && n == SHELF_MAX);
		for (size_t i = 0; i < n; i++) {
			CHECK(strcmp(read[i].name, written[i].name) == 0);
			CHECK(inode_of(read[i].fd) == inode_of(written[i].fd));
			CHECK(fcntl(read[i].fd, F_GETFD) == FD_CLOEXEC);
			close(read[i].fd);
		}
	}
	close(shelf);
	for (size_t i = 0; i < SHELF_MAX; i++)
		close(written[i].fd);
}

TEST(a_shelf_has_nothing_of_the_memory_behind_a_name)
{
	static const char rest[STORE_NAME_MAX] = { 0 };
	struct shelf_entry entry;
	char name[STORE_NAME_MAX];
	int shelf;

	memset(entry.name, 'x', sizeof(entry.name));
	shelf = write_pipes(&entry, 1);
	CHECK(recv(shelf, name, sizeof(name), 0) == sizeof(name));
	CHECK(strcmp(name, entry.name) == 0);
	CHECK(memcmp(name + strlen(name), rest, sizeof(name) - strlen(name)) == 0);
	close(shelf);
	close(entry.fd);
}

TEST(what_is_no_shelf_is_refused)
{
	static struct shelf_entry entries[SHELF_MAX];
	int pair[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	size_t n = 77;

	CHECK(null >= 0 && shelf_read(null, entries, &n) == -EBADMSG);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(shelf_read(pair[0], entries, &n) == -EBADMSG); /* empty */
	CHECK(send(pair[1], "lease-1", 7, 0) == 7);
	CHECK(shelf_read(pair[0], entries, &n) == -EBADMSG && n == 77);
	close(pair[0]);
	close(pair[1]);
	close(null);
}

TEST(a_shelf_is_not_read_in_part)
{
	static struct shelf_entry written[20], read[SHELF_MAX];
	int shelf = write_pipes(written, 20), next = dup(shelf);
	struct rlimit limit;
	size_t n;

	CHECK(next >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
	close(next);
	CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)next + 10, limit.rlim_max }) == 0);
	CHECK(shelf_read(shelf, read, &n) == -EMFILE);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(dup(shelf) == next); /* no copy was left open */
	CHECK(shelf_read(shelf, read, &n) == 0 && n == 20);
}
