/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What config check and config explain read: files that are named, and the GPUs of the machine. */

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/verbs/verb.h"
#include "core/mask/geometry.h"
#include "sys/config/config.h"

int config_load_named(const char *path, struct settings **ret, struct diagnostics *diagnostics)
{
	struct config_files files = { .config = "/dev/null", .tenants = path };
	struct stat st;
	int r;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return config_load_file(path, ret, diagnostics);
	files.trust = (struct trust){ { st.st_uid, geteuid() } };
	r = config_load(&files, ret, diagnostics);
	if (r >= 0 && (*ret)->n_tenants == 1 && !(*ret)->tenants[0].file)
		diagnostics_add(diagnostics, false, "%s: no *.conf in it has a tenant", path);
	return r;
}

int config_gpu_info(const struct gpuarb_gpu *gpu, struct gpu_info *ret)
{
	*ret = (struct gpu_info){ .queue_slots = gpu->queue_slots,
				  .process_slots = gpu->process_slots,
				  .vram_bytes = gpu->vram_bytes,
				  .geometry = { .xccs = gpu->xccs,
						.engines = gpu->shader_engines,
						.arrays = gpu->shader_arrays,
						.array_cus = CUSET_ARRAY_CUS,
						.wgp = gpu->wgp_mode } };
	snprintf(ret->name, sizeof(ret->name), "%s", gpu->name);
	return geometry_spread(&ret->geometry, gpu->cus);
}
