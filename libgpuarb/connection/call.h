/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Speaking D-Bus. libdbus aborts the program when it is handed a string that is not
 * UTF-8, a path or a name that is none: what comes from the program is judged by
 * check_string() before it gets here, all else is ours.
 */

#include <dbus/dbus.h>

#include "libgpuarb/connection/internal.h"

void free_message(DBusMessage **m);

/* ---- connection.c: one connection, and waiting for it -------------------------------- */

/* Connects and says hello, within the handle's time for answers. The failure is noted. */
int connection_new(struct gpuarb *gpuarb, struct connection **ret);
void connection_free(struct connection *connection); /* takes NULL */
DEFINE_CLEANUP(struct connection *, connection_free)

/* Makes gpuarb->connection if there is none, or none that is still alive. */
int connection_ensure(struct gpuarb *gpuarb);

bool connection_passes_fds(const struct connection *connection);

/* From now on who waits for it gives up when that fd is readable; NULL: nobody does. A new one
 * has the handle's. */
void connection_wake(struct connection *connection, const int *wake);

/* Takes the next message that came: 0, or waits for it until deadline: -ETIMEDOUT, -EINTR,
 * -ECANCELED, -ECONNRESET, -ENOMEM. */
int connection_receive(struct connection *connection, uint64_t deadline, DBusMessage **ret);

/* Queues a message. -ENOMEM. */
int connection_send(struct connection *connection, DBusMessage *m, dbus_uint32_t *ret_serial);

/* ---- call.c: asking and being answered ----------------------------------------------- */

/* A call of the daemon's method. */
int call_new(const char *path, const char *interface, const char *member, DBusMessage **ret);

/*
 * Sends the call and waits for its answer, which has the signature; any, if that is NULL.
 * Where the daemon or the bus went away it is sent again when they are back; then
 * gpuarb->repeated tells whether it may have been carried out before. A failure is noted.
 * Where it is not the daemon's own word and the answer would carry an fd, the connection is
 * gone afterwards: an answer that comes late is dropped by the bus, with the fd.
 */
int call_send(struct gpuarb *gpuarb, DBusMessage *call, const char *signature, DBusMessage **ret);

/* The same, once, on a given connection, which stays as it is. */
int call_send_on(struct gpuarb *gpuarb, struct connection *connection, DBusMessage *call,
		 const char *signature, DBusMessage **ret);

/* A call of the bus's own method, of no argument (NULL) or one. */
int call_bus(struct gpuarb *gpuarb, struct connection *connection, const char *member,
	     const char *argument, const char *signature, DBusMessage **ret);

/* A call of no argument whose answer nobody waits for. Without a connection, or memory, it
 * is not made. */
void call_tell(struct gpuarb *gpuarb, const char *path, const char *interface, const char *member);

/* Calls of no argument (DBUS_TYPE_INVALID) or one, whose answer says nothing. */
int call_simple(struct gpuarb *gpuarb, const char *path, const char *interface, const char *member,
		int type, const void *value);

/* Properties.GetAll; *ret has the signature "a{sv}". */
int call_properties(struct gpuarb *gpuarb, const char *path, const char *interface,
		    DBusMessage **ret);

/* Properties.Get; *ret has the signature "v". */
int call_property(struct gpuarb *gpuarb, const char *path, const char *interface,
		  const char *property, DBusMessage **ret);

/* Release, which counts as done where a call that was cut off did it. */
int call_release(struct gpuarb *gpuarb, uint64_t id);

/* ---- return.c: a daemon or a bus that went away, and comes back ----------------------- */

/* What became of a call whose first sending failed that way. Starts zeroed. */
struct outage {
	int error; /* 0: there was none */
	char *sentence, *error_name;
	uint64_t since, deadline;
	unsigned cuts;
};
void outage_done(struct outage *outage);

/*
 * What to do after a call ended with r: 1: send it again; they may be back. Else what it is
 * in the end, noted: r itself, the first failure where nobody came back in time, -EINTR.
 */
int outage_wait(struct gpuarb *gpuarb, struct outage *outage, int r);

/* connection_new() after a pause, again and again until there is a bus. -ECONNREFUSED: not
 * by then. */
int return_of_bus(struct gpuarb *gpuarb, uint64_t deadline, struct connection **ret);

/* Sees to it that the daemon's coming and going is told on the connection; whether it is
 * there. */
int return_subscribe(struct gpuarb *gpuarb, struct connection *connection, bool *ret_there);

/* The daemon came (1), went (0), or this tells neither (-1). */
int return_told(DBusMessage *m);

/* ---- read.c: what came, never trusted ------------------------------------------------ */

/*
 * One key of a dictionary and the member that it fills. type: 'b' bool, 'u' uint32_t, 't'
 * uint64_t (from u or t), 's' const char *; 'U' const uint32_t *, 'T' const uint64_t * and 'S'
 * const char *const *, with their number in the member at count_offset; 0: read() does it.
 */
struct field {
	const char *key;
	char type;
	size_t offset, count_offset;
	int (*read)(DBusMessageIter *value, struct arena *arena, void *object);
};

/*
 * Fills object from an a{sv}. Keys without a field are skipped, as newer daemons have
 * more; strings of fields that did not come are "". -EPROTO with *ret_key (if ret_key) set
 * to a key of a wrong type, -ENOMEM.
 */
int read_fields(DBusMessageIter *dict, const struct field *fields, size_t n_fields,
		struct arena *arena, void *object, const char **ret_key);

/* Fills *ret with an array of n objects of size bytes, one for each dictionary of an
 * aa{sv}. */
int read_rows(DBusMessageIter *rows, const struct field *fields, size_t n_fields,
	      struct arena *arena, size_t size, void *ret_array, size_t *ret_n,
	      const char **ret_key);

/* -EPROTO unless it stands on a value of this one complete type. */
int iter_check(DBusMessageIter *iter, const char *signature);
size_t iter_count(const DBusMessageIter *array); /* elements of the array it stands on */

int read_partitions(DBusMessageIter *rows, struct arena *arena, const struct gpuarb_partition **ret,
		    size_t *ret_n, const char **ret_key);
int read_refusals(DBusMessageIter *rows, struct arena *arena, const struct gpuarb_refusal **ret,
		  size_t *ret_n, const char **ret_key);
int read_lease(DBusMessageIter *dict, struct arena *arena, struct gpuarb_lease_info *ret,
	       const char **ret_key);
int read_gpu(DBusMessageIter *dict, struct arena *arena, struct gpuarb_gpu *ret,
	     const char **ret_key);

/* Notes an answer that is not understood, naming the key where there is one. */
int misunderstood(struct gpuarb *gpuarb, const char *what, const char *key);

/* The path of a lease's object, and back. */
struct lease_path {
	char text[64];
};
struct lease_path lease_path(uint64_t id);

/* The number at the end of prefix "/" number. -EPROTO if the path is not like that. */
int path_number(const char *path, const char *prefix, uint64_t *ret);

/* ---- want.c: what is asked ----------------------------------------------------------- */

/* -EINVAL, with the failure noted, unless it is NULL or short UTF-8. */
int check_string(struct gpuarb *gpuarb, const char *what, const char *string);

/* -EINVAL, with the failure noted, unless it is an open file descriptor. */
int check_fd(struct gpuarb *gpuarb, const char *what, int fd);

/* A call with aa{sv} wants and a{sv} options, which have only the keys that differ from
 * their defaults. -EINVAL and -EOPNOTSUPP are noted. */
int request_new(struct gpuarb *gpuarb, const char *path, const char *interface, const char *member,
		const struct gpuarb_want *wants, size_t n, const struct gpuarb_options *options,
		DBusMessage **ret);

/* ---- scan.c -------------------------------------------------------------------------- */

int view_new(struct gpuarb *gpuarb, struct gpuarb_view **ret);

/* The name of the GPU whose object has this number, or NULL. */
const char *view_gpu_name(const struct gpuarb_view *view, uint64_t number);
