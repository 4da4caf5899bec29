# SPDX-License-Identifier: Apache-2.0
"""test_arguments.c has a line for each public function that takes an address."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_every_function_is_called_with_nothing():
    calls = (ROOT / 'tests/pipeline/test_arguments.c').read_text()
    text = ''.join(path.read_text() for path in sorted((ROOT / 'include/saccade').glob('*.h')))
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.DOTALL)
    functions = re.findall(r'SAC_API[^;]*?\b(sac_\w+)\(([^;]*)\);', text)
    assert len(functions) > 150
    missing = [name for name, arguments in functions if '*' in arguments and f'{name}(' not in calls]
    assert missing == ['sac_unfinished_outputs_remove']  # for a program that ends; the signal tests call it
