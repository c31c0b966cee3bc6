/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which owners and modes trust_open() accepts for a file and its path. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

#include "check.h"
#include "scratch.h"
#include "util/trust.h"

#define STRANGER 12345
#define OURS                      \
	(struct trust)            \
	{                         \
		{                 \
			geteuid() \
		}                 \
	}

struct place {
	struct scratch scratch;
	struct diagnostics diagnostics;
};

/* etc/conf.d/x.conf, and a link to each of the three. */
static struct place place_new(void)
{
	struct place place = { .scratch = scratch_new() };

	scratch_mkdir(&place.scratch, "etc");
	scratch_mkdir(&place.scratch, "etc/conf.d");
	scratch_write(&place.scratch, "etc/conf.d/x.conf", "x");
	scratch_mkdir(&place.scratch, "links");
	CHECK(symlink("../etc", scratch_at(&place.scratch, "links/etc")) == 0);
	CHECK(symlink("etc/conf.d", scratch_at(&place.scratch, "links/conf.d")) == 0);
	CHECK(symlink(scratch_at(&place.scratch, "links/conf.d/x.conf"),
		      scratch_at(&place.scratch, "links/x.conf")) == 0);
	return place;
}

static void place_done(struct place *place)
{
	diagnostics_done(&place->diagnostics);
	scratch_done(&place->scratch);
}

static int open_trusted(struct place *place, const char *name)
{
	int fd = trust_open(scratch_at(&place->scratch, name), &OURS, O_RDONLY,
			    &place->diagnostics);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Whether the file is refused with this diagnostic only. */
static bool refused(struct place *place, const char *name, const char *sentence)
{
	bool says;
	int r;

	diagnostics_done(&place->diagnostics);
	place->diagnostics = (struct diagnostics){ 0 };
	r = open_trusted(place, name);
	says = r == -EINVAL && place->diagnostics.n == 1 && place->diagnostics.list[0].error &&
	       strstr(place->diagnostics.list[0].text, sentence);
	for (size_t i = 0; !says && i < place->diagnostics.n; i++)
		fprintf(stderr, "%s\n", place->diagnostics.list[i].text);
	return says;
}

static void set_mode(struct place *place, const char *name, mode_t mode)
{
	CHECK(chmod(scratch_at(&place->scratch, name), mode) == 0);
}

FIXTURE(struct place, place, *place = place_new(), place_done(place));

TEST_WITH(file_of_a_trusted_owner_is_opened, struct place *place)
{
	char text[2] = "";
	int fd;

	fd = trust_open(scratch_at(&place->scratch, "links/x.conf"), &OURS, O_RDONLY,
			&place->diagnostics);
	CHECK(fd >= 0 && read(fd, text, 2) == 1 && text[0] == 'x');
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	close(fd);
	CHECK(open_trusted(place, "etc/conf.d") == 0 && open_trusted(place, "links/conf.d") == 0);
	CHECK(open_trusted(place, "etc/../etc/./conf.d//x.conf") == 0 &&
	      open_trusted(place, "links/..") == 0);
	fd = trust_open("/", &OURS, O_PATH | O_DIRECTORY, &place->diagnostics);
	CHECK(fd >= 0 && place->diagnostics.n == 0);
	close(fd);
}

TEST_WITH(lack_of_file_descriptors_is_an_error, struct place *place)
{
	struct rlimit before, limit;
	int r;

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	limit = (struct rlimit){ 0, before.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	r = open_trusted(place, "etc/conf.d/x.conf");
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(r == -EINVAL && place->diagnostics.n == 1 &&
	      strstr(place->diagnostics.list[0].text, strerror(EMFILE)));
}

TEST_WITH(relative_path_is_checked_from_the_root_on, struct place *place)
{
	int fd, back = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	CHECK(back >= 0 && chdir(scratch_at(&place->scratch, "etc")) == 0);
	fd = trust_open("conf.d/x.conf", &OURS, O_RDONLY, &place->diagnostics);
	CHECK(fd >= 0);
	close(fd);
	set_mode(place, "etc", 0777);
	CHECK(trust_open("conf.d/x.conf", &OURS, O_RDONLY, &place->diagnostics) == -EINVAL);
	CHECK(strstr(place->diagnostics.list[0].text, "/etc"));
	CHECK(fchdir(back) == 0);
	close(back);
}

TEST_WITH(object_that_others_can_write_is_named, struct place *place)
{
	set_mode(place, "etc/conf.d/x.conf", 0664);
	CHECK(refused(place, "etc/conf.d/x.conf", "(mode 0664): chmod go-w"));
	CHECK(refused(place, "links/x.conf", "/etc/conf.d/x.conf: writable"));
	set_mode(place, "etc/conf.d/x.conf", 0644);
	set_mode(place, "etc/conf.d", 0757);
	CHECK(refused(place, "etc/conf.d/x.conf", "/etc/conf.d: writable"));
	CHECK(refused(place, "links/conf.d", "/etc/conf.d: writable"));
}

TEST_WITH(every_directory_of_the_path_is_checked, struct place *place)
{
	set_mode(place, "etc", 0775);
	CHECK(refused(place, "etc/conf.d/x.conf", "/etc: writable"));
	CHECK(refused(place, "links/x.conf", "/etc: writable"));
	set_mode(place, "etc", 0755);
	set_mode(place, "links", 0777);
	CHECK(refused(place, "links/x.conf", "/links: writable"));
	CHECK(refused(place, "links/../etc/conf.d/x.conf", "/links: writable"));
	CHECK(open_trusted(place, "etc/conf.d/x.conf") == 0);
}

TEST_WITH(sticky_directory_is_accepted_unless_it_is_the_last, struct place *place)
{
	set_mode(place, "etc", 01777);
	CHECK(open_trusted(place, "etc/conf.d/x.conf") == 0 &&
	      open_trusted(place, "etc/conf.d") == 0);
	CHECK(refused(place, "etc", "/etc"));
	scratch_write(&place->scratch, "etc/y.conf", "y");
	CHECK(refused(place, "etc/y.conf", "/etc"));
}

TEST(object_of_another_user_is_named)
{
	static const char *const names[] = { "etc/conf.d/x.conf", "etc/conf.d", "etc",
					     "links/etc" };
	struct place place = place_new();
	char sentence[128];

	if (geteuid() != 0) {
		place_done(&place);
		SKIP("only root can give files away");
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *path = scratch_at(&place.scratch, names[i]);

		CHECK(lchown(path, STRANGER, 0) == 0);
		snprintf(sentence, sizeof(sentence), "/%s: owned by uid %u, which is not trusted",
			 names[i], STRANGER);
		CHECK(refused(&place, "links/x.conf", sentence));
		CHECK(lchown(path, 0, 0) == 0);
	}
	CHECK(open_trusted(&place, "links/x.conf") == 0);
	place_done(&place);
}

TEST(service_user_is_trusted_in_addition_to_root)
{
	struct place place = place_new();
	const char *path = scratch_at(&place.scratch, "etc/conf.d/x.conf");
	int fd;

	if (chown(path, STRANGER, 0) < 0) {
		place_done(&place);
		SKIP("only root can give files away");
	}
	fd = trust_open(path, &(struct trust){ { STRANGER } }, O_RDONLY, &place.diagnostics);
	CHECK(fd >= 0);
	close(fd);
	fd = trust_open(path, &(struct trust){ { 4711, STRANGER } }, O_RDONLY, &place.diagnostics);
	CHECK(fd >= 0);
	close(fd);
	CHECK(trust_open(path, &(struct trust){ { 4711 } }, O_RDONLY, &place.diagnostics) ==
	      -EINVAL);
	place_done(&place);
}

TEST_WITH(dev_null_is_accepted_with_any_mode, struct place *place)
{
	CHECK(symlink("/dev/null", scratch_at(&place->scratch, "links/none")) == 0);
	CHECK(open_trusted(place, "links/none") == 0);
}

TEST_WITH(missing_file_is_enoent_without_diagnostic, struct place *place)
{
	CHECK(symlink("nowhere", scratch_at(&place->scratch, "links/lost")) == 0);
	CHECK(open_trusted(place, "none") == -ENOENT &&
	      open_trusted(place, "links/lost") == -ENOENT);
	CHECK(open_trusted(place, "none/x") == -ENOENT && place->diagnostics.n == 0);
}

TEST_WITH(loop_of_links_and_too_long_path_are_refused, struct place *place)
{
	char path[2 * PATH_MAX], *end;

	CHECK(symlink("loop", scratch_at(&place->scratch, "links/loop")) == 0);
	CHECK(refused(place, "links/loop", strerror(ELOOP)));
	CHECK(refused(place, "etc/conf.d/x.conf/y", strerror(ENOTDIR)));

	end = path + snprintf(path, sizeof(path), "%s", place->scratch.path);
	memset(end, '/', sizeof(path) - (size_t)(end - path));
	path[PATH_MAX + 1] = '\0';
	CHECK(trust_open(path, &OURS, O_RDONLY, &place->diagnostics) == -EINVAL);
	CHECK(strstr(place->diagnostics.list[1].text, strerror(ENAMETOOLONG)));
	memset(end + 1, 'x', 300);
	end[301] = '\0';
	CHECK(trust_open(path, &OURS, O_RDONLY, &place->diagnostics) == -EINVAL);
}

TEST(unreadable_file_is_reported_with_the_uid)
{
	struct place place = place_new();
	bool says;

	if (geteuid() != 0) {
		place_done(&place);
		SKIP("it takes root to have files of another user");
	}
	CHECK(chmod(place.scratch.path, 0755) == 0);
	set_mode(&place, "etc/conf.d/x.conf", 0600);
	CHECK(seteuid(STRANGER) == 0);
	says = refused(&place, "etc/conf.d/x.conf",
		       "/x.conf: not readable by uid 12345: chmod a+r");
	CHECK(seteuid(0) == 0 && says);
	set_mode(&place, "etc", 0700);
	CHECK(seteuid(STRANGER) == 0);
	says = refused(&place, "etc/conf.d/x.conf", "/x.conf: not readable by uid 12345");
	CHECK(seteuid(0) == 0 && says);
	place_done(&place);
}

TEST(relative_path_in_a_deleted_directory_is_refused)
{
	struct place place = place_new();
	char before[PATH_MAX];

	CHECK(getcwd(before, sizeof(before)));
	scratch_mkdir(&place.scratch, "gone");
	CHECK(chdir(scratch_at(&place.scratch, "gone")) == 0);
	CHECK(rmdir(scratch_at(&place.scratch, "gone")) == 0);
	CHECK(trust_open("x.conf", &OURS, O_RDONLY, &place.diagnostics) == -ENOENT);
	CHECK(chdir(before) == 0);
	place_done(&place);
}
