# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs and functions inside leases."""

import functools
import os
import subprocess
from typing import (Any, Callable, Concatenate, Mapping, Optional, ParamSpec, Sequence, TypeVar,
                    Union)

from .arbiter import reserve
from .lease import Lease
from .request import Request

P = ParamSpec('P')
T = TypeVar('T')

Command = Union[str, 'os.PathLike[str]', Sequence[Union[str, 'os.PathLike[str]']]]


def popen(command: Command, lease: Lease, env: Optional[Mapping[str, str]] = None,
          **options: Any) -> 'subprocess.Popen[Any]':
    """Starts a program inside a lease: subprocess.Popen() with the environment of the lease. The
    program keeps the lease alive, also when this process closes it. env and options are those of
    subprocess.Popen()."""
    process = subprocess.Popen(command, env=lease.environment(env), **options)
    try:
        lease.bind(process.pid)
    except BaseException:
        if process.poll() is None:
            process.kill()
            process.wait()
            raise
    return process


def run(command: Command, lease: Union[Lease, Request], *, input: Any = None,
        capture_output: bool = False, timeout: Optional[float] = None, check: bool = False,
        **options: Any) -> 'subprocess.CompletedProcess[Any]':
    """subprocess.run() inside a lease. For a Request, the lease ends with the program.

        gpuarb.run(['./train'], gpuarb.request(cus='50%', wait=60), check=True)
    """
    if isinstance(lease, Request):
        with reserve(lease) as held:
            return run(command, held, input=input, capture_output=capture_output, timeout=timeout,
                       check=check, **options)
    if input is not None:
        options['stdin'] = subprocess.PIPE
    if capture_output:
        options.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with popen(command, lease, **options) as process:
        try:
            output, errors = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done: 'subprocess.CompletedProcess[Any]' = subprocess.CompletedProcess(
        process.args, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done


def leased(asked: Request, this_process: bool = False) -> Callable[
        [Callable[Concatenate[Lease, P], T]], Callable[P, T]]:
    """Runs a function inside a lease, which it receives as its first argument:

        @gpuarb.leased(gpuarb.request(cus='25%', wait=60), this_process=True)
        def main(lease, path):
            import torch

    this_process: applies the lease to this process, whose GPU runtime must not have started."""
    def decorate(function: Callable[Concatenate[Lease, P], T]) -> Callable[P, T]:
        @functools.wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
            with reserve(asked) as lease:
                if not this_process:
                    return function(lease, *args, **kwargs)
                with lease.in_this_process():
                    return function(lease, *args, **kwargs)
        return wrapped
    return decorate
