"""Models as their papers have them, under the names, options and keys of the implementations that
everybody uses: public weights load. Vision: torchvision's; language: Hugging Face's transformers'.

    net = kiln.models.resnet18(num_classes=10)
    gpt = kiln.models.GPT2LMHeadModel.from_pretrained("folder/with/weights")
"""

from typing import TYPE_CHECKING

from ._cache import KeyValueCache as KeyValueCache
from .bert import (
    BertConfig as BertConfig,
    BertForMaskedLM as BertForMaskedLM,
    BertForSequenceClassification as BertForSequenceClassification,
    BertModel as BertModel,
    bert as bert,
)
from .convnext import (
    ConvNeXt as ConvNeXt,
    convnext_atto as convnext_atto,
    convnext_base as convnext_base,
    convnext_large as convnext_large,
    convnext_small as convnext_small,
    convnext_tiny as convnext_tiny,
)
from .dcgan import Discriminator as Discriminator, Generator as Generator
from .ddpm import DDPMUNet as DDPMUNet, GaussianDiffusion as GaussianDiffusion
from .dqn import DQN as DQN, AtariDQN as AtariDQN
from .efficientnet import (
    EfficientNet as EfficientNet,
    efficientnet_b0 as efficientnet_b0,
    efficientnet_b1 as efficientnet_b1,
    efficientnet_b2 as efficientnet_b2,
    efficientnet_b3 as efficientnet_b3,
    efficientnet_b4 as efficientnet_b4,
    efficientnet_b5 as efficientnet_b5,
    efficientnet_b6 as efficientnet_b6,
    efficientnet_b7 as efficientnet_b7,
)
from .generation import GenerationMixin as GenerationMixin, GenerationOptions as GenerationOptions
from .gguf import load_gguf as load_gguf
from .gpt2 import (
    GPT2Config as GPT2Config,
    GPT2LMHeadModel as GPT2LMHeadModel,
    GPT2Model as GPT2Model,
    gpt2 as gpt2,
)
from .llama import (
    LlamaConfig as LlamaConfig,
    LlamaForCausalLM as LlamaForCausalLM,
    LlamaModel as LlamaModel,
    llama as llama,
)
from .lstm_lm import LSTMLanguageModel as LSTMLanguageModel
from .mlp import MLP as MLP, LeNet as LeNet, lenet as lenet, mlp as mlp
from .mobilenetv3 import (
    MobileNetV3 as MobileNetV3,
    mobilenet_v3_large as mobilenet_v3_large,
    mobilenet_v3_small as mobilenet_v3_small,
)
from .resnet import (
    BasicBlock as BasicBlock,
    Bottleneck as Bottleneck,
    ResNet as ResNet,
    resnet18 as resnet18,
    resnet34 as resnet34,
    resnet50 as resnet50,
    resnet101 as resnet101,
    resnet152 as resnet152,
    resnext50_32x4d as resnext50_32x4d,
    wide_resnet50_2 as wide_resnet50_2,
)
from .sentence_piece import SentencePiece as SentencePiece
from .tokenizer import Tokenizer as Tokenizer
from .unet import UNet as UNet, unet as unet
from .vae import VAE as VAE, vae_loss as vae_loss
from .vgg import (
    VGG as VGG,
    vgg11 as vgg11,
    vgg11_bn as vgg11_bn,
    vgg13 as vgg13,
    vgg13_bn as vgg13_bn,
    vgg16 as vgg16,
    vgg16_bn as vgg16_bn,
    vgg19 as vgg19,
    vgg19_bn as vgg19_bn,
)
from .vision_transformer import (
    VisionTransformer as VisionTransformer,
    vit_b_16 as vit_b_16,
    vit_b_32 as vit_b_32,
    vit_h_14 as vit_h_14,
    vit_l_16 as vit_l_16,
    vit_l_32 as vit_l_32,
    vit_tiny_16 as vit_tiny_16,
)
from .whisper import (
    WhisperConfig as WhisperConfig,
    WhisperForConditionalGeneration as WhisperForConditionalGeneration,
    WhisperModel as WhisperModel,
    whisper as whisper,
)

if not TYPE_CHECKING:
    __all__ = [name for name in dir() if not name.startswith("_") and name != "TYPE_CHECKING"]
