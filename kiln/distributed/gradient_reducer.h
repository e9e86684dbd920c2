// GradientReducer: gradients become their mean over processes while a backward pass goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kiln/distributed/process_group.h"

namespace kiln::distributed {

// Some gradients that travel together, as a hook sees them.
struct GradientBucket {
  int64_t index = 0;     // buckets leave in this order
  bool is_last = false;  // of the pass
  Tensor buffer;  // [numel], the gradients one after another; zeros for those that are missing
  std::vector<Tensor> parameters;

  // Views of the buffer, with the shapes of the parameters.
  std::vector<Tensor> gradients() const;
};

// Begins to exchange a bucket, on the thread of the pass, and returns what waits for it: a function
// whose result has as many elements as the buffer, the gradients' mean over the processes or
// what is to take its place. It may change the buffer. All processes call it for the same buckets
// in the same order.
using GradientHook = std::function<std::function<Tensor()>(const GradientBucket& bucket)>;

// Sends buckets in a smaller dtype (bf16 or f16): half the bytes, and a mean rounded to it. Throws
// ValueError for another dtype.
GradientHook compressed_gradients(std::shared_ptr<ProcessGroup> group, DType dtype);

// Each pass of backward_accumulate() or backward() that reaches one of the parameters ends with
// gradients that are the mean over the processes of the group. They travel in buckets, the last
// parameters first. Those of backward_accumulate() leave as soon as they are full, while the pass
// goes on; those of backward() when it has ended. A parameter that no process used keeps its
// gradient, or has none; where only some processes used it, the others count as 0.
//
// Every process must run such a pass, with the same parameters. One pass at a time.
class GradientReducer {
 public:
  // Registers hooks. `bucket_cap_mb`: the size of a bucket in MiB; the first one is at most 1 MiB,
  // so that it leaves early. Throws ValueError when it is not positive, and for no parameters.
  GradientReducer(std::vector<Tensor> parameters, std::shared_ptr<ProcessGroup> group,
                  double bucket_cap_mb = 25);
  // Removes them.
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // While false, passes leave gradients as they are; they add up.
  void set_enabled(bool enabled) { enabled_ = enabled; }
  bool is_enabled() const { return enabled_; }

  // Exchanges buckets by the hook from now on; null: by all_reduce() with ReduceOp::avg.
  void set_hook(GradientHook hook) { hook_ = std::move(hook); }

  // The numbers of the parameters of each bucket, in the order in which buckets leave.
  std::vector<std::vector<int64_t>> buckets() const;

 private:
  struct Slot {
    size_t parameter;
    int64_t begin;  // in the bucket
    int64_t end;
  };
  struct Bucket {
    std::vector<Slot> slots = {};
    int64_t numel = 0;
    size_t ready = 0;
    Tensor flat = {};  // the gradients, and for each parameter whether it has one
    Work work = {};
    std::function<Tensor()> result = {};  // of a hook
  };
  struct Place {
    size_t bucket;
    size_t slot;
  };
  class Pass;
  // Where hooks find the reducer, as long as it lives: a pass of any thread calls them.
  class Self {
   public:
    explicit Self(GradientReducer* reducer) : reducer_(reducer) {}
    GradientReducer* get() const;
    // Null where none of its parameters has one of the gradients, too.
    GradientReducer* of(const Gradients& gradients) const;
    void end();

   private:
    mutable std::mutex mutex_;
    GradientReducer* reducer_;
  };

  void make_buckets(double cap_mb);
  void on_ready(size_t parameter);
  void on_gradients(Gradients& gradients);
  void launch_full();
  void launch(Bucket& bucket);
  void call_hook(Bucket& bucket);
  void finish();
  void take_back(Bucket& bucket);
  // Of a parameter in this pass; undefined without one.
  Tensor gradient_of(size_t parameter) const;
  void set_gradient(size_t parameter, const Tensor& mean);
  void reset();

  std::vector<Tensor> parameters_;
  std::shared_ptr<ProcessGroup> group_;
  std::vector<Place> places_;  // of each parameter
  std::vector<Bucket> buckets_;
  std::vector<HookHandle> hooks_;
  std::vector<bool> is_ready_;
  size_t launched_ = 0;
  bool in_pass_ = false;
  Gradients* gradients_ = nullptr;  // of backward(); null: the parameters have them
  bool enabled_ = true;
  GradientHook hook_;
  std::shared_ptr<Self> self_;
};

}  // namespace kiln::distributed
