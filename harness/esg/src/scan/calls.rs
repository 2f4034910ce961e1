//! Calls: the callee, the arguments, and the result.

use super::effects::{Args, Code};
use super::flow::Flow;
use super::parse::{Expr, ast, numbered};
use super::scope::{ScopeId, SymId};
use super::value::{EMPTY, Reach, Tag, Val, number, reach, tag};

/// Container methods that store their arguments and call nothing.
const KEEPING: &[&str] =
    &["add", "append", "appendleft", "extend", "insert", "put", "setdefault", "update"];

impl<'a> Flow<'a> {
    pub(super) fn call(&mut self, node: &'a ast::ExprCall) -> Val {
        if let Some(builtin) = self.builtin(&node.func) {
            return self.builtin_call(builtin, node);
        }
        match &*node.func {
            Expr::Attribute(func) => self.method(func, node),
            Expr::Name(func) => {
                let Some(symbol) = numbered(&func.node_index) else {
                    return EMPTY;
                };
                let callee = self.load(symbol, false);
                let args = self.args(&node.arguments);
                if !self.is_body(callee) {
                    self.changes_given(&node.func, &args);
                }
                self.invoke(callee, &args, &node.node_index)
            }
            func => {
                let callee = self.eval(func);
                let args = self.args(&node.arguments);
                // `methodcaller('append', 4)(xs)`
                if func.is_call_expr() {
                    self.changes_given(func, &args);
                }
                self.invoke(callee, &args, &node.node_index)
            }
        }
    }

    pub(super) fn args(&mut self, arguments: &'a ast::Arguments) -> Args<'a> {
        let mut args = Args::default();
        let spread = |flow: &mut Self, args: &mut Args<'a>, val| {
            let before = args.spread.unwrap_or(EMPTY);
            args.spread = Some(flow.union(before, val));
        };
        for arg in &*arguments.args {
            let val = self.eval(arg);
            if arg.is_starred_expr() || args.spread.is_some() {
                spread(self, &mut args, val);
            } else {
                args.positional.push(val);
            }
        }
        for keyword in &arguments.keywords {
            let val = self.eval(&keyword.value);
            match &keyword.arg {
                Some(name) => args.keyword.push((name.id.as_str(), val)),
                None => {
                    let inside = self.values.inside(val);
                    let both = self.union(val, inside);
                    spread(self, &mut args, both);
                }
            }
        }
        args
    }

    /// Whether `callee` is surely a body of this step.
    fn is_body(&self, callee: Val) -> bool {
        let callees = self.values.list(callee);
        !callees.is_empty() && callees.iter().all(|one| tag(*one) == Tag::Body)
    }

    /// Everything a call passes.
    pub(super) fn all(&mut self, args: &Args<'a>) -> Val {
        let mut all = args.spread.unwrap_or(EMPTY);
        for &val in &args.positional {
            all = self.union(all, val);
        }
        for &(_, val) in &args.keyword {
            all = self.union(all, val);
        }
        all
    }

    /// Calls whatever `callee` may be.
    pub(super) fn invoke(
        &mut self,
        callee: Val,
        args: &Args<'a>,
        node: &ast::AtomicNodeIndex,
    ) -> Val {
        if self.state.dead {
            return EMPTY;
        }
        if self.coarse.on || self.spent() {
            return EMPTY;
        }
        let callees = self.values.list(callee);
        let definite = callees.len() == 1;
        let mut unknown = callees.is_empty();
        let mut result = EMPTY;
        for one in callees {
            let val = match (tag(one), reach(one)) {
                (Tag::Body, Reach::Is) => self.call_body(number(one), args, definite),
                (Tag::Site, Reach::Is) if self.classes.contains_key(&number(one)) => {
                    self.instance(one, args, node)
                }
                (Tag::Global, Reach::Is) => {
                    unknown = true;
                    Val::one(Tag::Result, number(one))
                }
                (_, how) => {
                    unknown = true;
                    if matches!(how, Reach::Part | Reach::Deep) {
                        // It may be a bound method, which changes its object.
                        self.mutate(Val::of_origin(one));
                    }
                    let held = self.values.held(one);
                    self.escape(held);
                    held
                }
            };
            result = self.union(result, val);
        }
        if unknown {
            // The arguments escape. The result may be one of them, and changes with them.
            self.run(callee);
            let all = self.pass(args);
            result = self.union(result, all);
        }
        result
    }

    /// Passes the arguments to an unknown callable, which may call them, change and keep them.
    pub(super) fn pass(&mut self, args: &Args<'a>) -> Val {
        let all = self.all(args);
        self.feed(all);
        self.run(all);
        self.escape(all);
        all
    }

    /// What is passed along with a body may be passed to that body.
    pub(super) fn feed(&mut self, all: Val) {
        if self.coarse.on {
            return;
        }
        let list = self.values.list(all);
        if list.len() < 2 || !list.iter().any(|one| tag(*one) == Tag::Body) {
            return;
        }
        let data = list.iter().copied().filter(|one| tag(*one) != Tag::Body).collect();
        let data = self.values.of(data);
        let inside = self.values.inside(data);
        let data = self.union(data, inside);
        for one in list {
            if tag(one) == Tag::Body {
                for symbol in self.symbols(number(one)) {
                    self.give(symbol, data);
                }
            }
        }
    }

    fn symbols(&self, scope: ScopeId) -> Vec<SymId> {
        let body = self.bodies.get(scope as usize);
        body.map_or_else(Vec::new, |body| body.symbols().collect())
    }

    /// Calls a body of this step.
    pub(super) fn call_body(&mut self, scope: ScopeId, args: &Args<'a>, definite: bool) -> Val {
        let all = self.all(args);
        self.run(all);
        let bound = self.bound(scope, args);
        for &(symbol, val) in &bound {
            self.give(symbol, val);
        }
        if self.is_lazy(scope) {
            // It runs when it is awaited or iterated.
            let body = self.values.holding(Val::one(Tag::Body, scope));
            let held = self.values.holding(all);
            return self.union(body, held);
        }
        let summary = self.summary(scope);
        self.apply(scope, &summary, &bound, definite);
        self.resolve(summary.frame.answers.0, &bound)
    }

    fn is_lazy(&self, scope: ScopeId) -> bool {
        let found = self.scopes.scope(scope);
        found.is_async || found.yields
    }

    /// Assigns the arguments to parameters.
    fn bound(&mut self, scope: ScopeId, args: &Args<'a>) -> Vec<(SymId, Val)> {
        let Some(body) = self.bodies.get(scope as usize) else {
            return Vec::new();
        };
        let (named, mut rest) = (body.named(), body.rest().peekable());
        let mut bound = Vec::new();
        for (at, (symbol, name, by_place)) in named.enumerate() {
            let by_place = if by_place { args.positional.get(at) } else { None };
            let by_name = args.keyword.iter().find(|(arg, _)| *arg == name).map(|(_, val)| val);
            let mut val = match by_place.or(by_name) {
                Some(&val) => val,
                None => self.defaults.get(&symbol).copied().unwrap_or(EMPTY),
            };
            if let Some(spread) = args.spread {
                val = self.union(val, spread);
            }
            bound.push((symbol, val));
        }
        if rest.peek().is_some() {
            let all = self.all(args);
            let all = self.values.holding(all);
            bound.extend(rest.map(|symbol| (symbol, all)));
        }
        bound
    }

    /// Makes an instance of a class of this step.
    fn instance(&mut self, class: u32, args: &Args<'a>, node: &ast::AtomicNodeIndex) -> Val {
        let made = self.site(node);
        let class = self.values.of(vec![class]);
        self.put(made, class);
        self.run(class);
        let mut own = Args { spread: args.spread, ..Args::default() };
        own.positional.push(made);
        own.positional.extend(&args.positional);
        own.keyword.clone_from(&args.keyword);
        let mut known = false;
        for attr in ["__init__", "__new__", "__post_init__", "__call__"] {
            let found = self.attributes(class, attr);
            for one in self.values.list(found) {
                if tag(one) == Tag::Body {
                    known |= attr == "__init__";
                    let args = if attr == "__call__" { &Args::default() } else { &own };
                    self.call_body(number(one), args, false);
                }
            }
        }
        if !known {
            // Without an initialiser of its own, a base or a decorator stores the arguments.
            let all = self.all(args);
            self.run(all);
            self.put(made, all);
        }
        made
    }

    /// What the classes of this step that `object` may be, or be an instance of, have as `attr`.
    pub(super) fn attributes(&mut self, object: Val, attr: &str) -> Val {
        if self.classes.is_empty() {
            return EMPTY;
        }
        let mut open = self.values.list(object);
        let mut seen: Vec<u32> = Vec::new();
        let mut all = EMPTY;
        while let Some(one) = open.pop() {
            if tag(one) != Tag::Site || seen.contains(&one) {
                continue;
            }
            seen.push(one);
            let found = self.classes.get(&number(one));
            let found: Vec<Val> = found.map_or_else(Vec::new, |found| {
                found.iter().filter(|(name, _)| *name == attr).map(|(_, val)| *val).collect()
            });
            for val in found {
                all = self.union(all, val);
            }
            let held = self.values.held(one);
            let classes = self.values.list(held);
            open.extend(classes.into_iter().filter(|one| self.classes.contains_key(&number(*one))));
        }
        all
    }

    fn method(&mut self, func: &'a ast::ExprAttribute, node: &'a ast::ExprCall) -> Val {
        if let Some(val) = self.own_method(func, node) {
            return val;
        }
        let attr = func.attr.id.as_str();
        let kind = self.builtin(&func.value);
        let literal = matches!(
            &*func.value,
            Expr::StringLiteral(_) | Expr::BytesLiteral(_) | Expr::FString(_)
        );
        let object = self.eval(&func.value);
        let args = self.args(&node.arguments);
        if self.state.dead || self.coarse.on || self.spent() {
            return EMPTY;
        }
        if matches!(kind, Some("list" | "dict" | "set" | "bytearray" | "object" | "type"))
            && let Some(&first) = args.positional.first()
        {
            // `list.append(xs, 1)`.
            self.mutate(first);
            let all = self.all(&args);
            self.put(first, all);
        }
        if literal || kind.is_some() {
            let all = self.all(&args);
            self.run(all);
            return self.values.holding(all);
        }
        let objects = self.values.list(object);
        let ours = !objects.is_empty()
            && objects.iter().all(|one| matches!(tag(*one), Tag::Site | Tag::Body));
        let found = self.attributes(object, attr);
        let bodies: Vec<u32> =
            self.values.list(found).into_iter().filter(|one| tag(*one) == Tag::Body).collect();
        let mut result = EMPTY;
        for &one in &bodies {
            let definite = ours && objects.len() == 1 && bodies.len() == 1;
            let val = self.bound_call(one, object, &args, definite);
            result = self.union(result, val);
        }
        if ours && !bodies.is_empty() {
            return result;
        }
        self.mutate(object);
        if !ours {
            self.changes_given(&node.func, &args);
        }
        let all = self.all(&args);
        let inside = self.values.inside(object);
        if ours && KEEPING.contains(&attr) && args.keyword.is_empty() {
            self.put(object, all);
        } else {
            if ours {
                self.feed(all);
                // A base or a container of this step, which knows only what it was given.
                self.run(all);
                let held = self.values.inside(inside);
                let held = self.union(inside, held);
                if objects.iter().any(|one| self.is_instance(*one)) {
                    self.mutate(held);
                    self.escape(all);
                }
            } else {
                let data = self.union(all, object);
                self.feed(data);
                self.pass(&args);
                let result = self.union(result, all);
                return self.union(result, inside);
            }
            self.put(object, all);
        }
        let result = self.union(result, inside);
        self.union(result, all)
    }

    /// Whether an object is an instance of a class of this step.
    fn is_instance(&self, one: u32) -> bool {
        let held = self.values.held(one);
        let held = self.values.list(held);
        held.iter().any(|one| self.classes.contains_key(&number(*one)) && tag(*one) == Tag::Site)
    }

    /// Calls a method of a class of this step, through an instance or through the class.
    fn bound_call(&mut self, body: u32, object: Val, args: &Args<'a>, definite: bool) -> Val {
        let decorated = match self.bodies.get(number(body) as usize).map(|body| &body.code) {
            Some(Some(Code::Function(node))) => !node.decorator_list.is_empty(),
            _ => true,
        };
        let objects = self.values.list(object);
        let through_class = objects.iter().any(|one| self.classes.contains_key(&number(*one)));
        let through_instance = objects.iter().any(|one| !self.classes.contains_key(&number(*one)));
        let mut result = EMPTY;
        if through_instance || decorated {
            let mut own = Args { spread: args.spread, ..Args::default() };
            own.positional.push(object);
            own.positional.extend(&args.positional);
            own.keyword.clone_from(&args.keyword);
            result = self.call_body(number(body), &own, definite);
        }
        if through_class || decorated {
            let val = self.call_body(number(body), args, definite);
            result = self.union(result, val);
        }
        result
    }

    /// The result of a decorator.
    pub(super) fn decorated(&mut self, expr: &'a Expr, decorator: Val, val: Val) -> Val {
        match expr {
            Expr::Name(_)
                if matches!(
                    self.builtin(expr),
                    Some("property" | "staticmethod" | "classmethod")
                ) =>
            {
                return val;
            }
            Expr::Attribute(node)
                if matches!(node.attr.id.as_str(), "setter" | "getter" | "deleter") =>
            {
                return self.union(decorator, val);
            }
            _ => {}
        }
        let args = Args { positional: vec![val], ..Args::default() };
        let node = ast::AtomicNodeIndex::default();
        let result = self.invoke(decorator, &args, &node);
        if self.values.list(decorator).iter().all(|one| tag(*one) == Tag::Body) && result != EMPTY {
            return result;
        }
        self.union(result, val)
    }
}
