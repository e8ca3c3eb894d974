// One to three calls of operators of PyTorch, with arguments of any kind: mostly of the one that
// the schema wants, so that handlers get to what they do, sometimes of another. Each call gives
// results or an error with a message.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "formats/pytorch/aten/context.h"

namespace {

using namespace tombolo;
using namespace tombolo::pytorch;

constexpr DType kTypes[] = {
    DType::kFloat32,   DType::kInt64,  DType::kBool,      DType::kComplex64,  DType::kFloat64,
    DType::kFloat16,   DType::kInt32,  DType::kUInt8,     DType::kComplex128, DType::kBFloat16,
    DType::kInt8,      DType::kInt16,  DType::kUInt32,    DType::kUInt64,     DType::kFloat8E5M2,
    DType::kUndefined, DType::kUInt16, DType::kFloat8E8M0};
constexpr int64_t kNumbers[] = {
    0,         1,         2,        3,         -1, -2,     4,         5,        -3,
    7,         8,         16,       64,        -9, 100000, INT32_MAX, 1L << 31, 1L << 40,
    INT64_MAX, INT64_MIN, 1L << 62, INT32_MIN, -6, 63,     10,        11,       -INT64_MAX};
constexpr double kReals[] = {0,    1,     0.5,    -1,       2,   3,    1e-5, 1e300,
                             -0.0, 1e-30, -1e300, INFINITY, NAN, 0.75, 20,   -INFINITY,
                             1e18, 4,     0x1p63, -0x1p63,  1e9, 10};
constexpr int64_t kSizes[] = {2, 3, 1, 4, 0, 5, 8, 2, 3, 16, 1L << 20, 1L << 40};
constexpr const char* kNames[] = {"n", "m", "n*m", "2*n", "n+1", "n//2", "n-1", "z"};
constexpr const char* kTexts[] = {
    "",          "mean",       "sum",      "none",     "same",      "valid",        "reflect",
    "replicate", "circular",   "constant", "ij",       "xy",        "tanh",         "floor",
    "trunc",     "max",        "min",      "prod",     "amax",      "amin",         "add",
    "multiply",  "linear",     "lower",    "higher",   "midpoint",  "nearest",      "left",
    "right",     "fro",        "nuc",      "forward",  "backward",  "ortho",        "L",
    "U",         "complete",   "reduced",  "r",        "ij,jk->ik", "bij,bjk->bik", "ii->i",
    "ii",        "...ij->...", "i,j",      "ijk->kji", "->",        "a,b,c->abc",   "abc...,c->b",
    "i->ij",     "...",        "bilinear", "bicubic",  "wrap",      "hann",         "i,->i"};
constexpr const char* kViews[] = {"transpose.int", "select.int", "slice.Tensor", "expand",
                                  "view",          "as_strided", "unsqueeze",    "permute",
                                  "diagonal",      "view.dtype", "real",         "view_as_real",
                                  "squeeze.dim",   "unfold",     "split.Tensor"};

class Caller {
 public:
  Caller(AtenContext& c, const uint8_t* data, size_t size) : c_(c), at_(data), end_(data + size) {}

  void run() {
    const std::vector<const Row*> rows = all_rows();
    const size_t calls = 1 + below(3);
    for (size_t i = 0; i < calls; ++i) {
      const std::string_view schema = rows[(below(256) * 256 + below(256)) % rows.size()]->schema;
      std::string name(schema.substr(0, schema.find('(')));
      const Operator* op = find_operator_row(name);
      if (one_in(8)) name.insert(std::min(name.find('.'), name.size()), "_");
      if (AtenContext::knows(name)) call(name, op->schema);
    }
    for (const Arg& tensor : tensors_) (void)c_.read(tensor.tensor);
  }

 private:
  size_t below(size_t count) { return at_ == end_ ? 0 : *at_++ % count; }
  bool one_in(size_t count) { return below(count) == count - 1; }
  template <typename T, size_t N>
  T pick(const T (&list)[N]) {
    return list[below(N)];
  }

  std::vector<Arg> call(const std::string& name, const Schema& schema) {
    std::vector<Arg> args;
    std::vector<std::pair<std::string, Arg>> named;
    for (const SchemaArg& arg : schema.args) {
      if (!arg.required && one_in(3)) {
        if (one_in(3)) break;
        args.push_back(arg.fallback);
      } else if (one_in(16)) {
        named.emplace_back(arg.name, of_type(arg));
        break;
      } else {
        args.push_back(one_in(24) ? anything(2) : of_type(arg));
      }
    }
    auto results = c_.call(name, std::move(args), std::move(named));
    if (!results.ok()) {
      if (results.error().message.empty()) std::abort();
      return {};
    }
    for (const Arg& result : *results) {
      keep(result);
      for (const Arg& part : result.list) keep(part);
    }
    return *results;
  }

  void keep(const Arg& result) {
    if (!result.is_tensor() || tensors_.size() > 16) return;
    if (result.tensor->value == nullptr) std::abort();
    tensors_.push_back(result);
  }

  SymDim size() {
    if (!one_in(6)) return SymDim(pick(kSizes));
    return one_in(4) ? SymDim() : SymDim::parse(pick(kNames));
  }

  Ref fresh_tensor(size_t rank) {
    const DType type = kTypes[one_in(3) ? below(std::size(kTypes)) : below(2)];
    const DType real = AtenContext::real_of(type);
    if (one_in(3)) {
      std::vector<int64_t> sizes;
      for (size_t i = 0; i < rank; ++i) sizes.push_back(kSizes[below(7)]);
      if (is_complex(type)) sizes.push_back(2);
      auto data = Tensor::allocate(real, sizes);
      if (!data.ok()) return c_.cell(c_.b.scalar(1, DType::kFloat32));
      const size_t seed = below(256);
      for (int64_t i = 0; i < data->size(); ++i)
        data->set_double(i, seed < 200 ? double((size_t(i) * 3 + seed) % 7) - double(seed % 3)
                                       : kReals[(size_t(i) + seed) % std::size(kReals)]);
      return c_.cell(one_in(3) ? c_.b.weight(*data, "weight") : c_.b.constant(*data), type);
    }
    if (one_in(24)) {  // of unknown rank
      Value* value = c_.b.input("x", real, {});
      c_.b.set_type(value, DType::kUndefined, {});
      return c_.cell(value, type);
    }
    SymShape shape;
    for (size_t i = 0; i < rank; ++i) shape.push_back(size());
    if (is_complex(type)) shape.emplace_back(2);
    Value* value = c_.b.input("x", real, shape);
    for (size_t i = 0; i < rank; ++i)
      if (const std::string text = shape[i].to_string(); text == "n" || text == "m")
        c_.bind_symbol(text, value, int64_t(i));
    return c_.cell(value, type);
  }

  Arg tensor() {
    if (!tensors_.empty() && one_in(3)) return tensors_[below(tensors_.size())];
    Ref cell = fresh_tensor(below(6));
    cell->number = one_in(64);
    tensors_.emplace_back(cell);
    if (++depth_ < 3 && one_in(12)) {
      const char* view = pick(kViews);
      const std::vector<Arg> results = call(view, find_operator_row(view)->schema);
      if (!results.empty() && results.front().is_tensor()) tensors_.push_back(results.front());
    }
    --depth_;
    return tensors_.back();
  }

  Arg integer() {
    if (!one_in(8)) return Arg(kNumbers[one_in(6) ? below(std::size(kNumbers)) : below(9)]);
    if (one_in(2)) return Arg(SymInt(SymDim::parse(pick(kNames))));
    Value* value = c_.b.input("i", DType::kInt64, {});
    return Arg(one_in(2) ? SymInt(SymDim::parse(pick(kNames)), value) : SymInt(SymDim(), value));
  }
  Arg real() {
    Arg arg(pick(kReals));
    if (one_in(16)) arg.computed = c_.b.input("f", DType::kFloat64, {});
    return arg;
  }
  Arg flag() {
    Arg arg(one_in(2));
    if (one_in(16)) arg.computed = c_.b.input("b", DType::kBool, {});
    return arg;
  }
  Arg number() {
    switch (below(6)) {
      case 0:
        return real();
      case 1:
        return flag();
      case 2:
        return Arg::complex(pick(kReals), pick(kReals));
      default:
        return integer();
    }
  }

  Arg anything(int depth) {
    Arg arg;
    switch (below(depth > 0 ? 11 : 9)) {
      case 1:
        return tensor();
      case 2:
        return integer();
      case 3:
        return real();
      case 4:
        return flag();
      case 5:
        return number();
      case 6:
        return Arg(pick(kTexts));
      case 7:
        return Arg(pick(kTypes));
      case 8:
        arg.kind = Arg::Kind::kOther;
        if (one_in(2)) arg.text = "it could not be made";
        return arg;
      case 9:
      case 10: {
        const size_t count = one_in(16) ? below(100) : below(5);
        std::vector<Arg> items;
        for (size_t i = 0; i < count; ++i) items.push_back(anything(depth - 1));
        return Arg(std::move(items));
      }
      default:
        return arg;
    }
  }

  Arg of_type(const SchemaArg& arg) {
    std::string_view type = arg.type;
    if (type.ends_with('?')) {
      if (one_in(3)) return Arg();
      type.remove_suffix(1);
    }
    if (const size_t bracket = type.find('['); bracket != type.npos) {
      const bool as_said = arg.list_length > 0 && !one_in(16);
      const size_t count = as_said ? size_t(arg.list_length) : one_in(32) ? below(100) : below(6);
      std::vector<Arg> items;
      for (size_t i = 0; i < count; ++i)
        items.push_back(one_in(64) ? anything(1) : one(type.substr(0, bracket)));
      return Arg(std::move(items));
    }
    return one(type);
  }

  Arg one(std::string_view type) {
    if (type == "Tensor?") return one_in(3) ? Arg() : tensor();
    if (type == "Tensor") return tensor();
    if (type == "Scalar") return number();
    if (type == "int" || type == "SymInt") return integer();
    if (type == "bool") return flag();
    if (type == "float") return real();
    if (type == "str") return Arg(pick(kTexts));
    if (type == "ScalarType") return Arg(pick(kTypes));
    return Arg();
  }

  AtenContext& c_;
  const uint8_t *at_, *end_;
  std::vector<Arg> tensors_;
  int depth_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Model model = Model::create(kImportOpset);
  AtenContext c(model);
  Caller(c, data, size).run();
  return 0;
}
