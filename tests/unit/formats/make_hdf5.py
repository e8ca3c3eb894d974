"""Writes data/*.h5, small HDF5 files in the variants that h5py can write (h5py 3.14, numpy 2).

    python3 make_hdf5.py

Every dataset holds 0, 1, 2, ... in its element type, so that the test needs no second table.
"""

import pathlib

import h5py
import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent / "data"


def count(shape, dtype):
    return np.arange(int(np.prod(shape)), dtype="f8").astype(dtype).reshape(shape)


for version in ("earliest", "latest"):
    for ordered in (False, True):
        name = f"{version}_{'ordered' if ordered else 'plain'}.h5"
        with h5py.File(FOLDER / name, "w", libver=version, track_order=ordered) as file:
            file.attrs["text"] = "héllo"
            file.attrs["list"] = ["a", "bb", ""]
            file.attrs["fixed"] = np.array([b"xx", b"y"], dtype="S3")
            file.attrs["number"] = 5
            for i in range(10):  # more than 8 are stored apart
                file.attrs[f"many{i}"] = f"value {i}"
            file.attrs["names0"], file.attrs["names1"] = ["p", "q"], ["r"]
            group = file.create_group("group", track_order=ordered)
            for i in range(40):
                group[f"member{i}"] = np.float32(i)
            for dtype in ("<f4", ">f8", "i1", "u2", "<i8", "f2"):
                file[f"types/{dtype[-2:]}"] = count((2, 3), dtype)
            file["types/bf"] = (count((3,), "f4").view("u4") >> 16).astype("u2").view("V2")
            file["types/bool"] = np.array([False, True])
            file["types/empty"] = np.zeros((0, 3), "f4")
            file["types/strings"] = ["ab", "c"]
            chunked = {"earliest": {"chunks": (4, 3)}, "latest": {"chunks": (9, 5)}}[version]
            file.create_dataset("chunks/plain", data=count((9, 5), "f4"), **chunked)
            file.create_dataset("chunks/gzip", data=count((9, 5), "f4"), compression="gzip", **chunked)
            file.create_dataset(
                "chunks/all", data=count((9, 5), "f8"), compression="gzip", shuffle=True, fletcher32=True, **chunked
            )
            file["outside"] = h5py.ExternalLink("/etc/passwd", "/")
            file["soft"] = h5py.SoftLink("/types")
