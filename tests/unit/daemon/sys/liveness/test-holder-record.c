/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/holder.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "check.h"
#include "holder-rig.h"

FIXTURE(struct rig, rig, holder_rig_init(rig), holder_rig_done(rig));

TEST_WITH(record_goes_to_every_holder_of_the_lease_only, struct rig *rig)
{
	int first, second, other;
	char buf[16];

	first = add(rig, 17);
	second = add(rig, 17);
	other = add(rig, 17 + 4096);
	holders_tell(rig->holders, 17, "news", 4);
	CHECK(recv(first, buf, sizeof(buf), 0) == 4 && memcmp(buf, "news", 4) == 0);
	CHECK(recv(second, buf, sizeof(buf), 0) == 4);
	CHECK(recv(other, buf, sizeof(buf), 0) < 0 && errno == EAGAIN);
	CHECK(recv(first, buf, sizeof(buf), 0) < 0 && errno == EAGAIN);
	close(first);
	close(second);
	close(other);
}

TEST_WITH(unread_holder_keeps_only_the_latest_record, struct rig *rig)
{
	enum { TOLD = 10000 };
	unsigned record[64], got = 0, last = 0, in_queue;
	int fd;

	fd = add(rig, 17);
	for (unsigned i = 1; i <= TOLD; i++) {
		record[0] = i;
		holders_tell(rig->holders, 17, record, sizeof(record));
		holder_rig_settle(rig);
	}
	while (recv(fd, record, sizeof(record), 0) == sizeof(record)) {
		CHECK(record[0] == last + 1);
		last = record[0];
		got++;
	}
	CHECK(errno == EAGAIN && got > 0 && got < TOLD / 2);
	in_queue = got;

	holder_rig_settle(rig); /* there is room again */
	CHECK(recv(fd, record, sizeof(record), 0) == sizeof(record) && record[0] == TOLD);
	CHECK(recv(fd, record, sizeof(record), 0) < 0 && errno == EAGAIN);
	CHECK(in_queue * sizeof(record) < 65536); /* kernel memory per holder */

	record[0] = TOLD + 1;
	holders_tell(rig->holders, 17, record, sizeof(record));
	CHECK(recv(fd, record, sizeof(record), 0) == sizeof(record) && record[0] == TOLD + 1);
	close(fd);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 1);
}

TEST_WITH(holder_with_unread_records_is_reported_when_closed, struct rig *rig)
{
	char record[4096] = "";
	int fd;

	fd = add(rig, 17);
	for (unsigned i = 0; i < 100; i++)
		holders_tell(rig->holders, 17, record, sizeof(record));
	close(fd);
	holders_tell(rig->holders, 17, record, sizeof(record)); /* before the event is handled */
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 1 && holders_count(rig->holders) == 0);
}

TEST_WITH(sent_records_can_be_read_after_the_lease_is_dropped, struct rig *rig)
{
	char buf[16];
	int fd;

	fd = add(rig, 17);
	holders_tell(rig->holders, 17, "end", 3);
	holders_drop(rig->holders, 17);
	CHECK(holders_count(rig->holders) == 0);
	CHECK(recv(fd, buf, sizeof(buf), 0) == 3);
	CHECK(recv(fd, buf, sizeof(buf), 0) == 0);
	holder_rig_settle(rig);
	CHECK(rig->holders_gone == 0); /* no callback after holders_drop() */
	close(fd);
}
