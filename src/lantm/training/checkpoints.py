"""Trees of arrays on disk, as safetensors files: loading one executes nothing."""

import hashlib
import json
import os
import re
import secrets
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

Tree = TypeVar("Tree")
Shaped: TypeAlias = jax.Array | jax.ShapeDtypeStruct


def save_tree(path: str | Path, tree: PyTree, metadata: dict[str, str] | None = None) -> None:
    """Write every array under its path in the tree. The file appears whole or not at all, and
    equal trees with equal metadata give equal files.
    """
    arrays = {name: np.asarray(leaf) for name, leaf in named_arrays(tree).items()}
    content = save(arrays, {**(metadata or {}), "checksum": checksum(arrays)})
    write_atomically(Path(path), in_order(content))


def in_order(content: bytes) -> bytes:
    """A safetensors file with its metadata sorted, which comes in an order drawn at random."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the arrays begin at a multiple of 8
    return len(text).to_bytes(8, "little") + text + content[start:]


def load_tree(path: str | Path, like: Tree, metadata: dict[str, str] | None = None) -> Tree:
    """`like` with every array taken from the file; a ValueError says what does not fit.

    Names, shapes and types have to agree, and so has the given metadata. Of `like` these are all
    that counts: it may come from `equinox.filter_eval_shape`.
    """
    found, said = read_arrays(path)
    found = {present_name(name): array for name, array in found.items()}
    for name, value in (metadata or {}).items():
        if said.get(name) != value:
            raise ValueError(f"{path} does not fit: {name} is {said.get(name)}, expected {value}")
    expected = named_arrays(like)
    if found.keys() != expected.keys():
        odd = sorted(found.keys() ^ expected.keys())
        raise ValueError(f"{path} does not fit: {odd[0]} is only on one side ({len(odd)} such)")
    for name, leaf in expected.items():
        here = found[name]
        if here.shape != leaf.shape or here.dtype != leaf.dtype:
            raise ValueError(
                f"{path} does not fit: {name} is {here.dtype}{list(here.shape)}, "
                f"expected {leaf.dtype}{list(leaf.shape)}"
            )
    arrays, rest = eqx.partition(like, is_shaped)
    leaves = [jnp.asarray(found[name]) for name in expected]
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays), leaves), rest)


FORMER_NAMES = {
    r"\baccess\.(read|write)\.": r"access.\1s.0.",
    r"\bspace\.bound\b": "reach.bound",
    r"\bcell\.readout\.": "cell.output.readout.",
}
"""What parameters of older files are called now."""


def present_name(name: str) -> str:
    """The name that a parameter of a file has today.

    >>> present_name("cell.access.read.initial_key")
    'cell.access.reads.0.initial_key'
    """
    for former, present in FORMER_NAMES.items():
        name = re.sub(former, present, name)
    return name


def read_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """All arrays and the metadata of a file that is whole."""
    try:
        with safe_open(path, framework="numpy") as file:
            said = file.metadata() or {}
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if said.get("checksum") != checksum(found):
        raise ValueError(f"{path} is damaged: its checksum does not fit its content")
    return found, said


def read_metadata(path: str | Path) -> dict[str, str]:
    """What a file says beside its arrays."""
    with safe_open(path, framework="numpy") as file:
        return file.metadata() or {}


def named_arrays(tree: PyTree) -> dict[str, Shaped]:
    """Every array of a tree under its path, such as `cell.access.read.initial_key`."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(tree, is_shaped))
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def is_shaped(leaf: Any) -> bool:
    return isinstance(leaf, Shaped)


def checksum(arrays: dict[str, np.ndarray]) -> str:
    """Differs when any name, type, shape or bit does."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Write under a temporary name, sync, rename: a crash leaves the old file or the new one."""
    temporary = path.with_name(f"{path.name}{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:  # with the mode that the user's umask asks for
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):  # a full disk, say: name the file
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
