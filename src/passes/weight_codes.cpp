// For the runtime: a product whose weights alone are quantised keeps them as codes.
//   MatMul(A, DequantizeLinear(W, scale, zero)) = MatMulNBits(A, codes, scales, zeros)
//   Gather(DequantizeLinear(W, scale, zero), i) = DequantizeLinear(Gather(W, i), ...)
// Dequantising them in every run, and packing the result, takes hundreds of times what the product
// of one row does; as floats they would take four or eight times the memory.

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "base/thread_pool.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

constexpr Text kMicrosoft = "com.microsoft";

/// Constant weights [K, N] behind a DequantizeLinear.
struct Weights {
  Node* dequantize;
  Node* transpose = nullptr;    ///< between it and the product
  const Value* values[3] = {};  ///< of the three tensors
  Tensor codes, scales;
  std::optional<Tensor> zeros;
  int bits;
  bool is_signed, by_columns;  ///< by_columns: W is [N, K]
  int64_t k, n, block;
  int64_t scale_k = 0, scale_n = 0;  ///< steps of the scales for a block and for a column

  /// As an unsigned number; signed ones are moved by half their range.
  uint8_t code(const Tensor& tensor, int64_t at) const {
    const auto* bytes = reinterpret_cast<const uint8_t*>(tensor.bytes().data());
    const int value = bytes[at * bits / 8] >> at * bits % 8 & ((1 << bits) - 1);
    return static_cast<uint8_t>(is_signed ? value ^ 1 << (bits - 1) : value);
  }
};

class Products {
 public:
  Products(Rewriter& rewriter, Graph& graph) : rewriter_(rewriter), graph_(graph) {}

  size_t run() {
    size_t count = 0;
    for (Node* node : graph_.nodes())
      if (node->outputs().size() == 1 && node->output(0) != nullptr)
        count += product(*node) + gather(*node);
    return count;
  }

 private:
  /// What the runtime gives to MatMulNBits: codes, scales and zero points.
  using Made = std::vector<Value*>;

  size_t product(Node& node) {
    const bool gemm = rewriter_.is(&node, "Gemm");
    if (!gemm && !rewriter_.is(&node, "MatMul")) return 0;
    const AttributeReader attributes(node);
    Value* bias = nullptr;
    if (gemm) {
      if (attributes.get_int("transA", 0) != 0 || attributes.get_float("alpha", 1) != 1) return 0;
      bias = node.input(2);
      if (bias != nullptr && attributes.get_float("beta", 1) != 1) return 0;
    }
    auto w = read(node.input(1), gemm && attributes.get_int("transB", 0) != 0);
    if (!w || rewriter_.rank(node.input(0)).value_or(0) < 1) return 0;
    if (bias != nullptr) {
      const auto dims = rewriter_.dims(bias);
      if (!dims || dims->size() != 1 || (*dims)[0] != w->n) return 0;
    }
    const Made& made = constants(*w);
    std::vector<Value*> inputs = {node.input(0), made[0], made[1], made[2], nullptr, bias};
    while (inputs.back() == nullptr) inputs.pop_back();
    Node& product =
        rewriter_.add(node, "MatMulNBits", inputs, node.output(0)->name(), 1, kMicrosoft);
    product.set_int("K", w->k);
    product.set_int("N", w->n);
    product.set_int("bits", w->bits);
    product.set_int("block_size", w->block);
    rewriter_.touch(product);
    rewriter_.supersede(*node.output(0), *product.output(0));
    for (Node* unread : {w->transpose, w->dequantize})
      if (unread != nullptr && !unread->output(0)->has_uses()) rewriter_.erase(*unread);
    return 1;
  }

  /// Rows of a table: a scale for all, for each column, or for each row, which is picked as well.
  size_t gather(Node& node) {
    if (!rewriter_.is(&node, "Gather") || AttributeReader(node).get_int("axis", 0) != 0) return 0;
    Node* dequantize = rewriter_.producer(node.input(0), "DequantizeLinear");
    if (dequantize == nullptr || &dequantize->graph() != &graph_) return 0;
    const AttributeReader attributes(*dequantize);
    const auto dims = rewriter_.dims(dequantize->input(0));
    const DType type = rewriter_.dtype(dequantize->input(0));
    Value* list[] = {dequantize->input(0), dequantize->input(1), dequantize->input(2)};
    const bool whole = type == DType::kInt8 || type == DType::kUInt8 || type == DType::kInt16 ||
                       type == DType::kUInt16;
    if (!dims || dims->size() != 2 || !whole || attributes.get_int("block_size", 0) != 0) return 0;
    for (const Value* value : list)
      if (value != nullptr && !rewriter_.is_constant(value)) return 0;
    const auto scales = rewriter_.dims(list[1]);
    if (!scales || scales->size() > 1) return 0;
    int64_t axis = attributes.get_int("axis", 1);
    if (axis < 0) axis += 2;
    const bool rows = !scales->empty() && axis == 0;
    const auto pick = [&](Value* from) {
      Node& picked = rewriter_.add(node, "Gather", {from, node.input(1)}, node.output(0)->name());
      rewriter_.touch(picked);
      return picked.output(0);
    };
    list[0] = pick(list[0]);
    for (size_t i = 1; rows && i < 3; ++i) {
      if (list[i] == nullptr) continue;
      const int64_t column[] = {(*scales)[0], 1};
      list[i] = pick(rewriter_.initializer(graph_, rewriter_.constant(list[i])->reshaped(column),
                                           list[i]->name()));
    }
    std::vector<Value*> inputs(std::begin(list), std::end(list));
    while (inputs.back() == nullptr) inputs.pop_back();
    Node& made = rewriter_.add(node, "DequantizeLinear", inputs, node.output(0)->name());
    made.set_int("axis", -1);
    if (rows) made.set_int("block_size", (*dims)[1]);
    rewriter_.touch(made);
    rewriter_.supersede(*node.output(0), *made.output(0));
    if (!dequantize->output(0)->has_uses()) rewriter_.erase(*dequantize);
    return 1;
  }

  std::optional<Weights> read(Value* value, bool by_columns) {
    Weights w{};
    w.by_columns = by_columns;
    Node* transpose = rewriter_.producer(value, "Transpose");
    if (transpose != nullptr) {
      const auto perm = AttributeReader(*transpose).get_ints("perm");
      if (!perm.empty() && (perm.size() != 2 || perm[0] != 1)) return std::nullopt;
      w.transpose = transpose;
      w.by_columns = !w.by_columns;
      value = transpose->input(0);
    }
    w.dequantize = rewriter_.producer(value, "DequantizeLinear");
    if (w.dequantize == nullptr || &w.dequantize->graph() != &graph_) return std::nullopt;
    if (transpose != nullptr && &transpose->graph() != &graph_) return std::nullopt;
    const Node& node = *w.dequantize;
    Value* const list[] = {node.input(0), node.input(1), node.input(2)};
    const Tensor* constants[3] = {};
    for (size_t i = 0; i < 3; ++i) {
      if (list[i] == nullptr) continue;
      constants[i] = rewriter_.constant(list[i]);
      if (constants[i] == nullptr) return std::nullopt;
      w.values[i] = list[i];
    }
    w.codes = *constants[0];
    w.scales = *constants[1];
    if (constants[2] != nullptr) w.zeros = *constants[2];
    const DType type = w.codes.dtype();
    switch (type) {
      case DType::kInt8:
      case DType::kInt4:
      case DType::kInt2:
        w.is_signed = true;
        break;
      case DType::kUInt8:
      case DType::kUInt4:
      case DType::kUInt2:
        break;
      default:
        return std::nullopt;
    }
    w.bits = static_cast<int>(bits_of(type));
    if (w.zeros && (w.zeros->dtype() != type || Dims(w.zeros->dims()) != Dims(w.scales.dims())))
      return std::nullopt;
    if (rewriter_.dtype(node.output(0)) != w.scales.dtype() || w.codes.rank() != 2 ||
        w.codes.size() == 0)
      return std::nullopt;
    w.k = w.codes.dim(w.by_columns ? 1 : 0);
    w.n = w.codes.dim(w.by_columns ? 0 : 1);
    return read_scales(w) ? std::optional(w) : std::nullopt;
  }

  /// Where the scale of a block and a column is; not for other shares of scales.
  static bool read_scales(Weights& w) {
    const AttributeReader attributes(*w.dequantize);
    const int64_t block = attributes.get_int("block_size", 0);
    int64_t axis = attributes.get_int("axis", 1);
    if (axis < 0) axis += 2;
    const int64_t k_axis = w.by_columns ? 1 : 0;
    const Dims dims = w.scales.dims();
    if (block != 0) {
      // What MatMulNBits takes: a power of two from 16 on.
      if (axis != k_axis || dims.size() != 2 || block < 16 || (block & (block - 1)) != 0)
        return false;
      w.block = block;
      const auto at = static_cast<uint32_t>(k_axis);
      if (dims[at] != (w.k + block - 1) / block || dims[1 - at] != w.n) return false;
      w.scale_k = w.by_columns ? 1 : w.n;
      w.scale_n = w.by_columns ? dims[1] : 1;
      return true;
    }
    if (w.scales.size() != 1 || dims.size() > 1) {
      if (dims.size() != 1 || axis == k_axis || dims[0] != w.n) return false;
      w.scale_n = 1;
    }
    // The longest block that fills up k by little.
    w.block = 256;
    while (w.block > 16 && (w.k + w.block - 1) / w.block * w.block > w.k + w.k / 16) w.block /= 2;
    return true;
  }

  static constexpr int64_t kGroup = 64;
  /// Codes of columns [first, last), `row` bytes each, which are zero before.
  static void fill_columns(const Weights& w, int64_t first, int64_t last, int64_t row,
                           uint8_t* codes) {
    const auto* from = reinterpret_cast<const uint8_t*>(w.codes.bytes().data());
    const int64_t bits = w.bits, per_byte = 8 / bits;
    // The highest bit of each signed code is turned.
    const int sign = !w.is_signed ? 0 : bits == 8 ? 0x80 : bits == 4 ? 0x88 : 0xAA;
    if (w.by_columns && w.k % per_byte == 0) {
      for (int64_t n = first; n < last; ++n)
        for (int64_t i = 0; i < w.k / per_byte; ++i)
          codes[n * row + i] = static_cast<uint8_t>(from[n * w.k / per_byte + i] ^ sign);
      return;
    }
    constexpr int64_t kDepth = 32;  // a whole number of bytes, whatever the bits
    uint8_t tile[kGroup][kDepth];
    const int64_t columns = last - first;
    for (int64_t k0 = 0; k0 < w.k; k0 += kDepth) {
      const int64_t depth = std::min(kDepth, w.k - k0);
      for (int64_t k = 0; k < depth; ++k) {
        const int64_t at = (k0 + k) * w.n + first;
        if (!w.by_columns && bits == 8)
          for (int64_t n = 0; n < columns; ++n)
            tile[n][k] = static_cast<uint8_t>(from[at + n] ^ sign);
        else if (!w.by_columns && bits == 4 && w.n % 2 == 0)
          for (int64_t n = 0; n < columns; n += 2) {
            const int pair = from[(at + n) / 2] ^ sign;
            tile[n][k] = static_cast<uint8_t>(pair & 15);
            tile[n + 1][k] = static_cast<uint8_t>(pair >> 4);
          }
        else
          for (int64_t n = 0; n < columns; ++n)
            tile[n][k] = w.code(w.codes, w.by_columns ? (first + n) * w.k + k0 + k : at + n);
      }
      for (int64_t n = 0; n < columns; ++n) {
        uint8_t* const to = codes + (first + n) * row + k0 / per_byte;
        if (bits == 8)
          std::memcpy(to, tile[n], static_cast<size_t>(depth));
        else
          for (int64_t k = 0; k < depth; ++k)
            to[k / per_byte] =
                static_cast<uint8_t>(to[k / per_byte] | tile[n][k] << k % per_byte * bits);
      }
    }
  }

  /// [N, blocks, bytes of a block], [N, blocks] and, unless they are all in the middle,
  /// [N, bytes of a zero point for each block].
  const Made& constants(const Weights& w) {
    const auto key = std::make_tuple(w.values[0], w.values[1], w.values[2], w.by_columns);
    if (const auto found = made_.find(key); found != made_.end()) return found->second;
    const int64_t blocks = (w.k + w.block - 1) / w.block;
    const int64_t per_byte = 8 / w.bits, row = blocks * w.block / per_byte;
    const int64_t zero_row = (blocks + per_byte - 1) / per_byte;
    const auto middle = static_cast<uint8_t>(1 << (w.bits - 1));
    std::vector<uint8_t> codes(static_cast<size_t>(w.n * row)), zeros;
    std::vector<int64_t> places(static_cast<size_t>(w.n * blocks));
    for (int64_t n = 0; n < w.n; ++n)
      for (int64_t b = 0; b < blocks; ++b)
        places[static_cast<size_t>(n * blocks + b)] = b * w.scale_k + n * w.scale_n;
    // Columns in groups, so that what is read of a row of [K, N] lies side by side.
    auto fill = [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g)
        fill_columns(w, g * kGroup, std::min(w.n, (g + 1) * kGroup), row, codes.data());
    };
    parallel_for((w.n + kGroup - 1) / kGroup, std::max<int64_t>(1, 65536 / (w.k * kGroup)),
                 [](void* function, int64_t begin, int64_t end) {
                   (*static_cast<decltype(fill)*>(function))(begin, end);
                 },
                 &fill);
    // Without zero points a code of MatMulNBits is less by half its range: signed codes are just
    // that, unsigned ones have 0.
    bool moved = !w.is_signed && !w.zeros;
    for (int64_t i = 0; w.zeros && i < w.zeros->size(); ++i) moved |= w.code(*w.zeros, i) != middle;
    if (moved) {
      zeros.assign(static_cast<size_t>(w.n * zero_row), 0);
      for (int64_t n = 0; n < w.n; ++n)
        for (int64_t b = 0; b < blocks; ++b) {
          const uint8_t zero = w.zeros
                                   ? w.code(*w.zeros, places[static_cast<size_t>(n * blocks + b)])
                               : w.is_signed ? middle
                                             : uint8_t{0};
          zeros[static_cast<size_t>(n * zero_row + b / per_byte)] |=
              static_cast<uint8_t>(zero << b % per_byte * w.bits);
        }
    }
    const Text name = w.dequantize->output(0)->name();
    const auto bytes = [&](const std::vector<uint8_t>& values, std::initializer_list<int64_t> dims,
                           Text hint) {
      return rewriter_.initializer(
          graph_, Tensor::of<uint8_t>(DType::kUInt8, std::vector<int64_t>(dims), values), hint);
    };
    Made made = {bytes(codes, {w.n, blocks, w.block / per_byte}, name), scales(w, places, blocks),
                 moved ? bytes(zeros, {w.n, zero_row}, name) : nullptr};
    return made_.emplace(key, std::move(made)).first->second;
  }

  Value* scales(const Weights& w, const std::vector<int64_t>& places, int64_t blocks) {
    const int64_t dims[] = {w.n, blocks};
    auto tensor = Tensor::allocate(w.scales.dtype(), dims);
    const size_t size = bytes_of(w.scales.dtype());
    for (size_t i = 0; i < places.size(); ++i)
      std::memcpy(tensor->mutable_bytes().data() + i * size,
                  w.scales.bytes().data() + static_cast<size_t>(places[i]) * size, size);
    return rewriter_.initializer(graph_, *tensor, w.dequantize->output(0)->name());
  }

  Rewriter& rewriter_;
  Graph& graph_;
  std::map<std::tuple<const Value*, const Value*, const Value*, bool>, Made> made_;
};

}  // namespace

Result<size_t> weight_codes(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) { count += Products(rewriter, graph).run(); });
  return count;
}

}  // namespace tombolo::passes
