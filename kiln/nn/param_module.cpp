// A parameter as a module of itself.
#include "kiln/core/error.h"
#include "kiln/nn/module_visitor.h"
#include "kiln/nn/param.h"
#include "kiln/nn/record.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::nn {
namespace {

constexpr const char* kPath = "param";

// What parameter `id` and its value are as a record.
Record as_record(const Param<Tensor>& param) {
  Record record;
  const Param<Tensor> saved = param.into_record();
  record.add(kPath, saved.id(), saved.get().detach());
  return record;
}

Param<Tensor> from_record(const char* op, const Record& record) {
  const Record::Entry* entry = record.find(kPath);
  if (entry == nullptr || record.size() != 1) {
    throw_error<ValueError>(op, ": expected the record of one parameter; got ", record.size(),
                            " tensors", record.size() == 0 ? "" : ", the first of them '",
                            record.size() == 0 ? "" : record.entries()[0].path + "'");
  }
  return Param<Tensor>::initialized(entry->id.value_or(ParamId()), entry->value);
}

}  // namespace

template <>
void Param<Tensor>::visit(ModuleVisitor& visitor) const {
  if (defined()) detail::show(visitor, "", *this);
}

template <>
Param<Tensor>& Param<Tensor>::map(ModuleMapper& mapper) & {
  if (defined()) *this = detail::mapped(mapper, "", std::move(*this));
  return *this;
}

template <>
Param<Tensor>& Param<Tensor>::to_device(const Device& device) {
  if (!set_lazy_device(device)) replace(val().to(device));
  return *this;
}

template <>
Param<Tensor>& Param<Tensor>::fork(const Device& device) {
  if (set_lazy_device(device)) return *this;
  const Tensor before = val();
  Tensor value = before.detach().to(device);
  if (before.requires_grad()) value.requires_grad_();
  replace(std::move(value));
  return *this;
}

template <>
Param<Tensor> Param<Tensor>::valid() const {
  if (!defined()) return {};
  get();  // or the copy would make a value of its own
  detail::ShareOnCopy share;
  Param copy = *this;
  if (!copy.require_grad_before_valid()) copy.note_before_valid(copy.lazy_is_require_grad());
  copy.set_require_grad(false);
  return copy;
}

template <>
Param<Tensor> Param<Tensor>::from_valid() const {
  if (!defined()) return {};
  get();
  detail::ShareOnCopy share;
  Param copy = *this;
  if (const auto before = copy.require_grad_before_valid()) copy.set_require_grad(*before);
  copy.note_before_valid({});
  return copy;
}

template <>
RecordItem Param<Tensor>::into_item(const PrecisionSettings& settings) const {
  return as_record(*this).into_item(settings);
}

template <>
Param<Tensor> Param<Tensor>::from_item(const RecordItem& item, const Device& device) {
  return from_record("Param::from_item", Record::from_item(item, device));
}

template <>
void Param<Tensor>::save_file(const std::string& path, const Recorder& recorder) const {
  recorder.record(as_record(*this), path);
}

template <>
Param<Tensor>& Param<Tensor>::load_file(const std::string& path, const Recorder& recorder,
                                        std::optional<Device> device) {
  if (device) fork(*device);
  return load_record(from_record("Param::load_file", recorder.load_record(path)));
}

}  // namespace kiln::nn
