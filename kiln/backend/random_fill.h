// How a stream of random bits becomes a tensor of numbers, the same for every backend.
#pragma once

#include "kiln/core/random.h"
#include "kiln/core/tensor_data.h"

namespace kiln::host {

// Note [Random numbers]: block b of a stream is the four words stream.block(b)[0..3].
//
// Element i (row-major) of a tensor of a 4-byte dtype or smaller draws word i % 4 of block i / 4.
// Of f64 and i64 it draws two words, 2 (i % 2) and the next, of block i / 2: high half first. With
// u the uniform draw in [0, 1) (uniform_f32, uniform_f64 in random.h):
//   uniform      low + u (high - low), in f32 (f64 for 8-byte dtypes), but at most
//   largest_uniform() bernoulli    u < p exponential  -log(1 - u) / rate normal       Box-Muller on
//   the draws u and v of elements 2j and 2j + 1: they become
//                mean + std r cos(2 pi v) and mean + std r sin(2 pi v), r = sqrt(-2 log(1 - u))
//   integers     low + (word (high - low)) >> 32; 8-byte dtypes: both words as one number, >> 64
// A dtype other than f32 and f64 (and i64 for integers) converts what f32 (for i64: f64) would
// hold. f32 results use plain products and sums and the polynomials in random_math.h, without
// contraction, so that vectorized code can yield the same bits.
//
// Hence four elements (two of an 8-byte dtype) that share a block depend on nothing else, and any
// split at multiples of four may run in parallel.

// The number of 32-bit words to reserve for `numel` elements.
int64_t random_words(int64_t numel, DType dtype);

// The largest number of `dtype` below the end of a uniform distribution's interval, which excludes
// it: rounding may reach it.
double largest_uniform(Distribution distribution, DType dtype);

// Fills all of `out`.
void fill_random(TensorData& out, Distribution distribution, RandomStream stream);

// Writes elements [begin, end) of such a fill to out[begin, end), where `out` points at element 0
// of contiguous memory. `begin` must be a multiple of 4.
void fill_random(void* out, DType dtype, int64_t begin, int64_t end, Distribution distribution,
                 RandomStream stream);

}  // namespace kiln::host
