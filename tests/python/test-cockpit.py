#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page for Cockpit in a real browser: Chromium, cockpit-ws and cockpit-bridge of Debian on
loopback, with gpuarbd and simulated GPUs on a private bus. GPUARBCTL is the command line."""

import contextlib
import importlib
import json
import math
import os
import subprocess
import sys
import unittest
from typing import Any, Callable, Dict, List

import browser
import rig

import gpuarb

GPUS = 'radeon-vii,v620,mi300x-spx,strix-halo'
TENANTS = rig.TENANTS + '''
[tenant *]
class = besteffort
'''


CELLS = '''return [...document.querySelectorAll('[data-gpu]')].map(card => ({
    gpu: card.dataset.gpu,
    engines: [...card.querySelectorAll('.engine-box')].map(box => ({
        label: box.dataset.engine,
        cus: [...box.querySelectorAll('rect')].map(r => [
            Number(r.getAttribute('y')) / 16, Number(r.getAttribute('x')) / 16,
            r.dataset.lease ? Number(r.dataset.lease) : null])}))}))'''


class Page(rig.MachineTest):
    simulate = GPUS
    tenants = TENANTS
    cockpit: browser.Cockpit
    browser: Any

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.cockpit = browser.Cockpit(cls.machine.address)
        cls.addClassCleanup(cls.cockpit.close)
        cls.browser = browser.start_browser()
        cls.addClassCleanup(cls.browser.quit)
        browser.open_page(cls.browser, cls.cockpit)

    def setUp(self) -> None:
        self.wait_for(lambda: len(self.all('[data-gpu]')) == len(GPUS.split(',')))

    def tearDown(self) -> None:
        errors = [line for line in self.browser.get_log('browser') if line['level'] == 'SEVERE']
        self.assertEqual(errors, [])

    def all(self, selector: str) -> List[Any]:
        found: List[Any] = self.browser.find_elements('css selector', selector)
        return found

    def text(self, selector: str) -> str:
        """The text of all elements, as a person reads it."""
        text: str = self.script(
            'return [...document.querySelectorAll(arguments[0])].map(e => e.innerText).join("\\n")',
            selector)
        return text

    def script(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """The browser has no event for what a page shows: it is asked until then."""
        wait = importlib.import_module('selenium.webdriver.support.wait')
        wait.WebDriverWait(self.browser, rig.SECONDS, 0.05).until(lambda _: condition())

    def wait_for_text(self, selector: str, text: str) -> None:
        try:
            self.wait_for(lambda: text in self.text(selector))
        except Exception:
            raise AssertionError(f'no {text!r} in {self.text(selector)!r}') from None

    def click(self, selector: str) -> None:
        self.script('document.querySelector(arguments[0]).click()', selector)

    def ask(self, **fields: Any) -> None:
        """Sends the form for plans."""
        self.script('''const form = document.getElementById('plan');
            form.reset();
            for (const [name, value] of Object.entries(arguments[0])) {
                const field = form.elements[name];
                if (field.type === 'checkbox') field.checked = value; else field.value = value;
            }
            form.requestSubmit();''', fields)

    def map_of_gpuarbctl(self) -> Dict[str, Dict[str, List[List[Any]]]]:
        """The CUs of each engine, by GPU: array, number in the array, lease."""
        done = subprocess.run([os.environ['GPUARBCTL'], 'map', '--json'], check=True,
                              capture_output=True, timeout=rig.SECONDS)
        maps: Dict[str, Dict[str, List[List[Any]]]] = {}
        for gpu in json.loads(done.stdout):
            engines = maps.setdefault(gpu['gpu'], {})
            several = any(row['xcc'] > 0 for row in gpu['rows'])
            for row in gpu['rows']:
                label = f'SE {row["shader_engine"]}'
                if several:
                    label = f'XCC {row["xcc"]} {label}'
                engines.setdefault(label, []).extend(
                    [row['shader_array'], cu, lease] for cu, lease in enumerate(row['leases']))
        return maps

    def map_of_page(self) -> Dict[str, Dict[str, List[List[Any]]]]:
        return {card['gpu']: {engine['label']: sorted(engine['cus'], key=lambda cu: cu[:2])
                              for engine in card['engines']} for card in self.script(CELLS)}

    def test_the_map_of_each_gpu_is_that_of_gpuarbctl(self) -> None:
        with gpuarb.reserve(cus=20, gpu=0, class_='besteffort', name='one'), \
                gpuarb.reserve(cus=14, gpu=1), gpuarb.reserve(cus=72, gpu=2), \
                gpuarb.reserve(cus=10, gpu=3) as last:
            self.wait_for_text('#leases', str(last.id))
            self.wait_for(lambda: self.map_of_page() == self.map_of_gpuarbctl())
            self.assertEqual(len(self.all('.legend')), 4)
        self.wait_for_text('#leases', 'There are no leases.')

    def test_names_are_text_and_leases_come_and_go(self) -> None:
        name = '<img src=x onerror=alert(1)>\u202egnp'
        with gpuarb.reserve(cus=20, gpu=0, name=name):
            self.wait_for_text('#leases td[data-label=Name]',
                               '<img src=x onerror=alert(1)>\ufffdgnp')
            self.assertEqual(self.all('main img'), [])
            self.assertIn('GPU 0: 20 CUs', self.text('#leases td[data-label=Has]'))
        self.wait_for_text('#leases', 'There are no leases.')

    def test_a_waiting_lease_shows_its_place_and_why(self) -> None:
        with gpuarb.reserve(cus=40, gpu=0) as held, gpuarb.Arbiter() as arbiter, \
                arbiter.reserve_start(cus=60, gpu=0, wait=600, name='big'):
            self.wait_for_text('#waiting td[data-label="Waits for"]', f'held by lease {held.id}')
            self.assertEqual(self.text('#waiting td[data-label=Name]'), 'big')
        self.wait_for(lambda: not self.all('#waiting-section')[0].is_displayed())

    def test_a_lease_that_waits_without_limit_says_so(self) -> None:
        with gpuarb.reserve(cus=40, gpu=0), gpuarb.Arbiter() as arbiter, \
                arbiter.reserve_start(cus=60, gpu=0, wait=math.inf):
            self.wait_for_text('#waiting td[data-label=Until]', 'no limit')
        self.wait_for_text('#leases', 'There are no leases.')

    def test_a_button_that_is_pressed_stays_when_the_page_changes(self) -> None:
        chains = importlib.import_module('selenium.webdriver.common.action_chains')
        with gpuarb.reserve(cus=20, gpu=0) as lease:
            selector = f'[data-key="revoke {lease.id}"]'
            self.wait_for(lambda: bool(self.all(selector)))
            button = self.all(selector)[0]
            chains.ActionChains(self.browser).click_and_hold(button).perform()
            with gpuarb.reserve(cus=10, gpu=1) as other:
                self.wait_for(lambda: bool(self.all(f'[data-key="revoke {other.id}"]')))
                chains.ActionChains(self.browser).release(button).perform()
                self.wait_for_text('#question', f'Revoke lease {lease.id}')
            self.click('#question button[type=button]')
        self.wait_for_text('#leases', 'There are no leases.')

    def test_slots_are_drawn_by_pipe(self) -> None:
        drawn = self.browser.execute_async_script('''const done = arguments[0];
            const free = {xcc: 0, pipe: 0, queue: 1, active: false};
            const used = {xcc: 0, pipe: 0, queue: 0, active: true, lease: 7, command: '<b>'};
            import('./slots.js').then(({drawSlots}) => {
                const drawn = drawSlots({slots: [used, free, {...free, pipe: 1}],
                    facts: {queues: 1, 'without-slot': 0}}, [{Id: 7, Tenant: 'lab'}], ['lab']);
                done([...drawn.querySelectorAll('tr')].map(row =>
                    [...row.children].map(cell => [cell.className, cell.textContent])));
            }).catch(error => done(String(error)))''')
        self.assertEqual(drawn, [
            [['', 'XCC 0, pipe 0'], ['slot tenant-0', '<b>, lease 7'], ['slot free', 'free']],
            [['', 'XCC 0, pipe 1'], ['slot free', 'free']]])

    def test_a_plan_explains_a_refusal_and_offers_what_fits(self) -> None:
        with gpuarb.reserve(cus=40, gpu=0) as held:
            self.ask(cus=50, gpu='0000:03:00.0', **{'class': 'guaranteed'})
            self.wait_for_text('#answer', 'This is refused now.')
            self.assertIn(f'lease {held.id}', self.text('#answer'))
            self.wait_for(lambda: bool(self.all('#answer button.secondary')))
            self.click('#answer button.secondary')
            self.wait_for_text('#answer', 'This fits now.')
            self.assertIn('gpuarbctl run --gpu=0000:03:00.0 --class=guaranteed --cus=20 --queues=2',
                          self.text('#answer code'))
        self.ask(cus=999)
        self.wait_for_text('#answer', 'refused')

    def test_an_administrator_drains_revokes_and_reloads(self) -> None:
        self.click('[data-gpu="0000:03:00.0"] .card-head button')
        self.wait_for_text('#question', 'Drain')
        self.click('#question button[type=submit]')
        self.wait_for_text('[data-gpu="0000:03:00.0"] .badges', 'draining')
        self.click('[data-gpu="0000:03:00.0"] .card-head button')
        self.wait_for(lambda: 'draining' not in self.text('[data-gpu="0000:03:00.0"] .badges'))
        lease = gpuarb.reserve(cus=20, gpu=0)
        self.wait_for_text('#leases', str(lease.id))
        self.click(f'[data-key="revoke {lease.id}"]')
        self.script('''const form = document.querySelector('#question form');
            form.elements.reason.value = 'maintenance'; form.elements.grace.value = 0;
            form.requestSubmit();''')
        self.wait_for_text('#told', 'is revoked')
        self.wait_for_text('#leases', 'There are no leases.')
        lease.close()
        policy = self.machine.folder / 'tenants.d/90-wrong.conf'
        policy.write_text('[tenant x]\nmatch-user = root\nnonsense = 1\n')
        try:
            self.click('#reload')
            self.wait_for_text('#told', "unknown key 'nonsense'")
        finally:
            policy.unlink()
        self.click('#reload')
        self.wait_for_text('#told', 'was read again')

    def test_slots_of_a_simulated_gpu_cannot_be_read(self) -> None:
        self.click('[data-gpu="0000:03:00.0"] summary')
        self.wait_for_text('[data-gpu="0000:03:00.0"] details', 'simulated')

    def test_the_page_waits_for_the_daemon(self) -> None:
        self.machine.stop()
        self.wait_for_text('#problem', 'gpuarbd')
        self.assertFalse(self.all('#content')[0].is_displayed())
        self.machine.start()
        self.wait_for(lambda: bool(self.all('#content')[0].is_displayed()))
        self.wait_for(lambda: not self.all('#problem')[0].is_displayed())

    def test_many_leases_are_paged_and_filtered(self) -> None:
        with contextlib.ExitStack() as stack, gpuarb.Arbiter() as arbiter:
            stack.enter_context(gpuarb.reserve(cus=60, gpu=0))
            for i in range(300):
                stack.enter_context(arbiter.reserve_start(cus=60, gpu=0, wait=600, name=f'job{i}'))
            self.wait_for_text('#waiting', 'and 250 more')
            self.assertEqual(len(self.all('#waiting tbody tr')), 50)
            self.script('''const filter = document.getElementById('filter');
                filter.value = 'job277'; filter.dispatchEvent(new Event('input'));''')
            self.wait_for(lambda: self.text('#waiting td[data-label=Name]') == 'job277')
            self.script('''const filter = document.getElementById('filter');
                filter.value = ''; filter.dispatchEvent(new Event('input'));''')
        self.wait_for_text('#leases', 'There are no leases.')

    def test_every_control_has_a_name_and_the_keyboard_reaches_it(self) -> None:
        unnamed = self.script('''const all = 'button, input, select, svg, [role=meter]';
            const named = e => e.getAttribute('aria-label') || e.textContent.trim() ||
                e.labels?.length;
            return [...document.querySelectorAll(all)].filter(e => !named(e)).map(e => e.outerHTML)
            ''')
        self.assertEqual(unnamed, [])
        with gpuarb.reserve(cus=20, gpu=0) as lease:
            self.wait_for(lambda: bool(self.all('.legend')))
            self.script('document.getElementById("reload").focus()')
            while not self.all('.legend:focus'):
                self.browser.switch_to.active_element.send_keys('\ue004')  # Tab
            self.wait_for(lambda: bool(self.all('.map.highlighting .highlighted')))
            with gpuarb.reserve(cus=10, gpu=1):  # the page draws itself again
                self.wait_for(lambda: len(self.all('.legend')) == 2)
            self.assertIn(str(lease.id), self.script('return document.activeElement.dataset.key'))
            self.assertTrue(self.all('.map.highlighting .highlighted'))
        self.wait_for_text('#leases', 'There are no leases.')

    def test_what_an_older_daemon_does_not_say_is_left_out(self) -> None:
        drawn = self.browser.execute_async_script('''const done = arguments[0];
            Promise.all(['arbiter', 'map'].map(name => import(`./${name}.js`)))
                .then(([arbiter, map]) => {
                    const gpu = arbiter.gpuOf({Xccs: {t: 'u', v: 1}, Name: {t: 's', v: 'x'}});
                    const lease = arbiter.leaseOf({Id: {t: 't', v: 7}, State: {t: 's', v: 'new'}});
                    const held = map.leasesOn([lease], 'x');
                    done([map.drawMap(gpu, held, []).outerHTML, lease.Drift, held, gpu.Name]);
                }).catch(error => done(String(error)))''')
        self.assertEqual(drawn, ['<div class="map"></div>', [], [], 'x'])

    def test_a_phone_and_the_dark(self) -> None:
        light = self.script('return getComputedStyle(document.body).backgroundColor')
        self.script("dispatchEvent(new CustomEvent('cockpit-style', {detail: {style: 'dark'}}))")
        self.wait_for(lambda: bool(
            self.script('return getComputedStyle(document.body).backgroundColor') != light))
        self.script("dispatchEvent(new CustomEvent('cockpit-style', {detail: {style: 'light'}}))")
        self.browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
            'width': 360, 'height': 700, 'deviceScaleFactor': 1, 'mobile': True})
        with gpuarb.reserve(cus=20, gpu=0, name='x' * 60):
            self.wait_for(lambda: bool(self.all('.legend')))
            wide = self.script('return document.documentElement.scrollWidth')
        self.browser.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})
        self.assertEqual(wide, 360)


if __name__ == '__main__':
    lacks = browser.missing()
    if lacks:
        print(f'skipped: no {lacks}')
        sys.exit(77)
    unittest.main()
