/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Holders of dropped leases with a last record, and the order of events. */

#include "sys/liveness/holder.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "check.h"
#include "holder-rig.h"

/* Sends records until one has to wait, and returns their number. */
static unsigned fill(struct rig *rig, uint64_t lease, unsigned n)
{
	char record[4096];

	for (unsigned i = 1; i <= n; i++) {
		memset(record, 0, sizeof(record));
		memcpy(record, &i, sizeof(i));
		holders_tell(rig->holders, lease, record, sizeof(record));
	}
	return n;
}

/* Returns the number in the last record that can be read. */
static unsigned read_all(int fd)
{
	unsigned last = 0;
	char record[4096];

	while (recv(fd, record, sizeof(record), 0) == sizeof(record))
		memcpy(&last, record, sizeof(last));
	return last;
}

FIXTURE(struct rig, rig, holder_rig_init(rig), holder_rig_done(rig));

TEST_WITH(last_record_of_a_dropped_lease_is_sent_when_there_is_room, struct rig *rig)
{
	char buf[8];
	int fd;

	fd = add(rig, 17);
	fill(rig, 17, 50);
	holder_rig_settle(rig);
	holders_drop(rig->holders, 17);
	CHECK(holders_count(rig->holders) == 1);   /* it still has a descriptor */
	holders_tell(rig->holders, 17, "late", 4); /* to no holder */
	holder_rig_settle(rig);
	CHECK(read_all(fd) < 50 && errno == EAGAIN);
	holder_rig_settle(rig);
	CHECK(holders_count(rig->holders) == 0);
	CHECK(read_all(fd) == 50);
	CHECK(recv(fd, buf, sizeof(buf), 0) == 0);
	close(fd);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 0);
}

TEST_WITH(holder_closed_before_its_last_record_is_freed, struct rig *rig)
{
	int fd;

	fd = add(rig, 17);
	fill(rig, 17, 50);
	holders_drop(rig->holders, 17);
	close(fd);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 0 && holders_count(rig->holders) == 0);

	fd = add(rig, 17);
	fill(rig, 17, 50);
	close(fd);
	holders_drop(rig->holders, 17);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 0 && holders_count(rig->holders) == 0);
}

TEST_WITH(at_most_256_last_records_wait_and_the_oldest_is_dropped, struct rig *rig)
{
	enum { MANY = HOLDERS_LEAVING_MAX + 2 };
	int fds[MANY];
	char buf[8];

	for (unsigned i = 0; i < MANY; i++) {
		fds[i] = add(rig, i);
		fill(rig, i, 50);
		holders_drop(rig->holders, i);
	}
	CHECK(holders_count(rig->holders) == HOLDERS_LEAVING_MAX);
	for (unsigned i = 0; i < MANY; i++)
		CHECK(read_all(fds[i]) < 50);
	holder_rig_settle(rig);
	CHECK(holders_count(rig->holders) == 0);
	for (unsigned i = 0; i < MANY; i++) {
		CHECK(read_all(fds[i]) == (i < 2 ? 0 : 50));
		CHECK(recv(fds[i], buf, sizeof(buf), 0) == 0);
		close(fds[i]);
	}
	CHECK(rig->holders_gone == 0);
}

TEST(waiting_last_records_are_freed_with_the_holders)
{
	struct rig rig;
	char buf[8];
	int fd;

	holder_rig_init(&rig);
	fd = add(&rig, 17);
	fill(&rig, 17, 50);
	holders_drop(rig.holders, 17);
	holder_rig_done(&rig);
	CHECK(read_all(fd) > 0);
	CHECK(recv(fd, buf, sizeof(buf), 0) == 0);
	close(fd);
}

struct request {
	struct rig *rig;
	unsigned gone; /* position in the order of events */
	bool seen;
};

static int on_request(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct request *request = userdata;

	(void)source, (void)fd, (void)events;
	request->seen = true;
	request->gone = request->rig->holders_gone + request->rig->bound_gone;
	return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

TEST_WITH(ends_are_handled_before_earlier_requests, struct rig *rig)
{
	pid_t pid = start_sleeper();
	int pidfd = open_pidfd(pid), holder, bell = eventfd(1, EFD_CLOEXEC);
	struct request request = { 0 };
	sd_event_source *source;

	request.rig = rig;
	CHECK(sd_event_add_io(rig->event, &source, bell, EPOLLIN, on_request, &request) >= 0);
	holder = add(rig, 17);
	CHECK(holders_bind(rig->holders, 17, pidfd, pid, false) == 0);
	close(holder);
	kill_and_reap(pid);
	holder_rig_settle(rig);
	CHECK(request.seen && request.gone == 2);
	sd_event_source_unref(source);
	close(pidfd);
	close(bell);
}
