"""Exports networks of Keras by tf2onnx, for `bench/exported.py measure`.

    python bench/exported_keras.py FOLDER [--only REGEX] [--jobs 2]

Needs tensorflow-cpu, tf2onnx, onnx and onnxruntime. One of each family of keras.applications, and networks of the kinds that Keras' own
examples build, written here. Weights are random with a seed, biases and statistics of normalisations too. Each network is exported twice: for
a batch of any size, and of one. What cannot be exported, or not run by ONNX Runtime, is listed and left out.
"""
import os

import numpy as np

import exported

APPLICATIONS = """Xception ResNet50 ResNet50V2 InceptionV3 InceptionResNetV2 MobileNet MobileNetV2 MobileNetV3Small MobileNetV3Large DenseNet121
NASNetMobile EfficientNetB0 EfficientNetV2B0 ConvNeXtTiny""".split()
BATCHES = ("any", "one")


# ---- networks: each takes keras and keras.layers, and gives a model

def text_lstm(keras, L):
    return keras.Sequential([keras.Input((200,), dtype="int32"), L.Embedding(8000, 64), L.LSTM(128, return_sequences=True), L.LSTM(64), L.Dense(1, activation="sigmoid")])


def text_bilstm(keras, L):
    return keras.Sequential([keras.Input((200,), dtype="int32"), L.Embedding(8000, 128), L.Bidirectional(L.LSTM(64, return_sequences=True)), L.Bidirectional(L.LSTM(64)), L.Dense(1, activation="sigmoid")])


def text_masked_gru(keras, L):
    return keras.Sequential([keras.Input((100,), dtype="int32"), L.Embedding(8000, 64, mask_zero=True), L.GRU(128, return_sequences=True), L.GRU(64), L.Dense(5, activation="softmax")])


def text_convolutions(keras, L):
    return keras.Sequential([keras.Input((500,), dtype="int32"), L.Embedding(8000, 128), L.Conv1D(128, 7, strides=3, activation="relu"), L.Conv1D(128, 7, strides=3, activation="relu"), L.GlobalMaxPooling1D(), L.Dense(128, activation="relu"), L.Dense(1, activation="sigmoid")])


def gelu(x):
    """By tanh: that by erf has an operator in TensorFlow that tf2onnx does not know."""
    import keras
    return keras.activations.gelu(x, approximate=True)


def encoder_block(L, x, heads, width, inner, activation="relu"):
    a = L.MultiHeadAttention(heads, width // heads)(x, x)
    x = L.LayerNormalization(epsilon=1e-6)(L.Add()([x, a]))
    f = L.Dense(width)(L.Dense(inner, activation=activation)(x))
    return L.LayerNormalization(epsilon=1e-6)(L.Add()([x, f]))


def positions(keras, x):
    """What stands for each position is added. A table of its own: tf2onnx makes an input of one that is read outside of the network."""
    class Positions(keras.layers.Layer):
        def build(self, shape):
            self.table = self.add_weight(shape=shape[1:])

        def call(self, values):
            return values + self.table
    return Positions()(x)


def text_transformer(keras, L):
    tokens = keras.Input((200,), dtype="int32")
    x = positions(keras, L.Embedding(8000, 128)(tokens))
    for _ in range(2):
        x = encoder_block(L, x, 4, 128, 256)
    return keras.Model(tokens, L.Dense(2, activation="softmax")(L.GlobalAveragePooling1D()(x)))


def translation_transformer(keras, L):
    source, target = keras.Input((40,), dtype="int32"), keras.Input((40,), dtype="int32")
    x = encoder_block(L, L.Embedding(8000, 256)(source), 8, 256, 1024)
    y = L.Embedding(8000, 256)(target)
    y = L.LayerNormalization()(y + L.MultiHeadAttention(8, 32)(y, y, use_causal_mask=True))
    y = L.LayerNormalization()(y + L.MultiHeadAttention(8, 32)(y, x))
    y = L.LayerNormalization()(y + L.Dense(256)(L.Dense(1024, activation="relu")(y)))
    return keras.Model([source, target], L.Dense(8000, activation="softmax")(y))


def characters_seq2seq(keras, L):
    source, target = keras.Input((40, 71)), keras.Input((40, 93))
    _, h, c = L.LSTM(256, return_state=True)(source)
    y = L.LSTM(256, return_sequences=True)(target, initial_state=[h, c])
    return keras.Model([source, target], L.Dense(93, activation="softmax")(y))


def additive_attention(keras, L):
    x = keras.Input((60, 32))
    states = L.Bidirectional(L.GRU(64, return_sequences=True))(x)
    found = L.AdditiveAttention()([states, states])
    return keras.Model(x, L.Dense(10)(L.GlobalAveragePooling1D()(L.Concatenate()([states, found]))))


def forecasting_lstm(keras, L):
    return keras.Sequential([keras.Input((120, 7)), L.LSTM(32), L.Dense(1)])


def series_transformer(keras, L):
    inputs = x = keras.Input((500, 1))
    for _ in range(4):
        y = L.MultiHeadAttention(4, 256)(x, x)
        x = L.LayerNormalization(epsilon=1e-6)(y) + x
        y = L.Conv1D(1, 1)(L.Conv1D(4, 1, activation="relu")(x))
        x = L.LayerNormalization(epsilon=1e-6)(y) + x
    return keras.Model(inputs, L.Dense(2, activation="softmax")(L.Dense(128, activation="relu")(L.GlobalAveragePooling1D(data_format="channels_first")(x))))


def series_convolutions(keras, L):
    inputs = x = keras.Input((500, 1))
    for _ in range(3):
        x = L.ReLU()(L.BatchNormalization()(L.Conv1D(64, 3, padding="same")(x)))
    return keras.Model(inputs, L.Dense(2, activation="softmax")(L.GlobalAveragePooling1D()(x)))


def series_autoencoder(keras, L):
    return keras.Sequential([keras.Input((288, 1)), L.Conv1D(32, 7, padding="same", strides=2, activation="relu"), L.Conv1D(16, 7, padding="same", strides=2, activation="relu"),
                             L.Conv1DTranspose(16, 7, padding="same", strides=2, activation="relu"), L.Conv1DTranspose(32, 7, padding="same", strides=2, activation="relu"), L.Conv1DTranspose(1, 7, padding="same")])


def wavenet(keras, L):
    inputs = x = keras.Input((2000, 1))
    x = L.Conv1D(32, 2, padding="causal")(x)
    skips = []
    for rate in (1, 2, 4, 8, 16, 32, 64, 128):
        y = L.Conv1D(32, 2, padding="causal", dilation_rate=rate, activation="tanh")(x) * L.Conv1D(32, 2, padding="causal", dilation_rate=rate, activation="sigmoid")(x)
        y = L.Conv1D(32, 1)(y)
        skips.append(y)
        x = x + y
    return keras.Model(inputs, L.Conv1D(1, 1)(L.Conv1D(64, 1, activation="relu")(L.ReLU()(L.Add()(skips)))))


def speaker_residuals(keras, L):
    inputs = x = keras.Input((8000, 1))
    for filters, count in ((16, 2), (32, 2), (64, 3), (128, 3)):
        skip = L.Conv1D(filters, 1, padding="same")(x)
        for _ in range(count - 1):
            x = L.ReLU()(L.Conv1D(filters, 3, padding="same")(x))
        x = L.ReLU()(L.Add()([L.Conv1D(filters, 3, padding="same")(x), skip]))
        x = L.MaxPooling1D(2, 2)(x)
    x = L.Flatten()(L.AveragePooling1D(3, 3)(x))
    return keras.Model(inputs, L.Dense(5, activation="softmax")(L.Dense(128, activation="relu")(x)))


def captcha_ocr(keras, L):
    image = keras.Input((200, 50, 1))
    x = L.MaxPooling2D(2)(L.Conv2D(32, 3, activation="relu", padding="same")(image))
    x = L.MaxPooling2D(2)(L.Conv2D(64, 3, activation="relu", padding="same")(x))
    x = L.Dense(64, activation="relu")(L.Reshape((50, 12 * 64))(x))
    x = L.Bidirectional(L.LSTM(128, return_sequences=True))(x)
    x = L.Bidirectional(L.LSTM(64, return_sequences=True))(x)
    return keras.Model(image, L.Dense(21, activation="softmax")(x))


def next_frames(keras, L):
    inputs = x = keras.Input((8, 32, 32, 1))
    for size in (5, 3):
        x = L.BatchNormalization()(L.ConvLSTM2D(32, size, padding="same", return_sequences=True, activation="relu")(x))
    return keras.Model(inputs, L.Conv3D(1, 3, activation="sigmoid", padding="same")(x))


def scans(keras, L):
    inputs = x = keras.Input((64, 64, 32, 1))
    for filters in (32, 64, 64):
        x = L.BatchNormalization()(L.MaxPooling3D(2)(L.Conv3D(filters, 3, activation="relu")(x)))
    return keras.Model(inputs, L.Dense(1, activation="sigmoid")(L.Dense(128, activation="relu")(L.GlobalAveragePooling3D()(x))))


def video_frames(keras, L):
    frame = keras.Sequential([keras.Input((64, 64, 3)), L.Conv2D(16, 3, strides=2, activation="relu"), L.SeparableConv2D(32, 3, strides=2, activation="relu"), L.SeparableConv2D(64, 3, strides=2, activation="relu"), L.GlobalAveragePooling2D()])
    return keras.Sequential([keras.Input((12, 64, 64, 3)), L.TimeDistributed(frame), L.GRU(64), L.Dense(5, activation="softmax")])


def segmentation_unet(keras, L):
    inputs = keras.Input((160, 160, 3))
    x = before = L.ReLU()(L.BatchNormalization()(L.Conv2D(32, 3, strides=2, padding="same")(inputs)))
    for filters in (64, 128, 256):
        for _ in range(2):
            x = L.BatchNormalization()(L.SeparableConv2D(filters, 3, padding="same")(L.ReLU()(x)))
        x = before = L.Add()([L.MaxPooling2D(3, strides=2, padding="same")(x), L.Conv2D(filters, 1, strides=2, padding="same")(before)])
    for filters in (256, 128, 64, 32):
        for _ in range(2):
            x = L.BatchNormalization()(L.Conv2DTranspose(filters, 3, padding="same")(L.ReLU()(x)))
        x = before = L.Add()([L.UpSampling2D(2)(x), L.Conv2D(filters, 1, padding="same")(L.UpSampling2D(2)(before))])
    return keras.Model(inputs, L.Conv2D(3, 3, activation="softmax", padding="same")(x))


def plain_unet(keras, L):
    inputs = x = keras.Input((128, 128, 1))
    double = lambda x, f: L.Conv2D(f, 3, padding="same", activation="relu")(L.Conv2D(f, 3, padding="same", activation="relu")(x))
    skips = []
    for filters in (32, 64, 128):
        skips.append(double(x, filters))
        x = L.MaxPooling2D(2)(skips[-1])
    x = double(x, 256)
    for filters in (128, 64, 32):
        x = double(L.Concatenate()([L.Conv2DTranspose(filters, 2, strides=2, padding="same")(x), skips.pop()]), filters)
    return keras.Model(inputs, L.Conv2D(1, 1, activation="sigmoid")(x))


def deeplab(keras, L):
    inputs = keras.Input((256, 256, 3))
    block = lambda x, f=128, k=3, d=1, bias=False: L.ReLU()(L.BatchNormalization()(L.Conv2D(f, k, dilation_rate=d, padding="same", use_bias=bias)(x)))
    low = L.ReLU()(L.BatchNormalization()(L.Conv2D(48, 3, strides=4, padding="same")(inputs)))
    x = L.ReLU()(L.BatchNormalization()(L.Conv2D(128, 3, strides=4, padding="same")(low)))
    pooled = L.UpSampling2D((16, 16), interpolation="bilinear")(block(L.AveragePooling2D((16, 16))(x), k=1, bias=True))
    x = block(L.Concatenate()([pooled, *(block(x, k=1 if d == 1 else 3, d=d) for d in (1, 3, 6, 9))]), k=1)
    x = L.Concatenate()([L.UpSampling2D(4, interpolation="bilinear")(x), block(low, 48, 1)])
    x = L.UpSampling2D(4, interpolation="bilinear")(block(block(x)))
    return keras.Model(inputs, L.Conv2D(20, 1, padding="same")(x))


def super_resolution(keras, L):
    inputs = x = keras.Input((100, 100, 1))
    for filters, size in ((64, 5), (64, 3), (32, 3), (9, 3)):
        x = L.Conv2D(filters, size, padding="same", activation="relu")(x)
    return keras.Model(inputs, keras.ops.reshape(keras.ops.transpose(keras.ops.reshape(x, (-1, 100, 100, 3, 3, 1)), (0, 1, 3, 2, 4, 5)), (-1, 300, 300, 1)))


def low_light(keras, L):
    image = keras.Input((128, 128, 3))
    conv = lambda x, n=32, **more: L.Conv2D(n, 3, padding="same", activation="relu", **more)(x)
    a = conv(image)
    b = conv(a)
    c = conv(b)
    d = conv(c)
    e = conv(L.Concatenate()([d, c]))
    f = conv(L.Concatenate()([e, b]))
    curves = L.Conv2D(24, 3, padding="same", activation="tanh")(L.Concatenate()([f, a]))
    x = image
    for k in range(8):
        x = x + curves[:, :, :, 3 * k:3 * k + 3] * (keras.ops.square(x) - x)
    return keras.Model(image, x)


def gan_generator(keras, L):
    return keras.Sequential([keras.Input((128,)), L.Dense(8 * 8 * 128), L.Reshape((8, 8, 128)), L.Conv2DTranspose(128, 4, strides=2, padding="same"), L.LeakyReLU(negative_slope=0.2),
                             L.Conv2DTranspose(256, 4, strides=2, padding="same"), L.LeakyReLU(negative_slope=0.2), L.Conv2DTranspose(512, 4, strides=2, padding="same"), L.LeakyReLU(negative_slope=0.2), L.Conv2D(3, 5, padding="same", activation="sigmoid")])


def gan_discriminator(keras, L):
    return keras.Sequential([keras.Input((64, 64, 3)), L.Conv2D(64, 4, strides=2, padding="same"), L.LeakyReLU(negative_slope=0.2), L.Conv2D(128, 4, strides=2, padding="same"), L.LeakyReLU(negative_slope=0.2),
                             L.Conv2D(128, 4, strides=2, padding="same"), L.LeakyReLU(negative_slope=0.2), L.Flatten(), L.Dropout(0.2), L.Dense(1, activation="sigmoid")])


def cycle_generator(keras, L):
    inputs = keras.Input((128, 128, 3))
    norm = lambda x: L.GroupNormalization(groups=-1)(x)
    x = L.ReLU()(norm(L.Conv2D(32, 7, padding="same")(inputs)))
    for filters in (64, 128):
        x = L.ReLU()(norm(L.Conv2D(filters, 3, strides=2, padding="same")(x)))
    for _ in range(3):
        x = x + norm(L.Conv2D(128, 3, padding="same")(L.ReLU()(norm(L.Conv2D(128, 3, padding="same")(x)))))
    for filters in (64, 32):
        x = L.ReLU()(norm(L.Conv2DTranspose(filters, 3, strides=2, padding="same")(x)))
    return keras.Model(inputs, L.Conv2D(3, 7, padding="same", activation="tanh")(x))


def variational_decoder(keras, L):
    return keras.Sequential([keras.Input((2,)), L.Dense(7 * 7 * 64, activation="relu"), L.Reshape((7, 7, 64)), L.Conv2DTranspose(64, 3, activation="relu", strides=2, padding="same"), L.Conv2DTranspose(32, 3, activation="relu", strides=2, padding="same"), L.Conv2DTranspose(1, 3, activation="sigmoid", padding="same")])


def patches(keras, L, image, size, width):
    x = L.Conv2D(width, size, strides=size)(image)
    return L.Reshape((x.shape[1] * x.shape[2], width))(x)


def vision_transformer(keras, L):
    image = keras.Input((72, 72, 3))
    x = positions(keras, patches(keras, L, image, 6, 64))
    for _ in range(6):
        y = L.LayerNormalization(epsilon=1e-6)(x)
        x = x + L.MultiHeadAttention(4, 64)(y, y)
        y = L.LayerNormalization(epsilon=1e-6)(x)
        x = x + L.Dense(64, activation=gelu)(L.Dense(128, activation=gelu)(y))
    x = L.Flatten()(L.LayerNormalization(epsilon=1e-6)(x))
    return keras.Model(image, L.Dense(100)(L.Dense(512, activation=gelu)(x)))


def mixer(keras, L):
    image = keras.Input((64, 64, 3))
    x = patches(keras, L, image, 8, 256)
    for _ in range(4):
        y = L.Permute((2, 1))(L.LayerNormalization()(x))
        y = L.Permute((2, 1))(L.Dense(64)(L.Dense(64, activation=gelu)(y)))
        x = x + y
        x = x + L.Dense(256)(L.Dense(256, activation=gelu)(L.LayerNormalization()(x)))
    return keras.Model(image, L.Dense(100)(L.GlobalAveragePooling1D()(x)))


def conv_mixer(keras, L):
    image = keras.Input((32, 32, 3))
    block = lambda x: L.BatchNormalization()(L.Activation(gelu)(x))
    x = block(L.Conv2D(256, 2, strides=2)(image))
    for _ in range(8):
        x = x + block(L.DepthwiseConv2D(5, padding="same")(x))
        x = block(L.Conv2D(256, 1)(x))
    return keras.Model(image, L.Dense(10, activation="softmax")(L.GlobalAveragePooling2D()(x)))


def involution(keras, L):
    image = keras.Input((32, 32, 3))
    x = image
    for _ in range(3):
        kernel = L.Conv2D(9, 1)(L.ReLU()(L.BatchNormalization()(L.Conv2D(4, 1)(x))))
        kernel = keras.ops.reshape(kernel, (-1, 32, 32, 9, 1))
        padded = L.ZeroPadding2D(1)(x)
        seen = keras.ops.stack([padded[:, i:i + 32, j:j + 32, :] for i in range(3) for j in range(3)], axis=3)
        x = L.ReLU()(keras.ops.sum(kernel * seen, axis=3))
    return keras.Model(image, L.Dense(10)(L.Dense(64, activation="relu")(L.Flatten()(x))))


def point_net(keras, L):
    points = keras.Input((1024, 3))
    conv = lambda x, n: L.ReLU()(L.BatchNormalization(momentum=0.0)(L.Conv1D(n, 1)(x)))
    dense = lambda x, n: L.ReLU()(L.BatchNormalization(momentum=0.0)(L.Dense(n)(x)))
    def turned(x, n):
        y = L.GlobalMaxPooling1D()(conv(conv(conv(x, 32), 64), 512))
        y = L.Reshape((n, n))(L.Dense(n * n)(dense(dense(y, 256), 128)))
        return L.Dot(axes=(2, 1))([x, y])
    x = conv(conv(turned(points, 3), 32), 32)
    x = conv(conv(conv(turned(x, 32), 32), 64), 512)
    x = dense(dense(L.GlobalMaxPooling1D()(x), 256), 128)
    return keras.Model(points, L.Dense(10, activation="softmax")(x))


def tabular(keras, L):
    numbers, kinds = keras.Input((13,)), keras.Input((8,), dtype="int32")
    x = L.Concatenate()([L.BatchNormalization()(numbers), L.Flatten()(L.Embedding(100, 16)(kinds))])
    for width in (256, 128, 64):
        gate = L.Dense(width, activation="sigmoid")(x)
        x = L.LayerNormalization()(L.Dense(width, activation="elu")(x) * gate)
    return keras.Model([numbers, kinds], L.Dense(1)(x))


def recommender(keras, L):
    users, items = keras.Input((64,), dtype="int32"), keras.Input((64,), dtype="int32")
    a, b = L.Embedding(5000, 50)(users), L.Embedding(9000, 50)(items)
    return keras.Model([users, items], keras.ops.sigmoid(keras.ops.sum(a * b, axis=-1) + L.Embedding(5000, 1)(users)[:, :, 0] + L.Embedding(9000, 1)(items)[:, :, 0]))


def siamese(keras, L):
    tower = keras.Sequential([keras.Input((28, 28, 1)), L.BatchNormalization(), L.Conv2D(4, 5, activation="tanh"), L.AveragePooling2D(2), L.Conv2D(16, 5, activation="tanh"), L.AveragePooling2D(2), L.Flatten(), L.BatchNormalization(), L.Dense(10, activation="tanh")])
    a, b = keras.Input((28, 28, 1)), keras.Input((28, 28, 1))
    apart = keras.ops.sqrt(keras.ops.maximum(keras.ops.sum(keras.ops.square(tower(a) - tower(b)), axis=1, keepdims=True), 1e-7))
    return keras.Model([a, b], L.Dense(1, activation="sigmoid")(L.BatchNormalization()(apart)))


def mnist(keras, L):
    return keras.Sequential([keras.Input((28, 28, 1)), L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(2), L.Conv2D(64, 3, activation="relu"), L.MaxPooling2D(2), L.Flatten(), L.Dropout(0.5), L.Dense(10, activation="softmax")])


def small_xception(keras, L):
    inputs = keras.Input((180, 180, 3))
    x = L.Rescaling(1.0 / 255)(inputs)
    x = before = L.ReLU()(L.BatchNormalization()(L.Conv2D(128, 3, strides=2, padding="same")(x)))
    for size in (256, 512, 728):
        for _ in range(2):
            x = L.BatchNormalization()(L.SeparableConv2D(size, 3, padding="same")(L.ReLU()(x)))
        x = before = L.Add()([L.MaxPooling2D(3, strides=2, padding="same")(x), L.Conv2D(size, 1, strides=2, padding="same")(before)])
    x = L.ReLU()(L.BatchNormalization()(L.SeparableConv2D(1024, 3, padding="same")(x)))
    return keras.Model(inputs, L.Dense(1)(L.GlobalAveragePooling2D()(x)))


def detector(keras, L):
    """One stage with a pyramid, its boxes decoded: sizes by strides, then scores."""
    image = keras.Input((256, 256, 3))
    conv = lambda x, n, k=3, s=1: L.Activation("swish")(L.BatchNormalization()(L.Conv2D(n, k, strides=s, padding="same", use_bias=False)(x)))
    x, levels = conv(image, 16, 3, 2), []
    for n in (32, 64, 128, 256):
        x = conv(x, n, 3, 2)
        a, b = conv(x, n // 2, 1), conv(x, n // 2, 1)
        b = b + conv(conv(b, n // 2), n // 2)
        x = conv(L.Concatenate()([a, b]), n, 1)
        levels.append(x)
    pooled = [x]
    for _ in range(3):
        pooled.append(L.MaxPooling2D(5, strides=1, padding="same")(pooled[-1]))
    x = conv(L.Concatenate()(pooled), 256, 1)
    out = []
    for level, n in ((levels[2], 128), (levels[1], 64)):
        x = conv(L.Concatenate()([L.UpSampling2D(2)(x), level]), n, 1)
        y = L.Conv2D(84, 1)(conv(x, n))
        y = L.Reshape((y.shape[1] * y.shape[2], 84))(y)
        corner = keras.ops.sigmoid(y[..., :2]) * 2.0 - 0.5
        out.append(keras.ops.concatenate([corner, keras.ops.exp(y[..., 2:4]), keras.ops.sigmoid(y[..., 4:])], axis=-1))
    return keras.Model(image, L.Concatenate(axis=1)(out))


def squeeze_excite(keras, L):
    inputs = keras.Input((96, 96, 3))
    x = L.Conv2D(32, 3, strides=2, padding="same", activation="hard_silu")(inputs)
    for n in (64, 128, 256):
        y = L.Activation("hard_silu")(L.BatchNormalization()(L.DepthwiseConv2D(5, strides=2, padding="same")(x)))
        gate = L.GlobalAveragePooling2D(keepdims=True)(y)
        gate = L.Conv2D(y.shape[-1], 1, activation="hard_sigmoid")(L.Conv2D(y.shape[-1] // 4, 1, activation="relu")(gate))
        x = L.BatchNormalization()(L.Conv2D(n, 1)(y * gate))
    return keras.Model(inputs, L.Dense(10, activation="softmax")(L.GlobalAveragePooling2D()(x)))


EXAMPLES = {made.__name__: made for made in (
    text_lstm, text_bilstm, text_masked_gru, text_convolutions, text_transformer, translation_transformer, characters_seq2seq, additive_attention, forecasting_lstm, series_transformer, series_convolutions,
    series_autoencoder, wavenet, speaker_residuals, captcha_ocr, next_frames, scans, video_frames, segmentation_unet, plain_unet, deeplab, super_resolution, low_light, gan_generator, gan_discriminator,
    cycle_generator, variational_decoder, vision_transformer, mixer, conv_mixer, involution, point_net, tabular, recommender, siamese, mnist, small_xception, detector, squeeze_excite)}


# ---- one export, in a process of its own

def export(name, batch, folder):
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras
    import onnxruntime
    import tensorflow as tf
    import tf2onnx
    keras.utils.set_random_seed(0)
    network = getattr(keras.applications, name)(weights=None, **({"input_shape": (224, 224, 3)} if name.startswith("MobileNetV3") else {})) if name in APPLICATIONS else EXAMPLES[name](keras, keras.layers)
    rng = np.random.default_rng(0)
    # What begins as zeros or ones would be folded away.
    for weight in network.weights:
        if weight.name in ("moving_variance", "gamma"):
            weight.assign(rng.uniform(0.5, 1.5, weight.shape))
        elif weight.name in ("moving_mean", "beta", "bias", "table"):
            weight.assign(rng.normal(0, 0.1, weight.shape))
    inputs = {f"input_{i}": x for i, x in enumerate(network.inputs)}
    signature = [tf.TensorSpec((None if batch == "any" else 1, *x.shape[1:]), x.dtype, name=n) for n, x in inputs.items()]
    run = tf.function(lambda *values: network(list(values) if len(values) > 1 else values[0], training=False), input_signature=signature)
    tf2onnx.convert.from_function(run, input_signature=signature, opset=int(os.environ['OPSET']), output_path=os.path.join(folder, "model.onnx"))
    feed = {n: rng.integers(1, 100, (1, *x.shape[1:])).astype(x.dtype) if "int" in x.dtype else rng.random((1, *x.shape[1:]), np.float32) for n, x in inputs.items()}
    # tf2onnx writes what it cannot say, too: calls without a body, shapes that do not fit.
    onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), providers=["CPUExecutionProvider"]).run(None, feed)
    np.savez(os.path.join(folder, "inputs.npz"), **feed)


def main():
    parser = exported.exporter_parser(__doc__)
    parser.add_argument("--one", nargs=2, metavar=("NETWORK", "BATCH"), help="exports one network here")
    args = parser.parse_args()
    if args.one:
        export(*args.one, args.folder)
        return
    commands = {f"keras.{n}.{b}": [os.path.abspath(__file__), "--one", n, b] for n in (*APPLICATIONS, *EXAMPLES) for b in BATCHES}
    exported.make_each(args.folder, commands, args.only, args.jobs)


if __name__ == "__main__":
    main()
