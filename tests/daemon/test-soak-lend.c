/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Activates and deactivates a realtime lease repeatedly, so that a borrower shrinks and grows: nothing is
 * left behind. SOAK_CYCLES: how often; default 500, with GPUARB_LONG 100,000.
 */

#include "check.h"
#include "scratch.h"
#include "lend-live.h"
#include "live.h"

NEEDS(daemon_missing);

#define MEMORY_KIB 8192 /* what the allocator may keep for the next time */

struct figures {
	unsigned fds, kib, files;
};

static struct figures take_figures(const struct rig *rig)
{
	struct figures figures = { .kib = (unsigned)rig_resident_kib(rig->daemon) };
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/fd", rig->daemon);
	figures.fds = count_entries(path);
	snprintf(path, sizeof(path), "%s/run/leases", rig->dir);
	figures.files = count_entries(path);
	return figures;
}

static void print(const char *when, const struct figures *f)
{
	printf("%-22s %5u %9u %6u\n", when, f->fds, f->kib, f->files);
}

static void start(struct rig *rig)
{
	lend_configure(rig, "activate-grace = 1h\n" GROW_SOON, "report");
	rig_start(rig, LEND_GPU);
}

static void cycle(sd_bus *bus, sd_bus *crowd, const struct live_lease *rt,
		  const struct live_lease *borrower, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		CHECK(is_fine(activate(bus, rt)));
		follow_until(crowd, borrower, 45);
		await_record(rt->holder, GPUARB_RECORD_GRANTED);
		CHECK(is_fine(deactivate(bus, rt)));
		await_record(rt->holder, GPUARB_RECORD_INACTIVE);
		follow_until(crowd, borrower, LEND_CUS);
	}
}

TEST(repeated_activation_leaves_nothing_behind)
{
	const char *text = getenv("SOAK_CYCLES");
	unsigned cycles = text ? (unsigned)strtoul(text, NULL, 10) : check_rounds(500, 100000);
	struct book_part parts[2], now[2];
	struct live_lease rt, borrower;
	struct figures warm, last;
	static struct book book;
	sd_bus *bus, *crowd;
	_cleanup_(rig_done) struct rig rig;

	start_quietly(&rig, start);
	bus = rig_connect(&rig, 0);
	crowd = rig_connect(&rig, STRANGER);
	rt = keep_inactive(bus, 15);
	borrower = borrow(crowd);
	parts[0] = part_of(bus, &rt);
	parts[1] = part_of(bus, &borrower);
	cycle(bus, crowd, &rt, &borrower, cycles / 10);
	warm = take_figures(&rig);
	cycle(bus, crowd, &rt, &borrower, cycles - cycles / 10);
	last = take_figures(&rig);

	printf("%u cycles\n%-22s %5s %9s %6s\n", cycles, "", "fds", "RSS KiB", "files");
	print("after a tenth", &warm);
	print("after", &last);
	now[0] = part_of(bus, &rt);
	now[1] = part_of(bus, &borrower);
	CHECK(same_part(&parts[0], &now[0]) && same_part(&parts[1], &now[1]));
	CHECK(lease_number(bus, &borrower, "Generation") == 1 + 2 * (uint64_t)cycles);
	CHECK(lease_number(bus, &rt, "Generation") == 1);
	CHECK(last.fds == warm.fds && last.files == 2 && warm.files == 2);
	CHECK(last.kib <= warm.kib + MEMORY_KIB);
	CHECK(is_fine(call(release(bus, rt.path))) && is_fine(call(release(crowd, borrower.path))));
	do
		book_read(bus, &book);
	while (!book_is_empty(&book));
}
