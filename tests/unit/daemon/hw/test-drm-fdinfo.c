/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/drm-fdinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "check.h"
#include "fake-procfs.h"
#include "scratch.h"
#include "seed.h"

#define PATIENCE_USEC UINT64_C(600000000) /* reached by a failure only */
#define SUBORDINATE 70000                 /* of uid 5001 */
#define HEAD "drm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n"

static struct drm_scan scan;
static struct subuid_range range = { SUBORDINATE, SUBORDINATE + 1, 5001 };
static const struct subuids subuids = { &range, 1 };

static struct drm_client parsed(const char *text)
{
	struct drm_client client;

	CHECK(drm_client_parse(text, &client) == 0);
	return client;
}

static int refused(const char *text)
{
	struct drm_client client = { .id = 4711 };
	int r = drm_client_parse(text, &client);

	CHECK(client.id == 4711);
	return r;
}

/* ---- one descriptor ---------------------------------------------------------------------- */

TEST(engines_and_resident_memory_of_a_client_are_read)
{
	struct drm_client client = parsed("pos:\t0\nflags:\t02\n" HEAD
					  "drm-engine-gfx:\t1234567 ns\n"
					  "drm-engine-compute:\t5 ns\ndrm-engine-dma:\t6 ns\n"
					  "drm-total-vram:\t900 MiB\ndrm-resident-vram:\t3 MiB\n"
					  "drm-memory-vram:\t4 MiB\ndrm-memory-gtt:\t8 KiB\n"
					  "drm-resident-gtt:\t9 KiB\ndrm-shared-vram:\t1 KiB\n");

	CHECK(client.id == 7 && strcmp(client.use.device, "0000:03:00.0") == 0);
	CHECK(client.use.gfx_nsec == 1234567 && client.use.compute_nsec == 5 &&
	      client.use.dma_nsec == 6);
	CHECK(client.use.vram == 3U << 20 && client.use.gtt == 9U << 10);
	CHECK(client.use.clients == 1);
}

TEST(memory_without_a_unit_is_bytes_and_other_units_are_ignored)
{
	CHECK(parsed(HEAD "drm-memory-vram: 4096\n").use.vram == 4096);
	CHECK(parsed(HEAD "drm-memory-vram: 4096").use.vram == 4096);
	CHECK(parsed(HEAD "drm-memory-vram:\t4 parsecs\n").use.vram == 0);
	CHECK(parsed(HEAD "drm-memory-vram:\t-4 KiB\n").use.vram == 0);
	CHECK(parsed(HEAD "drm-memory-vram:\n").use.vram == 0);
}

TEST(numbers_beyond_64_bits_become_the_largest)
{
	CHECK(parsed(HEAD "drm-engine-gfx:\t99999999999999999999999 ns\n").use.gfx_nsec ==
	      UINT64_MAX);
	CHECK(parsed(HEAD "drm-memory-vram:\t18446744073709551615 KiB\n").use.vram == UINT64_MAX);
	CHECK(parsed(HEAD "drm-engine-gfx:\t18446744073709551614 ns\n").use.gfx_nsec ==
	      UINT64_MAX - 1);
}

TEST(repeated_and_unknown_keys_are_ignored)
{
	struct drm_client client = parsed(HEAD
					  "drm-engine-gfx:\t1 ns\ndrm-engine-gfx:\t2 ns\n"
					  "drm-engine-capacity-gfx:\t2\ndrm-engine-warp:\t3 ns\n"
					  "drm-cycles-gfx:\t9\ndrm-\ndrm-engine-gfx\n"
					  "drm-driver:\ti915\ndrm-client-id:\t8\n");

	CHECK(client.use.gfx_nsec == 1 && client.id == 7);
}

TEST(descriptors_of_other_files_and_drivers_are_no_clients)
{
	CHECK(refused("") == -ENODATA);
	CHECK(refused("pos:\t0\nflags:\t02\nmnt_id:\t9\n") == -ENODATA);
	CHECK(refused("drm-driver:\ti915\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n") ==
	      -ENODATA);
	CHECK(refused("drm-driver:\tamdgpux\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n") ==
	      -ENODATA);
	CHECK(refused("drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\n") == -ENODATA);
	CHECK(refused("drm-driver:\tamdgpu\ndrm-client-id:\t7\n") == -ENODATA);
	CHECK(refused("drm-driver:\tamdgpu\ndrm-client-id:\tx\ndrm-pdev:\t0000:03:00.0\n") ==
	      -ENODATA);
	CHECK(refused("drm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t../../etc\n") ==
	      -ENODATA);
	CHECK(refused("drm-driver:\tamdgpu\ndrm-client-id:\t7\n"
		      "drm-pdev:\t0000:03:00.0:00:00:00:00:00:00:00:00\n") == -ENODATA);
}

TEST(names_in_the_text_of_other_files_make_no_client)
{
	static const char *const texts[] = {
		"pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t2060\nsize:\t4096\ncount:\t1\n"
		"exp_name:\tdrm\nname:\tx\nvram mem:\n",
		"pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1057\nSqMask:\t0x0\nSqHead:\t0\n"
		"SQEs:\t0\nCQEs:\t0\nSqThread:\t-1\nSqThreadCpu:\t-1\nUserFiles:\t4\n"
		"    0: x\ndrm-driver:\tamdgpu\n    1: x\ndrm-pdev:\t0000:03:00.0\n"
		"    2: x\ndrm-client-id:\t7\n    3: x\ndrm-engine-gfx:\t9999 ns\nUserBufs:\t0\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		CHECK(refused(texts[i]) == -ENODATA);
}

TEST(random_text_never_makes_a_device_without_an_end)
{
	static const char *const words[] = { "drm-",
					     "driver:",
					     "amdgpu",
					     "\n",
					     "\t",
					     "pdev:",
					     "client-id:",
					     "0000:03:00.0",
					     "18446744073709551616",
					     "engine-gfx:",
					     "ns",
					     "memory-vram:",
					     "KiB",
					     ":",
					     "x" };
	char text[512];

	seed_rand(SEED_OF_RUN("SEED"));
	for (unsigned i = 0; i < 20000; i++) {
		struct drm_client client;
		size_t n = 0;

		text[0] = '\0';
		for (long k = lrand48() % 40; k >= 0; k--)
			n += (size_t)snprintf(
				text + n, sizeof(text) - n, "%s",
				words[(size_t)lrand48() % (sizeof(words) / sizeof(*words))]);
		if (drm_client_parse(text, &client) == 0)
			CHECK(memchr(client.use.device, '\0', sizeof(client.use.device)));
	}
}

/* ---- processes ----------------------------------------------------------------------------- */

struct place {
	struct scratch scratch;
	struct fake_procfs procfs;
	struct drm_reader *reader;
};

static struct place place_in(struct scratch scratch)
{
	struct place place = { .scratch = scratch };

	procfs_new(place.scratch.path, &place.procfs);
	CHECK(drm_reader_new(place.procfs.dir, &subuids, &place.reader) == 0);
	return place;
}

static struct place place_new(void)
{
	return place_in(scratch_new());
}

static void place_done(struct place *place)
{
	drm_reader_free(place->reader);
	scratch_done(&place->scratch);
}

FIXTURE(struct place, place, *place = place_new(), place_done(place));

TEST_WITH(clients_of_a_process_are_added_up_for_each_gpu, struct place *place)
{
	procfs_process(&place->procfs, 20, 500);
	procfs_client(&place->procfs, 20, 3,
		      &(struct procfs_client){ .id = 1, .gfx_nsec = 10, .vram = 4 });
	procfs_client(&place->procfs, 20, 4,
		      &(struct procfs_client){ .id = 2, .gfx_nsec = 5, .vram = 8 });
	procfs_client(
		&place->procfs, 20, 5,
		&(struct procfs_client){ .id = 3, .device = "0000:04:00.0", .compute_nsec = 7 });
	procfs_text(&place->procfs, 20, 6, "pos:\t0\nflags:\t02\n");
	CHECK(drm_scan_read(place->reader, false, PATIENCE_USEC, &scan) == 0);
	CHECK(scan.n == 2 && scan.unread == 0 && scan.late == 0);
	CHECK(scan.uses[0].pid == 20 && scan.uses[0].start_time == 500);
	CHECK(strcmp(scan.uses[0].device, PROCFS_ADDRESS) == 0);
	CHECK(scan.uses[0].gfx_nsec == 15 && scan.uses[0].vram == 12U << 10 &&
	      scan.uses[0].gtt == 128U << 10 && scan.uses[0].clients == 2);
	CHECK(strcmp(scan.uses[1].device, "0000:04:00.0") == 0 && scan.uses[1].compute_nsec == 7);
	CHECK(drm_scan_check(&scan, drm_scan_size(&scan)) == 0);
}

TEST_WITH(a_client_of_several_descriptors_counts_once, struct place *place)
{
	procfs_process(&place->procfs, 20, 500);
	for (unsigned fd = 3; fd < 9; fd++)
		procfs_client(&place->procfs, 20, fd,
			      &(struct procfs_client){ .id = 1, .gfx_nsec = 10, .vram = 4 });
	CHECK(drm_scan_read(place->reader, false, PATIENCE_USEC, &scan) == 0);
	CHECK(scan.n == 1 && scan.uses[0].clients == 1 && scan.uses[0].gfx_nsec == 10);
}

TEST_WITH(a_client_of_several_processes_counts_for_the_one_that_started_last, struct place *place)
{
	procfs_process(&place->procfs, 20, 500); /* as systemd-logind */
	procfs_process(&place->procfs, 19, 800); /* as a compositor */
	procfs_client(&place->procfs, 20, 3, &(struct procfs_client){ .id = 1, .gfx_nsec = 10 });
	procfs_client(&place->procfs, 19, 3, &(struct procfs_client){ .id = 1, .gfx_nsec = 10 });
	CHECK(drm_scan_read(place->reader, false, PATIENCE_USEC, &scan) == 0);
	CHECK(scan.n == 1 && scan.uses[0].pid == 19);
}

TEST_WITH(entries_that_are_no_processes_and_processes_that_end_are_left_out, struct place *place)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/12", place->procfs.dir);
	CHECK(mkdir(path, 0755) == 0); /* has ended: no fdinfo */
	snprintf(path, sizeof(path), "%s/self", place->procfs.dir);
	CHECK(symlink("12", path) == 0);
	snprintf(path, sizeof(path), "%s/99999999999", place->procfs.dir);
	CHECK(mkdir(path, 0755) == 0);
	procfs_process(&place->procfs, 20, 500);
	procfs_client(&place->procfs, 20, 3, &(struct procfs_client){ .id = 1 });
	snprintf(path, sizeof(path), "%s/20/stat", place->procfs.dir);
	CHECK(unlink(path) == 0);
	CHECK(drm_scan_read(place->reader, false, PATIENCE_USEC, &scan) == 0);
	CHECK(scan.n == 0 && scan.unread == 0);
}

TEST_WITH(processes_that_cannot_be_read_are_counted, struct place *place)
{
	char path[160];

	procfs_process(&place->procfs, 20, 500);
	procfs_client(&place->procfs, 20, 3, &(struct procfs_client){ .id = 1 });
	snprintf(path, sizeof(path), "%s/20/fdinfo", place->procfs.dir);
	CHECK(chmod(path, 0) == 0 && chmod(place->scratch.path, 0755) == 0);
	if (geteuid() == 0)
		CHECK(seteuid(65534) == 0);
	CHECK(drm_scan_read(place->reader, false, PATIENCE_USEC, &scan) == 0);
	if (getuid() == 0)
		CHECK(seteuid(0) == 0 && setegid(0) == 0);
	CHECK(scan.n == 0 && scan.unread == 1);
}

TEST_WITH(client_of_linux_5_14_to_5_18_is_unread, struct place *place)
{
	const char *old = "pos:\t0\nflags:\t02100002\nmnt_id:\t26\npdev:\t0000:03:00.0\n"
			  "pasid:\t32774\nvram mem:\t17196 kB\ngtt mem:\t6144 kB\n"
			  "cpu mem:\t0 kB\ngfx0:\t70.59%\n";

	CHECK(refused(old) == -EOPNOTSUPP);
	procfs_process(&place->procfs, 20, 500);
	procfs_text(&place->procfs, 20, 3, old);
	procfs_text(&place->procfs, 20, 4, old);
	for (int i = 0; i < 2; i++) {
		CHECK(drm_scan_read(place->reader, false, PATIENCE_USEC, &scan) == 0);
		CHECK(scan.n == 0 && scan.unread == 1 && scan.skipped == 0);
	}
}

static void own(const struct place *place, pid_t pid, uid_t uid)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%d", place->procfs.dir, (int)pid);
	CHECK(chown(path, uid, (gid_t)-1) == 0);
}

/* Processes from first on, of uid, each with a client. */
static void make_clients(const struct place *place, pid_t first, unsigned n, uid_t uid)
{
	for (unsigned i = 0; i < n; i++) {
		pid_t pid = first + (pid_t)i;

		procfs_process(&place->procfs, pid, 500);
		procfs_client(&place->procfs, pid, 3,
			      &(struct procfs_client){ .id = (unsigned)pid, .vram = i });
		own(place, pid, uid);
	}
}

static const struct drm_use *use_of(pid_t pid)
{
	for (uint32_t i = 0; i < scan.n; i++)
		if (scan.uses[i].pid == pid)
			return &scan.uses[i];
	return NULL;
}

TEST(processes_of_a_user_with_too_many_are_counted_as_one)
{
	_cleanup_(place_done) struct place place = place_in(scratch_new());

	if (geteuid() != 0)
		SKIP("gives directories to other users");
	make_clients(&place, 1000, 700, 5001);
	make_clients(&place, 10, 2, 5002);
	procfs_client(&place.procfs, 1000, 4, /* it has the least memory */
		      &(struct procfs_client){ .id = 1, .gfx_nsec = 9 });
	for (unsigned fd = 0; fd < 5000; fd++)
		procfs_client(&place.procfs, 11, fd, &(struct procfs_client){ .id = 50000 + fd });
	CHECK(drm_scan_read(place.reader, false, PATIENCE_USEC, &scan) == 0);
	CHECK(drm_scan_check(&scan, drm_scan_size(&scan)) == 0);
	CHECK(scan.unread == 0 && scan.late == 0 && scan.n == 2 + 256 + 1);
	CHECK(use_of(10)->uid == 5002 && use_of(11)->clients == 5000);
	CHECK(use_of(0)->uid == 5001 && use_of(0)->processes == 700 - 256);
	CHECK(use_of(0)->gfx_nsec == 9 && use_of(0)->start_time == 0);
	CHECK(use_of(1699) && !use_of(1000)); /* with the most memory, and the least */
}

TEST(processes_of_too_many_users_are_counted_as_one)
{
	_cleanup_(place_done) struct place place = place_in(scratch_new());

	if (geteuid() != 0)
		SKIP("gives directories to other users");
	for (int pid = 1; pid <= 513; pid++)
		make_clients(&place, pid, 1, 5000 + (uid_t)pid);
	CHECK(drm_scan_read(place.reader, false, PATIENCE_USEC, &scan) == 0);
	CHECK(scan.n == 1 && scan.unread == 0 && use_of(0)->processes == 513);
	CHECK(use_of(0)->uid == (uid_t)-1);
}

TEST(descriptors_of_a_user_with_too_many_are_read_last)
{
	_cleanup_(place_done) struct place place = place_in(scratch_new());

	if (geteuid() != 0)
		SKIP("gives directories to other users");
	make_clients(&place, 10, 1, 5001);
	for (unsigned fd = 10; fd < 8300; fd++)
		procfs_text(&place.procfs, 10, fd, "");
	CHECK(drm_scan_read(place.reader, false, PATIENCE_USEC, &scan) == 0);
	CHECK(scan.n == 1 && scan.late == 0 && use_of(10)->clients == 1);
	/* No time is left when its first 8,192 were read. */
	do {
		CHECK(drm_scan_read(place.reader, true, 1000, &scan) == 0);
	} while (scan.unread > 0);
	CHECK(scan.late == 1 && scan.late_uid == 5001);
	CHECK(drm_scan_read(place.reader, true, 0, &scan) == 0);
	CHECK(scan.unread == 1 && scan.late == 0);
}

TEST(processes_with_subordinate_uids_have_the_share_of_their_owner)
{
	_cleanup_(place_done) struct place place = place_in(scratch_new());

	if (geteuid() != 0)
		SKIP("gives directories to other users");
	make_clients(&place, 10, 1, SUBORDINATE);
	make_clients(&place, 11, 1, SUBORDINATE + 1);
	make_clients(&place, 12, 1, SUBORDINATE + 2);
	CHECK(drm_scan_read(place.reader, false, PATIENCE_USEC, &scan) == 0);
	CHECK(use_of(10)->uid == 5001 && use_of(11)->uid == 5001);
	CHECK(use_of(12)->uid == SUBORDINATE + 2);
}

TEST_WITH(a_directory_that_is_absent_is_an_error, struct place *place)
{
	struct drm_reader *reader;

	CHECK(drm_reader_new("/nonexistent/proc", &subuids, &reader) == -ENOENT);
	CHECK(rmdir(place->procfs.dir) == 0);
	CHECK(drm_scan_read(place->reader, false, PATIENCE_USEC, &scan) == -ENOENT);
}

TEST(the_real_proc_of_a_machine_without_a_gpu_has_no_client)
{
	int gpu = open("/sys/module/amdgpu", O_RDONLY | O_CLOEXEC);
	struct drm_reader *reader;

	if (gpu >= 0) {
		close(gpu);
		SKIP("this machine has amdgpu");
	}
	CHECK(drm_reader_new("/proc", &subuids, &reader) == 0);
	for (unsigned i = 0; i < 3; i++) {
		CHECK(drm_scan_read(reader, false, PATIENCE_USEC, &scan) == 0);
		CHECK(scan.n == 0 && scan.late == 0 && scan.cpu_usec > 0);
	}
	drm_reader_free(reader);
}

/* ---- processes that are not read again ------------------------------------------------------- */

/* Gives PID/fd the size that depends on the number of entries, as Linux 6.2 does and tmpfs, too. */
static void set_descriptors(const struct place *place, const char *pid, unsigned from, unsigned to)
{
	char name[128];

	snprintf(name, sizeof(name), "%s/%s", place->procfs.dir, pid);
	CHECK(mkdir(name, 0755) == 0 || errno == EEXIST);
	snprintf(name, sizeof(name), "%s/%s/fd", place->procfs.dir, pid);
	CHECK(mkdir(name, 0755) == 0 || errno == EEXIST);
	for (unsigned i = from; i < to; i++) {
		FILE *file;

		snprintf(name, sizeof(name), "%s/%s/fd/%u", place->procfs.dir, pid, i);
		file = fopen(name, "we");
		CHECK(file && fclose(file) == 0);
	}
}

/* A process 20 without a client, which was read once. */
static struct place idle_place(void)
{
	struct place place = { .scratch = scratch_new() };

	procfs_new(place.scratch.path, &place.procfs);
	procfs_process(&place.procfs, 20, 500);
	procfs_text(&place.procfs, 20, 3, "pos:\t0\n");
	set_descriptors(&place, "20", 0, 4);
	set_descriptors(&place, "self", 0, 1);
	CHECK(drm_reader_new(place.procfs.dir, &subuids, &place.reader) == 0);
	CHECK(drm_scan_read(place.reader, false, PATIENCE_USEC, &scan) == 0 && scan.n == 0 &&
	      scan.skipped == 0);
	return place;
}

static bool is_tmpfs(const struct place *place)
{
	return strncmp(place->scratch.path, "/dev/shm", 8) == 0;
}

TEST(a_process_without_a_client_is_read_again_when_its_number_of_descriptors_changes)
{
	struct place place = idle_place();

	if (!is_tmpfs(&place)) {
		place_done(&place);
		SKIP("there is no tmpfs at /dev/shm");
	}
	procfs_client(&place.procfs, 20, 3, &(struct procfs_client){ .id = 1 });
	CHECK(drm_scan_read(place.reader, false, PATIENCE_USEC, &scan) == 0);
	CHECK(scan.n == 0 && scan.skipped == 1);
	set_descriptors(&place, "20", 4, 5);
	CHECK(drm_scan_read(place.reader, false, PATIENCE_USEC, &scan) == 0);
	CHECK(scan.n == 1 && scan.skipped == 0);
	CHECK(drm_scan_read(place.reader, false, PATIENCE_USEC, &scan) ==
	      0); /* has a client: always read */
	CHECK(scan.n == 1 && scan.skipped == 0);
	place_done(&place);
}

TEST(a_process_without_a_client_is_read_again_when_all_are_asked_for_and_by_every_30th_scan)
{
	struct place place = idle_place();
	unsigned scans = 0;

	if (!is_tmpfs(&place)) {
		place_done(&place);
		SKIP("there is no tmpfs at /dev/shm");
	}
	CHECK(drm_scan_read(place.reader, true, PATIENCE_USEC, &scan) == 0 && scan.skipped == 0);
	procfs_client(&place.procfs, 20, 3, &(struct procfs_client){ .id = 1 });
	do
		CHECK(drm_scan_read(place.reader, false, PATIENCE_USEC, &scan) == 0);
	while (++scans < 40 && scan.n == 0);
	CHECK(scan.n == 1 && scans > 1 && scans <= 30);
	place_done(&place);
}

TEST(another_process_with_the_pid_is_read)
{
	struct place place = idle_place();

	if (!is_tmpfs(&place)) {
		place_done(&place);
		SKIP("there is no tmpfs at /dev/shm");
	}
	procfs_process_gone(&place.procfs, 20);
	procfs_process(&place.procfs, 20, 900);
	procfs_client(&place.procfs, 20, 3, &(struct procfs_client){ .id = 1 });
	set_descriptors(&place, "20", 0, 4);
	CHECK(drm_scan_read(place.reader, false, PATIENCE_USEC, &scan) == 0);
	CHECK(scan.n == 1 && scan.uses[0].start_time == 900);
	place_done(&place);
}

/* ---- packets ------------------------------------------------------------------------------ */

TEST(packets_that_are_no_scan_are_refused)
{
	scan = (struct drm_scan){ .version = DRM_VERSION, .n = 1 };
	scan.uses[0] = (struct drm_use){ .pid = 1, .device = PROCFS_ADDRESS };
	CHECK(drm_scan_check(&scan, drm_scan_size(&scan)) == 0);
	CHECK(drm_scan_check(&scan, drm_scan_size(&scan) - 1) == -EBADMSG);
	CHECK(drm_scan_check(&scan, drm_scan_size(&scan) + 1) == -EBADMSG);
	CHECK(drm_scan_check(&scan, 4) == -EBADMSG);
	scan.uses[0].pid = -1;
	CHECK(drm_scan_check(&scan, drm_scan_size(&scan)) == -EBADMSG);
	scan.uses[0].pid = 1;
	memset(scan.uses[0].device, 'x', sizeof(scan.uses[0].device));
	CHECK(drm_scan_check(&scan, drm_scan_size(&scan)) == -EBADMSG);
	scan.n = 0;
	CHECK(drm_scan_check(&scan, drm_scan_size(&scan)) == 0);
	scan.version++;
	CHECK(drm_scan_check(&scan, drm_scan_size(&scan)) == -EBADMSG);
	scan = (struct drm_scan){ .version = DRM_VERSION, .n = DRM_USES_MAX + 1 };
	CHECK(drm_scan_check(&scan, sizeof(scan)) == -EBADMSG);
}
