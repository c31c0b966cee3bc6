#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs each command that README.md and the manual pages show, and compares its output.

    test-docs.py [--rewrite] [FILE...]

Environment: GPUARBD, GPUARBCTL and FAKE_SYSFS are the programs, GPUARB_AGENT_DIR is the directory
of gpuarb-agent and its library, GPUARB_SOURCE_ROOT is the source tree, GPUARB_CC is the compiler with options, GPUARB_PKG_CONFIG is the directory of gpuarb.pc.
--rewrite replaces the outputs that differ in the files: read the diff before committing it.

The commands of a manual page are those that the page shows after scdoc and groff: a backslash that is
not doubled in the source is not there.

An example is a fenced block whose first line begins with "$ ". A line "$ COMMAND" is followed by
the output that a terminal shows (stdout and stderr). A command that ends with "&" stays until the
end of its section. "^C" sends SIGINT to the command. A line "..." stands for any lines. A fenced
block that begins with [tenant, [gpu or [daemon is configuration: it replaces the tenants, or
gpuarbd.conf, of the section and is put into force.

Each section of a manual page starts with a new gpuarbd on a private bus. README.md has one
environment and starts its own bus and daemon, as its reader does. A comment changes the machine
from there on ("; example: WORD" in a page, "<!-- example: WORD -->" in README.md):

    simulate=PROFILE,...    gpuarbd --simulate=...
    sysfs=PROFILE           gpuarbd on a machine with such a GPU, which KFD knows
    file=NAME               the next C program of the section is the file NAME
    oversubscribed          a V620 on which three processes without a lease use 15 queues
    nothing                 no bus and no daemon
    end                     leaves the environment; README.md returns to its own
"""

import contextlib
import difflib
import os
import pwd
import queue
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Set, TextIO, Tuple

SOURCE = Path(os.environ['GPUARB_SOURCE_ROOT'])
# For anything that has to happen: the one limit of all tests.
SECONDS = float(re.findall(r'#define AWAIT_LIMIT_SEC (\d+)',
                           (SOURCE / 'tests/rigs/await.h').read_text())[0])
SECONDS *= float(os.environ.get('GPUARB_PATIENCE', '1'))
USERS = ('alice', 'bob')  # in the texts, for the user who runs the test

# Commands that are shown and cannot run here. A row that no text needs fails the test.
NOT_RUN = {
    r'sudo ': 'changes the machine',
    r'dpkg-buildpackage': 'takes minutes; the test system builds and installs the packages',
    r'systemctl |systemd-analyze |journalctl': 'needs the installed service',
    r'tests/demo$': 'the test demo runs it',
    r'tests/run$': 'runs this test',
    r'podman ': 'needs an image; the test oci starts containers',
    r'srun |sbatch ': 'needs a cluster; the test slurm has one',
    r'meson setup ': 'the build that this test belongs to has done it',
    r'python3 follow-lease': 'the test record runs it',
    r'gpuarbctl slots': 'needs a GPU; the test stack-slots runs it on an emulated one',
    r'gpuarbctl latency': 'needs a GPU; the test latency runs it on an emulated one',
    r'gpuarbctl rt measure': 'needs a GPU; the test rt-measure runs it on an emulated one',
    r'gpuarbctl rt monitor': 'runs until it is stopped; the test ctl-rt runs it',
    r'gpuarbctl calibrate': 'needs a GPU; the test calibrate runs it on a modelled one',
}

CONFIGURATION = re.compile(r'\[(tenant|daemon|gpu)\b')

complaints: List[str] = []
rules_used: Set[str] = set()


def complain(where: str, text: str) -> None:
    complaints.append(f'{where}: {text}')


def not_run(command: str) -> Optional[str]:
    for pattern, reason in NOT_RUN.items():
        if re.match(pattern, command):
            rules_used.add(pattern)
            return reason
    return None


# ---- the texts ---------------------------------------------------------------------------------


def rendered(path: Path, text: List[str]) -> List[str]:
    """The text of a manual page with each fenced block as man shows it."""
    fences = [n for n, line in enumerate(text) if line.startswith('```')]
    marked = list(text)
    for n in reversed(fences):
        marked.insert(n + (fences.index(n) % 2 == 0), '@@')
    page = '\n'.join(marked).encode()
    for command in ([str(SOURCE / 'docs/make-page'), 'scdoc'],
                    ['groff', '-Kutf8', '-t', '-man', '-Tutf8', '-P-cbou']):
        page = subprocess.run(command, input=page, stdout=subprocess.PIPE, check=True).stdout
    shown = page.decode().split('\n')
    marks = [n for n, line in enumerate(shown) if line.strip() == '@@']
    result = list(text)
    for begin, end, first, last in zip(fences[::2], fences[1::2], marks[::2], marks[1::2]):
        indent = shown[first].index('@@')
        block = [line[indent:] for line in shown[first + 1:last]]
        if len(block) != end - begin - 1:
            complain(f'{path.name}:{begin + 1}', 'the page shows another number of lines')
            continue
        for n, line in enumerate(block, begin + 1):
            if line.split() != text[n].replace('\\\\', '\\').split():
                complain(f'{path.name}:{n + 1}', f'the page shows {line.strip()}: double each backslash')
        result[begin + 1:end] = block
    if len(marks) != len(fences):
        complain(path.name, 'the page does not show each block')
    return result


@dataclass
class Block:
    line: int  # of its first line, from 0
    lines: List[str]


@dataclass
class Step:
    """A block, or the word of an example comment, or the start of a section."""
    block: Optional[Block] = None
    word: str = ''
    section: str = ''


def steps_of(text: List[str], manual: bool) -> List[Step]:
    steps: List[Step] = []
    block: Optional[Block] = None
    for n, line in enumerate(text):
        if line.startswith('```'):
            if block:
                steps.append(Step(block=block))
                block = None
            else:
                block = Block(n + 1, [])
        elif block:
            block.lines.append(line)
        elif manual and line.startswith('# '):
            steps.append(Step(section=line[2:]))
        else:
            comment = re.match(r'; example: (.*)$' if manual else r'<!-- example: (.*) -->$', line)
            if comment:
                steps.append(Step(word=comment.group(1)))
    return steps


@dataclass
class Example:
    command: str
    line: int
    output_at: int  # where its output begins, and
    output: List[str] = field(default_factory=list)

    @property
    def stays(self) -> bool:
        return self.command.endswith('&')


def examples_of(block: Block) -> List[Example]:
    examples: List[Example] = []
    continued = False
    for n, line in enumerate(block.lines, block.line):
        if continued:
            examples[-1].command += '\n' + line
            examples[-1].output_at = n + 1
        elif line.startswith('$ '):
            examples.append(Example(line[2:], n, n + 1))
        else:
            examples[-1].output.append(line)
            continue
        document = re.search(r"<<'?(\w+)'?$", examples[-1].command.split('\n')[0])
        continued = line.endswith(('\\', '|')) or bool(document and line != document.group(1))
    return examples


# ---- the environment ---------------------------------------------------------------------------


class Process:
    """A command, its lines of output as they come."""

    def __init__(self, command: str, directory: Path, env: Dict[str, str]) -> None:
        self.popen = subprocess.Popen(['bash', '-c', command], cwd=directory, env=env, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, start_new_session=True)
        self.lines: 'queue.Queue[Optional[str]]' = queue.Queue()
        threading.Thread(target=self._read, args=(self.popen.stdout,), daemon=True).start()

    def _read(self, stream: TextIO) -> None:
        for line in stream:
            self.lines.put(line.rstrip('\n'))
        self.lines.put(None)

    def next_line(self, seconds: float) -> Optional[str]:
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            return None
        if line is None:
            self.lines.put(None)
        return line

    def interrupt(self, number: int = signal.SIGINT) -> None:
        try:
            os.killpg(self.popen.pid, number)
        except ProcessLookupError:
            pass


class Environment:
    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix='gpuarb-docs.'))
        self.dir = self.top / 'tmp'
        self.staying: List[Process] = []
        self.own: List['subprocess.Popen[str]'] = []
        programs = self.top / 'bin'
        for directory in (self.dir / 'run', self.dir / 'tenants.d', programs, self.top / 'work'):
            directory.mkdir(parents=True)
        for name in ('gpuarbctl', 'gpuarbd'):
            (programs / name).symlink_to(os.environ[name.upper()])
        for name in ('train', 'serve', 'robot', 'compositor', 'solve', 'speech'):
            program = self.top / 'work' / name
            program.write_text('#!/bin/sh\n[ -z "$STAY" ] || exec sleep 600\n')
            program.chmod(0o755)
        compiler = programs / 'cc'
        # The compiler may be named cc itself: it is looked for where this script is not.
        path = shlex.quote(os.environ['PATH'])
        compiler.write_text(f'#!/bin/sh\nPATH={path} exec {os.environ["GPUARB_CC"]} "$@"\n')
        compiler.chmod(0o755)
        for name in ('conf', 'docs'):
            (self.top / 'work' / name).symlink_to(SOURCE / name)
        shutil.copy(SOURCE / 'docs/examples/taskset.ini', self.top / 'work')
        (self.top / 'work/build/libgpuarb').mkdir(parents=True)
        (self.top / 'work/build/libgpuarb/agent').symlink_to(os.environ['GPUARB_AGENT_DIR'])
        (self.dir / 'gpuarbd.conf').write_text('[daemon]\n')
        (self.dir / 'run/next-id').write_text('17\n')
        package = Path(os.environ['GPUARB_PKG_CONFIG'])
        self.env = dict(os.environ, PATH=f'{programs}:{os.environ["PATH"]}', NO_COLOR='1',
                        PROFILES=str(SOURCE / 'conf/gpus'), COLUMNS='200', LC_ALL='C.UTF-8',
                        PKG_CONFIG_PATH=str(package),
                        LD_LIBRARY_PATH=str(package.parent / 'libgpuarb'),
                        RUNTIME_DIRECTORY=str(self.dir / 'run'))
        # USER is not set for root in a container.
        for name in ('GPUARB_BUS_ADDRESS', 'NOTIFY_SOCKET', 'HSA_CU_MASK', 'ROC_GLOBAL_CU_MASK', 'USER'):
            self.env.pop(name, None)

    def start_bus(self) -> None:
        config = self.top / 'bus.conf'
        config.write_text(f'''<busconfig><listen>unix:path={self.dir}/bus</listen>
            <auth>EXTERNAL</auth><policy context="default"><allow user="*"/><allow own="*"/>
            <allow send_destination="*"/><allow eavesdrop="true"/></policy></busconfig>''')
        subprocess.run(['dbus-daemon', f'--config-file={config}', '--fork'], check=True)
        self.env['GPUARB_BUS_ADDRESS'] = f'unix:path={self.dir}/bus'

    def start_daemon(self, *options: str) -> None:
        self.start_bus()
        command = ' '.join(['exec gpuarbd', f'--profiles={SOURCE}/conf/gpus',
                            f'--config={self.dir}/gpuarbd.conf', f'--tenants={self.dir}/tenants.d',
                            *options])
        watch = self.watch_name()
        self.staying.append(Process(command + ' 2>/dev/null', self.top, self.env))
        self.await_name(watch)

    def watch_name(self) -> 'subprocess.Popen[str]':
        watch = subprocess.Popen(['dbus-monitor', '--address', self.env['GPUARB_BUS_ADDRESS'],
                                  "type='signal',member='NameOwnerChanged',"
                                  "arg0='org.gpuarb.Arbiter1'"], stdout=subprocess.PIPE, text=True)
        assert watch.stdout
        watch.stdout.readline()  # it has connected and listens
        return watch

    @staticmethod
    def await_name(watch: 'subprocess.Popen[str]') -> None:
        timer = threading.Timer(SECONDS, watch.kill)
        timer.start()
        assert watch.stdout
        if not any('member=NameOwnerChanged' in line for line in watch.stdout):
            raise SystemExit('gpuarbd does not take its name')
        timer.cancel()
        watch.kill()
        watch.wait()

    def make_sysfs(self, profile: str) -> Tuple[Path, str]:
        """A sysfs with one GPU. Returns it with the KFD id of the GPU."""
        tree = self.top / 'sys'
        tree.mkdir()
        made = subprocess.run([os.environ['FAKE_SYSFS'], tree, SOURCE / 'conf/gpus', profile],
                              check=True, stdout=subprocess.PIPE, text=True)
        return tree, made.stdout.split()[1]

    def oversubscribed(self) -> None:
        """A V620 with 8 queue slots and three processes of 5 queues each."""
        tree, gpu = self.make_sysfs('v620')
        programs = []
        for n, name in enumerate(('python3', 'llama-server', 'llama-server')):
            program = self.top / str(n) / name
            program.parent.mkdir()
            shutil.copy(shutil.which('sleep') or '/bin/sleep', program)
            programs.append(program)
        # gpuarbctl sorts by pid, and pids start again at a low number now and then.
        pids: List[int] = []
        while not pids or pids != sorted(pids):
            started = [subprocess.Popen([program, '600'], text=True) for program in programs]
            self.own += started
            pids = [process.pid for process in started]
        for pid in pids:
            subprocess.run([os.environ['FAKE_SYSFS'], tree, '--process', str(pid), gpu, '5'],
                           check=True)
        self.start_daemon(f'--sysfs={tree}')

    def configure(self, lines: List[str]) -> str:
        """Puts configuration into force. Returns what is wrong with it."""
        text = []
        for line in lines:
            user = re.match(r'match-(user|group) *=', line)
            if user:
                number = os.getuid() if user.group(1) == 'user' else os.getgid()
                line = f'match-{user.group(1)} = {number}'
            # The commands of the test are in no such unit, slice or directory.
            if not re.match(r'match-(unit|slice|executable) *=', line):
                text.append(line)
        tenant = any(line.startswith('[tenant') for line in lines)
        (self.dir / ('tenants.d/10-example.conf' if tenant else 'gpuarbd.conf')).write_text(
            '\n'.join(text) + '\n')
        done = subprocess.run(['gpuarbctl', 'reload'], env=self.env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return '' if done.returncode == 0 else done.stdout

    def pids(self) -> Set[str]:
        """The processes of this environment."""
        parents: Dict[int, int] = {}
        for stat in Path('/proc').glob('[0-9]*/stat'):
            try:
                fields = stat.read_text(errors='replace').rsplit(')', 1)[1].split()
                parents[int(stat.parent.name)] = int(fields[1])
            except OSError:
                pass
        found = {os.getpid()}
        while True:
            more = {pid for pid, parent in parents.items() if parent in found} - found
            if not more:
                return {str(pid) for pid in found}
            found |= more

    def real(self, command: str) -> str:
        return (command.replace('/tmp/gpuarb', str(self.dir)).replace('/etc/gpuarb', str(self.dir))
                .replace('--profile=', '--profiles="$PROFILES" --profile=')
                .replace('--simulate=', '--profiles="$PROFILES" --simulate='))

    def run(self, example: Example) -> Tuple[List[str], bool]:
        """Returns the lines that it printed, and whether it ended, or stays as it should."""
        command = self.real(example.command)
        if example.stays:
            watch = self.watch_name() if 'gpuarbd ' in command else None
            process = Process(command.rstrip('& '), self.top / 'work', dict(self.env, STAY='1'))
            self.staying.append(process)
            if watch:
                self.await_name(watch)
            return self.some(process, len(example.output)), True
        keep = self.top / 'env'
        process = Process(f'trap \'env -0 >{keep}\' EXIT; {command}', self.top / 'work', self.env)
        lines: List[str] = []
        if '^C' in example.output:
            lines = self.some(process, example.output.index('^C'))
            process.interrupt()
            lines.append('^C')
        end = time.monotonic() + SECONDS
        while True:
            line = process.next_line(max(end - time.monotonic(), 0.01))
            if line is None:
                break
            lines.append(line)
        try:
            process.popen.wait(timeout=max(end - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            process.interrupt(signal.SIGKILL)
            return lines, False
        if keep.exists():
            items = keep.read_text().split('\0')
            self.env = dict(item.split('=', 1) for item in items if '=' in item)
        return lines, True

    @staticmethod
    def some(process: Process, n: int) -> List[str]:
        lines: List[str] = []
        while len(lines) < n:
            line = process.next_line(SECONDS)
            if line is None:
                break
            lines.append(line)
        return lines

    def later(self, wanted: int) -> List[str]:
        """Lines of the commands that stay, which the last command has caused."""
        lines: List[str] = []
        end = time.monotonic() + SECONDS
        while len(lines) < wanted and time.monotonic() < end:
            for process in self.staying:
                line = process.next_line(0.02)
                if line is not None:
                    lines.append(line)
        return lines

    def done(self) -> None:
        for process in reversed(self.staying):
            process.interrupt(signal.SIGTERM)
        for process in self.staying:
            process.popen.wait()
        for popen in self.own:
            popen.kill()
            popen.wait()
        self.end_left_over()
        shutil.rmtree(self.top)

    def end_left_over(self) -> None:
        """Ends the processes that know this directory, so that none of them writes there again."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + SECONDS
            while pidfds := self.left_over():
                for pidfd in pidfds:
                    with contextlib.suppress(ProcessLookupError):  # It has just ended.
                        signal.pidfd_send_signal(pidfd, number)
                for pidfd in pidfds:
                    select.select([pidfd], [], [], max(end - time.monotonic(), 0))
                    os.close(pidfd)
                if time.monotonic() > end:
                    break

    def left_over(self) -> List[int]:
        """Pidfds of the processes whose command line or environment names this directory."""
        pidfds = []
        for directory in Path('/proc').glob('[0-9]*'):
            try:
                pidfd = os.pidfd_open(int(directory.name))
            except OSError:
                continue
            try:
                known = (directory / 'cmdline').read_bytes() + (directory / 'environ').read_bytes()
            except OSError:  # It has ended.
                known = b''
            # A process that has ended and was not waited for yet has an empty environment.
            if str(self.top).encode() in known:
                pidfds.append(pidfd)
            else:
                os.close(pidfd)
        return pidfds


# ---- comparing ---------------------------------------------------------------------------------


def masked(lines: List[str], environment: Environment, shown: bool) -> List[str]:
    """The lines with times, pids, users and paths of the test replaced."""
    pids = set() if shown else environment.pids()
    result = []
    table = False
    for line in lines:
        if not shown:
            line = line.replace(str(environment.dir), '/tmp/gpuarb')
        line = re.sub(r'\bin \d+ (ms|s|min|h)\b', 'in TIME', line)
        line = re.sub(r'(?<![=\w.])\d+(s|min|h|d)\b', 'AGE', line)
        line = re.sub(r'\bpid \d+', 'pid PID', line)
        line = re.sub(r'\buid \d+', 'uid UID', line)
        line = re.sub(r'\b\d{4,7} \((?=[a-z])', 'PID (', line)
        for user in USERS if shown else (os.environ.get('USER', ''), environment_user()):
            if user:
                line = re.sub(rf'\b{re.escape(user)}\b', 'USER', line)
        words = line.split()
        table = (table or 'PID' in words) and bool(words)
        words = ['PID' if word in pids or shown and table and re.fullmatch(r'\d{4,5}', word)
                 else word for word in words]
        result.append(' '.join(words))
    return result


def environment_user() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


def agree(shown: List[str], printed: List[str]) -> bool:
    """Whether the lines are the same; "..." alone stands for any number of lines."""
    if not shown:
        return not printed
    if shown[0] in ('...', '…'):
        return any(agree(shown[1:], printed[n:]) for n in range(len(printed) + 1))
    if not printed:
        return False
    first = shown[0]
    return printed[0] == first and agree(shown[1:], printed[1:])


def named(line: str, environment: Environment) -> str:
    """A line as the texts show it."""
    line = line.replace(str(environment.dir), '/tmp/gpuarb')
    line = re.sub(r'\buid \d+', 'uid 1000', line)
    return re.sub(rf'(?<![/\w]){re.escape(environment_user())}(?=[ ,]|$)', USERS[0], line)


def judge(path: Path, example: Example, environment: Environment,
          edits: List[Tuple[int, int, List[str]]]) -> None:
    where = f'{path.name}:{example.line + 1}'
    lines, ended = environment.run(example)
    if not ended:
        complain(where, f'$ {example.command}: does not end')
        return
    shown = masked(example.output, environment, True)
    missing = len(shown) - len(lines)
    if missing > 0 and not example.stays and '…' not in shown and '...' not in shown:
        lines += environment.later(missing)
    if agree(shown, masked(lines, environment, False)):
        return
    actual = [named(line, environment) for line in lines]
    edits.append((example.output_at, len(example.output), actual))
    difference = difflib.unified_diff(example.output, actual, 'shown', 'printed', lineterm='', n=1)
    complain(where, f'$ {example.command}\n' + '\n'.join('    ' + line for line in difference))


# ---- files -------------------------------------------------------------------------------------


def check_block(path: Path, block: Block) -> None:
    """A command without its prompt would not be run."""
    for n, line in enumerate(block.lines, block.line + 1):
        if re.match(r'(gpuarb(ctl|d)|sudo|systemctl|journalctl|meson|ninja|export|tests/)', line):
            complain(f'{path.name}:{n}', f'a command without "$ " before it: {line}')


class Run:
    """The examples of one file. The environment is the one of the present section."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manual = path.suffix == '.scd'
        self.edits: List[Tuple[int, int, List[str]]] = []
        self.own = None if self.manual else Environment()
        self.environment = self.own
        self.program = ''
        self.n = 0

    def leave(self) -> None:
        if self.environment and self.environment is not self.own:
            self.environment.done()
        self.environment = self.own

    def enter(self, word: str) -> None:
        """Changes the machine as an example comment says."""
        name, _, value = word.partition('=')
        if name == 'file':
            self.program = value
            return
        self.leave()
        if word == 'end':
            return
        self.environment = Environment()
        if name == 'simulate':
            self.environment.start_daemon(f'--simulate={value}')
        elif name == 'sysfs':
            tree, _ = self.environment.make_sysfs(value)
            self.environment.start_daemon(f'--sysfs={tree}')
        elif word == 'oversubscribed':
            self.environment.oversubscribed()
        elif word != 'nothing':
            complain(self.path.name, f'unknown example comment: {word}')

    def need(self) -> Environment:
        if not self.environment:
            self.environment = Environment()
            self.environment.start_daemon('--simulate=radeon-vii')
        return self.environment

    def block(self, block: Block) -> None:
        first = block.lines[0]
        if CONFIGURATION.match(first):
            wrong = self.need().configure(block.lines)
            if wrong:
                complain(f'{self.path.name}:{block.line + 1}', wrong)
        elif first.startswith('$ '):
            for example in examples_of(block):
                if not_run(example.command) is None:
                    judge(self.path, example, self.need(), self.edits)
                    self.n += 1
        elif first.startswith('#include') and self.program:
            (self.need().top / 'work' / self.program).write_text('\n'.join(block.lines) + '\n')
        else:
            check_block(self.path, block)

    def done(self) -> None:
        self.leave()
        if self.own:
            self.own.done()


def run_file(path: Path, rewrite: bool) -> int:
    text = path.read_text().split('\n')
    run = Run(path)
    try:
        for n, line in enumerate(text, 1):
            if run.manual and re.match(r'\t\$ ', line):
                complain(f'{path.name}:{n}', 'an example outside of a fenced block')
        shown = rendered(path, text) if run.manual else text
        for step in steps_of(shown, run.manual):
            if step.section:
                run.leave()
            elif step.word:
                run.enter(step.word)
            elif step.block and step.block.lines:
                run.block(step.block)
    finally:
        run.done()
    if rewrite and run.edits:
        for at, length, lines in reversed(run.edits):
            text[at:at + length] = [line.replace('\\', '\\\\') if run.manual else line for line in lines]
        path.write_text('\n'.join(text))
    return run.n


def differences_are_found() -> bool:
    """Whether a wrong output, a missing prompt, a wrong configuration, a backslash that the page does not
    show and what it changes are five complaints."""
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory) / 'page.1.scd'
        page.write_text('page(1)\n\n# EXAMPLES\n\n```\n$ echo one\ntwo\n$ echo three\nthree\n```\n\n'
                        '```\ngpuarbctl list\n```\n\n```\n[tenant a]\nclas = realtime\n```\n\n'
                        '```\n$ printf \'%s\\n\' four\nfour\n$ printf \'%s\\\\n\' five\nfive\n```\n')
        run_file(page, False)
    found = len(complaints)
    complaints.clear()
    return found == 5


def main() -> int:
    arguments = sys.argv[1:]
    rewrite = '--rewrite' in arguments
    files = [Path(name) for name in arguments if name != '--rewrite']
    for command in ('dbus-daemon', 'dbus-monitor', 'groff', 'jq', 'scdoc'):
        if not shutil.which(command):
            print(f'skipped: no {command}')
            return 77
    if 'GPUARB_BUS' in os.environ:
        print('skipped: README.md shows dbus-daemon, not another bus')
        return 77
    whole = not files
    if whole:
        if not differences_are_found():
            complain('test-docs.py', 'it does not find wrong examples')
        files = [SOURCE / 'README.md', *sorted((SOURCE / 'docs').glob('*.scd'))]
    n = sum(run_file(path, rewrite) for path in files)
    if whole:
        for pattern in NOT_RUN:
            if pattern not in rules_used:
                complain('test-docs.py', f'no text shows a command like {pattern}')
        if n < 30:
            complain('test-docs.py', f'only {n} commands were found')
    print('\n'.join(complaints) or f'{n} commands print what the texts show')
    return 1 if complaints else 0


if __name__ == '__main__':
    sys.exit(main())
