/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/options/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/mask/codec.h"
#include "core/policy/class.h"
#include "core/policy/request.h"
#include "util/base.h"
#include "util/number.h"
#include "util/text.h"

#define SLOTS_MAX 1024U /* queues, processes or SDMA queues; more than any GPU has */
#define WAIT_MAX_USEC UINT64_C(1000000000000000)
#define GRACE_USEC UINT64_C(10000000) /* of revoke without --grace */

/* ---- numbers ------------------------------------------------------------------------------ */

int number_time(const char *text, uint64_t *ret)
{
	static const struct number_unit units[] = {
		{ "", 1000000 },
		{ "ms", 1000 },
		{ "s", 1000000 },
		{ "min", 60000000 },
		{ "h", UINT64_C(3600000000) },
		{ "d", UINT64_C(86400000000) },
		{ NULL, 0 },
	};

	return number_parse_units(text, units, ret);
}

/* ---- values ------------------------------------------------------------------------------- */

/* The want to which the next option of the command line belongs. */
static struct typed_want *last_want(struct command *command)
{
	return &command->wants[command->n_wants - 1];
}

static void typed_want_init(struct typed_want *typed)
{
	*typed = (struct typed_want){ .want = GPUARB_WANT_INIT };
}

/* Writes "--NAME=VALUE: works" into command->problem. -EINVAL. */
static int option_wrong(struct command *command, const struct option *option, const char *value,
			const char *works)
{
	char shown[81];

	snprintf(command->problem, sizeof(command->problem), "--%s=%s: %s", option->name,
		 text_clean(shown, sizeof(shown), value), works);
	return -EINVAL;
}

/* The field that the option sets, of the want or of the command. */
static void *field_of(struct command *command, const struct option *option)
{
	void *base = option->group == OPTIONS_WANT ? (void *)&last_want(command)->want : command;

	return (char *)base + option->offset;
}

static int take_flag(struct command *command, const struct option *option, const char *value)
{
	(void)value;
	*(bool *)field_of(command, option) = true;
	return 0;
}

static int take_text(struct command *command, const struct option *option, const char *value)
{
	if (!*value)
		return option_wrong(command, option, value, "must not be empty");

	*(const char **)field_of(command, option) = value;
	return 0;
}

/* A name that the daemon takes. */
static int take_name(struct command *command, const struct option *option, const char *value)
{
	if (strlen(value) >= REQUEST_TEXT || !text_printable(value))
		return option_wrong(command, option, value,
				    "must be up to 127 bytes of printable text");
	return take_text(command, option, value);
}

/* A number as the row reads it, of 64 bits, or a plain one of 32. Without a value there is no limit. */
static int take_number(struct command *command, const struct option *option, const char *value)
{
	uint64_t number = GPUARB_FOREVER;
	char works[96];
	int r = 0;

	if (value)
		r = option->read ? option->read(value, &number)
				 : number_parse(value, 0, UINT32_MAX, &number);
	if (r < 0 || (value && (number < option->min || number > option->max))) {
		snprintf(works, sizeof(works), "must be a number from %" PRIu64 " to %" PRIu64,
			 option->min, option->max);
		return option_wrong(command, option, value, option->works ? option->works : works);
	}
	if (option->read)
		*(uint64_t *)field_of(command, option) = number;
	else
		*(uint32_t *)field_of(command, option) = (uint32_t)number;
	return 0;
}

static int take_cus(struct command *command, const struct option *option, const char *value)
{
	struct typed_want *typed = last_want(command);
	unsigned *share = (unsigned *)(void *)((char *)&typed->share + option->share);
	uint64_t count = 0, percent = 0;

	if (number_parse_in(value, "%", 1, 100, &percent) < 0 &&
	    number_parse(value, option->min, option->max, &count) < 0)
		return option_wrong(
			command, option, value,
			"must be a number of CUs from 1 to 1024, or a share from 1% to 100%");

	*share = (unsigned)percent;
	*(uint32_t *)field_of(command, option) = (uint32_t)count;
	return 0;
}

/* The first --gpu belongs to the current want, each further one starts the next want. */
static int take_gpu(struct command *command, const struct option *option, const char *value)
{
	if (!*value)
		return option_wrong(command, option, value,
				    "must be any, all, an index or a PCI address (gpuarbctl gpus)");

	if (last_want(command)->want.gpu) {
		if (command->n_wants == REQUEST_WANTS)
			return option_wrong(command, option, value,
					    "a lease can have at most 64 GPUs");
		typed_want_init(&command->wants[command->n_wants++]);
	}
	last_want(command)->want.gpu = value;
	return 0;
}

static int take_priority(struct command *command, const struct option *option, const char *value)
{
	int priority = priority_from_name(value);

	if (priority < 0)
		return option_wrong(command, option, value,
				    "must be low, normal, high or a number from 0 to 15");

	*(uint32_t *)field_of(command, option) = (uint32_t)priority;
	return 0;
}

/* One of the words of option->values. */
static int take_word(struct command *command, const struct option *option, const char *value)
{
	char works[96];

	for (const char *word = option->values; *word; word += strspn(word, "|")) {
		size_t n = strcspn(word, "|");

		if (strlen(value) == n && strncmp(word, value, n) == 0)
			return take_text(command, option, value);
		word += n;
	}
	snprintf(works, sizeof(works), "must be %s%s", strchr(option->values, '|') ? "one of " : "",
		 option->values);
	return option_wrong(command, option, value, works);
}

static int take_output(struct command *command, const struct option *option, const char *value)
{
	if (strcmp(value, "json") == 0)
		command->json = true;
	else if (strcmp(value, "wide") == 0)
		command->wide = true;
	else
		return option_wrong(command, option, value, "must be one of json, wide");
	return 0;
}

static int take_margin(struct command *command, const struct option *option, const char *value)
{
	uint64_t percent;

	if (number_parse_in(value, "%", 0, option->max, &percent) < 0)
		return option_wrong(command, option, value, "must be a share from 0% to 1000%");

	command->margin_percent = (unsigned)percent;
	command->margin_given = true;
	return 0;
}

/* So long ago, or a day that began at midnight here. */
static int take_since(struct command *command, const struct option *option, const char *value)
{
	struct tm day = { .tm_isdst = -1 };
	const char *end = strptime(value, "%Y-%m-%d", &day);
	uint64_t usec, now = (uint64_t)time(NULL);
	time_t began = end && !*end ? mktime(&day) : -1;

	if (began >= 0)
		command->since = (uint64_t)began;
	else if (number_time(value, &usec) >= 0)
		command->since = usec / 1000000 < now ? now - usec / 1000000 : 0;
	else
		return option_wrong(command, option, value,
				    "must be a time, such as 30min, 12h or 7d, or a day such as "
				    "2026-01-31");
	return 0;
}

/* ---- the table ---------------------------------------------------------------------------- */

#define WANT(field) .group = OPTIONS_WANT, .offset = offsetof(struct gpuarb_want, field)
/* clang-format off */
#define CUS(field)     WANT(field), .take = take_cus, \
		       .share = offsetof(struct share, field), .min = 1, .max = CODEC_BITS
/* clang-format on */
#define COUNT(field) WANT(field), .min = 1, .max = SLOTS_MAX
#define COUNT_0(field) WANT(field), .max = SLOTS_MAX
#define LEASE(field) .group = OPTIONS_LEASE, .offset = offsetof(struct command, options.field)
#define FIELD(g, field) .group = (g), .offset = offsetof(struct command, field)
#define WAIT                                       \
	.read = number_time, .max = WAIT_MAX_USEC, \
	.works =                                   \
		"must be a time, such as 10, 10s, 500ms, 5min or 2h; without a time --wait has no limit"

const struct option option_table[] = {
	{ "gpu", "GPU", "any, all, an index or a PCI address; again: starts the next want",
	  WANT(gpu), .take = take_gpu, .values = "any|all|GPU" },
	{ "cus", "N|N%", "number of compute units, or a share of the GPU", CUS(cus) },
	{ "cus-min", "N|N%", "accept down to N compute units (nine tenths of --cus)",
	  CUS(cus_min) },
	{ "cus-max", "N|N%", "accept up to N compute units; best effort only (--cus)",
	  CUS(cus_max) },
	{ "shader-engines", "N",
	  "N whole shader engines; with --cus: spread the CUs over exactly N", WANT(shader_engines),
	  .min = 1, .max = CUSET_ENGINES },
	{ "exact", NULL, "grant exactly --cus or nothing", WANT(exact) },
	{ "shape", "SHAPE", "rectangle: equal CUs in each shader engine; any (rectangle)",
	  WANT(shape), .values = "rectangle|any" },
	{ "queues", "N", "hardware queues, including the runtime's own (2 per process)",
	  COUNT(queues) },
	{ "streams", "N", "streams that each process masks itself; each takes a queue (0)",
	  COUNT_0(streams) },
	{ "processes", "N", "processes that share the lease (1)", COUNT(processes) },
	{ "sdma-queues", "N", "SDMA queues (0)", COUNT_0(sdma_queues) },
	{ "sdma-xgmi-queues", "N", "SDMA queues for XGMI (0)", COUNT_0(sdma_xgmi_queues) },
	{ "vram", "BYTES", "device memory to be promised, as 512M or 2G (0: none)", WANT(vram),
	  .read = number_parse_bytes, .max = UINT64_MAX,
	  .works = "must be a number of bytes, or a number with K, M, G or T: 512M, 2G" },
	{ "priority", "PRIORITY", "low, normal, high or 0 to 15 (normal)", WANT(priority),
	  .take = take_priority, .values = "low|normal|high" },
	{ "isolation", "HOW", "shader-engine, cu or shared (by class)", WANT(isolation),
	  .values = "shader-engine|cu|shared" },

	{ "class", "CLASS", "realtime, guaranteed or besteffort (as the tenant)",
	  LEASE(lease_class), .values = "realtime|guaranteed|besteffort" },
	{ "tenant", "TENANT", "use this tenant of the policy (the first that matches)",
	  LEASE(tenant), .take = take_name },
	{ "name", "NAME", "name of the lease, shown in lists", LEASE(name), .take = take_name },
	{ "token", "TOKEN", "asking again with the same token returns the same lease", LEASE(token),
	  .take = take_name },
	{ "start-inactive", NULL, "realtime: lend the CUs until the lease is activated",
	  LEASE(start_inactive) },
	{ "alone", "WHEN", "realtime: pause adaptable leases on its GPUs while it is active",
	  LEASE(exclusive), .values = "active" },
	{ "adaptable", NULL, "best effort: grow and shrink with the CUs that are free",
	  LEASE(adaptable) },
	{ "wait", "[=TIME]", "wait until the request fits, for TIME or without limit",
	  LEASE(wait_usec), WAIT },

	{ "duration", "TIME", "end the lease after TIME, with notice (as the tenant)",
	  LEASE(duration_usec), .read = number_time, .min = 1000000, .max = WAIT_MAX_USEC,
	  .works = "must be a time from 1s on, such as 30min, 8h or 7d" },

	{ "requeue", NULL, "wait again if the lease is revoked for a higher class",
	  FIELD(OPTIONS_REQUEUE, options.requeue) },

	{ "fixed", NULL, "keep the granted CUs; the default of run is --adaptable, if possible",
	  FIELD(OPTIONS_RUN, fixed) },
	{ "restart-on-reset", NULL, "start the command again when its GPU was reset",
	  FIELD(OPTIONS_RUN, restart) },
	{ "cap", NULL, "let the kernel refuse queues beyond the grant (as the tenant)",
	  FIELD(OPTIONS_RUN, cap) },
	{ "no-cap", NULL, "do not, although the tenant asks for it", FIELD(OPTIONS_RUN, no_cap) },
	{ "export-dir", NULL, "print the directory that a container mounts to follow a lease",
	  FIELD(OPTIONS_RUN, export_dir) },
	{ "quiet", NULL, "do not print what was granted", FIELD(OPTIONS_RUN, quiet) },
	{ "gpu", "GPU", "a GPU of this machine: its PCI address or index",
	  FIELD(OPTIONS_MODEL | OPTIONS_LATENCY | OPTIONS_CALIBRATE, gpu) },
	{ "profile", "PROFILE", "a GPU model; the GPU need not be in this machine",
	  FIELD(OPTIONS_MODEL, profile) },
	{ "profiles", "DIR", "directory of the profiles",
	  FIELD(OPTIONS_MODEL | OPTIONS_CONFIG, profiles) },
	{ "templates", "DIR", "config init: directory of the policies",
	  FIELD(OPTIONS_CONFIG, templates) },
	{ "into", "DIR", "config init: directory to write to (/etc/gpuarb/tenants.d)",
	  FIELD(OPTIONS_CONFIG, into) },
	{ "into", "DIR", "directory of the CDI device (/run/cdi)", FIELD(OPTIONS_CDI, into) },
	{ "config", "FILE", "read the share from this gpuarbd.conf (the machine's)",
	  FIELD(OPTIONS_CDI, config) },
	{ "yes", NULL, "config init, revoke: without a question",
	  FIELD(OPTIONS_CONFIG | OPTIONS_REVOKE, yes) },
	{ "user", "USER", "config explain, plan: this user (you)",
	  FIELD(OPTIONS_CONFIG | OPTIONS_PLAN, filter.user) },
	{ "group", "GROUP[,GROUP]",
	  "config explain, plan: as a member of these groups (those of the user)",
	  FIELD(OPTIONS_CONFIG | OPTIONS_PLAN, groups) },
	{ "svg", "FILE", "write a drawing to this file; - is standard output",
	  FIELD(OPTIONS_SVG, svg) },

	{ "wait", "[=TIME]", "wait for the borrowers, for TIME or without limit",
	  FIELD(OPTIONS_ACTIVATE, options.wait_usec), WAIT },
	{ "grace", "TIME", "time for the holder to finish (10s)", FIELD(OPTIONS_REVOKE, grace_usec),
	  .read = number_time, .max = REVOKE_GRACE_MAX_USEC,
	  .works = "must be a time up to 24h, such as 10, 10s, 500ms or 5min" },
	{ "user", "USER", "all leases of this user", FIELD(OPTIONS_REVOKE, filter.user) },
	{ "tenant", "TENANT", "all leases of this tenant", FIELD(OPTIONS_REVOKE, filter.tenant) },
	{ "gpu", "GPU", "all leases that have a part of this GPU",
	  FIELD(OPTIONS_REVOKE, filter.gpu) },
	{ "all", NULL, "all leases", FIELD(OPTIONS_REVOKE, all) },
	{ "now", NULL, "without a grace; kill programs that use a GPU",
	  FIELD(OPTIONS_REVOKE, now) },
	{ "reason", "TEXT", "text that the holder receives", FIELD(OPTIONS_REVOKE, reason) },

	{ "margin", "N%", "added to execution times; overrides the margin of the file",
	  .group = OPTIONS_RT, .take = take_margin, .max = 1000 },
	{ "config", "FILE", "read defaults from this gpuarbd.conf (with --gpu: the machine's)",
	  FIELD(OPTIONS_RT, config) },
	{ "runs", "N", "measure: how often the command runs on each partition (3)",
	  FIELD(OPTIONS_RT, runs), .min = 1, .max = 1000 },
	{ "sizes", "N[,N...]", "measure: partitions of so many whole shader engines (all)",
	  FIELD(OPTIONS_RT, sizes) },
	{ "beside", "COMMAND",
	  "measure: what runs on the other shader engines (the command itself)",
	  FIELD(OPTIONS_RT, beside), .take = take_name },
	{ "beside-on", "WHERE",
	  "measure: it has other engines, CUs of the same engines (shared), or all CUs (engines)",
	  FIELD(OPTIONS_RT, beside_on), .values = "engines|shared|all" },

	{ "quick", NULL, "measure masks only, and no neighbours", FIELD(OPTIONS_CALIBRATE, quick) },
	{ "shared", NULL, "measure beside other leases and processes, too",
	  FIELD(OPTIONS_CALIBRATE, shared) },
	{ "oversubscribe", NULL, "measure more queues than the GPU has slots, too",
	  FIELD(OPTIONS_CALIBRATE, oversubscribe) },
	{ "emulated", NULL, "accept an emulated GPU", FIELD(OPTIONS_CALIBRATE, emulated) },
	{ "paper", "DIR", "repeat the measurements of a paper, into this directory",
	  FIELD(OPTIONS_CALIBRATE, paper) },
	{ "seed", "N", "--paper: the order of its cases (drawn)", FIELD(OPTIONS_CALIBRATE, seed),
	  .min = 1, .max = UINT32_MAX },
	{ "html", "FILE", "write a page with plots", FIELD(OPTIONS_CALIBRATE, html) },
	{ "submit-file", "FILE", "write what can be attached to an issue",
	  FIELD(OPTIONS_CALIBRATE, submit_file) },
	{ "probe", NULL, "run a kernel under the lease, and compare its CUs",
	  FIELD(OPTIONS_VERIFY, probe) },
	{ "compare-and-swap", NULL, "read and write flags by compare-and-swap",
	  FIELD(OPTIONS_LATENCY, compare_and_swap) },
	{ "same-line", NULL, "put both flags into one cache line",
	  FIELD(OPTIONS_LATENCY, same_line) },

	{ "user", "USER", "only of this user", FIELD(OPTIONS_LIST | OPTIONS_USAGE, filter.user) },
	{ "tenant", "TENANT", "only of this tenant",
	  FIELD(OPTIONS_LIST | OPTIONS_USAGE, filter.tenant) },
	{ "gpu", "GPU", "only this GPU, and leases that have a part of it",
	  FIELD(OPTIONS_LIST, filter.gpu) },
	{ "state", "STATE", "only leases in this state", FIELD(OPTIONS_LIST, filter.state),
	  .values = "waiting|granted|paused|inactive|activating|revoking|ending" },
	{ "columns", "NAMES", "only these columns, in this order: id,state,age",
	  FIELD(OPTIONS_LIST | OPTIONS_USAGE, columns) },
	{ "since", "TIME", "only what ended after: 12h, 7d, or 2026-01-31 (all)",
	  FIELD(OPTIONS_USAGE, since), .take = take_since },
	{ "limits", NULL, "show the limits of users, and what each has of them",
	  FIELD(OPTIONS_LIMITS, limits) },
	{ "watch", NULL, "print again after each change, until interrupted (-w)",
	  FIELD(OPTIONS_LIST, watch) },
	{ "time", NULL, "print the time before each change", FIELD(OPTIONS_MONITOR, time) },

	{ "report", NULL, "print JSON for a report of a problem, without names",
	  FIELD(OPTIONS_DOCTOR, report) },

	{ "output", "FORMAT", "json, or wide: all columns (-o FORMAT)", .group = OPTIONS_GENERAL,
	  .take = take_output, .values = "json|wide" },
	{ "json", NULL, "print JSON instead of text", FIELD(OPTIONS_GENERAL, json) },
	{ "no-legend", NULL, "print no headings and no explanations",
	  FIELD(OPTIONS_GENERAL, no_legend) },
	{ "no-pager", NULL, "do not start a pager for long output",
	  FIELD(OPTIONS_GENERAL, no_pager) },
	{ "help", NULL, "print this help", FIELD(OPTIONS_GENERAL, help) },
	{ "version", NULL, "print the version", FIELD(OPTIONS_GENERAL, version) },
};

const size_t option_count = ARRAY_SIZE(option_table);
_Static_assert(ARRAY_SIZE(option_table) <= OPTION_MAX, "unknown() has room for all names");

/* ---- reading ------------------------------------------------------------------------------ */

void command_init(struct command *command)
{
	*command = (struct command){
		.verb = "",
		.grace_usec = GRACE_USEC,
		.n_wants = 1,
		.options = GPUARB_OPTIONS_INIT,
	};
	typed_want_init(&command->wants[0]);
}

const struct option *option_find(unsigned groups, const char *name)
{
	size_t n = strcspn(name, "=");

	for (size_t i = 0; i < option_count; i++) {
		if ((option_table[i].group & groups) && strlen(option_table[i].name) == n &&
		    strncmp(option_table[i].name, name, n) == 0)
			return &option_table[i];
	}
	return NULL;
}

static int unknown(struct command *command, unsigned groups, const char *word)
{
	const char *names[OPTION_MAX + 1], *nearest = NULL, *word_name;
	char name[32];
	size_t n = 0;

	for (size_t i = 0; i < option_count; i++) {
		if (option_table[i].group & groups)
			names[n++] = option_table[i].name;
	}
	names[n] = NULL;

	word_name = word + 1 + (word[1] == '-');
	if (strcspn(word_name, "=") > 1) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(word_name, "="), word_name);
		nearest = text_nearest(name, names);
	}
	snprintf(command->problem, sizeof(command->problem), "unknown option '%.80s'%s%s%s", word,
		 nearest ? "; did you mean --" : "; see --help", nearest ? nearest : "",
		 nearest ? "?" : "");
	return -EINVAL;
}

/*
 * Whether the word after an option whose value may be left out is its value: "--wait 10 -- COMMAND".
 * After activate without a lease, the number is the lease.
 */
static bool is_value(const struct option *option, const char *word, size_t words_before)
{
	uint64_t usec;

	if (option->group == OPTIONS_ACTIVATE && words_before == 0)
		return false;
	return number_time(word, &usec) != -EINVAL;
}

/* The option that "-w", or "-ojson" with its value attached, stands for; any other word itself. */
static const char *long_name(const char *word, const char **ret_attached)
{
	static const char *const names[][2] = {
		{ "-h", "--help" },
		{ "-o", "--output" },
		{ "-V", "--version" },
		{ "-w", "--watch" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strncmp(word, names[i][0], 2) != 0 || (word[2] && word[1] != 'o'))
			continue;
		*ret_attached = word[2] ? word + 2 : NULL;
		return names[i][1];
	}
	return word;
}

/* How a value is read: as the row says; else by what it has for it, a flag, a range, words or text. */
static typeof(((struct option *)NULL)->take) take_of(const struct option *option)
{
	return option->take        ? option->take
	       : !option->argument ? take_flag
	       : option->max > 0   ? take_number
	       : option->values    ? take_word
				   : take_text;
}

/* Takes argv[*i] and, where its value is a word of its own, the next. words_before: the words
 * before it that are no options. */
static int take_option(struct command *command, unsigned groups, int argc, char **argv, int *i,
		       size_t words_before)
{
	const char *attached = NULL, *word = long_name(argv[*i], &attached), *value;
	const struct option *option = strncmp(word, "--", 2) == 0 ? option_find(groups, word + 2)
								  : NULL;
	int r;

	if (!option)
		return unknown(command, groups, argv[*i]);

	value = strchr(word, '=');
	value = value ? value + 1 : attached;
	if (value && !option->argument)
		return option_wrong(command, option, value, "this option takes no value");

	if (!value && option->argument && !option_value_optional(option)) {
		if (*i + 1 == argc || strcmp(argv[*i + 1], "--") == 0) {
			snprintf(command->problem, sizeof(command->problem),
				 "option --%s needs a value: --%s=%s", option->name, option->name,
				 option->argument);
			return -EINVAL;
		}
		value = argv[++*i];
	} else if (!value && option->argument && *i + 1 < argc &&
		   is_value(option, argv[*i + 1], words_before)) {
		value = argv[++*i];
	}

	r = take_of(option)(command, option, value);
	if (r >= 0 && option->group == OPTIONS_WANT) /* the first rows: fewer than bits */
		last_want(command)->given |= UINT64_C(1) << (option - option_table);
	return r;
}

int options_parse(struct command *command, unsigned groups, bool stops, int argc, char **argv)
{
	size_t n = 0;
	int i, r;

	for (i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		/* "-" alone is a word. */
		if (argv[i][0] != '-' || !argv[i][1]) {
			if (stops)
				break;
			argv[n++] = argv[i];
			continue;
		}
		r = take_option(command, groups, argc, argv, &i, n);
		if (r < 0)
			return r;
	}
	while (i < argc)
		argv[n++] = argv[i++];

	if ((int)n < argc)
		argv[n] = NULL;
	command->rest = argv;
	command->n_rest = n;
	return 0;
}

bool option_given(const struct typed_want *typed, const char *name)
{
	const struct option *option = option_find(OPTIONS_WANT, name);

	return option && (typed->given & UINT64_C(1) << (option - option_table));
}

bool option_describe(unsigned groups, size_t i, char *buf, size_t size, const char **ret_help)
{
	for (size_t row = 0; row < option_count; row++) {
		const struct option *option = &option_table[row];

		if (!(option->group & groups) || i-- > 0)
			continue;

		snprintf(buf, size, "--%s%s%s", option->name,
			 option->argument && !option_value_optional(option) ? "=" : "",
			 option->argument ? option->argument : "");
		*ret_help = option->help;
		return true;
	}
	return false;
}
