// Attention and its gradient.
#include "kiln/backend/conformance/cases.h"
#include "kiln/backend/host_tensor.h"
#include "kiln/backend/reference/reference.h"

namespace kiln::conformance {
namespace {

struct Form {
  Shape q, k, v;
  Shape mask = {};  // none when it has no dims
  AttentionOptions options = {};
};

HostHandle on_host(const Operand& x) { return host::from_data(x.data, Device()); }

// A mask of small numbers with some -inf, which in its first row is all there is.
Operand mask_of(CaseList& list, const Shape& shape, DType dtype) {
  std::vector<double> numbers = list.uniform(shape, dtype).data.to_doubles();
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i % 3 == 1 || i < static_cast<size_t>(shape.back())) numbers[i] = -kInf;
  }
  return values(numbers, shape, dtype);
}

void add_form(CaseList& list, const Form& form, DType dtype) {
  const Operand q = list.uniform(form.q, dtype), k = list.uniform(form.k, dtype);
  const Operand v = list.uniform(form.v, dtype);
  const bool masked = form.mask.rank() != 0;
  const Operand mask = masked ? mask_of(list, form.mask, dtype) : Operand();
  const Argument optional = masked ? Argument(mask) : Argument(Absent());
  list.add("float_attention", {q, k, v, optional, form.options}, {64, 64}).elementwise = false;

  Shape out_shape = form.q;
  out_shape[3] = form.v[3];
  const Operand g = list.uniform(out_shape, dtype);
  const HostHandle host_mask = masked ? on_host(mask) : HostHandle();
  const auto [out, lse] = Reference::float_attention(on_host(q), on_host(k), on_host(v),
                                                     masked ? &host_mask : nullptr, form.options);
  list.add("float_attention_backward",
           {g, q, k, v, optional, Operand{host::into_data(out)}, Operand{host::into_data(lse)},
            form.options},
           {64, 512})
      .elementwise = false;
}

}  // namespace

void add_attention_cases(CaseList& list) {
  const AttentionOptions half{.scale = 0.5};
  const AttentionOptions causal{.scale = 0.25, .causal = true};
  const AttentionOptions dropout{.scale = 0.5, .dropout = 0.3, .stream = {7, 11}};
  const AttentionOptions everything{
      .scale = 0.3, .causal = true, .dropout = 0.3, .stream = {7, 11}};
  const Form forms[] = {
      {{2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 6}, {}, half},
      {{2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 6}, {2, 3, 5, 7}, half},
      {{2, 2, 5, 4}, {2, 2, 7, 4}, {2, 2, 7, 4}, {5, 7}, half},
      {{2, 2, 5, 4}, {2, 2, 7, 4}, {2, 2, 7, 4}, {2, 1, 5, 1}, dropout},
      {{1, 2, 5, 4}, {1, 2, 7, 4}, {1, 2, 7, 4}, {}, causal},
      {{1, 2, 7, 4}, {1, 2, 5, 4}, {1, 2, 5, 4}, {}, causal},
      {{1, 6, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 3}, {}, everything},
      {{2, 2, 1, 8}, {2, 2, 9, 8}, {2, 2, 9, 8}, {}, half},
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {}, half},
      {{1, 1, 2, 3}, {1, 1, 0, 3}, {1, 1, 0, 2}, {}, half},
      {{0, 2, 3, 4}, {0, 2, 3, 4}, {0, 2, 3, 4}, {}, half},
      {{1, 2, 0, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, {}, half},
  };
  // More than one tile of any likely size, with rests.
  const Form large[] = {
      {{1, 2, 150, 20}, {1, 1, 277, 20}, {1, 1, 277, 18}, {}, half},
      {{1, 2, 2, 20}, {1, 2, 277, 20}, {1, 2, 277, 18}, {2, 1, 277}, dropout},
      {{1, 4, 300, 32}, {1, 2, 300, 32}, {1, 2, 300, 32}, {300, 300}, everything},
  };
  for (DType dtype : list.floats) {
    for (const Form& form : forms) add_form(list, form, dtype);
    if (dtype != f32 && dtype != f64) continue;
    for (const Form& form : large) add_form(list, form, dtype);
  }
}

}  // namespace kiln::conformance
