/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "adapter.h"

#include <signal.h>

#include "check-cond.h"
#include "core/change/arbiter.h"
#include "made-gpus.h"

const char *bus_missing(void)
{
	if (!rig_bus_missing() && geteuid() != 0)
		return "it acts as two users, which takes root";
	return rig_bus_missing();
}

void adapter_carry_out(struct adapter *adapter)
{
	unsigned touched;

	arbiter_lend(adapter->arbiter, 0);
	for (struct lease *l; (l = ledger_take_touched(adapter->arbiter, &touched));) {
		bus_tell_lease(adapter->bus, l, touched);
		if (touched & TOUCH_REMOVED)
			lease_free(l);
	}
}

static bool adapter_late_user(void *userdata, size_t i, struct late_user *ret)
{
	const struct adapter *adapter = userdata;

	if (i < adapter->n_late)
		*ret = adapter->late[i];
	return i < adapter->n_late;
}

static void adapter_refresh(void *userdata, bool decides)
{
	struct adapter *adapter = userdata;

	adapter->refreshed++;
	adapter->decided += decides;
}

static void adapter_describe(void *userdata, pid_t pid, struct caller *caller)
{
	struct adapter *adapter = userdata;

	adapter->described++;
	snprintf(caller->unit, sizeof(caller->unit), "pid-%d.service", pid);
	adapter->caller = *caller;
}

static int adapter_settle(void *userdata, void (*settled)(void *call, int r), void *call)
{
	struct adapter *adapter = userdata;

	if (adapter->settle_fails < 0)
		return adapter->settle_fails;
	if (!adapter->hold) {
		settled(call, 0);
		return 0;
	}
	adapter->settled = settled;
	adapter->call = call;
	return 0;
}

static void adapter_disconnected(void *userdata)
{
	((struct adapter *)userdata)->disconnected = true;
}

static void adapter_named(void *, int r)
{
	CHECK(r == 0);
}

static int adapter_plan(void *userdata, const struct caller *caller, struct request *request,
			struct lease **ret, struct effects *effects, struct result *result)
{
	struct adapter *adapter = userdata;

	return arbiter_plan_effects(adapter->arbiter, caller, request, 0, ret, effects, result);
}

static int adapter_reserve(void *userdata, const struct caller *caller, struct request *request,
			   int process_fd, const struct lease **ret, int *ret_holder,
			   struct result *result)
{
	struct adapter *adapter = userdata;
	struct lease *proposal;
	int fds[2], r;

	adapter->caller = *caller;
	if (adapter->fail < 0)
		return adapter->fail;
	r = arbiter_plan(adapter->arbiter, caller, request, &proposal, result);
	if (r < 0)
		return r;
	CHECK(process_fd < 0 || lseek(process_fd, 0, SEEK_CUR) >= 0 || errno == ESPIPE);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	close(fds[0]);
	*ret_holder = fds[1];
	*ret = arbiter_commit(adapter->arbiter, proposal);
	arbiter_add_holder(adapter->arbiter, (*ret)->id);
	adapter_carry_out(adapter);
	if (adapter->defer)
		ledger_find(adapter->arbiter, (*ret)->id)->state = STATE_ACTIVATING;
	return 0;
}

static int adapter_resize(void *userdata, const struct caller *caller, uint64_t id,
			  const struct request *request, struct result *result)
{
	struct adapter *adapter = userdata;
	struct lease *proposal;
	int r;

	r = arbiter_plan_resize(adapter->arbiter, caller, id, request, &proposal, result);
	if (r < 0)
		return r;
	arbiter_commit(adapter->arbiter, proposal);
	adapter_carry_out(adapter);
	return 0;
}

static int adapter_release(void *userdata, const struct caller *caller, uint64_t id,
			   struct result *result)
{
	struct adapter *adapter = userdata;
	struct lease *lease;
	int r;

	r = ledger_find_owned(adapter->arbiter, caller, id, &lease, result);
	if (r < 0)
		return r;
	arbiter_end(adapter->arbiter, lease, RESULT_OK, "released");
	adapter_carry_out(adapter);
	arbiter_observe(adapter->arbiter, NULL, 0);
	adapter_carry_out(adapter);
	return 0;
}

static void adapter_abandon(void *userdata, uint64_t id)
{
	struct adapter *adapter = userdata;

	adapter->abandoned = id;
}

static int adapter_bind(void *userdata, const struct caller *caller, uint64_t id, int process_fd,
			struct result *result)
{
	struct adapter *adapter = userdata;
	struct lease *lease;

	CHECK(process_fd >= 0);
	return ledger_find_owned(adapter->arbiter, caller, id, &lease, result);
}

static int adapter_cap(void *userdata, const struct caller *caller, uint64_t id, int listener,
		       struct result *result)
{
	struct adapter *adapter = userdata;
	struct lease *lease;

	CHECK(listener >= 0);
	return ledger_find_owned(adapter->arbiter, caller, id, &lease, result);
}

static int adapter_acknowledge(void *userdata, const struct caller *caller, uint64_t id,
			       uint64_t generation, struct result *result)
{
	struct adapter *adapter = userdata;
	struct lease *lease;
	int r;

	r = ledger_find_owned(adapter->arbiter, caller, id, &lease, result);
	return r < 0 ? r : arbiter_acknowledge(adapter->arbiter, id, generation);
}

static int adapter_activate(void *userdata, const struct caller *caller, uint64_t id, bool active,
			    struct result *result)
{
	struct adapter *adapter = userdata;
	struct lease *proposal;
	int r;

	r = arbiter_plan_activate(adapter->arbiter, caller, id, active, &proposal, result);
	if (r >= 0)
		arbiter_commit(adapter->arbiter, proposal);
	adapter_carry_out(adapter);
	return r;
}

static int adapter_revoke(void *userdata, uint64_t id, uint64_t grace_usec, const char *reason,
			  bool kill, struct result *result)
{
	struct adapter *adapter = userdata;
	int r;

	r = arbiter_revoke(adapter->arbiter, id, 0, grace_usec, reason, result);
	if (r >= 0 && kill)
		arbiter_kill_overdue(adapter->arbiter, id);
	adapter_carry_out(adapter);
	return r;
}

static int adapter_drain(void *userdata, const char *gpu, bool drain, struct result *result)
{
	struct adapter *adapter = userdata;

	if (arbiter_drain(adapter->arbiter, gpu, drain) < 0)
		return result_set(result, RESULT_NO_SUCH_GPU, "there is no GPU \"%s\"", gpu);
	bus_tell_gpu(adapter->bus, (unsigned)ledger_find_gpu(adapter->arbiter, gpu),
		     CHANGE_PROPERTIES);
	return 0;
}

static int adapter_reload(void *userdata, struct result *)
{
	struct adapter *adapter = userdata;

	bus_tell_tenants(adapter->bus);
	return 0;
}

static bool adapter_resolve(void *)
{
	return false;
}

static bool adapter_awaits_masks(void *userdata)
{
	const struct adapter *adapter = userdata;

	return adapter->awaits_masks;
}

const struct bus_host adapter_host = {
	.version = "1.2.3",
	.late_user = adapter_late_user,
	.refresh = adapter_refresh,
	.describe = adapter_describe,
	.awaits_masks = adapter_awaits_masks,
	.settle = adapter_settle,
	.plan = adapter_plan,
	.reserve = adapter_reserve,
	.resize = adapter_resize,
	.release = adapter_release,
	.abandon = adapter_abandon,
	.bind = adapter_bind,
	.cap = adapter_cap,
	.acknowledge = adapter_acknowledge,
	.drain = adapter_drain,
	.resolve = adapter_resolve,
	.reload = adapter_reload,
	.activate = adapter_activate,
	.revoke = adapter_revoke,
};

const struct bus_events adapter_events = {
	.disconnected = adapter_disconnected,
	.stalled = adapter_disconnected,
	.named = adapter_named,
};

static struct gpu_info adapter_gpu(const char *name)
{
	struct gpu_info info = radeon_vii(name);

	info.harvest_known = false;
	info.sdma_queues = 4;
	info.sdma_xgmi_queues = 0;
	return info;
}

void adapter_new(struct adapter *ret)
{
	struct gpu_info gpus[] = { adapter_gpu("0000:03:00.0"), adapter_gpu("0000:43:00.0") };
	struct settings *settings;

	*ret = (struct adapter){ 0 };
	rig_new(&ret->rig);
	CHECK(settings_new(&settings) == 0);
	CHECK(arbiter_new(settings, gpus, 2, 1, &ret->arbiter) == 0);
	CHECK(sd_event_new(&ret->event) >= 0);
	CHECK(bus_new(ret->event, ret->rig.address, ret->arbiter, &adapter_host, &adapter_events,
		      ret, &ret->bus) == 0);
	CHECK(bus_own_name(ret->bus) == 0);
}

void adapter_done(struct adapter *adapter)
{
	bus_free(adapter->bus);
	arbiter_free(adapter->arbiter);
	sd_event_unref(adapter->event);
	rig_done(&adapter->rig);
}

sd_bus *adapter_connect(struct adapter *adapter, uid_t uid)
{
	sd_bus *bus = rig_connect(&adapter->rig, uid);

	CHECK(sd_bus_attach_event(bus, adapter->event, 0) >= 0);
	return bus;
}

sd_bus *adapter_begin(struct adapter *ret, uid_t uid)
{
	adapter_new(ret);
	return adapter_connect(ret, uid);
}

void adapter_run(struct adapter *adapter, const bool *until)
{
	AWAIT_LOOP(adapter->event, *until);
}

void adapter_take_calls(struct adapter *adapter)
{
	rig_signal_bus(&adapter->rig, SIGSTOP);
	while (sd_event_run(adapter->event, 0) > 0)
		continue;
	rig_signal_bus(&adapter->rig, SIGCONT);
}

static int answer_take(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct answer *answer = userdata;

	answer->came = true;
	answer->m = sd_bus_message_ref(m);
	sd_bus_message_get_cookie(m, &answer->number);
	return 0;
}

sd_bus_message *call_new(sd_bus *bus, const char *path, const char *interface, const char *member)
{
	sd_bus_message *m;

	CHECK(sd_bus_message_new_method_call(bus, &m, GPUARB_BUS_NAME, path, interface, member) >=
	      0);
	return m;
}

void call_send(sd_bus_message *call, struct answer *answer)
{
	*answer = (struct answer){ 0 };
	CHECK(sd_bus_call_async(NULL, NULL, call, answer_take, answer, 0) >= 0);
	sd_bus_message_unref(call);
}

sd_bus_message *call_run(struct adapter *adapter, sd_bus_message *call)
{
	struct answer answer;

	call_send(call, &answer);
	adapter_run(adapter, &answer.came);
	return answer.m;
}

bool is_error(sd_bus_message *answer, const char *name, const char *says)
{
	const sd_bus_error *error = sd_bus_message_get_error(answer);
	bool ok = error && strcmp(error->name, name) == 0 && strstr(error->message, says);

	if (!ok)
		fprintf(stderr, "%s: %s\n", error ? error->name : "no error",
			error ? error->message : "");
	sd_bus_message_unref(answer);
	return ok;
}

bool is_fine(sd_bus_message *answer)
{
	const sd_bus_error *error = sd_bus_message_get_error(answer);

	if (error)
		fprintf(stderr, "%s: %s\n", error->name, error->message);
	sd_bus_message_unref(answer);
	return !error;
}

sd_bus_message *call_arbiter(sd_bus *bus, const char *member)
{
	return call_new(bus, GPUARB_PATH, GPUARB_INTERFACE, member);
}

sd_bus_message *call_lease(sd_bus *bus, const char *path, const char *member)
{
	return call_new(bus, path, GPUARB_INTERFACE_LEASE, member);
}

sd_bus_message *with(sd_bus_message *m, const char *types, ...)
{
	va_list args;

	va_start(args, types);
	CHECK(sd_bus_message_appendv(m, types, args) >= 0);
	va_end(args);
	return m;
}

static char type_of_key(const char *key)
{
	static const struct {
		char type;
		const char *keys;
	} types[] = {
		{ 's', " gpu isolation class token tenant exclusive name " },
		{ 'u', " cus cus-min cus-max shader-engines queues sdma-queues " },
		{ 't', " vram wait-usec " },
		{ 'b', " exact adaptable start-inactive requeue " },
		{ 'h', " process " },
	};
	char wanted[32];
	size_t i = 0;

	snprintf(wanted, sizeof(wanted), " %s ", key);
	while (!strstr(types[i].keys, wanted))
		CHECK(++i < sizeof(types) / sizeof(types[0]));
	return types[i].type;
}

/* Words KEY=VALUE. */
static void append_words(sd_bus_message *m, char *words)
{
	char *key, *value;

	CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
	while ((value = strsep(&words, " "))) {
		key = strsep(&value, "=");
		if (!value)
			continue; /* between two spaces */
		switch (type_of_key(key)) {
		case 's': with(m, "{sv}", key, "s", value); break;
		case 'u': with(m, "{sv}", key, "u", (unsigned)strtoul(value, NULL, 10)); break;
		case 'b': with(m, "{sv}", key, "b", atoi(value)); break;
		case 'h': with(m, "{sv}", key, "h", atoi(value)); break;
		default:
			with(m, "{sv}", key, "t",
			     strcmp(value, "forever") == 0 ? UINT64_MAX
							   : strtoull(value, NULL, 10));
		}
	}
	CHECK(sd_bus_message_close_container(m) >= 0);
}

static sd_bus_message *append_request(sd_bus_message *m, const char *format, va_list args)
{
	char text[256], *options = text, *wants, *want;

	CHECK((size_t)vsnprintf(text, sizeof(text), format, args) < sizeof(text));
	wants = strsep(&options, ";");
	CHECK(sd_bus_message_open_container(m, 'a', "a{sv}") >= 0);
	while ((want = strsep(&wants, "|")))
		append_words(m, want);
	CHECK(sd_bus_message_close_container(m) >= 0);
	append_words(m, options);
	return m;
}

sd_bus_message *with_request(sd_bus_message *m, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	append_request(m, format, args);
	va_end(args);
	return m;
}

sd_bus_message *ask_for(sd_bus *bus, const char *format, ...)
{
	sd_bus_message *m = call_arbiter(bus, "Reserve");
	va_list args;

	va_start(args, format);
	append_request(m, format, args);
	va_end(args);
	return m;
}

sd_bus_message *drain(sd_bus *bus, const char *gpu)
{
	return with(call_arbiter(bus, "Drain"), "s", gpu);
}

sd_bus_message *ask(sd_bus *bus, const char *member, unsigned cus)
{
	return with(call_arbiter(bus, member), "aa{sv}a{sv}", 1, 2, "gpu", "s", "0", "cus", "u",
		    cus, 1, "name", "s", "n");
}

sd_bus_message *get(sd_bus *bus, const char *path, const char *interface, const char *name)
{
	return with(call_new(bus, path, "org.freedesktop.DBus.Properties", "Get"), "ss", interface,
		    name);
}

void settle(sd_bus *bus)
{
	/* dbus-broker reads the last call and the first of these, and answers. In its next turn it may answer the
	 * second before it passes on that call. */
	for (unsigned i = 0; i < 3; i++)
		CHECK(sd_bus_call_method(bus, "org.freedesktop.DBus", "/", "org.freedesktop.DBus",
					 "GetId", NULL, NULL, "") >= 0);
}
