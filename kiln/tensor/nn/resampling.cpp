#include "kiln/tensor/nn/resampling.h"

#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

Tensor resampled(const Tensor& x, std::vector<DimMap> maps) {
  constexpr const char* op = "interpolate";
  const Value& value = value_of(op, x);
  const Kind kind = kind_of_value(value);
  if (kind != Kind::floating && kind != Kind::integer) {
    Tensor now = x;
    for (const DimMap& m : maps) now = now.index_select(m.dim, beside(x, m.map.index));
    return now;
  }
  const auto shared = std::make_shared<const std::vector<DimMap>>(std::move(maps));
  return kind == Kind::floating ? wrap(AD::float_resample(value, shared))
                                : wrap(AD::int_resample(value.inner, shared));
}

}  // namespace kiln::detail
