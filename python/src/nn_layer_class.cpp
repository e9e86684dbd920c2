#include "nn_layer_class.h"

#include "nn_layer_arguments.h"

namespace kiln::python {
namespace {

// In the order of layers.def.
std::vector<std::unique_ptr<LayerType>> all_layer_types() {
  std::vector<std::unique_ptr<LayerType>> out(layers::kRows);
  [&]<size_t... part>(std::index_sequence<part...>) {
    (make_layer_types<part>(out), ...);
  }(std::make_index_sequence<kLayerParts>());
  return out;
}

}  // namespace

namespace layers {

std::vector<std::unique_ptr<LayerClass>>& classes() {
  static auto* all = new std::vector<std::unique_ptr<LayerClass>>();
  return *all;
}

namespace {

// "input, *, residual=None".
void read_arguments(LayerClass& of) {
  std::string_view text = of.type->forward_text();
  bool keyword_only = false;
  const nb::object evaluate = nb::module_::import_("ast").attr("literal_eval");
  while (!text.empty()) {
    const size_t comma = text.find(", ");
    const std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 2);
    if (word == "*") {
      keyword_only = true;
      continue;
    }
    const size_t equals = word.find('=');
    LayerOption argument{std::string(word.substr(0, equals)), {}, "", keyword_only};
    if (equals != std::string_view::npos) {
      argument.standard = evaluate(std::string(word.substr(equals + 1)));
    }
    if (!keyword_only) ++of.positional;
    of.argument_names.push_back(nb::steal(PyUnicode_InternFromString(argument.name.c_str())));
    of.arguments.push_back(std::move(argument));
  }
  if (of.arguments.size() > kMaxArguments) {
    throw_error<ValueError>("layers.def: ", of.type->name(), ": forward takes at most ",
                            kMaxArguments, " arguments; got ", of.arguments.size());
  }
}

}  // namespace

void make_classes() {
  for (std::unique_ptr<LayerType>& type : all_layer_types()) {
    auto of = std::make_unique<LayerClass>();
    of->type = std::move(type);
    of->options = of->type->options();
    for (const LayerOption& option : of->options) {
      of->names.push_back(nb::steal(PyUnicode_InternFromString(option.name.c_str())));
    }
    read_arguments(*of);
    classes().push_back(std::move(of));
  }
}

const LayerClass& class_named(const std::string& name) {
  for (const auto& of : classes()) {
    if (name == of->type->name()) return *of;
  }
  throw_error<KeyError>("layers.def: no layer of this name; got '", name, "'");
}

nb::dict description(const LayerClass& of) {
  nb::dict out;
  const LayerType& type = *of.type;
  out["name"] = type.name();
  out["home"] = type.home();
  out["doc"] = type.doc();
  out["forward"] = type.forward_text();
  out["version"] = type.state_version();
  out["has_parameters"] = type.has_parameters();
  out["takes_anything"] = type.takes_anything();
  nb::list options;
  for (const LayerOption& option : of.options) {
    options.append(nb::make_tuple(
        option.name,
        option.standard.is_valid() ? nb::make_tuple(option.standard) : nb::make_tuple(),
        option.annotation, option.keyword_only));
  }
  out["options"] = options;
  nb::list methods;
  for (const char* method : {"reset_parameters", "reset_running_stats"}) {
    if (type.has_method(method)) methods.append(method);
  }
  out["methods"] = methods;
  return out;
}

}  // namespace layers
}  // namespace kiln::python
