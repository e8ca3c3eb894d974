#pragma once

// Files that hold named tensors and no graph: they become a model whose initialisers are its
// outputs, in file order, so that every verb can work on them.

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/model.h"

namespace tombolo {

/// A tensor of a checkpoint: with its data, or (where only names, types and shapes were asked for)
/// without.
struct Weight {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<int64_t> dims;
  Tensor tensor;  ///< of that type and shape, or empty when the data were not asked for

  static Weight of(std::string name, Tensor tensor);
};

using WeightMetadata = std::vector<std::pair<std::string, std::string>>;

/// A model of these tensors. A name that occurs twice gets a suffix.
Result<std::unique_ptr<Model>> weights_model(std::vector<Weight> weights, StoragePtr storage,
                                             std::string_view producer,
                                             const WeightMetadata& metadata = {});

/// True when the model is one that weights_model makes: nothing is computed.
bool is_weights_only(const Model& model);

/// The tensors of a model that computes nothing, in file order; refuses one that has a graph, since
/// that would be lost.
Result<std::vector<Weight>> weights_of(const Model& model, std::string_view format);

}  // namespace tombolo
