//! Imports: which one a name needs, where it goes, and modules misspelt.

use std::fmt;
use std::ops::Range;

use super::super::lex::Kind;
use super::super::lines::line_end;
use super::{Found, Rule, Scene};
use crate::diagnosis::nearest;

/// An import statement.
#[derive(Debug)]
pub(super) enum Import<'a> {
    Module(&'a str),
    From(&'a str, &'a str),
    As(&'a str, &'a str),
}

impl fmt::Display for Import<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Import::Module(module) => write!(f, "import {module}"),
            Import::From(module, name) => write!(f, "from {module} import {name}"),
            Import::As(module, name) => write!(f, "import {module} as {name}"),
        }
    }
}

/// What people use from the standard library by its bare name.
const FROM: &[(&str, &[&str])] = &[
    ("bisect", &["bisect", "bisect_left", "bisect_right", "insort"]),
    ("collections", &["ChainMap", "Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"]),
    ("contextlib", &["contextmanager", "suppress"]),
    ("copy", &["deepcopy"]),
    ("dataclasses", &["asdict", "dataclass", "field", "replace"]),
    ("datetime", &["date", "timedelta", "timezone"]),
    ("decimal", &["Decimal", "ROUND_HALF_UP"]),
    ("enum", &["Enum", "IntEnum", "auto"]),
    ("fractions", &["Fraction"]),
    ("functools", &["cache", "cached_property", "lru_cache", "partial", "reduce", "wraps"]),
    ("heapq", &["heapify", "heappop", "heappush"]),
    ("io", &["BytesIO", "StringIO"]),
    (
        "itertools",
        &[
            "accumulate",
            "chain",
            "combinations",
            "count",
            "cycle",
            "groupby",
            "islice",
            "pairwise",
            "permutations",
            "product",
            "repeat",
            "zip_longest",
        ],
    ),
    (
        "math",
        &[
            "ceil",
            "comb",
            "cos",
            "exp",
            "factorial",
            "floor",
            "gcd",
            "hypot",
            "inf",
            "isclose",
            "isqrt",
            "lcm",
            "log",
            "log10",
            "log2",
            "nan",
            "pi",
            "prod",
            "radians",
            "sin",
            "sqrt",
            "tan",
        ],
    ),
    ("operator", &["attrgetter", "itemgetter"]),
    ("pathlib", &["Path"]),
    ("pprint", &["pprint"]),
    ("statistics", &["mean", "median", "stdev"]),
    ("string", &["ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits"]),
    (
        "typing",
        &[
            "Any",
            "Callable",
            "Dict",
            "Iterable",
            "Iterator",
            "List",
            "NamedTuple",
            "Optional",
            "Set",
            "Tuple",
            "Union",
        ],
    ),
    ("abc", &["ABC", "abstractmethod"]),
];

const ALIASES: [(&str, &str); 2] = [("dt", "datetime"), ("ET", "xml.etree.ElementTree")];

/// The import which a name needs, if it is a well-known one. `place` is where
/// it is used.
pub(super) fn known<'a>(scene: &Scene<'_>, name: &'a str, place: usize) -> Option<Import<'a>> {
    let dotted = scene.lexed.is(place + 1, ".");
    if name == "datetime" {
        // The module and its main class share a name.
        let module = dotted
            && ["date", "datetime", "time", "timedelta", "timezone"]
                .contains(&scene.text(place + 2));
        return Some(match module {
            true => Import::Module(name),
            false => Import::From("datetime", "datetime"),
        });
    }
    if dotted {
        if let Some((alias, module)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
            return Some(Import::As(module, alias));
        }
        if scene.fault.facts.stdlib.iter().any(|module| module == name) {
            return Some(Import::Module(name));
        }
    }
    FROM.iter().find_map(|(module, names)| {
        let name = names.iter().find(|known| **known == name)?;
        Some(Import::From(module, name))
    })
}

/// The import of the installed package that a name stands for.
pub(super) fn package<'a>(scene: &'a Scene<'_>, name: &'a str, place: usize) -> Option<Import<'a>> {
    let package = scene.fault.facts.module.as_deref()?;
    let import = if package == name { Import::Module(name) } else { Import::As(package, name) };
    scene.lexed.is(place + 1, ".").then_some(import)
}

/// The edit which adds an import: after the imports at the top, or else after
/// the documentation.
pub(super) fn insertion(scene: &Scene<'_>, import: &Import<'_>) -> Vec<(Range<usize>, String)> {
    let lexed = &scene.lexed;
    let end = line_end(scene.source);
    let mut after = None;
    let mut imports = false;
    let mut first_code = None;
    for (position, statement) in lexed.statements().into_iter().enumerate() {
        let code: Vec<usize> =
            statement.filter(|index| lexed.tokens[*index].kind != Kind::Comment).collect();
        let (Some(first), Some(last)) = (code.first(), code.last()) else {
            continue;
        };
        let text = scene.text(*first);
        let documentation = position == 0 || after.is_none();
        if text == "import" || text == "from" {
            imports = true;
        } else if !(documentation && lexed.tokens[*first].kind == Kind::Text && code.len() == 1) {
            first_code = Some(scene.lines.at(scene.span(*first).start));
            break;
        }
        after = Some(scene.lines.at(scene.span(*last).end.saturating_sub(1)));
    }
    let lines = &scene.lines;
    let (line, new) = match after {
        Some(line) if imports => (line + 1, format!("{import}{end}")),
        Some(line) if line < lines.count() && lines.text(line + 1).trim().is_empty() => {
            let gap = if lines.text(line + 2).trim().is_empty() { "" } else { end };
            (line + 2, format!("{import}{end}{gap}"))
        }
        Some(line) => (line + 1, format!("{import}{end}")),
        None => {
            // A comment at the very top is about the whole file.
            let comments =
                (1..=lines.count()).take_while(|line| lines.text(*line).starts_with('#')).count();
            let whole = lines.text(comments + 1).trim().is_empty();
            let fixed = (1..=2)
                .take_while(|line| {
                    let text = lines.text(*line);
                    text.starts_with("#!") || (text.starts_with('#') && text.contains("coding"))
                })
                .count();
            if whole && comments > 0 {
                (comments + 2, format!("{import}{end}{end}"))
            } else {
                let line = fixed + 1;
                (line.min(first_code.unwrap_or(line)), format!("{import}{end}"))
            }
        }
    };
    let at = lines.start(line);
    let open_line = at == scene.source.len() && at > 0 && !scene.source.ends_with('\n');
    let new = if open_line { format!("{end}{}", new.trim_end()) } else { new };
    vec![(at..at, new)]
}

pub(super) fn propose(scene: &Scene<'_>, found: &mut Found<'_>) {
    let facts = &scene.fault.facts;
    let Some(missing) = facts.name.as_deref() else {
        return;
    };
    let Some(first) = missing.split('.').next().filter(|part| !part.is_empty()) else {
        return;
    };
    if facts.stdlib.iter().any(|module| module == first) {
        return;
    }
    for module in nearest(first, facts.stdlib.iter().map(String::as_str)) {
        let at = scene.named(first).find(|index| !scene.is_attribute(*index));
        let edits = at.map(|index| (scene.span(index), module.to_owned())).into_iter().collect();
        let why = format!("there is no module `{first}`; the standard library has `{module}`");
        found.add(Rule::MisspeltModule, why, edits);
    }
}
