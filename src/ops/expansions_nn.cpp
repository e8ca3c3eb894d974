// Layers of transformers in the operators that older sets have. Where ranks or sizes are not known
// the specification's own bodies serve, which compute them.

#include <cmath>

#include "ops/expansions.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {
namespace {

std::string cast_line(const std::string& to, const std::string& from, DType dtype) {
  return to + " = Cast <to = " + std::to_string(static_cast<int>(dtype)) + "> (" + from + ")\n";
}

std::string line(const std::string& to, const std::string& op, const std::string& inputs) {
  return to + " = " + op + " (" + inputs + ")\n";
}

/// The axes from `axis` to the last one.
Result<std::string> trailing_axes(const StepContext& step, int64_t fallback) {
  const std::optional<size_t> rank = step.rank(0);
  if (!rank) return step.cannot("the rank of X is not known");
  int64_t axis = step.get_int("axis", fallback);
  if (axis < 0) axis += static_cast<int64_t>(*rank);
  if (axis < 0 || axis >= static_cast<int64_t>(*rank))
    return step.cannot("the axis is out of range");
  std::vector<int64_t> axes;
  for (; axis < static_cast<int64_t>(*rank); ++axis) axes.push_back(axis);
  return int_list("axes", axes);
}

}  // namespace

Status expand_layer_normalization(StepContext& step) {
  TRY(const std::string axes, trailing_axes(step, -1));
  const DType type = step.dtype(0);
  const auto stash = static_cast<DType>(step.get_int("stash_type", 1));
  if (type == DType::kUndefined) return step.cannot("the type of X is not known");
  const bool cast = type != stash;
  std::string text =
      axes + typed_scalar("least", stash, static_cast<double>(step.get_float("epsilon", 1e-5f)));
  if (cast) text += cast_line("wide", "X", stash);
  const std::string x = cast ? "wide" : "X";
  text += line("mean", "ReduceMean", x + ", axes") + line("centred", "Sub", x + ", mean") +
          line("square", "Mul", "centred, centred") +
          line("variance", "ReduceMean", "square, axes") +
          line("raised", "Add", "variance, least") + line("deviation", "Sqrt", "raised") +
          line("normal", "Div", "centred, deviation");
  if (cast) text += cast_line("narrow", "normal", type);
  const std::string normal = cast ? "narrow" : "normal";
  if (step.has_input(2)) {
    text += line("scaled", "Mul", normal + ", Scale") + line("Y", "Add", "scaled, B");
  } else {
    text += line("Y", "Mul", normal + ", Scale");
  }
  if (step.output_used(1)) text += line("Mean", "Identity", "mean");
  if (step.output_used(2)) text += line("InvStdDev", "Reciprocal", "deviation");
  return step.replace(18, text);
}

Status expand_rms_normalization(StepContext& step) {
  TRY(const std::string axes, trailing_axes(step, -1));
  const DType type = step.dtype(0), scale = step.dtype(1);
  const auto stash = static_cast<DType>(step.get_int("stash_type", 1));
  if (type == DType::kUndefined || scale == DType::kUndefined)
    return step.cannot("the types of X and its scale are not known");
  std::string text =
      axes + typed_scalar("least", stash, static_cast<double>(step.get_float("epsilon", 1e-5f)));
  if (type != stash) text += cast_line("wide", "X", stash);
  const std::string x = type != stash ? "wide" : "X";
  text += line("square", "Mul", x + ", " + x) + line("mean", "ReduceMean", "square, axes") +
          line("raised", "Add", "mean, least") + line("root", "Sqrt", "raised") +
          line("normal", "Div", x + ", root");
  if (scale != stash) text += cast_line("narrow", "normal", scale);
  return step.replace(
      18, text + line("Y", "Mul", std::string(scale != stash ? "narrow" : "normal") + ", scale"));
}

Status expand_group_normalization(StepContext& step) {
  const std::optional<size_t> rank = step.rank(0);
  const DType type = step.dtype(0);
  const auto stash = static_cast<DType>(step.get_int("stash_type", 1));
  const int64_t groups = step.get_int("num_groups", 0);
  if (!rank || *rank < 2 || groups <= 0 || groups > 1 << 16 || type == DType::kUndefined)
    return step.cannot("the rank or type of X is not known");
  std::string ones, zeros;
  for (int64_t i = 0; i < groups; ++i) {
    ones += i == 0 ? "1.0" : ", 1.0";
    zeros += i == 0 ? "0.0" : ", 0.0";
  }
  const std::string kind = std::string(name_of(stash)) + "[" + std::to_string(groups) + "] {";
  std::vector<int64_t> column(*rank - 1, 1);
  column[0] = -1;
  std::string text = int_list("by_group", {{0, groups, -1}}) + int_list("column", column) +
                     "ones = Constant <value = " + kind + ones + "}> ()\n" +
                     "zeros = Constant <value = " + kind + zeros + "}> ()\n";
  if (type != stash) text += cast_line("wide", "X", stash);
  text +=
      line("grouped", "Reshape", std::string(type != stash ? "wide" : "X") + ", by_group") +
      "normal_groups = InstanceNormalization <epsilon: float = @epsilon> (grouped, ones, zeros)\n" +
      line("shape", "Shape", "X") + line("normal", "Reshape", "normal_groups, shape");
  if (type != stash) text += cast_line("narrow", "normal", type);
  text +=
      line("scale_column", "Reshape", "scale, column") +
      line("bias_column", "Reshape", "bias, column") +
      line("scaled", "Mul", std::string(type != stash ? "narrow" : "normal") + ", scale_column");
  return step.replace(13, text + line("Y", "Add", "scaled, bias_column"));
}

Status expand_rotary_embedding(StepContext& step) {
  const std::optional<size_t> rank = step.rank(0), rows = step.rank(1);
  const int64_t heads = step.get_int("num_heads", 0);
  if (!rank || !rows || (*rank != 4 && (*rank != 3 || heads <= 0)))
    return step.cannot("the rank of X or the number of heads is not known");
  std::optional<int64_t> size = step.dim(0, *rank - 1);
  if (size && *rank == 3) size = *size / heads;
  std::optional<int64_t> half = step.dim(1, *rows - 1);
  const int64_t turning = step.get_int("rotary_embedding_dim", 0);
  if (!half && turning > 0) half = turning / 2;
  if (!half && size) half = *size / 2;
  if (!half || !size) return step.cannot("the size of a head is not known");
  std::string text = int_list("from", {{0}}) + int_list("half", {{*half}}) +
                     int_list("both", {{2 * *half}}) + int_list("last", {{-1}}) +
                     int_list("head_axis", {{1}});
  std::string x = "X";
  if (*rank == 3) {
    text += int_list("apart", {{0, 0, heads, -1}}) + line("tokens", "Reshape", "X, apart") +
            "heads = Transpose <perm = [0, 2, 1, 3]> (tokens)\n";
    x = "heads";
  }
  for (const std::string name : {"cos", "sin"}) {
    const bool positions = step.has_input(3);
    if (positions) text += line(name + "_rows", "Gather", name + "_cache, position_ids");
    text += line(name, "Unsqueeze", name + (positions ? "_rows" : "_cache") + ", head_axis");
  }
  const bool some = *size > 2 * *half;
  const bool pairs = step.get_int("interleaved", 0) != 0;
  std::string turned = x;
  if (pairs) {
    if (some) text += line("turned", "Slice", x + ", from, both, last");
    turned = some ? "turned" : x;
    text += int_list("split", {{0, 0, 0, -1, 2}}) + line("columns", "Reshape", turned + ", split") +
            int_scalar("even", 0) + int_scalar("odd", 1) +
            "x1 = Gather <axis = 4> (columns, even)\nx2 = Gather <axis = 4> (columns, odd)\n";
  } else {
    text += line("x1", "Slice", x + ", from, half, last") +
            line("x2", "Slice", x + ", half, both, last");
  }
  text += line("cos_x1", "Mul", "cos, x1") + line("sin_x2", "Mul", "sin, x2") +
          line("y1", "Sub", "cos_x1, sin_x2") + line("sin_x1", "Mul", "sin, x1") +
          line("cos_x2", "Mul", "cos, x2") + line("y2", "Add", "sin_x1, cos_x2");
  std::string parts = "y1, y2";
  if (pairs) {
    text += int_list("pair_axis", {{4}}) + line("y1_column", "Unsqueeze", "y1, pair_axis") +
            line("y2_column", "Unsqueeze", "y2, pair_axis") +
            "pairs = Concat <axis = 4> (y1_column, y2_column)\n" +
            int_list("joined", {{0, 0, 0, 2 * *half}}) +
            line("rotated", "Reshape", "pairs, joined");
    parts = "rotated";
  }
  if (some) {
    text += int_list("end", {{INT64_MAX}}) + line("still", "Slice", x + ", both, end, last");
    parts += ", still";
  }
  const std::string whole = *rank == 3 ? "whole" : "Y";
  text +=
      whole + (parts == "rotated" ? " = Identity (" : " = Concat <axis = -1> (") + parts + ")\n";
  if (*rank == 3)
    text += "by_token = Transpose <perm = [0, 2, 1, 3]> (whole)\n" +
            int_list("together", {{0, 0, -1}}) + line("Y", "Reshape", "by_token, together");
  return step.replace(18, text);
}

namespace {

/// What makes an Attention node plain enough; the generic body says the rest.
struct AttentionFacts {
  DType type;
  size_t rank;
  int64_t heads, kv_heads, size;
};

Result<AttentionFacts> attention_facts(const StepContext& step) {
  const std::optional<size_t> rank = step.rank(0);
  const DType type = step.dtype(0);
  if (!rank || (*rank != 3 && *rank != 4) || type == DType::kUndefined)
    return step.cannot("the rank or type of Q is not known");
  AttentionFacts facts{type, *rank, step.get_int("q_num_heads", 0), step.get_int("kv_num_heads", 0),
                       0};
  if (*rank == 4) {
    facts.heads = step.dim(0, 1).value_or(0);
    facts.kv_heads = step.dim(1, 1).value_or(0);
  }
  if (facts.heads <= 0 || facts.kv_heads <= 0)
    return step.cannot("the number of heads is not known");
  const auto last = step.dim(0, *rank - 1);
  if (last) facts.size = *rank == 3 ? *last / facts.heads : *last;
  if (facts.size <= 0 && !step.has("scale")) return step.cannot("the size of a head is not known");
  if (step.output_used(3) || step.has_input(6))
    return step.cannot("scores and lengths take the specification's body");
  if (step.has_input(3)) {  // a mask shorter than the keys needs padding
    const auto mask = step.rank(3);
    const Value* keys = step.output_used(1) ? step.node.output(1)
                        : step.has_input(4) ? nullptr
                                            : step.node.input(1);
    const size_t axis = step.output_used(1) || facts.rank == 4 ? 2 : 1;
    if (!mask || *mask == 0 || keys == nullptr ||
        !step.host.same_dim(*step.node.input(3), *mask - 1, *keys, axis))
      return step.cannot("the mask may be shorter than the keys");
  }
  return facts;
}

}  // namespace

Status expand_attention(StepContext& step) {
  TRY(const AttentionFacts facts, attention_facts(step));
  const DType type = facts.type;
  const bool packed = facts.rank == 3, past = step.has_input(4) && step.has_input(5);
  const bool grouped = facts.heads != facts.kv_heads;
  std::string text;
  const std::string kv_heads = std::to_string(facts.kv_heads);
  if (packed)
    text += int_list("q_split", {{0, 0, facts.heads, -1}}) +
            int_list("kv_split", {{0, 0, facts.kv_heads, -1}});
  const auto apart = [&](const std::string& to, const std::string& from, bool query) {
    if (!packed) return from;
    text += line(to + "_tokens", "Reshape", from + (query ? ", q_split" : ", kv_split")) + to +
            " = Transpose <perm = [0, 2, 1, 3]> (" + to + "_tokens)\n";
    return to;
  };
  const std::string q = apart("q", "Q", true);
  std::string k = apart("k_new", "K", false), v = apart("v_new", "V", false);
  const std::string k_now = k;
  if (past) {
    text += "k_all = Concat <axis = 2> (past_key, " + k +
            ")\nv_all = Concat <axis = 2> (past_value, " + v + ")\n";
    k = "k_all";
    v = "v_all";
  }
  if (step.output_used(1)) text += line("present_key", "Identity", k);
  if (step.output_used(2)) text += line("present_value", "Identity", v);
  const std::string keys = k;
  if (grouped) {  // each head of K and V stands for several of Q
    text +=
        int_list("inside", {{2}}) + int_list("many", {{1, 1, facts.heads / facts.kv_heads, 1, 1}});
    for (std::string* one : {&k, &v}) {
      const std::string name = one == &k ? "k" : "v";
      text +=
          line(name + "_each", "Unsqueeze", *one + ", inside") +
          line(name + "_many", "Expand", name + "_each, many") +
          line(name + "_shape", "Shape", *one) + int_list(name + "_begin", {{2}}) +
          int_list(name + "_end", {{4}}) +
          line(name + "_inner", "Slice", name + "_shape, " + name + "_begin, " + name + "_end") +
          int_list(name + "_outer", {{0, facts.heads}}) + name + "_flat = Concat <axis = 0> (" +
          name + "_outer, " + name + "_inner)\n" +
          line(name + "_grouped", "Reshape", name + "_many, " + name + "_flat");
      *one = name + "_grouped";
    }
  }
  // Both factors by the root of the scale, against overflow.
  const double scale = step.has("scale") ? static_cast<double>(step.get_float("scale", 1))
                                         : 1 / std::sqrt(static_cast<double>(facts.size));
  const double root = std::sqrt(std::fabs(scale));
  text += typed_scalar("q_factor", type, scale < 0 ? -root : root) +
          typed_scalar("k_factor", type, root) + line("q_scaled", "Mul", q + ", q_factor") +
          "k_turned = Transpose <perm = [0, 1, 3, 2]> (" + k + ")\n" +
          line("k_scaled", "Mul", "k_turned, k_factor") +
          line("scores", "MatMul", "q_scaled, k_scaled");
  std::string logits = "scores";
  if (const double cap = static_cast<double>(step.get_float("softcap", 0)); cap > 0) {
    text += typed_scalar("cap", type, cap) + line("share", "Div", "scores, cap") +
            line("bounded", "Tanh", "share") + line("capped", "Mul", "bounded, cap");
    logits = "capped";
  }
  const bool masked = step.has_input(3), causal = step.get_int("is_causal", 0) != 0;
  const int64_t left = step.get_int("left_window_size", -1);
  const int64_t right = step.get_int("right_window_size", -1);
  std::string seen;  // bool: what may be seen
  if (causal || left >= 0 || right >= 0) {
    text += line("q_shape", "Shape", q) + line("k_shape", "Shape", keys) + int_list("time", {{2}}) +
            line("rows", "Gather", "q_shape, time") + line("columns", "Gather", "k_shape, time") +
            "area = Concat <axis = 0> (rows, columns)\n"
            "all_seen = ConstantOfShape <value = bool[1] {1}> (area)\n" +
            int_list("no_axes", {{0}});
    std::string offset;
    if (past)
      text += line("now_shape", "Shape", k_now) + line("now", "Gather", "now_shape, time") +
              line("before", "Sub", "columns, now") + line("offset", "Squeeze", "before, no_axes");
    else
      text += int_scalar("offset", 0);
    seen = "all_seen";
    const auto cut = [&](const std::string& name, int64_t shift, bool upper) {
      text += int_scalar(name + "_shift", shift) +
              line(name + "_edge", "Add", "offset, " + name + "_shift") + name +
              "_seen = Trilu <upper = " + (upper ? "1" : "0") + "> (" + seen + ", " + name +
              "_edge)\n";
      seen = name + "_seen";
    };
    if (causal) cut("causal", 0, false);
    if (right >= 0) cut("right", right, false);
    if (left >= 0) cut("left", -left, true);
  }
  if (masked || !seen.empty()) {
    text += typed_scalar("zero", type, 0) + typed_scalar("never", type, -INFINITY);
    std::string bias = "bias";
    if (!masked) {
      text += line("bias", "Where", seen + ", zero, never");
    } else if (step.dtype(3) == DType::kBool) {
      if (!seen.empty()) text += line("both_seen", "And", seen + ", attn_mask");
      text += line("bias", "Where",
                   std::string(seen.empty() ? "attn_mask" : "both_seen") + ", zero, never");
    } else {
      std::string mask = "attn_mask";
      if (step.dtype(3) != type) {
        text += cast_line("mask_typed", mask, type);
        mask = "mask_typed";
      }
      if (seen.empty())
        bias = mask;
      else
        text += line("bias", "Where", seen + ", " + mask + ", never");
    }
    text += line("biased", "Add", logits + ", " + bias);
    logits = "biased";
  }
  const auto precision = static_cast<DType>(step.get_int("softmax_precision", 0));
  std::string shares = "shares";
  if (precision != DType::kUndefined && precision != type) {
    text += cast_line("precise", logits, precision) +
            "shares_wide = Softmax <axis = -1> (precise)\n" +
            cast_line("shares", "shares_wide", type);
  } else {
    text += "shares = Softmax <axis = -1> (" + logits + ")\n";
  }
  if (masked || left >= 0) {  // a row in which no key counts gives zeros
    text += int_list("key_axis", {{-1}}) + line("most", "ReduceMax", logits + ", key_axis") +
            line("nothing", "Equal", "most, never") +
            line("weights", "Where", "nothing, zero, shares");
    shares = "weights";
  }
  if (!packed) return step.replace(18, text + line("Y", "MatMul", shares + ", " + v));
  return step.replace(18, text + line("y_heads", "MatMul", shares + ", " + v) +
                              "y_tokens = Transpose <perm = [0, 2, 1, 3]> (y_heads)\n" +
                              int_list("together", {{0, 0, -1}}) +
                              line("Y", "Reshape", "y_tokens, together"));
}

}  // namespace tombolo::ops
