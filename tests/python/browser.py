# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cockpit and a browser for its page of gpuarb: Chromium, cockpit-ws and cockpit-bridge of Debian,
on loopback."""

import contextlib
import importlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import rig

WS = Path('/usr/lib/cockpit/cockpit-ws')


def missing() -> str:
    """What the test needs and this machine does not have."""
    programs = [name for name in ('chromium', 'chromedriver', 'cockpit-bridge')
                if not shutil.which(name)]
    if not WS.exists():
        programs.append('cockpit-ws')
    try:
        importlib.import_module('selenium.webdriver')
    except ImportError:
        programs.append('python3-selenium')
    return ', '.join(programs)


def free_port() -> int:
    with socket.create_server(('127.0.0.1', 0)) as server:
        port: int = server.getsockname()[1]
        return port


class Cockpit:
    """cockpit-ws with one session that needs no password, and the page in its folder."""

    def __init__(self, address: str) -> None:
        self.data = Path(tempfile.mkdtemp(prefix='gpuarb-cockpit-'))
        page = self.data / 'cockpit/gpuarb'
        shutil.copytree(rig.SOURCE / 'client/cockpit', page)
        # Cockpit shows the page where gpuarb is installed: here it need not be.
        manifest = json.loads((page / 'manifest.json').read_text())
        del manifest['conditions']
        (page / 'manifest.json').write_text(json.dumps(manifest))
        port = free_port()
        self.url = f'http://127.0.0.1:{port}/cockpit/@localhost/gpuarb/index.html'
        self.process = subprocess.Popen(
            [WS, '--no-tls', '--address=127.0.0.1', f'--port={port}',
             '--local-session=cockpit-bridge'],
            env={**os.environ, 'DBUS_SYSTEM_BUS_ADDRESS': address,
                 'XDG_DATA_DIRS': f'{self.data}:/usr/local/share:/usr/share'},
            stderr=subprocess.DEVNULL, start_new_session=True)

    def close(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(rig.SECONDS)
        shutil.rmtree(self.data)


def start_browser() -> Any:
    webdriver = importlib.import_module('selenium.webdriver')
    service = importlib.import_module('selenium.webdriver.chrome.service')
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which('chromium')
    for option in ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
                   '--window-size=1280,1200'):
        options.add_argument(option)
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
    return webdriver.Chrome(service=service.Service(shutil.which('chromedriver')), options=options)


def open_page(browser: Any, cockpit: Cockpit) -> None:
    """Opens the page; cockpit-ws may have to start first."""
    end = time.monotonic() + rig.SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(Exception):
            browser.get(cockpit.url)
            if browser.title == 'GPUs':
                return
    raise AssertionError(f'no page at {cockpit.url}')
