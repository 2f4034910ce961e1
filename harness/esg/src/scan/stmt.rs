//! Statements: what they bind and define.

use super::effects::Code;
use super::flow::Flow;
use super::names::Known;
use super::parse::{Expr, Stmt, ast, numbered};
use super::scope::{Kind, ScopeId, SymId, Target};
use super::state::{FRESH, local};
use super::value::{EMPTY, Tag, Val};

impl<'a> Flow<'a> {
    pub(super) fn statement(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Expr(node) => {
                self.eval(&node.value);
            }
            Stmt::Assign(node) => self.assign(node),
            Stmt::AugAssign(node) => self.augment(node),
            Stmt::AnnAssign(node) => self.annotated(node),
            Stmt::For(node) => self.for_statement(node),
            Stmt::While(node) => self.while_statement(node),
            Stmt::If(node) => self.if_statement(node),
            Stmt::With(node) => self.with_statement(&node.items, &node.body),
            Stmt::Match(node) => self.match_statement(node),
            Stmt::Try(node) => self.try_statement(node),
            Stmt::FunctionDef(node) => self.function(node),
            Stmt::ClassDef(node) => self.class(node),
            Stmt::Delete(node) => node.targets.iter().for_each(|target| self.delete(target)),
            Stmt::Return(node) => {
                let val = node.value.as_deref().map_or(EMPTY, |value| self.eval(value));
                self.answer(val);
                if !self.state.dead {
                    self.leave();
                }
            }
            Stmt::Raise(node) => {
                for value in [&node.exc, &node.cause].into_iter().flatten() {
                    self.eval(value);
                }
                self.state.dead = true;
            }
            Stmt::Assert(node) => {
                let mark = self.state.mark();
                let (yes, no) = self.condition(&node.test, mark);
                if let Some(message) = &node.msg {
                    self.state.follow(&no);
                    self.eval(message);
                    self.state.take(mark);
                }
                // Without assertions, execution continues after a failing one.
                self.state.join(&[yes, no], &mut self.values);
            }
            Stmt::Import(node) => {
                for alias in &node.names {
                    let module = alias.name.id.as_str();
                    // Without an alias, `import a.b` binds `a`.
                    let bound = module.split('.').next().filter(|_| alias.asname.is_none());
                    let path = bound.unwrap_or(module).to_owned();
                    self.imported(alias, module == "__main__", path);
                }
            }
            Stmt::ImportFrom(node) => {
                let module = node.module.as_ref().map_or("", |name| name.id.as_str());
                for alias in &node.names {
                    let path = format!("{module}.{}", alias.name.id);
                    self.imported(alias, module == "__main__", path);
                }
            }
            Stmt::TypeAlias(node) => self.type_alias(node),
            Stmt::Break(_) => self.jump(true),
            Stmt::Continue(_) => self.jump(false),
            Stmt::Global(_) | Stmt::Nonlocal(_) | Stmt::Pass(_) | Stmt::IpyEscapeCommand(_) => {}
        }
    }

    /// Adds to what the body returns or yields.
    pub(super) fn answer(&mut self, val: Val) {
        self.frame.answers.0 = self.values.union(self.frame.answers.0, val);
    }

    fn imported(&mut self, alias: &'a ast::Alias, own: bool, path: String) {
        self.opaque |= own;
        let Some(symbol) = numbered(&alias.node_index) else {
            return;
        };
        self.name_import(symbol, path);
        let val = match self.scopes.symbol(symbol).target {
            Target::Global(name) => Val::one(Tag::Imported, name),
            _ => EMPTY,
        };
        self.store(symbol, val);
    }

    fn assign(&mut self, node: &'a ast::StmtAssign) {
        let parts = parts(&node.value);
        let val = self.eval(&node.value);
        for target in &node.targets {
            self.name_function(target, &node.value);
            // `a, b = x, y` assigns element by element.
            match (list(target), &parts) {
                (Some(targets), Some(values))
                    if targets.len() == values.len()
                        && !targets.iter().chain(*values).any(Expr::is_starred_expr) =>
                {
                    let vals: Vec<Val> = values.iter().map(|value| self.peek(value)).collect();
                    for (target, val) in targets.iter().zip(vals) {
                        self.bind(target, val);
                    }
                }
                _ => self.bind(target, val),
            }
        }
    }

    fn augment(&mut self, node: &'a ast::StmtAugAssign) {
        match &*node.target {
            Expr::Name(name) => {
                let Some(symbol) = numbered(&name.node_index) else {
                    return;
                };
                let before = self.load(symbol, true);
                let with = self.eval(&node.value);
                self.mutate(before);
                let held = self.values.holding(with);
                self.put(before, held);
                let after = self.union(before, held);
                self.store(symbol, after);
            }
            target => {
                let before = self.eval(target);
                let with = self.eval(&node.value);
                self.mutate(before);
                let held = self.values.holding(with);
                let after = self.union(before, held);
                self.bind(target, after);
            }
        }
    }

    fn annotated(&mut self, node: &'a ast::StmtAnnAssign) {
        if let Some(value) = &node.value {
            let val = self.eval(value);
            self.bind(&node.target, val);
        } else {
            match &*node.target {
                Expr::Attribute(target) => {
                    self.eval(&target.value);
                }
                Expr::Subscript(target) => {
                    self.eval(&target.value);
                    self.eval(&target.slice);
                }
                _ => {}
            }
        }
        let in_function = self.frame.scope != 0 && self.class_here.is_empty();
        if !self.future && !in_function {
            self.eval(&node.annotation);
        }
    }

    /// Binds a target.
    pub(super) fn bind(&mut self, target: &'a Expr, val: Val) {
        match target {
            Expr::Name(node) => {
                if let Some(symbol) = numbered(&node.node_index) {
                    self.store(symbol, val);
                }
            }
            Expr::Starred(node) => {
                let all = self.values.holding(val);
                self.bind(&node.value, all);
            }
            Expr::Tuple(_) | Expr::List(_) => {
                self.run(val);
                let inside = self.values.inside(val);
                for part in list(target).unwrap_or_default() {
                    self.bind(part, inside);
                }
            }
            Expr::Attribute(node) => {
                let object = self.eval(&node.value);
                self.mutate(object);
                self.changes_module(&node.value);
                self.put(object, val);
                self.attribute(object, node.attr.id.as_str(), val);
            }
            Expr::Subscript(node) => {
                if let Some(name) = self.own_name(node) {
                    self.eval(target);
                    return self.store_own(name, val);
                }
                let object = self.eval(&node.value);
                self.eval(&node.slice);
                self.mutate(object);
                self.put(object, val);
            }
            other => {
                self.eval(other);
            }
        }
    }

    /// Records an attribute of a class that the step makes.
    fn attribute(&mut self, object: Val, attr: &'a str, val: Val) {
        for origin in self.values.list(object) {
            if super::value::tag(origin) == Tag::Site
                && let Some(attributes) = self.classes.get_mut(&super::value::number(origin))
                && !attributes.contains(&(attr, val))
            {
                attributes.push((attr, val));
            }
        }
    }

    fn delete(&mut self, target: &'a Expr) {
        match target {
            Expr::Name(node) => {
                if let Some(symbol) = numbered(&node.node_index) {
                    self.unbind(symbol, true);
                }
            }
            Expr::Tuple(_) | Expr::List(_) => {
                list(target).unwrap_or_default().iter().for_each(|part| self.delete(part));
            }
            Expr::Attribute(node) => {
                let object = self.eval(&node.value);
                self.mutate(object);
                self.changes_module(&node.value);
            }
            Expr::Subscript(node) => {
                if let Some(name) = self.own_name(node) {
                    self.eval(&node.value);
                    let name = self.names.of(name.to_owned().into());
                    return self.unbind_global(name, true);
                }
                let object = self.eval(&node.value);
                self.eval(&node.slice);
                self.mutate(object);
            }
            other => {
                self.eval(other);
            }
        }
    }

    fn function(&mut self, node: &'a ast::StmtFunctionDef) {
        let since = self.mark_made();
        let decorators: Vec<Val> =
            node.decorator_list.iter().map(|one| self.eval(&one.expression)).collect();
        let Some(scope) = numbered(&node.node_index) else {
            return;
        };
        self.parameters(scope, &node.parameters);
        self.type_params(node.type_params.as_deref());
        self.annotations(&node.parameters, node.returns.as_deref());
        self.code(scope, Code::Function(node));
        let val = Val::one(Tag::Body, scope);
        self.decorate(&node.decorator_list, &decorators, val, &node.name, (scope, since));
    }

    fn decorate(
        &mut self,
        decorators: &'a [ast::Decorator],
        loaded: &[Val],
        val: Val,
        name: &'a ast::Identifier,
        (scope, since): (ScopeId, usize),
    ) {
        let mut val = val;
        for (decorator, &with) in decorators.iter().zip(loaded).rev() {
            val = self.decorated(&decorator.expression, with, val);
        }
        if let Some(symbol) = numbered(&name.node_index) {
            if let Target::Global(name) = self.scopes.symbol(symbol).target {
                self.definitions.push((name, scope));
            }
            if decorators.iter().all(|one| keeps(&one.expression)) {
                self.lead(symbol, since);
            } else {
                self.free(since);
            }
            self.store(symbol, val);
        }
    }

    pub(super) fn parameters(&mut self, scope: ScopeId, parameters: &'a ast::Parameters) {
        let by_place = parameters.posonlyargs.iter().chain(&parameters.args);
        for one in by_place.chain(&parameters.kwonlyargs) {
            let Some(default) = one.default.as_deref() else {
                continue;
            };
            let default = self.eval(default);
            if let Some(symbol) = numbered(&one.parameter.node_index) {
                self.defaults.insert(symbol, default);
                self.give(symbol, default);
            }
        }
        if let Some(body) = self.bodies.get_mut(scope as usize) {
            body.parameters = Some(parameters);
        }
    }

    fn annotations(&mut self, parameters: &'a ast::Parameters, returns: Option<&'a Expr>) {
        if self.future {
            return;
        }
        for parameter in parameters.iter() {
            if let Some(annotation) = &parameter.as_parameter().annotation {
                self.eval(annotation);
            }
        }
        if let Some(returns) = returns {
            self.eval(returns);
        }
    }

    fn type_params(&mut self, params: Option<&'a ast::TypeParams>) {
        for param in params.into_iter().flat_map(|params| &params.type_params) {
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
            if let Some(scope) = numbered(node) {
                let values = lazy.into_iter().flatten().map(|value| &**value).collect();
                self.code(scope, Code::Lazy(values));
            }
            if let Some(symbol) = numbered(&name.node_index) {
                self.store(symbol, EMPTY);
            }
        }
    }

    fn type_alias(&mut self, node: &'a ast::StmtTypeAlias) {
        let since = self.mark_made();
        self.type_params(node.type_params.as_deref());
        if let Some(scope) = numbered(&node.node_index) {
            self.code(scope, Code::Lazy(vec![&*node.value]));
            if let Some(name) = self.module_name(&node.name) {
                self.definitions.push((name, scope));
            }
            if let Expr::Name(name) = &*node.name
                && let Some(symbol) = numbered(&name.node_index)
            {
                self.lead(symbol, since);
            }
            self.bind(&node.name, Val::one(Tag::Body, scope));
        }
    }

    fn class(&mut self, node: &'a ast::StmtClassDef) {
        let since = self.mark_made();
        let decorators: Vec<Val> =
            node.decorator_list.iter().map(|one| self.eval(&one.expression)).collect();
        self.type_params(node.type_params.as_deref());
        let mut bases = EMPTY;
        if let Some(arguments) = &node.arguments {
            for base in &arguments.args {
                let base = self.eval(base);
                bases = self.union(bases, base);
            }
            for keyword in &arguments.keywords {
                let val = self.eval(&keyword.value);
                self.run(val);
                if keyword.arg.as_ref().is_none_or(|arg| arg.id.as_str() != "metaclass") {
                    self.escape(val);
                }
            }
        }
        let Some(scope) = numbered(&node.node_index) else {
            return;
        };
        if self.state.dead {
            return;
        }
        debug_assert!(self.scopes.scope(scope).kind == Kind::Class);
        let symbols = self.scopes.symbols_of(scope).to_vec();
        for &symbol in &symbols {
            if let Target::Class(variable, _) = self.scopes.symbol(symbol).target {
                self.state.set(local(variable), FRESH);
            }
        }
        self.class_here.push(node.name.id.as_str());
        self.body(&node.body);
        self.class_here.pop();
        let site = Val::one(Tag::Site, scope);
        self.put(site, bases);
        let mut attributes = Vec::new();
        for &symbol in &symbols {
            if let Target::Class(variable, _) = self.scopes.symbol(symbol).target {
                let val = self.state.get(local(variable)).val;
                self.put(site, val);
                attributes.push((symbol, val));
            }
        }
        let known = self.methods(node, &attributes);
        self.classes.insert(scope, known);
        self.decorate(&node.decorator_list, &decorators, site, &node.name, (scope, since));
    }

    /// The attributes of a class under their source names.
    fn methods(
        &self,
        node: &'a ast::StmtClassDef,
        attributes: &[(SymId, Val)],
    ) -> Vec<(&'a str, Val)> {
        let mut known = Vec::new();
        for statement in &node.body {
            let (name, symbol) = match statement {
                Stmt::FunctionDef(inner) => {
                    (inner.name.id.as_str(), numbered(&inner.name.node_index))
                }
                Stmt::Assign(inner) => match inner.targets.as_slice() {
                    [Expr::Name(name)] => (name.id.as_str(), numbered(&name.node_index)),
                    _ => continue,
                },
                _ => continue,
            };
            let found = attributes.iter().find(|(one, _)| Some(*one) == symbol);
            if let Some(&(_, val)) = found {
                known.push((name, val));
            }
        }
        known
    }

    /// The global that an expression names.
    fn module_name(&self, expr: &'a Expr) -> Option<u32> {
        let Expr::Name(node) = expr else {
            return None;
        };
        match self.scopes.symbol(numbered(&node.node_index)?).target {
            Target::Global(name) => Some(name),
            _ => None,
        }
    }

    /// The builtin that an expression names, unless the step binds that name.
    pub(super) fn builtin(&mut self, expr: &'a Expr) -> Option<&'a str> {
        let name = self.module_name(expr)?;
        let Expr::Name(node) = expr else {
            return None;
        };
        if self.names.known(name) != Known::Builtin {
            return None;
        }
        let slot = self.state.get(super::state::global(name));
        (slot.bits & super::state::BOUND == 0).then_some(node.id.as_str())
    }
}

/// Whether a decorator keeps the function, judged by its name.
fn keeps(expr: &Expr) -> bool {
    match expr {
        Expr::Name(node) => {
            matches!(node.id.as_str(), "property" | "staticmethod" | "classmethod")
        }
        Expr::Attribute(node) => matches!(node.attr.id.as_str(), "setter" | "getter" | "deleter"),
        _ => false,
    }
}

/// The parts of a tuple or list.
pub(super) fn list(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Tuple(node) => Some(&node.elts),
        Expr::List(node) => Some(&node.elts),
        _ => None,
    }
}

/// The parts of a value that is written element by element.
fn parts(expr: &Expr) -> Option<&[Expr]> {
    list(expr)
}
