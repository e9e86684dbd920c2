#include "kiln/distributed/gradient_reducer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kiln/distributed/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/autograd/pass_end.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributed {

namespace {

constexpr double kMiB = 1 << 20;

}  // namespace

std::vector<Tensor> GradientBucket::gradients() const {
  std::vector<Tensor> views;
  int64_t begin = 0;
  for (const Tensor& x : parameters) {
    views.push_back(buffer.narrow(0, begin, x.numel()).view(x.shape()));
    begin += x.numel();
  }
  return views;
}

GradientHook compressed_gradients(std::shared_ptr<ProcessGroup> group, DType dtype) {
  if (dtype != DType::bf16 && dtype != DType::f16) {
    throw_error<ValueError>("compressed_gradients: dtype must be bf16 or f16; got ",
                            to_string(dtype));
  }
  if (group == nullptr) throw_error<ValueError>("compressed_gradients: there is no process group");
  return [group = std::move(group), dtype](const GradientBucket& bucket) {
    Tensor small = bucket.buffer.to(dtype);
    const Work work = group->all_reduce(small, ReduceOp::avg, true);
    return [work, small = std::move(small)] {
      work.wait();
      return small;
    };
  };
}

// What a backward pass holds. Where the pass fails it is dropped without a call, and the next one
// begins anew.
class GradientReducer::Pass {
 public:
  explicit Pass(std::shared_ptr<Self> self) : self_(std::move(self)) {}
  ~Pass() {
    if (GradientReducer* reducer = self_->get()) reducer->reset();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  void end() {
    if (GradientReducer* reducer = self_->get()) reducer->finish();
  }

 private:
  std::shared_ptr<Self> self_;
};

GradientReducer* GradientReducer::Self::get() const {
  const std::lock_guard lock(mutex_);
  return reducer_;
}

GradientReducer* GradientReducer::Self::of(const Gradients& gradients) const {
  const std::lock_guard lock(mutex_);
  if (reducer_ == nullptr) return nullptr;
  const auto has = [&](const Tensor& x) { return gradients.get(x).has_value(); };
  return std::ranges::any_of(reducer_->parameters_, has) ? reducer_ : nullptr;
}

void GradientReducer::Self::end() {
  const std::lock_guard lock(mutex_);
  reducer_ = nullptr;
}

GradientReducer::GradientReducer(std::vector<Tensor> parameters,
                                 std::shared_ptr<ProcessGroup> group, double bucket_cap_mb)
    : parameters_(std::move(parameters)),
      group_(std::move(group)),
      self_(std::make_shared<Self>(this)) {
  if (group_ == nullptr) throw_error<ValueError>("GradientReducer: there is no process group");
  if (parameters_.empty()) {
    throw_error<ValueError>("GradientReducer: there is no parameter that requires a gradient");
  }
  if (!std::isfinite(bucket_cap_mb) || bucket_cap_mb <= 0) {
    throw_error<ValueError>("GradientReducer: bucket_cap_mb must be positive; got ", bucket_cap_mb);
  }
  make_buckets(bucket_cap_mb);
  is_ready_.resize(parameters_.size());
  if (group_->size() == 1) return;
  hooks_.push_back(register_gradients_hook([self = self_](Gradients& gradients) {
    if (GradientReducer* reducer = self->of(gradients)) reducer->on_gradients(gradients);
  }));
  for (size_t i = 0; i < parameters_.size(); ++i) {
    hooks_.push_back(
        register_post_accumulate_grad_hook(parameters_[i], [self = self_, i](const Tensor&) {
          if (GradientReducer* reducer = self->get()) reducer->on_ready(i);
        }));
  }
}

GradientReducer::~GradientReducer() {
  self_->end();
  for (HookHandle& hook : hooks_) hook.remove();
}

void GradientReducer::make_buckets(double cap_mb) {
  places_.resize(parameters_.size());
  // The open bucket of each dtype and device.
  std::vector<size_t> open;
  for (size_t i = parameters_.size(); i-- > 0;) {
    const Tensor& x = parameters_[i];
    const auto same = std::ranges::find_if(open, [&](size_t b) {
      const Tensor& other = parameters_[buckets_[b].slots[0].parameter];
      return other.dtype() == x.dtype() && other.device() == x.device();
    });
    const auto bytes_of = [&](int64_t numel) {
      return static_cast<double>(numel) * static_cast<double>(size_of(x.dtype()));
    };
    size_t at = buckets_.size();
    if (same != open.end()) {
      at = *same;
      const double cap = at == 0 ? std::min(1.0, cap_mb) : cap_mb;
      if (bytes_of(buckets_[at].numel + x.numel()) > cap * kMiB) {
        at = *same = buckets_.size();
      }
    } else {
      open.push_back(at);
    }
    if (at == buckets_.size()) buckets_.emplace_back();
    Bucket& bucket = buckets_[at];
    places_[i] = {at, bucket.slots.size()};
    bucket.slots.push_back({i, bucket.numel, bucket.numel + x.numel()});
    bucket.numel += x.numel();
  }
}

std::vector<std::vector<int64_t>> GradientReducer::buckets() const {
  std::vector<std::vector<int64_t>> out;
  for (const Bucket& bucket : buckets_) {
    std::vector<int64_t>& numbers = out.emplace_back();
    for (const Slot& slot : bucket.slots) numbers.push_back(static_cast<int64_t>(slot.parameter));
  }
  return out;
}

void GradientReducer::on_ready(size_t parameter) {
  if (!enabled_) return;
  if (!in_pass_) {
    reset();
    in_pass_ = true;
    queue_callback([pass = std::make_shared<Pass>(self_)] { pass->end(); });
  }
  if (is_ready_[parameter]) {
    // A pass within the pass (a checkpoint) reached it before: the gradient is only now whole.
    if (places_[parameter].bucket < launched_) {
      throw_error<RuntimeError>(
          "GradientReducer: a parameter got gradients twice in one backward pass, after the first "
          "ones were sent; expected checkpoints with use_reentrant=False, or no module whose "
          "parameters are used in several of them");
    }
    return;
  }
  is_ready_[parameter] = true;
  ++buckets_[places_[parameter].bucket].ready;
  launch_full();
}

void GradientReducer::on_gradients(Gradients& gradients) {
  if (!enabled_ || in_pass_) return;
  const Pass end(self_);  // also where finish() throws
  reset();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    is_ready_[i] = gradients.get(parameters_[i]).has_value();
  }
  gradients_ = &gradients;
  finish();
}

Tensor GradientReducer::gradient_of(size_t parameter) const {
  if (!is_ready_[parameter]) return {};
  if (gradients_ != nullptr) return gradients_->at(parameters_[parameter]);
  return parameters_[parameter].grad();
}

void GradientReducer::set_gradient(size_t parameter, const Tensor& mean) {
  Tensor& x = parameters_[parameter];
  if (gradients_ != nullptr) {
    x.grad_replace(*gradients_, mean.clone());
  } else if (const Tensor grad = x.grad(); grad.defined()) {
    grad.detach().copy_(mean);
  } else {
    x.set_grad(mean.clone());
  }
}

// In the order that all processes have.
void GradientReducer::launch_full() {
  while (launched_ < buckets_.size() &&
         buckets_[launched_].ready == buckets_[launched_].slots.size()) {
    launch(buckets_[launched_++]);
  }
}

void GradientReducer::launch(Bucket& bucket) {
  const NoGradGuard no_grad;
  const auto count = static_cast<int64_t>(bucket.slots.size());
  if (!bucket.flat.defined()) {
    bucket.flat =
        empty({bucket.numel + count}, parameters_[bucket.slots[0].parameter].detach().options());
  }
  for (size_t i = 0; i < bucket.slots.size(); ++i) {
    const Slot& slot = bucket.slots[i];
    Tensor to = bucket.flat.narrow(0, slot.begin, slot.end - slot.begin);
    Tensor flag = bucket.flat.narrow(0, bucket.numel + static_cast<int64_t>(i), 1);
    const Tensor& parameter = parameters_[slot.parameter];
    const Tensor grad = gradient_of(slot.parameter);
    if (grad.defined()) {
      to.view(parameter.shape()).copy_(grad.detach());
      flag.fill_(1);
    } else {
      to.fill_(0);
      flag.fill_(0);
    }
  }
  if (hook_) return call_hook(bucket);
  bucket.work = group_->all_reduce(bucket.flat, ReduceOp::avg, true);
}

void GradientReducer::call_hook(Bucket& bucket) {
  const auto count = static_cast<int64_t>(bucket.slots.size());
  GradientBucket seen;
  seen.index = &bucket - buckets_.data();
  seen.is_last = seen.index + 1 == static_cast<int64_t>(buckets_.size());
  seen.buffer = bucket.flat.narrow(0, 0, bucket.numel);
  for (const Slot& slot : bucket.slots) seen.parameters.push_back(parameters_[slot.parameter]);
  bucket.result = hook_(seen);
  bucket.work = group_->all_reduce(bucket.flat.narrow(0, bucket.numel, count), ReduceOp::avg, true);
}

void GradientReducer::finish() {
  while (launched_ < buckets_.size()) launch(buckets_[launched_++]);
  for (Bucket& bucket : buckets_) {
    if (bucket.result) {
      const NoGradGuard no_grad;
      const Tensor result = bucket.result();
      if (!result.defined() || result.numel() != bucket.numel) {
        throw_error<ValueError>("GradientReducer: a hook must give ", bucket.numel,
                                " elements, as the bucket has; got ",
                                result.defined() ? result.numel() : 0);
      }
      bucket.flat.narrow(0, 0, bucket.numel).copy_(result.detach().reshape({bucket.numel}));
      bucket.result = {};
    }
    bucket.work.wait();
    take_back(bucket);
  }
}

void GradientReducer::take_back(Bucket& bucket) {
  const NoGradGuard no_grad;
  const Tensor flags =
      bucket.flat.narrow(0, bucket.numel, static_cast<int64_t>(bucket.slots.size()));
  const std::vector<float> used = flags.to(DType::f32).to_vector<float>();
  for (size_t i = 0; i < bucket.slots.size(); ++i) {
    if (used[i] == 0) continue;  // by nobody
    const Slot& slot = bucket.slots[i];
    const Shape& shape = parameters_[slot.parameter].shape();
    set_gradient(slot.parameter,
                 bucket.flat.narrow(0, slot.begin, slot.end - slot.begin).view(shape));
  }
}

void GradientReducer::reset() {
  for (Bucket& bucket : buckets_) {
    bucket.ready = 0;
    // Of a pass that failed: still in use.
    if (!bucket.work.is_completed() || bucket.result) bucket.flat = Tensor();
    bucket.work = {};
    bucket.result = {};
  }
  is_ready_.assign(is_ready_.size(), false);
  launched_ = 0;
  in_pass_ = false;
  gradients_ = nullptr;
}

}  // namespace kiln::distributed
