//! Syntax errors that the grammar does not cover.

use std::cell::{Cell, RefCell};

use super::parse::semantic_errors::{
    LazyImportContext, SemanticSyntaxContext, SemanticSyntaxError,
};
use super::parse::{Fault, Ranged, Stmt, TARGET, TextRange, ast};
use super::scope::{ANNOTATED, GLOBAL, Kind, LOADED, NONLOCAL, PARAM, STORED};

/// The position of the walk, for the checks.
#[derive(Default)]
pub(super) struct Place<'a> {
    /// The whole source, for quotes.
    pub(super) source: &'a str,
    /// The enclosing scopes, innermost last, each with whether it is asynchronous.
    pub(super) scopes: Vec<(Kind, bool)>,
    /// The enclosing loops within the innermost function or class.
    pub(super) loops: usize,
    /// Whether annotations are not evaluated.
    pub(super) future: Cell<bool>,
    /// The errors found.
    pub(super) faults: RefCell<Vec<Fault>>,
}

impl Place<'_> {
    pub(super) fn refuse(&self, message: String, range: TextRange) {
        self.faults.borrow_mut().push((message, range));
    }

    pub(super) fn kind(&self) -> Kind {
        self.scopes.last().map_or(Kind::Module, |(kind, _)| *kind)
    }

    /// The scope whose rules apply: comprehensions follow those of the enclosing scope.
    fn beyond_comprehensions(&self) -> (Kind, bool) {
        let mut around = self.scopes.iter().rev();
        let found = around.find(|(kind, _)| !matches!(kind, Kind::Comp | Kind::Generator));
        found.copied().unwrap_or((Kind::Module, true))
    }
}

impl SemanticSyntaxContext for Place<'_> {
    fn future_annotations_or_stub(&self) -> bool {
        self.future.get()
    }

    fn lazy_import_context(&self) -> Option<LazyImportContext> {
        None
    }

    fn python_version(&self) -> ast::PythonVersion {
        TARGET
    }

    fn source(&self) -> &str {
        self.source
    }

    // Uses before `global`, parameters and `nonlocal` are checked with the scopes, where all names
    // are known.
    fn global(&self, _name: &str) -> Option<TextRange> {
        None
    }

    fn has_nonlocal_binding(&self, _name: &str) -> bool {
        true
    }

    fn is_bound_parameter(&self, _name: &str) -> bool {
        false
    }

    fn in_async_context(&self) -> bool {
        match self.beyond_comprehensions() {
            // A step may await at the top level.
            (Kind::Module, _) => true,
            (Kind::Function, is_async) => is_async,
            _ => false,
        }
    }

    fn in_await_allowed_context(&self) -> bool {
        !matches!(self.beyond_comprehensions().0, Kind::Class | Kind::Type | Kind::Lazy)
    }

    fn in_yield_allowed_context(&self) -> bool {
        matches!(self.kind(), Kind::Function | Kind::Lambda)
    }

    fn in_sync_comprehension(&self) -> bool {
        false
    }

    fn in_class_body_comprehension(&self) -> bool {
        self.beyond_comprehensions().0 == Kind::Class
    }

    fn in_module_scope(&self) -> bool {
        self.kind() == Kind::Module
    }

    fn in_function_scope(&self) -> bool {
        self.kind() == Kind::Function
    }

    fn in_generator_context(&self) -> bool {
        self.kind() == Kind::Generator
    }

    fn in_notebook(&self) -> bool {
        false
    }

    fn report_semantic_error(&self, error: SemanticSyntaxError) {
        self.refuse(error.to_string(), error.range());
    }

    fn in_loop_context(&self) -> bool {
        self.loops > 0
    }
}

/// Why a name with these earlier uses cannot be declared `global` or `nonlocal`.
pub(super) fn outer_name(name: &str, met: u16, flag: u16) -> Option<String> {
    let word = if flag == GLOBAL { "global" } else { "nonlocal" };
    if met & PARAM != 0 {
        Some(format!("name `{name}` is parameter and {word}"))
    } else if met & (GLOBAL | NONLOCAL) & !flag != 0 {
        Some(format!("name `{name}` is nonlocal and global"))
    } else if met & ANNOTATED != 0 {
        Some(format!("annotated name `{name}` can't be {word}"))
    } else if met & STORED != 0 {
        Some(format!("name `{name}` is assigned to before {word} declaration"))
    } else if met & LOADED != 0 {
        Some(format!("name `{name}` is used prior to {word} declaration"))
    } else {
        None
    }
}

/// The statements in `body` that would leave an enclosing block.
pub(super) fn leaving(body: &[Stmt]) -> Vec<(&'static str, TextRange)> {
    let mut found = Vec::new();
    let mut open: Vec<(&Stmt, bool)> = body.iter().map(|statement| (statement, false)).collect();
    while let Some((statement, looped)) = open.pop() {
        match statement {
            Stmt::Return(node) => found.push(("return", node.range)),
            Stmt::Break(node) if !looped => found.push(("break", node.range)),
            Stmt::Continue(node) if !looped => found.push(("continue", node.range)),
            Stmt::If(node) => {
                open.extend(node.body.iter().map(|one| (one, looped)));
                for clause in &node.elif_else_clauses {
                    open.extend(clause.body.iter().map(|one| (one, looped)));
                }
            }
            Stmt::For(node) => {
                open.extend(node.body.iter().map(|one| (one, true)));
                open.extend(node.orelse.iter().map(|one| (one, looped)));
            }
            Stmt::While(node) => {
                open.extend(node.body.iter().map(|one| (one, true)));
                open.extend(node.orelse.iter().map(|one| (one, looped)));
            }
            Stmt::With(node) => open.extend(node.body.iter().map(|one| (one, looped))),
            Stmt::Try(node) => {
                for body in [&node.body, &node.orelse, &node.finalbody] {
                    open.extend(body.iter().map(|one| (one, looped)));
                }
            }
            _ => {}
        }
    }
    found
}
