// The layers whose forward looks different in Python.
#pragma once

#include "functional.h"
#include "nn_layer_type.h"

namespace kiln::python {

inline bool is_no_activation(PyObject* word) {
  return PyUnicode_Check(word) && std::string_view(utf8_of(word)) == "none";
}

// linear(x, activation="gelu", residual=y)
template <>
struct LayerForward<nn::Linear> {
  static PyObject* call(const char* name, nn::Linear& layer, PyObject* const* args, int64_t numel) {
    if (is_no_activation(args[1]) && args[2] == Py_None) {
      return call_layer<Tensor>(name, layer, args, numel,
                                [](nn::Linear& l, const Tensor& x) { return l.forward(x); });
    }
    return call_layer<Tensor, std::string, Tensor>(
        name, layer, args, numel,
        [](nn::Linear& l, const Tensor& x, const std::string& word, const Tensor& residual) {
          return l.forward(x, F::LinearOptions{activation_of(word), residual});
        });
  }
};

// conv(x, activation="relu", residual=y)
template <class L>
struct ConvForward {
  static PyObject* call(const char* name, L& layer, PyObject* const* args, int64_t numel) {
    if (is_no_activation(args[1]) && args[2] == Py_None) {
      return call_layer<Tensor>(name, layer, args, numel,
                                [](L& l, const Tensor& x) { return l.forward(x); });
    }
    return call_layer<Tensor, std::string, Tensor>(
        name, layer, args, numel,
        [](L& l, const Tensor& x, const std::string& word, const Tensor& residual) {
          return l.forward(x, F::ConvEpilogue{activation_of(word), residual});
        });
  }
};
template <>
struct LayerForward<nn::Conv1d> : ConvForward<nn::Conv1d> {};
template <>
struct LayerForward<nn::Conv2d> : ConvForward<nn::Conv2d> {};
template <>
struct LayerForward<nn::Conv3d> : ConvForward<nn::Conv3d> {};

// conv(x, output_size, activation="relu")
template <class L>
struct ConvTransposeForward {
  static PyObject* call(const char* name, L& layer, PyObject* const* args, int64_t numel) {
    return call_layer<Tensor, std::optional<std::vector<int64_t>>, std::string>(
        name, layer, args, numel,
        [](L& l, const Tensor& x, const std::optional<std::vector<int64_t>>& output_size,
           const std::string& word) { return l.forward(x, output_size, activation_of(word)); });
  }
};
template <>
struct LayerForward<nn::ConvTranspose1d> : ConvTransposeForward<nn::ConvTranspose1d> {};
template <>
struct LayerForward<nn::ConvTranspose2d> : ConvTransposeForward<nn::ConvTranspose2d> {};
template <>
struct LayerForward<nn::ConvTranspose3d> : ConvTransposeForward<nn::ConvTranspose3d> {};

// Gives back what it was given, whatever that is.
template <>
struct LayerForward<nn::Identity> {
  static PyObject* call(const char*, nn::Identity&, PyObject* const* args, int64_t) {
    return Py_NewRef(args[0]);
  }
};

// Lengths may be tuples or lists of integers.
template <>
struct LayerForward<nn::CTCLoss> {
  static PyObject* call(const char* name, nn::CTCLoss& layer, PyObject* const* args,
                        int64_t numel) {
    nb::object lengths[2];
    PyObject* values[] = {args[0], args[1], args[2], args[3]};
    for (int i = 0; i < 2; ++i) {
      if (!PyTuple_Check(args[2 + i]) && !PyList_Check(args[2 + i])) continue;
      lengths[i] = nb::module_::import_("kiln").attr("tensor")(nb::handle(args[2 + i]));
      values[2 + i] = lengths[i].ptr();
    }
    return call_forward<nn::CTCLoss>(name, layer, values, numel, &nn::CTCLoss::forward);
  }
};

// The variance may be a number.
template <>
struct LayerForward<nn::GaussianNLLLoss> {
  static PyObject* call(const char* name, nn::GaussianNLLLoss& layer, PyObject* const* args,
                        int64_t numel) {
    nb::object var;
    PyObject* values[] = {args[0], args[1], args[2]};
    if (PyFloat_Check(args[2])) {
      var =
          nb::module_::import_("kiln").attr("full_like")(nb::handle(args[0]), nb::handle(args[2]));
      values[2] = var.ptr();
    }
    return call_forward<nn::GaussianNLLLoss>(name, layer, values, numel,
                                             &nn::GaussianNLLLoss::forward);
  }
};

// A recurrent layer takes a tensor or a PackedSequence, and gives back what it took.
template <class L, class State>
struct RecurrentForward {
  static PyObject* call(const char* name, L& layer, PyObject* const* args, int64_t numel) {
    if (!PyTuple_Check(args[0]) || tuple_size(args[0]) != 4) {
      return call_layer<Tensor, State>(
          name, layer, args, numel,
          [](L& l, const Tensor& x, const State& state) { return l.forward(x, state); });
    }
    const auto part = [&](Py_ssize_t i) {
      return OptionCast<Tensor>::from(concat(name, ": a packed sequence"), tuple_item(args[0], i));
    };
    const nn::PackedSequence x{part(0), part(1), part(2), part(3)};
    const LayerArgument<State> state(name, args[1]);
    auto out = [&] {
      const Unlocked lock(std::max(numel, x.data.defined() ? x.data.numel() : 0));
      return layer.forward(x, state.get());
    }();
    const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(args[0])));
    const nb::object packed = type(
        nb::steal(tensor_object(std::move(out.first.data))), nb::handle(tuple_item(args[0], 1)),
        nb::handle(tuple_item(args[0], 2)), nb::handle(tuple_item(args[0], 3)));
    if constexpr (std::is_same_v<State, Tensor>) {
      return nb::make_tuple(packed, nb::steal(tensor_object(std::move(out.second))))
          .release()
          .ptr();
    } else {
      return nb::make_tuple(packed, nb::steal(layer_result(std::move(out.second)))).release().ptr();
    }
  }
};
template <>
struct LayerForward<nn::RNN> : RecurrentForward<nn::RNN, Tensor> {};
template <>
struct LayerForward<nn::GRU> : RecurrentForward<nn::GRU, Tensor> {};
template <>
struct LayerForward<nn::LSTM> : RecurrentForward<nn::LSTM, std::optional<nn::LSTMState>> {};

template <>
struct LayerForward<nn::LSTMCell> {
  static PyObject* call(const char* name, nn::LSTMCell& layer, PyObject* const* args,
                        int64_t numel) {
    using State = std::optional<nn::LSTMState>;
    return call_layer<Tensor, State>(
        name, layer, args, numel,
        [](nn::LSTMCell& l, const Tensor& x, const State& state) { return l.forward(x, state); });
  }
};

}  // namespace kiln::python
