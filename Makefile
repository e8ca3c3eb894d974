# Two commands do all the set-up themselves: `make demo`, `make test`.
BUILD := build/release
JOBS ?= $(shell nproc)
export TOMBOLO_SHARED ?= $(abspath ../shared)

.PHONY: all demo test bench bench-load soak tsan amx aarch64 check install format fuzz clean oracle-keras oracle-onnx oracle-pytorch

all: $(BUILD)/build.ninja
	ninja -C $(BUILD) -j$(JOBS) tombolo_cli

$(BUILD)/build.ninja: CMakePresets.json
	@tools/setup.sh build
	cmake --preset release -DTOMBOLO_TESTS=OFF

# A network that Keras wrote becomes ONNX, is checked, and names ten pictures.
demo: all
	@examples/digits/demo.sh $(BUILD)/tombolo

test:
	@tools/setup.sh test
	cmake --preset release -DTOMBOLO_TESTS=ON
	ninja -C $(BUILD) -j$(JOBS)
	@tools/check_house.sh
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=error

# The checks of the house alone: include direction, file budget, format.
check:
	@tools/check_house.sh

# Beside ONNX Runtime, OpenVINO and MNN, in turns (a throw-away Python environment below build/): writes docs/performance.md.
bench: all
	@tools/setup.sh bench
	@[ -x build/peers-venv/bin/python ] || { python3 -m venv build/peers-venv && build/peers-venv/bin/pip -q install numpy onnx==1.23.2 onnxruntime==1.31.1 openvino==2026.4.1 MNN==3.6.1; }
	build/peers-venv/bin/python bench/run.py $(BUILD)/tombolo build/bench-models --out docs/performance.md

# Random models, shapes, threads and cancellations for ten minutes (SECONDS_EACH=600).
soak:
	@tools/setup.sh test
	cmake --preset release -DTOMBOLO_TESTS=ON
	ninja -C $(BUILD) -j$(JOBS) tombolo_soak
	$(BUILD)/tests/tombolo_soak $${SECONDS_EACH:-600}

# The unit tests and a short soak with data races made visible.
tsan:
	@tools/setup.sh test
	cmake --preset tsan
	ninja -C build/tsan -j$(JOBS) tombolo_unit tombolo_soak
	build/tsan/tests/tombolo_unit --gtest_brief=1
	build/tsan/tests/tombolo_soak $${SECONDS_EACH:-60}

# The unit tests with AMX's instructions emulated by AVX-512, on processors that have VNNI and bf16 but no AMX.
amx:
	@tools/setup.sh test
	cmake --preset amx
	ninja -C build/amx -j$(JOBS) tombolo_cli tombolo_unit
	build/amx/tests/tombolo_unit --gtest_brief=1

# For 64-bit Arm, cross-compiled on Debian; the unit and text tests, and models of Keras and PyTorch, run under qemu (an hour).
aarch64:
	@tools/setup.sh aarch64
	cmake --preset aarch64
	ninja -C build/aarch64 -j$(JOBS) tombolo_cli tombolo_unit tombolo_text_tests
	ctest --test-dir build/aarch64 --output-on-failure --no-tests=error -R '^(unit|text|keras_cases|pytorch_.*)$$' --timeout 7200

# Loading, beside onnx.load (a throw-away Python environment below build/); needs 10 GB of disk for a while.
bench-load:
	@tools/setup.sh bench
	cmake --preset release -DTOMBOLO_BENCH=ON
	ninja -C $(BUILD) -j$(JOBS) tombolo_cli tombolo_load_bench
	@[ -x build/bench-venv/bin/python ] || { python3 -m venv build/bench-venv && build/bench-venv/bin/pip -q install onnx==1.23.2; }
	bench/load.sh $(BUILD)/tombolo

install: all
	cmake --install $(BUILD)

format:
	git ls-files '*.cpp' '*.h' | xargs clang-format-14 -i

# Ten minutes (SECONDS=600) of each fuzz target.
fuzz:
	@tools/setup.sh fuzz
	tests/fuzz/run.sh $${SECONDS_EACH:-600}

# Comparisons with the real frameworks, each in a throw-away Python environment below build/.
oracle-onnx: all
	tools/oracle.sh onnx $(BUILD)/tombolo
oracle-keras: all
	tools/oracle.sh keras $(BUILD)/tombolo
oracle-pytorch: all
	tools/oracle.sh pytorch $(BUILD)/tombolo

clean:
	rm -rf build
