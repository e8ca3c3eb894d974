// Rotary position embeddings.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/microsoft/rotate.h"
#include "ops/schema.h"

namespace tombolo::ops {

template <typename T>
Status rotate_by_position(const KernelContext& context, Tensor& x, int64_t width, int64_t first) {
  const int64_t heads = x.dim(0) * x.dim(1), steps = x.dim(2), size = x.dim(3), half = width / 2;
  if (width < 0 || width > size || width % 2 != 0)
    return context.error("rotary_embedding_dim is " + std::to_string(width) + ", heads have " +
                         std::to_string(size) + " features");
  std::vector<T> cosine(static_cast<size_t>(half)), sine(static_cast<size_t>(half));
  for (int64_t s = 0; s < steps; ++s) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(first + s) /
          std::pow(10000.0, 2 * static_cast<double>(i) / static_cast<double>(width));
      cosine[static_cast<size_t>(i)] = static_cast<T>(std::cos(angle));
      sine[static_cast<size_t>(i)] = static_cast<T>(std::sin(angle));
    }
    for (int64_t h = 0; h < heads; ++h)
      rotate_features(x.data<T>() + (h * steps + s) * size, half, cosine.data(), sine.data(),
                      false);
  }
  return ok();
}

template Status rotate_by_position<float>(const KernelContext&, Tensor&, int64_t, int64_t);
template Status rotate_by_position<double>(const KernelContext&, Tensor&, int64_t, int64_t);

namespace {

/// Where heads lie in [batch, steps, heads * size] or [batch, heads, steps, size].
struct Layout {
  int64_t batch, heads, steps, size;
  int64_t batch_stride, head_stride, step_stride;
};

Result<Layout> read_layout(const KernelContext& context, const Tensor& x, int64_t cache_width) {
  if (x.rank() == 4) {
    const int64_t line = x.dim(2) * x.dim(3);
    return Layout{x.dim(0), x.dim(1), x.dim(2), x.dim(3), x.dim(1) * line, line, x.dim(3)};
  }
  const int64_t given = context.attributes.get_int("num_heads", 0);
  const int64_t turned = context.attributes.get_int("rotary_embedding_dim", 0);
  if (x.rank() != 3) return context.error("input must have rank 3 or 4, is " + to_string(x));
  if (turned > 0 && given < 1)
    return context.error("num_heads is needed with rotary_embedding_dim and rank 3");
  const int64_t heads = given > 0 ? given : cache_width == 0 ? 1 : x.dim(2) / (2 * cache_width);
  if (heads < 1 || x.dim(2) % heads != 0)
    return context.error("input " + to_string(x) + " does not split into " + std::to_string(heads) +
                         " heads");
  const int64_t size = x.dim(2) / heads;
  return Layout{x.dim(0), heads, x.dim(1), size, x.dim(1) * x.dim(2), size, x.dim(2)};
}

template <typename T>
Status rotary(KernelContext& context, const Tensor& x) {
  TRY(const Tensor* positions, context.input(1));
  TRY(const Tensor* cosines, context.input(2));
  TRY(const Tensor* sines, context.input(3));
  if (cosines->rank() != 2 || sines->dims() != cosines->dims())
    return context.error("cos_cache and sin_cache must be matrices of one shape, are " +
                         to_string(*cosines) + " and " + to_string(*sines));
  const int64_t longest = cosines->dim(0), half = cosines->dim(1);
  TRY(const Layout at, read_layout(context, x, half));
  const int64_t turned = context.attributes.get_int("rotary_embedding_dim", 0);
  if (2 * half > at.size || (turned > 0 && turned != 2 * half))
    return context.error("the caches turn " + std::to_string(2 * half) + " features, heads have " +
                         std::to_string(at.size) + ", rotary_embedding_dim is " +
                         std::to_string(turned));
  const bool each = positions->rank() == 2;
  if (each) CHECK_OK(check_dims(context, "position_ids", *positions, {{at.batch, at.steps}}));
  if (!each && positions->size() != 1)
    return context.error("position_ids must be one offset or [batch, steps], is " +
                         to_string(*positions));
  const int64_t count = positions->size() == 0 ? 0 : at.batch * at.steps;
  std::vector<int64_t> rows(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t start = positions->get_int64(each ? i : 0);
    if (start < 0 || start >= longest || (!each && start + i % at.steps >= longest))
      return context.error("position_ids has the value " + std::to_string(start) +
                           ", the caches have " + std::to_string(longest) + " rows");
    rows[static_cast<size_t>(i)] = each ? start : start + i % at.steps;
  }
  const bool interleaved = context.attributes.get_int("interleaved", 0) != 0;
  TRY(const Tensor in, as<T>(context, x));
  TRY(const Tensor cosine, as<T>(context, *cosines));
  TRY(const Tensor sine, as<T>(context, *sines));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  std::copy_n(in.data<T>(), in.size(), y.data<T>());
  for (int64_t b = 0; b < at.batch; ++b)
    for (int64_t s = 0; s < at.steps; ++s) {
      const int64_t row = rows[static_cast<size_t>(b * at.steps + s)] * half;
      for (int64_t h = 0; h < at.heads; ++h)
        rotate_features(y.data<T>() + b * at.batch_stride + h * at.head_stride + s * at.step_stride,
                        half, cosine.data<T>() + row, sine.data<T>() + row, interleaved);
    }
  return give(context, 0, x.dtype(), std::move(y));
}

/// Which of the three positions (time, height, width) turns each pair.
Result<std::vector<int64_t>> pair_sections(const KernelContext& context, int64_t half) {
  const auto sections = context.attributes.get_ints("mrope_section");
  int64_t sum = 0;
  for (const int64_t section : sections)
    if (section < 0 || (sum += section) > half) sum = half + 1;
  if (sections.size() != 3 || sum != half)
    return context.error("mrope_section must be three numbers that add up to " +
                         std::to_string(half));
  std::vector<int64_t> of(static_cast<size_t>(half), 0);
  if (context.attributes.get_int("mrope_layout", 0) == 0) {
    std::fill(of.begin() + sections[0], of.end(), 1);
    std::fill(of.end() - sections[2], of.end(), 2);
    return of;
  }
  for (const int64_t axis : {1, 2})
    for (int64_t i = axis; i < std::min(half, 3 * sections[static_cast<size_t>(axis)]); i += 3)
      of[static_cast<size_t>(i)] = axis;
  return of;
}

template <typename T>
Status mrotary(KernelContext& context, const Tensor& x) {
  TRY(const Tensor* positions, context.input(1));
  TRY(const Tensor* cosines, context.input(2));
  TRY(const Tensor* sines, context.input(3));
  if (cosines->rank() != 2 || sines->dims() != cosines->dims())
    return context.error("cos_cache and sin_cache must be matrices of one shape, are " +
                         to_string(*cosines) + " and " + to_string(*sines));
  const int64_t longest = cosines->dim(0), half = cosines->dim(1);
  TRY(const Layout at, read_layout(context, x, half));
  const int64_t turned = context.attributes.get_int("rotary_embedding_dim", 0);
  if (2 * half > at.size || (turned > 0 && turned != 2 * half))
    return context.error("the caches turn " + std::to_string(2 * half) + " features, heads have " +
                         std::to_string(at.size));
  CHECK_OK(check_dims(context, "position_ids", *positions, {{3, at.batch, at.steps}}));
  TRY(const std::vector<int64_t> sections, pair_sections(context, half));
  const bool interleaved = context.attributes.get_int("interleaved", 0) != 0;
  TRY(const Tensor in, as<T>(context, x));
  TRY(const Tensor cosine, as<T>(context, *cosines));
  TRY(const Tensor sine, as<T>(context, *sines));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  std::copy_n(in.data<T>(), in.size(), y.data<T>());
  std::vector<T> c(static_cast<size_t>(half)), s(static_cast<size_t>(half));
  const int64_t plane = at.batch * at.steps;
  for (int64_t token = 0; token < plane; ++token) {
    for (int64_t i = 0; i < half; ++i) {
      const int64_t row = positions->get_int64(sections[static_cast<size_t>(i)] * plane + token);
      if (row < 0 || row >= longest)
        return context.error("position_ids has the value " + std::to_string(row) +
                             ", the caches have " + std::to_string(longest) + " rows");
      c[static_cast<size_t>(i)] = cosine.data<T>()[row * half + i];
      s[static_cast<size_t>(i)] = sine.data<T>()[row * half + i];
    }
    T* first = y.data<T>() + token / at.steps * at.batch_stride + token % at.steps * at.step_stride;
    for (int64_t h = 0; h < at.heads; ++h)
      rotate_features(first + h * at.head_stride, half, c.data(), s.data(), interleaved);
  }
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_mrotary_embedding(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return mrotary<T>(context, *x); });
}

Status run_ms_rotary_embedding(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return rotary<T>(context, *x); });
}

/// q cos(emb) + q_rot sin(emb), and the same for k; sines and cosines are rounded to q's type.
Status run_gemma_rotary_embedding(KernelContext& context) {
  TRY(const Tensor* emb, context.input(0));
  TRY(const Tensor* first, context.input(1));
  if (emb->rank() != 3 || first->rank() != 4)
    return context.error("emb must have rank 3, q rank 4, are " + to_string(*emb) + " and " +
                         to_string(*first));
  const int64_t batch = emb->dim(0), steps = emb->dim(1), size = emb->dim(2);
  for (size_t which = 0; which < 2; ++which) {
    TRY(const Tensor* x, context.input(1 + 2 * which));
    TRY(const Tensor* turned, context.input(2 + 2 * which));
    if (x->rank() != 4) return context.error("q and k must have rank 4, one is " + to_string(*x));
    CHECK_OK(check_dims(context, which == 0 ? "q" : "k", *x, {{batch, x->dim(1), steps, size}}));
    CHECK_OK(check_dims(context, which == 0 ? "q_rot" : "k_rot", *turned, x->dims()));
    TRY(Tensor * y, context.output(which, x->dtype(), x->dims()));
    TRY(Tensor rounded, context.allocate(x->dtype(), {{2}}));
    const int64_t line = steps * size;
    for (int64_t i = 0; i < x->size(); ++i) {
      const int64_t b = i / line / x->dim(1);
      const double angle = emb->get_double(b * line + i % line);
      rounded.set_double(0, std::cos(angle));
      rounded.set_double(1, std::sin(angle));
      y->set_double(i, x->get_double(i) * rounded.get_double(0) +
                           turned->get_double(i) * rounded.get_double(1));
    }
  }
  return ok();
}

Status infer_gemma_rotary_embedding(InferContext& context) {
  context.same_as_input(0, 1);
  context.same_as_input(1, 3);
  return ok();
}

}  // namespace

OPERATOR(microsoft_RotaryEmbedding) = {
    .name = "RotaryEmbedding",
    .domain = "com.microsoft",
    .doc = "rotates pairs of features by angles from caches of cosines and sines",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"position_ids", "M"},
            {"cos_cache", "T"},
            {"sin_cache", "T"},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"interleaved", Attr::kInt},
            {"is_packed_batching", Attr::kInt},
            {"num_heads", Attr::kInt},
            {"rotary_embedding_dim", Attr::kInt},
            {"scale", Attr::kFloat},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
            {"M", {{1, kI64}}},
        },
    .infer = infer_unary,
    .reference = run_ms_rotary_embedding,
};

OPERATOR(microsoft_MRotaryEmbedding) = {
    .name = "MRotaryEmbedding",
    .domain = "com.microsoft",
    .doc = "rotary embedding by three positions: time, height, width",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"position_ids", "M"},
            {"cos_cache", "T"},
            {"sin_cache", "T"},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"interleaved", Attr::kInt},
            {"is_packed_batching", Attr::kInt},
            {"mrope_layout", Attr::kInt},
            {"mrope_section", required(Attr::kInts)},
            {"num_heads", Attr::kInt},
            {"rotary_embedding_dim", Attr::kInt},
            {"scale", Attr::kFloat},
        },
    .types = {{"T", {{1, kBf16 | kF16 | kF32}}}, {"M", {{1, kI64}}}},
    .infer = infer_unary,
    .reference = run_mrotary_embedding,
};

OPERATOR(microsoft_GemmaRotaryEmbedding) = {
    .name = "GemmaRotaryEmbedding",
    .domain = "com.microsoft",
    .doc = "q cos(emb) + q_rot sin(emb), and the same for k",
    .versions = {1},
    .inputs =
        {
            {"emb", "U"},
            {"q", "T"},
            {"q_rot", "T"},
            {"k", "T"},
            {"k_rot", "T"},
        },
    .outputs =
        {
            {"output1", "T"},
            {"output2", "T"},
        },
    .types =
        {
            {"T", {{1, kF16}}},
            {"U", {{1, kF32}}},
        },
    .infer = infer_gemma_rotary_embedding,
    .reference = run_gemma_rotary_embedding,
};

}  // namespace tombolo::ops
