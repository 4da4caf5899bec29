# SPDX-License-Identifier: Apache-2.0
"""saccade eval as a program: which files belong together, and the table. The scores themselves are
compared with TrackEval's elsewhere."""
import json
import os
import resource

import pytest

from support import fails


def rows(count, ids=(1, 2), shift=0):
    return ''.join(f'{frame},{number},{100 * number + frame + shift},50,40,80,1,1,1\n'
                   for frame in range(1, count + 1) for number in ids)


@pytest.fixture
def sequences(tmp_path):
    """Two sequences in MOTChallenge's folders, and tracks for both: A is perfect, B finds one of two."""
    for name in 'AB':
        (tmp_path / 'gt' / name / 'gt').mkdir(parents=True)
        (tmp_path / 'gt' / name / 'gt/gt.txt').write_text(rows(10))
        (tmp_path / 'gt' / name / 'seqinfo.ini').write_text(
            f'[Sequence]\nname={name}\nframeRate=10\nseqLength=10\nimWidth=640\nimHeight=480\n')
    (tmp_path / 'tracks').mkdir()
    (tmp_path / 'tracks/A.txt').write_text(rows(10))
    (tmp_path / 'tracks/B.txt').write_text(rows(10, ids=(1,)))
    return tmp_path


def report(run):
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_folders_are_paired_by_name(saccade, sequences):
    scores = report(saccade('eval', '--gt', sequences / 'gt', '--tracks', sequences / 'tracks', '--json'))
    by_name = {sequence['name']: sequence for sequence in scores['sequences']}
    assert by_name['A']['hota'] == pytest.approx(1) and by_name['A']['mota'] == pytest.approx(1)
    assert by_name['B']['mota'] == pytest.approx(0.5) and by_name['B']['fn'] == 10
    assert by_name['B']['idf1'] == pytest.approx(2 / 3)
    assert scores['combined']['mota'] == pytest.approx(0.75)
    assert scores['combined']['frames'] == 20


def test_files_are_paired_in_their_order(saccade, sequences):
    gt = [sequences / 'gt' / name / 'gt/gt.txt' for name in 'AB']
    scores = report(saccade('eval', '--gt', *gt, '--tracks', sequences / 'tracks/A.txt', sequences / 'tracks/B.txt',
                            '--json'))
    assert [sequence['name'] for sequence in scores['sequences']] == ['A', 'B']
    assert [sequence['fn'] for sequence in scores['sequences']] == [0, 10]


def test_files_that_are_named_after_sequences_are_paired_by_it(saccade, sequences):
    """`tracks/*.txt` comes in a shell's order, which need not be that of --gt."""
    gt = [sequences / 'gt' / name / 'gt/gt.txt' for name in 'BA']
    scores = report(saccade('eval', '--gt', *gt, '--tracks', sequences / 'tracks/A.txt', sequences / 'tracks/B.txt',
                            '--json'))
    assert {sequence['name']: sequence['fn'] for sequence in scores['sequences']} == {'A': 0, 'B': 10}
    # other names say nothing: the order counts
    other = [(sequences / 'tracks/B.txt').rename(sequences / 'tracks/first.txt'), sequences / 'tracks/A.txt']
    scores = report(saccade('eval', '--gt', *gt, '--tracks', *other, '--json'))
    assert {sequence['name']: sequence['fn'] for sequence in scores['sequences']} == {'A': 0, 'B': 10}


@pytest.mark.parametrize('where, gt', [('gt/A', '.'), ('gt/A', 'gt'), ('gt/A', 'gt/gt.txt'), ('gt/A/gt', 'gt.txt'),
                                       ('gt/A/gt', '.'), ('gt', 'A'), ('gt', 'A/gt/')])
def test_a_sequence_has_its_name_from_wherever_it_is_given(saccade, sequences, where, gt):
    (sequences / 'gt/A/seqinfo.ini').write_text('[Sequence]\nseqLength=5\n')
    run = saccade('eval', '--gt', gt, '--tracks', sequences / 'tracks', cwd=sequences / where)
    fails(run, 1, 'A: ground truth has frame 10, but the sequence has 5')
    (sequences / 'gt/A/seqinfo.ini').unlink()
    scores = report(saccade('eval', '--gt', gt, '--tracks', sequences / 'tracks', '--json', cwd=sequences / where))
    assert [sequence['name'] for sequence in scores['sequences']] == ['A']


def test_a_link_has_its_own_name(saccade, sequences):
    (sequences / 'gt/A').rename(sequences / 'data')
    (sequences / 'gt/A').symlink_to(sequences / 'data')
    scores = report(saccade('eval', '--gt', sequences / 'gt', '--tracks', sequences / 'tracks', '--json'))
    assert [sequence['name'] for sequence in scores['sequences']] == ['A', 'B']


def test_the_table_has_a_line_per_sequence_and_the_sum(saccade, sequences):
    run = saccade('eval', '--gt', sequences / 'gt', '--tracks', sequences / 'tracks')
    assert run.returncode == 0
    lines = run.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ['sequence', 'A', 'B', 'combined']
    assert lines[0].split()[1:] == ['HOTA', 'DetA', 'AssA', 'LocA', 'MOTA', 'MOTP', 'IDSW', 'FP', 'FN', 'IDF1', 'IDP', 'IDR']
    assert lines[1].split()[1] == '100.00'


def test_preprocessing_can_be_left_out(saccade, sequences):
    gt = sequences / 'gt/A/gt/gt.txt'
    # a row marked 0 and a distractor: the benchmark ignores both
    gt.write_text(rows(10) + '1,7,300,300,40,80,0,1,1\n2,8,300,300,40,80,1,8,1\n')
    args = ['eval', '--gt', sequences / 'gt/A', '--tracks', sequences / 'tracks/A.txt', '--json']
    assert report(saccade(*args))['combined']['fn'] == 0
    without = report(saccade(*args, '--no-preprocess'))
    assert without['preprocess'] is False
    assert without['combined']['fn'] >= 1


def test_what_does_not_fit_is_named(saccade, sequences):
    gt, tracks = sequences / 'gt', sequences / 'tracks'
    fails(saccade('eval', '--gt', gt, '--tracks', tracks / 'A.txt'), 2, 'sequences of --gt: 2, files of --tracks: 1')
    (tracks / 'B.txt').unlink()
    fails(saccade('eval', '--gt', gt, '--tracks', tracks), 1, 'B.txt')
    (tracks / 'B.txt').write_text(rows(3) + '4,1,a,b,c,d\n')
    fails(saccade('eval', '--gt', gt, '--tracks', tracks), 1, 'B.txt:7')
    (tracks / 'B.txt').write_text('{"format":"saccade-tracks","version":1}\n')
    fails(saccade('eval', '--gt', gt, '--tracks', tracks), 1, 'B.txt:1: JSON lines', '--mot')
    (tracks / 'B.txt').write_text('1,1,0,0,9,9,1\n1,1,5,5,9,9,1\n')
    fails(saccade('eval', '--gt', gt, '--tracks', tracks), 1, 'B')
    fails(saccade('eval', '--gt', tracks, '--tracks', tracks), 1, 'no gt.txt')


def test_no_tracks_at_all_score_zero(saccade, sequences):
    (sequences / 'tracks/A.txt').write_text('')
    scores = report(saccade('eval', '--gt', sequences / 'gt/A', '--tracks', sequences / 'tracks', '--json'))
    assert scores['combined']['hota'] == 0 and scores['combined']['fn'] == 20


@pytest.mark.skipif('SACCADE_SANITIZED' in os.environ, reason='a sanitizer takes more addresses than there may be')
def test_crowds_take_memory_by_the_box(saccade, tmp_path):
    """A thousand people in each of 300 frames, far apart: a table of all pairs would be 2.4 GB."""
    text = ''.join(f'{frame},{person},{100 * (person % 50)},{100 * (person // 50)},40,80,1,1,1\n'
                   for frame in range(1, 301) for person in range(1000))
    (tmp_path / 'many.txt').write_text(text)
    limit = 1 << 30
    scores = report(saccade('eval', '--gt', tmp_path / 'many.txt', '--tracks', tmp_path / 'many.txt', '--json',
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))))
    assert scores['combined']['hota'] == pytest.approx(1)
    assert scores['combined']['tp'] == 300000
