// Random numbers: of Kiln's generator, which are not PyTorch's.
#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/random/random_ops.h"

namespace kiln::pt2 {

namespace {

void rand_of(Call& c) { c.out(rand(c.ints("size"), c.options())); }
void randn_of(Call& c) { c.out(randn(c.ints("size"), c.options())); }
void randint_of(Call& c) {
  c.out(randint(c.i("low", 0), c.i("high"), c.ints("size"), c.options(DType::i64)));
}
void randperm_of(Call& c) { c.out(randperm(c.i("n"), c.options(DType::i64))); }
void rand_like_of(Call& c) { c.out(rand(c.x().shape(), options_like(c, c.x()))); }
void randn_like_of(Call& c) { c.out(randn(c.x().shape(), options_like(c, c.x()))); }
void randint_like_of(Call& c) {
  c.out(randint(c.i("low", 0), c.i("high"), c.x().shape(), options_like(c, c.x())));
}
void bernoulli_of(Call& c) {
  if (c.is_overload("default")) {
    c.out(bernoulli(c.x()));
  } else if (c.value("p").tensor() != nullptr) {
    c.out(bernoulli(c.t("p").expand(c.x().shape())).to(c.x().dtype()));
  } else {
    c.out(bernoulli(c.x(), c.f("p", 0.5)));
  }
}
void bernoulli_in_place(Call& c) {
  Tensor x = c.x();
  if (c.value("p").tensor() != nullptr) {
    c.out(bernoulli_(x, c.t("p")));
  } else {
    c.out(bernoulli_(x, c.f("p", 0.5)));
  }
}
void normal_of(Call& c) {
  const bool mean = c.value("mean").tensor() != nullptr,
             deviation = c.value("std").tensor() != nullptr;
  if (mean && deviation) {
    c.out(normal(c.t("mean"), c.t("std")));
  } else if (mean) {
    c.out(normal(c.t("mean"), c.f("std", 1.0)));
  } else if (deviation) {
    c.out(normal(c.f("mean", 0.0), c.t("std")));
  } else {
    c.out(normal(c.f("mean"), c.f("std"), c.ints("size"), c.options()));
  }
}
void multinomial_of(Call& c) {
  c.out(multinomial(c.x(), c.i("num_samples"), c.b("replacement", false)));
}
void poisson_of(Call& c) { c.out(poisson(c.x())); }
void binomial_of(Call& c) { c.out(binomial(c.t("count"), c.t("prob"))); }

// Drawn in the memory of x, or of a copy.
template <bool kInPlace, class F>
void drawn(Call& c, F&& f) {
  Tensor x = kInPlace ? c.x() : empty_like(c.x());
  f(x);
  c.out(x);
}
template <bool kInPlace>
void uniform(Call& c) {
  drawn<kInPlace>(c, [&](Tensor& x) { uniform_(x, c.f("from", 0.0), c.f("to", 1.0)); });
}
template <bool kInPlace>
void normal_drawn(Call& c) {
  drawn<kInPlace>(c, [&](Tensor& x) { normal_(x, c.f("mean", 0.0), c.f("std", 1.0)); });
}
template <bool kInPlace>
void exponential(Call& c) {
  drawn<kInPlace>(c, [&](Tensor& x) { exponential_(x, c.f("lambd", 1.0)); });
}
template <bool kInPlace>
void geometric(Call& c) {
  drawn<kInPlace>(c, [&](Tensor& x) { geometric_(x, c.f("p")); });
}
template <bool kInPlace>
void cauchy(Call& c) {
  drawn<kInPlace>(c, [&](Tensor& x) { cauchy_(x, c.f("median", 0.0), c.f("sigma", 1.0)); });
}
template <bool kInPlace>
void log_normal(Call& c) {
  drawn<kInPlace>(c, [&](Tensor& x) { log_normal_(x, c.f("mean", 1.0), c.f("std", 2.0)); });
}

constexpr Operator kRandomOperators[] = {
    {"rand", "default", rand_of},
    {"randn", "default", randn_of},
    {"randint", "default low", randint_of},
    {"randperm", "default", randperm_of},
    {"rand_like", "default", rand_like_of},
    {"randn_like", "default", randn_like_of},
    {"randint_like", "default low_dtype", randint_like_of},
    {"bernoulli", "default p Tensor", bernoulli_of},
    {"bernoulli_", "float Tensor", bernoulli_in_place},
    {"normal", "Tensor_float float_Tensor Tensor_Tensor float_float", normal_of},
    {"multinomial", "default", multinomial_of},
    {"poisson", "default", poisson_of},
    {"binomial", "default", binomial_of},
    {"uniform", "default", uniform<false>},
    {"uniform_", "default", uniform<true>},
    {"normal_functional", "default", normal_drawn<false>},
    {"normal_", "default", normal_drawn<true>},
    {"exponential", "default", exponential<false>},
    {"exponential_", "default", exponential<true>},
    {"geometric", "default", geometric<false>},
    {"geometric_", "default", geometric<true>},
    {"cauchy", "default", cauchy<false>},
    {"cauchy_", "default", cauchy<true>},
    {"log_normal", "default", log_normal<false>},
    {"log_normal_", "default", log_normal<true>},
};

}  // namespace

std::span<const Operator> random_operators() { return kRandomOperators; }

}  // namespace kiln::pt2
