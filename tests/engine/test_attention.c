/* SPDX-License-Identifier: Apache-2.0 */
/* Attention as exporters spell it becomes one step, with the numbers of the steps it replaces. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/engine/spelling.h"

/* Q, K and V of a packed [batch,5,24], two heads of four numbers. */
#define PACKED                                                                       \
    {"Reshape", "x parts", "r"}, {"Transpose", "r", "t", "perm", "2 0 3 1 4"},       \
        {"Split", "t thirds", "q1 k1 v1", "axis", "0"}, {"Squeeze", "q1 zero", "q"}, \
        {"Squeeze", "k1 zero", "k"},                                                 \
    {                                                                                \
        "Squeeze", "v1 zero", "v"                                                    \
    }
#define PACKED_SHAPES                             \
    {"parts", "-1 5 3 2 4"}, {"thirds", "1 1 1"}, \
    {                                             \
        "zero", "0"                               \
    }
#define JOINED                                   \
    {"Transpose", "o", "ot", "perm", "0 2 1 3"}, \
    {                                            \
        "Reshape", "ot joined", "y"              \
    }

/* Queries of [batch,5,columns], of heads of four numbers, and one head of keys and values for all,
 * or two for four. */
#define ONE_FOR_ALL                                           \
    {"heads", "-1 5 2 4"}, {"columns", "8 4 4"}, {"a1", "1"}, \
    {                                                         \
        "joined", "-1 5 8"                                    \
    }
#define APART                                                                       \
    {"Split", "x columns", "q0 k0 v0", "axis", "2"}, {"Reshape", "q0 heads", "q1"}, \
    {                                                                               \
        "Transpose", "q1", "q", "perm", "0 2 1 3"                                   \
    }
#define TWO_FOR_FOUR                                                                             \
    {"heads", "-1 5 4 4"}, {"columns", "16 8 8"}, {"few", "-1 5 2 4"}, {"a1", "1"}, {"a2", "2"}, \
        {"twice", "1 1 2 1 1"}, {"outside", "1 2 1 1 1"}, {"whole", "-1 4 5 4"},                 \
    {                                                                                            \
        "joined", "-1 5 16"                                                                      \
    }
#define REPEATED(of, axis, op, times)                                                  \
    {"Reshape", of "0 few", of "1"}, {"Transpose", of "1", of "2", "perm", "0 2 1 3"}, \
        {"Unsqueeze", of "2 " axis, of "3"}, {op, of "3 " times, of "4"},              \
    {                                                                                  \
        "Reshape", of "4 whole", of                                                    \
    }
#define ATTEND                                                                                     \
    {"Transpose", "k", "kt", "perm", "0 1 3 2"}, {"MatMul", "q kt", "s"}, {"Mul", "s half", "sm"}, \
        {"Softmax", "sm", "p", "axis", "-1"},                                                      \
    {                                                                                              \
        "MatMul", "p v", "o"                                                                       \
    }

static const struct spelling spellings[] = {
    {"one head of keys and values",
     "? 5 16",
     "? 5 8",
     {ONE_FOR_ALL},
     {APART, {"Unsqueeze", "k0 a1", "k"}, {"Unsqueeze", "v0 a1", "v"}, ATTEND, JOINED},
     1,
     1},
    {"one head of keys, two of values",
     "? 5 20",
     "? 5 8",
     {{"heads", "-1 5 2 4"}, {"columns", "8 4 8"}, {"a1", "1"}, {"joined", "-1 5 8"}},
     {APART,
      {"Unsqueeze", "k0 a1", "k"},
      {"Reshape", "v0 heads", "v1"},
      {"Transpose", "v1", "v", "perm", "0 2 1 3"},
      ATTEND,
      JOINED},
     0},
    {"two heads of keys and values for four, by Expand",
     "? 5 32",
     "? 5 16",
     {TWO_FOR_FOUR},
     {APART, REPEATED("k", "a2", "Expand", "twice"), REPEATED("v", "a2", "Expand", "twice"), ATTEND,
      JOINED},
     1,
     1},
    {"two heads of keys and values for four, by Tile",
     "? 5 32",
     "? 5 16",
     {TWO_FOR_FOUR},
     {APART, REPEATED("k", "a2", "Tile", "twice"), REPEATED("v", "a2", "Tile", "twice"), ATTEND,
      JOINED},
     1,
     1},
    {"heads of keys and values in turn, which no group describes",
     "? 5 32",
     "? 5 16",
     {TWO_FOR_FOUR},
     {APART, REPEATED("k", "a1", "Expand", "outside"), REPEATED("v", "a1", "Expand", "outside"),
      ATTEND, JOINED},
     1},
    {"heads that are channels of maps",
     "? 8 3 5",
     "? 8 3 5",
     {{"parts", "-1 2 4 15"}, {"joined", "-1 8 3 5"}},
     {{"Conv", "x c1", "q0"},
      {"Conv", "x c2", "k0"},
      {"Conv", "x c3", "v0"},
      {"Reshape", "q0 parts", "q1"},
      {"Reshape", "k0 parts", "k"},
      {"Reshape", "v0 parts", "v1"},
      {"Transpose", "q1", "q", "perm", "0 1 3 2"},
      {"Transpose", "v1", "v", "perm", "0 1 3 2"},
      {"MatMul", "q k", "s"},
      {"Softmax", "s", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      {"Transpose", "o", "ot", "perm", "0 1 3 2"},
      {"Reshape", "ot joined", "y"}},
     1,
     6},
    {"queries that are added to the result",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Mul", "s half", "sm"},

      {"Softmax", "sm", "p", "axis", "-1"},
      {"MatMul", "p v", "m"},
      {"Add", "m q", "o"},
      JOINED},
     1,
     1},
    {"before it",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Mul", "s half", "sm"},

      {"Softmax", "sm", "p", "axis", "-1"},
      {"MatMul", "p v", "m"},
      {"Add", "q m", "o"},
      JOINED},
     1,
     1},
    {"keys that are added to the result",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Mul", "s half", "sm"},

      {"Softmax", "sm", "p", "axis", "-1"},
      {"MatMul", "p v", "m"},
      {"Add", "m k", "o"},
      JOINED},
     1,
     0},
    {"queries that are added beside a mask",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Mul", "s half", "sm"},
      {"Add", "sm bias", "sb"},
      {"Softmax", "sb", "p", "axis", "-1"},
      {"MatMul", "p v", "m"},
      {"Add", "m q", "o"},
      JOINED},
     1,
     0},
    {"keys of all pictures",
     "2 5 24",
     "2 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"ReduceMean", "k", "km", "axes", "0 "},
      {"Transpose", "km", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Softmax", "s", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      JOINED},
     0},
    {"both scaled",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Mul", "q root", "qs"},
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"Mul", "root kt", "ks"},
      {"MatMul", "qs ks", "s"},
      {"Softmax", "s", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      JOINED},
     1,
     1},
    {"masked and guarded",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Div", "s two", "sd"},
      {"Add", "bias sd", "sb"},
      {"Add", "sb row", "sr"},
      {"Softmax", "sr", "p0", "axis", "-1"},
      {"IsNaN", "p0", "n"},
      {"Where", "n nothing p0", "p"},
      {"MatMul", "p v", "o"},
      JOINED},
     1,
     1},
    {"a scale for each head",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Mul", "s each", "sm"},
      {"Add", "sm bias", "sb"},
      {"Softmax", "sb", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      JOINED},
     1},
    {"a large number in a masked score's place",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Mul", "q half", "qs"},
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "qs kt", "s"},
      {"Where", "hidden low s", "sm"},
      {"Softmax", "sm", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      JOINED},
     1,
     1},
    {"scores where they are seen, behind a bias",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Mul", "s half", "sh"},
      {"Add", "sh bias", "sb"},
      {"Where", "seen sb low", "sm"},
      {"Softmax", "sm", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      JOINED},
     1,
     1},
    {"gathered, the scale after the bias",
     "? 5 24",
     "? 5 8",
     {{"parts", "-1 5 3 2 4"}, {"joined", "-1 5 8"}},
     {{"Reshape", "x parts", "r"},
      {"Transpose", "r", "t", "perm", "2 0 3 1 4"},
      {"Gather", "t i0", "q", "axis", "0"},
      {"Gather", "t i1", "k", "axis", "0"},
      {"Gather", "t i2", "v", "axis", "0"},
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Add", "s bias", "sb"},
      {"Mul", "sb half", "sm"},
      {"Softmax", "sm", "p", "axis", "3"},
      {"Identity", "p", "pi"},
      {"MatMul", "pi v", "o"},
      JOINED},
     1,
     1},
    {"sliced from tokens first",
     "5 ? 24",
     "5 ? 8",
     {{"heads", "5 -1 2 4"},
      {"joined", "5 -1 8"},
      {"end1", "8"},
      {"end2", "16"},
      {"end3", "24"},
      {"zero", "0"}},
     {{"Slice", "x zero end1 last", "q0"},
      {"Slice", "x end1 end2 last", "k0"},
      {"Slice", "x end2 end3 last", "v0"},
      {"Reshape", "q0 heads", "q1"},
      {"Reshape", "k0 heads", "k1"},
      {"Reshape", "v0 heads", "v1"},
      {"Transpose", "q1", "q", "perm", "1 2 0 3"},
      {"Transpose", "k1", "kt", "perm", "1 2 3 0"},
      {"Transpose", "v1", "v", "perm", "1 2 0 3"},
      {"MatMul", "q kt", "s"},
      {"Mul", "half s", "sm"},
      {"Softmax", "sm", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      {"Transpose", "o", "ot", "perm", "2 0 1 3"},
      {"Reshape", "ot joined", "y"}},
     1,
     1},
    {"windows with a mask of their own",
     "? 10 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}, {"windows", "-1 2 2 5 5"}, {"whole", "-1 2 5 5"}},
     {PACKED,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Add", "s bias", "sb"},
      {"Reshape", "sb windows", "sw"},
      {"Add", "sw window", "sm"},
      {"Reshape", "sm whole", "sr"},
      {"Softmax", "sr", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      JOINED},
     1,
     1},
    {"heads counted with the batch, beside a mask that is computed",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES,
      {"joined", "-1 5 8"},
      {"flat", "-1 5 4"},
      {"scores", "-1 2 5 5"},
      {"rows", "-1 5 5"},
      {"heads", "-1 2 5 4"},
      {"mask", "-1 1 1 5"}},
     {{"ReduceMean", "x", "m0", "axes", "2 "},
      {"Reshape", "m0 mask", "m"},
      PACKED,
      {"Reshape", "q flat", "qf"},
      {"Reshape", "k flat", "kf"},
      {"Reshape", "v flat", "vf"},
      {"Transpose", "kf", "kt", "perm", "0 2 1"},
      {"MatMul", "qf kt", "s"},
      {"Reshape", "s scores", "s4"},
      {"Add", "s4 m", "sm"},
      {"Reshape", "sm rows", "s3"},
      {"Softmax", "s3", "p", "axis", "-1"},
      {"MatMul", "p vf", "of"},
      {"Reshape", "of heads", "o"},
      JOINED},
     1,
     2},
    {"a computed mask of other dims than the heads'",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES,
      {"joined", "-1 5 8"},
      {"flat", "-1 5 4"},
      {"scores", "-1 1 5 5"},
      {"rows", "-1 5 5"},
      {"heads", "-1 2 5 4"},
      {"mask", "-1 1 1 5"}},
     {{"ReduceMean", "x", "m0", "axes", "1 2 "},
      {"ReduceMean", "m0", "m", "axes", "0 "},
      PACKED,
      {"Reshape", "q flat", "qf"},
      {"Reshape", "k flat", "kf"},
      {"Reshape", "v flat", "vf"},
      {"Transpose", "kf", "kt", "perm", "0 2 1"},
      {"MatMul", "qf kt", "s"},
      {"Reshape", "s scores", "s4"},
      {"Add", "s4 m", "sm"},
      {"Reshape", "sm rows", "s3"},
      {"Softmax", "s3", "p", "axis", "-1"},
      {"MatMul", "p vf", "of"},
      {"Reshape", "of heads", "o"},
      JOINED},
     0},
    {"tokens first, heads counted with the batch, shapes asked for",
     "? 5 8",
     "? 5 8",
     {{"five", "5"},
      {"four", "4"},
      {"zero", "0"},
      {"thirds", "5 -1 3 8"},
      {"rows", "-1 8"},
      {"joined", "5 -1 8"}},
     {{"Transpose", "x", "xt", "perm", "1 0 2"},
      {"Shape", "xt", "dims"},
      {"Gather", "dims i1", "n", "axis", "0"},
      {"Mul", "n i2", "nh"},
      {"Unsqueeze", "nh zero", "nh1"},
      {"Concat", "five nh1 four", "apart", "axis", "0"},
      {"MatMul", "xt packed", "r0"},
      {"Reshape", "r0 thirds", "r"},
      {"Transpose", "r", "t", "perm", "2 0 1 3"},
      {"Gather", "t i0", "q1", "axis", "0"},
      {"Gather", "t i1", "k1", "axis", "0"},
      {"Gather", "t i2", "v1", "axis", "0"},
      {"Reshape", "q1 apart", "q2"},
      {"Reshape", "k1 apart", "k2"},
      {"Reshape", "v1 apart", "v2"},
      {"Transpose", "q2", "q", "perm", "1 0 2"},
      {"Transpose", "k2", "kt", "perm", "1 2 0"},
      {"Transpose", "v2", "v", "perm", "1 0 2"},
      {"MatMul", "q kt", "s"},
      {"Softmax", "s", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      {"Transpose", "o", "ot", "perm", "1 0 2"},
      {"Reshape", "ot rows", "or"},
      {"MatMul", "or w3", "y0"},
      {"Reshape", "y0 joined", "y1"},
      {"Transpose", "y1", "y", "perm", "1 0 2"}},
     1,
     3},
    {"channels first, values times shares",
     "? 24 5",
     "? 8 5",
     {{"parts", "-1 2 12 5"}, {"thirds", "4 4 4"}, {"joined", "-1 8 5"}},
     {{"Reshape", "x parts", "r"},
      {"Split", "r thirds", "q0 k v", "axis", "2"},
      {"Transpose", "q0", "q", "perm", "0 1 3 2"},
      {"MatMul", "q k", "s"},
      {"Mul", "s half", "sm"},
      {"Softmax", "sm", "p", "axis", "-1"},
      {"Transpose", "p", "pt", "perm", "0 1 3 2"},
      {"MatMul", "v pt", "o"},
      {"Reshape", "o joined", "y"}},
     1},
    {"heads among the batch, which no steps describe",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}, {"flat", "-1 5 4"}, {"whole", "-1 2 5 4"}},
     {PACKED,
      {"Reshape", "q flat", "qf"},
      {"Reshape", "k flat", "kf"},
      {"Reshape", "v flat", "vf"},
      {"Transpose", "kf", "kt", "perm", "0 2 1"},
      {"MatMul", "qf kt", "s"},
      {"Softmax", "s", "p", "axis", "-1"},
      {"MatMul", "p vf", "of"},
      {"Reshape", "of whole", "o"},
      JOINED},
     1},
    {"a scale from a shape",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Shape", "q", "dims"},
      {"Gather", "dims i3", "size"},
      {"Cast", "size", "sizef", "to", "1"},
      {"Sqrt", "sizef", "rootf"},
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Div", "s rootf", "sm"},
      {"Softmax", "sm", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      JOINED},
     1,
     1},
    {"a scale from a part of a shape",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Shape", "q", "dims", "start", "1"},
      {"Gather", "dims i2", "size"},
      {"Cast", "size", "sizef", "to", "1"},
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Div", "s sizef", "sm"},
      {"Softmax", "sm", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      JOINED},
     0},
    {"one head of queries for two of keys",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}, {"from", "0"}, {"to", "1"}},
     {PACKED,
      {"Slice", "q from to to", "qa"},
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "qa kt", "s"},
      {"Softmax", "s", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      JOINED},
     0},
    {"scores that are an output too",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Softmax", "s", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      JOINED},
     0,
     0,
     "s",
     "? 2 5 5"},
    {"shares that are an output too",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Softmax", "s", "p", "axis", "-1"},
      {"MatMul", "p v", "o"},
      JOINED},
     0,
     0,
     "p",
     "? 2 5 5"},
    {"a softmax along the queries",
     "? 5 24",
     "? 5 8",
     {PACKED_SHAPES, {"joined", "-1 5 8"}},
     {PACKED,
      {"Transpose", "k", "kt", "perm", "0 1 3 2"},
      {"MatMul", "q kt", "s"},
      {"Softmax", "s", "p", "axis", "2"},
      {"MatMul", "p v", "o"},
      JOINED},
     0},
};

/* Products of x or of something else; heads, two of four numbers, of [batch,5,8]. */
#define HEADS_OF(from, to)                         \
    {"Reshape", from " heads", to "h"},            \
    {                                              \
        "Transpose", to "h", to, "perm", "0 2 1 3" \
    }
#define MIXED                                                                                      \
    {"Transpose", "k", "kt", "perm", "0 1 3 2"}, {"MatMul", "q kt", "s"}, {"Mul", "s half", "sm"}, \
        {"Softmax", "sm", "p", "axis", "-1"},                                                      \
    {                                                                                              \
        "MatMul", "p v", "o"                                                                       \
    }
#define EIGHT_SHAPES       \
    {"heads", "-1 5 2 4"}, \
    {                      \
        "joined", "-1 5 8" \
    }

/* Products that stand beside each other are one. */
static const struct spelling products[] = {
    {"one input",
     "? 5 8",
     "? 5 8",
     {EIGHT_SHAPES},
     {{"MatMul", "x w1", "q0"},
      {"Add", "q0 b1", "qb"},
      {"MatMul", "x w2", "k0"},
      {"MatMul", "x w3", "v0"},
      {"Add", "b2 v0", "vb"},
      HEADS_OF("qb", "q"),
      HEADS_OF("k0", "k"),
      HEADS_OF("vb", "v"),
      MIXED,
      JOINED},
     1,
     2},
    {"keys and values of another input",
     "? 5 8",
     "? 5 8",
     {EIGHT_SHAPES},
     {{"Relu", "x", "z"},
      {"MatMul", "x w1", "q0"},
      {"MatMul", "z w2", "k0"},
      {"MatMul", "z w3", "v0"},
      HEADS_OF("q0", "q"),
      HEADS_OF("k0", "k"),
      HEADS_OF("v0", "v"),
      MIXED,
      JOINED},
     1,
     4},
    {"keys that are read elsewhere too",
     "? 5 8",
     "? 5 8",
     {EIGHT_SHAPES},
     {{"MatMul", "x w1", "q0"},
      {"MatMul", "x w2", "k0"},
      {"MatMul", "x w3", "v0"},
      HEADS_OF("q0", "q"),
      HEADS_OF("k0", "k"),
      HEADS_OF("v0", "v"),
      MIXED,
      {"Transpose", "o", "ot", "perm", "0 2 1 3"},
      {"Reshape", "ot joined", "j"},
      {"Mul", "j k0", "y"}},
     1,
     4},
    {"keys that are the values too",
     "? 5 8",
     "? 5 8",
     {EIGHT_SHAPES},
     {{"MatMul", "x w1", "q0"},
      {"MatMul", "x w2", "k0"},
      {"Add", "k0 b2", "kb"},
      HEADS_OF("q0", "q"),
      HEADS_OF("kb", "k"),
      HEADS_OF("kb", "v"),
      MIXED,
      JOINED},
     1,
     2},
    {"tokens first",
     "5 ? 8",
     "5 ? 8",
     {{"heads", "5 -1 2 4"}, {"joined", "5 -1 8"}},
     {{"MatMul", "x w1", "q0"},
      {"MatMul", "x w2", "k0"},
      {"MatMul", "x w3", "v0"},
      {"Reshape", "q0 heads", "q1"},
      {"Reshape", "k0 heads", "k1"},
      {"Reshape", "v0 heads", "v1"},
      {"Transpose", "q1", "q", "perm", "1 2 0 3"},
      {"Transpose", "k1", "k", "perm", "1 2 0 3"},
      {"Transpose", "v1", "v", "perm", "1 2 0 3"},
      MIXED,
      {"Transpose", "o", "ot", "perm", "2 0 1 3"},
      {"Reshape", "ot joined", "y"}},
     1,
     2},
    {"heads that go across rows stay as they are",
     "? 5 8",
     "? 20 2",
     {{"heads", "-1 2 5 4"}, {"joined", "-1 20 2"}},
     {{"MatMul", "x w1", "q0"},
      {"MatMul", "x w2", "k0"},
      {"MatMul", "x w3", "v0"},
      {"Reshape", "q0 heads", "q"},
      {"Reshape", "k0 heads", "k"},
      {"Reshape", "v0 heads", "v"},
      MIXED,
      {"Reshape", "o joined", "y"}},
     1,
     4},
};

static void add_floats(struct proto *graph, const char *name, const char *dims, int count,
                       float hidden)
{
    float data[192];
    for (int i = 0; i < count; i++)
        data[i] = i % 7 == 3 && hidden ? hidden : spelling_number(i + 11);
    proto_initializer(graph, name, 1, dims, data, (size_t)count * sizeof *data);
}

static void add_constants(struct proto *graph)
{
    static const struct {
        const char *name;
        float       value;
    } numbers[] = {{"root", 0.70710678f}, {"half", 0.5f}, {"two", 2}, {"nothing", 0}};
    for (size_t i = 0; i < SAC_COUNT(numbers); i++)
        proto_initializer(graph, numbers[i].name, 1, "", &numbers[i].value, sizeof(float));
    for (int64_t i = 0; i < 4; i++)
        proto_initializer(graph, (const char *[]){"i0", "i1", "i2", "i3"}[i], 7, "", &i, sizeof i);
    const int64_t last = 2;
    proto_initializer(graph, "last", 7, "1", &last, sizeof last);
    const float   each[] = {0.7f, 1.9f}, low = -3.4e38f;
    const uint8_t hidden[] = {0, 0, 1, 0, 1}, seen[] = {1, 1, 0, 0, 0};
    proto_initializer(graph, "each", 1, "2 1 1", each, sizeof each);
    proto_initializer(graph, "low", 1, "", &low, sizeof low);
    proto_initializer(graph, "hidden", 9, "5", hidden, sizeof hidden);
    proto_initializer(graph, "seen", 9, "1 1 1 5", seen, sizeof seen);
    add_floats(graph, "bias", "1 2 5 5", 50, 0);
    add_floats(graph, "row", "5", 5, -INFINITY);
    for (int i = 0; i < 3; i++)
        add_floats(graph, (const char *[]){"w1", "w2", "w3"}[i], "8 8", 64, 0.3f - (float)i);
    for (int i = 0; i < 3; i++)
        add_floats(graph, (const char *[]){"c1", "c2", "c3"}[i], "8 8 1 1", 64, 0.2f - (float)i);
    add_floats(graph, "packed", "8 24", 192, 0.2f);
    add_floats(graph, "b1", "8", 8, 2);
    add_floats(graph, "b2", "8", 8, -3);
    add_floats(graph, "window", "1 2 1 5 5", 50, -100);
}

static void each_spelling_is_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(spellings); i++)
        spelling_check(&spellings[i], "FusedAttention", add_constants);
}

static void products_of_one_input_are_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(products); i++)
        spelling_check(&products[i], "FusedAttention", add_constants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_spelling_is_one_step),
        cmocka_unit_test(products_of_one_input_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
