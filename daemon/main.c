/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarbd: options, --check, signals and the event loop. */

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "daemon.h"
#include "observe/observe.h"
#include "protocol/protocol.h"

#define EXIT_USAGE 2
#define EXIT_CONFIGURATION 6

struct command_line {
	struct daemon_options options;
	bool check;
	bool done; /* --help or --version was printed */
};

static void print_help(void)
{
	puts("gpuarbd [OPTION...]\n\n"
	     "Grants leases on parts of AMD GPUs to processes. systemd starts it; see gpuarbd(8).\n\n"
	     "  --config=FILE       read FILE instead of gpuarbd.conf\n"
	     "  --tenants=DIR       read DIR/*.conf instead of tenants.d/*.conf\n"
	     "  --simulate=PROFILE[,PROFILE...]\n"
	     "                      simulate one GPU of each PROFILE\n"
	     "  --profiles=DIR      read profiles in DIR (" GPUARB_PROFILE_DIR ")\n"
	     "  --sysfs=DIR         read DIR instead of /sys\n"
	     "  --debugfs=DIR       read DIR instead of /sys/kernel/debug\n"
	     "  --harvest=DIR       read which CUs work from DIR (" HARVEST_DIR ")\n"
	     "  --budget=SOCKET     ask gpuarb-budget at SOCKET (" BUDGET_SOCKET ")\n"
	     "  --enforce=SOCKET    ask gpuarb-enforce at SOCKET (" ENFORCE_SOCKET ")\n"
	     "  --fdinfo=SOCKET     ask gpuarb-fdinfo at SOCKET (" FDINFO_SOCKET ")\n"
	     "  --probe=SOCKET      ask gpuarb-probe at SOCKET (" DRIVER_PROBE_SOCKET ")\n"
	     "  --check             check the configuration and list the GPUs, then exit\n"
	     "  --version           print the version, then exit\n"
	     "  --help              print this text, then exit\n\n"
	     "Environment: RUNTIME_DIRECTORY (" GPUARB_RUNTIME_DIR "), STATE_DIRECTORY (none),\n"
	     "GPUARB_BUS_ADDRESS (the system bus), NOTIFY_SOCKET, WATCHDOG_USEC.");
}

static int take_option(struct command_line *line, int option, const char *value)
{
	switch (option) {
	case 'c': line->options.files.config = value; return 0;
	case 't': line->options.files.tenants = value; return 0;
	case 's': line->options.simulate = value; return 0;
	case 'p': line->options.profiles = value; return 0;
	case 'y': line->options.sysfs = value; return 0;
	case 'd': line->options.debugfs = value; return 0;
	case 'm': line->options.harvest = value; return 0;
	case 'q': line->options.budget = value; return 0;
	case 'e': line->options.enforce = value; return 0;
	case 'f': line->options.fdinfo = value; return 0;
	case 'b': line->options.probe = value; return 0;
	case 'k': line->check = true; return 0;
	case 'v': puts("gpuarbd " GPUARB_VERSION); break;
	case 'h': print_help(); break;
	default: return -EINVAL; /* getopt_long() has printed why */
	}
	line->done = true;
	return 0;
}

static int parse(int argc, char *argv[], struct command_line *line)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "tenants", required_argument, NULL, 't' },
		{ "simulate", required_argument, NULL, 's' },
		{ "profiles", required_argument, NULL, 'p' },
		{ "sysfs", required_argument, NULL, 'y' },
		{ "debugfs", required_argument, NULL, 'd' },
		{ "harvest", required_argument, NULL, 'm' },
		{ "budget", required_argument, NULL, 'q' },
		{ "enforce", required_argument, NULL, 'e' },
		{ "fdinfo", required_argument, NULL, 'f' },
		{ "probe", required_argument, NULL, 'b' },
		{ "check", no_argument, NULL, 'k' },
		{ "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option, r = 0;

	while (r >= 0 && !line->done &&
	       (option = getopt_long(argc, argv, "h", options, NULL)) != -1)
		r = take_option(line, option, optarg);
	if (r < 0 || line->done)
		return r;
	if (optind < argc) {
		fprintf(stderr, "gpuarbd: unexpected argument \"%s\": see --help\n", argv[optind]);
		return -EINVAL;
	}
	if (line->options.simulate && line->options.sysfs) {
		fprintf(stderr,
			"gpuarbd: --simulate and --sysfs exclude each other: give one of them\n");
		return -EINVAL;
	}
	return 0;
}

static const char *environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && value[0] ? value : otherwise;
}

static int check(const struct daemon_options *options)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	_cleanup_(freep) struct gpu_info *gpus = calloc(REQUEST_WANTS, sizeof(*gpus));
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	_cleanup_(hw_closep) struct hw *hw = NULL;
	int n;

	if (!gpus)
		return EXIT_FAILURE;
	n = config_load(&options->files, &settings, &diagnostics);
	if (n > 0)
		diagnostics_add(&diagnostics, false, CONFIG_NONE);
	if (n >= 0)
		n = scan_find_gpus(options, settings, &hw, gpus, REQUEST_WANTS, &diagnostics);
	for (size_t i = 0; i < diagnostics.n; i++)
		fprintf(stderr, "%s%s\n",
			diagnostics.list[i].error ? "" : "note: ", diagnostics.list[i].text);
	if (n < 0) {
		if (!diagnostics_have_errors(&diagnostics))
			fprintf(stderr, "gpuarbd: %s\n", strerror(-n));
		return EXIT_CONFIGURATION;
	}
	printf("configuration is good: %zu tenant%s, %d GPU%s (%s)\n", settings->n_tenants,
	       settings->n_tenants == 1 ? "" : "s", n, n == 1 ? "" : "s", hw_name(hw));
	return EXIT_SUCCESS;
}

static int on_hangup(sd_event_source *, const struct signalfd_siginfo *, void *userdata)
{
	resolve_hangup(userdata);
	return 0;
}

static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	return signal(SIGPIPE, SIG_IGN) == SIG_ERR ? -errno : 0;
}

static int run(const struct daemon_options *options)
{
	_cleanup_(sd_event_unrefp) sd_event *event = NULL;
	_cleanup_(daemon_freep) struct daemon *daemon = NULL;
	int r;

	r = block_signals();
	if (r >= 0)
		r = sd_event_default(&event);
	if (r >= 0)
		r = daemon_new(options, event, &daemon);
	if (r < 0)
		return r;

	/* A NULL handler ends the loop with 0. */
	if (sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL) < 0 ||
	    sd_event_add_signal(event, NULL, SIGINT, NULL, NULL) < 0 ||
	    sd_event_add_signal(event, NULL, SIGHUP, on_hangup, daemon) < 0 ||
	    sd_event_set_watchdog(event, true) < 0)
		return -EIO;

	sd_notify(false, "READY=1");
	r = sd_event_loop(event);
	sd_notify(false, "STOPPING=1");
	return r;
}

int main(int argc, char *argv[])
{
	struct command_line line = { 0 };
	int r;

	line.options.files.trust = (struct trust){ { trust_service(), geteuid() } };
	line.options.harvest = HARVEST_DIR;
	line.options.budget = BUDGET_SOCKET;
	line.options.enforce = ENFORCE_SOCKET;
	line.options.fdinfo = FDINFO_SOCKET;
	line.options.probe = DRIVER_PROBE_SOCKET;
	line.options.profiles = GPUARB_PROFILE_DIR;
	line.options.runtime_directory = environment("RUNTIME_DIRECTORY", GPUARB_RUNTIME_DIR);
	line.options.state_directory = environment("STATE_DIRECTORY", NULL);
	line.options.bus_address = environment("GPUARB_BUS_ADDRESS", NULL);

	r = parse(argc, argv, &line);
	if (r < 0)
		return EXIT_USAGE;
	if (line.done)
		return EXIT_SUCCESS;
	if (line.check)
		return check(&line.options);

	r = run(&line.options);
	if (r == -EINVAL || r == -EEXIST || r == -EBUSY) /* the reason was logged */
		log_error("gpuarbd failed: see the message before");
	else if (r < 0)
		log_error("gpuarbd failed: %s", strerror(-r));
	if (r == -EINVAL)
		return EXIT_CONFIGURATION;
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
