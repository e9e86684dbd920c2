"""Small configurations of the zoo's models, and inputs for them: for tests of captured graphs."""

import kiln
from kiln import models, nn


def _images(n=1, channels=3, size=64):
    return (kiln.randn(n, channels, size, size),)


def _ids(vocabulary=50, n=2, length=7):
    return (kiln.randint(0, vocabulary, (n, length)),)


def _gpt2():
    config = models.GPT2Config(vocab_size=50, n_positions=32, n_embd=16, n_layer=2, n_head=2)
    return models.GPT2LMHeadModel(config)


def _bert():
    return models.BertModel(
        models.BertConfig(
            vocab_size=50,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
        )
    )


def _llama():
    return models.LlamaForCausalLM(
        models.LlamaConfig(
            vocab_size=50,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
        )
    )


def _vit():
    return models.VisionTransformer(
        image_size=32,
        patch_size=8,
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        mlp_dim=32,
        num_classes=5,
    )


MODELS = {
    "mlp": (lambda: models.MLP(8, [16, 4]), lambda: (kiln.randn(3, 8),)),
    "resnet18": (lambda: models.resnet18(num_classes=10), _images),
    "mobilenet_v3": (lambda: models.mobilenet_v3_small(num_classes=10), _images),
    "efficientnet": (lambda: models.efficientnet_b0(num_classes=5), lambda: _images(size=32)),
    "convnext": (lambda: models.convnext_atto(num_classes=5), lambda: _images(size=32)),
    "vgg": (lambda: models.vgg11_bn(num_classes=5), lambda: _images(size=32)),
    "vit": (_vit, lambda: _images(size=32)),
    "unet": (lambda: models.UNet(3, 2, 8), lambda: _images(size=32)),
    "gpt2": (_gpt2, _ids),
    "bert": (_bert, _ids),
    "llama": (_llama, _ids),
    "lstm_lm": (lambda: models.LSTMLanguageModel(50, 16, 16, 2), _ids),
    "lstm": (lambda: nn.LSTM(4, 5, 2, bidirectional=True), lambda: (kiln.randn(6, 2, 4),)),
    "gru": (lambda: nn.GRU(4, 5, 2), lambda: (kiln.randn(6, 2, 4),)),
    "rnn": (lambda: nn.RNN(4, 5, bidirectional=True), lambda: (kiln.randn(6, 2, 4),)),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, 32), lambda: (kiln.randn(6, 2, 16),)),
}


def made(name):
    """The model in evaluation mode, with statistics that are not those it begins with; inputs."""
    make, inputs = MODELS[name]
    kiln.manual_seed(7)
    model = make()
    for key, buffer in model.named_buffers():
        if key.endswith("running_mean"):
            buffer.copy_(kiln.randn(*buffer.shape) * 0.1)
        elif key.endswith("running_var"):
            buffer.copy_(kiln.rand(*buffer.shape) + 0.5)
    return model.eval(), inputs()


def tensors_of(result):
    """The tensors of a model's result, in order."""
    if isinstance(result, kiln.Tensor):
        return [result]
    if hasattr(result, "to_tuple"):
        result = result.to_tuple()
    return [x for item in result if item is not None for x in tensors_of(item)]
