// Text like PyTorch's, whose rules these are: one format for all elements, chosen from the finite
// values that are not zero; large tensors show their edges.
#include "kiln/tensor/print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <ostream>

#include "kiln/backend/meta/meta_tensor.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

namespace {

PrintOptions& options() {
  static PrintOptions current;
  return current;
}

std::string formatted(const char* format, int precision, double value) {
  char text[400];
  std::snprintf(text, sizeof text, format, precision, value);
  return text;
}

std::string fixed(int precision, double value) { return formatted("%.*f", precision, value); }

// Python's form: at least two digits of exponent, which is C's.
std::string scientific(int precision, double value) { return formatted("%.*e", precision, value); }

// Host values and how one of them is written.
class Formatter {
 public:
  Formatter(const TensorData& data, const std::vector<int64_t>& shown, const PrintOptions& how)
      : data_(data), precision_(how.precision) {
    if (kind_of(data.dtype()) != Kind::floating) {
      for (int64_t i : shown) width_ = std::max(width_, text(i).size());
      return;
    }
    double smallest = std::numeric_limits<double>::infinity();
    double largest = 0.0;
    for (int64_t i : shown) {
      const double v = data.item(i);
      if (!std::isfinite(v) || v == 0.0) continue;
      integers_ = integers_ && v == std::ceil(v);
      smallest = std::min(smallest, std::abs(v));
      largest = std::max(largest, std::abs(v));
    }
    if (largest == 0.0) return;
    const bool wide =
        largest / smallest > 1000.0 || largest > 1e8 || (!integers_ && smallest < 1e-4);
    scientific_ = how.scientific.value_or(wide);
    for (int64_t i : shown) {
      const double v = data.item(i);
      if (std::isfinite(v) && v != 0.0) width_ = std::max(width_, text(i).size());
    }
  }

  size_t width() const { return width_; }

  std::string padded(int64_t i) const {
    const std::string out = text(i);
    std::string padding(width_ > out.size() ? width_ - out.size() : 0, ' ');
    return padding.append(out);
  }

 private:
  std::string text(int64_t i) const {
    const Kind kind = kind_of(data_.dtype());
    if (kind == Kind::boolean) return data_.as<bool>()[static_cast<size_t>(i)] ? "True" : "False";
    if (kind == Kind::integer) {
      if (data_.dtype() == i64) {
        return std::to_string(data_.as<int64_t>()[static_cast<size_t>(i)]);
      }
      return fixed(0, data_.item(i));
    }
    const double v = data_.item(i);
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
    if (scientific_) return scientific(precision_, v);
    if (integers_) return fixed(0, v) + ".";
    return fixed(precision_, v);
  }

  TensorData data_;
  int precision_;
  bool integers_ = true;
  bool scientific_ = false;
  size_t width_ = 1;
};

// Numbers as PyTorch writes them: a complex one as its parts, each with the format of its own.
class NumberFormatter {
 public:
  NumberFormatter(const TensorData& data, const std::vector<int64_t>& shown,
                  const PrintOptions& how)
      : real_(is_complex(data.dtype()) ? part(data, 0) : data, shown, how) {
    if (is_complex(data.dtype())) imaginary_.emplace(part(data, 1), shown, how);
  }

  // What one number takes in a row.
  size_t width() const { return real_.width() + (imaginary_ ? imaginary_->width() + 1 : 0); }

  std::string padded(int64_t i) const {
    if (!imaginary_) return real_.padded(i);
    std::string im = imaginary_->padded(i);
    im.erase(0, im.find_first_not_of(' '));
    return real_.padded(i) + (im[0] == '-' ? "" : "+") + im + "j";
  }

 private:
  static TensorData part(const TensorData& data, int which) {
    TensorData out(data.shape(), real_dtype(data.dtype()));
    visit_float("print", out.dtype(), [&]<class T>() {
      const auto* from = reinterpret_cast<const T*>(data.data());
      for (T& to : out.as_mutable<T>()) {
        to = from[which];
        from += 2;
      }
    });
    return out;
  }

  Formatter real_;
  std::optional<Formatter> imaginary_;
};

// The positions of one dim that are shown; -1 stands for the dots.
std::vector<int64_t> shown_positions(int64_t size, bool elide, int64_t edge) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < size; ++i) {
    if (elide && size > 2 * edge && i == edge) {
      out.push_back(-1);
      i = size - edge;
      if (i >= size) break;
    }
    out.push_back(i);
  }
  return out;
}

class Printer {
 public:
  Printer(const TensorData& data, const PrintOptions& how)
      : data_(data), how_(how), elide_(data.numel() > how.threshold) {
    strides_ = contiguous_strides(data.shape());
  }

  std::string print(int indent) {
    std::vector<int64_t> shown;
    gather(0, 0, shown);
    const NumberFormatter formatter(data_, shown, how_);
    if (data_.shape().rank() == 0) return formatter.padded(0);
    return block(formatter, 0, 0, indent);
  }

 private:
  void gather(int dim, int64_t offset, std::vector<int64_t>& out) const {
    if (dim == data_.shape().rank()) {
      out.push_back(offset);
      return;
    }
    for (int64_t i : shown_positions(data_.shape()[dim], elide_, how_.edge_items)) {
      if (i >= 0) gather(dim + 1, offset + i * strides_[dim], out);
    }
  }

  std::string block(const NumberFormatter& formatter, int dim, int64_t offset, int indent) const {
    const int rank = data_.shape().rank();
    const auto positions = shown_positions(data_.shape()[dim], elide_, how_.edge_items);
    std::string out = "[";
    if (dim == rank - 1) {
      const auto element = static_cast<int64_t>(formatter.width()) + 2;
      const int64_t per_line = std::max<int64_t>(1, (how_.line_width - indent) / element);
      for (size_t k = 0; k < positions.size(); ++k) {
        if (k > 0) {
          if (static_cast<int64_t>(k) % per_line == 0) {
            out.append(",\n").append(static_cast<size_t>(indent) + 1, ' ');
          } else {
            out.append(", ");
          }
        }
        out += positions[k] < 0 ? " ..." : formatter.padded(offset + positions[k] * strides_[dim]);
      }
      return out + "]";
    }
    std::string separator = ",";
    separator.append(static_cast<size_t>(rank - dim - 1), '\n');
    separator.append(static_cast<size_t>(indent) + 1, ' ');
    for (size_t k = 0; k < positions.size(); ++k) {
      if (k > 0) out += separator;
      out += positions[k] < 0
                 ? "..."
                 : block(formatter, dim + 1, offset + positions[k] * strides_[dim], indent + 1);
    }
    return out + "]";
  }

  const TensorData& data_;
  const PrintOptions& how_;
  bool elide_;
  Strides strides_;
};

}  // namespace

std::string detail::size_text(const Shape& shape) {
  std::string out = "(";
  for (int i = 0; i < shape.rank(); ++i) {
    if (i > 0) out.append(", ");
    out.append(std::to_string(shape[i]));
  }
  return out.append(shape.rank() == 1 ? ",)" : ")");
}

std::string detail::with_suffixes(std::string text, const std::vector<std::string>& suffixes,
                                  int indent, bool breaks) {
  const auto line_width = static_cast<size_t>(options().line_width);
  const size_t newline = text.rfind('\n');
  size_t last = newline == std::string::npos ? text.size() + 2 : text.size() - newline + 1;
  for (const std::string& suffix : suffixes) {
    if (breaks || last + suffix.size() + 2 > line_width) {
      text.append(",\n").append(static_cast<size_t>(indent), ' ').append(suffix);
      last = static_cast<size_t>(indent) + suffix.size();
      breaks = false;
    } else {
      text.append(", ").append(suffix);
      last += suffix.size() + 2;
    }
  }
  return text.append(")");
}

std::string detail::elements_text(const Tensor& x, int indent) {
  if (x.device().type == kMeta) return "...";
  if (x.numel() == 0) return "[]";
  const TensorData data =
      kind_of(x.dtype()) == Kind::quantized ? dequantize(x).to_data() : x.to_data();
  return Printer(data, options()).print(indent);
}

PrintOptions print_options() { return options(); }

void set_print_options(const PrintOptions& how) {
  if (how.precision < 0 || how.precision > 20 || how.threshold < 0 || how.edge_items < 0 ||
      how.line_width < 1) {
    throw_error<ValueError>(
        "set_print_options: expected 0 <= precision <= 20, threshold and "
        "edge_items >= 0 and line_width >= 1");
  }
  options() = how;
}

std::string to_string(const Tensor& x) {
  if (!x.defined()) return "tensor(undefined)";
  const bool meta = x.device().type == kMeta;
  const std::string prefix = "tensor(";
  const int indent = static_cast<int>(prefix.size());
  std::vector<std::string> suffixes;
  const std::string body = detail::elements_text(x, indent);
  bool named_dtype = x.dtype() != default_dtype();
  if (!meta && x.numel() == 0) {
    if (x.dim() != 1) suffixes.push_back(concat("size=", detail::size_text(x.shape())));
  } else if (!meta) {
    named_dtype = named_dtype && x.dtype() != i64 && x.dtype() != bool_ &&
                  x.dtype() != complex_dtype(default_dtype());
  }
  if (x.device().type != kCpu) suffixes.push_back(concat("device='", x.device(), "'"));
  if (meta) suffixes.push_back(concat("size=", detail::size_text(x.shape())));
  if (named_dtype) suffixes.push_back(concat("dtype=kiln.", x.dtype()));
  if (!x.is_leaf()) {
    suffixes.push_back(concat("grad_fn=<", x.grad_fn(), ">"));
  } else if (x.requires_grad()) {
    suffixes.push_back("requires_grad=True");
  }
  return detail::with_suffixes(prefix + body, suffixes, indent, false);
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_string(x); }
std::ostream& detail::write(std::ostream& out, const std::string& text) { return out << text; }

}  // namespace kiln
