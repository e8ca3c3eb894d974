#pragma once

// Brings a model to other operator sets, node by node, by the version steps that the operators
// declare (OpDecl::up). Inside, everything speaks the newest operator set; what that set cannot
// say keeps its own version (Node::opset_override) and is executed as such: nothing is
// approximated silently.
//
// Operators that may keep an old version, and when. A reference kernel of theirs reads
// KernelContext::opset; the kernels of all others see the newest version only.
//
//   operator                   kept at opset    because
//   Add Sub Mul Div            1-6              `axis` is given and a rank is not known, or the
//   And Or Xor Equal Greater   1-6              axis is negative
//   Less Pow                   1-6
//   PRelu                      1-6              the rank of X is not known
//   Dropout                    1-6              is_test = 0: random, and opset 7 cannot say it
//   Dropout                    7-9              the mask is read and the type of X is not known
//   BatchNormalization         1-8              spatial = 0 with training outputs
//   BatchNormalization         7-13             saved_mean or saved_var is read
//   Cast                       1-5              `to` names no element type
//   Clip                       6-10             the type of the input is not known
//   Pad                        2-10             value != 0 and the type of the input is not known
//   GlobalLpPool LpPool        1                p is not a whole number; no kernel_shape
//   Erf                        9-12             integers
//   ReduceLogSum(Exp)          1-27             integers
//   GroupNormalization         18-20            the type of X is not known
//   Reshape                    1-4              no shape
//   Resize                     11-17            tf_half_pixel_for_nn that no newer mode equals
//   Scan                       8                sequence_lens is given
//   Split                      1                the sizes are an input that is not constant
//   Tile                       1-5              axis is not constant, or the rank is not known
//   OneHot                     9-10             the type of indices is not known
//   LabelEncoder (ml)          1                the type of the input is not known
//   TreeEnsembleClassifier,
//   TreeEnsembleRegressor (ml) 1-4              deprecated; TreeEnsemble has no post_transform of
//                                               classes and no integer inputs
// Any operator whose step would have to read an attribute that a function passes by reference is
// kept too: the value is known only at the call.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/result.h"
#include "ir/model.h"

namespace tombolo {

/// The operator set to reach in one domain ("" is ai.onnx).
struct OpsetTarget {
  std::string_view domain;
  int version;
};

struct Conversion {
  size_t steps = 0;  ///< steps that were more than a new number
  size_t kept = 0;   ///< nodes that keep their own version
  int lowest = 0;    ///< on the way down: the lowest operator set that says the kept nodes
};

/// Converts main graph, subgraphs, training graphs and function bodies to `targets`; domains
/// without a target stay. A domain that the model (or function) does not import is left alone, and
/// so are nodes of unknown operators. Each node that keeps its version is a note "kept-version" in
/// `diagnostics`. Targets below an import are reached by downgrade() (version/downgrade.h).
/// kUnsupported for a target beyond the newest known version.
Result<Conversion> convert(Model& model, std::span<const OpsetTarget> targets,
                           Diagnostics& diagnostics);

/// convert() to the newest operator sets of all domains of ONNX.
Status upgrade(Model& model, Diagnostics& diagnostics);

}  // namespace tombolo
