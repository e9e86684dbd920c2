// What is chosen by values: the shapes of results follow from them.
#include <algorithm>
#include <map>

#include "kiln/onnx/read/window.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/index/unique.h"

namespace kiln::onnx {

namespace {

void nonzero_of(Call& c) { c.out(kiln::nonzero(c.in(0)).transpose(0, 1)); }

void compress(Call& c) {
  const bool flat = !c.has("axis");
  const Tensor x = flat ? c.in(0).flatten() : c.in(0);
  const int64_t axis = flat ? 0 : c.axis_of("axis", 0, x.dim());
  const Tensor condition = c.in(1);
  if (condition.dim() != 1 || condition.size(0) > x.size(axis)) {
    c.fail(concat("expected one flag for each of ", x.size(axis), "; got ", condition.shape()));
  }
  c.out(x.index_select(axis, kiln::nonzero(condition).select(1, 0)));
}

// Ascending, or in the order in which the values come first.
void unique_of(Call& c) {
  const bool flat = !c.has("axis");
  const Tensor x = flat ? c.in(0).flatten() : c.in(0);
  const int64_t axis = flat ? 0 : c.axis_of("axis", 0, x.dim());
  Unique found = kiln::unique(x, true, true, axis);
  const int64_t n = x.size(axis), k = found.values.size(axis);
  const Tensor inverse = found.inverse.flatten();
  const Tensor first = scatter_reduce(kiln::full({k}, n, {.dtype = DType::i64}), 0, inverse,
                                      kiln::arange(n), "amin");
  if (c.i("sorted", 1) != 0) {
    c.out(found.values, 0);
    c.out(first, 1);
    c.out(inverse, 2);
    c.out(found.counts, 3);
    return;
  }
  const Tensor order = first.argsort();
  c.out(found.values.index_select(axis, order), 0);
  c.out(first.index_select(0, order), 1);
  c.out(order.argsort().index_select(0, inverse), 2);
  c.out(found.counts.index_select(0, order), 3);
}

// The first elements of each row, so many as its length says, the other way round.
void reverse_sequence(Call& c) {
  const Tensor x = c.in(0), lengths = c.in(1);
  if (x.dim() < 2) c.fail(concat("expected time and batch; got ", x.shape()));
  const int64_t time = c.axis_of("time_axis", 0, x.dim()),
                batch = c.axis_of("batch_axis", 1, x.dim());
  if (time == batch || lengths.dim() != 1 || lengths.size(0) != x.size(batch)) {
    c.fail(concat("expected a length for each of ", x.size(batch), "; got ", lengths.shape()));
  }
  Shape along_time = Shape::filled(static_cast<int>(x.dim()), 1), along_batch = along_time;
  along_time[static_cast<int>(time)] = x.size(time);
  along_batch[static_cast<int>(batch)] = x.size(batch);
  const Tensor t = kiln::arange(x.size(time)).reshape(along_time);
  const Tensor n = lengths.to(DType::i64).reshape(along_batch);
  const Tensor from = kiln::where(t.lt(n), n.sub(t).sub(1), t);
  c.out(x.gather(time, from.expand(x.shape())));
}

// An update written into a cache along an axis, from a place of its own for each batch on.
void tensor_scatter(Call& c) {
  const Tensor cache = c.in(0), update = c.in(1);
  const std::string mode = c.s("mode", "linear");
  if (mode != "linear" && mode != "circular") c.refuse("the mode '" + mode + "'");
  const int64_t axis = c.axis_of("axis", -2, cache.dim());
  if (axis == 0 || update.dim() != cache.dim()) {
    c.fail(concat("expected an axis behind the batch, and an update like ", cache.shape()));
  }
  for (int64_t d = 0; d < cache.dim(); ++d) {
    if (d == axis ? update.size(d) > cache.size(d) : update.size(d) != cache.size(d)) {
      c.fail(concat("an update ", update.shape(), " of a cache ", cache.shape()));
    }
  }
  Shape along = Shape::filled(static_cast<int>(cache.dim()), 1), batch = along;
  along[static_cast<int>(axis)] = update.size(axis);
  batch[0] = cache.size(0);
  Tensor place = kiln::arange(update.size(axis)).reshape(along);
  if (c.has(2)) place = place.add(c.in(2).to(DType::i64).reshape(batch));
  if (mode == "circular") place = place.remainder(cache.size(axis));
  c.out(cache.scatter(axis, place.expand(update.shape()), update));
}

// Elements at the places, in the whole tensor, that MaxPool took them from; 0 elsewhere.
void max_unpool(Call& c) {
  const Tensor x = c.in(0), places = c.in(1);
  const std::vector<int64_t> kernel = c.ints("kernel_shape");
  const Window w = window_of(c, x, kernel);
  if (!(places.shape() == x.shape())) c.fail("expected a place for each element");
  Shape full{x.size(0), x.size(1)};
  int64_t count = x.size(0) * x.size(1);
  for (int d = 0; d < w.dims; ++d) {
    const int64_t n = (x.size(d + 2) - 1) * w.stride[d] - w.before[d] - w.after[d] + w.kernel[d];
    if (n < 0 || n > (1 << 28) || (n != 0 && count > (int64_t{1} << 34) / n)) {
      c.fail(concat("got the size ", n));
    }
    full.push_back(n);
    count *= n;
  }
  const Tensor flat = kiln::zeros({count}, {.dtype = x.dtype()});
  Tensor y = flat.scatter(0, places.flatten(), x.flatten()).reshape(full);
  if (c.has(2)) {
    const std::vector<int64_t> size = c.integers(2);
    if (size.size() != static_cast<size_t>(x.dim())) c.fail("expected a size for each dim");
    Shape ends;
    for (int64_t d = x.dim() - 1; d >= 0; --d) {
      const int64_t more = size[static_cast<size_t>(d)] - y.size(d);
      if (more < 0 || more > (1 << 28)) c.fail("an output_shape that is too small or too large");
      ends.push_back(0);
      ends.push_back(more);
    }
    y = functional::pad(y, ends, "constant", 0.0);
  }
  c.out(y);
}

// How often each of a list of sequences of integers, with gaps of equal length, is in a row.
void count_grams(Call& c) {
  const Tensor x = c.in(0);
  if (x.dim() != 1 && x.dim() != 2) c.fail(concat("expected [C] or [B, C]; got ", x.shape()));
  if (c.has("pool_strings")) c.refuse("texts");
  const std::vector<int64_t> pool = c.ints("pool_int64s"), starts = c.ints("ngram_counts");
  const std::vector<int64_t> places = c.ints("ngram_indexes");
  const int64_t least = c.i("min_gram_length", 1), most = c.i("max_gram_length", 1);
  const int64_t skips = c.i("max_skip_count", 0);
  if (least < 1 || most < least || skips < 0) c.fail("lengths that no sequence has");
  std::map<std::vector<int64_t>, size_t> grams;
  size_t id = 0;
  for (size_t n = 0; n < starts.size(); ++n) {
    const auto length = static_cast<int64_t>(n) + 1, size = static_cast<int64_t>(pool.size());
    const int64_t begin = starts[n], end = n + 1 < starts.size() ? starts[n + 1] : size;
    if (begin < 0 || end < begin || end > size || (end - begin) % length != 0) {
      c.fail("ngram_counts that do not fit the pool");
    }
    for (int64_t at = begin; at < end; at += length, ++id) {
      if (length >= least && length <= most) {
        grams.try_emplace({pool.begin() + at, pool.begin() + at + length}, id);
      }
    }
  }
  if (id > places.size()) c.fail("fewer ngram_indexes than sequences");
  int64_t width = 0;
  for (const int64_t place : places) {
    if (place < 0 || place >= (1 << 24)) c.fail(concat("got the index ", place));
    width = std::max(width, place + 1);
  }
  const int64_t rows = x.dim() == 1 ? 1 : x.size(0), count = x.size(-1);
  if (rows * width > (int64_t{1} << 28)) c.fail("a result of more than 2^28 numbers");
  const std::vector<int64_t> values = c.integers(0);
  std::vector<double> out(static_cast<size_t>(rows * width), 0.0);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t step = 1; step <= std::min(skips + 1, std::max<int64_t>(1, count)); ++step) {
      for (int64_t at = 0; at < count; ++at) {
        std::vector<int64_t> gram;
        for (int64_t n = 0; n < most && at + n * step < count; ++n) {
          gram.push_back(values[static_cast<size_t>(row * count + at + n * step)]);
          if (n == 0 && step > 1) continue;  // one element has no gaps
          const auto found = grams.find(gram);
          if (found == grams.end()) continue;
          out[static_cast<size_t>(row * width + places[found->second])] += 1;
        }
      }
    }
  }
  const std::string mode = c.s("mode", "TF");
  const auto* weights = c.attribute("weights");  // of the sequences, in the pool's order
  std::vector<double> by(static_cast<size_t>(width), 1.0);
  for (size_t i = 0; weights != nullptr && i < std::min(places.size(), weights->floats.size());
       ++i) {
    by[static_cast<size_t>(places[i])] = static_cast<double>(weights->floats[i]);
  }
  for (size_t i = 0; mode != "TF" && i < out.size(); ++i) {
    const double weight = by[i % by.size()];
    out[i] = (mode == "IDF" ? (out[i] > 0 ? 1.0 : 0.0) : out[i]) * weight;
  }
  const Shape shape = x.dim() == 1 ? Shape{width} : Shape{rows, width};
  c.out(Tensor(TensorData(out, shape).cast(DType::f32)));
}

constexpr Operator kSelectionOperators[] = {
    {"NonZero", nonzero_of},
    {"Compress", compress},
    {"Unique", unique_of},
    {"ReverseSequence", reverse_sequence},
    {"TensorScatter", tensor_scatter},
    {"MaxUnpool", max_unpool},
    {"TfIdfVectorizer", count_grams},
};

}  // namespace

std::span<const Operator> selection_operators() { return kSelectionOperators; }

}  // namespace kiln::onnx
