/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/doctor/doctor.h"
#include "client/options/number.h"

/* The systemd unit: as the service manager has it where there is one, else as its file. */

#define UNIT "gpuarbd.service"
#define USER "gpuarb"

/* The daemon's own, and what may be under way to the store, FDS_OF_OUR_OWN and
 * STORE_QUEUE_MAX of its: see gpuarbd(8). tests/lint/check-limits.sh compares. */
#define FDS_BESIDE_STORE 1280U

struct unit {
	char load[32], active[32]; /* "": there is no service manager */
	char user[64];             /* "": root */
	uint64_t store, files;     /* UINT64_MAX: no limit */
	bool has_store, has_files, has_user;
};

static bool take(const char *line, const char *key, const char **ret)
{
	size_t n = strlen(key);

	if (strncmp(line, key, n) != 0 || line[n] != '=')
		return false;
	*ret = line + n + 1;
	return true;
}

static bool take_limit(const char *value, uint64_t *ret)
{
	*ret = UINT64_MAX;
	return strcmp(value, "infinity") == 0 || number_parse(value, 0, UINT64_MAX, ret) == 0;
}

/* Lines KEY=VALUE, of the file and of systemctl alike. */
static void read_unit(FILE *file, struct unit *unit)
{
	char line[512];
	const char *value;

	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (take(line, "LoadState", &value))
			snprintf(unit->load, sizeof(unit->load), "%.31s", value);
		else if (take(line, "ActiveState", &value))
			snprintf(unit->active, sizeof(unit->active), "%.31s", value);
		else if (take(line, "User", &value))
			unit->has_user = snprintf(unit->user, sizeof(unit->user), "%.63s", value) >=
					 0;
		else if (take(line, "FileDescriptorStoreMax", &value))
			unit->has_store = take_limit(value, &unit->store);
		else if (take(line, "LimitNOFILE", &value))
			unit->has_files = take_limit(value, &unit->files);
	}
}

/* 0, or -ENODATA where systemctl cannot say. */
static int ask_systemd(struct unit *unit)
{
	FILE *file = popen("LC_ALL=C systemctl show --no-pager --property=LoadState,ActiveState,"
			   "FileDescriptorStoreMax,LimitNOFILE,User " UNIT " 2>/dev/null",
			   "re");

	if (!file)
		return -errno;
	read_unit(file, unit);
	return pclose(file) == 0 && unit->load[0] ? 0 : -ENODATA;
}

/* The first that is there is the one that counts. */
static int read_file(const struct doctor *doctor, char ret[static DOCTOR_PATH], struct unit *unit)
{
	static const char *const places[] = {
		"/etc/systemd/system", "/run/systemd/system",     "/usr/local/lib/systemd/system",
		"/lib/systemd/system", "/usr/lib/systemd/system",
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		FILE *file = fopen(doctor_path(doctor, ret, "%s/" UNIT, places[i]), "re");

		if (!file)
			continue;
		read_unit(file, unit);
		fclose(file);
		return 0;
	}
	return -ENOENT;
}

static void not_installed(struct doctor *doctor)
{
	say(doctor, MARK_NOTE, "no unit " UNIT);
	means(doctor, "No service manager starts gpuarbd, feeds it back what leases live by, or "
		      "starts it again: leases end with the daemon.");
	advise(doctor, "Install gpuarb as a package, or by meson install.");
}

static void judge_state(struct doctor *doctor, const struct unit *unit)
{
	if (strcmp(unit->active, "active") == 0 || strcmp(unit->active, "reloading") == 0) {
		say(doctor, MARK_OK, UNIT " is %s", unit->active);
		means(doctor, "Leases outlive a restart of gpuarbd.");
	} else if (strcmp(unit->active, "failed") == 0) {
		say(doctor, MARK_PROBLEM, UNIT " has failed");
		means(doctor, "gpuarbd is not started again by itself.");
		advise(doctor, "journalctl -u gpuarbd; systemctl restart gpuarbd");
	} else {
		say(doctor, MARK_NOTE, UNIT " is %s", unit->active);
		means(doctor, "It is started when somebody asks it over the bus. A gpuarbd that "
			      "answers already was not started by systemd.");
		advise(doctor, "To have it from the start: systemctl enable --now gpuarbd");
	}
}

/* Of an installation before, or an administrator's. */
static void judge_user(struct doctor *doctor, const struct unit *unit)
{
	if (!unit->has_user || strcmp(unit->user, USER) == 0)
		return;
	say(doctor, MARK_PROBLEM, UNIT " runs as %s, not as " USER,
	    unit->user[0] ? unit->user : "root");
	means(doctor,
	      "The bus gives the arbiter's name to " USER " alone: as somebody else it cannot "
	      "be started.");
	advise(doctor,
	       "systemctl cat gpuarbd shows which file says so, or does not; systemctl edit "
	       "gpuarbd: User=" USER "; then systemctl restart gpuarbd.");
}

static void too_small(struct doctor *doctor, const char *limit, uint64_t is, uint64_t least,
		      const char *what)
{
	say(doctor, MARK_PROBLEM, "%s=%" PRIu64 " of " UNIT " is less than %" PRIu64, limit, is,
	    least);
	means(doctor, "%s", what);
	advise(doctor,
	       "systemctl edit gpuarbd: %s=%" PRIu64 "; then systemctl daemon-reload, "
	       "systemctl restart gpuarbd. See RESTART in gpuarbd(8).",
	       limit, least);
}

static void judge_limits(struct doctor *doctor, const struct unit *unit)
{
	uint64_t least = doctor->settings ? doctor->settings->max_holders : 1;

	if (!unit->has_store || unit->store < least)
		too_small(doctor, "FileDescriptorStoreMax", unit->has_store ? unit->store : 0,
			  least,
			  "Holders and processes beyond it are refused, though max-holders of the "
			  "configuration allows them; with none, leases end with the daemon.");
	if (unit->has_store && unit->has_files && unit->store < UINT64_MAX - FDS_BESIDE_STORE &&
	    unit->files < unit->store + FDS_BESIDE_STORE)
		too_small(doctor, "LimitNOFILE", unit->files, unit->store + FDS_BESIDE_STORE,
			  "A full store does not fit into the next gpuarbd: it could not be "
			  "started.");
}

void check_unit(struct doctor *doctor)
{
	bool booted = doctor_find(doctor, "/run/systemd/system") == 0;
	char path[DOCTOR_PATH];
	struct unit unit = { 0 };

	if (booted && ask_systemd(&unit) == 0) {
		if (strcmp(unit.load, "not-found") == 0) {
			not_installed(doctor);
			return;
		}
		if (strcmp(unit.load, "loaded") != 0) {
			say(doctor, MARK_PROBLEM, UNIT ": systemd says that it is %s", unit.load);
			means(doctor, "It cannot be started.");
			advise(doctor, "systemctl status gpuarbd; where it is masked: systemctl "
				       "unmask gpuarbd");
			return;
		}
		judge_state(doctor, &unit);
		judge_user(doctor, &unit);
		judge_limits(doctor, &unit);
		return;
	}

	unit = (struct unit){ 0 };
	if (read_file(doctor, path, &unit) < 0) {
		not_installed(doctor);
		return;
	}
	say(doctor, MARK_NOTE, "%s is there, and systemd does not answer", path);
	means(doctor, "Whether it runs is not known here; of its limits the file alone is judged.");
	advise(doctor, "In a container: see outside.");
	judge_user(doctor, &unit);
	judge_limits(doctor, &unit);
}

/* Files that others read: the bus, and polkit. */

static const struct file {
	const char *name;
	const char *places[5]; /* where it is looked for, NULL after the last */
	bool needed;           /* by a daemon on the system bus */
	const char *have, *lack;
} files[] = {
	{ "org.gpuarb.Arbiter1.conf",
	  { "/usr/share/dbus-1/system.d", "/etc/dbus-1/system.d" },
	  true,
	  "The bus lets gpuarbd have its name, and everybody talk to it.",
	  "The bus lets nobody have gpuarbd's name, so it cannot run there." },
	{ "org.gpuarb.Arbiter1.service",
	  { "/usr/share/dbus-1/system-services", "/usr/local/share/dbus-1/system-services",
	    "/etc/dbus-1/system-services", "/lib/dbus-1/system-services" },
	  false,
	  "The bus starts gpuarbd when it is asked for.",
	  "The bus does not start gpuarbd: it has to be enabled." },
	{ "org.gpuarb.Arbiter1.policy",
	  { "/usr/share/polkit-1/actions", "/usr/local/share/polkit-1/actions",
	    "/etc/polkit-1/actions" },
	  false,
	  "polkit decides who may administrate; by default, who can authenticate.",
	  "polkit does not know org.gpuarb.Arbiter1.manage: nobody but root, and the user that "
	  "gpuarbd runs as, drains, reloads or ends leases of others." },
};

static bool find_file(const struct doctor *doctor, const struct file *file, char *path, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(file->places) && file->places[i]; i++) {
		snprintf(path, size, "%s/%s", file->places[i], file->name);
		if (doctor_find(doctor, path) == 0)
			return true;
	}
	return false;
}

void check_installed(struct doctor *doctor)
{
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct file *file = &files[i];

		if (find_file(doctor, file, path, sizeof(path))) {
			say(doctor, MARK_OK, "%s", path);
			means(doctor, "%s", file->have);
			continue;
		}
		/* A daemon that answered does without it. */
		say(doctor, file->needed && !doctor->view ? MARK_PROBLEM : MARK_NOTE,
		    "no %s in %s or the like", file->name, file->places[0]);
		means(doctor, "%s", file->lack);
		advise(doctor, "Install gpuarb as a package, or by meson install with "
			       "--prefix=/usr.");
	}
}
