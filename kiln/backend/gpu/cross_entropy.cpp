// Softmax cross-entropy: kernels/cross_entropy.k and cross_entropy_backward.k.
#include "kiln/backend/gpu/nn.h"

namespace kiln::gpu {
namespace {

// Classes that a work-item takes at once.
int64_t vector_of(DType dtype, int64_t rows, int64_t classes) {
  return classes % pack_of(dtype) == 0 && rows * classes >= kFewElements ? pack_of(dtype) : 1;
}

std::string loss_defines(DType dtype, bool wide, int64_t vector) {
  return define("VECTOR", std::to_string(vector)) + define("INDEX", index_type(wide)) +
         define("IN0", dialect_name(dtype)) + define("SCALAR", scalar_type(dtype)) +
         arithmetic(dtype);
}

}  // namespace

Pair cross_entropy(const H& logits, const H& targets, const CrossEntropyOptions& options) {
  const int64_t rows = logits->shape()[0];
  const int64_t classes = logits->shape()[1];
  const DType dtype = logits->dtype();
  H loss = empty(Shape{rows}, dtype, logits->device());
  H lse = empty(Shape{rows}, dtype, logits->device());
  if (rows == 0) return {loss, lse};
  const H x = packed(logits);
  const H index = packed(targets);
  const int64_t vector = vector_of(dtype, rows, classes);
  const auto defines = [&] { return loss_defines(dtype, false, vector); };
  const Kernel kernel{.file = "cross_entropy", .choice = choice(dtype, vector), .defines = defines};
  GpuDevice& gpu = x->gpu();
  const ScalarArgument smoothing(dtype, options.label_smoothing);
  const int32_t code = gpu.fault_code("cross_entropy", FaultKind::index);
  const Argument arguments[] = {Argument::memory(loss->storage()->memory()),
                                Argument::memory(lse->storage()->memory()),
                                Argument::memory(x->storage()->memory()),
                                Argument::memory(index->storage()->memory()),
                                Argument::bytes(classes),
                                Argument::bytes(options.ignore_index),
                                smoothing.argument(),
                                Argument::memory(gpu.fault_word()),
                                Argument::bytes(code)};
  gpu.launch_groups(kernel, {static_cast<size_t>(rows), 1, 1}, {kGroup, 1, 1}, arguments);
  return {loss, lse};
}

H cross_entropy_backward(const H& g, const H& logits, const H& targets, const H& lse,
                         const CrossEntropyOptions& options) {
  const int64_t rows = logits->shape()[0];
  const int64_t classes = logits->shape()[1];
  const DType dtype = logits->dtype();
  H to = empty(logits->shape(), dtype, logits->device());
  if (to->numel() == 0) return to;
  const H grads = packed(g);
  const H x = packed(logits);
  const H index = packed(targets);
  const H sums = packed(lse);
  const bool wide = to->numel() >= (int64_t{1} << 31);
  const int64_t vector = vector_of(dtype, rows, classes);
  const auto defines = [&] { return loss_defines(dtype, wide, vector); };
  const Kernel kernel{
      .file = "cross_entropy_backward", .choice = choice(dtype, wide, vector), .defines = defines};
  GpuDevice& gpu = x->gpu();
  const ScalarArgument smoothing(dtype, options.label_smoothing);
  const int32_t code = gpu.fault_code("cross_entropy", FaultKind::index);
  const Argument arguments[] = {Argument::memory(to->storage()->memory()),
                                Argument::memory(grads->storage()->memory()),
                                Argument::memory(x->storage()->memory()),
                                Argument::memory(index->storage()->memory()),
                                Argument::memory(sums->storage()->memory()),
                                Argument::bytes(rows),
                                Argument::bytes(classes),
                                Argument::bytes(options.ignore_index),
                                smoothing.argument(),
                                Argument::memory(gpu.fault_word()),
                                Argument::bytes(code)};
  gpu.launch(kernel, static_cast<size_t>(to->numel() / vector), arguments);
  return to;
}

}  // namespace kiln::gpu
