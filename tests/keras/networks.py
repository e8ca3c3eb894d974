"""The networks of tests/keras/cases: one function a case, each tiny.

A function gets the framework K (keras or tf_keras) and its layers L and returns a model; its name is the case's name.
`@case(form, ...)` says how it is saved: "keras", "h5" and "json" by Keras 3; "keras2", "h5_2", "json_2", "json_2_tutorial"
by Keras 2 (see make_cases.py). Sizes are odd and unequal, and channels differ from the width, so that a transposed axis
cannot go unnoticed. A fan (one input, many outputs) tries many settings of a layer in one small file.
"""

CASES = {}


def case(form, **options):
    """Registers a case. Options: jit (compute with XLA, where TensorFlow has no kernel on a CPU), high (integer inputs are
    below it), extra (not committed: made only with --extra), note, expect, rtol, atol."""

    def add(build):
        CASES[build.__name__] = (form, build, options)
        return build

    return add


def chain(K, shape, *layers, dtype=None):
    return K.Sequential([K.Input(shape, dtype=dtype), *layers])


def fan(K, shape, *layers, dtype=None):
    x = K.Input(shape, dtype=dtype)
    return K.Model(x, [layer(x) for layer in layers])


# Dense and activations


@case("keras")
def dense_sequential(K, L):
    return chain(K, (7,), L.Dense(5, activation="relu"), L.Dense(3, use_bias=False, activation="softmax"))


@case("h5")
def dense_rank3_rank4(K, L):
    x, y = K.Input((5, 3), name="three"), K.Input((2, 5, 3), name="four")
    return K.Model([x, y], [L.Dense(4, activation="tanh")(x), L.Dense(6, use_bias=False)(y)])


@case("h5")
def dense_activation_strings(K, L):
    return fan(K, (6,), *[L.Dense(3, activation=name) for name in ("sigmoid", "elu", "hard_sigmoid", "silu")])


@case("h5")
def activation_layers_by_name(K, L):
    names = "relu sigmoid tanh softmax elu selu softplus softsign exponential hard_sigmoid linear silu gelu leaky_relu relu6"
    return fan(K, (2, 3), *[L.Activation(name) for name in names.split()])


@case("h5", extra=True)
def activation_layers_rarer(K, L):
    names = "mish celu glu hard_silu hard_tanh hard_shrink soft_shrink tanh_shrink log_sigmoid log_softmax squareplus"
    return fan(K, (2, 4), *[L.Activation(name) for name in names.split()])


@case("h5")
def relu_settings(K, L):
    return fan(
        K, (2, 3), L.ReLU(), L.ReLU(max_value=0.8), L.ReLU(negative_slope=0.3), L.ReLU(threshold=0.4),
        L.ReLU(max_value=1.1, negative_slope=0.2, threshold=0.5), L.LeakyReLU(), L.LeakyReLU(negative_slope=0.05),
        L.ELU(), L.ELU(alpha=0.6), L.Softmax(), L.Softmax(axis=1))  # fmt: skip


@case("keras", extra=True)
def softmax_two_axes(K, L):
    return chain(K, (3, 4, 2), L.Softmax(axis=(1, 2)))


@case("keras")
def prelu(K, L):
    return fan(K, (5, 4, 3), L.PReLU(), L.PReLU(shared_axes=[1, 2]))


@case("h5", extra=True)
def activation_layers_sparse(K, L):
    return fan(K, (5, 6), *[L.Activation(name) for name in ("sparse_plus", "sparse_sigmoid", "sparsemax")])


@case("h5", extra=True)
def dense_activation_strings_all(K, L):
    names = "relu sigmoid tanh softmax elu selu softplus softsign exponential hard_sigmoid linear silu gelu leaky_relu mish celu"
    return fan(K, (6,), *[L.Dense(3, activation=name) for name in names.split()])


# Convolutions


@case("h5")
def conv1d_settings(K, L):
    return fan(
        K, (11, 4), L.Conv1D(3, 4, strides=2, padding="same"), L.Conv1D(6, 3, groups=2, activation="tanh"),
        L.Conv1D(3, 3, padding="same", dilation_rate=2), L.Conv1D(3, 5, strides=3))  # fmt: skip


@case("h5")
def conv1d_causal(K, L):
    return fan(
        K, (8, 4), L.Conv1D(5, 3, padding="causal"), L.Conv1D(3, 2, padding="causal", dilation_rate=3, use_bias=False),
        L.Conv1D(2, 3, padding="causal", strides=2))  # fmt: skip


@case("keras")
def conv2d_valid(K, L):
    return chain(K, (9, 7, 3), L.Conv2D(5, (3, 2)), L.Conv2D(4, (2, 3), strides=2, use_bias=False))


@case("h5")
def conv2d_same(K, L):
    return fan(
        K, (6, 5, 3), L.Conv2D(2, 3, strides=2, padding="same"), L.Conv2D(2, 4, padding="same"),
        L.Conv2D(4, (2, 5), strides=(3, 2), padding="same"), L.Conv2D(4, 1, strides=2, padding="same", use_bias=False))  # fmt: skip


@case("h5")
def conv2d_dilated_grouped(K, L):
    return fan(
        K, (6, 5, 4), L.Conv2D(3, 3, dilation_rate=2), L.Conv2D(2, (3, 2), dilation_rate=(2, 3), padding="same"),
        L.Conv2D(6, 3, groups=2), L.Conv2D(8, (2, 3), groups=4, strides=2, padding="same"))  # fmt: skip


@case("keras")
def conv2d_free_size(K, L):
    return chain(
        K, (None, None, 3), L.Conv2D(4, 3, strides=2, padding="same", activation="relu"), L.MaxPooling2D(2, padding="same"),
        L.GlobalAveragePooling2D(), L.Dense(2))  # fmt: skip


@case("keras", jit=True)
def conv2d_channels_first(K, L):
    first = {"data_format": "channels_first"}
    return chain(
        K, (3, 9, 7), L.Conv2D(5, (3, 2), strides=2, padding="same", **first), L.BatchNormalization(axis=1),
        L.MaxPooling2D((2, 1), **first), L.Flatten(**first), L.Dense(3))  # fmt: skip


@case("h5", jit=True)
def conv_channels_first_others(K, L):
    first = {"data_format": "channels_first"}
    return fan(
        K, (4, 5, 6), L.DepthwiseConv2D(3, padding="same", depth_multiplier=2, **first),
        L.Conv2DTranspose(3, 2, strides=2, padding="same", **first))  # fmt: skip


@case("h5")
def shapes_channels_first(K, L):
    first = {"data_format": "channels_first"}
    return fan(
        K, (2, 5, 4), L.GlobalMaxPooling2D(**first), L.GlobalAveragePooling2D(**first), L.ZeroPadding2D(((1, 0), (2, 1)), **first),
        L.Cropping2D(((1, 2), (0, 1)), **first), L.UpSampling2D((2, 3), **first))  # fmt: skip


@case("keras", jit=True)
def conv1d_channels_first(K, L):
    first = {"data_format": "channels_first"}
    return chain(K, (4, 11), L.Conv1D(5, 3, padding="same", **first), L.MaxPooling1D(2, **first), L.Conv1D(2, 3, **first))


@case("keras")
def conv3d(K, L):
    return fan(K, (5, 4, 6, 2), L.Conv3D(3, (2, 3, 2)), L.Conv3D(3, 3, strides=2, padding="same", use_bias=False))


@case("h5", jit=True)
def conv3d_dilated_grouped(K, L):
    return fan(K, (5, 4, 3, 4), L.Conv3D(3, 2, dilation_rate=2), L.Conv3D(6, 2, groups=2, strides=2))


@case("keras")
def depthwise_conv1d(K, L):
    return fan(
        K, (9, 4), L.DepthwiseConv1D(3), L.DepthwiseConv1D(4, strides=2, padding="same", depth_multiplier=2),
        L.DepthwiseConv1D(3, dilation_rate=2, use_bias=False))  # fmt: skip


@case("h5")
def depthwise_conv2d(K, L):
    return fan(
        K, (5, 4, 3), L.DepthwiseConv2D((3, 1), use_bias=False), L.DepthwiseConv2D(3, strides=2, padding="same"),
        L.DepthwiseConv2D((2, 3), depth_multiplier=2, activation="relu"), L.DepthwiseConv2D(2, dilation_rate=2, padding="same"))  # fmt: skip


@case("h5")
def separable_conv2d(K, L):
    return fan(
        K, (7, 6, 3), L.SeparableConv2D(2, 3, padding="same", depth_multiplier=2), L.SeparableConv2D(4, (2, 3), strides=2, use_bias=False),
        L.SeparableConv2D(4, 3, dilation_rate=2, activation="relu"))  # fmt: skip


@case("keras", extra=True)
def separable_conv1d(K, L):
    return fan(
        K, (11, 4), L.SeparableConv1D(5, 3, padding="same"), L.SeparableConv1D(3, 3, strides=2, depth_multiplier=2, activation="tanh"))


@case("h5")
def conv2d_transpose(K, L):
    return fan(
        K, (3, 4, 3), L.Conv2DTranspose(4, 3, strides=2, padding="same"), L.Conv2DTranspose(2, (2, 3), strides=(3, 2), use_bias=False),
        L.Conv2DTranspose(2, 2, strides=3, padding="same"))  # fmt: skip


@case("h5", jit=True)
def conv_transpose_1d_dilated(K, L):
    x, y = K.Input((5, 3)), K.Input((3, 4, 3))
    return K.Model([x, y], [
        L.Conv1DTranspose(2, 4, strides=2, padding="same", output_padding=1)(x), L.Conv1DTranspose(2, 2, strides=3)(x),
        L.Conv2DTranspose(2, 2, dilation_rate=2, padding="same")(y)])  # fmt: skip


@case("keras", extra=True)
def conv2d_transpose_output_padding(K, L):
    return fan(
        K, (3, 4, 3), L.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=1),
        L.Conv2DTranspose(2, 3, strides=(3, 2), output_padding=(2, 1), activation="relu"))  # fmt: skip


@case("keras", extra=True)
def conv3d_transpose(K, L):
    return fan(K, (2, 3, 4, 2), L.Conv3DTranspose(3, 2), L.Conv3DTranspose(1, 3, strides=2, padding="same"))


# Normalisation


@case("keras")
def batchnorm(K, L):
    return fan(
        K, (4, 2, 3), L.BatchNormalization(), L.BatchNormalization(scale=False, axis=1), L.BatchNormalization(center=False, axis=2),
        L.BatchNormalization(scale=False, center=False, epsilon=0.1))  # fmt: skip


@case("json")
def batchnorm_ranks(K, L):
    x, y = K.Input((6,)), K.Input((5, 3))
    return K.Model([x, y], [L.Dense(3)(L.BatchNormalization()(x)), L.BatchNormalization(epsilon=0.02, scale=False)(y)])


@case("keras")
def layernorm(K, L):
    return fan(
        K, (4, 2, 3), L.LayerNormalization(), L.LayerNormalization(axis=[2, 3], epsilon=0.05),
        L.LayerNormalization(axis=1, scale=False), L.LayerNormalization(center=False))  # fmt: skip


@case("keras")
def norms_others(K, L):
    return fan(
        K, (3, 2, 6), L.GroupNormalization(groups=3), L.GroupNormalization(groups=-1, epsilon=0.02, scale=False),
        L.RMSNormalization(), L.UnitNormalization(axis=(1, 2)))  # fmt: skip


# Pooling


@case("h5")
def pool1d(K, L):
    return fan(
        K, (11, 3), L.MaxPooling1D(), L.MaxPooling1D(3, strides=2, padding="same"), L.AveragePooling1D(4, strides=3),
        L.AveragePooling1D(3, padding="same"), L.GlobalMaxPooling1D(), L.GlobalAveragePooling1D(keepdims=True))  # fmt: skip


@case("h5")
def pool2d(K, L):
    return fan(
        K, (7, 6, 3), L.MaxPooling2D(), L.MaxPooling2D((3, 2), strides=(2, 3), padding="same"), L.MaxPooling2D(3, strides=1),
        L.AveragePooling2D((2, 3)), L.AveragePooling2D(3, strides=2, padding="same"), L.GlobalMaxPooling2D(),
        L.GlobalMaxPooling2D(keepdims=True), L.GlobalAveragePooling2D())  # fmt: skip


@case("h5")
def pool3d(K, L):
    return fan(
        K, (5, 4, 6, 2), L.MaxPooling3D(), L.MaxPooling3D(2, padding="same"), L.AveragePooling3D((2, 3, 2), strides=2),
        L.AveragePooling3D(3, strides=2, padding="same"), L.GlobalMaxPooling3D(), L.GlobalAveragePooling3D(keepdims=True))  # fmt: skip


@case("keras", extra=True)
def pool_adaptive(K, L):
    return fan(K, (9, 7, 3), L.AdaptiveAveragePooling2D((4, 3)), L.AdaptiveMaxPooling2D((2, 5)))


# Shapes


@case("h5")
def reshape_permute_flatten(K, L):
    return fan(
        K, (4, 3, 2), L.Reshape((8, 3)), L.Reshape((-1, 6)), L.Reshape((2, 3, 2, 2)), L.Permute((3, 1, 2)), L.Flatten(),
        L.Flatten(data_format="channels_first"))  # fmt: skip


@case("keras")
def repeat_vector(K, L):
    return chain(K, (5,), L.RepeatVector(4), L.Dense(2, activation="tanh"))


@case("h5")
def identity_at_inference(K, L):
    return chain(
        K, (6, 5, 3), L.Dropout(0.5), L.SpatialDropout2D(0.3), L.GaussianNoise(0.4), L.GaussianDropout(0.2), L.AlphaDropout(0.1),
        L.ActivityRegularization(l2=0.1), L.Identity(), L.Flatten(), L.Dropout(0.25, seed=3), L.Dense(3))  # fmt: skip


@case("h5")
def padding_cropping(K, L):
    return fan(
        K, (4, 5, 2), L.ZeroPadding2D(), L.ZeroPadding2D((1, 2)), L.ZeroPadding2D(((0, 1), (2, 3))), L.Cropping2D(1),
        L.Cropping2D((1, 2)), L.Cropping2D(((0, 2), (2, 1))))  # fmt: skip


@case("h5")
def padding_cropping_1d_3d(K, L):
    x, y = K.Input((7, 3)), K.Input((2, 3, 4, 2))
    return K.Model([x, y], [
        L.ZeroPadding1D()(x), L.ZeroPadding1D((2, 1))(x), L.Cropping1D((1, 2))(x), L.ZeroPadding3D((1, 0, 2))(y),
        L.ZeroPadding3D(((0, 1), (1, 0), (2, 0)))(y), L.Cropping3D(((1, 0), (0, 2), (1, 1)))(y)])  # fmt: skip


@case("h5")
def upsampling(K, L):
    x, y, z = K.Input((3, 4, 2)), K.Input((5, 2)), K.Input((2, 3, 2, 1))
    return K.Model([x, y, z], [
        L.UpSampling2D()(x), L.UpSampling2D((2, 3), interpolation="bilinear")(x),
        L.UpSampling2D(2, interpolation="bicubic")(x), L.UpSampling1D(3)(y), L.UpSampling3D((1, 2, 3))(z)])  # fmt: skip


@case("keras")
def resizing(K, L):
    return fan(K, (5, 4, 2), L.Resizing(3, 7), L.Resizing(8, 3, interpolation="nearest"), L.CenterCrop(3, 2))


@case("keras")
def rescaling_normalization(K, L):
    x = K.Input((5, 4, 3))
    x2 = L.Rescaling(1 / 127.5, offset=-1)(x)
    x2 = L.Normalization(axis=-1, mean=[0.1, -0.3, 0.7], variance=[0.5, 2.0, 1.3])(x2)
    return K.Model(x, [L.Conv2D(2, 2)(x2), L.Normalization(mean=0.4, variance=2.2, invert=True)(x)])


@case("keras", high=6)
def category_encoding(K, L):
    return fan(
        K, (4,), L.CategoryEncoding(6, output_mode="multi_hot"), L.CategoryEncoding(6, output_mode="count"), dtype="int32")


# Merging


@case("h5")
def merge_elementwise(K, L):
    x, y, z = K.Input((4, 5), name="left"), K.Input((4, 5), name="middle"), K.Input((4, 5), name="right")
    return K.Model([x, y, z], [
        L.Add()([x, y, z]), L.Subtract()([x, y]), L.Multiply()([x, y, z]), L.Average()([x, y, z]), L.Maximum()([x, y]),
        L.Minimum()([x, y, z])])  # fmt: skip


@case("keras")
def merge_broadcast(K, L):
    x, y = K.Input((4, 5, 3), name="picture"), K.Input((1, 1, 3), name="gate")
    return K.Model([x, y], [L.Multiply()([x, y]), L.Add()([y, x])])


@case("h5")
def concatenate(K, L):
    x, y, z = K.Input((4, 5)), K.Input((4, 3)), K.Input((2, 5))
    return K.Model([x, y, z], [
        L.Concatenate()([x, y]), L.Concatenate(axis=1)([x, z]), L.Concatenate(axis=2)([y, x, y])])  # fmt: skip


@case("keras")
def dot(K, L):
    x, y, p, q = K.Input((7,)), K.Input((7,)), K.Input((4, 5)), K.Input((2, 5))
    return K.Model([x, y, p, q], [
        L.Dot(axes=1)([x, y]), L.Dot(axes=-1, normalize=True)([x, y]), L.Dot(axes=(2, 2))([p, q])])  # fmt: skip


# Sequences


@case("keras", high=11)
def embedding(K, L):
    return chain(K, (6,), L.Embedding(11, 4), L.Conv1D(3, 2), L.GlobalMaxPooling1D(), dtype="int32")


@case("keras")
def lstm(K, L):
    return fan(K, (6, 3), L.LSTM(4), L.LSTM(5, return_sequences=True, use_bias=False))


@case("h5")
def lstm_settings(K, L):
    x = K.Input((6, 3))
    all_, h, c = L.LSTM(4, return_sequences=True, return_state=True, unit_forget_bias=False)(x)
    back = L.LSTM(4, go_backwards=True, return_sequences=True)(x)
    return K.Model(x, [all_, h, c, back, L.LSTM(4, activation="relu", recurrent_activation="hard_sigmoid", unroll=True)(x)])


@case("keras", extra=True)
def lstm_initial_state(K, L):
    x, h, c = K.Input((5, 3), name="steps"), K.Input((4,), name="h"), K.Input((4,), name="c")
    return K.Model([x, h, c], L.LSTM(4, return_sequences=True, return_state=True)(x, initial_state=[h, c]))


@case("keras", extra=True)
def lstm_free_length(K, L):
    return chain(K, (None, 3), L.LSTM(5, return_sequences=True))


@case("keras")
def gru(K, L):
    return fan(K, (6, 3), L.GRU(4), L.GRU(5, reset_after=False, return_sequences=True))


@case("h5")
def gru_settings(K, L):
    x = K.Input((6, 3))
    all_, h = L.GRU(4, return_sequences=True, return_state=True)(x)
    back = L.GRU(4, use_bias=False, go_backwards=True, return_sequences=True)(x)
    return K.Model(x, [all_, h, back, L.GRU(3, reset_after=False, activation="relu", recurrent_activation="hard_sigmoid")(x)])


@case("keras")
def simple_rnn(K, L):
    return fan(K, (6, 3), L.SimpleRNN(4), L.SimpleRNN(5, return_sequences=True, use_bias=False, activation="relu", go_backwards=True))


@case("keras")
def bidirectional_lstm(K, L):
    return chain(K, (6, 3), L.Bidirectional(L.LSTM(4, return_sequences=True)))


@case("h5")
def bidirectional_multiply(K, L):
    return chain(K, (6, 3), L.Bidirectional(L.SimpleRNN(4, return_sequences=True), merge_mode="mul"))


@case("keras")
def bidirectional_none_state(K, L):
    x = K.Input((6, 3))
    return K.Model(x, L.Bidirectional(L.GRU(4, return_sequences=True, return_state=True), merge_mode=None)(x))


@case("keras", extra=True)
def bidirectional_average(K, L):
    return chain(K, (None, 3), L.Bidirectional(L.GRU(4, reset_after=False), merge_mode="ave"))


@case("keras", extra=True)
def bidirectional_backward_layer(K, L):
    back = L.GRU(3, go_backwards=True, return_sequences=True)
    return chain(K, (6, 3), L.Bidirectional(L.LSTM(4, return_sequences=True), backward_layer=back))


@case("keras", extra=True)
def rnn_cells(K, L):
    return chain(K, (6, 3), L.RNN([L.LSTMCell(4), L.GRUCell(2)], return_sequences=True))


@case("keras")
def time_distributed(K, L):
    return chain(K, (3, 5, 4, 2), L.TimeDistributed(L.Conv2D(3, 2, strides=2, activation="relu")), L.TimeDistributed(L.Flatten()))


@case("keras", high=4, note="zeros in the input are masked: LSTM skips them")
def masked_lstm(K, L):
    return chain(K, (7,), L.Embedding(4, 5, mask_zero=True), L.LSTM(3, return_sequences=True), dtype="int32")


@case("h5", high=4, note="zeros in the input are masked: the average leaves them out")
def masked_average_h5(K, L):
    return chain(K, (7,), L.Embedding(4, 5, mask_zero=True), L.GlobalAveragePooling1D(), L.Dense(2), dtype="int32")


@case("keras", extra=True)
def conv_lstm(K, L):
    return fan(K, (3, 5, 4, 2), L.ConvLSTM2D(3, (3, 2), padding="same", return_sequences=True), L.ConvLSTM2D(2, 3, strides=2))


# Attention


@case("keras")
def multi_head_attention(K, L):
    x, y = K.Input((5, 6), name="query"), K.Input((7, 4), name="value")
    return K.Model([x, y], L.MultiHeadAttention(2, 3, value_dim=5)(x, y))


@case("keras", extra=True)
def attention_dot_additive(K, L):
    q, v = K.Input((5, 4), name="query"), K.Input((6, 4), name="value")
    return K.Model([q, v], [
        L.Attention()([q, v]), L.Attention(use_scale=True)([q, v]), L.AdditiveAttention()([q, v])])  # fmt: skip


@case("keras")
def causal_self_attention(K, L):
    x = K.Input((5, 6))
    return K.Model(x, L.Add()([x, L.MultiHeadAttention(2, 3, use_bias=False)(x, x, use_causal_mask=True)]))


@case("keras", extra=True)
def einsum_dense(K, L):
    return fan(
        K, (5, 6), L.EinsumDense("abc,cd->abd", output_shape=(None, 4), bias_axes="d", activation="gelu"),
        L.EinsumDense("abc,bcd->abd", output_shape=(5, 2)))  # fmt: skip


# Whole models


@case("keras")
def functional_residual(K, L):
    x = K.Input((6, 7, 3), name="image")
    y = L.Conv2D(4, 3, padding="same", name="stem")(x)
    z = L.Conv2D(4, 3, padding="same", use_bias=False, name="a_conv", activation="relu")(L.BatchNormalization(name="zeta")(y))
    return K.Model(x, L.GlobalAveragePooling2D(name="pool")(L.Add(name="join")([y, z])), name="tiny_resnet")


@case("keras", note="inputs and outputs are neither in alphabetical nor in creation order; one layer output is returned twice")
def multi_input_output(K, L):
    a, b = K.Input((4,), name="zebra"), K.Input((3, 2), name="ant")
    c = L.Concatenate(name="mix")([L.Flatten()(b), a])
    d, e = L.Dense(3, name="one")(c), L.Dense(2, activation="sigmoid", name="two")(c)
    return K.Model([b, a], [e, d, e], name="many")


@case("h5")
def multi_input_output_h5(K, L):
    a, b = K.Input((4,), name="zebra"), K.Input((3, 2), name="ant")
    c = L.Concatenate(name="mix")([L.Flatten()(b), a])
    return K.Model([b, a], [L.Dense(2, activation="sigmoid", name="two")(c), L.Dense(3, name="one")(c)])


@case("keras", note="inputs and outputs are dictionaries: model.inputs and model.outputs have them in the order of the keys")
def dict_input_output(K, L):
    a, b = K.Input((4,), name="zebra"), K.Input((3,), name="ant")
    c = L.Concatenate()([a, b])
    return K.Model({"zebra": a, "ant": b}, {"z": L.Dense(3)(c), "k": L.Dense(2)(c)})


@case("keras")
def shared_layer(K, L):
    shared = L.Dense(4, activation="tanh", name="shared")
    x, y = K.Input((6,)), K.Input((6,))
    return K.Model([x, y], [L.Subtract()([shared(x), shared(y)]), shared(y)])


@case("h5")
def shared_layer_h5(K, L):
    return shared_layer(K, L)


@case("keras", note="an inner Sequential used twice, an inner Functional before it; equal layer classes inside and outside")
def nested_models(K, L):
    inner_in = K.Input((5,), name="inner_in")
    inner = K.Model(inner_in, L.Dense(5, activation="relu")(L.ReLU()(inner_in)), name="inner")
    tower = K.Sequential([K.Input((5,)), L.Dense(3)], name="tower")
    x, y = K.Input((5,), name="x"), K.Input((5,), name="y")
    return K.Model([x, y], L.Subtract()([tower(inner(x)), tower(y)]))


@case("h5")
def nested_models_h5(K, L):
    return nested_models(K, L)


@case("keras", note="an inner model with two inputs and two outputs, of which only one is used")
def nested_multi_output(K, L):
    a, b = K.Input((3,)), K.Input((4,))
    inner = K.Model([a, b], [L.ReLU()(a), L.Concatenate()([a, b])], name="inner")
    x, y = K.Input((4,)), K.Input((3,))
    return K.Model([x, y], L.Dense(2, activation="tanh")(inner([y, x])[1]))


@case("keras")
def sequential_in_sequential(K, L):
    inner = K.Sequential([K.Input((5, 4, 4)), L.Flatten(), K.Sequential([K.Input((80,)), L.Dense(3)])])
    return chain(K, (7, 6, 3), L.Conv2D(4, 3), inner)


@case("keras", note="operations on symbolic tensors instead of layers")
def operators(K, L):
    x, y = K.Input((4, 5), name="x"), K.Input((4, 5), name="y")
    z = K.ops.sqrt(K.ops.abs(x * 2.0 + y) + 1.0) - y / 3.0
    return K.Model([x, y], [K.ops.mean(z, axis=1), K.ops.transpose(z[:, 1:, ::2], (0, 2, 1)), K.ops.matmul(x, K.ops.transpose(y, (0, 2, 1)))])


@case("keras", extra=True)
def mobile_block(K, L):
    x = K.Input((6, 5, 3))
    y = L.ReLU(6.0)(L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same", use_bias=False)(x)))
    gate = L.Dense(3, activation="hard_sigmoid")(L.GlobalAveragePooling2D(keepdims=True)(y))
    return K.Model(x, L.Multiply()([y, gate]))


@case("keras", rtol=2e-2, atol=2e-3, note="weights float32, computed in float16; the output is float16")
def mixed_float16(K, L):
    return chain(K, (6, 5, 3), L.Conv2D(4, 3, dtype="mixed_float16"), L.Flatten(), L.Dense(2, dtype="mixed_float16"))


@case("h5", rtol=1e-9, atol=1e-12)
def float64(K, L):
    x = K.Input((6,), dtype="float64")
    return K.Model(x, L.BatchNormalization(dtype="float64")(L.Dense(4, activation="tanh", dtype="float64")(x)))


@case("keras", expect="refused", note="Lambda holds Python bytecode: must be refused with a clear message")
def refuse_lambda(K, L):
    return chain(K, (3,), L.Dense(2), L.Lambda(lambda x: x * x))


@case("keras", extra=True)
def residual_tower(K, L):
    x = y = K.Input((9, 7, 3), name="image")
    for width in (4, 6):
        z = L.ReLU()(L.BatchNormalization()(L.Conv2D(width, 3, strides=2, padding="same", use_bias=False)(y)))
        z = L.BatchNormalization()(L.Conv2D(width, 3, padding="same")(z))
        y = L.Activation("relu")(L.Add()([L.Conv2D(width, 1, strides=2, padding="same")(y), z]))
    return K.Model(x, L.Dense(3, activation="softmax")(L.Dropout(0.2)(L.GlobalAveragePooling2D()(y))))


@case("h5", extra=True)
def residual_tower_h5(K, L):
    return residual_tower(K, L)


@case("json", extra=True)
def residual_tower_json(K, L):
    return residual_tower(K, L)


# Written by Keras 2: other configurations, other weight names


@case("h5_2", extra=True)
def k2_dense(K, L):
    return chain(K, (7,), L.Dense(5, activation="relu"), L.Dropout(0.3), L.Dense(3, activation="softmax"))


@case("h5_2")
def k2_cnn(K, L):
    return chain(
        K, (9, 8, 3), L.Conv2D(4, 3, strides=2, padding="same"), L.BatchNormalization(scale=False), L.ReLU(6.0),
        L.AveragePooling2D((2, 1)), L.Flatten(), L.Dense(3))  # fmt: skip


@case("json_2")
def k2_cnn_json(K, L):
    return k2_cnn(K, L)


@case("json_2_tutorial", note="the weights file has the model's own name, as in many tutorials: model.json + model.h5")
def k2_dense_json(K, L):
    return k2_dense(K, L)


@case("h5_2")
def k2_residual(K, L):
    return functional_residual(K, L)


@case("keras2", extra=True)
def k2_residual_keras(K, L):
    return functional_residual(K, L)


@case("h5_2")
def k2_activations(K, L):
    return fan(
        K, (3, 4), L.ReLU(max_value=0.9, negative_slope=0.2, threshold=0.1), L.LeakyReLU(alpha=0.2), L.LeakyReLU(), L.ELU(0.7),
        L.ThresholdedReLU(theta=0.6), L.Softmax(axis=1), L.Activation("swish"), L.Activation("hard_sigmoid"),
        L.Dense(3, activation="hard_sigmoid"))  # fmt: skip


@case("h5_2")
def k2_depthwise(K, L):
    return fan(
        K, (5, 4, 3), L.DepthwiseConv2D((3, 1), use_bias=False), L.DepthwiseConv2D(3, strides=2, padding="same", depth_multiplier=2),
        L.SeparableConv2D(4, 3))  # fmt: skip


@case("h5_2", high=9)
def k2_text(K, L):
    return chain(K, (None,), L.Embedding(9, 4), L.Bidirectional(L.LSTM(3, return_sequences=True)), L.GRU(3, reset_after=False))


@case("keras2", high=9)
def k2_text_keras(K, L):
    return chain(K, (6,), L.Embedding(9, 4), L.Bidirectional(L.LSTM(3)), L.Dense(2))


@case("h5_2")
def k2_nested_shared(K, L):
    return nested_models(K, L)


@case("h5_2", note="a layer with operators becomes TFOpLambda nodes")
def k2_operators(K, L):
    x, y = K.Input((4, 5)), K.Input((4, 5))
    return K.Model([x, y], [x * 2.0 + y, L.Dense(3)(x) - 1.5])


@case("h5_2", extra=True)
def k2_residual_tower(K, L):
    return residual_tower(K, L)


@case("keras2", extra=True)
def k2_residual_tower_keras(K, L):
    return residual_tower(K, L)
