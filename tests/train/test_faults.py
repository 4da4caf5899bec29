# SPDX-License-Identifier: Apache-2.0
"""What a user gets wrong is answered with one sentence that names it, and a status that is not 0."""
import json
import sys

import numpy
import pytest
from PIL import Image

from helpers import TRAIN

WEIGHTS = TRAIN / 'weights/detectors.pt'


@pytest.fixture
def detect(refused, folders, tmp_path):
    """The sentence of a detector's training on the drawn pictures, with these arguments after the good ones."""
    def run(*args):
        return refused('detect', 'train', '--data', folders / 'detect', '--out', tmp_path / 'out', '--cache',
                       tmp_path / 'cache', '--device', 'cpu', '--steps', 1, '--batch', 2, '--sizes', 'tiny',
                       '--width', 64, '--height', 64, '--side', 64, *args)
    return run


def index_of(folder, text):
    folder.mkdir()
    (folder / 'annotations.json').write_text(text if isinstance(text, str) else json.dumps(text))
    return folder


PERSON = dict(categories=[dict(id=1, name='person')], annotations=[])


def test_folders_without_pictures(detect, tmp_path):
    assert 'no annotations.json' in detect('--data', tmp_path / 'nowhere')
    assert 'not JSON' in detect('--data', index_of(tmp_path / 'a', '{'))
    assert "no 'annotations'" in detect('--data', index_of(tmp_path / 'b', dict(images=[])))
    assert 'no pictures to train on' in detect('--data', index_of(tmp_path / 'c', dict(images=[], **PERSON)))
    odd = dict(PERSON, images=[dict(id=1, file_name='one.jpg')], annotations=[dict(category_id=1, image_id=1)])
    assert "not in COCO format: 'bbox'" in detect('--data', index_of(tmp_path / 'f', odd))
    odd = dict(images=[dict(id='one', file_name='one.jpg')], **PERSON)
    assert "not in COCO format: invalid literal" in detect('--data', index_of(tmp_path / 'g', odd))
    one = dict(images=[dict(id=1, file_name='one.jpg')], **PERSON)
    assert 'one.jpg: No such file' in detect('--data', index_of(tmp_path / 'd', one))
    broken = index_of(tmp_path / 'e', one)
    (broken / 'one.jpg').write_text('no picture')
    assert 'one.jpg' in detect('--data', broken)


def test_an_unknown_class_is_answered_with_those_there_are(detect):
    assert detect('--category', 'cat').endswith("no category 'cat'; it has person")


def test_other_arguments_of_a_training(detect, tmp_path):
    assert 'huge' in detect('--sizes', 'tiny,huge') and 'det, fast, tiny' in detect('--sizes', 'huge')
    assert '--width 100' in detect('--width', 100) and '32' in detect('--height', 90)
    assert '/proc/nowhere' in detect('--out', '/proc/nowhere')
    assert '--minutes' in detect('--steps', 0)
    import torch
    if not torch.cuda.is_available():
        assert '--device cuda' in detect('--device', 'cuda')


def test_masks_that_are_not_there(detect, tmp_path):
    assert 'index.json' in detect('--masks', tmp_path)
    (tmp_path / 'index.json').write_text('{"items": []}')
    assert 'no masks' in detect('--masks', tmp_path)
    for text in ('[]', '{', '{"items": [{}]}'):
        (tmp_path / 'index.json').write_text(text)
        assert 'index.json: not {"items"' in detect('--masks', tmp_path)


def test_crops_of_nobody(refused, tmp_path):
    (tmp_path / 'detect').mkdir()
    (tmp_path / 'detect/annotations.json').write_text('{')
    assert 'annotations.json: not JSON' in refused('reid', 'check', '--data', tmp_path)
    (tmp_path / 'one').mkdir()
    Image.new('RGB', (32, 64)).save(tmp_path / 'one/1_0.jpg')
    assert 'held-out persons' in refused('reid', 'check', '--data', tmp_path / 'one')


def test_weights_that_are_not_there_or_others(detect, refused, tmp_path):
    junk = tmp_path / 'junk.pt'
    junk.write_text('junk\n')
    assert 'nowhere.pt: No such file' in detect('--init', tmp_path / 'nowhere.pt')
    assert 'junk.pt: no weights' in detect('--init', junk)
    assert 'detectors.pt: holds other networks' in detect('--init', WEIGHTS)
    assert 'checkpoint.pt: No such file' in refused('detect', 'export', '--out', tmp_path, '--model', tmp_path / 'x.onnx')
    assert "no network 'tiny'; it has det, fast" in refused(
        'detect', 'export', '--weights', WEIGHTS, '--size', 'tiny', '--model', tmp_path / 'x.onnx').replace(' in it', '')
    for module in ('segment', 'reid'):
        assert 'junk.pt: no weights' in refused(module, 'export', '--weights', junk, '--model', tmp_path / 'x.onnx')
        assert 'detectors.pt: holds' in refused(module, 'export', '--weights', WEIGHTS, '--model', tmp_path / 'x.onnx')


def test_teachers_and_models_that_are_not_there_or_none(detect, refused, folders, tmp_path):
    junk = tmp_path / 'junk.onnx'
    junk.write_text('junk\n')
    assert 'nowhere.onnx: No such file' in detect('--teacher', tmp_path / 'nowhere.onnx')
    assert 'junk.onnx: not an ONNX model' in detect('--teacher', junk)
    for path in (junk, tmp_path / 'nowhere.onnx'):
        assert path.name in refused('detect', 'score', '--data', folders / 'detect', path)
        assert path.name in refused('segment', 'score', '--data', folders, path)
        assert path.name in refused('failures', '--data', folders / 'detect', '--out', tmp_path / 'x.jpg', path)


def test_a_model_that_is_no_detector(refused, folders):
    assert 'person_reid.onnx: input' in refused(
        'detect', 'score', '--data', folders / 'detect', TRAIN.parent / 'models/person_reid.onnx')


def test_a_package_that_is_not_installed(refused, monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, 'saccade_train.export', raising=False)
    monkeypatch.setitem(sys.modules, 'onnx', None)  # as if it were not there
    said = refused('detect', 'export', '--weights', WEIGHTS, '--size', 'fast', '--model', tmp_path / 'x.onnx')
    assert 'onnx' in said and 'pip install' in said


def test_a_model_that_cannot_be_written(refused):
    assert '/nowhere/x.onnx: No such file' in refused(
        'detect', 'export', '--weights', WEIGHTS, '--size', 'fast', '--width', 64, '--height', 64, '--model', '/nowhere/x.onnx')


def test_a_folder_that_cannot_be_packed(refused, tmp_path):
    assert 'annotations.json: No such file' in refused('pack', tmp_path, tmp_path / 'out')


def test_a_person_in_every_training_picture_and_none_with_a_mask(detect, folders, tmp_path):
    """Masks of pictures that show nobody give nothing to cut out; the training does without."""
    (tmp_path / 'masks').mkdir()
    Image.fromarray(numpy.zeros((96, 128), numpy.uint8)).save(tmp_path / 'masks/000001.png')
    (tmp_path / 'index.json').write_text(json.dumps(dict(items=[
        dict(image='../detect/images/000001.jpg', mask='masks/000001.png')])))
    with pytest.raises(pytest.fail.Exception, match='DID NOT RAISE'):
        detect('--masks', tmp_path, '--steps', 3)
    assert (tmp_path / 'out/checkpoint.pt').exists()
