/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/budget/programs.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <queues.skel.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "helpers/budget/queues.h"
#include "util/fd.h"
#include "util/text.h"

#define BPFFS "/sys/fs/bpf"
#define DIRECTORY BPFFS "/gpuarb-budget"
#define UNFINISHED BPFFS "/gpuarb-budget-new" /* renamed when everything is in it */

#define CREATE_QUEUE 0x4b02U /* the type and number of the call */

DEFINE_CLEANUP(struct queues *, queues__destroy)
DEFINE_CLEANUP(struct btf *, btf__free)

/* ---- what the kernel has ------------------------------------------------------------------- */

static int check_lsm(char *why, size_t size)
{
	char list[512] = "";
	_cleanup_fd_ int fd = open("/sys/kernel/security/lsm", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read_to_end(fd, list, sizeof(list) - 1) <= 0)
		return 0; /* securityfs is not mounted: the test tells */
	for (char *name, *rest = list; (name = strsep(&rest, ",\n"));)
		if (strcmp(name, "bpf") == 0)
			return 0;
	list[strcspn(list, "\n")] = '\0';
	return refuse(why, size, -EOPNOTSUPP,
		      "the security module bpf is not active (%s): boot with lsm=%s,bpf", list,
		      list);
}

static int check_bpffs(char *why, size_t size)
{
	struct statfs fs;

	if (statfs(BPFFS, &fs) == 0 && fs.f_type == BPF_FS_MAGIC)
		return 0;
	return refuse(why, size, -EOPNOTSUPP, "no bpf file system is mounted on %s", BPFFS);
}

/* The function through which every ioctl of a native program returns; NULL: not known. */
static const char *function_of_ioctl(void)
{
	struct utsname name;

	if (uname(&name) < 0)
		return NULL;
	if (strcmp(name.machine, "x86_64") == 0)
		return "__x64_sys_ioctl";
	return strcmp(name.machine, "aarch64") == 0 ? "__arm64_sys_ioctl" : NULL;
}

static bool has_function(const struct btf *btf, const char *name)
{
	return btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) > 0;
}

/* Chooses the functions of this kernel to attach to. */
static int choose_functions(struct queues *queues, char *why, size_t size)
{
	_cleanup_(btf__freep) struct btf *btf = btf__load_vmlinux_btf();
	const char *function = function_of_ioctl();

	if (!btf)
		return refuse(why, size, -EOPNOTSUPP,
			      "the kernel has no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)");
	if (!function || !has_function(btf, function) || !has_function(btf, "bpf_lsm_file_ioctl"))
		return refuse(why, size, -EOPNOTSUPP,
			      "the kernel has no hook for ioctl (CONFIG_BPF_LSM)");
	bpf_program__set_autoload(queues->progs.before_compat_ioctl,
				  has_function(btf, "bpf_lsm_file_ioctl_compat"));
	return bpf_program__set_attach_target(queues->progs.after_ioctl, 0, function);
}

/* The kernel's own encoding of a device number. */
static unsigned encode(unsigned major, unsigned minor)
{
	return major << 20 | minor;
}

static int find_kfd(const char *sysfs, unsigned *ret, char *why, size_t size)
{
	char path[4096], text[32] = "";
	unsigned major, minor;

	if ((size_t)snprintf(path, sizeof(path), "%s/class/kfd/kfd/dev", sysfs) >= sizeof(path))
		return refuse(why, size, -ENAMETOOLONG, "%s: the path is too long", sysfs);

	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read_to_end(fd, text, sizeof(text) - 1) <= 0 ||
	    sscanf(text, "%u:%u", &major, &minor) != 2)
		return refuse(why, size, -ENODEV, "%s: cannot be read: is amdgpu loaded?", path);
	*ret = encode(major, minor);
	return 0;
}

/* ---- loading ------------------------------------------------------------------------------- */

static int load(unsigned device, struct queues **ret, char *why, size_t size)
{
	_cleanup_(queues__destroyp) struct queues *queues = queues__open();
	int r;

	if (!queues)
		return refuse(why, size, -errno, "cannot open the programs: %s", strerror(errno));
	queues->rodata->kfd_device = device;
	r = choose_functions(queues, why, size);
	if (r < 0)
		return r;
	r = queues__load(queues);
	if (r < 0)
		return refuse(why, size, r == -EPERM || r == -EINVAL ? -EOPNOTSUPP : r,
			      "the kernel does not load the programs: %s", strerror(-r));
	r = queues__attach(queues);
	if (r < 0)
		return refuse(why, size, r == -EPERM || r == -EINVAL ? -EOPNOTSUPP : r,
			      "the kernel does not attach the programs: %s", strerror(-r));
	*ret = TAKE_PTR(queues);
	return 0;
}

/* The errno of a call that would create a queue on a file that has none. */
static int try_call(int file)
{
	return ioctl(file, CREATE_QUEUE) == 0 ? 0 : errno;
}

/* Expects that one call is refused without a budget, and that one beyond it is counted and given back. */
static int try_budget(const struct queues *queues, int file)
{
	const __u64 root = 1; /* the id of the root cgroup, to which all processes belong */
	struct queue_budget budget = { 0 };
	struct queue_use use = { 0 };
	int budgets = bpf_map__fd(queues->maps.budgets), uses = bpf_map__fd(queues->maps.uses);

	if (bpf_map_update_elem(uses, &root, &use, BPF_ANY) < 0 ||
	    bpf_map_update_elem(budgets, &root, &budget, BPF_ANY) < 0)
		return -errno;
	if (try_call(file) != ENOMEM)
		return -EOPNOTSUPP;
	budget.limit = 1;
	if (bpf_map_update_elem(budgets, &root, &budget, BPF_ANY) < 0)
		return -errno;
	if (try_call(file) != ENOTTY || try_call(file) != ENOTTY)
		return -EOPNOTSUPP;
	if (bpf_map_lookup_elem(uses, &root, &use) < 0)
		return -errno;
	return use.queues == 0 && use.refused == 1 ? 0 : -EOPNOTSUPP;
}

/* Tries a second set of the programs on /dev/null: the kernel loads and attaches programs that it never
 * runs, if the security module is not active. */
static int try_programs(char *why, size_t size)
{
	_cleanup_(queues__destroyp) struct queues *queues = NULL;
	_cleanup_fd_ int file = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct stat st;
	int r;

	if (file < 0 || fstat(file, &st) < 0)
		return refuse(why, size, -errno, "/dev/null: %s", strerror(errno));
	r = load(encode(major(st.st_rdev), minor(st.st_rdev)), &queues, why, size);
	if (r < 0)
		return r;
	r = try_budget(queues, file);
	if (r < 0)
		return refuse(
			why, size, r,
			"the kernel loads the programs, but does not run them for ioctl: is bpf "
			"in its list of security modules (lsm=)?");
	return 0;
}

/* ---- pins ---------------------------------------------------------------------------------- */

static const char *const pins[] = { "before_compat_ioctl",
				    "before_ioctl",
				    "after_ioctl",
				    "after_exit_mmap",
				    "budgets",
				    "uses",
				    "spaces",
				    "device" };

static int pin(int fd, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", UNFINISHED, name);
	return bpf_obj_pin(fd, path) < 0 ? -errno : 0;
}

static int pin_link(const struct bpf_link *link, const char *name)
{
	return link ? pin(bpf_link__fd(link), name) : 0;
}

static int remove_pins(const char *directory)
{
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(pins); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, pins[i]);
		if (unlink(path) < 0 && errno != ENOENT && errno != ENOTDIR)
			return -errno;
	}
	return rmdir(directory) < 0 && errno != ENOENT ? -errno : 0;
}

static int pin_all(const struct queues *queues)
{
	int r;

	r = remove_pins(UNFINISHED);
	if (r >= 0 && mkdir(UNFINISHED, 0700) < 0)
		r = -errno;
	r = r < 0 ? r : pin(bpf_map__fd(queues->maps.budgets), "budgets");
	r = r < 0 ? r : pin(bpf_map__fd(queues->maps.uses), "uses");
	r = r < 0 ? r : pin(bpf_map__fd(queues->maps.spaces), "spaces");
	r = r < 0 ? r : pin(bpf_map__fd(queues->maps.rodata), "device");
	r = r < 0 ? r : pin_link(queues->links.after_exit_mmap, "after_exit_mmap");
	r = r < 0 ? r : pin_link(queues->links.after_ioctl, "after_ioctl");
	r = r < 0 ? r : pin_link(queues->links.before_compat_ioctl, "before_compat_ioctl");
	r = r < 0 ? r : pin_link(queues->links.before_ioctl, "before_ioctl");
	if (r >= 0 && rename(UNFINISHED, DIRECTORY) < 0)
		r = -errno;
	if (r < 0)
		(void)remove_pins(UNFINISHED);
	return r;
}

static int open_pin(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", DIRECTORY, name);
	fd = bpf_obj_get(path);
	return fd < 0 ? -errno : fd;
}

static bool is_pinned(const char *name)
{
	_cleanup_fd_ int fd = open_pin(name);

	return fd >= 0;
}

/* amdgpu can have been loaded again since, and /dev/kfd can have another number. */
static bool watches(unsigned device)
{
	_cleanup_fd_ int fd = open_pin("device");
	const __u32 first = 0;
	__u32 watched;

	return fd >= 0 && bpf_map_lookup_elem(fd, &first, &watched) == 0 && watched == device;
}

/* Programs of another version can be pinned. */
static bool has_layout(int map, __u32 entries, __u32 value_size)
{
	struct bpf_map_info info = { 0 };
	__u32 size = sizeof(info);

	return map >= 0 && bpf_obj_get_info_by_fd(map, &info, &size) == 0 &&
	       info.max_entries == entries && info.value_size == value_size;
}

int programs_open(const char *sysfs, struct programs *ret)
{
	struct programs programs = PROGRAMS_NONE;
	unsigned device;

	if (find_kfd(sysfs, &device, NULL, 0) < 0 || !watches(device) ||
	    !is_pinned("before_ioctl") || !is_pinned("after_ioctl") ||
	    !is_pinned("after_exit_mmap"))
		return -ENOENT;
	programs.budgets = open_pin("budgets");
	programs.uses = open_pin("uses");
	programs.spaces = open_pin("spaces");
	if (!has_layout(programs.budgets, BUDGETS_MAX, sizeof(struct queue_budget)) ||
	    !has_layout(programs.uses, BUDGETS_MAX, sizeof(struct queue_use)) ||
	    !has_layout(programs.spaces, SPACES_MAX, sizeof(struct queue_space))) {
		programs_close(&programs);
		return -ENOENT;
	}
	*ret = programs;
	return 0;
}

int programs_load(const char *sysfs, struct programs *ret, char *why, size_t size)
{
	_cleanup_(queues__destroyp) struct queues *queues = NULL;
	unsigned device;
	int r;

	libbpf_set_print(NULL);
	r = check_lsm(why, size);
	if (r >= 0)
		r = check_bpffs(why, size);
	if (r >= 0)
		r = find_kfd(sysfs, &device, why, size);
	if (r >= 0)
		r = try_programs(why, size);
	if (r >= 0)
		r = load(device, &queues, why, size);
	if (r < 0)
		return r;
	r = programs_remove();
	if (r >= 0)
		r = pin_all(queues);
	if (r >= 0)
		r = programs_open(sysfs, ret);
	return r < 0 ? refuse(why, size, r, "%s: %s", DIRECTORY, strerror(-r)) : 0;
}

void programs_close(struct programs *programs)
{
	close_fd(&programs->budgets);
	close_fd(&programs->uses);
	close_fd(&programs->spaces);
}

int programs_remove(void)
{
	return remove_pins(DIRECTORY);
}
