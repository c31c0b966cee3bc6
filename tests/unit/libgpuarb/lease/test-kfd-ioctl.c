/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The calls of a program to KFD, as libgpuarb changes them. */

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/kfd_ioctl.h>

#include "check.h"
#include "fake-kfd.h"
#include "lack.h"
#include "libgpuarb/lease/kfd-ioctl.h"

#define FD 0 /* without /dev/kfd every file is taken for it */
#define RING 0x10000U
#define HAS(id) (&fake_kfd.queues[id])

static void need_no_kfd(void)
{
	if (access("/dev/kfd", F_OK) == 0)
		SKIP("there is a /dev/kfd");
	fake_kfd.calls = 0;
	memset(fake_kfd.order, 0, sizeof(fake_kfd.order));
}

static int create(uint32_t type, uint32_t *ret)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_base_address = RING,
		.ring_size = 4096,
		.gpu_id = 1001,
		.queue_type = type,
		.queue_percentage = 100,
		.queue_priority = 7,
	};
	int r = ioctl(FD, AMDKFD_IOC_CREATE_QUEUE, &args) < 0 ? -errno : 0;

	*ret = args.queue_id;
	return r;
}

static uint32_t new_queue(void)
{
	uint32_t id;

	CHECK(create(KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, &id) == 0);
	return id;
}

static int update(uint32_t id, uint32_t percentage, uint32_t priority)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = RING,
		.ring_size = 4096,
		.queue_id = id,
		.queue_percentage = percentage,
		.queue_priority = priority,
	};

	return ioctl(FD, AMDKFD_IOC_UPDATE_QUEUE, &args) < 0 ? -errno : 0;
}

static void destroy(uint32_t id)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = id };

	CHECK(ioctl(FD, AMDKFD_IOC_DESTROY_QUEUE, &args) == 0);
}

static int set_turn(uint32_t id, bool paused, uint32_t priority)
{
	struct kfd_held held;
	int r;

	kfd_lock(&held);
	r = kfd_driver.set_turn(NULL, FD, id, paused, priority);
	kfd_unlock(&held);
	return r;
}

TEST(the_driver_sees_the_queues_of_ioctl)
{
	CHECK(kfd_driver.sees_queues());
}

TEST(a_paused_queue_stays_paused_until_it_is_resumed)
{
	uint32_t id;

	need_no_kfd();
	id = new_queue();
	CHECK(set_turn(id, true, 7) == 0 && HAS(id)->percentage == 0);
	CHECK(update(id, 80, 7) == 0 && HAS(id)->percentage == 0);
	CHECK(set_turn(id, false, 7) == 0 && HAS(id)->percentage == 80);
	CHECK(update(id, 0, 7) == 0 && HAS(id)->percentage == 0); /* the program pauses it */
	CHECK(set_turn(id, true, 7) == 0 && set_turn(id, false, 7) == 0);
	CHECK(HAS(id)->percentage == 0);
	destroy(id);
}

TEST(kfd_is_called_only_where_something_changes)
{
	uint32_t id;

	need_no_kfd();
	id = new_queue();
	CHECK(set_turn(id, false, 7) == 0 && strcmp(fake_kfd.order, "c") == 0);
	CHECK(set_turn(id, true, 9) == 0 && strcmp(fake_kfd.order, "cu") == 0);
	CHECK(set_turn(id, true, 9) == 0 && strcmp(fake_kfd.order, "cu") == 0);
	destroy(id);
}

TEST(no_queue_has_more_than_the_granted_priority)
{
	uint32_t id;

	need_no_kfd();
	id = new_queue();
	CHECK(update(id, 100, 15) == 0 && HAS(id)->priority == 15); /* without a lease */
	CHECK(set_turn(id, false, 11) == 0 && HAS(id)->priority == 11);
	CHECK(update(id, 100, 3) == 0 && HAS(id)->priority == 3);
	CHECK(update(id, 100, 15) == 0 && HAS(id)->priority == 11);
	CHECK(set_turn(id, false, 13) == 0 && HAS(id)->priority == 13);
	destroy(id);

	id = new_queue(); /* for which the program asked no priority */
	CHECK(set_turn(id, false, 13) == 0 && HAS(id)->priority == 13);
	CHECK(set_turn(id, false, 0) == 0 && HAS(id)->priority == 0);
	destroy(id);
}

TEST(a_refused_update_changes_nothing_and_is_repeated)
{
	uint32_t id;

	need_no_kfd();
	id = new_queue();
	fake_kfd.error = EBUSY;
	CHECK(set_turn(id, true, 7) == -EBUSY && HAS(id)->percentage == 100);
	CHECK(update(id, 60, 7) == 0 && HAS(id)->percentage == 60);
	fake_kfd.error = EINTR;
	CHECK(set_turn(id, true, 7) == 0 && HAS(id)->percentage == 0);
	fake_kfd.error = EBUSY;
	CHECK(update(id, 50, 7) == -EBUSY);
	CHECK(set_turn(id, false, 7) == 0 && HAS(id)->percentage == 60);
	destroy(id);
}

TEST(kfd_refuses_what_is_invalid)
{
	uint32_t id;

	need_no_kfd();
	id = new_queue();
	CHECK(set_turn(id, true, 7) == 0);
	CHECK(update(id, 101, 7) == -EINVAL && update(id, 100, 16) == -EINVAL);
	CHECK(update(7, 100, 7) == -EFAULT);
	CHECK(ioctl(FD, AMDKFD_IOC_UPDATE_QUEUE, NULL) < 0 && errno == EFAULT);
	CHECK(set_turn(id, false, 7) == 0 && HAS(id)->percentage == 100);
	destroy(id);
}

TEST(an_unknown_queue_cannot_be_paused)
{
	uint32_t id;

	need_no_kfd();
	CHECK(set_turn(5, true, 7) == -EOPNOTSUPP);
	CHECK(set_turn(5, false, 8) == -ENODATA && set_turn(5, false, 7) == 0);
	CHECK(create(KFD_IOC_QUEUE_TYPE_SDMA, &id) == 0 && set_turn(id, true, 7) == -EOPNOTSUPP);
	destroy(id);
}

TEST(sdma_queues_are_paused_with_the_compute_queues)
{
	uint32_t compute, second, sdma, first, late;

	need_no_kfd();
	compute = new_queue();
	second = new_queue();
	CHECK(create(KFD_IOC_QUEUE_TYPE_SDMA, &sdma) == 0);
	CHECK(set_turn(compute, true, 3) == 0);
	CHECK(HAS(sdma)->percentage == 0 && HAS(sdma)->priority == 7);
	CHECK(create(KFD_IOC_QUEUE_TYPE_SDMA_XGMI, &first) == 0 && HAS(first)->percentage == 0);
	CHECK(update(sdma, 100, 15) == 0 && HAS(sdma)->percentage == 0);
	CHECK(set_turn(compute, false, 3) == 0);
	CHECK(HAS(sdma)->percentage == 100 && HAS(sdma)->priority == 15);
	CHECK(HAS(first)->percentage == 100);

	CHECK(set_turn(compute, true, 3) == 0 && set_turn(second, true, 3) == 0);
	fake_kfd.error = EBUSY;
	CHECK(create(KFD_IOC_QUEUE_TYPE_SDMA, &late) == -EBUSY && !HAS(late)->exists);
	destroy(compute);
	CHECK(HAS(sdma)->percentage == 0);
	destroy(second); /* the last one: nothing would resume the SDMA queue */
	CHECK(HAS(sdma)->percentage == 100);
	destroy(sdma);

	/* One of them was destroyed without ioctl(). */
	compute = new_queue();
	fake_kfd.queues[first].exists = false;
	CHECK(set_turn(compute, true, 7) == 0 && set_turn(compute, false, 7) == 0);
	destroy(compute);
}

TEST(an_id_that_is_used_again_is_another_queue)
{
	uint32_t id;

	need_no_kfd();
	id = new_queue();
	CHECK(set_turn(id, true, 3) == 0);
	destroy(id);
	CHECK(set_turn(id, false, 3) == -ENODATA);
	CHECK(new_queue() == id && HAS(id)->percentage == 100 && HAS(id)->priority == 7);
	CHECK(update(id, 90, 15) == 0 && HAS(id)->percentage == 90 && HAS(id)->priority == 15);

	HAS(id)->exists = false; /* destroyed without ioctl() */
	CHECK(new_queue() == id && set_turn(id, true, 7) == 0);
	destroy(id);
	CHECK(set_turn(id, true, 7) == -EOPNOTSUPP);
}

TEST(a_forked_child_has_no_queues)
{
	struct kfd_held held;
	uint32_t id;
	int status;
	pid_t pid;

	need_no_kfd();
	id = new_queue();
	CHECK(set_turn(id, true, 7) == 0);
	kfd_lock(&held); /* as another thread of the parent may */
	pid = fork();
	if (pid == 0) {
		CHECK(set_turn(id, true, 7) == -EOPNOTSUPP);
		_exit(0);
	}
	kfd_unlock(&held);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(set_turn(id, false, 7) == 0 && HAS(id)->percentage == 100);
	destroy(id);
}

TEST(a_mask_changes_while_the_queue_is_paused)
{
	struct queue_state now = { .mask.words = 0 };
	struct queue_state next = { .mask = { { 0xff }, 1 }, .has_turn = true, .priority = 7 };
	uint32_t id;

	need_no_kfd();
	id = new_queue();
	CHECK(queue_state_set(&kfd_driver, FD, id, &now, &next) == 0);
	CHECK(strcmp(fake_kfd.order, "cm") == 0);
	now.mask = next.mask;
	CHECK(queue_state_same(&now, &next));

	next.paused = true;
	next.mask.word[0] = 0xf;
	CHECK(!queue_state_same(&now, &next));
	CHECK(queue_state_set(&kfd_driver, FD, id, &now, &next) == 0);
	CHECK(strcmp(fake_kfd.order, "cmum") == 0 && HAS(id)->percentage == 0);
	now.mask = next.mask;

	next.paused = false;
	next.mask.word[0] = 0xff;
	CHECK(queue_state_set(&kfd_driver, FD, id, &now, &next) == 0);
	CHECK(strcmp(fake_kfd.order, "cmummu") == 0 && HAS(id)->percentage == 100);

	/* A queue that cannot be paused keeps its mask, too. */
	next.paused = true;
	next.mask.word[0] = 1;
	fake_kfd.error = EBUSY;
	CHECK(queue_state_set(&kfd_driver, FD, id, &now, &next) == -EBUSY);
	CHECK(HAS(id)->mask == 0xff && !now.paused);
	destroy(id);
}

static int create_queue(long allocations)
{
	uint32_t id;
	int r;

	lack_left = allocations;
	r = create(KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, &id);
	CHECK(HAS(id)->exists == (r == 0));
	if (r == 0)
		destroy(id);
	return r;
}

TEST(a_queue_that_cannot_be_remembered_is_destroyed)
{
	need_no_kfd();
	CHECK(lack_each("create_queue", create_queue) == 1);
}

static int refuse(int fd, uint32_t queue, uint32_t kfd_gpu_id)
{
	CHECK(fd == FD && HAS(queue)->exists && kfd_gpu_id == 1001);
	return -EBUSY;
}

static int mask_own(int fd, uint32_t queue, const struct mask *own)
{
	CHECK(fd == FD && own->words == 1);
	return queue == 0 ? -ENOENT : queue == 1 ? 0 : -EACCES;
}

static int ask(uint32_t id, uint32_t word)
{
	struct kfd_ioctl_set_cu_mask_args args = { .queue_id = id,
						   .num_cu_mask = 32,
						   .cu_mask_ptr = (uintptr_t)&word };

	return ioctl(FD, AMDKFD_IOC_SET_CU_MASK, &args) < 0 ? -errno : 0;
}

TEST(hooks_decide_about_new_queues_and_masks)
{
	static const struct kfd_hooks hooks = { .created = refuse, .mask = mask_own };
	uint32_t ids[3], id;

	need_no_kfd();
	for (size_t i = 0; i < 3; i++)
		ids[i] = new_queue();
	kfd_hook(&hooks);
	CHECK(create(KFD_IOC_QUEUE_TYPE_COMPUTE, &id) == -EBUSY && !HAS(id)->exists);
	CHECK(set_turn(id, true, 7) == -EOPNOTSUPP);
	CHECK(create(KFD_IOC_QUEUE_TYPE_SDMA, &id) == 0);
	destroy(id);
	CHECK(ask(ids[0], 3) == 0 && HAS(ids[0])->mask == 3);
	CHECK(ask(ids[1], 3) == 0 && HAS(ids[1])->mask == 0);
	CHECK(ask(ids[2], 3) == -EACCES && HAS(ids[2])->mask == 0);
	kfd_hook(NULL);
	for (size_t i = 0; i < 3; i++)
		destroy(ids[i]);
}
