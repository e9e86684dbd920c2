"""Models as their papers have them, under the names, options and keys of the implementations that
everybody uses: public weights load. Vision: torchvision's; language: Hugging Face's transformers'.

    net = kiln.models.resnet18(num_classes=10)
    gpt = kiln.models.GPT2LMHeadModel.from_pretrained("folder/with/weights")
"""

from ._cache import KeyValueCache
from .bert import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    bert,
)
from .convnext import (
    ConvNeXt,
    convnext_atto,
    convnext_base,
    convnext_large,
    convnext_small,
    convnext_tiny,
)
from .dcgan import Discriminator, Generator
from .ddpm import DDPMUNet, GaussianDiffusion
from .dqn import DQN, AtariDQN
from .efficientnet import (
    EfficientNet,
    efficientnet_b0,
    efficientnet_b1,
    efficientnet_b2,
    efficientnet_b3,
    efficientnet_b4,
    efficientnet_b5,
    efficientnet_b6,
    efficientnet_b7,
)
from .generation import GenerationMixin, GenerationOptions
from .gguf import load_gguf
from .gpt2 import GPT2Config, GPT2LMHeadModel, GPT2Model, gpt2
from .llama import LlamaConfig, LlamaForCausalLM, LlamaModel, llama
from .lstm_lm import LSTMLanguageModel
from .mlp import MLP, LeNet, lenet, mlp
from .mobilenetv3 import MobileNetV3, mobilenet_v3_large, mobilenet_v3_small
from .resnet import (
    BasicBlock,
    Bottleneck,
    ResNet,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
    resnet152,
    resnext50_32x4d,
    wide_resnet50_2,
)
from .sentence_piece import SentencePiece
from .tokenizer import Tokenizer
from .unet import UNet, unet
from .vae import VAE, vae_loss
from .vgg import (
    VGG,
    vgg11,
    vgg11_bn,
    vgg13,
    vgg13_bn,
    vgg16,
    vgg16_bn,
    vgg19,
    vgg19_bn,
)
from .vision_transformer import (
    VisionTransformer,
    vit_b_16,
    vit_b_32,
    vit_h_14,
    vit_l_16,
    vit_l_32,
    vit_tiny_16,
)
from .whisper import WhisperConfig, WhisperForConditionalGeneration, WhisperModel, whisper

__all__ = [name for name in dir() if not name.startswith("_")]
