#include "kiln/tensor/autograd/derivatives.h"

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::autograd {

namespace {

// What the functions are called on: the same values as leaves, or, to go on through them, copies
// that remember where they came from.
TensorList prepared(const char* op, const TensorList& inputs, bool create_graph) {
  TensorList out;
  for (const Tensor& x : inputs) {
    if (!x.is_floating_point()) {
      throw_error<DTypeError>(op, ": inputs must be floating point; got ", x.dtype());
    }
    out.push_back(create_graph && x.requires_grad() ? x.clone() : x.detach().requires_grad_());
  }
  return out;
}

TensorList finished(TensorList list, bool create_graph) {
  if (!create_graph) {
    for (Tensor& x : list) x = x.detach();
  }
  return list;
}

// The gradients of `outputs` weighted by `seeds`, zeros where nothing connects them.
TensorList gradients(const char* op, const TensorList& outputs, const TensorList& inputs,
                     const TensorList& seeds, bool create_graph, bool strict) {
  TensorList roots;
  TensorList weights;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad()) continue;
    roots.push_back(outputs[i]);
    weights.push_back(seeds.empty() ? Tensor() : seeds[i]);
  }
  TensorList out(inputs.size());
  if (!roots.empty()) {
    out = grad(roots, inputs, {std::move(weights), true, create_graph, true});
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (out[i].defined()) continue;
    if (strict) {
      throw_error<AutodiffError>(op, ": the results do not depend on input ", i,
                                 "; expected that they do, or strict = false");
    }
    out[i] = zeros(inputs[i].shape(), {inputs[i].dtype(), inputs[i].device()});
  }
  return out;
}

void check_vector(const char* op, const TensorList& v, const TensorList& like) {
  if (v.size() != like.size()) {
    throw_error<ValueError>(op, ": expected one vector for each of ", like.size(), "; got ",
                            v.size());
  }
  for (size_t i = 0; i < v.size(); ++i) {
    if (!(v[i].shape() == like[i].shape())) {
      throw_error<ShapeError>(op, ": vector ", i, " has shape ", v[i].shape(), "; expected ",
                              like[i].shape());
    }
  }
}

const Tensor& one_element(const char* op, const TensorList& results) {
  if (results.size() != 1 || results[0].numel() != 1) {
    throw_error<ValueError>(op, ": the function must give one tensor of one element; got ",
                            results.size(), " tensors",
                            results.empty() ? "" : " of shape " + to_string(results[0].shape()));
  }
  return results[0];
}

// Ones at element k of a tensor like x, zeros elsewhere.
Tensor unit(const Tensor& x, int64_t k) {
  const Tensor places = arange(x.numel(), {.device = x.device()});
  return places.eq(Scalar(k)).to(x.dtype()).reshape(x.shape());
}

Shape joined(const Shape& a, const Shape& b) {
  Shape out = a;
  for (const int64_t size : b) out.push_back(size);
  return out;
}

ListFunction lifted(const TensorFunction& f) {
  return [&f](const TensorList& x) { return TensorList{f(x[0])}; };
}

std::vector<TensorList> jacobian_by_rows(const ListFunction& f, const TensorList& inputs,
                                         const DerivativeOptions& options) {
  const EnableGradGuard recording;
  const TensorList x = prepared("jacobian", inputs, options.create_graph);
  const TensorList results = f(x);
  std::vector<TensorList> out;
  for (const Tensor& y : results) {
    std::vector<TensorList> rows(x.size());
    for (int64_t k = 0; k < y.numel(); ++k) {
      const TensorList row =
          gradients("jacobian", {y}, x, {unit(y, k)}, options.create_graph, options.strict);
      for (size_t i = 0; i < x.size(); ++i) rows[i].push_back(row[i]);
    }
    TensorList blocks;
    for (size_t i = 0; i < x.size(); ++i) {
      const Shape shape = joined(y.shape(), x[i].shape());
      blocks.push_back(rows[i].empty() ? zeros(shape, {x[i].dtype(), x[i].device()})
                                       : stack(rows[i]).reshape(shape));
    }
    out.push_back(finished(std::move(blocks), options.create_graph));
  }
  return out;
}

std::vector<TensorList> jacobian_by_columns(const ListFunction& f, const TensorList& inputs,
                                            const DerivativeOptions& options) {
  if (options.create_graph) {
    throw_error<NotImplementedError>("jacobian: forward_mode with create_graph; try without");
  }
  std::vector<TensorList> out;  // [result][input]
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<TensorList> columns;
    TensorList results;
    for (int64_t k = 0; k < inputs[i].numel(); ++k) {
      TensorList v;
      for (size_t j = 0; j < inputs.size(); ++j) {
        v.push_back(j == i ? unit(inputs[j], k)
                           : zeros(inputs[j].shape(), {inputs[j].dtype(), inputs[j].device()}));
      }
      auto [y, column] = jvp(f, inputs, v, {.strict = options.strict});
      columns.resize(column.size());
      for (size_t r = 0; r < column.size(); ++r) columns[r].push_back(column[r]);
      results = std::move(y);
    }
    if (inputs[i].numel() == 0) {
      const NoGradGuard guard;
      results = f(inputs);
      columns.resize(results.size());
    }
    out.resize(results.size());
    for (size_t r = 0; r < results.size(); ++r) {
      const Shape shape = joined(results[r].shape(), inputs[i].shape());
      out[r].push_back(columns[r].empty() ? zeros(shape, {inputs[i].dtype(), inputs[i].device()})
                                          : stack(columns[r], -1).reshape(shape));
    }
  }
  return out;
}

}  // namespace

std::vector<TensorList> jacobian(const ListFunction& f, const TensorList& inputs,
                                 const DerivativeOptions& options) {
  return options.forward_mode ? jacobian_by_columns(f, inputs, options)
                              : jacobian_by_rows(f, inputs, options);
}

Tensor jacobian(const TensorFunction& f, const Tensor& x, const DerivativeOptions& options) {
  return jacobian(lifted(f), {x}, options)[0][0];
}

std::vector<TensorList> hessian(const ListFunction& f, const TensorList& inputs,
                                const DerivativeOptions& options) {
  const ListFunction slope = [&](const TensorList& x) {
    return gradients("hessian", {one_element("hessian", f(x))}, x, {}, true, options.strict);
  };
  return jacobian_by_rows(slope, inputs, options);
}

Tensor hessian(const TensorFunction& f, const Tensor& x, const DerivativeOptions& options) {
  return hessian(lifted(f), {x}, options)[0][0];
}

std::pair<TensorList, TensorList> vjp(const ListFunction& f, const TensorList& inputs,
                                      const TensorList& v, const DerivativeOptions& options) {
  const EnableGradGuard recording;
  const TensorList x = prepared("vjp", inputs, options.create_graph);
  const TensorList results = f(x);
  if (v.empty()) {
    one_element("vjp", results);
  } else {
    check_vector("vjp", v, results);
  }
  TensorList products = gradients("vjp", results, x, v, options.create_graph, options.strict);
  return {finished(results, options.create_graph),
          finished(std::move(products), options.create_graph)};
}

std::pair<Tensor, Tensor> vjp(const TensorFunction& f, const Tensor& x, const Tensor& v,
                              const DerivativeOptions& options) {
  auto [y, product] = vjp(lifted(f), {x}, v.defined() ? TensorList{v} : TensorList{}, options);
  return {y[0], product[0]};
}

// g(w) = w^T J is linear in w, so its derivative along v is J v: two reverse passes.
std::pair<TensorList, TensorList> jvp(const ListFunction& f, const TensorList& inputs,
                                      const TensorList& v, const DerivativeOptions& options) {
  const EnableGradGuard recording;
  const TensorList x = prepared("jvp", inputs, options.create_graph);
  check_vector("jvp", v, x);
  const TensorList results = f(x);
  TensorList w;
  for (const Tensor& y : results) {
    w.push_back(zeros(y.shape(), {y.dtype(), y.device()}).requires_grad_());
  }
  const TensorList g = gradients("jvp", results, x, w, true, options.strict);
  TensorList products = gradients("jvp", g, w, v, options.create_graph, false);
  return {finished(results, options.create_graph),
          finished(std::move(products), options.create_graph)};
}

std::pair<Tensor, Tensor> jvp(const TensorFunction& f, const Tensor& x, const Tensor& v,
                              const DerivativeOptions& options) {
  auto [y, product] = jvp(lifted(f), {x}, {v}, options);
  return {y[0], product[0]};
}

std::pair<TensorList, TensorList> hvp(const ListFunction& f, const TensorList& inputs,
                                      const TensorList& v, const DerivativeOptions& options) {
  const EnableGradGuard recording;
  const TensorList x = prepared("hvp", inputs, options.create_graph);
  check_vector("hvp", v, x);
  const TensorList results = f(x);
  const TensorList slope =
      gradients("hvp", {one_element("hvp", results)}, x, {}, true, options.strict);
  TensorList products = gradients("hvp", slope, x, v, options.create_graph, options.strict);
  return {finished(results, options.create_graph),
          finished(std::move(products), options.create_graph)};
}

std::pair<Tensor, Tensor> hvp(const TensorFunction& f, const Tensor& x, const Tensor& v,
                              const DerivativeOptions& options) {
  auto [y, product] = hvp(lifted(f), {x}, {v}, options);
  return {y[0], product[0]};
}

}  // namespace kiln::autograd
