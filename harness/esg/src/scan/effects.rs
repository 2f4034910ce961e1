//! The effects of a frame: of the step itself, or of one body.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::marks::Marks;
use super::names::Name;
use super::parse::{Expr, ast, numbered};
use super::scope::{ScopeId, SymId};
use super::state::{Path, Slot};
use super::value::{EMPTY, Origin, Val};

/// The effects of the running code, as far as it was followed.
#[derive(Default)]
pub(super) struct Frame {
    /// The scope of the running code.
    pub(super) scope: ScopeId,
    /// Globals that are loaded while their incoming value may be visible.
    pub(super) reads: Marks,
    /// Builtins that are loaded where the step may have unbound a global of that name.
    pub(super) builtins: Marks,
    pub(super) writes: Marks,
    pub(super) deletes: Marks,
    pub(super) mutates: BTreeSet<Origin>,
    pub(super) escapes: BTreeSet<Origin>,
    /// What the body returns or yields.
    pub(super) answers: Answer,
    /// Bodies that it made.
    pub(super) created: Marks,
    /// Bodies that ran, or may have run.
    pub(super) executed: Marks,
    /// Variables of enclosing functions that it loads.
    pub(super) cells: Marks,
    /// Names that code in a string loads later.
    pub(super) late: Marks,
    /// Values stored into objects that only a call determines.
    pub(super) stores: Vec<(Val, Val)>,
    /// The states in which the body returns.
    pub(super) returns: Vec<Path>,
    pub(super) mark: usize,
}

/// A value, initially unknown.
#[derive(Clone, Copy)]
pub(super) struct Answer(pub(super) Val);

impl Default for Answer {
    fn default() -> Self {
        Self(EMPTY)
    }
}

/// The result of walking a body: its frame, and the globals at its exit.
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
    /// The version at which it last ran.
    pub(super) ran: u64,
}

impl<'a> Body<'a> {
    /// Its parameters, each with its name and whether it accepts a positional argument.
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

    /// The `*args` and `**kwargs` parameters.
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

/// The arguments of a call.
#[derive(Default)]
pub(super) struct Args<'a> {
    pub(super) positional: Vec<Val>,
    /// The values of `*` and `**` arguments.
    pub(super) spread: Option<Val>,
    pub(super) keyword: Vec<(&'a str, Val)>,
}
