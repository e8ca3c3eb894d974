// What samples and sums windows of images, for operator sets that have no operator for it.

#include <string>
#include <vector>

#include "ops/expansions.h"
#include "ops/kernels/grid_taps.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {
namespace {

std::string into(DType dtype) {
  return "Cast <to = " + std::to_string(static_cast<int>(dtype)) + "> ";
}

std::string name_at(const char* name, size_t axis) { return name + std::to_string(axis); }

std::string joined(std::span<const int64_t> values) {
  std::string list;
  for (const int64_t value : values) list += (list.empty() ? "" : ", ") + std::to_string(value);
  return "[" + list + "]";
}

/// Attribute `name` with one number for each of `count`, or `fallback` for all.
std::vector<int64_t> list_of(const StepContext& step, Text name, size_t count, int64_t fallback) {
  auto given = step.get_ints(name);
  if (!given || given->empty()) return std::vector<int64_t>(count, fallback);
  return *std::move(given);
}

/// Writes the lines of GridSample: positions of each axis, the elements that they take and their
/// weights, and the sum over all combinations.
class GridWriter {
 public:
  GridWriter(StepContext& step, size_t axes, GridMode mode, GridPadding padding)
      : step_(step),
        axes_(axes),
        mode_(mode),
        padding_(padding),
        aligned_(step.get_int("align_corners", 0) != 0),
        type_(step.dtype(0) == DType::kFloat64 || step.dtype(1) == DType::kFloat64
                  ? DType::kFloat64
                  : DType::kFloat32) {}

  std::string write() {
    const auto axes = static_cast<int64_t>(axes_);
    std::vector<int64_t> channels_last{0};
    for (int64_t j = 0; j < axes; ++j) channels_last.push_back(j + 2);
    channels_last.push_back(1);
    number("zero", 0);
    number("one", 1);
    number("two", 2);
    number("half", 0.5);
    number("outside", -8);
    number("far", 1e15);
    text_ += int_scalar("none", 0) + int_scalar("step_1", 1) +
             int_list("rows_shape", {{0, -1, axes}}) + int_list("column", {{-1, 1}}) +
             int_list("first", {{0}}) + int_list("second", {{1}}) + int_list("third", {{2}}) +
             int_list("behind", {{axes + 1}}) + int_list("rest", {{-1}});
    line("shape", "Shape (X)");
    line("samples", "Gather (shape, none)");
    line("points", "Reshape (" + typed("grid", 1, type_) + ", rows_shape)");
    // Elements as rows of their channels.
    line("channels_last", "Transpose <perm = " + joined(channels_last) + "> (X)");
    const std::string elements = typed("channels_last", 0, type_);
    line("channels", "Slice (shape, second, third)");
    line("element_shape", "Concat <axis = 0> (rest, channels)");
    line("elements", "Reshape (" + elements + ", element_shape)");
    std::string plane = "step_1";
    for (size_t j = 0; j < axes_; ++j) {
      axis(j);
      plane = line(name_at("plane_", j), "Mul (" + plane + ", " + name_at("count_", j) + ")");
    }
    line("sample_line", "Range (none, samples, step_1)");
    line("sample_column", "Reshape (sample_line, column)");
    line("sample_start", "Mul (sample_column, " + plane + ")");
    combine(0, "sample_start", "", "");
    line("by_channel", "Transpose <perm = [0, 2, 1]> (" + sum_ + ")");
    if (step_.dtype(0) != type_) line("by_channel_typed", into(step_.dtype(0)) + "(by_channel)");
    line("grid_shape", "Shape (grid)");
    line("places", "Slice (grid_shape, second, behind)");
    line("kept", "Slice (shape, first, third)");
    line("result_shape", "Concat <axis = 0> (kept, places)");
    line("Y", std::string("Reshape (by_channel") + (step_.dtype(0) != type_ ? "_typed" : "") +
                  ", result_shape)");
    return std::move(text_);
  }

 private:
  struct Tap {
    std::string index, weight;  ///< [N, points]; no weight: 1
  };

  std::string line(const std::string& name, const std::string& call) {
    text_ += name + " = " + call + "\n";
    return name;
  }
  /// A value of input `index`'s type in another one.
  std::string typed(const std::string& name, size_t index, DType type) {
    return step_.dtype(index) == type ? name : line(name + "_typed", into(type) + "(" + name + ")");
  }
  void number(const char* name, double value) { text_ += typed_scalar(name, type_, value); }
  std::string fresh(const std::string& call) { return line("v" + std::to_string(++count_), call); }
  /// Writes a line: of two calls as arguments a compiler makes either first.
  std::string call(const char* op, const std::string& a, const std::string& b) {
    return fresh(std::string(op) + " (" + a + ", " + b + ")");
  }
  std::string call(const char* op, const std::string& a) {
    return fresh(std::string(op) + " (" + a + ")");
  }
  std::string where(const std::string& condition, const std::string& a, const std::string& b) {
    return fresh("Where (" + condition + ", " + a + ", " + b + ")");
  }

  /// x, reflected into [low, high] where it lies outside.
  std::string reflected(size_t j, const std::string& x, const std::string& beyond) {
    const std::string low = aligned_ ? "zero" : "low", range = name_at("range_", j);
    const std::string away = call("Abs", call("Sub", x, low));
    const std::string turns = call("Floor", call("Div", away, range));
    const std::string rest = call("Sub", away, call("Mul", turns, range));
    const std::string halves = call("Mul", turns, "half");
    const std::string even = call("Equal", halves, call("Floor", halves));
    const std::string up = call("Add", rest, low);
    const std::string inside = where(even, up, call("Sub", name_at("high_", j), rest));
    return where(beyond, inside, x);
  }
  std::string beyond(const std::string& x, const std::string& low, const std::string& high) {
    // So that NaN lies outside.
    const std::string above = call("Not", call("Less", x, low));
    const std::string within = call("And", above, call("Not", call("Greater", x, high)));
    const std::string without = call("Not", within);
    return call("Or", without, call("IsNaN", x));
  }
  std::string outside(const std::string& index, const std::string& last) {
    const std::string below = call("Less", index, "zero");
    return call("Or", below, call("Greater", index, last));
  }

  void axis(size_t j) {
    const std::string n = std::to_string(j);
    text_ += int_scalar(("component_" + n).c_str(), static_cast<int64_t>(axes_ - 1 - j)) +
             int_scalar(("axis_" + n).c_str(), static_cast<int64_t>(j + 2));
    line("count_" + n, "Gather (shape, axis_" + n + ")");
    line("length_" + n, into(type_) + "(count_" + n + ")");
    line("last_" + n, "Sub (length_" + n + ", one)");
    line("high_" + n, aligned_ ? "Add (last_" + n + ", zero)" : "Add (last_" + n + ", half)");
    if (j == 0 && !aligned_) line("low", "Neg (half)");
    if (padding_ == GridPadding::kReflection) {
      if (aligned_)  // One element has no range.
        line("range_" + n, "Max (last_" + n + ", half)");
      else
        line("range_" + n, "Add (length_" + n + ", zero)");
    }
    line("given_" + n, "Gather <axis = 2> (points, component_" + n + ")");
    std::string x = call("Add", "given_" + n, "one");
    if (aligned_)
      x = call("Mul", call("Mul", x, "half"), "last_" + n);
    else
      x = call("Mul", call("Sub", call("Mul", x, "length_" + n), "one"), "half");
    if (mode_ == GridMode::kNearest) x = call("Round", x);
    const std::string low = aligned_ ? "zero" : "low";
    if (padding_ == GridPadding::kBorder) {
      const std::string clamped = call("Min", call("Max", x, "zero"), "last_" + n);
      const std::string number = where(call("IsNaN", x), "zero", clamped);
      x = where(beyond(x, low, "high_" + n), number, x);
    } else if (padding_ == GridPadding::kReflection) {
      x = reflected(j, x, beyond(x, low, "high_" + n));
    }
    // What lies far outside is outside in every mode; NaN too.
    x = where(call("Less", call("Abs", x), "far"), x, "outside");
    const std::string base = call("Floor", x);
    std::vector<Tap>& taps = taps_.emplace_back();
    if (mode_ == GridMode::kNearest) {
      taps.push_back(tap(j, base, ""));
    } else if (mode_ == GridMode::kLinear) {
      const std::string t = call("Sub", x, base);
      taps.push_back(tap(j, base, call("Sub", "one", t)));
      taps.push_back(tap(j, call("Add", base, "one"), t));
    } else {
      const std::string t = call("Sub", x, base), rest = call("Sub", "one", t);
      const std::string before = call("Sub", base, "one"), after = call("Add", base, "one"),
                        second = call("Add", base, "two");
      taps.push_back(tap(j, before, far(call("Add", t, "one"))));
      taps.push_back(tap(j, base, near(t)));
      taps.push_back(tap(j, after, near(rest)));
      taps.push_back(tap(j, second, far(call("Add", rest, "one"))));
    }
  }
  /// Keys' cubic kernel with a = -0.75, at distances below and above 1.
  std::string near(const std::string& d) {
    constants();
    const std::string inner = call("Mul", call("Sub", call("Mul", d, "near_3"), "near_2"), d);
    return call("Add", call("Mul", inner, d), "one");
  }
  std::string far(const std::string& d) {
    constants();
    std::string inner = call("Mul", call("Add", call("Mul", d, "far_3"), "far_2"), d);
    inner = call("Mul", call("Add", inner, "far_1"), d);
    return call("Add", inner, "far_0");
  }
  void constants() {
    if (cubic_) return;
    cubic_ = true;
    number("near_3", 1.25);
    number("near_2", 2.25);
    number("far_3", -0.75);
    number("far_2", 3.75);
    number("far_1", -6);
    number("far_0", 3);
  }

  Tap tap(size_t j, std::string index, std::string weight) {
    const std::string last = name_at("last_", j);
    if (padding_ == GridPadding::kZeros) {
      const std::string inside = fresh(into(type_) + "(" + call("Not", outside(index, last)) + ")");
      weight = weight.empty() ? inside : call("Mul", weight, inside);
    } else if (padding_ == GridPadding::kReflection) {
      index = reflected(j, index, outside(index, last));
    }
    index = call("Min", call("Max", index, "zero"), last);
    return {fresh(into(DType::kInt64) + "(" + index + ")"), weight};
  }

  /// One tap of each axis from `j` on.
  void combine(size_t j, const std::string& start, const std::string& index,
               const std::string& weight) {
    if (j == axes_) {
      const std::string place = call("Add", index, start);
      std::string value = call("Gather", "elements", place);  // [N, points, C]
      if (!weight.empty()) value = call("Mul", value, fresh("Unsqueeze (" + weight + ", third)"));
      sum_ = sum_.empty() ? value : call("Add", sum_, value);
      return;
    }
    for (const Tap& tap : taps_[j]) {
      const std::string here =
          j == 0 ? tap.index : call("Add", call("Mul", index, name_at("count_", j)), tap.index);
      const std::string times = weight.empty()       ? tap.weight
                                : tap.weight.empty() ? weight
                                                     : call("Mul", weight, tap.weight);
      combine(j + 1, start, here, times);
    }
  }

  StepContext& step_;
  size_t axes_;
  GridMode mode_;
  GridPadding padding_;
  bool aligned_, cubic_ = false;
  DType type_;
  std::string text_, sum_;
  int count_ = 0;
  std::vector<std::vector<Tap>> taps_;
};

}  // namespace

Status expand_grid_sample(StepContext& step) {
  const auto rank = step.rank(0) ? step.rank(0) : step.rank(1);
  GridMode mode;
  GridPadding padding;
  if (!read_grid_mode(step.get_string("mode", "linear"), mode) ||
      !read_grid_padding(step.get_string("padding_mode", "zeros"), padding))
    return step.cannot("the mode is not known");
  if (!rank || *rank < 3) return step.cannot("the rank of the input is not known");
  if (!is_float(step.dtype(0)) || !is_float(step.dtype(1)))
    return step.cannot("in parts it samples floating-point numbers only");
  return step.replace(13, GridWriter(step, *rank - 2, mode, padding).write());
}

Status expand_affine_grid(StepContext& step) {
  const DType dtype = step.dtype(0);
  std::optional<int64_t> count = step.dim(0, 1);
  if (const auto entries = step.dim(1, 0); !count && entries) count = *entries - 2;
  if (!count || (*count != 2 && *count != 3)) return step.cannot("the number of axes is not known");
  if (!is_float(dtype)) return step.cannot("the type of the input is not known");
  const auto axes = static_cast<size_t>(*count);
  const bool aligned = step.get_int("align_corners", 0) != 0;
  std::string text = int_scalar("none", 0) + int_scalar("step_1", 1) + int_list("first", {{0}}) +
                     int_list("second", {{1}}) + int_list("third", {{2}}) +
                     int_list("behind", {{*count + 2}}) + int_list("last", {{*count}}) +
                     int_list("row", {{-1, *count + 1}}) + typed_scalar("one", dtype, 1);
  const auto line = [&](const std::string& name, const std::string& call) {
    text += name + " = " + call + "\n";
  };
  line("places", "Slice (size, third, behind)");
  std::string coordinates;
  for (size_t j = 0; j < axes; ++j) {
    const std::string n = std::to_string(j);
    std::vector<int64_t> along(axes, 1);
    along[j] = -1;
    text += int_scalar("axis_" + n, static_cast<int64_t>(j) + 2) + int_list("along_" + n, along);
    line("count_" + n, "Gather (size, axis_" + n + ")");
    line("numbers_" + n, "Range (none, count_" + n + ", step_1)");
    line("number_" + n, into(dtype) + "(numbers_" + n + ")");
    line("length_" + n, into(dtype) + "(count_" + n + ")");
    line("twice_" + n, "Add (number_" + n + ", number_" + n + ")");
    // Of the middles of cells from -1 to 1, or of their ends; one cell has its end at -1.
    if (aligned) {
      line("steps_" + n, "Sub (length_" + n + ", one)");
      line("divisor_" + n, "Max (steps_" + n + ", one)");
      line("share_" + n, "Div (twice_" + n + ", divisor_" + n + ")");
    } else {
      line("odd_" + n, "Add (twice_" + n + ", one)");
      line("share_" + n, "Div (odd_" + n + ", length_" + n + ")");
    }
    line("line_" + n, "Sub (share_" + n + ", one)");
    line("spread_" + n, "Reshape (line_" + n + ", along_" + n + ")");
    line("full_" + n, "Expand (spread_" + n + ", places)");
    line("entry_" + n, "Unsqueeze (full_" + n + ", last)");
    coordinates = "entry_" + n + ", " + coordinates;  // the last axis comes first
  }
  line("ones", "Expand (one, places)");
  line("one_entry", "Unsqueeze (ones, last)");
  line("points", "Concat <axis = " + std::to_string(axes) + "> (" + coordinates + "one_entry)");
  line("rows", "Reshape (points, row)");
  line("map", "Transpose <perm = [0, 2, 1]> (theta)");
  line("moved", "MatMul (rows, map)");
  line("samples", "Slice (size, first, second)");
  line("shape", "Concat <axis = 0> (samples, places, last)");
  line("grid", "Reshape (moved, shape)");
  return step.replace(13, text);
}

Status expand_col2im(StepContext& step) {
  const DType dtype = step.dtype(0);
  const auto block = step.constant_ints(2);
  if (!block || block->empty()) return step.cannot("the block must be constant there");
  if (!is_float(dtype)) return step.cannot("in parts it sums floating-point numbers only");
  const size_t axes = block->size();
  const auto strides = list_of(step, "strides", axes, 1), pads = list_of(step, "pads", 2 * axes, 0),
             dilations = list_of(step, "dilations", axes, 1);
  if (strides.size() != axes || pads.size() != 2 * axes || dilations.size() != axes)
    return step.cannot("its attributes do not fit the block");
  // A transposed convolution whose kernel for tap i is 1 at place i.
  int64_t taps = 1;
  std::vector<int64_t> reach, begins, kernel{0, 1}, extra, along;
  for (size_t j = 0; j < axes; ++j) {
    if ((*block)[j] < 1 || (*block)[j] > INT32_MAX || strides[j] < 1 || dilations[j] < 1 ||
        taps > INT32_MAX)
      return step.cannot("its block is not one");
    taps *= (*block)[j];
    reach.push_back(dilations[j] * ((*block)[j] - 1) + 1 - pads[j] - pads[axes + j]);
    begins.push_back(pads[j]);
    kernel.push_back((*block)[j]);
    extra.push_back(strides[j] - 1);
    along.push_back(static_cast<int64_t>(j) + 2);
  }
  kernel[0] = taps;
  std::string text =
      int_list("reach", reach) + int_list("strides", strides) + int_list("one", {{1}}) +
      int_list("none", {{0}}) + int_list("rest", {{-1}}) + int_list("maps", {{-1, taps}}) +
      int_list("eye_shape", {{taps, taps}}) + int_list("kernel_shape", kernel) +
      int_list("begins", begins) + int_list("along", along) +
      "room = Sub (image_shape, reach)\nsteps = Div (room, strides)\n"
      "blocks = Add (steps, one)\ncolumn_shape = Concat <axis = 0> (maps, blocks)\n"
      "columns = Reshape (input, column_shape)\n"
      "zeros = ConstantOfShape (eye_shape)\n"
      "eye = EyeLike <dtype = " +
      std::to_string(static_cast<int>(dtype)) + "> (zeros)\nkernel = Reshape (eye, kernel_shape)\n";
  text += "summed = ConvTranspose <strides = " + joined(strides) +
          ", dilations = " + joined(dilations) + ", output_padding = " + joined(extra) +
          "> (columns, kernel)\n";
  text +=
      "ends = Add (image_shape, begins)\ncut = Slice (summed, begins, ends, along)\n"
      "shape = Shape (input)\nsamples = Slice (shape, none, one)\n"
      "result_shape = Concat <axis = 0> (samples, rest, image_shape)\n"
      "output = Reshape (cut, result_shape)\n";
  return step.replace(13, text);
}

Status expand_deform_conv(StepContext& step) {
  const auto w = step.dims(1);
  const auto channels = step.dim(0, 1);
  const DType dtype = step.dtype(0);
  if (!w || w->size() != 4 || step.rank(0) != 4)
    return step.cannot("in parts it takes images and weights of known sizes only");
  if (!channels || !is_float(dtype)) return step.cannot("the number of channels is not known");
  const int64_t group = step.get_int("group", 1), moved = step.get_int("offset_group", 1);
  const auto strides = list_of(step, "strides", 2, 1), pads = list_of(step, "pads", 4, 0),
             dilations = list_of(step, "dilations", 2, 1);
  const int64_t outputs = (*w)[0], height = (*w)[2], width = (*w)[3];
  if (strides.size() != 2 || pads.size() != 4 || dilations.size() != 2 || group < 1 || moved < 1 ||
      height < 1 || width < 1 || *channels % moved != 0 || *channels % group != 0 ||
      outputs % group != 0)
    return step.cannot("its attributes do not fit its inputs");
  const DType type = dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const int64_t taps = height * width;
  std::string text = int_scalar("none", 0) + int_scalar("one", 1) + typed_scalar("two", type, 2) +
                     typed_scalar("unit", type, 1) + int_list("last", {{-1}}) +
                     int_list("from_2", {{2}}) + int_list("to_4", {{4}});
  const auto line = [&](const std::string& name, const std::string& call) {
    text += name + " = " + call + "\n";
  };
  const auto typed = [&](const std::string& name) {
    if (type == dtype) return name;
    line(name + "_typed", into(type) + "(" + name + ")");
    return name + "_typed";
  };
  line("shape", "Shape (X)");
  line("image_size", "Slice (shape, from_2, to_4)");
  line("offset_shape", "Shape (offset)");
  line("out_size", "Slice (offset_shape, from_2, to_4)");
  // Groups that move together are pictures of their own: [N * groups, taps, 2, height, width].
  text += int_list("moves_begin", {{-1, taps, 2}});
  line("moves_shape", "Concat <axis = 0> (moves_begin, out_size)");
  line("moves", "Reshape (" + typed("offset") + ", moves_shape)");
  for (const int axis : {0, 1}) {
    const std::string n = axis == 0 ? "_y" : "_x";
    const auto at = static_cast<size_t>(axis);
    // Where a tap lies before it is moved: [taps, 1, 1] beside the windows' begins.
    std::string places;
    for (int64_t tap = 0; tap < taps; ++tap)
      places += (tap == 0 ? "" : ", ") +
                std::to_string((axis == 0 ? tap / width : tap % width) * dilations[at] - pads[at]);
    line("taps" + n,
         "Constant <value = int64[" + std::to_string(taps) + ", 1, 1] {" + places + "}> ()");
    text +=
        int_scalar("axis" + n, axis + 2) + int_scalar("part" + n, axis) +
        int_scalar("stride" + n, strides[at]) +
        int_list("line" + n, axis == 0 ? std::vector<int64_t>{-1, 1} : std::vector<int64_t>{-1});
    line("size" + n, "Gather (offset_shape, axis" + n + ")");
    line("windows" + n, "Range (none, size" + n + ", one)");
    line("starts" + n, "Mul (windows" + n + ", stride" + n + ")");
    line("begins" + n, "Reshape (starts" + n + ", line" + n + ")");
    line("still" + n, "Add (taps" + n + ", begins" + n + ")");
    line("still_typed" + n, into(type) + "(still" + n + ")");
    line("move" + n, "Gather <axis = 2> (moves, part" + n + ")");
    line("place" + n, "Add (move" + n + ", still_typed" + n + ")");
    // As GridSample counts them: (2 place + 1) / length - 1.
    line("count" + n, "Gather (shape, axis" + n + ")");
    line("length" + n, into(type) + "(count" + n + ")");
    line("twice" + n, "Mul (place" + n + ", two)");
    line("odd" + n, "Add (twice" + n + ", unit)");
    line("share" + n, "Div (odd" + n + ", length" + n + ")");
    line("grid" + n, "Sub (share" + n + ", unit)");
    line("entry" + n, "Unsqueeze (grid" + n + ", last)");
  }
  text += int_list("grid_shape", {{0, taps, -1, 2}}) +
          int_list("image_begin", {{-1, *channels / moved}});
  line("entries", "Concat <axis = -1> (entry_x, entry_y)");
  line("grid", "Reshape (entries, grid_shape)");
  line("image_shape", "Concat <axis = 0> (image_begin, image_size)");
  line("image", "Reshape (" + typed("X") + ", image_shape)");
  line("taken",
       "GridSample <align_corners = 0, mode = \"bilinear\", padding_mode = \"zeros\"> (image, "
       "grid)");
  line("point_count", "Mul (size_y, size_x)");
  line("points", "Reshape (point_count, last)");
  std::string columns = "taken";  // [N * groups, C / groups, taps, points]
  if (step.has_input(4)) {
    text += int_list("mask_begin", {{-1, 1, taps}});
    line("mask_shape", "Concat <axis = 0> (mask_begin, points)");
    line("mask_points", "Reshape (" + typed("mask") + ", mask_shape)");
    line("masked", "Mul (taken, mask_points)");
    columns = "masked";
  }
  // A product for each group of channels.
  text += int_list("columns_begin", {{-1, group, *channels / group * taps}}) +
          int_list("weight_shape", {{group, outputs / group, -1}}) +
          int_list("result_begin", {{-1, outputs}});
  line("columns_shape", "Concat <axis = 0> (columns_begin, points)");
  line("columns", "Reshape (" + columns + ", columns_shape)");
  line("weight", "Reshape (" + typed("W") + ", weight_shape)");
  line("product", "MatMul (weight, columns)");
  line("result_shape", "Concat <axis = 0> (result_begin, out_size)");
  // The last of these lines gives Y.
  const bool cast = type != dtype, bias = step.has_input(3);
  line(cast || bias ? "result" : "Y", "Reshape (product, result_shape)");
  if (bias) {
    text += int_list("bias_shape", {{-1, 1, 1}});
    line("bias", "Reshape (" + typed("B") + ", bias_shape)");
    line(cast ? "shifted" : "Y", "Add (result, bias)");
  }
  if (cast) line("Y", into(dtype) + (bias ? "(shifted)" : "(result)"));
  return step.replace(16, text);
}

}  // namespace tombolo::ops
