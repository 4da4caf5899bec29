# SPDX-License-Identifier: Apache-2.0
import json
import pathlib

TRAIN = pathlib.Path(__file__).resolve().parents[2] / 'train'
# Networks so small gain nothing from a second thread, and on a busy machine two take five times as long.
# glibc gives large blocks back to the kernel each time they are freed: half of the time went there.
ONE_THREAD = {'OMP_NUM_THREADS': '1', 'MALLOC_MMAP_THRESHOLD_': str(1 << 30), 'MALLOC_TRIM_THRESHOLD_': str(1 << 32)}


def forgetful(folders, root):
    """In `root`: the drawn pictures with every third training picture's mask forgotten."""
    (root / 'detect').symlink_to(folders / 'detect')
    (root / 'segment').mkdir()
    (root / 'segment/masks').symlink_to(folders / 'segment/masks')
    index = json.loads((folders / 'segment/index.json').read_text())
    index['items'] = [item for i, item in enumerate(index['items']) if item['split'] == 'val' or i % 3 != 2]
    (root / 'segment/index.json').write_text(json.dumps(index))
    return root


def losses(log):
    """(step, loss) of each note in a log."""
    notes = [json.loads(line) for line in pathlib.Path(log).read_text().splitlines()]
    return [(note['step'], note['loss']) for note in notes if 'loss' in note]
