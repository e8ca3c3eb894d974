"""Random cases of the operators that generate text: tiny decoders whose logits depend on tokens, positions, mask and past."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper, parser

from oracle_microsoft_cases import Case, generator, pick, section, some

section("generation")


def named(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def graph(text, constants):
    made = parser.parse_graph(text)
    made.initializer.extend(named(k, v) for k, v in constants.items())
    return made


def weights(rng, vocabulary, width, rows=64):
    return {
        "tokens": (rng.standard_normal((vocabulary, width))).astype(np.float32),
        "places": (rng.standard_normal((rows, width)) * 0.5).astype(np.float32),
        "out": (rng.standard_normal((width, vocabulary))).astype(np.float32),
    }


def gpt(rng, vocabulary, heads=2, size=3, layers=1):
    """input_ids, position_ids, attention_mask, past_i -> logits, present_i."""
    width = heads * size
    past = ", ".join(f"float[2,B,{heads},P,{size}] past_{i}" for i in range(layers))
    present = ", ".join(f"float[2,B,{heads},T,{size}] present_{i}" for i in range(layers))
    body = ""
    for i in range(layers):
        body += f"""
          both_{i} = Concat <axis = 0> (new, new)
          present_{i} = Concat <axis = 3> (past_{i}, both_{i})
          kept_{i} = Mul (present_{i}, mask)
          sum_{i} = ReduceSum <keepdims = 0> (kept_{i}, three)
          first_{i} = Gather <axis = 0> (sum_{i}, zero)
          line_{i} = Reshape (first_{i}, line)
          x_{i + 1} = Add (x_{i}, line_{i})"""
    return graph(f"""decoder (int32[B,S] input_ids, int32[B,S] position_ids, int32[B,T] attention_mask, {past})
        => (float[B,S,{vocabulary}] logits, {present}) {{
          token = Gather (tokens, input_ids)
          place = Gather (places, position_ids)
          x_0 = Add (token, place)
          split = Reshape (x_0, split_shape)
          turned = Transpose <perm = [0, 2, 1, 3]> (split)
          new = Unsqueeze (turned, zeros)
          numbers = Cast <to = 1> (attention_mask)
          mask = Unsqueeze (numbers, mask_axes)
          {body}
          logits = MatMul (x_{layers}, out)
        }}""", weights(rng, vocabulary, width) | {
            "split_shape": np.array([0, 0, heads, size], np.int64), "zeros": np.array([0], np.int64),
            "mask_axes": np.array([0, 2, 4], np.int64), "three": np.array([3], np.int64),
            "zero": np.array(0, np.int64), "line": np.array([0, 1, width], np.int64)})


def common(rng, vocabulary, batch, length, room):
    pad = int(pick(rng, 0, vocabulary - 1))
    eos = int(pick(rng, pad, *range(1, vocabulary - 1)))
    attrs = {"eos_token_id": eos, "pad_token_id": pad, "no_repeat_ngram_size": int(pick(rng, 0, 0, 1, 2, 3))}
    longest = length + int(rng.integers(1, room))
    shortest = np.array([int(rng.integers(1, longest)) if rng.random() < 0.5 else 0], np.int32)
    penalty = np.array([rng.uniform(0.6, 1.8) if rng.random() < 0.4 else 1], np.float32)
    mask = some(rng, (rng.random(vocabulary) < 0.8).astype(np.int32), 0.3)
    prefix = some(rng, (rng.random((batch, vocabulary)) < 0.8).astype(np.int32), 0.3)
    return attrs, np.array([longest], np.int32), shortest, penalty, mask, prefix


def prompt(rng, batch, length, vocabulary, pad):
    ids = rng.integers(0, vocabulary, (batch, length)).astype(np.int32)
    for row in ids:  # padding at the left
        row[: int(rng.integers(0, length))] = pad
    return ids


@generator
def GreedySearch(rng):
    vocabulary, batch, length = int(rng.integers(5, 12)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    attrs, longest, shortest, penalty, mask, prefix = common(rng, vocabulary, batch, length, 8)
    ids = prompt(rng, batch, length, vocabulary, attrs["pad_token_id"])
    attrs["decoder"] = gpt(rng, vocabulary, layers=int(pick(rng, 1, 2)))
    if rng.random() < 0.2:
        attrs["init_decoder"] = gpt(rng, vocabulary, layers=len(attrs["decoder"].output) - 1)
    attention = some(rng, (rng.random((batch, length)) < 0.8).astype(np.int32), 0.3)
    return Case("GreedySearch", [ids, longest, shortest, penalty, mask, prefix, attention], attrs,
                unfilled=attrs["pad_token_id"])


@generator
def Sampling(rng):
    # One token keeps all the probability, so that chance decides nothing.
    case = GreedySearch(rng)
    attrs = dict(case.attrs) | {"top_p": 1e-6, "temperature": float(pick(rng, 0.5, 1.0, 2.0)),
                                "custom": int(pick(rng, 0, 1)), "filter_value": -1e20}
    attrs |= {"min_tokens_to_keep": 1, "no_repeat_ngram_size": 0}  # where all tokens are forbidden, chance decides
    return Case("Sampling", case.inputs, attrs, unfilled=case.unfilled)


# Several prompts stop early: without that, the runtime asks for the scores of other prompts when one may end.
def beams(rng):
    count = int(rng.integers(1, 5))
    return np.array([count], np.int32), np.array([int(rng.integers(1, count + 1))], np.int32)


@generator
def BeamSearch(rng):
    batch, length = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    width, returned = beams(rng)
    vocabulary = 2 * int(width[0]) + int(rng.integers(4, 9))
    attrs, longest, shortest, penalty, mask, prefix = common(rng, vocabulary, batch, length, 8)
    ids = prompt(rng, batch, length, vocabulary, attrs["pad_token_id"])
    attrs |= {"decoder": gpt(rng, vocabulary, layers=int(pick(rng, 1, 2))), "early_stopping": 1 if batch > 1 else int(pick(rng, 0, 1))}
    scale = np.array([rng.uniform(0.5, 2)], np.float32)
    attention = some(rng, (rng.random((batch, length)) < 0.8).astype(np.int32), 0.2)
    wants = int(pick(rng, 1, 2, 2, 3))
    return Case("BeamSearch", [ids, longest, shortest, width, returned, scale, penalty, mask, prefix, attention],
                attrs, outputs=wants, ignore=(2,) if wants == 3 else (), rtol=1e-3, atol=1e-4)


def encoder_decoder(rng, vocabulary, whisper, old, hidden, heads=2, size=3):
    width = heads * size
    state = f"float[B,{heads},T,{size}]"
    constants = weights(rng, vocabulary, width) | {
        "split_shape": np.array([0, 0, heads, size], np.int64), "two": np.array([2], np.int64),
        "line": np.array([0, 1, width], np.int64), "mask_axes": np.array([1, 3], np.int64)}
    if whisper:
        begin = "float[B,M,F] encoder_input_ids"
        source = "turned_in = Transpose <perm = [0, 2, 1]> (encoder_input_ids)\n encoded = MatMul (turned_in, mel)"
        constants["mel"] = (rng.standard_normal((4, width)) * 0.5).astype(np.float32)
    else:
        begin = "int32[B,E] encoder_input_ids, int32[B,E] encoder_attention_mask"
        source = "encoded = Gather (tokens, encoder_input_ids)"

    def steps(ids, past):
        own = "pair = Identity (turned)" if past is None else f"pair = Concat <axis = 2> ({past}, turned)"
        return f"""
          token = Gather (tokens, {ids})
          split = Reshape (token, split_shape)
          turned = Transpose <perm = [0, 2, 1, 3]> (split)
          {own}
          summed = ReduceSum <keepdims = 0> (pair, two)
          self_line = Reshape (summed, line)
          crossed = ReduceMean <keepdims = 0> (cross, two)
          cross_line = Reshape (crossed, line)
          near = Add (token, self_line)
          far = Add (near, cross_line)
          logits = MatMul (far, out)"""

    masked = "" if whisper else """
          numbers = Cast <to = 1> (encoder_attention_mask)
          mask = Unsqueeze (numbers, mask_axes)"""
    keys = "cross = Identity (heads_in)" if whisper else "cross = Mul (heads_in, mask)"
    ends = "present_key_cross_0 = Identity (cross)\n present_value_cross_0 = Neg (cross)"
    front = f"{source}\n{masked}\n heads_raw = Reshape (encoded, split_shape)\n" \
            f" heads_in = Transpose <perm = [0, 2, 1, 3]> (heads_raw)\n {keys}\n {ends}"
    cross = f"{state.replace('T', 'E')} present_key_cross_0, {state.replace('T', 'E')} present_value_cross_0"
    if old:
        encoder = graph(f"""encoder ({begin}, int32[B,D] decoder_input_ids)
          => (float[B,D,{vocabulary}] logits, float[B,E,{width}] encoder_hidden_states, {state} present_key_self_0,
              {state} present_value_self_0, {cross}) {{
            {front}
            {steps("decoder_input_ids", None)}
            encoder_hidden_states = Identity (encoded)
            present_key_self_0 = Identity (pair)
            present_value_self_0 = Neg (pair)
          }}""", constants)
    else:
        encoder = graph(f"encoder ({begin}) => ({cross}) {{ {front} }}", constants)
    inputs = ["int32[B,1] input_ids"]
    if not whisper:
        inputs.append("int32[B,E] encoder_attention_mask")
    if hidden:
        inputs.append(f"float[B,E,{width}] encoder_hidden_states")
    inputs += [f"{state.replace('T', 'P')} past_{part}_self_0" for part in ("key", "value")]
    inputs += [f"{state.replace('T', 'E')} past_{part}_cross_0" for part in ("key", "value")]
    decoder = graph(f"""decoder ({", ".join(inputs)})
      => (float[B,1,{vocabulary}] logits, {state} present_key_self_0, {state} present_value_self_0) {{
        cross = Identity (past_key_cross_0)
        {steps("input_ids", "past_key_self_0")}
        present_key_self_0 = Identity (pair)
        negative = Neg (turned)
        present_value_self_0 = Concat <axis = 2> (past_value_self_0, negative)
      }}""", constants)
    return encoder, decoder


@generator
def BeamSearch_T5(rng):
    batch, length = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    width, returned = beams(rng)
    vocabulary = 2 * int(width[0]) + int(rng.integers(4, 9))
    attrs, longest, shortest, penalty, mask, prefix = common(rng, vocabulary, batch, 2, 8)
    ids = prompt(rng, batch, length, vocabulary, attrs["pad_token_id"])
    old = rng.random() < 0.5
    encoder, decoder = encoder_decoder(rng, vocabulary, False, old, old and rng.random() < 0.5)
    attrs |= {"encoder": encoder, "decoder": decoder, "model_type": 1, "early_stopping": 1 if batch > 1 else int(pick(rng, 0, 1)),
              "decoder_start_token_id": int(rng.integers(0, vocabulary))}
    scale = np.array([rng.uniform(0.5, 2)], np.float32)
    attention = some(rng, (rng.random((batch, length)) < 0.8).astype(np.int32), 0.2)
    return Case("BeamSearch", [ids, longest, shortest, width, returned, scale, penalty, mask, prefix, attention],
                attrs, outputs=int(pick(rng, 1, 2)), rtol=1e-3, atol=1e-4)


@generator
def WhisperBeamSearch(rng):
    batch = int(rng.integers(1, 3))
    width, returned = beams(rng)
    rules = rng.random() < 0.3
    vocabulary = 2 * int(width[0]) + int(rng.integers(8, 14))
    attrs, longest, shortest, penalty, mask, prefix = common(rng, vocabulary, batch, 4, 8)
    old = True
    encoder, decoder = encoder_decoder(rng, vocabulary, True, old, False)
    attrs |= {"encoder": encoder, "decoder": decoder, "model_type": 2, "early_stopping": 1 if batch > 1 else int(pick(rng, 0, 1)),
              "decoder_start_token_id": int(rng.integers(0, vocabulary))}
    features = rng.standard_normal((batch, 4, int(rng.integers(2, 6)))).astype(np.float32)
    first = rng.integers(0, vocabulary, (batch, int(rng.integers(1, 4)))).astype(np.int32)
    scale = np.array([rng.uniform(0.5, 2)], np.float32)
    logits = None
    if rules:
        attrs |= {"beginning_timestamp_token_id": vocabulary - 5, "no_timestamps_token_id": vocabulary - 6,
                  "start_of_lm_token_id": vocabulary - 7, "translate_token_id": 1, "transcribe_token_id": 2}
        logits = np.array([1], np.int32)
    temperature = some(rng, np.array([rng.uniform(0.5, 2)], np.float32), 0.3)
    return Case("WhisperBeamSearch", [features, longest, shortest, width, returned, scale, penalty, mask, prefix, None,
                                      first, logits, None, None, temperature],
                attrs, outputs=int(pick(rng, 1, 2)), rtol=1e-3, atol=1e-4)
