# SPDX-License-Identifier: Apache-2.0
"""What `ninja install` puts in place is found from any folder, and README's program is built against it as README
says."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('SACCADE_BUILD', ROOT / 'build'))

pytestmark = pytest.mark.skipif('SACCADE_SANITIZED' in os.environ, reason='nobody installs a sanitized build')


def output(*command, **more):
    done = subprocess.run([*map(str, command)], text=True, capture_output=True, timeout=900, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def options(build):
    return {one['name']: one['value'] for one in json.loads(output('meson', 'introspect', build, '--buildoptions'))}


def install(target):
    """Below a folder; what `ninja uninstall` of this build folder removes stays what it was."""
    log = BUILD / 'meson-logs/install-log.txt'
    before = log.read_bytes() if log.exists() else None
    output('meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir', target)
    installed = log.read_bytes()
    log.write_bytes(before) if before is not None else log.unlink()
    return installed


@pytest.fixture(scope='module')
def prefix(tmp_path_factory):
    """The installed tree, moved away from the folder that it was configured for."""
    target = tmp_path_factory.mktemp('install')
    install(target)
    return target / options(BUILD)['prefix'].lstrip('/')


@pytest.fixture(scope='module')
def lib(prefix):
    return prefix / options(BUILD)['libdir']


def bare(folder):
    """Nothing in the environment says where anything is."""
    return {'cwd': folder, 'env': {'PATH': '/usr/bin:/bin', 'HOME': str(folder), 'LANG': 'C.UTF-8'}}


def test_the_program_runs_from_any_folder(prefix, video, tmp_path):
    """It finds library, plug-ins and models beside itself, wherever the tree lies, and writes its results."""
    run = bare(tmp_path)
    program = prefix / 'bin/saccade'
    findings = json.loads(output(program, 'doctor', '--json', **run))
    assert str(prefix / 'share/saccade/models/person_det.onnx') in json.dumps(findings)
    assert {one['level'] for one in findings['findings'] if one['area'] == 'onednn'} == {'ok'}
    output(program, video, '--jsonl', 'tracks.jsonl', **run)
    header = json.loads((tmp_path / 'tracks.jsonl').read_text().splitlines()[0])
    assert header['detector'] == str(prefix / 'share/saccade/models/person_det.onnx')
    link = tmp_path / 'linked'
    link.symlink_to(program)
    assert output(link, '--version', **run).startswith('saccade ')


def readme_program():
    """README's program, as a reader copies it."""
    text = (ROOT / 'README.md').read_text()
    code = re.search(r'```c\n(.*?)```\n+(    cc .*?)\n', text, re.DOTALL)
    assert code, 'README has no program with a command that builds it'
    return code[1], code[2].strip()


def compiled(code, command, prefix, lib, folder):
    """Makes a.out, against what is installed; what to run it with."""
    (folder / 'main.c').write_text(code)
    run = bare(folder)
    run['env'] |= {'PKG_CONFIG_PATH': str(lib / 'pkgconfig'),
                   'PKG_CONFIG_SYSROOT_DIR': str(prefix)[:-len(options(BUILD)['prefix'])]}
    assert command == 'cc main.c $(pkg-config --cflags --libs saccade)'
    output('sh', '-c', command.replace('cc ', 'cc -Wall -Wextra -Werror '), **run)
    run['env']['LD_LIBRARY_PATH'] = str(lib)
    return run


def test_readmes_program(prefix, lib, video, tmp_path):
    run = compiled(*readme_program(), prefix, lib, tmp_path)
    failed = subprocess.run([tmp_path / 'a.out'], text=True, capture_output=True, **run)
    assert failed.returncode == 1 and 'in.mp4' in failed.stderr, 'without in.mp4 it must say so'
    shutil.copy(video, tmp_path / 'in.mp4')
    output(tmp_path / 'a.out', **run)
    lines = [json.loads(line) for line in (tmp_path / 'tracks.jsonl').read_text().splitlines()]
    assert lines[0]['format'] == 'saccade-tracks' and len(lines) == 41


AROUND_THE_THREE_CALLS = """
#include <stdio.h>
#include <saccade/saccade.h>

static const struct sac_tensor_desc desc = {SAC_F32, 4, {1, 3, 256, 128}};
static float picture[3 * 256 * 128];

/* Stands for the other program. */
static struct DLManagedTensor *make(sac_device *dev)
{
    struct DLManagedTensor *out = NULL;
    sac_tensor             *t = NULL;
    if (sac_tensor_create(dev, &desc, "theirs", &t) == SAC_OK && sac_tensor_upload(t, picture) == SAC_OK)
        sac_tensor_to_dlpack(t, &out);
    sac_tensor_unref(&t);
    return out;
}

int main(void)
{
    sac_context      *ctx = NULL;
    sac_device       *dev = NULL;
    sac_calibration  *pictures = NULL;
    sac_model        *model = NULL;
    sac_server       *server = NULL;
    sac_tensor       *x = NULL;
    sac_request      *request = NULL;
    struct sac_answer answer = {.output_count = 0};
    void             *stream = NULL;
    sac_result        res = SAC_ERR_ARG;
    char              why[512];
    if (sac_context_create(NULL, &ctx) != SAC_OK || sac_device_open(ctx, "cpu", NULL, &dev) != SAC_OK ||
        sac_calibration_open(ctx, "folder", NULL, &pictures) != SAC_OK) {
        sac_context_last_error(ctx, why, sizeof why);
        return fprintf(stderr, "%%s\\n", why), 1;
    }
    struct DLManagedTensor *theirs = make(dev);
%s    if (res == SAC_OK)
        printf("%%d numbers, %%s\\n", (int)sac_tensor_desc_elements(sac_tensor_describe(answer.outputs[0])),
               sac_model_metadata(model, "saccade_quantised"));
    else if (sac_context_last_error(ctx, why, sizeof why))
        fprintf(stderr, "%%s\\n", why);
    sac_request_unref(&request);
    sac_tensor_unref(&x);
    sac_server_destroy(&server);
    sac_model_unref(&model);
    sac_calibration_close(&pictures);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return res == SAC_OK ? 0 : 1;
}
"""


def test_readmes_three_calls(prefix, lib, clip, tmp_path):
    """Quantise, serve, hand over a tensor: the section's lines, in a program that declares what they name."""
    text = (ROOT / 'README.md').read_text()
    section = re.search(r'^## [^\n]*three calls\n.*?(?=^## )', text, re.DOTALL | re.MULTILINE)
    assert section and len(section[0].strip().splitlines()) <= 15
    lines = textwrap.indent(re.search(r'```c\n(.*?)```', section[0], re.DOTALL)[1], '    ')
    run = compiled(AROUND_THE_THREE_CALLS % lines, readme_program()[1], prefix, lib, tmp_path)
    shutil.copy(prefix / 'share/saccade/models/person_reid.onnx', tmp_path / 'net.onnx')
    (tmp_path / 'folder').mkdir()
    for picture in sorted((clip / 'img').iterdir())[:2]:
        shutil.copy(picture, tmp_path / 'folder')
    said = output(tmp_path / 'a.out', **run)
    assert re.match(r'\d\d+ numbers, int8, \d+ of \d+ layers, cosine 0\.9', said), said
    assert (tmp_path / 'net.plan').stat().st_size < (tmp_path / 'net.onnx').stat().st_size
    shutil.rmtree(tmp_path / 'folder')
    (tmp_path / 'folder').mkdir()
    failed = subprocess.run([tmp_path / 'a.out'], text=True, capture_output=True, **run)
    assert failed.returncode == 1 and 'folder' in failed.stderr, 'without pictures it must say so'


@pytest.mark.parametrize('chosen', [None, '/opt/saccade'])
def test_where_things_go(tmp_path, chosen):
    """/usr/local/lib is on the lists of Debian's loader and pkg-config, lib64 is on none. Where the loader does not
    look, what is built against the library knows the place."""
    build = tmp_path / 'build'
    output('meson', 'setup', build, ROOT, '-Dcuda=disabled', *([f'--prefix={chosen}'] if chosen else []))
    prefix = chosen or '/usr/local'
    places = json.loads(output('meson', 'introspect', build, '--installed')).values()
    for name in ('bin/saccade', 'lib/libsaccade.so', 'lib/pkgconfig/saccade.pc', 'lib/saccade/libsaccade-onednn.so',
                 'include/saccade', 'share/saccade/models', 'share/man/man1/saccade.1'):
        assert f'{prefix}/{name}' in places, sorted(places)
    libs = output('pkg-config', '--libs', 'saccade', env=os.environ | {
        'PKG_CONFIG_PATH': str(build / 'meson-private'), 'PKG_CONFIG_ALLOW_SYSTEM_LIBS': '1'}).split()
    assert f'-L{prefix}/lib' in libs and '-lsaccade' in libs
    assert ('-Wl,-rpath,/opt/saccade/lib' in libs) == bool(chosen)


def test_uninstall_leaves_nothing(tmp_path):
    """What `ninja uninstall` goes by names all that was put anywhere."""
    named = {line for line in install(tmp_path).decode().splitlines() if not line.startswith('#')}
    files = {str(path) for path in tmp_path.rglob('*') if path.is_symlink() or not path.is_dir()}
    assert files and files <= named
