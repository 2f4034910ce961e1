//! The first walk: the scopes, the names in each, and syntax errors beyond the grammar.
//!
//! Every node that binds or loads a name gets the number of its symbol, and every node that opens a
//! scope the number of that scope. The second walk looks nothing up.

use super::legality::{self, Place};
use super::names::{Names, mangled};
use super::parse::semantic_errors::SemanticSyntaxChecker;
use super::parse::visitor::{self, Visitor};
use super::parse::{Expr, Stmt, TextRange, ast};
use super::scope::{
    ANNOTATED, GLOBAL, Kind, LOADED, NONLOCAL, PARAM, STORED, ScopeId, Scopes, SymId,
};
use super::{Import, parse};

/// The deepest nesting of loops, `with` and `try`.
const MAX_BLOCKS: usize = 20;

/// The result of the first walk.
pub(super) struct Declared<'a> {
    pub(super) names: Names<'a>,
    pub(super) scopes: Scopes,
    pub(super) faults: Vec<parse::Fault>,
    /// Each import with its position.
    pub(super) imports: Vec<(Import, TextRange)>,
    pub(super) stars: Vec<String>,
    /// Whether annotations are not evaluated.
    pub(super) future: bool,
}

/// Walks the statements of a module. `each` is called with every one, right after its walk.
pub(super) fn declare<'a>(
    module: impl Iterator<Item = &'a Stmt>,
    source: &'a str,
    mut each: impl FnMut(&'a Stmt),
) -> Declared<'a> {
    let mut walk = Walk {
        checker: SemanticSyntaxChecker::new(),
        place: Place { source, ..Place::default() },
        names: Names::within(source.len()),
        scopes: Scopes::within(source.len()),
        here: 0,
        classes: Vec::new(),
        blocks: 0,
        imports: Vec::new(),
        stars: Vec::new(),
        nonlocals: Vec::new(),
    };
    walk.scopes.open(Kind::Module, 0, true);
    walk.place.scopes.push((Kind::Module, true));
    for statement in module {
        walk.visit_stmt(statement);
        each(statement);
    }
    walk.scopes.close(0);
    for lost in walk.scopes.resolve() {
        let name = walk.names.text(walk.scopes.symbol(lost).name);
        let place = walk.nonlocals.iter().find(|(symbol, _)| *symbol == lost);
        if let Some((_, range)) = place
            && walk.scopes.scope(walk.scopes.symbol(lost).scope).kind != Kind::Module
        {
            walk.place.refuse(format!("no binding for nonlocal `{name}` found"), *range);
        }
    }
    Declared {
        names: walk.names,
        scopes: walk.scopes,
        faults: walk.place.faults.into_inner(),
        imports: walk.imports,
        stars: walk.stars,
        future: walk.place.future.get(),
    }
}

struct Walk<'a> {
    checker: SemanticSyntaxChecker,
    place: Place<'a>,
    names: Names<'a>,
    scopes: Scopes,
    here: ScopeId,
    /// The enclosing classes, for private names.
    classes: Vec<&'a str>,
    blocks: usize,
    imports: Vec<(Import, TextRange)>,
    stars: Vec<String>,
    nonlocals: Vec<(SymId, TextRange)>,
}

/// Numbers a node.
fn number(node: &ast::AtomicNodeIndex, id: u32) {
    // Numbers stay far below the limit: a source has fewer than 2^30 bytes.
    node.set(ast::NodeIndex::from(id & 0x3fff_ffff));
}

impl<'a> Walk<'a> {
    fn enter(&mut self, text: &'a str, flags: u16) -> SymId {
        self.enter_in(self.here, text, flags)
    }

    fn enter_in(&mut self, scope: ScopeId, text: &'a str, flags: u16) -> SymId {
        let name = self.names.of(mangled(text, self.classes.last().copied()));
        self.scopes.enter(scope, name, flags)
    }

    fn within(
        &mut self,
        kind: Kind,
        is_async: bool,
        node: &ast::AtomicNodeIndex,
        body: impl FnOnce(&mut Self),
    ) {
        let outer = self.here;
        self.here = self.scopes.open(kind, outer, is_async);
        number(node, self.here);
        self.place.scopes.push((kind, is_async));
        let loops = std::mem::take(&mut self.place.loops);
        let blocks = std::mem::take(&mut self.blocks);
        body(self);
        self.blocks = blocks;
        self.place.loops = loops;
        self.place.scopes.pop();
        self.scopes.close(self.here);
        self.here = outer;
    }

    fn block(&mut self, range: TextRange, body: impl FnOnce(&mut Self)) {
        self.blocks += 1;
        if self.blocks == MAX_BLOCKS + 1 {
            self.place.refuse("too many statically nested blocks".to_owned(), range);
        }
        body(self);
        self.blocks -= 1;
    }

    fn in_loop(&mut self, body: &'a [Stmt]) {
        self.place.loops += 1;
        self.visit_body(body);
        self.place.loops -= 1;
    }

    fn parameters(&mut self, parameters: &'a ast::Parameters) {
        for parameter in parameters.iter() {
            let parameter = parameter.as_parameter();
            let symbol = self.enter(&parameter.name.id, PARAM);
            number(&parameter.node_index, symbol);
        }
    }

    fn defaults(&mut self, parameters: &'a ast::Parameters) {
        for parameter in parameters.iter_non_variadic_params() {
            if let Some(default) = &parameter.default {
                self.visit_expr(default);
            }
        }
    }

    fn annotations(&mut self, parameters: &'a ast::Parameters, returns: Option<&'a Expr>) {
        if self.place.future.get() {
            return;
        }
        for parameter in parameters.iter() {
            if let Some(annotation) = &parameter.as_parameter().annotation {
                self.visit_expr(annotation);
            }
        }
        if let Some(returns) = returns {
            self.visit_expr(returns);
        }
    }

    /// Runs `body` in the scope of the type parameters, if there are any.
    fn with_type_params(
        &mut self,
        params: Option<&'a ast::TypeParams>,
        body: impl FnOnce(&mut Self),
    ) {
        let Some(params) = params else {
            return body(self);
        };
        self.within(Kind::Type, false, &params.node_index, |walk| {
            for param in &params.type_params {
                let (name, node, lazy) = match param {
                    ast::TypeParam::TypeVar(param) => {
                        (&param.name, &param.node_index, [&param.bound, &param.default])
                    }
                    ast::TypeParam::TypeVarTuple(param) => {
                        (&param.name, &param.node_index, [&None, &param.default])
                    }
                    ast::TypeParam::ParamSpec(param) => {
                        (&param.name, &param.node_index, [&None, &param.default])
                    }
                };
                let symbol = walk.enter(&name.id, STORED);
                number(&name.node_index, symbol);
                walk.within(Kind::Lazy, false, node, |walk| {
                    for value in lazy.into_iter().flatten() {
                        walk.visit_expr(value);
                    }
                });
            }
            body(walk);
        });
    }

    fn function(&mut self, node: &'a ast::StmtFunctionDef) {
        for decorator in &node.decorator_list {
            self.visit_expr(&decorator.expression);
        }
        self.defaults(&node.parameters);
        let symbol = self.enter(&node.name.id, STORED);
        number(&node.name.node_index, symbol);
        self.with_type_params(node.type_params.as_deref(), |walk| {
            walk.annotations(&node.parameters, node.returns.as_deref());
            walk.within(Kind::Function, node.is_async, &node.node_index, |walk| {
                walk.parameters(&node.parameters);
                walk.visit_body(&node.body);
            });
        });
    }

    fn class(&mut self, node: &'a ast::StmtClassDef) {
        for decorator in &node.decorator_list {
            self.visit_expr(&decorator.expression);
        }
        let symbol = self.enter(&node.name.id, STORED);
        number(&node.name.node_index, symbol);
        self.with_type_params(node.type_params.as_deref(), |walk| {
            if let Some(arguments) = &node.arguments {
                walk.visit_arguments(arguments);
            }
            walk.classes.push(&node.name.id);
            walk.within(Kind::Class, false, &node.node_index, |walk| walk.visit_body(&node.body));
            walk.classes.pop();
        });
    }

    fn comprehension(
        &mut self,
        kind: Kind,
        node: &ast::AtomicNodeIndex,
        generators: &'a [ast::Comprehension],
        results: [Option<&'a Expr>; 2],
    ) {
        if let Some(first) = generators.first() {
            self.visit_expr(&first.iter);
        }
        self.within(kind, generators.iter().any(|one| one.is_async), node, |walk| {
            // The first iterable is passed as a parameter.
            walk.enter(".0", PARAM);
            for (at, generator) in generators.iter().enumerate() {
                if at > 0 {
                    walk.visit_expr(&generator.iter);
                }
                walk.visit_expr(&generator.target);
                for condition in &generator.ifs {
                    walk.visit_expr(condition);
                }
            }
            for result in results.into_iter().flatten() {
                walk.visit_expr(result);
            }
        });
    }

    /// `global` and `nonlocal`. Whether they are legal depends on earlier uses of the name in the
    /// scope.
    fn outer_names(&mut self, names: &'a [ast::Identifier], flag: u16) {
        for name in names {
            let symbol = self.enter(&name.id, 0);
            number(&name.node_index, symbol);
            let met = self.scopes.symbol(symbol).flags;
            if let Some(message) = legality::outer_name(&name.id, met, flag) {
                self.place.refuse(message, name.range);
            }
            self.enter(&name.id, flag);
            if flag == NONLOCAL {
                self.nonlocals.push((symbol, name.range));
            }
        }
    }

    fn annotated(&mut self, node: &'a ast::StmtAnnAssign) {
        if let Some(value) = &node.value {
            self.visit_expr(value);
        }
        match &*node.target {
            Expr::Name(name) => {
                self.checker.visit_expr(&node.target, &self.place);
                let stored = if node.value.is_some() { STORED } else { 0 };
                let annotated = if node.simple { ANNOTATED } else { 0 };
                let symbol = self.enter(&name.id, stored | annotated);
                number(&name.node_index, symbol);
                let outer = self.scopes.symbol(symbol).flags & (GLOBAL | NONLOCAL);
                if outer != 0 && node.simple && self.here != 0 {
                    let word = if outer & GLOBAL != 0 { "global" } else { "nonlocal" };
                    let message = format!("annotated name `{}` can't be {word}", name.id);
                    self.place.refuse(message, name.range);
                }
            }
            target => self.visit_expr(target),
        }
        // A function does not evaluate the annotations in its body.
        if !self.place.future.get() && self.place.kind() != Kind::Function {
            self.visit_expr(&node.annotation);
        }
    }

    fn import(&mut self, module: &str, names: Vec<String>, range: TextRange) {
        let import = Import { module: module.to_owned(), names, line: 0 };
        self.imports.push((import, range));
    }

    fn import_from(&mut self, node: &'a ast::StmtImportFrom) {
        let level = usize::try_from(node.level).unwrap_or(0);
        let module = node.module.as_ref().map_or("", |module| module.id.as_str());
        let module = format!("{}{module}", ".".repeat(level));
        let mut names = Vec::new();
        for alias in &node.names {
            if alias.name.id.as_str() == "*" {
                self.stars.push(module.clone());
                continue;
            }
            names.push(alias.name.id.to_string());
            let bound = alias.asname.as_ref().unwrap_or(&alias.name);
            let symbol = self.enter(&bound.id, STORED);
            number(&alias.node_index, symbol);
        }
        if module == "__future__" && names.iter().any(|name| name == "annotations") {
            self.place.future.set(true);
        }
        self.import(&module, names, node.range);
    }

    fn try_statement(&mut self, node: &'a ast::StmtTry) {
        let last = node.handlers.len().saturating_sub(1);
        for (at, handler) in node.handlers.iter().enumerate() {
            let ast::ExceptHandler::ExceptHandler(handler) = handler;
            if handler.type_.is_none() && at < last {
                self.place.refuse("default `except:` must be last".to_owned(), handler.range);
            }
            if node.is_star {
                for (word, range) in legality::leaving(&handler.body) {
                    let message = format!("`{word}` cannot appear in an `except*` block");
                    self.place.refuse(message, range);
                }
            }
        }
        self.block(node.range, |walk| {
            walk.visit_body(&node.body);
            for handler in &node.handlers {
                let ast::ExceptHandler::ExceptHandler(handler) = handler;
                if let Some(kind) = &handler.type_ {
                    walk.visit_expr(kind);
                }
                if let Some(name) = &handler.name {
                    let symbol = walk.enter(&name.id, STORED);
                    number(&handler.node_index, symbol);
                    if name.id.as_str() == "__debug__" {
                        walk.place.refuse("cannot assign to `__debug__`".to_owned(), name.range);
                    }
                }
                walk.visit_body(&handler.body);
            }
            walk.visit_body(&node.orelse);
            walk.visit_body(&node.finalbody);
        });
    }
}

impl<'a> Visitor<'a> for Walk<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.checker.visit_stmt(statement, &self.place);
        match statement {
            Stmt::FunctionDef(node) => self.function(node),
            Stmt::ClassDef(node) => self.class(node),
            Stmt::TypeAlias(node) => {
                if let Expr::Name(name) = &*node.name {
                    let symbol = self.enter(&name.id, STORED);
                    number(&name.node_index, symbol);
                }
                self.with_type_params(node.type_params.as_deref(), |walk| {
                    walk.within(Kind::Lazy, false, &node.node_index, |walk| {
                        walk.visit_expr(&node.value);
                    });
                });
            }
            Stmt::AnnAssign(node) => self.annotated(node),
            Stmt::For(node) => {
                self.visit_expr(&node.iter);
                self.block(node.range, |walk| {
                    walk.visit_expr(&node.target);
                    walk.in_loop(&node.body);
                });
                self.visit_body(&node.orelse);
            }
            Stmt::While(node) => {
                self.visit_expr(&node.test);
                self.block(node.range, |walk| walk.in_loop(&node.body));
                self.visit_body(&node.orelse);
            }
            Stmt::With(node) => {
                self.block(node.range, |walk| visitor::walk_stmt(walk, statement));
            }
            Stmt::Try(node) => self.try_statement(node),
            Stmt::Import(node) => {
                for alias in &node.names {
                    let module = alias.name.id.as_str();
                    let bound = alias.asname.as_ref().map_or(module, |name| name.id.as_str());
                    // A dotted import without an alias binds the outermost package.
                    let bound = bound.split('.').next().unwrap_or(bound);
                    let symbol = self.enter(bound, STORED);
                    number(&alias.node_index, symbol);
                    self.import(module, Vec::new(), node.range);
                }
            }
            Stmt::ImportFrom(node) => self.import_from(node),
            Stmt::Global(node) => self.outer_names(&node.names, GLOBAL),
            Stmt::Nonlocal(node) => self.outer_names(&node.names, NONLOCAL),
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.checker.visit_expr(expr, &self.place);
        match expr {
            Expr::Name(node) => {
                let flags = if node.ctx == ast::ExprContext::Load { LOADED } else { STORED };
                let symbol = self.enter(&node.id, flags);
                number(&node.node_index, symbol);
            }
            Expr::Lambda(node) => {
                if let Some(parameters) = &node.parameters {
                    self.defaults(parameters);
                }
                self.within(Kind::Lambda, false, &node.node_index, |walk| {
                    if let Some(parameters) = &node.parameters {
                        walk.parameters(parameters);
                    }
                    walk.visit_expr(&node.body);
                });
            }
            Expr::ListComp(node) => {
                let results = [Some(&*node.elt), None];
                self.comprehension(Kind::Comp, &node.node_index, &node.generators, results);
            }
            Expr::SetComp(node) => {
                let results = [Some(&*node.elt), None];
                self.comprehension(Kind::Comp, &node.node_index, &node.generators, results);
            }
            Expr::DictComp(node) => {
                let results = [node.key.as_deref(), Some(&*node.value)];
                self.comprehension(Kind::Comp, &node.node_index, &node.generators, results);
            }
            Expr::Generator(node) => {
                let results = [Some(&*node.elt), None];
                self.comprehension(Kind::Generator, &node.node_index, &node.generators, results);
            }
            Expr::Named(node) => {
                self.visit_expr(&node.value);
                if let Expr::Name(name) = &*node.target {
                    self.checker.visit_expr(&node.target, &self.place);
                    // It binds outside the comprehensions around it.
                    let mut scope = self.here;
                    while matches!(self.scopes.scope(scope).kind, Kind::Comp | Kind::Generator) {
                        scope = self.scopes.scope(scope).parent;
                    }
                    let symbol = self.enter_in(scope, &name.id, STORED);
                    number(&name.node_index, symbol);
                }
            }
            Expr::Yield(_) | Expr::YieldFrom(_) => {
                let here = self.here as usize;
                if let Some(scope) = self.scopes.scopes.get_mut(here) {
                    scope.yields = true;
                }
                visitor::walk_expr(self, expr);
            }
            _ => visitor::walk_expr(self, expr),
        }
    }

    fn visit_pattern(&mut self, pattern: &'a ast::Pattern) {
        let (name, node) = match pattern {
            ast::Pattern::MatchAs(node) => (&node.name, &node.node_index),
            ast::Pattern::MatchStar(node) => (&node.name, &node.node_index),
            ast::Pattern::MatchMapping(node) => (&node.rest, &node.node_index),
            _ => return visitor::walk_pattern(self, pattern),
        };
        if let Some(name) = name {
            let symbol = self.enter(&name.id, STORED);
            number(node, symbol);
        }
        visitor::walk_pattern(self, pattern);
    }
}
