#pragma once

// Walks a Keras model's configuration and calls the handler of every layer.

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/common/refusal.h"
#include "formats/keras/layer.h"

namespace tombolo::keras {

class Importer {
 public:
  Importer(Model& model, WeightStore weights, int keras_version)
      : builder_(model), weights_(std::move(weights)), keras_(keras_version) {}

  /// Converts the model whose serialized object is `root` ({"class_name", "config"}).
  Status run(Json root);

 private:
  /// A model (nested or not) while it is converted.
  struct Scope {
    WeightStore::Scope weights;
    std::string prefix;  ///< of node names: "inner/"
    int depth = 0;
  };
  using Outputs = std::vector<KerasTensor>;
  struct Network;

  /// Reports every layer that has no handler, here and in nested models.
  void survey(Json config, int depth);
  Result<Outputs> network(Json root, const Scope& scope, const std::vector<KerasTensor>& inputs);
  Result<Outputs> sequential(Json root, const Scope& scope, const std::vector<KerasTensor>& inputs);
  Result<Outputs> functional(Json root, const Scope& scope, const std::vector<KerasTensor>& inputs);
  Result<KerasTensor> make_input(Json layer);
  /// Converts one call; an empty list means that it was refused (and recorded).
  Result<Outputs> call(Json layers, size_t index, bool functional, const Scope& scope,
                       std::vector<Arg> args, std::map<std::string, Arg, std::less<>> kwargs);
  Result<Arg> read_arg(const Network& network, Json value) const;

  GraphBuilder builder_;
  WeightStore weights_;
  Refusals refusals_;
  int keras_;
  size_t calls_ = 0;
};

}  // namespace tombolo::keras
