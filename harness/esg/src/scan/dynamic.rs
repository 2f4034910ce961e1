//! Builtins with effects, and names accessed by strings.

use super::effects::Args;
use super::flow::Flow;
use super::parse::{Expr, ast};
use super::state::{BOUND, Slot, either, global};
use super::value::{EMPTY, Val};

/// How deep code in strings is followed.
const NESTED: usize = 3;

/// The text of a string literal.
fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::StringLiteral(node) => Some(node.value.to_str()),
        _ => None,
    }
}

impl<'a> Flow<'a> {
    /// Whether an expression is the module's own namespace. Counts as loading it.
    pub(super) fn own_namespace(&mut self, expr: &'a Expr) -> bool {
        let Expr::Call(call) = expr else {
            return false;
        };
        if !call.arguments.args.is_empty() || !call.arguments.keywords.is_empty() {
            return false;
        }
        let at_top = self.frame.scope == 0 && self.class_here.is_empty();
        match self.builtin(&call.func) {
            Some("globals") => {}
            Some("locals" | "vars") if at_top => {}
            _ => return false,
        }
        self.eval(&call.func);
        true
    }

    /// The name that `globals()["x"]` accesses.
    pub(super) fn own_name(&mut self, node: &'a ast::ExprSubscript) -> Option<&'a str> {
        let name = text(&node.slice)?;
        let is_call = node.value.is_call_expr();
        (is_call && self.own_namespace(&node.value)).then_some(name)
    }

    /// Binds a global by its name.
    pub(super) fn store_own(&mut self, name: &'a str, val: Val) {
        let name = self.names.of(name.to_owned().into());
        self.frame.writes.insert(name);
        self.valued(name, val);
        self.state.set(global(name), Slot { val, bits: BOUND });
    }

    /// `globals().get("x")` and similar.
    pub(super) fn own_method(
        &mut self,
        func: &'a ast::ExprAttribute,
        node: &'a ast::ExprCall,
    ) -> Option<Val> {
        if !func.value.is_call_expr() || !self.own_namespace(&func.value) {
            return None;
        }
        let args = &node.arguments;
        let name = args.args.first().and_then(text);
        let given = self.args(args);
        let attr = func.attr.id.as_str();
        match (attr, name) {
            ("get" | "setdefault" | "pop" | "__getitem__" | "__contains__", Some(name)) => {
                let id = self.names.of(name.to_owned().into());
                let val = self.load_global(id, true);
                self.state.dead = false;
                let other = given.positional.get(1).copied().unwrap_or(EMPTY);
                let all = self.union(val, other);
                if attr == "pop" {
                    self.unbind_global(id, false);
                } else if attr == "setdefault" {
                    self.store_own(name, all);
                }
                Some(all)
            }
            ("update", None) if args.args.is_empty() => {
                for keyword in &args.keywords {
                    match &keyword.arg {
                        Some(name) => {
                            let val = given.keyword.iter().find(|(arg, _)| *arg == name.id);
                            let val = val.map_or(EMPTY, |(_, val)| *val);
                            self.store_own(name.id.as_str(), val);
                        }
                        None => self.opaque = true,
                    }
                }
                Some(EMPTY)
            }
            _ => {
                self.opaque = true;
                Some(self.pass(&given))
            }
        }
    }

    /// Calls a builtin of that name.
    pub(super) fn builtin_call(&mut self, name: &'a str, node: &'a ast::ExprCall) -> Val {
        self.eval(&node.func);
        let arguments = &node.arguments;
        match name {
            "exec" | "eval" => return self.dynamic(name, arguments),
            "globals" | "locals" | "vars" | "dir" if arguments.is_empty() => {
                let at_top = self.frame.scope == 0 && self.class_here.is_empty();
                self.opaque |= at_top || name == "globals";
                return EMPTY;
            }
            "__import__" => {
                let args = self.args(arguments);
                self.opaque |= arguments.args.first().and_then(text).is_none();
                self.pass(&args);
                return EMPTY;
            }
            _ => {}
        }
        let args = self.args(arguments);
        if self.state.dead {
            return EMPTY;
        }
        let all = self.all(&args);
        self.feed(all);
        let first = args.positional.first().copied().unwrap_or(EMPTY);
        match name {
            "map" | "filter" | "zip" | "enumerate" | "iter" | "reversed" => {
                let held = self.values.holding(all);
                if name == "iter" { self.union(held, all) } else { held }
            }
            "print" => {
                // What it prints is only shown. What it prints to is changed.
                let to = args.keyword.iter().find(|(name, _)| *name == "file");
                let to = to.map_or(args.spread.unwrap_or(EMPTY), |(_, val)| *val);
                self.mutate(to);
                self.run(all);
                EMPTY
            }
            "property" | "staticmethod" | "classmethod" => all,
            "isinstance" | "issubclass" | "callable" | "hasattr" | "id" | "hash" => EMPTY,
            "setattr" | "delattr" => {
                self.mutate(first);
                if let Some(object) = node.arguments.args.first() {
                    self.changes_module(object);
                }
                let val = args.positional.get(2).copied().unwrap_or(EMPTY);
                self.put(first, val);
                EMPTY
            }
            "next" | "anext" => {
                let consumed = self.consumed(first);
                self.mutate(first);
                let inside = self.values.inside(consumed);
                self.union(inside, all)
            }
            "getattr" | "vars" | "type" | "super" | "min" | "max" | "aiter" | "memoryview" => {
                self.run(all);
                let inside = self.values.inside(all);
                self.union(inside, all)
            }
            "list" | "tuple" | "set" | "dict" | "frozenset" | "sorted" | "sum" | "slice" => {
                let all = self.consumed(all);
                let made = self.site(&node.node_index);
                let inside = self.values.inside(all);
                self.put(made, inside);
                made
            }
            _ => {
                self.run(all);
                EMPTY
            }
        }
    }

    /// `exec` and `eval`: string literals are scanned; other code makes the step opaque.
    fn dynamic(&mut self, name: &str, arguments: &'a ast::Arguments) -> Val {
        let source = arguments.args.first().and_then(|code| match code {
            // `exec(compile("…", "…", "exec"))`
            Expr::Call(call) if self.builtin(&call.func) == Some("compile") => {
                call.arguments.args.first().and_then(text)
            }
            code => text(code),
        });
        let args: Args<'a> = self.args(arguments);
        let spaces: Vec<&'a Expr> = arguments
            .args
            .iter()
            .skip(1)
            .chain(arguments.keywords.iter().map(|keyword| &keyword.value))
            .collect();
        let mut own = true;
        for space in spaces {
            own &= self.own_namespace(space);
        }
        for &space in args.positional.iter().skip(1) {
            self.mutate(space);
        }
        let at_top = self.frame.scope == 0 && self.class_here.is_empty();
        let (Some(source), true) = (source, self.nested < NESTED) else {
            self.opaque = true;
            return self.pass(&args);
        };
        if !own {
            // Names are looked up in the given namespace, not in the module.
            return EMPTY;
        }
        let source = if name == "eval" { source.trim_start() } else { source };
        self.charge(source.len());
        let inner = (self.scan)(source);
        self.opaque |= inner.opaque || !inner.errors.is_empty() || !at_top;
        let reads = inner.reads.iter().chain(&inner.builtin_reads);
        for read in reads {
            let name = self.names.of(read.to_owned().into());
            self.load_global(name, true);
        }
        for late in &inner.deferred_reads {
            let name = self.names.of(late.to_owned().into());
            self.frame.late.insert(name);
        }
        let mutated = inner.mutates.iter().map(|name| (name, true));
        for (name, changed) in mutated.chain(inner.escapes.iter().map(|name| (name, false))) {
            let name = self.names.of(name.to_owned().into());
            let val = self.peek_global(name);
            if changed { self.mutate(val) } else { self.escape(val) }
        }
        for deleted in &inner.deletes {
            let name = self.names.of(deleted.to_owned().into());
            self.frame.deletes.insert(name);
            self.unbound(name);
            let slot = Slot { val: EMPTY, bits: super::state::UNBOUND };
            let slot = either(self.state.get(global(name)), slot, &mut self.values);
            self.state.set(global(name), slot);
        }
        if !at_top {
            return EMPTY;
        }
        for written in &inner.writes {
            let sure = inner.sure_writes.contains(written);
            let name = self.names.of(written.to_owned().into());
            self.frame.writes.insert(name);
            self.valued(name, EMPTY);
            // The value may be that of any name the code reads.
            let mut val = EMPTY;
            for read in &inner.reads {
                let read = self.names.of(read.to_owned().into());
                let read = self.peek_global(read);
                val = self.union(val, read);
            }
            let slot = Slot { val, bits: BOUND };
            let slot = if sure {
                slot
            } else {
                either(self.state.get(global(name)), slot, &mut self.values)
            };
            self.state.set(global(name), slot);
        }
        EMPTY
    }
}
