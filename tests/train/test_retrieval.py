# SPDX-License-Identifier: Apache-2.0
"""Identity retrieval on a MOT sequence."""
import numpy
import pytest
from PIL import Image

from drawings import crop
from saccade_train import retrieval


def test_retrieval_on_a_sequence(succeed, tmp_path):
    """Two persons who change places: colours tell them apart, so the histogram must."""
    folder = tmp_path / 'Two'
    (folder / 'img1').mkdir(parents=True)
    (folder / 'seqinfo.ini').write_text('[Sequence]\nname=Two\nframeRate=1\nseqLength=30\n')
    random, rows = numpy.random.default_rng(1), []
    for frame in range(1, 31):
        image = Image.new('RGB', (200, 120), (120, 120, 120))
        for person in (0, 3):
            left = 20 if (person == 0) == (frame < 15) else 120
            image.paste(crop(random, person, 96), (left, 10))
            rows.append(f'{frame},{person + 1},{left},10,48,96,1,-1,-1,-1')
        image.save(folder / f'img1/{frame:06d}.jpg', quality=95)
    (folder / 'gt.txt').write_text('\n'.join(rows))
    table = [row.split('|') for row in succeed('reid', 'score', '--mot', tmp_path).splitlines()]
    assert '5 s, 60 queries' in table[0][2]
    value = {row[1].strip(): float(row[2]) for row in table[2:]}
    assert set(value) == {'RGB histogram', 'HSV histogram'}
    assert value['HSV histogram'] > 95


def test_what_stands_lower_covers():
    inside, free = retrieval.visible_share((0, 0, 10, 20), numpy.array([[5, 10, 30, 40.]]), 100, 100)
    assert inside == 1 and free == pytest.approx(0.75)
    inside, free = retrieval.visible_share((-5, 0, 5, 20), numpy.array([[0, 0, 30, 10.]]), 100, 100)
    assert inside == pytest.approx(0.5) and free == 1
