// What training and evaluation measure.
#pragma once

#include "kiln/metrics/classification.h"
#include "kiln/metrics/confusion.h"
#include "kiln/metrics/detection.h"
#include "kiln/metrics/image.h"
#include "kiln/metrics/metric.h"
#include "kiln/metrics/ranking.h"
#include "kiln/metrics/regression.h"
#include "kiln/metrics/text.h"
#include "kiln/metrics/values.h"
