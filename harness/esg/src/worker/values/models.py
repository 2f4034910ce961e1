"""Models of pydantic, by what they are declared with: fields, decorators and settings.

The schema, the validator and the serializer of a model follow from these. They are no content: a
validator cannot be read, a schema names its classes by their addresses, and models that are nested share
parts of it. The package makes them again where a model is restored.

Written for what the package has had from 2.11 on. Models of earlier versions cannot be stored.
"""
import importlib
import sys

from _harness.values.shapes import MAPPING, Kind, register

_MODULE = type.__dict__["__module__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__
_SCHEMA = "__pydantic_core_schema__"
# And what the package keeps of the uses of a model.
_DERIVED = frozenset((_SCHEMA, "__pydantic_validator__", "__pydantic_serializer__",
                      "__pydantic_setattr_handlers__", "__signature__"))
# Slots without content: the address of a class, which nothing reads, and what follows from the others.
_SLOTS = {
    ("pydantic._internal._decorators", "Decorator"): ("cls_ref", lambda: ""),
    ("pydantic.fields", "ModelPrivateAttr"): (
        "_default_factory_takes_validated_data", lambda: importlib.import_module("pydantic_core").PydanticUndefined),
}


def _known():
    """Whether the package is loaded, in a version that this is written for."""
    version = getattr(sys.modules.get("pydantic"), "VERSION", "0")
    return [int(part) for part in version.split(".")[:2] if part.isdigit()] >= [2, 11]


def derived(cls):
    """The attributes of a class that are no content."""
    if not _known():
        return ()
    return _DERIVED if _SCHEMA in MAPPING(cls) or _is_model(type(cls)) else ()


def slot_of(cls):
    """The slot of a class that has no content, and what makes the value that it begins with."""
    return _SLOTS.get((_MODULE(cls), _QUALNAME(cls)), ("", None))


def _is_model(meta):
    return meta is not type and _QUALNAME(meta) == "ModelMetaclass" and \
        str.startswith(str(_MODULE(meta)), "pydantic.")


def remake(cls):
    """What a restored class has lost, once everything that it refers to has its content."""
    held = MAPPING(cls)
    if "__pydantic_fields__" not in held:
        return
    own = {name: value for name, value in held.items() if name not in _DERIVED}
    computed = own["__pydantic_decorators__"].computed_fields.values()
    infos = [(field, field.info) for field in computed]
    named = {"force": True, "raise_errors": False, "_types_namespace": {}}
    if not _is_model(type(cls)):
        importlib.import_module("pydantic.dataclasses").rebuild_dataclass(cls, **named)
    elif own.get("__pydantic_complete__"):
        type.__setattr__(cls, "__pydantic_setattr_handlers__", {})
        cls.model_rebuild(**named)
        _subscripted(cls, own.get("__pydantic_generic_metadata__") or {})
    else:
        type.__setattr__(cls, "__pydantic_setattr_handlers__", {})
        importlib.import_module("pydantic._internal._mock_val_ser").set_model_mocks(cls)
    for name, value in own.items():
        # The package has made some of its attributes again that were restored.
        if held.get(name) is not value:
            type.__setattr__(cls, name, value)
    for field, info in infos:
        field.info = info


def _subscripted(cls, generic):
    """A generic model that is subscripted again with the same arguments is the same class."""
    origin, args = generic.get("origin"), generic.get("args")
    if origin is not None and args:
        generics = importlib.import_module("pydantic._internal._generics")
        if generics.get_cached_generic_type_early(origin, args) is None:
            generics.set_cached_generic_type(origin, args, cls)


def _read(walk, o, *names):
    """The private attributes of an object, in a version of the package that has them."""
    try:
        return [getattr(o, name) for name in names]
    except AttributeError:
        walk.fail("type pydantic." + _QUALNAME(type(o)))
        return [None for _ in names]


class _Adapter(Kind):
    """`TypeAdapter`: the type that it validates, and its settings. Made when all else has its content."""
    tag, sure = "ta", False

    def split(self, walk, objs):
        return [walk.name(type(o)) for o in objs], [v for o in objs for v in _read(walk, o, "_type", "_config")]

    def make(self, load, head, n):
        return [object.__new__(load.named(cls)) for cls in head]

    def fill(self, load, objs, head, kids):
        for at, o in enumerate(objs):
            kind, config = kids[2 * at:2 * at + 2]
            load.later(lambda o=o, kind=kind, config=config: type(o).__init__(o, kind, config=config))


class _Call(Kind):
    """What `validate_call` puts around a function."""
    tag, sure = "vc", False

    def split(self, walk, objs):
        head, kids = [], []
        for o in objs:
            function, settings, returns = _read(walk, o, "function", "config_wrapper", "validate_return")
            head.append((walk.name(type(o)), returns))
            kids += (function, *_read(walk, settings, "config_dict"))
        return head, kids

    def make(self, load, head, n):
        return [object.__new__(load.named(cls)) for cls, _ in head]

    def fill(self, load, objs, head, kids):
        def begin(o, returns, function, config):
            type(o).__init__(o, function, config, returns, None)
            o.config_wrapper.config_dict = config

        for at, (o, (_, returns)) in enumerate(zip(objs, head)):
            load.later(lambda begun=(o, returns, *kids[2 * at:2 * at + 2]): begin(*begun))


class _Zone(Kind):
    """The distance from UTC of a time that the package has read."""
    tag, mutable, early = "tz", False, False

    def split(self, walk, objs):
        return [(walk.name(type(o)), int(o.utcoffset(None).total_seconds())) for o in objs], []

    def build(self, load, head, kids, n):
        return [load.named(cls)(seconds) for cls, seconds in head]


_KINDS = {
    ("pydantic_core._pydantic_core", "TzInfo"): register(_Zone()),
    ("pydantic.type_adapter", "TypeAdapter"): register(_Adapter()),
    ("pydantic._internal._validate_call", "ValidateCallWrapper"): register(_Call()),
}


def kind_of(cls):
    """The kind of the instances of a class of the package, or None."""
    return _KINDS.get((_MODULE(cls), _QUALNAME(cls))) if _known() else None
