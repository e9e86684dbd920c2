// The library of models: link kiln::models.
#pragma once

#include "kiln/models/bert.h"
#include "kiln/models/convnext.h"
#include "kiln/models/ddpm.h"
#include "kiln/models/efficientnet.h"
#include "kiln/models/gpt2.h"
#include "kiln/models/llama.h"
#include "kiln/models/lstm_lm.h"
#include "kiln/models/mlp.h"
#include "kiln/models/mobilenetv3.h"
#include "kiln/models/pretrained.h"
#include "kiln/models/resnet.h"
#include "kiln/models/unet.h"
#include "kiln/models/vae.h"
#include "kiln/models/vgg.h"
#include "kiln/models/vision_transformer.h"
#include "kiln/models/whisper.h"
