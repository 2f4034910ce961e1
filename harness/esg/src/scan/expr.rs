//! Expressions: what they load, and their possible values.

use super::effects::Code;
use super::flow::Flow;
use super::parse::{Expr, ast, numbered};
use super::state::Path;
use super::value::{EMPTY, Tag, Val};

/// Attributes that evaluate the parts of type parameters and type aliases.
const EVALUATED: &[&str] = &[
    "__bound__",
    "__constraints__",
    "__default__",
    "__value__",
    "evaluate_bound",
    "evaluate_constraints",
    "evaluate_default",
    "evaluate_value",
];

impl<'a> Flow<'a> {
    /// Evaluates an expression.
    pub(super) fn eval(&mut self, expr: &'a Expr) -> Val {
        if self.state.dead || self.spent() {
            return EMPTY;
        }
        match expr {
            Expr::Name(node) => match numbered(&node.node_index) {
                Some(symbol) => self.load(symbol, true),
                None => EMPTY,
            },
            Expr::StringLiteral(_)
            | Expr::BytesLiteral(_)
            | Expr::NumberLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::EllipsisLiteral(_)
            | Expr::IpyEscapeCommand(_) => EMPTY,
            Expr::Attribute(node) => self.get_attribute(node),
            Expr::Subscript(node) => self.subscript(node),
            Expr::Call(node) => self.call(node),
            Expr::BinOp(node) => {
                let left = self.eval(&node.left);
                let right = self.eval(&node.right);
                if super::constants::divides_by_zero(node) {
                    self.state.dead = true;
                }
                if super::constants::is_plain(node) {
                    return EMPTY;
                }
                let both = self.union(left, right);
                self.values.holding(both)
            }
            Expr::UnaryOp(node) => {
                let val = self.eval(&node.operand);
                if node.op == ast::UnaryOp::Not {
                    return EMPTY;
                }
                self.values.holding(val)
            }
            Expr::Compare(node) => self.compare(node),
            Expr::BoolOp(node) => self.either_of(&node.values),
            Expr::If(node) => self.ternary(node),
            Expr::Named(node) => {
                let val = self.eval(&node.value);
                self.bind(&node.target, val);
                val
            }
            Expr::Tuple(ast::ExprTuple { elts, node_index, .. })
            | Expr::List(ast::ExprList { elts, node_index, .. })
            | Expr::Set(ast::ExprSet { elts, node_index, .. }) => {
                let site = self.site(node_index);
                let mut all = EMPTY;
                for part in elts {
                    let val = self.eval(part);
                    all = self.union(all, val);
                }
                self.put(site, all);
                site
            }
            Expr::Dict(node) => {
                let site = self.site(&node.node_index);
                let mut all = EMPTY;
                for item in &node.items {
                    if let Some(key) = &item.key {
                        let key = self.eval(key);
                        let val = self.eval(&item.value);
                        all = self.union(all, key);
                        all = self.union(all, val);
                    } else {
                        let val = self.eval(&item.value);
                        let inside = self.values.inside(val);
                        all = self.union(all, inside);
                    }
                }
                self.put(site, all);
                site
            }
            Expr::Starred(node) => {
                let val = self.eval(&node.value);
                self.run(val);
                self.values.inside(val)
            }
            Expr::Lambda(node) => {
                let Some(scope) = numbered(&node.node_index) else {
                    return EMPTY;
                };
                if let Some(parameters) = &node.parameters {
                    self.parameters(scope, parameters);
                }
                self.code(scope, Code::Lambda(node));
                Val::one(Tag::Body, scope)
            }
            Expr::ListComp(node) => {
                self.comprehension(&node.node_index, &node.generators, [Some(&node.elt), None])
            }
            Expr::SetComp(node) => {
                self.comprehension(&node.node_index, &node.generators, [Some(&node.elt), None])
            }
            Expr::DictComp(node) => {
                let results = [node.key.as_deref(), Some(&*node.value)];
                self.comprehension(&node.node_index, &node.generators, results)
            }
            Expr::Generator(node) => self.generator(node),
            Expr::Await(node) => match &*node.value {
                Expr::Call(call) => {
                    let val = self.call(call);
                    self.consumed(val)
                }
                value => {
                    let val = self.eval(value);
                    self.consumed(val)
                }
            },
            Expr::Yield(node) => {
                let val = node.value.as_deref().map_or(EMPTY, |value| self.eval(value));
                self.answer(val);
                EMPTY
            }
            Expr::YieldFrom(node) => {
                let val = self.eval(&node.value);
                let inside = self.consumed(val);
                let inside = self.values.inside(inside);
                self.answer(inside);
                inside
            }
            Expr::FString(node) => {
                for part in node.value.elements() {
                    self.interpolated(part);
                }
                EMPTY
            }
            Expr::TString(node) => {
                for part in node.value.elements() {
                    self.interpolated(part);
                }
                EMPTY
            }
            Expr::Slice(node) => {
                for part in [&node.lower, &node.upper, &node.step].into_iter().flatten() {
                    self.eval(part);
                }
                EMPTY
            }
        }
    }

    /// The value of an expression that was evaluated already. Records no effects.
    pub(super) fn peek(&mut self, expr: &'a Expr) -> Val {
        match expr {
            Expr::Name(node) => match numbered(&node.node_index) {
                Some(symbol) => self.load(symbol, false),
                None => EMPTY,
            },
            Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::NoneLiteral(_) => EMPTY,
            _ => self.eval(expr),
        }
    }

    /// The value of awaiting or iterating: bodies in it run.
    pub(super) fn consumed(&mut self, val: Val) -> Val {
        if self.coarse.on || self.spent() {
            return EMPTY;
        }
        self.run(val);
        let mut all = val;
        for origin in self.values.list(val) {
            if super::value::tag(origin) == Tag::Body {
                let answers = self.answers(super::value::number(origin), &[]);
                all = self.union(all, answers);
            }
        }
        all
    }

    /// Evaluates an iterable. Returns the possible values of its elements.
    pub(super) fn iterate(&mut self, iterable: &'a Expr) -> Val {
        let val = self.eval(iterable);
        let val = self.consumed(val);
        self.values.inside(val)
    }

    fn interpolated(&mut self, part: &'a ast::InterpolatedStringElement) {
        if let ast::InterpolatedStringElement::Interpolation(part) = part {
            self.eval(&part.expression);
            for inner in part.format_spec.iter().flat_map(|spec| &spec.elements) {
                self.interpolated(inner);
            }
        }
    }

    fn get_attribute(&mut self, node: &'a ast::ExprAttribute) -> Val {
        let attr = node.attr.id.as_str();
        self.opaque |=
            matches!(attr, "__globals__" | "f_globals" | "f_locals" | "f_back" | "f_builtins");
        self.uses_attribute(attr);
        let object = self.eval(&node.value);
        if EVALUATED.contains(&attr) {
            self.evaluate_lazily(object);
        }
        let inside = self.values.inside(object);
        let found = self.attributes(object, attr);
        self.union(inside, found)
    }

    /// Evaluates the parts of every type parameter that the step has made: which of them belong to
    /// `object` is not followed.
    fn evaluate_lazily(&mut self, object: Val) {
        self.run(object);
        for scope in self.frame.created.list().to_vec() {
            let body = self.bodies.get(scope as usize).map(|body| &body.code);
            if let Some(Some(Code::Lazy(_))) = body {
                self.run(Val::one(Tag::Body, scope));
            }
        }
    }

    fn subscript(&mut self, node: &'a ast::ExprSubscript) -> Val {
        if let Some(name) = self.own_name(node) {
            self.own_namespace(&node.value);
            let name = self.names.of(name.to_owned().into());
            return if node.ctx == ast::ExprContext::Load {
                self.load_global(name, true)
            } else {
                EMPTY
            };
        }
        let object = self.eval(&node.value);
        self.eval(&node.slice);
        self.values.inside(object)
    }

    fn compare(&mut self, node: &'a ast::ExprCompare) -> Val {
        if let [ast::CmpOp::In | ast::CmpOp::NotIn] = &*node.ops
            && let [right] = &*node.comparators
            && let Expr::StringLiteral(name) = &*node.left
            && self.own_namespace(right)
        {
            let name = self.names.of(name.value.to_str().to_owned().into());
            // Testing for the name counts as reading it, and cannot raise.
            if self.state.get(super::state::global(name)).bits & super::state::IN != 0 {
                self.frame.reads.insert(name);
            }
            return EMPTY;
        }
        self.eval(&node.left);
        if let Some((first, rest)) = node.comparators.split_first() {
            self.eval(first);
            self.maybe(rest);
        }
        EMPTY
    }

    /// Evaluates expressions that are reached only through those before them.
    fn maybe(&mut self, rest: &'a [Expr]) -> Val {
        let mut all = EMPTY;
        if self.state.dead || rest.is_empty() {
            return all;
        }
        let mark = self.state.mark();
        for value in rest {
            let val = self.eval(value);
            all = self.union(all, val);
        }
        let path = self.state.take(mark);
        self.state.join(&[path, Path::default()], &mut self.values);
        all
    }

    fn either_of(&mut self, values: &'a [Expr]) -> Val {
        let Some((first, rest)) = values.split_first() else {
            return EMPTY;
        };
        let first = self.eval(first);
        let rest = self.maybe(rest);
        self.union(first, rest)
    }

    fn ternary(&mut self, node: &'a ast::ExprIf) -> Val {
        let mark = self.state.mark();
        let (yes, no) = self.condition(&node.test, mark);
        self.state.follow(&yes);
        let a = self.eval(&node.body);
        let yes = self.state.take(mark);
        self.state.follow(&no);
        let b = self.eval(&node.orelse);
        let no = self.state.take(mark);
        self.state.join(&[yes, no], &mut self.values);
        self.union(a, b)
    }

    fn comprehension(
        &mut self,
        node: &ast::AtomicNodeIndex,
        generators: &'a [ast::Comprehension],
        results: [Option<&'a Expr>; 2],
    ) -> Val {
        let site = self.site(node);
        let Some(first) = generators.first() else {
            return EMPTY;
        };
        let elements = self.iterate(&first.iter);
        if self.state.dead {
            return EMPTY;
        }
        // It may run zero times.
        let mark = self.state.mark();
        self.clauses(generators, elements);
        for result in results.into_iter().flatten() {
            let val = self.eval(result);
            self.put(site, val);
        }
        let path = self.state.take(mark);
        self.state.join(&[path, Path::default()], &mut self.values);
        site
    }

    /// The clauses of a comprehension whose first iterable is already evaluated.
    pub(super) fn clauses(&mut self, generators: &'a [ast::Comprehension], elements: Val) {
        let mut elements = elements;
        for (at, generator) in generators.iter().enumerate() {
            if at > 0 {
                elements = self.iterate(&generator.iter);
            }
            self.bind(&generator.target, elements);
            for condition in &generator.ifs {
                let mark = self.state.mark();
                let (yes, _) = self.condition(condition, mark);
                self.state.follow(&yes);
            }
        }
    }

    fn generator(&mut self, node: &'a ast::ExprGenerator) -> Val {
        let (Some(first), Some(scope)) = (node.generators.first(), numbered(&node.node_index))
        else {
            return EMPTY;
        };
        let elements = self.iterate(&first.iter);
        if self.state.dead {
            return EMPTY;
        }
        // The first symbol of the scope is the value of the iterable.
        if let Some(&symbol) = self.scopes.symbols_of(scope).first() {
            self.give(symbol, elements);
        }
        self.code(scope, Code::Generator(node));
        let body = Val::one(Tag::Body, scope);
        let held = self.values.holding(elements);
        let lazy = self.values.holding(body);
        self.union(lazy, held)
    }
}
