// Param's longer members.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "kiln/nn/copy_session.h"
#include "kiln/nn/param.h"

namespace kiln::nn {

namespace detail {

// One lazy parameter whose value several others take, on any thread: each gets a clone, and the
// last of them the value itself. It counts its holders with the ordering that this needs, which
// shared_ptr::use_count() does not have: what other holders read happened before the last one
// writes.
template <Parameter T>
class SharedParam {
 public:
  explicit SharedParam(Param<T> param) : state_(std::make_shared<State>(std::move(param))) {}
  SharedParam(const SharedParam& other) : state_(other.state_) {
    state_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  SharedParam(SharedParam&&) noexcept = default;
  SharedParam& operator=(const SharedParam&) = delete;
  ~SharedParam() {
    if (state_ != nullptr) state_->holders.fetch_sub(1, std::memory_order_release);
  }

  T value() const {
    const T& made = state_->param.get();
    const bool last = state_->holders.load(std::memory_order_acquire) == 1;
    return last ? made : ParameterTraits<T>::clone(made);
  }

 private:
  struct State {
    explicit State(Param<T> p) : param(std::move(p)) {}
    Param<T> param;
    std::atomic<int> holders{1};
  };
  std::shared_ptr<State> state_;
};

}  // namespace detail

template <Parameter T>
Param<T>::Param(const Param& other)
    : id_(other.id_), mapper_(other.mapper_), before_valid_(other.before_valid_) {
  if (other.source_ != nullptr) {
    source_ = other.source_->clone_source();
    return;
  }
  if (!other.is_initialized() && other.lazy_ != nullptr) {
    detail::InitGuard guard(other.lazy_->lock);
    if (other.lazy_->settings) {
      lazy_ = std::make_unique<Lazy>(shared(*other.lazy_->settings));
      return;
    }
  }
  if (!other.is_initialized()) return;
  if constexpr (std::is_same_v<T, Tensor>) {
    replace(detail::CopySession::clone(&other, *other.value_));
  } else {
    replace(Traits::clone(*other.value_));
  }
}

// Lets two parameters make the values of one, which are made when the first of both is read.
template <Parameter T>
typename Param<T>::Settings Param<T>::shared(Settings& settings) {
  detail::SharedParam<T> one(uninitialized(ParamId(), settings.init, settings.device,
                                           settings.require_grad, settings.shape));
  settings.init = [one = std::move(one)](const Device& device, bool require_grad) {
    T value = one.value();
    if (!(Traits::device(value) == device)) value = Traits::to_device(std::move(value), device);
    return Traits::set_require_grad(std::move(value), require_grad);
  };
  return settings;
}

template <Parameter T>
void Param<T>::take(Param& other) noexcept {
  id_ = other.id_;
  value_ = std::move(other.value_);
  lazy_ = std::move(other.lazy_);
  source_ = std::move(other.source_);
  mapper_ = std::move(other.mapper_);
  before_valid_ = other.before_valid_;
  ready_.store(other.ready_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  other.value_.reset();
  other.ready_.store(false, std::memory_order_relaxed);
}

template <Parameter T>
[[gnu::noinline, gnu::cold]] const T& Param<T>::initialize() const {
  if (source_ != nullptr) return source_->held_value();
  if (lazy_ == nullptr) {
    if constexpr (requires { Traits::none(); }) {
      return Traits::none();
    } else {
      detail::throw_no_parameter();
    }
  }
  detail::InitGuard guard(lazy_->lock);
  if (!ready_.load(std::memory_order_acquire)) {
    struct Call {
      explicit Call(detail::InitLock& l) : lock(l) { lock.begin(); }
      ~Call() { lock.end(); }
      detail::InitLock& lock;
    } call(lazy_->lock);
    const Settings& settings = *lazy_->settings;
    value_.emplace(settings.init(settings.device, settings.require_grad));
    lazy_->settings.reset();
    ready_.store(true, std::memory_order_release);
  }
  return *value_;
}

template <Parameter T>
Param<T>& Param<T>::init_mapper(std::function<T(T)> f) & {
  if (is_initialized() || lazy_ == nullptr) return map(f);
  InitFn& init = lazy_->settings->init;
  init = [before = std::move(init), f = std::move(f)](const Device& device, bool require_grad) {
    return f(before(device, require_grad));
  };
  return *this;
}

template <Parameter T>
Param<T>& Param<T>::set_require_grad(bool value) & {
  if (source_ != nullptr) {
    source_->set_require_grad(value);
    return *this;
  }
  if (is_initialized() || lazy_ == nullptr) {
    return map([value](T x) { return Traits::set_require_grad(std::move(x), value); });
  }
  lazy_->settings->require_grad = value;
  return *this;
}

template <Parameter T>
bool Param<T>::set_lazy_device(const Device& device) {
  if (is_initialized() || lazy_ == nullptr) return false;
  lazy_->settings->device = device;
  return true;
}

template <Parameter T>
bool Param<T>::set_lazy_dtype(DType dtype, std::function<T(T)> cast) {
  if (is_initialized() || lazy_ == nullptr) return false;
  init_mapper(std::move(cast));
  lazy_->settings->dtype = dtype;
  return true;
}

template <Parameter T>
Param<T> Param<T>::transform_for_load(T value, ParamId id) const {
  const Device device = lazy_device();
  if (!(Traits::device(value) == device)) value = Traits::to_device(std::move(value), device);
  value = mapper_.on_load(std::move(value));
  value = Traits::set_require_grad(std::move(value), lazy_is_require_grad());
  return from_mapped_value(id, std::move(value), mapper_);
}

template <Parameter T>
Param<T>& Param<T>::load_record(const Param& record) {
  if (!(record.lazy_shape() == lazy_shape())) {
    throw_error<ShapeError>("Param::load_record: the record has another shape; got ",
                            record.lazy_shape(), "; expected ", lazy_shape());
  }
  Param loaded = transform_for_load(record.val(), record.id());
  if constexpr (requires(T& x) { Traits::take_values(x, x); }) {
    if (is_initialized()) {
      Traits::take_values(*value_, *loaded.value_);
      id_ = loaded.id_;
      return *this;
    }
    if (const auto dtype = lazy_dtype()) Traits::cast(*loaded.value_, *dtype);
  }
  return *this = std::move(loaded);
}

// In param_module.cpp.
template <>
void Param<Tensor>::visit(ModuleVisitor& visitor) const;
template <>
Param<Tensor>& Param<Tensor>::map(ModuleMapper& mapper) &;
template <>
Param<Tensor>& Param<Tensor>::to_device(const Device& device);
template <>
Param<Tensor>& Param<Tensor>::fork(const Device& device);
template <>
Param<Tensor> Param<Tensor>::valid() const;
template <>
Param<Tensor> Param<Tensor>::from_valid() const;
template <>
RecordItem Param<Tensor>::into_item(const PrecisionSettings& settings) const;
template <>
Param<Tensor> Param<Tensor>::from_item(const RecordItem& item, const Device& device);
template <>
void Param<Tensor>::save_file(const std::string& path, const Recorder& recorder) const;
template <>
Param<Tensor>& Param<Tensor>::load_file(const std::string& path, const Recorder& recorder,
                                        std::optional<Device> device);

// Compiled once, in param.cpp.
extern template class Param<Tensor>;

}  // namespace kiln::nn
