// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the amdkfd of Linux 6.1 asks otherwise than that of 6.12. */
#include "amdgpu_amdkfd.h"
#include "fake.h"

void amdgpu_amdkfd_get_cu_info(struct amdgpu_device *adev, struct kfd_cu_info *info)
{
	const struct fake_card *card = fake_card_of(adev);
	const struct fake_cus *cus = &card->cus;

	*info = (struct kfd_cu_info){
		.num_shader_engines = card->geometry->engines,
		.num_shader_arrays_per_engine = card->geometry->arrays,
		.num_cu_per_sh = card->geometry->cus_on_die,
		.cu_active_number = cus->number,
		.simd_per_cu = cus->simd_per_cu,
		.max_waves_per_simd = cus->max_waves_per_simd,
		.wave_front_size = cus->wave_front_size,
		.max_scratch_slots_per_cu = 32,
		.lds_size = 64,
	};
	memcpy(info->cu_bitmap, cus->bitmap, sizeof(info->cu_bitmap));
}

void fake_linux_describe(struct fake_card *card)
{
}

bool fake_linux_start(struct fake_card *card, const struct kgd2kfd_shared_resources *resources)
{
	return kgd2kfd_device_init(card->adev->kfd.dev, &card->adev->ddev, resources);
}

int amdgpu_queue_mask_bit_to_set_resource_bit(struct amdgpu_device *adev, int queue)
{
	return queue;
}
