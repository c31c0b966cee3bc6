/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/print.h"

#include <fcntl.h>
#include <locale.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

void no_memory(void)
{
	fprintf(stderr, "gpuarbctl: out of memory\n");
	exit(EXIT_FAILURE);
}

/* Length of the printable character at text; 0 for a control character, a byte that is no
 * character in this locale, and a character without width, such as a mark for right-to-left
 * text. */
static size_t printable(const char *text, size_t *ret_columns)
{
	mbstate_t state = { 0 };
	int columns;
	wchar_t c;
	size_t n;

	if (*text >= ' ' && *text <= '~') {
		*ret_columns = 1;
		return 1;
	}
	/* Here, because most output needs no locale, and run has none: loading it takes time. */
	if (strcmp(setlocale(LC_CTYPE, NULL), "C") == 0)
		setlocale(LC_CTYPE, "");
	n = mbrtowc(&c, text, strlen(text), &state);
	if (n == 0 || n >= (size_t)-2) /* end of text, invalid or incomplete character */
		return 0;
	columns = wcwidth(c);
	if (columns <= 0)
		return 0;

	*ret_columns = (size_t)columns;
	return n;
}

char *print_escape(const char *text, size_t columns)
{
	char *escaped = malloc(strlen(text) * 4 + 3), *end = escaped, *cut = escaped;
	size_t used = 0;

	if (!escaped)
		return NULL;

	while (*text) {
		size_t width = 4, n = printable(text, &width);

		if (used + width > columns) {
			strcpy(cut, "..");
			return escaped;
		}
		if (n > 0)
			memcpy(end, text, n);
		else
			sprintf(end, "\\x%02x", (unsigned)(unsigned char)*text);
		end += n > 0 ? n : 4;
		text += n > 0 ? n : 1;
		used += width;
		if (used + 2 <= columns)
			cut = end;
	}
	*end = '\0';
	return escaped;
}

void print_line(FILE *out, const char *format, ...)
{
	char *line = NULL, *escaped;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&line, format, args);
	va_end(args);
	if (n < 0)
		return;

	escaped = print_escape(line, SIZE_MAX);
	fprintf(out, "%s\n", escaped ? escaped : "");
	free(escaped);
	free(line);
}

void print_ranges(const uint32_t *numbers, size_t n, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < n && used < size; i++) {
		size_t first = i;

		while (i + 1 < n && numbers[i + 1] == numbers[i] + 1)
			i++;
		used += (size_t)snprintf(buf + used, size - used, first == i ? "%s%u" : "%s%u-%u",
					 used ? "," : "", numbers[first], numbers[i]);
	}
}

void print_grant(FILE *out, const char *before, const struct gpuarb_partition *partition)
{
	size_t n = partition->n_shader_engines;
	char engines[64], shape[32] = "uneven";

	print_ranges(partition->shader_engines, n, engines, sizeof(engines));
	if (n > 0 && partition->cus % n == 0 && partition->effective_cus == partition->cus)
		snprintf(shape, sizeof(shape), "x%zu", partition->cus / n);

	print_line(out, "%scus: %u asked, %u granted, %u effective (%s SE %s %s)", before,
		   partition->cus_asked, partition->cus, partition->effective_cus, partition->gpu,
		   engines, shape);
}

void print_pause(FILE *out, const char *before, const struct gpuarb_partition *partition)
{
	if (partition->paused)
		print_line(out,
			   "%spaused: its queues wait until no exclusive lease is active on %s",
			   before, partition->gpu);
}

char print_letter(size_t i)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return i < sizeof(letters) - 1 ? letters[i] : '#';
}

void print_bytes(uint64_t bytes, char buf[static PRINT_BYTES])
{
	static const char suffixes[] = "KMGTPE";
	double value = (double)bytes;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(buf, PRINT_BYTES, "%u", (unsigned)bytes);
		return;
	}
	for (value /= 1024; value >= 1024; value /= 1024)
		i++;
	snprintf(buf, PRINT_BYTES, "%.1f%c", value, suffixes[i]);
}

bool print_user(uint32_t uid, char buf[static PRINT_USER])
{
	const struct passwd *user = uid == UINT32_MAX ? NULL : getpwuid(uid);

	if (user)
		snprintf(buf, PRINT_USER, "%s", user->pw_name);
	else if (uid == UINT32_MAX)
		snprintf(buf, PRINT_USER, "?");
	else
		snprintf(buf, PRINT_USER, "%u", uid);
	return user;
}

unsigned print_width(FILE *out)
{
	struct winsize size;

	return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool print_is_screen(FILE *out)
{
	const char *term = getenv("TERM");

	return isatty(fileno(out)) && term && strcmp(term, "dumb") != 0;
}

bool print_may_colour(FILE *out)
{
	const char *no = getenv("NO_COLOR");

	return print_is_screen(out) && !(no && *no);
}

/* ---- the pager ------------------------------------------------------------------------------ */

/* cat replaces a pager that cannot be started. */
static _Noreturn void run_pager(int input)
{
	dup2(input, STDIN_FILENO);
	setenv("LESS", "FRX", 0);
	setenv("LESSSECURE", "1", 1);
	execl("/bin/sh", "sh", "-c", "eval \"${PAGER:-less}\" || cat", (char *)NULL);
	_exit(EXIT_FAILURE);
}

pid_t pager_start(void)
{
	const char *pager = getenv("PAGER");
	int pipe_fds[2];
	pid_t pid;

	if (pager && (!*pager || strcmp(pager, "cat") == 0))
		return 0;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return 0;

	pid = fork();
	if (pid == 0)
		run_pager(pipe_fds[0]);
	if (pid > 0) {
		dup2(pipe_fds[1], STDOUT_FILENO);
		signal(SIGPIPE, SIG_IGN); /* the user may quit the pager early */
	}
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return pid > 0 ? pid : 0;
}

void pager_finish(pid_t pager)
{
	fflush(stdout);
	clearerr(stdout);
	close(STDOUT_FILENO);
	waitpid(pager, NULL, 0);
}
