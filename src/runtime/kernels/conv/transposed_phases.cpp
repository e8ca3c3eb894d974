#include "runtime/kernels/conv/transposed_phases.h"

#include <algorithm>
#include <utility>

namespace tombolo {

TransposedPhases phases_of(const ConvGeometry& s) {
  TransposedPhases all;
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t stride = s.stride[axis], pad = s.pad[axis];
    int64_t first = 0, last = s.in[axis] - 1;
    for (int64_t output = 0; output < std::min(stride, s.out[axis]); ++output) {
      // Output o is the sum over positions k of input i with i * stride + k * dilation = o + pad.
      AxisPhase phase;
      const int64_t rest = (output + pad) % stride;
      phase.output = output;
      phase.input = (output + pad) / stride;
      phase.count = (s.out[axis] - output + stride - 1) / stride;
      for (int64_t k = s.kernel[axis] - 1; k >= 0; --k)
        if ((k * s.dilation[axis] - rest) % stride == 0) {
          const int64_t back = (k * s.dilation[axis] - rest) / stride;
          phase.taps.push_back(k);
          phase.back.push_back(back);
          first = std::min(first, phase.input - back);
          last = std::max(last, phase.input + phase.count - 1 - back);
        }
      all.of_axis[axis].push_back(std::move(phase));
    }
    all.before[axis] = -first;
    all.size[axis] = last - first + 1;
  }
  return all;
}

}  // namespace tombolo
