// The U-Net of denoising diffusion (Ho et al., 2020), with the keys of its port to PyTorch
// (ermongroup).
#pragma once

#include <vector>

#include "kiln/models/vision_blocks.h"
#include "kiln/nn/module_dict.h"
#include "kiln/nn/module_list.h"
#include "kiln/nn/norm_layers.h"

namespace kiln::models {

struct DDPMUNetOptions {
  int64_t ch = 128;
  int64_t out_ch = 3;
  std::vector<int64_t> ch_mult = {1, 2, 2, 2};
  int64_t num_res_blocks = 2;
  std::vector<int64_t> attn_resolutions = {16};  // sizes at which pixels attend to one another
  double dropout = 0.1;
  int64_t in_channels = 3;
  int64_t resolution = 32;
};

// Noisy images [N, in_channels, resolution, resolution] and their steps [N] -> the noise in them,
// [N, out_ch, ..].
class DDPMUNet : public nn::Module {
 public:
  explicit DDPMUNet(const DDPMUNetOptions& options = {});
  nn::ModuleDict temb;
  nn::Conv2d conv_in;
  nn::ModuleList down;
  nn::ModuleDict mid;
  nn::ModuleList up;
  nn::GroupNorm norm_out;
  nn::Conv2d conv_out;
  KILN_MODULE_DECLARED(DDPMUNet)
  Tensor forward(const Tensor& x, const Tensor& t);

 private:
  DDPMUNetOptions options_;
};

}  // namespace kiln::models
