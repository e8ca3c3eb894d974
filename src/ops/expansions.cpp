#include "ops/expansions.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/borrowed.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {
namespace {

std::string cast_to(DType dtype) {
  return "Cast <to = " + std::to_string(static_cast<int>(dtype)) + "> ";
}

/// The axis counted from the front; nothing when the rank is not known or it is out of range.
std::optional<int64_t> front_axis(const StepContext& step, size_t input, int64_t axis) {
  const std::optional<size_t> rank = step.rank(input);
  if (!rank) return std::nullopt;
  const auto all = static_cast<int64_t>(*rank);
  if (axis < 0) axis += all;
  return axis >= 0 && axis < all ? std::optional(axis) : std::nullopt;
}

}  // namespace

Status expand_trilu(StepContext& step) {
  const DType dtype = step.dtype(0);
  if (dtype == DType::kUndefined) return step.cannot("the type of the input is not known");
  const bool upper = step.get_int("upper", 1) != 0;
  const std::string place = step.has_input(1) ? "k" : "zero";
  std::string text = "shape = Shape (input)\n" + int_scalar("zero", 0) + int_scalar("one", 1) +
                     int_scalar("second_last", -2) + int_scalar("last", -1) +
                     int_list("column", {{-1, 1}});
  if (dtype != DType::kBool) text += typed_scalar("nothing", dtype, 0);
  text +=
      "height = Gather (shape, second_last)\nwidth = Gather (shape, last)\n"
      "rows_0 = Range (zero, height, one)\nrows = Reshape (rows_0, column)\n"
      "columns = Range (zero, width, one)\noffset = Sub (columns, rows)\n";
  if (dtype == DType::kBool) {  // selecting booleans is rare among kernels
    text += std::string("outside = ") + (upper ? "Less" : "Greater") + " (offset, " + place + ")\n";
    return step.replace(13, text + "inside = Not (outside)\noutput = And (inside, input)\n");
  }
  text += std::string("outside = ") + (upper ? "Less" : "Greater") + " (offset, " + place + ")\n";
  return step.replace(13, text + "output = Where (outside, nothing, input)\n");
}

Status expand_bitwise_not(StepContext& step) {
  const DType dtype = step.dtype(0);
  if (dtype == DType::kUndefined) return step.cannot("the type of the input is not known");
  if (kSigned.has_tensor(dtype))
    return step.replace(14, typed_scalar("ones", dtype, -1) + "Y = Sub (ones, X)\n");
  // All bits set: -1 in two's complement.
  return step.replace(
      14, int_scalar("minus", -1) + "ones = " + cast_to(dtype) + "(minus)\nY = Sub (ones, X)\n");
}

Status expand_bitwise(StepContext& step) {
  const DType dtype = step.dtype(0);
  if (dtype == DType::kUndefined) return step.cannot("the type of the input is not known");
  std::vector<int64_t> places(static_cast<size_t>(bits_of(dtype)));
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  std::string text = int_list("places_0", places) + "places = " + cast_to(DType::kUInt64) +
                     "(places_0)\n" + int_list("last", {{-1}}) +
                     "two = Constant <value = uint64 {2}> ()\n"
                     "one = Constant <value = uint64 {1}> ()\n"
                     "weights = BitShift <direction = \"LEFT\"> (one, places)\n";
  for (const std::string name : {"A", "B"})
    text += name + "_wide = " + cast_to(DType::kUInt64) + "(" + name + ")\n" + name +
            "_column = Unsqueeze (" + name + "_wide, last)\n" + name +
            "_shifted = BitShift <direction = \"RIGHT\"> (" + name + "_column, places)\n" + name +
            "_bits = Mod (" + name + "_shifted, two)\n";
  const Text op = step.node.op_type();
  if (op == "BitwiseAnd") {
    text += "bits = Mul (A_bits, B_bits)\n";
  } else {
    text += "sum = Add (A_bits, B_bits)\n";
    text += op == "BitwiseXor" ? "bits = Mod (sum, two)\n" : "bits = Min (sum, one)\n";
  }
  return step.replace(
      17, text + "number = MatMul (bits, weights)\nC = " + cast_to(dtype) + "(number)\n");
}

Status expand_tensor_scatter(StepContext& step) {
  const auto axis = front_axis(step, 0, step.get_int("axis", -2));
  if (!axis) return step.cannot("the rank of the cache is not known");
  std::vector<int64_t> along(*step.rank(0), 1), batch = along;
  along[static_cast<size_t>(*axis)] = -1;
  batch[0] = -1;
  std::string text = "shape = Shape (update)\n" + int_scalar("zero", 0) + int_scalar("one", 1) +
                     int_scalar("axis", *axis) + int_list("along", along) +
                     "steps = Gather (shape, axis)\ncounted = Range (zero, steps, one)\n"
                     "places_0 = Reshape (counted, along)\n";
  std::string places = "places_0";
  if (step.has_input(2)) {
    text += int_list("by_batch", batch) +
            "starts = Reshape (write_indices, by_batch)\nplaces_1 = Add (places_0, starts)\n";
    places = "places_1";
  }
  if (step.get_string("mode", "linear") == "circular") {
    text +=
        "cache_shape = Shape (past_cache)\nlength = Gather (cache_shape, axis)\nplaces_2 = Mod (" +
        places + ", length)\n";
    places = "places_2";
  }
  text += "indices = Expand (" + places +
          ", shape)\npresent_cache = ScatterElements <axis = " + std::to_string(*axis) +
          "> (past_cache, indices, update)\n";
  return step.replace(18, text);
}

Status expand_cumulative_product(StepContext& step) {
  const DType dtype = step.dtype(0);
  const auto given = step.constant_ints(1);
  if (dtype == DType::kUndefined || !given || given->size() != 1)
    return step.cannot("the axis must be constant, and the type known");
  const auto axis = front_axis(step, 0, (*given)[0]);
  if (!axis) return step.cannot("the rank of the input is not known");
  const std::string at = std::to_string(*axis);
  const std::string turn = step.get_int("reverse", 0) != 0 ? "1" : "0";
  const bool exclusive = step.get_int("exclusive", 0) != 0;
  std::string text = "shape = Shape (x)\n" + int_list("begin", {{0}}) + int_list("at", {{*axis}}) +
                     int_list("behind", {{*axis + 1}}) + int_list("end", {{INT64_MAX}}) +
                     "outer = Slice (shape, begin, at)\ninner = Slice (shape, behind, end)\n"
                     "rest = Concat <axis = 0> (outer, inner)\n" +
                     typed_scalar("one", dtype, 1) + "ones = Expand (one, rest)\n";
  text += "product, y = Scan <num_scan_inputs = 1, scan_input_axes = [" + at +
          "], scan_output_axes = [" + at + "], scan_input_directions = [" + turn +
          "], scan_output_directions = [" + turn +
          "], body = step (so_far, each) => (next, out) {\nnext = Mul (so_far, each)\nout = "
          "Identity (" +
          (exclusive ? "so_far" : "next") + ")\n}> (ones, x)\n";
  return step.replace(25, text);
}

namespace {

/// Scale and zero point brought to the shape of x, and back: what surrounds the arithmetic.
struct Spread {
  std::string before, after;  ///< lines; `x_in` and `NAME_in` become what they say
  std::string x, result;      ///< names
  std::string scale, zero;    ///< ready to broadcast
};

Result<Spread> spread(StepContext& step, const std::string& x, const std::string& scale,
                      const std::string& zero, const std::string& out) {
  Spread names{{}, {}, x, out, scale, zero};
  const std::optional<size_t> rank = step.rank(0), scale_rank = step.rank(1);
  if (!rank || !scale_rank) return step.cannot("the ranks of x and its scale must be known there");
  const int64_t block = step.get_int("block_size", 0);
  if (*scale_rank == 0 || (block == 0 && step.dim(1, 0) == 1 && *scale_rank == 1)) return names;
  const auto axis = front_axis(step, 0, step.get_int("axis", 1));
  if (!axis) return step.cannot("the axis is out of range");
  const auto at = static_cast<size_t>(*axis);
  const auto each = [&](const auto& line) {
    names.scale = scale + "_spread";
    names.before += line(scale, names.scale);
    if (zero.empty()) return;
    names.zero = zero + "_spread";
    names.before += line(zero, names.zero);
  };
  if (block == 0) {
    std::vector<int64_t> column(*rank, 1);
    column[at] = -1;
    names.before = int_list("column", column);
    each([](const std::string& from, const std::string& to) {
      return to + " = Reshape (" + from + ", column)\n";
    });
    return names;
  }
  const auto dims = step.dims(0);
  if (dims && block > 0 && (*dims)[at] % block == 0) {
    // [.., n * block, ..] as [.., n, block, ..]
    std::vector<int64_t> split = *dims;
    split[at] /= block;
    split.insert(split.begin() + *axis + 1, block);
    names.before = int_list("blocks", split) + int_list("joined", *dims) +
                   int_list("inside", {{*axis + 1}}) + x + "_blocks = Reshape (" + x +
                   ", blocks)\n";
    names.x = x + "_blocks";
    each([](const std::string& from, const std::string& to) {
      return to + " = Unsqueeze (" + from + ", inside)\n";
    });
    names.result = out + "_blocks";
    names.after = out + " = Reshape (" + names.result + ", joined)\n";
    return names;
  }
  names.before = "shape = Shape (" + x + ")\n" + int_scalar("at", *axis) + int_scalar("from", 0) +
                 int_scalar("by", 1) + int_scalar("block", block) +
                 "length = Gather (shape, at)\ncounted = Range (from, length, by)\n"
                 "place = Div (counted, block)\n";
  each([&](const std::string& from, const std::string& to) {
    return to + " = Gather <axis = " + std::to_string(*axis) + "> (" + from + ", place)\n";
  });
  return names;
}

/// A constant of 4-bit integers becomes one of bytes.
Status widen_small_constant(StepContext& step, uint32_t index) {
  const DType dtype = step.dtype(index);
  if (!kInt4.has_tensor(dtype) && !kInt2.has_tensor(dtype)) return ok();
  const Value* value = step.node.input(index);
  if (value == nullptr || value->initializer() == nullptr || value->is_input())
    return step.cannot("4-bit integers must be constant there");
  TRY(Tensor packed, value->initializer()->value(borrowed(step.graph().storage_ptr())));
  const bool is_signed = dtype == DType::kInt4 || dtype == DType::kInt2;
  TRY(Tensor wide,
      Tensor::allocate(is_signed ? DType::kInt8 : DType::kUInt8, packed.dims().span()));
  for (int64_t i = 0; i < packed.size(); ++i) wide.set_int64(i, packed.get_int64(i));
  step.node.set_input(index, step.constant(wide, value->name()));
  return ok();
}

bool is_16_bit(DType dtype) { return kInt16s.has_tensor(dtype); }

}  // namespace

Status step_dequantize_by_hand(StepContext& step) {
  const DType x = step.dtype(0), scale = step.dtype(1);
  const bool small = kInt4.has_tensor(x) || kInt2.has_tensor(x);
  const int64_t block = step.get_int("block_size", 0);
  if (block == 0 && !small && !is_16_bit(x)) {
    step.node.remove_attribute("block_size");
    return ok();
  }
  if (x == DType::kUndefined || scale == DType::kUndefined)
    return step.cannot("the types of x and its scale are not known");
  const bool has_zero = step.has_input(2);
  TRY(const Spread names, spread(step, "wide", "x_scale", has_zero ? "zero" : "", "y"));
  CHECK_OK(widen_small_constant(step, 0));
  if (has_zero) CHECK_OK(widen_small_constant(step, 2));
  std::string text = "wide = " + cast_to(scale) + "(x)\n";
  if (has_zero) text += "zero = " + cast_to(scale) + "(x_zero_point)\n";
  text += names.before;
  std::string moved = names.x;
  if (has_zero) {
    text += "moved = Sub (" + names.x + ", " + names.zero + ")\n";
    moved = "moved";
  }
  return step.replace(
      19, text + names.result + " = Mul (" + moved + ", " + names.scale + ")\n" + names.after);
}

Status step_quantize_by_hand(StepContext& step) {
  const auto output = static_cast<DType>(step.get_int("output_dtype", 0));
  const DType type = step.has_input(2)             ? step.dtype(2)
                     : output != DType::kUndefined ? output
                                                   : DType::kUInt8;
  const DType scale = step.dtype(1);
  const int64_t block = step.get_int("block_size", 0);
  if (block == 0 && !is_16_bit(type)) {
    step.node.remove_attribute("block_size");
    step.node.remove_attribute("output_dtype");
    if (step.has_input(2) || type == DType::kUInt8) return ok();
    const std::optional<size_t> rank = step.rank(1);
    const auto count = step.dims(1);
    if (!rank || !count || *rank > 1) return step.cannot("the shape of the scale is not known");
    TRY(Tensor zero, Tensor::allocate(type, *count));
    for (int64_t i = 0; i < zero.size(); ++i) zero.set_double(i, 0);
    step.node.set_input(2, step.constant(zero, "zero_point"));
    return ok();
  }
  if (!kInt8s.has_tensor(type) && !is_16_bit(type))
    return step.cannot(std::string(name_of(type)) + " did not exist");
  if (scale == DType::kUndefined) return step.cannot("the type of the scale is not known");
  const bool has_zero = step.has_input(2);
  TRY(const Spread names, spread(step, "x_wide", "y_scale", has_zero ? "zero" : "", "y"));
  const bool is_signed = type == DType::kInt8 || type == DType::kInt16;
  const double range = std::exp2(bits_of(type));
  std::string text = "x_wide = " + cast_to(scale) + "(x)\n";
  if (has_zero) text += "zero = " + cast_to(scale) + "(y_zero_point)\n";
  text += names.before + typed_scalar("low", scale, is_signed ? -range / 2 : 0) +
          typed_scalar("high", scale, is_signed ? range / 2 - 1 : range - 1) + "ratio = Div (" +
          names.x + ", " + names.scale + ")\nrounded = Round (ratio)\n";
  std::string moved = "rounded";
  if (has_zero) {
    text += "moved = Add (rounded, " + names.zero + ")\n";
    moved = "moved";
  }
  return step.replace(19, text + "clipped = Clip (" + moved + ", low, high)\n" + names.result +
                              " = " + cast_to(type) + "(clipped)\n" + names.after);
}

Status step_quantize_one_type(StepContext& step) {
  const int64_t precision = step.get_int("precision", 0);
  const DType x = step.dtype(0), scale = step.dtype(1);
  if (x == DType::kUndefined || scale == DType::kUndefined)
    return step.cannot("the types of x and its scale are not known");
  if (precision != 0 && static_cast<DType>(precision) != scale)
    return step.cannot("it divided in the type of the scale only");
  step.node.remove_attribute("precision");
  if (x == scale) return ok();
  Node& cast = step.before("Cast", {step.node.input(0)}, "x");
  cast.set_int("to", static_cast<int64_t>(scale));
  step.node.set_input(0, cast.output(0));
  return ok();
}

Status step_dequantize_scale_type(StepContext& step) {
  const auto output = static_cast<DType>(step.get_int("output_dtype", 0));
  const DType scale = step.dtype(1);
  if (step.node.output(0) == nullptr) return step.cannot("the output is absent");
  step.node.remove_attribute("output_dtype");
  if (output == DType::kUndefined || output == scale) return ok();
  step.after("Cast").set_int("to", static_cast<int64_t>(output));
  return ok();
}

// Resize.

Status step_resize_symmetric(StepContext& step) {
  if (step.get_string("coordinate_transformation_mode", "half_pixel") != "half_pixel_symmetric")
    return ok();
  // It differs from half_pixel only where a scale times a length is no whole number.
  if (!step.has_input(3)) {
    const auto dims = step.dims(0);
    const auto scales = step.constant_value(2);
    if (!dims || !scales || step.has("axes") ||
        scales->size() != static_cast<int64_t>(dims->size()))
      return step.cannot("it had no half_pixel_symmetric");
    for (size_t i = 0; i < dims->size(); ++i) {
      const double length =
          scales->get_double(static_cast<int64_t>(i)) * static_cast<double>((*dims)[i]);
      if (length != std::floor(length)) return step.cannot("it had no half_pixel_symmetric");
    }
  }
  step.node.set_string("coordinate_transformation_mode", "half_pixel");
  return ok();
}

Status step_resize_all_axes(StepContext& step) {
  Node& node = step.node;
  if (step.get_int("antialias", 0) != 0) {
    bool grows = false;
    if (const auto scales = step.constant_value(2); scales && !step.has_input(3)) {
      grows = true;
      for (int64_t i = 0; i < scales->size(); ++i) grows = grows && scales->get_double(i) >= 1;
    }
    if (!grows && step.get_string("mode", "nearest") != "nearest")
      return step.cannot("it had no antialias");
  }
  if (step.get_string("keep_aspect_ratio_policy", "stretch") != "stretch")
    return step.cannot("it had no keep_aspect_ratio_policy");
  if (const auto axes = step.get_ints("axes")) {
    const std::optional<size_t> rank = step.rank(0);
    if (!rank) return step.cannot("the rank of X is not known");
    std::vector<int64_t> places;
    for (const int64_t axis : *axes)
      places.push_back(axis < 0 ? axis + static_cast<int64_t>(*rank) : axis);
    for (const int64_t place : places)
      if (place < 0 || place >= static_cast<int64_t>(*rank))
        return step.cannot("an axis is out of range");
    if (step.has_input(1) &&
        step.get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
      std::vector<float> whole(2 * *rank, 0);
      std::fill(whole.begin() + static_cast<std::ptrdiff_t>(*rank), whole.end(), 1.0f);
      std::vector<int64_t> both = places;
      for (const int64_t place : places) both.push_back(place + static_cast<int64_t>(*rank));
      const std::array<int64_t, 1> count{static_cast<int64_t>(whole.size())};
      Value* const all =
          step.constant(Tensor::of(DType::kFloat32, count, std::span<const float>(whole)), "roi");
      node.set_input(
          1, step.before("ScatterElements", {all, step.ints(both, "axes"), node.input(1)}, "roi")
                 .output(0));
    }
    const uint32_t index = step.has_input(3) ? 3 : 2;
    if (index == 2) {
      const std::vector<float> ones(*rank, 1);
      const std::array<int64_t, 1> count{static_cast<int64_t>(*rank)};
      if (const auto scales = step.constant_value(2);
          scales && scales->size() == static_cast<int64_t>(places.size())) {
        std::vector<float> full = ones;
        for (size_t i = 0; i < places.size(); ++i)
          full[static_cast<size_t>(places[i])] =
              static_cast<float>(scales->get_double(static_cast<int64_t>(i)));
        node.set_input(
            2, step.constant(Tensor::of(DType::kFloat32, count, std::span<const float>(full)),
                             "scales"));
      } else {
        Value* const all =
            step.constant(Tensor::of(DType::kFloat32, count, std::span<const float>(ones)), "ones");
        node.set_input(2, step.before("ScatterElements",
                                      {all, step.ints(places, "axes"), node.input(2)}, "scales")
                              .output(0));
      }
    } else {
      const auto dims = step.dims(0);
      const auto sizes = step.constant_ints(3);
      if (dims && sizes && sizes->size() == places.size()) {
        std::vector<int64_t> full = *dims;
        for (size_t i = 0; i < places.size(); ++i)
          full[static_cast<size_t>(places[i])] = (*sizes)[i];
        node.set_input(3, step.ints(full, "sizes"));
      } else {
        Node& shape = step.before("Shape", {node.input(0)}, "shape");
        node.set_input(
            3, step.before("ScatterElements",
                           {shape.output(0), step.ints(places, "axes"), node.input(3)}, "sizes")
                   .output(0));
      }
    }
  }
  for (const char* name : {"axes", "antialias", "keep_aspect_ratio_policy"})
    node.remove_attribute(name);
  return ok();
}

Status step_resize_empty_inputs(StepContext& step) {
  const std::array<int64_t, 1> none{0};
  for (uint32_t i = 1; i <= 2; ++i)
    if (!step.has_input(i))
      step.node.set_input(i,
                          step.constant(Tensor::of(DType::kFloat32, none, std::span<const float>()),
                                        i == 1 ? "roi" : "scales"));
  return ok();
}

Status step_resize_asymmetric(StepContext& step) {
  Node& node = step.node;
  const Text mode = step.get_string("mode", "nearest");
  if (mode == "cubic") return step.cannot("it had no cubic interpolation");
  if (step.get_string("coordinate_transformation_mode", "half_pixel") != "asymmetric")
    return step.cannot("it knew asymmetric coordinates only");
  std::vector<float> scales;
  if (step.has_input(3)) {
    const auto dims = step.dims(0);
    const auto sizes = step.constant_ints(3);
    if (!dims || !sizes || sizes->size() != dims->size())
      return step.cannot("it took scales, which follow from known sizes only");
    for (size_t i = 0; i < dims->size(); ++i)
      scales.push_back(static_cast<float>((*sizes)[i]) / static_cast<float>((*dims)[i]));
  } else if (const auto given = step.constant_value(2)) {
    for (int64_t i = 0; i < given->size(); ++i)
      scales.push_back(static_cast<float>(given->get_double(i)));
  }
  if (mode == "nearest") {
    const bool grows = !scales.empty() && std::all_of(scales.begin(), scales.end(),
                                                      [](float scale) { return scale >= 1; });
    if (step.get_string("nearest_mode", "round_prefer_floor") != "floor" || !grows)
      return step.cannot("it rounded coordinates down only, and only where axes grow");
  }
  Value* given = node.input(2);
  if (step.has_input(3)) {
    const std::array<int64_t, 1> count{static_cast<int64_t>(scales.size())};
    given =
        step.constant(Tensor::of(DType::kFloat32, count, std::span<const float>(scales)), "scales");
  }
  while (node.inputs().size() > 1)
    node.remove_input(static_cast<uint32_t>(node.inputs().size() - 1));
  node.add_input(given);
  for (const char* name : {"coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a",
                           "exclude_outside", "extrapolation_value"})
    node.remove_attribute(name);
  return ok();
}

Status step_resize_upsample(StepContext& step) {
  const auto scales = step.constant_value(1);
  if (!scales) return step.cannot("the scales must be constant there");
  for (int64_t i = 0; i < scales->size(); ++i)
    if (scales->get_double(i) < 1) return step.cannot("axes could only grow");
  step.node.set_op_type("Upsample");
  return ok();
}

}  // namespace tombolo::ops
