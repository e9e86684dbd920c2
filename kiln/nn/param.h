// Param: a tensor that a module owns, trains and saves. It may wait with its values until somebody
// reads them.
//
// Note [Lazy parameters]
// A Param is either initialized (it holds a value) or uninitialized (it holds a function that makes
// one, and knows device, shape and gradient requirement without running it). The first access runs
// the function, once, however many threads ask; when it throws, the next access tries again.
// Loading a record or a state dict into an uninitialized Param never runs it, so no random weights
// are drawn or allocated just to be overwritten. Functions that draw random numbers do so in the
// order of first use; Module::materialize() fixes that order.
#pragma once

#include <algorithm>
#include <atomic>
#include <concepts>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kiln/backend/arg.h"
#include "kiln/core/error.h"
#include "kiln/nn/param_id.h"
#include "kiln/nn/param_traits.h"
#include "kiln/nn/part_mark.h"

namespace kiln::nn {

class ModuleMapper;
class ModuleVisitor;
class Recorder;
struct PrecisionSettings;
struct RecordItem;

// What happens to a parameter's value on its way into and out of a record: quantization, another
// precision, another layout.
template <class T>
class ParamMapper {
 public:
  using Function = std::function<T(T)>;

  T on_load(T value) const { return load_ ? (*load_)(std::move(value)) : value; }
  T on_save(T value) const { return save_ ? (*save_)(std::move(value)) : value; }

  bool has_load() const { return load_ != nullptr; }
  bool has_save() const { return save_ != nullptr; }
  void set_load(Function f) { load_ = std::make_shared<const Function>(std::move(f)); }
  void set_save(Function f) { save_ = std::make_shared<const Function>(std::move(f)); }

 private:
  std::shared_ptr<const Function> load_;
  std::shared_ptr<const Function> save_;
};

// What a parameter is computed from, each time that it is read.
//
// Note [Computed parameters]
// A Param may hold no value of its own: a low-rank update over a frozen base, or weights that are
// kept quantized, are computed when the parameter is read. Its source owns what the value is
// computed from, the Param's former self among it, and the visit of the module shows these parts in
// the Param's place (kiln/nn/parametrization.h has what modules need of that). Whether there is a
// source is one test of a pointer.
template <class T>
class ParamSource {
 public:
  virtual ~ParamSource() = default;
  // A fresh value, which nobody else holds.
  virtual T value() const = 0;
  // The same in a place that stays good until this thread asks again.
  virtual const T& held_value() const = 0;
  // Known without computing the value.
  virtual typename ParameterTraits<T>::Device device() const = 0;
  virtual Shape shape() const = 0;
  virtual std::optional<DType> dtype() const = 0;
  virtual bool is_require_grad() const = 0;
  virtual void set_require_grad(bool value) = 0;
  // An independent copy.
  virtual std::unique_ptr<ParamSource> clone_source() const = 0;
};

namespace detail {

// The lock of one initialization.
class InitLock {
 public:
  InitLock();
  ~InitLock();
  InitLock(const InitLock&) = delete;
  InitLock& operator=(const InitLock&) = delete;

  void lock();
  void unlock();
  // Brackets the call of the function. Throws ValueError when this thread is inside it already: the
  // function reads the parameter that it makes.
  void begin();
  void end();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class InitGuard {
 public:
  explicit InitGuard(InitLock& lock) : lock_(lock) { lock_.lock(); }
  ~InitGuard() { lock_.unlock(); }
  InitGuard(const InitGuard&) = delete;
  InitGuard& operator=(const InitGuard&) = delete;

 private:
  InitLock& lock_;
};

[[noreturn]] void throw_no_parameter();
struct UnnamedParts;

}  // namespace detail

// Reading (get, *, ->, conversion) is safe from several threads at once; everything that is not
// const needs the Param for itself. A default-constructed Param holds nothing, as PyTorch's
// parameters that are None: it belongs to no state dict, and a Param<Tensor> then reads as the
// undefined tensor.
template <Parameter T>
class Param {
 public:
  using Traits = ParameterTraits<T>;
  using Device = typename Traits::Device;
  // Makes the value: on this device, with or without a gradient.
  using InitFn = std::function<T(const Device&, bool require_grad)>;

  // ---- Construction

  Param() : id_(0) {}
  static Param initialized(ParamId id, T value) {
    return from_mapped_value(id, std::move(value), {});
  }
  static Param uninitialized(ParamId id, InitFn init, Device device, bool require_grad, Shape shape,
                             std::optional<DType> dtype = {}) {
    Param out;
    out.id_ = id;
    out.lazy_ = std::make_unique<Lazy>(
        Settings{std::move(init), std::move(device), require_grad, shape, dtype});
    return out;
  }
  // A Param<Tensor> gets a new leaf that shares the tensor's memory and requires a gradient when it
  // is floating point.
  static Param from_tensor(T value) {
    if constexpr (requires { Traits::as_parameter(value); }) {
      return initialized(ParamId(), Traits::as_parameter(value));
    } else {
      return initialized(ParamId(), Traits::set_require_grad(std::move(value), true));
    }
  }
  static Param from_data(const TensorData& data, const Device& device = {}) {
    return from_tensor(T(data, device));
  }
  static Param from_mapped_value(ParamId id, T value, ParamMapper<T> mapper) {
    Param out;
    out.id_ = id;
    out.mapper_ = std::move(mapper);
    out.replace(std::move(value));
    return out;
  }

  // A copy has values of its own that are equal, and the same gradient requirement, id and mappers:
  // a copied model computes what the first one does. The copy of a lazy parameter is lazy, too; the
  // first of both that is read makes the values for both.
  Param(const Param& other);
  Param(Param&& other) noexcept : id_(other.id_) { take(other); }
  Param& operator=(const Param& other) {
    if (this != &other) *this = Param(other);
    return *this;
  }
  Param& operator=(Param&& other) noexcept {
    if (this != &other) {
      value_.reset();
      take(other);
    }
    return *this;
  }

  // ---- Value

  const ParamId& id() const { return id_; }
  void set_id(ParamId id) { id_ = id; }
  // Whether there is a value (and not the undefined tensor) or a function that makes one.
  bool defined() const {
    if (!is_initialized()) return lazy_ != nullptr || source_ != nullptr;
    if constexpr (requires { value_->defined(); }) return value_->defined();
    return true;
  }
  bool is_initialized() const { return ready_.load(std::memory_order_acquire); }

  // The value, made now if it has to be.
  const T& get() const {
    if (ready_.load(std::memory_order_acquire)) [[likely]]
      return *value_;
    return initialize();
  }
  T val() const { return source_ == nullptr ? get() : source_->value(); }
  const T& operator*() const { return get(); }
  T& operator*() { return const_cast<T&>(get()); }
  const T* operator->() const { return &get(); }
  T* operator->() { return &const_cast<T&>(get()); }
  operator const T&() const { return get(); }
  operator Arg<T>() const { return Arg<T>(get()); }

  T into_value() && { return std::get<1>(std::move(*this).consume()); }
  std::tuple<ParamId, T, ParamMapper<T>> consume() && {
    T value = val();
    ParamMapper<T> mapper = std::move(mapper_);
    value_.reset();
    ready_.store(false, std::memory_order_relaxed);
    lazy_.reset();
    source_.reset();
    return {id_, std::move(value), std::move(mapper)};
  }
  // Puts another value in place of the present one, which is not made if it was not yet.
  void replace(T value) {
    value_.emplace(std::move(value));
    lazy_.reset();
    source_.reset();
    ready_.store(true, std::memory_order_release);
  }

  // ---- Computed parameters

  // Note [Computed parameters]. Such a Param is not initialized, and reads as what its source
  // computes.
  bool is_computed() const { return source_ != nullptr; }
  // Null unless computed.
  ParamSource<T>* source() const { return source_.get(); }
  // Has `source`, which usually took over what this Param was, compute the value from now on.
  // replace() ends it.
  void compute_by(std::unique_ptr<ParamSource<T>> source) {
    value_.reset();
    lazy_.reset();
    ready_.store(false, std::memory_order_relaxed);
    source_ = std::move(source);
  }

  // ---- Mapping

  // Replaces the value by f(value).
  template <class F>
    requires std::invocable<F, T>
  Param& map(F&& f) & {
    replace(std::forward<F>(f)(val()));
    return *this;
  }
  // Applies f to the value: now, or right after it is made.
  Param& init_mapper(std::function<T(T)> f) &;
  Param& load_mapper(std::function<T(T)> f) & {
    mapper_.set_load(std::move(f));
    return *this;
  }
  Param& save_mapper(std::function<T(T)> f) & {
    mapper_.set_save(std::move(f));
    return *this;
  }
  Param& set_require_grad(bool value) &;
  // The same on a temporary: Param<Tensor>::from_tensor(x).set_require_grad(false).
  template <class F>
    requires std::invocable<F, T>
  Param map(F&& f) && {
    return std::move(map(std::forward<F>(f)));
  }
  Param init_mapper(std::function<T(T)> f) && { return std::move(init_mapper(std::move(f))); }
  Param load_mapper(std::function<T(T)> f) && { return std::move(load_mapper(std::move(f))); }
  Param save_mapper(std::function<T(T)> f) && { return std::move(save_mapper(std::move(f))); }
  Param set_require_grad(bool value) && { return std::move(set_require_grad(value)); }
  const ParamMapper<T>& mapper() const { return mapper_; }

  // ---- What is known without making the value

  Device lazy_device() const {
    if (source_ != nullptr) return source_->device();
    return read(&Settings::device, [](const T& x) -> Device { return Traits::device(x); });
  }
  Shape lazy_shape() const {
    if (source_ != nullptr) return source_->shape();
    return read(&Settings::shape, [](const T& x) -> Shape { return Traits::shape(x); });
  }
  bool lazy_is_require_grad() const {
    if (source_ != nullptr) return source_->is_require_grad();
    return read(&Settings::require_grad, [](const T& x) { return Traits::is_require_grad(x); });
  }
  // Empty when nobody said.
  std::optional<DType> lazy_dtype() const {
    if (source_ != nullptr) return source_->dtype();
    return read(&Settings::dtype, [](const T& x) -> std::optional<DType> {
      if constexpr (requires { x.dtype(); }) return x.dtype();
      return std::nullopt;
    });
  }
  // Changes where, or in which dtype, the value will be made. False when it is there already.
  bool set_lazy_device(const Device& device);
  bool set_lazy_dtype(DType dtype, std::function<T(T)> cast);

  // What valid() noted: whether the parameter required a gradient before. Empty on any other.
  std::optional<bool> require_grad_before_valid() const { return before_valid_; }
  void note_before_valid(std::optional<bool> require_grad) { before_valid_ = require_grad; }

  // ---- Records

  // The parameter with `value` from a record: moved to this one's device, through the load
  // mapper, with this one's gradient requirement. Does not make this one's value.
  Param transform_for_load(T value, ParamId id) const;
  // The parameter as a record holds it: through the save mapper.
  Param transform_for_save() const { return initialized(id_, mapper_.on_save(val())); }

  // ---- As a module of one parameter, which is what Burn's is

  // What a record of it is: another Param, through the save mapper; and back, through the load
  // mapper. An initialized one keeps its tensor, which takes over the values, converted to its
  // dtype; a lazy one takes the value without running its function. Throws ShapeError for values of
  // another shape.
  Param into_record() const { return transform_for_save(); }
  Param& load_record(const Param& record);
  std::vector<Device> collect_devices(std::vector<Device> devices) const {
    const Device own = lazy_device();
    if (std::find(devices.begin(), devices.end(), own) == devices.end()) devices.push_back(own);
    return devices;
  }
  std::vector<Device> devices() const { return collect_devices({}); }
  Param& no_grad() & { return set_require_grad(false); }
  Param no_grad() && { return std::move(set_require_grad(false)); }
  // Elements. Initializes nothing.
  int64_t num_params() const { return defined() ? lazy_shape().numel() : 0; }

  // Defined for a Param<Tensor>; Module's functions of the same names say what they do
  // (kiln/nn/module.h). A visitor or mapper is shown the parameter under the name "".
  void visit(ModuleVisitor& visitor) const;
  Param& map(ModuleMapper& mapper) &;
  Param& to_device(const Device& device);
  Param& fork(const Device& device);
  Param valid() const;
  Param from_valid() const;
  // A record in the precision of its settings, with one entry "param", and the way back: ValueError
  // for an item of anything else.
  RecordItem into_item(const PrecisionSettings& settings) const;
  template <class PrecisionSettingsClass>
  auto into_item() const {
    return into_item(PrecisionSettingsClass::get());
  }
  static Param from_item(const RecordItem& item, const Device& device = {});
  void save_file(const std::string& path, const Recorder& recorder) const;
  Param& load_file(const std::string& path, const Recorder& recorder,
                   std::optional<Device> device = {});

 private:
  friend struct detail::UnnamedParts;
  struct Settings {
    InitFn init;
    Device device;
    bool require_grad;
    Shape shape;
    std::optional<DType> dtype;
  };
  // Lives as long as its Param even when the value is there: other threads may still wait at the
  // lock. `settings` is empty from then on.
  struct Lazy {
    explicit Lazy(Settings s) : settings(std::move(s)) {}
    detail::InitLock lock;
    std::optional<Settings> settings;
  };

  const T& initialize() const;
  static Settings shared(Settings& settings);
  void take(Param& other) noexcept;
  // A field of the settings while the value is not made, else what `of_value` says of it.
  template <class Field, class F>
  Field read(Field Settings::*field, F of_value) const {
    if (!is_initialized() && lazy_ != nullptr) {
      detail::InitGuard guard(lazy_->lock);
      if (lazy_->settings) return (*lazy_->settings).*field;
    }
    return of_value(get());
  }

  ParamId id_;
  mutable std::atomic<bool> ready_{false};
  mutable std::optional<T> value_;  // written once, before ready_ is set
  std::unique_ptr<Lazy> lazy_;
  std::unique_ptr<ParamSource<T>> source_;  // null unless computed
  ParamMapper<T> mapper_;
  std::optional<bool> before_valid_;
  detail::PartMark<std::is_same_v<T, Tensor> ? detail::PartKind::parameter
                                             : detail::PartKind::other_parameter>
      mark_;
};

// "Param: 0123456789abc", and the same with the mappers that it has.
template <class T>
std::string display(const Param<T>& param) {
  return "Param: " + to_string(param.id());
}
template <class T>
std::string debug_string(const Param<T>& param) {
  const auto word = [](bool b) { return b ? "true" : "false"; };
  return concat(display(param), " - ParamMapper { load: ", word(param.mapper().has_load()),
                ", save: ", word(param.mapper().has_save()), " }");
}
// PyTorch's form: "Parameter containing:\ntensor(...)". A lazy parameter says so and stays lazy.
std::string to_string(const Param<Tensor>& param);
std::ostream& operator<<(std::ostream& out, const Param<Tensor>& param);

// How a layer makes its parameters.
struct ParamOptions {
  std::optional<DType> dtype = {};  // default: default_dtype() at the time of construction
  Device device = {};
  bool requires_grad = true;
  // Fills parameters of two dims and more, the weights of layers, in place of the layer's own way;
  // an Initializer (kiln/nn/initializer.h) or any other function.
  std::function<void(Tensor&)> initializer = {};
};

// A lazy parameter of this shape: `fill` gets it as an uninitialized tensor, without recording, and
// writes the values.
//   Param<Tensor> scale = parameter({3}, init::ones_);
Param<Tensor> parameter(const Shape& shape, std::function<void(Tensor&)> fill,
                        const ParamOptions& options = {});

// Makes `param` read, train and save the tensor of `with` from now on: weights that are tied. They
// stay so when their module is moved, cast, copied or loaded into. Initializes `with`. Throws
// ShapeError when the shapes differ, ValueError when one of them is None or computed.
//   nn::tie_weights(head.weight, tokens.weight);
void tie_weights(Param<Tensor>& param, const Param<Tensor>& with);

// Fills a parameter again, in place; one that is lazy will be filled anyway.
void refill(Param<Tensor>& param, const std::function<void(Tensor&)>& fill);

}  // namespace kiln::nn

#include "kiln/nn/param_impl.h"
