# SPDX-License-Identifier: Apache-2.0
"""The structs of the public headers for ctypes, read from the headers: a mirror that somebody typed is overrun by the
library when a field is added."""
import ctypes
import pathlib
import re

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / 'include/saccade'
PLAIN = {'int': ctypes.c_int, 'unsigned': ctypes.c_uint, 'float': ctypes.c_float, 'double': ctypes.c_double,
         'char': ctypes.c_char, 'size_t': ctypes.c_size_t, 'int32_t': ctypes.c_int32, 'int64_t': ctypes.c_int64,
         'uint8_t': ctypes.c_uint8, 'uint32_t': ctypes.c_uint32, 'uint64_t': ctypes.c_uint64,
         'sac_log_fn': ctypes.c_void_p}
DECLARATION = re.compile(r'(?:const )?(?:(enum|struct) )?(\w+)\s+(.+)', re.S)
DECLARATOR = re.compile(r'\s*(\**)\s*(?:const )?(\w+)((?:\[\w+\])*)\s*')


def _text():
    return '\n'.join(re.sub(r'/\*.*?\*/', '', path.read_text(), flags=re.S) for path in sorted(INCLUDE.glob('*.h')))


def _number(text, word):
    return int(word) if word.isdigit() else int(re.search(rf'\b{word}\s*=\s*(\d+)', text)[1])


def _type(text, kind, name):
    if kind == 'struct':
        return structure(name, text)
    return ctypes.c_int if kind == 'enum' else PLAIN[name]


def _fields(text, body):
    for declaration in filter(None, map(str.strip, body.split(';'))):
        kind, name, rest = DECLARATION.fullmatch(declaration).groups()
        for declarator in rest.split(','):
            stars, field, bounds = DECLARATOR.fullmatch(declarator).groups()
            c_type = ctypes.c_void_p if stars else _type(text, kind, name)
            for bound in reversed(re.findall(r'\w+', bounds)):
                c_type = c_type * _number(text, bound)
            yield field, c_type


def structure(name, text=None):
    """The ctypes type of a struct of the headers; enums are ints, pointers and functions c_void_p."""
    text = text or _text()
    body = re.search(rf'\bstruct {name}\s*\{{([^}}]*)\}}', text)[1]
    return type(name, (ctypes.Structure,), {'_fields_': list(_fields(text, body))})
