"""The rows of `script/bench models`: whole models of everyday shapes."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """What is run: `kind` is "train" (a step of SGD or AdamW with a loss), "infer" (a forward pass in
    eval mode) or "decode" (one token of text after a prompt, with a cache).

    model: the name in kiln.models; peers have the same model from torchvision or transformers. Or one
    of model_programs.py, which all share.
    batch, size: images [batch, 3, size, size]; of texts and sequences `batch` of `size` elements.
    dtype: float32, bfloat16, or int8 for weights in 8 bits.
    asked: the ratio that the project wants, or None.
    """

    kind: str
    model: str
    batch: int
    size: int
    dtype: str = "float32"
    asked: float = None
    options: dict = field(default_factory=dict)

    @property
    def name(self):
        end = "" if self.dtype == "float32" else f"_{self.dtype}"
        return f"{self.kind}_{self.model}_b{self.batch}_{self.size}{end}"


ROWS = [
    Row("train", "resnet18", 8, 224, asked=1.3),
    Row("train", "resnet18", 16, 64, asked=1.15),
    Row("train", "mobilenet_v3_large", 16, 224, asked=1.5),
    Row("train", "vit_tiny_16", 8, 224, asked=1.2),
    Row("train", "convnext_atto", 8, 96, asked=1.15),
    Row("train", "mobilenet_v2", 16, 96, asked=1.2),
    Row("train", "unet", 8, 64, asked=1.15),
    Row("train", "autoencoder", 128, 28, asked=1.15),
    Row("train", "vae", 128, 28, asked=1.15),
    Row("train", "gpt_6x384", 4, 256, asked=1.15),
    Row("train", "text_encoder", 32, 64, asked=1.15),
    Row("train", "lstm_cells", 32, 50, asked=1.15),
    Row("train", "lstm", 32, 50, asked=1.3),
    Row("train", "graph_net", 10000, 100000, asked=1.2),
    Row("train", "rl_mlp", 1, 64, asked=1.15),
    Row("train", "rl_mlp", 32, 64, asked=1.15),
    Row("infer", "resnet18", 1, 224, asked=1.0),
    Row("infer", "resnet18", 8, 224, asked=1.3),
    Row("infer", "resnet18", 32, 224, asked=1.0),
    Row("infer", "mobilenet_v3_large", 1, 224, asked=1.0),
    Row("infer", "mobilenet_v3_large", 16, 224, asked=1.5),
    Row("infer", "vit_tiny_16", 1, 224, asked=1.0),
    Row("infer", "vit_tiny_16", 8, 224, asked=1.2),
    Row("infer", "vit_tiny_16", 32, 224, asked=1.0),
    Row("infer", "convnext_atto", 1, 224, asked=1.0),
    Row("infer", "convnext_atto", 32, 224, asked=1.0),
    *(
        Row("infer", model, batch, size, asked=1.0)
        for model, size in (
            ("mobilenet_v2", 224),
            ("unet", 128),
            ("autoencoder", 28),
            ("gpt_6x384", 256),
            ("text_encoder", 64),
            ("lstm_cells", 50),
            ("temporal", 256),
            ("deepfm", 26),
            ("rl_mlp", 64),
        )
        for batch in (1, 32)
    ),
    Row("decode", "gpt2", 1, 64, asked=1.3),
    Row("decode", "gpt2", 1, 64, "bfloat16", asked=2.0),
    Row("decode", "gpt2", 1, 64, "int8", asked=3.0),
]

# Models that no work on speed has looked at: the same source runs in both libraries.
UNSEEN = [
    Row(kind, model, batch, size, asked=1.0)
    for model, batch, size in (
        *(("densenet", 16, 32), ("efficientnet", 8, 96), ("resnext", 8, 48), ("swin", 4, 112)),
        *(("mixer", 16, 64), ("fpn_ssd", 2, 128), ("alexnet", 8, 127), ("stn", 32, 28)),
        *(("unet3d", 1, 32), ("diffusion", 4, 32), ("vqvae", 16, 32), ("dcgan", 16, 64)),
        *(("espcn", 4, 48), ("capsules", 8, 28), ("convlstm", 4, 24)),
        *(("mamba", 8, 48), ("wavenet", 4, 2000), ("seq2seq", 16, 20), ("llama", 4, 96)),
        *(("translator", 16, 24), ("ecg", 16, 1000), ("ctc_speech", 4, 160), ("rwkv", 8, 64)),
        *(("perceiver", 8, 600), ("pointnet", 8, 512), ("gat", 2000, 20000), ("nerf", 128, 32)),
        *(("realnvp", 256, 16), ("dlrm", 256, 12), ("siren", 512, 2), ("node", 64, 4)),
        *(("molecules", 32, 25), ("kan", 256, 10), ("moe", 512, 64), ("tabnet", 128, 50)),
    )
    for kind in ("train", "infer")
]
