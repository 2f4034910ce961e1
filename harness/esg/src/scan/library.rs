//! Functions that change what they are given, or channels besides, from the table `library.txt`.

use std::borrow::Cow;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::effects::Args;
use super::flow::Flow;
use super::parse::{Expr, numbered};
use super::scope::Target;
use super::state::{Var, global, local};
use super::value::Val;

/// What follows the name of a function whose result is called.
const CALLED: &str = "()";

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("library.txt")));

/// One argument that a function changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Changed {
    position: Option<usize>,
    name: Option<&'static str>,
}

/// One function.
#[derive(Clone, Debug)]
struct Function {
    /// The full name of its module or class.
    owner: &'static str,
    name: &'static str,
    /// Whether it belongs to a class.
    method: bool,
    changes: Vec<Changed>,
    /// The other channels that it may change.
    channels: Vec<&'static str>,
}

#[derive(Debug, Default)]
struct Table {
    /// By the last part of the name.
    functions: FxHashMap<&'static str, Vec<Function>>,
    /// What any function changes.
    any: Vec<Changed>,
}

impl Table {
    fn read(text: &'static str) -> Self {
        let mut table = Self::default();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        for (path, effects) in lines.filter_map(|line| line.split_once(':')) {
            let (arguments, channels) = effects.split_once("->").unwrap_or((effects, ""));
            let changes: Vec<Changed> = arguments.split(',').filter_map(changed).collect();
            let method = arguments.split(',').any(|argument| argument.trim() == "self");
            let channels = channels.split(',').map(str::trim).filter(|one| !one.is_empty());
            let channels: Vec<&str> = channels.collect();
            let Some((owner, names)) = path.rsplit_once('.') else {
                table.any = changes;
                continue;
            };
            for name in names.split('|') {
                let (changes, channels) = (changes.clone(), channels.clone());
                let function = Function { owner, name, method, changes, channels };
                table.functions.entry(name).or_default().push(function);
            }
        }
        table
    }

    /// Every channel that some function may change.
    fn channels(&self) -> impl Iterator<Item = &'static str> {
        self.functions.values().flatten().flat_map(|one| one.channels.iter().copied())
    }
}

/// An argument, as the table writes it.
fn changed(text: &'static str) -> Option<Changed> {
    let mut words = text.split_whitespace().peekable();
    if words.next_if_eq(&"self").is_some() {
        return Some(Changed { position: Some(0), name: None });
    }
    let position = words.peek().and_then(|word| word.parse().ok());
    if position.is_some() {
        words.next();
    }
    let name = words.next();
    (position.is_some() || name.is_some()).then_some(Changed { position, name })
}

fn last(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, last)| last)
}

/// The name of what an expression names, as far as it is known.
struct Named<'n> {
    path: Cow<'n, str>,
    /// Whether the path begins at an import of this step.
    imported: bool,
}

impl Function {
    fn is(&self, named: &Named<'_>) -> bool {
        let owner = named.path.strip_suffix(self.name).and_then(|it| it.strip_suffix('.'));
        match owner {
            Some(owner) if named.imported => owner == self.owner,
            // Another step imported it, maybe under another name. A class has to be named: many objects
            // have an `append`.
            Some(owner) if self.method => {
                let before = self.owner.strip_suffix(owner);
                before.is_some_and(|it| it.is_empty() || it.ends_with('.'))
            }
            _ => !named.imported && !self.method,
        }
    }
}

impl<'a> Flow<'a> {
    /// Records the full name of an import that `symbol` is bound to.
    pub(super) fn name_import(&mut self, symbol: u32, path: String) {
        if self.coarse.on {
            return;
        }
        // Steps that call it later only know its alias.
        let named = Named { path: path.as_str().into(), imported: true };
        let listed = TABLE.functions.get(last(&named.path)).into_iter().flatten();
        for one in listed.filter(|one| one.is(&named)) {
            self.channels.extend(&one.channels);
        }
        let variable = self.variable(symbol);
        self.library.insert(variable, path);
    }

    /// Records that a name is bound to a function: `push = heapq.heappush`.
    pub(super) fn name_function(&mut self, target: &Expr, value: &'a Expr) {
        let Expr::Name(target) = target else { return };
        if !matches!(value, Expr::Name(_) | Expr::Attribute(_)) || self.coarse.on {
            return;
        }
        let Some(named) = self.named(value) else { return };
        let listed = TABLE.functions.get(last(&named.path));
        let Some(listed) = listed.and_then(|all| all.iter().find(|one| one.is(&named))) else {
            return;
        };
        let path = format!("{}.{}", listed.owner, listed.name);
        if let Some(symbol) = numbered(&target.node_index) {
            self.name_import(symbol, path);
        }
    }

    fn variable(&self, symbol: u32) -> Var {
        match self.scopes.symbol(symbol).target {
            Target::Global(name) => global(name),
            Target::Local(variable) | Target::Free(variable) | Target::Class(variable, _) => {
                local(variable)
            }
        }
    }

    fn named(&self, expr: &'a Expr) -> Option<Named<'_>> {
        match expr {
            Expr::Name(node) => {
                let variable = self.variable(numbered(&node.node_index)?);
                let known = self.library.get(&variable);
                let path = known.map_or(node.id.as_str(), String::as_str).into();
                Some(Named { path, imported: known.is_some() })
            }
            Expr::Attribute(node) => {
                let attr = node.attr.id.as_str();
                // The object may be anything: `random.Random(1).shuffle(xs)`.
                let Some(Named { path, imported }) = self.named(&node.value) else {
                    return Some(Named { path: attr.into(), imported: false });
                };
                Some(Named { path: format!("{path}.{attr}").into(), imported })
            }
            _ => None,
        }
    }

    /// Marks what a function changes, judged by its name.
    pub(super) fn changes_given(&mut self, func: &'a Expr, args: &Args<'a>) {
        let named = match func {
            Expr::Call(maker) => self
                .named(&maker.func)
                .map(|named| Named { path: format!("{}{CALLED}", named.path).into(), ..named }),
            func => self.named(func),
        };
        let (mut changes, mut channels) = (Vec::new(), Vec::<&str>::new());
        if let Some(named) = named
            && let Some(functions) = TABLE.functions.get(last(&named.path))
        {
            let functions = functions.iter().filter(|function| function.is(&named));
            for function in functions {
                changes.extend(function.changes.iter().filter_map(|one| given(*one, args)));
                channels.extend(&function.channels);
            }
        }
        if !args.keyword.is_empty() {
            changes.extend(TABLE.any.iter().filter_map(|one| given(*one, args)));
        }
        self.channels.extend(channels);
        for val in changes {
            self.mutate(val);
        }
    }

    /// Marks what the use of an attribute may change: `plt.rcParams['font.size'] = 8`.
    pub(super) fn uses_attribute(&mut self, attr: &str) {
        let listed = TABLE.functions.get(attr).into_iter().flatten();
        self.channels
            .extend(listed.filter(|one| one.changes.is_empty()).flat_map(|one| &one.channels));
    }

    /// An attribute of an object is set or deleted, which may be a module that the step imports.
    pub(super) fn changes_module(&mut self, object: &'a Expr) {
        if self.named(object).is_some_and(|named| named.imported) {
            self.channels.insert("modules");
        }
    }

    /// Marks every channel that some function may change.
    pub(super) fn changes_channels(&mut self) {
        self.channels.extend(TABLE.channels());
    }
}

/// What a call passes for an argument.
fn given(one: Changed, args: &Args<'_>) -> Option<Val> {
    let by_position = one.position.and_then(|at| args.positional.get(at).copied());
    by_position.or_else(|| {
        let (_, val) = args.keyword.iter().find(|(name, _)| Some(*name) == one.name)?;
        Some(*val)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let text = include_str!("library.txt");
        let table = Table::read(text);
        let mut seen = std::collections::BTreeSet::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (path, effects) = line.split_once(": ").unwrap();
            let (arguments, channels) = match effects.split_once("-> ") {
                Some((arguments, channels)) => (arguments, channels.split(", ").count()),
                None => (effects, 0),
            };
            let arguments = arguments.split(',').filter(|one| !one.trim().is_empty()).count();
            let Some((owner, names)) = path.rsplit_once('.') else {
                assert_eq!((path, table.any.len()), ("*", arguments));
                continue;
            };
            for name in names.split('|') {
                assert!(seen.insert((owner, name)), "`{owner}.{name}` is listed twice");
                let one = table.functions[name].iter().find(|one| one.owner == owner).unwrap();
                let read = (one.changes.len(), one.channels.len());
                assert_eq!(read, (arguments, channels), "{line}");
                assert_ne!(read, (0, 0), "{line}: it changes nothing");
            }
        }
    }

    #[test]
    fn an_argument_has_a_position_a_name_or_both() {
        let of = |position, name| Some(Changed { position, name });
        assert_eq!(changed(" 0"), of(Some(0), None));
        assert_eq!(changed(" 1 fp"), of(Some(1), Some("fp")));
        assert_eq!(changed("stream"), of(None, Some("stream")));
        assert_eq!(changed("self"), of(Some(0), None));
        assert_eq!(changed(" "), None);
    }
}
