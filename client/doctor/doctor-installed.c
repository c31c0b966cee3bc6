/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Files that others read: the bus, and polkit. */

#include <stdio.h>

#include "client/doctor/doctor.h"

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
