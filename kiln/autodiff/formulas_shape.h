// Creation, moving, shape and indexing.
#pragma once

#include "kiln/autodiff/record.h"

namespace kiln::autodiff {

template <class B>
struct FormulasShape : AutodiffBase<B> {
  using Base = AutodiffBase<B>;
  using Base::attach;
  using Base::edge;
  using Base::edges;
  using Base::has_node;
  using Base::in;
  using Base::save;
  using Base::save_constant;
  using Base::save_if;
  using Base::sum_to;
  using Base::tracked;
  using Base::zeros_like;
  using typename Base::A;
  using typename Base::Bool;
  using typename Base::F;
  using typename Base::Inner;
  using typename Base::Int;
  using typename Base::P;
  using typename Base::Quantized;
  using typename Base::T;

  static T float_from_data(const TensorData& data, Device device) {
    return {B::float_from_data(data, device)};
  }
  static TensorData float_into_data(F x) { return B::float_into_data(in(x)); }
  static T float_empty(const Shape& shape, DType dtype, Device device) {
    return {B::float_empty(shape, dtype, device)};
  }
  static T float_full(const Shape& shape, Scalar value, DType dtype, Device device) {
    return {B::float_full(shape, value, dtype, device)};
  }
  static T float_random(const Shape& shape, Distribution distribution, RandomStream stream,
                        DType dtype, Device device) {
    return {B::float_random(shape, distribution, stream, dtype, device)};
  }
  static T float_arange(double start, double step, int64_t count, DType dtype, Device device) {
    return {B::float_arange(start, step, count, dtype, device)};
  }

  static T float_to_device(F x, Device device) {
    if (!tracked(x)) return {B::float_to_device(in(x), device)};
    auto formula = [from = B::device(x->inner)](P& p) {
      p.give(0, A::float_to_device(p.take(), from));
    };
    return attach("to_device", B::float_to_device(in(x), device), edges(x), std::move(formula));
  }
  static T float_cast(F x, DType dtype) {
    if (!tracked(x)) return {B::float_cast(in(x), dtype)};
    auto formula = [from = B::dtype(x->inner)](P& p) { p.give(0, A::float_cast(p.take(), from)); };
    return attach("cast", B::float_cast(in(x), dtype), edges(x), std::move(formula));
  }
  static Int float_into_int(F x, DType dtype) { return B::float_into_int(in(x), dtype); }
  static Bool float_into_bool(F x) { return B::float_into_bool(in(x)); }
  static Quantized float_quantize(F x, const QuantScheme& scheme) {
    return B::float_quantize(in(x), scheme);
  }

  static T float_reshape(F x, const Shape& shape) {
    if (!tracked(x)) return {B::float_reshape(in(x), shape)};
    auto formula = [from = Shape(B::shape(x->inner))](P& p) {
      p.give(0, A::float_reshape(p.take(), from));
    };
    return attach("reshape", B::float_reshape(in(x), shape), edges(x), std::move(formula));
  }
  static T float_permute(F x, const Dims& dims) {
    if (!tracked(x)) return {B::float_permute(in(x), dims)};
    Dims back = Shape::filled(dims.rank(), 0);
    for (int i = 0; i < dims.rank(); ++i) back[static_cast<int>(dims[i])] = i;
    auto formula = [back](P& p) { p.give(0, A::float_permute(p.take(), back)); };
    return attach("permute", B::float_permute(in(x), dims), edges(x), std::move(formula));
  }
  static T float_expand(F x, const Shape& shape) {
    if (!tracked(x)) return {B::float_expand(in(x), shape)};
    auto formula = [from = Shape(B::shape(x->inner))](P& p) { p.give(0, sum_to(p.take(), from)); };
    return attach("expand", B::float_expand(in(x), shape), edges(x), std::move(formula));
  }
  static T float_slice(F x, int dim, Range range) {
    if (!tracked(x)) return {B::float_slice(in(x), dim, range)};
    auto formula = [from = Shape(B::shape(x->inner)), dim, range](P& p) {
      p.give(0, unslice(p.take(), from, dim, range));
    };
    return attach("slice", B::float_slice(in(x), dim, range), edges(x), std::move(formula));
  }
  // Views of the parts of x along dim, `size` long (the last may be shorter), as one node: the
  // gradient is one concatenation, where slices of their own would each give a whole tensor.
  static std::vector<T> split(const T& x, int dim, int64_t size) {
    const Shape from = B::shape(x.inner);
    std::vector<T> parts;
    for (int64_t start = 0; start < from[dim]; start += size) {
      const Range range{start, std::min(start + size, from[dim]), 1};
      parts.push_back({B::float_slice(x.inner, dim, range)});
    }
    if (!tracked(F(x)) || parts.empty()) return parts;
    const auto count = static_cast<uint32_t>(parts.size());
    auto formula = [from, dim, size, count](P& p) {
      std::vector<std::optional<T>> given(count);
      const T* known = nullptr;
      for (uint32_t i = 0; i < count; ++i) {
        if ((given[i] = p.take(i))) known = &*given[i];
      }
      std::vector<T> grads;
      for (uint32_t i = 0; i < count; ++i) {
        Shape part = from;
        part[dim] = std::min(size, from[dim] - i * size);
        grads.push_back(given[i] ? *given[i] : zeros_like(*known, part));
      }
      p.give(0, A::float_cat(std::span<const T>(grads), dim));
    };
    Handle<Node<B>> node =
        make_handle<OpNode<B, 1, decltype(formula)>>("split", count, edges(F(x)), formula);
    for (uint32_t i = 0; i < count; ++i) {
      parts[i].node = node;
      parts[i].slot = i;
    }
    return parts;
  }
  static T float_flip(F x, const Dims& dims) {
    if (!tracked(x)) return {B::float_flip(in(x), dims)};
    auto formula = [dims](P& p) { p.give(0, A::float_flip(p.take(), dims)); };
    return attach("flip", B::float_flip(in(x), dims), edges(x), std::move(formula));
  }
  static T float_contiguous(F x) {
    if (!tracked(x)) return {B::float_contiguous(in(x))};
    auto formula = [](P& p) { p.give(0, p.take()); };
    return attach("contiguous", B::float_contiguous(in(x)), edges(x), std::move(formula));
  }

  // Zeros of shape `to` with g in the place that (dim, range) selects: the gradient of slice.
  static T unslice(F g, const Shape& to, int dim, Range range) {
    if (tracked(g)) {
      auto formula = [dim, range](P& p) { p.give(0, A::float_slice(p.take(), dim, range)); };
      return attach("unslice", unslice_inner(g->inner, to, dim, range), edges(g),
                    std::move(formula));
    }
    return {unslice_inner(g->inner, to, dim, range)};
  }

  // Writes the values of src (broadcast, same dtype) into dst's memory, unrecorded: refused where
  // that would lose a gradient. The tensor layer uses assigned().
  static void float_assign(F dst, F src) {
    if (tracked(dst, src)) throw_untracked_write();
    B::float_assign(in(dst), in(src));
  }
  static void float_fill(F dst, Scalar value) {
    if (tracked(dst)) throw_untracked_write();
    B::float_fill(in(dst), value);
  }
  // dst after src was written into its memory, as a recorded op.
  static T assigned(const T& dst, F src) {
    const bool record = tracked(F(dst), src);
    B::float_assign(dst.inner, in(src));
    if (!record) return {dst.inner};
    auto formula = [to = Shape(B::shape(dst.inner)), from = Shape(B::shape(src->inner))](P& p) {
      if (p.needs(0)) p.give(0, zeros_like(p.grad(), to));
      if (p.needs(1)) p.give(1, sum_to(p.take(), from));
    };
    return attach("copy", dst.inner, edges(F(dst), src), std::move(formula));
  }

  static T float_gather(F x, int dim, const Arg<Int>& index) {
    if (!tracked(x)) return {B::float_gather(in(x), dim, index)};
    auto formula = [from = Shape(B::shape(x->inner)), dim, i = save_constant(index.get())](P& p) {
      p.give(0, A::float_scatter_add(zeros_like(p.grad(), from), dim, i.get(p), p.grad()));
    };
    return attach("gather", B::float_gather(in(x), dim, index), edges(x), std::move(formula));
  }
  static T float_scatter(F x, int dim, const Arg<Int>& index, F src) {
    if (!tracked(x, src)) return {B::float_scatter(in(x), dim, index, in(src))};
    auto formula = [from = Shape(B::shape(src->inner)), dim, i = save_constant(index.get())](P& p) {
      if (p.needs(0)) {
        p.give(0, A::float_scatter(p.grad(), dim, i.get(p), zeros_like(p.grad(), from)));
      }
      if (p.needs(1)) p.give(1, A::float_gather(p.grad(), dim, i.get(p)));
    };
    return attach("scatter", B::float_scatter(in(x), dim, index, in(src)), edges(x, src),
                  std::move(formula));
  }
  static T float_scatter_add(F x, int dim, const Arg<Int>& index, F src) {
    if (!tracked(x, src)) return {B::float_scatter_add(in(x), dim, index, in(src))};
    auto formula = [dim, i = save_constant(index.get())](P& p) {
      if (p.needs(1)) p.give(1, A::float_gather(p.grad(), dim, i.get(p)));
      if (p.needs(0)) p.give(0, p.take());
    };
    return attach("scatter_add", B::float_scatter_add(in(x), dim, index, in(src)), edges(x, src),
                  std::move(formula));
  }
  static T float_index_select(F x, int dim, const Arg<Int>& index) {
    if (!tracked(x)) return {B::float_index_select(in(x), dim, index)};
    auto formula = [from = Shape(B::shape(x->inner)), dim, i = save_constant(index.get())](P& p) {
      p.give(0, A::float_index_add(zeros_like(p.grad(), from), dim, i.get(p), p.grad()));
    };
    return attach("index_select", B::float_index_select(in(x), dim, index), edges(x),
                  std::move(formula));
  }
  static T float_index_add(F x, int dim, const Arg<Int>& index, F src) {
    if (!tracked(x, src)) return {B::float_index_add(in(x), dim, index, in(src))};
    auto formula = [dim, i = save_constant(index.get())](P& p) {
      if (p.needs(1)) p.give(1, A::float_index_select(p.grad(), dim, i.get(p)));
      if (p.needs(0)) p.give(0, p.take());
    };
    return attach("index_add", B::float_index_add(in(x), dim, index, in(src)), edges(x, src),
                  std::move(formula));
  }

  // What a bag gets goes to each of its rows.
  static T float_bag_sum(F table, const Arg<Int>& rows, const Arg<Int>& starts, bool mean) {
    if (!tracked(table)) return {B::float_bag_sum(in(table), rows, starts, mean)};
    auto formula = [from = Shape(B::shape(table->inner)), mean, rows_ = save_constant(rows.get()),
                    starts_ = save_constant(starts.get())](P& p) {
      const Int index = rows_.get(p);
      const Int bounds = starts_.get(p);
      T g = p.take();
      const int64_t count = Shape(B::shape(index))[0];
      const int64_t bags = Shape(B::shape(bounds))[0] - 1;
      const Int ends = B::int_slice(bounds, 0, Range{1, bags + 1, 1});
      if (mean) {
        const Int sizes = B::int_clamp(B::int_sub(ends, B::int_slice(bounds, 0, Range{0, bags, 1})),
                                       1, count + 1);
        g = A::float_div(
            g, T{B::int_into_float(B::int_reshape(sizes, Shape{bags, 1}), B::dtype(g.inner))});
      }
      const Int places = B::int_arange(0, 1, count, DType::i64, B::device(g.inner));
      const T each = A::float_index_select(g, 0, B::int_searchsorted(ends, places, true));
      p.give(0, A::float_index_add(zeros_like(g, from), 0, index, each));
    };
    return attach("embedding_bag", B::float_bag_sum(in(table), rows, starts, mean), edges(table),
                  std::move(formula));
  }

  // Both rows are linear in each operand, and their gradients are these rows again.
  static T float_csr_matmul(const Arg<Int>& crow, const Arg<Int>& col, F values, F dense,
                            int64_t columns, bool transposed) {
    if (!tracked(values, dense)) {
      return {B::float_csr_matmul(crow, col, in(values), in(dense), columns, transposed)};
    }
    auto formula = [crow_ = save_constant(crow.get()), col_ = save_constant(col.get()),
                    values_ = save_if(has_node(dense), values),
                    dense_ = save_if(has_node(values), dense), columns, transposed](P& p) {
      const Int rows = crow_.get(p);
      const Int places = col_.get(p);
      if (p.needs(0)) {
        const T d = dense_->get(p);
        p.give(0, transposed ? A::float_csr_sampled_matmul(rows, places, d, p.grad())
                             : A::float_csr_sampled_matmul(rows, places, p.grad(), d));
      }
      if (p.needs(1)) {
        p.give(1,
               A::float_csr_matmul(rows, places, values_->get(p), p.grad(), columns, !transposed));
      }
    };
    return attach("csr_matmul",
                  B::float_csr_matmul(crow, col, in(values), in(dense), columns, transposed),
                  edges(values, dense), std::move(formula));
  }
  static T float_csr_sampled_matmul(const Arg<Int>& crow, const Arg<Int>& col, F x, F y) {
    if (!tracked(x, y)) return {B::float_csr_sampled_matmul(crow, col, in(x), in(y))};
    auto formula = [crow_ = save_constant(crow.get()), col_ = save_constant(col.get()),
                    x_ = save_if(has_node(y), x), y_ = save_if(has_node(x), y),
                    columns = int64_t{Shape(B::shape(y->inner))[0]}](P& p) {
      const Int rows = crow_.get(p);
      const Int places = col_.get(p);
      if (p.needs(0)) {
        p.give(0, A::float_csr_matmul(rows, places, p.grad(), y_->get(p), columns, false));
      }
      if (p.needs(1)) {
        p.give(1, A::float_csr_matmul(rows, places, p.grad(), x_->get(p), columns, true));
      }
    };
    return attach("csr_sampled_matmul", B::float_csr_sampled_matmul(crow, col, in(x), in(y)),
                  edges(x, y), std::move(formula));
  }

  static T float_cat(std::span<const T> xs, int dim) {
    bool record = false;
    std::vector<Inner> inner;
    inner.reserve(xs.size());
    for (const T& x : xs) {
      inner.push_back(x.inner);
      record = record || tracked(F(x));
    }
    Inner out = B::float_cat(std::span<const Inner>(inner), dim);
    if (!record) return {std::move(out)};
    std::vector<Edge<B>> to;
    std::vector<int64_t> sizes;
    for (const T& x : xs) {
      to.push_back(edge(F(x)));
      sizes.push_back(Shape(B::shape(x.inner))[dim]);
    }
    auto formula = [sizes = std::move(sizes), dim](P& p) {
      int64_t start = 0;
      for (size_t i = 0; i < sizes.size(); ++i) {
        const int64_t end = start + sizes[i];
        if (p.needs(i)) p.give(i, A::float_slice(p.grad(), dim, Range{start, end, 1}));
        start = end;
      }
    };
    auto node =
        make_handle<ListNode<B, decltype(formula)>>("cat", std::move(to), std::move(formula));
    return T{std::move(out), std::move(node), 0};
  }

  static T float_mask_where(F x, const Arg<Bool>& mask, F value) {
    if (!tracked(x, value)) return {B::float_mask_where(in(x), mask, in(value))};
    auto formula = [x_shape = Shape(B::shape(x->inner)), v_shape = Shape(B::shape(value->inner)),
                    m = save_constant(mask.get())](P& p) {
      if (p.needs(1)) {
        const T zeros = zeros_like(p.grad(), Shape{});
        p.give(1, sum_to(A::float_mask_where(zeros, m.get(p), p.grad()), v_shape));
      }
      if (p.needs(0)) {
        p.give(0, sum_to(A::float_mask_fill(p.take(), m.get(p), Scalar(0.0)), x_shape));
      }
    };
    return attach("where", B::float_mask_where(in(x), mask, in(value)), edges(x, value),
                  std::move(formula));
  }
  static T float_mask_fill(F x, const Arg<Bool>& mask, Scalar value) {
    if (!tracked(x)) return {B::float_mask_fill(in(x), mask, value)};
    auto formula = [shape = Shape(B::shape(x->inner)), m = save_constant(mask.get())](P& p) {
      p.give(0, sum_to(A::float_mask_fill(p.take(), m.get(p), Scalar(0.0)), shape));
    };
    return attach("masked_fill", B::float_mask_fill(in(x), mask, value), edges(x),
                  std::move(formula));
  }

 private:
  static Inner unslice_inner(const Inner& g, const Shape& to, int dim, Range range) {
    if (range.step == 1) {
      Shape before = Shape::filled(to.rank(), 0), behind = before;
      before[dim] = range.start;
      behind[dim] = to[dim] - range.start - range.length();
      return B::float_pad(g, before, behind, Scalar(0.0));
    }
    Inner out = B::float_full(to, Scalar(0.0), B::dtype(g), B::device(g));
    if constexpr (AutodiffBackend<B>) {
      // Writing in place would hide g's history from the inner graph.
      const Int index =
          B::int_arange(range.start, range.step, range.length(), DType::i64, B::device(g));
      return B::float_index_add(std::move(out), dim, index, g);
    } else {
      B::float_assign(B::float_slice(std::as_const(out), dim, range), g);
      return out;
    }
  }

  [[noreturn]] static void throw_untracked_write() {
    throw_error<AutodiffError>(
        "assign: writing into memory is not recorded; got a tracked tensor; expected no_grad, or "
        "an op that returns its result");
  }
};

}  // namespace kiln::autodiff
