// The bases of distributions that are given by probabilities or by logits.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// One of the two: Bernoulli({.probs = 0.25}), Bernoulli({.logits = x}).
struct Chances {
  TensorOrNumber probs = {};   // of one event each, from 0 to 1
  TensorOrNumber logits = {};  // its log-odds, log(probs / (1 - probs))
};

// Each element is the probability, or the log-odds, of one event.
class BinaryDistribution : public Distribution {
 public:
  // What was given; else computed from the other, with finite logits for probabilities 0 and 1.
  Tensor probs() const;
  Tensor logits() const;

 protected:
  using Distribution::Distribution;
  // Takes the one that was given, and broadcasts it with another parameter if there is one. Throws
  // ValueError unless one of the two was given.
  void take(const Chances& chances);
  void take(const Chances& chances, std::string_view other_name, const TensorOrNumber& other,
            Tensor* result);
  // Checks the one that was given; `set` is that of probs.
  void check_chances(const Constraint& set = constraints::unit_interval()) const;
  const Tensor& param() const { return probs_.defined() ? probs_ : logits_; }

  Tensor probs_, logits_;  // one of them is undefined
};

// One of the two, each [.., K].
struct ClassChances {
  Tensor probs = {};   // >= 0; divided by their sum
  Tensor logits = {};  // logs of probabilities, up to a constant
};

// The last dim holds the probabilities of K classes.
class ClassDistribution : public Distribution {
 public:
  Tensor probs() const;   // [batch_shape, K], with sum 1
  Tensor logits() const;  // the logs of probs(); finite where probs were given
  int64_t num_classes() const { return param().size(-1); }

 protected:
  using Distribution::Distribution;
  // Takes and checks the one that was given. Throws ValueError unless one was, ShapeError without
  // a dim of classes.
  void take(const ClassChances& chances);
  Shape classes_batch() const;  // the shape of the one that was given, without K
  const Tensor& param() const { return probs_.defined() ? probs_ : logits_; }

  Tensor probs_, logits_;  // one of them is undefined
};

}  // namespace kiln::distributions
