/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Requests to render nodes, as libdrm sends them. */

#include <errno.h>
#include <sys/ioctl.h>

#include "check.h"
#include "kfdsim/test/sim-rig.h"

#define PID 100
#define MINOR 128 /* of the first GPU */

/* struct drm_version, drm_client and drm_amdgpu_info: of drm.h and amdgpu_drm.h. */
struct version {
	int32_t major, minor, patch, pad;
	uint64_t name_size, name, date_size, date, text_size, text;
};
struct client {
	int32_t index, authenticated;
	uint64_t pid, uid, magic, requests;
};
struct info {
	uint64_t pointer;
	uint32_t size, query, arguments[4];
};

#define DRM_VERSION _IOWR('d', 0x00, struct version)
#define DRM_GET_CLIENT _IOWR('d', 0x05, struct client)
#define DRM_INFO _IOW('d', 0x45, struct info)
#define DRM_GEM_CREATE _IOWR('d', 0x40, uint64_t[4])

static int ask(struct sim_rig *rig, unsigned minor, unsigned cmd, void *argument)
{
	return sim_render_ioctl(rig->sim, minor, PID, cmd, argument, _IOC_SIZE(cmd), rig->now);
}

static int ask_info(struct sim_rig *rig, uint32_t query, uint32_t size)
{
	struct info info = { .pointer = RIG_MEMORY, .size = size, .query = query };

	memset(rig_at(rig, RIG_MEMORY), 0xee, 1024);
	return ask(rig, MINOR, DRM_INFO, &info);
}

static uint32_t word(struct sim_rig *rig, unsigned offset)
{
	uint32_t value;

	memcpy(&value, rig_at(rig, RIG_MEMORY + offset), sizeof(value));
	return value;
}

static void start(struct sim_rig *rig, unsigned kfd_minor)
{
	static const struct sim_node each[] = { { .device_id = 0x66af }, { .device_id = 0x744c } };
	struct gpu_info infos[] = { rig_vega(), rig_navi3() };
	struct sim_config config = { .each = each, .kfd_minor = kfd_minor };

	rig_start_with(rig, infos, 2, config, RIG_ARENA);
}

TEST(the_version_is_that_of_the_kernel_and_texts_are_cut_to_the_callers_room)
{
	struct version version = {
		.name_size = 3,
		.name = RIG_MEMORY,
		.date_size = 32,
		.date = RIG_MEMORY + 64,
	};
	struct sim_rig rig;

	start(&rig, KFD_LINUX_6_1);
	memset(rig_at(&rig, RIG_MEMORY), 0, 128);
	CHECK(ask(&rig, MINOR, DRM_VERSION, &version) == 0);
	CHECK(version.major == 3 && version.minor == 49);
	CHECK(version.name_size == strlen("amdgpu"));
	CHECK(version.text_size > 0); /* told without a place to put it */
	CHECK(strcmp(rig_at(&rig, RIG_MEMORY), "amd") == 0);
	CHECK(strcmp(rig_at(&rig, RIG_MEMORY + 64), "20150101") == 0);
	rig_stop(&rig);

	start(&rig, KFD_LINUX_6_12);
	CHECK(ask(&rig, MINOR, DRM_VERSION, &version) == 0);
	CHECK(version.major == 3 && version.minor == 61);
	rig_stop(&rig);
}

FIXTURE(struct sim_rig, rig, start(rig, 0), rig_stop(rig));

TEST_WITH(a_client_is_authenticated_and_the_only_one, struct sim_rig *rig)
{
	struct client client = { 0 };

	CHECK(ask(rig, MINOR, DRM_GET_CLIENT, &client) == 0);
	CHECK(client.authenticated == 1 && client.pid == PID);
	client.index = 1;
	CHECK(ask(rig, MINOR, DRM_GET_CLIENT, &client) == -EINVAL);
}

TEST_WITH(a_device_is_described_as_its_profile_has_it, struct sim_rig *rig)
{
	CHECK(ask_info(rig, 0x16, 512) == 0);
	CHECK(word(rig, 0) == 0x66af && word(rig, 16) == 141);
	CHECK(word(rig, 20) == 4 && word(rig, 24) == 1);
	CHECK(word(rig, 48) == 60); /* active CUs */
	for (unsigned engine = 0; engine < 4; engine++)
		CHECK(word(rig, 56 + 16 * engine) == 0x7fff);
	CHECK(word(rig, 240) == 64);
	/* What the caller has no room for is not written. */
	CHECK(ask_info(rig, 0x16, 20) == 0);
	CHECK(word(rig, 16) == 141 && word(rig, 20) == 0xeeeeeeee);
}

TEST_WITH(memory_in_use_is_what_processes_allocated, struct sim_rig *rig)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = 1U << 30,
		.size = 2U << 20,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM,
	};
	struct sim_process *process;

	process = rig_open(rig, PID);
	args.gpu_id = rig_id(rig, 0);
	CHECK(RIG_CALL(rig, process, ALLOC_MEMORY_OF_GPU, &args) == 0);
	CHECK(ask_info(rig, 0x10, 8) == 0 && word(rig, 0) == 2U << 20);
	CHECK(ask_info(rig, 0x19, 96) == 0 && word(rig, 0) == 8U << 20);
	CHECK(word(rig, 16) == 2U << 20); /* used, of the first heap */
}

TEST_WITH(short_queries_are_answered, struct sim_rig *rig)
{
	struct info registers = {
		.pointer = RIG_MEMORY,
		.size = 8,
		.query = 0x15,
		.arguments = { 0x263e, 2, 0xffffffff, 0 },
	};

	CHECK(ask_info(rig, 0x00, 4) == 0 && word(rig, 0) == 1);
	CHECK(ask_info(rig, 0x03, 4) == 0 && word(rig, 0) == 0);
	CHECK(ask_info(rig, 0x05, 8) == 0 && word(rig, 0) == (uint32_t)rig->now);
	CHECK(ask_info(rig, 0x0e, 16) == 0 && word(rig, 0) == 0);
	CHECK(ask_info(rig, 0x11, 8) == 0 && word(rig, 0) == 0);
	CHECK(ask_info(rig, 0x14, 24) == 0 && word(rig, 0) == 8U << 20);
	CHECK(ask(rig, MINOR, DRM_INFO, &registers) == 0 && word(rig, 4) == 0);
	registers.arguments[1] = 129;
	CHECK(ask(rig, MINOR, DRM_INFO, &registers) == -EINVAL);
}

TEST_WITH(wrong_requests_are_refused, struct sim_rig *rig)
{
	struct info nowhere = { .pointer = 1, .size = 4 };
	uint64_t create[4] = { 0 };

	CHECK(ask_info(rig, 0x00, 0) == -EINVAL);
	CHECK(ask_info(rig, 0x7777, 4) == -EINVAL);
	CHECK(ask(rig, MINOR, DRM_INFO, &nowhere) == -EFAULT);
	CHECK(ask(rig, MINOR, DRM_GEM_CREATE, create) == -EOPNOTSUPP);
	CHECK(ask(rig, MINOR, AMDKFD_IOC_GET_VERSION, create) == -ENOTTY);
	CHECK(ask(rig, MINOR + 2, DRM_INFO, &nowhere) == -ENODEV);
	CHECK(rig_fault(rig, "gone:0000:03:00.0") == 0);
	CHECK(ask_info(rig, 0x00, 4) == -ENODEV);
}
