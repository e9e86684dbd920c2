// ModuleVisitor and ModuleMapper: seeing, and replacing, every parameter of a model. The way in for
// code that treats parameters one by one: counting, quantizing, freezing, writing records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kiln/nn/module.h"

namespace kiln::nn {

// The kind of a parameter, known without making its value: an undeclared dtype
// counts as floating, and so do quantized values.
enum class ParamKind : uint8_t { floating, integer, boolean };
ParamKind param_kind(const Param<Tensor>& param);

// Override what you need. `name` is the parameter's name in its module; path() the names from the
// root down to it.
class ModuleVisitor {
 public:
  virtual ~ModuleVisitor() = default;

  virtual void visit_float(std::string_view name, const Param<Tensor>& param);
  virtual void visit_int(std::string_view name, const Param<Tensor>& param);
  virtual void visit_bool(std::string_view name, const Param<Tensor>& param);
  virtual void visit_buffer(std::string_view name, const Buffer& buffer);

  // Around each module below the root, and each std container ("Vec") among a module's members.
  virtual void enter_module(std::string_view name, std::string_view type_name);
  virtual void exit_module(std::string_view name, std::string_view type_name);

  // "layers.0.weight" for the parameter "weight" that is being shown.
  std::string path(std::string_view name) const;

 private:
  friend class Module;
  std::vector<std::string> names_;
};

// Each function takes a parameter and returns the one to put in its place; the base class returns
// it as it is. A parameter that keeps id and mappers comes from
// Param<Tensor>::from_mapped_value(param.id(), value, param.mapper()), or param.map(f).
class ModuleMapper {
 public:
  virtual ~ModuleMapper() = default;

  virtual Param<Tensor> map_float(std::string_view name, Param<Tensor> param);
  virtual Param<Tensor> map_int(std::string_view name, Param<Tensor> param);
  virtual Param<Tensor> map_bool(std::string_view name, Param<Tensor> param);

  virtual void enter_module(std::string_view name, std::string_view type_name);
  virtual void exit_module(std::string_view name, std::string_view type_name);

  std::string path(std::string_view name) const;

 private:
  friend class Module;
  std::vector<std::string> names_;
};

namespace detail {

// Shows a defined parameter to a visitor by its kind; what a mapper makes of it.
void show(ModuleVisitor& visitor, std::string_view name, const Param<Tensor>& param);
Param<Tensor> mapped(ModuleMapper& mapper, std::string_view name, Param<Tensor> param);

}  // namespace detail
}  // namespace kiln::nn
