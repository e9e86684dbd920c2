#include "cli/train/zoo.h"

#include <algorithm>

#include "cli/suggest.h"
#include "kiln/core/error.h"
#include "kiln/models/models.h"
#include "kiln/nn/dropout.h"
#include "kiln/nn/relu.h"
#include "kiln/nn/sequential.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::cli {

namespace {

using namespace models;

constexpr int64_t kMostLayers = 1000;

struct Row {
  std::string name;
  std::vector<Task> tasks;
  ZooModel (*build)(Fields& fields, const ModelShape& shape);
};

// A module whose forward takes the input as it is.
template <class M>
ZooModel plain(M* made) {
  std::shared_ptr<M> net(made);
  return {"", net, [net](const Tensor& x) { return (*net)(x); }};
}

// torchvision's models take three channels: gray is given to each.
template <class M>
ZooModel colours(M* made, const ModelShape& shape) {
  std::shared_ptr<M> net(made);
  const bool gray = shape.channels == 1;
  return {"", net, [net, gray](const Tensor& x) {
            return (*net)(gray ? x.expand({x.size(0), 3, x.size(2), x.size(3)}) : x);
          }};
}

double chance(Fields& fields, const char* name, double preset) {
  return fields.real(name, preset, 0, 1);
}

ResNetOptions resnet_options(Fields& fields, const ModelShape& shape) {
  ResNetOptions o;
  o.num_classes = shape.classes;
  o.zero_init_residual = fields.flag("zero_init_residual", o.zero_init_residual);
  return o;
}

template <ResNet (*make)(const ResNetOptions&)>
ZooModel resnet(Fields& fields, const ModelShape& shape) {
  return colours(new ResNet(make(resnet_options(fields, shape))), shape);
}
template <ResNet (*make)(ResNetOptions)>
ZooModel wide(Fields& fields, const ModelShape& shape) {
  return colours(new ResNet(make(resnet_options(fields, shape))), shape);
}

template <VGG (*make)(const VGGOptions&)>
ZooModel vgg(Fields& fields, const ModelShape& shape) {
  return colours(
      new VGG(make({.num_classes = shape.classes, .dropout = chance(fields, "dropout", 0.5)})),
      shape);
}

template <bool large>
ZooModel mobilenet(Fields& fields, const ModelShape& shape) {
  MobileNetV3Options o;
  o.num_classes = shape.classes;
  o.dropout = chance(fields, "dropout", o.dropout);
  o.width_mult = fields.real("width_mult", o.width_mult, 0, 16, true);
  return colours(new MobileNetV3(large, o), shape);
}

ZooModel efficientnet(Fields& fields, const ModelShape& shape) {
  EfficientNetOptions o;
  o.num_classes = shape.classes;
  o.dropout = chance(fields, "dropout", o.dropout);
  o.stochastic_depth_prob = chance(fields, "stochastic_depth_prob", o.stochastic_depth_prob);
  o.width_mult = fields.real("width_mult", o.width_mult, 0, 16, true);
  o.depth_mult = fields.real("depth_mult", o.depth_mult, 0, 16, true);
  return colours(new EfficientNet(o), shape);
}

template <ConvNeXt (*make)(const ConvNeXtOptions&)>
ZooModel convnext(Fields& fields, const ModelShape& shape) {
  ConvNeXtOptions o;
  o.num_classes = shape.classes;
  o.stochastic_depth_prob = chance(fields, "stochastic_depth_prob", o.stochastic_depth_prob);
  return colours(new ConvNeXt(make(o)), shape);
}

void need_square(Fields& fields, const ModelShape& shape, const std::string& model) {
  if (shape.height != shape.width) {
    fields.fail("name", concat("'", model, "' takes square images; got ", shape.height, "x",
                               shape.width, " (set data.size)"));
  }
}

// The library's sizes, or those of the configuration.
ZooModel transformer(Fields& fields, const ModelShape& shape, VisionTransformerOptions o) {
  need_square(fields, shape, "vit");
  o.num_classes = shape.classes;
  o.image_size = shape.height;
  o.patch_size = fields.whole("patch_size", o.patch_size, 1);
  o.num_layers = fields.whole("num_layers", o.num_layers, 1, kMostLayers);
  o.num_heads = fields.whole("num_heads", o.num_heads, 1);
  o.hidden_dim = fields.whole("hidden_dim", o.hidden_dim, 1);
  o.mlp_dim = fields.whole("mlp_dim", o.mlp_dim, 1);
  o.dropout = chance(fields, "dropout", o.dropout);
  o.attention_dropout = chance(fields, "attention_dropout", o.attention_dropout);
  return colours(new VisionTransformer(o), shape);
}
ZooModel vit_tiny(Fields& fields, const ModelShape& shape) {
  return transformer(fields, shape, {.num_heads = 3, .hidden_dim = 192, .mlp_dim = 768});
}
ZooModel vit_base(Fields& fields, const ModelShape& shape) {
  return transformer(fields, shape, {});
}

ZooModel lenet(Fields& fields, const ModelShape& shape) {
  need_square(fields, shape, "lenet");
  if (shape.height != 28 && shape.height != 32) {
    fields.fail("name", concat("'lenet' takes images of 28x28 or 32x32; got ", shape.height, "x",
                               shape.width, " (set data.size)"));
  }
  return plain(new LeNet({.num_classes = shape.classes, .in_channels = shape.channels}));
}

ZooModel perceptron(Fields& fields, const ModelShape& shape) {
  const bool image = shape.task == Task::image_classes, text = shape.task == Task::text_classes;
  std::vector<int64_t> widths = fields.wholes("hidden", {128, 64}, 1);
  const double dropout = chance(fields, "dropout", 0.0);
  const int64_t inputs = image  ? shape.channels * shape.height * shape.width
                         : text ? shape.vocabulary
                                : shape.features;
  // The library puts dropout behind the last layer, too, where it would blur the answers.
  auto net = std::make_shared<nn::Sequential>();
  int64_t from = inputs;
  for (const int64_t width : widths) {
    net->push_back(nn::Linear(from, width));
    net->push_back(nn::ReLU());
    if (dropout > 0) net->push_back(nn::Dropout(dropout));
    from = width;
  }
  net->push_back(nn::Linear(from, shape.classes));
  if (!text) return {"", net, [net](const Tensor& x) { return (*net)(x.flatten(1)); }};
  // How often each token occurs, in a text of length 1; without padding.
  return {"", net, [net, words = shape.vocabulary](const Tensor& ids) {
            const Tensor counts =
                zeros({ids.size(0), words}, {.dtype = f32, .device = ids.device()})
                    .scatter_add(1, ids, ids.ne(0).to(f32));
            return (*net)(counts / counts.square().sum(1, true).sqrt().clamp(1.0, {}));
          }};
}

ZooModel u_net(Fields& fields, const ModelShape& shape) {
  UNetOptions o;
  o.n_channels = shape.channels;
  o.n_classes = shape.classes;
  o.bilinear = fields.flag("bilinear", o.bilinear);
  o.base_channels = fields.whole("base_channels", o.base_channels, 1);
  if (std::min(shape.height, shape.width) < 16) {
    fields.fail("name", concat("'unet' takes images of 16x16 or more; got ", shape.height, "x",
                               shape.width, " (set data.size)"));
  }
  return plain(new UNet(o));
}

// Reconstruction, mean and logarithm of the variance, side by side.
ZooModel autoencoder(Fields& fields, const ModelShape& shape) {
  VAEOptions o;
  o.input_dim = shape.channels * shape.height * shape.width;
  o.hidden_dim = fields.whole("hidden_dim", o.hidden_dim, 1);
  o.latent_dim = fields.whole("latent_dim", o.latent_dim, 1);
  auto net = std::make_shared<VAE>(o);
  return {"", net, [net](const Tensor& x) {
            const VAEOutput out = (*net)(x.flatten(1));
            return cat({out.reconstruction, out.mu, out.logvar}, 1);
          }};
}

ZooModel bert(Fields& fields, const ModelShape& shape) {
  BertConfig c;
  c.vocab_size = shape.vocabulary;
  c.num_labels = shape.classes;
  c.max_position_embeddings = shape.length;
  c.hidden_size = fields.whole("hidden_size", 128, 1);
  c.num_hidden_layers = fields.whole("num_hidden_layers", 2, 1, kMostLayers);
  c.num_attention_heads = fields.whole("num_attention_heads", 4, 1);
  c.intermediate_size = fields.whole("intermediate_size", 4 * c.hidden_size, 1);
  c.hidden_dropout_prob = chance(fields, "hidden_dropout_prob", 0.1);
  c.attention_probs_dropout_prob = chance(fields, "attention_probs_dropout_prob", 0.1);
  auto net = std::make_shared<BertForSequenceClassification>(c);
  return {"", net, [net](const Tensor& ids) {
            return (*net)(ids, BertCall{.attention_mask = ids.ne(0).to(i64)});
          }};
}

ZooModel gpt(Fields& fields, const ModelShape& shape) {
  GPT2Config c;
  c.vocab_size = shape.vocabulary;
  c.n_positions = shape.length;
  c.n_embd = fields.whole("n_embd", 128, 1);
  c.n_layer = fields.whole("n_layer", 4, 1, kMostLayers);
  c.n_head = fields.whole("n_head", 4, 1);
  const double dropout = chance(fields, "dropout", 0.1);
  c.resid_pdrop = c.embd_pdrop = c.attn_pdrop = dropout;
  c.tie_word_embeddings = fields.flag("tie_word_embeddings", true);
  return plain(new GPT2LMHeadModel(c));
}

ZooModel llama_model(Fields& fields, const ModelShape& shape) {
  LlamaConfig c;
  c.vocab_size = shape.vocabulary;
  c.hidden_size = fields.whole("hidden_size", 128, 1);
  c.intermediate_size = fields.whole("intermediate_size", 3 * c.hidden_size, 1);
  c.num_hidden_layers = fields.whole("num_hidden_layers", 4, 1, kMostLayers);
  c.num_attention_heads = fields.whole("num_attention_heads", 4, 1);
  c.num_key_value_heads = fields.whole("num_key_value_heads", c.num_attention_heads, 1);
  c.attention_dropout = chance(fields, "attention_dropout", 0.0);
  c.tie_word_embeddings = fields.flag("tie_word_embeddings", false);
  return plain(new LlamaForCausalLM(c));
}

ZooModel lstm(Fields& fields, const ModelShape& shape) {
  LSTMLanguageModelOptions o;
  o.ntoken = shape.vocabulary;
  o.ninp = fields.whole("ninp", 128, 1);
  o.nhid = fields.whole("nhid", 256, 1);
  o.nlayers = fields.whole("nlayers", 1, 1, kMostLayers);
  o.dropout = chance(fields, "dropout", 0.2);
  o.tie_weights = fields.flag("tie_weights", false);
  auto net = std::make_shared<LSTMLanguageModel>(o);
  return {"", net, [net](const Tensor& ids) { return (*net)(ids, std::nullopt).first; }};
}

const std::vector<Row>& rows() {
  using enum Task;
  static const std::vector<Row> all{
      {"resnet18", {image_classes}, resnet<resnet18>},
      {"resnet34", {image_classes}, resnet<resnet34>},
      {"resnet50", {image_classes}, resnet<resnet50>},
      {"resnet101", {image_classes}, resnet<resnet101>},
      {"resnet152", {image_classes}, resnet<resnet152>},
      {"resnext50_32x4d", {image_classes}, wide<resnext50_32x4d>},
      {"wide_resnet50_2", {image_classes}, wide<wide_resnet50_2>},
      {"vgg11", {image_classes}, vgg<vgg11>},
      {"vgg11_bn", {image_classes}, vgg<vgg11_bn>},
      {"vgg13", {image_classes}, vgg<vgg13>},
      {"vgg13_bn", {image_classes}, vgg<vgg13_bn>},
      {"vgg16", {image_classes}, vgg<vgg16>},
      {"vgg16_bn", {image_classes}, vgg<vgg16_bn>},
      {"vgg19", {image_classes}, vgg<vgg19>},
      {"vgg19_bn", {image_classes}, vgg<vgg19_bn>},
      {"mobilenet_v3_small", {image_classes}, mobilenet<false>},
      {"mobilenet_v3_large", {image_classes}, mobilenet<true>},
      {"efficientnet_b0", {image_classes}, efficientnet},
      {"convnext_atto", {image_classes}, convnext<convnext_atto>},
      {"convnext_tiny", {image_classes}, convnext<convnext_tiny>},
      {"convnext_small", {image_classes}, convnext<convnext_small>},
      {"convnext_base", {image_classes}, convnext<convnext_base>},
      {"convnext_large", {image_classes}, convnext<convnext_large>},
      {"vit_tiny_16", {image_classes}, vit_tiny},
      {"vit_b_16", {image_classes}, vit_base},
      {"lenet", {image_classes}, lenet},
      {"mlp", {image_classes, table_classes, table_numbers, text_classes}, perceptron},
      {"vae", {image_codes}, autoencoder},
      {"unet", {segmentation}, u_net},
      {"bert", {text_classes}, bert},
      {"gpt2", {language}, gpt},
      {"llama", {language}, llama_model},
      {"lstm_lm", {language}, lstm},
  };
  return all;
}

bool fits(const Row& row, Task task) {
  return std::find(row.tasks.begin(), row.tasks.end(), task) != row.tasks.end();
}

}  // namespace

std::string to_string(Task task) {
  switch (task) {
    case Task::image_classes:
      return "classification of images";
    case Task::segmentation:
      return "segmentation";
    case Task::image_codes:
      return "coding of images";
    case Task::table_classes:
      return "classification of rows";
    case Task::table_numbers:
      return "regression";
    case Task::text_classes:
      return "classification of texts";
    default:
      return "language modelling";
  }
}

std::vector<std::string> zoo_names(Task task) {
  std::vector<std::string> out;
  for (const Row& row : rows()) {
    if (fits(row, task)) out.push_back(row.name);
  }
  return out;
}

std::vector<std::string> zoo_names() {
  std::vector<std::string> out;
  for (const Row& row : rows()) out.push_back(row.name);
  return out;
}

ZooModel build_model(Fields fields, const ModelShape& shape, Json& read) {
  const std::string name = fields.word("name", {}, zoo_names());
  for (const Row& row : rows()) {
    if (row.name != name) continue;
    if (!fits(row, shape.task)) {
      std::string legal;
      for (const std::string& other : zoo_names(shape.task)) {
        legal += (legal.empty() ? "" : ", ") + other;
      }
      fields.fail("name", concat("'", name, "' is no model for the ", to_string(shape.task),
                                 " that data.kind asks for (legal: ", legal, ")"));
    }
    ZooModel model;
    try {
      model = row.build(fields, shape);
    } catch (const Error& e) {
      fields.fail("", e.what());
    }
    model.name = name;
    read = fields.finish();
    return model;
  }
  fields.fail("name", "there is no such model");
}

}  // namespace kiln::cli
