#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts the checks that quote a sentence of the product, outside of the tests whose subject is the
wording; fails when there are more than LIMIT.

	check-prose.py SOURCE LIMIT [--list]

A check compares a structured value: an error name, errno, a key, a field of JSON, an exit status. Where
it looks into a message, it looks for the object and the value that the message is about: a path and line,
a key, a GPU, a number. So a message can be worded better without a change of tests.

A check quotes a sentence when a string in it has two words in a row that a string of the product has in a
row too, of which one at least is no function word. A word is made of lower-case letters; the first one
may be a capital; names of programs are no words. A check is a CHECK() in C; in a shell script it is
err_has, out_has, err_lacks, out_lacks, has, told or grep -q. Strings that start with a blank or hold a
line break are files that a test writes, or reads back, and do not count.
"""

import os
import re
import sys

# The subject of these tests is the wording.
WORDING = {
	'test-hint.c', 'test-refusal.c', 'test-lease-text.c', 'test-print.c', 'test-priority-text.c',
}
PRODUCT = ['daemon', 'client', 'libgpuarb']
TESTS = ['unit', 'daemon', 'lib', 'cli', 'kfdsim', 'scenes', 'system', 'rigs']

WORD = r"(?<![\w./=%$'-])[A-Za-z]?[a-z]+(?:'[a-z]+)?(?=[\s,;:.!?]|$)"
PAIR = re.compile(r'(?=(%s)[,;:]? (%s))' % (WORD, WORD))
FUNCTION_WORDS = set("""
	a after all an and any are as at be been before by can did do does for from had has have if in is it
	its may more must no not now of on one only or out so than that the then there they this to too was
	what when where which who will with without would
""".split())
PROGRAMS = {'gpuarb', 'gpuarbctl', 'gpuarbd', 'systemctl', 'polkit'}
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
JOINED = re.compile(LITERAL + r'(?:\s*' + LITERAL + ')*')
CHECK_C = re.compile(r'\bCHECK\(((?:[^;"]|"(?:[^"\\]|\\.)*")*);')
QUOTED = r"""(?:'(?P<q>[^'\n]*)'|"(?P<d>(?:[^"\\\n]|\\.)*)")"""
CHECK_SHELL = re.compile(
	r'(?:^|[;&|!\s(])(?:(?:err|out)_(?:has|lacks)|(?:has|told) \S+|grep -\w*q\w*(?: -\S+)*)\s+' + QUOTED)


def pairs(text):
	found = {(a.lower(), b) for a, b in PAIR.findall(text)}
	return {p for p in found if not FUNCTION_WORDS.issuperset(p) and PROGRAMS.isdisjoint(p)}


def string_of(literals):
	return ''.join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', literals))


def read(path):
	with open(path, errors='replace') as f:
		return f.read()


def files(top, folders):
	for folder in folders:
		for path, _, names in os.walk(os.path.join(top, folder)):
			yield from (os.path.join(path, name) for name in sorted(names))


def sentences(top):
	"""The pairs of words in all strings of the product."""
	said = set()
	for path in files(top, PRODUCT):
		if path.endswith(('.c', '.h')):
			for m in JOINED.finditer(re.sub(r'/\*.*?\*/', '', read(path), flags=re.S)):
				said |= pairs(re.sub(r'%[-+ #0-9.*]*[a-zA-Z]+', '\x01', string_of(m[0])))
	return said


def checked(path, text):
	"""Yields (start, end, string) of each string in a check."""
	if path.endswith(('.c', '.h')):
		for check in CHECK_C.finditer(text):
			for m in JOINED.finditer(check[1]):
				yield check.start(1) + m.start(), check.start(1) + m.end(), string_of(m[0])
	elif path.endswith('.sh') or text.startswith('#!/bin/'):
		for m in CHECK_SHELL.finditer(text):
			group = 'q' if m['q'] is not None else 'd'
			if not text[text.rfind('\n', 0, m.start()) + 1:m.start() + 1].lstrip().startswith('#'):
				yield m.start(group) - 1, m.end(group) + 1, m[group]


def quotes(string, said):
	if string.startswith((' ', '#')) or '\\n' in string:
		return False
	return bool(pairs(string) & said)


def main():
	top, limit = sys.argv[1], int(sys.argv[2])
	said = sentences(top)
	found, wording = [], 0
	for path in files(os.path.join(top, 'tests'), TESTS):
		text = read(path)
		for start, _, string in checked(path, text):
			if not quotes(string, said):
				continue
			if os.path.basename(path) in WORDING:
				wording += 1
				continue
			found.append('%s:%d: %s' % (os.path.relpath(path, top),
				text.count('\n', 0, start) + 1, string))
	if '--list' in sys.argv or len(found) > limit:
		print('\n'.join(found))
	print('%d checks quote a sentence of the product, the limit is %d; '
		'%d more are in tests of the wording' % (len(found), limit, wording))
	return len(found) > limit


if __name__ == '__main__':
	sys.exit(main())
