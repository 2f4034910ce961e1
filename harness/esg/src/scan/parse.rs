//! The interface to the parser. No other file names its crates.

use std::cell::Cell;
use std::ops::Range;

pub(super) use ruff_python_ast as ast;
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::transformer::{Transformer, walk_expr};
pub(super) use ruff_python_ast::{Expr, Stmt, visitor};
pub(super) use ruff_python_parser::semantic_errors;
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_cells_unchecked, parse_unchecked};
use ruff_source_file::LineIndex;
pub(super) use ruff_text_size::{Ranged, TextRange, TextSize};

/// The versions that the identity of code depends on.
pub(super) const VERSION: &str = "python-3.13 ruff-0.0.9";

/// The newest Python whose grammar is accepted.
pub(super) const TARGET: ast::PythonVersion = ast::PythonVersion::PY313;

/// The longest chain of operators, attributes, subscripts and calls in one expression. CPython's
/// compilers have a similar limit.
pub(super) const MAX_CHAIN: usize = 10_000;

/// The number of operators in one logical line above which the tree may be too deep for a small
/// stack.
const DEEP: usize = 96;

/// The largest source in bytes: offsets have 32 bits.
pub(super) const MAX_BYTES: usize = 1 << 30;

/// How many lines are searched linearly.
const NEAR: usize = 32;

/// A syntax error and its position.
pub(super) type Fault = (String, TextRange);

/// A syntax tree, as far as the source could be parsed.
pub(super) struct Tree {
    /// The statements.
    pub(super) module: ast::ModModule,
    /// The grammar's errors.
    pub(super) faults: Vec<Fault>,
    /// Whether walking the tree needs a large stack.
    pub(super) deep: bool,
}

/// The number that the first walk gave a node.
pub(super) fn numbered(node: &ast::AtomicNodeIndex) -> Option<u32> {
    node.load().as_u32()
}

/// Parses a source, and recovers from errors.
pub(super) fn parse(source: &str) -> Tree {
    if source.len() > MAX_BYTES {
        let whole = TextRange::default();
        return Tree {
            module: ast::ModModule::default_empty(),
            faults: vec![(format!("a step of more than {MAX_BYTES} bytes"), whole)],
            deep: false,
        };
    }
    let parsed = parse_unchecked(source, options());
    tree(parsed, |module| match module {
        ast::Mod::Module(module) => module,
        ast::Mod::Expression(_) => ast::ModModule::default_empty(),
    })
}

/// Parses a part of a source of at most [`MAX_BYTES`], as if it stood alone. Positions in the tree
/// refer to the whole source.
pub(super) fn parse_part(source: &str, part: Range<usize>) -> Tree {
    let place = |at: usize| TextSize::new(super::index::index(at));
    let range = TextRange::new(place(part.start), place(part.end));
    tree(parse_cells_unchecked(source, [range], &options()), |module| module)
}

fn options() -> ParseOptions {
    ParseOptions::from(Mode::Module).with_target_version(TARGET)
}

/// Converts the parser's result.
fn tree<M>(parsed: Parsed<M>, module: impl FnOnce(M) -> ast::ModModule) -> Tree {
    let mut faults: Vec<Fault> = Vec::new();
    for error in parsed.errors() {
        faults.push((error.error.to_string(), error.location));
    }
    for error in parsed.unsupported_syntax_errors() {
        faults.push((error.to_string(), error.range));
    }
    let (mut most, mut here, mut indent) = (0, 0, 0_usize);
    for token in parsed.tokens() {
        let kind = token.kind();
        if kind == TokenKind::Newline {
            here = 0;
        } else if kind == TokenKind::Indent {
            indent += 1;
            most = most.max(indent * 4);
        } else if kind == TokenKind::Dedent {
            indent = indent.saturating_sub(1);
        } else if kind.is_operator() && !matches!(kind, TokenKind::Comma | TokenKind::Colon) {
            here += 1;
            most = most.max(here);
        }
    }
    let module = module(parsed.into_syntax());
    Tree { module, faults, deep: most > DEEP }
}

/// An empty module, for sources that are not parsed.
trait DefaultEmpty {
    fn default_empty() -> Self;
}

impl DefaultEmpty for ast::ModModule {
    fn default_empty() -> Self {
        Self {
            node_index: ast::AtomicNodeIndex::default(),
            range: TextRange::default(),
            body: ast::Suite::default(),
        }
    }
}

/// Cuts chains that are too long to walk. Returns the error for one of them.
pub(super) fn cut_chains(module: &mut ast::ModModule) -> Option<Fault> {
    let cutter = Cutter { left: Cell::new(0), found: Cell::new(None) };
    cutter.visit_body(&mut module.body);
    let range = cutter.found.get()?;
    Some((format!("an expression of more than {MAX_CHAIN} operators in a row"), range))
}

struct Cutter {
    /// The links of a measured chain still to be visited.
    left: Cell<usize>,
    found: Cell<Option<TextRange>>,
}

impl Transformer for Cutter {
    fn visit_expr(&self, expr: &mut Expr) {
        match self.left.get() {
            0 => {
                let links = chain(expr);
                if links > MAX_CHAIN {
                    self.found.set(Some(self.found.get().unwrap_or(expr.range())));
                    dismantle(expr);
                    return;
                }
                self.left.set(links);
            }
            left => self.left.set(left - 1),
        }
        walk_expr(self, expr);
    }
}

/// The number of links in a chain down the left of an expression.
fn chain(expr: &Expr) -> usize {
    let (mut links, mut here) = (0, expr);
    loop {
        here = match here {
            Expr::BinOp(node) => &node.left,
            Expr::Attribute(node) => &node.value,
            Expr::Subscript(node) => &node.value,
            Expr::Call(node) => &node.func,
            _ => return links,
        };
        links += 1;
    }
}

/// Drops a chain link by link. Dropping it whole would recurse as deep as the chain is long.
fn dismantle(expr: &mut Expr) {
    let none = || {
        Expr::NoneLiteral(ast::ExprNoneLiteral {
            node_index: ast::AtomicNodeIndex::default(),
            range: TextRange::default(),
        })
    };
    let mut link = std::mem::replace(expr, none());
    loop {
        let next = match &mut link {
            Expr::BinOp(node) => &mut *node.left,
            Expr::Attribute(node) => &mut *node.value,
            Expr::Subscript(node) => &mut *node.value,
            Expr::Call(node) => &mut *node.func,
            _ => return,
        };
        link = std::mem::replace(next, none());
    }
}

/// Turns offsets into lines and columns.
pub(super) struct Lines<'a> {
    source: &'a str,
    index: LineIndex,
    /// The last line, from 0: most queries come in source order.
    last: Cell<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self { source, index: LineIndex::from_source_text(source), last: Cell::new(0) }
    }

    /// The line, from 1.
    pub(super) fn line(&self, offset: TextSize) -> usize {
        let starts = self.index.line_starts();
        let last = self.last.get();
        let from = if starts.get(last).is_some_and(|start| *start <= offset) { last } else { 0 };
        let rest = starts.get(from..).unwrap_or_default();
        // Usually a few lines further.
        let near = rest.iter().take(NEAR).take_while(|start| **start <= offset).count();
        let lines = if near < NEAR { near } else { rest.partition_point(|start| *start <= offset) };
        self.last.set((from + lines).saturating_sub(1));
        (from + lines).max(1)
    }

    /// The line and the column, in characters, both from 1.
    pub(super) fn at(&self, offset: TextSize) -> (usize, usize) {
        let mut offset = offset.to_usize().min(self.source.len());
        while !self.source.is_char_boundary(offset) {
            offset -= 1;
        }
        let Ok(offset) = u32::try_from(offset) else {
            return (1, 1);
        };
        let place = self.index.line_column(TextSize::new(offset), self.source);
        (place.line.get(), place.column.get())
    }
}

/// Calls `each` with the number of every name that a statement loads, except in the body of a
/// function or class without type parameters. Returns the scope of that body.
pub(super) fn names_around(statement: &Stmt, each: &mut dyn FnMut(u32)) -> Option<u32> {
    struct Names<'n>(&'n mut dyn FnMut(u32));
    impl<'a> visitor::Visitor<'a> for Names<'_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Name(name) = expr
                && name.ctx == ast::ExprContext::Load
                && let Some(symbol) = name.node_index.load().as_u32()
            {
                (self.0)(symbol);
            }
            visitor::walk_expr(self, expr);
        }
    }
    use visitor::Visitor as _;
    let mut names = Names(each);
    match statement {
        Stmt::FunctionDef(node) if node.type_params.is_none() => {
            node.decorator_list.iter().for_each(|one| names.visit_decorator(one));
            names.visit_parameters(&node.parameters);
            node.returns.iter().for_each(|returns| names.visit_annotation(returns));
            node.node_index.load().as_u32()
        }
        Stmt::ClassDef(node) if node.type_params.is_none() => {
            node.decorator_list.iter().for_each(|one| names.visit_decorator(one));
            node.arguments.iter().for_each(|arguments| names.visit_arguments(arguments));
            node.node_index.load().as_u32()
        }
        _ => {
            names.visit_stmt(statement);
            None
        }
    }
}
