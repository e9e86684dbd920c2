#include "cli/train/examples.h"

#include <utility>

#include "cli/suggest.h"
#include "cli/usage_error.h"

namespace kiln::cli {

namespace {

const std::vector<std::pair<std::string, const char*>>& examples() {
  static const std::vector<std::pair<std::string, const char*>> all{
      {"image_folder", R"({
  "model": "resnet18",
  "data": {
    "kind": "image_folder",
    "train": "train",
    "test": "test",
    "valid_share": 0.1,
    "size": 32,
    "transforms": {"flip": true, "shift": 2, "rotate": 15, "brightness": 0.2}
  },
  "optimizer": {"name": "AdamW", "lr": 0.001},
  "schedule": {"name": "cosine", "warmup": 0.1},
  "epochs": 8,
  "batch_size": 32,
  "metrics": ["accuracy", "f1"],
  "seed": 1,
  "out": "runs/images"
}
)"},
      {"cifar10", R"({
  "model": "resnet18",
  "data": {
    "kind": "cifar10",
    "path": "data",
    "valid_share": 0.1,
    "transforms": {"flip": true, "shift": 2}
  },
  "optimizer": {"name": "AdamW", "lr": 0.001},
  "epochs": 8,
  "batch_size": 64,
  "out": "runs/cifar10"
}
)"},
      {"mnist", R"({
  "model": "lenet",
  "data": {"kind": "mnist", "path": "data", "transforms": {"shift": 2}},
  "optimizer": {"name": "AdamW", "lr": 0.002},
  "epochs": 5,
  "batch_size": 64,
  "out": "runs/mnist"
}
)"},
      {"digits", R"({
  "model": "lenet",
  "data": {"kind": "digits", "samples": 6000},
  "optimizer": {"name": "AdamW", "lr": 0.002},
  "epochs": 3,
  "batch_size": 64,
  "out": "runs/digits"
}
)"},
      {"codes", R"({
  "model": {"name": "vae", "latent_dim": 16},
  "data": {"kind": "digits", "samples": 6000, "task": "codes"},
  "optimizer": {"name": "Adam", "lr": 0.001},
  "epochs": 5,
  "batch_size": 64,
  "out": "runs/codes"
}
)"},
      {"segmentation", R"({
  "model": {"name": "unet", "base_channels": 16},
  "data": {
    "kind": "segmentation",
    "train": "train",
    "test": "test",
    "classes": ["background", "circle", "square", "triangle"],
    "transforms": {"flip": true, "rotate": 20}
  },
  "optimizer": {"name": "AdamW", "lr": 0.005},
  "epochs": 20,
  "batch_size": 8,
  "metrics": ["accuracy", "iou"],
  "checkpoints": {"best": "valid/iou"},
  "out": "runs/segmentation"
}
)"},
      {"audio_folder", R"({
  "model": "resnet18",
  "data": {
    "kind": "audio_folder",
    "train": "train",
    "test": "test",
    "seconds": 1.0,
    "mels": 32,
    "n_fft": 512,
    "hop": 256,
    "valid_share": 0.1
  },
  "optimizer": {"name": "AdamW", "lr": 0.001},
  "epochs": 4,
  "batch_size": 16,
  "out": "runs/sounds"
}
)"},
      {"csv", R"({
  "model": {"name": "mlp", "hidden": [32, 32]},
  "data": {"kind": "csv", "train": "plants.csv", "target": "species", "valid_share": 0.2},
  "optimizer": {"name": "AdamW", "lr": 0.01},
  "epochs": 20,
  "batch_size": 16,
  "metrics": ["accuracy", "f1", "auroc"],
  "out": "runs/plants"
}
)"},
      {"regression", R"({
  "model": {"name": "mlp", "hidden": [64, 64]},
  "data": {
    "kind": "csv",
    "train": "houses.csv",
    "target": "price",
    "features": ["rooms", "area", "age", "town", "garden"],
    "valid_share": 0.2
  },
  "optimizer": {"name": "AdamW", "lr": 0.005},
  "epochs": 30,
  "batch_size": 32,
  "metrics": ["mae", "rmse", "r2"],
  "early_stop": {"metric": "valid/mae", "patience": 8},
  "out": "runs/houses"
}
)"},
      {"json_lines", R"({
  "model": {"name": "mlp", "hidden": [32]},
  "data": {"kind": "json_lines", "train": "plants.jsonl", "target": "species", "valid_share": 0.2},
  "optimizer": {"name": "AdamW", "lr": 0.01},
  "epochs": 20,
  "batch_size": 16,
  "out": "runs/plants-jsonl"
}
)"},
      {"text_csv", R"({
  "model": {"name": "bert", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
  "data": {
    "kind": "text_csv",
    "train": "reviews.csv",
    "text": "review",
    "target": "verdict",
    "tokens": "word",
    "length": 16
  },
  "optimizer": {"name": "AdamW", "lr": 0.001},
  "epochs": 6,
  "batch_size": 32,
  "metrics": ["accuracy", "f1"],
  "out": "runs/reviews"
}
)"},
      {"text_corpus", R"({
  "model": {"name": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "dropout": 0.0},
  "data": {"kind": "text_corpus", "train": "story.txt", "tokens": "character", "length": 64},
  "optimizer": {"name": "AdamW", "lr": 0.003},
  "epochs": 5,
  "batch_size": 16,
  "clip_norm": 1.0,
  "metrics": ["perplexity", "accuracy"],
  "out": "runs/story"
}
)"},
  };
  return all;
}

}  // namespace

std::vector<std::string> example_kinds() {
  std::vector<std::string> out;
  for (const auto& [kind, text] : examples()) out.push_back(kind);
  return out;
}

std::string example_config(const std::string& kind) {
  std::string legal;
  for (const auto& [known, text] : examples()) {
    if (known == kind) return text;
    legal += (legal.empty() ? "" : ", ") + known;
  }
  throw UsageError("--example: there is no '" + kind + "'" + did_you_mean(kind, example_kinds()) +
                   " (legal: " + legal + ")");
}

}  // namespace kiln::cli
