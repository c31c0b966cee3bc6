/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compiles the public header as C++11 with all warnings, and links the shared library. */

#include "libgpuarb/gpuarb.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(cond)                                                                             \
	do {                                                                                    \
		if (!(cond)) {                                                                  \
			std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
			std::abort();                                                           \
		}                                                                               \
	} while (0)

static void check_want(const gpuarb_want &want)
{
	CHECK(want.size == sizeof(want) && want.priority == GPUARB_PRIORITY_DEFAULT);
	CHECK(!want.gpu && !want.shape && !want.isolation);
	CHECK(!want.exact && !want.cooperative && want.vram == 0);
	CHECK(want.cus == 0 && want.shader_engines == 0 && want.cus_min == 0 && want.cus_max == 0);
	CHECK(want.queues == 0 && want.streams == 0 && want.processes == 0);
	CHECK(want.sdma_queues == 0);
}

static void on_change(gpuarb_lease *, void *)
{
}

static void on_event(const char *, const char *, void *)
{
}

int main()
{
	gpuarb_want wants[2] = { GPUARB_WANT_INIT, GPUARB_WANT_INIT };
	gpuarb_options options = GPUARB_OPTIONS_INIT;
	gpuarb_lease_changed_t changed = on_change;
	gpuarb_changed_t event = on_event;
	gpuarb_lease *lease = nullptr;
	unsigned position = 0;
	gpuarb *handle = nullptr;

	check_want(wants[0]);
	check_want(wants[1]);
	CHECK(options.size == sizeof(options) && options.process_fd == -1);
	CHECK(!options.lease_class && !options.name && !options.tenant && !options.token);
	CHECK(options.wait_usec == 0 && !options.start_inactive && !options.adaptable);

	setenv("GPUARB_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	CHECK(gpuarb_open(&handle) < 0 && std::strstr(gpuarb_last_error(nullptr), "/nonexistent"));
	CHECK(gpuarb_reserve(handle, wants, 2, &options, &lease) < 0 && !lease);
	CHECK(gpuarb_reserve_start(handle, wants, 2, &options, &lease) < 0 && !lease);
	CHECK(gpuarb_lease_position(lease, &position) < 0 && position == 0);
	CHECK(gpuarb_lease_dispatch(lease, changed, nullptr) < 0);
	CHECK(gpuarb_watch(handle, GPUARB_FOREVER, event, nullptr) < 0);
	CHECK(gpuarb_lease_apply(lease) < 0 && gpuarb_lease_queue_ids(lease, 0, nullptr, 0) < 0);
	CHECK(gpuarb_lease_mask_queue(lease, 0, 0, nullptr, 0) < 0);
	CHECK(gpuarb_lease_pause_queue(lease, 0, 0, 1) < 0);
	gpuarb_lease_attach(lease, &position, nullptr);
	CHECK(!gpuarb_lease_attached(lease));
	gpuarb_close(handle);
	return 0;
}
