#include "kiln/models/ddpm.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/attention.h"
#include "kiln/tensor/nn/dropout.h"
#include "kiln/tensor/nn/interpolate.h"
#include "kiln/tensor/nn/padding.h"
#include "kiln/tensor/shape/joining.h"

namespace kiln::models {
namespace {

nn::GroupNorm norm(int64_t channels) {
  return nn::GroupNorm({.num_groups = std::gcd<int64_t, int64_t>(32, channels),
                        .num_channels = channels,
                        .eps = 1e-6});
}

// Two convolutions with norms; the time joins between them.
struct ResnetBlock : nn::Module {
  nn::GroupNorm norm1;
  nn::Conv2d conv1;
  nn::Linear temb_proj;
  nn::GroupNorm norm2;
  nn::Conv2d conv2;
  std::optional<nn::Conv2d> nin_shortcut;
  KILN_MODULE(ResnetBlock, norm1, conv1, temb_proj, norm2, conv2, nin_shortcut)

  ResnetBlock(int64_t inputs, int64_t outputs, int64_t temb, double dropout)
      : norm1(norm(inputs)),
        conv1(inputs, outputs, 3, {.padding = 1}),
        temb_proj(temb, outputs),
        norm2(norm(outputs)),
        conv2(outputs, outputs, 3, {.padding = 1}),
        dropout_(dropout) {
    if (inputs != outputs) nin_shortcut.emplace(inputs, outputs, 1);
  }
  Tensor forward(const Tensor& x, const Tensor& temb) {
    Tensor h = conv1(silu(norm1(x)));
    h = h + temb_proj(silu(temb)).unsqueeze(-1).unsqueeze(-1);
    h = conv2(functional::dropout(silu(norm2(h)), dropout_, is_training()));
    return h + (nin_shortcut ? (*nin_shortcut)(x) : x);
  }

 private:
  double dropout_;
};

// Each pixel attends to all pixels.
struct AttnBlock : nn::Module {
  nn::GroupNorm norm;
  nn::Conv2d q, k, v, proj_out;
  KILN_MODULE(AttnBlock, norm, q, k, v, proj_out)

  explicit AttnBlock(int64_t channels)
      : norm(models::norm(channels)),
        q(channels, channels, 1),
        k(channels, channels, 1),
        v(channels, channels, 1),
        proj_out(channels, channels, 1) {}
  Tensor forward(const Tensor& x) {
    const Tensor h = norm(x);
    const auto pixels = [](const Tensor& y) { return y.flatten(2).transpose(1, 2).unsqueeze(1); };
    const Tensor y =
        functional::scaled_dot_product_attention(pixels(q(h)), pixels(k(h)), pixels(v(h)));
    return x + proj_out(y.select(1, 0).transpose(1, 2).reshape(x.shape()));
  }
};

// A convolution that halves the size, or one behind a doubling.
struct Resample : nn::Module {
  nn::Conv2d conv;
  KILN_MODULE(Resample, conv)

  Resample(int64_t channels, bool halves)
      : conv(channels, channels, 3, {.stride = halves ? 2 : 1, .padding = halves ? 0 : 1}),
        halves_(halves) {}
  Tensor forward(const Tensor& x) {
    if (halves_) return conv(functional::pad(x, {0, 1, 0, 1}));
    return conv(functional::interpolate(x, {.scale_factor = {2}}));
  }

 private:
  bool halves_;
};

// Sines and cosines of the steps [N] at dim / 2 frequencies: [N, dim].
Tensor timestep_embedding(const Tensor& t, int64_t dim) {
  const int64_t half = dim / 2;
  const double scale = std::log(10000.0) / double(std::max<int64_t>(1, half - 1));
  const Tensor frequency =
      (arange(0, half, 1, {.dtype = f32, .device = t.device()}) * -scale).exp();
  const Tensor angle = t.to(f32).unsqueeze(1) * frequency;
  const Tensor out = cat({angle.sin(), angle.cos()}, 1);
  return dim % 2 == 0 ? out : functional::pad(out, {0, 1});
}

DDPMUNetOptions checked(const DDPMUNetOptions& o) {
  require_positive("DDPMUNet", "ch", o.ch);
  require_positive("DDPMUNet", "out_ch", o.out_ch);
  require_positive("DDPMUNet", "num_res_blocks", o.num_res_blocks);
  require_positive("DDPMUNet", "in_channels", o.in_channels);
  require_positive("DDPMUNet", "resolution", o.resolution);
  const size_t levels = o.ch_mult.size();
  if (levels < 1 || levels > 32 || o.resolution % (int64_t(1) << (levels - 1)) != 0) {
    throw_error<ValueError>(
        "DDPMUNet: resolution must be a multiple of 2 ** (len(ch_mult) - 1); got ", o.resolution,
        " and ", levels, " factors");
  }
  for (const int64_t factor : o.ch_mult) require_positive("DDPMUNet", "ch_mult", factor);
  return o;
}

// What stands at `name` in a level, or null.
template <class M>
M* part(nn::Module& level, const std::string& name) {
  auto* parts = level.as<nn::ModuleDict>();
  return parts->contains(name) ? (*parts)[name].template as<M>() : nullptr;
}

}  // namespace

DDPMUNet::DDPMUNet(const DDPMUNetOptions& o)
    : conv_in(o.in_channels, o.ch, 3, {.padding = 1}),
      norm_out(models::norm(checked(o).ch * o.ch_mult[0])),
      conv_out(o.ch * o.ch_mult[0], o.out_ch, 3, {.padding = 1}),
      options_(o) {
  const int64_t width = 4 * o.ch;
  nn::ModuleList dense;
  dense.push_back(nn::Linear(o.ch, width)).push_back(nn::Linear(width, width));
  temb.set("dense", std::move(dense));
  std::vector<int64_t> skips{o.ch};
  int64_t inputs = o.ch, size = o.resolution;
  const auto attends = [&] {
    return std::count(o.attn_resolutions.begin(), o.attn_resolutions.end(), size) > 0;
  };
  const size_t levels = o.ch_mult.size();
  for (size_t i = 0; i < levels; ++i) {
    nn::ModuleList block, attn;
    nn::ModuleDict level;
    for (int64_t j = 0; j < o.num_res_blocks; ++j) {
      block.push_back(ResnetBlock(inputs, o.ch * o.ch_mult[i], width, o.dropout));
      inputs = o.ch * o.ch_mult[i];
      skips.push_back(inputs);
      if (attends()) attn.push_back(AttnBlock(inputs));
    }
    level.set("block", std::move(block));
    level.set("attn", std::move(attn));
    if (i + 1 < levels) {
      level.set("downsample", Resample(inputs, /*halves=*/true));
      skips.push_back(inputs);
      size /= 2;
    }
    down.push_back(std::move(level));
  }
  mid.set("block_1", ResnetBlock(inputs, inputs, width, o.dropout));
  mid.set("attn_1", AttnBlock(inputs));
  mid.set("block_2", ResnetBlock(inputs, inputs, width, o.dropout));
  for (size_t i = levels; i-- > 0;) {
    nn::ModuleList block, attn;
    nn::ModuleDict level;
    for (int64_t j = 0; j <= o.num_res_blocks; ++j) {
      block.push_back(ResnetBlock(inputs + skips.back(), o.ch * o.ch_mult[i], width, o.dropout));
      skips.pop_back();
      inputs = o.ch * o.ch_mult[i];
      if (attends()) attn.push_back(AttnBlock(inputs));
    }
    level.set("block", std::move(block));
    level.set("attn", std::move(attn));
    if (i > 0) {
      level.set("upsample", Resample(inputs, /*halves=*/false));
      size *= 2;
    }
    up.insert(0, std::move(level));
  }
}

Tensor DDPMUNet::forward(const Tensor& x, const Tensor& t) {
  if (x.dim() != 4 || x.size(2) != options_.resolution || x.size(3) != options_.resolution) {
    throw_error<ValueError>("DDPMUNet: expected images of ", options_.resolution, " x ",
                            options_.resolution, "; got ", to_string(x.shape()));
  }
  auto& dense = *temb["dense"].as<nn::ModuleList>();
  Tensor time = timestep_embedding(t, options_.ch).to(x.dtype());
  time = dense.at<nn::Linear>(1)(silu(dense.at<nn::Linear>(0)(time)));
  // A level's block j, then its attention where there is one.
  const auto step = [&](nn::Module& level, int64_t j, const Tensor& input) {
    const Tensor h = part<nn::ModuleList>(level, "block")->at<ResnetBlock>(j)(input, time);
    auto& attn = *part<nn::ModuleList>(level, "attn");
    return attn.empty() ? h : attn.at<AttnBlock>(j)(h);
  };
  std::vector<Tensor> skips{conv_in(x)};
  for (nn::Module& level : down) {
    for (int64_t j = 0; j < options_.num_res_blocks; ++j) {
      skips.push_back(step(level, j, skips.back()));
    }
    if (auto* halve = part<Resample>(level, "downsample")) skips.push_back((*halve)(skips.back()));
  }
  Tensor h = (*mid["block_1"].as<ResnetBlock>())(skips.back(), time);
  h = (*mid["block_2"].as<ResnetBlock>())((*mid["attn_1"].as<AttnBlock>())(h), time);
  for (int64_t i = int64_t(up.size()) - 1; i >= 0; --i) {
    for (int64_t j = 0; j <= options_.num_res_blocks; ++j) {
      h = step(up[i], j, cat({h, skips.back()}, 1));
      skips.pop_back();
    }
    if (auto* twice = part<Resample>(up[i], "upsample")) h = (*twice)(h);
  }
  return conv_out(silu(norm_out(h)));
}
KILN_MODULE_DEFINED(DDPMUNet, temb, conv_in, down, mid, up, norm_out, conv_out)

}  // namespace kiln::models
