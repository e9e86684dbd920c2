#include "kiln/data/digit_strokes.h"

#include <array>

namespace kiln::data::detail {

namespace {

// 0: an oval; narrow; round; begun at the right with a gap or an overlap at the top.
constexpr Point k0Oval[] = {{.50f, .02f}, {.26f, .14f}, {.17f, .50f}, {.27f, .86f}, {.50f, .98f},
                            {.74f, .86f}, {.83f, .50f}, {.74f, .14f}, {.50f, .02f}};
constexpr Point k0Narrow[] = {{.56f, .02f}, {.38f, .16f}, {.28f, .52f}, {.34f, .88f}, {.48f, .98f},
                              {.64f, .84f}, {.72f, .46f}, {.68f, .14f}, {.54f, .03f}};
constexpr Point k0Round[] = {{.50f, .10f}, {.20f, .20f}, {.08f, .50f}, {.20f, .80f}, {.50f, .90f},
                             {.80f, .80f}, {.92f, .50f}, {.80f, .20f}, {.50f, .10f}};
constexpr Point k0Open[] = {{.66f, .12f}, {.46f, .03f}, {.22f, .24f}, {.16f, .62f}, {.34f, .94f},
                            {.62f, .92f}, {.82f, .62f}, {.80f, .26f}, {.60f, .04f}};
constexpr Point k0Overlap[] = {{.36f, .10f}, {.22f, .34f}, {.20f, .70f}, {.42f, .97f},
                               {.70f, .88f}, {.84f, .54f}, {.74f, .16f}, {.48f, .03f},
                               {.30f, .16f}, {.26f, .28f}};

// 1: a bar; with a flag; with flag and foot.
constexpr Point k1Bar[] = {{.50f, .02f}, {.50f, .50f}, {.50f, .98f}};
constexpr Point k1Flag[] = {{.30f, .24f}, {.46f, .12f}, {.54f, .02f},
                            {.54f, .02f}, {.53f, .50f}, {.52f, .98f}};
constexpr Point k1ShortFlag[] = {{.38f, .14f}, {.52f, .03f}, {.52f, .03f}, {.50f, .98f}};
constexpr Point k1Foot[] = {{.28f, .97f}, {.50f, .97f}, {.76f, .96f}};

// 2: with a corner; with a loop; with a flat foot; like a swan.
constexpr Point k2Corner[] = {{.20f, .27f}, {.30f, .08f}, {.54f, .02f}, {.76f, .16f}, {.74f, .40f},
                              {.50f, .68f}, {.18f, .96f}, {.18f, .96f}, {.50f, .95f}, {.84f, .95f}};
constexpr Point k2Loop[] = {{.18f, .24f}, {.34f, .06f}, {.60f, .04f}, {.74f, .24f},
                            {.64f, .52f}, {.42f, .80f}, {.24f, .94f}, {.14f, .86f},
                            {.24f, .76f}, {.44f, .84f}, {.66f, .94f}, {.88f, .88f}};
constexpr Point k2Flat[] = {{.22f, .12f}, {.46f, .03f}, {.70f, .10f}, {.72f, .30f},
                            {.56f, .56f}, {.22f, .94f}, {.22f, .94f}, {.80f, .92f}};
constexpr Point k2Swan[] = {{.24f, .20f}, {.42f, .03f}, {.68f, .12f}, {.70f, .36f}, {.52f, .62f},
                            {.24f, .86f}, {.20f, .92f}, {.34f, .88f}, {.58f, .96f}, {.86f, .90f}};

// 3: round; flat at the top; with a loop in the middle; with a short middle.
constexpr Point k3Round[] = {{.20f, .14f}, {.44f, .02f}, {.70f, .10f}, {.74f, .30f},
                             {.60f, .44f}, {.42f, .48f}, {.42f, .48f}, {.66f, .52f},
                             {.80f, .70f}, {.70f, .92f}, {.44f, .98f}, {.17f, .86f}};
constexpr Point k3Flat[] = {{.20f, .05f}, {.48f, .05f}, {.76f, .04f}, {.76f, .04f},
                            {.44f, .40f}, {.44f, .40f}, {.70f, .48f}, {.80f, .70f},
                            {.68f, .92f}, {.44f, .98f}, {.18f, .90f}};
constexpr Point k3Loop[] = {{.22f, .12f}, {.48f, .02f}, {.72f, .16f}, {.66f, .38f},
                            {.48f, .48f}, {.38f, .46f}, {.46f, .42f}, {.70f, .54f},
                            {.78f, .76f}, {.60f, .96f}, {.34f, .96f}, {.18f, .84f}};
constexpr Point k3Short[] = {{.26f, .08f}, {.56f, .03f}, {.72f, .22f}, {.54f, .46f}, {.54f, .46f},
                             {.76f, .62f}, {.72f, .88f}, {.44f, .98f}, {.20f, .92f}};

// 4: open at the top; closed; with a round cup; with a long bar.
constexpr Point k4OpenCup[] = {{.28f, .05f}, {.22f, .30f}, {.17f, .56f},
                               {.17f, .56f}, {.50f, .57f}, {.86f, .53f}};
constexpr Point k4OpenStem[] = {{.70f, .06f}, {.67f, .50f}, {.64f, .98f}};
constexpr Point k4Closed[] = {{.66f, .98f}, {.65f, .50f}, {.66f, .02f}, {.66f, .02f}, {.38f, .36f},
                              {.12f, .66f}, {.12f, .66f}, {.50f, .66f}, {.90f, .65f}};
constexpr Point k4RoundCup[] = {{.20f, .06f}, {.18f, .30f}, {.26f, .46f},
                                {.46f, .50f}, {.66f, .42f}, {.74f, .34f}};
constexpr Point k4RoundStem[] = {{.76f, .04f}, {.74f, .40f}, {.70f, .98f}};
constexpr Point k4LongCup[] = {{.40f, .03f}, {.26f, .34f}, {.12f, .62f},
                               {.12f, .62f}, {.48f, .60f}, {.92f, .60f}};
constexpr Point k4LongStem[] = {{.60f, .34f}, {.58f, .66f}, {.54f, .97f}};

// 5: in one stroke; with the hat apart; like an S; angular.
constexpr Point k5One[] = {{.78f, .04f}, {.54f, .05f}, {.32f, .05f}, {.32f, .05f},
                           {.27f, .44f}, {.27f, .44f}, {.50f, .38f}, {.74f, .48f},
                           {.80f, .70f}, {.68f, .92f}, {.42f, .98f}, {.18f, .88f}};
constexpr Point k5Body[] = {{.34f, .10f}, {.30f, .28f}, {.28f, .46f}, {.28f, .46f}, {.54f, .44f},
                            {.72f, .58f}, {.72f, .80f}, {.52f, .96f}, {.20f, .94f}};
constexpr Point k5Hat[] = {{.32f, .08f}, {.56f, .07f}, {.86f, .03f}};
constexpr Point k5S[] = {{.76f, .08f}, {.52f, .03f}, {.32f, .12f}, {.28f, .32f}, {.46f, .46f},
                         {.68f, .58f}, {.72f, .80f}, {.52f, .97f}, {.20f, .90f}};
constexpr Point k5Angular[] = {{.80f, .05f}, {.36f, .06f}, {.36f, .06f}, {.24f, .50f},
                               {.24f, .50f}, {.48f, .46f}, {.68f, .58f}, {.66f, .80f},
                               {.44f, .96f}, {.14f, .96f}};

// 6: a curved stem; a straight one; a small or a wide loop.
constexpr Point k6Curved[] = {{.68f, .04f}, {.42f, .16f}, {.24f, .44f}, {.20f, .74f},
                              {.34f, .95f}, {.60f, .96f}, {.78f, .80f}, {.70f, .60f},
                              {.48f, .54f}, {.28f, .64f}, {.21f, .76f}};
constexpr Point k6Straight[] = {{.52f, .02f}, {.36f, .32f}, {.24f, .62f}, {.26f, .86f},
                                {.46f, .98f}, {.68f, .88f}, {.72f, .68f}, {.54f, .58f},
                                {.34f, .66f}, {.25f, .78f}};
constexpr Point k6Small[] = {{.64f, .06f}, {.44f, .10f}, {.28f, .34f}, {.22f, .66f}, {.32f, .92f},
                             {.52f, .98f}, {.66f, .86f}, {.60f, .72f}, {.42f, .70f}, {.26f, .82f}};
constexpr Point k6Wide[] = {{.44f, .03f}, {.24f, .36f}, {.16f, .70f}, {.34f, .96f}, {.66f, .95f},
                            {.86f, .76f}, {.74f, .56f}, {.46f, .54f}, {.22f, .70f}};

// 7: plain; crossed; with a serif; bent.
constexpr Point k7Plain[] = {{.16f, .06f}, {.50f, .06f}, {.82f, .05f},
                             {.82f, .05f}, {.60f, .48f}, {.42f, .98f}};
constexpr Point k7Cross[] = {{.34f, .52f}, {.56f, .50f}, {.78f, .48f}};
constexpr Point k7Serif[] = {{.16f, .24f}, {.19f, .06f}, {.19f, .06f}, {.50f, .09f},
                             {.82f, .05f}, {.82f, .05f}, {.62f, .44f}, {.50f, .98f}};
constexpr Point k7Bent[] = {{.18f, .12f}, {.44f, .05f}, {.70f, .06f}, {.78f, .16f},
                            {.68f, .40f}, {.56f, .66f}, {.50f, .98f}};

// 8: in one stroke from the top right; two rings; begun in the middle of the top; slim with an open
// top.
constexpr Point k8One[] = {{.72f, .16f}, {.50f, .02f}, {.28f, .16f}, {.36f, .36f},
                           {.58f, .52f}, {.74f, .74f}, {.54f, .97f}, {.28f, .86f},
                           {.28f, .66f}, {.50f, .48f}, {.70f, .32f}, {.74f, .18f}};
constexpr Point k8Top[] = {{.50f, .02f}, {.32f, .10f}, {.28f, .26f}, {.38f, .42f}, {.52f, .46f},
                           {.68f, .38f}, {.73f, .22f}, {.64f, .07f}, {.50f, .02f}};
constexpr Point k8Bottom[] = {{.51f, .46f}, {.28f, .54f}, {.20f, .74f}, {.32f, .93f}, {.52f, .98f},
                              {.74f, .90f}, {.80f, .70f}, {.70f, .53f}, {.51f, .46f}};
constexpr Point k8Middle[] = {{.52f, .03f}, {.30f, .12f}, {.32f, .34f}, {.54f, .50f},
                              {.72f, .72f}, {.60f, .95f}, {.36f, .94f}, {.26f, .74f},
                              {.44f, .52f}, {.66f, .34f}, {.68f, .12f}, {.50f, .03f}};
constexpr Point k8Slim[] = {{.66f, .06f}, {.44f, .08f}, {.36f, .24f}, {.48f, .44f},
                            {.60f, .64f}, {.58f, .90f}, {.42f, .97f}, {.34f, .80f},
                            {.44f, .56f}, {.58f, .34f}, {.70f, .10f}};

// 9: a straight stem; one that curls to the left; a slanted one; an open loop.
constexpr Point k9Straight[] = {{.74f, .20f}, {.52f, .03f}, {.28f, .16f}, {.26f, .40f},
                                {.46f, .50f}, {.68f, .38f}, {.75f, .12f}, {.75f, .12f},
                                {.74f, .50f}, {.70f, .98f}};
constexpr Point k9Curl[] = {{.70f, .16f}, {.48f, .03f}, {.27f, .18f}, {.30f, .42f},
                            {.52f, .48f}, {.72f, .30f}, {.74f, .20f}, {.77f, .50f},
                            {.72f, .82f}, {.52f, .98f}, {.26f, .90f}};
constexpr Point k9Slanted[] = {{.72f, .10f}, {.48f, .05f}, {.26f, .22f}, {.30f, .42f},
                               {.52f, .42f}, {.70f, .22f}, {.74f, .10f}, {.66f, .40f},
                               {.54f, .70f}, {.42f, .98f}};
constexpr Point k9Open[] = {{.62f, .06f}, {.36f, .08f}, {.24f, .28f}, {.34f, .48f}, {.58f, .44f},
                            {.74f, .24f}, {.76f, .08f}, {.74f, .08f}, {.70f, .50f}, {.64f, .97f}};

constexpr Stroke kS00[] = {k0Oval}, kS01[] = {k0Narrow}, kS02[] = {k0Round}, kS03[] = {k0Open},
                 kS04[] = {k0Overlap};
constexpr Stroke kS10[] = {k1Bar}, kS11[] = {k1Flag}, kS12[] = {k1ShortFlag},
                 kS13[] = {k1Flag, k1Foot};
constexpr Stroke kS20[] = {k2Corner}, kS21[] = {k2Loop}, kS22[] = {k2Flat}, kS23[] = {k2Swan};
constexpr Stroke kS30[] = {k3Round}, kS31[] = {k3Flat}, kS32[] = {k3Loop}, kS33[] = {k3Short};
constexpr Stroke kS40[] = {k4OpenCup, k4OpenStem}, kS41[] = {k4Closed},
                 kS42[] = {k4RoundCup, k4RoundStem}, kS43[] = {k4LongCup, k4LongStem};
constexpr Stroke kS50[] = {k5One}, kS51[] = {k5Body, k5Hat}, kS52[] = {k5S}, kS53[] = {k5Angular};
constexpr Stroke kS60[] = {k6Curved}, kS61[] = {k6Straight}, kS62[] = {k6Small}, kS63[] = {k6Wide};
constexpr Stroke kS70[] = {k7Plain}, kS71[] = {k7Plain, k7Cross}, kS72[] = {k7Serif},
                 kS73[] = {k7Bent};
constexpr Stroke kS80[] = {k8One}, kS81[] = {k8Top, k8Bottom}, kS82[] = {k8Middle},
                 kS83[] = {k8Slim};
constexpr Stroke kS90[] = {k9Straight}, kS91[] = {k9Curl}, kS92[] = {k9Slanted}, kS93[] = {k9Open};

constexpr Style k0[] = {{kS00, 3}, {kS01, 2}, {kS02, 1}, {kS03, 2}, {kS04, 1}};
constexpr Style k1[] = {{kS10, 5}, {kS11, 2}, {kS12, 2}, {kS13, 1}};
constexpr Style k2[] = {{kS20, 2}, {kS21, 2}, {kS22, 2}, {kS23, 2}};
constexpr Style k3[] = {{kS30, 3}, {kS31, 1}, {kS32, 2}, {kS33, 2}};
constexpr Style k4[] = {{kS40, 3}, {kS41, 2}, {kS42, 2}, {kS43, 1}};
constexpr Style k5[] = {{kS50, 3}, {kS51, 2}, {kS52, 2}, {kS53, 1}};
constexpr Style k6[] = {{kS60, 3}, {kS61, 2}, {kS62, 1}, {kS63, 1}};
constexpr Style k7[] = {{kS70, 3}, {kS71, 1}, {kS72, 1}, {kS73, 2}};
constexpr Style k8[] = {{kS80, 3}, {kS81, 2}, {kS82, 2}, {kS83, 1}};
constexpr Style k9[] = {{kS90, 3}, {kS91, 2}, {kS92, 2}, {kS93, 1}};

constexpr std::array<std::span<const Style>, 10> kDigits = {k0, k1, k2, k3, k4, k5, k6, k7, k8, k9};

}  // namespace

std::span<const Style> digit_styles(int digit) { return kDigits[static_cast<size_t>(digit)]; }

}  // namespace kiln::data::detail
