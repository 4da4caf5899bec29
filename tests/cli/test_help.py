# SPDX-License-Identifier: Apache-2.0
"""Help, usage errors, configuration, completion and the manual page."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from support import fails

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK_VERBS = ['track', 'infer', 'bench', 'serve-bench', 'inspect', 'build', 'eval', 'tune', 'profile', 'optimize', 'monitor', 'cache', 'doctor']
VERBS = WORK_VERBS + ['config', 'completion', 'man', 'help']


def test_program_help_names_every_verb(saccade):
    run = saccade('--help')
    assert run.returncode == 0 and run.stderr == ''
    for verb in VERBS:
        assert re.search(rf'^  {verb} ', run.stdout, re.M)


def test_no_arguments_shows_the_help_as_a_usage_error(saccade):
    run = saccade()
    assert run.returncode == 2
    assert run.stdout == '' and 'Usage: saccade' in run.stderr


@pytest.mark.parametrize('verb', VERBS)
def test_help_of_each_verb(saccade, verb):
    run = saccade(verb, '--help')
    assert run.returncode == 0 and run.stderr == ''
    assert run.stdout.startswith(f'Usage: saccade {verb}')
    assert saccade('help', verb).stdout == run.stdout
    assert all(len(line) <= 100 for line in run.stdout.splitlines())


def test_help_wins_over_other_mistakes(saccade):
    assert saccade('track', '--help', '--crf', '99').returncode == 0
    assert saccade('infer', '-h').returncode == 0


def test_version(saccade):
    run = saccade('--version')
    assert run.returncode == 0
    assert re.fullmatch(r'saccade \d+\.\d+\.\d+\n', run.stdout)


@pytest.mark.parametrize('args, words', [
    (['trak', 'in.mp4'], ["'trak'", "did you mean 'track'?"]),
    (['--device', 'cpu', 'track', 'in.mp4'], ['the verb comes first: saccade track']),
    (['-t', '2', 'segment', 'in.mp4', '--as', 'mask'], ['the verb comes first: saccade segment']),
    (['segment', 'in.mp4', '--as', 'coco', '-o', 'a.mp4'], ["JSON, but 'a.mp4'"]),
    (['segment', 'in.mp4', '--as', 'png', '-o', 'a.mkv'], ["a folder, but 'a.mkv'"]),
    (['segment', 'in.jpg', '--as', 'png', '-o', 'a.png'], ["a folder, but 'a.png' is a picture's name"]),
    (['profile', 'in.mp4', '-o', 'report'], ["'report'", '.html']),
    (['0'], ["'0'", '/dev/video0']),
    (['qwertyuiop'], ["'qwertyuiop'", 'neither a verb nor a file']),
    (['track', '--detektor', 'x'], ["'--detektor'", "did you mean '--detector'?"]),
    (['track', '--tracker', 'bytrack'], ["'bytrack'", "did you mean 'bytetrack'?"]),
    (['inspect', 'a.mp4', 'b.mp4'], ["'b.mp4'", 'one argument too many']),
    (['track', 'in.mp4', '--detector', 'none'], ['--detector MODEL.onnx']),
    (['track', 'in.mp4', '--detector', 'a.onnx', '--detections', 'd.txt'], ['exclude each other']),
    (['track'], ['INPUT']),
    (['in.mp4', '-o', 'in.mp4', '--detector', 'd.onnx'], ['overwrite an input']),
    (['in.mp4', '-o', 'x', '--mot', 'x', '--detector', 'd.onnx'], ["two outputs go to 'x'"]),
    (['track', '--detections', 'd.txt', '-o', 'x.mp4'], ['needs the INPUT video']),
    (['in.mp4', '--jsonl', '-', '--mot', '-'], ["two outputs go to '-'"]),
    (['in.mp4', '-o', 'x.mp4', '--labels', 'id,name'], ["--labels 'id,name'", 'id, class and score']),
    (['in.mp4', '--zero-copy', 'strickt'], ["'strickt'", "did you mean 'strict'?"]),
    (['in.mp4', '--conf', '0.3'], ["'--conf'", "'--score-min SCORE'"]),
    (['in.mp4', '--conf_thres=0.3'], ["'--conf_thres'", "'--score-min SCORE'"]),
    (['in.mp4', '--iou', '0.5'], ["'--nms-iou IOU'"]),
    (['in.mp4', '--show'], ['nothing is shown', '--output']),
    (['in.mp4', '--imgsz', '640'], ["'--preprocess size=640x640'"]),
    (['track', '--source', 'in.mp4'], ['needs no option', 'saccade in.mp4']),
    (['-i', 'in.mp4'], ['needs no option']),
    (['in.mp4', '--save'], ["'--output FILE'"]),
    (['in.mp4', '--save_txt'], ["'--mot FILE'"]),
    (['in.mp4', '--weights', 'x.pt'], ["'--detector MODEL'"]),
    (['in.mp4', '--half'], ["'--precision fp16'"]),
    (['in.mp4', '--vid-stride', '2'], ["'--every N'"]),
    (['in.mp4', '--project', 'x'], ['-o out/']),
    (['in.mp4', '-ss', '10'], ["'--start TIME'"]),
    (['infer', 'x.onnx', '--conf', '0.3'], ["unknown option '--conf'"]),
    (['infer'], ['needs MODEL']),
    (['build'], ['needs MODEL']),
    (['build', 'x.onnx', '--batch', '3:2'], ["'3:2'", 'MIN:OPT:MAX']),
    (['build', 'x.onnx', '--size', '640'], ["'640'", 'WIDTHxHEIGHT']),
    (['build', 'x.onnx', '--shape', 'tokens=1,16:1,77'], ["'tokens=1,16:1,77'", 'NAME=1,16:1,77:1,512']),
    (['build', 'x.onnx', '--shape', 'tokens=1x77'], ["'tokens=1x77'", 'NAME=1,77']),
    (['infer', 'x.onnx', '--precision', 'fp61'], ["'fp61'", "did you mean 'fp16'?"]),
    (['eval'], ['--gt', '--tracks', '--masks']),
    (['completion', 'fish'], ["'fish'", 'bash and zsh']),
    (['help', 'trakc'], ["'trakc'", "did you mean 'track'?"]),
])
def test_usage_errors_are_one_sentence_with_a_remedy(saccade, args, words, tmp_path):
    fails(saccade(*args, cwd=tmp_path), 2, *words)
    assert list(tmp_path.iterdir()) == []


def test_full_standard_output_is_a_failure(saccade):
    with open('/dev/full', 'w') as full:
        run = saccade('--help', stdout=full)
    assert run.returncode == 1
    assert 'cannot write standard output' in run.stderr


def test_a_closed_pipe_is_quiet(program):
    run = subprocess.run(['bash', '-c', f'{program} man | head -n 1; exit ${{PIPESTATUS[0]}}'],
                         capture_output=True, text=True)
    assert run.stderr == ''


# ---- configuration ----

def test_the_template_in_the_repository_is_what_the_program_prints(saccade):
    run = saccade('config')
    assert run.returncode == 0
    for copy in 'configs/saccade.yaml', 'tests/fuzz/corpus/config/template.yaml':
        assert run.stdout == (ROOT / copy).read_text(), copy


def test_every_option_is_a_key(saccade):
    """From the help of all verbs to the template."""
    template = saccade('config').stdout
    for verb in WORK_VERBS:
        for name in re.findall(r'--(?:\[no-\])?([a-z-]+)', saccade(verb, '--help').stdout.split('Examples')[0]):
            if name not in ('help', 'version', 'config', 'quiet', 'verbose'):
                assert f'[--{name}]' in template.replace('\n', ' ').replace('  # ', ' '), name


@pytest.mark.parametrize('text, words', [
    ('tracker:\n  knid: sort\n', [":2: unknown key 'tracker.knid'", "'tracker.kind'"]),
    ('threads: many\n', [":1: threads: 'many' is not a whole number"]),
    ('threads: -1\n', [':1: threads: -1 is out of range']),
    ('draw:\n  trails: 3\n', [":2: draw.trails: '3' is neither true nor false"]),
    ('threads: [\n', [':2: ']),
])
def test_mistakes_in_the_configuration_name_the_line(saccade, tmp_path, text, words):
    path = tmp_path / 'a.yaml'
    path.write_text(text)
    fails(saccade('doctor', '--config', path), 2, str(path), *words)


def test_a_missing_configuration_is_a_failure(saccade):
    fails(saccade('doctor', '-c', 'a.yaml', '--config', 'b.yaml'), 2, "'a.yaml' and 'b.yaml'", 'one file')
    fails(saccade('doctor', '--config', '/nowhere/a.yaml'), 1, '/nowhere/a.yaml', 'No such file')
    fails(saccade('doctor', '--config', '/'), 1, 'directory')


def test_the_command_line_wins_over_the_configuration(saccade, tmp_path, clip):
    path = tmp_path / 'a.yaml'
    path.write_text(f'input:\n  detections: {clip}/det.txt\n  fps: 10\noutput:\n  mot: {tmp_path}/yaml.txt\n')
    assert saccade('track', '-c', path).returncode == 0
    assert (tmp_path / 'yaml.txt').exists()
    assert saccade('track', '-c', path, '--mot', tmp_path / 'line.txt').returncode == 0
    assert (tmp_path / 'line.txt').read_text() == (tmp_path / 'yaml.txt').read_text() != ''


# ---- completion and manual ----

def completions(program, saccade, tmp_path, *words):
    script = tmp_path / 'completion'
    script.write_text(saccade('completion', 'bash').stdout)
    code = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _saccade; printf "%s\\n" "${COMPREPLY[@]}"'
    run = subprocess.run(['bash', '-c', code, 'bash', script, 'saccade', *words], text=True,
                         capture_output=True, cwd=tmp_path)
    assert run.stderr == ''
    return run.stdout.split()


def test_bash_completes_verbs_options_and_choices(program, saccade, tmp_path):
    assert 'track' in completions(program, saccade, tmp_path, 'tr')
    assert '--detector' in completions(program, saccade, tmp_path, 'track', '--det')
    assert '--repeat' in completions(program, saccade, tmp_path, 'infer', '--')
    assert completions(program, saccade, tmp_path, 'track', '--classes', '') == ['auto', 'all']
    assert '--repeat' not in completions(program, saccade, tmp_path, 'track', '--')
    assert completions(program, saccade, tmp_path, 'track', '--tracker', 'b') == ['bytetrack', 'botsort']
    (tmp_path / 'person.onnx').touch()
    assert completions(program, saccade, tmp_path, 'track', '--detector', 'pers') == [
        'person_det', 'person_det_fast', 'person_reid', 'person_seg', 'person_matte', 'person.onnx']


@pytest.mark.parametrize('shell', ['bash', 'zsh'])
def test_the_completion_script_parses(saccade, tmp_path, shell):
    if not shutil.which(shell):
        pytest.skip(f'no {shell}')
    script = tmp_path / 'script'
    script.write_text(saccade('completion', shell).stdout)
    run = subprocess.run([shell, '-n', script], capture_output=True, text=True)
    assert run.returncode == 0 and run.stderr == ''


def test_zsh_loads_the_completion(saccade, tmp_path):
    if not shutil.which('zsh'):
        pytest.skip('no zsh')
    (tmp_path / '_saccade').write_text(saccade('completion', 'zsh').stdout)
    code = f'fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -d {tmp_path}/dump; print $_comps[saccade]; source {tmp_path}/_saccade'
    run = subprocess.run(['zsh', '-f', '-c', code], capture_output=True, text=True)
    assert run.stdout == '_saccade\n' and run.stderr == ''


def test_the_manual_page_renders_without_warnings(saccade):
    page = saccade('man').stdout
    if not shutil.which('groff'):
        pytest.skip('no groff')
    run = subprocess.run(['groff', '-man', '-Tutf8', '-ww', '-z'], input=page, capture_output=True, text=True)
    assert run.returncode == 0 and run.stderr == ''
    text = subprocess.run(['groff', '-man', '-Tascii'], input=page, capture_output=True, text=True).stdout
    for verb in VERBS:
        assert f'saccade {verb}' in re.sub('.\b', '', re.sub('\x1b\\[[0-9;]*m', '', text))


# ---- doctor ----

def test_doctor_says_what_is_there(saccade):
    run = saccade('doctor')
    assert run.returncode == 0 and run.stderr == ''
    for word in ('cpu', 'ffmpeg', 'onednn', 'models', 'gpu', 'h264'):
        assert word in run.stdout


def test_doctor_tells_how_to_get_what_is_missing(saccade, tmp_path):
    run = saccade('doctor', env={'SACCADE_PLUGIN_PATH': str(tmp_path)})  # no plug-in there
    assert run.returncode == 0
    lines = run.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith('onednn'))
    assert 'missing' in lines[at] and 'libsaccade-onednn.so is not there' in lines[at]
    if os.path.exists('/etc/debian_version'):
        assert 'fix it with: apt-get install libdnnl-dev' in lines[at + 1]


def test_doctor_speaks_json(saccade):
    import json
    report = json.loads(saccade('doctor', '--json').stdout)
    areas = {finding['area'] for finding in report['findings']}
    assert {'cpu', 'ffmpeg', 'onednn', 'models', 'gpu'} <= areas
    assert all(finding['level'] in ('ok', 'note', 'missing', 'fault') for finding in report['findings'])
