#pragma once

// Where Keras keeps a layer's variables. Two layouts exist, and both read the same here:
// - positional (.keras and *.weights.h5): groups named after the class and a counter, variables
//   numbered; the attribute `name` of the vars group holds the layer's true name (Keras 3);
// - named (.h5, and weights written by Keras 2): a group per layer with the attribute weight_names.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/common/hdf5_file.h"
#include "formats/common/json_view.h"

namespace tombolo::keras {

/// The variables of one layer, taken in the order in which Keras creates them.
class LayerWeights {
 public:
  /// The variables of a part: `path` in the positional layout ("cell", "query_dense"), `named` a
  /// prefix of a path component that tells it in the named one ("forward_"), empty for no choice.
  LayerWeights sub(std::string_view path, std::string_view named = {}) const;
  /// The next variable; `name` is its leaf name in the named layout ("kernel").
  Result<Tensor> take(std::string_view name);
  /// Whether take(name) would find a variable.
  bool has(std::string_view name);
  /// Passes over a variable that is not needed.
  void skip(std::string_view name) { (void)take(name); }

 private:
  friend class WeightStore;
  struct Named {
    std::string name;  ///< as in weight_names
    std::string path;  ///< of the dataset
    bool used = false;
  };
  std::string next_path(std::string_view name, Named** named);
  Hdf5File* file_ = nullptr;
  bool positional_ = false;
  std::string group_;
  size_t next_ = 0;
  std::vector<Named> named_;
};

/// The variables of a model's layers.
class WeightStore {
 public:
  WeightStore() = default;
  explicit WeightStore(std::shared_ptr<Hdf5File> file);

  /// The layers of a model: finds each one's variables. `layers` is the model's configuration list,
  /// `group` and `scope` say which (nested) model: "" and the store's own for the outermost.
  struct Scope {
    std::string group;               ///< positional: path of the model
    std::vector<std::string> named;  ///< named: names of the enclosing layers, outermost first
  };
  Result<LayerWeights> layer(const Scope& scope, Json layers, size_t index, bool functional);
  /// The scope of the nested model that stands at `index`.
  Scope nested(const Scope& scope, Json layers, size_t index, bool functional);

 private:
  std::string positional_group(const std::string& model, Json layers, size_t index,
                               bool functional);

  std::shared_ptr<Hdf5File> file_;
  bool positional_ = false;
  std::string named_root_;
};

/// "MaxPooling2D" -> "max_pooling2d", as Keras names groups.
std::string snake_case(std::string_view class_name);
/// Operations on tensors (keras.ops) stand among the layers of a Functional model but are none.
bool is_operation(Json layer);

}  // namespace tombolo::keras
