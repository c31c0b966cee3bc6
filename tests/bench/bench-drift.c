/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What it costs to observe queues: a scan of sysfs and of the hardware queue descriptors, parsed and
 * compared, beside a plain read of the same files. Then the time from a queue outside of its mask to the
 * drift on the bus, which is published with the journal event, and to the end of its process under
 * on-drift = kill, beside the drift-grace of the run.
 *
 *	GPUARBD=… GPUARB_ENFORCE=… GPUARB_ROOT=… SERVICE_MANAGER=… bench-drift
 */

#include <ftw.h>
#include <signal.h>

#include "bench/bench.h"
#include "core/change/arbiter.h"
#include "core/ledger/cover.h"
#include "enforce-rig.h"
#include "hw/hw.h"
#include "debugfs-text.h"
#include "lend-live.h"
#include "machine.h"

#define ROUNDS 5U
#define WORDS 512U /* of a descriptor */
#define GRACE_MSEC 100U

/* ---- descriptors of gfx9 ----------------------------------------------------------------- */

static const uint32_t all[4] = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };

static void print_queue(FILE *file, uint32_t gpu_id, const uint32_t mask[static 4])
{
	static const unsigned masks[] = { 23, 24, 26, 27 };
	uint32_t words[WORDS] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(masks); i++)
		words[masks[i]] = mask[i];
	words[134] = PRIORITY_NORMAL;
	fprintf(file, "  Compute queue on device %x\n", gpu_id);
	for (unsigned row = 0; row < WORDS; row += 8) {
		fprintf(file, "    %08x:", row * 4);
		for (unsigned i = 0; i < 8; i++)
			fprintf(file, " %08x", words[row + i]);
		fprintf(file, "\n");
	}
}

/* ---- the cost of a scan -------------------------------------------------------------------- */

struct load {
	struct rig rig;
	char sys[80];
	uint32_t gpu_id;
	size_t processes, queues;
	char *text;
	size_t size;
};

static char bytes[65536];

static int read_file(const char *path, const struct stat *, int type, struct FTW *)
{
	int fd = type == FTW_F ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		while (read(fd, bytes, sizeof(bytes)) > 0)
			;
		close(fd);
	}
	return 0;
}

static void make_load(struct load *load, size_t processes, size_t queues)
{
	struct gpu_info gpu = machine_model("radeon-vii");
	FILE *file;

	*load = (struct load){ .processes = processes, .queues = queues };
	rig_new(&load->rig);
	snprintf(load->sys, sizeof(load->sys), "%s/sys", load->rig.dir);
	CHECK(mkdir(load->sys, 0755) == 0 && fake_sysfs_build(load->sys, &gpu, 1) == 0);
	load->gpu_id = fake_sysfs_gpu_id(&gpu, 0);
	file = open_memstream(&load->text, &load->size);
	CHECK(file);
	for (size_t i = 0; i < processes; i++) {
		pid_t pid = 1000000 + (pid_t)i; /* of no process: nothing of /proc is measured */

		CHECK(fake_sysfs_process(load->sys, pid) == 0);
		fprintf(file, "Process %d PASID 0x%zx:\n", pid, 0x8000 + i);
		for (size_t k = 0; k < queues / processes; k++) {
			CHECK(fake_sysfs_queue(load->sys, pid, (unsigned)k, load->gpu_id, 0) == 0);
			print_queue(file, load->gpu_id, all);
		}
	}
	CHECK(fclose(file) == 0);
	rig_write(&load->rig, "mqds", load->text);
}

static size_t observe(struct arbiter *arbiter, struct hw *hw, struct hw_use *uses, size_t room)
{
	int n = hw_kfd.use(hw, uses, room);
	struct observed *rows = calloc(room, sizeof(*rows));

	CHECK(rows && n >= 0 && (size_t)n <= room);
	for (int i = 0; i < n; i++)
		rows[i] = (struct observed){ .pid = uses[i].pid,
					     .uid = 1000,
					     .kfd_gpu_id = uses[i].kfd_gpu_id,
					     .queues = uses[i].queues };
	CHECK(arbiter_observe(arbiter, rows, (size_t)n) == 0);
	free(rows);
	return (size_t)n;
}

static void compare(struct arbiter *arbiter, const struct load *load)
{
	struct observed_mask *rows = NULL;
	char why[256];
	size_t n;

	CHECK(kfd_mqds_parse(load->text, load->size, &arbiter->gpus[0].info, 1, &rows, &n, why,
			     sizeof(why)) == 0 &&
	      n == load->queues);
	CHECK(arbiter_masks_observed(arbiter, rows, n) == 0);
	arbiter_judge_drift(arbiter, 1);
	CHECK(arbiter->n_covers == load->processes);
	free(rows);
}

struct scan {
	size_t processes, queues;
	double floor, use, masks; /* ms, p50 */
};

static double msec(uint64_t *samples, double q)
{
	return (double)bench_quantile(samples, ROUNDS, q) / 1e6;
}

static void measure_scan(size_t processes, size_t queues, struct scan *ret)
{
	uint64_t floor[ROUNDS], use[ROUNDS], masks[ROUNDS];
	struct diagnostics diagnostics = { 0 };
	struct hw_use *uses = calloc(processes + 1, sizeof(*uses));
	struct gpu_info gpu;
	struct settings *settings;
	struct arbiter *arbiter;
	struct load load;
	char path[128];
	struct hw *hw;

	make_load(&load, processes, queues);
	snprintf(path, sizeof(path), "%s/" FAKE_PROC, load.sys);
	CHECK(uses && hw_kfd_open(load.sys, &hw, &diagnostics) >= 0);
	CHECK(hw_kfd.list(hw, &gpu, 1, &diagnostics) == 1);
	CHECK(settings_new(&settings) == 0 && arbiter_new(settings, &gpu, 1, 1, &arbiter) == 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t start = bench_nsec(), end;

		CHECK(nftw(path, read_file, 16, FTW_PHYS) == 0);
		CHECK(nftw(rig_path(&load.rig, "mqds"), read_file, 16, FTW_PHYS) == 0);
		end = bench_nsec();
		floor[i] = end - start;
		CHECK(observe(arbiter, hw, uses, processes + 1) == processes);
		start = bench_nsec();
		use[i] = start - end;
		compare(arbiter, &load);
		masks[i] = bench_nsec() - start;
	}
	*ret = (struct scan){ processes, queues, msec(floor, 0.5), msec(use, 0.5),
			      msec(masks, 0.5) };
	printf("%9zu %7zu %10.2f %10.2f %10.2f %7.2f\n", processes, queues, ret->floor, ret->use,
	       ret->masks, (ret->use + ret->masks) / ret->floor);
	arbiter_free(arbiter);
	hw_kfd.close(hw);
	diagnostics_done(&diagnostics);
	free(uses);
	free(load.text);
	rig_done(&load.rig);
}

/* ---- from the queue to the end ------------------------------------------------------------- */

struct stage {
	struct machine machine;
	struct helper helper;
	struct live_lease lease;
	pid_t pid;
	int fd;
};

static void show(const struct stage *s, const uint32_t mask[static 4])
{
	FILE *file = fopen(rig_path(&s->machine.rig, "debug/kfd/mqds~"), "we");

	CHECK(file);
	fprintf(file, "Process %d PASID 0x8001:\n", s->pid);
	print_queue(file, machine_gpu_id(&s->machine, 0), mask);
	CHECK(fclose(file) == 0);
	CHECK(rename(rig_path(&s->machine.rig, "debug/kfd/mqds~"),
		     rig_path(&s->machine.rig, "debug/kfd/mqds")) == 0);
}

/* The registers of the lease's mask. */
static void own_mask(struct stage *s, uint32_t ret[static 4])
{
	struct book_part part = part_of(s->machine.bus, &s->lease);
	struct codec codec;
	struct cuset cus;

	codec_init(&codec, &s->machine.gpus[0].geometry);
	codec_decode(&codec, part.mask, codec_words(&codec), &cus);
	for (unsigned e = 0; e < 4; e++)
		ret[e] = cus.pair[cuset_pair(0, e)];
}

static void arrive(struct stage *s)
{
	char options[256];

	machine_build(&s->machine, 1);
	CHECK(mkdir(rig_path(&s->machine.rig, "debug"), 0755) == 0);
	CHECK(mkdir(rig_path(&s->machine.rig, "debug/kfd"), 0755) == 0);
	rig_write(&s->machine.rig, "debug/kfd/mqds", "");
	helper_listen(&s->helper);
	snprintf(s->helper.sysfs, sizeof(s->helper.sysfs), "%s",
		 strchr(s->machine.option, '=') + 1);
	helper_start(&s->helper, NULL, NULL, -1);
	snprintf(options, sizeof(options),
		 "[daemon]\naudit-interval = 100ms\ndrift-grace = %ums\nactivate-grace = 50ms\n"
		 "enforce-delay = 50ms\n[tenant *]\nclass = guaranteed\non-drift = kill\n",
		 GRACE_MSEC);
	rig_write(&s->machine.rig, "gpuarbd.conf", options);
	snprintf(options, sizeof(options), "%s --enforce=%s --debugfs=%s", s->machine.option,
		 s->helper.path, rig_path(&s->machine.rig, "debug"));
	rig_start(&s->machine.rig, options);
	machine_connect(&s->machine);
}

static void measure_end(struct stage *s, uint64_t *ret_drift, uint64_t *ret_end)
{
	unsigned removed = s->machine.told.removed;
	uint32_t mask[4];
	uint64_t start;

	s->pid = idler(0, &s->fd);
	s->lease = granted(call(ask_bound(s->machine.bus, 15, s->fd)));
	own_mask(s, mask);
	show(s, mask);
	machine_use(&s->machine, s->pid, 0, 1);
	AWAIT(s->machine.bus, lease_says(s->machine.bus, s->lease.path, "Tier", "verified"));
	start = bench_nsec();
	show(s, all);
	AWAIT(s->machine.bus, !lease_says(s->machine.bus, s->lease.path, "State", "granted"));
	*ret_drift = bench_nsec() - start;
	AWAIT_FD(s->fd, POLLIN);
	*ret_end = bench_nsec() - start;
	CHECK(waitpid(s->pid, NULL, 0) == s->pid);
	CHECK(fake_sysfs_process_gone(s->machine.sys, s->pid) == 0);
	AWAIT(s->machine.bus, s->machine.told.removed > removed);
	close(s->lease.holder);
	close(s->fd);
}

static void print_times(const char *what, uint64_t *samples)
{
	double median = msec(samples, 0.5);

	printf("%-24s p50 %7.1f  max %7.1f\n", what, median, msec(samples, 1));
}

int main(void)
{
	static const size_t loads[][2] = {
		{ 10, 20 }, { 100, 200 }, { 1000, 2000 }, { 1000, 10000 }
	};
	struct scan scans[ARRAY_SIZE(loads)];
	uint64_t drift[ROUNDS], end[ROUNDS];
	static struct stage s;

	if (rig_missing()) {
		fprintf(stderr, "%s\n", rig_missing());
		return 1;
	}
	printf("a scan in ms, p50; the floor reads the same files\n");
	printf("%9s %7s %10s %10s %10s %7s\n", "processes", "queues", "floor", "sysfs", "masks",
	       "ratio");
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++)
		measure_scan(loads[i][0], loads[i][1], &scans[i]);

	arrive(&s);
	for (unsigned i = 0; i < ROUNDS; i++)
		measure_end(&s, &drift[i], &end[i]);
	printf("\nfrom a queue outside of its mask, in ms (drift-grace %u, then 50 + 50)\n",
	       GRACE_MSEC);
	print_times("drift on the bus", drift);
	print_times("its process is killed", end);
	printf("\n{\"scan\":[");
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++)
		printf("%s{\"processes\":%zu,\"queues\":%zu,\"floor_ms\":%.3f,\"sysfs_ms\":%.3f,"
		       "\"masks_ms\":%.3f}",
		       i > 0 ? "," : "", scans[i].processes, scans[i].queues, scans[i].floor,
		       scans[i].use, scans[i].masks);
	printf("],\"grace_ms\":%u,\"drift_ms\":%.1f,\"end_ms\":%.1f}\n", GRACE_MSEC,
	       msec(drift, 0.5), msec(end, 0.5));
	machine_halt(&s.machine);
	helper_stop(&s.helper);
	return 0;
}
