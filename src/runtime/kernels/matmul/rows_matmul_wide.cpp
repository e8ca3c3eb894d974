// MatMul of doubles, also with sides to be turned, and of 32- and 64-bit integers, Gemm of doubles.

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm_wide.h"
#include "runtime/kernels/matmul/product_axes.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

struct WideState final : KernelState, ProductAxes {
  double alpha = 1, beta = 1;
  int64_t packed = 0;                     ///< elements of packed B; A turned lies behind
  const std::byte* constant_b = nullptr;  ///< packed, where there is one B and it is constant
};

bool plan_wide(const KernelQuery& q, bool gemm, WideState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2) return false;
  const DType dtype = q.dtype(0);
  if (dtype != DType::kFloat64 && (gemm || (dtype != DType::kInt32 && dtype != DType::kUInt32 &&
                                            dtype != DType::kInt64 && dtype != DType::kUInt64)))
    return false;
  for (size_t i = 1; i < q.inputs.size(); ++i)
    if ((i == 1 || q.has_input(i)) && q.dtype(i) != dtype) return false;
  const bool own = q.node.domain() == "ai.tombolo";
  bool trans_a = false, trans_b = false;
  if (gemm) {
    if (q.opset < 7 || q.dims(0).size() != 2 || q.dims(1).size() != 2) return false;
    s.beta = static_cast<double>(q.attributes.get_float("beta", 1));
  } else if (own && (q.inputs.size() > 2 || dtype != DType::kFloat64 ||
                     !q.attributes.get_string("activation", "").empty())) {
    return false;
  }
  if (gemm || own) {
    trans_a = q.attributes.get_int("transA", 0) != 0;
    trans_b = q.attributes.get_int("transB", 0) != 0;
    s.alpha = static_cast<double>(q.attributes.get_float("alpha", 1));
  }
  auto axes = product_axes(q, trans_a, trans_b);
  if (!axes || element_count(axes->output) == 0) return false;
  static_cast<ProductAxes&>(s) = *std::move(axes);
  if (gemm && q.has_input(2)) {
    const auto c = q.dims(2);
    if (c.size() > 2) return false;
    const int64_t rows = c.size() == 2 ? c[0] : 1, columns = c.empty() ? 1 : c.back();
    if ((rows != 1 && rows != s.m) || (columns != 1 && columns != s.n)) return false;
  }
  return true;
}

template <bool kGemm>
bool supports_wide(const KernelQuery& query) {
  WideState state;
  return plan_wide(query, kGemm, state);
}

template <typename Body>
auto with_width(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::kFloat64:
      return body(static_cast<double*>(nullptr));
    case DType::kInt32:
    case DType::kUInt32:
      return body(static_cast<uint32_t*>(nullptr));
    default:
      return body(static_cast<uint64_t*>(nullptr));
  }
}

template <bool kGemm>
Result<std::unique_ptr<KernelState>> prepare_wide(const PrepareContext& context) {
  auto state = std::make_unique<WideState>();
  plan_wide(context, kGemm, *state);
  with_width(context.dtype(0), [&]<typename T>(T*) {
    const int64_t width = wide_panel<T>();
    state->packed = (state->n + width - 1) / width * width * state->k;
    state->scratch_bytes =
        static_cast<size_t>(state->packed + (state->trans_a ? state->m * state->k : 0) + 64) *
        sizeof(T);
  });
  const bool one =
      std::all_of(state->b_at.begin(), state->b_at.end(), [](int64_t at) { return at == 0; });
  if (!one || context.constant(1) == nullptr) return state;
  const WideState& s = *state;
  const std::string key = "wide_b/" + std::string(name_of(active_isa())) + (s.trans_b ? "t" : "") +
                          std::to_string(s.ldb);
  TRY(state->constant_b, with_width(context.dtype(0), [&]<typename T>(T*) {
        const int64_t width = wide_panel<T>();
        return context.packed(
            1, key, static_cast<size_t>(s.packed + 64) * sizeof(T), [&](std::byte* target) {
              Tensor room;
              const Tensor& b = context.aligned_constant(1, room);
              pack_wide(reinterpret_cast<const T*>(b.data<std::byte>()), s.b_row(), s.b_column(),
                        s.k, s.n, 0, (s.n + width - 1) / width, reinterpret_cast<T*>(target));
            });
      }));
  return state;
}

template <typename T>
Status multiply(KernelRun& run) {
  const auto& s = run.state<WideState>();
  TRY(Tensor * y, run.output(0, run.input(0).dtype(), s.output));
  T* packed = reinterpret_cast<T*>(run.scratch());
  const int64_t width = wide_panel<T>(), panels = (s.n + width - 1) / width;
  // Tiles of rows and of panels so that there is one for each thread, and B's part stays near.
  const int64_t rows = wide_rows<T>() * 4, row_blocks = (s.m + rows - 1) / rows;
  const int64_t shares =
      run.options().threads == 1 ? 1 : (2 * run.options().threads - 1) / row_blocks + 1;
  const int64_t together = std::max<int64_t>(
                    1, std::min(4096 / width / 8, (panels + shares - 1) / shares)),
                column_blocks = (panels + together - 1) / together;
  const int64_t grain =
      std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, rows * together * width * s.k));
  // Product i; `fresh`: what `room` holds is of another one.
  const auto one = [&](size_t i, bool fresh, T* room, auto&& share) {
    const T* a = reinterpret_cast<const T*>(run.data<std::byte>(0)) + s.a_at[i];
    const T* b = reinterpret_cast<const T*>(run.data<std::byte>(1)) + s.b_at[i];
    T* c = reinterpret_cast<T*>(y->data<std::byte>()) + s.c_at[i];
    if constexpr (std::is_same_v<T, double>)
      if (s.m == 1 && s.constant_b == nullptr && !s.trans_b &&
          s.ldb == s.n) {  // to pack B would take longer
        constexpr int64_t kColumns = 64;
        share((s.n + kColumns - 1) / kColumns,
              std::max<int64_t>(1, (1 << 14) / (kColumns * std::max<int64_t>(1, s.k))),
              [&](int64_t begin, int64_t end) {
                multiply_row(a, b, s.k, s.n, begin * kColumns, std::min(s.n, end * kColumns), c);
              });
        return;
      }
    if (s.constant_b == nullptr && fresh)
      share(panels, std::max<int64_t>(1, (1 << 14) / (width * std::max<int64_t>(1, s.k))),
            [&](int64_t begin, int64_t end) {
              pack_wide(b, s.b_row(), s.b_column(), s.k, s.n, begin, end, room);
            });
    int64_t lda = s.lda;
    if (s.trans_a) {
      T* turned = room + s.packed;
      share(s.k, std::max<int64_t>(1, (1 << 14) / s.m), [&](int64_t begin, int64_t end) {
        transpose_tile(reinterpret_cast<const std::byte*>(a + begin * s.lda), s.lda,
                       reinterpret_cast<std::byte*>(turned + begin), s.k, end - begin, s.m,
                       sizeof(T));
      });
      a = turned;
      lda = s.k;
    }
    const T* panels_of_b =
        s.constant_b != nullptr ? reinterpret_cast<const T*>(s.constant_b) : room;
    const WideProduct<T> product{a, lda, panels_of_b, c, s.ldc, s.n, s.k};
    share(row_blocks * column_blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t row = task % row_blocks * rows, panel = task / row_blocks * together;
        multiply_wide(product, row, std::min(rows, s.m - row), panel,
                      std::min(together, panels - panel));
      }
    });
  };
  const auto fresh = [&](int64_t i, int64_t first) {
    const auto at = static_cast<size_t>(i);
    return i == first || s.b_at[at] != s.b_at[at - 1];
  };
  const auto batch = static_cast<int64_t>(s.a_at.size());
  constexpr int64_t kSmall = int64_t{1} << 21;  // products that a thread had better take whole
  if (run.options().threads > 1 && batch >= run.options().threads && s.m * s.n * s.k <= kSmall) {
    const int64_t least = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, s.m * s.n * s.k));
    run.parallel_for(batch, least, [&](int64_t begin, int64_t end) {
      const bool uses = s.constant_b == nullptr || s.trans_a;
      std::vector<T> room(uses ? static_cast<size_t>(s.packed + (s.trans_a ? s.m * s.k : 0) + 64)
                               : 0);
      for (int64_t i = begin; i < end; ++i)
        one(static_cast<size_t>(i), fresh(i, begin), room.data(),
            [](int64_t count, int64_t, auto&& body) { body(int64_t{0}, count); });
    });
  } else {
    for (int64_t i = 0; i < batch; ++i)
      one(static_cast<size_t>(i), fresh(i, 0), packed,
          [&](int64_t count, int64_t least, auto&& body) { run.parallel_for(count, least, body); });
  }
  if constexpr (std::is_same_v<T, double>) {
    const bool add = run.has_input(2);
    if (s.alpha != 1 || add) {
      const double* c = add ? run.data<double>(2) : nullptr;
      const Dims dims = add ? run.input(2).dims() : Dims();
      const int64_t row_step = dims.size() == 2 && dims[0] != 1 ? dims[1] : 0;
      const int64_t column_step = !dims.empty() && dims.back() != 1 ? 1 : 0;
      double* to = y->template data<double>();
      // Of a batch, which comes without an addend, all rows.
      const int64_t rows_of_all = s.m * static_cast<int64_t>(s.a_at.size());
      run.parallel_for(rows_of_all, std::max<int64_t>(1, (1 << 13) / s.n),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t r = begin; r < end; ++r)
                           for (int64_t j = 0; j < s.n; ++j) {
                             double& x = to[r * s.n + j];
                             x *= s.alpha;
                             if (add) x += s.beta * c[r * row_step + j * column_step];
                           }
                       });
    }
  }
  return ok();
}

Status run_wide(KernelRun& run) {
  return with_width(run.input(0).dtype(), [&]<typename T>(T*) { return multiply<T>(run); });
}

}  // namespace

KERNEL(matmul_wide) = {
    .name = "matmul_wide",
    .op = "MatMul",
    .supports = supports_wide<false>,
    .prepare = prepare_wide<false>,
    .run = products<run_wide>,
};
KERNEL(matmul_wide_turned) = {
    .name = "matmul_wide",
    .op = "MatMul",
    .domain = "ai.tombolo",
    .supports = supports_wide<false>,
    .prepare = prepare_wide<false>,
    .run = products<run_wide>,
};
KERNEL(gemm_wide) = {
    .name = "gemm_wide",
    .op = "Gemm",
    .supports = supports_wide<true>,
    .prepare = prepare_wide<true>,
    .run = products<run_wide>,
};

}  // namespace tombolo
