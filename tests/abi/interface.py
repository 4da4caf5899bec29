# SPDX-License-Identifier: Apache-2.0
"""What a folder of public headers offers, as clang reads it: functions, structs with their fields' places, constants."""
import json
import re
import subprocess


def clang(include, source, *options):
    command = ['clang', '-std=c11', '-fsyntax-only', '-I', str(include), '-x', 'c', '-', *options]
    return subprocess.run(command, input=source, check=True, stdout=subprocess.PIPE, text=True).stdout


def ours(name):
    return name.lower().startswith('sac_')


def functions(include):
    """{name: type}"""
    tree = json.loads(clang(include, '#include <saccade/saccade.h>\n', '-Xclang', '-ast-dump=json'))
    return {node['name']: node['type']['qualType'] for node in tree['inner']
            if node['kind'] == 'FunctionDecl' and ours(node['name'])}


def structs(include):
    """{name: (size, {field: (offset, type)})}"""
    dump = clang(include, '#include <saccade/saccade.h>\n', '-Xclang', '-fdump-record-layouts-complete')
    found = {}
    for block in dump.split('*** Dumping AST Record Layout'):
        head = re.search(r'^ +0 \| struct (sac_\w+)\n', block, re.M)
        if head:
            fields = re.findall(r'^ +(\d+) \|   (\S.*?) ?(\w+)$', block, re.M)
            size = int(re.search(r'\[sizeof=(\d+)', block)[1])
            found[head[1]] = (size, {name: (int(offset), kind) for offset, kind, name in fields})
    return found


def constants(include):
    """{name: value}"""
    tree = json.loads(clang(include, '#include <saccade/saccade.h>\n', '-Xclang', '-ast-dump=json'))
    found = {}
    for node in tree['inner']:
        value = -1
        for constant in node.get('inner', []) if node['kind'] == 'EnumDecl' else []:
            if constant['kind'] == 'EnumConstantDecl':
                given = [part['value'] for part in constant.get('inner', []) if 'value' in part]
                value = int(given[0]) if given else value + 1
                found[constant['name']] = value
    return {name: value for name, value in found.items() if ours(name)}
