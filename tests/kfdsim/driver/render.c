/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kfdsim/driver/internal.h"

/*
 * Requests to a render node, as far as libdrm_amdgpu sends them for ROCr and HIP. Numbers and
 * structs are those of drm.h and amdgpu_drm.h in the kernel's include/uapi/drm; the errors are
 * those of drm_ioctl() and amdgpu_info_ioctl() (Linux 6.12).
 *
 * The kernel refuses GET_CLIENT on a render node. libdrm asks it here all the same: by its device
 * number it does not recognise this file, which is a regular one, as a render node.
 */

#define DRM_TYPE 'd'
#define DRM_MAJOR 3
#define DRM_MINOR_6_1 49
#define DRM_MINOR_6_12 61
#define DRM_MINOR_7_2 64

enum { NR_VERSION = 0x00, NR_GET_CLIENT = 0x05, NR_AMDGPU_INFO = 0x45 };

enum info_query {
	INFO_ACCEL_WORKING = 0x00,
	INFO_HW_IP_INFO = 0x02,
	INFO_HW_IP_COUNT = 0x03,
	INFO_TIMESTAMP = 0x05,
	INFO_FW_VERSION = 0x0e,
	INFO_VRAM_USAGE = 0x10,
	INFO_GTT_USAGE = 0x11,
	INFO_VRAM_GTT = 0x14,
	INFO_READ_MMR_REG = 0x15,
	INFO_DEV_INFO = 0x16,
	INFO_VIS_VRAM_USAGE = 0x17,
	INFO_MEMORY = 0x19,
};

struct version {
	int32_t major, minor, patch, pad;
	struct {
		uint64_t size, text;
	} name, date, description;
};
_Static_assert(sizeof(struct version) == 64, "struct drm_version");

struct client {
	int32_t index, authenticated;
	uint64_t pid, uid, magic, requests;
};
_Static_assert(sizeof(struct client) == 40, "struct drm_client");

struct info {
	uint64_t pointer;
	uint32_t size, query;
	struct {
		uint32_t offset, count, instance, flags;
	} registers;
};
_Static_assert(sizeof(struct info) == 32, "struct drm_amdgpu_info");

struct device_info {
	uint32_t device_id, chip_revision, external_revision, pci_revision;
	uint32_t family, engines, engine_arrays, counter_khz;
	uint64_t engine_clock_khz, memory_clock_khz;
	uint32_t cus, ao_mask, bitmap[4][4];
	uint32_t rb_mask, rbs, gfx_contexts, pcie_gen;
	uint64_t flags, va_start, va_end;
	uint32_t va_alignment, fragment_size, page_size, ce_ram_size;
	uint32_t vram_type, vram_bits, vce_harvest, offchip_lds;
	uint64_t ngg_addresses[4];
	uint32_t ngg_sizes[4];
	uint32_t wave_size, vgprs, array_cus, tccs;
	uint32_t gs[3], pcie_lanes;
	uint32_t ao_bitmap[4][4];
	uint64_t high_va_start, high_va_end;
};
_Static_assert(offsetof(struct device_info, bitmap) == 56, "struct drm_amdgpu_info_device");
_Static_assert(offsetof(struct device_info, va_start) == 144, "struct drm_amdgpu_info_device");
_Static_assert(offsetof(struct device_info, wave_size) == 240, "struct drm_amdgpu_info_device");
_Static_assert(offsetof(struct device_info, high_va_start) == 336, "struct drm_amdgpu_info_device");

struct heap {
	uint64_t total, usable, used, largest;
};

/* A request, and from whom. */
struct render_call {
	struct sim_gpu *gpu;
	pid_t pid;
	uint64_t now_ns;
};

static int put(const struct render_call *call, uint64_t address, const void *data, size_t size)
{
	const struct sim_world *world = &call->gpu->sim->world;

	return size == 0 ? 0 : world->write(world->userdata, call->pid, address, data, size);
}

/* ---- VERSION, GET_CLIENT ---- */

/* drm_copy_field(): as much as there is room for; the length is always told. */
static int put_text(const struct render_call *call, uint64_t address, uint64_t *room,
		    const char *text)
{
	size_t length = strlen(text), n = *room < length ? *room : length;

	*room = length;
	return address == 0 ? 0 : put(call, address, text, n);
}

static int get_version(const struct render_call *call, struct version *version)
{
	unsigned kfd_minor = call->gpu->sim->kfd_minor;
	bool old = kfd_minor < KFD_LINUX_6_12;
	int r;

	version->major = DRM_MAJOR;
	version->minor = old                         ? DRM_MINOR_6_1
			 : kfd_minor < KFD_LINUX_7_2 ? DRM_MINOR_6_12
						     : DRM_MINOR_7_2;
	version->patch = 0;
	r = put_text(call, version->name.text, &version->name.size, "amdgpu");
	r = r < 0 ? r
		  : put_text(call, version->date.text, &version->date.size, old ? "20150101" : "0");
	return r < 0 ? r
		     : put_text(call, version->description.text, &version->description.size,
				"AMD GPU");
}

static int get_client(const struct render_call *call, struct client *client)
{
	if (client->index != 0)
		return -EINVAL;
	*client = (struct client){ .authenticated = 1, .pid = (uint64_t)call->pid, .uid = 65534 };
	return 0;
}

/* ---- AMDGPU_INFO ---- */

/* AMDGPU_FAMILY_* by the major number of the target. */
static uint32_t family_of(unsigned target)
{
	static const uint32_t families[] = {
		[8] = 130, [9] = 141, [10] = 143, [11] = 145, [12] = 152
	};
	unsigned major = target / 10000;

	if (target / 100 == 1105)
		return 150;
	return major < sizeof(families) / sizeof(families[0]) ? families[major] : 0;
}

/* gfx_v*_get_cu_info(): engines from 4 on are in further columns. Of the first XCC only, as there. */
static void fill_bitmap(const struct geometry *geometry, unsigned target, uint32_t bitmap[4][4])
{
	unsigned step = target >= 110000 ? 2 : 1;

	for (unsigned engine = 0; engine < geometry->engines; engine++)
		for (unsigned array = 0; array < geometry->arrays; array++)
			bitmap[engine % 4][(array + engine / 4 * step) % 4] =
				(1U << geometry->active[0][engine][array]) - 1;
}

static struct device_info device_info(const struct sim_gpu *gpu)
{
	const struct geometry *geometry = &gpu->info.geometry;
	struct device_info info = {
		.device_id = gpu->node.device_id,
		.family = family_of(gpu->info.gfx_target),
		.engines = geometry->engines,
		.engine_arrays = geometry->arrays,
		.counter_khz = 100000,
		.engine_clock_khz = 1700000,
		.memory_clock_khz = 1600000,
		.cus = geometry_cus(geometry),
		.gfx_contexts = 8,
		.va_start = 0x200000,
		.va_end = 1ULL << 47,
		.va_alignment = 4096,
		.fragment_size = 1U << 21,
		.page_size = 4096,
		.vram_bits = 4096,
		.wave_size = geometry->wgp ? 32 : 64,
		.vgprs = 256,
		.array_cus = geometry->array_cus,
		.high_va_start = 0xffff800000000000ULL,
		.high_va_end = 0xffffffffffe00000ULL,
	};

	fill_bitmap(geometry, gpu->info.gfx_target, info.bitmap);
	return info;
}

static int put_memory(const struct render_call *call, const struct info *info)
{
	uint64_t vram = call->gpu->info.vram_bytes, used = call->gpu->vram_used;
	struct heap heaps[] = {
		{ vram, vram, used, vram * 3 / 4 },
		{ vram, vram, used, vram * 3 / 4 }, /* all of it is visible to processors */
		{ vram, vram, 0, vram * 3 / 4 },    /* GTT: as large, for nothing limits it here */
	};
	const uint64_t vram_gtt[] = { vram, vram, vram };

	if (info->query == INFO_VRAM_GTT)
		return put(call, info->pointer, vram_gtt,
			   info->size < sizeof(vram_gtt) ? info->size : sizeof(vram_gtt));
	return put(call, info->pointer, heaps,
		   info->size < sizeof(heaps) ? info->size : sizeof(heaps));
}

/* No register has a value here: all are 0. */
static int put_registers(const struct render_call *call, const struct info *info)
{
	static const uint32_t zeros[128];
	size_t size;

	if (info->registers.count > sizeof(zeros) / sizeof(zeros[0]))
		return -EINVAL;
	size = info->registers.count * sizeof(zeros[0]);
	return put(call, info->pointer, zeros, info->size < size ? info->size : size);
}

static int put_number(const struct render_call *call, const struct info *info, uint64_t value,
		      size_t size)
{
	return put(call, info->pointer, &value, info->size < size ? info->size : size);
}

static int get_info(const struct render_call *call, const struct info *info)
{
	static const uint8_t none[32]; /* of rings and firmware */
	struct device_info device;

	if (info->size == 0 || info->pointer == 0)
		return -EINVAL;
	switch (info->query) {
	case INFO_ACCEL_WORKING: return put_number(call, info, 1, 4);
	case INFO_HW_IP_COUNT: return put_number(call, info, 0, 4);
	case INFO_TIMESTAMP: return put_number(call, info, call->now_ns, 8);
	case INFO_VRAM_USAGE:
	case INFO_VIS_VRAM_USAGE: return put_number(call, info, call->gpu->vram_used, 8);
	case INFO_GTT_USAGE: return put_number(call, info, 0, 8);
	case INFO_HW_IP_INFO:
	case INFO_FW_VERSION:
		return put(call, info->pointer, none,
			   info->size < sizeof(none) ? info->size : sizeof(none));
	case INFO_VRAM_GTT:
	case INFO_MEMORY: return put_memory(call, info);
	case INFO_READ_MMR_REG: return put_registers(call, info);
	case INFO_DEV_INFO:
		device = device_info(call->gpu);
		return put(call, info->pointer, &device,
			   info->size < sizeof(device) ? info->size : sizeof(device));
	default: return -EINVAL;
	}
}

/* ---- requests ---- */

static struct sim_gpu *gpu_of(struct sim *sim, unsigned minor)
{
	for (size_t i = 0; i < sim->n_gpus; i++)
		if (sim->gpus[i].minor == minor && !sim->gpus[i].gone)
			return &sim->gpus[i];
	return NULL;
}

/* drm_ioctl(): the number alone chooses, and what the caller gave less is zero. */
int sim_render_ioctl(struct sim *sim, unsigned minor, pid_t caller, unsigned cmd, void *argument,
		     size_t size, uint64_t now_ns)
{
	struct render_call call = { .gpu = gpu_of(sim, minor), .pid = caller, .now_ns = now_ns };
	union {
		struct version version;
		struct client client;
		struct info info;
	} known = { 0 };
	size_t n = size < sizeof(known) ? size : sizeof(known);
	int r;

	if (!call.gpu)
		return -ENODEV;
	if (_IOC_TYPE(cmd) != DRM_TYPE)
		return -ENOTTY;
	if (cmd & IOC_IN && n > 0)
		memcpy(&known, argument, n);
	switch (_IOC_NR(cmd)) {
	case NR_VERSION: r = get_version(&call, &known.version); break;
	case NR_GET_CLIENT: r = get_client(&call, &known.client); break;
	case NR_AMDGPU_INFO: r = get_info(&call, &known.info); break;
	default: return -EOPNOTSUPP;
	}
	if (r == 0 && cmd & IOC_OUT && n > 0)
		memcpy(argument, &known, n);
	return r;
}
