// Tensors that are made of numbers.
#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/sequences.h"

namespace kiln::pt2 {

namespace {

void zeros_of(Call& c) { c.out(zeros(c.ints("size"), c.options())); }
void ones_of(Call& c) { c.out(ones(c.ints("size"), c.options())); }
void full_of(Call& c) { c.out(full(c.ints("size"), c.scalar("fill_value"), c.options())); }
// What is in new memory is not said: zeros are as good as anything.
void empty_strided(Call& c) {
  c.ignore("stride");
  zeros_of(c);
}
void empty_permuted(Call& c) {
  c.ignore("physical_layout");
  zeros_of(c);
}
void zeros_like_of(Call& c) { c.out(zeros(c.x().shape(), options_like(c, c.x()))); }
void ones_like_of(Call& c) { c.out(ones(c.x().shape(), options_like(c, c.x()))); }
void full_like_of(Call& c) {
  c.out(full(c.x().shape(), c.scalar("fill_value"), options_like(c, c.x())));
}
void new_zeros(Call& c) { c.out(zeros(c.ints("size"), options_like(c, c.x()))); }
void new_empty_strided(Call& c) {
  c.ignore("stride");
  new_zeros(c);
}
void new_ones(Call& c) { c.out(ones(c.ints("size"), options_like(c, c.x()))); }
void new_full(Call& c) {
  c.out(full(c.ints("size"), c.scalar("fill_value"), options_like(c, c.x())));
}
void scalar_tensor(Call& c) { c.out(full({}, c.scalar("s"), c.options(default_dtype()))); }
void arange_of(Call& c) {
  c.out(arange(c.scalar("start", 0), c.scalar("end"), c.scalar("step", 1), c.options()));
}
void linspace_of(Call& c) {
  c.out(linspace(c.f("start"), c.f("end"), c.i("steps"), c.options(default_dtype())));
}
void logspace_of(Call& c) {
  c.out(logspace(c.f("start"), c.f("end"), c.i("steps"), c.f("base", 10.0), c.options()));
}
void eye_of(Call& c) { c.out(eye(c.i("n"), c.i("m", c.i("n")), c.options())); }
void fill_of(Call& c) {
  Tensor y = empty_like(c.x());
  if (c.value("value").tensor() != nullptr) {
    y.copy_(c.t("value"));
  } else {
    y.fill_(c.scalar("value"));
  }
  c.out(y);
}
void fill_in_place(Call& c) {
  Tensor x = c.x();
  if (c.value("value").tensor() != nullptr) {
    x.copy_(c.t("value"));
  } else {
    x.fill_(c.scalar("value"));
  }
  c.out(x);
}
void zero_in_place(Call& c) {
  Tensor x = c.x();
  c.out(x.zero_());
}
void zero_of(Call& c) { c.out(kiln::zeros_like(c.x())); }

void tril_indices_of(Call& c) {
  c.out(tril_indices(c.i("row"), c.i("col"), c.i("offset", 0), c.options(DType::i64)));
}
void triu_indices_of(Call& c) {
  c.out(triu_indices(c.i("row"), c.i("col"), c.i("offset", 0), c.options(DType::i64)));
}

TensorOptions window_options(Call& c) { return c.options(default_dtype()); }
void hann(Call& c) {
  c.out(hann_window(c.i("window_length"), c.b("periodic", true), window_options(c)));
}
void hamming(Call& c) {
  c.out(hamming_window(c.i("window_length"), c.b("periodic", true), c.f("alpha", 0.54),
                       c.f("beta", 0.46), window_options(c)));
}
void blackman(Call& c) {
  c.out(blackman_window(c.i("window_length"), c.b("periodic", true), window_options(c)));
}
void bartlett(Call& c) {
  c.out(bartlett_window(c.i("window_length"), c.b("periodic", true), window_options(c)));
}
void kaiser(Call& c) {
  c.out(kaiser_window(c.i("window_length"), c.b("periodic", true), c.f("beta", 12.0),
                      window_options(c)));
}

constexpr Operator kCreationOperators[] = {
    {"zeros", "default", zeros_of},
    {"ones", "default", ones_of},
    {"full", "default", full_of},
    {"empty", "memory_format", zeros_of},
    {"empty_strided", "default", empty_strided},
    {"empty_permuted", "default", empty_permuted},
    {"zeros_like", "default", zeros_like_of},
    {"ones_like", "default", ones_like_of},
    {"full_like", "default", full_like_of},
    {"empty_like", "default", zeros_like_of},
    {"new_zeros", "default", new_zeros},
    {"new_ones", "default", new_ones},
    {"new_full", "default", new_full},
    {"new_empty", "default", new_zeros},
    {"new_empty_strided", "default", new_empty_strided},
    {"scalar_tensor", "default", scalar_tensor},
    {"arange", "default start start_step", arange_of},
    {"linspace", "default", linspace_of},
    {"logspace", "default", logspace_of},
    {"eye", "default m", eye_of},
    {"fill", "Scalar Tensor", fill_of},
    {"fill_", "Scalar Tensor", fill_in_place},
    {"zero", "default", zero_of},
    {"zero_", "default", zero_in_place},
    {"tril_indices", "default", tril_indices_of},
    {"triu_indices", "default", triu_indices_of},
    {"hann_window", "default periodic", hann},
    {"hamming_window", "default periodic periodic_alpha periodic_alpha_beta", hamming},
    {"blackman_window", "default periodic", blackman},
    {"bartlett_window", "default periodic", bartlett},
    {"kaiser_window", "default periodic beta", kaiser},
};

}  // namespace

std::span<const Operator> creation_operators() { return kCreationOperators; }

}  // namespace kiln::pt2
