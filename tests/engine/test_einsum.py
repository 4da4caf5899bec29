# SPDX-License-Identifier: Apache-2.0
"""Einsum as products: NumPy's numbers, by the product's kernels where its letters allow it."""
import random

import numpy as np
import onnx.helper as make
import pytest
from onnx_files import infer, inspect, save

SIZES = {'b': 2, 'm': 4, 'c': 5, 'h': 3, 'w': 6, 'k': 7, 'n': 1, 'q': 4}
# From exports: text against pixels, masks of queries, positions of windows, attention, a layer spelled so.
PRODUCTS = ['bchw,bkc->bkhw', 'bqc,bchw->bqhw', 'bhwc,hkc->bhwk', 'bqhc,bkhc->bhqk', 'bhqk,bkhc->bqhc', 'bmchw,bkmc->bmhwk', 'bhwc,ck->bhwk',
            'ck,bhwc->bhwk', 'bc,bc->b', 'bmc,bmc->bm', 'bch,bcw->bhw', 'mc,kc->km', 'bcnh,bkcn->bhk', 'bhc,c->bh', '...mk,...kn->...mn',
            'bchw, bkc', 'chw,wq->cqh']
OTHERS = ['bch,bkw->bckhw', 'bmm,bmc->bc', 'bch,bc->bc', 'bcq,bcw->bc']


def network(equation, shapes, path, dims, constant=False):
    values = {'y': np.random.default_rng(7).standard_normal(shapes[1]).astype(np.float32)} if constant else {}
    nodes = [make.make_node('Einsum', ['x', 'y'], ['sum'], equation=equation), make.make_node('Relu', ['sum'], ['z'])]
    save(path, nodes, {name: d for name, d in zip('xy', dims) if name not in values}, {'z': None}, values)
    return values.get('y')


def check(equation, folder, open_batch=False, constant=False):
    """Returns what inspect says of it."""
    terms = equation.replace(' ', '').split('->')[0].split(',')
    shapes = [[SIZES[letter] for letter in term.replace('...', 'bh')] for term in terms]
    dims = [['batch' if open_batch and letter == 'b' else SIZES[letter] for letter in term.replace('...', 'bh')] for term in terms]
    draw = np.random.default_rng(1)
    x, y = (draw.standard_normal(shape).astype(np.float32) for shape in shapes)
    own = network(equation, shapes, folder / 'net.onnx', dims, constant)
    y = own if constant else y
    z = infer(folder / 'net.onnx', {'x': x} | ({} if constant else {'y': y}))['z']
    np.testing.assert_allclose(z, np.maximum(np.einsum(equation, x, y), 0), rtol=1e-4, atol=1e-5)
    return next(line for line in inspect(folder / 'net.onnx').splitlines() if 'Einsum' in line)


@pytest.mark.parametrize('open_batch', [False, True])
@pytest.mark.parametrize('equation', PRODUCTS)
def test_is_a_product(equation, open_batch, tmp_path):
    assert 'plain C' not in check(equation, tmp_path, open_batch)


@pytest.mark.parametrize('equation', ['bhwc,ck->bhwk', 'bchw,kc->bkhw', 'bqc,kc->bqk'])
def test_with_weights(equation, tmp_path):
    assert 'plain C' not in check(equation, tmp_path, True, True)


@pytest.mark.parametrize('equation', OTHERS)
def test_stays_what_it_is(equation, tmp_path):
    """Nothing is summed over both, or something over one alone."""
    assert 'plain C' in check(equation, tmp_path)


def test_as_many_letters_as_dims_may_be(tmp_path):
    """No room for an empty side between seven letters of a batch and one that is summed."""
    check('bmchwkqn,bmchwkqn->bmchwkq', tmp_path)


@pytest.mark.parametrize('seed', range(40))
def test_random(seed, tmp_path):
    draw = random.Random(seed)
    letters = draw.sample('bmchwkq', draw.randint(2, 6))
    kinds = {letter: draw.choice(['both', 'left', 'right', 'summed']) for letter in letters}
    terms = [[letter for letter in letters if kinds[letter] != other] for other in ('right', 'left')]
    out = [letter for letter in letters if kinds[letter] != 'summed']
    for term in (*terms, out):
        draw.shuffle(term)
    if not terms[0] or not terms[1]:
        pytest.skip('an operand has no letters')
    check(f'{"".join(terms[0])},{"".join(terms[1])}->{"".join(out)}', tmp_path, draw.random() < 0.5)
