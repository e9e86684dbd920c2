// The weights of a convolution as its kernels read them. Internal to the Cpu backend.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/conv/conv_direct.h"
#include "kiln/backend/cpu/conv/conv_words.h"
#include "kiln/backend/cpu/conv/weight_panels.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/kept_data.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {

// The weights of all groups, packed into row panels for the kernels. Taps are taken in runs of
// whole channels. Those of bf16 are joined into words first (Note [Words of channels]).
template <class T>
class PackedWeights {
 public:
  template <class Weight>
  PackedWeights(const ConvSizes& s, const GemmKernels<T>& kernels, const Weight& weight)
      : kernels_(kernels),
        rows_(ceil_div(s.out, ceil_div(s.out, kernels_.max_rows))),
        panels_(ceil_div(s.out, rows_)),
        run_(channels_of_run(s) * s.taps()),
        panel_size_((rows_ * run_ + kernels_.lanes + 15) / 16 * 16),
        runs_(ceil_div(s.depth(), run_)) {
    using kiln::detail::KeptKey;
    const auto make = [&] {
      auto data = std::make_shared<Scratch<T>>(s.groups * runs_ * panels_ * panel_size_);
      if constexpr (std::is_same_v<Weight, WordWeight>) {
        const Scratch<T> joined(s.groups * s.out * s.depth());
        join_weights(s, weight, joined.get());
        pack(s, ConvWeight<T>{joined.get()}, data->get());
      } else {
        pack(s, weight, data->get());
      }
      const T* const at = data->get();
      return std::shared_ptr<const void>(std::move(data), at);
    };
    if (weight.storage != nullptr) {
      const int64_t offset =
          weight.data - static_cast<decltype(weight.data)>(weight.storage->data());
      const KeptKey key{
          KeptKey::convolution,
          {offset, s.groups, s.out, s.depth(), rows_, run_, panel_size_, form_of(weight)}};
      data_ = kiln::detail::kept_data(*weight.storage, key, make);
    }
    if (data_ == nullptr) data_ = make();
  }

  int64_t runs() const { return runs_; }
  int64_t panels() const { return panels_; }  // of channels, in each group
  int64_t longest_run() const { return run_; }
  int64_t first_channel(int64_t run, const ConvSizes& s) const { return run * run_ / s.taps(); }
  int64_t depth_of(int64_t run, const ConvSizes& s) const {
    return std::min(run_, s.depth() - run * run_);
  }

  // The first channel of a panel, or the end of them.
  int64_t channel_of(int64_t panel, const ConvSizes& s) const {
    return std::min(panel * rows_, s.out);
  }

  // Sets what depends on the group and the run. The block's channels are those from panel `begin`
  // on, up to panel `end`.
  void use_for(ConvBlock<T>& block, const ConvSizes& s, const T* bias, const ConvOutput<T>& out,
               int64_t group, int64_t run, int64_t begin, int64_t end) const {
    const int64_t first = channel_of(begin, s);
    block.m = channel_of(end, s) - first;
    block.k = depth_of(run, s);
    block.rows = rows_;
    block.a = static_cast<const T*>(data_.get()) +
              ((group * runs_ + run) * panels_ + begin) * panel_size_;
    block.a_panel = panel_size_;
    block.accumulate = run != 0;
    const bool last = run + 1 == runs_;
    block.row_bias = bias != nullptr && last ? bias + group * s.out + first : nullptr;
    block.in_tile = runs_ == 1 ? out.finish.in_tile() : nullptr;
    block.halves = last && out.halves.y != nullptr ? &out.halves : nullptr;
  }

 private:
  void pack(const ConvSizes& s, const ConvWeight<T>& weight, T* to) const {
    // Every panel has room for what pack() writes beyond it, so they can be packed in any order.
    const int64_t work = std::max<int64_t>(rows_ * run_, 1);
    parallel_for(s.groups * runs_ * panels_, std::max<int64_t>(kConvPieceWork / work, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t panel = i % panels_;
                     const int64_t run = i / panels_ % runs_;
                     const int64_t group = i / panels_ / runs_;
                     const int64_t row = panel * rows_;
                     pack_panel_of(kernels_, s, weight,
                                   {group, row, std::min(rows_, s.out - row), first_channel(run, s),
                                    depth_of(run, s) / s.taps()},
                                   to + i * panel_size_, rows_);
                   }
                 });
  }

  const GemmKernels<T>& kernels_;
  int64_t rows_, panels_;
  int64_t run_;
  int64_t panel_size_;
  int64_t runs_;
  std::shared_ptr<const void> data_;
};

}  // namespace kiln::cpu
