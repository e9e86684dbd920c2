// Vision: filters, morphology, components, colour spaces, transforms of images, boxes.
#pragma once

#include "kiln/vision/border.h"
#include "kiln/vision/boxes.h"
#include "kiln/vision/color.h"
#include "kiln/vision/components.h"
#include "kiln/vision/filters.h"
#include "kiln/vision/morphology.h"
#include "kiln/vision/transform.h"
