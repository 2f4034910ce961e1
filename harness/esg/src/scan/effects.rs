//! What a frame, the step itself or one body of it, was found to do.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::marks::Marks;
use super::names::Name;
use super::parse::{Expr, ast, numbered};
use super::scope::{ScopeId, SymId};
use super::state::{Path, Slot};
use super::value::{EMPTY, Origin, Val};

/// What runs, as far as it was followed.
#[derive(Default)]
pub(super) struct Frame {
    /// The scope that runs: that of the module, or that of a body.
    pub(super) scope: ScopeId,
    /// Names of the module that are loaded while what came in may be visible.
    pub(super) reads: Marks,
    /// Builtins that are loaded where the step unbound a name of theirs.
    pub(super) builtins: Marks,
    pub(super) writes: Marks,
    pub(super) deletes: Marks,
    pub(super) mutates: BTreeSet<Origin>,
    pub(super) escapes: BTreeSet<Origin>,
    /// What the body answers or yields.
    pub(super) answers: Answer,
    /// Bodies that were made.
    pub(super) created: Marks,
    /// Bodies that ran, or may have.
    pub(super) executed: Marks,
    /// Variables of functions around that are loaded.
    pub(super) cells: Marks,
    /// Names that code in a string loads later.
    pub(super) late: Marks,
    /// What was put into objects that only a call tells.
    pub(super) stores: Vec<(Val, Val)>,
    /// The states in which the body returns.
    pub(super) returns: Vec<Path>,
    pub(super) mark: usize,
}

/// A value that starts out as nothing known.
#[derive(Clone, Copy)]
pub(super) struct Answer(pub(super) Val);

impl Default for Answer {
    fn default() -> Self {
        Self(EMPTY)
    }
}

/// A body after its walk: a frame, and how it leaves the names of the module.
#[derive(Default)]
pub(super) struct Summary {
    pub(super) frame: Frame,
    pub(super) exit: Vec<(Name, Slot)>,
}

/// The code of a body.
#[derive(Clone)]
pub(super) enum Code<'a> {
    Function(&'a ast::StmtFunctionDef),
    Lambda(&'a ast::ExprLambda),
    Generator(&'a ast::ExprGenerator),
    Lazy(Vec<&'a Expr>),
}

/// A body that the step makes.
#[derive(Default, Clone)]
pub(super) struct Body<'a> {
    pub(super) code: Option<Code<'a>>,
    pub(super) summary: Option<Rc<Summary>>,
    pub(super) parameters: Option<&'a ast::Parameters>,
    /// At which version of everything it ran last.
    pub(super) ran: u64,
}

impl<'a> Body<'a> {
    /// Its parameters by name, each with whether it takes an argument by its place.
    pub(super) fn named(&self) -> impl Iterator<Item = (SymId, &'a str, bool)> + use<'a> {
        self.parameters.into_iter().flat_map(|parameters| {
            let by_place = parameters.posonlyargs.iter().chain(&parameters.args);
            let by_place = by_place.map(|one| (one, true));
            let by_name = parameters.kwonlyargs.iter().map(|one| (one, false));
            by_place.chain(by_name).filter_map(|(one, by_place)| {
                let symbol = numbered(&one.parameter.node_index)?;
                Some((symbol, one.parameter.name.id.as_str(), by_place))
            })
        })
    }

    /// The two parameters that take the rest.
    pub(super) fn rest(&self) -> impl Iterator<Item = SymId> + use<'a> {
        self.parameters.into_iter().flat_map(|parameters| {
            let rest = [&parameters.vararg, &parameters.kwarg].into_iter().flatten();
            rest.filter_map(|one| numbered(&one.node_index))
        })
    }

    /// All its parameters.
    pub(super) fn symbols(&self) -> impl Iterator<Item = SymId> + use<'a> {
        self.named().map(|(symbol, ..)| symbol).chain(self.rest())
    }
}

/// What a call passes.
#[derive(Default)]
pub(super) struct Args<'a> {
    pub(super) positional: Vec<Val>,
    /// What comes out of `*` and `**`.
    pub(super) spread: Option<Val>,
    pub(super) keyword: Vec<(&'a str, Val)>,
}
